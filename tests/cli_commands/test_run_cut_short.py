# SPDX-License-Identifier: Apache-2.0
"""`reward-kit run` cut short: by a full disk, by Ctrl-C, by somebody in a hurry. Nothing is lost, and it goes on."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cli_commands.conftest import start, write_config
from tests.generation.loopback import Reaction
from tests.loopback.endpoint import honest, serving
from tests.loopback.runs import config, lines, questions, results

SECRET = "sk-do-not-tell-anyone-0123456789"


# ── no room on the disk ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kilobytes", [1, 3, 8, 32])
def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path: Path, kilobytes: int) -> None:
    """No file may grow beyond a few kilobytes, as on a disk with as much room left."""
    with serving(honest) as endpoint:
        told = config(tmp_path, endpoint.api_base, rows=questions(60), generation__seed=3)
        file = write_config(tmp_path, told)
        limited = start(tmp_path, "run", file, room=kilobytes * 1024)
        _, err = limited.communicate(timeout=60)
        assert limited.returncode == 1, err
        assert "Traceback" not in err
        assert "make room" in err or "room" in err
        generated = (
            len(lines(tmp_path / "run" / "rollouts.jsonl")) if (tmp_path / "run" / "rollouts.jsonl").exists() else 0
        )
        sent = len(endpoint.requests)
        assert sent - generated <= 2 * 4, (
            "only what was in flight, or was asked for before the failure was seen, is lost"
        )
        roomy = start(tmp_path, "run", file, "-q")
        roomy.communicate(timeout=60)
        assert roomy.returncode == 0
        assert len(endpoint.requests) == sent + 60 - generated
    assert list(results(tmp_path)) == [(f"s{i}", 0) for i in range(60)]


# ── Ctrl-C ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def wait_for(path: Path, size: int) -> None:
    deadline = time.monotonic() + 100
    while not (path.exists() and path.stat().st_size >= size) and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_go_on_and_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    with serving(honest) as endpoint:
        params = {"max_concurrent_requests": 2, "rate_limit_qps": 20}
        told = config(tmp_path, endpoint.api_base, rows=questions(60), reward="steady", generation__api_params=params,
                      generation__api_key=SECRET)  # fmt: skip
        file = write_config(tmp_path, told)
        process = start(tmp_path, "run", file, "evaluation_params.limit_samples=50", f"generation.api_key={SECRET}")
        wait_for(tmp_path / "run" / "results.jsonl", 2000)
        process.send_signal(number)
        _, err = process.communicate(timeout=100)
        assert process.returncode == 130, err
        assert "Traceback" not in err
        assert f"reward-kit run {file} evaluation_params.limit_samples=50" in err
        assert SECRET not in err
        done = len(lines(tmp_path / "run" / "rollouts.jsonl"))
        assert 0 < done < 50
        assert len(lines(tmp_path / "run" / "results.jsonl")) == done, "what was generated is judged before leaving"
        assert len(endpoint.requests) == done, "nothing in flight is thrown away"
        resumed = start(
            tmp_path, "run", file, "evaluation_params.limit_samples=50", "--json", "-q", "~generation.api_params"
        )
        out, _ = resumed.communicate(timeout=60)
        assert resumed.returncode == 0
        assert orjson.loads(out)["judged"] == 50
        assert len(endpoint.requests) == 50
    assert list(results(tmp_path)) == [(f"s{i}", 0) for i in range(50)]
    assert "interrupted" in (tmp_path / "run" / "manifest.json").read_text()


def test_a_second_interrupt_does_not_wait(tmp_path: Path) -> None:
    async def hang(_: Any) -> None:
        await asyncio.sleep(600)

    def react(body: dict[str, Any], number: int) -> Reaction:
        return honest(body, number) if number <= 2 else hang

    with serving(react) as endpoint:
        file = write_config(tmp_path, config(tmp_path, endpoint.api_base, rows=questions(20), reward="steady"))
        process = start(tmp_path, "run", file)
        wait_for(tmp_path / "run" / "results.jsonl", 500)
        process.send_signal(signal.SIGINT)
        time.sleep(1.0)  # two signals at once would be one
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=100)
        assert process.returncode == 130, err
        assert "Traceback" not in err
    phases = orjson.loads((tmp_path / "run" / "manifest.json").read_bytes())["phases"]
    assert phases[-1]["error"].startswith("KeyboardInterrupt"), "it did not wait until what was in flight was given up"
    assert len(lines(tmp_path / "run" / "rollouts.jsonl")) == 2


def test_a_reward_that_blocks_the_loop_is_named_and_can_be_interrupted(tmp_path: Path) -> None:
    file = write_config(tmp_path, config(tmp_path, reward="blocking", reward__timeout=0.5))
    with start(tmp_path, "run", file) as process:
        assert process.stderr is not None
        told = next(line for line in process.stderr if "has blocked" in line)
        assert "'blocking'" in told and "sample 's2'" in told and "rewards.py, line" in told
        for _ in range(20):  # the first asks for a gentle end, and nobody listens
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.2)
                break
        else:
            process.kill()
        assert process.wait() == 130
    assert len(lines(tmp_path / "run" / "rollouts.jsonl")) == 4
