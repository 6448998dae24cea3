# SPDX-License-Identifier: Apache-2.0
"""What several commands say alike."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from reward_kit.cli_commands.display.shell import ShellDisplay
from reward_kit.cli_commands.options import check_arguments
from reward_kit.cli_commands.output import failure_lines, same_command
from reward_kit.execution.shell import ShellEvaluation, shell_config


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (["run", "my conf.yaml", "generation.n=8"], ["run", "my conf.yaml", "generation.n=8"]),
        (["run", "c.yaml", "generation.api_key=SECRET"], ["run", "c.yaml", "generation.api_key=…"]),
        (["run", "c.yaml", "generation={api_key: SECRET, n: 2}"], ["run", "c.yaml", "generation={api_key: …, n: 2}"]),
        (["shell", "--api-key", "SECRET", "--model", "m"], ["shell", "--api-key", "…", "--model", "m"]),
        (["shell", "--api-key=SECRET"], ["shell", "--api-key=…"]),
        (["shell", "--api-key"], ["shell", "--api-key"]),
    ],
)
def test_the_command_that_goes_on_is_the_one_that_was_typed_without_its_key(typed: list[str], shown: list[str]) -> None:
    check_arguments(typed)
    assert shlex.split(same_command()) == ["reward-kit", *shown]


def test_what_is_to_be_added_to_a_command_is_added_once() -> None:
    for given in (["shell", "--model", "m"], ["shell", "--model", "m", "--retry-failed"]):
        check_arguments(given)
        assert same_command("--retry-failed") == "reward-kit shell --model m --retry-failed"


def test_a_directory_is_shown_as_it_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    directory = Path("results[bold]", "a[", "b]")
    ShellDisplay(quiet=False, as_json=False).announce(
        "inference", ShellEvaluation(shell_config({"output.output_dir": str(directory)}))
    )
    assert str(directory) in capsys.readouterr().err


def test_a_long_message_keeps_its_end_which_says_most_of_why_a_program_ended() -> None:
    trace = "The server ended. It wrote: " + "frame of a library, " * 100 + "KeyError: 'the table that is missing'"
    (line,) = failure_lines({"failures_by_kind": {"generate: X": 1}, "failure_examples": {"generate: X": trace}})
    assert "The server ended." in line and line.endswith("KeyError: 'the table that is missing'") and len(line) < 400
