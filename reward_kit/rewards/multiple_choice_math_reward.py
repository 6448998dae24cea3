# SPDX-License-Identifier: Apache-2.0
"""Judge the answer to a multiple-choice question by its letter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from reward_kit.answers.final_answer import last_match, reconsidered_at, spoken_end, stated_answer
from reward_kit.answers.statements import is_denied
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards._support.prose import ALONE_AFTER, ALONE_BEFORE
from reward_kit.rewards._support.verdicts import check, no_verdict, reply_of, wrong
from reward_kit.rewards.math import right_answer
from reward_kit.typed_interface import reward_function

__all__ = ["extract_mcq_option", "multiple_choice_math_reward"]

_TEXT: Final = re.compile(r"\\(?:text|textbf|mathbf|mathrm|mbox|boxed)\s{0,2}(?=\{)")
_OPTION: Final = re.compile(
    r"\(\s{0,2}(?P<round>[A-Ja-j])\s{0,2}\)"
    r"|\[\s{0,2}(?P<square>[A-Ja-j])\s{0,2}\]"
    r"|\{\s{0,2}(?P<curly>[A-Ja-j])\s{0,2}\}"
    rf"|{ALONE_BEFORE}(?P<pointed>[A-J])[.:)](?!\w)"
    rf"|{ALONE_BEFORE}(?P<alone>[A-J]){ALONE_AFTER}"
)
_ARTICLE: Final = re.compile(r"\s+(?!(?:or|and|is|was|because|since)\b)[a-z]")
_SAYS: Final = re.compile(
    r"\b(?:answer|choice|option)\b[\s*_:]{0,4}(?:is|was|would be|must be|:)?[\s*_:$]{0,6}(?:option|choice)?[\s*_$]{0,4}"
    r"(?=[({\[]?\s{0,2}(?:\\\w+\s?\{)?[({\[]?(?:[A-J](?![A-Za-z])|[a-j](?:[.:)\]}*_$]|\s*$|\s*\n|,?\s(?:because|since|as|or|and)\b)))",
    re.IGNORECASE,
)
_ALONE: Final = re.compile(r"[\s*_$({\[\"'`]{0,6}([a-j])(?:[\s*_$)}\].:\"'`!]{0,6}|[):.]\s.{0,200})", re.DOTALL)
"""A lower-case letter that is all of an answer, or what it begins with: `b`, `b)`, `b) 12 cm`."""
_LOWER: Final = re.compile(r"(?<![\w'’-])([a-j])(?![\w'’-])")
_OR: Final = re.compile(r"[\s,*_$)}\]]{0,6}(?:or|and|/)[\s*_$({\[]{0,6}")


def extract_mcq_option(text: str) -> list[tuple[str, str]]:
    r"""The choices that `text` names, each once and in order, as (text, letter).

    Letters A to J: in brackets of any kind, followed by a point, colon or bracket, or as a word of their own. The words
    "A" and "I" of a sentence are not choices.

    >>> extract_mcq_option("It is (b), or maybe C."), extract_mcq_option("A dog barks.")
    ([('(b)', 'B'), ('C.', 'C')], [])
    >>> extract_mcq_option(r"\boxed{\text{D}}")
    [('{D}', 'D')]
    """
    found: dict[str, str] = {}
    for letter, match in _letters_in(_TEXT.sub("", spoken_end(text))):
        found.setdefault(letter, match.group())
    return [(written, letter) for letter, written in found.items()]


@reward_function
def multiple_choice_math_reward(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> EvaluateResult:
    r"""1.0 if the last message chooses the letter of the ground truth, 0.0 if not.

    The choice is what the reply marks (`<answer>`, `\boxed`, `####`, "the answer is (B)"), else the only letter that it
    names and does not rule out; lower-case letters count there too (`b`, `b)`). A reply that names several letters
    makes no choice. Without a letter in the ground truth there is no verdict.

    Metrics: `extracted_original_mcq`, `extracted_generated_mcq`, `mcq_comparison`; `ambiguous_original_mcq`,
    `ambiguous_generated_mcq`.
    Cost: one pass over the reply, about 20 µs for a short one.
    Does not detect: a choice by its text instead of its letter; more than ten choices (A to J).

    >>> reply = [{"role": "assistant", "content": "A is too small and (C) too large, so the answer is (B)."}]
    >>> multiple_choice_math_reward(reply, ground_truth="B").score
    1.0
    >>> multiple_choice_math_reward([{"role": "assistant", "content": "A or B"}], ground_truth="B").score
    0.0
    """
    reply = reply_of(messages, "mcq_comparison")
    right = extract_mcq_option(right_answer(ground_truth) or "")
    given = _chosen(reply.text)
    found = {
        "extracted_original_mcq": check(bool(right), _listed(right)),
        "extracted_generated_mcq": check(bool(given), _listed(given)),
    }
    if len(right) != 1:
        if right:
            found["ambiguous_original_mcq"] = check(False, f"The ground truth names {_listed(right)}.")
        return no_verdict("The ground truth names no single choice. Give a letter, such as 'B'.", found)
    if len(given) > 1:
        reason = f"The text names several choices: {_listed(given)}."
        found["ambiguous_generated_mcq"] = check(False, reason)
        return wrong(reason, {**found, "mcq_comparison": check(False, reason)})
    matched = bool(given) and given[0][1] == right[0][1]
    reason = f"Expected {right[0][1]}, the choice is {given[0][1] if given else 'missing'}."
    metrics = {**found, "mcq_comparison": check(matched, reason)}
    return EvaluateResult(score=1.0, reason=reason, metrics=metrics) if matched else wrong(reason, metrics)


def _chosen(text: str) -> list[tuple[str, str]]:
    """The choices of the part of a text that answers: its mark, what it says the answer is, or all of it."""
    spoken = spoken_end(text)
    stated = stated_answer(text)
    if stated is not None and stated.source in ("tag", "boxed", "hashes"):
        return _undenied(stated.text)
    says = last_match(_SAYS, spoken)
    after = reconsidered_at(spoken[says.end() :] if says is not None else spoken)
    if after is not None:
        instead = _undenied(spoken[(says.end() if says is not None else 0) + after :])
        if instead:
            return instead
    if says is None:
        return _undenied(spoken)
    said = _said_from(spoken, says.end())
    at = spoken.find(said[0][0], says.end()) if said else -1
    denied = at >= 0 and is_denied(spoken, at, at + len(said[0][0].rstrip(".:")))
    return _undenied(spoken) if denied else said


def _letters_in(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Every place in which a text names a choice, in order."""
    for match in _OPTION.finditer(text):
        letter = next(group for group in match.groups() if group is not None).upper()
        if not (match["alone"] and letter in "AI" and _ARTICLE.match(text, match.end())):
            yield letter, match


def _said_from(text: str, start: int) -> list[tuple[str, str]]:
    """The choice that stands at `start`, with another that is offered beside it."""
    first = _OPTION.search(text, start)
    lower = _LOWER.search(text, start)
    if lower is not None and (first is None or lower.start() < first.start()):
        first = lower
    if first is None:
        return _undenied(text)
    another = _OR.match(text, first.end())
    second = (_OPTION.match(text, another.end()) or _LOWER.match(text, another.end())) if another else None
    letters = [(one.group(), next(filter(None, one.groups())).upper()) for one in (first, second) if one is not None]
    return list({letter: (written, letter) for written, letter in letters}.values())


def _undenied(text: str) -> list[tuple[str, str]]:
    """The choices that a text names and does not rule out."""
    bare = _TEXT.sub("", text)
    if (alone := _ALONE.fullmatch(bare)) is not None:  # one lower-case letter
        return [(alone[1], alone[1].upper())]
    found: dict[str, str] = {}
    for letter, match in _letters_in(bare):
        if letter not in found and not is_denied(bare, match.start(), match.start() + len(match[0].rstrip(".:"))):
            found[letter] = match[0]
    return [(written, letter) for letter, written in found.items()]


def _listed(options: list[tuple[str, str]]) -> str:
    return ", ".join(f"{letter} ({written!r})" for written, letter in options) or "no choice"
