# SPDX-License-Identifier: Apache-2.0
"""What the first rows lack is said before anything is asked: the columns and the ground truth that rewards ask for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import RewardConfig
from reward_kit.errors import ConfigError
from reward_kit.evaluating import evaluate
from reward_kit.execution.first_rows import looked_at
from reward_kit.execution.owed import Work
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.models import Message, Rollout, Sample
from reward_kit.scoring.rewards import Rewards, load_rewards
from reward_kit.typed_interface import Operator


def needs_truth(response: str, ground_truth: Any) -> float:
    return float(response == ground_truth)


def wants_truth(response: str, ground_truth: Any = None) -> float:
    return float(response == ground_truth)


def names_truth(response: str, ground_truth: Any = None) -> float:
    return float(bool(response))


def needs_column(response: str, difficulty: int) -> float:
    return float(bool(response)) * difficulty


def group_needs_column(rollouts_messages: list[list[Message]], difficulty: int) -> list[float]:
    return [float(difficulty)] * len(rollouts_messages)


REFUSED = [(needs_truth, "'ground_truth'"), (needs_column, "'difficulty'"), (group_needs_column, "'difficulty'")]


def work(number: int, truth: Any = None, split: str | None = None, **columns: Any) -> Work:
    sample = Sample(
        id=str(number), messages=[Message(role="user", content="?")], ground_truth=truth, position=number, split=split,
        columns=columns,
    )  # fmt: skip
    return Work(sample, "0" * 16, draws=[0])


def rewards(function: Callable[..., Any]) -> Rewards:
    return load_rewards(RewardConfig(function_path="given"), function)


def chooses(response: str, verifier: Operator[Any] = None) -> float:
    return float(verifier is None and bool(response))


class Read:
    """Works that count how many of them were read."""

    def __init__(self, works: list[Work]) -> None:
        self.works, self.count = works, 0

    def __iter__(self) -> Iterator[Work]:
        for each in self.works:
            self.count += 1
            yield each


@pytest.mark.parametrize(("function", "name"), REFUSED)
@pytest.mark.parametrize("rows", [1, 3, 50])
def test_what_no_row_has_is_refused_before_a_request(
    function: Callable[..., Any], name: str, rows: int, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=f"{name}.*column_mapping.*"):
        evaluate(
            [{"question": f"{n}?", "truth": n} for n in range(rows)], function, model="mock", output_dir=tmp_path,
            cache={"enabled": False},
        )  # fmt: skip
    assert (tmp_path / "rollouts.jsonl").read_bytes() == b""


def test_the_column_that_was_meant_is_named() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'Difficulty'\?"):
        evaluate([{"question": "?", "Difficulty": 1}], needs_column, model="mock")


def test_what_only_the_operator_may_choose_is_refused_before_a_request(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"question": f"{n}?", "verifier": "os.system"} for n in range(30)]
    with pytest.raises(ConfigError, match=r"give 'verifier'.*`reward\.params\.verifier`"):
        evaluate(rows, chooses, model="mock", output_dir=tmp_path, cache={"enabled": False})
    assert (tmp_path / "rollouts.jsonl").read_bytes() == b""
    going_on = evaluate(rows, chooses, model="mock", keep_going=True)
    assert (going_on.judged, going_on.failed) == (0, 30)
    assert evaluate([{"question": "0?"}, *rows], chooses, model="mock", keep_going=True).judged == 1
    assert evaluate(rows, chooses, model="mock", params={"verifier": None}).judged == 30


@pytest.mark.parametrize("place", [0, 1, 7, 19])
def test_it_is_refused_so_early_also_where_most_rows_leave_it_empty(place: int, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"question": f"{n}?", "verifier": None} for n in range(40)]
    rows[place]["verifier"] = "os.system"
    with pytest.raises(ConfigError, match="give 'verifier'"):
        evaluate(rows, chooses, model="mock", output_dir=tmp_path, cache={"enabled": False})
    assert (tmp_path / "rollouts.jsonl").read_bytes() == b""
    read = Read([work(n, verifier=row["verifier"]) for n, row in enumerate(rows)])
    first = next(looked_at(iter(read), rewards(chooses), keep_going=True))
    assert (first.sample.id, read.count) == ("0", 1), "a run that keeps going waits for no other row"
    if place:
        assert next(looked_at(iter(Read(read.works)), rewards(chooses), ahead=False)).sample.id == "0"


def test_a_dry_run_refuses_it_too(tmp_path: Path) -> None:
    config = {"output": {"output_dir": str(tmp_path)}, "generation": {"model_name": "mock"}}
    with pytest.raises(ConfigError, match="'difficulty'"):
        EvaluationPipeline(
            {**config, "reward": {"function_path": "x"}}, reward=needs_column, samples=[{"question": "?"}]
        ).plan()


def test_a_reward_that_can_do_without_a_truth_is_warned_of_once_unless_it_does_not_read_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = [{"question": f"{n}?"} for n in range(60)]
    for function, warnings in ((wants_truth, 1), (names_truth, 0)):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert evaluate(rows, function, model="mock").judged == 60
        assert sum("names 'ground_truth'" in record.message for record in caplog.records) == warnings


def test_a_reward_that_requires_a_truth_and_does_not_read_it_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    def asks_in_vain(messages: list[Message], ground_truth: str) -> float:
        return 1.0

    assert evaluate([{"question": "?"}], asks_in_vain, model="mock").judged == 1
    assert "names 'ground_truth', and the row has no ground truth" in caplog.text


def test_one_row_that_has_it_is_enough(caplog: pytest.LogCaptureFixture) -> None:
    rows: list[dict[str, Any]] = [{"question": f"{n}?"} for n in range(10)]
    rows[7]["ground_truth"] = "4"
    rows[8]["difficulty"] = 1
    assert evaluate(rows, needs_truth, model="mock").judged == 10
    assert evaluate(rows, needs_column, model="mock").judged == 1
    assert evaluate(rows, needs_column, model="mock", params={"difficulty": 2}).judged == 10
    assert not [record for record in caplog.records if "names" in record.message]


def test_no_more_rows_are_read_than_it_takes() -> None:
    there = Read([work(n, truth="4", difficulty=1) for n in range(1000)])
    works = looked_at(iter(there), rewards(needs_column))
    assert next(works).sample.id == "0" and there.count == 1
    missing = Read([work(n) for n in range(1000)])
    with pytest.raises(ConfigError, match="none of the first 20 rows"):
        next(looked_at(iter(missing), rewards(needs_column)))
    assert missing.count == 20


def test_every_work_comes_once_and_in_order() -> None:
    works = [work(n, difficulty=1) if n == 12 else work(n) for n in range(40)]
    assert [each.sample.id for each in looked_at(iter(works), rewards(needs_column))] == [str(n) for n in range(40)]


def test_what_is_not_owed_is_not_looked_at() -> None:
    works = [Work(work(n).sample, "0" * 16) for n in range(40)]
    assert len(list(looked_at(iter(works), rewards(needs_column)))) == 40
    rollout = Rollout(sample=work(0).sample, response_index=0, turns=[Message(role="assistant", content="4")])
    with pytest.raises(ConfigError, match="'difficulty'"):
        list(looked_at(iter([*works, Work(rollout.sample, "0" * 16, rollouts=[rollout])]), rewards(needs_column)))


def test_each_split_is_looked_at_with_its_own_reward() -> None:
    parts = load_rewards(RewardConfig(function_path="given"), names_truth)
    both = Rewards(parts.others, {"hard": rewards(needs_column).others})
    fine = [work(n, split="easy") for n in range(30)] + [work(n, split="hard", difficulty=1) for n in range(30, 60)]
    assert len(list(looked_at(iter(fine), both))) == 60
    wrong = Read([work(n, split="easy") for n in range(300)] + [work(300, split="hard")])
    with pytest.raises(ConfigError, match="'difficulty'"):
        next(looked_at(iter(wrong), both))  # before the first is handed on
    later = looked_at(iter(wrong), both, ahead=False)  # of a source that is far away, so much is not read beforehand
    assert next(later).sample.id == "0"
    with pytest.raises(ConfigError, match="'difficulty'"):
        list(later)


def test_answers_that_came_with_the_data_are_looked_at_too(tmp_path: Path) -> None:
    rows = [{"question": "?", "assistant_response": "4"} for _ in range(30)]
    with pytest.raises(ConfigError, match="'ground_truth'"):
        evaluate(rows, needs_truth, output_dir=tmp_path)


def test_the_same_command_goes_on_once_the_reward_is_mended(tmp_path: Path) -> None:
    rows = [{"question": f"{n}?"} for n in range(3)]
    with pytest.raises(ConfigError):
        evaluate(rows, needs_column, model="mock", output_dir=tmp_path)
    assert evaluate(rows, names_truth, model="mock", output_dir=tmp_path).judged == 3
