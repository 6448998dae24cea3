# SPDX-License-Identifier: Apache-2.0
"""`reward-kit secrets`: values that deployed rewards need and nobody may see."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reward_kit.cli_commands.output import echo

if TYPE_CHECKING:
    from reward_kit.deploy.secret_stores import SecretStore

__all__ = ["secrets"]

F = TypeVar("F", bound=Callable[..., Any])
_STORE = click.option(
    "--store", type=click.Choice(["local", "gcp", "aws", "fireworks"]), default="local", show_default=True,
    help="The keyring of this system, Secret Manager, Secrets Manager, or Fireworks.",
)  # fmt: skip
_PROJECT = click.option("--gcp-project", help="For gcp. [default: that of rewardkit.yaml]")
_REGION = click.option("--aws-region", help="For aws. [default: that of rewardkit.yaml, or of AWS's own settings]")


def _where(command: F) -> F:
    return _STORE(_PROJECT(_REGION(command)))


def _open(store: str, gcp_project: str | None, aws_region: str | None) -> SecretStore:
    from reward_kit.config import get_config
    from reward_kit.deploy.secret_stores import open_store

    config = get_config()
    project = gcp_project or (config.gcp_cloud_run.project_id if config.gcp_cloud_run else None)
    region = aws_region or (config.aws_lambda.region if config.aws_lambda else None)
    return open_store(store, project=project, region=region)


@click.group()
def secrets() -> None:
    """Keep secret values that deployed rewards need, such as keys.

    \b
    reward-kit secrets set OPENAI_API_KEY --store gcp --gcp-project P      asks for the value
    pass show openai | reward-kit secrets set OPENAI_API_KEY --store aws   reads it from standard input
    reward-kit deploy … --secret OPENAI_API_KEY                            the reward sees it as a variable
    """


@secrets.command(name="set")
@click.argument("name")
@_where
def set_(name: str, store: str, gcp_project: str | None, aws_region: str | None) -> None:
    """Save a secret value under NAME. An older value is replaced.

    The value is read from standard input, or you are asked for it. It is never an argument: other users of the machine
    can see arguments, and the shell's history keeps them.
    """
    from reward_kit.deploy.secret_stores import check_name, check_value
    from reward_kit.redaction import remember

    remember(name.partition("=")[2])  # somebody may have written the value there all the same
    check_name(name)
    opened = _open(store, gcp_project, aws_region)  # before somebody types a value that nobody can keep
    value = _read_value(name)
    remember(value)
    opened.put(name, check_value(value))
    echo(f"{name} is kept ({store})")


def _read_value(name: str) -> str:
    if sys.stdin.isatty():
        typed: str = click.prompt(f"The value of {name}", hide_input=True, confirmation_prompt=True, err=True)
        return typed
    return sys.stdin.read().rstrip("\r\n")


@secrets.command(name="list")
@_where
def list_(store: str, gcp_project: str | None, aws_region: str | None) -> None:
    """List the names of the secrets that reward-kit keeps in a store, never their values."""
    for name in _open(store, gcp_project, aws_region).names():
        echo(name)


@secrets.command()
@click.argument("name")
@_where
def delete(name: str, store: str, gcp_project: str | None, aws_region: str | None) -> None:
    """Delete the secret NAME."""
    from reward_kit.deploy.secret_stores import check_name

    _open(store, gcp_project, aws_region).remove(check_name(name))
    echo(f"{name} is deleted ({store})")
