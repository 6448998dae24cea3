# SPDX-License-Identifier: Apache-2.0
"""A right program that leaves the answers for a wrong one, by every way there is: the wrong one stays wrong."""

from __future__ import annotations

from typing import Any

import pytest

from reward_kit.models import EvaluateResult
from reward_kit.rewards.deepcoder_reward import deepcoder_code_reward
from tests.rewards.code_parts import answer, require_zygote
from tests.rewards.test_code_attacks import CASES, FUNCTION_TESTS
from tests.sandbox.python.residue_programs import WAYS


@pytest.fixture(autouse=True)
def a_zygote() -> None:
    require_zygote()


ANSWERS = repr(dict(CASES)).encode()
RIGHT = f"""{WAYS}
leave({ANSWERS!r})
ALL.remove(first_process)

def count(s):
    leave({ANSWERS!r})
    return len(s) - s.count(" ")
"""
"""A call leaves the process above it alone: that is the one which has loaded this code."""
WRONG = f"""{WAYS}
import ast

def count(s):
    for text in look().values():
        try: return ast.literal_eval(text.decode())[s]
        except (ValueError, SyntaxError, KeyError, TypeError): return len(s) - s.count(" ")
    return -1
"""
"""It gives the answers away as soon as anything was found anywhere, be it only a trace."""
RIGHT_PROGRAM = f"""{WAYS}
ALL = [way for way in ALL if way not in (descriptors, first_process)]
print(len(input().replace(' ', '')))
leave({ANSWERS!r})
"""
"""It leaves its own descriptors alone, for what it has printed is in one of them, and the process above it."""
WRONG_PROGRAM = f"{WAYS}\nprint(len(input().replace(' ', '')) if look() else -1)\n"
BY_INPUT = [{"input": f"{text}\n", "expected_output": f"{count}\n"} for text, count in CASES]


def score(code: str, tests: Any, function: str | None) -> float:
    result = deepcoder_code_reward(
        answer(code), ground_truth=tests, target_function=function, language="python", timeout=20
    )
    assert isinstance(result, EvaluateResult)
    assert result.is_score_valid, result.reason
    return result.score


@pytest.mark.parametrize("kind", FUNCTION_TESTS)
def test_a_function_finds_no_answers(kind: str) -> None:
    for _ in range(2):
        assert score(RIGHT, FUNCTION_TESTS[kind], "count") == 1.0
        assert score(WRONG, FUNCTION_TESTS[kind], "count") == 0.0


def test_a_program_finds_no_answers() -> None:
    for _ in range(2):
        assert score(RIGHT_PROGRAM, BY_INPUT, None) == 1.0
        assert score(WRONG_PROGRAM, BY_INPUT, None) == 0.0
