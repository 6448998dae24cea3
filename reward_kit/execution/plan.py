# SPDX-License-Identifier: Apache-2.0
"""What a run would do and cost, worked out without calling anyone and without writing anything."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from reward_kit.config_models import PipelineConfig
from reward_kit.errors import RewardKitError
from reward_kit.execution.owed import Ledger, Work, Workload
from reward_kit.generation.cache.responses import CachedClient, RequestKeys, ResponseCache
from reward_kit.generation.cache.sharing import asks_who_answers, key_identity
from reward_kit.generation.client import ModelClient
from reward_kit.generation.factory import make_client
from reward_kit.generation.prices import cost_of, price_for
from reward_kit.generation.tokens import estimated_tokens, most_usage
from reward_kit.generation.wire import Prompt
from reward_kit.scoring.rewards import Rewards
from reward_kit.storage.batch_journal import BATCHES, BatchJournal
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_index import JournalIndex
from reward_kit.storage.run_directory import RESULTS, ROLLOUTS
from reward_kit.utils.event_loop import run_sync

__all__ = ["BatchPlan", "Plan", "make_plan"]


@dataclass
class BatchPlan:
    """What of a plan goes by batches."""

    files: int = 0
    """Files of requests, one batch each."""
    requests: int = 0
    """Requests in them: one for each answer."""
    size: int = 0
    """Bytes of the files."""
    under_way: int = 0
    """Requests of batches that were submitted before: they are fetched, not asked for again."""
    too_large: int = 0
    """Requests that no file can take: they will be failures."""
    cost: float | None = None
    """At most, at the batch price. (`Plan.cost` is the same, so that a limit is compared with what will be paid.)"""
    online_cost: float | None = None
    """What the same answers would cost at most online."""


@dataclass
class Plan:
    """The plan of a run: what it would send, and what that costs at most and about."""

    rows: int = 0
    rollouts: int = 0
    """Answers there will be in the end."""
    on_disk: int = 0
    """Answers already in the run directory."""
    cached: int = 0
    """Answers the response cache has."""
    requests: int = 0
    """Requests to be sent at least: one per sample where the endpoint takes `n`."""
    answers_to_generate: int = 0
    """Answers to be asked for, and paid."""
    to_score: int = 0
    prompt_tokens: int = 0
    """About: estimated from the length of the prompts and tools."""
    most_prompt_tokens: int = 0
    """At most: a token for every byte, and every answer paying for its prompt."""
    completion_tokens: int = 0
    """At most: every answer as long as max_tokens allows."""
    cost: float | None = None
    """At most, where the price is known and `cost_is_bounded`; without the judge."""
    cost_is_bounded: bool = True
    """Whether max_tokens bounds the answers. Where it does not, `cost` supposes 4,096 tokens an answer."""
    most_turns: int | None = None
    """Of an agent: the most requests of one episode. What the later ones cost is not known beforehand."""
    dataset_format: dict[str, str] = field(default_factory=dict)
    """The shapes of rows that were recognised, and what each means."""
    first_prompt: list[dict[str, Any]] | None = None
    """What the model would be asked first."""
    batch: BatchPlan | None = None
    """What goes by batches, where the transport is `batch`."""
    remarks: list[str] = field(default_factory=list)
    """What would stop the run, or keep its cost from being known."""

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        return asdict(self)


def make_plan(
    config: PipelineConfig,
    workload: Workload,
    reward: Rewards | None,
    client: ModelClient | None,
    *,
    retry_failed: bool = False,
    anew: bool = False,
    by_content: bool = True,
) -> Plan:
    """Walk through what is owed, asking only the journals and the cache. `anew`: as if nothing were judged yet.

    `by_content`: what was judged of a sample with another ground truth is owed again.
    """
    directory = Path(config.output.output_dir)
    with contextlib.ExitStack() as files:
        rollouts = _existing(files, Path(config.rollouts_file or directory / ROLLOUTS))
        results = _existing(files, directory / RESULTS, owed_again=True)
        ledger = Ledger(
            rollouts,
            rollouts.index(),
            JournalIndex() if anew else results.index(),
            whole_groups=reward is not None and reward.judge_groups,
            retry_failed=retry_failed,
            scoring=reward is not None,
            results_journal=results if by_content else None,
        )
        cache = _cache(files, config, client) if workload.needs_model else None
        batched = workload.needs_model and config.generation.transport == "batch"
        batch = _Batching(config, directory) if batched else None
        plan = _walk(config, workload.works(ledger), cache, ledger, batch)
        plan.dataset_format = workload.formats
        if workload.needs_model and client is None:
            plan.remarks = _remarks(config)
        if workload.needs_model and config.agent is not None:
            plan.cost, plan.most_turns = None, config.agent.max_turns  # nobody knows how many there will be
            plan.requests = plan.answers_to_generate
            plan.remarks.append(
                f"Each episode may take up to {config.agent.max_turns} requests (`agent.max_turns`), and their prompts "
                "grow. Requests and tokens are those of the first turns; bound the cost with `max_cost`."
            )
        return plan


class _Batching:
    """Spreads what is owed over files, as a run would, without writing any."""

    def __init__(self, config: PipelineConfig, directory: Path) -> None:
        from reward_kit.generation.batch.answers import ids_in
        from reward_kit.generation.batch.choose import batch_model, batch_price
        from reward_kit.generation.batch.lines import FileFill, RequestLines

        self.plan = BatchPlan()
        self.price = batch_price(config.generation)
        model = batch_model(config.generation)
        self._sampling = config.generation.sampling()
        self._keys = RequestKeys(key_identity(model.client.identity, config.generation.cache), self._sampling)
        self._lines = RequestLines(model.client, model.shape)
        self._fill = FileFill(model.limits)
        with BatchJournal(directory / BATCHES, read_only=True) as journal:
            paths = [journal.requests_path(part.name) for part in journal.under_way]
        self._covered = {name for path in paths if path.exists() for name, _ in ids_in(path)}

    def owed(self, work: Work, is_cached: list[bool]) -> int:
        """Take account of a sample; how many of its answers are still to be asked for."""
        sample = work.sample
        draws = [draw for draw, hit in zip(work.draws, is_cached, strict=True) if not hit]
        if not draws:
            return 0
        prompt = Prompt([turn.as_request() for turn in sample.messages], sample.tools, self._sampling, sample.id)
        request = self._keys.of(sample.messages, sample.tools, sample.id)
        asked = 0
        for name, line in self._lines.of(prompt, draws, request):
            if name.encode() in self._covered:
                self.plan.under_way += 1
            elif self._fill.takes(len(line)):
                self._fill.add(len(line))
                asked += 1
            else:
                self.plan.too_large += 1
        self.plan.files, self.plan.requests, self.plan.size = self._fill.files, self._fill.requests, self._fill.size
        return asked


def _walk(
    config: PipelineConfig, works: Iterator[Work], cache: CachedClient | None, ledger: Ledger, batch: _Batching | None
) -> Plan:
    plan = Plan(on_disk=len(ledger.rollouts))
    sampling = config.generation.sampling()
    price, batch_price = price_for(config.generation), None if batch is None else batch.price
    online = by_batch = 0.0
    for work in works:
        plan.rows += 1
        sample = work.sample
        is_cached = [False] * len(work.draws)
        if cache:
            is_cached = cache.peek(sample.messages, work.draws, sampling, sample.tools, sample.id)
        hits = sum(is_cached)
        owed = len(work.draws) - hits if batch is None else batch.owed(work, is_cached)
        first_tries = [draw for draw in work.draws if ledger.rollouts.status(work.sample.id, draw) is None]
        plan.rollouts += len(first_tries) + len(work.new)
        plan.cached += hits
        plan.answers_to_generate += owed
        plan.to_score += len(work.rollouts) + (len(work.draws) if ledger.scoring else 0)
        if owed:
            requests = 1 if batch is None else owed
            plan.requests += requests
            plan.prompt_tokens += requests * estimated_tokens(work.sample.messages, work.sample.tools)
            most = most_usage(work.sample.messages, work.sample.tools, sampling, 1)
            plan.most_prompt_tokens += owed * most.prompt_tokens
            plan.completion_tokens += owed * most.completion_tokens
            online += owed * cost_of(most, price) if price is not None else 0.0
            by_batch += owed * cost_of(most, batch_price) if batch_price is not None else 0.0
            if plan.first_prompt is None:
                plan.first_prompt = [message.as_request() for message in work.sample.messages]
    plan.rollouts += plan.on_disk
    plan.cost_is_bounded = sampling.max_tokens is not None
    if price is not None:
        plan.cost = online
        if batch is not None and batch_price is not None:
            batch.plan.online_cost, batch.plan.cost, plan.cost = online, by_batch, by_batch
    plan.batch = None if batch is None else batch.plan
    return plan


def _remarks(config: PipelineConfig) -> list[str]:
    """What is missing to ask the model, and to bound what it costs."""
    found = []
    model = config.generation.model_name or ""
    if price_for(config.generation) is None:
        refused = " With max_cost set, the run would be refused." if config.max_cost is not None else ""
        found.append(
            f"The price of {model!r} is not known.{refused} Set `generation.price`; "
            "`reward-kit prices` lists the models whose price is known."
        )
    try:
        make_client(config.generation)
    except RewardKitError as error:  # the key is missing, or a package
        found.append(str(error))
    return found


def _existing(files: contextlib.ExitStack, path: Path, *, owed_again: bool = False) -> Journal:
    """The journal at `path`; where there is none yet, one that reads as empty."""
    found = path if path.exists() else Path(os.devnull)
    return files.enter_context(Journal(found, read_only=True, owed_again=owed_again))


def _cache(files: contextlib.ExitStack, config: PipelineConfig, client: ModelClient | None) -> CachedClient | None:
    generation = config.generation
    client = client or make_client(generation, needs_key=False)
    settings = generation.cache
    if settings.enabled is False:
        return None
    behind = CachedClient(client, files.enter_context(ResponseCache(settings.cache_dir, read_only=True)), settings)
    if asks_who_answers(client.identity, settings):
        run_sync(behind.know_who_answers)
    return behind
