# SPDX-License-Identifier: Apache-2.0
"""Calls to a container engine, docker or podman, through the docker SDK: each in a thread, each with a deadline."""

from __future__ import annotations

import asyncio
import enum
import hashlib
import importlib.util
import os
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from reward_kit.errors import MissingExtraError, RewardKitError, SandboxError
from reward_kit.sandbox.containers.stream import DriverStream
from reward_kit.sandbox.contract import Limits
from reward_kit.sandbox.linux.capabilities import CONTAINER_CAPABILITIES

if TYPE_CHECKING:
    from docker import APIClient

__all__ = [
    "CALL_SECONDS",
    "LABEL",
    "Change",
    "ContainerKind",
    "Engine",
    "State",
    "connect_upgraded",
    "is_stray",
    "owner_mark",
]

_T = TypeVar("_T")
LABEL = "reward-kit.sandbox"
"""Marks what is ours, with the process that made it (`owner_mark`)."""
CALL_SECONDS = 30.0
"""How long an engine may take to answer a call, unless said otherwise."""
_OWN_PROCESSES = 8
_DRIVER_FILES = 300  # the driver keeps its descriptors out of the way, at 250 and above
_MANY_PROCESSES = 4096
_PULL_SECONDS = 900.0
_THREADS = 16


class Change(enum.IntEnum):
    """What an engine says of a path, in its own numbers."""

    CHANGED = 0
    ADDED = 1
    REMOVED = 2


@dataclass(frozen=True)
class ContainerKind:
    """What has to be known when a container is made; all else is told to its driver."""

    image: str
    limits: Limits
    network: bool


@dataclass(frozen=True)
class State:
    """Why a container is not running."""

    exit_code: int
    oom_killed: bool

    @property
    def ended_from_inside(self) -> bool:
        """Whether what ran in it ended it. Its first process can be killed from outside only, and by lack of memory."""
        return self.oom_killed or self.exit_code != 128 + 9


class Engine:
    """One engine behind one socket. `name` is what people call it; a call to it may take `call_seconds`."""

    def __init__(self, name: str, url: str, *, call_seconds: float = CALL_SECONDS) -> None:
        self.name = name
        self.url = url
        self._call_seconds = call_seconds
        self._client: APIClient | None = None
        self._connecting = asyncio.Lock()
        self._background: set[asyncio.Task[None]] = set()
        self._threads: ThreadPoolExecutor | None = None
        self._owner = owner_mark()

    async def version(self) -> str:
        """The engine's name and version."""
        client = await self._connected()
        answer: dict[str, Any] = await self._call("version", client.version)
        return f"{self.name} {answer.get('Version', '?')} at {self.url}"

    async def need_image(self, image: str) -> None:
        """Pull `image` unless it is here."""
        client = await self._connected()
        if not await self._call("inspect", partial(_has_image, client, image)):
            answer = await self._call(
                f"pull {image!r}", partial(_pull, client, image), seconds=_PULL_SECONDS, final=True
            )
            if not await self._call("inspect", partial(_has_image, client, image)):  # podman says so in its answer only
                text = " ".join(answer.split())[-500:]
                raise SandboxError(f"{self.name} has no image {image!r}: {text}; check its name", retryable=False)

    async def create(self, kind: ContainerKind) -> tuple[str, DriverStream]:
        """A running container whose driver waits for a request, and the stream to it."""
        client = await self._connected()
        key = await self._created(client, kind)
        try:
            # In this order, which podman asks for: the driver says nothing before it is asked.
            await self._call("start", partial(client.start, key))
            stream = await self._within("attach", _attach(self.url, client.api_version, key))
        except BaseException:
            await asyncio.shield(asyncio.ensure_future(self.remove(key)))
            raise
        return key, stream

    async def _created(self, client: APIClient, kind: ContainerKind) -> str:
        """A new container. A thread cannot be cancelled: what it makes after all is removed."""
        making = asyncio.ensure_future(self._in_thread(partial(_create, client, kind, self._owner)))
        try:
            made = await self._within("create", asyncio.shield(making))
        except BaseException:
            removing = asyncio.create_task(self._remove_when_made(making))
            self._background.add(removing)
            removing.add_done_callback(self._background.discard)
            raise
        return str(made["Id"])

    async def _remove_when_made(self, making: asyncio.Future[dict[str, Any]]) -> None:
        await asyncio.wait([making])
        if not making.cancelled() and making.exception() is None:
            await self.remove(str(making.result()["Id"]))

    async def state(self, key: str) -> State:
        """How a container that is not running ended. One that is unknown, or still runs, is a `SandboxError`."""
        client = await self._connected()
        found: dict[str, Any] = await self._call("inspect", partial(client.inspect_container, key))
        state = found["State"]
        if state["Running"]:
            raise SandboxError(f"{self.name} closed the connection to a container that is still running; try again")
        return State(int(state["ExitCode"]), bool(state["OOMKilled"]))

    async def changes(self, key: str) -> dict[str, Change]:
        """Every path that is not as in the image."""
        client = await self._connected()
        found: list[dict[str, Any]] = await self._call("diff", partial(client.diff, key)) or []
        return {str(one["Path"]): Change(one["Kind"]) for one in found}

    async def digest(self, key: str, path: str) -> str:
        """What tells the content of a file from others; empty where there is none."""
        client = await self._connected()
        return await self._call("copy", partial(_digest, client, key, path))

    async def remove(self, key: str) -> None:
        """End and remove a container. One that is gone already is no error."""
        client = await self._connected()
        await self._call("remove", partial(_remove, client, key))

    async def sweep(self) -> int:
        """Remove what processes of this machine that are gone have left; how many there were."""
        client = await self._connected()
        listing = partial(client.containers, all=True, filters={"label": LABEL})
        found: list[dict[str, Any]] = await self._call("list", listing)
        strays = [str(one["Id"]) for one in found if is_stray(one["Labels"][LABEL])]
        await asyncio.gather(*(self.remove(key) for key in strays))
        return len(strays)

    async def close(self) -> None:
        """Close the connections and the threads. The next call would open new ones."""
        await asyncio.gather(*self._background, return_exceptions=True)
        threads, self._threads = self._threads, None
        client, self._client = self._client, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)
        if client is not None:
            client.close()

    async def _connected(self) -> APIClient:
        async with self._connecting:
            if self._client is None:
                if importlib.util.find_spec("docker") is None:
                    raise MissingExtraError(f"The sandbox backend {self.name!r}", "docker")
                self._client = await self._call("connect", partial(_connect, self.url, self._call_seconds))
        return self._client

    async def _call(
        self,
        what: str,
        action: Callable[[], _T],
        *,
        seconds: float | None = None,
        final: bool = False,
    ) -> _T:
        """What `action` returns, in a thread."""
        return await self._within(what, self._in_thread(action), seconds=seconds, final=final)

    def _in_thread(self, action: Callable[[], _T]) -> Awaitable[_T]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"reward-kit-{self.name}")
        return asyncio.get_running_loop().run_in_executor(
            self._threads, partial(_reached, self.url, self._call_seconds, action)
        )

    async def _within(
        self,
        what: str,
        doing: Awaitable[_T],
        *,
        seconds: float | None = None,
        final: bool = False,
    ) -> _T:
        """What comes within `seconds`. Any failure is a `SandboxError`, not retryable if `final`."""
        seconds = self._call_seconds if seconds is None else seconds
        try:
            async with asyncio.timeout(seconds):
                return await doing
        except RewardKitError:
            raise
        except TimeoutError:
            raise SandboxError(
                f"{self.name} did not answer ({what}) within {seconds:g} s; check that it works"
            ) from None
        except _engine_failures() as error:
            text = " ".join(str(error).split())[:500]
            advice = "check the name of the image" if final else f"check that {self.name} is well at {self.url}"
            raise SandboxError(f"{self.name} failed ({what}): {text}; {advice}", retryable=not final) from error


def _engine_failures() -> tuple[type[Exception], ...]:
    from docker.errors import DockerException

    return (DockerException, OSError, EOFError)  # what the SDK lets through of its transport is an OSError


def _reached(url: str, seconds: float, action: Callable[[], _T]) -> _T:
    """What `action` returns, once the engine's socket is known to be there: where it is not, the SDK leaks its own."""
    scheme, _, path = url.partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
            knock.settimeout(seconds)
            knock.connect(path)
    return action()


def _connect(url: str, seconds: float) -> APIClient:
    from docker import APIClient

    return APIClient(base_url=url, version="auto", timeout=seconds, max_pool_size=_THREADS)


def _has_image(client: APIClient, image: str) -> bool:
    from docker.errors import ImageNotFound

    try:
        client.inspect_image(image)
    except ImageNotFound:
        return False
    return True


def _pull(client: APIClient, image: str) -> str:
    name, _, tag = image.partition("@") if "@" in image else image.rpartition(":")
    named = (name, tag) if name and "/" not in tag else (image, "latest")
    return str(client.pull(named[0], tag=named[1]))


def _create(client: APIClient, kind: ContainerKind, owner: str) -> dict[str, Any]:
    from docker.types import LogConfig, Ulimit

    limits = kind.limits
    open_files = max(limits.open_files, _DRIVER_FILES)
    file_size, cpu = limits.file_size_mb << 20, max(1, round(limits.cpu_seconds))
    host = client.create_host_config(
        network_mode="bridge" if kind.network else "none",
        mem_limit=limits.memory_mb << 20,
        memswap_limit=limits.memory_mb << 20,
        pids_limit=limits.processes + _OWN_PROCESSES,
        cap_drop=["ALL"],
        cap_add=[name.removeprefix("CAP_") for name in CONTAINER_CAPABILITIES],
        security_opt=["no-new-privileges"],
        log_config=LogConfig(type="none"),
        ulimits=[
            Ulimit(name="nofile", soft=open_files, hard=open_files),
            Ulimit(name="fsize", soft=file_size, hard=file_size),
            Ulimit(name="cpu", soft=cpu, hard=cpu + 1),
            Ulimit(name="core", soft=0, hard=0),
            # Named because podman would otherwise ask for more than an engine without CAP_SYS_RESOURCE may give; what
            # bounds the processes of a sandbox is `pids_limit`.
            Ulimit(name="nproc", soft=_MANY_PROCESSES, hard=_MANY_PROCESSES),
        ],
    )
    # `StdinOnce`, which the SDK sets with `stdin_open`, closes the driver's input when we are gone, however we went.
    made: dict[str, Any] = client.create_container(
        kind.image,
        entrypoint=[
            "bash",
            "-c",
            files("reward_kit.sandbox.containers").joinpath("driver.sh").read_text(),
            "bash",
        ],
        command=[],
        stdin_open=True,
        host_config=host,
        labels={LABEL: owner},
    )
    return made


async def _attach(url: str, version: str, key: str) -> DriverStream:
    """The container's streams. Asked for by hand: the SDK's own way is neither asynchronous nor closes cleanly."""
    query = "stream=1&stdin=1&stdout=1&stderr=1"
    return DriverStream(*await connect_upgraded(url, f"/v{version}/containers/{key}/attach?{query}"))


async def connect_upgraded(url: str, path: str, body: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Post to the engine, and have the connection itself once it agrees: it then carries a process's streams."""
    scheme, _, place = url.partition("://")
    if scheme not in ("unix", "tcp", "http"):
        raise SandboxError(
            f"containers cannot be attached to through {url!r}; name a unix or tcp socket", retryable=False
        )
    if scheme == "unix":
        reader, writer = await asyncio.open_unix_connection(place)
    else:
        host, _, port = place.rstrip("/").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
    kind = "Content-Type: application/json\r\n" if body else ""
    headers = f"Host: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n{kind}Content-Length: {len(body)}\r\n"
    writer.write(f"POST {path} HTTP/1.1\r\n{headers}\r\n".encode() + body)
    try:
        answer = await reader.readuntil(b"\r\n\r\n")
        if answer.split()[1] not in (b"101", b"200"):
            raise OSError(answer.partition(b"\r\n")[0].decode())
    except BaseException:
        writer.close()
        raise
    return reader, writer


def _digest(client: APIClient, key: str, path: str) -> str:
    from docker.errors import NotFound

    try:
        content, _ = client.get_archive(key, path)
        digest = hashlib.sha256()
        for piece in content:
            digest.update(piece)
    except NotFound:
        return ""
    return digest.hexdigest()


def _remove(client: APIClient, key: str) -> None:
    from docker.errors import APIError, NotFound

    try:
        client.remove_container(key, force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != 409:  # noqa: PLR2004 - somebody else is removing it
            raise


# ── whose container is it ────────────────────────────────────────────────────────────────────────────────────────────


def owner_mark() -> str:
    """The mark of this process, which no other process on any machine has."""
    return f"{_machine()}/{os.getpid()}/{_started(os.getpid())}"


def is_stray(owner: str) -> bool:
    """Whether the process that made something, by the mark on it, was one of this machine and is gone."""
    if owner.count("/") < 2:  # noqa: PLR2004 - not a mark of ours
        return False
    machine, _, process = owner.rpartition("/")[0].rpartition("/")
    return machine == _machine() and _started(int(process)) != owner.rpartition("/")[2]


def _machine() -> str:
    """This machine since its last start, seen from this process namespace."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}-{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(process: int) -> str:
    """When a process began, in the kernel's own count; empty when it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
