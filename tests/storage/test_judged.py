# SPDX-License-Identifier: Apache-2.0
"""A judged answer says the same, whatever its file calls things, and whatever else stands beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.models import answer_begins
from reward_kit.storage.candidates import read_queries
from reward_kit.storage.judged import JudgedAnswer, read_answers
from reward_kit.storage.vocabularies import FIGURES, SHELL, TEXTS

GOLDEN = Path(__file__).parents[1] / "golden"
OTHER_NAMES = sorted(
    {name for names in (*FIGURES.values(), *TEXTS.values()) for name in names}
    | {"messages", "tools", "tool_calls", "reasoning", "steps", "branch", "split"}
)


def told(answer: JudgedAnswer) -> dict[str, Any]:
    """Everything that is asked of an answer."""
    texts = {name: answer.text(name) for name in ("query", "response", "reasoning", "ground_truth", "reason")}
    return texts | {
        "key": answer.key, "prompt": answer.prompt, "turns": answer.turns, "tools": answer.tools,
        "calls": answer.tool_calls, "rollout": answer.rollout().model_dump(exclude={"sample": {"columns"}}),
    }  # fmt: skip


def lines(run: str) -> list[bytes]:
    return (GOLDEN / run / "results.jsonl").read_bytes().splitlines()


@pytest.mark.parametrize("name", [name for name in OTHER_NAMES if name not in SHELL.columns()])
def test_a_column_of_the_dataset_is_never_taken_for_one_of_ours(name: str) -> None:
    for line in lines("shell"):
        plain = JudgedAnswer.of_line(line)
        beside = JudgedAnswer({**plain.row, name: [{"role": "user", "content": "of the dataset"}]})
        assert told(beside) == told(plain)
        assert beside.columns == {**plain.columns, name: beside.row[name]}


@pytest.mark.parametrize("text", ['[{"role": "user", "content": "no"}]', '{"content": "no"}', "[1, 2]", "[{"])
@pytest.mark.parametrize("names", [("user_query", "assistant_response"), ("query", "response"), ("question", "answer")])
def test_texts_that_look_like_json_are_texts(text: str, names: tuple[str, str]) -> None:
    answer = JudgedAnswer({"id": "q", "response_index": 0, **dict.fromkeys(names, text)})
    assert (answer.query, answer.response) == (text, text)
    if "user_query" not in names:
        assert answer.prompt == [{"role": "user", "content": text}]
        assert answer.turns == [{"role": "assistant", "content": text}]


def test_what_was_asked_ends_behind_the_last_user_and_who_speaks_for_the_system_there() -> None:
    ends = {"ua": 1, "sua": 2, "usa": 2, "uaua": 3, "sa": 1, "a": 0, "uta": 1, "uatuat": 4, "uasa": 1, "": 0, "us": 2}
    roles = {"u": "user", "a": "assistant", "s": "system", "t": "tool"}
    assert {turns: answer_begins([roles[turn] for turn in turns]) for turns in ends} == ends


@pytest.mark.parametrize("run", ["run", "shell"])
def test_the_answers_of_a_run_are_those_of_its_lines_in_order(run: str) -> None:
    found = [told(answer) for answer in read_answers(GOLDEN / run)]
    assert found == [told(JudgedAnswer.of_line(line)) for line in lines(run)]
    keys = [(query.id, one.candidate_idx) for query in read_queries(GOLDEN / run) for one in query.candidates]
    assert keys == [answer["key"] for answer in found]
    assert keys == [(row["id"], row["response_index"]) for row in map(orjson.loads, lines(run))]
