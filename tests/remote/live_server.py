# SPDX-License-Identifier: Apache-2.0
"""The real server on a port of its own, in a thread of the test's process."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from reward_kit.config_models import validated
from reward_kit.serving.app import RewardApp, build_app
from reward_kit.serving.dialect import Extension
from reward_kit.serving.run import serve_app
from reward_kit.serving.settings import ServeSettings

START_SECONDS = 120.0


@contextmanager
def live_server(
    rewards: Mapping[str, Any],
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    extensions: Sequence[Extension] = (),
    **settings: Any,
) -> Iterator[str]:
    """The address of a server of these rewards: each an import path, or a section like `reward` in a config."""
    given = {name: each if isinstance(each, Mapping) else {"function_path": each} for name, each in rewards.items()}
    config = {"rewards": given, "port": 0, "access_log": None, **settings}
    app = build_app(validated(ServeSettings, config, "The server"), functions=functions, extensions=extensions)
    with running(app) as address:
        yield address


@contextmanager
def running(app: RewardApp) -> Iterator[str]:
    """The address of an application that is served meanwhile."""
    told: queue.Queue[str | BaseException] = queue.Queue()
    stops: list[Callable[[], object]] = []

    async def serve() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        stops.append(lambda: loop.call_soon_threadsafe(stop.set))
        await serve_app(app, told.put, stop=stop)

    def target() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - raised by whoever waits for the address
            told.put(error)

    thread = threading.Thread(target=target)
    thread.start()
    try:
        address = told.get(timeout=START_SECONDS)
        if isinstance(address, BaseException):
            raise address
        yield address
    finally:
        if stops:
            with suppress(RuntimeError):  # it has ended by itself
                stops[0]()
        thread.join()
