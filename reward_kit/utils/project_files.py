# SPDX-License-Identifier: Apache-2.0
"""What an object depends on beside the file that defines it: its project's files, and values that no file holds.

    project_of(reward)   the project's files that it needs, named from the folder that its modules are imported from
    loose_values(reward) the globals that a notebook's function names, and what a callable object holds

Names are the same on every machine, and so are digests: both say what is in the project, not where it is.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from reward_kit.utils.lazy_names import home_of
from reward_kit.utils.project_imports import Imports, follow_imports, import_roots
from reward_kit.utils.source_digest import source_of, stable_bytes

__all__ = ["Project", "file_digest", "loose_values", "others_than_imported", "project_of"]

_MOST_FILES = 2000
_MOST_BYTES = 64 << 20
"""Of a larger file, only the size counts."""
_MOST_ITEMS = 100_000
"""Of a larger collection, only the length counts."""
_MOST_LOOKED_AT = 1000
"""In a larger collection no code is looked for."""


class Project(NamedTuple):
    """The files around an object that are somebody's own, and not installed."""

    root: Path
    """Names of files lead from here."""
    files: Mapping[str, str]
    """The modules that the object needs, its own first: name → digest."""
    library: frozenset[str] = frozenset()
    """What of this package it uses, by its full names."""
    tables: frozenset[Path] = frozenset()
    """Files of data that its source names, and that libraries open in C, where nobody sees it."""

    def name_of(self, file: Path) -> str | None:
        """How a file is called here; None for one that does not belong to the project."""
        if not any(folder in file.parents for folder in (self.root, *_working_directory())) or _is_installed(file):
            return None
        return Path(os.path.relpath(file, self.root)).as_posix()

    @property
    def paths(self) -> list[Path]:
        """The files of its modules."""
        return [(self.root / name).resolve() for name in self.files]

    def digest(self, name: str) -> str:
        """The digest of a file as it is now; a word for one that is not there."""
        return file_digest(self.root / name)


def file_digest(file: Path) -> str:
    """The content of a file in 16 digits; its size where it is very large."""
    try:
        with file.open("rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            if size > _MOST_BYTES:
                return f"{size} bytes"
            return hashlib.file_digest(opened, "sha256").hexdigest()[:16]
    except OSError:
        return "missing"


def project_of(obj: Any) -> Project:
    """The project that an object is from, and what of it the object needs: imports are followed in the source."""
    found = [*_held_by(obj)]
    library = {name for each in found if (name := _module_of(each)).startswith(_PACKAGE)}
    own = [each for each in found if (file := _file_of(each)) is not None and not _is_installed(file)]
    entries = list(dict.fromkeys(path for each in own if (path := _file_of(each)) is not None))
    roots = list(dict.fromkeys(map(_root_of, own)))
    project = Project(roots[0] if roots else Path.cwd().resolve(), {})
    if not entries:
        return project._replace(library=frozenset(library))
    imports = follow_imports(entries, [*import_roots(project.root, *roots), *_working_roots()])
    library.update(_in_this_package(imports))
    needed = [*entries, *sorted(imports.files.difference(entries))][:_MOST_FILES]
    files = {named: file_digest(path) for path in needed if (named := project.name_of(path)) is not None}
    return Project(project.root, files, frozenset(library), frozenset(imports.tables))


_PACKAGE = "reward_kit."


def _module_of(each: Any) -> str:
    return str(each.__name__ if isinstance(each, ModuleType) else getattr(each, "__module__", None) or "")


def _in_this_package(imports: Imports) -> Iterator[str]:
    """The modules of this package that files use: those they name, and the homes of public names that they use."""
    named = [name for name in imports.named if f"{name}.".startswith(_PACKAGE)]
    yield from map(_real_name, named)
    if named:
        yield from (home for word in imports.words if (home := home_of(word)) is not None)


def _real_name(name: str) -> str:
    """The module that something of this package is from: `….rewards.math` of `….rewards.math_reward`."""
    above, _, last = name.rpartition(".")
    _meet(name)
    _meet(above)
    if home := home_of(last, above):
        return home
    module = sys.modules.get(above)
    return name if module is None or last not in vars(module) else f"{_module_of(vars(module)[last])}."


def _meet(name: str) -> None:
    """Import a package of ours, so that it can tell where its names live; it imports nothing of what is in it."""
    place = _INSTALLED_PLACES[0].parent.joinpath(*name.split("."), "__init__.py")
    if name and name not in sys.modules and all(map(str.isidentifier, name.split("."))) and place.is_file():
        importlib.import_module(name)


_imported: dict[Path, str] = {}
"""Files whose modules this process has imported, as they were when that was first noticed."""


def others_than_imported(project: Project) -> bool:
    """Whether a file of the project has changed since this process imported it."""
    now = dict(zip(project.paths, project.files.values(), strict=True))
    changed = any(_imported.get(path, digest) != digest for path, digest in now.items())
    _imported.update(now)
    return changed


def loose_values(obj: Any) -> dict[str, str]:
    """By name, digests of plain values and helpers that the object needs and no file holds."""
    found: dict[str, str] = {}
    for each in _held_by(obj):
        if isinstance(each, FunctionType) and _is_loose(each):
            found |= {name: _digest(value) for name, value in _globals_named(each) if not _is_module(value)}
        elif isinstance(each, type) and _is_loose(each) and source_of(each) is None:
            found |= {f"{each.__name__}.{name}": _digest(value) for name, value in vars(each).items() if _is_own(name)}
        elif not isinstance(each, FunctionType | type | ModuleType):
            held = vars(each) if hasattr(each, "__dict__") else {}
            found |= {f"{type(each).__name__}.{name}": _digest(held[name]) for name in held if _is_own(name)}
    return found


def _is_own(name: str) -> bool:
    return not name.startswith("_") or name == "__call__"


def _is_module(value: object) -> bool:
    return isinstance(value, ModuleType)


def _digest(value: Any) -> str:
    if isinstance(value, list | tuple | set | frozenset | dict) and len(value) > _MOST_ITEMS:
        return f"{len(value)} items"
    return hashlib.sha256(stable_bytes(_as_plain(value))).hexdigest()[:16]


def _as_plain(value: Any) -> Any:
    """A value as plain data, as far as it is one that always looks the same."""
    if isinstance(value, re.Pattern):
        return [value.pattern, value.flags]
    if type(value).__module__.partition(".")[0] in {"datetime", "decimal", "fractions", "pathlib"}:
        return repr(value)
    if isinstance(value, FunctionType | type | ModuleType) or not hasattr(value, "__dict__"):
        return value
    return [type(value).__qualname__, vars(value)] if not _is_installed(_file_of(type(value))) else value


# ── what an object holds ─────────────────────────────────────────────────────────────────────────────────────────────


def _held_by(obj: Any) -> Iterator[Any]:
    """The functions, classes, modules and callable objects that make up an object, it or its definition first."""
    waiting, seen = [obj], set[int]()
    kept: list[Any] = []  # so that no other object gets the same id
    while waiting:
        each = waiting.pop(0)
        each = inspect.unwrap(each) if callable(each) and not isinstance(each, type) else each
        if id(each) in seen:
            continue
        seen.add(id(each))
        kept.append(each)
        if isinstance(each, FunctionType | type | ModuleType) or (callable(each) and _is_object(each)):
            yield each
        waiting.extend(_parts(each))


def _is_object(each: object) -> bool:
    """Whether it is somebody's callable object, and no partial or bound method."""
    return not isinstance(each, functools.partial | MethodType) and not _is_installed(_file_of(type(each)))


def _parts(each: Any) -> Iterator[Any]:
    if isinstance(each, functools.partial):
        yield from (each.func, *each.args, *each.keywords.values())
    elif isinstance(each, MethodType):
        yield from (each.__func__, each.__self__)
    elif isinstance(each, FunctionType):
        yield from _parts_of_function(each)
    elif isinstance(each, Mapping):
        yield from _few(each.values())
    elif isinstance(each, list | tuple | set | frozenset):
        yield from _few(each)
    elif isinstance(each, type):
        if _is_loose(each):
            yield from (value for value in vars(each).values() if isinstance(value, FunctionType))
    elif callable(each) and _is_object(each):
        yield from (type(each), *(vars(each).values() if hasattr(each, "__dict__") else ()))


def _few(values: Any) -> Iterator[Any]:
    """Those of a collection that may hold code, where it is small enough to be looked through."""
    if len(values) <= _MOST_LOOKED_AT:
        yield from (value for value in values if not isinstance(value, str | bytes | int | float | None))


def _parts_of_function(function: FunctionType) -> Iterator[Any]:
    if not _is_installed(_file_of(function)) or "<" in function.__qualname__:
        yield from (cell.cell_contents for cell in function.__closure__ or () if _is_bound(cell))
        yield from (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    if _is_loose(function):
        yield from (value for _, value in _globals_named(function) if callable(value) or _is_module(value))


def _is_bound(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _globals_named(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The globals that a function's code names, functions inside of it included."""
    names = dict.fromkeys(_names_in(function.__code__))
    yield from ((name, function.__globals__[name]) for name in names if name in function.__globals__)


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names_in(inner)


def _is_loose(each: Any) -> bool:
    """Whether it was defined where values come and go: in a notebook, at a prompt, in the program that runs."""
    return getattr(each, "__module__", None) == "__main__" or (isinstance(each, FunctionType) and not _file_of(each))


# ── where it is ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _file_of(each: Any) -> Path | None:
    """The file that defines a function, a class, a module or the class of an object."""
    if isinstance(each, FunctionType):
        name = each.__code__.co_filename
    else:
        module = each if isinstance(each, ModuleType) else sys.modules.get(_class_of(each).__module__)
        name = getattr(module, "__file__", None) or ""
    return Path(name).resolve() if name.endswith(".py") and os.path.isfile(name) else None


def _class_of(each: Any) -> type:
    return each if isinstance(each, type) else type(each)


def _root_of(each: Any) -> Path:
    """The folder from which the module is imported."""
    file = _file_of(each) or Path.cwd()
    above = _module_of(each).count(".") + (file.name == "__init__.py")
    return file.parents[min(above, len(file.parents) - 1)]


def _is_installed(file: Path | None) -> bool:
    """Whether a file belongs to Python, to an installed package or to this one."""
    return file is not None and (
        not _INSTALLED_NAMES.isdisjoint(file.parts) or any(place in file.parents for place in _INSTALLED_PLACES)
    )


_INSTALLED_NAMES = frozenset({"site-packages", "dist-packages"})
_INSTALLED_PLACES = (Path(__file__).resolve().parents[1], Path(os.__file__).resolve().parent)
"""This package, and Python's own library."""


def _working_directory() -> list[Path]:
    """The folder that the program runs in, unless that is no project's: the root of all, or somebody's home."""
    here = Path.cwd().resolve()
    return [] if here in (Path(here.anchor), Path.home().resolve()) else [here]


def _working_roots() -> list[Path]:
    return [root for folder in _working_directory() for root in import_roots(folder)]
