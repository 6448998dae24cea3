# SPDX-License-Identifier: Apache-2.0
"""Rows of well-known datasets are recognised by their columns, and mean the same at every front door."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.config_models import DatasetConfig, DatasetFormat
from reward_kit.datasets import load_samples, rollouts_from_rows, samples_from_rows
from reward_kit.datasets.shapes import FORMATS
from reward_kit.datasets.splits import Split, SplitStream
from reward_kit.errors import DatasetError
from reward_kit.models import Sample

TESTS = [{"input": "1", "output": "2", "testtype": "stdin"}]
PACKED = base64.b64encode(zlib.compress(pickle.dumps(json.dumps(TESTS)))).decode()
CHAT = [{"from": "human", "value": "2 + 2?"}, {"from": "gpt", "value": "4"}]
NEMOTRON: dict[str, Any] = {
    "uuid": "u1", "category": "math", "metadata": json.dumps({"expected_answer": "4"}),
    "messages": [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "four"}],
}  # fmt: skip

KNOWN: dict[str, tuple[dict[str, Any], str, Any, str | None]] = {
    "gsm8k": ({"question": "2 + 2?", "answer": "Add them.\n#### 4"}, "2 + 2?", "4", None),
    "math": ({"problem": "2 + 2?", "solution": r"So $\boxed{4}$.", "level": "1"}, "2 + 2?", "4", None),
    "humaneval": (
        {"task_id": "H/0", "prompt": "def f():\n", "test": "def check(c): ...", "entry_point": "f"},
        "def f():\n", {"test": "def check(c): ...", "entry_point": "f"}, "H/0",
    ),
    "mbpp": (
        {"task_id": 7, "text": "Add one.", "code": "…", "test_list": ["assert f(1) == 2"]},
        "Add one.\n\nThe code must pass these tests:\n\nassert f(1) == 2", {"test_list": ["assert f(1) == 2"]}, "7",
    ),
    "apps": (
        {"problem_id": 3, "question": "Double it.", "solutions": "[]", "input_output": '{"inputs": [], "outputs": []}'},
        "Double it.", '{"inputs": [], "outputs": []}', "3",
    ),
    "livecodebench": (
        {"question_content": "Add one.", "question_id": "q", "starter_code": "", "metadata": "{}",
         "public_test_cases": json.dumps(TESTS), "private_test_cases": PACKED},
        "Add one.", [{**test, "expected_output": "2"} for test in (*TESTS, *TESTS)], "q",
    ),
    "sharegpt": ({"conversations": CHAT}, "2 + 2?", "4", None),
    "nemotron": (NEMOTRON, "2 + 2?", "4", "u1"),
    "prompt_completion": ({"prompt": "2 + 2?", "completion": "4"}, "2 + 2?", "4", None),
    "instruction_output": ({"instruction": "Add.", "input": "2, 2", "output": "4"}, "Add.\n\n2, 2", "4", None),
    "question_answer": ({"question": "2 + 2?", "answer": "4"}, "2 + 2?", "4", None),
}  # fmt: skip


def sample_of(row: dict[str, Any], **settings: Any) -> Sample:
    (sample,) = samples_from_rows([row], settings=DatasetConfig(path_or_name="rows", **settings))
    return sample


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("said", [False, True])
def test_a_known_shape_is_asked_and_judged_as_its_set_means_it(name: str, said: bool) -> None:
    row, question, truth, own_id = KNOWN[name]
    sample = sample_of(row, format=name if said else "auto")
    assert sample.messages[-1].content == question
    assert sample.ground_truth == truth
    assert own_id is None or sample.id == own_id


@pytest.mark.parametrize("name", KNOWN)
def test_every_column_of_the_row_still_reaches_a_reward_that_names_it(name: str) -> None:
    row = KNOWN[name][0]
    kept = sample_of(row).columns
    for column, value in row.items():
        if column not in ("messages", "id", "metadata"):
            assert kept[column] == value


def test_the_names_in_the_config_are_the_shapes_there_are() -> None:
    assert set(get_args(DatasetFormat)) == set(FORMATS)
    assert set(FORMATS) - set(KNOWN) == {"auto", "standard", "bfcl"}


def test_bfcl_turns_and_functions_become_messages_and_tools() -> None:
    function = {"name": "f", "parameters": {"type": "dict"}}
    row = {"id": "simple_0", "question": [[{"role": "user", "content": "Call f."}]], "function": [function]}
    sample = sample_of({**row, "ground_truth": [{"f": {}}]})
    assert (sample.messages[0].content, sample.ground_truth) == ("Call f.", [{"f": {}}])
    assert sample.tools == [{"type": "function", "function": function}]
    with pytest.raises(DatasetError, match="several scripted turns"):
        sample_of({**row, "question": [*row["question"], *row["question"]]})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"question": "a", "problem": "b", "answer": "c"}, "unclear what is asked: 'question' or 'problem'"),
        ({"question": "a", "answer": "b", "solution": "c"}, "unclear what is right: 'answer' or 'solution'"),
        ({"question": "a", "choices": ["b", "c"], "answer": 1}, "choices in 'choices' are not part of the question"),
    ],
)
def test_what_is_ambiguous_is_refused_with_the_mapping_to_write(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(DatasetError, match=reason) as refused:
        sample_of(row)
    advice = str(refused.value)
    keys = ("column_mapping={user_query: question}", "column_mapping={ground_truth: answer}", "prompt_template")
    assert any(f"dataset.{key}" in advice for key in keys)


def test_the_mapping_that_is_recommended_works() -> None:
    row = {"question": "a", "problem": "b", "answer": "c", "solution": "d"}
    sample = sample_of(row, column_mapping={"user_query": "question", "ground_truth": "answer"})
    assert (sample.messages[0].content, sample.ground_truth) == ("a", "c")


def test_our_own_columns_count_before_any_shape() -> None:
    row = {"user_query": "mine", "ground_truth": "right", "question": "theirs", "answer": "x", "problem": "y"}
    assert (sample_of(row).messages[0].content, sample_of(row).ground_truth) == ("mine", "right")
    assert sample_of({"prompt": "mine", "ground_truth": None, "answer": "a"}).ground_truth is None


def test_a_template_says_what_is_asked_and_the_shape_what_is_right() -> None:
    sample = sample_of(KNOWN["gsm8k"][0], prompt_template="Solve: {{ question }}")
    assert (sample.messages[0].content, sample.ground_truth) == ("Solve: 2 + 2?", "4")


def test_a_format_that_does_not_fit_names_the_missing_column() -> None:
    with pytest.raises(DatasetError, match=r"`dataset.format=humaneval` needs the column 'entry_point'"):
        sample_of({"prompt": "a", "test": "b"}, format="humaneval")


def test_standard_knows_no_other_shape() -> None:
    with pytest.raises(DatasetError, match="there is no column 'user_query'"):
        sample_of(KNOWN["gsm8k"][0], format="standard")


def test_the_stream_says_which_shapes_it_met() -> None:
    stream = samples_from_rows([KNOWN["gsm8k"][0]])
    assert stream.formats == {}
    list(stream)
    assert list(stream.formats) == ["gsm8k"] and "####" in stream.formats["gsm8k"]


def test_a_packed_test_that_is_more_than_text_runs_nothing(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "ran",)

    packed = base64.b64encode(zlib.compress(pickle.dumps(Hostile()))).decode()
    with pytest.raises(DatasetError, match="test cases cannot be read"):
        sample_of({**KNOWN["livecodebench"][0], "private_test_cases": packed})
    assert not (tmp_path / "ran").exists()


# ── answers that are in the data ─────────────────────────────────────────────────────────────────────────────────────


def test_answers_of_known_shapes_are_judged_and_not_taken_for_the_truth() -> None:
    chat, pair = rollouts_from_rows([{"conversations": CHAT}, {"prompt": "2 + 2?", "completion": "4"}])
    for rollout in (chat, pair):
        assert [turn.content for turn in rollout.turns] == ["4"]
        assert (rollout.sample.messages[-1].content, rollout.sample.ground_truth) == ("2 + 2?", None)


def test_a_response_column_is_the_answer_and_still_a_column() -> None:
    row = {**KNOWN["humaneval"][0], "completion": "    return 1"}
    settings = DatasetConfig(path_or_name="rows", response_column="completion")
    (rollout,) = rollouts_from_rows([row], settings=settings)
    assert rollout.turns[-1].content == "    return 1"
    assert rollout.sample.columns["completion"] == "    return 1"
    assert rollout.sample.columns["prompt"] == "def f():\n"
    assert rollout.sample.ground_truth == KNOWN["humaneval"][2]


# ── one meaning at every door ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["gsm8k", "math", "question_answer", "nemotron"])
def test_a_run_and_an_experiment_over_the_same_rows_name_and_ask_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / "math.jsonl"
    path.write_text(f"{json.dumps(KNOWN[name][0])}\n" * 2, encoding="utf-8")
    config = DatasetConfig(path_or_name=str(path))
    if name == "nemotron":
        path.write_text(f"{json.dumps(KNOWN[name][0])}\n", encoding="utf-8")
    run = [(one.id, one.messages, one.ground_truth) for one in load_samples(config)]
    experiment = [(one.id, one.messages, one.ground_truth) for one in SplitStream(config, [Split("math", "math")])]
    assert run == experiment


@given(
    st.dictionaries(
        st.sampled_from(sorted({column for row, *_ in KNOWN.values() for column in row})),
        st.one_of(st.none(), st.text(max_size=5), st.integers(), st.lists(st.text(max_size=3), max_size=2)),
    )
)
def test_any_mixture_of_columns_is_a_sample_or_a_bad_row(row: dict[str, Any]) -> None:
    settings = DatasetConfig(path_or_name="rows", on_bad_row="skip")
    try:
        list(samples_from_rows([row], settings=settings))
    except DatasetError as error:
        assert "no usable row" in str(error)
