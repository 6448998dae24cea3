# SPDX-License-Identifier: Apache-2.0
"""Folders that come with the package and are copied for people: the templates of `init`, and the examples."""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

import click

from reward_kit.errors import StorageError
from reward_kit.storage.files import Draft

__all__ = ["bundled_files", "files_under", "fill_in", "without_dead_links", "write_files"]

_LEFT_OUT = ("__pycache__", ".pytest_cache", "outputs")
"""Folders that are made by running what is in the others."""


def bundled_files(*place: str) -> dict[str, bytes]:
    """The files of a folder of the package, by their path in it."""
    return files_under(files("reward_kit").joinpath(*place))


def files_under(folder: Traversable) -> dict[str, bytes]:
    """The files of a folder and of those in it, by their path from it, in alphabetical order."""
    return dict(sorted(_walk(folder, "")))


def _walk(folder: Traversable, before: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_file():
            if not entry.name.endswith(".pyc"):
                yield before + entry.name, entry.read_bytes()
        elif entry.name not in _LEFT_OUT:
            yield from _walk(entry, f"{before}{entry.name}/")


def fill_in(name: str, data: bytes, folder: Path) -> bytes:
    """A file of a template; in a text for people, `$name` stands for the name of the folder."""
    if not name.endswith(".md"):
        return data
    return Template(data.decode()).safe_substitute(name=folder.resolve().name).encode()


def without_dead_links(page: bytes, path: str, roots: Collection[str]) -> bytes:
    """A page of the repository as it is copied: a link to a file that is not copied becomes the name of that file.

    `path` is the page's path in the repository, `roots` are the folders that are copied.
    """

    def as_copied(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link["target"].partition("#")[0]))
        if not link["target"].startswith("../") or any(target.startswith(f"{root}/") for root in roots):
            return link[0]
        where = f"`{target}` in the {'documentation' if target.startswith('docs/') else 'repository'}"
        return where if link["text"].strip("`") == target else f"{link['text']} ({where})"

    return re.sub(r"\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)", as_copied, page.decode()).encode()


def write_files(folder: Path, found: Mapping[str, bytes]) -> None:
    """Write the files into a folder, which is made where it is missing: all of them, or none that is new."""
    new: list[Path] = []
    try:
        for name, data in found.items():
            path = folder / name
            if not path.exists():
                new.append(path)
            with Draft(path, advice="Make room there, or choose another folder.", make_folder=True) as draft:
                draft.write(data)
    except StorageError as error:
        for path in new:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        raise click.UsageError(str(error)) from error
