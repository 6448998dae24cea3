"""What a session does where it is interrupted."""

from __future__ import annotations

import asyncio
import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from reward_kit.sandbox.contract import Limits
from reward_kit.sandbox.meter import NoMeter
from reward_kit.sandbox.session import Place, run_beside

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts open files through /proc")


async def test_a_command_that_is_given_up_before_its_shell_is_there_leaves_nothing_open() -> None:
    unused: Any = None
    place = Place(unused, Limits(), {}, meter=NoMeter, processes=list)
    session: Any = SimpleNamespace(begun=asyncio.get_running_loop().create_future())
    before = os.listdir("/proc/self/fd")
    running = asyncio.create_task(run_beside(place, session, "true", None, b"input"))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(os.listdir("/proc/self/fd")) == len(before)
