# SPDX-License-Identifier: Apache-2.0
"""`reward-kit init`: write a starter folder that you can run at once."""

from __future__ import annotations

from pathlib import Path

import click

from reward_kit.cli_commands.options import NamedChoice, NamedPath
from reward_kit.cli_commands.output import echo

__all__ = ["TEMPLATES", "init"]

TEMPLATES = {
    "starter": "the smallest folder: one reward, one config, one dataset",
    "math": "an answer that is a number or an expression, with its steps",
    "code": "a function that is run in a sandbox, against tests",
    "tools": "tool calls, compared with the expected ones",
    "judge": "a model that grades answers by a rubric",
    "composite": "several rewards as one: a gate, weights, a part of your own",
    "group": "all answers to a question, judged together",
    "agent": "a model that acts in a world with tools, turn by turn",
    "shell": "shell commands that are run in a sandbox",
}
"""The templates by name, in the order `--help` has them, and what each is about."""


@click.command(
    epilog="\b\nTemplates:\n" + "\n".join(f"  {name:<10} {about}" for name, about in TEMPLATES.items())
)  # fmt: skip
@click.argument("folder", type=NamedPath(path_type=Path))
@click.option(
    "-t", "--template", type=NamedChoice(list(TEMPLATES)), default="starter", show_default=True,
    help="What kind of reward the folder begins with.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite files that are already there.")
def init(folder: Path, template: str, force: bool) -> None:
    """Write a starter FOLDER: a reward, a config, a dataset and a README.

    \b
    reward-kit init my_reward
    cd my_reward && reward-kit run run.yaml
    reward-kit init my_agent --template agent

    It runs without a key or a model: a mock model gives the answers until you name a real one.
    """
    from reward_kit.cli_commands.copied_folders import bundled_files, fill_in, write_files

    found = bundled_files("cli_commands", "templates", template)
    taken = [name for name in found if (folder / name).exists()]
    if taken and not force:
        raise click.UsageError(
            f"{folder / taken[0]} exists already. Choose another folder, or add --force to overwrite."
        )
    write_files(folder, {name: fill_in(name, data, folder) for name, data in found.items()})
    config = "run.yaml" if "run.yaml" in found else "conf/run.yaml"
    here = folder.resolve() == Path.cwd()
    place = "the current directory" if here else str(folder)
    command = f"reward-kit run {config}"
    echo(f"Wrote {', '.join(found)} to {place}. Try it:\n  {command if here else f'cd {folder} && {command}'}")
