# SPDX-License-Identifier: Apache-2.0
"""The file `.env`: what is read of it, what it never changes, and that nobody sees it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reward_kit.cli_commands.dotenv import read_dotenv
from tests.cli_commands.conftest import Call, write_config
from tests.loopback.endpoint import honest, serving
from tests.loopback.runs import config

SECRET = "sk-only-in-the-dotenv-file-0123456789"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("KEY=plain", "plain"),
        ("export KEY = spaced out ", "spaced out"),
        ("KEY=value # a comment", "value"),
        ("KEY=with#inside", "with#inside"),
        ("KEY='as it $IS # here\\n'", "as it $IS # here\\n"),
        ('KEY="two\\nlines \\"quoted\\""', 'two\nlines "quoted"'),
        ("KEY=", ""),
        ("KEY=# nothing", ""),
        ("\ufeffKEY=after a mark", "after a mark"),
        ("KEY=${HOME}", "${HOME}"),
    ],
)
def test_a_line_is_read(tmp_path: Path, line: str, value: str) -> None:
    (tmp_path / ".env").write_text(f"{line}\n", encoding="utf-8")
    variables: dict[str, str] = {}
    assert read_dotenv(tmp_path / ".env", variables) == ["KEY"]
    assert variables == {"KEY": value}


@pytest.mark.parametrize("line", ["# KEY=x", "no variable", "2KEY=x", "KEY", "a b=c", "KEY=nul\0", ""])
def test_what_is_no_variable_is_passed_over(tmp_path: Path, line: str) -> None:
    (tmp_path / ".env").write_text(f"{line}\nOTHER=1\n", encoding="utf-8")
    variables: dict[str, str] = {}
    assert read_dotenv(tmp_path / ".env", variables) == ["OTHER"]
    assert variables == {"OTHER": "1"}


def test_the_environment_counts_first_also_where_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=file\nB=file\nC=file\n")
    variables = {"A": "set", "B": ""}
    assert read_dotenv(tmp_path / ".env", variables) == ["C"]
    assert variables == {"A": "set", "B": "", "C": "file"}


def test_a_folder_or_nothing_is_no_file(tmp_path: Path) -> None:
    assert read_dotenv(tmp_path / ".env", {}) == []
    (tmp_path / ".env").mkdir()
    assert read_dotenv(tmp_path / ".env", {}) == []
    (tmp_path / "large").write_bytes(b"A=1\n" * 300_000)
    assert read_dotenv(tmp_path / "large", {}) == []


def test_the_command_uses_a_key_of_the_file_and_never_shows_it(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_ENDPOINT_KEY", "gone after the test")
    monkeypatch.delenv("MY_ENDPOINT_KEY")
    with serving(honest) as endpoint:
        told = config(tmp_path, endpoint.api_base, generation__api_key_env="MY_ENDPOINT_KEY")
        file = write_config(tmp_path, told)
        assert "'MY_ENDPOINT_KEY' (api_key_env) is not set" in call("run", file).sentence
        (tmp_path / ".env").write_text(f"MY_ENDPOINT_KEY={SECRET}\n")
        said = call("--verbose", "run", file)
    assert said.code == 0, said.err
    assert endpoint.requests
    assert SECRET not in said.out + said.err
    written = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert written and not [path for path in written if SECRET.encode() in path.read_bytes()]


def test_the_library_reads_no_such_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ONLY_FOR_THE_COMMAND=1\n")
    code = "import os, reward_kit, reward_kit.cli, reward_kit.auth; print('ONLY_FOR_THE_COMMAND' in os.environ)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert done.stdout.strip() == "False"


def test_verbose_may_stand_before_the_command(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path))
    quiet, before = call("run", file, "--dry-run"), call("--verbose", "run", file, "dataset.path_or_name=nowhere.jsonl")
    after = call("run", file, "dataset.path_or_name=nowhere.jsonl", "--verbose")
    assert quiet.code == 0 and "Traceback" not in quiet.err
    assert "Traceback" in before.err and before.err.splitlines()[-1] == after.err.splitlines()[-1]
