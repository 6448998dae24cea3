# SPDX-License-Identifier: Apache-2.0
"""The conversation with a session's shell, where the other end of every pipe is in our hands: nobody can speak for it.

In a sandbox no command reaches these pipes. Were there ever a way, the nonces would still have to be known.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from reward_kit.sandbox.contract import Limits
from reward_kit.sandbox.local.messages import Inbox
from reward_kit.sandbox.local.meter import NoMeter
from reward_kit.sandbox.local.porter_client import PorterClient
from reward_kit.sandbox.local.session import PLACES, ProcessPlace, ShellSession, run_beside


class Shell(NamedTuple):
    """What bash would have: the messages it reads, and where it reports."""

    session: ShellSession
    messages: int
    reports: int

    def next_nonce(self) -> bytes:
        """The nonce that ends the command, or the beginning, whose message is read now."""
        return os.read(self.messages, 4096).split(b"\0")[-2]

    def report(self, nonce: bytes, status: int, directory: str) -> None:
        os.write(self.reports, b"%b %d %b\0" % (nonce, status, directory.encode()))


@asynccontextmanager
async def a_shell() -> AsyncIterator[Shell]:
    ours, theirs = socket.socketpair()
    porter = PorterClient(ours)
    place = ProcessPlace(porter, Limits(), {}, meter=NoMeter, processes=list)
    session = ShellSession(place, "/root")
    inbox = Inbox(theirs)
    assert inbox.receive()
    ((_, descriptors),) = inbox.messages()
    at = dict(zip(PLACES, descriptors, strict=True))
    try:
        yield Shell(session, at[250], at[251])
    finally:
        session.close()
        porter.close()
        theirs.close()
        for descriptor in descriptors:
            os.close(descriptor)


@pytest.mark.parametrize("forged", [b"00000000", b"", b"*", b"beginning"])
async def test_an_end_with_a_wrong_nonce_is_none(forged: bytes) -> None:
    async with a_shell() as shell:
        beginning = shell.next_nonce()
        shell.report(beginning, 0, "/root")
        await shell.session.begun
        task = asyncio.create_task(shell.session.run("make", 60.0, None))
        await asyncio.sleep(0)  # it is under way, and its message in the pipe
        nonce = shell.next_nonce()
        shell.report(beginning if forged == b"beginning" else forged, 0, "/forged")
        shell.report(nonce, 7, "/right")
        done = await task
        assert (done.exit_code, shell.session.directory) == (7, "/right")


async def test_what_is_no_report_is_passed_over() -> None:
    async with a_shell() as shell:
        os.write(shell.reports, b"\0 \0 0\0nonsense\0")
        nonce = shell.next_nonce()
        os.write(shell.reports, nonce + b" zero /forged\0" + nonce + b"\0")
        shell.report(nonce, 0, "/root")
        assert await shell.session.begun == 0
        assert shell.session.directory == "/root"


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files through /proc")
async def test_a_command_that_is_given_up_before_its_shell_is_there_leaves_nothing_open() -> None:
    unused: Any = None
    place = ProcessPlace(unused, Limits(), {}, meter=NoMeter, processes=list)
    session: Any = SimpleNamespace(begun=asyncio.get_running_loop().create_future())
    before = os.listdir("/proc/self/fd")
    running = asyncio.create_task(run_beside(place, session, "true", None, b"input"))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(os.listdir("/proc/self/fd")) == len(before)
