# SPDX-License-Identifier: Apache-2.0
"""ROUGE and BLEU: the numbers of `rouge-score` and `sacrebleu`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_kit.rewards.overlap import bleu_reward, rouge_reward
from reward_kit.typed_interface import RewardContractError
from tests.rewards.answers import answered

VOCABULARY = ["the", "a", "cat", "Dog's", "runs", "running", "quickly", "12", "3.5", "über", "naïve", "—", "x_y.", ","]
WORDS = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=40).map(" ".join)


@pytest.mark.parametrize("reward", [rouge_reward, bleu_reward])
@pytest.mark.parametrize("truth", [None, "", [], [None], {}, True], ids=repr)
def test_a_ground_truth_that_is_no_text_is_no_verdict(reward: Any, truth: Any) -> None:
    assert not reward(answered("a"), ground_truth=truth).is_score_valid


@pytest.mark.parametrize("stem", [False, True])
@pytest.mark.parametrize("variant", ["rouge1", "rouge2", "rouge4", "rougeL"])
@settings(max_examples=50, deadline=None)
@given(answer=WORDS, truth=WORDS)
def test_rouge_is_that_of_rouge_score(variant: Any, stem: bool, answer: str, truth: str) -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer", reason="the extra `text` is not installed")
    expected = scorer.RougeScorer([variant], use_stemmer=stem).score(truth, answer)[variant]
    result = rouge_reward(answered(answer), ground_truth=truth, variant=variant, stem=stem)
    metrics = [result.metrics[f"rouge_{name}"].score for name in ("precision", "recall", "f1")]
    assert metrics == pytest.approx([expected.precision, expected.recall, expected.fmeasure], abs=1e-12)


def test_the_nearest_of_several_texts_counts_and_any_measure_may_be_the_score() -> None:
    truths = ["a b c d", "x y"]
    assert rouge_reward(answered("x y"), ground_truth=truths).score == 1.0
    assert rouge_reward(answered("a b"), ground_truth=truths, measure="precision").score == 1.0
    assert rouge_reward(answered("a b"), ground_truth=truths, measure="recall").score == 0.5


def test_an_empty_answer_earns_nothing() -> None:
    for answer in ("", "...", "<think>a b</think>"):
        assert rouge_reward(answered(answer), ground_truth="a b").score == 0.0


def test_a_long_answer_does_not_stall_the_longest_common_subsequence() -> None:
    # The usual table would have 4 * 10^9 cells.
    assert rouge_reward(answered("a b " * 100_000), ground_truth="b c " * 10_000).metrics["rouge_recall"].score == 0.5


@pytest.mark.parametrize(("name", "value"), [("variant", "rouge9"), ("variant", "rougeLsum"), ("measure", "f2")])
def test_an_unknown_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(RewardContractError, match=rf"'{name}' is '{value}'"):
        rouge_reward(answered("a"), ground_truth="a", **{name: value})  # type: ignore[arg-type]  # on purpose


class TestBleu:
    @pytest.fixture(autouse=True)
    def _needs_sacrebleu(self) -> None:
        pytest.importorskip("sacrebleu", reason="the extra `text` is not installed")

    @pytest.mark.parametrize("tokenize", ["13a", "intl", "zh", "char", "none"])
    @settings(max_examples=50, deadline=None)
    @given(answer=WORDS, truths=st.lists(WORDS, min_size=1, max_size=3))
    def test_bleu_is_that_of_sacrebleu(self, tokenize: Any, answer: str, truths: list[str]) -> None:
        import sacrebleu

        expected = sacrebleu.sentence_bleu(answer, truths, tokenize=tokenize)
        result = bleu_reward(answered(answer), ground_truth=truths, tokenize=tokenize)
        assert result.score == pytest.approx(min(1.0, expected.score / 100), abs=1e-12)
        assert result.metrics["bleu_precision_1"].score == pytest.approx(min(1.0, expected.precisions[0] / 100))

    def test_an_empty_answer_earns_nothing_and_case_may_be_ignored(self) -> None:
        assert bleu_reward(answered(""), ground_truth="a b").score == 0.0
        assert bleu_reward(answered("The cat sat here"), ground_truth="the CAT sat here", lowercase=True).score == 1.0

    def test_a_tokenizer_that_would_be_downloaded_is_refused(self) -> None:
        with pytest.raises(RewardContractError, match="'tokenize' is 'flores200'"):
            bleu_reward(answered("a"), ground_truth="a", tokenize="flores200")  # type: ignore[arg-type]  # on purpose
