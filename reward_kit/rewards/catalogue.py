# SPDX-License-Identifier: Apache-2.0
"""The catalogue: what each reward says of itself, read from its signature and its docstring.

The form of a library reward's docstring is described in `reward_kit.rewards`. A reward of the user's own may leave out
any part of it.
"""

from __future__ import annotations

import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, NamedTuple

from reward_kit.reward_call import RESOURCES, mode_of, wants
from reward_kit.reward_names import library_rewards, plugin_rewards, reward_path
from reward_kit.typed_interface import Mode, is_async, marks_of, name_of, signature_of
from reward_kit.utils.module_loader import load_function

__all__ = ["RewardEntry", "describe", "entries", "library_entries", "unmet_needs"]

_LABEL = re.compile(r"^(Metrics|Needs|Cost|Does not detect): ")
_NEED = re.compile(r"(?P<kind>extra|program) `(?P<name>[^`]+)`|(?P<sandbox>sandbox)")
_REQUIREMENT = re.compile(r"(?P<package>[\w.-]+)[^;]*;.*\bextra == ['\"](?P<extra>[\w-]+)['\"]")
_LONG_DEFAULT = 40


class RewardEntry(NamedTuple):
    """A reward, as it describes itself."""

    name: str
    path: str
    """Its import path."""
    mode: Mode
    is_async: bool
    signature: str
    """Its parameters with their defaults, without annotations and without its resources."""
    resources: tuple[str, ...]
    """What a run hands to it because it names it."""
    operators: tuple[str, ...]
    """The parameters that only `reward.params` fills, and no column or request."""
    summary: str
    """What the score means, in one sentence."""
    details: str
    """The paragraphs after that."""
    metrics: str
    needs: tuple[str, ...]
    """What it needs beyond the core: "extra `NAME`", "program `NAME`" or "sandbox"."""
    cost: str
    does_not_detect: str
    example: str
    """A doctest."""


def library_entries() -> list[RewardEntry]:
    """Every reward of the library, by module."""
    return [_entry(name, path, load_function(path)) for name, path in library_rewards().items()]


def entries() -> list[RewardEntry]:
    """Every reward of the library, and then those that installed packages name."""
    library = library_entries()
    taken = {entry.name for entry in library}
    plugins = {name: path for name, path in plugin_rewards().items() if name not in taken}
    return [*library, *(_entry(name, path, load_function(path)) for name, path in plugins.items())]


def describe(name_or_path: str) -> RewardEntry:
    """The reward of that name, or at that import path. An ImportError says why there is none."""
    path = reward_path(name_or_path)
    func = load_function(path)
    return _entry(name_of(func), path, func)


def unmet_needs(entry: RewardEntry) -> list[str]:
    """What the reward needs and this machine lacks. A sandbox is not tried: `reward-kit doctor` does that."""
    return [need for need in entry.needs if not _is_met(need)]


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _entry(name: str, path: str, func: Callable[..., Any]) -> RewardEntry:
    text = inspect.getdoc(func) or ""
    prose, start, example = text.partition("\n>>> ")
    labels: dict[str, str] = {}
    paragraphs = [_without_labels(paragraph, labels) for paragraph in prose.strip().split("\n\n")]
    summary, *details = [paragraph for paragraph in paragraphs if paragraph] or [""]
    needs = labels.get("Needs", "").rstrip(".")
    return RewardEntry(
        name=name,
        path=path,
        mode=mode_of(func),
        is_async=is_async(func),
        signature=_signature(func),
        resources=tuple(name for name in RESOURCES if wants(func, name)),
        operators=tuple(sorted(marks_of(func).operators.difference(RESOURCES))),
        summary=" ".join(summary.split()),
        details="\n\n".join(details),
        metrics=labels.get("Metrics", ""),
        needs=tuple(need.strip() for need in needs.split(";") if need.strip()),
        cost=labels.get("Cost", ""),
        does_not_detect=labels.get("Does not detect", ""),
        example=(start + example).strip(),
    )


def _without_labels(paragraph: str, labels: dict[str, str]) -> str:
    """The paragraph's lines up to the first label; what follows labels is noted in `labels`."""
    kept: list[str] = []
    current = ""
    for line in textwrap.dedent(paragraph).strip().splitlines():
        label = _LABEL.match(line)
        if label:
            current = label[1]
            labels[current] = line[label.end() :].strip()
        elif current:
            labels[current] += " " + line.strip()
        else:
            kept.append(line)
    return "\n".join(kept)


def _signature(func: Callable[..., Any]) -> str:
    return f"({', '.join(_parameters(signature_of(func)))})"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    starred = False
    for parameter in signature.parameters.values():
        if parameter.name in RESOURCES:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        yield _parameter(parameter)


def _parameter(parameter: inspect.Parameter) -> str:
    """The parameter as written, without its annotation. A default that is long, or differs by process, is left out."""
    written = str(parameter.replace(annotation=parameter.empty))
    name, equals, default = written.partition("=")
    return f"{name}=…" if equals and (len(default) > _LONG_DEFAULT or " at 0x" in default) else written


# ── needs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_met(need: str) -> bool:
    parts = _NEED.fullmatch(need)
    if parts is None or parts["sandbox"]:
        return True
    if parts["kind"] == "program":
        return shutil.which(parts["name"]) is not None
    packages = _packages(parts["name"])
    return bool(packages) and all(map(_is_installed, packages))


def _packages(extra: str) -> list[str]:
    """The packages of one of our extras."""
    found = (_REQUIREMENT.match(line) for line in requires("reward-kit") or [])
    return [match["package"] for match in found if match and match["extra"] == extra]


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False
