# SPDX-License-Identifier: Apache-2.0
"""Test cases of a reward: reading them, and holding a reward against them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import RewardConfig
from reward_kit.errors import DatasetError
from reward_kit.scoring.cases import check_cases, read_cases, write_cases

RIGHT = {"prompt": "6 x 12?", "answer": "It is 72.", "ground_truth": "72", "expect": "pass"}


def written(path: Path, *cases: dict[str, Any] | str) -> Path:
    path.write_text("\n".join(case if isinstance(case, str) else json.dumps(case) for case in cases), "utf-8")
    return path


def test_a_case_comes_back_as_it_was_written(tmp_path: Path) -> None:
    whole = {
        "id": "q1", "response_index": 2, "messages": [{"role": "system", "content": "Be brief."},
        {"role": "user", "content": "6 x 12?"}, {"role": "assistant", "content": "72", "reasoning_content": "hm"}],
        "ground_truth": {"value": 72}, "columns": {"topic": "sums"}, "split": "easy", "expect": "fail",
        "threshold": 0.5, "note": "no", "was": {"score": 1.0}, "reviewer": "ada",
    }  # fmt: skip
    cases = read_cases(written(tmp_path / "a.jsonl", whole, "", RIGHT))
    write_cases(tmp_path / "b.jsonl", cases)
    assert read_cases(tmp_path / "b.jsonl") == cases
    assert json.loads((tmp_path / "b.jsonl").read_text("utf-8").splitlines()[0]) == whole
    assert cases[1].name == "case-3#0"


def test_a_number_reaches_the_reward_as_the_case_or_its_dataset_has_it(tmp_path: Path) -> None:
    said = '{{"answer": "a", "expect": "pass", "ground_truth": {}}}'
    numbers = ("4.50", "1e3", "true", "72", "1180591620717411303425")
    cases = read_cases(written(tmp_path / "a.jsonl", *map(said.format, numbers)))
    write_cases(tmp_path / "b.jsonl", cases)
    for read in (cases, read_cases(tmp_path / "b.jsonl")):
        samples = [case.rollout.sample for case in read]
        assert [each.ground_truth_text or str(each.ground_truth) for each in samples] == [*numbers]


@pytest.mark.parametrize(
    "line, problem",
    [
        ("{", "Line 1 .* is not JSON"),
        ("[]", "Line 1 .* is not an object"),
        ({**RIGHT, "expect": "maybe"}, "has the expectation 'maybe'"),
        ({**RIGHT, "expected": "pass"}, "unknown key 'expected'"),
        ({**RIGHT, "threshold": "half"}, "has the threshold 'half'"),
        ({"expect": "pass"}, "neither `messages` nor `answer`"),
        ({"expect": "pass", "messages": [{"role": "user", "content": "Q"}]}, "nothing is answered"),
        ({"expect": "pass", "messages": "Q"}, "not a list of messages"),
        ({**RIGHT, "columns": 3}, "columns"),
        ("", "holds no cases"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(tmp_path: Path, line: dict[str, Any] | str, problem: str) -> None:
    with pytest.raises(DatasetError, match=problem):
        read_cases(written(tmp_path / "cases.jsonl", line))


REWARD = """
import os, time
from reward_kit import EvaluateResult, reward_function

@reward_function
def evaluate(messages, ground_truth=None, trouble=None, bonus=0.0, **kwargs):
    if trouble == "raises":
        raise ValueError("no")
    if trouble == "hangs":
        time.sleep(600)
    if trouble == "dies":
        os._exit(3)
    return EvaluateResult(score=(0.6 if ground_truth in messages[-1].content else 0.0) + bonus, reason="looked")
"""


async def test_a_reward_is_held_against_cases_in_workers(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(REWARD, "utf-8")
    wrong = {**RIGHT, "answer": "71"}
    troubles = [{**RIGHT, "columns": {"trouble": trouble}} for trouble in ("raises", "hangs", "dies")]
    cases = read_cases(written(tmp_path / "c.jsonl", {**RIGHT, "threshold": 0.5}, RIGHT, wrong,
                               {**wrong, "expect": "fail"}, *troubles))  # fmt: skip
    config = RewardConfig(function_path=f"{tmp_path}/mine.py:evaluate", timeout=2, workers=2)
    outcomes = await check_cases(cases, config)
    assert [(outcome.state, outcome.score) for outcome in outcomes] == [
        ("as expected", 0.6), ("failed", 0.6), ("failed", 0.0), ("as expected", 0.0),
        ("error", None), ("error", None), ("error", None),
    ]  # fmt: skip
    assert "raised ValueError: no" in outcomes[4].says
    assert "RewardTimeoutError" in outcomes[5].says
    history = [{**wrong, "was": {"score": score, "passed": score == 1}} for score in (1, 0)]
    known = await check_cases(read_cases(written(tmp_path / "known.jsonl", *history)), config)
    assert [outcome.state for outcome in known] == ["regressed", "failed"], "the second was wrong before, too"
    mended = await check_cases(cases[:2], config.model_copy(update={"params": {"bonus": 0.4}}))
    assert [outcome.state for outcome in mended] == ["as expected", "as expected"]
