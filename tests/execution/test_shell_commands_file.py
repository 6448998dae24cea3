# SPDX-License-Identifier: Apache-2.0
"""`commands.jsonl` as the execution reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.datasets import content_digest
from reward_kit.errors import ConfigError, DatasetError, StorageError
from reward_kit.execution.shell.commands_file import CommandsFile, Shard, command_of
from reward_kit.models import Failure, Message, Rollout, Sample, Usage
from reward_kit.utils.checksums import sealed_document
from tests.execution.shell_support import command, task, write_rows


def test_a_rollout_comes_back_from_its_line(tmp_path: Path) -> None:
    columns = {**task(1), "difficulty_level": 2, "status": "a column of the data", "model": "theirs"}
    rollout = Rollout(
        sample=Sample(id="t1", messages=[Message(role="user", content="?")], columns=columns, position=7),
        response_index=3,
        turns=[Message(role="assistant", content='<think>hm</think>{"command": "touch f1"}')],
        model="m",
        usage=Usage(prompt_tokens=5, completion_tokens=2),
        cost=0.25,
        generated_at="2024-05-01T00:00:00Z",
    )
    (tmp_path / "commands.jsonl").write_bytes(command_of(rollout).line)
    (read,) = CommandsFile(tmp_path / "commands.jsonl")
    assert (read.sample.id, read.response_index, read.turns[-1].text) == ("t1", 3, "touch f1")
    assert read.sample.columns == columns and (read.model, read.cost) == ("m", 0.25)
    assert (read.usage, read.generated_at) == (rollout.usage, rollout.generated_at)


texts = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=20).filter(str.strip)
answers = st.one_of(
    texts,
    texts.map(lambda text: orjson.dumps({"command": text}).decode() if text.isprintable() else text),
    st.just("<think>hm</think>```bash\ntouch f\n```"),
)
columns_of_data = st.dictionaries(
    st.sampled_from(["level", "status", "model", "id", "split", "columns", "check", "é"]),
    st.one_of(st.integers(-(2**63), 2**64 - 1), texts, st.none(), st.lists(st.booleans(), max_size=2)),
    max_size=3,
)
failures = st.builds(Failure, stage=st.just("generate"), type=st.just("ProviderError"), message=texts)


@given(answers, texts, columns_of_data, st.one_of(st.none(), failures), st.integers(0, 5), st.integers(0, 9))
def test_what_is_executed_at_once_is_what_reading_the_file_gives(
    tmp_path_factory: pytest.TempPathFactory,
    answer: str,
    asked: str,
    columns: dict[str, Any],
    failure: Failure | None,
    index: int,
    position: int,
) -> None:
    sample = Sample(
        id=asked, messages=[Message(role="user", content="?")], columns={**columns, **task(1)}, position=position
    )
    turns = [] if failure is not None else [Message(role="assistant", content=answer)]
    rollout = Rollout(sample=sample, response_index=index, turns=turns, failure=failure, cost=0.0, model="m")
    command, line = command_of(rollout)
    path = tmp_path_factory.getbasetemp() / "one-command.jsonl"
    path.write_bytes(line)
    (read,) = CommandsFile(path)
    assert command.sample.position == position
    placed = read.sample.model_copy(update={"position": position})
    assert command == read.model_copy(update={"sample": placed})
    assert content_digest(command.sample) == content_digest(placed)


def test_a_failed_generation_is_a_failure_and_an_answer_without_a_command_is_none(tmp_path: Path) -> None:
    sample = Sample(id="t1", messages=[Message(role="user", content="?")], columns=task(1))
    failed = Rollout(
        sample=sample, response_index=0, failure=Failure(stage="generate", type="RateLimitError", message="429")
    )
    silent = Rollout(sample=sample, response_index=1, turns=[Message(role="assistant", content="I would not know.")])
    (tmp_path / "c.jsonl").write_bytes(command_of(failed).line + command_of(silent).line)
    first, second = CommandsFile(tmp_path / "c.jsonl")
    assert first.failure == Failure(stage="generate", type="RateLimitError", message="429", retryable=True)
    assert second.failure is None and [turn.text for turn in second.turns] == [""], "an answer, and a wrong one"


def test_a_file_of_somebody_else_needs_only_the_columns_of_the_format(tmp_path: Path) -> None:
    foreign: dict[str, Any] = {
        "task": "x",
        "setup_commands": "mkdir a; cd a",
        "success_condition": "true",
        "generated_command": "ls",
    }
    rows = [
        foreign,
        {**foreign, "generated_command": "pwd"},
        {**foreign, "task": "y", "generated_command": None, "error": "?"},
    ]
    read = [*CommandsFile(write_rows(tmp_path / "c.jsonl", rows))]
    assert [rollout.response_index for rollout in read] == [0, 1, 0]
    assert read[0].sample.id == read[1].sample.id != read[2].sample.id
    assert read[2].failure is not None and read[2].failure.message == "?"


def test_commands_that_share_a_setup_come_together(tmp_path: Path) -> None:
    setups = [["a"], ["b"], ["a"], ["c"], ["b"]]
    rows = [command(number, setup_commands=setup) for number, setup in enumerate(setups)]
    commands = CommandsFile(write_rows(tmp_path / "c.jsonl", rows))
    assert [rollout.sample.id for rollout in commands] == ["t0", "t2", "t1", "t4", "t3"]
    assert [rollout.sample.position for rollout in commands] == [0, 2, 1, 4, 3] and commands.setups == 3


def test_the_later_line_of_a_key_holds(tmp_path: Path) -> None:
    rows = [command(1, "false", response_index=0), command(2), command(1, "true", response_index=0)]
    commands = CommandsFile(write_rows(tmp_path / "c.jsonl", rows))
    assert {rollout.sample.id: rollout.turns[-1].text for rollout in commands} == {"t1": "true", "t2": "touch f2"}
    assert len(commands) == 2 and commands.command_of(("t1", 0)) == "true"


@given(st.integers(1, 30), st.integers(1, 7))
def test_shards_are_a_partition(tasks: int, parts: int) -> None:
    shares = [
        [position for position in range(tasks) if Shard(part, parts).has(position)] for part in range(1, parts + 1)
    ]
    assert sorted(position for share in shares for position in share) == list(range(tasks))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_shard_keeps_the_commands_of_a_task_together(tmp_path: Path) -> None:
    rows = [command(number, response_index=index) for number in range(4) for index in range(2)]
    path = write_rows(tmp_path / "c.jsonl", rows)
    second = CommandsFile(path, Shard.parse("2/3"))
    assert [(r.sample.id, r.response_index, r.sample.position) for r in second] == [("t1", 0, 1), ("t1", 1, 1)]


@pytest.mark.parametrize("text", ["", "1", "5/4", "a/b", "1/0", "-1/2", "1/2/3"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--shard"):
        Shard.parse(text)


def test_a_line_torn_by_a_crash_is_left_out(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "c.jsonl", [command(1), command(2)])
    path.write_bytes(path.read_bytes()[:-40])
    assert [rollout.sample.id for rollout in CommandsFile(path)] == ["t1"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "holds no command"),
        ("\n\n", "holds no command"),
        ("{}\n", "line 1: there is no column 'task'"),
        ("[1]\n", "expected a JSON object"),
        ("nonsense\n", "line 1"),
        ('{"task": "x", "success_condition": "true", "generated_command": 3}\n', "'generated_command' is 3"),
        ('{"task": "x", "success_condition": "true", "response_index": "z"}\n', "line 1"),
    ],
)
def test_what_is_no_commands_file_is_refused_with_what_to_do(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "c.jsonl").write_text(content)
    with pytest.raises(DatasetError) as refusal:
        CommandsFile(tmp_path / "c.jsonl")
    assert said in str(refusal.value)


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="--phase inference"):
        CommandsFile(tmp_path / "none.jsonl")


def test_a_file_that_was_cut_beside_its_answers_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "commands.jsonl", [command(1), command(2)])
    (tmp_path / "manifest.json").write_bytes(sealed_document({"holds": {"rollouts.jsonl": 3}}))
    with pytest.raises(StorageError, match=r"commands\.jsonl' was cut: it holds 2 of 3 commands"):
        CommandsFile(path)
    assert len(CommandsFile(path.rename(tmp_path / "some.jsonl"))) == 2
