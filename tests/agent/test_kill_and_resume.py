# SPDX-License-Identifier: Apache-2.0
"""kill -9 an agent's run across turns, tools and scoring; enter it again, and compare with a quiet run."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.worlds import call
from tests.generation.loopback import Says, answer
from tests.loopback.faults import MORE, some
from tests.loopback.killing import KILLED, KillingBench
from tests.loopback.runs import config, keys, lines

WORLDS = Path(__file__).with_name("worlds.py")
SAMPLES, N, TURNS, AT_ONCE = 4, 2, 4, 3
POINTS, PARTS = 200, 8 if MORE else 1


def acts(body: dict[str, Any], _: int) -> Says:
    """A model that puts in some money each turn, another sum for each seed, and then says that it is done."""
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    if turn >= TURNS - 1:
        return answer("It is done.")
    amount = hashlib.sha256(f"{body['seed']}|{turn}".encode()).digest()[0]
    message = {"role": "assistant", "content": None, "tool_calls": [call("deposit", {"amount": amount}, f"c{turn}")]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return Says(200, {"model": "m", "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 2}})


class Bench(KillingBench):
    """A bench for agents: what is paid for are turns."""

    quiet: list[dict[str, Any]]

    def settings(self, run: str, *, world: str = "Account", cache: bool = False) -> dict[str, Any]:
        agent = {"environment": f"{WORLDS}:{world}", "concurrency": AT_ONCE}
        values = self.run_settings(run, n=N, at_once=AT_ONCE, cache=cache, agent=agent)
        return values | {"reward": {"function_path": f"{WORLDS}:of_the_world"}}

    def paid(self) -> Counter[tuple[int, int]]:
        """What the endpoint was asked since the last time: seed and turn."""
        return Counter((body["seed"], sum(m["role"] == "assistant" for m in body["messages"])) for body in self.asked())


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Bench(tmp_path_factory.mktemp("kills"), acts) as made:
        config(made.home, rows=[{"id": f"s{i}", "prompt": f"Save money, {i}."} for i in range(SAMPLES)])
        assert made.enter(made.settings("quiet")) == 0
        made.quiet = essence_of(made.home / "quiet")
        assert made.paid().total() == SAMPLES * N * TURNS
        yield made


def essence_of(run: Path) -> list[dict[str, Any]]:
    """What a run's two files say, but for how long things took and which answers came from the cache."""
    rows = [*lines(run / "rollouts.jsonl"), *lines(run / "results.jsonl")]
    for row in rows:
        for name in ("check", "generated_at", "latency_ms", "cached", "cost"):
            row.pop(name, None)
        for step in row["steps"]:
            for name in ("latency_ms", "cached", "cost"):
                step.pop(name, None)
            for use in step["calls"]:
                use.pop("seconds", None)
    return rows


def seeded_points(seed: int, size: int, count: int) -> list[dict[str, int]]:
    """Bytes of all three journals, requests, and file operations."""
    dice = random.Random(seed)
    points = [{"bytes": dice.randint(1, size)} for _ in range(count * 3 // 5)]
    points += [{"request": dice.randint(1, SAMPLES * N * TURNS)} for _ in range(count // 4)]
    points += [{"operation": number % 40 + 1} for number in range(count - len(points))]
    return points


@pytest.mark.parametrize("part", range(PARTS))  # up to fifty processes each, one after the other
def test_a_run_killed_anywhere_comes_out_the_same_and_repeats_no_model_call(bench: Bench, part: int) -> None:
    quiet = bench.home / "quiet"
    turns = 2 * SAMPLES * N * TURNS * 300  # about: the turns are gone when a run has finished
    size = turns + sum((quiet / name).stat().st_size for name in ("rollouts.jsonl", "results.jsonl"))
    killed: Counter[str] = Counter()
    points = some(list(enumerate(seeded_points(16, size, POINTS))), 17, "agent")[part::PARTS]
    for number, point in points:
        run, world = f"point-{number}", "Snapshots" if number % 4 == 3 else "Account"
        settings = bench.settings(run, world=world, cache=number % 5 == 0)
        if bench.enter(settings, point) == KILLED:
            killed[next(iter(point))] += 1
        before = bench.paid()
        assert bench.enter(settings) == 0, point
        assert essence_of(bench.home / run) == bench.quiet, point
        again = before & bench.paid()
        assert again.total() <= AT_ONCE, (point, again)
        assert not (bench.home / run / "episodes.jsonl").exists(), "the turns are in the rollouts now"
        shutil.rmtree(bench.home / run)
    assert killed.total() >= len(points) * 0.8, killed


def test_a_run_killed_again_and_again_pays_each_turn_once(bench: Bench) -> None:
    settings = bench.settings("unlucky")
    kills, paid = 0, Counter[tuple[int, int]]()
    for attempt in range(60):
        status = bench.enter(settings, {"bytes": 1500 + 700 * (attempt % 5)})
        paid += bench.paid()
        if status != KILLED:
            break
        kills += 1
    assert status == 0 and kills >= 5
    assert essence_of(bench.home / "unlucky") == bench.quiet
    assert paid.total() - len(paid) <= kills * AT_ONCE


def test_raising_n_pays_only_for_new_episodes(bench: Bench) -> None:
    settings = bench.settings("grown")
    settings["generation"]["n"] = 1
    assert bench.enter(settings) == 0
    assert bench.paid().total() == SAMPLES * TURNS
    settings["generation"]["n"] = N
    assert bench.enter(settings) == 0
    assert bench.paid().total() == SAMPLES * TURNS * (N - 1)
    assert essence_of(bench.home / "grown") == bench.quiet
    assert keys(lines(bench.home / "grown" / "results.jsonl")) == [
        (f"s{i}", j) for i in range(SAMPLES) for j in range(N)
    ]


def test_old_episodes_are_judged_by_another_reward_without_asking_the_model(bench: Bench) -> None:
    settings = bench.settings("judged-again")
    assert bench.enter(settings) == 0
    bench.paid()
    other = settings | {"reward": {"function_path": f"{WORLDS}:of_the_facts"}}
    assert bench.processes.run(config=other, rescore=True) == 0
    assert not bench.paid()
    scores = [row["evaluation_score"] for row in lines(bench.home / "judged-again" / "results.jsonl")]
    assert scores == [row["evaluation_score"] for row in bench.quiet if "evaluation_score" in row]


def test_a_world_that_claims_to_be_the_same_again_and_is_not_is_never_scored(bench: Bench) -> None:
    settings = bench.settings("liar", world="Liar")
    assert bench.enter(settings) == 0
    rows = lines(bench.home / "liar" / "results.jsonl")
    assert [row["evaluation_score"] for row in rows] == [None] * len(rows)
    assert {row["failure"]["type"] for row in rows} == {"ReplayError"}
    bench.paid()
