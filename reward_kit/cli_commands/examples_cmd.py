# SPDX-License-Identifier: Apache-2.0
"""`reward-kit examples`: the example folders of the project, listed, and copied to where you can change them."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reward_kit.cli_commands.options import NamedPath, completed_by
from reward_kit.cli_commands.output import echo, echo_json
from reward_kit.utils.near_names import did_you_mean

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["example_names", "examples", "first_command", "needed_by"]

_WIDTH = 100


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
    "--to", "target", type=NamedPath(path_type=Path), default=Path(), show_default=True,
    help="The directory to copy examples/NAME into.",
)  # fmt: skip
def copy(name: str, target: Path) -> None:
    """Copy the example NAME into examples/NAME of the current directory. Existing files are never overwritten.

    NAME is one that `reward-kit examples list` shows. Other examples that it needs are copied, too. The commands of a
    README are for the directory that holds `examples`.
    """
    from reward_kit.cli_commands.copied_folders import write_files

    folder, names = _folder(), example_names()
    if name not in names:
        raise click.UsageError(
            f"There is no example {name!r}{did_you_mean(name, names)}. There are: {', '.join(names)}."
        )
    place = target / "examples"
    found = _files_of(folder, name)
    if taken := [path for path in found if (place / path).exists()]:
        raise click.UsageError(f"{place / taken[0]} exists already. Remove it, or copy to another folder with --to.")
    write_files(place, found)
    echo(f"Wrote {len(found)} files to {place / name}.")
    for other in needed_by(folder / name):
        if (place / other).exists():
            echo(f"It needs the example {other}. {place / other} exists already, and is left as it is.")
        else:
            write_files(place, _files_of(folder, other))
            echo(f"It needs the example {other}, which was copied to {place / other}.")
    command = first_command(_readme(folder / name))
    echo(f"Read {place / name / 'README.md'}, and try:")
    echo(f"  {command}" if target == Path() else f"  cd {shlex.quote(str(target))} && {command}")


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


def needed_by(folder: Traversable) -> list[str]:
    """The other examples that an example uses: its README names them in a comment, `<!-- copied with: NAME, … -->`."""
    said = re.search(r"^<!-- copied with: (?P<names>.+?) -->$", _readme(folder), re.MULTILINE)
    return said["names"].split(", ") if said else []


def _files_of(folder: Traversable, name: str) -> dict[str, bytes]:
    """The files of an example, by their path from `examples`, with links that lead somewhere where they are copied."""
    from reward_kit.cli_commands.copied_folders import files_under, without_dead_links

    roots = [f"examples/{one}" for one in (name, *needed_by(folder / name))]
    return {
        f"{name}/{path}": without_dead_links(data, f"examples/{name}/{path}", roots) if path.endswith(".md") else data
        for path, data in files_under(folder / name).items()
    }


def _readme(folder: Traversable) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


def _about(folder: Traversable) -> str:
    """The first sentence of the README, whole and in plain text."""
    _, _, body = _readme(folder).partition("\n")
    paragraph = " ".join(body.strip().split("\n\n", 1)[0].split())
    sentence = re.split(r"(?<=[.:?])\s", paragraph, maxsplit=1)[0].rstrip(":")
    return re.sub(r"[`*]", "", sentence)


def first_command(readme: str) -> str:
    """The first command of the README that runs as it is, behind the `cd` that it has before it.

    What is marked as not run needs something that may not be there: a package, a key, a cluster.
    """
    for block in re.finditer(r"(?P<not_run><!-- not run:[^>]*-->\n)?```sh\n(?P<text>.*?)```", readme, re.DOTALL):
        if block["not_run"] is None:
            lines = re.sub(r"\s*\\\n\s*", " ", block["text"]).strip().splitlines()
            moves = list(itertools.takewhile(lambda line: line.startswith("cd "), lines))
            return " && ".join(lines[: len(moves) + 1])
    raise ValueError("The README shows no command that runs as it is.")
