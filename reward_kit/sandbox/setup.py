# SPDX-License-Identifier: Apache-2.0
"""The setup of a sandbox, command by command in its own shell, so that a `cd` lasts."""

from __future__ import annotations

from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import Sandbox, SandboxSpec

__all__ = ["run_setup", "setup_failed"]

_SHOWN = 2000


async def run_setup(sandbox: Sandbox, spec: SandboxSpec) -> None:
    """Run it. One that fails is an error of the task, and trying again would not mend it."""
    for command in spec.setup:
        done = await sandbox.run(command)
        if done.exited or (spec.setup_join == "&&" and not done.ok):
            raise setup_failed(command, done)


def setup_failed(command: str, done: ExecResult) -> SandboxError:
    """The error that says which command it was, and what it printed."""
    how = f"failed with exit code {done.exit_code}"
    if done.timed_out:
        how = f"took more than its time ({done.wall_seconds:.1f} s)"
    elif done.exited:
        how = "ended the sandbox's shell"
    printed = done.output[-_SHOWN:].strip() or "it printed nothing"
    return SandboxError(f"The setup command {command!r} {how}: {printed}. Correct it.", retryable=False)
