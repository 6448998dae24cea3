# SPDX-License-Identifier: Apache-2.0
"""The plugin of pytest: a fixture that evaluates, and that costs nothing where nobody uses it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
LOADED = ("-p", "reward_kit.pytest_plugin", "-p", "no:cacheprovider")


def test_rows_and_config_files_are_run_into_the_directory_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makefile(".jsonl", rows='{"user_query": "2 + 2?", "ground_truth_for_eval": "4"}\n')
    pytester.makefile(".py", rewards="def exact(response, ground_truth):\n    return float(response == ground_truth)\n")
    pytester.makefile(
        ".yaml",
        run=(
            "dataset: {path_or_name: rows.jsonl}\n"
            "generation: {model_name: mock, mock: {responses: ['4', '5']}}\n"
            "reward: {function_path: 'rewards.py:exact'}\n"
        ),
    )
    pytester.makepyfile(
        """
        def test_rows(reward_kit_run, tmp_path):
            rows = [{"user_query": "2 + 2?", "assistant_response": "4"}]
            first = reward_kit_run(rows, lambda response: response == "4")
            second = reward_kit_run(rows, lambda response: response == "5")
            assert (first.mean_score, second.mean_score) == (1.0, 0.0)
            assert {first.output_dir.parent, second.output_dir.parent} == {tmp_path}
            assert first.output_dir != second.output_dir

        def test_config(reward_kit_run, tmp_path):
            result = reward_kit_run("run.yaml", "generation.n=2")
            result.raise_for_failures()
            assert result.pass_at(2).value == 1.0 and result.mean_score == 0.5
            assert result.output_dir.parent == tmp_path

        def test_failing(reward_kit_run):
            rows = [{"user_query": "2 + 2?", "assistant_response": "4"}]
            reward_kit_run(rows, lambda response: 1 / 0).raise_for_failures()
        """
    )
    done = pytester.runpytest_subprocess(*LOADED)
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["*AnswersFailedError: 1 of 1 answers failed*ZeroDivisionError*"])


def test_it_costs_nothing_where_it_is_not_used() -> None:
    code = (
        "import json, sys, pytest; before = set(sys.modules)\n"
        "import reward_kit.pytest_plugin\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [
        "reward_kit",
        "reward_kit._version",
        "reward_kit.pytest_plugin",
        "reward_kit.utils",
        "reward_kit.utils.lazy_names",
    ]


def test_the_package_declares_it_under_its_own_name() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert declared == {"reward_kit.pytest_plugin": "reward_kit.pytest_plugin"}
