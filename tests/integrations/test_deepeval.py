# SPDX-License-Identifier: Apache-2.0
"""DeepEval metrics as rewards, with stand-ins of the shapes DeepEval documents."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from reward_kit.integrations.deepeval import adapt_metric

TURNS: Any = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "capital?"},
    {"role": "assistant", "content": "Paris"},
]


class BaseConversationalMetric:
    """As `deepeval.metrics.BaseConversationalMetric`."""

    score: float | None = None
    reason: str | None = None


class Exact:
    """As a subclass of `deepeval.metrics.BaseMetric`: the verdict is kept on the metric."""

    score: float | None = None
    reason: str | None = None

    def __init__(self) -> None:
        self.cases: list[Any] = []

    @property
    def __name__(self) -> str:
        return "Exact Match"

    def measure(self, test_case: Any) -> float:
        self.cases.append(test_case)
        self.score = float(test_case.actual_output == test_case.expected_output)
        self.reason = "compared"
        return self.score


class Turns(BaseConversationalMetric):
    name = "Turn count"

    def measure(self, test_case: Any) -> float:
        self.reason = " ".join(f"{turn.role}:{turn.content}" for turn in test_case.turns)
        self.score = 1.0
        return self.score


class Silent(Exact):
    def measure(self, test_case: Any) -> float:
        self.reason = "the judge was down"
        return 0.0


@pytest.fixture
def deepeval(monkeypatch: pytest.MonkeyPatch) -> None:
    package, cases, metrics = ModuleType("deepeval"), ModuleType("deepeval.test_case"), ModuleType("deepeval.metrics")
    for name in ("LLMTestCase", "ConversationalTestCase", "Turn"):
        setattr(cases, name, SimpleNamespace)
    metrics.BaseConversationalMetric = BaseConversationalMetric  # type: ignore[attr-defined]
    for module in (package, cases, metrics):
        monkeypatch.setitem(sys.modules, module.__name__, module)


def test_without_deepeval_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deepeval", None)
    with pytest.raises(ImportError, match="pip install deepeval"):
        adapt_metric(Exact())


@pytest.mark.usefixtures("deepeval")
def test_a_metric_is_a_reward() -> None:
    metric = Exact()
    reward = adapt_metric(metric)
    result = reward(messages=TURNS, ground_truth="Paris", retrieval_context=["Paris is in France"], level="easy")
    assert (result.score, result.reason, list(result.metrics)) == (1.0, "compared", ["Exact Match"])
    assert reward(messages=TURNS, ground_truth=[{"role": "assistant", "content": "Rome"}]).score == 0.0
    assert metric.score is None, "each call measures with a copy"
    assert vars(metric.cases[0]) == {
        "input": "capital?",
        "actual_output": "Paris",
        "expected_output": "Paris",
        "retrieval_context": ["Paris is in France"],
    }


@pytest.mark.usefixtures("deepeval")
def test_a_conversational_metric_sees_the_turns() -> None:
    result = adapt_metric(Turns())(messages=TURNS)
    assert result.reason == "user:capital? assistant:Paris"
    assert list(result.metrics) == ["Turn count"]


@pytest.mark.usefixtures("deepeval")
def test_a_metric_without_a_score_gives_no_verdict() -> None:
    result = adapt_metric(Silent())(messages=TURNS)
    assert not result.is_score_valid
    assert result.error == "the judge was down"
