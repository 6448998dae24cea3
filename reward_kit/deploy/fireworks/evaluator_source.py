# SPDX-License-Identifier: Apache-2.0
"""The files of an evaluator: a reward by its import path, folders of metrics, a text of Python, or an address."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reward_kit._version import __version__
from reward_kit.deploy.bundle import Bundle, BundleSource, make_bundle
from reward_kit.deploy.bundle_layout import PROJECT
from reward_kit.deploy.fireworks.evaluators import Criterion, EvaluatorSource
from reward_kit.deploy.fireworks.remote_shim import remote_shim
from reward_kit.deploy.suspicious import credential_in, is_credential_file, is_litter
from reward_kit.errors import DeployError
from reward_kit.metric_folders import ENTRY, FUNCTION

__all__ = ["source_of_bundle", "source_of_code", "source_of_folders", "source_of_reward", "source_of_url"]

_REQUIREMENTS = "requirements.txt"

_REWARD_MAIN = """\
\"\"\"Judges by a reward of a project. Made by reward-kit.\"\"\"

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT / place) for place in {roots!r}]

from reward_kit.metric_folders import by_metrics

evaluate = by_metrics({{
{entries}}}, {params!r})
"""

_METRICS_MAIN = """\
\"\"\"Judges by several metrics. Made by reward-kit.\"\"\"

from pathlib import Path

from reward_kit.metric_folders import by_metrics

ROOT = Path(__file__).resolve().parent
evaluate = by_metrics({{name: f"{{ROOT / name / {entry!r}}}:{function}" for name in {names!r}}})
"""


def source_of_reward(reward: str, params: Mapping[str, Any], project: Path | None = None) -> EvaluatorSource:
    """A reward of the project, with the project's files that it imports."""
    return source_of_bundle(
        make_bundle(BundleSource(rewards={"reward": reward}, project=project or Path.cwd(), params=params))
    )


def source_of_bundle(bundle: Bundle) -> EvaluatorSource:
    """A bundle of rewards. Several of them judge together."""
    entries = "".join(f"    {name!r}: {_place_of(reference)},\n" for name, reference in bundle.rewards.items())
    params = json.loads(json.dumps(dict(bundle.params)))
    main = _REWARD_MAIN.format(roots=list(bundle.import_roots), params=params, entries=entries)
    lines = bundle.files[_REQUIREMENTS].decode().splitlines()
    return EvaluatorSource(
        files={**bundle.files, ENTRY: main.encode()},
        entry_file=ENTRY,
        entry_function=FUNCTION,
        criteria=[
            Criterion(name, ENTRY, FUNCTION, f"Judges by {reference}") for name, reference in bundle.rewards.items()
        ],
        requirements=[line for line in lines if line and not line.startswith(("#", "--"))],
    )


def _place_of(reference: str) -> str:
    """An expression of the reward's import path, where the bundle will be."""
    target, _, attribute = reference.rpartition(":")
    return f'f"{{ROOT}}/{PROJECT}/{target}:{attribute}"' if target.endswith(".py") else repr(reference)


def source_of_folders(folders: Mapping[str, Path]) -> EvaluatorSource:
    """Folders of metrics. One is the evaluator itself; several are put beside each other, and judge together."""
    alone = len(folders) == 1
    files: dict[str, bytes] = {}
    requirements: list[str] = []
    for name, folder in folders.items():
        found = _files_of(folder)
        requirements += _declared(found)
        prefix = "" if alone else f"{name}/"
        files |= {prefix + path: content for path, content in found.items()}
    if not alone:
        files[ENTRY] = _METRICS_MAIN.format(entry=ENTRY, function=FUNCTION, names=list(folders)).encode()
    criteria = [
        Criterion(name, ENTRY if alone else f"{name}/{ENTRY}", FUNCTION, f"The metric {name}") for name in folders
    ]
    return _whole(files, criteria, requirements)


def source_of_code(
    code: str, file_name: str = ENTRY, criterion: str = "default_code_criterion", about: str = ""
) -> EvaluatorSource:
    """A text of Python that has a function `evaluate`."""
    files = {file_name: code.encode()}
    _check({file_name: files[file_name]}, file_name)
    return _whole(files, [Criterion(criterion, file_name, FUNCTION, about)], _declared(files), entry=file_name)


def source_of_url(url: str) -> EvaluatorSource:
    """A reward that is served at an address."""
    files = {ENTRY: remote_shim(url).encode(), _REQUIREMENTS: b""}
    criterion = Criterion("remote_eval_proxy", ENTRY, FUNCTION, f"The reward at {url}")
    return EvaluatorSource(files, ENTRY, FUNCTION, [criterion])


def _whole(
    files: dict[str, bytes], criteria: Sequence[Criterion], declared: Sequence[str], entry: str = ENTRY
) -> EvaluatorSource:
    own = files.get(_REQUIREMENTS, b"").decode().splitlines()
    lines = [line for line in dict.fromkeys([*own, *declared]) if line.strip()]
    if not any(line.replace("_", "-").lower().startswith("reward-kit") for line in lines):
        lines.insert(0, f"reward-kit=={__version__}")
    files = {**files, _REQUIREMENTS: ("\n".join(lines) + "\n").encode()}
    return EvaluatorSource(files, entry, FUNCTION, criteria, lines)


def _files_of(folder: Path) -> dict[str, bytes]:
    """The folder's files that may leave this machine. One that seems to hold a credential stops everything, by name."""
    files: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or is_litter(name) or is_credential_file(name):
            continue
        if not path.resolve().is_relative_to(folder.resolve()):
            raise DeployError(f"{str(path)!r} leads out of its folder. Put a copy of the file there instead.")
        files[name] = path.read_bytes()
    _check(files, str(folder))
    return files


def _check(files: Mapping[str, bytes], where: str) -> None:
    for name, content in files.items():
        if (line := credential_in(content)) is not None:
            raise DeployError(
                f"Line {line} of {name!r} in {where!r} seems to hold a credential, so nothing was sent. Read it "
                "from the environment, and keep the value with `reward-kit secrets set NAME --store fireworks`."
            )


def _declared(files: Mapping[str, bytes]) -> list[str]:
    """What `@reward_function(requirements=[…])` names in the files, read without running them."""
    found: list[str] = []
    for name, content in files.items():
        if not name.endswith(".py"):
            continue
        try:
            tree = ast.parse(content)
        except SyntaxError as error:
            raise DeployError(f"{name!r} is not valid Python: {error}. Correct it.") from None
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "requirements" and isinstance(node.value, ast.List):
                found += [str(item.value) for item in node.value.elts if isinstance(item, ast.Constant)]
    return found
