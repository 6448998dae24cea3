# SPDX-License-Identifier: Apache-2.0
"""Runs whose reward is served somewhere: killed and resumed, the records are those of a local run."""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import EndpointError, StorageError
from reward_kit.evaluation import evaluate
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.models import Message
from reward_kit.remote.reward import RemoteReward
from tests.generation.loopback import Loopback
from tests.loopback.endpoint import honest, serving
from tests.loopback.faults import TIMES
from tests.loopback.runs import REWARDS, config, judged, keys, lines, questions, results
from tests.loopback.zygote import Zygote
from tests.remote.live_server import live_server

KILLED = -signal.SIGKILL
SAMPLES, N = 8, 2


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Loopback]:
    with serving(honest) as model:
        yield model


@pytest.fixture(scope="module")
def processes() -> Zygote:
    return Zygote()


def settings(home: Path, endpoint: Loopback, run: str, reward: str, n: int = N) -> dict[str, Any]:
    return config(
        home, endpoint.api_base, rows=questions(SAMPLES), output__output_dir=str(home / run), generation__n=n,
        generation__n_mode="fanout", reward__function_path=reward, reward__remote={"max_outage": 0},
    )  # fmt: skip


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", ["steady", "ranking"])
def test_killed_anywhere_and_resumed_the_records_are_those_of_a_local_run(
    name: str, tmp_path: Path, endpoint: Loopback, processes: Zygote
) -> None:
    assert processes.run(config=settings(tmp_path, endpoint, "local", f"{REWARDS}:{name}")) == 0
    quiet = judged(results(tmp_path, "local"))
    size = (tmp_path / "local" / "results.jsonl").stat().st_size + (
        tmp_path / "local" / "rollouts.jsonl"
    ).stat().st_size
    dice, killed = random.Random(7), 0
    with live_server({name: f"{REWARDS}:{name}"}) as address:
        for number in range(2 * TIMES):
            run = f"served-{number}"
            served = settings(tmp_path, endpoint, run, f"{address}/evaluate")
            for _ in range(2):
                killed += processes.run(config=served, die_at={"bytes": dice.randint(1, size)}) == KILLED
            assert processes.run(config=served) == 0
            assert judged(results(tmp_path, run)) == quiet
            assert keys(lines(tmp_path / run / "results.jsonl")) == keys(lines(tmp_path / "local" / "results.jsonl"))
    assert killed >= 2 * TIMES


def test_a_reward_that_fails_in_every_way_fails_there_as_it_does_here(tmp_path: Path, endpoint: Loopback) -> None:
    faults = ["raise", "exit", "quit", "nothing", "words", "nan", "infinite", "invalid", "error", "object", "fine"]
    rows = [{"id": name, "user_query": f"<{name}>" if name != "fine" else "well", "level": 1} for name in faults]
    by_way: dict[str, Any] = {}
    with live_server({"faulty": f"{REWARDS}:faulty"}) as address:
        for way, reward in {"here": f"{REWARDS}:faulty", "there": address}.items():
            values = config(
                tmp_path, endpoint.api_base, rows=rows, output__output_dir=str(tmp_path / way),
                reward__function_path=reward,
            )  # fmt: skip
            evaluate_quietly(values)
            by_way[way] = results(tmp_path, way)
    assert judged(by_way["here"]) == judged(by_way["there"])
    assert sum(row["evaluation_score"] is None for row in by_way["there"].values()) == len(faults) - 1


def evaluate_quietly(values: dict[str, Any]) -> None:
    EvaluationPipeline(values).run()


def test_a_run_goes_on_with_the_same_reward_at_another_address_and_refuses_another(
    tmp_path: Path, endpoint: Loopback
) -> None:
    with live_server({"steady": f"{REWARDS}:steady"}) as address:
        evaluate_quietly(settings(tmp_path, endpoint, "run", address))
    with live_server({"quick": f"{REWARDS}:quick", "steady": f"{REWARDS}:steady"}) as address:
        evaluate_quietly(settings(tmp_path, endpoint, "run", f"{address}/rewards/steady/evaluate", n=3))
        with pytest.raises(StorageError):
            evaluate_quietly(settings(tmp_path, endpoint, "run", f"{address}/rewards/quick/evaluate"))
    evaluate_quietly(settings(tmp_path, endpoint, "run", f"{REWARDS}:steady", n=4))
    assert len(results(tmp_path, "run")) == SAMPLES * 4


def test_a_server_that_is_gone_stops_the_run_and_what_was_judged_stays(tmp_path: Path, endpoint: Loopback) -> None:
    with live_server({"steady": f"{REWARDS}:steady"}) as address:
        values = settings(tmp_path, endpoint, "run", address)
        evaluate_quietly(values)
    with pytest.raises(EndpointError, match="Nobody answers at"):
        evaluate_quietly(settings(tmp_path, endpoint, "run", address, n=3))
    assert len(results(tmp_path, "run")) == SAMPLES * N


def test_evaluate_takes_an_address(tmp_path: Path) -> None:
    rows = [{"id": "a", "messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}],
             "ground_truth": "4"}]  # fmt: skip
    with live_server({"exact": "exact_match_reward"}) as address:
        evaluate(rows, address, output_dir=tmp_path / "run")
    assert [row["evaluation_score"] for row in results(tmp_path).values()] == [1.0]


def test_a_server_that_is_killed_and_started_again_loses_no_answer(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "reward_kit.cli", "serve", f"{REWARDS}:steady", "--port", str(port)]
    options = ["--workers", "1", "--access-log", "none"]
    turns = [
        [Message(role="user", content=f"What is {i}?"), Message(role="assistant", content=f"{i}")] for i in range(300)
    ]
    servers: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        servers.append(subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL))

    async def ask() -> list[Any]:
        reward = RemoteReward(
            f"http://127.0.0.1:{port}", {"max_outage": 120, "batch_size": 8, "max_concurrent_requests": 2}
        )
        await reward(messages=turns[0])  # it is up
        asking = [asyncio.ensure_future(reward(messages=each)) for each in turns]
        await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        servers[0].kill()
        start()
        return await asyncio.gather(*asking)

    start()
    try:
        results_of_all = asyncio.run(ask())
    finally:
        for server in servers:
            server.terminate()
            server.wait()
    assert [result.reason for result in results_of_all] == [f"read {len(f'{i}')} characters" for i in range(300)]
