# SPDX-License-Identifier: Apache-2.0
"""The run directory: one process at a time, the same settings each time, and files that are never half written."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
from pathlib import Path

import orjson
import pytest

from reward_kit.errors import StorageError
from reward_kit.storage.run_directory import Claim, RunDirectory, digest_of

ADVICE = "Choose another."


def make(path: Path, **settings: object) -> None:
    with RunDirectory(path) as directory:
        directory.claim(Claim("rollouts", digest_of(settings), settings, ADVICE))
        directory.rollouts_path.write_bytes(b"something\n")


def test_a_second_entry_is_refused_while_the_first_is_there(tmp_path: Path) -> None:
    with (
        RunDirectory(tmp_path / "run"),
        pytest.raises(StorageError, match=rf"Another run \(process {os.getpid()}\)"),
        RunDirectory(tmp_path / "run"),
    ):
        pytest.fail("entered")
    with RunDirectory(tmp_path / "run"):
        pass


def test_a_filesystem_without_locks_is_not_taken_for_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StorageError, match=r"cannot be locked \(Function not implemented\)"), RunDirectory(tmp_path):
        pytest.fail("entered")


def test_other_settings_are_refused_and_what_changed_is_named(tmp_path: Path) -> None:
    make(tmp_path, temperature=0.7, model="a")
    settings = {"temperature": 0.2, "model": "a", "top_p": 1.0}
    with RunDirectory(tmp_path) as directory:
        with pytest.raises(
            StorageError, match=r"temperature: 0\.7 then, 0\.2 now, top_p: None then, 1\.0 now"
        ) as caught:
            directory.claim(Claim("rollouts", digest_of(settings), settings, ADVICE))
        assert str(caught.value).endswith(ADVICE)
        assert "model" not in str(caught.value)
    make(tmp_path, model="a", temperature=0.7)


def test_of_a_section_that_changed_only_the_difference_is_told(tmp_path: Path) -> None:
    make(tmp_path, few_shot={"count": 5, "split": "train"}, model="a")
    settings = {"few_shot": {"count": 0, "split": "train"}, "model": "a"}
    told = r"\(few_shot\.count: 5 then, 0 now\)"
    with RunDirectory(tmp_path) as directory, pytest.raises(StorageError, match=told):
        directory.claim(Claim("rollouts", digest_of(settings), settings, ADVICE))


def test_a_claim_on_files_that_do_not_exist_yet_can_be_changed(tmp_path: Path) -> None:
    """A wrong model name that the endpoint refused at once must not bind the directory for ever."""
    for model in ("wrong", "right"):
        settings = {"model": model}
        with RunDirectory(tmp_path) as directory:
            directory.claim(Claim("rollouts", digest_of(settings), settings, ADVICE))
            directory.claim(Claim("results", digest_of(settings), settings, ADVICE))


def test_the_digest_does_not_depend_on_the_order_of_keys(tmp_path: Path) -> None:
    assert digest_of({"a": 1, "b": {"c": [1, 2], "d": None}}) == digest_of({"b": {"d": None, "c": [1, 2]}, "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": "1"})


@pytest.mark.parametrize("content", [b"{", b"[]", b"7", b"\xff"])
def test_a_manifest_that_cannot_be_read_is_refused_and_the_directory_let_go(tmp_path: Path, content: bytes) -> None:
    manifest = tmp_path / "manifest.json"
    manifest.write_bytes(content)
    with pytest.raises(StorageError, match=r"manifest\.json"), RunDirectory(tmp_path):
        pytest.fail("entered")
    assert manifest.read_bytes() == content
    manifest.unlink()
    with RunDirectory(tmp_path):
        pass


def test_a_file_in_the_place_of_the_directory_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StorageError, match=r"Cannot use .*output\.output_dir"), RunDirectory(path):
            pytest.fail("entered")
    assert (tmp_path / "file").read_text() == "mine"


def test_results_set_aside_are_kept_under_a_name_of_their_own(tmp_path: Path) -> None:
    for number in range(3):
        settings = {"reward": number}
        with RunDirectory(tmp_path) as directory:
            directory.set_results_aside()
            directory.claim(Claim("results", digest_of(settings), settings, ADVICE))
            assert not directory.results_path.exists()
            directory.results_path.write_text(str(number))
    kept = sorted(path.read_text() for path in tmp_path.glob("results*.jsonl"))
    assert kept == ["0", "1", "2"]


def test_phases_are_noted_with_how_they_ended(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as directory:
        directory.end_phase(directory.begin_phase("both", {"n": 2}), "finished", {"seconds": 1.5})
        directory.begin_phase("execution", {})
    phases = orjson.loads((tmp_path / "manifest.json").read_bytes())["phases"]
    assert [(phase["phase"], phase["status"]) for phase in phases] == [("both", "finished"), ("execution", "running")]
    assert phases[0]["n"] == 2
    assert phases[0]["seconds"] == 1.5


def test_the_manifest_says_who_made_the_run(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as directory:
        directory.end_phase(directory.begin_phase("both", {}), "finished", {})
        first = directory.made_by
    with RunDirectory(tmp_path) as directory:
        directory.write_manifest()
    made_by = orjson.loads((tmp_path / "manifest.json").read_bytes())["made_by"]
    assert made_by == first
    assert {"reward_kit", "python", "platform", "git", "created"} <= made_by.keys()


def test_the_manifest_names_the_revision_even_where_a_run_died_before_git_had_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *arguments], check=True)
    revision = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    run = tmp_path / "run"
    with RunDirectory(run) as directory:
        directory.begin_phase("both", {})
    manifest = orjson.loads((run / "manifest.json").read_bytes())
    manifest["made_by"]["git"] = None
    (run / "manifest.json").write_bytes(orjson.dumps(manifest))
    with RunDirectory(run) as directory:
        directory.end_phase(directory.begin_phase("both", {}), "finished", {})
    assert orjson.loads((run / "manifest.json").read_bytes())["made_by"]["git"] == revision
