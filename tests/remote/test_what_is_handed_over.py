# SPDX-License-Identifier: Apache-2.0
"""A reward behind a server is handed what it would be handed here: the truth's type, the facts, the columns."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from reward_kit.integrations.trl import create_trl_adapter
from reward_kit.integrations.verl import compute_score_for
from reward_kit.models import EvaluateResult, Message, Rollout, Sample, Step
from reward_kit.reward_call import RewardCall
from reward_kit.typed_interface import reward_function
from tests.remote.live_server import live_server


def told(**handed: Any) -> EvaluateResult:
    return EvaluateResult(score=1.0, reason=repr(sorted(handed.items())))


async def as_text(messages: list[Message], ground_truth: str | None = None) -> EvaluateResult:
    return told(truth=ground_truth)


async def as_number(messages: list[Message], ground_truth: float | str | None = None) -> EvaluateResult:
    return told(truth=ground_truth)


async def by_facts(  # noqa: PLR0913, PLR0917 - one parameter per fact
    response: str, model: Any, finish_reason: Any, steps: Any, facts: Any, truncated: Any, sample_id: Any, split: Any,
    tools: Any, columns: dict[str, Any],
) -> EvaluateResult:  # fmt: skip
    return told(
        response=response, model=model, finish_reason=finish_reason, steps=steps, facts=facts, truncated=truncated,
        sample_id=sample_id, split=split, tools=tools, columns=sorted(columns.items()),
    )  # fmt: skip


@reward_function
async def whole(messages: list[Message], rollout: Rollout, **kwargs: Any) -> EvaluateResult:
    known = rollout.model_copy(update={"sample": None, "turns": []})
    return told(
        text=rollout.text, known=known.model_dump(), columns=sorted(rollout.sample.columns.items()), more=kwargs
    )


async def compared(
    rollouts_messages: list[list[Message]], responses: list[str], steps: list[Any], model: list[Any]
) -> list[EvaluateResult]:
    return [told(responses=responses, steps=steps, model=model) for _ in rollouts_messages]


REWARDS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (as_text, as_number, by_facts, whole, compared)
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with live_server(dict.fromkeys(REWARDS, "here:reward"), functions=REWARDS) as found:
        yield found


def rollout(truth: Any, text: str | None = None, **more: Any) -> Rollout:
    sample = Sample(
        id="s1", messages=[Message(role="user", content="2+2?")], ground_truth=truth, ground_truth_text=text,
        split="test", columns={"level": 2, "response": "a column", "answer": "4", "solution": "5"},
        tools=[{"type": "function", "function": {"name": "add"}}],
    )  # fmt: skip
    facts: dict[str, Any] = {
        "model": "m", "finish_reason": "stop", "truncated": False, "facts": {"a": [1]},
        "steps": [Step(turn=0, reward=0.5)], **more,
    }  # fmt: skip
    return Rollout(sample=sample, response_index=0, turns=[Message(role="assistant", content="4")], **facts)


@pytest.mark.parametrize("name", ["as_text", "as_number", "by_facts", "whole"])
@pytest.mark.parametrize(
    ("truth", "text"),
    [("4", None), (4, None), (4.5, "4.50"), (True, "true"), (4.0, "4"), (2**70, None), (None, None), ([4, "a"], None)],
)
async def test_one_answer(address: str, name: str, truth: Any, text: str | None) -> None:
    here = RewardCall(REWARDS[name])
    there = RewardCall(f"{address}/rewards/{name}/evaluate")
    asked = [rollout(truth, text)]
    local = await here.judge_async(here.arguments_of(asked))
    assert await there.judge_async(there.arguments_of(asked)) == local


async def test_a_group(address: str) -> None:
    here, there = RewardCall(compared), RewardCall(f"{address}/rewards/compared/evaluate")
    asked = [rollout("4", model="m1"), rollout("4", model="m2", steps=None)]
    local = await here.judge_group_async(here.arguments_of(asked))
    assert await there.judge_group_async(there.arguments_of(asked)) == local


def test_what_is_no_plain_data_is_not_sent(address: str) -> None:
    adapter = create_trl_adapter(f"{address}/rewards/whole/evaluate", on_error="raise")
    pictures = [object(), object()]
    assert adapter(["q", "q"], ["a", "b"], picture=pictures, router=object(), level=[1, 2]) == [1.0, 1.0]
    adapter.close()


NESTED: list[Any] = [[object()], {"a": object()}, {"a": [{"b": object()}]}, np.array([object()]), {1: "a"}, (object(),)]


@pytest.mark.parametrize("value", NESTED)
def test_nor_is_what_is_no_plain_data_somewhere_inside(address: str, value: Any) -> None:
    adapter = create_trl_adapter(f"{address}/rewards/whole/evaluate", on_error="raise")
    assert adapter(["q", "q"], ["a", "b"], picture=[None, value], router={"r": value}, level=[1, 2]) == [1.0, 1.0]
    adapter.close()
    score = compute_score_for(f"{address}/rewards/whole/evaluate", failed_score=-1.0)
    assert asyncio.run(score("d", "4", "4", {"level": value}, router=value))["score"] == 1.0


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (np.int64(3), 3), (np.float32(0.5), 0.5), (np.bool_(True), True), (np.str_("a"), "a"),
        (np.array(["a", "b"], dtype=object), ["a", "b"]), ({"k": [np.array([1, 2])]}, {"k": [[1, 2]]}),
        ((1, "a"), [1, "a"]), (datetime.date(2026, 1, 2), "2026-01-02"),
    ],
)  # fmt: skip
def test_what_a_trainer_reads_from_a_table_is_sent(address: str, value: Any, sent: Any) -> None:
    asked: list[Any] = []

    async def noted(level: Any = None) -> float:
        asked.append(level)
        return 1.0

    with live_server({"noted": "here:noted"}, functions={"noted": noted}) as place:
        score = compute_score_for(place, failed_score=-1.0)
        assert asyncio.run(score("d", "4", "4", {"level": value}))["score"] == 1.0
    assert asked == [sent]
