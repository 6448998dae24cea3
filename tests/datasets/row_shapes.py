# SPDX-License-Identifier: Apache-2.0
"""Rows as people have them, each with what it means: for tests that put the same rows to several doors.

case.row                   a row: a question × truths × a conversation × capitals × further columns × known formats
case.asked, case.truth     what it asks and what is right
case.unclear               the columns that contradict each other, where no door may take the row
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from hypothesis import strategies as st

from reward_kit.datasets.ground_truths import CANDIDATES
from reward_kit.models import Sample

__all__ = ["KNOWN", "Case", "answered", "cases", "meaning"]

ASKED = "What is 2 + 2?"
SAID = "It is 4."
_USER = {"role": "user", "content": ASKED}
_CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 2}'}}


class Case(NamedTuple):
    """A row, and what it means."""

    row: dict[str, Any]
    asked: str
    truth: Any = None
    unclear: tuple[str, ...] = ()
    ends_with_answer: bool = False
    """Whether the conversation goes up to the answer, which is judged where answers are."""
    truth_is_answer: bool = False
    """Whether that answer is all that says what is right."""


TEXT_QUESTIONS = ("prompt", "user_query", "question", "problem", "query", "instruction", "input")
CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "plain": [_USER],
    "system": [{"role": "system", "content": "Be brief."}, _USER],
    "parts": [{"role": "user", "content": [{"type": "text", "text": ASKED}]}],
    "tools before": [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": None, "tool_calls": [_CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "4"},
        _USER,
    ],
}
ENDINGS: dict[str, tuple[list[dict[str, Any]], Any]] = {
    "nothing": ([], None),
    "text": ([{"role": "assistant", "content": SAID}], SAID),
    "parts": ([{"role": "assistant", "content": [{"type": "text", "text": SAID}]}], SAID),
    "calls": ([{"role": "assistant", "content": None, "tool_calls": [_CALL]}], {"tool_calls": [_CALL]}),
    "after a tool": (
        [
            {"role": "assistant", "content": None, "tool_calls": [_CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "4"},
            {"role": "assistant", "content": SAID},
        ],
        SAID,
    ),
}
"""How a conversation ends, and what that says of the right answer."""

VALUES = ("4", "5", 4, 4.0, True, 1, ["4"], ["4", "four"], {"value": "4"}, "", None)
EXTRAS: dict[str, Any] = {
    "level": "easy", "source": "us", "tests": ["a"], "category": "sums", "difficulty": 3, "data_source": "sums",
    "extra_info": {"answer": "6", "index": 3}, "hint": None, "metadata": {"solution": "7"},
}  # fmt: skip

KNOWN = (
    Case({"question": ASKED, "answer": "Add.\n#### 4", "solution": "5"}, ASKED, "4"),
    Case({"Question": ASKED, "Answer": "Add.\n#### 4"}, ASKED, "4"),
    Case({"problem": ASKED, "solution": r"So \boxed{5}", "answer": "4"}, ASKED, "4"),
    Case({"problem": ASKED, "solution": r"So \boxed{4}"}, ASKED, "4"),
    Case({"problem": ASKED, "solution": "Add.", "expected_answer": "4"}, ASKED, "4"),
    Case({"problem": ASKED, "solution": "Add.", "target": "5", "label": "4"}, ASKED, unclear=("target", "label")),
    Case({"prompt": ASKED, "test": "t", "entry_point": "f", "label": 1, "output": 2}, ASKED,
         {"test": "t", "entry_point": "f"}),
    Case({"question": ASKED, "input_output": "{}", "solution": "p", "answer": "q"}, ASKED, "{}"),
    Case({"instruction": "What is", "input": "2 + 2?", "output": "4"}, "What is\n\n2 + 2?", "4"),
    Case({"prompt": ASKED, "completion": [{"role": "assistant", "content": "4"}]}, ASKED, "4"),
    Case({"prompt": ASKED, "completion": "4", "answer": "5"}, ASKED, unclear=("answer", "completion")),
    Case({"user_query": ASKED, "task": "Add.", "success_condition": "true", "answer": "4", "solution": "5"}, ASKED),
    Case({"conversations": [{"from": "human", "value": ASKED}, {"from": "gpt", "value": SAID}]}, ASKED, SAID),
    Case({"conversations": [{"from": "human", "value": ASKED}, {"from": "gpt", "value": SAID}], "answer": "4"},
         ASKED, "4"),
    Case({"uuid": "u", "category": "math", "metadata": json.dumps({"expected_answer": "4"}), "answer": "5",
          "solution": "6", "messages": [_USER, {"role": "assistant", "content": SAID}]}, ASKED, "4"),
    Case({"uuid": "u", "category": "math", "metadata": "{}", "answer": "5", "solution": "6",
          "messages": [_USER, {"role": "assistant", "content": SAID}]}, ASKED, unclear=("answer", "solution")),
    Case({"uuid": "u", "category": "chat", "metadata": "{}",
          "messages": [_USER, {"role": "assistant", "content": SAID}]}, ASKED, None),
)  # fmt: skip
"""Rows of known formats, which say what is right although other columns could; and some that say it no better."""


def _same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _capitals(name: str) -> st.SearchStrategy[str]:
    return st.sampled_from([name, name, name, name.upper(), name.title()])


@st.composite
def _questions(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """The columns that ask, and what an answer at the end of the conversation says of the truth."""
    column = draw(st.sampled_from([*TEXT_QUESTIONS, "messages", "messages", "prompt of turns", "input of turns"]))
    if column in TEXT_QUESTIONS:
        return {draw(_capitals(column)): ASKED}, None
    turns = CONVERSATIONS[draw(st.sampled_from(list(CONVERSATIONS)))]
    if column != "messages":
        return {draw(_capitals(column.partition(" ")[0])): turns}, None
    ending, says = ENDINGS[draw(st.sampled_from(list(ENDINGS)))]
    return {draw(_capitals(column)): [*turns, *ending]}, says


@st.composite
def _said(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """Columns that say what is right, and what they say."""
    value = draw(st.sampled_from(VALUES))
    names = draw(st.sampled_from([["ground_truth"], ["ground_truth_for_eval"],
                                  ["ground_truth", "ground_truth_for_eval"], ["reward_model"]]))  # fmt: skip
    if names == ["reward_model"]:
        return {"reward_model": {"style": "rule", "ground_truth": value}}, value
    return dict.fromkeys([draw(_capitals(name)) for name in names], value), value


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A row of any mixture of these, or of a known format."""
    if draw(st.integers(0, 9)) == 0:
        known: Case = draw(st.sampled_from(KNOWN))
        return known
    asking, says = draw(_questions())
    names = draw(st.lists(st.sampled_from(CANDIDATES), max_size=3, unique=True))
    if {"problem", "instruction"} & {name.lower() for name in asking}:  # with these, two more known formats
        names = [name for name in names if name not in ("solution", "output")]
    found = {draw(_capitals(name)): draw(st.sampled_from(VALUES)) for name in sorted(names, key=CANDIDATES.index)}
    said, right = draw(st.one_of(st.just(({}, None)), st.just(({}, None)), _said()))
    extras = {name: EXTRAS[name] for name in draw(st.lists(st.sampled_from(list(EXTRAS)), max_size=3, unique=True))}
    if "category" in extras and "metadata" in extras:  # a set that says so by its category
        del extras["category"]
    named = draw(st.sampled_from([{}, {}, {"id": "a-1"}, {"uuid": "u-1"}, {"input_metadata": {"row_id": "r-1"}}]))
    parts = draw(st.permutations([asking, found, said, extras, named]))
    row = {name: value for part in parts for name, value in part.items()}
    truth, unclear = (right, ()) if said else _among(found)
    is_answer = not said and truth is None and not unclear and says is not None
    return Case(row, ASKED, says if is_answer else truth, unclear, says is not None, is_answer)


def _among(found: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """What is right among candidates, or those that contradict each other."""
    held = {name: value for name, value in found.items() if value not in (None, "")}
    values = [value[0] if name.lower() == "solution" and value == ["4"] else value for name, value in held.items()]
    if any(not _same(values[0], value) for value in values):
        return None, tuple(held)
    return (values[0] if values else None), ()


def answered(case: Case) -> dict[str, Any]:
    """The row with an answer to be judged, beside those of its conversation."""
    return {**case.row, "assistant_response": "It is 5."}


def meaning(sample: Sample) -> tuple[Any, ...]:
    """What a sample means, wherever it stands."""
    turns = [turn.model_dump(exclude_none=True) for turn in sample.messages]
    return sample.id, turns, sample.ground_truth, sample.columns, sample.tools, sample.split
