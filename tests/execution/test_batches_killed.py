# SPDX-License-Identifier: Apache-2.0
"""`kill -9` at each moment of a run by batches: nothing is paid for twice, and the records are the same."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from reward_kit.cli import cli
from tests.loopback.batches import ACCOUNT, KEY, Provider, serving
from tests.loopback.faults import MORE, some
from tests.loopback.runs import config, judged, questions, results
from tests.loopback.zygote import Zygote

COUNT, N = 6, 3
pytestmark = pytest.mark.timeout(400)  # each test starts several processes, one after the other


def settings(home: Path, base: str) -> dict[str, Any]:
    return config(
        home, base, rows=questions(COUNT), generation__transport="batch", generation__n=N,
        generation__api_key_env="BATCH_KEY",
        generation__batch={"poll_seconds": 0.02, "max_requests": 7},
        generation__price={"input": 2.0, "output": 4.0},
    )  # fmt: skip


def start(home: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "reward_kit.cli", "run", str(home / "conf.yaml"), "--quiet", *more]
    environment = {**os.environ, "BATCH_KEY": KEY}
    return subprocess.Popen(command, cwd=home, env=environment, stderr=subprocess.PIPE)


def finished(home: Path, *more: str) -> tuple[int, str]:
    process = start(home, *more)
    _, told = process.communicate(timeout=120)
    return process.returncode, told.decode()


def rows_of(home: Path, run: str = "run") -> dict[Any, Any]:
    """What must be the same however often the run was killed: what was judged, and what it cost."""
    rows = results(home, run)
    return {
        key: {**row, "cost": rows[key]["cost"], "cached": rows[key]["cached"], "model": "m"}
        for key, row in judged(rows).items()
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Any]:
    home = tmp_path_factory.mktemp("undisturbed")
    provider = Provider(polls=2)
    with serving(provider) as base:
        (home / "conf.yaml").write_text(yaml.safe_dump(settings(home, base)))
        assert finished(home)[0] == 0
    return rows_of(home)


# ── kill -9 at every write and every request ─────────────────────────────────────────────────────────────────────────

MARKS = ("metadata", "input_file_id")


def without(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda batch: {name: value for name, value in batch.items() if name not in names}


def extended(batch: dict[str, Any]) -> dict[str, Any]:
    more = {"team": "evals", "batch_type": "chat"} | (batch["metadata"] or {})
    return {**batch, "metadata": more, "input_file_id": f"other-{batch['input_file_id']}"}


def only_the_run(batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, "metadata": {"reward_kit_run": batch["metadata"]["reward_kit_run"]}}


def only_the_time(batch: dict[str, Any]) -> dict[str, Any]:
    made = datetime.fromtimestamp(batch["created_at"], UTC).isoformat()
    return {**without(*MARKS)(batch), "created_at": made}


@dataclass
class Shape:
    """What a provider keeps of a batch."""

    tells: Callable[[dict[str, Any]], dict[str, Any]] = dict
    most_requests: int = 7
    fireworks: bool = False


def of_a_file_of_its_own(batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, "metadata": None, "input_file_id": f"s3://kept/{batch['input_file_id']}"}


SHAPES = {
    "all": Shape(),
    "extended, of another file": Shape(extended),
    "no metadata": Shape(without("metadata")),
    "metadata null": Shape(lambda batch: {**batch, "metadata": None}),
    "metadata a text": Shape(lambda batch: {**batch, "metadata": str(batch["metadata"])}),
    "no file": Shape(without("input_file_id")),
    "only the run": Shape(only_the_run),
    "only the time": Shape(only_the_time, most_requests=100),
    "fireworks": Shape(fireworks=True),
}
UNKNOWABLE = Shape(of_a_file_of_its_own, most_requests=100)
"""Where there is only the time, one file of requests: of several in doubt nobody could say which is which."""


class Point(NamedTuple):
    """Where a process dies."""

    kind: str
    """`operation`, `bytes`, or a step that the provider sees."""
    number: int
    heard: bool = True
    """Whether the provider goes on with a step that it saw, and says nothing to anybody."""
    elsewhere: bool = False
    """Whether somebody goes on from the mirror, in another directory."""


class Bench:
    """A provider, and a zygote whose children are killed at a point."""

    def __init__(self, home: Path, shape: Shape, processes: Zygote) -> None:
        self.home, self.processes = home, processes
        self.provider = Provider(polls=2, page=2, on_step=self.on_step, tells=shape.tells)
        self.provider.end = lambda number: "completed" if number else "expired"
        self.shape = shape
        self.steps: Counter[str] = Counter()
        self.dies_at: Point | None = None
        self.pid = 0

    def on_step(self, step: str) -> None:
        self.steps[step] += 1
        point = self.dies_at
        if point is not None and point.kind == step and self.steps[step] == point.number:
            self.dies_at = None
            os.kill(self.pid, signal.SIGKILL)
            if not point.heard:
                raise asyncio.CancelledError

    def settings(self, base: str, run: str, mirror: str | None) -> dict[str, Any]:
        values = settings(self.home, base)
        values["generation"]["batch"]["max_requests"] = self.shape.most_requests
        values["output"] = {"output_dir": str(self.home / run), "mirror": mirror, "mirror_seconds": 0.02}
        if self.shape.fireworks:
            values["generation"] |= {
                "model_name": "accounts/fireworks/models/m",
                "api_base": base.replace("/v1", "/inference/v1"),
            }
            values["generation"]["batch"] |= {"provider": "fireworks", "account": ACCOUNT}
        return values

    def enter(self, values: dict[str, Any], point: Point | None = None, *, resume: bool = False) -> int:
        self.steps.clear()
        self.dies_at = point
        die_at = {point.kind: point.number} if point is not None and point.kind in {"operation", "bytes"} else {}
        self.pid = self.processes.start(
            config=values, die_at=die_at, resume_from_mirror=resume, stderr=str(self.home / "complaints")
        )
        status = self.processes.wait()
        self.dies_at = None
        return status


@pytest.fixture(scope="module")
def processes() -> Iterator[Zygote]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BATCH_KEY", KEY)
        yield Zygote("reward_kit.storage.mirror.background", "tests.loopback.local_store")


def points(steps: Counter[str], size: int) -> list[Point]:
    """Every request in both ways, every line of the journals at its first byte and its last, every file operation."""
    found = [
        Point(step, number, heard=heard)
        for step, times in sorted(steps.items())
        for number in range(1, times + 1)
        for heard in ((True,) if step.endswith("done") else (True, False))
    ]
    found += [Point("operation", number) for number in range(1, 90)]
    found += [Point("bytes", place) for place in range(1, size, max(1, size // 60))]
    return [found[place]._replace(elsewhere=elsewhere) for place in range(len(found)) for elsewhere in (False, True)]


def submitting(steps: Counter[str]) -> list[Point]:
    """The points at which it is not known here whether the provider has taken a batch."""
    return [point for point in points(steps, 2) if point.kind.startswith("create")]


@pytest.mark.timeout(3000 if MORE else 400)
@pytest.mark.parametrize("name", SHAPES)
def test_killed_anywhere_it_pays_for_nothing_twice(
    tmp_path: Path, name: str, processes: Zygote, undisturbed: dict[Any, Any]
) -> None:
    shape = SHAPES[name]
    quiet = Bench(tmp_path, shape, processes)
    with serving(quiet.provider) as base:
        config(tmp_path, rows=questions(COUNT))
        assert quiet.enter(quiet.settings(base, "quiet", None)) == 0
        steps = Counter(quiet.steps)
    size = sum(path.stat().st_size for path in (tmp_path / "quiet").glob("*.jsonl"))
    chosen = some(points(steps, size), 3, f"any {name}") + some(submitting(steps), 2, f"submitting {name}")
    killed = 0
    for number, point in enumerate(dict.fromkeys(chosen)):
        bench = Bench(tmp_path, shape, processes)
        with serving(bench.provider) as base:
            mirror = f"kept://{tmp_path}/mirror-{number}" if point.elsewhere else None
            killed += bench.enter(bench.settings(base, f"run-{number}", mirror), point) == -signal.SIGKILL
            resume = mirror is not None and (tmp_path / f"mirror-{number}" / "mirror.json").exists()
            last = f"run-{number}-elsewhere" if resume else f"run-{number}"
            assert bench.enter(bench.settings(base, last, mirror), resume=resume) == 0, point
        assert bench.provider.complaints == []
        assert set(bench.provider.answered.values()) == {1}, (point, "an answer was paid for twice, or never")
        half_answered = {key: times for key, times in bench.provider.asked.items() if times > 2}
        assert not half_answered, point
        assert len(bench.provider.batches) == steps["create"], (point, "a batch was made twice")
        assert rows_of(tmp_path, last) == undisturbed, point
    assert killed >= len(chosen) / 3, killed


def test_a_batch_that_nobody_can_tell_from_others_is_decided_on_by_a_person(
    tmp_path: Path, processes: Zygote, undisturbed: dict[Any, Any]
) -> None:
    """The same in each case: the run stops and says how to decide; then it goes on as it was told."""
    taken = Point("create done", 1)
    lost = Point("create", 1, heard=False)

    def another(bench: Bench) -> None:
        bench.provider.batches["batch_of_others"] = replace(bench.provider.batches["batch_0"], id="batch_of_others")

    def no_list(bench: Bench) -> None:
        bench.provider.faults["list"] = ["405"] * 50

    only_time = SHAPES["only the time"]
    cases: list[tuple[Shape, Point, Callable[[Bench], None], list[str]]] = [
        (only_time, taken, another, ["--adopt", "batch_0"]),
        (only_time, taken, no_list, ["--adopt", "batch_0"]),
        (only_time, lost, no_list, ["--submit-again"]),
        (UNKNOWABLE, taken, lambda bench: None, ["--adopt", "batch_0"]),
    ]
    for number, (shape, point, hide, decision) in enumerate(cases):
        bench = Bench(tmp_path, shape, processes)
        with serving(bench.provider) as base:
            values = bench.settings(base, f"run-{number}", None)
            assert bench.enter(values, point) == -signal.SIGKILL
            hide(bench)
            assert [bench.enter(values), bench.enter(values)] == [2, 2]
            complaints = tmp_path / "complaints"
            said = complaints.read_text()
            complaints.unlink()
            assert said.count("does not tell whether") == said.count("--submit-again") == 2, said
            directory = str(tmp_path / f"run-{number}")
            cli.main(["batches", "decide", directory, *decision], standalone_mode=False)
            bench.provider.batches.pop("batch_of_others", None)
            assert bench.enter(values) == 0
        assert set(bench.provider.answered.values()) == {1}
        assert rows_of(tmp_path, f"run-{number}") == undisturbed


def test_a_journal_that_was_cut_off_has_no_batch_made_again(
    tmp_path: Path, processes: Zygote, undisturbed: dict[Any, Any]
) -> None:
    config(tmp_path, rows=questions(COUNT))
    for number, event in enumerate((b'"submitted"', b'"submitting"', b'"uploaded"', b'"prepared"')):
        bench = Bench(tmp_path, Shape(most_requests=100), processes)
        bench.provider.end = lambda number: "completed"
        with serving(bench.provider) as base:
            values = bench.settings(base, f"run-{number}", None)
            assert bench.enter(values, Point("state", 1)) == -signal.SIGKILL
            journal = tmp_path / f"run-{number}" / "batches.jsonl"
            whole = journal.read_bytes()
            journal.write_bytes(whole[: whole.index(event) + 3])
            assert bench.enter(values) == 0
        assert len(bench.provider.batches) == 1, (event, "a batch was made twice")
        assert rows_of(tmp_path, f"run-{number}") == undisturbed


def test_interrupted_it_says_how_to_come_back_and_how_to_cancel(tmp_path: Path) -> None:
    looked = threading.Event()
    provider = Provider(polls=10_000, on_step=lambda step: looked.set() if step == "state" else None)
    with serving(provider) as base:
        (tmp_path / "conf.yaml").write_text(yaml.safe_dump(settings(tmp_path, base)))
        command = [sys.executable, "-m", "reward_kit.cli", "run", str(tmp_path / "conf.yaml")]
        process = subprocess.Popen(
            command, cwd=tmp_path, env={**os.environ, "BATCH_KEY": KEY}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert looked.wait(60)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=60)[0].decode()
        assert process.returncode == 130, told
        assert told.count("reward-kit batches cancel") == told.lower().count("the same command") == 1, told
        assert not any(batch.cancelled for batch in provider.batches.values())
        command.append("--detach")
        left = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, "BATCH_KEY": KEY}, capture_output=True, check=False
        )
        told = (left.stdout + left.stderr).decode()
        assert left.returncode == 6, told
        assert told.count("reward-kit batches cancel") == told.lower().count("the same command") == 1, told
        provider.polls = 1
        assert finished(tmp_path)[0] == 0
    assert set(provider.answered.values()) == {1}
