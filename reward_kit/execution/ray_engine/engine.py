# SPDX-License-Identifier: Apache-2.0
"""The engine on a Ray cluster: the stages are those of every engine; only what plays and what scores is far away."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from reward_kit.config_models import GenerateActorsConfig, PipelineConfig, ScoreActorsConfig
from reward_kit.errors import GenerationError, RewardError
from reward_kit.execution.engine import Engine
from reward_kit.execution.ray_engine.cluster import Cluster, open_cluster
from reward_kit.execution.ray_engine.crew import Actor, Crew, LostError
from reward_kit.execution.ray_engine.order import Kind, OrderBook
from reward_kit.execution.ray_engine.services import Services
from reward_kit.execution.ray_engine.stations import Task
from reward_kit.execution.ray_engine.wire import with_sample
from reward_kit.generation.budget import Budget, within
from reward_kit.generation.client import ModelClient
from reward_kit.generation.factory import make_client
from reward_kit.generation.judge import JudgeUse
from reward_kit.generation.prices import price_for
from reward_kit.generation.stack import ModelStack
from reward_kit.models import Failure, Rollout, Sample, Verdict
from reward_kit.redaction import mask, without_secrets
from reward_kit.scoring.rewards import Rewards
from reward_kit.scoring.scorers import Scorer
from reward_kit.storage.turn_journal import TurnJournal

__all__ = ["RayEngine"]

_log = logging.getLogger(__name__)


class RayEngine(Engine):
    """Has actors play and score, wherever Ray finds room for them."""

    def __init__(self, *shared: Any, budget: Budget | None = None, **named: Any) -> None:
        """As every engine."""
        super().__init__(*shared, budget=budget, **named)
        self._cluster: Cluster | None = None
        self._services = Services(budget)
        self._generating: Crew | None = None
        self._orders: OrderBook | None = None

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Attach to Ray, or start it; what the run started is ended with it."""
        with open_cluster(self._config.engine) as self._cluster:
            try:
                yield
            finally:
                self._services.close()

    @property
    def at_a_time(self) -> int:
        """Samples that are worth having in flight: what all actors have under way, and what waits in them."""
        return super().at_a_time if self._generating is None else self._generating.window

    @contextlib.asynccontextmanager
    async def open_models(
        self, client: ModelClient | None, turns: TurnJournal | None, known: Callable[[str, int], Rollout | None]
    ) -> AsyncIterator[ModelStack]:
        """A play whose samples are played by actors; here, where a client is given: it may not survive the way."""
        if client is not None:
            async with super().open_models(client, turns, known) as models:
                yield models
            return
        generation, wanted = self._config.generation, self._config.engine.generate
        looked_at = make_client(generation, needs_key=False)
        within(self._budget, looked_at, price_for(generation), "generation")
        self._services.turns = turns
        if turns is not None:
            self._counters.episodes = self._services.watch
        concurrency = wanted.concurrency or -(-super().at_a_time // wanted.actors)
        async with self._crew("generate", wanted, concurrency) as crew:
            self._generating = crew
            play = _RemotePlay(self._config, crew, turns, known, looked_at.model)
            services, branching = self._services, None if self._config.agent is None else self._config.agent.branching
            at_once = (lambda: services.draws_at_once) if self._config.agent is None else (lambda: 1)
            if branching is not None:
                at_once = lambda: len(self._config.draws)  # noqa: E731 - branches need all
            yield ModelStack(play, None, None, at_once, services.dropped_parameters, services.earlier)

    @contextlib.asynccontextmanager
    async def open_scorer(self, reward: Rewards, at_hand: int) -> AsyncIterator[Scorer]:
        """A scorer whose rollouts are judged by actors."""
        del at_hand
        self._services.rewards = reward
        asks_a_judge = any(each.call.wants("judge") for each in (reward.others, *reward.by_split.values()))
        async with self._crew("score", self._config.engine.score, None, needs_judge=asks_a_judge) as crew:
            judge = self._services.judge if asks_a_judge else None
            yield _RemoteScorer(crew, judge, is_paid=asks_a_judge or reward.are_remote)

    @contextlib.asynccontextmanager
    async def _crew(
        self, kind: Kind, wanted: GenerateActorsConfig | ScoreActorsConfig, concurrency: int | None, *,
        needs_judge: bool = False,
    ) -> AsyncIterator[Crew]:  # fmt: skip
        cluster = self._cluster
        if cluster is None:
            raise AssertionError("not opened")
        orders = OrderBook(self._config, self._given_reward, scoring_needs_judge=needs_judge)
        env = orders.environment

        def made(number: int) -> Actor:
            order = orders.order(kind, number, wanted.num_cpus)
            return cluster.actor(order, wanted.num_cpus, wanted.resources, env)

        needs = ", ".join(
            [f"{wanted.num_cpus:g} cores", *(f"{n:g} of {name!r}" for name, n in wanted.resources.items())]
        )
        crew = Crew(
            kind, wanted.actors, made, self._services, cluster.lost_errors, concurrency=concurrency, needs=needs
        )
        try:
            await crew.start()
            yield crew
        finally:
            await crew.close()
            self._keep_printed(crew)

    def _keep_printed(self, crew: Crew) -> None:
        """Put what rewards printed on the nodes into the run's own log."""
        if crew.printed:
            with (self._directory / "reward_output.log").open("ab") as log:
                for place, printed in crew.printed:
                    log.write(f"-- {place}\n".encode() + printed)


class _RemotePlay:
    """Has samples played by actors. What was lost with one is played by another, from its recorded turns on."""

    def __init__(
        self, config: PipelineConfig, crew: Crew, turns: TurnJournal | None,
        known: Callable[[str, int], Rollout | None], model: str,
    ) -> None:  # fmt: skip
        self._crew, self._turns, self._known, self._model = crew, turns, known, model
        self._sampling = without_secrets(config.generation.sampling().given())
        branches = config.agent is not None and config.agent.branching is not None
        self._all_draws = config.draws if branches else ()

    async def __call__(self, sample: Sample, draws: Sequence[int]) -> list[Rollout]:
        """One rollout per draw, in the order of `draws`."""
        try:
            rollouts: list[Rollout] = await self._crew.do(lambda deaths: self._task(sample, draws, deaths))
        except LostError as error:
            failure = Failure.of(GenerationError(_lost(error), retryable=True), "generate")
            return [
                Rollout(sample=sample, response_index=draw, model=self._model, sampling=self._sampling, failure=failure)
                for draw in draws
            ]
        return [with_sample(rollout, sample) for rollout in rollouts]

    def _task(self, sample: Sample, draws: Sequence[int], deaths: int) -> Task:
        recorded, known = {}, []
        if self._turns is not None:
            if deaths:
                self._turns.look_again()
            found = {draw: self._turns.recording_of(sample.id, draw) for draw in draws}
            recorded = {draw: recording for draw, recording in found.items() if recording is not None}
            asked = (self._known(sample.id, draw) for draw in {*draws, *self._all_draws})
            known = [rollout for rollout in asked if rollout is not None]
        return Task(sample, list(draws), recorded, known)


class _RemoteScorer:
    """Has rollouts judged by actors."""

    def __init__(self, crew: Crew, judge_use: JudgeUse | None, *, is_paid: bool) -> None:
        self._crew = crew
        self.judge_use = judge_use
        self.is_paid = is_paid
        self.concurrency = crew.window
        self.sandbox = crew.facts.sandbox if crew.facts is not None else None

    async def score(self, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        """One verdict per rollout, in their order."""
        try:
            verdicts: Sequence[Verdict] = await self._crew.do(lambda _: list(rollouts))
        except LostError as error:
            return [Failure.of(RewardError(_lost(error), retryable=True), "score")] * len(rollouts)
        return verdicts


def _lost(error: LostError) -> str:
    return mask(
        f"{error}. It may be what ends them: look at the logs of that node, then run again with `retry_failed`."
    )
