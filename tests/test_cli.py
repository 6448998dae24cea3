# SPDX-License-Identifier: Apache-2.0
"""The command line itself: help that imports nothing, errors in one sentence, bugs with their traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

import reward_kit.cli
from reward_kit import __version__
from reward_kit.cli import COMMANDS, cli, main
from reward_kit.errors import ConfigError, DatasetError, EndpointError, StorageError

HEAVY = (
    "hydra",
    "omegaconf",
    "aiohttp",
    "pydantic",
    "rich",
    "jinja2",
    "pyarrow",
    "asyncio",
    "yaml",
    "orjson",
    "cloudpickle",
)


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom reward_kit.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        f"print('LOADED', sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    assert python(code).splitlines()[-1] == "LOADED []"


def test_help_lists_every_command_with_the_line_its_own_help_begins_with(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leave:
        main(["--help"])
    assert leave.value.code == 0
    shown = capsys.readouterr().out
    for name, entry in COMMANDS.items():
        assert f"{name} " in shown
        assert entry.summary in shown
        assert cli.get_command(None, name) is not None  # type: ignore[arg-type]  # lazily loaded: no context is needed


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leave:
        main([name, "--help"])
    assert leave.value.code == 0
    assert f"Usage: reward-kit {name}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["review"], ["report"], ["inspect"], ["export"], ["rewards", "check"]])
def test_a_number_without_bounds_has_none_in_its_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    shown = capsys.readouterr().out
    assert "--threshold" in shown and "None" not in shown


def test_the_module_is_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reward_kit", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == f"reward-kit, version {__version__}"


@pytest.mark.parametrize(
    ("error", "code"),
    [(ConfigError("wrong"), 2), (DatasetError("wrong"), 2), (StorageError("wrong"), 1), (EndpointError("wrong"), 1)],
)
def test_an_error_of_ours_is_one_sentence(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reward_kit.cli.cli, "main", _raising(error))
    with pytest.raises(SystemExit) as leave:
        main(["run"])
    assert leave.value.code == code
    assert capsys.readouterr().err == "Error: wrong\n"


@pytest.mark.parametrize("error", [ConfigError("wrong"), KeyError("wrong")])
def test_an_error_is_shown_with_its_traceback_when_asked_for(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reward_kit.cli.cli, "main", _raising(error))
    with pytest.raises(SystemExit) as leave:
        main(["run", "--verbose"])
    assert leave.value.code in {1, 2}
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert shown.splitlines()[-1].startswith("Error: ")


def test_a_bug_is_a_sentence_that_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(reward_kit.cli.cli, "main", _raising(KeyError("a bug")))
    with pytest.raises(SystemExit) as leave:
        main(["run"])
    assert leave.value.code == 1
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("Error: This is a bug in reward-kit")
    assert "--verbose" in sentence


def test_windows_is_told_where_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match="inside WSL"):
        main(["doctor"])


def test_an_interrupt_is_130_and_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reward_kit.cli.cli, "main", _raising(KeyboardInterrupt()))
    with pytest.raises(SystemExit) as leave:
        main(["run"])
    assert leave.value.code == 130
    assert capsys.readouterr() == ("", "Interrupted. Run the same command again to go on.\n")


def test_a_command_that_is_nearly_one_is_recognised(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leave:
        main(["rnu"])
    assert leave.value.code == 2
    assert "Did you mean 'run'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "end"),
    [
        (["regenerate"], "Missing argument 'STORED'. See `reward-kit regenerate --help`."),
        (["rewards", "check", "math", "nosuch"],
         "Invalid value for 'CASES': File 'nosuch' does not exist. See `reward-kit rewards check --help`."),
        (["run", "--jsn"], " See `reward-kit run --help`."),
        (["rnu"], " Did you mean 'run'? See `reward-kit --help`."),
    ],
)  # fmt: skip
def test_wrong_usage_ends_with_where_help_is(
    arguments: list[str], end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as leave:
        main(arguments)
    assert leave.value.code == 2
    said = capsys.readouterr().err
    assert said.splitlines()[-1].startswith("Error: ")
    assert said.endswith(f"{end}\n")
    assert said.count("--help") == 1


def test_help_is_not_named_twice(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    context = click.Context(reward_kit.cli.cli, info_name="reward-kit")
    error = click.UsageError("Nothing is named. `reward-kit run --help` shows examples.", context)
    monkeypatch.setattr(reward_kit.cli.cli, "main", _raising(error))
    with pytest.raises(SystemExit):
        main(["run"])
    assert capsys.readouterr().err.splitlines()[-1].endswith("shows examples.")


def test_output_into_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    assert reader.stdin is not None
    reader.wait()
    done = subprocess.run(
        [sys.executable, "-m", "reward_kit", "--help"],
        stdout=reader.stdin,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    reader.stdin.close()
    assert "Traceback" not in done.stderr


def _raising(error: BaseException) -> object:
    def fail(**_: object) -> None:
        raise error

    return fail
