# SPDX-License-Identifier: Apache-2.0
"""Blocking functions in threads: what they return, what they raise, and what becomes of the threads after a fork."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time

import pytest

from reward_kit.agent.blocking import in_a_thread


async def test_a_function_runs_elsewhere_and_its_thread_is_used_again() -> None:
    threads = {await in_a_thread(threading.get_ident) for _ in range(20)}
    assert threading.get_ident() not in threads
    assert len(threads) < 20


async def test_many_at_once_do_not_wait_for_each_other() -> None:
    together = threading.Barrier(100)
    await asyncio.wait_for(asyncio.gather(*(in_a_thread(together.wait) for _ in range(100))), 60)


@pytest.mark.parametrize("error", [ValueError("wrong"), SystemExit(3), KeyboardInterrupt(), StopIteration()])
async def test_what_it_raises_reaches_whoever_waits_and_never_ends_the_loop(error: BaseException) -> None:
    def raises() -> None:
        raise error

    with pytest.raises((ValueError, RuntimeError)):
        await in_a_thread(raises)
    assert await in_a_thread(lambda: 1) == 1


async def test_a_child_has_threads_of_its_own() -> None:
    await in_a_thread(time.sleep, 0)  # one is idle now, and the child has only its memory
    child = os.fork()
    if child == 0:
        said = 1
        try:
            loop = asyncio.new_event_loop()
            asyncio._set_running_loop(None)
            said = loop.run_until_complete(asyncio.wait_for(in_a_thread(lambda: 7), 30))
        finally:
            os._exit(said)  # the child must never go on as a second pytest
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_one_that_never_returns_does_not_keep_the_process_from_ending() -> None:
    program = """
import asyncio, threading
from reward_kit.agent.blocking import in_a_thread
async def main():
    try:
        await asyncio.wait_for(in_a_thread(threading.Event().wait), 0.1)
    except TimeoutError:
        print("left behind")
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "left behind\n"
