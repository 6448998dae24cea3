# SPDX-License-Identifier: Apache-2.0
"""`kill -9` at random moments of a run by batches: nothing is submitted twice, and the records are the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.loopback.batches import KEY, Provider, serving
from tests.loopback.runs import config, judged, lines, questions, results

STEPS = ("upload", "create", "list", "state", "content")
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


class Killer:
    """Kills a process at the k-th step that the provider sees, a moment before or after it is answered."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.at: tuple[str, int] | None = None
        self.delay = 0.0

    def arm(self, process: subprocess.Popen[bytes], step: str, times: int, delay: float) -> None:
        self.process, self.at, self.delay = process, (step, times), delay

    def __call__(self, step: str) -> None:
        if self.at is None or step != self.at[0]:
            return
        self.at = (step, self.at[1] - 1)
        if self.at[1] <= 0 and self.process is not None:
            process, self.process, self.at = self.process, None, None
            if self.delay:
                threading.Timer(self.delay, process.kill).start()
            else:
                process.kill()


def rows_of(home: Path) -> dict[Any, Any]:
    """What must be the same however often the run was killed: what was judged, and what it cost."""
    rows = results(home)
    return {key: {**row, "cost": rows[key]["cost"], "cached": rows[key]["cached"]} for key, row in judged(rows).items()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Any]:
    home = tmp_path_factory.mktemp("undisturbed")
    provider = Provider(polls=2)
    with serving(provider) as base:
        (home / "conf.yaml").write_text(yaml.safe_dump(settings(home, base)))
        assert finished(home)[0] == 0
    return rows_of(home)


@pytest.mark.parametrize("seed", range(3))
def test_a_run_killed_again_and_again_is_the_undisturbed_one(
    tmp_path: Path, seed: int, undisturbed: dict[Any, Any]
) -> None:
    chance = random.Random(seed)
    killer = Killer()
    provider = Provider(polls=2, page=2, on_step=killer, seed=seed)
    provider.end = lambda number: "expired" if number == seed % 3 else "completed"
    with serving(provider) as base:
        (tmp_path / "conf.yaml").write_text(yaml.safe_dump(settings(tmp_path, base)))
        for step in chance.sample(STEPS, 3):
            process = start(tmp_path)
            killer.arm(process, step, chance.randint(1, 3), chance.choice([0.0, 0.0, 0.02, 0.2]))
            _, told = process.communicate(timeout=120)
            assert process.returncode in {0, -signal.SIGKILL}, told.decode()
        killer.at = None
        code, told_last = finished(tmp_path)
        assert code == 0, told_last
    assert provider.complaints == []
    assert set(provider.answered.values()) == {1}, "an answer was paid for twice, or never"
    answered_or_expired = {key: provider.asked[key] for key in provider.asked if provider.asked[key] > 2}
    assert answered_or_expired == {}
    assert rows_of(tmp_path) == undisturbed


def test_killed_between_submitting_and_noting_it_finds_its_batch_again(
    tmp_path: Path, undisturbed: dict[Any, Any]
) -> None:
    """The provider makes the batch, and the command dies before it hears of it."""
    provider = Provider(polls=2, page=1, faults={"create": ["deaf"]})
    provider_create = provider._make

    def make_and_kill(*given: Any) -> Any:
        batch = provider_create(*given)
        if len(provider.batches) == 1:
            process.kill()
            process.wait()
        return batch

    provider._make = make_and_kill  # type: ignore[method-assign, assignment]
    with serving(provider) as base:
        (tmp_path / "conf.yaml").write_text(yaml.safe_dump(settings(tmp_path, base)))
        process = start(tmp_path)
        process.communicate(timeout=120)
        events = [line["event"] for line in lines(tmp_path / "run/batches.jsonl")]
        assert "submitting" in events and "batch_0" in provider.batches
        assert finished(tmp_path)[0] == 0
    assert set(provider.asked.values()) == {1}
    assert rows_of(tmp_path) == undisturbed


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
