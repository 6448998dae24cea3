# SPDX-License-Identifier: Apache-2.0
"""Scorers: how rollouts meet their reward.

OnTheLoop    an asynchronous reward, where we are
InWorkers    a synchronous one, in warm worker processes: a hung regular expression or a runaway allocation costs one
             record and a bounded time, never the run
BySplit      several rewards, each for the samples of its split
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from reward_kit.config_models import AgentConfig, JudgeConfig, PipelineConfig, SandboxConfig
from reward_kit.errors import ConfigError, ItemError
from reward_kit.models import Failure, Rollout, Verdict
from reward_kit.reward_call import RESOURCES, RewardCall
from reward_kit.scoring import defaults
from reward_kit.scoring.loop_watch import LoopWatch
from reward_kit.scoring.on_the_loop import OnTheLoop, each_alone
from reward_kit.scoring.opened import Opened
from reward_kit.scoring.outcomes import judged_by, verdicts_of
from reward_kit.scoring.resources import open_resources
from reward_kit.scoring.rewards import Reward, Rewards
from reward_kit.scoring.worker_call import WithNews
from reward_kit.scoring.worlds import open_worlds
from reward_kit.utils.opened_files import Noted
from reward_kit.utils.tasks import hidden_tasks
from reward_kit.workers import Done, Outcome, WorkerPool

if TYPE_CHECKING:
    from reward_kit.generation.budget import Budget
    from reward_kit.generation.judge import JudgeUse

__all__ = ["InWorkers", "Scorer", "open_rewards", "open_scorer"]


class Scorer(Protocol):
    """Judges one rollout, or all rollouts of a sample, at a time."""

    concurrency: int
    """How many calls of `score` are worth having in flight."""
    sandbox: str | None
    """The backend that its sandboxes are made with, where it has any."""
    is_paid: bool
    """Whether its verdicts cost money, or may: a judge's, and those of a reward that is served somewhere. Each is on
    disk before another is asked for."""

    @property
    def judge_use(self) -> JudgeUse | None:
        """What the reward asks of a judge, where it has one; filled as it asks."""
        ...

    async def score(self, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        """One verdict per rollout, in their order; a `BudgetExhaustedError` where a judge cannot be afforded."""
        ...


@contextlib.asynccontextmanager
async def open_rewards(
    rewards: Rewards, run: PipelineConfig, directory: Path, budget: Budget | None = None, *, at_hand: int = 1
) -> AsyncIterator[Scorer]:
    """The scorer of all rewards, each with what it needs. What cannot work is said here, before anything is judged.

    `at_hand` is how many rollouts wait to be judged already.
    """
    async with contextlib.AsyncExitStack() as stack:

        async def opened(reward: Reward, at_hand: int = 1) -> Scorer:
            opening = open_scorer(
                reward, directory, run.sandbox, run.judge, budget, at_hand=at_hand, agent=run.agent
            )  # fmt: skip
            return await stack.enter_async_context(opening)

        if not rewards.by_split:
            yield await opened(rewards.others, at_hand)
            return
        others = await opened(rewards.others)
        yield _BySplit(others, {split: await opened(reward) for split, reward in rewards.by_split.items()})


@contextlib.asynccontextmanager
async def open_scorer(
    reward: Reward,
    directory: Path | None,
    sandbox: SandboxConfig,
    judge: JudgeConfig = JudgeConfig(),  # noqa: B008 - frozen
    budget: Budget | None = None,
    *,
    at_hand: int = 1,
    agent: AgentConfig | None = None,
    owned: bool = False,
) -> AsyncIterator[OnTheLoop | InWorkers]:
    """The scorer the reward calls for, with its worker processes, its sandboxes and its judge if it needs any.

    Where `at_hand` rollouts wait to be judged already, as many workers start together. What the reward prints there
    goes into a file in `directory`, or to standard error where there is none. `owned`: nobody else looks at the
    rollouts.
    """
    call, config = reward.call, reward.config
    needed = [name for name in RESOURCES if call.wants(name)]
    if config.isolate and call.is_async and needed:
        raise ConfigError(
            f"`reward.isolate` runs {call.name!r} in a process of its own, where it has no {needed[0]}. Leave "
            "`reward.isolate` out, or write the reward without it."
        )
    concurrency = config.concurrency or call.concurrency or _usual_concurrency(reward)
    async with (
        open_resources(call, sandbox, judge, budget, concurrency=concurrency) as resources,
        open_worlds(call, agent, sandbox) as worlds,
    ):
        if call.is_async and not config.isolate:
            scorer = OnTheLoop(
                call, reward.timeout, concurrency, resources, worlds=worlds, opened=reward.opened, owned=owned
            )  # fmt: skip
            with LoopWatch(min(reward.timeout, defaults.LOOP_PATIENCE_SECONDS), scorer.log_blockage), hidden_tasks():
                yield scorer
            return
    size = config.workers or call.concurrency or os.cpu_count() or 1
    pool = WorkerPool(
        reward.worker_call(sandbox),
        size=size,
        timeout=reward.timeout,
        memory_mb=config.memory_mb,
        log_path=None if directory is None else directory / "reward_output.log",
        name=call.name,
        first=at_hand,
        startup=defaults.STARTING_SECONDS + reward.loading_seconds,
    )
    backend = await _backend(reward, sandbox)
    async with pool:
        yield InWorkers(call, pool, size * defaults.QUEUED_PER_WORKER, backend, reward.opened)


def _usual_concurrency(reward: Reward) -> int:
    if not reward.isolated_with:
        return defaults.CONCURRENCY
    from reward_kit.sandbox.from_settings import sandboxes_at_a_time  # here: most rewards need no sandbox

    return sandboxes_at_a_time()


async def _backend(reward: Reward, sandbox: SandboxConfig) -> str | None:
    if not reward.isolated_with:
        return None
    from reward_kit.sandbox.from_settings import try_backend

    return await try_backend(sandbox)


# ── in worker processes ──────────────────────────────────────────────────────────────────────────────────────────────


class InWorkers:
    """Sends a synchronous reward's calls to the worker processes."""

    judge_use: JudgeUse | None = None
    is_paid = False

    def __init__(
        self, call: RewardCall, pool: WorkerPool, concurrency: int, sandbox: str | None = None,
        opened: Opened | None = None,
    ) -> None:  # fmt: skip
        """Have the workers of `pool`, each of which has a `WorkerCall` of the reward, judge.

        `opened` is told which files they open.
        """
        self._opened = opened
        self.concurrency = concurrency
        self.sandbox = sandbox
        self._call = call
        self._pool = pool
        self._groups = call.mode == "batch"

    async def score(self, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        """One verdict per rollout, in their order: the reward is called in a worker process."""
        if not self._groups and len(rollouts) > 1:
            return await each_alone(self.score, rollouts)
        try:
            arguments = self._call.arguments_of(rollouts, plain=True)
        except ItemError as error:
            return [Failure.of(error, "score")] * len(rollouts)
        outcome = self._unpacked(await self._pool.submit((arguments,), {}))
        return verdicts_of(outcome, self._call.name, len(rollouts))

    def _unpacked(self, outcome: Outcome) -> Outcome:
        """The outcome without the files that came with it."""
        if self._opened is not None:
            self._opened.look()
        if type(outcome) is not Done or type(outcome.value) is not WithNews:
            return outcome
        if self._opened is not None:
            self._opened.note(Noted(outcome.value.read, outcome.value.written))
        return Done(outcome.value.value)

    async def judge_all(self, groups: Sequence[Sequence[Rollout]], *, until: float) -> list[Sequence[Verdict] | None]:
        """The verdicts on the rollouts of each call; None where there were none at the time `until` (monotonic)."""
        return await judged_by(self._pool, self._call, groups, until=until, unpack=self._unpacked)


# ── by split ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _BySplit:
    """Hands rollouts to the scorer of their split."""

    def __init__(self, others: Scorer, by_split: Mapping[str, Scorer]) -> None:
        self._others = others
        self._by_split = by_split
        self._scorers = [others, *by_split.values()]
        self.concurrency = sum(scorer.concurrency for scorer in self._scorers)
        self.is_paid = any(scorer.is_paid for scorer in self._scorers)
        self.sandbox = next((scorer.sandbox for scorer in self._scorers if scorer.sandbox is not None), None)

    @property
    def judge_use(self) -> JudgeUse | None:
        """What all of them have asked of their judges so far."""
        uses = [scorer.judge_use for scorer in self._scorers if scorer.judge_use is not None]
        return _together(uses) if uses else None

    async def score(self, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        split = rollouts[0].sample.split
        scorer = self._others if split is None else self._by_split.get(split, self._others)
        return await scorer.score(rollouts)


def _together(uses: Sequence[JudgeUse]) -> JudgeUse:
    from reward_kit.generation.judge import JudgeUse

    costs = [use.cost for use in uses if use.cost is not None]
    return JudgeUse(
        replies=sum(use.replies for use in uses),
        cached=sum(use.cached for use in uses),
        prompt_tokens=sum(use.prompt_tokens for use in uses),
        completion_tokens=sum(use.completion_tokens for use in uses),
        cost=sum(costs) if len(costs) == len(uses) else None,
        cost_is_at_most=any(use.cost_is_at_most for use in uses),
        dropped_parameters={name: why for use in uses for name, why in use.dropped_parameters.items()},
    )
