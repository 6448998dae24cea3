# SPDX-License-Identifier: Apache-2.0
"""`--engine` and `--engine-set`: the section `engine` of a run's config, for commands that have no such config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from reward_kit.cli_commands.options import key_value_pairs

__all__ = ["SETTINGS", "engine_options", "engine_settings"]

SETTINGS = {
    "engine": "--engine",
    "engine.address": "--engine-set address",
    "engine.env": "--engine-set env",
    "engine.working_dir": "--engine-set working_dir",
}
"""The flag of each setting of the engine that a message may name."""


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give the command both flags."""
    flags = (
        click.option("--engine", type=click.Choice(["local", "ray"]), help="This machine, or a Ray cluster."),
        click.option(
            "--engine-set", multiple=True, metavar="KEY=VALUE",
            help="A setting of the engine, e.g. address=auto, generate.actors=4, score.resources.sandbox=1. "
            "May be given again.",
        ),
    )  # fmt: skip
    for flag in reversed(flags):
        command = flag(command)
    return command


def engine_settings(
    name: str | None, given: tuple[str, ...], before: str | Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The section that the flags make, over what a file has."""
    section: dict[str, Any] = {"name": before} if isinstance(before, str) else _copy(before or {})
    if name is not None:
        section["name"] = name
    for path, value in key_value_pairs(given, "--engine-set", "KEY=VALUE, such as score.actors=2").items():
        *sections, key = path.split(".")
        place = section
        for part in sections:
            inner = place.setdefault(part, {})
            if not isinstance(inner, dict):
                raise click.UsageError(f"--engine-set {path}: {part!r} is not a section.")
            place = inner
        place[key] = [text.strip() for text in value.split(",")] if key == "env" else value
    return section


def _copy(section: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, Mapping) else value for key, value in section.items()}
