# SPDX-License-Identifier: Apache-2.0
"""What a reward took out of an answer, found again in the answer's text: to be shown, never to be judged by.

What the verdict itself says it read is looked for; failing that, what the reward's own extractor finds, where it is
known which one the reward uses. What cannot be placed for sure is not marked: none is better than a wrong one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from reward_kit.storage.judged import JudgedAnswer, as_text
from reward_kit.viewer.wire import Span

__all__ = ["spans_of"]

_LONGEST = 200_000
"""Longer answers are not searched."""
_SAID = re.compile(r"\b[Tt]he answer (?:is )?(?P<quoted>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
"""How rewards of the library name the answer that they read."""
_CUT = "…"
_FINAL_ANSWER = (
    "reward_kit.rewards.math:", "reward_kit.rewards.accuracy:", "reward_kit.rewards.multiple_choice:",
    "reward_kit.rewards.multiple_choice_math_reward:", "reward_kit.rewards.list_comparison_math_reward:",
)  # fmt: skip
_CODE = (
    "reward_kit.rewards.code_execution:", "reward_kit.rewards.cpp_code:", "reward_kit.rewards.deepcoder_reward:",
    "reward_kit.rewards.apps_coding_reward:",
)  # fmt: skip
"""Which rewards read an answer by which extractor."""


def spans_of(entry: JudgedAnswer, reward: str | None, params: Mapping[str, Any]) -> list[Span]:
    """What was taken from the answer's text; `reward` is the import path of the reward that judged it, if known."""
    text = entry.response
    if not text or len(text) > _LONGEST:
        return []
    place = _said_in(entry, text)
    what = "answer"
    if place is None and reward is not None and not _says_something(entry):
        if reward.startswith(_FINAL_ANSWER):
            place = _stated(text)
        elif reward.startswith(_CODE):
            place, what = _code(text, params), "code"
    return [] if place is None else [Span(start=_units(text, place[0]), end=_units(text, place[1]), what=what)]


def _reasons(entry: JudgedAnswer) -> Iterator[str]:
    yield entry.reason
    for metric in entry.metrics.values():
        if isinstance(metric, Mapping):
            yield as_text(metric.get("reason"))


def _says_something(entry: JudgedAnswer) -> bool:
    return any(_SAID.search(reason) for reason in _reasons(entry))


def _said_in(entry: JudgedAnswer, text: str) -> tuple[int, int] | None:
    """Where the answer stands that the verdict names."""
    for reason in _reasons(entry):
        match = _SAID.search(reason)
        if match is None:
            continue
        try:
            said = ast.literal_eval(match["quoted"])
        except (ValueError, SyntaxError):
            continue
        if isinstance(said, str) and said and _CUT not in said and (found := _placed(text, said)) is not None:
            return found
    return None


def _placed(text: str, said: str) -> tuple[int, int] | None:
    """The place of these words: where the text states its answer, or the only place where they stand."""
    stated = _stated(text)
    if stated is not None and text[slice(*stated)] == said:
        return stated
    first = text.find(said)
    if first < 0 or text.find(said, first + 1) >= 0:
        return None
    return first, first + len(said)


def _stated(text: str) -> tuple[int, int] | None:
    """Where the text states its answer."""
    from reward_kit.answers.final_answer import stated_answer  # here: a table is shown before any answer is read

    found = stated_answer(text)
    if found is None or not found.text:
        return None
    start = text.find(found.whole, max(0, found.start)) if text[found.start : found.end] != found.whole else found.start
    if start < 0:
        return None
    inside = found.whole.rfind(found.text)
    if inside < 0:
        return None
    return start + inside, start + inside + len(found.text)


def _code(text: str, params: Mapping[str, Any]) -> tuple[int, int] | None:
    from reward_kit.answers.code import find_code

    language = params.get("language")
    code = find_code(text, language if isinstance(language, str) else "python")
    if not code:
        return None
    first = text.find(code)
    return None if first < 0 or text.find(code, first + 1) >= 0 else (first, first + len(code))


def _units(text: str, place: int) -> int:
    """A place counted as the browser counts it."""
    return len(text[:place].encode("utf-16-le", "surrogatepass")) // 2
