# SPDX-License-Identifier: Apache-2.0
"""`reward-kit view` as a process: it says where it is, answers there, and ends quietly."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.analysis.experiments import write_run

pytest.importorskip("duckdb")


def test_it_is_served_on_this_machine_and_ends_quietly(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"q1": [1.0, 0.0], "q2": [0.0, 0.0]})
    command = [sys.executable, "-m", "reward_kit", "view", str(run), "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            told = process.stderr.readline()
            found = re.search(r"1 run to look at: (http://127\.0\.0\.1:\d+)/\?token=(\S+)", told)
            assert found is not None, told
            card = {"reading": 0.0}
            while card["reading"] is not None:  # as the page asks again, where reading takes long
                with urllib.request.urlopen(f"{found[1]}/api/runs?token={found[2]}", timeout=60) as reply:
                    (card,) = json.load(reply)["runs"]
            with urllib.request.urlopen(
                f"{found[1]}/api/runs/{card['key']}/rows?token={found[2]}", timeout=60
            ) as reply:
                assert json.load(reply)["total"] == 2
        finally:
            process.send_signal(signal.SIGINT)
        rest = process.stderr.read()

    assert card["records"] == 4
    assert process.returncode == 0
    assert rest.splitlines() == ["Press Ctrl-C to stop. Anybody who has this address can read the runs."]


_BROWSER = """#!/bin/sh
printf '%s\\n' "$0" "$@" > argv.writing
env >> argv.writing
cp "$1" opened.html
mv argv.writing argv
"""


def test_no_token_is_on_the_browsers_command_line_or_in_its_environment(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"q1": [1.0]})
    browser = tmp_path / "bin" / "xdg-open"
    browser.parent.mkdir()
    browser.write_text(_BROWSER)
    browser.chmod(0o755)
    command = [sys.executable, "-m", "reward_kit", "view", str(run)]
    variables = {**os.environ, "PATH": f"{browser.parent}:{os.environ['PATH']}"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=variables) as process:
        assert process.stderr is not None
        try:
            token = process.stderr.readline().partition("token=")[2].strip()
            while not (tmp_path / "argv").exists():
                assert process.poll() is None
            once = (tmp_path / "opened.html").read_text().partition("token=")[2].partition('"')[0]
            told = (tmp_path / "argv").read_text()
        finally:
            process.send_signal(signal.SIGINT)
            process.stderr.read()

    assert token
    assert once
    assert token not in told
    assert once not in told


@pytest.mark.parametrize(("name", "says"), [("nothing", "There is no"), (".", "There is no run under")])
def test_where_there_is_nothing_it_says_so(tmp_path: Path, name: str, says: str) -> None:
    command = [sys.executable, "-m", "reward_kit", "view", str(tmp_path / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert says in done.stderr
