# SPDX-License-Identifier: Apache-2.0
"""Worlds of inherited tasks: the user's turns, the calls that went well, the final query, the task's own server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from reward_kit.agent.environment import Answer
from reward_kit.agent.task_environment import (
    MAX_STEPS_PER_USER_TURN,
    TaskEnvironment,
    TaskWorld,
    opening_messages,
    user_turns,
)
from reward_kit.errors import ConfigError, EnvironmentFailure
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message, Sample, TaskDefinitionModel

SAMPLE = Sample(id="s", messages=[])


def task(**more: Any) -> TaskDefinitionModel:
    base = {
        "name": "t",
        "resource_type": "SQLResource",
        "base_resource_config": {"schema_sql": "CREATE TABLE t (a); INSERT INTO t VALUES (1);"},
        "reward_function_path": "x:y",
        "messages": [{"role": "system", "content": "S"}, *({"role": "user", "content": f"u{n}"} for n in range(4))],
    }
    return TaskDefinitionModel.model_validate({**base, **more})


def calling(*calls: tuple[str, Any]) -> Message:
    made = [
        ChatCompletionMessageToolCall(
            id=str(place),
            function=FunctionCall(name=name, arguments=given if isinstance(given, str) else json.dumps(given)),
        )
        for place, (name, given) in enumerate(calls)
    ]
    return Message(role="assistant", content="", tool_calls=made)


def sql(query: str) -> tuple[str, Any]:
    return "execute_sql", {"query": query}


async def opened(definition: TaskDefinitionModel) -> tuple[TaskEnvironment, TaskWorld]:
    environment = TaskEnvironment(definition)
    world = await environment.open(SAMPLE)
    assert isinstance(world, TaskWorld)
    return environment, world


async def said(world: TaskWorld, message: Message) -> Answer:
    world.runner.begin_turn()
    return await world.answer(message)


def test_turns_of_the_user() -> None:
    assert [message.text for message in opening_messages(task())] == ["S", "u0"]
    assert [[message.text for message in turn] for turn in user_turns(task())] == [["u0"], ["u1"], ["u2"]]  # max 3
    packed = json.dumps([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
    two = task(messages=[{"role": "user", "content": packed}, {"role": "user", "content": "[not json"}])
    assert [[message.text for message in turn] for turn in user_turns(two)] == [["a", "b"], ["[not json"]]
    assert [m.text for m in opening_messages(task(messages=None, initial_user_prompt="hello"))] == ["hello"]


async def test_the_user_goes_on_when_the_model_has_answered_and_ends_the_episode_in_the_end() -> None:
    environment, world = await opened(task())
    first = await said(world, calling(sql("SELECT 1"), sql("SELEKT")))
    assert [message.role for message in first.messages] == ["tool", "tool"] and not first.done
    second = await said(world, Message(role="assistant", content="so"))
    assert [message.text for message in second.messages] == ["u1"] and not second.done
    await said(world, calling(sql("DELETE FROM t"), ("fly", {}), ("execute_sql", "{")))
    third = await said(world, Message(role="assistant", content="so"))
    assert [message.text for message in third.messages] == ["u2"]
    last = await said(world, Message(role="assistant", content="so"))
    assert last.done and not last.messages
    facts = await world.facts()
    assert facts["successful_func_calls"] == [
        [{"name": "execute_sql", "args": {"query": "SELECT 1"}}],
        [{"name": "execute_sql", "args": {"query": "DELETE FROM t"}}],
        [],
    ]
    await world.close()
    await environment.close()


async def test_a_model_that_never_answers_hears_the_user_all_the_same() -> None:
    environment, world = await opened(task(poc_max_turns=2))
    for step in range(1, 2 * MAX_STEPS_PER_USER_TURN + 1):
        answer = await said(world, calling(sql("SELECT 1")))
        spoke = [message.text for message in answer.messages if message.role == "user"]
        assert spoke == (["u1"] if step == MAX_STEPS_PER_USER_TURN else [])
        assert answer.done == (step == 2 * MAX_STEPS_PER_USER_TURN)
    await world.close()
    await environment.close()


async def test_the_final_query_says_whether_the_task_was_achieved() -> None:
    criteria = {"final_state_query": "SELECT count(*) FROM t", "expected_query_result_transform": "lambda x: x == 0"}
    environment, world = await opened(task(evaluation_criteria=criteria))
    assert (await world.facts())["task_achieved"] is False
    await said(world, calling(sql("DELETE FROM t")))
    facts = await world.facts()
    assert (facts["final_state"], facts["task_achieved"]) == (0, True)
    await world.close()
    await environment.close()
    with pytest.raises(ConfigError, match="system"):
        TaskEnvironment(task(evaluation_criteria={"expected_query_result_transform": "lambda x: x.system"}))


async def test_a_snapshot_holds_the_resource_and_how_far_the_user_is() -> None:
    environment, world = await opened(task())
    await said(world, calling(sql("DELETE FROM t")))
    await said(world, Message(role="assistant", content="so"))
    state = await world.snapshot()
    other = await environment.open(SAMPLE)
    assert isinstance(other, TaskWorld)
    await other.restore(state)
    assert await other.facts() == await world.facts()
    for one in (world, other):
        assert [m.text for m in (await said(one, Message(role="assistant", content="so"))).messages] == ["u2"]
        await one.close()
    await environment.close()


SERVER = """
import json, sys, os
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def reply(self, value):
        body = json.dumps(value).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.reply({"status": "ok"})
    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/start_episode":
            self.reply({"episode_id": "e", "observation": {"message": f"seed {given.get('seed')}"}})
        elif self.path == "/step":
            self.reply({"observation": {"pid": os.getpid()}, "is_done": given["action"] == "stop"})
        else:
            self.reply({"message": "ended"})
    def log_message(self, *_): pass
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def served(tmp_path: Path, command: str = "{python} {file} {{port}}") -> TaskDefinitionModel:
    (tmp_path / "server.py").write_text(SERVER)
    start = command.format(python=sys.executable, file=tmp_path / "server.py")
    server = {"start_command": start, "health_check_url": "http://127.0.0.1:{port}/health"}
    return task(
        resource_type="http_rollout",
        base_resource_config={"base_url": "filled in"},
        resource_server=server,
        messages=None,
    )


async def test_a_tasks_server_is_started_and_ended_with_its_worlds(tmp_path: Path) -> None:
    environment = TaskEnvironment(served(tmp_path, "echo starting; {python} {file} {{port}} & wait"))
    sample = Sample(id="s", messages=[], columns={"seed": 7})
    world: Any = await environment.open(sample)
    assert await world.start() == "seed 7"
    answer = await said(world, calling(("step", {"action": "stop"})))
    assert answer.done
    process = json.loads(answer.messages[0].text)["observation"]["pid"]
    os.kill(process, 0)
    await world.close()
    await environment.close()
    for _ in range(1000):  # it was killed; until somebody waits for it, its number is still there
        try:
            if "Z" in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2][:3]:
                break
        except OSError:
            break
        await asyncio.sleep(0.01)
    else:
        pytest.fail("the server is still there")


async def test_a_server_that_does_not_start_is_shown_with_what_it_said(tmp_path: Path) -> None:
    environment = TaskEnvironment(served(tmp_path, "echo no such game; exit 3"))
    with pytest.raises(EnvironmentFailure, match=r"status 3.*no such game"):
        await environment.open(SAMPLE)
    await environment.close()
