# SPDX-License-Identifier: Apache-2.0
"""A reward exported as a Python grader: its source runs alone, as the service runs it, and judges alike."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import ConfigError
from reward_kit.integrations.openai_grader import python_grader

REWARD = '''
"""A reward in a file of its own."""

from __future__ import annotations

import re
from typing import Any

from reward_kit import EvaluateResult, Message, MetricResult, reward_function

NUMBER = re.compile(r"-?[0-9]+")


def last_number(text: str) -> str | None:
    found = NUMBER.findall(text)
    return found[-1] if found else None


@reward_function
def correct(messages: list[Message], ground_truth: str = "", weight: float = 1.0, **kwargs: Any) -> EvaluateResult:
    number = last_number(messages[-1].text)
    if not ground_truth:
        return EvaluateResult(score=0.0, is_score_valid=False, reason="nothing to compare with")
    metrics = {"found": MetricResult(score=float(number is not None), reason="looked")}
    return EvaluateResult(score=weight * float(number == ground_truth), metrics=metrics)


@reward_function
async def later(messages: list[Message], **kwargs: Any) -> float:
    return 0.0


if __name__ == "__main__":
    import no_such_module
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "graded.py"
    path.write_text(REWARD)
    return path


def grade(source: str, sample: dict[str, Any], item: dict[str, Any]) -> Any:
    """Run the grader in an interpreter that has no packages at all."""
    program = f"{source}\nimport json, sys\nprint(json.dumps(grade(*json.load(sys.stdin))))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], input=json.dumps([sample, item]), capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


def test_the_source_stands_alone(file: Path) -> None:
    grader = python_grader(f"{file}:correct", params={"weight": 0.5})
    assert (grader["type"], grader["name"]) == ("python", "correct")
    asked = [{"role": "user", "content": "2 + 2?"}]
    assert grade(grader["source"], {"output_text": "It is 4"}, {"messages": asked, "ground_truth": "4"}) == 0.5
    assert grade(grader["source"], {"output_text": "5"}, {"reference_answer": "4", "level": "easy"}) == 0.0
    assert grade(grader["source"], {"output_text": None}, {"ground_truth": "4"}) == 0.0
    assert "nothing to compare with" in grade(grader["source"], {"output_text": "4"}, {})


def test_what_cannot_stand_alone_is_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="plain function"):
        python_grader(f"{file}:later")
    with pytest.raises(ConfigError, match="'aiohttp'"):
        (tmp_path / "far.py").write_text("import aiohttp\n" + REWARD.replace("from __future__ import annotations", ""))
        python_grader(f"{tmp_path / 'far.py'}:correct")
    with pytest.raises(ConfigError, match="needs reward_kit itself"):
        python_grader("reward_kit.rewards.math:math_reward")

    def inner(messages: Any, **kwargs: Any) -> float:
        return 1.0

    with pytest.raises(ConfigError, match="top of its file"):
        python_grader(inner)


def test_a_row_fills_no_parameter_of_the_operators(tmp_path: Path) -> None:
    path = tmp_path / "marked.py"
    path.write_text(
        "from reward_kit import Operator, reward_function\n\n\n"
        "@reward_function\ndef named(messages, judge: Operator[str | None] = None, **kwargs) -> float:\n"
        "    return {None: 0.0, 'mine': 1.0}[judge]\n"
    )
    for params, score in ((None, 0.0), ({"judge": "mine"}, 1.0)):
        grader = python_grader(f"{path}:named", params=params)
        assert grade(grader["source"], {"output_text": "4"}, {"judge": "theirs"}) == score
