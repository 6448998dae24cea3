# SPDX-License-Identifier: Apache-2.0
"""Values come out of a pack as they went in, and secrets do not show in an order."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pydantic import BaseModel

from reward_kit.config_models import load_config
from reward_kit.errors import ConfigError
from reward_kit.execution.ray_engine.order import Order, OrderBook
from reward_kit.execution.ray_engine.wire import pack, pack_without_samples, unpack, with_sample
from reward_kit.models import (
    EvaluateResult,
    Failure,
    Message,
    MetricResult,
    Rollout,
    Sample,
    Step,
    StepOutput,
    ToolUse,
    Usage,
)

SAMPLE = Sample(
    id="s1", messages=[Message(role="user", content="é\ud83d"[:1])], ground_truth={"a": [1, None]}, columns={"x": 1.5}
)
VALUES: list[BaseModel] = [
    SAMPLE,
    Message(role="assistant", content=None, tool_calls=[]),
    EvaluateResult(score=0.5, metrics={"m": MetricResult(score=1, reason="r")}, step_outputs=[
        StepOutput(step_index=0, base_reward=1.0)]),
    Failure(stage="score", type="RewardError", message="no", invalid_score=0.3),
    Rollout(
        sample=SAMPLE, response_index=1, turns=[Message(role="assistant", content="b")], usage=Usage(prompt_tokens=3),
        steps=[Step(turn=0, calls=[ToolUse(id="c", name="t")])], facts={"files": {"a": "b"}},
    ),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_survives_the_way(value: BaseModel) -> None:
    there: Any = unpack(pack([value, value]))
    assert there[0] == value and there[0].model_fields_set == value.model_fields_set
    assert there[0] is there[1], "what occurs twice travels once"
    assert repr(there[0]) == repr(value) == repr(unpack(pack(there[0])))


def test_samples_stay_behind_and_are_given_back() -> None:
    rollout = VALUES[-1]
    assert isinstance(rollout, Rollout)
    blob = pack_without_samples([rollout])
    assert b"ground_truth" not in blob and len(blob) < len(pack([rollout]))
    assert with_sample(unpack(blob)[0], rollout.sample) == rollout


SECRET = "sk-very-secret-0123456789abcdef"


def order(monkeypatch: pytest.MonkeyPatch, **engine: Any) -> tuple[Order, dict[str, str]]:
    monkeypatch.setenv("SOME_TOKEN", "token-of-a-tool-98765")
    config = load_config({
        "generation": {"model_name": "m", "api_base": "http://127.0.0.1:1/v1", "api_key": SECRET},
        "reward": {"function_path": "exact_match", "params": {"api_key": "another-secret-4711"}},
        "engine": {"name": "ray", "env": ["SOME_TOKEN"], **engine},
    })  # fmt: skip
    book = OrderBook(config, None, scoring_needs_judge=False)
    return book.order("score", 0, 2.5), book.environment


def test_an_order_shows_no_secret_and_the_actor_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    made, environment = order(monkeypatch)
    for secret in (SECRET, "another-secret-4711", "token-of-a-tool-98765"):
        assert secret.encode() not in pickle.dumps(made)
        assert secret not in str(environment)
    monkeypatch.delenv("SOME_TOKEN")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    config = made.opened()
    assert config.generation.api_key is not None and config.generation.api_key.get_secret_value() == SECRET
    assert config.reward.params == {"api_key": "another-secret-4711"}
    assert config.engine.name == "local" and made.cores == 2
    import os

    assert os.environ["SOME_TOKEN"] == "token-of-a-tool-98765"


def test_another_version_on_a_node_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = order(monkeypatch)
    from dataclasses import replace

    with pytest.raises(ConfigError, match=r"actor 'score-0' has reward-kit .* this process reward-kit 9.9 on Python"):
        replace(made, versions=("9.9", "3.11")).opened()


def test_a_reward_that_cannot_travel_is_refused() -> None:
    import threading

    lock = threading.Lock()

    def reward(messages: Any, **_: Any) -> float:
        return float(lock.locked())

    config = load_config({"reward": {"function_path": "exact_match"}, "engine": "ray"})
    with pytest.raises(ConfigError, match=r"cannot be sent to the actors: TypeError.*Put it into a file"):
        OrderBook(config, reward, scoring_needs_judge=False)
