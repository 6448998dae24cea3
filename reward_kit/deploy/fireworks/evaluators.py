# SPDX-License-Identifier: Apache-2.0
"""Evaluators at Fireworks: a reward's files, built there into something that its jobs can call.

    create ──▶ upload the files as one archive ──▶ Fireworks builds ──▶ ACTIVE, or BUILD_FAILED with a log

Each step can be repeated, so an evaluator whose making was interrupted is finished by the same call.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reward_kit.deploy.fireworks.api import FireworksAPI, Progress, id_of
from reward_kit.deploy.fireworks.polling import states
from reward_kit.deploy.fireworks.replacing import create_or_replace
from reward_kit.deploy.fireworks.uploads import upload
from reward_kit.errors import DeployError

__all__ = [
    "Criterion",
    "EvaluatorSource",
    "archive_of",
    "build_log",
    "create_evaluator",
    "criterion",
    "request_body",
    "wait_until_built",
]

Tell = Callable[[str], None]

_ARCHIVE = "{0}.tar.gz"
_LOG_LINES = 40
_BUILT, _FAILED = "ACTIVE", "BUILD_FAILED"


@dataclass(frozen=True)
class Criterion:
    """One metric: the file and the function that judge by it."""

    name: str
    entry_file: str
    entry_function: str = "evaluate"
    description: str = ""


@dataclass(frozen=True)
class EvaluatorSource:
    """What an evaluator is made of."""

    files: Mapping[str, bytes]
    """By their paths from the evaluator's root. `requirements.txt` is among them."""
    entry_file: str
    entry_function: str
    criteria: Sequence[Criterion]
    requirements: Sequence[str] = ()


def archive_of(files: Mapping[str, bytes]) -> bytes:
    """A tar.gz of the files whose bytes depend on nothing but their names and contents."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(files[name]), 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        file.write(plain.getvalue())
    return packed.getvalue()


def request_body(
    evaluator_id: str, source: EvaluatorSource, display_name: str | None, description: str | None
) -> dict[str, Any]:
    """What Fireworks is told of an evaluator before it gets the files."""
    return {
        "evaluatorId": evaluator_id,
        "evaluator": {
            "displayName": display_name or evaluator_id,
            "description": description or "",
            "entryPoint": f"{source.entry_file}::{source.entry_function}",
            "requirements": "\n".join(source.requirements),
            "criteria": [criterion(one, {}) for one in source.criteria],
        },
    }


def create_evaluator(
    api: FireworksAPI,
    evaluator_id: str,
    source: EvaluatorSource,
    *,
    display_name: str | None = None,
    description: str | None = None,
    force: bool = False,
    tell: Tell | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Make the evaluator, send its files and wait until it is built. What Fireworks says of it in the end.

    One that is built already is a `DeployError`, unless `force` says to replace it; one whose making was interrupted is
    finished.
    """
    say = tell or _silent
    name = api.name("evaluators", evaluator_id)
    body = request_body(evaluator_id, source, display_name, description)
    say(f"evaluator {name}")
    create_or_replace(
        api,
        f"accounts/{api.account}/evaluatorsV2",
        name,
        body,
        finished=_BUILT,
        replace=force,
        exists=f"The evaluator {name!r} exists. Choose another --id, or replace it with --force.",
    )
    archive = archive_of(source.files)
    say(f"sending {len(source.files)} files, {len(archive):,} bytes")
    upload(api, name, _ARCHIVE.format(id_of(name)), archive, progress)
    say("Fireworks builds it")
    return wait_until_built(api, name, tell=say)


def wait_until_built(
    api: FireworksAPI, name: str, *, timeout: float | None = 1800.0, tell: Tell | None = None
) -> dict[str, Any]:
    """Wait for the end of the build. A build that failed is a `DeployError` with the end of its log."""
    last = ""
    for evaluator in states(lambda: api.get(name), timeout=timeout, what=f"The build of {name!r}"):
        state = str(evaluator.get("state", ""))
        if state == _BUILT:
            return evaluator
        if state == _FAILED:
            reason = (evaluator.get("status") or {}).get("message", "")
            log = "\n".join(build_log(api, name).splitlines()[-_LOG_LINES:])
            raise DeployError(
                f"Fireworks could not build {name!r}: {reason or 'it does not say why'}. The end of its log:\n{log}\n"
                "Correct the files or their requirements, and run the same command again."
            )
        if tell is not None and state != last:
            tell(state.lower().replace("_", " "))
            last = state
    raise AssertionError("asking does not end")


def build_log(api: FireworksAPI, name: str) -> str:
    """What the build printed; empty where there is nothing yet."""
    url = api.get(f"{name}:getBuildLogEndpoint").get("buildLogSignedUri")
    return api.read_signed(url) if url else ""


def criterion(one: Criterion, files: Mapping[str, bytes]) -> dict[str, Any]:
    """A metric as Fireworks is told of it, with the texts of `files` where it is not sent them as an archive."""
    return {
        "type": "CODE_SNIPPETS",
        "name": one.name,
        "description": one.description,
        "codeSnippets": {
            "language": "python",
            "fileContents": {
                name: content.decode(errors="replace") for name, content in files.items() if name.endswith(".py")
            },
            "entryFile": one.entry_file,
            "entryFunc": one.entry_function,
        },
    }


def _silent(_: str) -> None:
    """Tell nobody."""
