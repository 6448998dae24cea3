# SPDX-License-Identifier: Apache-2.0
"""`StepData`: one step of an episode as trainers of the inherited package hold it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from reward_kit.models import Message

__all__ = ["StepData"]


class StepData(BaseModel):
    """One step: what was seen, what was done, and what it is worth. Other fields are kept, too."""

    model_config = ConfigDict(extra="allow")

    system_step_index: int
    """Where the step stands in its episode."""
    observation_data: Any
    """What the policy saw before it acted."""
    action_taken: dict[str, Any]
    """`{"type": "text", "content"}`, `{"type": "tool_call", "name", "arguments"}` or `{"type": "terminate"}`."""
    raw_policy_output: str | None = None
    resulting_messages_history: list[Message]
    """The conversation after the step."""
    policy_logprobs: Any | None = None
    policy_value_estimate: float | None = None
    is_done: bool = False
    step_info: dict[str, Any] = Field(default_factory=dict)
    """`assistant_turn_index` says which assistant turn this is, from 0: by it, rewards find their steps."""
    base_reward: float | None = None
    """What the reward said of this step; `None` where it said nothing."""
    advantage: float | None = None
    return_to_go: float | None = None
    """The discounted rewards from here to the end of the episode."""
