"""A reward as a TRL trainer calls it. Imports neither torch nor trl.

GRPOTrainer(..., reward_funcs=[create_trl_adapter(my_reward, {"answer": "ground_truth"})])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reward_kit.errors import ConfigError
from reward_kit.reward_function import RewardCall, TRLAdapter

__all__ = ["TRLAdapter", "create_trl_adapter"]


def create_trl_adapter(
    reward_fn: Callable[..., Any] | str,
    dataset_to_reward_kwargs_map: Mapping[str, str],
    static_reward_kwargs: Mapping[str, Any] | None = None,
    user_message_fn: Callable[[Any], str] | None = None,
    assistant_message_fn: Callable[[Any], str] | None = None,
) -> TRLAdapter:
    """Adapt a reward (or its import path) to `f(prompts, completions, **columns) -> list[float | None]`.

    The map says which dataset column fills which parameter of the reward; the static keywords are given to every call.
    `user_message_fn` and `assistant_message_fn` make a turn's text from a prompt and a completion, where they are not
    texts or lists of messages already. An item that cannot be judged is None: TRL leaves it out.
    """
    call = RewardCall(reward_fn, static_reward_kwargs)
    if call.mode == "batch":
        raise ConfigError(
            f"{call.name!r} judges all rollouts of a sample at once, and a trainer's items are judged one by one. "
            "Give a pointwise reward."
        )
    return TRLAdapter(
        call,
        columns=dataset_to_reward_kwargs_map,
        user_message_fn=user_message_fn,
        assistant_message_fn=assistant_message_fn,
    )
