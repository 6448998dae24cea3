"""The resources of a run: what a reward is handed because it names it, a `sandbox` or a `judge`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from reward_kit.config_models import JudgeConfig, SandboxConfig
from reward_kit.errors import ConfigError
from reward_kit.execution.sandboxes import open_sandboxes
from reward_kit.generation.budget import Budget
from reward_kit.generation.judge import open_judge
from reward_kit.reward_call import RewardCall

__all__ = ["open_resources"]


@contextlib.asynccontextmanager
async def open_resources(
    call: RewardCall, sandbox: SandboxConfig, judge: JudgeConfig, budget: Budget | None = None, *, concurrency: int
) -> AsyncIterator[Mapping[str, Any]]:
    """What the reward asks for, made ready for so many calls at a time; closed in the end."""
    found: dict[str, Any] = {}
    async with contextlib.AsyncExitStack() as stack:
        if call.wants("sandbox"):
            _require_async(call, "sandbox")
            found["sandbox"] = await stack.enter_async_context(open_sandboxes(sandbox, concurrency=concurrency))
        if call.wants("judge"):
            _require_async(call, "judge")
            found["judge"] = await stack.enter_async_context(open_judge(judge, budget))
        yield found


def _require_async(call: RewardCall, what: str) -> None:
    if not call.is_async:
        raise ConfigError(
            f"Reward {call.name!r} asks for a {what} and is not asynchronous. Make it an `async def`, and await what "
            f"the {what} does."
        )
