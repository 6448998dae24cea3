# SPDX-License-Identifier: Apache-2.0
"""The server that a task needs: started on a free port, waited for, and ended with all that it started."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from contextlib import suppress
from typing import IO

from reward_kit.errors import EnvironmentFailure
from reward_kit.http.faults import HttpFault
from reward_kit.models import ResourceServerConfig
from reward_kit.workers.programs import end_program, start_program

__all__ = ["ResourceServer"]

_READY_SECONDS = 60.0
_TRY_SECONDS = 5.0
_BETWEEN_TRIES = 0.1
_MOST_BYTES = 1 << 20
_SAID = 2000
_CLIENT_ERROR = 400


class ResourceServer:
    """One server. `url` is where it is, once it has been started."""

    def __init__(self, config: ResourceServerConfig, cwd: str | None = None) -> None:
        """Take the command and the address that says whether it is well; both may hold `{port}`."""
        self._config = config
        self._cwd = cwd
        self._process: asyncio.subprocess.Process | None = None
        self._output: IO[bytes] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Where the server is."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start it and wait until it is well; an `EnvironmentFailure` that shows its output where it never is."""
        self.port = _free_port()
        self._output = tempfile.TemporaryFile(prefix="reward-kit-server-")  # noqa: SIM115 - `close` closes it
        command = self._config.start_command.replace("{port}", str(self.port))
        self._process = await start_program(
            command, stdin=asyncio.subprocess.DEVNULL, stdout=self._output, stderr=self._output, cwd=self._cwd
        )
        try:
            await self._wait_until_well(self._config.health_check_url.replace("{port}", str(self.port)))
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End it, and everything that it started."""
        process, self._process = self._process, None
        if process is not None:
            await end_program(process)
        output, self._output = self._output, None
        if output is not None:
            output.close()

    async def _wait_until_well(self, url: str) -> None:
        from reward_kit.http.exchange import HttpSession

        assert self._process is not None
        session = HttpSession(max_reply=_MOST_BYTES)
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while self._process.returncode is None:
                    with suppress(HttpFault):
                        if (await session.request("GET", url, seconds=_TRY_SECONDS)).status < _CLIENT_ERROR:
                            return
                    await asyncio.sleep(_BETWEEN_TRIES)
        except TimeoutError:
            pass
        finally:
            await session.close()
        code = self._process.returncode
        how = f"ended with status {code}" if code is not None else f"was not well after {_READY_SECONDS:g} s"
        raise EnvironmentFailure(
            f"The task's server {self._config.start_command!r} {how} ({url}). It printed: {self._printed()!r}. Start "
            "it by hand to see what is wrong.",
            retryable=False,
        )

    def _printed(self) -> str:
        if self._output is None:
            return ""
        size = self._output.seek(0, 2)
        self._output.seek(max(0, size - _SAID))
        return self._output.read().decode(errors="replace").strip()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
