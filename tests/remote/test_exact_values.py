# SPDX-License-Identifier: Apache-2.0
"""One value, whatever way it takes to a reward: from a file, from Python, out of journals, or to a served reward."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reward_kit import evaluate
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.utils.module_loader import load_function
from tests.loopback.runs import config, results
from tests.serving.served import Server, serving

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**40), max_value=10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
SHOWS = """
from reward_kit import EvaluateResult

async def show(messages, ground_truth=None, value=None, **kwargs):
    return EvaluateResult(score=1.0, reason=repr((ground_truth, value)))
"""


def seen(home: Path) -> list[str]:
    return [row["evaluation_reason"] for row in results(home).values()]


@pytest.fixture(scope="module")
def reward(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("reward") / "shows.py"
    path.write_text(SHOWS)
    return f"{path}:show"


@pytest.fixture(scope="module")
def server(reward: str) -> Iterator[Server]:
    with serving(load_function(reward)) as made:
        yield made


@settings(max_examples=12, deadline=None)
@given(value=VALUES)
@example(value=2**70)
@example(value=[-(2**63) - 1, {"deep": [2**64, 0.1, -0.0, "é\u2028", None, True]}])
@example(value={"18446744073709551616": 18446744073709551616})
def test_a_reward_sees_the_same_value_whatever_way_it_took(
    value: Any, reward: str, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("run")
    row = {"id": "a", "user_query": "q", "ground_truth": ["of", value], "value": value}
    expected = [repr((["of", value], value))]
    (home / "dataset.jsonl").write_text(json.dumps(row) + "\n")
    cached = {"enabled": True, "cache_dir": str(home / "cache")}
    told = config(home, reward__function_path=reward, generation__cache=cached)
    EvaluationPipeline(told).run()
    assert seen(home) == expected
    (home / "run" / "results.jsonl").unlink()
    EvaluationPipeline(told, phase="execution").run()
    assert seen(home) == expected, "out of the journal"
    (home / "run" / "results.jsonl").unlink()
    (home / "run" / "rollouts.jsonl").unlink()
    assert EvaluationPipeline(told).run().counters.generated == 1
    assert seen(home) == expected, "with the answer out of the cache"
    result = evaluate([row], reward, model="mock", output_dir=str(home / "python"))
    assert [line["evaluation_reason"] for line in result.rows()] == expected
    served = config(home, reward__function_path=f"{server.address}/evaluate", output__output_dir=str(home / "served"))
    EvaluationPipeline(served).run()
    assert [line["evaluation_reason"] for line in results(home, "served").values()] == expected
