"""Who judges a run: one reward, or another one for some of the splits.

    rollout ─▶ its sample's split ─▶ the reward of that split ─▶ verdict

Each reward keeps its own way of being called (worker processes, the event loop, a sandbox), its own bounds and its own
parameters.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reward_kit.config_models import PipelineConfig, RewardConfig
from reward_kit.execution.scorers import Reward, Scorer, open_scorer
from reward_kit.generation.budget import Budget
from reward_kit.generation.judge import JudgeUse
from reward_kit.models import EvaluateResult, Message, Rollout, Verdict
from reward_kit.typed_interface import reward_function

__all__ = ["Rewards", "SplitReward", "load_rewards", "open_rewards", "unverified"]


class SplitReward:
    """Several rewards, each for the samples of its split, and one for all other samples."""

    def __init__(self, others: Reward, by_split: Mapping[str, Reward]) -> None:
        """Judge by `by_split`; samples of a split that is not in there by `others`."""
        self.others = others
        self.by_split = dict(by_split)

    @property
    def judges_groups(self) -> bool:
        """Whether one of them judges all rollouts of a sample at once; the rollouts of all samples go together then."""
        return any(reward.judges_groups for reward in (self.others, *self.by_split.values()))

    def settings(self, run: PipelineConfig) -> dict[str, Any]:
        """What the verdicts depend on, beside the rollouts."""
        named = {
            f"{split}.{name}": value
            for split, reward in self.by_split.items()
            for name, value in reward.settings(run).items()
        }
        return self.others.settings(run) | named


Rewards = Reward | SplitReward
"""Who judges."""


def load_rewards(config: RewardConfig, function: Callable[..., Any] | None = None) -> Rewards:
    """The rewards a config names; `function` stands in for the one that its `function_path` names."""
    reward = Reward(config, function)
    if not config.by_split:
        return reward
    return SplitReward(reward, {split: Reward(part) for split, part in config.by_split.items()})


@contextlib.asynccontextmanager
async def open_rewards(
    rewards: Rewards, run: PipelineConfig, directory: Path, budget: Budget | None = None, *, at_hand: int = 1
) -> AsyncIterator[Scorer]:
    """The scorer of all rewards, each with what it needs. What cannot work is said here, before anything is judged.

    `at_hand` is how many rollouts wait to be judged already.
    """
    async with contextlib.AsyncExitStack() as stack:

        async def opened(reward: Reward, part: RewardConfig, at_hand: int = 1) -> Scorer:
            opening = open_scorer(reward, part, directory, run.sandbox, run.judge, budget, at_hand=at_hand)
            return await stack.enter_async_context(opening)

        if isinstance(rewards, Reward):
            yield await opened(rewards, run.reward, at_hand)
            return
        others = _Bounded(await opened(rewards.others, run.reward), groups=rewards.others.judges_groups)
        named = {
            split: _Bounded(await opened(reward, run.reward.by_split[split]), groups=reward.judges_groups)
            for split, reward in rewards.by_split.items()
        }
        yield _BySplit(others, named)


class _Bounded:
    """A scorer that is called no more often at a time than it is worth."""

    def __init__(self, scorer: Scorer, *, groups: bool) -> None:
        self.scorer = scorer
        self.concurrency = scorer.concurrency
        self._score = scorer.score
        self._groups = groups
        self._free = asyncio.Semaphore(scorer.concurrency)

    async def score(self, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        if self._groups or len(rollouts) == 1:
            return await self._one(rollouts)
        told = await asyncio.gather(*(self._one([rollout]) for rollout in rollouts))
        return [verdict for verdicts in told for verdict in verdicts]

    async def _one(self, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        async with self._free:
            return await self._score(rollouts)


class _BySplit:
    """Hands rollouts to the scorer of their split."""

    def __init__(self, others: _Bounded, by_split: Mapping[str, _Bounded]) -> None:
        self.concurrency = others.concurrency + sum(scorer.concurrency for scorer in by_split.values())
        self._others = others
        self._by_split = by_split
        self._scorers = [bounded.scorer for bounded in (others, *by_split.values())]
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
    costs = [use.cost for use in uses if use.cost is not None]
    return JudgeUse(
        replies=sum(use.replies for use in uses),
        cached=sum(use.cached for use in uses),
        prompt_tokens=sum(use.prompt_tokens for use in uses),
        completion_tokens=sum(use.completion_tokens for use in uses),
        cost=sum(costs) if len(costs) == len(uses) else None,
    )


@reward_function
async def unverified(messages: list[Message], *, split: str | None = None, **kwargs: Any) -> EvaluateResult:
    """No verdict, ever: it stands where only the splits that are named have a reward."""
    reason = f"The split {split!r} has no verifier. Name one in `verifiers`."
    return EvaluateResult(score=0.0, is_score_valid=False, reason=reason)
