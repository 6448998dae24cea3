# SPDX-License-Identifier: Apache-2.0
"""The backend `none`: the same shell, results and limits, and no isolation at all.

Covered: time limits, output limits, per-process rlimits, what is in its directory; what it starts is ended by `close`.
Not covered: everything else. Commands run as you, with your files and your network. It is used only when asked for by
name: for trying things out where nothing better works, with commands you would run yourself.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import tempfile
from typing import TYPE_CHECKING

from reward_kit.errors import RewardKitError, SandboxError
from reward_kit.sandbox.contract import Probe, SandboxSpec
from reward_kit.sandbox.linux.disk_use import DiskUse, held_use, tree_use
from reward_kit.sandbox.linux.processes import processes_below
from reward_kit.sandbox.linux.remove_tree import remove_tree
from reward_kit.sandbox.linux.rlimits import process_limits
from reward_kit.sandbox.local.channel import start_program
from reward_kit.sandbox.local.meter import NoMeter
from reward_kit.sandbox.local.porter_client import PorterClient
from reward_kit.sandbox.local.sandbox import LocalSandbox
from reward_kit.sandbox.local.session import ProcessPlace

if TYPE_CHECKING:
    from reward_kit.config_models import SandboxConfig

__all__ = ["UnisolatedBackend", "make_backend"]


def make_backend(_: SandboxConfig) -> UnisolatedBackend:
    """The backend, which has no settings."""
    return UnisolatedBackend()


class UnisolatedBackend:
    """Runs commands on this machine as they are, each sandbox in a new empty directory."""

    name = "none"

    def __init__(self) -> None:
        """Make a backend with no sandbox open. Nothing is started before the first one is."""
        self._open: set[LocalSandbox] = set()

    async def probe(self) -> Probe:
        """Open one, run a command, close it."""
        try:
            async with await self.open(SandboxSpec()) as sandbox:
                await sandbox.run("true")
        except (RewardKitError, OSError) as error:
            return Probe(False, str(error), "Install bash.")
        return Probe(True, "no isolation: commands run as you, with your files and network")

    async def open(self, spec: SandboxSpec) -> LocalSandbox:
        """An empty directory and a shell in it."""
        if spec.image is not None:
            raise SandboxError(
                f"The backend 'none' runs on this machine's own files, not in the image {spec.image!r}. "
                "Leave the image out, or use another backend.",
                retryable=False,
            )
        shell = shutil.which("bash")
        if shell is None:
            raise SandboxError("The program `bash` is not on the PATH. Install it.", retryable=False)
        # In a task of its own, which is not cancelled with us: what it has begun to start would be lost.
        starting = asyncio.ensure_future(self._start(spec, shell))
        try:
            await asyncio.wait([starting])
            await starting.result().prepare(spec)
        except BaseException:
            await asyncio.wait([starting])
            if not starting.exception():
                await starting.result().close()
            raise
        return starting.result()

    async def _start(self, spec: SandboxSpec, shell: str) -> LocalSandbox:
        """A sandbox that has not been prepared."""
        home = await asyncio.to_thread(tempfile.mkdtemp, prefix="reward-kit-")
        ours, theirs = socket.socketpair()
        with theirs:
            bounds = json.dumps(process_limits(spec.limits))
            porter = await asyncio.to_thread(start_program, "local.porter", theirs, bounds)
        place = ProcessPlace(
            porter=PorterClient(ours),
            limits=spec.limits,
            environment=_environment(home) | dict(spec.environment),
            meter=NoMeter,
            processes=lambda: processes_below(porter.pid),
            shell=shell,
        )

        async def end() -> None:
            self._open.discard(sandbox)
            place.porter.close()  # upon which the porter ends whatever is left
            await asyncio.to_thread(porter.wait)
            await asyncio.to_thread(remove_tree, home)

        def use(most: DiskUse) -> DiskUse:
            return held_use(place.processes()) + tree_use([home], most)

        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        opened.set_result(None)
        sandbox = LocalSandbox(place, spec.workdir or home, opened, end, disk=lambda most: asyncio.to_thread(use, most))
        self._open.add(sandbox)
        return sandbox

    async def close(self) -> None:
        """Close every sandbox that is still open."""
        await asyncio.gather(*(sandbox.close() for sandbox in list(self._open)))


def _environment(home: str) -> dict[str, str]:
    """A few variables, not the host's own: those may hold keys."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "USER", "LOGNAME") if name in os.environ}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **kept, "HOME": home, "TERM": "dumb", "TMPDIR": home}
