"""`commands.jsonl`, a projection of `rollouts.jsonl`: it grows as that file does, and is put in order in the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from reward_kit.answers.command import extract_command
from reward_kit.errors import StorageError
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.local_engine import Reporter
from reward_kit.models import Rollout
from reward_kit.storage.journal import Journal
from reward_kit.storage.run_directory import ROLLOUTS
from reward_kit.storage.shell_tables import command_line
from reward_kit.storage.tables import rollout_from_line

__all__ = ["CommandCounts", "Following", "write_commands"]

_SECONDS = 0.5
"""How far `commands.jsonl` may lag behind while the model writes."""


class CommandCounts(NamedTuple):
    """What the answers came to."""

    commands: int
    no_command: int
    """Answers that hold none."""


def write_commands(directory: Path, name: str) -> CommandCounts:
    """Write the whole file from the rollouts, in dataset order, atomically."""
    commands = none = 0
    target = directory / name
    draft = target.with_name(f"{name}.writing")
    try:
        with Journal(directory / ROLLOUTS, read_only=True) as rollouts, draft.open("wb") as file:
            for rollout in map(rollout_from_line, rollouts.in_order()):
                file.write(command_line(rollout))
                found = _has_command(rollout)
                commands += found
                none += not found and rollout.failure is None
        draft.replace(target)
    except OSError as error:
        raise StorageError(
            f"Cannot write {str(target)!r} ({error.strerror}). The answers are safe: make room, then run again."
        ) from error
    return CommandCounts(commands, none)


def _has_command(rollout: Rollout) -> bool:
    return bool(rollout.turns) and extract_command(rollout.turns[-1].text) is not None


class Following:
    """A reporter that keeps `commands.jsonl` up with the rollouts, and lets another one show the progress."""

    def __init__(self, directory: Path, name: str, reporter: Reporter | None) -> None:
        """Follow the rollouts of `directory`."""
        self._directory = directory
        self._name = name
        self._reporter = reporter
        self._read = 0

    async def watch(self, counters: RunCounters) -> None:
        """Until cancelled; then catch up once more."""
        self._mend()
        shown = asyncio.create_task(self._reporter.watch(counters)) if self._reporter is not None else None
        try:
            while True:
                await asyncio.sleep(_SECONDS)
                self._catch_up()
        finally:
            if shown is not None:
                shown.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await shown
            self._catch_up()

    def _mend(self) -> None:
        """Begin with a file that holds just what the rollouts do, whatever a crash left of it."""
        rollouts = self._directory / ROLLOUTS
        self._read = rollouts.stat().st_size if rollouts.exists() else 0
        if self._read:
            write_commands(self._directory, self._name)
        else:
            (self._directory / self._name).unlink(missing_ok=True)

    def _catch_up(self) -> None:
        block = b"".join(map(command_line, self._new_rollouts()))
        if block:
            with (self._directory / self._name).open("ab") as file:
                file.write(block)

    def _new_rollouts(self) -> Iterator[Rollout]:
        with (self._directory / ROLLOUTS).open("rb") as file:
            file.seek(self._read)
            fresh = file.read()
        whole = fresh[: fresh.rfind(b"\n") + 1]
        self._read += len(whole)
        yield from (rollout_from_line(line) for line in whole.split(b"\n") if line)
