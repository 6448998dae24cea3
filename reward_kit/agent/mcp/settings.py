# SPDX-License-Identifier: Apache-2.0
"""The settings of a world that is an MCP server: how it is started or reached, and how rollouts are kept apart."""

from __future__ import annotations

import os
import shlex
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from reward_kit.config_models import SandboxConfig, StrictPart, check_address
from reward_kit.errors import ConfigError
from reward_kit.redaction import NOT_A_VARIABLE, is_variable_name, url_holds_login

__all__ = ["McpCall", "McpHandle", "McpSettings"]

BARE = "none"
"""The sandbox that is none: the server runs as you, with your files and your network."""


class McpCall(StrictPart):
    """A call of a tool that we make, and not the model."""

    tool: str
    """The tool's name, as the server has it."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """What it is called with."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Further arguments, each taken from a column of the dataset: `{seed: seed, board: start_position}`."""
    show: bool = False
    """Whether the model is shown what comes back, before its first turn. Only for calls in `start`."""


class McpHandle(StrictPart):
    """A handle by which a server keeps rollouts apart: made by a tool, and handed to the others by us."""

    tool: str
    """The tool that makes a handle. The model does not see it."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """What that tool is called with."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Further arguments of it, each taken from a column of the dataset."""
    field: str | None = None
    """Where in the structured result the handle is, such as `basket.id`. Default: the argument's name; and where there
    is no structured result, the whole text."""
    argument: str
    """The argument in which the other tools take the handle. The model does not see it."""
    close_tool: str | None = None
    """A tool that is called with the handle when the rollout is over."""


class McpSettings(StrictPart):
    """An MCP server, and how each rollout has one of its own. Either `command` or `url` is needed."""

    command: list[str] | None = None
    """Starts a server that speaks over standard input and output: one process per rollout."""
    url: str | None = None
    """Where a server answers that speaks streamable HTTP. All rollouts share it."""
    protocol: Literal["auto", "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] = "auto"
    """The version that is spoken. `auto`: the newest that both sides know."""

    # a server that is started
    sandbox: SandboxConfig = SandboxConfig()
    """Where the command runs: settings as in the section `sandbox`, or the name of a backend alone. `none`: without
    any isolation, as you, with your files and your network."""
    files: dict[str, str] = Field(default_factory=dict)
    """Files that are put into the sandbox: the name there, and the path here."""
    setup: list[str] = Field(default_factory=list)
    """Shell commands that are run in the sandbox before the server is started."""
    directory: str | None = None
    """Where the server is started: a directory of the sandbox; without one, of yours, and all servers share it.
    Default: without a sandbox, each server has an empty directory of its own, and programs named in `command` are
    found from here."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables for the server. It is given no others of yours, but for a few such as PATH outside of a sandbox."""
    env_from: list[str] = Field(default_factory=list)
    """Names of variables of yours that the server is given, too: keys, for instance."""
    servers: int = Field(default=32, ge=1, le=10_000)
    """The most servers at a time; further rollouts wait. Best not less than `agent.concurrency`."""
    warm: int = Field(default=2, ge=0, le=1000)
    """Servers that are started before a rollout asks for one. With `stateless`, how many there are."""

    # a server that is shared
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers of every request."""
    key_env: str | None = None
    """The variable that holds a key, which is sent as `Authorization: Bearer …`."""
    rollout_header: str | None = None
    """A header whose value is different for each rollout, for a server of yours that keeps rollouts apart by it."""
    handle: McpHandle | None = None
    """A handle that a tool of the server makes, and that keeps rollouts apart."""
    stateless: bool = False
    """The server keeps nothing between calls: all rollouts may share it as it is."""

    # what the model sees, and what rewards see
    only: list[str] | None = None
    """The tools that the model is offered. Default: all."""
    hide: list[str] = Field(default_factory=list)
    """Tools that the model is not offered."""
    start: list[McpCall] = Field(default_factory=list)
    """Calls that prepare the world before the model's first turn. Their tools are not offered to the model."""
    facts: dict[str, McpCall] = Field(default_factory=dict)
    """Calls whose results rewards may read in the end, by the name of the fact. Not offered to the model either."""
    images: bool = False
    """Hand images in results to the model, which must be able to see. Default: they are only named."""
    deterministic: bool = False
    """The same calls give the same results, so a rollout can be played again after a crash. Else it begins anew."""
    timeout: float = Field(default=60.0, gt=0)
    """Seconds that one call may take. The model is told when it took longer."""
    start_timeout: float = Field(default=60.0, gt=0)
    """Seconds until a server must have answered for the first time."""
    max_output: int = Field(default=16_384, ge=1)
    """Characters of a result that the model is shown. Of a longer one the middle is cut out."""
    max_reply_bytes: int = Field(default=8 * 2**20, ge=1024)
    """The largest message that is taken from the server."""

    @field_validator("command", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return shlex.split(value) if isinstance(value, str) else value

    @field_validator("sandbox", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        return {"backend": value} if isinstance(value, str) else {"backend": BARE} if value is None else value

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        if value is not None:
            check_address(value)
            if url_holds_login(value):
                raise ValueError("it holds a login (user:password@), which would be written down. Use key_env")
        return value

    @field_validator("key_env")
    @classmethod
    def _is_a_variable(cls, value: str | None) -> str | None:
        if value is not None and not is_variable_name(value):
            raise ValueError(NOT_A_VARIABLE.rstrip("."))
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("either 'command' or 'url' is needed, and not both")
        if self.command is not None and not self.command:
            raise ValueError("'command' is empty; name a program")
        if self.url is None and (self.headers or self.key_env or self.rollout_header):
            raise ValueError("'headers', 'key_env' and 'rollout_header' are for a server with a 'url'")
        if self.command is None and (self.files or self.setup or self.directory or self.env or self.env_from):
            raise ValueError("'files', 'setup', 'directory', 'env' and 'env_from' are for a server with a 'command'")
        if self.is_bare and (self.files or self.setup):
            raise ValueError("'files' and 'setup' are for a sandbox; a bare server finds your own files")
        if self.stateless and (self.handle or self.rollout_header):
            raise ValueError("a 'stateless' server needs no 'handle' and no 'rollout_header'; leave one of them out")
        return self

    @property
    def is_bare(self) -> bool:
        """Whether a command runs without a sandbox."""
        return self.sandbox.backend == BARE

    @property
    def variables(self) -> dict[str, str]:
        """The variables of a server that is started. One that is to be passed on and is not set is a `ConfigError`."""
        if missing := [name for name in self.env_from if name not in os.environ]:
            raise ConfigError(
                f"The variable {missing[0]!r}, which `agent.params.env_from` names, is not set. Set it, or remove its "
                "name."
            )
        return {**{name: os.environ[name] for name in self.env_from}, **self.env}

    @property
    def hidden_tools(self) -> set[str]:
        """Tools that the model is not offered."""
        ours = [*self.start, *self.facts.values()]
        handle = [self.handle.tool, self.handle.close_tool or ""] if self.handle else []
        return {*self.hide, *(call.tool for call in ours), *handle}
