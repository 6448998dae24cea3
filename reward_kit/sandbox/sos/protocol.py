# SPDX-License-Identifier: Apache-2.0
"""What an SoS server and its clients say to each other: bodies, answers and error texts.

The fields of the original protocol keep their names and meanings. Everything else is additive: an original client never
sends it, an original server ignores it, and neither minds it in an answer.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field

from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import Limits, SandboxSpec

__all__ = [
    "DEFAULT_IMAGE",
    "DEFAULT_PORT",
    "FAILED_TO_PULL",
    "SETUP_FAILED",
    "TIMED_OUT_EXIT_CODE",
    "TOKEN_VARIABLE",
    "ContractTerms",
    "CreateAnswer",
    "CreateBody",
    "ExecAnswer",
    "ExecBody",
    "StopBody",
]

DEFAULT_IMAGE = "deathbyknowledge/shellm-sandbox:latest"
"""The image that the original server is asked for where none is named: it has no default of its own."""
DEFAULT_PORT = 3000
"""Where an SoS server listens unless told otherwise."""
TOKEN_VARIABLE = "REWARD_KIT_SANDBOX_TOKEN"
"""The environment variable in which server and client find the bearer token."""
SETUP_FAILED = "Setup commands failed: "
"""How the 400 of a failing setup begins; its output follows."""
FAILED_TO_PULL = "Failed to pull image"
"""How the 400 of an image that is not to be had begins."""
TIMED_OUT_EXIT_CODE = 124
"""The exit code, which the protocol requires to be a number, of a command that exceeded its time."""
_SIGNAL_BASE = 128


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore")


class ContractTerms(_Body):
    """Additive: open the sandbox as `contract.py` says, not as the original server would.

    The setup runs in the sandbox's own shell; a standalone command runs where the shell is; no `pipefail`; output is
    not trimmed; `exit N` reports N; a command over its time is an answer, not a 504.
    """

    setup: list[str] = []
    setup_join: Literal["&&", ";"] = "&&"
    files: dict[str, Base64Bytes] = {}
    environment: dict[str, str] = {}
    workdir: str | None = None
    limits: Limits = Limits()
    network: bool = False
    own_image: bool = False
    """Nobody named an image: the server takes its own default, whatever `image` says to an original one."""

    def spec(self, image: str | None, limits: Limits) -> SandboxSpec:
        """What to ask of a backend, with the server's own image and limits."""
        return SandboxSpec(
            image=image,
            setup=tuple(self.setup),
            setup_join=self.setup_join,
            files=self.files,
            environment=self.environment,
            workdir=self.workdir,
            limits=limits,
            network=self.network,
        )


class CreateBody(_Body):
    """The body of `POST /sandboxes`, which opens a sandbox."""

    image: str
    setup_commands: list[str]
    contract: ContractTerms | None = None

    @property
    def named_image(self) -> str:
        """The image that the client named; empty where it leaves that to the server."""
        return "" if self.contract is not None and self.contract.own_image else self.image

    @property
    def joined_setup(self) -> str:
        """The setup as one command, as the list of sandboxes shows it; empty when there is none."""
        if self.contract is None:
            return " && ".join(self.setup_commands)
        return f" {self.contract.setup_join} ".join(self.contract.setup)


class CreateAnswer(_Body):
    """The answer to POST /sandboxes."""

    id: str
    contract: bool = False
    """Additive: the server understood `ContractTerms`, and will keep to them."""


class ExecBody(_Body):
    """The body of `POST /sandboxes/{id}/exec`, which runs a command in a sandbox."""

    command: str
    standalone: bool | None = None
    timeout: float | None = Field(None, gt=0)
    """Additive: seconds it may take. A client that names them is answered `timed_out`, never with a 504."""
    stdin: Base64Bytes | None = None
    """Additive."""
    check: bool = False
    """Additive: run it standalone as a check, with what a check may trust."""
    mark: bool = False
    """Additive: run nothing; what the setup has written by now is what the task is about."""


class StopBody(_Body):
    """The body of `POST /sandboxes/{id}/stop`, which ends a sandbox."""

    remove: bool | None = None


class ExecAnswer(_Body):
    """The answer to POST /sandboxes/{id}/exec. All but the first three are additive."""

    output: str
    exit_code: int
    exited: bool = False
    stdout: str | None = None
    stderr: str | None = None
    signal: int | None = None
    timed_out: bool = False
    oom_killed: bool = False
    truncated: bool = False
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    peak_memory_bytes: int | None = None
    distrusted: str | None = None

    @classmethod
    def of(cls, result: ExecResult) -> ExecAnswer:
        """The answer that says what `result` says. Where it has no exit code, the one a shell would report."""
        facts = result.model_dump()
        facts["exit_code"] = _shell_code(result)
        return cls.model_validate(facts)

    def result(self, wall_seconds: float) -> ExecResult:
        """What a caller of the contract is told; `wall_seconds` is the caller's own clock, for servers without one."""
        ended_from_outside = self.timed_out or self.signal is not None
        return ExecResult(
            exit_code=None if ended_from_outside else self.exit_code,
            signal=self.signal,
            output=self.output,
            stdout=self.output if self.stdout is None else self.stdout,
            stderr=self.stderr or "",
            timed_out=self.timed_out,
            oom_killed=self.oom_killed,
            truncated=self.truncated,
            exited=self.exited,
            wall_seconds=wall_seconds if self.wall_seconds is None else self.wall_seconds,
            cpu_seconds=self.cpu_seconds,
            peak_memory_bytes=self.peak_memory_bytes,
            distrusted=self.distrusted,
        )


def _shell_code(result: ExecResult) -> int:
    if result.exit_code is not None:
        return result.exit_code
    if result.timed_out or result.signal is None:
        return TIMED_OUT_EXIT_CODE
    return _SIGNAL_BASE + result.signal
