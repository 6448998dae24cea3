# SPDX-License-Identifier: Apache-2.0
"""Ids from content, and digests of samples."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.datasets import content_digest
from reward_kit.datasets.row_ids import content_id
from reward_kit.models import Message, Sample

VALUES = st.none() | st.integers() | st.text() | st.lists(st.integers(), max_size=3)


def shuffled(value: Any, seed: int) -> Any:
    if isinstance(value, dict):
        items = list(value.items())
        random.Random(seed).shuffle(items)
        return {name: shuffled(item, seed) for name, item in items}
    return value


@given(row=st.dictionaries(st.text(), VALUES | st.dictionaries(st.text(), VALUES)), seed=st.integers())
def test_the_order_of_keys_does_not_matter(row: dict[str, Any], seed: int) -> None:
    assert content_id(row) == content_id(shuffled(row, seed))


@given(one=st.dictionaries(st.text(), VALUES), two=st.dictionaries(st.text(), VALUES))
def test_ids_are_equal_when_rows_are(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert (content_id(one) == content_id(two)) == (one == two)


def test_ids_are_the_same_in_every_process() -> None:
    code = "from reward_kit.datasets.row_ids import content_id; print(content_id({'q': 'ü', 'n': [2**70, {'b': 1}]}))"
    here = content_id({"n": [2**70, {"b": 1}], "q": "ü"})
    for seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert ran.stdout.strip() == here


def sample(**changes: Any) -> Sample:
    fields: dict[str, Any] = {
        "id": "a",
        "messages": [Message(role="user", content="2 + 2?")],
        "ground_truth": "4",
        "columns": {"level": 1},
    }
    return Sample(**{**fields, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": [Message(role="user", content="2 + 3?")]},
        {"messages": [Message(role="system", content="2 + 2?")]},
        {"ground_truth": 4},
        {"columns": {"level": 2}},
        {"tools": [{"type": "function"}]},
    ],
)
def test_the_digest_notices_another_question_or_truth(changes: dict[str, Any]) -> None:
    assert content_digest(sample(**changes)) != content_digest(sample())


def test_the_digest_ignores_where_the_sample_stands() -> None:
    assert content_digest(sample(position=7, id="b", split="test")) == content_digest(sample())


def test_the_digest_survives_the_disk_and_sees_into_tool_calls() -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
    with_call = sample(messages=[Message.model_validate({"role": "assistant", "content": None, "tool_calls": [call]})])
    call["function"] = {"name": "g", "arguments": "{}"}
    other = sample(messages=[Message.model_validate({"role": "assistant", "content": None, "tool_calls": [call]})])
    assert content_digest(Sample.model_validate_json(with_call.model_dump_json())) == content_digest(with_call)
    assert content_digest(with_call) != content_digest(other)
