# SPDX-License-Identifier: Apache-2.0
"""One episode of a task, played and judged, as the inherited package does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reward_kit.agent.agent_model import model_settings
from reward_kit.agent.orchestrator import Orchestrator
from reward_kit.agent.resources import SQLResource
from reward_kit.agent.task_reward import task_reward
from reward_kit.config_models import GenerationConfig
from reward_kit.errors import ConfigError
from reward_kit.generation.factory import make_client
from reward_kit.models import EvaluateResult, Message, Rollout, Step, TaskDefinitionModel
from reward_kit.reward_call import MADE_WITH, RewardCall
from reward_kit.typed_interface import reward_function
from reward_kit.utils.source_digest import source_digest

PLAYER = """
import json
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message

def act(messages, draw):
    if messages[-1].role == "tool":
        return Message(role="assistant", content="done")
    call = FunctionCall(name="execute_sql", arguments=json.dumps({"query": "DELETE FROM t"}))
    return Message(role="assistant", content="", tool_calls=[ChatCompletionMessageToolCall(id="1", function=call)])

def judged(messages, state, task_achieved, task_definition_name, ground_truth=None, **kwargs):
    assert task_definition_name == "t" and ground_truth["function_calls"] == [["execute_sql()"]]
    assert "CREATE TABLE" in state["resource"].get_comparable_state()["schema"][0]
    return float(task_achieved and len(state["successful_func_calls"][0]) == 1)

def broken(messages, **kwargs):
    raise OSError("no verdict")
"""


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskDefinitionModel:
    (tmp_path / "player.py").write_text(PLAYER)
    monkeypatch.setenv("MODEL_AGENT", "mock")
    return TaskDefinitionModel.model_validate({
        "name": "t",
        "resource_type": "SQLResource",
        "base_resource_config": {"schema_sql": "CREATE TABLE t (a); INSERT INTO t VALUES (1);"},
        "reward_function_path": f"{tmp_path / 'player.py'}:judged",
        "initial_user_prompt": "Empty the table.",
        "evaluation_criteria": {
            "final_state_query": "SELECT count(*) FROM t",
            "expected_query_result_transform": "lambda x: x == 0",
            "ground_truth_function_calls": [["execute_sql()"]],
        },
        "generation": {"mock": {"function_path": f"{tmp_path / 'player.py'}:act"}},
    })  # fmt: skip


async def test_a_task_is_played_and_judged(task: TaskDefinitionModel) -> None:
    done = await Orchestrator(task).execute_task_poc()
    assert done is not None and done["evaluation_result"].score == 1.0
    inputs = done["reward_function_inputs"]
    assert [message["role"] for message in inputs["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert inputs["task_achieved"] is True and inputs["task_definition_name"] == "t"
    again = await Orchestrator(task).execute_task_poc({"column": 1})
    assert again is not None and again["evaluation_result"].score == 1.0  # the first one's DELETE was its own


async def test_what_fails_is_an_error_and_no_score(task: TaskDefinitionModel, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"reward_function_path": task.reward_function_path.replace("judged", "broken")}, "no verdict"),
        ({"reward_function_path": "missing.module:f"}, "cannot be loaded"),
        ({"resource_type": "Nothing"}, "no resource"),
        ({"base_resource_config": {"schema_sql": "CREATE NONSENSE"}}, "syntax error"),
    ]
    for changed, problem in wrong:
        done = await Orchestrator(task.model_copy(update=changed)).execute_task_poc()
        assert done is not None and problem in done["error"]
    monkeypatch.delenv("MODEL_AGENT")
    done = await Orchestrator(task).execute_task_poc()
    assert done is not None and "MODEL_AGENT" in done["error"]


async def test_the_base_resource_and_its_tools_can_be_looked_at(task: TaskDefinitionModel) -> None:
    orchestrator = Orchestrator(task)
    await orchestrator.setup_base_resource()
    assert isinstance(orchestrator.base_resource, SQLResource)
    tools = await orchestrator._get_available_tools(orchestrator.base_resource)
    assert await tools["execute_sql"]({"query": "SELECT a FROM t", "fetch_mode": "val"}) == 1
    await orchestrator.close()
    assert orchestrator.base_resource is None


def test_names_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("FIREWORKS_API_KEY", "k")
    names = ["openai/gpt-x", "fireworks/m", "accounts/fireworks/models/m", "gpt-y"]
    clients = [make_client(GenerationConfig.model_validate(model_settings(name))) for name in names]
    assert [client.model for client in clients] == ["gpt-x", *["accounts/fireworks/models/m"] * 2, "gpt-y"]
    openai, fireworks = "https://api.openai.com/v1", "https://api.fireworks.ai/inference/v1"
    assert [client.identity["endpoint"] for client in clients] == [openai, fireworks, fireworks, openai]
    with pytest.raises(ConfigError, match="no provider 'org'"):
        make_client(GenerationConfig.model_validate(model_settings("org/model")))
    monkeypatch.delenv("MODEL_AGENT", raising=False)
    with pytest.raises(ConfigError, match="--model"):
        model_settings()


@reward_function
async def slow(
    messages: list[Message], *, state: Any, steps: Any = None, column: str = "", **kwargs: Any
) -> EvaluateResult:
    assert "facts" not in kwargs
    return EvaluateResult(score=len(state["successful_func_calls"]), reason=f"{column} {steps}")


def test_the_tasks_reward_is_asked_for_what_it_names() -> None:
    call = RewardCall(getattr(task_reward, MADE_WITH)({"reward": slow, "task": "t"}))
    assert call.is_async and call.wants("rollout") and not call.wants("world")
    rollout = Rollout.of_conversation([Message(role="assistant", content="x")], None, {"column": "c"})
    rollout = rollout.model_copy(update={"facts": {"successful_func_calls": [[], []]}, "steps": [Step(turn=0)]})
    result = call.judge(call.arguments_of([rollout]))
    assert (result.score, result.reason) == (2.0, f"c {[Step(turn=0)]}")


def test_two_rewards_of_tasks_are_told_apart_by_their_source(tmp_path: Path) -> None:
    file = tmp_path / "judging.py"

    def digest(text: str) -> str:
        file.write_text(f"def judged(messages, **kwargs):\n    return {text}\n")
        return source_digest(RewardCall(task_reward, {"reward": f"{file}:judged", "task": "t"}).function)

    first = digest("1.0")
    assert digest("0.5") != first == digest("1.0")
