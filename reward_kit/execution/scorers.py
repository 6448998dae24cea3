"""Scorers: how a rollout meets its reward.

An asynchronous reward runs on the event loop. A synchronous one runs in a warm worker process, where a hung regular
expression or a runaway allocation costs one record and a bounded time, never the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol

from reward_kit.config_models import JudgeConfig, PipelineConfig, RewardConfig, SandboxConfig
from reward_kit.errors import ConfigError, ItemError, RewardError, RewardKitError, RewardTimeoutError, message_of
from reward_kit.execution.loop_watch import Blockage, LoopWatch
from reward_kit.execution.resources import open_resources
from reward_kit.execution.run_identity import results_settings
from reward_kit.generation.budget import Budget
from reward_kit.generation.judge import JudgeUse
from reward_kit.models import EvaluateResult, Failure, Rollout, Verdict
from reward_kit.redaction import mask
from reward_kit.reward_call import (
    RESOURCES,
    BatchScorer,
    PointwiseScorer,
    RewardCall,
    TellingScorer,
    Told,
    load_scorer,
    own,
    verdict_or_raise,
)
from reward_kit.sandbox.from_settings import sandboxes_at_a_time, try_backend
from reward_kit.utils.deadlines import Deadlines
from reward_kit.utils.module_loader import loading_within
from reward_kit.utils.source_digest import source_digest
from reward_kit.utils.tasks import hidden_tasks, is_ended, shrug_off
from reward_kit.workers import Died, Done, Outcome, Raised, TimedOut, WorkerPool

__all__ = ["Reward", "Scorer", "open_scorer"]

_log = logging.getLogger(__name__)

_DEFAULT_TIMEOUT = 60.0
_DEFAULT_CONCURRENCY = 256
_SHORTEST_LOADING = 30.0
"""Seconds that a reward may take to be imported even where its calls must be quicker."""
_LOOP_PATIENCE = 10.0
"""Seconds that an asynchronous reward may keep everybody waiting before that is told."""
_QUEUED_PER_WORKER = 256
"""Calls kept pending a worker, so that they can be sent in chunks worth their while."""


class Reward:
    """The reward of a run, and what it needs to be called."""

    def __init__(self, config: RewardConfig, function: Callable[..., Any] | None = None) -> None:
        """Load the reward the config names, or take the function given in its place."""
        self._given = function
        self._config = config
        try:
            with _loading(config), loading_within(self.loading_seconds):
                self.call = RewardCall(function or config.function_path, config.params)
        except ImportError as error:
            raise ConfigError(f"The reward cannot be loaded: {error}") from error
        self.source_digest = source_digest(self.call.function)
        """Of the file that defines the reward: the same name with other source is another reward."""

    @property
    def isolated_with(self) -> list[str]:
        """Those resources that it asks for and that the `sandbox` settings are about."""
        return [name for name in ("sandbox", "isolated_python") if self.call.wants(name)]

    @property
    def judges_groups(self) -> bool:
        """Whether it judges all rollouts of a sample at once."""
        return self.call.mode == "batch"

    def settings(self, run: PipelineConfig) -> dict[str, Any]:
        """What its verdicts depend on, beside the rollouts: itself, and what it uses of the run's settings."""
        sandbox = run.sandbox if self.isolated_with else None
        judge = run.judge if self.call.wants("judge") else None
        return results_settings(self.call.name, self.source_digest, self._config.params, sandbox, judge)

    @property
    def timeout(self) -> float:
        """Seconds one call may take."""
        return self._config.timeout or self.call.timeout or _DEFAULT_TIMEOUT

    @property
    def loading_seconds(self) -> float:
        """Seconds that importing it may take, here and in each worker."""
        return max(_SHORTEST_LOADING, self._config.timeout or _DEFAULT_TIMEOUT)

    def factory(self, sandbox: SandboxConfig) -> Callable[[], Callable[..., Any]]:
        """What a worker process calls to get at the reward: by import path where there is one, else by value.

        What the reward asks for to run code, each worker opens itself, as `sandbox` says.
        """
        params = self._config.params
        given: dict[str, Any] = {}
        if names := self.isolated_with:
            from reward_kit.sandbox.own import own_resources

            given["resources"] = partial(own_resources, sandbox, names)
        if self._given is None:
            make = partial(load_scorer, self._config.function_path, params, within=self.loading_seconds, **given)
            return partial(TellingScorer, make)
        kind = BatchScorer if self.judges_groups else PointwiseScorer
        return partial(TellingScorer, partial(kind, self._given, params, **given))


@contextlib.contextmanager
def _loading(config: RewardConfig) -> Iterator[None]:
    """Keep somebody's module from ending this process without a word while it is imported."""

    def refuse(status: int) -> NoReturn:
        raise ConfigError(
            f"The reward {config.function_path!r} calls os._exit({status}) while it is imported. Take that out of it."
        )

    leave, os._exit = os._exit, refuse
    try:
        yield
    finally:
        os._exit = leave


class Scorer(Protocol):
    """Judges one rollout, or all rollouts of a sample, at a time."""

    concurrency: int
    """How many calls of `score` are worth having in flight."""
    sandbox: str | None
    """The backend that its sandboxes are made with, where it has any."""

    @property
    def judge_use(self) -> JudgeUse | None:
        """What the reward asks of a judge, where it has one; filled as it asks."""
        ...

    async def score(self, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        """One verdict a rollout, in their order; a `BudgetExhaustedError` where a judge cannot be afforded."""
        ...


@contextlib.asynccontextmanager
async def open_scorer(
    reward: Reward,
    config: RewardConfig,
    directory: Path,
    sandbox: SandboxConfig,
    judge: JudgeConfig = JudgeConfig(),  # noqa: B008 - frozen
    budget: Budget | None = None,
    *,
    at_hand: int = 1,
) -> AsyncIterator[Scorer]:
    """The scorer the reward calls for, with its worker processes, its sandboxes and its judge if it needs any.

    Where `at_hand` rollouts wait to be judged already, as many workers start together.
    """
    needed = [name for name in RESOURCES if reward.call.wants(name)]
    if config.isolate and reward.call.is_async and needed:
        raise ConfigError(
            f"`reward.isolate` runs {reward.call.name!r} in a process of its own, where it has no {needed[0]}. "
            "Leave `reward.isolate` out, or have the reward do without."
        )
    usual = sandboxes_at_a_time() if reward.isolated_with else _DEFAULT_CONCURRENCY
    concurrency = config.concurrency or reward.call.concurrency or usual
    async with open_resources(reward.call, sandbox, judge, budget, concurrency=concurrency) as resources:
        if reward.call.is_async and not config.isolate:
            scorer = _OnTheLoop(reward, concurrency, resources)
            with LoopWatch(min(reward.timeout, _LOOP_PATIENCE), scorer.tell_of), hidden_tasks():
                yield scorer
            return
    size = config.workers or reward.call.concurrency or os.cpu_count() or 1
    pool = WorkerPool(
        reward.factory(sandbox),
        size=size,
        timeout=reward.timeout,
        memory_mb=config.memory_mb,
        log_path=directory / "reward_output.log",
        name=reward.call.name,
        first=at_hand,
        startup=reward.loading_seconds + _SHORTEST_LOADING,
    )
    backend = await try_backend(sandbox) if reward.isolated_with else None
    async with pool:
        yield _InWorkers(reward, pool, size * _QUEUED_PER_WORKER, backend)


class _OnTheLoop:
    """Calls an asynchronous reward where we are."""

    def __init__(self, reward: Reward, concurrency: int, resources: Mapping[str, Any]) -> None:
        self.concurrency = concurrency
        self.judge_use: JudgeUse | None = resources["judge"].use if "judge" in resources else None
        self._call = reward.call
        self._resources = resources
        self.sandbox: str | None = resources["sandbox"].backend if "sandbox" in resources else None
        self._timeout = reward.timeout
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines(reward.timeout)
        self._judging: dict[asyncio.Task[Any], Rollout] = {}
        self._groups = reward.judges_groups

    async def score(self, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        task = self._current_task()
        self._deadlines.begin(task)
        self._judging[task] = rollouts[0]
        verdicts: Sequence[Verdict]
        try:
            if self._groups:
                verdicts = await self._score_group(rollouts)
            else:
                verdicts = [await self._call.judge_async(self._call.own_payload_of(rollouts[0]), self._resources)]
        except ItemError as error:
            verdicts = [Failure.of(error, "score")] * len(rollouts)
        except asyncio.CancelledError:
            verdicts = [Failure.of(self._cancelled(task), "score")] * len(rollouts)
        except KeyboardInterrupt as error:
            if _is_a_signal(error):
                raise
            failure = Failure.of(RewardError(f"{self._call.name!r} raised KeyboardInterrupt"), "score")
            verdicts = [failure] * len(rollouts)
        finally:
            self._deadlines.end(task)
            del self._judging[task]
        if task.cancelling() and not is_ended(task):  # the reward cancelled the task that it runs in
            await shrug_off(task)
            return [Failure.of(self._cancelled_itself(), "score")] * len(rollouts)
        return verdicts

    def _current_task(self) -> asyncio.Task[Any]:
        task = asyncio.current_task(self._loop)  # a third of what it costs where it has to find the loop
        if task is None:
            raise AssertionError("scoring happens in a task")
        return task

    def tell_of(self, blockage: Blockage) -> None:
        """Say that the reward, if it is the one, keeps everybody waiting: with which answer, and where."""
        rollout = self._judging.get(blockage.task) if blockage.task is not None else None
        if rollout is None:
            return
        _log.warning(
            "%r has held up the whole run for %.0f s, judging answer %d of sample %r (%s). "
            "Make it a plain `def`, which runs in a process of its own and is ended at its timeout, "
            "or have it await what it waits for. Ctrl-C, again and again if need be, ends the run here.",
            self._call.name, blockage.seconds, rollout.response_index, rollout.sample.id, blockage.place,
        )  # fmt: skip

    def _cancelled(self, task: asyncio.Task[None]) -> RewardError:
        """What a cancellation means: the call was too slow, or it let one out; or it is meant for us, and goes on."""
        if self._deadlines.was_missed_by(task):
            return RewardTimeoutError(_too_slow(self._call.name, self._timeout))
        if is_ended(task):
            raise asyncio.CancelledError
        return self._cancelled_itself()

    def _cancelled_itself(self) -> RewardError:
        return RewardError(f"{self._call.name!r} was cancelled from within. Catch CancelledError where it arises.")

    async def _score_group(self, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        results = await self._call.judge_group_async(own(self._call.group_payload_of(rollouts)), self._resources)
        return [_verdict(result, self._call.name) for result in results]


class _InWorkers:
    """Sends a synchronous reward's calls to the worker processes."""

    judge_use: JudgeUse | None = None

    def __init__(self, reward: Reward, pool: WorkerPool, concurrency: int, sandbox: str | None) -> None:
        self.concurrency = concurrency
        self.sandbox = sandbox
        self._call = reward.call
        self._pool = pool
        self._groups = reward.judges_groups

    async def score(self, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        call = self._call
        payload = call.group_payload_of(rollouts) if self._groups else call.payload_of(rollouts[0])
        outcome = await self._pool.submit((payload,), {})
        if not isinstance(outcome, Done):
            return [Failure.of(self._error(outcome), "score")] * len(rollouts)
        if isinstance(outcome.value, Told):
            return [_failure(outcome.value)] * len(rollouts)
        results = outcome.value if self._groups else [outcome.value]
        try:
            read = [EvaluateResult.model_validate(result) for result in results]
        except (ValueError, TypeError) as error:
            unreadable = RewardError(f"{call.name!r} sent back what is no result: {message_of(error)}")
            return [Failure.of(unreadable, "score")] * len(rollouts)
        return [_verdict(result, call.name) for result in read]

    def _error(self, outcome: Outcome) -> RewardError:
        match outcome:
            case Raised(type=kind, message=message):
                return RewardError(f"{self._call.name!r} raised {kind}: {message}")
            case TimedOut(seconds=seconds):
                return RewardTimeoutError(_too_slow(self._call.name, seconds))
            case Died(reason=reason):
                return RewardError(f"{self._call.name!r} took its worker process down: it {reason}")
            case Done():
                raise AssertionError("a finished call is no error")


def _is_a_signal(error: KeyboardInterrupt) -> bool:
    """Whether somebody pressed Ctrl-C: the run's own handler raised it, and not the reward."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == "reward_kit.execution.local_engine"


def _failure(told: Told) -> Failure:
    """The failure of one item; what is none, such as a package or key that is missing, ends the run."""
    if told.retryable is None:
        raise RewardKitError(told.message)
    return Failure(stage="score", type=told.type, message=mask(told.message), retryable=told.retryable)


def _verdict(result: EvaluateResult, name: str) -> Verdict:
    try:
        return verdict_or_raise(result, repr(name))
    except RewardError as error:
        return Failure.of(error, "score")


def _too_slow(name: str, seconds: float) -> str:
    return f"{name!r} did not return within {seconds:g} s. Raise `reward.timeout` if it needs longer."
