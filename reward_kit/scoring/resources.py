# SPDX-License-Identifier: Apache-2.0
"""The resources of a run: what a reward is handed because it names it.

    sandbox            opens sandboxes, made the way the run's `sandbox` settings say
    isolated_python    runs Python programs and tests, isolated the same way
    judge              asks the model of the run's `judge` settings
    world              an agent's world, fresh, in which the steps of the rollout were played again

An asynchronous reward is handed what was opened here. A synchronous one runs in worker processes, and each of them
opens its own by the same settings.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from reward_kit.config_models import JudgeConfig, SandboxConfig
from reward_kit.errors import ConfigError
from reward_kit.reward_call import RESOURCES, RewardCall

if TYPE_CHECKING:
    from reward_kit.generation.budget import Budget

__all__ = ["open_resources"]


@contextlib.asynccontextmanager
async def open_resources(
    call: RewardCall, sandbox: SandboxConfig, judge: JudgeConfig, budget: Budget | None = None, *, concurrency: int
) -> AsyncIterator[Mapping[str, Any]]:
    """What the reward asks for, made ready for so many calls at a time; closed in the end."""
    found: dict[str, Any] = {}
    async with contextlib.AsyncExitStack() as stack:
        _refuse_synchronous(call)
        # Imported where they are asked for: most rewards ask for none, and a server starts sooner without them.
        if call.is_async and call.wants("sandbox"):
            from reward_kit.sandbox.from_settings import open_sandboxes

            found["sandbox"] = await stack.enter_async_context(open_sandboxes(sandbox, concurrency=concurrency))
        if call.is_async and call.wants("isolated_python"):
            from reward_kit.sandbox.from_settings import open_isolated_python

            opening = open_isolated_python(sandbox, concurrency=concurrency)
            found["isolated_python"] = await stack.enter_async_context(opening)
        if call.wants("judge"):
            from reward_kit.generation.judge import open_judge

            found["judge"] = await stack.enter_async_context(open_judge(judge, budget))
        yield found


def _refuse_synchronous(call: RewardCall) -> None:
    """A synchronous reward cannot await what a resource does. One that can also do without knows how to wait for it."""
    if call.is_async:
        return
    for what in RESOURCES:
        if call.requires(what) or (what == "judge" and call.wants(what)):
            raise ConfigError(
                f"Reward {call.name!r} asks for `{what}` and is not asynchronous. Make it an `async def`, and await "
                f"what the {what} does."
            )
