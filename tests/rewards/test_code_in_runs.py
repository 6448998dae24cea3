# SPDX-License-Identifier: Apache-2.0
"""Code rewards where they are used: in the worker processes of a run, and in a trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.reward_function import RewardFunction
from tests.loopback.runs import config, results
from tests.rewards.code_parts import require_zygote
from tests.sandbox.python.zygotes import descendants

PATH = "reward_kit.rewards.deepcoder_reward.deepcoder_code_reward"
CHECK = "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(0) == 0\n"
PROMPT = 'def double(x):\n    """Twice as much."""\n'


@pytest.fixture(autouse=True)
def a_zygote() -> None:
    require_zygote()


def row(number: int, response: str, truth: Any = CHECK) -> dict[str, Any]:
    return {
        "id": f"s{number}",
        "user_query": PROMPT,
        "assistant_response": response,
        "ground_truth_for_eval": truth,
        "prompt": PROMPT,
        "entry_point": "double",
    }


def test_a_run_judges_completions_in_its_workers(tmp_path: Path) -> None:
    before = descendants()
    rows = [row(0, "    return x + x\n"), row(1, "    return x * x + 1\n"), row(2, "    return 2 * x\n", "no tests")]
    told = config(
        tmp_path, rows=rows, generation__enabled=False, reward__function_path=PATH, reward__workers=2,
        reward__params={"timeout": 5},
    )  # fmt: skip
    EvaluationPipeline(told).run()
    found = results(tmp_path)
    assert [found[f"s{number}", 0]["evaluation_score"] for number in range(3)] == [1.0, 0.0, None]
    assert "Not judged" in found["s2", 0]["error"]
    assert descendants().keys() <= before.keys()


def test_a_trainer_gets_scores_and_none() -> None:
    adapter = RewardFunction(func_path=PATH, timeout=5).get_trl_adapter()
    completions = ["```python\ndef double(x): return x + x\n```", "```python\ndef double(x): return 0\n```", "```"]
    columns = {"ground_truth": [CHECK, CHECK, "no tests"], "entry_point": ["double"] * 3}
    assert adapter(prompts=["p"] * 3, completions=completions, **columns) == [1.0, 0.0, None]
