# SPDX-License-Identifier: Apache-2.0
"""Trainers' own client code against the real server: OpenRLHF's executor, OpenEnv's client, and a file for verl."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openenv.core.generic_client import GenericEnvClient
from openrlhf.utils import agent

from reward_kit.integrations.verl import write_compute_score
from tests.loopback.runs import REWARDS
from tests.remote.live_server import live_server

REWARD = "reward_kit.rewards.text_match:exact_match_reward"
FAULTY = f"{REWARDS}:faulty"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with live_server({"exact": REWARD, "faulty": FAULTY}) as url:
        yield url


# ── OpenRLHF ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_openrlhf_fetches_rewards(address: str) -> None:
    executor = agent.SingleTurnAgentExecutor(f"{address}/openrlhf")
    (one,) = await executor._fetch_rewards_via_http(["<s>2+2?4</s>"], ["2+2?"], ["4"])
    assert one["rewards"] == one["scores"] == 1.0
    (two,) = await executor._fetch_rewards_via_http(["q4", "q5"], ["q", "q"], ["4", "4"])
    assert two["rewards"] == [1.0, 0.0]


async def test_openrlhf_gives_up_on_what_cannot_be_judged_instead_of_learning_a_zero(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(agent.asyncio, "sleep", lambda seconds: sleep(0))  # it waits a second before each attempt
    executor = agent.SingleTurnAgentExecutor(f"{address}/rewards/faulty/openrlhf")
    with pytest.raises(RuntimeError, match="5 times"):
        await executor._fetch_rewards_via_http(["<raise>x"], ["<raise>"], [None])


# ── OpenEnv ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_openenvs_client_plays_an_episode() -> None:
    worlds = {"environment": "tests.serving.safe_worlds:Safe"}
    with live_server({"exact": REWARD}, worlds=worlds) as url:
        async with GenericEnvClient(base_url=url) as env:
            result = await env.reset(prompt="Open it.", ground_truth=7)
            assert result.observation["text"] == "A safe." and not result.done
            result = await env.step({"tool_name": "dial", "arguments": {"number": 1}})
            assert (result.reward, result.done) == (-0.5, False)
            assert (await env.state())["step_count"] == 1
            result = await env.step({"tool_name": "dial", "arguments": {"number": 7}})
            assert (result.reward, result.done) == (1.0, True)
            with pytest.raises(RuntimeError, match="The episode is over"):
                await env.step({"text": "again"})


# ── verl ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_for_verl_asks_the_server(address: str, tmp_path: Path) -> None:
    file = write_compute_score(f"{address}/evaluate", tmp_path / "compute_score.py", failed_score=0.0)
    spec = importlib.util.spec_from_file_location("compute_score_file", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # as verl's `load_extern_object` does
    given: dict[str, Any] = {"data_source": "sums", "solution_str": "4", "ground_truth": "4", "extra_info": {}}
    scored = module.compute_score(**given)
    scored = asyncio.run(scored) if asyncio.iscoroutine(scored) else scored
    assert scored["score"] == 1.0
