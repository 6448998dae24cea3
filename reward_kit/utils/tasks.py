# SPDX-License-Identifier: Apache-2.0
"""Tasks: several at once, and tasks of ours that run code of others.

together         several coroutines at once, of which none goes on when one has failed

Code of others finds none of our tasks, and none of them ends because that code wishes so:
hidden_tasks     `asyncio.all_tasks()` finds nothing meanwhile, so nobody can cancel all there is
end, is_ended    cancel a task ourselves, and know later that it was we who did
shrug_off        take back a cancellation that was not ours
abandonable      work that ends where it is given up, also if it keeps each cancellation to itself
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

__all__ = ["abandonable", "end", "hidden_tasks", "is_ended", "shrug_off", "together"]

T = TypeVar("T")

AnyTask: TypeAlias = asyncio.Task[Any]

_ended: WeakSet[AnyTask] = WeakSet()


async def together(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What each returns, in order. The first error is raised, once the others have been cancelled and have ended."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def end(tasks: Iterable[AnyTask]) -> None:
    """Cancel the tasks, for good."""
    for task in tasks:
        _ended.add(task)
        task.cancel()


def is_ended(task: AnyTask) -> bool:
    """Whether it was we who cancelled the task."""
    return task in _ended


async def shrug_off(task: AnyTask) -> None:
    """Go on in this task although something cancelled it, also where the cancellation is still on its way."""
    while task.cancelling():
        task.uncancel()
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)


@types.coroutine
def abandonable(work: Coroutine[Any, Any, T], is_given_up: Callable[[], bool]) -> Generator[Any, Any, T]:
    """What `work` returns; a cancellation that it keeps to itself ends it all the same, once it is given up."""
    error: BaseException | None = None
    while True:
        try:
            waits_for = work.send(None) if error is None else work.throw(error)
        except StopIteration as done:
            returned: T = done.value
            return returned
        if isinstance(error, asyncio.CancelledError) and is_given_up():
            with suppress(RuntimeError):  # it does not want to end in this way either
                work.close()
            raise error
        try:
            yield waits_for
            error = None
        except BaseException as other:  # noqa: BLE001 - it is the work's, and is handed to it
            error = other


@contextmanager
def hidden_tasks() -> Iterator[None]:
    """Keep every task of the running loop, there already or made meanwhile, out of `asyncio.all_tasks`."""
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    make = before or _plain_task
    hidden: WeakSet[AnyTask] = WeakSet()

    def hide(task: AnyTask) -> None:
        asyncio.tasks._unregister_task(task)
        hidden.add(task)

    def make_hidden(
        loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any], **how: Any
    ) -> Any:
        task: AnyTask = make(loop, coroutine, **how)  # type: ignore[assignment]  # typed as any future
        hide(task)
        return task

    for task in asyncio.all_tasks():
        hide(task)
    loop.set_task_factory(make_hidden)
    try:
        yield
    finally:
        loop.set_task_factory(before)
        for task in hidden:  # the loop ends those that are left when it is closed
            asyncio.tasks._register_task(task)


def _plain_task(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any], **how: Any
) -> Any:
    return asyncio.Task(coroutine, loop=loop, **how)
