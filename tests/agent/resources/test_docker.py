# SPDX-License-Identifier: Apache-2.0
"""The resource that is a container, with a real engine: part of `make test-containers`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reward_kit.agent.resources import DockerResource
from reward_kit.errors import RewardKitError
from reward_kit.sandbox.containers import backend as containers
from reward_kit.sandbox.containers.engine import LABEL, owner_mark

SLEEPERS = "ps -eo stat=,comm= | grep '^[^Z].*sleep'"  # one that has ended and nobody waits for is a Z
IMAGE = containers.DEFAULT_IMAGE


async def probed() -> str:
    backend = containers.docker()
    try:
        probe = await backend.probe()
    except RewardKitError as error:
        return str(error)
    finally:
        await backend.close()
    return "" if probe.works else probe.detail


@pytest.fixture
async def docker() -> AsyncIterator[None]:
    """An engine that works, and nothing of ours left in it."""
    if problem := await probed():
        pytest.skip(f"docker does not work here: {problem}")
    yield
    assert await asyncio.to_thread(left) == ([], [])


def left() -> tuple[list[Any], list[Any]]:
    from docker import APIClient

    client = APIClient(base_url=containers.docker().url, version="auto", timeout=60)
    filters = {"label": f"{LABEL}={owner_mark()}"}
    try:
        return client.containers(all=True, filters=filters), client.images(filters=filters)
    finally:
        client.close()


async def made(**config: Any) -> DockerResource:
    resource = DockerResource()
    await resource.setup({"image_name": IMAGE, "docker_run_options": {"network_mode": "none"}, **config})
    return resource


async def said(resource: DockerResource, command: Any, **params: Any) -> Any:
    return await resource.step("exec_command", {"command": command, **params})


async def test_docker_commands_run_and_say_what_they_did(docker: None) -> None:
    async with await made() as box:
        both = await said(box, "echo out; echo err >&2; exit 3")
        # Docker carries the two in streams of their own, so either may come first.
        assert (both["exit_code"], sorted(both["output"].splitlines())) == (3, ["err", "out"])
        assert (await said(box, ["printf", "%s", "a b"]))["output"] == "a b"
        assert (await said(box, "pwd", workdir="/tmp"))["output"] == "/tmp\n"
        assert (await said(box, "id -u", user="1000"))["output"] == "1000\n"
        assert (await box.get_observation())["status"] == "running"
        with pytest.raises(ValueError, match="'command'"):
            await said(box, "")
        with pytest.raises(NotImplementedError, match="'fly'"):
            await box.step("fly", {})


async def test_docker_forks_and_checkpoints_are_apart(docker: None) -> None:
    async with await made() as box:
        await said(box, "echo one > /state")
        checkpoint = await box.checkpoint()
        async with await box.fork() as fork:
            await said(fork, "echo two > /state")
            await said(box, "echo three > /state")
            assert (await said(fork, "cat /state"))["output"] == "two\n"
            async with await fork.fork() as grandchild:
                assert (await said(grandchild, "cat /state"))["output"] == "two\n"
        assert (await said(box, "cat /state"))["output"] == "three\n"
        await box.restore(checkpoint)
        assert (await said(box, "cat /state"))["output"] == "one\n"
        with pytest.raises(FileNotFoundError):
            await box.restore({"type": "docker_image_id", "image_id": "sha256:" + "0" * 64})


async def test_docker_a_command_that_does_not_end_is_ended_with_what_it_started(docker: None) -> None:
    async with await made(timeout=1.0, max_output=1000) as box:
        done = await said(box, "sleep 1000 & echo begun; sleep 1000")
        assert done == {"exit_code": None, "output": "begun\n", "timed_out": True}
        assert (await said(box, SLEEPERS))["output"] == ""
        flood = await said(box, "head -c 100000 /dev/zero")
        assert flood["truncated"] and len(flood["output"]) == 1000


async def test_docker_who_is_cancelled_ends_his_command(docker: None) -> None:
    async with await made() as box:
        running = asyncio.create_task(said(box, "touch /begun; sleep 1000"))
        while (await said(box, "test -e /begun"))["exit_code"]:
            await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await said(box, SLEEPERS))["output"] == ""


async def test_docker_the_loop_is_not_held_up(docker: None) -> None:
    async with await made() as box:
        turns = 0
        running = asyncio.create_task(said(box, "sleep 1"))
        while not running.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert turns > 5  # a call that blocks would have left one or two


async def test_docker_logs_and_a_container_that_ended(docker: None) -> None:
    async with await made(docker_run_options={"network_mode": "none", "command": ["sh", "-c", "echo hello"]}) as box:
        while "hello" not in await box.step("get_logs", {}):
            await asyncio.sleep(0.05)
    async with await made(container_name="reward-kit-test-named") as box:
        assert (await box.get_observation())["container_name"] == "reward-kit-test-named"
