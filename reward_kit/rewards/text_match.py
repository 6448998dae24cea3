# SPDX-License-Identifier: Apache-2.0
"""Answers that are texts: equal to the right one, holding it, matching a pattern, or sharing its words.

* `exact_match_reward`: the answer is the right text;
* `contains_reward`: the right text stands in the answer;
* `regex_reward`: the answer matches a pattern;
* `token_f1_reward`: how many words the two share, as SQuAD counts them.
"""

from __future__ import annotations

import functools
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from reward_kit.answers.final_answer import stated_answer
from reward_kit.answers.reasoning import without_reasoning
from reward_kit.errors import needs_extra
from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.parameters import one_of
from reward_kit.rewards._support.references import reference_texts
from reward_kit.rewards._support.verdicts import check, no_verdict, no_verdict_if_unreadable, quoted, reply_of
from reward_kit.typed_interface import RewardContractError, reward_function

__all__ = ["contains_reward", "exact_match_reward", "regex_reward", "squad_words", "token_f1_reward"]

_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_SPACES: Final = re.compile(r"\s+")
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Letters of scripts that put no spaces between words."""
_LONGEST_PATTERN: Final = 10_000


# ── equal ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function
def exact_match_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    extract: bool = False,
    **kwargs: Any,
) -> EvaluateResult:
    r"""1.0 if the last message is the ground truth, 0.0 if not.

    The ground truth is a text, or a list of texts of which any is right. Spaces at the ends, the amount of space
    between words and Unicode's ways of writing the same letter do not count; letter case and punctuation (ASCII's) do
    unless they are ignored. With `extract` the answer is what the message marks as such (`<answer>`, `\boxed`, `####`,
    "the answer is …"), else its last line. The model's reasoning is not part of the answer. If the ground truth is not
    text, there is no verdict.

    Metrics: `exact_match`; `error`.
    Cost: linear in the answer, a few microseconds.
    Does not detect: the same thing said in other words (`token_f1_reward`, `math_reward` and `judge_reward` do).

    >>> reply = [{"role": "assistant", "content": "Paris "}]
    >>> exact_match_reward(reply, ground_truth="Paris").score, exact_match_reward(reply, ground_truth="paris").score
    (1.0, 0.0)
    >>> exact_match_reward(reply, ground_truth=["paris", "Paname"], ignore_case=True).score
    1.0
    """
    reply = reply_of(messages)
    with no_verdict_if_unreadable():
        right = reference_texts(ground_truth)
    given = _answer(reply.text, extract)
    plain = functools.partial(_plain, ignore_case=ignore_case, ignore_punctuation=ignore_punctuation)
    matched = bool(given.strip()) and plain(given) in set(map(plain, right))
    reason = f"Expected {quoted(' or '.join(right))}, the answer is {quoted(given)}."
    return _passed(matched, "exact_match", reason)


def _answer(text: str, extract: bool) -> str:
    if extract:
        stated = stated_answer(text)
        return stated.text if stated is not None else ""
    return without_reasoning(text).strip()


def _plain(text: str, *, ignore_case: bool, ignore_punctuation: bool = False) -> str:
    text = unicodedata.normalize("NFC", text)
    if ignore_punctuation:
        text = text.translate(_NO_PUNCTUATION)
    text = _SPACES.sub(" ", text).strip()
    return text.casefold() if ignore_case else text


def _passed(matched: bool, metric: str, reason: str) -> EvaluateResult:
    return EvaluateResult(score=float(matched), reason=reason, metrics={metric: check(matched, reason)})


# ── contained ────────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function
def contains_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    require: Literal["all", "any"] = "all",
    ignore_case: bool = True,
    whole_words: bool = True,
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 if the ground truth stands in the last message, 0.0 if not.

    The ground truth is a text, or a list of texts: all of them must be there, or with `require="any"` one. With
    `whole_words` a text counts only where no letter or digit continues it: "art" is not in "party", nor "5" in "15",
    "1,500" or "5.2". Amounts of space, and letter case with `ignore_case`, do not count. The model's reasoning is not
    part of the answer. If the ground truth is not text, there is no verdict.

    Metrics: `contains`, the share of the texts that are there; `error`.
    Cost: linear in the answer for each text, a few microseconds a kB.
    Does not detect: "it is not Paris"; an answer that names every candidate: where an answer should be one, use
    `exact_match_reward`.

    >>> reply = [{"role": "assistant", "content": "The capital of France is Paris."}]
    >>> contains_reward(reply, ground_truth="paris").score, contains_reward(reply, ground_truth="Par").score
    (1.0, 0.0)
    >>> contains_reward(reply, ground_truth=["Paris", "Lyon"]).metrics["contains"].score
    0.5
    """
    reply = reply_of(messages)
    one_of("require", require, ("all", "any"))
    with no_verdict_if_unreadable():
        wanted = reference_texts(ground_truth)
    text = _plain(without_reasoning(reply.text), ignore_case=ignore_case)
    found = [one for one in wanted if _stands_in(_plain(one, ignore_case=ignore_case), text, whole_words)]
    matched = len(found) == len(wanted) if require == "all" else bool(found)
    reason = f"{len(found)} of {len(wanted)} texts stand in the answer."
    if missing := [one for one in wanted if one not in found]:
        reason += f" Missing: {quoted(missing[0])}."
    metric = MetricResult(score=len(found) / len(wanted), reason=reason, is_score_valid=matched)
    return EvaluateResult(score=float(matched), reason=reason, metrics={"contains": metric})


def _stands_in(part: str, text: str, whole_words: bool) -> bool:
    start = text.find(part)
    while start >= 0:
        end = start + len(part)
        if not whole_words or not (_continues(text[max(0, start - 2) : start][::-1], part[0]) or _continues(
            text[end : end + 2], part[-1]
        )):  # fmt: skip
            return True
        start = text.find(part, start + 1)
    return False


def _continues(beside: str, edge: str) -> bool:
    """Whether what stands beside a text's edge, nearest first, is part of the same word or number."""
    if not beside or not _is_word(edge):
        return False
    if _is_word(beside[0]):
        return True
    return edge.isdigit() and beside[0] in ".," and beside[1:].isdigit()


def _is_word(character: str) -> bool:
    return (character.isalnum() or character == "_") and not _UNSPACED.match(character)


# ── a pattern ────────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function
def regex_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    pattern: str | None = None,
    match: Literal["search", "full"] = "search",
    ignore_case: bool = False,
    **kwargs: Any,
) -> EvaluateResult:
    r"""1.0 if the last message matches a regular expression, 0.0 if not.

    The pattern is `pattern`, also as a column, or else the ground truth. It may be found anywhere, or with
    `match="full"` must match the whole answer without the spaces at its ends; `(?s)`, `(?m)` and `(?i)` work as
    elsewhere. RE2 matches it in time linear in the answer, whatever the pattern: no answer can be written that makes it
    slow. So there are no look-arounds and no back-references; a pattern with one is an error, in `pattern`, or no
    verdict, in the ground truth. The model's reasoning is not part of the answer.

    Metrics: `regex_match`; `error`.
    Needs: extra `regex`.
    Cost: linear in the answer, a few microseconds a kB; a pattern is compiled once.
    Does not detect: what the pattern does not ask for; a loose pattern is easily satisfied.

    >>> reply = [{"role": "assistant", "content": "Call +49 30 1234."}]
    >>> regex_reward(reply, pattern=r"\+\d+( \d+)+").score, regex_reward(reply, pattern=r"\+\d+", match="full").score
    (1.0, 0.0)
    """
    reply = reply_of(messages)
    one_of("match", match, ("search", "full"))
    try:
        compiled = _pattern(ground_truth if pattern is None else pattern, ignore_case)
    except ValueError as error:
        if pattern is not None:
            raise RewardContractError(f"Parameter 'pattern' is {pattern!r}: {error}") from error
        return no_verdict(f"The ground truth is {quoted(str(ground_truth))}: {error}")
    text = without_reasoning(reply.text).encode("utf-8", "replace").decode()  # unpaired surrogates cannot be searched
    found = compiled.fullmatch(text.strip()) if match == "full" else compiled.search(text)
    reason = f"The answer {'matches' if found else 'does not match'} {quoted(compiled.pattern)}."
    return _passed(found is not None, "regex_match", reason)


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str, ignore_case: bool) -> Any:
    with needs_extra("Matching patterns in linear time", "regex"):
        import re2
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        problem = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise ValueError(
            f"it is not a pattern that RE2 can read ({problem}). Look-arounds and back-references are not supported; "
            "correct the pattern."
        ) from error


def _pattern(pattern: Any, ignore_case: bool) -> Any:
    if not isinstance(pattern, str) or not pattern or len(pattern) > _LONGEST_PATTERN:
        raise ValueError("it is not a regular expression. Give one as text, in 'pattern' or as the ground truth.")
    return _compiled(pattern, ignore_case)


# ── words in common ──────────────────────────────────────────────────────────────────────────────────────────────────


class _Overlap(NamedTuple):
    f1: float
    precision: float
    recall: float
    same: bool


@reward_function
def token_f1_reward(
    messages: list[Message], *, ground_truth: Any = None, extract: bool = False, **kwargs: Any
) -> EvaluateResult:
    """The F1 of the words that the last message shares with the ground truth, as SQuAD computes it.

    Before the comparison, letters become lower case, ASCII punctuation and the words "a", "an" and "the" are removed,
    and the text is split into words at spaces. If there are several right texts, the best match counts. The ground
    truth is a text, a list of texts, or SQuAD's `{"text": [...]}`, where an empty list means that the question has no
    answer: then an empty answer is right. With `extract` only what the message marks as its answer is compared. Any
    other ground truth gives no verdict.

    Metrics: `token_f1`, `token_precision`, `token_recall`, `exact_match` (after the same changes); `error`.
    Cost: linear in the answer and each right text, about 20 µs per kB.
    Does not detect: the order of words, a "not", other words for the same; an answer that repeats the question shares
    its words. Languages written without spaces are one word.

    >>> reply = [{"role": "assistant", "content": "The Denver Broncos won."}]
    >>> round(token_f1_reward(reply, ground_truth=["Denver Broncos", "Broncos"]).score, 3)
    0.8
    """
    reply = reply_of(messages)
    with no_verdict_if_unreadable():
        right = _squad_answers(ground_truth)
    given = squad_words(_answer(reply.text, extract))
    best = max((_overlap(given, squad_words(one)) for one in right), key=lambda overlap: (overlap.f1, overlap.same))
    reason = f"F1 {best.f1:.3f} with the nearest of {len(right)} right texts."
    metrics = {
        "token_f1": MetricResult(score=best.f1, reason=reason, is_score_valid=best.f1 == 1.0),
        "token_precision": MetricResult(score=best.precision, reason="of the answer's words are right"),
        "token_recall": MetricResult(score=best.recall, reason="of the right words are in the answer"),
        "exact_match": check(best.same, "the same words" if best.same else "other words"),
    }
    return EvaluateResult(score=best.f1, reason=reason, metrics=metrics)


def squad_words(text: str) -> list[str]:
    """The words of a text as SQuAD's evaluation compares them.

    >>> squad_words("The  Empire-State building, N.Y.")
    ['empirestate', 'building', 'ny']
    """
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def _squad_answers(ground_truth: Any) -> list[str]:
    if isinstance(ground_truth, Mapping) and isinstance(ground_truth.get("text"), list | tuple):
        return reference_texts(ground_truth["text"]) if ground_truth["text"] else [""]
    return reference_texts(ground_truth)


def _overlap(given: list[str], right: list[str]) -> _Overlap:
    same = given == right
    if not given or not right:
        return _Overlap(float(same), float(same), float(same), same)
    shared = sum((Counter(given) & Counter(right)).values())
    if not shared:
        return _Overlap(0.0, 0.0, 0.0, same)
    precision, recall = shared / len(given), shared / len(right)
    return _Overlap(2 * precision * recall / (precision + recall), precision, recall, same)
