# SPDX-License-Identifier: Apache-2.0
"""The server speaks the original's protocol, and has none of its faults."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import ClientSession

from reward_kit.errors import ConfigError
from reward_kit.sandbox.contract import Limits, SandboxBackend
from reward_kit.sandbox.sos.server import serving
from tests.sandbox.sos.servers import TOKEN, Caller, Counting, namespaces, served, until
from tests.sandbox.waiting import enough_for
from tests.sandbox.waiting import until as comes_true

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def real() -> AsyncIterator[SandboxBackend]:
    async with namespaces() as backend:
        yield backend


@pytest_asyncio.fixture(loop_scope="module")
async def backend(real: SandboxBackend) -> AsyncIterator[Counting]:
    counting = Counting(real)
    yield counting
    assert not counting.open_now


@pytest_asyncio.fixture(loop_scope="module")
async def caller(backend: Counting) -> AsyncIterator[Caller]:
    async with served(backend) as caller:
        yield caller


# ── as the original does ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_creating_only_writes_down_what_is_wanted(caller: Caller, backend: Counting) -> None:
    key = await caller.created("cd /tmp", "echo ready > /tmp/ready")
    assert str(uuid.UUID(key)) == key
    assert await caller.get("/sandboxes") == [
        {
            "id": key,
            "image": "ubuntu:latest",
            "setup_commands": "cd /tmp && echo ready > /tmp/ready",
            "status": "created",
            "session_command_count": 0,
            "last_standalone_exit_code": None,
        }
    ]
    assert backend.opened == 0


@pytest.mark.parametrize("body", [{"image": "x"}, {"setup_commands": []}, {"image": "x", "setup_commands": "true"}])
async def test_a_body_without_its_fields_is_refused(caller: Caller, body: dict[str, object]) -> None:
    status, text = await caller.post("/sandboxes", body)
    assert status == 422 and text.startswith("Failed to deserialize the JSON body")


async def test_stopping_needs_a_json_body(caller: Caller) -> None:
    key = await caller.started()
    assert (await caller.post(f"/sandboxes/{key}/stop"))[0] == 415
    assert (await caller.post(f"/sandboxes/{key}/stop", data=b"{", headers={"Content-Type": "application/json"}))[
        0
    ] == 400
    assert await caller.post(f"/sandboxes/{key}/stop", {}) == (200, "")


async def test_unknown_sandboxes_are_not_found(caller: Caller) -> None:
    assert await caller.post("/sandboxes/none/start") == (404, "Sandbox not found")
    assert await caller.post("/sandboxes/none/exec", {"command": "true"}) == (404, "Sandbox not found")
    assert await caller.post("/sandboxes/none/stop", {"remove": True}) == (404, "Sandbox none not found")


async def test_a_sandbox_starts_once(caller: Caller) -> None:
    key = await caller.started()
    assert await caller.post(f"/sandboxes/{key}/start") == (400, "Sandbox already started")


async def test_nothing_runs_before_the_start_nor_after_the_stop(caller: Caller) -> None:
    key = await caller.created()
    command = {"command": "true"}
    assert await caller.post(f"/sandboxes/{key}/exec", command) == (400, "Sandbox not started")
    assert await caller.post(f"/sandboxes/{key}/stop", {"remove": False}) == (400, "Sandbox not started")
    assert await caller.post(f"/sandboxes/{key}/start") == (200, "")
    assert await caller.post(f"/sandboxes/{key}/stop", {"remove": False}) == (200, "")
    assert await caller.post(f"/sandboxes/{key}/exec", command) == (400, "Sandbox not started")
    assert await caller.post(f"/sandboxes/{key}/stop", {"remove": False}) == (400, "Sandbox not started")


async def test_a_removed_sandbox_is_forgotten(caller: Caller) -> None:
    key = await caller.started()
    assert await caller.post(f"/sandboxes/{key}/stop", {"remove": True}) == (200, "")
    assert await caller.post(f"/sandboxes/{key}/start") == (404, "Sandbox not found")
    assert await caller.get("/sandboxes") == []


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("# a comment", "", 0),
        ("echo hello && cd nowhere", "hello\nbash: cd: nowhere: No such file or directory", 1),
        ("echo one\necho two\necho three", "one\ntwo\nthree", 0),
        ('NAME=World\necho "Hello, $NAME!"', "Hello, World!", 0),
        ("if [ 1 -eq 1 ]; then\n  echo yes\nelse\n  echo no\nfi", "yes", 0),
        ('for i in 1 2 3; do\n  echo "Number: $i"\ndone', "Number: 1\nNumber: 2\nNumber: 3", 0),
        ("printf 'a\\nb\\naa\\n' | grep a > found; cat found", "a\naa", 0),
        ("echo 'aGVyZQ==' | base64 -d ", "here", 0),
        ("false | true", "", 1),
        ("printf 'no end \\n\\n'", "no end", 0),
    ],
)
async def test_what_a_session_answers(caller: Caller, command: str, output: str, code: int) -> None:
    answer = await caller.run(await caller.started(), command)
    assert (answer["output"], answer["exit_code"], answer["exited"]) == (output, code, False)


async def test_a_session_remembers(caller: Caller) -> None:
    key = await caller.started("cd /tmp", "echo ready > /tmp/ready")
    await caller.run(key, "cd /tmp")
    assert (await caller.run(key, "cat ready"))["output"] == "ready"
    assert (await caller.run(key, "false"))["exit_code"] == 1
    assert (await caller.run(key, "echo $?"))["output"] == "1"


async def test_the_setup_is_a_process_of_its_own(caller: Caller) -> None:
    key = await caller.started()
    home = (await caller.run(key, "pwd"))["output"]
    other = await caller.started("cd /tmp", "LEFT=behind", "mkdir made")
    assert (await caller.run(other, "pwd; echo [$LEFT]; ls -d /tmp/made"))["output"] == f"{home}\n[]\n/tmp/made"


async def test_a_standalone_command_begins_where_the_image_does(caller: Caller) -> None:
    key = await caller.started()
    home = (await caller.run(key, "pwd"))["output"]
    await caller.run(key, "cd /usr; LEFT=behind")
    answer = await caller.run(key, "pwd; echo [$LEFT]; false | true", standalone=True)
    assert (answer["output"], answer["exit_code"], answer["exited"]) == (f"{home}\n[]\n", 0, False)
    assert (await caller.get("/sandboxes"))[0]["last_standalone_exit_code"] == 0


async def test_exit_ends_the_session_and_not_the_sandbox(caller: Caller) -> None:
    key = await caller.started()
    answer = await caller.run(key, "echo hi; exit 7; echo bye")
    assert (answer["output"], answer["exit_code"], answer["exited"]) == ("hi", 0, True)
    assert (await caller.get("/sandboxes"))[0]["status"] == "exited"
    again = await caller.post(f"/sandboxes/{key}/exec", {"command": "true"})
    assert again == (400, "Sandbox session already exited")
    alone = await caller.run(key, "echo still here", standalone=True)
    assert (alone["output"], alone["exit_code"], alone["exited"]) == ("still here\n", 0, False)


async def test_a_setup_that_fails_says_what_it_said(caller: Caller) -> None:
    key = await caller.created("echo so far", "ls /nowhere", "echo never")
    status, text = await caller.post(f"/sandboxes/{key}/start")
    assert status == 400 and text.startswith("Setup commands failed: so far\n") and "/nowhere" in text
    assert "never" not in text
    assert await caller.post(f"/sandboxes/{key}/stop", {"remove": True}) == (200, "")


async def test_the_trajectory_is_the_sessions(caller: Caller) -> None:
    key = await caller.started("true")
    await caller.run(key, "echo one")
    await caller.run(key, "false")
    await caller.run(key, "echo apart", standalone=True)
    assert await caller.post(f"/sandboxes/{key}/stop", {"remove": False}) == (200, "")
    told = await caller.get(f"/sandboxes/{key}/trajectory")
    assert (told["sandbox_id"], told["command_count"]) == (key, 2)
    steps = [(step["index"], step["command"], step["result"]) for step in told["trajectory"]]
    assert steps == [(0, "echo one", {"output": "one", "exit_code": 0}), (1, "false", {"output": "", "exit_code": 1})]
    assert 0 <= told["trajectory"][0]["timestamp"] <= told["trajectory"][1]["timestamp"]
    assert await caller.get(f"/sandboxes/{key}/trajectory/formatted") == "$ echo one\none\n$ false\n"


# ── without its faults ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_command_may_take_longer_than_two_seconds_and_the_next_answer_is_its_own(caller: Caller) -> None:
    key = await caller.started()
    assert (await caller.run(key, "sleep 2.3; echo late"))["output"] == "late"
    assert (await caller.run(key, "echo next"))["output"] == "next"


async def test_a_command_over_its_time_is_a_504_for_those_who_know_nothing_else(backend: Counting) -> None:
    async with served(backend, command_timeout=0.5) as caller:
        key = await caller.started()
        status, text = await caller.post(f"/sandboxes/{key}/exec", {"command": "sleep 60"})
        assert status == 504 and text.startswith("Timeout waiting for marker: ")
        key = await caller.started()
        timeout = await enough_for(lambda: caller.run(key, "true"), at_least=0.4)
        answer = await caller.run(key, "echo begun; sleep 600", timeout=timeout)
        assert answer["timed_out"] and answer["output"].startswith("begun") and isinstance(answer["exit_code"], int)
        alone = await caller.run(key, "sleep 60", standalone=True, timeout=0.4)
        assert alone["timed_out"]
        assert (await caller.run(key, "echo well", standalone=True))["output"] == "well\n"


async def test_stop_works_while_a_command_runs(caller: Caller, backend: Counting) -> None:
    key = await caller.started()
    commands = [{"command": "touch /tmp/a; sleep 600", "standalone": True}, {"command": "touch /tmp/b; sleep 600"}]
    running = [asyncio.create_task(caller.post(f"/sandboxes/{key}/exec", command)) for command in commands]
    await has_begun(caller, key, "/tmp/a /tmp/b")
    async with asyncio.timeout(60):
        assert await caller.post(f"/sandboxes/{key}/stop", {"remove": False}) == (200, "")
        assert [status for status, _ in await asyncio.gather(*running)] == [500, 500]
    assert not backend.open_now
    told = await caller.get(f"/sandboxes/{key}/trajectory")
    assert [set(step) for step in told["trajectory"]] == [{"index", "command", "timestamp"}]
    assert "no result recorded" in await caller.get(f"/sandboxes/{key}/trajectory/formatted")


async def test_who_comes_too_many_waits_for_a_turn(backend: Counting) -> None:
    async with served(backend, max_sandboxes=1) as caller:
        first, second = await caller.started(), await caller.created()
        waiting = asyncio.create_task(caller.post(f"/sandboxes/{second}/start"))
        await asyncio.sleep(0.3)
        assert not waiting.done() and len(backend.open_now) == 1
        assert await caller.post(f"/sandboxes/{first}/stop", {"remove": True}) == (200, "")
        assert await waiting == (200, "")


async def test_a_turn_that_does_not_come_is_a_503(backend: Counting) -> None:
    async with served(backend, max_sandboxes=1, queue_timeout=0.2) as caller:
        first, second = await caller.started(), await caller.created()
        status, text = await caller.post(f"/sandboxes/{second}/start")
        assert status == 503 and "in use" in text
        assert await caller.post(f"/sandboxes/{first}/stop", {"remove": True}) == (200, "")
        assert await caller.post(f"/sandboxes/{await caller.created()}/start") == (200, "")


async def test_one_that_is_stopped_while_it_waits_gives_up_its_place(backend: Counting) -> None:
    async with served(backend, max_sandboxes=1) as caller:
        first, second, third = await caller.started(), await caller.created(), await caller.created()
        waiting = asyncio.create_task(caller.post(f"/sandboxes/{second}/start"))
        await asyncio.sleep(0.1)
        assert await caller.post(f"/sandboxes/{second}/stop", {"remove": True}) == (200, "")
        assert (await waiting)[0] == 400
        assert await caller.post(f"/sandboxes/{first}/stop", {"remove": True}) == (200, "")
        assert await caller.post(f"/sandboxes/{third}/start") == (200, "")


async def test_failed_starts_give_their_turn_back(backend: Counting) -> None:
    async with served(backend, max_sandboxes=1, queue_timeout=10) as caller:
        for _ in range(3):
            assert (await caller.post(f"/sandboxes/{await caller.created('false')}/start"))[0] == 400
        assert await caller.post(f"/sandboxes/{await caller.created()}/start") == (200, "")


async def test_whatever_is_too_old_is_removed_in_every_state(backend: Counting) -> None:
    async with served(backend) as caller:
        lifetime = await enough_for(caller.started, at_least=1.0)
    async with served(backend, lifetime=lifetime) as caller:
        await caller.created()
        busy = await caller.started()
        gone = await caller.started()
        running = asyncio.create_task(
            caller.post(f"/sandboxes/{busy}/exec", {"command": "sleep 60", "standalone": True})
        )
        await caller.run(gone, "exit")
        assert (await caller.post(f"/sandboxes/{await caller.created('false')}/start"))[0] == 400
        stopped = await caller.started()
        assert await caller.post(f"/sandboxes/{stopped}/stop", {"remove": False}) == (200, "")
        assert (await running)[0] == 500
        await until(lambda: not backend.open_now)
        async with asyncio.timeout(60):
            while await caller.get("/sandboxes"):
                await asyncio.sleep(0.05)


async def has_begun(caller: Caller, key: str, files: str) -> None:
    """Wait until there are the files that commands make when they begin."""

    async def are_there() -> bool:
        return bool((await caller.run(key, f"ls {files}", standalone=True))["exit_code"] == 0)

    await comes_true(are_there)


async def leave_during(caller: Caller, key: str, command: dict[str, object]) -> None:
    async with ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as other:
        leaving = asyncio.create_task(other.post(f"{caller.url}/sandboxes/{key}/exec", json=command))
        await has_begun(caller, key, "/tmp/begun")
        leaving.cancel()
        await asyncio.wait([leaving])


async def test_a_client_that_leaves_for_good_takes_its_sandbox_along(backend: Counting) -> None:
    async with served(backend, abandoned_after=0.2) as caller:
        await leave_during(caller, await caller.started(), {"command": "touch /tmp/begun; sleep 600"})
        await until(lambda: not backend.open_now)
        assert await caller.get("/sandboxes") == []


async def test_a_client_that_comes_back_finds_its_sandbox_and_not_its_command(caller: Caller) -> None:
    key = await caller.started()
    await leave_during(caller, key, {"command": "touch /tmp/begun; exec sleep 4711", "standalone": True})

    async def has_ended() -> bool:
        look = await caller.run(key, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo here", standalone=True)
        assert look["output"].endswith("here\n")
        return bool("sleep 4711" not in look["output"])

    await comes_true(has_ended)


async def test_closing_the_server_leaves_nothing(backend: Counting) -> None:
    async with served(backend) as caller:
        key = await caller.started()
        running = asyncio.create_task(caller.post(f"/sandboxes/{key}/exec", {"command": "sleep 60"}))
        await caller.created()
        await asyncio.sleep(0.2)
        assert len(backend.open_now) == 1
    await asyncio.wait([running])
    running.exception()
    assert not backend.open_now and backend.closed


async def test_nobody_comes_in_without_the_token(caller: Caller) -> None:
    async with ClientSession() as stranger:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer bétween"}):
            async with stranger.get(f"{caller.url}/sandboxes", headers=headers) as answer:
                assert answer.status == 401
            async with stranger.post(f"{caller.url}/sandboxes/x/exec", headers=headers, json={}) as answer:
                assert answer.status == 401


async def test_the_door_is_on_this_machine_only(backend: Counting) -> None:
    async with serving(backend, token=None, port=0) as url:
        assert url.startswith("http://127.0.0.1:")


async def test_a_port_that_is_taken_is_said(caller: Caller, backend: Counting) -> None:
    with pytest.raises(ConfigError, match="--port"):
        async with serving(backend, token=None, port=int(caller.url.rpartition(":")[2])):
            pass


async def test_an_image_must_be_known(backend: Counting) -> None:
    async with served(backend, images={"known": ""}) as caller:
        status, text = await caller.post(f"/sandboxes/{await caller.created(image='/etc')}/start")
        assert status == 400 and text.startswith("Failed to pull image") and "known" in text
        assert await caller.post(f"/sandboxes/{await caller.created(image='known')}/start") == (200, "")
        assert await caller.post(f"/sandboxes/{await caller.created(image='')}/start") == (200, "")


async def test_the_network_is_the_operators_to_give(caller: Caller) -> None:
    body = {"image": "", "setup_commands": [], "contract": {"network": True}}
    status, text = await caller.post("/sandboxes", body)
    assert status == 400 and "--allow-network" in text


async def test_a_client_cannot_ask_for_more_than_the_operator_allows(backend: Counting) -> None:
    async with served(backend, limits=Limits(memory_mb=64, timeout=0.5)) as caller:
        body = {"image": "", "setup_commands": [], "contract": {"limits": {"memory_mb": 4096, "timeout": 1000}}}
        status, text = await caller.post("/sandboxes", body)
        key = json.loads(text)["id"]
        assert await caller.post(f"/sandboxes/{key}/start") == (200, "")
        slow = await caller.run(key, "sleep 60", standalone=True, timeout=1000)
        big = await caller.run(key, "head -c 300M /dev/zero | tail | wc -c", standalone=True)
        assert status == 200 and slow["timed_out"] and big["output"] != "314572800\n"
