# SPDX-License-Identifier: Apache-2.0
"""Looking over the files of a run directory, and setting aside what is damaged in them.

A journal's damaged lines are taken out, so that the next run makes what they held again. A damaged summary or config
is moved away, for the next run writes it anew. The files as they were are kept beside, as `<name>.damaged…`. A damaged
manifest is left alone: it says what the other files were made with, and nothing else knows.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from reward_kit.errors import ConfigError, StorageError
from reward_kit.storage.files import Draft
from reward_kit.storage.journal_lines import HEAD, is_whole
from reward_kit.storage.run_directory import (
    RESULTS,
    ROLLOUTS,
    RunDirectory,
    check_config,
    held_by,
    line_numbers,
    read_document,
)
from reward_kit.storage.samples import SAMPLE_HEAD, SAMPLES
from reward_kit.utils.checksums import check_line

__all__ = ["Finding", "look_over", "mend"]

_JOURNALS = (SAMPLES, ROLLOUTS, RESULTS)
_AGAIN = {
    SAMPLES: "The next run of the same command writes them again from its dataset.",
    ROLLOUTS: "What they held is generated and judged again by the next run of the same command.",
    RESULTS: "What they held is judged again by the next run of the same command.",
}


class Finding(NamedTuple):
    """What there is to say of a file."""

    path: Path
    works: bool
    detail: str
    advice: str = ""
    mends: Callable[[RunDirectory], None] | None = None
    """Sets aside what is damaged, where that helps."""


class _Lines(NamedTuple):
    """What a file of lines holds."""

    whole: int
    keys: set[tuple[bytes, ...]]
    damaged: list[int]
    unchecked: int


_NO_LINES = _Lines(0, set(), [], 0)


def look_over(path: Path) -> list[Finding]:
    """What there is to say of each file of the run directory `path`."""
    if not path.is_dir():
        raise ConfigError(f"There is no run directory {str(path)!r}. Name the output directory of a run.")
    findings = [*_documents(path), *_journals(path), *_commands(path)]
    if not findings:
        raise ConfigError(f"{str(path)!r} holds no file of a run. Name the output directory of a run.")
    return findings


def mend(path: Path, findings: list[Finding]) -> list[str]:
    """Set aside what is damaged, and say what was done. Nobody else works in the directory meanwhile."""
    done = []
    with RunDirectory(path) as directory:
        for finding in findings:
            if finding.mends is not None:
                was_there = finding.path.exists()
                finding.mends(directory)
                kept = " The file as it was is kept beside it." if was_there else ""
                done.append(f"{finding.path.name}: set right.{kept}")
    return done


# ── what is there ────────────────────────────────────────────────────────────────────────────────────────────────────


def _documents(path: Path) -> Iterator[Finding]:
    manifest, summary, config = path / "manifest.json", path / "summary.json", path / "config.yaml"
    if manifest.exists():
        yield _document(manifest, "Restore it: it says what the other files were made with.", None)
    if summary.exists():
        yield _document(summary, "The next run of the same command writes it again.", _moves_away(summary))
    if config.exists():
        damaged = check_config(config) is False
        detail = "does not match its checksum" if damaged else "as it was written"
        advice = "The next run of the same command writes it again."
        yield Finding(config, not damaged, detail, advice, _moves_away(config) if damaged else None)


def _document(path: Path, advice: str, mends: Callable[[RunDirectory], None] | None) -> Finding:
    try:
        read_document(path)
    except StorageError as error:
        return Finding(path, False, str(error).removesuffix(".").split(". ")[0], advice, mends)
    return Finding(path, True, "as it was written")


def _journals(path: Path) -> Iterator[Finding]:
    try:
        held = (read_document(path / "manifest.json") or {}).get("holds") or {}
    except StorageError:  # the manifest is damaged, and said to be
        held = {}
    lines = {name: _lines_of(path / name) for name in _JOURNALS if (path / name).exists()}
    if held.get(ROLLOUTS) is None and {ROLLOUTS, RESULTS} <= lines.keys():  # killed: what was judged was there
        held = {**held, ROLLOUTS: len(lines[ROLLOUTS].keys | lines[RESULTS].keys)}
    if not lines.get(SAMPLES, _NO_LINES).keys and not held.get(SAMPLES):
        lines.pop(SAMPLES, None)  # a dataset may have this name, too
    for name in _JOURNALS:
        if name in lines:
            yield _journal(path / name, lines[name], held.get(name) or 0)
        elif held.get(name):
            detail = f"is not there, and had {held[name]} entries"
            yield Finding(path / name, False, detail, f"Restore the file. {_AGAIN[name]}", _forgets(name))


def _journal(path: Path, found: _Lines, held: int) -> Finding:
    missing = max(0, held - len(found.keys) - len(found.damaged))
    broken = bool(found.damaged or missing)
    advice = f"Restore the file, or set this aside with --mend. {_AGAIN[path.name]}"
    return Finding(path, not broken, _detail(found, missing, held), advice, _rewrites(path) if broken else None)


def _commands(path: Path) -> Iterator[Finding]:
    file = path / "commands.jsonl"
    if not file.exists():
        return
    with file.open("rb") as lines:
        checked = [check_line(line) for line in lines]
    damaged = [number for number, whole in enumerate(checked, 1) if whole is False]
    try:
        held = held_by(path / ROLLOUTS) or 0  # a command for each answer
    except StorageError:
        held = 0
    detail = "as it was written"
    if damaged:
        detail = f"{line_numbers(damaged)} damaged"
    elif len(checked) < held:
        detail = f"{held - len(checked)} of the {held} commands it had are missing"
    broken = bool(damaged) or len(checked) < held
    advice = "Restore it, or remove it: --phase inference writes it again."
    yield Finding(file, not broken, detail, advice, _moves_away(file) if broken else None)


def _lines_of(path: Path) -> _Lines:
    keys: set[tuple[bytes, ...]] = set()
    damaged, whole, unchecked = [], 0, 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):  # torn by a crash: it is owed again without a word
                break
            key = _key(path, line)
            if key is None:
                damaged.append(number)
            else:
                whole += 1
                unchecked += check_line(line) is None
                keys.add(key)
    return _Lines(whole, keys, damaged, unchecked)


def _key(path: Path, line: bytes) -> tuple[bytes, ...] | None:
    """What tells a line's entry from others; None of what is no whole line of such a file."""
    head, first, behind = (SAMPLE_HEAD, 0, 1) if path.name == SAMPLES else (HEAD, 1, 3)
    match = head.match(line)
    return None if match is None or is_whole(line, head) is False else match.groups()[first:behind]


def _detail(found: _Lines, missing: int, held: int) -> str:
    findings = [f"{found.whole} whole lines"]
    if found.damaged:
        findings.append(f"{line_numbers(found.damaged)} damaged")
    if missing:
        findings.append(f"{missing} of the {held} entries it had are missing")
    if found.unchecked:
        findings.append(
            f"{found.unchecked} lines were written before reward-kit had checksums, and could not be checked"
        )
    return "; ".join(findings)


# ── setting aside ────────────────────────────────────────────────────────────────────────────────────────────────────


def _moves_away(path: Path) -> Callable[[RunDirectory], None]:
    def move(_: RunDirectory) -> None:
        path.rename(_free_name(path))

    return move


def _forgets(name: str) -> Callable[[RunDirectory], None]:
    """Has the manifest expect nothing of a file that is gone."""

    def forget(directory: RunDirectory) -> None:
        directory.note_held({name: 0})

    return forget


def _rewrites(path: Path) -> Callable[[RunDirectory], None]:
    """Takes the damaged lines out, and has the manifest know how many entries are left."""

    def rewrite(directory: RunDirectory) -> None:
        kept = _free_name(path)
        keys: set[tuple[bytes, ...]] = set()
        with path.open("rb") as lines, Draft(path) as draft:
            for line in lines:
                key = _key(path, line) if line.endswith(b"\n") else None
                if key is not None:
                    keys.add(key)
                    draft.write(line)
            shutil.copyfile(path, kept)
        directory.note_held({path.name: len(keys)})

    return rewrite


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.stem}.damaged{number}{path.suffix}") for number in ("", *range(2, 1000)))
    return next(name for name in names if not name.exists())
