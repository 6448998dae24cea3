# SPDX-License-Identifier: Apache-2.0
"""What a run tells of a reward that raises, or that says `is_score_valid=False`: in records, in the log, in the end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.cli_commands.output import failure_lines, remarks
from reward_kit.errors import StorageError
from reward_kit.evaluation import evaluate
from reward_kit.execution.result import RunResult

ROWS = [{"user_query": str(number), "assistant_response": str(number)} for number in range(4)]


def looked_up(response: str) -> float:
    return {"0": 1.0}[response]


async def looked_up_async(response: str) -> float:
    return looked_up(response)


def in_two_places(response: str) -> float:
    return looked_up("x") if response == "1" else 1 / 0


def marks_wrong_as_invalid(response: str) -> dict[str, Any]:
    return {"score": float(response == "0"), "is_score_valid": response == "0", "reason": "wrong"}


def cannot_tell(response: str) -> dict[str, Any]:
    return {"score": 0.0, "is_score_valid": False, "error": "the service is down"}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def judged_by(reward: Callable[..., Any], **settings: Any) -> RunResult:
    return evaluate(ROWS, reward, output_dir="run", reward_settings={"workers": 1, **settings})


def failures() -> list[dict[str, Any]]:
    rows = map(orjson.loads, Path("run/results.jsonl").read_bytes().splitlines())
    return [row["failure"] for row in rows if row["status"] != "ok"]


@pytest.mark.parametrize("reward", [looked_up, looked_up_async])
def test_each_record_has_the_traceback_and_the_log_the_first(
    reward: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    result = judged_by(reward)
    assert result.judged == 1 and len(failures()) == 3
    for number, failure in enumerate(failures(), 1):
        place, code, message = failure["traceback"].splitlines()[-3:]
        assert place.endswith(f'test_raising_rewards.py", line {looked_up.__code__.co_firstlineno + 1}, in looked_up')
        assert (code, message) == ('    return {"0": 1.0}[response]', f"KeyError: '{number}'")
    (logged,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "raised KeyError: '1'" in logged and 'return {"0": 1.0}[response]' in logged


def test_the_log_has_each_place_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "reward_kit.scoring")
    judged_by(in_two_places)
    told = [record for record in caplog.records if record.name == "reward_kit.scoring.failure_log"]
    assert [record.levelname for record in told] == ["WARNING", "WARNING", "DEBUG", "DEBUG"], "the rest for --verbose"


def test_the_end_of_a_run_names_the_place() -> None:
    (line,) = failure_lines(judged_by(looked_up).summary)
    message, place, code = line.splitlines()
    assert message == "3 × score: RewardError, such as: 'looked_up' raised KeyError: '1'"
    assert place.strip().startswith("File ") and place.endswith("in looked_up")
    assert code.strip() == 'return {"0": 1.0}[response]'


def test_no_word_of_tracebacks_where_nothing_raised() -> None:
    judged_by(cannot_tell)
    assert {*failures()[0]} == {"stage", "type", "message", "retryable"}
    assert b"traceback" not in Path("run/summary.json").read_bytes()


def test_results_that_say_they_are_not_valid_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    result = judged_by(marks_wrong_as_invalid)
    assert (result.judged, result.failed) == (1, 3)
    assert {*failures()[0]} == {"stage", "type", "message", "retryable"}
    (remark,) = remarks(result.summary)
    (warned,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warned.endswith("set `reward.invalid=score`.")
    for told in (remark, warned):  # a command spells the setting in its own way
        assert told.startswith("3 results say is_score_valid=False")


@pytest.mark.parametrize("isolate", [True, False])
def test_their_scores_count_where_that_is_asked_for(isolate: bool) -> None:
    async def in_the_loop(response: str) -> dict[str, Any]:
        return marks_wrong_as_invalid(response)

    result = judged_by(marks_wrong_as_invalid if isolate else in_the_loop, invalid="score")
    assert (result.judged, result.failed, result.mean_score) == (4, 0, 0.25)
    assert not remarks(result.summary)


def test_a_result_that_names_an_error_is_a_failure_all_the_same() -> None:
    result = judged_by(cannot_tell, invalid="score")
    assert (result.judged, result.failed) == (0, 4)
    assert not remarks(result.summary), "nothing there could be meant as a score"


def test_results_of_both_readings_are_not_mixed() -> None:
    judged_by(marks_wrong_as_invalid)
    with pytest.raises(StorageError, match=r"reward\.invalid"):
        judged_by(marks_wrong_as_invalid, invalid="score")
