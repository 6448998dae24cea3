# SPDX-License-Identifier: Apache-2.0
"""Environments of one turn for SkyRL and Tinker, on stand-ins of their bases; tests/frameworks has the real ones."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from reward_kit.integrations.message_env import skyrl_environment, tinker_environment
from reward_kit.integrations.trainer_reward import TrainerReward
from tests.integrations import trainer_rewards

ASKED = [{"role": "user", "content": "2+2?"}]


@pytest.fixture
def frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    skyrl, tinker = ModuleType("skyrl_gym.envs.base_text_env"), ModuleType("tinker_cookbook.rl.message_env")
    skyrl.BaseTextEnv = type("BaseTextEnv", (), {})  # type: ignore[attr-defined]
    tinker.MessageEnv = type("MessageEnv", (), {})  # type: ignore[attr-defined]
    tinker.MessageStepResult = SimpleNamespace  # type: ignore[attr-defined]
    for module in (skyrl, tinker):
        parts = module.__name__.split(".")
        for end in range(1, len(parts)):
            monkeypatch.setitem(sys.modules, ".".join(parts[:end]), ModuleType(".".join(parts[:end])))
        monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("frameworks")
def test_skyrl() -> None:
    made = skyrl_environment(trainer_rewards.exact, failed_score=0.0, workers=0)
    env = made(env_config=None, extras={"reward_spec": {"ground_truth": "4"}, "bonus": 0.5})
    assert env.init(ASKED) == (ASKED, {})
    step = env.step("4")
    assert (step["reward"], step["done"], step["observations"]) == (1.5, True, [])
    assert step["metadata"] == {"reason": "'4' for '4'"}
    assert env.get_metrics() == {"length": 0.1, "judged": 1.0}


@pytest.mark.usefixtures("frameworks")
def test_skyrl_is_told_what_a_failure_earns() -> None:
    env = skyrl_environment(trainer_rewards.perilous, failed_score=-1.0, workers=0)()
    env.init(ASKED)
    assert env.step("raise")["reward"] == -1.0
    assert env.get_metrics() == {"judged": 0.0}


@pytest.mark.usefixtures("frameworks")
async def test_tinker() -> None:
    env = tinker_environment(TrainerReward(trainer_rewards.exact, failed_score=0.0, workers=0), "2+2?", "4", bonus=0.5)
    assert await env.initial_observation() == ASKED
    step = await env.step({"role": "assistant", "content": "4"})
    assert (step.reward, step.episode_done, step.metrics["judged"]) == (1.5, True, 1.0)
    assert step.next_messages == [*ASKED, {"role": "assistant", "content": "4"}]


def test_without_them_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skyrl_gym", None)
    monkeypatch.setitem(sys.modules, "tinker_cookbook", None)
    with pytest.raises(ImportError, match="pip install skyrl-gym"):
        skyrl_environment(trainer_rewards.exact, failed_score=0.0)
    with pytest.raises(ImportError, match="pip install tinker-cookbook"):
        tinker_environment(TrainerReward(trainer_rewards.exact, failed_score=0.0, workers=0), "q")
