# SPDX-License-Identifier: Apache-2.0
"""Language consistency: is the answer in the language it should be in, all of it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.languages import language_code, words_by_language
from reward_kit.rewards._support.parameters import number
from reward_kit.rewards._support.requested_language import requested_language
from reward_kit.rewards._support.verdicts import check, reply_of, wrong
from reward_kit.typed_interface import RewardContractError, reward_function

__all__ = ["count_words_by_language", "detect_dominant_language", "language_consistency_reward"]

_SHOWN = 3
"""Languages with a metric of their own, beside the target."""
UNDETERMINED = "und"
"""ISO 639's code for no language in particular."""


def count_words_by_language(text: str) -> dict[str, int]:
    """How many words of `text` are in which language, by sentence; code and mathematics are not read.

    >>> count_words_by_language("The answer is nine apples. La respuesta es nueve manzanas.")
    {'en': 5, 'es': 5}
    """
    return dict(words_by_language(text))


def detect_dominant_language(text: str) -> tuple[str, float]:
    """The language most words of `text` are in, and their share; ("und", 0.0) for a text without words.

    >>> detect_dominant_language("Nous additionnons d'abord les deux nombres.")
    ('fr', 1.0)
    """
    counts = words_by_language(text)
    if not counts:
        return UNDETERMINED, 0.0
    ((language, words),) = counts.most_common(1)
    return language, words / counts.total()


@reward_function
def language_consistency_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    target_language: str | None = None,
    min_consistency: float = 0.6,
    auto_detect: bool = True,
    **kwargs: Any,
) -> EvaluateResult:
    """The share of the answer's words that are in the target language, divided by `min_consistency`; 1.0 at most.

    Languages are told by sentence, among 72 common ones and the target; words in another script are told apart within a
    sentence, and one that could be in the target language as well counts for it. `target_language` is an ISO 639 code
    such as "es", also as a column of the dataset. Left out (`auto_detect`), it is the language that the prompt asks for
    ("Write it in Spanish", "translate to French", "auf Deutsch"; the last message that asks for one counts), else the
    one that the user writes in, or where that cannot be told, that of most of the answer. Code, mathematics, links and
    tags are in no language; an answer that is nothing else earns 0.0. Reasoning in the content counts, too.

    Metrics: `language_consistency`, `target_language`, `<code>_percentage` for the target and the most used languages.
    Needs: extra `language`.
    Cost: linear in the answer, about 1 ms per kB; the detector takes half a second and 120 MB once per process.
    Does not detect: a foreign word or half-sentence in the same script as the rest; what is said in code or formulas;
    languages much alike, such as Indonesian and Malay, where the target stands for both; a request for two
    languages, or one that is made in a roundabout way.

    >>> question = {"role": "user", "content": "¿Cuántas manzanas hay en la cesta?"}
    >>> answer = {"role": "assistant", "content": "Primero sumamos los dos números. Therefore there are nine of them."}
    >>> result = language_consistency_reward(messages=[question, answer], min_consistency=1.0)
    >>> round(result.score, 2), sorted(result.metrics)
    (0.45, ['en_percentage', 'es_percentage', 'language_consistency', 'target_language'])
    """
    reply = reply_of(messages, "language_consistency")
    number("min_consistency", min_consistency, above=0.0, at_most=1.0)
    target = _target(messages, target_language, auto_detect)
    counts = words_by_language(reply.text, target)
    if not counts:
        reason = "The answer has no words in any language."
        return wrong(reason, {"language_consistency": check(False, reason)})
    target = target or counts.most_common(1)[0][0]
    share = counts[target] / counts.total()
    reason = f"{counts[target]} of {counts.total()} words are in the language {target!r}"
    score = min(1.0, share / min_consistency)
    metrics = {
        "language_consistency": MetricResult(score=score, reason=reason, is_score_valid=share >= min_consistency),
        "target_language": check(True, f"The target language is {target!r}."),
        **_percentages(counts, [target, *(language for language, _ in counts.most_common(_SHOWN))]),
    }
    return EvaluateResult(score=score, reason=reason, metrics=metrics)


def _target(messages: Sequence[Message], named: str | None, auto_detect: bool) -> str | None:
    if named:
        return language_code(named)
    if not auto_detect:
        raise RewardContractError("Neither 'target_language' nor 'auto_detect' is set; say which language is wanted.")
    for message in reversed(messages[:-1]):
        wanted = requested_language(message.text) if message.role in ("system", "developer", "user") else None
        if wanted is not None:
            return language_code(wanted)
    questions = "\n".join(message.text for message in messages[:-1] if message.role == "user")
    language, _ = detect_dominant_language(questions)
    return None if language == UNDETERMINED else language


def _percentages(counts: Mapping[str, int], languages: Sequence[str]) -> dict[str, MetricResult]:
    total = sum(counts.values())
    shares = {language: counts.get(language, 0) / total for language in languages}
    return {
        f"{language}_percentage": MetricResult(score=share, reason=f"{share:.0%} of the words")
        for language, share in shares.items()
    }
