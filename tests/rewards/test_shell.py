# SPDX-License-Identifier: Apache-2.0
"""The shell reward, in real sandboxes: what counts as success, and what cannot be talked into it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reward_kit.config_models import SandboxConfig
from reward_kit.errors import SandboxError
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.shell import shell_reward
from reward_kit.sandbox.from_settings import Sandboxes
from reward_kit.sandbox.namespaces.backend import NamespacesBackend
from tests.execution.shell_support import require_namespaces


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandboxes]:
    require_namespaces()
    backend = NamespacesBackend()
    yield Sandboxes(backend, SandboxConfig(timeout=5))
    await backend.close()


async def judge(sandbox: Sandboxes, command: str, condition: str, *setup: str, **options: Any) -> EvaluateResult:
    answer = Message(role="assistant", content=json.dumps({"command": command}))
    result: Any = await shell_reward(
        messages=[answer], success_condition=condition, setup_commands=[*setup], sandbox=sandbox, **options
    )
    assert isinstance(result, EvaluateResult)
    return result


def facts(result: EvaluateResult, step: str) -> dict[str, Any]:
    return next(output.metrics for output in result.step_outputs or [] if output.step_index == step)


async def test_the_command_must_succeed_and_the_condition_hold(sandbox: Sandboxes) -> None:
    done = await judge(sandbox, "touch a", "test -f a")
    assert done.score == 1.0 and facts(done, "command")["exit_code"] == facts(done, "check")["exit_code"] == 0
    failing = await judge(sandbox, "touch a; false", "test -f a")
    assert failing.score == 0.0 and failing.metrics["test_passed"].score == 1.0
    beside = await judge(sandbox, "touch b", "test -f a")
    assert beside.score == 0.0 and beside.metrics["command_success"].score == 1.0


async def test_what_setup_did_to_the_shell_lasts(sandbox: Sandboxes) -> None:
    done = await judge(sandbox, 'touch "$NAME"', "test -f here", "mkdir -p deep/er", "cd deep/er", "NAME=here")
    assert done.score == 1.0


@pytest.mark.parametrize(
    "cheat",
    [
        "cd / && touch a",
        "test() { return 0; }; export -f test",
        "alias test=true; touch b",
        "function [ { true; }; PATH=/nowhere",
        "echo 0; exit 0",
        "exec true",
        "trap 'exit 0' EXIT; kill -9 $$",
        "printf '\\0330\\n'; builtin() { true; }; export -f builtin",
        "mkdir ../a; mv ../work ../moved 2>/dev/null; true",
    ],
)
async def test_a_command_cannot_talk_its_way_to_success(sandbox: Sandboxes, cheat: str) -> None:
    result = await judge(sandbox, cheat, "test -f a", "mkdir work", "cd work")
    assert result.metrics["test_passed"].score == 0.0 and result.score == 0.0


async def test_the_condition_is_judged_where_setup_ended_wherever_the_command_goes(sandbox: Sandboxes) -> None:
    done = await judge(
        sandbox, "touch a && cd / && exit 0", 'test -f a && test "$(pwd)" = /root/work', "mkdir work", "cd work"
    )
    assert done.score == 1.0 and facts(done, "command")["exited"]


async def test_a_directory_that_is_gone_does_not_stop_the_condition(sandbox: Sandboxes) -> None:
    done = await judge(sandbox, "rm -r /root/work", "test ! -e /root/work", "mkdir work", "cd work")
    assert done.score == 1.0


async def test_a_failure_within_a_pipeline_is_a_failure(sandbox: Sandboxes) -> None:
    result = await judge(sandbox, "false | true", "true")
    assert result.metrics["command_success"].score == 0.0 and facts(result, "command")["exit_code"] == 1
    assert (await judge(sandbox, "true", "false | true")).score == 1.0, "but not in the condition"


async def test_running_out_of_time_is_told_as_such(sandbox: Sandboxes) -> None:
    slow = Sandboxes(sandbox._backend, SandboxConfig(timeout=0.3))
    result = await judge(slow, "sleep 60", "true")
    command = facts(result, "command")
    assert (command["exit_code"], command["timed_out"]) == (124, True)
    assert result.score == 0.0 and result.metrics["test_passed"].score == 1.0


async def test_a_killed_command_has_the_exit_code_shells_give_it(sandbox: Sandboxes) -> None:
    assert facts(await judge(sandbox, "bash -c 'kill -9 $$'", "true"), "command")["exit_code"] == 137
    assert facts(await judge(sandbox, "kill -9 $$", "true"), "command")["exit_code"] == 137


async def test_no_command_is_a_wrong_answer_and_nothing_is_run() -> None:
    result = await judge_text("I would rather not.")
    assert result.score == 0.0 and result.step_outputs is None and "no command" in (result.reason or "")


async def judge_text(text: str) -> EvaluateResult:
    def nothing(**_: Any) -> Any:
        raise AssertionError("no sandbox is needed")

    result: Any = await shell_reward(
        messages=[Message(role="assistant", content=text)], success_condition="true", sandbox=nothing
    )
    assert isinstance(result, EvaluateResult)
    return result


async def test_without_extraction_the_message_is_the_command(sandbox: Sandboxes) -> None:
    text = 'echo \'{"command": "false"}\' > a'
    result: Any = await shell_reward(
        messages=[Message(role="assistant", content=text)],
        success_condition="grep -q command a",
        sandbox=sandbox,
        extract=False,
    )
    assert result.score == 1.0


async def test_without_a_run_the_sandboxes_of_this_process_are_used(sandbox: Sandboxes) -> None:
    """As a trainer calls it: nobody hands it a sandbox."""
    answers = [
        Message(role="assistant", content=command) for command in ("touch a", "touch b", "```bash\ntouch a\n```")
    ]
    results = await asyncio.gather(*(shell_reward([answer], success_condition="test -f a") for answer in answers))
    assert [result.score for result in results] == [1.0, 0.0, 1.0]
    with pytest.raises(SandboxError, match="setup"):
        await shell_reward([answers[0]], success_condition="true", setup_commands=["false"])
