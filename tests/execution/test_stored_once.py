# SPDX-License-Identifier: Apache-2.0
"""A run stores a sample once, however many answers it has, and whoever reads the directory gets it whole."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.analysis.loading import load
from reward_kit.errors import StorageError
from reward_kit.execution.merge import merge_runs
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.storage.candidates import read_queries
from reward_kit.storage.health import look_over, mend
from reward_kit.storage.training_rows import Export, training_rows
from tests.loopback.runs import config, judged, put_samples_inside, results, write_rows

PICTURE = "data:image/png;base64,iVBORw0KGgo="
LONG = "What is this? " + "0123456789" * 4000
ROWS: list[dict[str, Any]] = [
    {"id": "long", "user_query": LONG, "ground_truth_for_eval": "0", "notes": LONG[::-1]},
    {
        "id": "picture", "ground_truth_for_eval": "1",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "And?"}, {"type": "image_url", "image_url": {"url": PICTURE}}],
            }
        ],
    },
    {"id": "truth", "user_query": "short", "ground_truth_for_eval": LONG},
    {"id": "small", "user_query": "short", "ground_truth_for_eval": "sha256:" + "0" * 64},
]  # fmt: skip
N = 3


def run(home: Path, **options: Any) -> Any:
    settings = options.pop("settings", {})
    return EvaluationPipeline(config(home, generation__n=N, **settings), **options).run()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("finished")
    write_rows(home / "dataset.jsonl", ROWS)
    run(home, settings={"output__results_file": "copy/all.jsonl", "output__preview_pairs_file": "copy/pairs.jsonl"})
    return home


def test_large_parts_stand_in_one_file_once(finished: Path) -> None:
    count = {path.name: path.read_bytes().count(LONG.encode()) for path in (finished / "run").glob("*.jsonl")}
    assert count == {"samples.jsonl": 2, "rollouts.jsonl": 0, "results.jsonl": 0}
    assert PICTURE.encode() not in (finished / "run" / "results.jsonl").read_bytes()


def test_results_have_every_column_and_each_is_whole_where_it_is_read(finished: Path) -> None:
    row = results(finished)["long", 1]
    assert (row["user_query"], row["columns"]["notes"]) == (LONG, LONG[::-1])
    assert row["messages"][0] == {"role": "user", "content": LONG}
    assert results(finished)["truth", 0]["ground_truth_for_eval"] == LONG
    assert results(finished)["small", 0]["ground_truth_for_eval"] == "sha256:" + "0" * 64
    assert results(finished)["picture", 2]["messages"][0]["content"][1]["image_url"]["url"] == PICTURE
    whole = [{**row, "check": ""} for row in results(finished).values()]
    assert [{**row, "check": ""} for row in run(finished).rows()] == whole
    copied = [orjson.loads(line) for line in (finished / "run" / "copy" / "all.jsonl").read_bytes().splitlines()]
    assert [{**row, "check": ""} for row in copied] == whole
    pairs = (finished / "run" / "copy" / "pairs.jsonl").read_bytes()
    assert pairs.count(LONG.encode()) == 2 * N


def test_export_and_texts_are_whole(finished: Path) -> None:
    rows = list(training_rows(read_queries(finished / "run"), Export("kto"), Counter()))
    assert orjson.dumps(rows).count(LONG.encode()) == N
    experiment = load(finished / "run")
    asked = experiment.texts.take(["query"], experiment.source_rows)["query"]
    assert asked.count(LONG) == N
    assert [row["user_query"] for row in experiment.texts.whole(experiment.source_rows)].count(LONG) == N


def test_the_directory_is_judged_elsewhere_without_its_dataset(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "run", tmp_path / "run")
    again = run(tmp_path, phase="execution", rescore=True, settings={"reward__params": {"strictness": 2}})
    assert again.counters.judged == N * len(ROWS)
    questions = {key: row["messages"][0] for key, row in results(tmp_path).items()}
    assert questions == {key: row["messages"][0] for key, row in results(finished).items()}


def test_a_directory_of_an_older_version_goes_on(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    put_samples_inside(tmp_path / "run")
    old = (tmp_path / "run" / "rollouts.jsonl").read_bytes()
    more = EvaluationPipeline(config(tmp_path, generation__n=N + 1)).run()
    assert more.counters.generated == len(ROWS)
    kept = (tmp_path / "run" / "rollouts.jsonl").read_bytes().splitlines()
    assert set(old.splitlines()) < set(kept)
    assert len((tmp_path / "run" / "samples.jsonl").read_bytes().splitlines()) == len(ROWS)
    found = results(tmp_path)
    assert judged({key: row for key, row in found.items() if key[1] < N}) == judged(results(finished))
    assert found["long", N]["user_query"] == LONG


def test_parts_of_a_run_are_merged_with_their_samples(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in range(2):
        (tmp_path / str(part)).mkdir()
        write_rows(tmp_path / str(part) / "dataset.jsonl", ROWS[part::2])
        monkeypatch.chdir(tmp_path / str(part))
        run(tmp_path / str(part), settings={"dataset__path_or_name": "dataset.jsonl"})
    merge_runs([tmp_path / "0" / "run", tmp_path / "1" / "run"], tmp_path / "merged")
    assert judged(results(tmp_path, "merged")) == judged(results(finished))
    assert len((tmp_path / "merged" / "samples.jsonl").read_bytes().splitlines()) == len(ROWS)
    assert all(finding.works for finding in look_over(tmp_path / "merged"))


@pytest.mark.parametrize("kept", range(len(ROWS)))
def test_samples_that_were_lost_are_written_again_from_the_dataset(finished: Path, tmp_path: Path, kept: int) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "run" / "samples.jsonl"
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:kept]))
    (broken,) = [finding for finding in look_over(tmp_path / "run") if not finding.works]
    assert f"{len(ROWS) - kept} of the {len(ROWS)} entries" in broken.detail
    run(tmp_path)
    assert path.read_bytes() == whole


def test_damaged_samples_are_mended(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "run" / "samples.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"What is this?", b"What was this", 1))
    mend(tmp_path / "run", look_over(tmp_path / "run"))
    assert len(path.read_bytes().splitlines()) == len(ROWS) - 1
    run(tmp_path)
    assert path.read_bytes() == whole


def test_a_dataset_of_this_name_beside_an_older_run_is_nobodys_damage(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "run", tmp_path / "run")
    put_samples_inside(tmp_path / "run")
    content = write_rows(tmp_path / "run" / "samples.jsonl", ROWS).read_bytes()
    findings = look_over(tmp_path / "run")
    assert all(finding.works for finding in findings)
    mend(tmp_path / "run", findings)
    write_rows(tmp_path / "dataset.jsonl", ROWS)
    with pytest.raises(StorageError, match="is not a file that a run wrote"):
        EvaluationPipeline(config(tmp_path, generation__n=N + 1)).run()
    assert (tmp_path / "run" / "samples.jsonl").read_bytes() == content
