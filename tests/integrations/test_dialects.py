# SPDX-License-Identifier: Apache-2.0
"""What trainers say over HTTP: request in, response out, both as decoded JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reward_kit.integrations.dialects import DIALECTS
from reward_kit.integrations.trainer_reward import TrainerReward
from tests.integrations import trainer_rewards

RIGHT = TrainerReward(trainer_rewards.exact, failed_score=0.0, workers=0)
NEMO: dict[str, Any] = {
    "responses_create_params": {"input": [{"role": "user", "content": [{"type": "input_text", "text": "2+2?"}]}]},
    "response": {
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "4"}]},
        ]
    },
    "ground_truth": "4",
    "bonus": 0.5,
}


@pytest.mark.parametrize(
    ("dialect", "request_", "response"),
    [
        (
            "openrlhf",
            {"query": ["2+2?4</s>"], "prompts": ["2+2?"], "labels": ["4"]},
            {"rewards": 1.0, "scores": 1.0, "extra_logs": {"judged": 1.0}},
        ),
        ("openrlhf", {"query": ["4"]}, {"rewards": 0.0, "scores": 0.0, "extra_logs": {"judged": 1.0}}),
        ("slime", {"prompt": "2+2?", "response": "4", "label": "4"}, 1.0),
        ("slime", {"prompt": [{"role": "user", "content": "2+2?"}], "response": "5", "label": "4"}, 0.0),
        ("nemo-gym", NEMO, {**NEMO, "reward": 1.5, "reward_components": {"length": 0.1}}),
    ],
)
def test_a_request_gets_its_response(dialect: str, request_: Any, response: Any) -> None:
    assert json.loads(json.dumps(DIALECTS[dialect](RIGHT, request_))) == response


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("request_", [{}, [], "text", None])
def test_a_request_of_another_shape_is_refused(dialect: str, request_: Any) -> None:
    with pytest.raises(ValueError, match="request"):
        DIALECTS[dialect](RIGHT, request_)
