# SPDX-License-Identifier: Apache-2.0
"""Which files of a project a module needs: followed from import to import, in the source, without running anything."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

__all__ = ["Imports", "Outside", "follow_imports", "import_roots", "tables_named"]


class Outside(NamedTuple):
    """An import that leads out of the project, and not into Python's own library."""

    module: str
    """The package that is imported, such as `numpy`."""
    file: Path
    line: int
    is_needed: bool
    """Whether the file cannot be imported without it: the import is neither in a function nor in a `try`."""


@dataclass
class Imports:
    """What was found behind a module."""

    files: set[Path] = field(default_factory=set)
    """The files of the project, the first included."""
    outside: list[Outside] = field(default_factory=list)
    reads_beside: set[Path] = field(default_factory=set)
    """Files that look for others by their own place (`__file__`, `importlib.resources`), which no import names."""
    named: set[str] = field(default_factory=set)
    """What is imported from elsewhere, in full: `numpy.linalg.norm`; of this package, what is named behind it, too."""
    words: set[str] = field(default_factory=set)
    """Every name that the files use, and every text of theirs that could be one."""
    tables: set[Path] = field(default_factory=set)
    """Files of data that texts in the source name, and that libraries open in C, where Python does not tell of it."""
    unreadable: dict[Path, str] = field(default_factory=dict)
    """Files that are not Python, with what is wrong; what they import is not known."""


_THIS_PACKAGE = __name__.partition(".")[0]
"""It counts as installed, also where somebody works in a checkout of it."""


def import_roots(project: Path, *first: Path) -> list[Path]:
    """The folders from which the project's modules are imported: `first`, the project's own, and its `src`."""
    candidates = [*first, project, project / "src"]
    return list(dict.fromkeys(folder for folder in candidates if folder.is_dir()))


def follow_imports(entries: Sequence[Path], roots: Sequence[Path]) -> Imports:
    """Everything of the project that the `entries` import, directly or through others."""
    found = Imports()
    waiting = list(entries)
    while waiting:
        file = waiting.pop()
        if file in found.files:
            continue
        found.files.add(file)
        waiting.extend(_Reader(file, roots, found).needed())
    found.outside.sort()
    return found


_TABLE = re.compile(
    r"[^\s'\"`]+\.(?:parquet|pq|feather|arrow|ipc|orc|avro|duckdb|ddb|db|sqlite3?|hdf5|h5|nc|npy|npz|pt|pth|safetensors|"
    r"gguf|onnx|tfrecords?|lmdb|faiss|bin)(?![\w.])"
)
_LONGEST_FOLDER = 100


def tables_named(texts: Iterable[str], folders: Iterable[Path]) -> Iterator[Path]:
    """The tables, arrays and weights that texts name, from one of the folders on or from one inside that others name.

    A text may say more than a name: `SELECT * FROM 'data/prices.parquet'`.
    """
    texts = {*texts}
    named = {name for text in texts for name in _TABLE.findall(text)}
    steps = {step for text in texts if 0 < len(step := text.strip("/")) <= _LONGEST_FOLDER} if named else ()
    inside = {str(folder) for folder in folders}
    for _ in range(3 if named else 0):
        paths = {os.path.join(folder, name) for folder in inside for each in named for name in (each, each.lstrip("/"))}
        yield from (Path(path).resolve() for path in paths if os.path.isfile(path))
        inside = {path for folder in inside for step in steps if os.path.isdir(path := os.path.join(folder, step))}


def _packages_above(file: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """The `__init__.py` of each package that the file is in: importing the file runs them."""
    root = _root_of(file, roots)
    for folder in file.parents:
        if folder == root or root not in folder.parents:
            return
        if (folder / "__init__.py").is_file():
            yield folder / "__init__.py"


def _root_of(file: Path, roots: Sequence[Path]) -> Path:
    inside = [root for root in roots if root in file.parents]
    return max(inside, key=lambda root: len(root.parts), default=file.parent)


class _Reader:
    """One file, read for what it imports."""

    def __init__(self, file: Path, roots: Sequence[Path], found: Imports) -> None:
        self._file, self._roots, self._found = file, roots, found
        package = file.parent.relative_to(_root_of(file, roots)).parts
        self._package = list(package)
        self._bound: dict[str, str] = {}
        self._texts: set[str] = set()

    def needed(self) -> Iterator[Path]:
        yield from _packages_above(self._file, self._roots)
        try:
            tree = ast.parse(self._file.read_bytes(), str(self._file))
        except (SyntaxError, ValueError, OSError) as error:
            self._found.unreadable[self._file] = str(error)
            return
        self._bound = dict(_names_bound_in(tree))
        yield from self._imports(tree, is_needed=True)
        self._found.tables.update(tables_named(self._texts, [self._file.parent, *self._roots]))

    def _imports(self, node: ast.AST, *, is_needed: bool) -> Iterator[Path]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._module(alias.name, node.lineno, is_needed=is_needed)
        elif isinstance(node, ast.ImportFrom):
            yield from self._from(node, is_needed=is_needed)
        elif isinstance(node, ast.Call):
            yield from self._by_name(node)
        elif isinstance(node, ast.Name | ast.Attribute | ast.Constant):
            self._note(node)
        elif isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            for each in node.orelse:  # the rest is never imported when it runs
                yield from self._imports(each, is_needed=is_needed)
            return
        inner = is_needed and not isinstance(node, (ast.Try, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            yield from self._imports(child, is_needed=inner)

    def _note(self, node: ast.Name | ast.Attribute | ast.Constant) -> None:
        """Take account of what the file names, and of what of this package it reaches by that."""
        if isinstance(node, ast.Constant):
            text = node.value if isinstance(node.value, str) else ""
            self._texts.add(text)
            if text.isidentifier():
                self._found.words.add(text)
            elif text.startswith(f"{_THIS_PACKAGE}."):  # an import path
                self._found.named.add(text.replace(":", "."))
            return
        self._found.words.add(node.id if isinstance(node, ast.Name) else node.attr)
        if isinstance(node, ast.Name):
            if node.id == "__file__":
                self._found.reads_beside.add(self._file)
        elif (reached := self._reached(node)) is not None:
            self._found.named.add(reached)

    def _reached(self, node: ast.expr) -> str | None:
        """The full name of something of this package: of `r.math_reward` after `import reward_kit.rewards as r`."""
        if isinstance(node, ast.Name):
            return self._bound.get(node.id)
        above = self._reached(node.value) if isinstance(node, ast.Attribute) else None
        return f"{above}.{node.attr}" if isinstance(node, ast.Attribute) and above else None

    def _from(self, node: ast.ImportFrom, *, is_needed: bool) -> Iterator[Path]:
        base = node.module or ""
        if node.level:
            base = ".".join([*self._above(node.level), *filter(None, [node.module])])
        if base:
            yield from self._module(base, node.lineno, is_needed=is_needed and not node.level)
        if base.partition(".")[0] == "importlib" and {"resources"} & {alias.name for alias in node.names}:
            self._found.reads_beside.add(self._file)
        if base in self._found.named:
            self._found.named.update(f"{base}.{alias.name}" for alias in node.names)
        for alias in node.names:  # each may be a module of the package, or a name in it
            yield from self._find(f"{base}.{alias.name}" if base else alias.name)

    def _by_name(self, node: ast.Call) -> Iterator[Path]:
        """`import_module("a.b")` and `__import__("a.b")`, where the name is written out."""
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0] if node.args else None
        name = first.value if isinstance(first, ast.Constant) else None
        if called not in {"import_module", "__import__"} or not isinstance(name, str):
            return
        if level := len(name) - len(name.lstrip(".")):
            name = ".".join([*self._above(level), name[level:]])
        yield from self._module(name, node.lineno, is_needed=False)

    def _above(self, level: int) -> list[str]:
        """The package that so many dots name."""
        return self._package[: len(self._package) - level + 1]

    def _module(self, name: str, line: int, *, is_needed: bool) -> Iterator[Path]:
        files = list(self._find(name))
        yield from files
        top = name.partition(".")[0]
        if name.startswith("importlib.resources"):
            self._found.reads_beside.add(self._file)
        if not files and top not in sys.stdlib_module_names and not self._is_own(top):
            self._found.outside.append(Outside(top, self._file, line, is_needed))
            self._found.named.add(name)

    def _is_own(self, name: str) -> bool:
        """Whether the project has a module or package of this name, maybe one without an `__init__.py`."""
        if name == _THIS_PACKAGE:
            return False
        return any(self._find(name)) or any(
            (root / name).is_dir() and any((root / name).rglob("*.py")) for root in self._roots
        )

    def _find(self, name: str) -> Iterator[Path]:
        """The project's file of a module, with the packages around it."""
        parts = name.split(".")
        if parts[0] == _THIS_PACKAGE:
            return
        for root in self._roots:
            place = root.joinpath(*parts)
            for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
                if file.is_file():
                    yield file
                    yield from _packages_above(file, [root])
                    return


def _names_bound_in(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names by which a file knows what it imports of this package, and what each stands for."""
    for node in ast.walk(tree):
        base = ""
        if isinstance(node, ast.ImportFrom):
            base = f"{node.module}." if node.module and not node.level else "."
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = f"{base}{alias.name}"
                if f"{name}.".startswith(f"{_THIS_PACKAGE}."):
                    whole = isinstance(node, ast.ImportFrom) or alias.asname
                    yield (alias.asname or alias.name.partition(".")[0]), (name if whole else _THIS_PACKAGE)
