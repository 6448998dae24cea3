# SPDX-License-Identifier: Apache-2.0
"""What a server is told: which rewards it serves, where it listens, who may call, and how much at a time.

    rewards:
      correct: {function_path: my_rewards:correct, params: {strict: true}, timeout: 10}
      style: {function_path: my_rewards:style}
    host: 0.0.0.0
    access: {api_key_files: [/run/secrets/keys]}
    limits: {queue: 2048}

The same keys come from `reward-kit serve --config FILE`, from its flags, and from the environment: see
`settings_from_environment`. A secret is never among them: they name the variable or the file that holds it.
"""

# Annotations are evaluated as the module is read, as in `reward_kit.models`: it starts sooner.

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from reward_kit.auth import is_loopback
from reward_kit.config_models import JudgeConfig, RewardConfig, SandboxConfig, StrictPart, validated
from reward_kit.errors import ConfigError
from reward_kit.redaction import is_variable_name, remember
from reward_kit.serving.world_settings import WorldsSettings
from reward_kit.utils.strict_yaml import load_yaml, read_yaml_text

__all__ = [
    "INHERITED_KEY_VARIABLE", "AccessSettings", "LimitSettings", "ServeSettings", "TlsSettings",
    "check_protected", "check_protected_by_a_key", "is_loopback", "settings_from_environment", "settings_from_file",
]  # fmt: skip

INHERITED_KEY_VARIABLE = "RK_ENDPOINT_API_KEY"
"""Read as an API key wherever it is set."""
SETTINGS_VARIABLE = "REWARD_KIT_SERVE"
"""Holds the settings as YAML or JSON."""
SETTINGS_FILE_VARIABLE = "REWARD_KIT_SERVE_CONFIG"
"""Names a file that holds them."""

Platform = Literal["aws-iam", "google-iam"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class AccessSettings(StrictPart):
    """Who may call."""

    api_key_envs: list[str] = Field(default_factory=list)
    """Environment variables that hold API keys: one key, or lines as in a file. Read once, when the server starts."""
    api_key_files: list[Path] = Field(default_factory=list)
    """Files of API keys, a line each: an id, the key or its `sha256:…`, and `expires=`, `rate=`, `concurrency=` if
    any. Read again when they change."""
    rate: float | None = Field(default=None, gt=0)
    """Answers per second that one caller may have judged, where its key does not say otherwise."""
    concurrency: int | None = Field(default=None, ge=1)
    """Requests that one caller may have in flight, where its key does not say otherwise."""
    google_audience: str | None = None
    """Take Google ID tokens made for this audience, which usually is the address of this server."""
    allow_emails: list[str] = Field(default_factory=list)
    """Whose Google ID tokens are taken: e-mail addresses of people or service accounts, or `*@domain`."""
    google_certs_url: str = "https://www.googleapis.com/oauth2/v3/certs"
    """Where Google's public keys are."""
    behind: Platform | None = None
    """The platform in front that checks each caller itself, so that this server need not: AWS IAM or Google IAM."""
    insecure: bool = False
    """Serve without any protection, also where other machines can call."""

    @field_validator("api_key_envs")
    @classmethod
    def _are_variables(cls, names: list[str]) -> list[str]:
        for name in names:
            if not is_variable_name(name):
                remember(name)
                raise ValueError(
                    "it does not name an environment variable, and is not shown, as it may be a key. Put the key into "
                    "a variable, and give the variable's name, such as MY_API_KEY"
                )
        return names

    @model_validator(mode="after")
    def _google_needs_names(self) -> Self:
        if (self.google_audience is None) != (not self.allow_emails):
            raise ValueError(
                "`access.google_audience` and `access.allow_emails` belong together: anybody can have a Google ID "
                "token made for any audience. Give both, or neither"
            )
        return self


class TlsSettings(StrictPart):
    """HTTPS, and client certificates."""

    cert: Path | None = None
    """The certificate of the server, with its chain (PEM)."""
    key: Path | None = None
    """Its private key (PEM). Left out: it is in the same file."""
    client_ca: Path | None = None
    """Ask each caller for a certificate that one of these authorities signed (PEM)."""
    allow_clients: list[str] = Field(default_factory=list)
    """Subject alternative names, of which a caller's certificate must have one. Left out: any certificate will do."""

    @model_validator(mode="after")
    def _belong_together(self) -> Self:
        if self.cert is None and (self.key is not None or self.client_ca is not None):
            raise ValueError("`tls.key` and `tls.client_ca` need `tls.cert`. Give the server's certificate too")
        if self.allow_clients and self.client_ca is None:
            raise ValueError(
                "`tls.allow_clients` needs `tls.client_ca`, which says whose certificates count. Give it too"
            )
        return self


class LimitSettings(StrictPart):
    """How much at a time."""

    queue: int = Field(default=4096, ge=1)
    """Answers of one reward that are being judged or wait for it. Beyond that, callers are told to come back (503)."""
    batch: int = Field(default=1024, ge=1)
    """Answers in one request."""
    body_mb: float = Field(default=16.0, gt=0, le=1024)
    """Megabytes of one request's body."""
    bodies_mb: float = Field(default=256.0, gt=0)
    """Megabytes of all bodies that are held at a time. Beyond that, callers are told to come back (503)."""
    depth: int = Field(default=64, ge=4, le=500)
    """How deep JSON may be nested."""
    receive_seconds: float = Field(default=30.0, gt=0)
    """That a caller may take to send a request. A slower one is cut off."""
    send_seconds: float = Field(default=30.0, gt=0)
    """That a caller may take to read a reply."""
    request_seconds: float = Field(default=300.0, gt=0)
    """That judging a request may take, waiting included. What is not judged by then is a failure."""
    keep_alive_seconds: float = Field(default=75.0, gt=0)
    """That a connection may be idle."""
    connections: int = Field(default=4096, ge=1)
    """Open at a time."""
    drain_seconds: float = Field(default=30.0, ge=0)
    """That requests in flight are waited for when the server is told to end (SIGTERM)."""


class ServeSettings(StrictPart):
    """All settings of a server."""

    rewards: dict[str, RewardConfig]
    """The rewards by the names they are served under. The first one also answers at the root."""
    dialects: list[str] | None = None
    """What is spoken beside `generic`. Left out: everything there is."""
    sandbox: SandboxConfig = SandboxConfig()
    """Where commands run, for rewards that run any."""
    judge: JudgeConfig = JudgeConfig()
    """The model that judges, for rewards that ask one."""
    worlds: WorldsSettings | None = None
    """An environment that callers elsewhere step through: `/reset`, `/step`, `/state` and the WebSocket `/ws`."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = Field(default=8000, ge=0, le=65_535)
    """The port to listen on; 0 takes a free one."""
    access: AccessSettings = AccessSettings()
    """Who may call."""
    tls: TlsSettings = TlsSettings()
    """HTTPS, and client certificates."""
    limits: LimitSettings = LimitSettings()
    """How much at a time."""
    access_log: str | None = "-"
    """The file for a line of JSON about each request, without its body. `-`: standard error. None: no log."""

    @model_validator(mode="after")
    def _worlds_are_judged_by_what_is_served(self) -> Self:
        if self.worlds is not None and self.worlds.reward not in {None, *self.rewards}:
            raise ValueError(f"`worlds.reward` names {self.worlds.reward!r}, and served are {sorted(self.rewards)}")
        return self

    @field_validator("rewards")
    @classmethod
    def _names_fit_a_path(cls, rewards: dict[str, RewardConfig]) -> dict[str, RewardConfig]:
        if not rewards:
            raise ValueError("there is no reward to serve; name one")
        for name, reward in rewards.items():
            if not _NAME.fullmatch(name):
                raise ValueError(f"the name {name!r} is part of an address; use letters, digits, '_', '-' and '.'")
            if reward.by_split:
                raise ValueError(f"the reward {name!r} has `by_split`, and requests have no split; serve each by name")
        return rewards


# ── where they come from ─────────────────────────────────────────────────────────────────────────────────────────────


def settings_from_file(path: Path) -> ServeSettings:
    """The settings in a YAML or JSON file."""
    text = read_yaml_text(path, str(path), "Name a file with the settings of a server.")
    return validated(ServeSettings, load_yaml(text, str(path)), f"The file {str(path)!r}")


def settings_from_environment(environment: Mapping[str, str] | None = None) -> ServeSettings:
    """The settings that the environment holds, for servers that are started without a command line.

    `REWARD_KIT_SERVE` holds them as YAML or JSON, or `REWARD_KIT_SERVE_CONFIG` names a file that does. `PORT`, which
    platforms set, stands for the port. An API key in `RK_ENDPOINT_API_KEY` protects the server.
    """
    variables = os.environ if environment is None else environment
    given: Any
    if text := variables.get(SETTINGS_VARIABLE):
        given = load_yaml(text, SETTINGS_VARIABLE)
        settings = validated(ServeSettings, given, f"What {SETTINGS_VARIABLE} holds")
    elif path := variables.get(SETTINGS_FILE_VARIABLE):
        settings = settings_from_file(Path(path))
    else:
        raise ConfigError(
            f"Neither {SETTINGS_VARIABLE} nor {SETTINGS_FILE_VARIABLE} is set. Set one: the settings of the server as "
            "YAML or JSON, or the name of a file with them."
        )
    if port := variables.get("PORT"):
        changed = {**settings.model_dump(exclude_unset=True), "port": port}
        settings = validated(ServeSettings, changed, "What PORT holds")
    return settings


# ── whether that is safe ─────────────────────────────────────────────────────────────────────────────────────────────


def check_protected(settings: ServeSettings, environment: Mapping[str, str] | None = None) -> None:
    """Refuse to serve other machines without any protection, unless somebody insists."""
    if not _is_protected(settings, environment):
        raise ConfigError(
            f"{_not_protected(settings.host)} Give an API key (`access.api_key_envs` or `access.api_key_files`), "
            "client certificates (`tls.client_ca`) or Google ID tokens (`access.google_audience`), or listen on "
            "127.0.0.1 (`host`). To serve without protection all the same, set `access.insecure=true`."
        )


def check_protected_by_a_key(settings: ServeSettings) -> None:
    """The same, in the words of servers that are told a host and a port, and have no other settings."""
    if not _is_protected(settings, None):
        raise ConfigError(
            f"{_not_protected(settings.host)} Put an API key into the environment variable {INHERITED_KEY_VARIABLE}, "
            "or listen on 127.0.0.1 (`host`). `reward-kit serve` has other kinds of protection."
        )


def _is_protected(settings: ServeSettings, environment: Mapping[str, str] | None) -> bool:
    """Whether callers are asked who they are, or only this machine can call, or somebody insists on neither."""
    access, variables = settings.access, os.environ if environment is None else environment
    keys = access.api_key_envs or access.api_key_files or variables.get(INHERITED_KEY_VARIABLE)
    asked = keys or access.google_audience or settings.tls.client_ca or access.behind
    return bool(asked) or access.insecure or is_loopback(settings.host)


def _not_protected(host: str) -> str:
    return f"Anybody who reaches {host} could call this server, and have it run the reward."
