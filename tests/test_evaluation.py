# SPDX-License-Identifier: Apache-2.0
"""`evaluate`: rows and a plain function in, figures out, from a script, a notebook or anywhere else."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import reward_kit
from reward_kit.config_models import MockConfig, MockRule
from reward_kit.errors import AnswersFailedError, ConfigError, DatasetError, StorageError
from reward_kit.evaluation import evaluate, evaluate_async
from reward_kit.generation.mock import MockModelClient
from reward_kit.models import EvaluateResult, Message, MetricResult, Sample
from tests.loopback.endpoint import honest, serving
from tests.loopback.runs import REWARDS, questions, write_rows

SUMS = [
    {"id": "a", "user_query": "What is 2 + 2?", "ground_truth_for_eval": "4"},
    {"id": "b", "user_query": "What is 3 + 3?", "ground_truth_for_eval": "7"},
]
MODEL = MockModelClient(
    MockConfig(rules=[MockRule(pattern=r"2 \+ 2", response=["4", "5"]), MockRule(pattern=".", response="6")])
)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The response cache is made in the current directory."""
    monkeypatch.chdir(tmp_path)


def exact(response: str, ground_truth: str) -> float:
    """A plain function that names what it needs."""
    return float(response == ground_truth)


class Judge:
    """An object that judges."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __call__(self, messages: list[Message], **kwargs: Any) -> float:
        return self.value


def test_rows_a_plain_function_and_a_model_are_enough() -> None:
    result = evaluate(SUMS, exact, model=MODEL, n=2)
    assert [(row["id"], row["response_index"], row["evaluation_score"]) for row in result.rows()] == [
        ("a", 0, 1.0), ("a", 1, 0.0), ("b", 0, 0.0), ("b", 1, 0.0),
    ]  # fmt: skip
    assert result.mean_score == 0.25
    assert result.summary["pass_at_k"]["2"]["value"] == result.pass_at(2).value == 0.5


def _closure(right: str) -> Any:
    def judge(response: str) -> EvaluateResult:
        return EvaluateResult(score=float(response == right))

    return judge


async def _slow(response: str, **kwargs: Any) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"score": len(response), "reason": "counted"}


REWARDS_OF_ALL_KINDS: dict[str, tuple[Any, float | None]] = {
    "lambda": (lambda response: float(response == "4"), 0.5),
    "closure": (_closure("6"), 0.5),
    "coroutine": (_slow, 1.0),
    "partial": (partial(exact, ground_truth="4"), None),
    "object": (Judge(0.25), 0.25),
    "path": (f"{REWARDS}:steady", None),
    "bool": (lambda response: True, 1.0),
}


@pytest.mark.parametrize("kind", REWARDS_OF_ALL_KINDS)
def test_a_reward_may_be_anything_that_can_be_called(kind: str) -> None:
    reward, mean = REWARDS_OF_ALL_KINDS[kind]
    result = evaluate(SUMS, reward, model=MODEL)
    assert (result.judged, result.failed) == (2, 0)
    if mean is not None:
        assert result.mean_score == mean


async def test_it_works_inside_a_running_loop() -> None:
    assert evaluate(SUMS, exact, model=MODEL).judged == 2


def test_without_a_model_the_answers_are_in_the_data() -> None:
    rows = [row | {"assistant_response": answer} for row, answer in zip(SUMS, ("4", "6"), strict=True)]
    assert evaluate(rows, exact).mean_score == 0.5


def test_samples_and_files_are_datasets_too(tmp_path: Path) -> None:
    sample = Sample(id="own", messages=[Message(role="user", content="2 + 2")], ground_truth="4")
    assert evaluate([sample], exact, model=MODEL).mean_score == 1.0
    file = write_rows(tmp_path / "sums.jsonl", SUMS)
    for name in (file, str(file)):
        assert evaluate(name, exact, model=MODEL).judged == 2


def test_with_a_directory_the_run_is_durable_and_resumed(tmp_path: Path) -> None:
    with serving(honest) as endpoint:
        told: dict[str, Any] = {
            "model": "m",
            "output_dir": tmp_path / "run",
            "generation": {"api_base": endpoint.api_base, "cache": {"enabled": False}},
        }
        evaluate(questions(3), exact, n=1, **told)
        result = evaluate(questions(4), exact, n=2, **told)
        assert result.judged == 8
        assert sum(body.get("n", 1) for body in endpoint.requests) == 8
    assert result.output_dir == tmp_path / "run"
    with pytest.raises(StorageError, match=r"reward\.source|reward\.function"):
        evaluate(questions(4), lambda response: 1.0, n=2, **told)


def test_without_a_directory_nothing_is_mixed_up() -> None:
    first, second = (evaluate(SUMS, exact, model=MODEL) for _ in range(2))
    assert first.output_dir != second.output_dir
    assert first.results_path.exists()


def test_params_and_settings_reach_the_run() -> None:
    def judge(response: str, bonus: float) -> float:
        return bonus

    result = evaluate(
        SUMS, judge, model=MODEL, params={"bonus": 0.5}, system_prompt="Be brief.",
        evaluation_params={"limit_samples": 1},
    )  # fmt: skip
    (row,) = result.rows()
    assert (row["evaluation_score"], row["system_prompt"]) == (0.5, "Be brief.")


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"dataset": "missing.jsonl"}, DatasetError, "missing.jsonl"),
        ({"dataset": []}, DatasetError, "empty"),
        ({"dataset": [{"id": "a"}]}, DatasetError, "user_query"),
        ({"reward": "no.such:thing"}, ConfigError, "no.such"),
        ({"generation": {"temprature": 1}}, ConfigError, "generation.temperature"),
        ({"model": "mock", "generation": {"n": 0}}, ConfigError, "generation.n"),
        ({"colour": "red"}, ConfigError, "no keyword 'colour'; known are: agent, api, api_base"),
        ({"temprature": 1}, ConfigError, "did you mean temperature=…?"),
        ({"pass_threshold": 1}, ConfigError, "did you mean reward_settings={'pass_threshold': …}?"),
        ({"column_mapping": {}}, ConfigError, "did you mean dataset={'column_mapping': …}?"),
        ({"limit_samples": 1}, ConfigError, "did you mean evaluation_params={'limit_samples': …}?"),
        ({"model_name": "m"}, ConfigError, "did you mean model=…?"),
        ({"temperature": 1, "generation": {"temperature": 1}}, ConfigError, "'temperature' is given twice"),
        ({"reward": 3}, ConfigError, "the reward is of type int"),
        ({"reward": None}, ConfigError, "no reward is given"),
        ({"dataset": None}, ConfigError, "No data are given"),
        ({"dataset": 7}, ConfigError, "The data are of type int"),
        ({"params": {"colour": "red"}}, ConfigError, "colour"),
        ({"params": {"with": [lambda: 0]}}, ConfigError, "`reward.params.with` is <function"),
    ],
)
def test_wrong_arguments_are_one_sentence(arguments: dict[str, Any], error: type[Exception], said: str) -> None:
    given = {"dataset": SUMS, "reward": exact, "model": "mock", **arguments}
    with pytest.raises(error, match=re.escape(said)):
        evaluate(**given)


def test_an_integer_too_long_for_a_float_keeps_its_digits_in_every_file(tmp_path: Path) -> None:
    long = 10**400 + 7
    rows = [{"prompt": "?", "ground_truth": long, "held": {"by": [long]}}]
    run = evaluate(rows, exact, model="mock", output_dir=tmp_path, output={"preview_pairs_file": "pairs.jsonl"})
    assert [(row["ground_truth_for_eval"], row["columns"]["held"]) for row in run.rows()] == [(long, {"by": [long]})]
    assert str(long) in (tmp_path / "pairs.jsonl").read_text("utf-8")
    assert evaluate(rows, exact, model="mock", output_dir=tmp_path, rescore=True).judged == 1


def test_they_are_public_names() -> None:
    assert (reward_kit.evaluate, reward_kit.evaluate_async) == (evaluate, evaluate_async)


# ── data of all kinds, and how they are read ─────────────────────────────────────────────────────────────────────────

QUIZ = [{"q": "2 + 2?", "solution": "4", "said": "4"}, {"q": "3 + 3?", "solution": "6", "said": "7"}]
READING = {"column_mapping": {"user_query": "q", "ground_truth_for_eval": "solution"}, "response_column": "said"}


def test_the_data_are_read_as_the_settings_say() -> None:
    result = evaluate(QUIZ, exact, dataset=READING)
    assert [row["user_query"] for row in result.rows()] == ["2 + 2?", "3 + 3?"]
    assert result.mean_score == 0.5
    templated = evaluate(SUMS, exact, model=MODEL, dataset={"prompt_template": "Briefly: {{ user_query }}"})
    assert next(templated.rows())["user_query"] == "Briefly: What is 2 + 2?"


def test_settings_of_the_data_may_name_them_or_stand_beside_a_file(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "quiz.jsonl", QUIZ)
    assert evaluate(dataset=READING | {"path_or_name": str(file)}, reward=exact).mean_score == 0.5
    assert evaluate(file, exact, dataset=READING).mean_score == 0.5
    with pytest.raises(ConfigError, match="given twice"):
        evaluate(QUIZ, exact, dataset=str(file))


def test_tables_are_data() -> None:
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    for table in (pandas.DataFrame(QUIZ), pyarrow.Table.from_pylist(QUIZ)):
        assert evaluate(table, exact, dataset=READING).mean_score == 0.5


def test_datasets_of_hugging_face_are_data() -> None:
    datasets = pytest.importorskip("datasets", reason="the extra hf is not installed")
    held = datasets.Dataset.from_list([row | {"meta": {"tags": ["sum"]}} for row in QUIZ])

    def typed(response: str, ground_truth: str, meta: Any) -> float:
        return float(response == ground_truth and meta == {"tags": ["sum"]})

    views = (
        held,
        held.shuffle(seed=0),
        held.to_iterable_dataset(),
        held.with_format("numpy"),
        held.with_format("pandas"),
    )
    for view in views:
        assert evaluate(view, typed, dataset=READING).mean_score == 0.5
    several = datasets.DatasetDict({"train": held, "test": held.select([1])})
    result = evaluate(several, typed, dataset=READING | {"split": "test"})
    assert [row["user_query"] for row in result.rows()] == ["3 + 3?"]
    with pytest.raises(ConfigError, match="the keys 'train', 'test'"):
        evaluate(several, typed, dataset=READING)


def test_an_answer_that_a_frame_has_not_is_named_as_such() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"prompt": ["a", "b"], "assistant_response": ["x", float("nan")]})
    with pytest.raises(DatasetError, match=r"row 2: there is no answer: no value \(null, or NaN\) in column"):
        evaluate(frame, lambda response: float(bool(response)))
    assert evaluate(frame.fillna(""), lambda response: float(bool(response))).mean_score == 0.5


def test_one_split_of_several_is_chosen() -> None:
    several: Any = {"train": QUIZ[:1], "test": QUIZ[1:]}
    result = evaluate(several, exact, dataset=READING | {"split": "test"})
    assert [(row["user_query"], row["split"]) for row in result.rows()] == [("3 + 3?", "test")]
    with pytest.raises(ConfigError, match="the keys 'train', 'test'"):
        evaluate(several, exact)


def test_keywords_are_settings_of_generation() -> None:
    with serving(honest) as endpoint:
        told: dict[str, Any] = {"api_base": endpoint.api_base, "temperature": 0.2, "max_tokens": 7, "seed": 3}
        evaluate(questions(1), exact, model="m", generation={"cache": {"enabled": False}}, **told)
        (asked,) = endpoint.requests
    assert (asked["temperature"], asked["max_tokens"], "seed" in asked) == (0.2, 7, True)


# ── what comes back ──────────────────────────────────────────────────────────────────────────────────────────────────


def fails_at_times(response: str) -> float:
    if response == "7":
        raise KeyError("seven")
    return 1.0


def test_a_result_is_a_table_with_metrics_columns_and_failures() -> None:
    pytest.importorskip("pandas")

    def judge(response: str) -> EvaluateResult:
        return EvaluateResult(
            score=fails_at_times(response), reason="", metrics={"length": MetricResult(score=0.5, reason="")}
        )

    rows = [row | {"subject": "sums", "model": "taken"} for row in QUIZ]
    result = evaluate(rows, judge, dataset=READING)
    table = result.to_pandas()
    assert table["evaluation_score"][0] == 1.0 and table["evaluation_score"].isna().tolist() == [False, True]
    assert list(table["subject"]) == ["sums", "sums"] and list(table["column.model"]) == ["taken", "taken"]
    assert table["metric.length"][0] == 0.5
    assert not {"schema", "check", "content"} & set(table.columns)
    (failed,) = result.failures
    assert (failed.response_index, failed.failure.stage, failed.failure.type) == (0, "score", "RewardError")
    assert failed.row["user_query"] == "3 + 3?"
    with pytest.raises(AnswersFailedError, match="1 of 2"):
        result.raise_for_failures()


def test_nothing_judged_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        evaluate([QUIZ[1]], fails_at_times, dataset=READING)
    assert "Nothing could be judged: all 1 answers failed, such as: " in caplog.text and "seven" in caplog.text


def test_temporary_files_live_as_long_as_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    result = evaluate(SUMS, exact, model=MODEL)
    rows = result.rows()
    kept = result.output_dir
    del result
    assert next(rows)["id"] == "a"  # reading needs the files, so it keeps them
    del rows
    gc.collect()
    assert not kept.exists()
    with pytest.raises(DatasetError):
        evaluate([], exact, model=MODEL)
    assert list((tmp_path / "temporary").glob("reward-kit-*")) == []


def test_temporary_files_end_with_the_process(tmp_path: Path) -> None:
    code = (
        "import reward_kit, sys\n"
        "r = reward_kit.evaluate([{'user_query': 'a', 'assistant_response': 'b'}], lambda response: 1.0)\n"
        "print(r.output_dir, r.output_dir.exists())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.split()[1] == "True"
    assert list(tmp_path.glob("reward-kit-*")) == []


def test_a_directory_that_was_named_stays(tmp_path: Path) -> None:
    evaluate(SUMS, exact, model=MODEL, output_dir=tmp_path / "run")
    gc.collect()
    assert (tmp_path / "run" / "results.jsonl").exists()


# ── while it runs ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_other_tasks_go_on_beside_the_asynchronous_form() -> None:
    going_on = asyncio.Event()

    async def judge(response: str) -> float:
        await asyncio.wait_for(going_on.wait(), 60)
        return 1.0

    async def other() -> None:
        going_on.set()

    result, _ = await asyncio.gather(evaluate_async(SUMS, judge, model=MODEL), other())
    assert result.mean_score == 1.0


def test_progress_is_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    evaluate(SUMS, exact, model=MODEL)
    assert capsys.readouterr().err == ""
    evaluate(SUMS, exact, model=MODEL, progress=True)
    assert "generated 2/2 · scored 2/2" in capsys.readouterr().err


def test_a_notebook_shows_progress_under_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Place:
        def update(self, content: dict[str, str], *, raw: bool) -> None:
            shown.append(content["text/plain"])

    def display(content: dict[str, str], *, raw: bool, display_id: bool) -> Place:
        return Place()

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    evaluate(SUMS, exact, model=MODEL)
    assert shown[-1].startswith("generated 2/2 · scored 2/2")
    shown.clear()
    evaluate(SUMS, exact, model=MODEL, progress=False)
    assert shown == []
