# SPDX-License-Identifier: Apache-2.0
"""A row of DeepCoder's dataset as a run wants it."""

import json
from pathlib import Path
from typing import Any

DATASET = {
    "format": "standard",
    "preprocess": [f"{Path(__file__).resolve()}:ours"],
    "prompt_template": "{{ user_query }}\n\nGive the whole Python solution in one code block. "
    "A program reads standard input and prints.",
}
"""How the rows are read, for the scripts: the same as in `conf/`."""

MOST_TESTS = 15
"""Tests per problem. All of them would take too long; long inputs are the ones that slow programs fail."""
FUNCTION_CALL = "function_call"


def ours(row: dict[str, Any]) -> dict[str, Any] | None:
    """The problem is asked, and its longest tests are the ground truth, as JSON text. No tests: the row is left out."""
    tests = json.loads(row["tests"]) if isinstance(row["tests"], str) else row["tests"]
    if not tests:
        return None
    kept = {name: value for name, value in row.items() if name not in ("problem", "tests", "solutions")}
    asked = row["problem"]
    if row.get("starter_code"):
        asked += f"\n\nBegin with this code:\n```python\n{row['starter_code']}\n```"
    return {**kept, "user_query": asked, "ground_truth": json.dumps(_longest(tests))}


def _longest(tests: Any) -> Any:
    """The tests with the longest inputs, in the order in which they stood."""
    if isinstance(tests, dict):
        cases = list(zip(tests["inputs"], tests["outputs"], strict=True))
        kept = _chosen([given for given, _ in cases])
        return {**tests, "inputs": [cases[place][0] for place in kept], "outputs": [cases[place][1] for place in kept]}
    kept = _chosen([test["input"] for test in tests])
    return [_plain(tests[place]) for place in kept]


def _chosen(inputs: list[Any]) -> list[int]:
    longest = sorted(range(len(inputs)), key=lambda place: -len(str(inputs[place])))
    return sorted(longest[:MOST_TESTS])


def _plain(test: dict[str, Any]) -> dict[str, Any]:
    """A test of a function call holds what is returned in a list of its own."""
    wrapped = test.get("type") == FUNCTION_CALL and isinstance(test["output"], list) and len(test["output"]) == 1
    return {**test, "output": test["output"][0]} if wrapped else test
