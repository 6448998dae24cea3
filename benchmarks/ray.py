# SPDX-License-Identifier: Apache-2.0
"""The engine on Ray beside the local one: processor time of all processes, cores kept busy, and what stays flat.

Ray is started beforehand, and is not measured. Each run is in a process of its own, which attaches to it.

    python -m benchmarks ray
    python -m benchmarks.ray run < run.json      one run: what it took, as JSON (the benchmark starts these itself)
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.one_run import peak_bytes
from benchmarks.report import Report, Row
from benchmarks.scene import ROOT, Workshop, mock_server, remote, workshop

__all__ = ["main"]

_CONCURRENCY = 64
_BURN_MS = 5.0
_REWARDS = Path(__file__).with_name("own_rewards.py")
_TRIVIAL, _BURNING = f"{_REWARDS}:contains_answer", f"{_REWARDS}:burn"
"""By their file: the actors have no package of benchmarks."""


class Took(NamedTuple):
    """What one run took."""

    seconds: float
    """Of the clock, from the first sample to the summary."""
    processor: float
    """Of all processes together: the driver, Ray's own and the actors with their workers."""
    driver: float
    """Processor time of the driver alone."""
    peak_megabytes: float
    """Of the driver."""
    batch: float
    """Samples or rollouts in a pack, on average."""


def main(*, quick: bool = False) -> Report:
    """Measure what the issue of running on a cluster is: overhead, scaling and growth."""
    small = 200 if quick else 20_000
    large, rounds = 10 * small, 1 if quick else 3
    with workshop() as shop, mock_server() as api_base, _ray() as address:
        rows = [
            *_overhead(shop, api_base, address, small, rounds),
            *_scaling(shop, address, 100 if quick else 20_000),
            *_growth(shop, address, small, large),
            *_bottleneck(shop, address, small),
        ]
    return Report("ray", "the engine on Ray, beside the local one and beside bare actors", rows)


# ── the questions ────────────────────────────────────────────────────────────────────────────────────────────────────


def _overhead(shop: Workshop, api_base: str, address: str, samples: int, rounds: int) -> list[Row]:
    """A whole run with one generating and one scoring actor, beside the local engine plus bare actors."""
    here, there, bare = [], [], []
    for _ in range(rounds):
        model = remote(api_base, _CONCURRENCY)
        here.append(_run(shop, samples, model))
        there.append(_run(shop, samples, model, _engine(address)))
        bare.append(_bare(address, samples, max(1, round(there[-1].batch))))
    local, ray, actors = (_least(took) for took in (here, there, bare))
    each = 1e6 / samples
    context = (
        f"{ray * each:.0f} µs of processor time per record; the local engine {local * each:.0f}, bare actors that pass "
        f"the same batches ({there[-1].batch:.0f} on average) {actors * each:.0f}"
    )
    what = f"{samples:,} records, 1 + 1 actors, of local + 2 × bare actors"
    return [Row(what, ray / (local + 2 * actors), context, at_most=1.0)]


def _scaling(shop: Workshop, address: str, rollouts: int) -> list[Row]:
    """A reward that computes for 5 ms, on k scoring actors of one core each."""
    rows = []
    for actors in (1, 2):
        model = {"model_name": "mock", "cache": {"enabled": False}}
        took = _run(shop, rollouts, model, _engine(address, score={"actors": actors}), reward=_BURNING)
        ideal = rollouts * _BURN_MS / 1000
        cores = ideal / took.seconds
        context = f"{took.seconds:.1f} s for {ideal:.0f} s of computing"
        rows.append(
            Row(
                f"5 ms of computing, {actors} scoring actors, cores",
                cores,
                context,
                at_least=0.85 * actors,
                unit="cores",
            )
        )
    return rows


def _growth(shop: Workshop, address: str, small: int, large: int) -> list[Row]:
    """Time and memory at ten times the samples, with a model that answers at once."""
    model = {"model_name": "mock", "cache": {"enabled": False}}
    few, many = (_run(shop, samples, model, _engine(address)) for samples in (small, large))
    each = [1e6 * took.processor / samples for took, samples in ((few, small), (many, large))]
    return [
        Row(
            f"processor time per record, {large:,} samples, of {small:,}", each[1] / each[0],
            f"{each[1]:.0f} µs beside {each[0]:.0f} µs, in all processes", at_most=1.1,
        ),
        Row(
            f"peak memory of the driver, {large:,} samples, of {small:,}", many.peak_megabytes / few.peak_megabytes,
            f"{many.peak_megabytes:.0f} MB beside {few.peak_megabytes:.0f} MB", at_most=1.3,
        ),
    ]  # fmt: skip


def _bottleneck(shop: Workshop, address: str, samples: int) -> list[Row]:
    """What the driver itself needs for a record, with actors that do next to nothing: the most it can keep up with."""
    model = {"model_name": "mock", "cache": {"enabled": False}, "api_params": {"max_concurrent_requests": 1024}}
    engine = _engine(address, generate={"actors": 8, "num_cpus": 0.1})
    few, many = (_run(shop, count, model, engine) for count in (samples, 4 * samples))
    each = (many.driver - few.driver) / (3 * samples)  # what starting costs is in both
    context = (
        f"{1e6 * each:.0f} µs of the driver's processor time per record, 8 generating actors, packs of {many.batch:.0f}"
    )
    # Short runs on a busy machine differ by chance, and the longer one may even seem to need less.
    most = 1 / each if each > 0 else math.inf
    return [Row("records per second that one driver can keep up with", most, context, unit="/s")]


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _engine(address: str, **parts: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": "ray", "address": address, "working_dir": _nothing(), **parts}


def _nothing() -> str:
    """A directory for the actors to have a copy of: with nothing in it, not even a file called ray.py."""
    place = Path(tempfile.gettempdir()) / "reward-kit-benchmark-nothing"
    place.mkdir(exist_ok=True)
    return str(place)


def _run(
    shop: Workshop, samples: int, model: Mapping[str, Any], engine: Mapping[str, Any] | None = None,
    reward: str = _TRIVIAL,
) -> Took:  # fmt: skip
    config = shop.config(samples, model, reward=reward)
    told = config.model_dump(mode="json", exclude_none=True, exclude={"generation": {"api_key"}})
    told["engine"] = engine or {"name": "local"}
    return _in_a_process({"config": told, "records": samples}, "run")


def _bare(address: str, samples: int, batch: int) -> Took:
    return _in_a_process({"address": address, "samples": samples, "batch": batch}, "bare")


def _in_a_process(told: Mapping[str, Any], what: str) -> Took:
    before = _processor_of_ray()
    command = [sys.executable, "-m", "benchmarks.ray", what]
    done = subprocess.run(command, input=json.dumps(told), capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"{what} failed: {done.stderr[-2000:]}")
    took = Took(**json.loads(done.stdout.splitlines()[-1]))
    time.sleep(1.0)  # Ray takes note of the actors that have ended
    return took._replace(processor=took.driver + _processor_of_ray() - before)


def _least(runs: list[Took]) -> float:
    return min(took.processor for took in runs)


# ── Ray, started beforehand ──────────────────────────────────────────────────────────────────────────────────────────

_started: list[int] = []
"""The process whose children are all of Ray's."""


@contextlib.contextmanager
def _ray() -> Iterator[str]:
    """A Ray with room for every run, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.ray", "head"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True) as head:
        assert head.stdin is not None and head.stdout is not None
        _started.append(head.pid)
        try:
            yield json.loads(head.stdout.readline())["address"]
        finally:
            head.stdin.close()
            head.wait(60)
            _started.clear()


def _processor_of_ray() -> float:
    """Processor time of Ray's processes, of the actors, and of all that have ended among them."""
    if not _started:
        return math.nan
    parents: dict[int, tuple[int, int]] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (place / "stat").read_text().rpartition(")")[2].split()
                parents[int(place.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    family = {_started[0]}
    while grown := {pid for pid, (parent, _) in parents.items() if parent in family} - family:
        family |= grown
    return sum(ticks for pid, (_, ticks) in parents.items() if pid in family) / os.sysconf("SC_CLK_TCK")


def _serve_head() -> None:
    from reward_kit.config_models import EngineConfig
    from reward_kit.execution.ray_engine.cluster import load_ray, open_cluster

    os.environ["RAY_AUTH_MODE"] = "disabled"
    with open_cluster(EngineConfig.model_validate({"name": "ray", "generate": {"actors": 8}})):
        print(json.dumps({"address": load_ray().get_runtime_context().gcs_address}), flush=True)
        sys.stdin.read()


def _one_run() -> dict[str, float]:
    from benchmarks.scene import timed_run
    from reward_kit.config_models import load_config
    from reward_kit.execution.ray_engine.crew import Crew

    packs = things = 0
    send = Crew._send

    def counted(crew: Crew, member: Any) -> None:
        nonlocal packs, things
        packs, things = packs + 1, things + len(member.things)
        send(crew, member)

    Crew._send = counted  # type: ignore[assignment, method-assign]
    told = json.load(sys.stdin)
    os.environ["RAY_AUTH_MODE"] = "disabled"
    seconds = timed_run(load_config(told["config"]), told["records"])
    return _figures(seconds, things / packs if packs else 0.0)


def _figures(seconds: float, batch: float) -> dict[str, float]:
    times = os.times()
    driver = times.user + times.system + times.children_user + times.children_system
    return {
        "seconds": seconds, "processor": 0.0, "driver": driver, "peak_megabytes": peak_bytes() / 1e6, "batch": batch,
    }  # fmt: skip


def _bare_actors() -> dict[str, float]:
    """Two actors that pass the values of a run on, in the same batches, by Ray's own means."""
    import asyncio

    from reward_kit.execution.ray_engine.cluster import load_ray
    from reward_kit.models import EvaluateResult, Message, Rollout, Sample, Usage

    told = json.load(sys.stdin)
    os.environ["RAY_AUTH_MODE"] = "disabled"
    ray = load_ray()
    ray.init(address=told["address"], log_to_driver=False, logging_level="ERROR")

    class Answering:
        async def pass_on(self, samples: list[Sample]) -> list[Rollout]:
            turn, usage = [Message(role="assistant", content="The answer is 42.")], Usage(prompt_tokens=20)
            return [Rollout(sample=sample, response_index=0, turns=turn, usage=usage) for sample in samples]

    class Judging:
        async def pass_on(self, rollouts: list[Rollout]) -> list[EvaluateResult]:
            return [EvaluateResult(score=1.0, reason="contains it") for _ in rollouts]

    async def pass_all() -> None:
        answering, judging = ray.remote(Answering).remote(), ray.remote(Judging).remote()
        starts = iter(range(0, told["samples"], told["batch"]))

        async def some() -> None:
            for start in starts:
                numbers = range(start, min(start + told["batch"], told["samples"]))
                prompt = "A shop sells {} pens at 3 coins each and 4 books at 11. How much is that in all?"
                turns = ([Message(role="user", content=prompt.format(number))] for number in numbers)
                samples = [Sample(id=f"sample-{n}", messages=each) for n, each in zip(numbers, turns, strict=True)]
                await judging.pass_on.remote(await answering.pass_on.remote(samples))

        await asyncio.gather(*(some() for _ in range(4)))

    start = time.perf_counter()
    asyncio.run(pass_all())
    figures = _figures(time.perf_counter() - start, told["batch"])
    ray.shutdown()
    return figures


if __name__ == "__main__":
    what = sys.argv[1]
    if what == "head":
        _serve_head()
    else:
        print(json.dumps(_one_run() if what == "run" else _bare_actors()))
