# SPDX-License-Identifier: Apache-2.0
"""Reasoning steps: does the answer go step by step, and in order?"""

from __future__ import annotations

import bisect
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.parameters import compiled, listed, whole
from reward_kit.rewards._support.prose import outside_code, plain_words
from reward_kit.rewards._support.verdicts import reply_of
from reward_kit.typed_interface import RewardContractError, reward_function

__all__ = ["reasoning_steps_reward", "sequence_reward"]

_LISTED = re.compile(r"^[ \t>]{0,12}(?:(?P<number>\d{1,4}[.)])|[-*•+])(?=\s)", re.MULTILINE)
_PHRASED = re.compile(
    r"step[ \t]{1,4}\d{1,4}[*_]{0,3}[:.)]"
    r"|(?:first(?:ly)?|second(?:ly)?|third(?:ly)?|fourth|fifth|next|then|finally|to begin|to solve this)[,:]"
)
_KINDS = ("explicit_steps", "numbered_lists", "bullet_points", "transition_phrases")
_LOOKED_AT = 160
"""Characters after a mark that are read to see whether a step follows."""
_LEAST_WORDS = 2

_SEQUENCE = ("First", "Second", "Third", "Fourth", "Fifth", "Next", "Then", "Finally", "Conclusion")


@reward_function
def reasoning_steps_reward(
    messages: list[Message],
    pattern: str | None = None,
    min_steps: int = 3,
    max_steps: int | None = None,
    exclusive_patterns: bool = False,
    **kwargs: Any,
) -> EvaluateResult:
    """The number of reasoning steps divided by `min_steps`, 1.0 at most.

    A step is marked by "Step 1:", a numbered item, a bullet point, or a phrase such as "First," or "Finally:". It
    counts if at least two words follow before the next mark, and only once however often it is written. Fenced blocks
    and inline code are not read. `pattern` is a further mark; each match counts, and with `exclusive_patterns` nothing
    else does. With `max_steps` the score is above zero from `min_steps` on, and full at `max_steps`.

    Metrics: `reasoning_steps`; `explicit_steps`, `numbered_lists`, `bullet_points`, `transition_phrases` where found.
    Cost: linear in the answer, about 100 µs per kB, beside what a `pattern` of yours costs.
    Does not detect: whether a step is true, follows from the last, or leads to the answer: any list of different
    remarks is rewarded. Marks are English.

    >>> answer = "1. Add two and two.\\n2. Carry nothing over.\\n3. Write down four."
    >>> reasoning_steps_reward(messages=[{"role": "assistant", "content": answer}]).score
    1.0
    >>> round(reasoning_steps_reward(messages=[{"role": "assistant", "content": "1.\\n2.\\n3. Four it is."}]).score, 2)
    0.33
    """
    reply = reply_of(messages, "reasoning_steps")
    whole("min_steps", min_steps, at_least=1)
    if max_steps is not None:
        whole("max_steps", max_steps, at_least=min_steps)
    prose = outside_code(reply.text)
    found = Counter() if pattern and exclusive_patterns else Counter(_steps(prose))
    steps = found.total() + (_matches(pattern, prose) if pattern else 0)
    reason = f"{steps} steps, where {min_steps} are wanted"
    metrics = {
        "reasoning_steps": MetricResult(
            score=_score(steps, min_steps, max_steps), reason=reason, is_score_valid=steps >= min_steps
        )
    }
    metrics |= {
        kind: MetricResult(
            score=min(1.0, found[kind] / min_steps),
            reason=f"{found[kind]} steps are marked so",
            is_score_valid=found[kind] >= min_steps,
        )
        for kind in _KINDS
        if found[kind]
    }
    return EvaluateResult(score=metrics["reasoning_steps"].score, reason=reason, metrics=metrics)


@reward_function
def sequence_reward(
    messages: list[Message],
    sequence_terms: Sequence[str] | None = None,
    min_matches: int = 3,
    case_sensitive: bool = False,
    **kwargs: Any,
) -> EvaluateResult:
    """The number of terms that the answer uses in their order, divided by `min_matches`, 1.0 at most.

    `sequence_terms` are whole words or phrases in the order they should come: by default First, Second, Third, Fourth,
    Fifth, Next, Then, Finally, Conclusion. The longest chain of them that is in order counts, others may be left out.
    Where there are fewer terms than `min_matches`, all of them are wanted. Fenced blocks and inline code are not read.

    Metrics: `sequence_reasoning`.
    Cost: linear in the answer, about 25 µs per kB for the default terms.
    Does not detect: whether anything is said between the terms.

    >>> answer = [{"role": "assistant", "content": "First we add. Then we carry. Finally we write it down."}]
    >>> sequence_reward(messages=answer).score
    1.0
    >>> round(sequence_reward(messages=answer, sequence_terms=["Finally", "First", "Then"]).score, 2)
    0.67
    """
    reply = reply_of(messages, "sequence_reasoning")
    terms = _terms(sequence_terms)
    whole("min_matches", min_matches, at_least=1)
    chain = _longest_chain(outside_code(reply.text), terms, case_sensitive)
    wanted = min(min_matches, len(terms))
    score = min(1.0, len(chain) / wanted)
    reason = f"{len(chain)} terms in order, where {wanted} are wanted: {', '.join(chain) or 'none'}"
    metric = MetricResult(score=score, reason=reason, is_score_valid=score == 1.0)
    return EvaluateResult(score=score, reason=reason, metrics={"sequence_reasoning": metric})


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Mark(NamedTuple):
    start: int
    end: int
    kind: str


def _steps(text: str) -> Iterator[str]:
    """The kind of each step's mark. A step says something, and something that no step before it said."""
    text = text.lower()
    marks = sorted([*_listed(text), *_phrased(text)])
    counted = set()
    for mark, following in itertools.zip_longest(marks, marks[1:]):
        end = min(following.start if following else len(text), mark.end + _LOOKED_AT)
        words = tuple(plain_words(text[mark.end : end]))
        if len(words) >= _LEAST_WORDS and words not in counted:
            counted.add(words)
            yield mark.kind


def _listed(text: str) -> Iterator[_Mark]:
    for item in _LISTED.finditer(text):
        yield _Mark(item.start(), item.end(), "numbered_lists" if item["number"] else "bullet_points")


def _phrased(text: str) -> Iterator[_Mark]:
    # Where the phrase begins is checked here: a pattern that begins with that check is several times as slow.
    for phrase in _PHRASED.finditer(text):
        if _is_apart(text, phrase.start() - 1):
            kind = "explicit_steps" if phrase[0].startswith("step") else "transition_phrases"
            yield _Mark(phrase.start(), phrase.end(), kind)


def _is_apart(text: str, index: int) -> bool:
    """Whether no word goes on at `index`."""
    return not 0 <= index < len(text) or not (text[index].isalnum() or text[index] == "_")


def _matches(pattern: str, text: str) -> int:
    return sum(1 for _ in compiled("pattern", pattern, re.MULTILINE).finditer(text))


def _score(steps: int, min_steps: int, max_steps: int | None) -> float:
    if max_steps is None:
        return min(1.0, steps / min_steps)
    return max(0.0, min(1.0, (steps - min_steps + 1) / (max_steps - min_steps + 1)))


# ── sequences ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _terms(terms: object) -> list[str]:
    if terms is None:
        return list(_SEQUENCE)
    wanted = listed("sequence_terms", terms, "words or phrases, in their order")
    for term in wanted:
        if not isinstance(term, str) or not term.strip():
            raise RewardContractError(f"Parameter 'sequence_terms' holds {term!r}; give words or phrases.")
    return wanted


def _longest_chain(text: str, terms: list[str], case_sensitive: bool) -> list[str]:
    """The most terms that can be picked so that they come in the text in their order.

    `chains[k]` is where the earliest-ending chain of k terms ends, with its terms: an earlier end is never worse.
    """
    if not case_sensitive:
        text, terms = text.lower(), [term.lower() for term in terms]
    chains: list[tuple[int, list[str]]] = [(0, [])]
    for term in terms:
        places = _places(text, term)
        for length in reversed(range(len(chains))):
            end, chain = chains[length]
            after = bisect.bisect_left(places, end)
            if after == len(places):
                continue
            longer = (places[after] + len(term), [*chain, term])
            if length + 1 == len(chains):
                chains.append(longer)
            elif longer[0] < chains[length + 1][0]:
                chains[length + 1] = longer
    return chains[-1][1]


def _places(text: str, term: str) -> list[int]:
    """Where `term` stands as a whole word or phrase."""
    found = (place.start() for place in re.finditer(re.escape(term), text))
    return [place for place in found if _is_apart(text, place - 1) and _is_apart(text, place + len(term))]
