# SPDX-License-Identifier: Apache-2.0
"""Who may enter a run directory: nobody beside another run, and nobody with other settings."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.errors import AuthError, ConfigError, EndpointError, StorageError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult
from reward_kit.storage.run_directory import RunDirectory
from tests.generation.loopback import Reaction, complains
from tests.loopback.endpoint import honest, serving
from tests.loopback.runs import config, lines, questions, results, write_rows
from tests.loopback.zygote import Zygote


def run(told: dict[str, Any], **options: Any) -> RunResult:
    return EvaluationPipeline(told, **options).run()


def files(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (home / "run").iterdir() if path.suffix == ".jsonl"}


def test_two_runs_at_once_the_second_is_refused_and_the_first_is_unharmed(tmp_path: Path) -> None:
    refusals: list[str] = []

    def react(body: dict[str, Any], number: int) -> Reaction:
        if number == 1:  # the other process is in the middle of its run now
            with pytest.raises(StorageError) as caught:
                run(config(tmp_path))
            refusals.append(str(caught.value))
        return honest(body, number)

    with serving(react) as endpoint:
        processes = Zygote()
        pid = processes.start(config=config(tmp_path, endpoint.api_base))
        assert processes.wait() == 0
        assert len(endpoint.requests) == 4
    assert refusals == [
        f"Another run (process {pid}) is working in {str(tmp_path / 'run')!r}. "
        "Wait for it, or choose another `output.output_dir`."
    ]
    assert len(results(tmp_path)) == 4


def test_a_killed_run_leaves_no_lock_behind(tmp_path: Path) -> None:
    pids: list[int] = []

    def react(body: dict[str, Any], number: int) -> Reaction:
        if number == 1:
            os.kill(pids[0], signal.SIGKILL)
        return honest(body, number)

    with serving(react) as endpoint:
        told = config(tmp_path, endpoint.api_base, reward="steady")
        processes = Zygote()
        pids.append(processes.start(config=told))
        assert processes.wait() == -signal.SIGKILL
        assert run(told).judged == 4


CHANGES: dict[str, dict[str, Any]] = {
    "generation.model_name": {"generation__model_name": "other"},
    "generation.temperature": {"generation__temperature": 0.1},
    "generation.seed": {"generation__seed": 2},
    "generation.max_tokens": {"generation__max_tokens": 7},
    "generation.extra_body": {"generation__extra_body": {"min_tokens": 3}},
    "generation.enabled": {"generation__enabled": False},
    "system_prompt": {"system_prompt": "Be rude."},
    "dataset.system_prompt": {"dataset__system_prompt": "Be rude."},
    "dataset.prompt_template": {"dataset__prompt_template": "Say: {{ user_query }}"},
    "dataset.column_mapping": {"dataset__column_mapping": {"user_query": "id"}},
    "reward.params": {"reward__params": {"strictness": 2}},
    "reward.function": {"reward": "steady"},
}


@pytest.mark.parametrize("changed", CHANGES)
def test_other_settings_are_refused_by_name_before_anything_is_sent(tmp_path: Path, changed: str) -> None:
    with serving(honest) as endpoint:
        run(config(tmp_path, endpoint.api_base))
        before, sent = files(tmp_path), len(endpoint.requests)
        with pytest.raises(StorageError) as caught:
            run(config(tmp_path, endpoint.api_base, **CHANGES[changed]))
        assert len(endpoint.requests) == sent
    assert changed in str(caught.value)
    assert "output.output_dir" in str(caught.value)
    assert ("`rescore`" in str(caught.value)) == changed.startswith("reward.")
    assert files(tmp_path) == before


HARMLESS: dict[str, Any] = {
    "generation__api_params": {"max_concurrent_requests": 1, "max_retries": 1},
    "generation__cache": {"enabled": False, "cache_dir": "elsewhere"},
    "generation__n_mode": "fanout",
    "reward__timeout": 5.0,
    "reward__workers": 2,
    "reward__pass_threshold": 0.5,
    "max_cost": 1.0,
}


@pytest.mark.parametrize("setting", HARMLESS)
def test_settings_that_change_no_answer_and_no_score_are_welcome(tmp_path: Path, setting: str) -> None:
    run(config(tmp_path))
    result = run(config(tmp_path, **{setting: HARMLESS[setting]}))
    assert (result.counters.generated, result.counters.scored) == (0, 0)
    assert result.judged == 4


def test_another_threshold_changes_the_figures_of_a_finished_run(tmp_path: Path) -> None:
    assert run(config(tmp_path)).summary["pass_rate"] == 0
    assert run(config(tmp_path, reward__pass_threshold=0.0)).summary["pass_rate"] == 1


def test_edited_reward_source_is_refused_and_rescored_on_request(tmp_path: Path) -> None:
    reward = tmp_path / "mine.py"
    reward.write_text("def f(messages, **kwargs):\n    return 0.25\n")
    told = config(tmp_path, reward__function_path=f"{reward}:f")
    run(told)
    before = lines(tmp_path / "run" / "results.jsonl")
    reward.write_text("def f(messages, **kwargs):\n    return 0.75\n")
    with pytest.raises(StorageError, match=r"'mine.py' has changed.*`rescore`"):
        run(told)
    assert lines(tmp_path / "run" / "results.jsonl") == before
    result = run(told, rescore=True)
    assert result.mean_score == 0.75
    assert result.counters.generated == 0
    (kept,) = (tmp_path / "run").glob("results.*.jsonl")
    assert lines(kept) == before
    assert run(told).mean_score == 0.75, "entering again with the new reward is welcome now"


def test_rescoring_with_the_same_reward_judges_again(tmp_path: Path) -> None:
    told = config(tmp_path)
    run(told)
    before = files(tmp_path)
    assert run(told, rescore=True).counters.scored == 4
    (kept,) = (tmp_path / "run").glob("results.*.jsonl")
    assert kept.read_bytes() == before["results.jsonl"]
    assert run(told).counters.scored == 0


@pytest.mark.parametrize("column", ["user_query", "level"])
def test_a_row_that_changed_under_its_id_is_refused(tmp_path: Path, column: str) -> None:
    told = config(tmp_path)
    run(told)
    before = files(tmp_path)
    write_rows(tmp_path / "dataset.jsonl", [*questions(3), questions(4)[3] | {column: "changed"}])
    with pytest.raises(StorageError, match=r"'s3' has changed since.*output\.output_dir"):
        run(told)
    assert {name: content[: len(before[name])] for name, content in files(tmp_path).items()} == before


def test_rows_in_memory_are_read_anew_whatever_was_finished_before(tmp_path: Path) -> None:
    told = config(tmp_path)
    rows = questions(4)
    assert run(told, samples=rows[:2]).judged == 2
    assert run(told, samples=rows).judged == 4
    with pytest.raises(StorageError, match="'s0' has changed since"):
        run(told, samples=[rows[0] | {"user_query": "changed"}])
    assert run(told, samples=[rows[0] | {"ground_truth_for_eval": "changed"}, *rows[1:]]).counters.judged == 1


def test_another_way_of_reading_the_same_file_is_noticed_in_a_finished_run(tmp_path: Path) -> None:
    rows = [row | {"assistant_response": "first", "revised": "second"} for row in questions(2)]
    told = config(tmp_path, rows=rows, generation__enabled=False)
    assert run(told).judged == 2
    with pytest.raises(StorageError, match="'s0' has changed since"):
        run(config(tmp_path, generation__enabled=False, dataset__response_column="revised"))


def test_edited_preprocessing_is_noticed_in_a_finished_run(tmp_path: Path) -> None:
    code = tmp_path / "prepare.py"
    code.write_text("def prepare(row):\n    return row\n")
    told = config(tmp_path, dataset__preprocess=[f"{code}:prepare"])
    assert run(told).judged == 4
    code.write_text("def prepare(row):\n    return {**row, 'user_query': 'Why?'}\n")
    with pytest.raises(StorageError, match="'s0' has changed since"):
        run(told)


PREPARE = """
from pathlib import Path

def prepare(row):
    with Path(__file__).with_name("read.txt").open("a") as read:
        read.write("row\\n")
    return row
"""


@pytest.mark.parametrize("lost", [[0], [7], [2, 3, 6], list(range(8))])
def test_a_lost_result_is_judged_again_without_reading_the_dataset(tmp_path: Path, lost: list[int]) -> None:
    (tmp_path / "prepare.py").write_text(PREPARE)
    told = config(tmp_path, generation__n=2, dataset__preprocess=[f"{tmp_path / 'prepare.py'}:prepare"])
    assert run(told).judged == 8
    before, read = files(tmp_path), (tmp_path / "read.txt").read_text()
    kept = [line for place, line in enumerate(before["results.jsonl"].splitlines(True)) if place not in lost]
    (tmp_path / "run" / "results.jsonl").write_bytes(b"".join(kept))
    again = run(told)
    assert (again.judged, again.counters.judged) == (8, len(lost))
    assert files(tmp_path) == before
    assert (tmp_path / "read.txt").read_text() == read


def test_a_lost_result_of_a_changed_dataset_is_refused_as_ever(tmp_path: Path) -> None:
    told = config(tmp_path)
    run(told)
    results_path = tmp_path / "run" / "results.jsonl"
    results_path.write_bytes(b"".join(results_path.read_bytes().splitlines(True)[1:]))
    dataset = tmp_path / "dataset.jsonl"
    status = dataset.stat()
    dataset.write_text(dataset.read_text().replace("ground_truth_for_eval", "ground_truth_for_evil"))
    os.utime(dataset, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(StorageError, match="'s0' has changed since"):
        run(told)


def test_a_lost_answer_is_asked_for_again_beside_a_lost_result(tmp_path: Path) -> None:
    told = config(tmp_path, generation__n=2)
    run(told)
    before = files(tmp_path)
    for name in ("rollouts.jsonl", "results.jsonl"):
        path = tmp_path / "run" / name
        path.write_bytes(b"".join(path.read_bytes().splitlines(True)[:-1]))
    again = run(told)
    assert (again.judged, again.counters.generated) == (8, 1)
    assert files(tmp_path).keys() == before.keys()


def test_a_key_among_the_params_is_written_nowhere_and_may_change(tmp_path: Path) -> None:
    secret = "sk-do-not-tell-anyone"
    params = {"openai_api_key": secret, "parts": [{"params": {"password": secret}}], "api_key_env": "MINE"}
    run(config(tmp_path, reward__params=params))
    written = {path.name: path.read_text() for path in (tmp_path / "run").iterdir()}
    assert not [name for name, text in written.items() if secret in text]
    assert "MINE" in written["config.yaml"]
    again = run(config(tmp_path, reward__params=params | {"openai_api_key": "another"}))
    assert again.counters.scored == 0


def test_what_an_endpoint_refused_at_once_can_be_corrected(tmp_path: Path) -> None:
    def react(body: dict[str, Any], number: int) -> Reaction:
        return honest(body, number) if body["model"] == "right" else complains(404, "no such model")

    with serving(react) as endpoint:
        with pytest.raises(EndpointError):
            run(config(tmp_path, endpoint.api_base, generation__model_name="wrong", reward="quick"))
        assert run(config(tmp_path, endpoint.api_base, generation__model_name="right", reward="steady")).judged == 4


def test_a_foreign_file_in_the_directory_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    mine = tmp_path / "run" / "results.jsonl"
    mine.write_text('{"id": "mine", "score": 1}')
    with pytest.raises(StorageError, match="is not a line of a run"):
        run(config(tmp_path))
    assert mine.read_text() == '{"id": "mine", "score": 1}'


def test_the_manifest_tells_the_story_of_the_directory(tmp_path: Path) -> None:
    told = config(tmp_path)
    run(told, phase="inference")
    run(told, phase="execution")
    manifest = orjson.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert [(phase["phase"], phase["status"]) for phase in manifest["phases"]] == [
        ("inference", "finished"),
        ("execution", "finished"),
    ]
    assert set(manifest["digests"]) == {"rollouts", "results"}


def test_what_was_to_be_tried_again_is_so_however_the_run_ended(tmp_path: Path) -> None:
    """A run with --retry-failed breaks down half way: the rest is still owed, and what was tried again is not."""

    def react(body: dict[str, Any], number: int) -> Reaction:
        if number <= 6:
            return complains(400, "not today")
        return (
            complains(401, "no more")
            if number == 10
            else honest(body, number)
            if number != 7
            else complains(400, "not yet")
        )

    with serving(react) as endpoint:
        told = config(
            tmp_path, endpoint.api_base, rows=questions(6), generation__api_params={"max_concurrent_requests": 1}
        )
        assert run(told).failed == 6
        with pytest.raises(AuthError):
            run(told, retry_failed=True)
        assert len(endpoint.requests) == 10, "a failure, two answers, and the end"
        assert run(told).failed == 1
        assert len(endpoint.requests) == 13, "the three that were not tried again yet"
        assert run(told).counters.generated == 0
        assert run(told, retry_failed=True).failed == 0
    assert len(results(tmp_path)) == 6


# ── a first attempt that is worth nothing ────────────────────────────────────────────────────────────────────────────

ANSWERED = [{"id": row["id"], "q": row["user_query"], "said": "4", "other": "5", "right": "4"} for row in questions(3)]
NEEDS_TRUTH = """
def judge(response, ground_truth=None):
    if ground_truth is None:
        raise ValueError("there is no ground truth")
    return float(response == ground_truth)
"""


def attempt(home: Path, columns: dict[str, str], **settings: Any) -> dict[str, Any]:
    """A run over answers in the data, whose reward fails without a ground truth."""
    (home / "judge.py").write_text(NEEDS_TRUTH)
    return config(
        home, rows=ANSWERED, generation__enabled=False, reward__function_path=f"{home / 'judge.py'}:judge",
        dataset__column_mapping={"user_query": "q", **columns}, **{"dataset__response_column": "said", **settings},
    )  # fmt: skip


def test_settings_may_change_where_nothing_was_paid_for_or_judged(tmp_path: Path) -> None:
    first = run(attempt(tmp_path, {}))
    assert (first.judged, first.failed) == (0, 3)
    assert EvaluationPipeline(attempt(tmp_path, {"ground_truth_for_eval": "right"})).plan().on_disk == 0
    second = run(attempt(tmp_path, {"ground_truth_for_eval": "right"}))
    assert (second.judged, second.failed, second.mean_score) == (3, 0, 1.0)
    kept = sorted(path.name.split(".")[0] for path in first.output_dir.glob("*.*.jsonl"))
    assert kept == ["results", "rollouts"]
    with pytest.raises(StorageError, match="other settings"):  # now there are verdicts
        run(attempt(tmp_path, {}))


def test_so_may_how_the_data_are_read(tmp_path: Path) -> None:
    run(attempt(tmp_path, {}))
    run(attempt(tmp_path, {}, dataset__response_column="other"))
    result = run(attempt(tmp_path, {"ground_truth_for_eval": "right"}, dataset__response_column="other"))
    assert [row["assistant_response"] for row in result.rows()] == ["5", "5", "5"]
    with pytest.raises(StorageError, match="has changed since"):
        run(attempt(tmp_path, {"ground_truth_for_eval": "right"}))


def test_a_reward_that_judged_nothing_may_be_corrected_and_the_answers_of_a_model_stay(tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text("def judge(response):\n    raise ValueError('not yet')\n")
    told = config(
        tmp_path, reward__function_path=f"{tmp_path / 'judge.py'}:judge", generation__cache={"enabled": False}
    )
    assert run(told).judged == 0
    before = (tmp_path / "run" / "rollouts.jsonl").read_bytes()
    (tmp_path / "judge.py").write_text("def judge(response):\n    return 1.0\n")
    assert EvaluationPipeline(told).plan().to_score == 4
    corrected = run(told)
    assert (corrected.judged, corrected.counters.generated) == (4, 0)
    assert (tmp_path / "run" / "rollouts.jsonl").read_bytes() == before


def test_answers_of_a_model_bind_a_directory_also_where_nothing_was_judged(tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text("def judge(response):\n    raise ValueError('not yet')\n")
    told = config(tmp_path, reward__function_path=f"{tmp_path / 'judge.py'}:judge")
    assert run(told).judged == 0
    with pytest.raises(StorageError, match=r"generation\.temperature"):
        run(config(tmp_path, reward__function_path=f"{tmp_path / 'judge.py'}:judge", generation__temperature=0.1))


def test_what_a_judge_was_paid_binds_a_directory(tmp_path: Path) -> None:
    run(attempt(tmp_path, {}))
    with RunDirectory(tmp_path / "run") as directory:
        directory.note("judge_cost", 0.01)
    with pytest.raises(StorageError, match="other settings"):
        run(attempt(tmp_path, {"ground_truth_for_eval": "right"}))


def test_overwriting_begins_anew_and_keeps_the_old_run(tmp_path: Path) -> None:
    told = config(tmp_path)
    assert run(told).judged == 4
    before = files(tmp_path)
    other = config(tmp_path, generation__temperature=0.1)
    assert EvaluationPipeline(other, overwrite=True).plan().on_disk == 0
    assert run(other, overwrite=True).judged == 4
    assert {path.name: path.read_bytes() for path in (tmp_path / "run.1").glob("*.jsonl")}.items() <= before.items()
    with pytest.raises(ConfigError, match="none to score"):
        run(other, overwrite=True, phase="execution")
    assert not (tmp_path / "run.2").exists()


def test_overwriting_leaves_a_directory_alone_that_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    assert run(config(tmp_path), overwrite=True).judged == 4
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"


# ── a model that cannot be asked ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("model", ["google/gemini-x", "gpt-6-luna", "anthropic/", None])
def test_a_model_that_cannot_be_asked_leaves_no_directory(
    model: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = {
        "dataset": {"path_or_name": str(tmp_path / "rows.jsonl")},
        "generation": {"model_name": model},
        "reward": {"function_path": "contains"},
        "output": {"output_dir": str(tmp_path / "outputs" / "run")},
    }
    (tmp_path / "rows.jsonl").write_text('{"user_query": "Say 1.", "ground_truth": "1"}\n')
    with pytest.raises((AuthError, ConfigError)):
        EvaluationPipeline(config).run()
    assert not (tmp_path / "outputs").exists()
