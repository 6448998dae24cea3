# SPDX-License-Identifier: Apache-2.0
"""Asking a judge, as often as it takes: several votes, both orders of a pair, another try for an unreadable reply.

A reply is read strictly: its last line is the verdict and no other line is one, or there is none. Bold type, quotes
and a full stop around the verdict are decoration.
"""

from __future__ import annotations

import contextlib
import re
import statistics
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from reward_kit.answers.reasoning import without_reasoning
from reward_kit.config_models import JudgeConfig
from reward_kit.errors import ConfigError, RewardError
from reward_kit.generation.client import ModelClient
from reward_kit.generation.judge import Judge, open_judge
from reward_kit.models import Failure, Message
from reward_kit.resources import Model
from reward_kit.rewards._judging.prompts import classifying, comparing, grading

__all__ = [
    "Asker",
    "Choice",
    "Comparison",
    "Grade",
    "as_asker",
    "classify_answer",
    "compare_answers",
    "grade_answer",
    "read_choice",
    "read_grade",
    "read_label",
]


T = TypeVar("T")

_SECOND_TRIES = 2
"""Further replies asked for in place of those that hold no verdict."""


_KEPT_OF_A_REPLY = 2000
"""Characters of an unreadable reply that a record keeps."""


class Asker(Protocol):
    """Anything that replies to a prompt, once a draw."""

    async def ask(self, prompt: str | Sequence[Message], draws: Sequence[int] = (0,)) -> list[str | Failure]:
        """A reply, or the failure in its place, for each of `draws`."""
        ...


class Grade(NamedTuple):
    """What a judge thinks of an answer."""

    score: float
    """Between 0.0 and 1.0: the median of the votes on the scale."""
    votes: tuple[int, ...]
    reply: str
    """A reply whose grade is nearest to the median, for its reasons."""


class Comparison(NamedTuple):
    """What a judge thinks of two answers."""

    score: float
    """1.0 where the first is better, 0.0 where the second is, 0.5 where neither."""
    votes: tuple[float, ...]


@contextlib.asynccontextmanager
async def as_asker(judge: Any) -> AsyncIterator[Asker]:
    """A judge from whatever stands for one: the run's, a model client, a `Model`, a model's name or its settings."""
    if isinstance(judge, (str, Mapping, JudgeConfig)):
        settings = {"model_name": judge} if isinstance(judge, str) else judge
        async with open_judge(JudgeConfig.model_validate(settings)) as opened:
            yield opened
    elif isinstance(judge, Model):
        yield _ModelAsker(judge)
    elif isinstance(judge, Judge):
        yield judge
    elif isinstance(judge, ModelClient):
        yield Judge(judge)
    elif hasattr(judge, "ask"):
        yield judge
    else:
        raise ConfigError(
            f"{judge!r} is not a judge. Set `judge.model_name` in the config, or give a model's name, a client or a "
            "Judge."
        )


class _ModelAsker:
    """A `Model` of `reward_kit.resources` as a judge."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def ask(self, prompt: str | Sequence[Message], draws: Sequence[int] = (0,)) -> list[str | Failure]:
        return [(await self._model.ask_async(prompt, draw=draw)).message.text for draw in draws]


async def grade_answer(
    judge: Asker, question: str, answer: str, *, rubric: str | None, reference: str | None,
    scale: tuple[int, int], votes: int,
) -> Grade:  # fmt: skip
    """The median of `votes` grades; a `RewardError` where fewer than half of them can be had."""
    prompt = grading(question, answer, rubric=rubric, reference=reference, scale=scale)
    read = await _votes(judge, prompt, votes, lambda reply: read_grade(reply, scale))
    low, high = scale
    middle = statistics.median(grade for grade, _ in read)
    reply = min(read, key=lambda vote: abs(vote[0] - middle))[1]
    return Grade((middle - low) / (high - low), tuple(grade for grade, _ in read), reply)


async def compare_answers(
    judge: Asker, question: str, first: str, second: str, *, rubric: str | None, votes: int
) -> Comparison:
    """Which answer is better, by majority of `votes`, each given in both orders; orders that disagree are a tie."""
    forth = await _votes(judge, comparing(question, first, second, rubric=rubric), votes, read_choice)
    back = await _votes(judge, comparing(question, second, first, rubric=rubric), votes, read_choice)
    outcomes = tuple(_outcome(one, other) for (one, _), (other, _) in zip(forth, back, strict=False))
    (most, count), *rest = Counter(outcomes).most_common()
    return Comparison(0.5 if rest and rest[0][1] == count else most, outcomes)


async def classify_answer(
    judge: Asker, question: str, answer: str, *, criteria: str, reference: str, labels: Sequence[str], votes: int
) -> tuple[str, str]:  # fmt: skip
    """The label that most of `votes` give, and a reply that gives it.

    `labels` begin with the best one. Among labels with equally many votes the worst counts: a tie is no reason to
    believe in an answer.
    """
    prompt = classifying(question, answer, criteria=criteria, reference=reference, labels=labels)
    read = await _votes(judge, prompt, votes, lambda reply: read_label(reply, labels))
    counts = Counter(label for label, _ in read)
    most = max(reversed(labels), key=lambda label: counts[label])
    return most, next(reply for label, reply in read if label == most)


def _outcome(forth: str, back: str) -> float:
    if (forth, back) == ("A", "B"):
        return 1.0
    return 0.0 if (forth, back) == ("B", "A") else 0.5


async def _votes(judge: Asker, prompt: str, votes: int, read: Callable[[str], T | None]) -> list[tuple[T, str]]:
    """At most `votes` verdicts with the replies they stand in, and more than half as many; else a `RewardError`."""
    if votes < 1:
        raise ConfigError(f"votes is {votes!r}; a judge must be asked at least once. Set it to 1 or more.")
    found: list[tuple[T, str]] = []
    unread: list[str] = []
    failures: list[Failure] = []
    drawn = 0
    while drawn < votes + _SECOND_TRIES and len(found) < votes:
        draws = range(drawn, max(votes, min(drawn + votes - len(found), votes + _SECOND_TRIES)))
        drawn = draws.stop
        for reply in await judge.ask(prompt, draws):
            if isinstance(reply, Failure):
                failures.append(reply)
            elif (verdict := read(reply)) is not None:
                found.append((verdict, reply))
            else:
                unread.append(reply)
        if failures:
            break  # the client has tried again already
    if 2 * len(found) <= votes:
        error = _no_verdict(failures, drawn)
        error.unread_replies = tuple(map(_shortened, unread))
        raise error
    return found[:votes]


def _no_verdict(failures: Sequence[Failure], replies: int) -> RewardError:
    if failures:
        return RewardError(f"The judge could not be asked: {failures[0].message}", retryable=failures[0].retryable)
    return RewardError(
        f"The judge gave no readable verdict in {replies} replies; "
        "they are in the record, under failure.unread_replies. "
        "Use a model that follows the form it is asked for."
    )


def _shortened(reply: str) -> str:
    """The beginning and the end of a reply, where the verdict should be."""
    left_out = len(reply) - _KEPT_OF_A_REPLY
    if left_out <= 0:
        return reply
    half = _KEPT_OF_A_REPLY // 2
    return f"{reply[:half]} … ({left_out:,} characters) … {reply[-half:]}"


# ── what a reply says ────────────────────────────────────────────────────────────────────────────────────────────────


Choice = Literal["A", "B", "TIE"]
"""Which of two answers is better."""

_MARKS = r"""[ \t>#*_`~"'-]*"""
"""What stands around a verdict and says nothing."""
_VERDICT = re.compile(rf"^{_MARKS}(?P<word>VERDICT){_MARKS}:(?P<verdict>[^\n]*)$", re.MULTILINE | re.IGNORECASE)
_GRADE = re.compile(r"(?P<grade>-?[0-9]{1,6})(?:\.0{1,6})?(?:[ \t]*(?:/|out of)[ \t]*(?P<highest>[0-9]{1,6}))?")
_LONGEST = 100_000
"""Characters of a reply; no judge's reasons are that long."""


def read_grade(reply: str, scale: tuple[int, int]) -> int | None:
    """The grade, a whole number on the scale; None where the reply gives none, or several.

    >>> read_grade("Right.\\nVERDICT: 7", (0, 10)), read_grade("**VERDICT:** 7/10.", (0, 10)), read_grade("7", (0, 10))
    (7, 7, None)
    """
    verdict = _verdict(reply)
    found = _GRADE.fullmatch(verdict) if verdict is not None else None
    low, high = scale
    if found is None or int(found["highest"] or high) != high:
        return None
    return int(found["grade"]) if low <= int(found["grade"]) <= high else None


def read_choice(reply: str) -> Choice | None:
    """The choice between A and B; None where the reply makes none, or several.

    >>> read_choice("Both are fine.\\nVERDICT: TIE"), read_choice("VERDICT: A\\nVERDICT: B")
    ('TIE', None)
    """
    match _verdict(reply):
        case "A" | "B" | "TIE" as choice:
            return choice
    return None


def read_label(reply: str, labels: Sequence[str]) -> str | None:
    """The label, as it is written or in another case; None where the reply gives none, or several.

    >>> read_label("It says so.\\nVERDICT: correct", ["CORRECT", "INCORRECT"]), read_label("CORRECT", ["CORRECT"])
    ('CORRECT', None)
    """
    verdict = _verdict(reply)
    return next((label for label in labels if verdict is not None and verdict.upper() == label.upper()), None)


def _verdict(reply: str) -> str | None:
    """What the only line with a verdict says, without marks; lines in capitals, as asked for, come before others."""
    text = without_reasoning(reply[-_LONGEST:])
    lines = list(_VERDICT.finditer(text))
    lines = [line for line in lines if line["word"].isupper()] or lines
    if len(lines) != 1 or re.search(r"\w", text[lines[0].end() :]):
        return None
    return lines[0]["verdict"].strip(" \t\r.>#*_`~\"'")
