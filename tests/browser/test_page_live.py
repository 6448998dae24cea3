# SPDX-License-Identifier: Apache-2.0
"""A run that is being made, followed without loading the page again."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.look import Look
from tests.browser.serve import serve

SLOW = """
import asyncio
from pathlib import Path

from reward_kit.models import EvaluateResult
from reward_kit.typed_interface import reward_function

GO = Path(__file__).parent / "go"


async def answer(messages, draw):
    # The first few at once; the others when the test has seen those.
    number = int(messages[-1].text)
    while number >= 10 and not GO.exists():
        await asyncio.sleep(0.02)
    return f"It is {number}."


@reward_function
def judge(messages, ground_truth=None, **kwargs):
    return EvaluateResult(score=1.0, reason="fine")
"""


def test_a_run_is_followed_while_it_runs(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    rows = ({"id": f"q{number}", "user_query": str(number), "ground_truth": "1"} for number in range(40))
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {
        "dataset": {"path_or_name": "rows.jsonl"},
        "generation": {"model_name": "mock", "n": 1, "mock": {"function_path": "slow.py:answer"}},
        "reward": {"function_path": "slow.py:judge", "pass_threshold": 1.0},
        "output": {"output_dir": str(tmp_path / "runs" / "slow")},
    }
    (tmp_path / "slow.yaml").write_text(json.dumps(config))
    command = [sys.executable, "-m", "reward_kit", "run", "slow.yaml"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        results = tmp_path / "runs" / "slow" / "results.jsonl"
        while not (results.exists() and results.read_bytes().count(b"\n") >= 5):
            assert running.poll() is None
            time.sleep(0.05)
        with serve(tmp_path / "runs") as served, Look.open(browser, served) as look:
            look.go("/runs/{slow}")
            look.see("h1 .badge.live", "running")
            look.page.evaluate("() => { window.here = true; }")
            (tmp_path / "go").touch()
            look.see(".big", "of 40 records")
            look.until("() => document.querySelector('h1 .badge') === null")
            assert look.page.evaluate("() => window.here") is True
            assert running.wait(60) == 0
            look.go("/runs/{slow}/table")
            look.see(".total", "40 samples")
            look.assert_clean()
    finally:
        (tmp_path / "go").touch()
        running.wait(60)
