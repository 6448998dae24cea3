# SPDX-License-Identifier: Apache-2.0
"""A small policy learns to walk over frozen lakes: clipped policy gradients with GiGPO's credit for every step.

    python -m examples.gigpo_ppo_training.train --updates 40 --log steps.jsonl

    the policy plays ──▶ rollouts with steps ──▶ the reward's scores ──▶ GiGPO ──▶ an advantage per step ──▶ PPO's loss

The policy is a client like any other model: it is asked with a conversation, and answers with a message, its token and
the token's log-probability. So the very same loop trains a language model, if that is what answers.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from examples.agent_frozen_lake.lake import MOVES, Lake, reached, samples
from reward_kit.agent import Episodes
from reward_kit.agent.environment import environment_of
from reward_kit.agent.step_credit import CreditSettings, step_credits
from reward_kit.agent.step_rows import log_rows
from reward_kit.config_models import AgentConfig, Sampling
from reward_kit.errors import MissingExtraError
from reward_kit.models import Completion, Failure, Message, Record, Rollout, Sample, Tokens
from reward_kit.storage.judged_episodes import JudgedEpisode, episode_of
from reward_kit.storage.row_json import json_line

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit(str(MissingExtraError("This training", "train")))

WORDS = tuple(MOVES)
SIGNS = ".OGSP"
SQUARES = 16
GIGPO = CreditSettings(method="gigpo", gamma=0.95, omega=1.0, mode="mean_std_norm")
LEARNING_RATE = 0.01
CLIP = 0.2
ENTROPY = 0.02
EPOCHS = 4


# ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────────────


def seen(board: str) -> list[int]:
    """The board as numbers, one per square."""
    return [SIGNS.index(sign) for sign in board.replace("\n", "")]


def network() -> nn.Module:
    """From the signs on the squares to a number for each word."""
    inputs = nn.Sequential(nn.Embedding(len(SIGNS), 8), nn.Flatten(), nn.Linear(SQUARES * 8, 64), nn.Tanh())
    return nn.Sequential(inputs, nn.Linear(64, len(WORDS)))


class Policy:
    """The network as a model that is asked with conversations. Questions of one moment are answered together."""

    model = "lake-policy"
    identity: Mapping[str, Any] = {}

    def __init__(self, net: nn.Module, seed: int) -> None:
        self.net = net
        self.dice = torch.Generator().manual_seed(seed)
        self.waiting: list[tuple[list[int], asyncio.Future[Completion]]] = []

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        draws: Sequence[int],
        sampling: Sampling,
        tools: list[dict[str, Any]] | None = None,
        sample_id: str = "",
    ) -> list[Completion | Failure]:
        """One word for each draw."""
        loop = asyncio.get_running_loop()
        if not self.waiting:
            loop.call_soon(self._answer_all)
        asked = [(seen(messages[-1].text), loop.create_future()) for _ in draws]
        self.waiting += asked
        return [await answer for _, answer in asked]

    def _answer_all(self) -> None:
        waiting, self.waiting = self.waiting, []
        with torch.no_grad():
            chances = torch.log_softmax(self.net(torch.tensor([board for board, _ in waiting])), dim=-1)
            drawn = torch.multinomial(chances.exp(), 1, generator=self.dice)
            logprobs = chances.gather(1, drawn)
        for (_, answer), word, logprob in zip(waiting, drawn[:, 0].tolist(), logprobs[:, 0].tolist(), strict=True):
            tokens = Tokens(ids=[word], logprobs=[logprob])
            answer.set_result(Completion(message=Message(role="assistant", content=WORDS[word]), tokens=tokens))

    async def close(self) -> None:
        """There is nothing to close."""


# ── playing and judging ──────────────────────────────────────────────────────────────────────────────────────────────


def play(policy: Policy, lakes: Sequence[Sample], per_lake: int) -> list[list[JudgedEpisode]]:
    """So many judged episodes on each lake."""
    config = AgentConfig(max_turns=12)
    episodes = Episodes(policy, Sampling(), None, environment_of(Lake), config)

    async def all_of_them() -> list[list[Rollout]]:
        return await asyncio.gather(*(episodes(lake, range(per_lake)) for lake in lakes))

    return [[judged(rollout) for rollout in rollouts] for rollouts in asyncio.run(all_of_them())]


def judged(rollout: Rollout) -> JudgedEpisode:
    """The rollout with its score. An episode that failed has none, and teaches nothing."""
    verdict = rollout.failure if rollout.failure is not None else reached(rollout.facts or {})
    return episode_of(Record.of(rollout, verdict))


def success(groups: Iterable[Sequence[JudgedEpisode]]) -> float:
    """The share of episodes that came to the goal."""
    scores = [episode.score for group in groups for episode in group if episode.score is not None]
    return sum(scores) / len(scores)


# ── learning ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Batch(NamedTuple):
    """Every step of every episode."""

    boards: torch.Tensor
    words: torch.Tensor
    logprobs: torch.Tensor
    """Of the words, when they were drawn."""
    advantages: torch.Tensor


def batch_of(groups: Iterable[Sequence[JudgedEpisode]], credit: CreditSettings) -> Batch:
    """The steps with their advantages. An episode that has no score has none."""
    boards, words, logprobs, advantages = [], [], [], []
    for group in groups:
        for episode, steps in zip(group, step_credits(group, credit), strict=True):
            for own in steps or ():
                step = episode.steps[own.step]
                assert step.tokens is not None
                boards.append(seen(episode.turns[step.turn - 1]["content"]))
                words.append(step.tokens["ids"][0])
                logprobs.append(step.tokens["logprobs"][0])
                advantages.append(own.advantage)
    return Batch(torch.tensor(boards), torch.tensor(words), torch.tensor(logprobs), torch.tensor(advantages))


def clipped_loss(net: nn.Module, batch: Batch, entropy_weight: float = ENTROPY) -> torch.Tensor:
    """PPO's loss per step: no step may become likelier, or rarer, by more than a fifth at once."""
    chances = torch.log_softmax(net(batch.boards), dim=-1)
    ratio = (chances.gather(1, batch.words[:, None])[:, 0] - batch.logprobs).exp()
    gain = torch.minimum(ratio * batch.advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * batch.advantages)
    entropy = -(chances.exp() * chances).sum(dim=-1)
    return -(gain + entropy_weight * entropy).mean()


def train(
    updates: int, per_lake: int = 16, seed: int = 0, credit: CreditSettings = GIGPO, log: Path | None = None
) -> list[float]:
    """Learn, and return the share of successes before each update, then in the end."""
    torch.manual_seed(seed)
    net = network()
    policy, optimizer = Policy(net, seed), torch.optim.Adam(net.parameters(), lr=LEARNING_RATE)
    lakes, curve = samples(), []
    for update in range(updates):
        groups = play(policy, lakes, per_lake)
        curve.append(success(groups))
        if log is not None:
            write_log(log, update, groups, credit)
        batch = batch_of(groups, credit)
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            clipped_loss(net, batch).backward()
            optimizer.step()
    return [*curve, success(play(policy, lakes, per_lake))]


def write_log(path: Path, update: int, groups: Iterable[Sequence[JudgedEpisode]], credit: CreditSettings) -> None:
    """Append the credit of every step; `scripts/view_rl_trajectory.py` of the repository shows it."""
    with path.open("ab") as file:
        for group in groups:
            for row in log_rows(group, credit):
                file.write(json_line(row | {"query_id": f"update {update}, {row['query_id']}"}))


def main() -> None:
    """Train, and print the share of successes as it rises."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--per-lake", type=int, default=16, help="episodes on each lake before an update; default: 16")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--credit", choices=["gigpo", "grpo"], default="gigpo", help="grpo: of whole episodes only")
    parser.add_argument("--log", type=Path, metavar="FILE.jsonl", help="append the credit of every step")
    options = parser.parse_args()
    torch.set_num_threads(1)
    curve = train(options.updates, options.per_lake, options.seed, replace(GIGPO, method=options.credit), options.log)
    for five, group in groupby(enumerate(curve), key=lambda pair: pair[0] // 5):
        shares = [share for _, share in group]
        mean = sum(shares) / len(shares)
        print(f"update {five * 5:>3}  {mean:.2f}  {'#' * round(40 * mean)}")


if __name__ == "__main__":
    main()
