# SPDX-License-Identifier: Apache-2.0
"""Actors, nodes and drivers die at random moments: nothing is lost, nothing is doubled, little is paid again."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.execution.pipeline import EvaluationPipeline
from tests.cluster.nodes import Misfortune, Nodes, kill_an_actor
from tests.generation.loopback import Loopback, Reaction
from tests.loopback.endpoint import asked_twice, honest, serving
from tests.loopback.runs import config, judged, lines, questions, results

ROWS = 150
IN_FLIGHT = 4
WINDOW = 2 * IN_FLIGHT
"""What an actor has under way at most: as much as it asks for at a time, and as much again that waits in it."""


def slowly(body: dict[str, Any], number: int) -> Reaction:
    """The honest endpoint, which takes a moment."""

    async def reply(writer: Any) -> None:
        import asyncio

        await asyncio.sleep(0.02)
        writer.write(honest(body, number).encoded())
        await writer.drain()

    return reply


def on_ray(home: Path, nodes: Nodes, endpoint: Loopback, reward: str = "quick", **settings: Any) -> dict[str, Any]:
    engine = {
        "name": "ray", "address": nodes.address, "working_dir": str(home),
        "generate": {"actors": 2, "concurrency": IN_FLIGHT}, "score": {"actors": 2},
    }  # fmt: skip
    return config(home, endpoint.api_base, rows=questions(ROWS), reward=reward, engine=engine, **settings)


def locally(home: Path, endpoint: Loopback, reward: str = "quick") -> dict[Any, Any]:
    """The records of the local engine."""
    home.mkdir()
    EvaluationPipeline(config(home, endpoint.api_base, rows=questions(ROWS), reward=reward)).run()
    return judged(results(home))


@pytest.mark.parametrize("seed", [1, 2])
def test_generating_actors_die(tmp_path: Path, nodes: Nodes, seed: int) -> None:
    rng = random.Random(seed)
    with serving(slowly) as endpoint:
        moments = [rng.randrange(1, ROWS - 10) for _ in range(3)]
        told = on_ray(tmp_path, nodes, endpoint)
        harm = lambda: kill_an_actor("GenerateStation", rng)  # noqa: E731
        with Misfortune(lambda: len(endpoint.requests), moments, harm) as fate:
            result = EvaluationPipeline(told).run()
        paid = len(endpoint.requests)
        assert result.status == "finished"
        assert fate.done >= 1
        assert ROWS <= paid <= ROWS + fate.done * WINDOW
        assert judged(results(tmp_path)) == locally(tmp_path / "local", endpoint)


def test_scoring_actors_die(tmp_path: Path, nodes: Nodes) -> None:
    rng = random.Random(3)
    with serving(slowly) as endpoint:
        moments = [rng.randrange(10, ROWS - 10) for _ in range(3)]
        told = on_ray(tmp_path, nodes, endpoint, reward="steady")
        harm = lambda: kill_an_actor("ScoreStation", rng)  # noqa: E731
        with Misfortune(lambda: len(endpoint.requests), moments, harm) as fate:
            EvaluationPipeline(told).run()
        assert fate.done >= 1
        assert len(endpoint.requests) == ROWS, "what is paid for does not depend on who judges it"
        assert judged(results(tmp_path)) == locally(tmp_path / "local", endpoint, "steady")


def test_a_node_dies(tmp_path: Path, nodes: Nodes, caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random(4)
    with serving(slowly) as endpoint:
        told = on_ray(tmp_path, nodes, endpoint, reward="steady")
        moment = rng.randrange(10, ROWS // 2)
        with Misfortune(
            lambda: len(endpoint.requests), [moment], lambda: nodes.lose_one_with("GenerateStation")
        ) as fate:
            EvaluationPipeline(told).run()
        nodes.have_three_again()
        assert fate.done == 1
        assert len(endpoint.requests) <= ROWS + 2 * WINDOW
        assert judged(results(tmp_path)) == locally(tmp_path / "local", endpoint, "steady")
    lost = [record.getMessage() for record in caplog.records if record.getMessage().startswith("Lost actor")]
    assert lost and all("on node" in text and "(process" in text for text in lost)


def driver(home: Path, told: dict[str, Any]) -> subprocess.Popen[bytes]:
    """The run as a command, in a process that can be killed."""
    file = home / "run.yaml"
    file.write_bytes(orjson.dumps(told))  # JSON is YAML
    return subprocess.Popen(
        [sys.executable, "-m", "reward_kit.cli", "run", str(file), "--quiet"], cwd=home, stdout=subprocess.DEVNULL
    )


def killed_when(process: subprocess.Popen[bytes], is_time: Callable[[], bool]) -> bool:
    """Whether the process was killed at the moment, or had ended before."""
    while process.poll() is None:
        if is_time():
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.005)
    assert process.returncode == 0
    return False


def test_the_driver_dies_and_goes_on_on_other_engines(tmp_path: Path, nodes: Nodes) -> None:
    """Begun on Ray, gone on with on this machine, and finished on Ray."""
    rng = random.Random(5)
    with serving(slowly) as endpoint:
        told = on_ray(tmp_path, nodes, endpoint)
        here = {name: part for name, part in told.items() if name != "engine"}
        moments = sorted(rng.randrange(5, ROWS - 30) for _ in range(2))
        assert killed_when(driver(tmp_path, told), lambda: len(endpoint.requests) >= moments[0])
        assert killed_when(driver(tmp_path, here), lambda: len(endpoint.requests) >= moments[1] + 10)
        assert not killed_when(driver(tmp_path, told), lambda: False)
        assert len(endpoint.requests) <= ROWS + 2 * WINDOW + IN_FLIGHT
        assert all(count <= 3 for count in asked_twice(endpoint.requests).values())
        assert judged(results(tmp_path)) == locally(tmp_path / "local", endpoint)
        keys = [(line["id"], line["response_index"]) for line in lines(tmp_path / "run" / "rollouts.jsonl")]
        assert len(keys) == len(set(keys)) == ROWS
