# SPDX-License-Identifier: Apache-2.0
"""The actors: a play, or the rewards, at the other end of a mailbox. They run what the local engine runs.

add(pack)   things to do and replies, from the driver
take()      a pack of what was done, asked and told
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import tempfile
import traceback
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.agent.watch import EpisodeWatch
from reward_kit.config_models import PipelineConfig, RewardConfig
from reward_kit.errors import RewardKitError
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.ray_engine.leases import LeasedBudget, SharedCommons
from reward_kit.execution.ray_engine.mailbox import Done, Mailbox, Tell
from reward_kit.execution.ray_engine.order import Order
from reward_kit.execution.ray_engine.wire import pack, pack_without_samples, unpack
from reward_kit.generation.commons import share
from reward_kit.generation.play import Play
from reward_kit.generation.stack import ModelStack, open_models
from reward_kit.models import Rollout, Sample
from reward_kit.redaction import mask
from reward_kit.scoring.rewards import load_rewards
from reward_kit.scoring.scorers import Scorer, open_rewards
from reward_kit.storage.turn_journal import Recording, turn_line
from reward_kit.utils.batcher import Batcher

__all__ = ["ActorError", "Facts", "GenerateStation", "ScoreStation", "Task"]

_LONGEST_LOG = 1 << 20
"""Bytes of what rewards printed that an actor hands to the driver in the end."""


_LINGER_OF_VERDICTS = 0.05
"""How long verdicts that cost no money wait for others: they are computed again for nothing."""


class ActorError(RuntimeError):
    """A bug of ours, or of somebody's client, in an actor: with where it arose, as text."""


class Facts(NamedTuple):
    """What an actor says of itself once it is ready."""

    node: str
    host: str
    pid: int
    concurrency: int
    """Things that are worth having under way in it."""
    sandbox: str | None = None


class Task(NamedTuple):
    """A sample to play, with what is on disk of its episodes."""

    sample: Sample
    draws: list[int]
    recorded: dict[int, Recording]
    known: list[Rollout]


class _Station(ABC):
    """What both kinds of actors have in common."""

    def __init__(self) -> None:
        """Nothing is opened yet."""
        self._stack = contextlib.AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()
        self._mailbox: Mailbox | None = None

    async def where(self) -> str:
        """The node that the actor is on."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    async def open(self, order: Order, node: str) -> Facts:
        """Make everything ready."""
        self._mailbox = mailbox = Mailbox()
        config = order.opened()
        _forward_warnings(mailbox, order.name)
        share(SharedCommons(mailbox))
        budget = LeasedBudget(mailbox, is_limited=order.is_limited)
        facts = Facts(node, os.uname().nodename, os.getpid(), 1)
        return facts._replace(**await self._opened(order, config, budget, mailbox))

    async def add(self, blob: bytes) -> None:
        """Take a pack from the driver."""
        mailbox = self._mailbox
        if mailbox is None:
            raise AssertionError("not open")
        things, replies = unpack(blob)
        for number, value, error in replies:
            mailbox.reply(number, value, error)
        for number, thing in things:
            mailbox.under_way += 1
            task = asyncio.create_task(self._do(number, thing, mailbox))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def take(self) -> bytes:
        """A pack for the driver; waits until there is something in it."""
        if self._mailbox is None:
            raise AssertionError("not open")
        taken = await self._mailbox.take()
        return self._packed([*self._figures(), *taken])

    async def close(self) -> bytes:
        """End in good order; what the rewards printed."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()
        return self._printed()

    async def _do(self, number: int, thing: Any, mailbox: Mailbox) -> None:
        try:
            done = Done(number, await self._outcome(thing))
        except RewardKitError as error:
            done = Done(number, None, error)
        except Exception as error:  # noqa: BLE001 - a bug: the driver raises it
            told = f"{type(error).__name__}: {error}\n{''.join(traceback.format_tb(error.__traceback__)[-8:])}"
            done = Done(number, None, ActorError(mask(told)))
        mailbox.done(done)

    @staticmethod
    def _packed(taken: Sequence[object]) -> bytes:
        return pack(taken)

    def _printed(self) -> bytes:
        return b""

    @abstractmethod
    async def _opened(
        self, order: Order, config: PipelineConfig, budget: LeasedBudget, mailbox: Mailbox
    ) -> dict[str, Any]:
        """Open what the kind needs; what there is to say of it, as fields of `Facts`."""

    @abstractmethod
    def _outcome(self, thing: Any) -> Awaitable[Any]:
        """Do a thing."""

    @abstractmethod
    def _figures(self) -> list[Tell]:
        """What has changed of what people see."""


class GenerateStation(_Station):
    """Plays samples: single answers, or episodes of an agent."""

    _models = ModelStack()
    _play: Play
    _turns: _Turns | None = None
    _watch: EpisodeWatch | None = None
    _told: object = None

    async def _opened(
        self, order: Order, config: PipelineConfig, budget: LeasedBudget, mailbox: Mailbox
    ) -> dict[str, Any]:
        self._models = models = await self._stack.enter_async_context(open_models(config, None, budget))
        if config.agent is not None:
            from reward_kit.execution.agents import open_episodes  # here: most runs have no agent

            counters, self._turns = RunCounters(), _Turns(mailbox)
            opening = open_episodes(
                config, config.agent, models, self._turns, counters, budget, self._turns.known
            )  # fmt: skip
            models = await self._stack.enter_async_context(opening)
            self._watch = counters.episodes
        if models.play is None:
            raise AssertionError("there is a play where there is a model")
        self._play = models.play
        agent = config.agent
        at_a_time = config.generation.api_params.max_concurrent_requests if agent is None else agent.concurrency
        return {"concurrency": at_a_time}

    async def _outcome(self, thing: Task) -> list[Rollout]:
        if self._turns is None:
            return await self._play(thing.sample, thing.draws)
        with self._turns.having(thing):
            return await self._play(thing.sample, thing.draws)

    @staticmethod
    def _packed(taken: Sequence[object]) -> bytes:
        return pack_without_samples(taken)

    def _figures(self) -> list[Tell]:
        models, told = self._models, []
        learned = (models.draws_at_once(), dict(models.dropped_parameters))
        if learned != self._told:
            self._told = learned
            told.append(Tell("learned", learned))
        if self._watch is not None:
            told.append(Tell("figures", (replace(self._watch), None)))
        return told


class ScoreStation(_Station):
    """Judges rollouts."""

    _scorer: Scorer
    _files: list[tuple[str, dict[str, str | None]]]
    """That rewards opened, and the driver was not told of."""
    _log_path: Path | None = None

    async def _opened(
        self, order: Order, config: PipelineConfig, budget: LeasedBudget, mailbox: Mailbox
    ) -> dict[str, Any]:
        config = config.model_copy(update={"reward": _with_workers(config.reward, order.cores)})
        given = None if order.reward is None else pickle.loads(order.reward)
        rewards, self._files = load_rewards(config.reward, given), []
        place = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="reward-kit-")))
        self._log_path = place / "reward_output.log"
        self._scorer = await self._stack.enter_async_context(open_rewards(rewards, config, place, budget))
        scorer = self._scorer
        for split, each in rewards.named.items():
            each.opened.tell(partial(self._note_opened, split))
        if not scorer.is_paid:
            mailbox.linger = _LINGER_OF_VERDICTS
        return {"concurrency": scorer.concurrency, "sandbox": scorer.sandbox}

    def _outcome(self, thing: list[Rollout]) -> Awaitable[Any]:
        return self._scorer.score(thing)

    def _figures(self) -> list[Tell]:
        use, files = self._scorer.judge_use, self._files
        self._files = []
        told = [] if use is None else [Tell("figures", (None, replace(use)))]
        return [*told, Tell("opened", (files,))] if files else told

    def _note_opened(self, split: str, files: Mapping[str, str | None]) -> None:
        self._files.append((split, dict(files)))

    async def close(self) -> bytes:
        """End in good order; what the rewards printed."""
        printed = b""
        if self._log_path is not None and self._log_path.exists():
            with self._log_path.open("rb") as file:
                file.seek(max(0, self._log_path.stat().st_size - _LONGEST_LOG))
                printed = file.read()
        await super().close()
        return printed


def _with_workers(reward: RewardConfig, cores: int) -> RewardConfig:
    """The reward with as many worker processes as the actor has cores, where the config says nothing else."""
    by_split = {split: _with_workers(part, cores) for split, part in reward.by_split.items()}
    return reward.model_copy(update={"workers": reward.workers or cores, "by_split": by_split})


class _Turns:
    """Stands for the file of turns, which is at the driver."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._recorded: dict[tuple[str, int], Recording] = {}
        self._known: dict[tuple[str, int], Rollout] = {}
        self._kept: asyncio.Future[None] | None = None
        self._batcher = Batcher[bytes](self._send)

    @contextlib.contextmanager
    def having(self, task: Task) -> Any:
        """Know of the episodes of this task while it is played."""
        name = task.sample.id
        recorded = {(name, draw): recording for draw, recording in task.recorded.items()}
        known = {(name, rollout.response_index): rollout for rollout in task.known}
        self._recorded |= recorded
        self._known |= known
        try:
            yield
        finally:
            for key in recorded:
                self._recorded.pop(key, None)
            for key in known:
                self._known.pop(key, None)

    def put_opening(self, sample_id: str, draw: int, opening: Mapping[str, Any]) -> None:
        self._batcher.add(turn_line(sample_id, draw, 0, b"opening", opening))

    def put_reply(self, sample_id: str, draw: int, turn: int, reply: Mapping[str, Any]) -> None:
        self._batcher.add(turn_line(sample_id, draw, turn, b"reply", reply))

    def put_answer(self, sample_id: str, draw: int, turn: int, answer: Mapping[str, Any]) -> None:
        self._batcher.add(turn_line(sample_id, draw, turn, b"answer", answer))

    async def on_disk(self) -> None:
        """Come back when the driver has written all that was put."""
        self._batcher.flush()
        if self._kept is not None:
            await asyncio.shield(self._kept)

    def recording_of(self, sample_id: str, draw: int) -> Recording | None:
        return self._recorded.get((sample_id, draw))

    def known(self, sample_id: str, draw: int) -> Rollout | None:
        return self._known.get((sample_id, draw))

    def _send(self, lines: list[bytes]) -> None:
        self._kept = asyncio.ensure_future(self._mailbox.ask("keep_turns", lines))


def _forward_warnings(mailbox: Mailbox, name: str) -> None:
    """Let the driver say what is worth a warning here: nobody reads an actor's own log."""
    loop = asyncio.get_running_loop()

    class Forwarding(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                text = mask(f"{name}: {record.getMessage()}")
                loop.call_soon_threadsafe(mailbox.tell, "log", record.levelno, text)

    logger = logging.getLogger("reward_kit")
    logger.handlers = [Forwarding(logging.WARNING)]
    logger.propagate = False
