# SPDX-License-Identifier: Apache-2.0
"""Braintrust and autoevals scorers as rewards, and rewards as their scorers. Neither package is imported.

A Braintrust scorer is called by name with some of `input`, `output`, `expected` and `metadata`, and answers with a
number, a score object or dict (`name`, `score`, `metadata`), a list of these, or None where it does not apply.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from reward_kit.errors import RewardError
from reward_kit.integrations.attempts import answered, sample_for
from reward_kit.integrations.scorers import NamedScore, accepted, as_reward, last_text
from reward_kit.models import Message
from reward_kit.reward_call import RewardCall
from reward_kit.typed_interface import declares_messages, is_async, name_of, signature_of

__all__ = ["reward_fn_to_scorer", "scorer_to_reward_fn"]

_NAMES = frozenset({"input", "output", "expected", "metadata", "trace"})


def scorer_to_reward_fn(
    scorer: Callable[..., Any],
    *,
    messages_to_input: Callable[[list[Message]], Any] | None = None,
    ground_truth_to_expected: Callable[[Any], Any] | None = None,
) -> Callable[..., Any]:
    """A reward that asks a Braintrust scorer.

    The scorer's input is the content of the first turn, its output is the content of the last turn, and `expected` is
    the ground truth (of a conversation: the content of its last turn), unless the two functions say otherwise.
    """
    if inspect.isclass(scorer):  # autoevals are given to Braintrust as classes
        made: Callable[..., Any] = cast(Any, scorer)()
        return scorer_to_reward_fn(
            made, messages_to_input=messages_to_input, ground_truth_to_expected=ground_truth_to_expected
        )
    call = scorer if _takes_names(scorer) else _by_position(scorer)
    to_input = messages_to_input or _first_content
    to_expected = ground_truth_to_expected or last_text

    def ask(messages: list[Message], ground_truth: Any, columns: dict[str, Any]) -> dict[str, Any]:
        given = {"output": messages[-1].content, "input": to_input(messages), "metadata": columns}
        given["expected"] = None if ground_truth is None else to_expected(ground_truth)
        return accepted(call, given)

    return as_reward(call, ask, lambda answer: _scores(answer, name_of(scorer)))


def reward_fn_to_scorer(reward_fn: Callable[..., Any]) -> Callable[..., float | None]:
    """A scorer for Braintrust's `Eval(scores=[…])` that asks a reward; None where the reward gives no verdict.

    `expected` becomes the ground truth: an assistant's turn where the reward declares messages or declares nothing,
    else the value itself. `metadata` reaches the reward by name.
    """
    call = RewardCall(reward_fn)
    as_turn = declares_messages(reward_fn, "ground_truth") is not False

    def scorer(
        input: Any, output: Any, expected: Any = None, metadata: Mapping[str, Any] | None = None, **_: Any
    ) -> float | None:
        truth = [Message(role="assistant", content=str(expected))] if as_turn and expected is not None else expected
        asked = sample_for({**(metadata or {}), "ground_truth": None}, _conversation(input))
        rollout = answered(asked.model_copy(update={"ground_truth": truth}), str(output))
        try:
            return call.judge(call.arguments_of([rollout])).score
        except RewardError as error:
            if error.invalid_result is not None:
                return None
            raise

    scorer.__name__ = scorer.__qualname__ = name_of(reward_fn)
    return scorer


def _takes_names(scorer: Callable[..., Any]) -> bool:
    parameters = signature_of(scorer).parameters.values()
    needed = {
        p.name for p in parameters if p.default is p.empty and p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY}
    }
    return needed <= _NAMES and not any(p.kind is p.POSITIONAL_ONLY for p in parameters)


def _by_position(scorer: Callable[..., Any]) -> Callable[..., Any]:
    """A scorer whose parameters have other names takes input, output and expected in this order."""

    def call(input: Any, output: Any, expected: Any) -> Any:
        return scorer(input, output, expected)

    async def call_async(input: Any, output: Any, expected: Any) -> Any:
        return await scorer(input, output, expected)

    chosen: Callable[..., Any] = call_async if is_async(scorer) else call
    chosen.__name__ = name_of(scorer)
    return chosen


def _first_content(messages: Sequence[Message]) -> Any:
    return messages[0].content


def _conversation(given: Any) -> list[Message]:
    """An input that is a list of messages is the conversation; anything else is what the user said."""
    if isinstance(given, list) and given and all(_is_turn(turn) for turn in given):
        return [Message.model_validate(turn) for turn in given]
    return [Message(role="user", content=str(given))]


def _is_turn(value: Any) -> bool:
    return isinstance(value, Message) or (isinstance(value, Mapping) and "role" in value)


def _scores(answer: Any, name: str) -> list[NamedScore]:
    if isinstance(answer, (list, tuple)):
        return [score for each in answer for score in _scores(each, name)]
    if answer is None:
        return [NamedScore(name, None)]
    if isinstance(answer, Mapping):
        return [_named(answer.get("name"), answer.get("score"), answer.get("metadata"), name)]
    if hasattr(answer, "score"):
        return [_named(getattr(answer, "name", None), answer.score, getattr(answer, "metadata", None), name)]
    return [NamedScore(name, float(answer))]


def _named(name: Any, score: Any, metadata: Any, default: str) -> NamedScore:
    reason = metadata.get("rationale") or metadata.get("reason") if isinstance(metadata, Mapping) else None
    return NamedScore(str(name or default), None if score is None else float(score), str(reason or ""))
