# SPDX-License-Identifier: Apache-2.0
"""`reward-kit sandbox`: serve sandboxes to other processes and machines, by the SoS protocol."""

from __future__ import annotations

import ipaddress
import os
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from reward_kit.cli_commands.options import MOST, FiniteRange
from reward_kit.cli_commands.output import echo
from reward_kit.sandbox_backends import backend_choices

if TYPE_CHECKING:
    from reward_kit.sandbox.sos.host import HostOptions

__all__ = ["sandbox"]


@click.group()
def sandbox() -> None:
    """Serve sandboxes to other processes and machines."""


def _images(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, equals, _root in pairs:
        if not equals:
            raise click.BadParameter(f"{name!r} has no '='; write NAME=ROOT, or NAME= for the default.")
    return {name: root for name, _, root in pairs}


@sandbox.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=3000, show_default=True, help="0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--backend",
    default="auto",
    show_default=True,
    help="The kind of sandbox.",
    type=click.Choice(backend_choices(served=True)),
)
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="NAME=ROOT",
    callback=_images,
    help="The root filesystem for an image's name. NAME may be *. An empty ROOT means the backend's default. "
    "Repeatable.",
)
@click.option(
    "--max-sandboxes",
    type=click.IntRange(1, 100_000),
    default=10,
    show_default=True,
    help="The most sandboxes at a time; further starts wait.",
)
@click.option(
    "--lifetime",
    "--timeout",
    "timeout",
    type=FiniteRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    help="Seconds after which a sandbox is removed.",
)
@click.option(
    "--command-timeout",
    type=FiniteRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds that a command may take, unless the client gives a limit.",
)
@click.option(
    "--memory-mb",
    type=click.IntRange(16, MOST),
    default=2048,
    show_default=True,
    help="The most memory a client may ask for.",
)
@click.option("--allow-network", is_flag=True, help="Let clients ask for the network.")
@click.option("--no-token", is_flag=True, help="Ask for no token: anybody who can reach the port may use the server.")
def serve(  # noqa: PLR0913, PLR0917 - one parameter an option
    port: int,
    host: str,
    backend: str,
    images: dict[str, str],
    max_sandboxes: int,
    timeout: float,
    command_timeout: float,
    memory_mb: int,
    allow_network: bool,
    no_token: bool,
) -> None:
    """Serve sandboxes with the SoS protocol until interrupted. All sandboxes are removed at the end.

    Clients send the token that is printed at the start, or the one in REWARD_KIT_SANDBOX_TOKEN.

    \b
    reward-kit sandbox serve --max-sandboxes 32
    reward-kit sandbox serve --image 'deathbyknowledge/shellm-sandbox=/srv/rootfs'
    """
    from reward_kit.sandbox.sos.host import HostOptions
    from reward_kit.sandbox.sos.protocol import TOKEN_VARIABLE
    from reward_kit.utils.event_loop import run_sync

    given = os.environ.get(TOKEN_VARIABLE)
    token = None if no_token else given or secrets.token_urlsafe(24)
    if no_token and not _is_loopback(host):
        echo(f"Warning: anybody who can reach {host}:{port} can run commands here (--no-token).", err=True)
    defaults = HostOptions()
    options = replace(
        defaults,
        max_sandboxes=max_sandboxes,
        lifetime=timeout,
        command_timeout=command_timeout,
        limits=replace(defaults.limits, memory_mb=memory_mb),
        network=allow_network,
        images=images,
    )
    run_sync(lambda: _serve(backend, host, port, token, options, show_token=given is None))


async def _serve(name: str, host: str, port: int, token: str | None, options: HostOptions, *, show_token: bool) -> None:
    """Serve sandboxes until the process gets SIGINT or SIGTERM, then close them all."""
    import asyncio
    import signal

    from reward_kit.sandbox.choose import choose_backend
    from reward_kit.sandbox.sos.server import serving

    chosen = await choose_backend(name)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with serving(chosen, token=token, options=options, host=host, port=port) as url:
        echo(f"{chosen.name} sandboxes at {url}, {options.max_sandboxes} at a time")
        if token is not None and show_token:
            echo(f"token: {token}")
        await stopped.wait()
        echo("closing every sandbox", err=True)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
