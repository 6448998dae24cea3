# SPDX-License-Identifier: Apache-2.0
"""Worlds in processes of their own: for those that use module globals or the global random generator, or may crash.

    environment = in_worker("my_game:Game")            each world of Game in a process of its own
    environment = in_worker(Game, memory_mb=512)       the same, by the class

    this process ──▶ a host, which has loaded the environment ──fork──▶ one process for each world

A world that hangs, exhausts memory, exits or crashes ends its own episode with an `EnvironmentFailure`; the others do
not notice. This is protection from accidents of one's own code, not from attack.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.machinery
import itertools
import os
import socket
import sys
import time
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any

from reward_kit.agent.calls import text_of
from reward_kit.agent.environment import Answer, Durability, Environment, World, environment_of
from reward_kit.agent.hosted_world import ASKS, DONE, RAISED, TOOL_ERROR, described, read_frame, worlds_of
from reward_kit.agent.tools import Tool, ToolError
from reward_kit.errors import ConfigError, EnvironmentFailure
from reward_kit.models import Message, Sample
from reward_kit.utils.module_loader import load_object
from reward_kit.workers import forks
from reward_kit.workers.child import describe
from reward_kit.workers.host import Host
from reward_kit.workers.process import OutputLog, how_it_ended

__all__ = ["InWorker", "in_worker"]

_STARTUP_SECONDS = 120.0
_CLOSE_SECONDS = 10.0
_PING_SECONDS = 5.0
_LAST_WORDS_SECONDS = 2.0
_READ_BYTES = 1 << 20


def in_worker(
    environment: Any,
    params: Mapping[str, Any] | None = None,
    *,
    most: int = 256,
    timeout: float = 600.0,
    patience: float = 60.0,
    memory_mb: int | None = None,
    log_path: Path | None = None,
) -> InWorker:
    """An environment whose worlds live in processes of their own.

    `environment` is an import path (`package.module:Name`, `file.py:Name`), which then is loaded in the other process
    only, or whatever a config may name: a class of worlds, an environment, a function that opens a world. `params` are
    given to it. At most `most` worlds are open at once; `open` waits for a free place, so `most` should be at least the
    number of episodes at a time. An operation may take `timeout` seconds, and the process must respond every `patience`
    seconds. `memory_mb` limits each process. What the code prints goes to `log_path`, or to this process's standard
    error.
    """
    return InWorker(
        environment, params, most=most, timeout=timeout, patience=patience, memory_mb=memory_mb, log_path=log_path
    )


def _environment(named: Any, params: Mapping[str, Any]) -> Environment:
    return environment_of(load_object(named) if isinstance(named, str) else named, (), params)


def _name_of(named: Any) -> str:
    return named if isinstance(named, str) else getattr(named, "__qualname__", type(named).__qualname__)


class InWorker(Environment):
    """Opens each world in a process of its own, as `in_worker` says."""

    def __init__(
        self, environment: Any, params: Mapping[str, Any] | None = None, *, most: int = 256, timeout: float = 600.0,
        patience: float = 60.0, memory_mb: int | None = None, log_path: Path | None = None,
    ) -> None:  # fmt: skip
        """Keep what hosts are started with; nothing is started yet."""
        if most < 1:
            raise ConfigError(f"`most` is {most!r}: at least one world must be allowed to be open. Raise it.")
        self._factory = functools.partial(_environment, environment, dict(params or {}))
        self._name = _name_of(environment)
        self._most = most
        self._timeout = timeout
        self._patience = patience
        self._memory_mb = memory_mb
        self._log_path = log_path
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hosts: set[_Host] = set()
        self._shared: _Host | None = None
        self._worlds: set[WorldInWorker] = set()

    async def open(self, sample: Sample) -> World:
        """A world in a new process; what goes wrong on the way is an `EnvironmentFailure`."""
        self._begin()
        await self._places.acquire()
        try:
            world = WorldInWorker(self, await self._host())
            await world.begin(sample)
        except BaseException:
            self._places.release()
            raise
        self._worlds.add(world)
        return world

    async def close(self) -> None:
        """End every process, whatever its world is doing."""
        if self._loop is not asyncio.get_running_loop():
            return
        hosts, self._hosts, self._shared = self._hosts, set(), None
        await asyncio.gather(*(world.end() for world in self._worlds))
        await asyncio.gather(*(host.close() for host in hosts))

    # ── hosts ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        """Begin anew on another event loop: processes of one that has ended cannot be talked to."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None:
            for host in self._hosts:
                host.abandon()
        self._loop = loop
        self._places = asyncio.Semaphore(self._most)
        self._starting = asyncio.Lock()
        self._hosts, self._shared, self._worlds = set(), None, set()

    async def _host(self) -> _Host:
        """The host of all worlds; one of its own where the environment's threads forbid forks."""
        async with self._starting:
            if self._shared is not None and self._shared.is_alive:
                return self._shared
            host = await _Host.started(self._factory, self._name, self._memory_mb, self._log_path)
            gone = {each for each in self._hosts if not each.is_alive}
            self._hosts = (self._hosts - gone) | {host}
            await asyncio.gather(*(each.close() for each in gone))
            self._shared = host if host.threads == 1 else None
            return host

    def _gave_back(self, world: WorldInWorker) -> None:
        self._worlds.discard(world)
        self._places.release()


class _Host:
    """The process that has loaded the environment, as we see it."""

    def __init__(self, process: Host, control: socket.socket, log: OutputLog | None) -> None:
        self._process = process
        self._control = control
        self._log = log
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._ended: dict[int, int] = {}
        self._news = asyncio.Event()
        self.threads = 1
        self.is_alive = True

    @classmethod
    async def started(
        cls, factory: functools.partial[Environment], name: str, memory_mb: int | None, log_path: Path | None
    ) -> _Host:
        """Start a host, and wait until it has loaded the environment."""
        if sys.platform == "win32":
            raise ConfigError("Worlds in processes of their own need Linux or macOS; on Windows, run inside WSL.")
        ours, theirs = socket.socketpair()
        with theirs:
            load = functools.partial(forks.hold, functools.partial(worlds_of, _pickled(factory, name)), theirs.fileno())
            log = None if log_path is None else OutputLog(log_path)
            process = Host(
                load, name="worlds", memory_mb=memory_mb, output=None if log is None else log.descriptor,
                variables={"PYTHONHASHSEED": "0"},  # sets keep their order when steps are played again
                tied=True, passed=(theirs.fileno(),),
            )  # fmt: skip
        host = cls(process, ours, log)
        try:
            async with asyncio.timeout(_STARTUP_SECONDS):
                await asyncio.to_thread(process.brief)
                reader, host._writer = await asyncio.open_unix_connection(sock=ours.dup())
                ready, *rest = await read_frame(reader)
        except (EOFError, TimeoutError, OSError) as error:
            await host.close()
            why = str(error) or "it took too long"
            raise EnvironmentFailure(
                f"The process for worlds of {name!r} did not start ({why}). See what it printed."
            ) from error
        if not ready:
            await host.close()
            kind, message = rest
            raise ConfigError(
                f"{name!r} could not be loaded in its process: {kind}: {message}. Correct it and run again."
            )
        (host.threads,) = rest
        host._listening = asyncio.create_task(host._listen(reader))
        return host

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(EOFError):
            while True:
                pid, status = await read_frame(reader)
                self._ended[pid] = status
                self._tell()
        self.is_alive = False
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def fork(self) -> socket.socket:
        """Have it make a process for a world; what comes back is our end of the line to it."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [forks.COMMAND.pack(forks.OPEN, 0)], [theirs.fileno()])
            except OSError as error:
                ours.close()
                self.is_alive = False
                raise EnvironmentFailure(f"The process that makes worlds has ended ({error}).") from error
        return ours

    def kill(self, pid: int) -> None:
        """End a world's process, and all it has started."""
        if self.threads > 1:
            self.abandon()
            return
        with contextlib.suppress(OSError):
            self._control.sendall(forks.COMMAND.pack(forks.KILL, pid))

    async def how_ended(self, pid: int) -> str:
        """How a world's process ended; reads on from "its process"."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                while pid not in self._ended and self.is_alive and self.threads == 1:
                    await self._news.wait()
        status = self._ended.pop(pid, None)
        return "ended" if status is None else how_it_ended(os.waitstatus_to_exitcode(status))

    def abandon(self) -> None:
        """Kill it, and with it all its worlds."""
        self.is_alive = False
        self._control.close()
        self._process.kill()

    async def close(self) -> None:
        """End it, and wait until it has ended."""
        self.abandon()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        if self._writer is not None:
            self._writer.close()
        await asyncio.to_thread(self._process.close)
        if self._log is not None:
            self._log.close()


def _pickled(factory: functools.partial[Environment], name: str) -> bytes:
    import cloudpickle  # type: ignore[import-untyped]

    named = factory.args[0]
    module = sys.modules.get(getattr(named, "__module__", "") or "")
    by_value = module is not None and not _is_importable(module.__name__)
    try:
        if by_value:
            cloudpickle.register_pickle_by_value(module)
        return bytes(cloudpickle.dumps(factory, 5))
    except Exception as error:
        raise ConfigError(
            f"The environment {name!r} cannot be sent to another process ({type(error).__name__}: {error}). "
            "Name it by its import path instead: in_worker('package.module:Name')."
        ) from error
    finally:
        if by_value:
            cloudpickle.unregister_pickle_by_value(module)


def _is_importable(module: str) -> bool:
    top = module.partition(".")[0]
    return top in sys.builtin_module_names or importlib.machinery.PathFinder.find_spec(top) is not None


# ── one world ────────────────────────────────────────────────────────────────────────────────────────────────────────


class WorldInWorker(World):
    """A world in another process, as this one sees it."""

    durability: Durability = "replay"  # type: ignore[misc]  # the other process says which

    _takes_users = False
    _user: Any = None
    _user_failed: EnvironmentFailure | None = None
    _sample: Sample

    def __init__(self, environment: InWorker, host: _Host) -> None:
        """Have the host make a process."""
        self._environment = environment
        self._host = host
        self._channel = host.fork()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._pid: int | None = None
        self._heard = time.monotonic()
        self._lost: str | None = None
        self._is_closed = False
        self._replying: set[asyncio.Task[None]] = set()
        self._tools = []

    async def begin(self, sample: Sample) -> None:
        """Open the world."""
        reader, self._writer = await asyncio.open_unix_connection(sock=self._channel, limit=_READ_BYTES)
        self._listening = asyncio.create_task(self._listen(reader))
        try:
            self._sample = sample
            self.durability, self.needs_question, self._takes_users = await self._ask("open", sample)
        except BaseException:
            await self.end()
            raise

    # ── as a world ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> Any:
        """What the world begins with."""
        return await self._ask_with_user("start", self.draw, self.runner.on_record, self._user is not None)

    def take_user(self, user: Any) -> bool:
        """Have `user` talk in the other process, where the world takes users."""
        self._user = user if self._takes_users else None
        return self._takes_users

    async def answer(self, message: Message) -> Answer | Any:
        """What comes back; the tool calls run in the other process."""
        runner = self.runner
        attached = [described(tool) for added in self._attached for tool in added.tools]
        needs_approval = runner.approve is not None
        answer, uses = await self._ask_with_user("answer", message, runner.on_record, needs_approval, attached)
        runner.uses += uses
        return answer

    async def facts(self) -> Any:
        """What the world tells of itself."""
        return await self._ask("facts")

    async def snapshot(self) -> Any:
        """The world's state as bytes."""
        return await self._ask("snapshot")

    async def restore(self, state: bytes) -> Any:
        """Become what the world was."""
        await self._ask("restore", state)

    async def close(self) -> None:
        """Let the world give back what it holds, then end its process. One that is stuck is not waited for."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._lost is None and not self._waiting:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self._ask("close")
        except TimeoutError as error:
            raise EnvironmentFailure(f"{self._what} did not close within {_CLOSE_SECONDS:g} s.") from error
        finally:
            await self.end()
            self._environment._gave_back(self)

    # ── the conversation ─────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _what(self) -> str:
        return f"The world of {self._environment._name!r}"

    async def _ask(self, operation: str, *arguments: Any) -> Any:
        """Have the other process do something, as long as it shows signs of life."""
        if self._lost is not None:
            raise EnvironmentFailure(f"{self._what} is gone: {self._lost}.")
        future = self._send(operation, arguments)
        began = self._heard = time.monotonic()
        while not (await asyncio.wait({future}, timeout=min(_PING_SECONDS, self._environment._patience / 4)))[0]:
            now = time.monotonic()
            if now - self._heard > self._environment._patience:
                self._lose(f"in `{operation}` its process did not react for {self._environment._patience:g} s")
            elif now - began > self._environment._timeout:
                self._lose(f"`{operation}` took more than {self._environment._timeout:g} s")
            else:
                self._write("ping", ())
        return future.result()

    def _send(self, operation: str, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        number = self._write(operation, arguments)
        self._waiting[number] = future
        future.add_done_callback(lambda _: self._waiting.pop(number, None))
        return future

    def _write(self, operation: str, arguments: tuple[Any, ...]) -> int:
        number = next(self._numbers)
        self._writer.write(forks.frame((number, operation, arguments)))
        return number

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            self._pid = await read_frame(reader)
            while True:
                number, outcome, value, tools = await read_frame(reader)
                self._heard = time.monotonic()
                if tools is not None:
                    self._tools = [self._tool(**described) for described in tools]
                if outcome == ASKS:
                    task = asyncio.create_task(self._reply(number, *value))
                    self._replying.add(task)
                    task.add_done_callback(self._replying.discard)
                elif (future := self._waiting.get(number)) is not None and not future.done():
                    self._settle(future, outcome, value)
        except EOFError:
            ended = "ended" if self._pid is None else await self._host.how_ended(self._pid)
            self._lose(f"its process {ended}")
        except Exception as error:  # noqa: BLE001 - whatever it was, nobody may wait for ever
            self._lose(f"what it said cannot be read ({type(error).__name__}: {error})")

    async def _ask_with_user(self, operation: str, *arguments: Any) -> Any:
        """The same, where the user may be asked meanwhile. What fails there is the user's, with what it cost."""
        try:
            return await self._ask(operation, *arguments)
        except EnvironmentFailure as failure:
            raise self._user_failed or failure from None

    def _settle(self, future: asyncio.Future[Any], outcome: str, value: Any) -> None:
        if outcome == DONE:
            future.set_result(value)
        elif outcome == TOOL_ERROR:
            future.set_exception(ToolError(*value))
        else:
            kind, message, is_ours, retryable = value
            told = message if is_ours else f"{self._what} raised {kind}: {message or 'no message'}"
            future.set_exception(EnvironmentFailure(told, retryable=bool(retryable)))

    async def _reply(self, number: int, what: str, name: str, arguments: dict[str, Any]) -> None:
        """Answer whether a call may run, run a tool that was attached to the world here, or ask the user."""
        try:
            reply = (DONE, await self._asked(what, name, arguments))
        except ToolError as error:
            reply = (TOOL_ERROR, (str(error), error.kind))
        except EnvironmentFailure as error:
            self._user_failed = error
            reply = (RAISED, str(error))
        except Exception as error:  # noqa: BLE001 - a named boundary: somebody's tool may raise anything
            reply = (RAISED, ": ".join(describe(error)[:2]))
        self._writer.write(forks.frame((number, "reply", reply)))

    async def _asked(self, what: str, name: str, arguments: dict[str, Any]) -> Any:
        if what == "approval":
            return None if self.runner.approve is None else await self.runner.approve(name, arguments)
        if what == "note":
            return await self.runner.note(**arguments)
        if what == "user":
            return await getattr(self._user, name)(self._sample, draw=self.runner.draw, **arguments)
        for tool in (tool for added in self._attached for tool in added.tools):
            if tool.name == name:
                checked = arguments if tool.check is None else tool.check(arguments)
                return text_of(await tool.call(checked), tool.max_output)
        raise ToolError(f"There is no tool {name!r} any more.", "unknown_tool")

    def _tool(self, **described: Any) -> Tool:
        name = described["name"]

        def call(arguments: dict[str, Any]) -> Awaitable[Any]:
            return self._ask("call", name, arguments)

        return Tool(call=call, **described)

    # ── its end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _lose(self, why: str) -> None:
        """Everybody who waits is told, and the process is killed, if it is still there."""
        if self._lost is None:
            self._lost = why
            if self._pid is not None:
                self._host.kill(self._pid)
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(EnvironmentFailure(f"{self._what} is gone: {self._lost}."))

    async def end(self) -> None:
        """End the process, whatever it is doing."""
        self._lose("it was closed")
        for task in (self._listening, *self._replying):
            task.cancel()
        await asyncio.gather(self._listening, *self._replying, return_exceptions=True)
        self._writer.close()
