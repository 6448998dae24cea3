# SPDX-License-Identifier: Apache-2.0
"""A reward as an environment of one turn, for trainers that step through message environments. None is imported here.

    env = skyrl_environment("my_rewards:correct", failed_score=0.0)     a class for SkyRL's `skyrl_gym.register`
    judge = TrainerReward("my_rewards:correct", failed_score=0.0)
    env = tinker_environment(judge, prompt, ground_truth)               a `MessageEnv` of the Tinker cookbook

The model is asked, it answers, the answer is judged, and the episode is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reward_kit.integrations.attempts import attempt, skyrl_row
from reward_kit.integrations.trainer_reward import TrainerReward
from reward_kit.integrations.turns import prompt_turns

__all__ = ["skyrl_environment", "tinker_environment"]


def skyrl_environment(
    reward: Callable[..., Any] | str,
    *,
    failed_score: float | None,
    params: Mapping[str, Any] | None = None,
    **options: Any,
) -> type[Any]:
    """A `BaseTextEnv` class of SkyRL whose rows have `reward_spec: {"ground_truth": ...}`.

    Every other entry of a row's extras reaches the reward by name. All environments share one set of workers.
    """
    try:
        from skyrl_gym.envs.base_text_env import BaseTextEnv
    except ImportError as error:
        raise ImportError("skyrl_environment needs skyrl-gym. Install it with: pip install skyrl-gym") from error
    judge = TrainerReward(reward, failed_score=failed_score, params=params, **options)

    class RewardEnv(BaseTextEnv):  # type: ignore[misc]  # SkyRL has no types to check against
        """One question, one answer, one earned."""

        def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
            super().__init__()
            self._row = skyrl_row(extras or {})
            self._prompt: list[Any] = []
            self._metrics: dict[str, float] = {}

        def init(self, prompt: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
            """Take the conversation that the model is asked to go on with."""
            self._prompt = list(prompt)
            return prompt, {}

        def step(self, action: str) -> dict[str, Any]:
            """Judge the answer to the question: the only step, after which the episode is over."""
            (earned,) = judge.judge([attempt({**self._row, "prompt": self._prompt}, self._prompt, action)])
            self._metrics = {**earned.metrics, "judged": float(earned.error is None)}
            return {
                "observations": [],
                "reward": earned.score,
                "done": True,
                "metadata": {"reason": earned.reason or earned.error},
                "postprocessed_action": None,
            }

        def get_metrics(self) -> dict[str, float]:
            """The metrics of the verdict, and whether there was one."""
            return self._metrics

    RewardEnv.__name__ = RewardEnv.__qualname__ = f"RewardEnv_{judge.call.name}"
    return RewardEnv


def tinker_environment(
    judge: TrainerReward, prompt: str | Sequence[Any], ground_truth: Any = None, **columns: Any
) -> Any:
    """A `MessageEnv` of the Tinker cookbook for one problem; `judge` is shared by all of them.

    Its metrics are the reward's and `judged`; its logs hold the reason.
    """
    try:
        from tinker_cookbook.rl.message_env import MessageEnv, MessageStepResult
    except ImportError as error:
        raise ImportError("tinker_environment needs tinker-cookbook: pip install tinker-cookbook") from error

    class RewardEnv(MessageEnv):  # type: ignore[misc]  # its base is known only here
        """One question, one answer, one earned."""

        async def initial_observation(self) -> list[Any]:
            """What the model is asked."""
            return prompt_turns(prompt)

        async def step(self, message: Any) -> Any:
            """Judge the answer to the question: the only step, after which the episode is over."""
            messages = [*prompt_turns(prompt), *prompt_turns(message)]
            row = {"prompt": prompt, "ground_truth": ground_truth, **columns}
            (earned,) = await judge.judge_async([attempt(row, prompt, message)])
            return MessageStepResult(
                reward=earned.score,
                episode_done=True,
                next_messages=messages,
                metrics={**earned.metrics, "judged": float(earned.error is None)},
                logs={"reason": earned.reason or earned.error or ""},
            )

    return RewardEnv()
