# SPDX-License-Identifier: Apache-2.0
"""Whatever happens to the bytes of a run directory or a cache: the same result, or an error that names the file."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.analysis.loading import load
from reward_kit.errors import RewardKitError, StorageError
from reward_kit.execution.merge import merge_runs
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.storage.candidates import read_queries
from reward_kit.storage.health import look_over, mend
from reward_kit.storage.training_rows import Export, training_rows
from reward_kit.utils.checksums import sealed_document, unsealed
from tests.loopback.damages import BYTES, LINES, cut
from tests.loopback.faults import TIMES
from tests.loopback.runs import config, judged, put_samples_inside, questions, results, write_rows

DAMAGES = 4 * TIMES
"""Of each file by each operation."""


def run(home: Path, **options: Any) -> Any:
    EvaluationPipeline(config(home, generation__n=2, **options.pop("settings", {})), **options).run()
    return judged(results(home))


def resume(home: Path) -> Any:
    return run(home)


def execute(home: Path) -> Any:
    return run(home, phase="execution")


def rescore(home: Path) -> Any:
    return run(home, rescore=True, settings={"reward__params": {"strictness": 2}})


def export(home: Path) -> Any:
    return list(training_rows(read_queries(home / "run", threshold=None), Export("kto"), Counter()))


def merge(home: Path) -> Any:
    summary = merge_runs([home / "run"], home / "merged")
    return judged(results(home, "merged")), {name: summary[name] for name in summary if name != "parts"}


def inspect(home: Path) -> Any:
    experiment = load(home / "run")
    texts = experiment.texts.take(["response"], experiment.source_rows)["response"]
    figures = experiment.figures.to_pydict()
    return sorted(map(repr, zip(texts, *figures.values(), strict=True))), experiment.metadata


OPERATIONS: dict[str, Callable[[Path], Any]] = {
    operation.__name__: operation for operation in (resume, execute, rescore, export, merge, inspect)
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a finished run."""
    home = tmp_path_factory.mktemp("finished")
    write_rows(home / "dataset.jsonl", questions(5))
    run(home)
    return home


@pytest.fixture(scope="module")
def killed(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the same run, as a kill in the middle leaves it."""
    home = tmp_path_factory.mktemp("killed")
    shutil.copytree(finished, home, dirs_exist_ok=True)
    (home / "run" / "summary.json").unlink()
    manifest = orjson.loads((home / "run" / "manifest.json").read_bytes())
    del manifest["holds"]
    manifest["phases"][-1] = {**manifest["phases"][-1], "status": "running"}
    (home / "run" / "manifest.json").write_bytes(sealed_document(manifest))
    for name, kept in (("samples.jsonl", 4), ("rollouts.jsonl", 7), ("results.jsonl", 4)):
        lines = (home / "run" / name).read_bytes().splitlines(keepends=True)
        (home / "run" / name).write_bytes(b"".join(lines[:kept]) + lines[kept][:50])
    return home


def outcome(home: Path, operation: Callable[[Path], Any]) -> Any:
    """What an operation comes to: its result, or its error."""
    try:
        return operation(home)
    except RewardKitError as error:
        return error


def attack(
    template: Path, home: Path, name: str, operation: Callable[[Path], Any], damages: tuple[Callable[..., bytes], ...]
) -> None:
    """Damage the file many times over, and see what the operation comes to."""
    original = (template / "run" / name).read_bytes()
    copy = home / "copy"
    shutil.copytree(template, copy)
    expected = operation(copy)
    for seed in range(DAMAGES):
        dice = random.Random(f"{name} {operation.__name__} {seed}")
        damage = dice.choice(damages)
        content = damage(original, dice)
        if content == original:
            continue
        shutil.rmtree(copy)
        shutil.copytree(template, copy)
        (copy / "run" / name).write_bytes(content)
        found = outcome(copy, operation)
        said = f"seed {seed}: {damage.__name__} of {name}, then {operation.__name__}"
        if isinstance(found, RewardKitError):
            assert name in str(found), f"{said}: {found}"
        else:
            assert found == expected, said


FILES = ("samples.jsonl", "rollouts.jsonl", "results.jsonl", "summary.json", "manifest.json", "config.yaml")


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", FILES)
def test_damage_to_a_finished_run_changes_nothing_in_silence(
    finished: Path, tmp_path: Path, name: str, operation: str
) -> None:
    damages = (*BYTES, *LINES) if name.endswith(".jsonl") else (*BYTES, cut)
    attack(finished, tmp_path, name, OPERATIONS[operation], damages)


@pytest.mark.parametrize("name", ["rollouts.jsonl", "results.jsonl", "manifest.json", "config.yaml"])
def test_damage_to_a_killed_run_changes_nothing_in_silence(killed: Path, tmp_path: Path, name: str) -> None:
    damages = (*BYTES, *LINES) if name.endswith(".jsonl") else (*BYTES, cut)
    attack(killed, tmp_path, name, resume, damages)


def test_damage_to_the_cache_is_asked_for_again(tmp_path: Path) -> None:
    cache = {"enabled": True, "cache_dir": str(tmp_path / "cache")}
    write_rows(tmp_path / "dataset.jsonl", questions(5))
    expected = run(tmp_path, settings={"generation__cache": cache})
    file = tmp_path / "cache" / "v1" / "responses.jsonl"
    original = file.read_bytes()
    for seed in range(2 * DAMAGES):
        dice = random.Random(seed)
        damage = dice.choice((*BYTES, *LINES))
        shutil.rmtree(tmp_path / "run")
        file.write_bytes(damage(original, dice))
        assert run(tmp_path, settings={"generation__cache": cache}) == expected, f"seed {seed}: {damage.__name__}"


# ── what is said, and what is done ───────────────────────────────────────────────────────────────────────────────────


def copy_of(template: Path, home: Path) -> Path:
    shutil.copytree(template, home, dirs_exist_ok=True)
    return home / "run"


@pytest.mark.parametrize("operation", [execute, rescore])
def test_a_cut_file_of_rollouts_is_not_judged_as_the_whole(
    finished: Path, tmp_path: Path, operation: Callable[[Path], Any]
) -> None:
    directory = copy_of(finished, tmp_path)
    lines = (directory / "rollouts.jsonl").read_bytes().splitlines(keepends=True)
    (directory / "rollouts.jsonl").write_bytes(b"".join(lines[:4]))
    with pytest.raises(StorageError, match=r"holds 4 of the 10 lines it had.*doctor .* --mend"):
        operation(tmp_path)
    mend(directory, look_over(directory))
    assert len(operation(tmp_path)) in (4, 10)  # the results of all ten were there already where they are still of use
    assert all(finding.works for finding in look_over(directory))


def test_a_cut_file_of_rollouts_elsewhere_is_noticed_too(finished: Path, tmp_path: Path) -> None:
    directory = copy_of(finished, tmp_path)
    path = directory / "rollouts.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    with pytest.raises(StorageError, match="holds 4 of the 10 lines"):
        run(tmp_path, settings={"rollouts_file": str(path), "output__output_dir": str(tmp_path / "other")})


def test_a_damaged_result_is_judged_again_and_the_file_kept(
    finished: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = copy_of(finished, tmp_path)
    path = directory / "results.jsonl"
    damaged = path.read_bytes().replace(b'"evaluation_score":', b'"evaluation_score":1', 1)
    path.write_bytes(damaged)
    assert resume(tmp_path) == judged(results(finished))
    assert (directory / "results.damaged.jsonl").read_bytes() == damaged
    assert "line 1 is damaged, and made again" in caplog.text


def test_answers_that_came_with_the_data_are_read_from_it_again(tmp_path: Path) -> None:
    rows = [{**row, "assistant_response": f"answer {row['id']}"} for row in questions(4)]
    settings = {"generation__enabled": False}
    write_rows(tmp_path / "dataset.jsonl", rows)
    expected = run(tmp_path, settings=settings)
    path = tmp_path / "run" / "rollouts.jsonl"
    path.write_bytes(path.read_bytes().replace(b"answer s2", b"answer s9"))
    assert run(tmp_path, settings=settings) == expected
    assert b"answer s9" not in path.read_bytes()


def test_lines_of_a_time_before_checksums_are_read_and_said_to_be_unchecked(
    finished: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = copy_of(finished, tmp_path)
    put_samples_inside(directory)
    expected = judged(results(tmp_path))
    for path in (directory / "rollouts.jsonl", directory / "results.jsonl"):
        old = [unsealed(line) for line in path.read_bytes().splitlines(keepends=True)]
        path.write_bytes(re.sub(rb'\{"schema":[23]', b'{"schema":1', b"".join(old)))
    assert resume(tmp_path) == expected
    assert caplog.text.count("10 lines that were written before reward-kit had checksums") == 2
    assert all(finding.works for finding in look_over(directory))


@pytest.mark.parametrize("name", ["turns", "sample", "messages", "role", "content", "model"])
def test_an_old_line_with_another_field_is_refused(finished: Path, tmp_path: Path, name: str) -> None:
    path = copy_of(finished, tmp_path) / "rollouts.jsonl"
    put_samples_inside(path.parent)
    first, *rest = [unsealed(line) for line in path.read_bytes().splitlines(keepends=True)]
    first = first.replace(b'"cost":0.0,"sample"', b'"cost":0.0,"sample"').replace(f'"{name}":'.encode(), b'"qwert":')
    path.write_bytes(b"".join([first, *rest]).replace(b'{"schema":2', b'{"schema":1'))
    with pytest.raises(StorageError, match=r"qwert|not a rollout|is not a line|lacks"):
        rescore(tmp_path)


def test_the_doctor_names_what_is_damaged_and_destroys_nothing(finished: Path, tmp_path: Path) -> None:
    directory = copy_of(finished, tmp_path)
    assert all(finding.works for finding in look_over(directory))
    before = {}
    for name in ("samples.jsonl", "rollouts.jsonl", "results.jsonl", "summary.json", "config.yaml"):
        content = (directory / name).read_bytes()
        (directory / name).write_bytes(content[:300] + bytes([content[300] ^ 1]) + content[301:])
        before[name] = (directory / name).read_bytes()
    findings = {finding.path.name: finding for finding in look_over(directory)}
    assert [name for name, finding in findings.items() if finding.works] == ["manifest.json"]
    assert "line 1 is damaged" in findings["rollouts.jsonl"].detail
    mend(directory, [*findings.values()])
    for name, content in before.items():
        stem, _, suffix = name.partition(".")
        assert (directory / f"{stem}.damaged.{suffix}").read_bytes() == content
    assert resume(tmp_path) == judged(results(finished))
    assert all(finding.works for finding in look_over(directory))
