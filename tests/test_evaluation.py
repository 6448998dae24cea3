"""`evaluate`: rows and a plain function in, figures out, from a script, a notebook or anywhere else."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import reward_kit
from reward_kit.config_models import MockConfig, MockRule
from reward_kit.errors import ConfigError, DatasetError, StorageError
from reward_kit.evaluation import evaluate
from reward_kit.generation.mock import MockModelClient
from reward_kit.models import EvaluateResult, Message, Sample
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
    assert result.summary["pass_at_k"]["2"]["value"] == 0.5


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
        ({"colour": "red"}, ConfigError, "colour"),
        ({"params": {"colour": "red"}}, ConfigError, "colour"),
    ],
)
def test_wrong_arguments_are_one_sentence(arguments: dict[str, Any], error: type[Exception], said: str) -> None:
    given = {"dataset": SUMS, "reward": exact, "model": "mock", **arguments}
    with pytest.raises(error, match=said.replace(".", r"\.")):
        evaluate(**given)


def test_it_is_a_public_name() -> None:
    assert reward_kit.evaluate is evaluate
