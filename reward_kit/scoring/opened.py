# SPDX-License-Identifier: Apache-2.0
"""The files of its project that a reward opens to judge: a list of words, a table, a module that only its code names.

What is opened while the reward is imported here, while it is called here, and in its worker processes, comes together
in `Opened`, which tells whoever keeps the run's manifest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import source_from_cache
from pathlib import Path

from reward_kit.config_models import RewardConfig
from reward_kit.utils.opened_files import Noted, OpenedFiles
from reward_kit.utils.project_files import Project, file_digest
from reward_kit.utils.project_imports import follow_imports, tables_named

__all__ = ["Opened", "watched_import"]

_at_import: dict[str, list[OpenedFiles]] = {}
"""By a reward's path, who watched what was opened when it was imported: a module is imported once in a process."""


@contextlib.contextmanager
def watched_import(path: str | None) -> Iterator[None]:
    """Keep in mind which files are opened inside."""
    files = OpenedFiles()
    with files.here():
        yield
    if files.has_news:
        _at_import.setdefault(path or "", []).append(files)


class Opened:
    """What one reward has opened, and whom to tell."""

    def __init__(self, project: Project, config: RewardConfig) -> None:
        """Begin with what was opened when the reward was imported, and with the tables that source or params name."""
        self.project = project
        self.here = OpenedFiles(_at_import.get(config.function_path or "", ()))
        """What is opened in this process."""
        self._untold: dict[str, str | None] = {}
        self._tell: Callable[[Mapping[str, str | None]], None] | None = None
        texts = [value for value in config.params.values() if isinstance(value, str)]
        self._depend_on(project.tables.union(tables_named(texts, [Path.cwd()])))

    def tell(self, taker: Callable[[Mapping[str, str | None]], None]) -> None:
        """Have `taker` told of each file, once: its name and its digest, or None for one that is written to, too."""
        self._tell = taker
        self.pass_on()

    def look(self) -> None:
        """Take account of what was opened in this process."""
        if self.here.has_news:
            self.note(self.here.take())

    def note(self, noted: Noted) -> None:
        """Take account of files that were opened."""
        read = dict(self._own(noted.read))
        self._untold |= {name: file_digest(file) for name, file in read.items()}
        self._untold |= {name: None for name, _ in self._own(noted.written)}
        self.pass_on()
        if modules := [file for file in read.values() if file.suffix == ".py"]:  # which only the code names
            self._depend_on(follow_imports(modules, [self.project.root]).tables)

    def _depend_on(self, tables: Iterable[Path]) -> None:
        """Take account of files of data that the source names, and what was opened in this process."""
        for table in tables:
            self.here.note_unseen(str(table))
        self.look()

    def _own(self, paths: Iterable[str]) -> Iterator[tuple[str, Path]]:
        """Those of the project that are not known from the reward's source."""
        for path in paths:
            file = _source(Path(path))
            name = None if file is None else self.project.name_of(file)
            hidden = name is None or any(part.startswith(".") and part != ".." for part in name.split("/"))
            if file is not None and name is not None and not hidden and name not in self.project.files:
                yield name, file

    def pass_on(self, files: Mapping[str, str | None] | None = None) -> None:
        """Tell of what nobody was told of; of these files, too, which another process has taken account of."""
        self._untold |= files or {}
        if self._tell is not None and self._untold:
            told, self._untold = self._untold, {}
            self._tell(told)


def _source(file: Path) -> Path | None:
    """The file itself; the source that bytecode was made of. None for what is no file any more."""
    if file.suffix == ".pyc":
        try:
            file = Path(source_from_cache(str(file)))
        except ValueError:
            return None
    file = file.resolve()
    return file if file.is_file() else None
