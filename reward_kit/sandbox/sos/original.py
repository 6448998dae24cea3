# SPDX-License-Identifier: Apache-2.0
"""A sandbox on the original SoS server, which lacks most of the contract: what can be made up for is, here.

The original types a session command into an interactive shell on a terminal, and gives it 2 s. So a command is sent as
one line, quoted, with its input closed: no tab completes, no `!` recalls, no open quote waits. An answer that comes
later than those 2 s may belong to another command, and is a `SandboxError`. The shell's directory is found through its
process, which a command cannot redefine. Not to be had: limits, the network's absence, stdout apart from stderr, exit
codes that cannot be forged.
"""

from __future__ import annotations

import base64
import shlex
import time

from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import SandboxSpec
from reward_kit.sandbox.setup import setup_failed
from reward_kit.sandbox.sos.client import SosSandbox
from reward_kit.sandbox.sos.protocol import TIMED_OUT_EXIT_CODE

__all__ = ["OriginalSosSandbox", "quoted"]

_SESSION_SECONDS = 2.0
_SESSION_DEADLINE = 30.0
_GRACE_SECONDS = 15.0
_STATE = "/tmp/.reward-kit-session"  # in the sandbox
_KILLED = 137


class OriginalSosSandbox(SosSandbox):
    """One sandbox on the original server."""

    _shell: int | None = None

    async def prepare(self, spec: SandboxSpec) -> None:
        """Write the files, run the setup as long as it takes, and bring the session where that left off."""
        shell = await self._session_line("echo $$")
        self._shell = int(shell.output) if shell.output.isdigit() else None
        if spec.workdir is not None:
            await self._session_line(f"mkdir -p -- {quoted(spec.workdir)} && cd -- {quoted(spec.workdir)}")
        self._workdir = (await self._session_line("pwd")).output
        for name, value in spec.environment.items():
            await self._session_line(f"export {name}={quoted(value)}")
        for path, content in spec.files.items():
            await self.write(path, content)
        if spec.setup:
            await self._run_setup(spec)

    async def run(self, command: str, *, timeout: float | None = None, stdin: bytes | None = None) -> ExecResult:
        """Run in the session. `timeout` cannot be longer than the server's own 2 s."""
        return await self._session_line(f"eval {quoted(command)} {_input(stdin)}")

    async def run_standalone(
        self, command: str, *, timeout: float | None = None, stdin: bytes | None = None
    ) -> ExecResult:
        """Run as a process of its own, ended by `timeout` of coreutils, since nothing else there would end it."""
        allowed = self._limits.timeout if timeout is None else timeout
        where = "" if self._shell is None else f"cd -P /proc/{self._shell}/cwd 2>/dev/null; "
        line = f"{where}exec timeout -s KILL {allowed:g} /bin/bash -c {shlex.quote(command)} {_input(stdin)}"
        done = await self._exec_call({"command": line, "standalone": True}, allowed + _GRACE_SECONDS)
        if done.exit_code in (_KILLED, TIMED_OUT_EXIT_CODE) and done.wall_seconds >= allowed:
            return done.model_copy(update={"exit_code": None, "timed_out": True})
        return done

    async def mark(self) -> None:
        """Nothing can be marked there."""

    async def check(self, command: str) -> ExecResult:
        """Run standalone: it offers commands, and they use what others have left."""
        return await self.run_standalone(command)

    async def _session_line(self, line: str) -> ExecResult:
        began = time.monotonic()
        done = await self._exec_call({"command": line, "standalone": False}, _SESSION_DEADLINE)
        if time.monotonic() - began < _SESSION_SECONDS:
            return done
        await self.close()
        raise SandboxError(
            f"this server gives a session command {_SESSION_SECONDS:g} s and mixes up the answers after that; "
            "use `reward-kit sandbox serve`, which does not"
        )

    async def _run_setup(self, spec: SandboxSpec) -> None:
        """Run it standalone, where time is not limited; then take directory, exports and functions into the session."""
        joined = f" {spec.setup_join} ".join(spec.setup)
        keep = f"{{ declare -px; declare -f; printf 'cd -- %q\\n' \"$PWD\"; }} > {_STATE}"
        script = f"{joined}\nstatus=$?\n{keep}\nexit $status"
        done = await self.run_standalone(script)
        if done.timed_out or (not done.ok and spec.setup_join == "&&"):
            raise setup_failed(joined, done)
        await self._session_line(f". {_STATE} >/dev/null 2>&1; rm -f {_STATE}")


def quoted(text: str) -> str:
    """The text as one word of one line, with nothing in it that a terminal or an interactive shell would act on."""
    plain = "".join(each if (each.isalnum() and each.isascii()) or each in " _-./=" else _escape(each) for each in text)
    return f"$'{plain}'"


def _escape(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def _input(stdin: bytes | None) -> str:
    return "< /dev/null" if not stdin else f"< <(printf %s {base64.b64encode(stdin).decode()} | base64 -d)"
