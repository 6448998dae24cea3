# SPDX-License-Identifier: Apache-2.0
"""Braintrust scorers as rewards and back, with stand-ins of the shapes Braintrust documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from reward_kit.integrations.braintrust import reward_fn_to_scorer, scorer_to_reward_fn
from reward_kit.models import EvaluateResult, Message
from reward_kit.typed_interface import is_async, reward_function

TURNS: Any = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


@dataclass
class Score:
    """As `braintrust.Score`."""

    name: str
    score: float | None
    metadata: dict[str, Any] = field(default_factory=dict)


class Levenshtein:
    """As an autoevals scorer: a class, called with output first and the rest by name."""

    def __call__(self, output: Any, expected: Any = None, **kwargs: Any) -> Score:
        assert kwargs["input"] == "hi"
        return Score("Levenshtein", float(output == expected), {"rationale": "compared"})


def by_name(output: str, expected: str) -> float:
    return float(output == expected)


def by_position(question: str, answer: str, wanted: str) -> bool:
    return question == "hi" and answer == wanted


async def by_name_async(input: str, output: str, expected: str | None = None) -> dict[str, Any]:
    return {"score": float(output == expected), "metadata": {"reason": input}}


@pytest.mark.parametrize("scorer", [by_name, by_position, Levenshtein, Levenshtein()])
def test_a_scorer_is_a_reward(scorer: Any) -> None:
    reward = scorer_to_reward_fn(scorer)
    assert reward(messages=TURNS, ground_truth="hello").score == 1.0
    assert reward(messages=TURNS, ground_truth=[{"role": "assistant", "content": "bye"}]).score == 0.0
    assert reward.__name__ in {"by_name", "by_position", "Levenshtein"}


async def test_an_async_scorer_is_an_async_reward() -> None:
    reward = scorer_to_reward_fn(by_name_async)
    assert is_async(reward)
    result = await reward(messages=TURNS, ground_truth="hello")
    assert (result.score, result.reason, list(result.metrics)) == (1.0, "hi", ["by_name_async"])


def test_scores_keep_their_names_and_reasons() -> None:
    def two(output: str) -> list[Any]:
        return [Score("a", 1.0, {"rationale": "good"}), {"name": "b", "score": 0.5}, Score("skipped", None), None]

    result = scorer_to_reward_fn(two)(messages=TURNS)
    assert result.score == 0.75
    assert {name: metric.score for name, metric in result.metrics.items()} == {"a": 1.0, "b": 0.5}
    assert result.metrics["a"].reason == result.reason == "good"


def test_a_scorer_that_declines_gives_no_verdict() -> None:
    result = scorer_to_reward_fn(lambda output: None)(messages=TURNS)
    assert not result.is_score_valid and result.error


def test_input_and_expected_can_be_made_otherwise() -> None:
    def scorer(input: Any, output: Any, expected: Any) -> bool:
        return (input, expected) == (2, "HELLO")

    reward = scorer_to_reward_fn(scorer, messages_to_input=len, ground_truth_to_expected=str.upper)
    assert reward(messages=TURNS, ground_truth="hello").score == 1.0


# ── and back ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function
def undeclared(messages, ground_truth=None, **kwargs):  # type: ignore[no-untyped-def]  # as most people write it
    return messages[-1].content == (ground_truth[-1].content if ground_truth else "")


@reward_function
def declared(messages: list[Message], ground_truth: str | None = None, **kwargs: Any) -> EvaluateResult:
    return EvaluateResult(score=float(messages[-1].content == ground_truth), is_score_valid=kwargs.get("sure", True))


@reward_function
async def declared_async(messages: list[Message], ground_truth: str = "", **kwargs: Any) -> bool:
    return messages[-1].content == ground_truth and messages[0].content == "foo"


@pytest.mark.parametrize("reward", [undeclared, declared, declared_async])
def test_a_reward_is_a_scorer(reward: Any) -> None:
    scorer = reward_fn_to_scorer(reward)
    assert scorer("foo", "bar", "bar") == 1.0
    assert scorer(input="foo", output="bar", expected="baz", metadata={}, trace=None) == 0.0
    assert scorer([{"role": "user", "content": "foo"}], "bar", "bar") == 1.0
    assert scorer.__name__ == reward.__name__


def test_a_plain_function_is_a_scorer_and_messages_are_a_conversation() -> None:
    def plain(messages: list[Message], ground_truth: str, **kwargs: Any) -> float:
        return float(messages[0].content == "foo" and messages[-1].content == ground_truth)

    scorer = reward_fn_to_scorer(plain)
    assert scorer([Message(role="user", content="foo")], "bar", "bar") == 1.0
    assert scorer("foo", "bar", "baz") == 0.0


def test_no_verdict_is_none_to_braintrust() -> None:
    assert reward_fn_to_scorer(declared)("foo", "bar", "bar", {"sure": False}) is None
