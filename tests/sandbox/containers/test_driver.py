# SPDX-License-Identifier: Apache-2.0
"""The driver of a container, without a container: a process namespace of its own is enough for it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from functools import cache
from importlib.resources import files

import pytest

from reward_kit.sandbox.containers.stream import DriverStream, Heard, Operation, StreamEnded
from reward_kit.sandbox.output import CommandOutput

DRIVER = files("reward_kit.sandbox.containers").joinpath("driver.sh").read_text()
ALONE = ["unshare", "--map-root-user", "--fork", "--pid", "--mount-proc", "--kill-child"]


@cache
def has_namespaces() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0


class Driver:
    """The driver and the stream to it, framed as an engine frames it."""

    def __init__(self, stream: DriverStream, to_it: asyncio.StreamWriter) -> None:
        self.stream = stream
        self.to_it = to_it

    async def ask(
        self, operation: Operation, command: str, timeout: float = 20, stdin: bytes = b""
    ) -> tuple[Heard, str, str]:
        output = CommandOutput(1 << 20)
        heard = await self.stream.ask(operation, command, output, timeout=timeout, grace=10, stdin=stdin)
        captured = output.captured()
        return heard, captured.stdout, captured.stderr


async def frame(source: asyncio.StreamReader, kind: int, sink: asyncio.StreamReader) -> None:
    while data := await source.read(1 << 16):
        sink.feed_data(bytes([kind, 0, 0, 0]) + len(data).to_bytes(4, "big") + data)


@pytest.fixture
async def driver() -> AsyncIterator[Driver]:
    if not has_namespaces():
        pytest.skip("no process namespace can be made here")
    pipe = asyncio.subprocess.PIPE
    arguments = [*ALONE, "bash", "-c", DRIVER, "bash"]
    process = await asyncio.create_subprocess_exec(*arguments, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    reader = asyncio.StreamReader()
    framing = [
        asyncio.create_task(frame(process.stdout, 1, reader)),
        asyncio.create_task(frame(process.stderr, 2, reader)),
    ]
    ending = asyncio.gather(*framing)
    ending.add_done_callback(lambda _: reader.feed_eof())
    driver = Driver(DriverStream(reader, process.stdin), process.stdin)
    try:
        assert (await driver.ask("B", "cd /tmp; export GIVEN=1"))[0].ending.status == 0
        yield driver
    finally:
        await driver.stream.close()
        await process.wait()
        await ending


async def test_it_refuses_to_run_where_it_is_not_the_first_process() -> None:
    assert subprocess.run(["bash", "-c", DRIVER, "bash"], stdin=subprocess.DEVNULL, check=False).returncode == 97


async def test_an_ending_cannot_be_printed(driver: Driver) -> None:
    forged = "a" * 32
    heard, stdout, _ = await driver.ask("R", f"printf '{forged}|0|0|-|-|0|/|{forged}'; declare -p; set; env; exit 5")
    assert (heard.ending.status, heard.ending.exited) == (5, True)
    assert forged in stdout


async def test_the_shells_own_descriptors_forge_no_status(driver: Driver) -> None:
    hunt = "for fd in /proc/$$/fd/{1?,2*}; do printf '0\\nx 0\\n' > $fd; done 2>/dev/null; sleep 0.2; (exit 9)"
    heard, *_ = await driver.ask("R", hunt)
    assert (heard.ending.status, heard.ending.exited) == (9, False)
    assert (await driver.ask("S", "exit 6"))[0].ending.status == 6


async def test_no_signal_from_inside_ends_it(driver: Driver) -> None:
    await driver.ask("R", "for s in {1..64}; do kill -$s 1; done 2>/dev/null")
    assert (await driver.ask("S", "echo on"))[1] == "on\n"


@pytest.mark.parametrize("operation", ["R", "S"])
async def test_no_variable_argument_or_open_file_of_a_command_leads_to_the_nonce(
    driver: Driver, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    nonce = "0123456789abcdef" * 2
    monkeypatch.setattr("reward_kit.sandbox.containers.stream.secrets.token_hex", lambda _: nonce)
    look = (
        "declare -p; env; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; ls /proc/self/fd"
    )
    _, stdout, _ = await driver.ask(operation, look)
    assert stdout.split()[-4:] == ["0", "1", "2", "3"]  # had the nonce been there, the output would end at it


async def test_a_process_that_kills_all_it_sees_ends_the_shell_and_not_the_driver(driver: Driver) -> None:
    heard, *_ = await driver.ask("S", "kill -9 -1; sleep 4711")
    assert (heard.ending.status, heard.ending.exited, heard.timed_out) == (137, True, False)
    heard, stdout, _ = await driver.ask("S", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo alive")
    assert heard.ending.status == 0 and stdout.endswith("alive\n") and "4711 " not in stdout


async def test_a_shell_that_kills_all_it_sees_goes_on(driver: Driver) -> None:
    heard, stdout, _ = await driver.ask("R", "kill -9 -1; sleep 0.5; echo on; (exit 3)")
    assert (heard.ending.status, heard.ending.exited, stdout) == (3, False, "on\n")
    heard, stdout, _ = await driver.ask("R", "echo again; exit 4")
    assert (heard.ending.exited, stdout) == (True, "again\n")


async def test_the_shell_gives_up_a_command_and_goes_on(driver: Driver) -> None:
    await driver.ask("R", "kept=5")
    heard, stdout, _ = await driver.ask("R", "echo begun; for i in 1 2; do sleep 60; echo seen; done; echo seen", 0.3)
    assert heard.timed_out and stdout == "begun\n"
    assert (await driver.ask("R", "echo $kept"))[1] == "5\n"


async def test_a_shell_that_does_not_give_up_is_ended(driver: Driver) -> None:
    heard, *_ = await driver.ask("R", "trap '' 62; f() { while :; do :; done; }; f", 0.3)
    assert heard.timed_out and heard.ending.exited
    assert (await driver.ask("S", "pwd"))[1] == "/tmp\n"


async def test_a_cancelled_command_does_not_speak_for_the_next(driver: Driver) -> None:
    task = asyncio.create_task(driver.ask("S", "sleep 0.4; echo late; sleep 60"))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    heard, stdout, _ = await driver.ask("S", "echo mine; exit 3")
    assert (heard.ending.status, stdout) == (3, "mine\n")


async def test_what_a_command_redefines_is_its_own_affair(driver: Driver) -> None:
    redefine = "printf() { :; }; read() { :; }; eval() { :; }; bash() { echo no; }; kill() { :; }; cd() { :; }"
    await driver.ask("R", redefine)
    assert (await driver.ask("R", "echo heard"))[1] == "heard\n"
    assert (await driver.ask("S", "echo heard; cd /; pwd"))[1] == "heard\n/\n"


async def test_it_ends_with_whoever_asked(driver: Driver) -> None:
    driver.to_it.write_eof()
    with pytest.raises(StreamEnded):
        await driver.ask("S", "echo", timeout=5)
