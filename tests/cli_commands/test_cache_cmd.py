# SPDX-License-Identifier: Apache-2.0
"""`reward-kit cache`: what it holds, and how it is made smaller."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli_commands.conftest import Call, write_config
from tests.loopback.runs import config


@pytest.fixture
def filled(tmp_path: Path, call: Call) -> Path:
    told = config(tmp_path, generation__n=2, generation__cache={"enabled": True, "cache_dir": str(tmp_path / "cache")})
    assert call("run", write_config(tmp_path, told), "-q").code == 0
    return tmp_path / "cache"


def test_info_says_how_many_answers_of_which_model(filled: Path, call: Call) -> None:
    said = call("cache", "info", "--cache-dir", filled)
    assert said.code == 0
    assert "8 answers" in said.out
    assert "mock" in said.out


def test_info_of_nothing_is_nothing(tmp_path: Path, call: Call) -> None:
    said = call("cache", "info", "--cache-dir", tmp_path / "missing")
    assert said.code == 0
    assert "0 answers" in said.out


def test_prune_removes_what_was_asked_for(filled: Path, call: Call) -> None:
    assert "kept 8 answers" in call("cache", "prune", "--cache-dir", filled, "--older-than", "30d").out
    some = call("cache", "prune", "--cache-dir", filled, "--max-size", "1k")
    assert some.code == 0
    assert "kept 8" not in some.out
    assert "kept 0 answers" in call("cache", "prune", "--cache-dir", filled, "--all").out


@pytest.mark.parametrize(
    "option", [("--older-than", "soon"), ("--older-than", "-3d"), ("--max-size", "big"), ("--max-size", "-1G")]
)
def test_an_age_or_size_that_is_none_is_one_sentence(filled: Path, call: Call, option: tuple[str, str]) -> None:
    said = call("cache", "prune", "--cache-dir", filled, *option)
    assert said.code == 2
    assert option[1] in said.sentence
    assert "8 answers" in call("cache", "info", "--cache-dir", filled).out
