# SPDX-License-Identifier: Apache-2.0
"""kill -9 at chosen bytes, file operations and requests, in both stages; then resume, and compare with a quiet run."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.loopback.endpoint import honest, prompt_of
from tests.loopback.faults import MORE, some
from tests.loopback.killing import KILLED, KillingBench
from tests.loopback.runs import Key, config, judged, keys, lines, questions, results

SAMPLES, N, CONCURRENCY = 6, 2, 3
PARTS = 4 if MORE else 1


class Bench(KillingBench):
    """A bench for runs: what is paid for are answers."""

    quiet: dict[Key, dict[str, Any]]

    def settings(self, run: str, *, n: int = N, cache: bool = False, reward: str = "quick") -> dict[str, Any]:
        return self.run_settings(run, n=n, at_once=CONCURRENCY, cache=cache, reward=reward)

    def paid(self) -> Counter[tuple[str, int]]:
        """What the endpoint was asked since the last time this was asked."""
        return Counter((prompt_of(body), body["seed"]) for body in self.asked())


@pytest.fixture
def bench(shared: Bench) -> Bench:
    shared.endpoint.requests.clear()
    return shared


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Bench(tmp_path_factory.mktemp("kills"), honest) as made:
        config(made.home, rows=questions(SAMPLES))
        assert made.enter(made.settings("quiet")) == 0
        made.quiet = judged(results(made.home, "quiet"))
        yield made


def held(path: Path) -> set[Key]:
    """The keys of the whole lines of a journal that may end in a torn one."""
    if not path.exists():
        return set()
    return set(keys(map(orjson.loads, path.read_bytes().rpartition(b"\n")[0].splitlines())))


def check_finished(bench: Bench, run: str, n: int = N) -> None:
    """The same records as in the quiet run, in order, one line each, and nothing else lying about."""
    assert judged(results(bench.home, run)) == {key: row for key, row in bench.quiet.items() if key[1] < n}
    in_order = [(f"s{i}", draw) for i in range(SAMPLES) for draw in range(n)]
    for name in ("rollouts.jsonl", "results.jsonl"):
        assert keys(lines(bench.home / run / name)) == in_order
    assert (bench.home / run / "samples.jsonl").read_bytes() == (bench.home / "quiet" / "samples.jsonl").read_bytes()
    known = {".lock", "config.yaml", "manifest.json", "summary.json"}
    known |= {"samples.jsonl", "rollouts.jsonl", "results.jsonl"}
    left_over = {path.name for path in (bench.home / run).iterdir()} - known
    assert left_over <= {"reward_output.log"}


def seeded_points(seed: int, size: int) -> list[dict[str, int]]:
    """Bytes up to the size of both journals together, requests, and file operations."""
    dice = random.Random(seed)
    points = [{"bytes": dice.randint(1, size)} for _ in range(48)]
    points += [{"request": dice.randint(1, SAMPLES)} for _ in range(16)]
    points += [{"operation": number} for number in range(1, 33)]
    return points


@pytest.mark.parametrize("part", range(PARTS))  # up to fifty processes each, one after the other
def test_a_run_killed_anywhere_comes_out_the_same_and_pays_only_for_what_was_in_flight(bench: Bench, part: int) -> None:
    journals = [bench.home / "quiet" / name for name in ("rollouts.jsonl", "results.jsonl")]
    size = sum(journal.stat().st_size for journal in journals)
    killed_in: Counter[str] = Counter()
    points = some(list(enumerate(seeded_points(20, size // 2))), 15, "run")[part::PARTS]
    for number, point in points:
        n, cache = 1 + number % 2, number % 3 == 0
        run = f"point-{number}"
        settings = bench.settings(run, n=n, cache=cache, reward="steady" if number % 10 == 7 else "quick")
        if bench.enter(settings, point) == KILLED:
            killed_in["score" if held(bench.home / run / "results.jsonl") else "generate"] += 1
        before, on_disk = bench.paid(), held(bench.home / run / "rollouts.jsonl")
        assert held(bench.home / run / "results.jsonl") <= on_disk, "what is judged is on disk first"
        assert bench.enter(settings) == 0, point
        check_finished(bench, run, n)
        again = before & bench.paid()
        assert len({prompt for prompt, _ in again}) <= CONCURRENCY, (point, again)
        assert before.total() - again.total() >= len(on_disk), point
        shutil.rmtree(bench.home / run)
    assert killed_in.total() >= len(points) * 5 / 6, killed_in
    assert min(killed_in["generate"], killed_in["score"]) >= len(points) / 5, killed_in


def test_a_run_killed_again_and_again_still_ends_and_loses_nothing(bench: Bench) -> None:
    settings = bench.settings("unlucky")
    kills, on_disk = 0, 0
    for attempt in range(30):
        status = bench.enter(settings, {"bytes": 900 + 100 * (attempt % 5)})
        now = len(held(bench.home / "unlucky" / "rollouts.jsonl"))
        assert now >= on_disk, "what was on disk is gone"
        on_disk = now
        if status != KILLED:
            break
        kills += 1
    assert kills >= 5
    assert status == 0
    check_finished(bench, "unlucky")
    paid = bench.paid()
    assert paid.total() - len(paid) <= kills * CONCURRENCY * N


def test_scoring_old_rollouts_survives_kills_and_asks_the_endpoint_nothing(bench: Bench) -> None:
    settings = bench.settings("later")
    assert bench.enter(settings, phase="inference") == 0
    bench.paid()
    statuses = [bench.enter(settings, {"bytes": cut}, phase="execution") for cut in (1, 650, 1300, 2000)]
    assert statuses == [KILLED] * 4
    assert bench.enter(settings, phase="execution") == 0
    check_finished(bench, "later")
    assert not bench.paid()


def test_judging_again_survives_kills_and_keeps_the_old_results_aside(bench: Bench) -> None:
    settings = bench.settings("again")
    assert bench.enter(settings) == 0
    old = lines(bench.home / "again" / "results.jsonl")
    other = settings | {"reward": settings["reward"] | {"params": {"strictness": 2}}}
    for point in ({"operation": 6}, {"operation": 9}, {"bytes": 700}, {"operation": 12}):
        bench.processes.run(config=other, rescore=True, die_at=point)
    assert bench.processes.run(config=other, rescore=True) == 0
    assert judged(results(bench.home, "again")) == bench.quiet
    (kept,) = (bench.home / "again").glob("results.*.jsonl")
    assert lines(kept) == old
    assert bench.enter(settings) == 2, "the first reward must no longer be welcome"


@pytest.mark.parametrize("seed", range(3))
def test_journals_cut_at_any_byte_are_mended(bench: Bench, seed: int) -> None:
    dice = random.Random(seed)
    for number in range(4):
        run = f"cut-{seed}-{number}"
        shutil.copytree(bench.home / "quiet", bench.home / run)
        for name in ("samples.jsonl", "rollouts.jsonl", "results.jsonl"):
            journal = bench.home / run / name
            os.truncate(journal, dice.randint(0, journal.stat().st_size - 1))
        kept = held(bench.home / run / "rollouts.jsonl")
        assert bench.enter(bench.settings(run)) == 0
        check_finished(bench, run)
        assert bench.paid().total() == SAMPLES * N - len(kept)
