# SPDX-License-Identifier: Apache-2.0
"""Containers that are kept, as somebody's options say, and whose state can be made an image: for agents' resources.

They and their images carry the mark of the process that made them: what it leaves behind is removed by the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from reward_kit.errors import SandboxError
from reward_kit.sandbox.containers.engine import LABEL, Engine, connect_upgraded, is_stray

if TYPE_CHECKING:
    from docker import APIClient, DockerClient

__all__ = ["Executed", "KeptContainers"]

_COMMIT_SECONDS = 600.0
_END_SECONDS = 10.0
_OURS = ("detach", "remove", "auto_remove", "name", "labels", "stream")
"""Options that a kept container does not leave to others."""


class Executed(NamedTuple):
    """What came of a command."""

    exit_code: int | None
    """None where it had to be stopped."""
    output: bytes
    """Standard output and error, in the order of arrival."""
    timed_out: bool
    truncated: bool


class KeptContainers(Engine):
    """Containers of one engine, each alive until it is removed."""

    async def begin(self, image: str, name: str | None, options: dict[str, Any]) -> str:
        """A running container of `image`; `options` are those of the docker SDK's `containers.run`."""
        client = await self._connected()
        if name is not None:
            await self.remove(name)
        chosen = {key: value for key, value in options.items() if key not in _OURS}
        chosen.setdefault("stdin_open", True)  # so that the shell of an image without a service waits
        if not chosen.get("command") and not chosen.get("entrypoint"):
            known: dict[str, Any] = await self._call("images", partial(client.inspect_image, image))
            config = known.get("Config") or {}
            if not config.get("Cmd") and not config.get("Entrypoint"):
                chosen["command"] = ["sh"]
        labels = {**_labels(options.get("labels")), LABEL: self._owner}
        key = await self._call("create", partial(_create, self.url, image, {**chosen, "name": name, "labels": labels}))
        try:
            await self._call("start", partial(client.start, key))
        except BaseException:
            await asyncio.shield(asyncio.ensure_future(self.remove(key)))
            raise
        return key

    async def inspect(self, key: str) -> dict[str, Any]:
        """What the engine knows of a container."""
        client = await self._connected()
        found: dict[str, Any] = await self._call("inspect", partial(client.inspect_container, key))
        return found

    async def restart(self, key: str) -> None:
        """Start a container's first process again, or for the first time since it ended."""
        client = await self._connected()
        await self._call("restart", partial(client.restart, key, timeout=0), seconds=60.0)

    async def execute(
        self,
        key: str,
        command: str | Sequence[str],
        *,
        timeout: float,
        most_bytes: int,
        workdir: str | None = None,
        user: str = "",
    ) -> Executed:
        """Run a command in a container. One that takes too long is ended, and so is all else that was started there."""
        client = await self._connected()
        making = partial(client.exec_create, key, _words(command), workdir=workdir, user=user)
        made: dict[str, Any] = await self._call("exec", making)
        output = _Output(most_bytes)
        reading = asyncio.create_task(_execute(self.url, client.api_version, made["Id"], output))
        try:
            done, _ = await asyncio.wait([reading], timeout=timeout)
            if not done:
                await self._end_all(key, reading)
                return Executed(None, output.kept, True, output.truncated)
            await self._within("exec", reading)
        finally:
            if not reading.done():
                reading.cancel()
                await asyncio.wait([reading])
                await asyncio.shield(asyncio.ensure_future(self._kill_all(key)))
        known: dict[str, Any] = await self._call("inspect", partial(client.exec_inspect, made["Id"]))
        return Executed(known.get("ExitCode"), output.kept, False, output.truncated)

    async def logs(self, key: str, **options: Any) -> bytes:
        """What a container's first process has written."""
        client = await self._connected()
        return bytes(await self._call("logs", partial(client.logs, key, **options)))

    async def commit(self, key: str) -> str:
        """A new image of a container's files, marked as ours; its id."""
        client = await self._connected()
        changes = [f"LABEL {LABEL}={json.dumps(self._owner)}"]
        committing = partial(client.commit, key, changes=changes)
        made: dict[str, Any] = await self._call("commit", committing, seconds=_COMMIT_SECONDS)
        return str(made["Id"])

    async def has_image(self, image: str) -> bool:
        """Whether the engine has an image."""
        client = await self._connected()
        return bool(await self._call("images", partial(_has, client, image)))

    async def remove_image(self, image: str) -> None:
        """Remove an image; one that is gone already is no error."""
        client = await self._connected()
        await self._call("remove the image", partial(_remove_image, client, image), seconds=120.0)

    async def sweep_images(self) -> int:
        """Remove images that processes which are gone have left; how many there were."""
        client = await self._connected()
        found: list[dict[str, Any]] = await self._call("list", partial(client.images, filters={"label": LABEL}))
        strays = [str(one["Id"]) for one in found if is_stray((one.get("Labels") or {}).get(LABEL, ""))]
        for image in strays:
            with contextlib.suppress(SandboxError):  # somebody else removes it, or still uses it
                await self.remove_image(image)
        return len(strays)

    async def _end_all(self, key: str, reading: asyncio.Task[None]) -> None:
        """End what runs in a container beside its first process; where that does not help, start it again."""
        await self._kill_all(key)
        done, _ = await asyncio.wait([reading], timeout=_END_SECONDS)
        if not done:
            await self.restart(key)

    async def _kill_all(self, key: str) -> None:
        client = await self._connected()
        with contextlib.suppress(SandboxError, TimeoutError):
            made = await self._call("exec", partial(client.exec_create, key, ["sh", "-c", "kill -9 -1"], user="0"))
            async with asyncio.timeout(_END_SECONDS):
                await _execute(self.url, client.api_version, made["Id"], _Output(0))


class _Output:
    """The first bytes of what is written."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.kept = b""
        self.truncated = False

    def take(self, data: bytes) -> None:
        room = self._most - len(self.kept)
        self.truncated = self.truncated or len(data) > room
        self.kept += data[: max(0, room)]


async def _execute(url: str, version: str, exec_id: str, output: _Output) -> None:
    """Start a command that was made ready, and take what it writes until it ends."""
    body = json.dumps({"Detach": False, "Tty": False}).encode()
    reader, writer = await connect_upgraded(url, f"/v{version}/exec/{exec_id}/start", body)
    try:
        while True:
            header = await reader.readexactly(8)
            output.take(await reader.readexactly(int.from_bytes(header[4:], "big")))
    except asyncio.IncompleteReadError:
        return
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _create(url: str, image: str, options: dict[str, Any]) -> str:
    from docker import DockerClient

    client: DockerClient = DockerClient(base_url=url, timeout=30)
    try:
        return str(client.containers.create(image, **options).id)
    finally:
        client.close()


def _labels(given: Any) -> dict[str, str]:
    return dict.fromkeys(given, "") if isinstance(given, list) else dict(given or {})


def _words(command: str | Sequence[str]) -> list[str]:
    return ["sh", "-c", command] if isinstance(command, str) else list(command)


def _has(client: APIClient, image: str) -> bool:
    from docker.errors import ImageNotFound

    try:
        client.inspect_image(image)
    except ImageNotFound:
        return False
    return True


def _remove_image(client: APIClient, image: str) -> None:
    from docker.errors import ImageNotFound

    with contextlib.suppress(ImageNotFound):
        client.remove_image(image, force=True)
