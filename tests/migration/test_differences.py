# SPDX-License-Identifier: Apache-2.0
"""Where we differ from the older package on purpose: docs/migrating.md names each of these tests."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from reward_kit import EvaluationPipeline, Message, evaluate
from reward_kit.config import load_config as load_project
from reward_kit.errors import ConfigError
from reward_kit.generic_server import load_reward_function
from reward_kit.generic_server import main as generic_main
from reward_kit.rewards import accuracy_reward, exact_tool_match_reward, math_reward
from reward_kit.rewards.code_execution import compare_outputs
from reward_kit.rewards.lean_prover import lean_prover_reward
from reward_kit.server import RewardServer
from reward_kit.testing import MockServer
from tests.cli_commands.conftest import Call, call, write_config
from tests.loopback.runs import config, lines, questions, write_rows

__all__ = ["call"]


def said(text: str) -> list[Message]:
    return [Message(role="user", content="?"), Message(role="assistant", content=text)]


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_settings_that_were_read_and_not_sent_are_sent(tmp_path: Path) -> None:
    with MockServer({"rules": [{"pattern": ".", "response": "4"}]}) as server:
        told = config(tmp_path, server.url, rows=questions(1))
        told["generation"] |= {"top_k": 20, "min_p": 0.1, "reasoning_effort": "low"}
        told["seed"] = told["generation"].pop("seed")
        EvaluationPipeline(told).run()
    body = server.requests[0].body
    assert (body["top_k"], body["min_p"], body["reasoning_effort"]) == (20, 0.1, "low")
    assert isinstance(body["seed"], int) and body["temperature"] == 0.7


def test_a_second_run_asks_nobody_again(tmp_path: Path) -> None:
    with MockServer({"rules": [{"pattern": ".", "response": "4"}]}) as server:
        for place in ("first", "second"):
            told = config(tmp_path, server.url, rows=questions(3), output__output_dir=str(tmp_path / place))
            told["generation"]["cache"]["enabled"] = True
            EvaluationPipeline(told).run()
        assert len(server.requests) == 3


def test_answers_in_the_data_are_judged(tmp_path: Path) -> None:
    rows = [{**row, "assistant_response": row["ground_truth_for_eval"]} for row in questions(2)]
    told = config(tmp_path, rows=rows, generation__enabled=False, reward__function_path="math")
    assert EvaluationPipeline(told).run().mean_score == 1.0


def test_the_answers_to_a_sample_share_its_id(tmp_path: Path) -> None:
    result = EvaluationPipeline(config(tmp_path, rows=questions(2), generation__n=2)).run()
    assert [(row["id"], row["response_index"]) for row in result] == [("s0", 0), ("s0", 1), ("s1", 0), ("s1", 1)]


def test_what_went_wrong_is_told_by_the_exit_code(tmp_path: Path, call: Call) -> None:
    nowhere = config(tmp_path, dataset__path_or_name="nowhere.jsonl")
    assert call("run", write_config(tmp_path, nowhere)).code == 2
    (tmp_path / "bad.py").write_text("def bad(messages, **kwargs):\n    raise ValueError('no')\n")
    raising = config(tmp_path, reward__function_path=f"{tmp_path}/bad.py:bad")
    assert call("run", write_config(tmp_path, raising)).code == 1


def test_an_error_has_no_score() -> None:
    def broken(messages: list[Message], **kwargs: Any) -> float:
        raise ValueError("no")

    result = evaluate([{"id": "a", "user_query": "?", "assistant_response": "x"}], broken)
    (row,) = result.rows()
    assert row["evaluation_score"] is None and "ValueError" in str(row["error"])
    assert (result.mean_score, result.failed) == (None, 1)


def test_every_column_reaches_the_reward() -> None:
    rows = [{"user_query": "?", "assistant_response": "a", "level": 3}]
    assert evaluate(rows, lambda response, level: level / 4).mean_score == 0.75


def test_requirements_of_a_reward_are_not_installed(tmp_path: Path) -> None:
    code = "from reward_kit import reward_function\n@reward_function(requirements=['no-such-package-0'])\n"
    (tmp_path / "needy.py").write_text(code + "def needy(messages, **kwargs):\n    return 1.0\n")
    told = config(tmp_path, reward__function_path=f"{tmp_path}/needy.py:needy")
    assert EvaluationPipeline(told).run().mean_score == 1.0


def test_the_intermediary_server_of_agents_is_refused(tmp_path: Path) -> None:
    told = {**config(tmp_path), "agent": {"type": "mcp_agent", "intermediary_server_url": "http://localhost:8001"}}
    with pytest.raises(ConfigError, match=r"unknown key 'agent\.type'"):
        EvaluationPipeline(told)


def test_files_of_the_older_cache_are_left_alone(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    old = write_rows(cache / ("0" * 32 + ".json"), [{"assistant_response": "old"}])
    told = config(tmp_path)
    told["generation"]["cache"]["enabled"] = True
    assert EvaluationPipeline(told).run().judged == 4
    assert lines(old) == [{"assistant_response": "old"}]


# ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_number_that_is_near_is_not_right() -> None:
    assert accuracy_reward(messages=said("3.149999"), ground_truth="3.14159").score == 0.0
    assert accuracy_reward(messages=said("20"), ground_truth="25").score == 0.0


def test_two_answers_earn_nothing() -> None:
    both = said("It is London. Or it is Paris. The answer is London or Paris.")
    assert accuracy_reward(messages=both, ground_truth="Paris").score == 0.0


def test_ordinary_prose_and_symbols_are_right() -> None:
    prose = "She sold 48/2 = 24 clips in May, and 48 in April. The final answer is 72."
    assert math_reward(messages=said(prose), ground_truth="72").score == 1.0
    for formula in (r"\sqrt{2}", r"\frac{\pi}{2}"):
        assert math_reward(messages=said(rf"So \boxed{{{formula}}}."), ground_truth=formula).score == 1.0


def test_similar_output_is_wrong_output() -> None:
    from reward_kit.rewards import local_code_execution_reward
    from tests.execution.shell_support import require_namespaces

    require_namespaces()
    answer = said("```python\nprint(12)\n```")
    assert local_code_execution_reward(messages=answer, ground_truth="13").score == 0.0
    asked_for = local_code_execution_reward(messages=answer, ground_truth="13", similarity_credit=True)
    assert 0.0 < asked_for.score == compare_outputs("12\n", "13") < 1.0


def test_a_truth_that_cannot_be_read_is_no_verdict_and_no_call_no_match() -> None:
    malformed = exact_tool_match_reward(messages=said("Hello."), ground_truth={"function": "get_weather"})
    assert malformed.is_score_valid is False
    expected = {"tool_calls": [{"type": "function", "function": {"name": "f", "arguments": "{}"}}]}
    assert exact_tool_match_reward(messages=said("Hello."), ground_truth=expected).score == 0.0


def test_tactics_are_no_proof() -> None:
    words = said("theorem t : 1 = 2 := by simp; apply foo; exact bar; norm_num")
    told = lean_prover_reward(messages=words, ground_truth="1 = 2", statement="1 = 2")
    assert told.score == 0.0


def test_the_inherited_server_is_not_open_to_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RK_ENDPOINT_API_KEY", raising=False)
    assert RewardServer("tests.serving.rewards:equal").host == "127.0.0.1"
    for start in (RewardServer, load_reward_function):
        with pytest.raises(ConfigError, match="Anybody who reaches") as refused:
            start("tests.serving.rewards:equal", host="0.0.0.0", port=1)
        assert "RK_ENDPOINT_API_KEY" in str(refused.value) and "127.0.0.1 (`host`)" in str(refused.value)
        assert "--" not in str(refused.value) and "access." not in str(refused.value), "it has no such settings"


def test_a_port_that_is_taken_is_said_in_the_words_of_each_way_to_serve(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=r"Give another `port`\."):
            RewardServer("tests.serving.rewards:equal", port=port).run()
        with pytest.raises(SystemExit, match=r"Give another `--port`\."):
            generic_main(["tests.serving.rewards:equal", "--port", str(port)])


def test_keys_of_endpoints_in_the_projects_file_are_read_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "rewardkit.yaml"
    file.write_text(yaml.safe_dump({"evaluator_endpoint_keys": {"mine": "a key"}}))
    before = file.read_bytes()
    assert load_project(str(file)).evaluator_endpoint_keys == {"mine": "a key"}
    assert file.read_bytes() == before
