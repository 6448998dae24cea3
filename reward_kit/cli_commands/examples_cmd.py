# SPDX-License-Identifier: Apache-2.0
"""`reward-kit examples`: the example folders of the project, listed, and copied to where you can change them."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reward_kit.cli_commands.options import NamedPath, completed_by
from reward_kit.cli_commands.output import echo, echo_json
from reward_kit.utils.near_names import did_you_mean

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["example_names", "examples"]

_WIDTH = 100
_SHARED = "_shared"
"""What several examples use; it is copied beside them."""


@click.group()
def examples() -> None:
    """List the example folders, and copy one to try and change it.

    \b
    reward-kit examples list
    reward-kit examples copy math_example
    """


@examples.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON: the name, and what it shows.")
def list_(as_json: bool) -> None:
    """List the examples with what each shows."""
    folder = _folder()
    found = {name: _about(folder / name) for name in example_names()}
    if as_json:
        shown = [{"name": name, "about": about} for name, about in found.items()]
        echo_json(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    width = max(map(len, found))
    for name, about in found.items():
        echo(f"{name:<{width}}  {textwrap.shorten(about, _WIDTH, placeholder=' …')}")


@examples.command()
@click.argument("name", shell_complete=completed_by("complete_examples"))
@click.option(
    "--to", "target", type=NamedPath(path_type=Path), default=Path("examples"), show_default=True,
    help="The folder to copy it into. The commands of its README expect the folder examples.",
)  # fmt: skip
def copy(name: str, target: Path) -> None:
    """Copy the example NAME into examples/NAME of the current directory. Existing files are never overwritten.

    NAME is one that `reward-kit examples list` shows.
    """
    from reward_kit.cli_commands.copied_folders import files_under, write_files

    folder, names = _folder(), example_names()
    if name not in names:
        raise click.UsageError(
            f"There is no example {name!r}{did_you_mean(name, names)}. There are: {', '.join(names)}."
        )
    found = {f"{name}/{path}": data for path, data in files_under(folder / name).items()}
    if (folder / _SHARED).is_dir():
        shared = {f"{_SHARED}/{path}": data for path, data in files_under(folder / _SHARED).items()}
        # Copying a second example finds what the first one brought.
        found |= {path: data for path, data in shared.items() if not _is_there(target / path, data)}
    taken = [path for path in found if (target / path).exists()]
    if taken:
        raise click.UsageError(f"{target / taken[0]} exists already. Remove it, or copy to another folder with --to.")
    write_files(target, found)
    echo(f"Wrote {len(found)} files to {target / name}. Read {target / name / 'README.md'}, and try:")
    echo(f"  {_first_command(found[f'{name}/README.md'].decode())}")


def example_names() -> list[str]:
    """The examples that there are."""
    entries = [entry.name for entry in _folder().iterdir() if (entry / "README.md").is_file()]
    return sorted(name for name in entries if not name.startswith(("_", ".")))


def _folder() -> Traversable:
    """Where the examples are: inside an installed package, and beside it in a checkout of the repository."""
    from importlib.resources import files

    package = files("reward_kit")
    if (bundled := package / "examples").is_dir():
        return bundled
    checkout = Path(str(package)).parent / "examples"
    if not checkout.is_dir():
        raise click.UsageError(
            "The examples are not in this installation. Install reward-kit from a wheel, or clone it."
        )
    return checkout


def _is_there(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def _about(folder: Traversable) -> str:
    """The first sentence of the README, whole and in plain text."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    _, _, body = text.partition("\n")
    paragraph = " ".join(body.strip().split("\n\n", 1)[0].split())
    sentence = re.split(r"(?<=[.:?])\s", paragraph, maxsplit=1)[0].rstrip(":")
    return re.sub(r"[`*]", "", sentence)


def _first_command(readme: str) -> str:
    """The first command that the README shows."""
    block = re.search(r"```(?:sh|bash|console)\n(?P<commands>.*?)```", readme, re.DOTALL)
    lines = block["commands"].strip().splitlines() if block else []
    return lines[0].removeprefix("$ ") if lines else "less README.md"
