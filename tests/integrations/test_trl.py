"""`create_trl_adapter`, called as TRL's trainers call a reward."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from reward_kit.errors import ConfigError
from reward_kit.integrations.trl import create_trl_adapter
from reward_kit.models import EvaluateResult, Message
from reward_kit.typed_interface import reward_function


@reward_function
def exact(messages: list[Message], expected: str, bonus: float = 0.0, **kwargs: Any) -> EvaluateResult:
    assert not kwargs.keys() - {"ground_truth"}, "only what is mapped is handed over"
    return EvaluateResult(score=float(messages[-1].text == expected) + bonus, reason=messages[0].text)


def test_mapped_columns_and_static_keywords_reach_the_reward() -> None:
    adapter = create_trl_adapter(exact, {"answer": "expected"}, {"bonus": 0.5})
    scores = adapter(
        prompts=["q1", [{"role": "user", "content": "q2"}]],
        completions=["a", [{"role": "assistant", "content": "x"}]],
        completion_ids=[[1], [2]],
        answer=["a", "b"],
        other=[1, 2],
        trainer_state=object(),
    )
    assert scores == [1.5, 0.5]
    assert adapter.__name__ == "exact"


def test_message_functions_make_the_turns() -> None:
    adapter = create_trl_adapter(
        exact, {"answer": "expected"}, None, lambda row: row["question"], lambda completion: completion.strip()
    )
    assert adapter([{"question": "q"}], ["  a "], answer=["a"]) == [1.0]


def test_a_mapped_column_that_is_not_there_stops_the_training() -> None:
    adapter = create_trl_adapter(exact, {"answer": "expected"})
    with pytest.raises(ConfigError, match=r"no column 'answer'; there are \['solution'\]"):
        adapter(["q"], ["a"], solution=["a"])


def test_neither_torch_nor_trl_is_imported() -> None:
    code = "import sys, reward_kit.integrations.trl; sys.exit(bool({'torch', 'trl', 'aiohttp'} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", code], check=True)
