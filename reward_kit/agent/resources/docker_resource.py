# SPDX-License-Identifier: Apache-2.0
"""DockerResource: a container as a world. Needs the extra `docker`, and an engine.

A fork is an image of the container's files (`commit`), and a container of that image: files are copied, processes and
what is in memory are not. The image is removed with the last resource that needs it.
"""

from __future__ import annotations

import importlib.util
import os
import uuid
from pathlib import Path
from typing import Any, ClassVar

from reward_kit.agent.environment import Durability
from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.resources.tool_spec import tool_spec, unknown_action
from reward_kit.sandbox.containers.kept import KeptContainers

__all__ = ["DockerResource"]

_SECONDS = 60.0
_MOST_BYTES = 1 << 20
_USUAL_SOCKET = "unix:///var/run/docker.sock"


def __getattr__(name: str) -> bool:
    """The inherited flags, found out when they are asked for."""
    if name == "DOCKER_SDK_AVAILABLE":
        return importlib.util.find_spec("docker") is not None
    if name == "DOCKER_DAEMON_AVAILABLE":
        scheme, _, path = _url().partition("://")
        return importlib.util.find_spec("docker") is not None and (scheme != "unix" or Path(path).is_socket())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Image:
    """An image of ours, removed when nobody needs it any more."""

    def __init__(self, engine: KeptContainers, key: str) -> None:
        self.key = key
        self._engine = engine
        self._users = 0

    def taken(self) -> _Image:
        self._users += 1
        return self

    async def released(self) -> None:
        self._users -= 1
        if self._users == 0:
            await self._engine.remove_image(self.key)


class DockerResource(ForkableResource):
    """A container.

    Config: `image_name`, `container_name`, `docker_run_options` (those of the docker SDK's `containers.run`); ours:
    `timeout` (seconds a command may take), `max_output` (bytes kept of what it writes). Actions: `exec_command` with
    `command` (text for `sh`, or a list of words), `workdir`, `user`; `get_logs` with `stdout`, `stderr`, `tail`.
    A command that takes too long is ended together with all that was started in the container.
    """

    durability: ClassVar[Durability] = "restart"
    reading: ClassVar[frozenset[str]] = frozenset({"get_logs"})

    def __init__(self) -> None:
        """No container yet; `setup` starts one."""
        self._engine = KeptContainers("docker", _url())
        self._config: dict[str, Any] = {}
        self._container: str | None = None
        self._image: _Image | None = None
        self._checkpoints: list[_Image] = []

    async def setup(self, config: dict[str, Any]) -> None:
        """Start a container. An image that the engine does not have is pulled."""
        image = config.get("image_name")
        if not image:
            raise ValueError("DockerResource needs 'image_name' in its config")
        self._config = dict(config)
        await self._engine.sweep()
        await self._engine.sweep_images()
        await self._engine.need_image(image)
        await self._begin(image, config.get("container_name"))

    async def fork(self) -> DockerResource:
        """A resource whose container has the files that this one has now."""
        image = _Image(self._engine, await self._engine.commit(self._running()))
        forked = type(self)()
        forked._config, forked._image = self._config, image.taken()
        try:
            await forked._begin(image.key, f"reward-kit-{uuid.uuid4().hex}")
        except BaseException:
            await forked.close()
            raise
        return forked

    async def checkpoint(self) -> dict[str, Any]:
        """An image of the container's files, which `close` removes."""
        image = _Image(self._engine, await self._engine.commit(self._running())).taken()
        self._checkpoints.append(image)
        return {"type": "docker_image_id", "image_id": image.key}

    async def restore(self, state_data: Any) -> None:
        """Put a container of a checkpoint's image in the place of the present one."""
        image = state_data.get("image_id")
        if state_data.get("type") != "docker_image_id" or not image:
            raise ValueError("a checkpoint of DockerResource is {'type': 'docker_image_id', 'image_id': …}")
        if not await self._engine.has_image(image):
            raise FileNotFoundError(f"there is no image {image!r}; it is removed when its resource is closed")
        await self._end()
        await self._begin(image, self._config.get("container_name"))

    async def step(self, action_name: str, action_params: dict[str, Any]) -> Any:
        """Do `exec_command`, which gives `exit_code` and `output`, or `get_logs`."""
        if action_name == "exec_command":
            return await self._exec(action_params)
        if action_name == "get_logs":
            options = {name: action_params.get(name, True) for name in ("stdout", "stderr")}
            tail = action_params.get("tail", "all")
            said = await self._engine.logs(self._running(), tail=tail, timestamps=False, **options)
            return said[-self._most_bytes :].decode(errors="replace")
        raise unknown_action(self, action_name, ["exec_command", "get_logs"])

    async def get_observation(self) -> dict[str, Any]:
        """The container's id, name, image and status."""
        if self._container is None:
            return {"type": "docker", "status": "uninitialized"}
        known = await self._engine.inspect(self._container)
        return {
            "type": "docker",
            "container_id": self._container,
            "container_name": str(known["Name"]).lstrip("/"),
            "image_id": known["Image"],
            "status": known["State"]["Status"],
        }

    async def describe(self) -> dict[str, Any]:
        """What the container was made of; its id and name are no part of its state."""
        return {"type": "docker", "image_name": self._config.get("image_name")}

    async def get_tools_spec(self) -> list[dict[str, Any]]:
        """The tool `exec_command`."""
        properties = {
            "command": {"type": "string", "description": "A command for sh."},
            "workdir": {"type": "string", "description": "The directory to run it in."},
        }
        return [tool_spec("exec_command", "Run a command in the container.", properties, ["command"])]

    async def close(self) -> None:
        """Remove the container and the images that were made of it."""
        await self._end()
        checkpoints, self._checkpoints = self._checkpoints, []
        for image in checkpoints:
            await image.released()
        image_of_fork, self._image = self._image, None
        if image_of_fork is not None:
            await image_of_fork.released()
        await self._engine.close()

    async def _exec(self, params: dict[str, Any]) -> dict[str, Any]:
        command = params.get("command")
        if not command or not isinstance(command, (str, list)):
            raise ValueError("'exec_command' needs 'command': text, or a list of words")
        key = self._running()
        if (await self._engine.inspect(key))["State"]["Status"] != "running":
            await self._engine.restart(key)
        done = await self._engine.execute(
            key,
            command,
            timeout=float(self._config.get("timeout", _SECONDS)),
            most_bytes=self._most_bytes,
            workdir=params.get("workdir"),
            user=params.get("user") or "",
        )
        told: dict[str, Any] = {"exit_code": done.exit_code, "output": done.output.decode(errors="replace")}
        if done.timed_out:
            told["timed_out"] = True
        if done.truncated:
            told["truncated"] = True
        return told

    @property
    def _most_bytes(self) -> int:
        return int(self._config.get("max_output", _MOST_BYTES))

    def _running(self) -> str:
        if self._container is None:
            raise RuntimeError("this DockerResource has no container; call setup() first")
        return self._container

    async def _begin(self, image: str, name: str | None) -> None:
        self._container = await self._engine.begin(image, name, self._config.get("docker_run_options") or {})

    async def _end(self) -> None:
        container, self._container = self._container, None
        if container is not None:
            await self._engine.remove(container)


def _url() -> str:
    return os.environ.get("DOCKER_HOST") or _USUAL_SOCKET
