"""What a run would do and cost, worked out without calling anyone and without writing anything."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reward_kit.config_models import PipelineConfig
from reward_kit.execution.owed import Ledger, Work, Workload
from reward_kit.generation.cache.responses import CachedClient, ResponseCache
from reward_kit.generation.client import ModelClient
from reward_kit.generation.factory import make_client
from reward_kit.generation.prices import cost_of, estimate_tokens, price_of
from reward_kit.models import Usage
from reward_kit.scoring.rewards import Rewards
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_index import JournalIndex
from reward_kit.storage.run_directory import RESULTS, ROLLOUTS

__all__ = ["Plan", "make_plan"]

_UNBOUNDED_ANSWER_TOKENS = 4096


@dataclass
class Plan:
    """The plan of a run. Tokens and cost are estimates: prompts by their length, answers at their longest."""

    rows: int = 0
    rollouts: int = 0
    """Answers there will be in the end."""
    on_disk: int = 0
    """Answers already in the run directory."""
    cached: int = 0
    """Answers the response cache has."""
    requests: int = 0
    """Requests to be sent at least: one a sample where the endpoint takes `n`."""
    answers_to_generate: int = 0
    """Answers to be asked for, and paid."""
    to_score: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    """At most: every answer as long as max_tokens allows."""
    cost: float | None = None
    """At most, where the price is known."""

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
) -> Plan:
    """Walk through what is owed, asking only the journals and the cache. `anew`: as if nothing were judged yet."""
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
        )
        cache = _cache(files, config, client) if workload.needs_model else None
        return _walk(config, workload.works(ledger), cache, ledger)


def _walk(config: PipelineConfig, works: Iterator[Work], cache: CachedClient | None, ledger: Ledger) -> Plan:
    plan = Plan(on_disk=len(ledger.rollouts))
    sampling = config.generation.sampling()
    for work in works:
        plan.rows += 1
        hits = (
            sum(cache.peek(work.sample.messages, work.draws, sampling, work.sample.tools, work.sample.id))
            if cache
            else 0
        )
        owed = len(work.draws) - hits
        first_tries = [draw for draw in work.draws if ledger.rollouts.status(work.sample.id, draw) is None]
        plan.rollouts += len(first_tries) + len(work.new)
        plan.cached += hits
        plan.answers_to_generate += owed
        plan.to_score += len(work.rollouts) + (len(work.draws) if ledger.scoring else 0)
        if owed:
            plan.requests += 1
            plan.prompt_tokens += estimate_tokens(work.sample.messages)
            plan.completion_tokens += owed * (sampling.max_tokens or _UNBOUNDED_ANSWER_TOKENS)
    plan.rollouts += plan.on_disk
    price = price_of(config.generation.model_name or "", config.generation.price)
    if price is not None:
        plan.cost = cost_of(Usage(prompt_tokens=plan.prompt_tokens, completion_tokens=plan.completion_tokens), price)
    return plan


def _existing(files: contextlib.ExitStack, path: Path, *, owed_again: bool = False) -> Journal:
    """The journal at `path`; where there is none yet, one that reads as empty."""
    found = path if path.exists() else Path(os.devnull)
    return files.enter_context(Journal(found, read_only=True, owed_again=owed_again))


def _cache(files: contextlib.ExitStack, config: PipelineConfig, client: ModelClient | None) -> CachedClient | None:
    generation = config.generation
    client = client or make_client(generation, needs_key=False)
    if not generation.cache.enabled:
        return None
    return CachedClient(client, files.enter_context(ResponseCache(generation.cache.cache_dir, read_only=True)))
