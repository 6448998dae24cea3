# SPDX-License-Identifier: Apache-2.0
"""Worlds of ours in OpenEnv's own harness, with a script for a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from openenv.core.harness import (
    HarnessRunLimits,
    MCPHarnessAdapter,
    ModelStepResult,
    ResourceSession,
    ResourceSessionFactory,
    SessionMCPBridge,
    build_harness_rollout_func,
)
from openenv.core.llm_client import LLMResponse, ToolCall

from reward_kit.agent import World, tool
from reward_kit.errors import ConfigError
from reward_kit.integrations.openenv_agent import openenv_sessions
from reward_kit.models import Sample
from tests.agent.worlds import Account
from tests.training.saving import Lamp, raises, saved

TASK = {"prompt": [{"role": "user", "content": "Save 10."}], "answer": 10}
Turn = str | Sequence[tuple[str, dict[str, Any]]]


def scripted(turns: Sequence[Turn], seen: list[Any] | None = None) -> Any:
    """A model's turns: a text, or calls that are made together."""

    def step(messages: list[Any], tools: list[Any], sampling: dict[str, Any]) -> ModelStepResult:
        if seen is not None:
            seen.append(([*messages], tools))
        turn = turns[sum(message["role"] == "assistant" for message in messages)]
        if isinstance(turn, str):
            return ModelStepResult(LLMResponse(content=turn), [1], [2, 3], [-0.5, -0.5])
        made = [ToolCall(id=f"c{place}", name=name, args=arguments) for place, (name, arguments) in enumerate(turn)]
        return ModelStepResult(LLMResponse(content="", tool_calls=made), [1], [2], [-0.5])

    return step


def trained(sessions: Any, prompts: list[Any], turns: Sequence[Turn], limits: HarnessRunLimits | None = None) -> Any:
    """What a trainer is handed by OpenEnv's rollout function."""
    rollout = build_harness_rollout_func(
        session_factory=sessions, harness_adapter=MCPHarnessAdapter(),
        model_step_builder=lambda trainer, session: scripted(turns), limits=limits,
    )  # fmt: skip
    return rollout(prompts, None)


def test_the_harness_plays_an_episode_and_is_told_what_it_was_worth() -> None:
    Account.opened = Account.closed = 0
    sessions = openenv_sessions(Account, saved)
    assert isinstance(sessions, ResourceSessionFactory)
    five = ("deposit", {"amount": 5})
    got = trained(sessions, [TASK, {**TASK, "answer": 11}], [[five, five], "Saved."])
    assert got["env_reward"] == [2.0, 1.0]
    assert got["completion_ids"] == [[2, 2, 3]] * 2
    assert got["verify_metrics"] == [{"judged": 1.0, "ended": "answered"}] * 2
    assert (Account.opened, Account.closed) == (2, 2)


def test_tools_messages_and_results_are_openenvs_own() -> None:
    session = openenv_sessions(Lamp).create("Light it.", seed=3, episode_id="e7")
    assert isinstance(session, ResourceSession)
    seen: list[Any] = []
    calls: list[Turn] = [[("switch", {"on": "perhaps"})], [("switch", {"on": True})], "never said"]
    result = MCPHarnessAdapter().run_white_box(scripted(calls, seen), session)
    messages, (switch,) = seen[0]
    assert [message["content"] for message in messages] == ["Light it.", "It is dark."]
    assert (switch.name, switch.description) == ("switch", "Switch the lamp.")
    assert switch.input_schema["properties"]["on"]["type"] == "boolean"
    wrong, right = (entry.result for entry in result.tool_trace)
    assert wrong.error is not None and "schema" in wrong.error and not wrong.done
    assert (right.data, right.error, right.done, right.metadata) == ("Click.", None, True, {"step_reward": 0.5})
    assert result.done and len(seen) == 2
    assert session.verify(result.messages).env_reward == 1.0
    assert session.call_tool("switch", {"on": False}).data == "The episode is over."
    session.close()


def test_a_seed_and_an_id_are_the_samples() -> None:
    found: list[Sample] = []

    class Seen(World):
        """Keeps its sample."""

        def __init__(self, sample: Sample) -> None:
            found.append(sample)

    openenv_sessions(Seen).create({"prompt": "Go.", "level": 2}, seed=3, episode_id="e7").close()
    assert (found[0].id, found[0].columns["seed"], found[0].columns["level"]) == ("e7", 3, 2)


def test_a_limit_of_the_harness_cuts_the_episode_off_and_it_is_judged_all_the_same() -> None:
    got = trained(openenv_sessions(Lamp), ["Light it."], [[("switch", {"on": False})]] * 9, HarnessRunLimits(3))
    assert got["env_reward"] == [1.5]
    assert got["verify_metrics"] == [{"judged": 1.0, "ended": None}]


@pytest.mark.parametrize("prompt", ["broken at once", "broken later"])
def test_a_world_that_fails_is_not_scored_and_the_others_do_not_notice(prompt: str) -> None:
    lit = [("switch", {"on": True})]
    got = trained(openenv_sessions(Lamp, failed_score=-1.0), [prompt, "Light it."], [lit, "Lit."])
    assert got["env_reward"] == [-1.0, 0.5]
    assert [metrics["judged"] for metrics in got["verify_metrics"]] == [0.0, 1.0]
    session = openenv_sessions(Lamp).create(prompt)
    MCPHarnessAdapter().run_white_box(scripted([lit, "Lit."]), session)
    assert session.verify([]).env_reward is None, "OpenEnv's word for not scored"
    session.close()


def test_an_episode_that_the_reward_cannot_judge_is_not_scored() -> None:
    session = openenv_sessions(Account, raises).create(TASK)
    assert session.verify([{"role": "assistant", "content": "Done."}]).env_reward is None
    session.close()


def test_a_session_is_served_over_openenvs_bridge() -> None:
    session = openenv_sessions(Account, saved).create(TASK)
    bridge = SessionMCPBridge(session)
    listed = bridge.handle_request({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert [each["name"] for each in listed["result"]["tools"]] == ["deposit", "balance_now"]
    request = {"name": "deposit", "arguments": {"amount": 10}}
    called = bridge.handle_request({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": request})
    assert called["result"]["data"] == "The balance is 10."
    session.close()


def test_names_that_openenv_keeps_for_itself_are_refused() -> None:
    class Stepping(World):
        """Has a tool that OpenEnv could not tell from its own."""

        def __init__(self, sample: Sample) -> None:
            pass

        @tool
        def step(self) -> str:
            """Step."""
            return "on"

    session = openenv_sessions(Stepping).create("Go.")
    with pytest.raises(ConfigError, match="another name"):
        session.list_tools()
    session.close()
