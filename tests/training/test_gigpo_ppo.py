# SPDX-License-Identifier: Apache-2.0
"""The loop of our own: a policy learns to walk over frozen lakes by clipped policy gradients with GiGPO."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
import torch

from examples.agent_frozen_lake.lake import samples
from examples.gigpo_ppo_training.train import CLIP, GIGPO, Batch, Policy, batch_of, clipped_loss, network, play, train

torch.set_num_threads(1)


@pytest.mark.parametrize("seed", [1, 3])
def test_the_share_of_successes_rises(seed: int, tmp_path: Path) -> None:
    curve = train(updates=20, per_lake=16, seed=seed, log=tmp_path / "steps.jsonl")
    before, after = sum(curve[:3]) / 3, sum(curve[-3:]) / 3
    assert after - before >= 0.3, curve
    rows = [orjson.loads(line) for line in (tmp_path / "steps.jsonl").read_bytes().splitlines()]
    assert {row["query_id"] for row in rows[-50:]} == {f"update 19, lake-{len(samples()) - 1}"}
    assert all(row["advantage"] == row["episode_advantage"] + row["step_advantage"] for row in rows)


def test_the_same_seed_gives_the_same_curve() -> None:
    assert train(updates=2, per_lake=4, seed=5) == train(updates=2, per_lake=4, seed=5)


def test_each_step_is_a_row_with_what_was_drawn() -> None:
    torch.manual_seed(0)
    net = network()
    groups = play(Policy(net, seed=0), samples()[:2], per_lake=3)
    batch = batch_of(groups, GIGPO)
    assert len(batch.words) == sum(len(episode.steps) for group in groups for episode in group)
    chances = torch.log_softmax(net(batch.boards), dim=-1).gather(1, batch.words[:, None])[:, 0]
    assert torch.allclose(chances, batch.logprobs, atol=1e-5), "the boards are those on which the words were drawn"


@pytest.mark.parametrize(("advantage", "ratio", "moves"), [(1.0, 1.5, False), (1.0, 0.5, True), (-1.0, 0.5, False)])
def test_a_step_that_has_moved_enough_moves_no_further(advantage: float, ratio: float, moves: bool) -> None:
    torch.manual_seed(0)
    net = network()
    boards, words = torch.zeros(1, 16, dtype=torch.long), torch.zeros(1, dtype=torch.long)
    now = torch.log_softmax(net(boards), dim=-1)[0, 0].detach()
    assert not 1 - CLIP <= ratio <= 1 + CLIP
    batch = Batch(boards, words, (now - torch.tensor(ratio).log())[None], torch.tensor([advantage]))
    loss = clipped_loss(net, batch, entropy_weight=0.0)
    loss.backward()
    moved = any(weights.grad is not None and weights.grad.abs().sum() > 0 for weights in net.parameters())
    assert moved is moves
