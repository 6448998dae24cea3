# SPDX-License-Identifier: Apache-2.0
"""`commands.jsonl`: as phase 1 writes it, beside the rollouts, and as phase 2 reads it: rollouts to execute.

    generated rollout ──▶ command_of ══▶ a line of commands.jsonl
                              └────────▶ the same command as a rollout, which is what is executed

Where both phases run at once, a command is executed without the file being read. Where they do not, the file is all
that the execution reads: it needs no dataset and no other file, and commands that share a setup come next to each
other. It may be ours, or anybody's with the columns `task_id`, `task`, `setup_commands`, `success_condition` and
`generated_command`. Lines of one task are told apart by `response_index`; where one comes twice, the later line holds.
Lines without one are numbered as they come.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import ValidationError

from reward_kit.datasets.row_ids import content_id
from reward_kit.datasets.rows import BadRow
from reward_kit.datasets.shell_tasks import task_columns
from reward_kit.errors import ConfigError, DatasetError, StorageError
from reward_kit.models import Failure, Message, Rollout, Sample, Usage
from reward_kit.storage.projected_file import Projected
from reward_kit.storage.run_directory import ROLLOUTS, held_by
from reward_kit.storage.shell_tables import NO_COMMAND, Command, command_line, command_row, extra_columns
from reward_kit.utils import exact_json
from reward_kit.utils.checksums import check_line, unsealed

__all__ = ["CommandsFile", "Shard", "command_of"]

_NO_COMMAND = "The line has no command."
_UNNUMBERED = -1
"""Stands for the response index of a line that has none, until it is numbered."""
_ADVICE = "Generate them with --phase inference, or name another file with --commands-file."


class Shard(NamedTuple):
    """Every `parts`-th task, beginning with the `part`-th: one machine's share of a commands file."""

    part: int = 1
    parts: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """`2/4` is the second of four parts."""
        part, slash, parts = text.partition("/")
        if not (slash and part.isdecimal() and parts.isdecimal() and int(part) <= int(parts) and int(parts)):
            raise ConfigError(f"--shard is {text!r}; expected i/k, such as 1/4 … 4/4.")
        return cls(int(part), int(parts))

    def __str__(self) -> str:
        return f"{self.part}/{self.parts}"

    def has(self, position: int) -> bool:
        """Whether the task at `position` (from 0) belongs to it."""
        return position % self.parts == (self.part - 1) % self.parts


class _Line(NamedTuple):
    """Where a command is, and what it goes together with."""

    offset: int
    number: int
    position: int
    """Where its task stands among the file's tasks."""
    response_index: int


class CommandsFile:
    """The commands of a file, read when they are iterated; only their places are held in memory."""

    def __init__(self, path: Path, shard: Shard | None = None, limit: int | None = None) -> None:
        """Look through the whole file: a line that is no command is a `DatasetError` that names it.

        Only the tasks of `shard` count, and of the file's tasks only the first `limit`.
        """
        self.path = path
        self._shard = shard or Shard()
        self._limit = limit
        self._positions: dict[str, int] = {}
        self._read = 0
        self._unnumbered: Counter[str] = Counter()
        self._groups: dict[bytes, dict[tuple[str, int], _Line]] = {}
        self._place: dict[tuple[str, int], bytes] = {}
        self.model: str | None = None
        """The model that the first line names."""
        for number, offset, line in self._lines():
            self._note(number, offset, line)
        self._refuse_cut()
        if not self._place:
            raise DatasetError(f"{str(path)!r} holds no command. {_ADVICE}")

    def _refuse_cut(self) -> None:
        """Stop where a file that --phase inference wrote holds fewer commands than there are answers beside it."""
        held = held_by(self.path.with_name(ROLLOUTS)) if self.path.name == "commands.jsonl" else None
        if held is not None and self._read < held:
            raise StorageError(
                f"{str(self.path)!r} was cut: it holds {self._read} of {held} commands. Run --phase inference again, "
                "which writes the whole file. To run only these commands, copy the file to another directory."
            )

    def __len__(self) -> int:
        return len(self._place)

    def __iter__(self) -> Iterator[Rollout]:
        with self.path.open("rb") as file:
            for group in self._groups.values():
                for line in sorted(group.values(), key=lambda line: line.position):
                    file.seek(line.offset)
                    rollout = self._rollout(file.readline(), line.number)
                    sample = rollout.sample.model_copy(update={"position": line.position})
                    yield rollout.model_copy(update={"sample": sample, "response_index": line.response_index})

    def __contains__(self, rollout: object) -> bool:
        return isinstance(rollout, Rollout) and (rollout.sample.id, rollout.response_index) in self._place

    @property
    def keys(self) -> Set[tuple[str, int]]:
        """Task id and response index of each command."""
        return self._place.keys()

    @property
    def setups(self) -> int:
        """How many different setups there are."""
        return len(self._groups)

    def command_of(self, key: tuple[str, int]) -> str | None:
        """The command under this key; None where there is none."""
        place = self._place.get(key)
        if place is None:
            return None
        line = self._groups[place][key]
        with self.path.open("rb") as file:
            file.seek(line.offset)
            turns = self._rollout(file.readline(), line.number).turns
        return (turns[-1].text or None) if turns else None

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        try:
            with self.path.open("rb") as file:
                offset = 0
                for number, line in enumerate(file, start=1):
                    if line.strip():
                        yield number, offset, line
                    offset += len(line)
        except FileNotFoundError:
            raise DatasetError(f"There is no commands file {str(self.path)!r}. {_ADVICE}") from None
        except OSError as error:
            raise DatasetError(f"Cannot read {str(self.path)!r} ({error.strerror}). {_ADVICE}") from error

    def _note(self, number: int, offset: int, line: bytes) -> None:
        if not line.endswith(b"\n") and not _is_json(line):
            return  # torn by a crash: what it held is in no result, and comes again with the next --phase inference
        rollout = self._rollout(line, number)
        self._read += 1
        sample = rollout.sample
        position = self._positions.setdefault(sample.id, len(self._positions))
        index = rollout.response_index
        if index < 0:
            index = self._unnumbered[sample.id]
            self._unnumbered[sample.id] += 1
        if not self._shard.has(position) or (self._limit is not None and position >= self._limit):
            return
        key = sample.id, index
        if (before := self._place.get(key)) is not None:
            del self._groups[before][key]
        setup = _digest(sample.columns["setup_commands"])
        self._place[key] = setup
        self._groups.setdefault(setup, {})[key] = _Line(offset, number, position, index)
        self.model = self.model or rollout.model

    def _rollout(self, line: bytes, number: int) -> Rollout:
        if check_line(line) is False:
            raise DatasetError(
                f"{str(self.path)!r}, line {number}: it is not what was written there. "
                "Restore the file; if you changed the line yourself, take its last column, `check`, out."
            )
        try:
            row = exact_json.loads(line)
            if not isinstance(row, dict):
                raise BadRow("expected a JSON object")
            return _rollout(row)
        except (BadRow, ValueError) as problem:
            reason = problem.errors()[0]["msg"] if isinstance(problem, ValidationError) else problem
            raise DatasetError(f"{str(self.path)!r}, line {number}: {reason}. Correct the line.") from problem


def command_of(rollout: Rollout) -> Projected:
    """The command in a generated rollout: as a line of the file, and as the rollout that reading that line gives."""
    row = command_row(rollout)
    line = command_line(row)
    if unsealed(line) != _as_written(row):  # something in it was not for a file: the file is what counts
        row = exact_json.loads(line)
    command = _rollout(row)
    sample = command.sample.model_copy(update={"position": rollout.sample.position})
    return Projected(command.model_copy(update={"sample": sample}), line)


def _as_written(row: dict[str, Any]) -> bytes | None:
    try:
        return exact_json.dumps(row) + b"\n"
    except TypeError:
        return None


def _rollout(row: dict[str, Any]) -> Rollout:
    task = task_columns(row)
    command = row.get("generated_command")
    if command is not None and not isinstance(command, str):
        raise BadRow(f"column 'generated_command' is {command!r}; expected text")
    name = row.get("task_id") if row.get("task_id") is not None else row.get("id")
    sample = Sample(
        id=str(name) if name not in (None, "") else content_id(task)[:8],
        messages=[Message(role="user", content=task["task"])],
        columns={**extra_columns(row), **task},
    )
    usage, index = row.get("usage"), row.get("response_index")
    failure = _failure(row, command)
    return Command(
        sample=sample,
        response_index=_UNNUMBERED if index is None else index,
        turns=[] if failure else [Message(role="assistant", content=command or "")],
        model=row.get("model"),
        finish_reason=row.get("finish_reason"),
        usage=Usage.model_validate(usage) if usage is not None else None,
        cost=row.get("cost"),
        latency_ms=row.get("latency_ms"),
        cached=bool(row.get("cached")),
        generated_at=row.get("timestamp"),
        failure=failure,
        no_command=str(row.get("error") or _NO_COMMAND) if command is None and failure is None else None,
    )


def _failure(row: dict[str, Any], command: str | None) -> Failure | None:
    """Why there is no command, unless the answer simply held none: that is judged, as a wrong answer."""
    error = row.get("error")
    if command is not None or not error or row.get("error_type") == NO_COMMAND:
        return None
    kind = str(row.get("error_type") or "GenerationError")
    message = str(error).removeprefix(f"{kind}: ")
    # Generating again may mend it; executing again then finds the command.
    return Failure(stage="generate", type=kind, message=message, retryable=True)


def _digest(setup: list[str]) -> bytes:
    return hashlib.blake2b(exact_json.dumps(setup), digest_size=12).digest()


def _is_json(line: bytes) -> bool:
    try:
        exact_json.loads(line)
    except ValueError:
        return False
    return True
