# SPDX-License-Identifier: Apache-2.0
"""`reward-kit cache`: look at the response cache, or make it smaller."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

import click

from reward_kit.cli_commands.options import NamedPath, reading_own_files
from reward_kit.cli_commands.output import echo

__all__ = ["cache"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_DEFAULT = ".reward_kit_cache"


@click.group()
def cache() -> None:
    """Look at the response cache, or make it smaller.

    The cache keeps every answer that was paid for, so that no run pays for it again. If you delete entries, you lose no
    results. But a run that asks for those answers again pays for them again.
    """


def _age(_: click.Context, __: click.Parameter, value: str | None) -> timedelta | None:
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]+)\s*([smhdw])", value.strip())
    if match is None:
        raise click.BadParameter(f"{value!r} is not an age; write a number and a unit, such as 30d, 12h or 2w.")
    try:
        return timedelta(seconds=int(match[1]) * _UNITS[match[2]])
    except (OverflowError, ValueError):
        raise click.BadParameter(f"{value[:40]!r} is too long. Give a shorter age, such as 30d.") from None


def _size(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]{1,18})\s*([kmgt]?)i?b?", value.strip().lower())
    if match is None:
        raise click.BadParameter(f"{value!r} is not a size; write a number and a unit, such as 500M or 2G.")
    return int(match[1]) * _SIZES[match[2]]


_directory = click.option(
    "--cache-dir",
    type=NamedPath(path_type=Path),
    default=_DEFAULT,
    show_default=True,
    help="The cache's directory.",
)


@cache.command()
@_directory
def info(cache_dir: Path) -> None:
    """Say what the cache holds."""
    from reward_kit.generation.cache.upkeep import info as inspect_cache

    _require_directory(cache_dir)
    with reading_own_files(cache_dir):
        found = inspect_cache(cache_dir)
    echo(f"{cache_dir}: {found.entries:,} answers, {found.bytes:,} bytes")
    if found.oldest is not None and found.newest is not None:
        echo(f"  from {_day(found.oldest)} to {_day(found.newest)}")
    for model, count in found.models.items():
        echo(f"  {count:>10,}  {model or 'unnamed model'}")
    if found.unreadable:
        echo(f"  {found.unreadable:,} lines cannot be read and are ignored; `reward-kit cache prune` removes them")
    if found.unchecked:
        echo(f"  {found.unchecked:,} answers were written before reward-kit had checksums, and could not be checked")


@cache.command()
@_directory
@click.option("--older-than", callback=_age, help="Remove answers older than this: 30d, 12h, 2w.")
@click.option(
    "--max-size", callback=_size, help="Remove the oldest answers until the cache has at most this size: 500M, 2G."
)
@click.option("--all", "everything", is_flag=True, help="Remove everything.")
def prune(cache_dir: Path, older_than: timedelta | None, max_size: int | None, everything: bool) -> None:
    """Make the cache smaller. Safe while runs are using it.

    \b
    reward-kit cache prune --older-than 30d
    reward-kit cache prune --max-size 2G
    """
    from reward_kit.generation.cache.upkeep import prune as prune_cache

    _require_directory(cache_dir)
    with reading_own_files(cache_dir):
        report = prune_cache(cache_dir, older_than=older_than, max_bytes=max_size, everything=everything)
    freed = report.bytes_before - report.bytes_after
    echo(f"{cache_dir}: kept {report.kept:,} answers, removed {report.removed:,}, freed {freed:,} bytes")


def _require_directory(cache_dir: Path) -> None:
    from reward_kit.errors import ConfigError

    if cache_dir.exists() and not cache_dir.is_dir():
        raise ConfigError(
            f"{str(cache_dir)!r} is a file, not a cache's directory. Name the directory with --cache-dir."
        )


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M %Z").strip()
