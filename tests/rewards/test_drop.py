# SPDX-License-Identifier: Apache-2.0
"""DROP's F1 and exact match."""

from __future__ import annotations

from typing import Any

import pytest

from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.drop import drop_reward


def judged(answer: str, truth: Any) -> EvaluateResult:
    result: EvaluateResult = drop_reward([Message(role="assistant", content=answer)], ground_truth=truth)
    return result


@pytest.mark.parametrize(
    ("answer", "truth", "f1", "exact"),
    [
        ("Answer: 21", "21", 1.0, 1.0),
        ("Answer: 21.0", 21, 1.0, 1.0),
        ("Answer: 1,200", "1200", 1.0, 1.0),
        ("Answer: 21 points", "21", 2 / 3, 0.0),
        ("Answer: 20", "21", 0.0, 0.0),
        ("Answer: about two points", "21 points", 0.0, 0.0),  # the number of the reference must be there
        ("Answer: The Foxes.", "foxes", 1.0, 1.0),
        ("Answer: well-known man", "well known man", 1.0, 1.0),
        ("First Answer: owls\nthen Answer: foxes", "foxes", 1.0, 1.0),
        ("It is \\boxed{foxes}", "foxes", 1.0, 1.0),
        ("foxes", "foxes", 1.0, 1.0),
        ("<think>Answer: foxes</think>Answer: owls", "foxes", 0.0, 0.0),
        ("Answer: foxes", ["owls", "foxes"], 1.0, 1.0),
        ("Answer: Ada Ray", {"spans": ["Ada Ray", "Bo Lin"]}, 1.0, 1.0),
        ("Answer: Bo Lin, Ada Ray", {"spans": ["Ada Ray", "Bo Lin"]}, 1.0, 1.0),
        ("Answer: Bo Lin and Cy", {"spans": ["Ada Ray", "Bo Lin"]}, 2 / 3, 0.0),
        ("Answer: Bo Lin and Ada Ray and Cy", {"spans": ["Ada Ray", "Bo Lin"]}, 2 / 3, 0.0),
        ("", "foxes", 0.0, 0.0),
    ],
)
def test_answers_are_measured_as_drop_does(answer: str, truth: Any, f1: float, exact: float) -> None:
    result = judged(answer, truth)
    assert result.score == pytest.approx(f1) == result.metrics["f1"].score
    assert result.metrics["exact_match"].score == exact


def test_many_spans_are_paired() -> None:
    spans = [f"item {n}" for n in range(12)]
    assert judged("Answer: " + ", ".join(reversed(spans)), {"spans": spans}).score == 1.0
    assert judged("Answer: " + ", ".join(spans[:9]), {"spans": spans}).score == pytest.approx(9 / 12)


@pytest.mark.parametrize("truth", [None, [], {"spans": []}, "", " ", {"date": 1}, True, [None]])
def test_a_ground_truth_that_is_no_answer_gives_no_verdict(truth: Any) -> None:
    result = judged("Answer: 1", truth)
    assert not result.is_score_valid and "Give a text" in (result.reason or "")
