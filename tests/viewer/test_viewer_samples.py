# SPDX-License-Identifier: Apache-2.0
"""A sample's page: conversations, steps, what was extracted, neighbours, and a command that judges again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reward_kit.evaluating import evaluate
from reward_kit.storage.judged import JudgedAnswer
from reward_kit.viewer.sample_page import steps_of
from reward_kit.viewer.spans import spans_of
from tests.analysis.experiments import rows_of, table_of, write, write_run
from tests.viewer.browser import browsing

pytest.importorskip("duckdb")

GOLDEN = Path(__file__).parents[1] / "golden"
MATH = "reward_kit.rewards.math:math_reward"


def marked(response: str, reason: str = "", reward: str | None = None) -> list[str]:
    """The texts that are marked in an answer, found as the page would find them."""
    line = {"id": "q", "user_query": "?", "assistant_response": response, "evaluation_reason": reason}
    told = JudgedAnswer(line)
    units = told.response.encode("utf-16-le")
    return [units[2 * one["start"] : 2 * one["end"]].decode("utf-16-le") for one in spans_of(told, reward, {})]


@pytest.mark.parametrize(
    ("response", "reason", "reward", "found"),
    [
        (r"So 12, no: \boxed{14}.", "Expected '12', the answer is '14'.", None, ["14"]),
        (r"😀 It is \boxed{12}.", "The answer '12' equals '12'.", None, ["12"]),
        (r"First 7, then \boxed{7}.", "", MATH, ["7"]),
        (r"First 7, then \boxed{7}.", "", None, []),  # nobody knows what a reward of one's own reads
        ("7 or 7?", "The answer '7' equals '7'.", None, []),  # which of them?
        ("Say 5.", "Expected '12', the answer is '14'.", MATH, []),  # it says what is not there
        ("x" * 300_000 + r" \boxed{1}", "The answer '1' equals '1'.", MATH, []),
        ("```python\nprint(1)\n```", "", "reward_kit.rewards.code_execution:fractional_code_reward", ["print(1)"]),
        ("", "", MATH, []),
    ],
)
def test_what_was_extracted_is_marked_or_nothing_is(
    response: str, reason: str, reward: str | None, found: list[str]
) -> None:
    assert marked(response, reason, reward) == found


def test_an_episode_is_told_step_by_step() -> None:
    messages = [
        {"role": "system", "content": "Rules."},
        {"role": "user", "content": "Begin."},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "1", "function": {"name": "look", "arguments": '{"at": "map"}'}}]},
        {"role": "tool", "content": "a wall", "tool_call_id": "1"},
        {"role": "assistant", "content": "I give up."},
    ]  # fmt: skip
    steps = [
        {"turn": 0, "reward": 0.5, "latency_ms": 500.0, "calls": [{"id": "1", "name": "look", "error": "timeout",
                                                                  "seconds": 1.0}]},
        {"turn": 2, "reward": -1.0, "calls": []},
    ]  # fmt: skip
    outputs = [{"step_index": 1, "base_reward": 0.25}]
    told = JudgedAnswer(
        {"id": "q", "user_query": "Begin.", "assistant_response": "I give up.", "messages": messages, "steps": steps,
         "step_outputs": outputs}
    )  # fmt: skip

    first, second = steps_of(told)

    assert [turn["role"] for turn in told.prompt] == ["system", "user"]
    assert first["does"]["tool_calls"] == [{"id": "1", "name": "look", "arguments": '{"at": "map"}'}]
    assert [part["text"] for part in first["answers"]] == ["a wall"]
    assert (first["reward"], first["seconds"], first["error"]) == (0.5, 1.5, "timeout")
    assert (second["does"]["text"], second["answers"], second["reward"]) == ("I give up.", [], 0.25)


def test_a_shell_task_is_told_by_its_commands() -> None:
    with browsing(GOLDEN / "shell") as browser:
        (name,) = {row["id"] for row in browser.run("/rows", limit=1)["rows"]}
        candidate = browser.sample(name)["candidates"][0]
        raw = browser.run(f"/records/{name}/0")["result"]

        rollout = browser.run(f"/records/{name}/0")["rollout"]

    assert (rollout["id"], rollout["response_index"]) == (name, 0)
    assert [step["command"] for step in candidate["steps"]] == [step["command"] for step in raw["trajectory"]]
    assert [step["exit_code"] for step in candidate["steps"]] == [step["exit_code"] for step in raw["trajectory"]]
    assert "shell tasks" in candidate["command"]


def test_reasoning_stands_apart_from_the_answer() -> None:
    with browsing(GOLDEN / "run") as browser:
        page = browser.sample("sum-1")

    aloud, apart = page["candidates"][0]["response"], page["candidates"][1]["response"]
    assert (aloud["text"], aloud["reasoning"]) == ("It is 5.", "I add [2, 3].")
    assert apart["reasoning"] == "I add them."
    assert [part["role"] for part in page["prompt"]] == ["system", "user"]
    assert page["ground_truth"] == "5"
    assert page["columns"] == {"level": 1, "source": {"book": "Übung", "page": 7}}
    assert page["candidates"][0]["metrics"] == [{"name": "form", "score": 1.0, "valid": True, "reason": "a full stop"}]


def test_neighbours_are_those_of_the_tables_order(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"a": [1.0], "b": [0.0], "c": [1.0], "d": [None], "e": [1.0]})
    with browsing(run) as browser:
        plain = browser.sample("c")["neighbours"]
        sorted_ = browser.sample("c", sort="-id")["neighbours"]
        filtered = browser.sample("c", where="score:eq:1")["neighbours"]
        elsewhere = browser.sample("b", where="score:eq:1")["neighbours"]

    assert plain == {
        "position": 2, "total": 5, "previous": "b", "next": "d", "previous_failure": "b", "next_failure": "d",
    }  # fmt: skip
    assert (sorted_["previous"], sorted_["next"], sorted_["next_failure"]) == ("d", "b", "b")
    assert (filtered["previous"], filtered["next"], filtered["next_failure"]) == ("a", "e", None)
    assert (elsewhere["previous"], elsewhere["next"]) == (None, None)


def test_samples_of_any_name_are_found(tmp_path: Path) -> None:
    names = ["a/b", "a b?c=d&e", "..", "Ü%41", "x" * 500, "'; --"]
    run = write_run(tmp_path / "run", {name: [1.0, 0.0] for name in names})
    with browsing(run) as browser:
        assert [browser.sample(name)["id"] for name in names] == names
        assert browser.ask(f"/api/runs/{browser.keys[0]}/samples/nobody").error == "not_there"
        assert browser.ask(f"/api/runs/{browser.keys[0]}/records/a%2Fb/7").error == "not_there"


def test_an_id_that_two_splits_have_is_told_apart(tmp_path: Path) -> None:
    rows = [*rows_of({"a": "1", "b": "0"}, split="x"), *rows_of({"a": "0"}, split="y")]
    with browsing(write(tmp_path / "table.parquet", table_of(rows))) as browser:
        names = [row["id"] for row in browser.run("/rows")["rows"]]
        assert names == ["a@x", "b@x", "a@y"]
        assert [browser.sample(name)["split"] for name in names] == ["x", "x", "y"]
        assert browser.run()["hardest"][0]["id"] in names


# ── judging again ────────────────────────────────────────────────────────────────────────────────────────────────────

REWARD = """
from reward_kit import EvaluateResult, reward_function

@reward_function
def close(messages, ground_truth=None, level=None, weight=1.0, **kwargs):
    said = messages[-1].text
    same = said.strip().endswith(str(ground_truth))
    asked = len(messages) - 1
    return EvaluateResult(score=weight * same + 0.01 * len(said) + 0.1 * (level or 0) + asked, reason=f"{said!r}")
"""
ANSWERS = [
    "It's \"7\" $HOME `date` \\n %s", "-", "two\nlines 7", "Ünï 😀 7", "--help 7", "<think>so</think>\n7", "@file", "",
]  # fmt: skip


def test_the_command_judges_the_same_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("needs bash, which the command is written for")
    (tmp_path / "mine.py").write_text(REWARD)
    rows = [
        {"id": f"q{n}", "user_query": f"Say 7, please: {n}'\"", "assistant_response": answer, "level": n,
         "ground_truth_for_eval": "@7" if n == 0 else "7"}
        for n, answer in enumerate(ANSWERS)
    ]  # fmt: skip
    monkeypatch.chdir(tmp_path)
    evaluate(rows, "mine.py:close", params={"weight": 2.5}, output_dir="outputs/run", reward_settings={"workers": 1})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.py").write_text("raise ImportError('another file of the same name')")
    monkeypatch.chdir(elsewhere)  # where the viewer is started, and the command is pasted
    with browsing(tmp_path / "outputs" / "run") as browser:
        candidates = [browser.sample(f"q{n}")["candidates"][0] for n in range(len(ANSWERS))]
    assert {candidate["command_note"] for candidate in candidates} == {""}
    commands = [candidate["command"] for candidate in candidates]
    able = [(one, two) for one, two in zip(commands, candidates, strict=True) if one.startswith("reward-kit")]
    assert len(able) >= len(ANSWERS) - 1
    script = "\n".join(f"{command} --json" for command, _ in able)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "reward-kit").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m reward_kit "$@"\n')
    (bin_folder / "reward-kit").chmod(0o755)
    environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}

    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=False, env=environment)

    told: list[Any] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["score"], one["reason"]) for one in told] == [(two["score"], two["reason"]) for _, two in able], (
        done.stderr
    )


def test_a_command_says_which_file_it_judges_with_or_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.py"
    file.write_text(REWARD)
    monkeypatch.chdir(tmp_path)
    row = {"id": "q", "user_query": "Say 7.", "assistant_response": "7", "ground_truth_for_eval": "7"}
    evaluate([row], "mine.py:close", output_dir="outputs/run", reward_settings={"workers": 1})
    with browsing(tmp_path / "outputs" / "run") as browser:
        file.write_text(f"{REWARD}\n# mended\n")
        mended = browser.sample("q")["candidates"][0]
        file.unlink()
        gone = browser.sample("q")["candidates"][0]

    assert f"{file}:close" in mended["command"]
    assert mended["command_note"] == f"The command judges with {file} as that file is now."
    assert " mine.py:close " in gone["command"]
    assert "in the folder from which mine.py is found" in gone["command_note"]


def test_tokens_are_of_a_request_and_its_answers_are_counted(tmp_path: Path) -> None:
    rows = [{"id": "q", "user_query": "Say 7.", "ground_truth_for_eval": "7"}]
    mock = {"responses": ["7", "8", "9"]}
    evaluate(rows, MATH, model="mock", n=3, output_dir=str(tmp_path / "run"), generation={"mock": mock})
    with browsing(tmp_path / "run") as browser:
        candidates = browser.sample("q")["candidates"]

    assert [candidate["tokens"] is None for candidate in candidates] == [False, True, True]
    assert [candidate["request_answers"] for candidate in candidates] == [3, 3, 3]
