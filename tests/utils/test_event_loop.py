# SPDX-License-Identifier: Apache-2.0
"""Event loops for callers that have none, and for callers that stand inside one."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable

import pytest
import uvloop

from reward_kit.utils.event_loop import background_loop, new_loop, run_sync
from tests.utils.test_per_process import in_a_child


async def the_thread() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


async def failing() -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError("by nought")


def test_a_coroutine_is_run_in_the_calling_thread() -> None:
    assert run_sync(the_thread) == threading.current_thread().name


async def test_inside_a_loop_it_is_run_in_a_thread_of_its_own() -> None:
    assert run_sync(the_thread) == "reward-kit"
    assert "reward-kit" not in [thread.name for thread in threading.enumerate()], "the thread has ended"


def test_an_error_is_raised_where_it_was_called() -> None:
    with pytest.raises(ZeroDivisionError, match="by nought"):
        run_sync(failing)


async def test_an_error_in_the_other_thread_is_raised_where_it_was_called() -> None:
    with pytest.raises(ZeroDivisionError, match="by nought"):
        run_sync(failing)


async def test_leaving_the_process_is_passed_on_too() -> None:
    async def leaving() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit) as caught:
        run_sync(leaving)
    assert caught.value.code == 3


def test_tasks_that_were_left_behind_are_ended() -> None:
    left: list[asyncio.Task[bool]] = []

    async def forgetful() -> None:
        left.append(asyncio.create_task(asyncio.Event().wait()))
        await asyncio.sleep(0)

    run_sync(forgetful)
    assert left[0].cancelled()


@pytest.mark.skipif(sys.platform == "win32", reason="uvloop has no build for Windows")
def test_loops_are_uvloops() -> None:
    import uvloop

    loop = new_loop()
    try:
        assert isinstance(loop, uvloop.Loop)
    finally:
        loop.close()


def test_the_loop_in_the_background_stays_and_is_the_same_for_all_threads() -> None:
    loop = background_loop()
    assert background_loop() is loop
    assert asyncio.run_coroutine_threadsafe(the_thread(), loop).result(60) == "reward-kit loop"
    assert loop.is_running()


def test_a_forked_child_gets_a_loop_of_its_own() -> None:
    ours = background_loop()

    def work() -> str:
        loop = background_loop()
        return f"{loop is not ours}, {asyncio.run_coroutine_threadsafe(the_thread(), loop).result(30)}"

    assert in_a_child(work) == "True, reward-kit loop"


STOPS: dict[str, Callable[[asyncio.AbstractEventLoop], object]] = {
    "at once": lambda loop: loop.stop(),
    "soon": lambda loop: loop.call_soon(loop.stop),
    "later": lambda loop: loop.call_later(0.01, loop.stop),
    "from a thread": lambda loop: threading.Thread(target=loop.call_soon_threadsafe, args=(loop.stop,)).start(),
}


def exits(*_: object) -> None:
    raise SystemExit(4)


async def exiting() -> None:
    raise SystemExit(5)


ENDS: dict[str, Callable[[asyncio.AbstractEventLoop], object]] = {
    "a callback exits": lambda loop: loop.call_soon(exits),
    "callbacks exit": lambda loop: [loop.call_later(0.01 * number, exits) for number in range(4)],
    "a task exits": lambda loop: loop.create_task(exiting()),
    "from a thread": lambda loop: threading.Thread(target=loop.call_soon_threadsafe, args=(exits,)).start(),
    "behind our back": uvloop.Loop.stop,  # type: ignore[dict-item]  # of a loop of uvloop
    "the handler of errors exits": lambda loop: (loop.set_exception_handler(exits), loop.call_soon(int, "x")),
}


@pytest.mark.parametrize("how", ENDS)
def test_work_comes_to_its_end_whatever_ends_its_loop(how: str) -> None:
    closed = []

    async def work() -> str:
        try:
            ENDS[how](asyncio.get_running_loop())
            await asyncio.sleep(0.1)
            return "done"
        finally:
            closed.append(await asyncio.sleep(0, "closed"))

    assert run_sync(work) == "done"
    stays = background_loop()
    assert asyncio.run_coroutine_threadsafe(work(), stays).result(10) == "done"
    stays.call_soon_threadsafe(stays.set_exception_handler, None)
    assert closed == ["closed"] * 2


def test_what_the_work_itself_raises_is_raised() -> None:
    for error in (RuntimeError("no"), SystemExit(3), ValueError("x")):

        async def work(error: BaseException = error) -> None:
            await asyncio.sleep(0)
            raise error

        with pytest.raises(type(error), match=str(error)):
            run_sync(work)


def test_a_callback_that_interrupts_ends_the_work_in_order() -> None:
    closed = []

    def interrupts() -> None:
        raise KeyboardInterrupt

    async def work() -> None:
        asyncio.get_running_loop().call_soon(interrupts)
        try:
            await asyncio.sleep(60)
        finally:
            closed.append(await asyncio.sleep(0, "closed"))

    with pytest.raises(KeyboardInterrupt):
        run_sync(work)
    assert closed == ["closed"]


@pytest.mark.parametrize("how", STOPS)
def test_nobody_stops_a_loop_that_has_work(how: str) -> None:
    async def work() -> str:
        told = ""
        try:
            STOPS[how](asyncio.get_running_loop())
        except RuntimeError as error:
            told = str(error)
        await asyncio.sleep(0.05)
        assert ("cannot be stopped" in told) == (how == "at once")
        return "done"

    assert run_sync(work) == "done"
    stays = background_loop()
    assert asyncio.run_coroutine_threadsafe(work(), stays).result(10) == "done"
    assert stays.is_running()
