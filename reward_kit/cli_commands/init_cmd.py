# SPDX-License-Identifier: Apache-2.0
"""`reward-kit init`: a starter folder that runs as it is."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Template

import click

from reward_kit.cli_commands.options import NamedPath
from reward_kit.cli_commands.output import echo

__all__ = ["init"]

STARTER = ("reward.py", "dataset.jsonl", "run.yaml", "README.md")


@click.command()
@click.argument("folder", type=NamedPath(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite files that are already there.")
def init(folder: Path, force: bool) -> None:
    """Write a starter FOLDER: a reward, a config, a dataset and a README.

    \b
    reward-kit init my_reward
    cd my_reward && reward-kit run run.yaml

    It runs without a key or a model: a mock model gives the answers until you name a real one.
    """
    taken = [name for name in STARTER if (folder / name).exists()]
    if taken and not force:
        raise click.UsageError(
            f"{folder / taken[0]} exists already. Choose another folder, or add --force to overwrite."
        )
    templates = files("reward_kit.cli_commands") / "templates" / "starter"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in STARTER:
            text = (templates / name).read_text(encoding="utf-8")
            filled = Template(text).safe_substitute(name=folder.resolve().name) if name.endswith(".md") else text
            (folder / name).write_text(filled, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"Cannot write {error.filename!r} ({error.strerror}). Choose another folder.") from error
    echo(f"Wrote {', '.join(STARTER)} to {folder}. Try it:\n  cd {folder} && reward-kit run run.yaml")
