# SPDX-License-Identifier: Apache-2.0
"""Escape sequences in what others wrote never reach the screen: not from answers, exceptions, names or metrics."""

# ruff: noqa: E501 - tables of cases read best on one line

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from reward_kit.cli_commands.output import make_console, shown
from tests.cli_commands.conftest import Call, Said

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x08\u202eevil\u2066[bold]x[/bold]\x7f\ufeff"
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")

REWARD = f"""
from reward_kit import reward_function
EVIL = {EVIL!a}

@reward_function
def judge(messages, **kwargs):
    if "raise" in messages[0].content:
        raise ValueError(EVIL)
    return {{"score": 1.0, "reason": EVIL, "metrics": {{EVIL: {{"score": 1.0, "reason": EVIL, "success": True}}}}}}
"""


def clean(said: Said) -> None:
    assert not ACTING.search(said.out), ascii(said.out)
    assert not ACTING.search(said.err), ascii(said.err)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "reward.py").write_text(REWARD)
    rows = [{"id": f"1{EVIL}", "user_query": EVIL}, {"id": "2", "user_query": "please raise"}]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = {
        "dataset": {"path_or_name": "data.jsonl"},
        "generation": {"model_name": "mock", "mock": {"responses": [EVIL]}, "cache": {"cache_dir": "cache"}},
        "reward": {"function_path": "reward.py:judge"},
        "output": {"output_dir": "out"},
    }
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(told))
    return tmp_path


def test_every_command_prints_what_others_wrote_without_its_escapes(home: Path, call: Call) -> None:
    clean(call("run", "run.yaml", "--verbose"))
    for command in (
        ["run", "run.yaml", "--json"], ["inspect", "out"], ["inspect", "out", "--query", "2"],
        ["inspect", "out", "--query", f"1{EVIL}"], ["inspect", "out", "--format", "json"],
        ["inspect", "out", "--format", "csv"], ["inspect", "out", "--format", "markdown"],
        ["export", "out", "--to", "sft", "-o", f"{EVIL.replace('/', '')}.jsonl"], ["merge", "out", "-o", "merged"],
        ["merge", f"no{EVIL}", "-o", "merged2"], ["cache", "info", "--cache-dir", "cache"], ["cache", "info", "--cache-dir", EVIL],
        ["rewards", "try", "reward.py:judge", "--answer", EVIL], ["rewards", "show", EVIL], [EVIL], ["run", f"--{EVIL}"],
        ["rewards", "try", "reward.py:judge", "--answer", EVIL, "--json"], ["run", f"{EVIL}.yaml"], ["init", EVIL],
        ["rewards", "try", "reward.py:judge", "--prompt", "raise", "--answer", "x", "--verbose"],
        ["run", "run.yaml", f"generation.model_name={EVIL}"], ["run", "run.yaml", f"output.output_dir='{EVIL}'"],
        ["regenerate", "out", "-r", "reward.py:judge", "--model", "mock", "-o", "again"],
        ["shell", "--model", EVIL, "--dataset", EVIL], ["best-of-n", "--dataset", EVIL, "--model", EVIL],
    ):  # fmt: skip
        clean(call(*command))


def test_what_is_shown_can_still_be_read() -> None:
    assert shown("a\x1b[31mb\u202ec") == "a\\x1b[31mb\\u202ec"
    assert shown("tab\tand line\n, café, 日本語, 👩\u200d💻") == "tab\tand line\n, café, 日本語, 👩\u200d💻"


def test_a_terminal_gets_the_colours_of_ours_and_none_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    make_console(force_terminal=True, color_system="standard", width=80).print(
        "[red]ours[/] \x1b[32mtheirs", highlight=False
    )
    printed = capsys.readouterr().out
    assert "\x1b[31mours" in printed
    assert "\x1b[32m" not in printed
