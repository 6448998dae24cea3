# SPDX-License-Identifier: Apache-2.0
"""A projection holds what its journal holds, in its order, wherever a crash came between the two."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_kit.errors import StorageError
from reward_kit.models import Message, Rollout, Sample
from reward_kit.storage.journal import Journal
from reward_kit.storage.line_writer import LineWriter
from reward_kit.storage.projected_file import Projected, ProjectedFile
from reward_kit.utils.checksums import sealed_line

few = settings(max_examples=40)  # each one waits for the disk
count = itertools.count()
keys = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=12)
"""Sample and draw of each rollout, in the order in which they were made; one that comes again holds."""


def project(rollout: Rollout) -> Projected:
    row = {"task_id": rollout.sample.id, "response_index": rollout.response_index, "said": rollout.turns[-1].text}
    return Projected(rollout, sealed_line(orjson.dumps(row) + b"\n"))


def rollouts(made: list[tuple[int, int]]) -> list[Rollout]:
    return [
        Rollout(
            sample=Sample(id=f's"{name}', messages=[Message(role="user", content="?")], position=name),
            response_index=draw, turns=[Message(role="assistant", content=f"answer {number}")],
        )
        for number, (name, draw) in enumerate(made)
    ]  # fmt: skip


def somewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.getbasetemp() / f"{os.getpid()}-projection-{next(count)}"
    directory.mkdir()
    return directory


def expected(made: list[tuple[int, int]]) -> bytes:
    last = dict(zip(made, rollouts(made), strict=True))
    return b"".join(project(last[key]).line for key in sorted(last))


def put(journal: Journal, made: list[Rollout]) -> None:
    writer = LineWriter(journal.samples)
    if made:
        journal.append([writer.rollout_line(rollout, "ab") for rollout in made])


@few
@given(keys)
def test_it_is_ordered_as_its_journal_is(tmp_path_factory: pytest.TempPathFactory, made: list[tuple[int, int]]) -> None:
    home = somewhere(tmp_path_factory)
    beside = ProjectedFile(home / "commands.jsonl", project)
    with Journal(home / "rollouts.jsonl") as journal:
        put(journal, rollouts(made))
        beside.append(map(project, rollouts(made)))
        journal.compact()
        beside.compact(journal)
    assert beside.path.read_bytes() == expected(made)


@few
@given(keys, st.integers(0, 12), st.integers(0, 40))
def test_whatever_a_crash_left_is_mended(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[int, int]], behind: int, torn: int
) -> None:
    home = somewhere(tmp_path_factory)
    beside = ProjectedFile(home / "commands.jsonl", project)
    with Journal(home / "rollouts.jsonl") as journal:
        put(journal, rollouts(made))
        written = b"".join(project(rollout).line for rollout in rollouts(made)[: max(0, len(made) - behind)])
        beside.path.write_bytes(written[: max(0, len(written) - torn)])
        assert beside.mend(journal) is None
        assert (beside.path.read_bytes() if made else not beside.path.exists()) == (expected(made) or True)


def test_what_a_person_changed_is_kept_aside(tmp_path: Path) -> None:
    beside = ProjectedFile(tmp_path / "commands.jsonl", project)
    beside.path.write_bytes(b'{"task_id":"s0","response_index":0,"said":"mine"}\n')
    with Journal(tmp_path / "rollouts.jsonl") as journal:
        put(journal, rollouts([(0, 0)]))
        kept = beside.mend(journal)
    assert kept is not None and b"mine" in kept.read_bytes()
    assert beside.path.read_bytes() == expected([(0, 0)])


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "commands.jsonl").mkdir()
    with pytest.raises(StorageError, match="The answers are safe"):
        ProjectedFile(tmp_path / "commands.jsonl", project).append(map(project, rollouts([(0, 0)])))
