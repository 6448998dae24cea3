# SPDX-License-Identifier: Apache-2.0
"""From a config to samples and rollouts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets import load_rollouts, load_samples, rollouts_from_rows, samples_from_rows
from reward_kit.errors import ConfigError, DatasetError
from reward_kit.models import Message, Sample

WriteRows = Callable[..., str]
ASKED = {"user_query": "2 + 2?", "ground_truth_for_eval": "4"}


def turns(sample: Sample) -> list[tuple[str, Any]]:
    return [(message.role, message.content) for message in sample.messages]


def only(row: dict[str, Any], **options: Any) -> Sample:
    (sample,) = samples_from_rows([row], **options)
    return sample


# ── what a row means ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_query_row_becomes_a_sample() -> None:
    sample = only({"id": 7, **ASKED, "split": "test", "level": "hard", "tools": [{"type": "function"}]})
    assert sample == Sample(
        id="7",
        messages=[Message(role="user", content="2 + 2?")],
        ground_truth="4",
        split="test",
        columns={"level": "hard"},
        tools=[{"type": "function"}],
    )


@pytest.mark.parametrize("name", ["messages", "prompt"])
@pytest.mark.parametrize("truth", ["ground_truth", "ground_truth_for_eval"])
def test_a_conversation_row_becomes_a_sample(name: str, truth: str) -> None:
    conversation = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None},
        {"role": "user", "content": "?"},
    ]
    sample = only({name: conversation, truth: [1, 2], "other": None})
    assert turns(sample) == [("user", "hi"), ("assistant", None), ("user", "?")]
    assert (sample.ground_truth, sample.columns) == ([1, 2], {"other": None})


def test_conversations_and_tools_may_be_json_text() -> None:
    row = {"messages": json.dumps([{"role": "user", "content": "hi"}]), "tools": json.dumps([{"type": "function"}])}
    assert (turns(only(row)), only(row).tools) == ([("user", "hi")], [{"type": "function"}])


def test_a_prompt_of_text_is_a_user_turn() -> None:
    assert turns(only({"prompt": "hi"})) == [("user", "hi")]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({**ASKED, "system_prompt": "row"}, "row"),
        ({**ASKED, "system_prompt": None}, "dataset"),
        (ASKED, "dataset"),
        ({"messages": [{"role": "system", "content": "own"}, {"role": "user", "content": "hi"}]}, "own"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "dataset"),
    ],
)
def test_the_nearest_system_prompt_wins(row: dict[str, Any], expected: str) -> None:
    settings = DatasetConfig(path_or_name="rows", system_prompt="dataset")
    sample = only(row, settings=settings, system_prompt="run")
    assert [turn for turn in turns(sample) if turn[0] == "system"] == [("system", expected)]
    assert "system_prompt" not in sample.columns


def test_the_system_prompt_of_the_run_is_the_last_resort_and_an_empty_one_is_none() -> None:
    assert turns(only(ASKED, system_prompt="run"))[0] == ("system", "run")
    assert turns(only({**ASKED, "system_prompt": ""}, system_prompt="run")) == [("user", "2 + 2?")]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"asked": "a"}, "there is no column 'user_query', 'prompt' or 'messages'"),
        ({"user_qurey": "a"}, "did you mean 'user_qurey'"),
        ({"user_query": 7}, "column 'user_query' is 7; expected text"),
        ({"user_query": ""}, "expected text"),
        ({"messages": []}, "expected a list of messages"),
        ({"messages": "hello"}, "text but not JSON"),
        ({"messages": [{"content": "hi"}]}, r"messages\[0\] is not a message: .*Role is required"),
        ({"messages": [{"role": "user", "content": 7}]}, r"messages\[0\] is not a message: content"),
        ({"prompt": [{"role": "user"}, {"role": "assistant", "content": "4"}]}, "would be shown the answer"),
        ({"messages": [{"role": "assistant", "content": "4"}]}, "would be shown the answer"),
        ({**ASKED, "id": 1.5}, "an id is text or a whole number"),
        ({**ASKED, "id": True}, "an id is text or a whole number"),
        ({**ASKED, "tools": [1]}, "expected a list of objects"),
        ({**ASKED, "system_prompt": 1}, "column 'system_prompt' is 1; expected text"),
        ({**ASKED, "ground_truth": "5"}, "keep the one that is right"),
    ],
)
def test_a_row_that_is_no_sample_says_why(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(DatasetError, match=f"'the given rows', row 1: .*{reason}"):
        list(samples_from_rows([row]))


# ── ids and positions ────────────────────────────────────────────────────────────────────────────────────────────────


def test_rows_without_id_are_named_by_their_content_and_told_apart() -> None:
    rows: list[dict[str, Any]] = [ASKED, {**ASKED, "level": 1}, dict(reversed(ASKED.items())), ASKED]
    ids = [sample.id for sample in samples_from_rows(rows)]
    assert ids == [ids[0], ids[1], f"{ids[0]}-1", f"{ids[0]}-2"]
    assert len(ids[0]) == 16 and ids[0] != ids[1]


@pytest.mark.parametrize(
    "columns",
    [
        {"ground_truth": "{t}"}, {"ground_truth_for_eval": "{t}", "answer": "{t}"}, {"answer": "{t}"},
        {"Answer": "{t}"},
        {"solution": "{t}", "answer": "{t}"}, {"reward_model": {"style": "rule", "ground_truth": "{t}"}},
        {"metadata": {"expected_answer": "{t}", "n": 1}}, {"metadata": '{"expected_answer": "{t}"}'}, {"target": "{t}"},
    ],
)  # fmt: skip
def test_a_corrected_truth_leaves_a_row_its_id_and_any_other_change_does_not(columns: dict[str, Any]) -> None:
    def name(truth: str, **more: Any) -> str:
        row = json.loads(json.dumps({"prompt": "2 + 2?", **columns, **more}).replace("{t}", truth))
        return next(iter(samples_from_rows([row]))).id

    assert name("4") == name("5") != name("4", level=1)
    assert name("4") != name("4", prompt="3 + 3?")
    answered = next(iter(rollouts_from_rows([{"prompt": "2 + 2?", "assistant_response": "4"}]))).sample
    assert answered.id == next(iter(samples_from_rows([{"prompt": "2 + 2?", "ground_truth": "4"}]))).id


@pytest.mark.parametrize("column", ["setup", "success_condition", "files", "target"])
def test_columns_of_a_world_belong_to_the_id(column: str) -> None:
    rows: list[dict[str, Any]] = [{**ASKED, column: value, "ground_truth": "4"} for value in ("a", "b")]
    first, second = (sample.id for sample in samples_from_rows(rows))
    assert first != second and "-" not in second


def test_how_a_row_is_asked_does_not_change_its_id() -> None:
    settings = DatasetConfig(path_or_name="rows", prompt_template="Please: {{ user_query }}", split="test")
    assert only(ASKED, system_prompt="Be brief.", settings=settings).id == only(ASKED).id


def test_a_repeated_id_names_both_lines(write_rows: WriteRows, tmp_path: Path) -> None:
    write_rows({"id": "x", **ASKED}, name="a.jsonl")
    write_rows("", {"id": "y", **ASKED}, {"id": "x", **ASKED}, name="b.jsonl")
    config = DatasetConfig(path_or_name=str(tmp_path / "*.jsonl"))
    with pytest.raises(DatasetError, match=r"b\.jsonl', line 3: id 'x' is already taken by '.*a\.jsonl', line 1"):
        list(load_samples(config))


def test_positions_count_the_samples_that_remain(write_rows: WriteRows) -> None:
    path = write_rows("{", {"id": "a", **ASKED}, {"id": "b"}, {"id": "a", **ASKED}, {"id": "b", **ASKED})
    stream = load_samples(DatasetConfig(path_or_name=path, on_bad_row="skip"))
    for _ in range(2):  # a stream can be read again
        assert [(sample.id, sample.position) for sample in stream] == [("a", 0), ("b", 1)]
        assert stream.skipped == len(stream.skip_reasons) == 3
    assert "line 1: the JSON object does not end" in stream.skip_reasons[0]


def test_another_column_may_hold_the_id() -> None:
    settings = DatasetConfig(path_or_name="rows", id_column="key")
    assert only({"key": "k", "id": 1, **ASKED}, settings=settings).id == "k"


@given(
    st.lists(
        st.fixed_dictionaries({"user_query": st.text(min_size=1), "id": st.integers()}), unique_by=lambda row: row["id"]
    )
)
def test_samples_given_as_samples_stay_what_they_are(rows: list[dict[str, Any]]) -> None:
    if rows:
        samples = list(samples_from_rows(rows))
        assert list(samples_from_rows(samples)) == samples


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_limits_stop_the_reading_before_a_bad_row(write_rows: WriteRows) -> None:
    path = write_rows({"id": 1, **ASKED}, {"id": 2, **ASKED}, "{")
    config = DatasetConfig(path_or_name=path)
    assert len(list(load_samples(config, limit=2))) == 2
    assert len(list(load_samples(config.model_copy(update={"max_samples": 1}), limit=2))) == 1
    assert list(load_samples(config, limit=0)) == []


def test_the_size_is_known_where_that_is_cheap(write_rows: WriteRows, tmp_path: Path) -> None:
    path = write_rows(*[{"id": n, **ASKED} for n in range(5)])
    pq.write_table(pa.table({"user_query": ["a"] * 9}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("user_query\na\nb\n")
    config = DatasetConfig(path_or_name=path)
    assert load_samples(config).size_hint() == 5
    assert load_samples(config, limit=3).size_hint() == 3
    assert load_samples(DatasetConfig(path_or_name=str(tmp_path / "a.parquet"))).size_hint() == 9
    assert load_samples(DatasetConfig(path_or_name=str(tmp_path / "a.csv"))).size_hint() == 2
    assert load_samples(config.model_copy(update={"preprocess": ["builtins:dict"]})).size_hint() is None


def test_the_fingerprint_follows_the_content(write_rows: WriteRows) -> None:
    stream = load_samples(DatasetConfig(path_or_name=write_rows(ASKED)))
    before = stream.fingerprint()
    write_rows(ASKED, ASKED)
    assert stream.fingerprint() != before


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_dataset_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(DatasetError, match="The dataset is empty"):
        list(load_samples(DatasetConfig(path_or_name=str(tmp_path / "a.jsonl"))))


def test_a_dataset_of_which_nothing_is_left_says_why(write_rows: WriteRows) -> None:
    stream = load_samples(DatasetConfig(path_or_name=write_rows("{", "["), on_bad_row="skip"))
    with pytest.raises(DatasetError, match=r"no usable row: 2 were skipped, the first one for .*line 1"):
        list(stream)


def test_a_missing_file_is_told_before_anything_is_read() -> None:
    with pytest.raises(DatasetError, match="There is no file"):
        load_samples(DatasetConfig(path_or_name="nowhere.jsonl"))


READ_ALL = """
import sys, tracemalloc
from reward_kit.config_models import DatasetConfig
from reward_kit.datasets import load_samples
stream = load_samples(DatasetConfig(path_or_name=sys.argv[1]))
tracemalloc.start()
rows = sum(1 for _ in stream)
print(rows, tracemalloc.get_traced_memory()[1])
"""


def test_memory_does_not_grow_with_the_rows(write_rows: WriteRows) -> None:
    path = write_rows(*[{"user_query": f"{n}" * 50, "id": f"a long id of a row, number {n}"} for n in range(20_000)])
    # In a process of its own: threads that other tests have left behind here take memory, too.
    done = subprocess.run([sys.executable, "-c", READ_ALL, path], capture_output=True, text=True, check=True)
    rows, peak = map(int, done.stdout.split())
    assert rows == 20_000
    # The index of ids takes 16 bytes a slot, twice while it grows; reading ahead takes one more.
    assert peak < 4_000_000


# ── derived datasets ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_derived_dataset_builds_on_its_base(write_rows: WriteRows) -> None:
    rows = [{"key": f"k{n}", "q": f"{n} + 1?", "a": {"b": n + 1}} for n in range(6)]
    base = DatasetConfig(
        path_or_name=write_rows(*rows),
        column_mapping={"user_query": "q", "truth": "a.b"},
        prompt_template="Solve {{ user_query }}",
        system_prompt="base",
        split="train",
        id_column="key",
        max_samples=4,
    )
    derived = DatasetConfig(
        base_dataset=base,
        column_mapping={"ground_truth": "truth"},
        prompt_template="{{ user_query }} Briefly.",
        system_prompt="derived",
        max_samples=2,
    )
    first, second = load_samples(derived, system_prompt="run")
    assert turns(first) == [("system", "derived"), ("user", "Solve 0 + 1? Briefly.")]
    assert (first.id, first.split, first.ground_truth, second.id) == ("k0", "train", 1, "k1")
    without = derived.model_copy(update={"system_prompt": None, "max_samples": None, "prompt_template": None})
    samples = list(load_samples(without, system_prompt="run"))
    assert (len(samples), turns(samples[0])) == (4, [("system", "base"), ("user", "Solve 0 + 1?")])
    assert load_samples(without).size_hint() == 4


def test_the_limit_of_the_base_is_for_the_rows_of_the_base(write_rows: WriteRows, tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text("def twice(row): return [{**row, 'copy': n} for n in range(2)]\n")
    base = DatasetConfig(path_or_name=write_rows(*[{"user_query": f"{n}?"} for n in range(5)]), max_samples=2)
    derived = DatasetConfig(base_dataset=base, preprocess=[f"{tmp_path}/twice.py:twice"])
    assert [sample.messages[0].content for sample in load_samples(derived)] == ["0?", "0?", "1?", "1?"]


def test_a_derived_dataset_has_no_source_of_its_own(write_rows: WriteRows) -> None:
    path = write_rows(ASKED)
    with pytest.raises(ConfigError, match="Keep one"):
        load_samples(DatasetConfig(path_or_name=path, base_dataset=DatasetConfig(path_or_name=path)))


# ── answers in the data ──────────────────────────────────────────────────────────────────────────────────────────────


def answers(rows: list[dict[str, Any]], **options: Any) -> list[tuple[str, int, list[str]]]:
    rollouts = rollouts_from_rows(rows, **options)
    return [(one.sample.id, one.response_index, [turn.text for turn in one.turns]) for one in rollouts]


def test_the_answer_is_in_its_column() -> None:
    assert answers([{"id": 1, **ASKED, "assistant_response": "4"}]) == [("1", 0, ["4"])]
    assert answers([{"id": 1, **ASKED, "assistant_response": ["4", "5"]}]) == [("1", 0, ["4"]), ("1", 1, ["5"])]
    settings = DatasetConfig(path_or_name="rows", response_column="said")
    assert answers([{"id": 1, **ASKED, "said": ""}], settings=settings) == [("1", 0, [""])]


def test_the_answer_is_what_follows_the_last_user_turn() -> None:
    call = {"id": "c", "function": {"name": "add", "arguments": "{}"}}
    conversation = [
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "4", "tool_call_id": "c"},
        {"role": "assistant", "content": "four"},
    ]
    for row in ({"messages": conversation}, {"messages": conversation, "assistant_response": "four"}):
        (rollout,) = rollouts_from_rows([row], system_prompt="Be brief.")
        assert turns(rollout.sample) == [("system", "Be brief."), ("user", "2 + 2?")]
        assert [turn.role for turn in rollout.turns] == ["assistant", "tool", "assistant"]
    (rollout,) = rollouts_from_rows([{"messages": conversation, "assistant_response": "five"}])
    assert [turn.content for turn in rollout.turns] == ["five"]


def test_rows_that_share_an_id_are_variants_at_one_position() -> None:
    rows = [
        {"id": "a", **ASKED, "assistant_response": "1"},
        {"id": "b", **ASKED, "assistant_response": "2"},
        {"id": "a", **ASKED, "assistant_response": "3"},
    ]
    rollouts = list(rollouts_from_rows(rows))
    assert [(one.sample.id, one.response_index, one.sample.position) for one in rollouts] == [
        ("a", 0, 0),
        ("b", 0, 1),
        ("a", 1, 0),
    ]
    assert rollouts[0].sample == rollouts[2].sample


BY_COLUMN = [{**ASKED, "assistant_response": text} for text in "45"]
BY_TURN = [
    {"messages": [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": text}]} for text in "45"
]


@pytest.mark.parametrize("rows", [BY_COLUMN, BY_TURN])
def test_rows_without_id_stay_two_samples_though_they_ask_the_same(rows: list[dict[str, Any]]) -> None:
    one, two = answers(rows)
    assert (one[1:], two[1:]) == ((0, ["4"]), (0, ["5"]))
    assert two[0] == f"{one[0]}-1"


@pytest.mark.parametrize("rows", [BY_COLUMN, BY_TURN])
def test_rows_without_id_are_variants_when_they_number_their_answers(rows: list[dict[str, Any]]) -> None:
    one, two = answers([{**row, "response_index": index} for index, row in enumerate(rows)])
    assert (one[0], one[1], two[1]) == (two[0], 0, 1)


def test_an_answered_row_has_the_id_of_the_same_row_without_its_answer() -> None:
    assert answers(BY_COLUMN)[0][0] == only(ASKED).id


def test_a_response_index_is_kept_and_may_not_repeat() -> None:
    row = {"id": "a", **ASKED, "assistant_response": "4"}
    assert answers([{**row, "response_index": 3}, {**row, "response_index": "1"}]) == [("a", 3, ["4"]), ("a", 1, ["4"])]
    with pytest.raises(DatasetError, match="row 2: answer 3 of id 'a' is already given by 'the given rows', row 1"):
        answers([{**row, "response_index": 3}, {**row, "response_index": 3}])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (ASKED, "there is no answer: no column 'assistant_response'"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "there is no answer"),
        ({**ASKED, "assistant_response": 7}, "expected an answer, or a list of answers"),
        ({**ASKED, "assistant_response": []}, "expected an answer, or a list of answers"),
        ({**ASKED, "assistant_response": "4", "response_index": -1}, "expected 0, 1, 2"),
        ({**ASKED, "assistant_response": ["4", "5"], "response_index": 0}, "numbers one answer"),
    ],
)
def test_a_row_without_an_answer_says_why(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(DatasetError, match=f"row 1: .*{reason}"):
        answers([row])


def test_one_id_for_two_questions_is_refused() -> None:
    row = {"id": "a", **ASKED, "assistant_response": "4"}
    with pytest.raises(DatasetError, match="row 2: id 'a' was used before for another conversation"):
        answers([row, {**row, "user_query": "2 + 3?"}])


def test_a_limit_counts_samples(write_rows: WriteRows) -> None:
    rows = [{"id": name, **ASKED, "assistant_response": "4"} for name in "aabbcc"]
    stream = load_rollouts(DatasetConfig(path_or_name=write_rows(*rows)), limit=2)
    assert [one.sample.id for one in stream] == ["a", "a", "b", "b"]
