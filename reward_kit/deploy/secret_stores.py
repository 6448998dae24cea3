# SPDX-License-Identifier: Apache-2.0
"""Where secrets of rewards are kept: the keyring of this system, Secret Manager of Google, Secrets Manager of AWS.

A value goes in by standard input or by an API, never by a command line, and never comes out here: a deployed reward
reads it where it runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Protocol

from reward_kit.deploy.aws import aws_client
from reward_kit.deploy.carry_out import MissingThing
from reward_kit.deploy.fireworks.secrets import FireworksStore
from reward_kit.deploy.gcloud import NOT_FOUND, gcloud
from reward_kit.deploy.machine import run_command
from reward_kit.deploy.plan import Command
from reward_kit.errors import AuthError, DeployError, needs_extra
from reward_kit.redaction import mask

__all__ = ["STORES", "SecretStore", "check_name", "local_secret", "open_store"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")
_OURS = "reward-kit"
_LARGEST = 64 << 10


class SecretStore(Protocol):
    """A place for secrets."""

    def put(self, name: str, value: str) -> None:
        """Keep the value under the name, in the place of one that is there."""

    def names(self) -> list[str]:
        """The names of the secrets that reward-kit has put there."""

    def remove(self, name: str) -> None:
        """Take it away; a `DeployError` where there is none."""


def check_name(name: str) -> str:
    """The name, if every store takes it."""
    if not _NAME.fullmatch(name):
        raise DeployError(
            "That is not a name for a secret. Use letters, digits, '_' and '-', such as OPENAI_API_KEY. The value is "
            "read from standard input or asked for; it is never written on the command line."
        )
    return name


def check_value(value: str) -> str:
    """The value, if it can be a secret."""
    if not value:
        raise DeployError("The value is empty. Give it on standard input, or type it when you are asked.")
    if len(value.encode()) > _LARGEST or "\0" in value:
        raise DeployError(
            f"The value is longer than {_LARGEST >> 10} KB, or holds a NUL character. Give a shorter value, without "
            "NUL."
        )
    return value


# ── the keyring of this system ───────────────────────────────────────────────────────────────────────────────────────


class LocalStore:
    """The keyring of this system: macOS's Keychain, GNOME's or KDE's, Windows' Credential Locker."""

    _NAMES = "names of the secrets below"

    def __init__(self) -> None:
        """Find the keyring; a `DeployError` where there is none that keeps secrets."""
        with needs_extra("The local store", "keyring"):
            import keyring
        self._ring = keyring.get_keyring()
        kind = type(self._ring)
        if kind.__module__.startswith(("keyring.backends.fail", "keyring.backends.null")):
            raise DeployError(
                "This system has no keyring that secrets could be kept in. Unlock or install one (GNOME Keyring, "
                "KWallet), or use another store: --store fireworks, gcp or aws."
            )
        if "plaintext" in kind.__name__.lower():
            raise DeployError(
                f"The keyring of this system ({kind.__module__}.{kind.__name__}) writes secrets into a plain file. "
                "Install one that encrypts them, or use --store gcp or --store aws."
            )

    def put(self, name: str, value: str) -> None:
        """Keep the value under the name."""
        self._do("set_password", name, value)
        self._note(lambda names: {*names, name})

    def get(self, name: str) -> str:
        """The value; a `DeployError` where there is none."""
        value = self._do("get_password", name)
        if value is None:
            raise DeployError(
                f"The keyring has no secret {name!r}. Make it with: reward-kit secrets set {name} --store local"
            )
        return str(value)

    def names(self) -> list[str]:
        """The names."""
        return sorted(self._known())

    def remove(self, name: str) -> None:
        """Take it away."""
        self.get(name)
        self._do("delete_password", name)
        self._note(lambda names: names - {name})

    def _known(self) -> set[str]:
        return set(json.loads(self._do("get_password", self._NAMES) or "[]"))

    def _note(self, change: Callable[[set[str]], set[str]]) -> None:
        """A keyring cannot list what it holds, so the names are a secret of their own."""
        self._do("set_password", self._NAMES, json.dumps(sorted(change(self._known()))))

    def _do(self, verb: str, *arguments: str) -> Any:
        from keyring.errors import KeyringError

        try:
            return getattr(self._ring, verb)(_OURS, *arguments)
        except KeyringError as error:
            raise DeployError(f"The keyring refuses: {mask(str(error))}. Unlock it, then try again.") from None


def local_secret(name: str) -> str:
    """The value of a secret of the local store, for a reward that runs on this machine."""
    return LocalStore().get(name)


# ── Google ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class GcpStore:
    """Secret Manager, by `gcloud`."""

    def __init__(self, project: str | None) -> None:
        """Take the project; a `DeployError` where none is named."""
        if not project:
            raise DeployError("Secret Manager belongs to a project. Give --gcp-project, or set it in rewardkit.yaml.")
        self._project = project

    def put(self, name: str, value: str) -> None:
        """Add a version, to a secret that is made where there is none."""
        try:
            self._run("secrets", "describe", name, missing=NOT_FOUND)
        except MissingThing:
            self._run("secrets", "create", name, "--replication-policy=automatic", f"--labels=managed-by={_OURS}")
        self._run("secrets", "versions", "add", name, "--data-file=-", stdin=value)

    def names(self) -> list[str]:
        """The names of those that carry our label."""
        told = self._run("secrets", "list", f"--filter=labels.managed-by={_OURS}", "--format=value(name)")
        return sorted(line.rpartition("/")[2] for line in told.split())

    def remove(self, name: str) -> None:
        """Take it away with all its versions."""
        try:
            self._run("secrets", "delete", name, missing=NOT_FOUND)
        except MissingThing:
            raise DeployError(
                f"The project {self._project!r} has no secret {name!r}. See: reward-kit secrets list"
            ) from None

    def _run(self, *words: str, stdin: str | None = None, missing: str = "") -> str:
        command: Command = gcloud(*words, project=self._project, stdin=stdin, missing=missing)
        return run_command(command, lambda _: None)


# ── AWS ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

_DELETED_FOR_DAYS = 7


class AwsStore:
    """Secrets Manager. What is deleted can be had back for seven days, by setting it again."""

    def __init__(self, region: str | None) -> None:
        """Connect; a `DeployError` where no region is known."""
        self._client = aws_client("secretsmanager", region)

    def put(self, name: str, value: str) -> None:
        """Keep the value, in a secret that is made where there is none."""
        tags = [{"Key": "managed-by", "Value": _OURS}]
        there = "ResourceExistsException|InvalidRequestException"
        code = self._ask("create_secret", Name=name, SecretString=value, Tags=tags, refused=there)
        if code is None:
            return
        if "DeletedDate" in self._client.describe_secret(SecretId=name):  # less than a week ago
            self._ask("restore_secret", SecretId=name)
        self._ask("put_secret_value", SecretId=name, SecretString=value)

    def names(self) -> list[str]:
        """The names of those that carry our tag."""
        pages = self._client.get_paginator("list_secrets").paginate(
            Filters=[{"Key": "tag-key", "Values": ["managed-by"]}, {"Key": "tag-value", "Values": [_OURS]}]
        )
        return sorted(secret["Name"] for page in self._paged(pages) for secret in page["SecretList"])

    def remove(self, name: str) -> None:
        """Have it deleted."""
        gone, days = "ResourceNotFoundException", _DELETED_FOR_DAYS
        code = self._ask("delete_secret", SecretId=name, RecoveryWindowInDays=days, refused=gone)
        if code is not None:
            raise DeployError(f"Secrets Manager has no secret {name!r}. See: reward-kit secrets list --store aws")

    def _ask(self, operation: str, *, refused: str = "$never", **parameters: Any) -> str | None:
        """None where it was done; the code of a refusal that is expected."""
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

        try:
            getattr(self._client, operation)(**parameters)
        except NoCredentialsError:
            raise AuthError("AWS needs credentials. Run `aws configure`, or set AWS_PROFILE.") from None
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if re.fullmatch(refused, code):
                return code
            raise DeployError(f"Secrets Manager refuses {operation} ({code}): {mask(str(error))}") from None
        except BotoCoreError as error:
            raise DeployError(f"Secrets Manager cannot be reached: {mask(str(error))}") from None
        return None

    def _paged(self, pages: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield from pages
        except (BotoCoreError, ClientError) as error:
            raise DeployError(f"Secrets Manager cannot be reached: {mask(str(error))}") from None


# ── by name ──────────────────────────────────────────────────────────────────────────────────────────────────────────

STORES = ("local", "gcp", "aws", "fireworks")


def open_store(name: str, *, project: str | None = None, region: str | None = None) -> SecretStore:
    """The store of this name."""
    if name == "local":
        return LocalStore()
    if name == "gcp":
        return GcpStore(project)
    if name == "aws":
        return AwsStore(region)
    return FireworksStore()
