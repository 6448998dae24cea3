# SPDX-License-Identifier: Apache-2.0
"""One zygote, as reward-kit sees it: a process that is started, asked one thing at a time, and closed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

from reward_kit.errors import SandboxError
from reward_kit.sandbox.linux.cgroups import make_memory_group, memory_group
from reward_kit.sandbox.python.messages import LENGTH, WORK, Frame, pack, sizes

__all__ = ["ADVICE", "Zygote"]

ADVICE: Final = (
    "Run as root, or allow user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0, "
    "kernel.unprivileged_userns_clone=1); in a container, give it CAP_SYS_ADMIN and an unmasked /proc."
)
"""What to do where a zygote cannot be started."""

_PACKAGES: Final = Path(__file__).parents[3]
_STUB: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); from reward_kit.sandbox.python.supervisor import main; "
    "del sys.path[0]; main(int(sys.argv[2]))"
)
_START_SECONDS: Final = 60.0
_CLOSE_SECONDS: Final = 5.0
_KEPT_OF_ERRORS: Final = 500
_numbers = itertools.count()


class Zygote:
    """A running zygote. Made by `start`; any failure of `ask` means that it must be closed."""

    def __init__(self, process: asyncio.subprocess.Process, errors: IO[bytes], group: str | None) -> None:
        self._process = process
        self._errors = errors
        self._group = group
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._descriptor: int | None = None
        self.traits: dict[str, Any] = {}
        """What the zygote said of itself when it was ready."""

    @classmethod
    async def start(cls, python: str, preload: Sequence[str], packages: Sequence[str] = ()) -> Zygote:
        """Start one in the interpreter `python`, with modules imported. `SandboxError` where it cannot be.

        `packages` are directories of packages that the interpreter has beside its own.
        """
        group = await asyncio.to_thread(make_memory_group, f"reward-kit-zygote-{os.getpid()}-{next(_numbers)}")
        ours, theirs = socket.socketpair()
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the zygote
        try:
            with theirs:
                process = await _spawn(python, theirs.fileno(), errors)
        except BaseException as error:
            ours.close()
            errors.close()
            await _remove(group)
            if isinstance(error, OSError):
                raise SandboxError(f"{python!r} could not be started: {error}. Name another interpreter.") from error
            raise
        zygote = cls(process, errors, group)
        try:
            zygote._descriptor = ours.fileno()
            zygote._reader, zygote._writer = await asyncio.open_unix_connection(sock=ours)
            await zygote._settle(preload, packages)
        except BaseException:
            await zygote.close()
            raise
        return zygote

    async def _settle(self, preload: Sequence[str], packages: Sequence[str]) -> None:
        """Tell it where to live, and wait until it does."""
        staging = await asyncio.to_thread(tempfile.mkdtemp, prefix="reward-kit-zygote-")
        settings = {
            "staging": staging,
            "group": self._group,
            "preload": list(preload),
            "packages": list(packages),
        }
        try:
            answer = await self.ask(settings, [], _START_SECONDS)
        except SandboxError as error:
            advice = "Is it installed for this interpreter?" if "ModuleNotFoundError" in str(error) else ADVICE
            raise SandboxError(f"no Python zygote can be started: {error} {advice}", retryable=False) from error
        finally:
            await asyncio.to_thread(os.rmdir, staging)
        self.traits = answer.header

    @property
    def alive(self) -> bool:
        """Whether it can still be asked, as far as is known."""
        return self._process.returncode is None and self._reader is not None and not self._reader.at_eof()

    async def ask(self, header: dict[str, Any], blobs: Sequence[bytes], within: float) -> Frame:
        """Send a request and wait for its answer. `SandboxError` when none comes."""
        if self._reader is None or self._writer is None:
            raise SandboxError("this zygote is closed. Start another.")
        try:
            async with asyncio.timeout(within):
                self._writer.write(pack(header, *blobs))
                await self._writer.drain()
                answer = await _receive(self._reader)
        except TimeoutError:
            raise SandboxError(f"the zygote did not answer within {within:.0f} s; it is replaced. Try again.") from None
        except (OSError, asyncio.IncompleteReadError):
            raise SandboxError(f"the zygote died: {self._last_words()}. It is replaced; try again.") from None
        if "error" in answer.header:
            raise SandboxError(f"the zygote could not do it: {answer.header['error']}.")
        return answer

    def _last_words(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            self._errors.seek(0)
            text = self._errors.read().decode(errors="replace").strip()
            return text[-_KEPT_OF_ERRORS:] or "it left no message"
        return "it left no message"

    def abandon(self) -> None:
        """Close our copy of the connection, in a forked process; else the zygote would live as long as that does."""
        if self._descriptor is not None:
            os.close(self._descriptor)

    async def close(self) -> None:
        """End it and everything in it. Safe to be called twice."""
        if self._writer is not None:
            self._writer.close()  # the zygote ends when it sees this, even in the middle of a run
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
            self._reader = self._writer = self._descriptor = None
        await self._end_process()
        self._errors.close()
        group, self._group = self._group, None
        await _remove(group)

    async def _end_process(self) -> None:
        """The launcher ends last, when all that was in the zygote's process namespace is gone."""
        for persuade in (None, self._process.terminate, self._process.kill):
            if persuade is not None:
                with contextlib.suppress(ProcessLookupError):
                    persuade()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _CLOSE_SECONDS)
                return


async def _spawn(python: str, control: int, errors: IO[bytes]) -> asyncio.subprocess.Process:
    nothing = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(
        *(python, "-I", "-c", _STUB, str(_PACKAGES), str(control)),
        stdin=nothing,
        stdout=nothing,
        stderr=errors,
        pass_fds=[control],
        env=_environment(python),
        start_new_session=True,
    )


def _environment(python: str) -> dict[str, str]:
    """Everything a program in the sandbox finds in its environment."""
    path = [os.path.dirname(python), "/usr/local/bin", "/usr/bin", "/bin"]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {"PATH": ":".join(filter(None, path)), "HOME": WORK, "LANG": "C.UTF-8", **threads}


async def _receive(reader: asyncio.StreamReader) -> Frame:
    header = json.loads(await reader.readexactly(LENGTH.unpack(await reader.readexactly(LENGTH.size))[0]))
    return Frame(header, [await reader.readexactly(size) for size in sizes(header)])


async def _remove(group: str | None) -> None:
    if group is not None:
        await asyncio.to_thread(memory_group(group).remove)
