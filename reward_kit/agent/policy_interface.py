# SPDX-License-Identifier: Apache-2.0
"""AgentPolicy: whoever chooses an agent's next action, be it a model, a script or a person."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["AgentPolicy", "PolicyAction"]


class PolicyAction(NamedTuple):
    """What a policy returns. A plain tuple of the four does as well."""

    action_structured: dict[str, Any]
    """`{"type": "text", "content"}`, `{"type": "tool_call", "name", "arguments"}` or `{"type": "terminate"}`. Several
    calls at once: the first one, and the others as a list of `{"name", "arguments"}` under `further_calls`."""
    raw_output: str | None = None
    """What the policy wrote, as it wrote it."""
    log_probs: Any | None = None
    value_estimate: float | None = None


class AgentPolicy(ABC):
    """Chooses actions. A policy does not know the world: it only gets an observation and the tools."""

    @abstractmethod
    async def get_action(
        self, observation: Mapping[str, Any], available_tools_specs: Sequence[Mapping[str, Any]] | None = None
    ) -> PolicyAction | tuple[dict[str, Any], str | None, Any | None, float | None]:
        """The next action. `observation` holds `messages`, and what the world shows of itself as `state`."""
