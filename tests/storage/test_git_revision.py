# SPDX-License-Identifier: Apache-2.0
"""The revision of the working directory: of a clean one, of a changed one, and of none; asked without waiting."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reward_kit.storage.git_revision import GitRevision


def git(*arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    return subprocess.run(["git", *identity, *arguments], capture_output=True, text=True, check=True).stdout.strip()


def answer() -> str | None:
    asked = GitRevision()
    try:
        return asked.answer(patience=20)
    finally:
        asked.close()


def test_the_revision_says_whether_something_was_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    git("init", "-q")
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-q", "-m", "x")
    revision = git("rev-parse", "HEAD")
    assert answer() == revision
    (tmp_path / "a").write_text("2")
    assert answer() == f"{revision}-dirty"


def test_asking_takes_no_lock_that_could_be_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    git("init", "-q")
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-q", "-m", "x")
    os.utime(tmp_path / "a", (1, 1))  # git has to look into the file, and would note that it did
    before = (tmp_path / ".git" / "index").stat().st_mtime_ns
    assert answer() == git("rev-parse", "HEAD")
    assert (tmp_path / ".git" / "index").stat().st_mtime_ns == before


def test_before_the_first_commit_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    git("init", "-q")
    assert answer() is None


def test_outside_of_a_repository_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    assert answer() is None


def test_without_git_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert answer() is None


def test_a_slow_git_keeps_nobody_waiting_and_is_ended_with_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "git"
    slow.write_text('#!/bin/sh\necho started >"$0.log"\nexec sleep 600\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    asked = GitRevision()
    assert asked.answer() is None
    asked.close()
    assert asked.answer() is None
