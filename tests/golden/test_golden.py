# SPDX-License-Identifier: Apache-2.0
"""The files of the three front doors stay what they are, byte for byte, and old ones are read by every reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from reward_kit.storage.health import look_over
from reward_kit.utils.checksums import check_line
from tests.golden.front_doors import COMMANDS, ENTERED, HERE, call, committed, files_of, inside, make, readings

pytest.importorskip("pyarrow.parquet")

RUNS = {
    "run": "run",
    "best_of_n": "best_of_n/table.run",
    "shell": "shell",
    "shell_foreign": "shell_foreign",
    "shell_in_turns": "shell_in_turns",
    "run_of_schema_2": "run_of_schema_2",
}
"""The run directory of each front door."""
JUDGED = {"run": 9, "best_of_n": 9, "shell": 6, "shell_foreign": 3, "shell_in_turns": 6, "run_of_schema_2": 9}
RECORDS = {"run": 15, "best_of_n": 15, "shell": 8, "shell_foreign": 4, "shell_in_turns": 8, "run_of_schema_2": 15}


@pytest.fixture(scope="module")
def anew(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("anew"))


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Path]:
    """A copy of the committed directories, with the inputs they were made of beside them."""
    with inside(committed(tmp_path)):
        yield tmp_path


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_the_front_doors_write_what_they_always_wrote(anew: Path) -> None:
    made, known = files_of(anew), files_of(HERE)
    assert made.keys() == known.keys()
    for name, text in known.items():
        assert made[name] == text, name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_line_and_document_carries_its_checksum(anew: Path, name: str) -> None:
    for path in (anew / RUNS[name]).glob("*.jsonl"):
        if path.name != "preview.jsonl":  # a copy for people
            assert all(check_line(line) for line in lines(path))
    assert all(finding.works for finding in look_over(anew / RUNS[name]))


@pytest.mark.parametrize("name", RUNS)
def test_old_directories_are_looked_over(old: Path, name: str) -> None:
    said = call("doctor", RUNS[name])
    assert said.code == 0 and "BROKEN" not in said.out, said.out


def test_old_directories_are_inspected_and_exported_as_ever(old: Path) -> None:
    for name, text in readings(old).items():
        assert text == (HERE / "readings" / name).read_text(), name


@pytest.mark.parametrize("name", RUNS)
def test_old_directories_are_merged(old: Path, name: str) -> None:
    said = call("merge", RUNS[name], "--output-dir", "whole", "--json")
    assert said.code == 0, said.err
    summary = json.loads(said.out)
    assert (summary["judged"], summary["records"]) == (JUDGED[name], RECORDS[name])
    assert (old / "whole" / "results.jsonl").read_bytes() == (old / RUNS[name] / "results.jsonl").read_bytes()


@pytest.mark.parametrize("name", RUNS)
def test_old_directories_are_entered_again_and_what_is_there_is_not_made_again(old: Path, name: str) -> None:
    results = old / RUNS[name] / "results.jsonl"
    before = results.read_bytes(), [path.read_bytes() for path in results.parent.glob("rollouts.jsonl")]
    said = call(*ENTERED[name], "--json")
    if said.code and "made with other settings" in said.err:  # the library's reward was edited since
        assert "(reward.source: " in said.err, said.err
        return
    assert said.code == 0, said.err
    entry = json.loads(said.out)["this_entry"]
    failed = sum(orjson.loads(line)["status"] == "retry" for line in before[0].splitlines())
    assert (entry["generated"], entry["judged"]) == (0, 0) and entry["failed"] <= failed
    assert (results.read_bytes(), [path.read_bytes() for path in results.parent.glob("rollouts.jsonl")]) == before


@pytest.mark.parametrize("name", ["run", "best_of_n", "run_of_schema_2"])
def test_old_directories_are_judged_again(old: Path, name: str) -> None:
    lab = (old / "lab.py").read_text()
    (old / "lab.py").write_text(lab.replace('score = float(bool(re.search(rf"', 'score = 1 - float(bool(re.search(rf"'))
    said = call(*ENTERED[name], "--json")
    assert said.code and "--rescore" in said.err
    said = call(*ENTERED[name], "--rescore", "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["judged"] == JUDGED[name]
    rescored = [orjson.loads(line) for line in lines(old / RUNS[name] / "results.jsonl")]
    kept = [orjson.loads(line) for line in lines(next((old / RUNS[name]).glob("results.*.jsonl")))]
    pairs = [(new, was) for new, was in zip(rescored, kept, strict=True) if was["evaluation_reason"]]
    assert pairs and all(new["evaluation_score"] == 1 - was["evaluation_score"] for new, was in pairs)
