# SPDX-License-Identifier: Apache-2.0
"""The names of the code under test, as a test program finds them: stand-ins, exceptions of our own, real modules.

    what the code says of its names ─▶ only what is well-formed of it ─▶ a stand-in for each that a test uses

The code decides what it says, so nothing of it is taken as it comes. Standard library only.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import sys
from collections.abc import Collection, Iterator, Mapping
from types import ModuleType
from typing import Any, TypeAlias

from reward_kit.sandbox.python.inside.remote import (
    CodesError,
    Link,
    Remote,
    RemoteError,
    RemoteExit,
    UnjudgeableError,
    facts_of,
)

__all__ = ["MODULES", "Names", "entry_name", "import_star", "known_names", "obtained", "offer_modules", "tested_object"]

MODULES = {name: name for name in (*sys.stdlib_module_names, "numpy", "pytest")} | {"np": "numpy", "pd": "pandas"}
"""What tests call modules by."""

Names: TypeAlias = Mapping[str, list[Any]]
"""Each name of the code, and what it is: a module, an exception with its ancestors and theirs, or another object."""
_OBJECT: list[Any] = ["object", None]


def known_names(answer: Any) -> Names:
    """What the code said of its names; what makes no sense is an object like any other."""
    return {str(name): _kind(kind) for name, kind in (answer if isinstance(answer, dict) else {}).items()}


def _kind(kind: Any) -> list[Any]:
    match kind:
        case ["module", str(path)] if _is_installed(path):
            return ["module", path]
        case ["exception", [_, *_] as lineage] if all(map(_is_ancestor, lineage)):
            return ["exception", lineage]
    return _OBJECT


def _is_name(text: Any) -> bool:
    return isinstance(text, str) and text.isidentifier()


def _is_ancestor(part: Any) -> bool:
    match part:
        case [str(name), list(bases)]:
            return _is_name(name) and all(map(_is_name, bases))
    return False


def _is_installed(path: str) -> bool:
    """Whether the interpreter has a module of its own under this name."""
    parts = path.split(".")
    try:
        return all(map(_is_name, parts)) and importlib.util.find_spec(path) is not None
    except (ValueError, ImportError):  # one that was made, not loaded
        return False


# ── what stands for them ─────────────────────────────────────────────────────────────────────────────────────────────


def obtained(link: Link, name: str, kind: list[Any]) -> Any:
    """What the code calls `name`, as far as it can be had here."""
    match kind:
        case ["exception", lineage]:
            return _exception(link, name, lineage)
        case ["module", path]:
            return importlib.import_module(path)  # the interpreter's own, not what the code made of it
    found = link.ask("get", [["h", 0], ["v", name]])
    if isinstance(found, Remote):
        facts_of(found)["name"] = name
    return found


def _exception(link: Link, name: str, lineage: list[tuple[str, list[str]]]) -> type[BaseException]:
    """A class of our own that stands for one of the code's exceptions; what catches its ancestors catches it, too."""
    known: dict[str, type[BaseException]] = {}
    for each, bases in reversed(lineage):
        native = getattr(builtins, each, None)
        if isinstance(native, type) and issubclass(native, BaseException):
            known[each] = native
        elif native is None:
            parents = [known[base] for base in bases if base in known]
            known[each] = link.exceptions.setdefault(each, _class_like(each, parents))
    return link.exceptions.get(name) or known.get(lineage[0][0], RemoteError)


def _class_like(name: str, parents: list[type[BaseException]]) -> type[BaseException]:
    """An exception class with these parents; what the code says of them may be nothing that Python would make."""
    bases = dict.fromkeys(each if issubclass(each, Exception) else RemoteExit for each in parents)
    own = [] if any(issubclass(base, CodesError) for base in bases) else [CodesError]
    try:
        return type(name, (*own, *(bases or [RemoteError])), {})
    except TypeError:
        return type(name, (CodesError, RemoteError), {})


def entry_name(entry_point: str | None) -> str | None:
    """What tests may call an entry point by: of `Solution().solve`, the last name."""
    return entry_point.rpartition(".")[2] if entry_point else None


def tested_object(link: Link, names: Names, entry_point: str) -> Any:
    """What an entry point stands for: a name of the code's, or an expression of such names as `Solution().solve`."""
    tree = ast.parse(entry_point, mode="eval")
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if missing := sorted(used - names.keys()):
        raise NameError(f"the code defines no {missing[0]!r}")
    return eval(entry_point, {name: obtained(link, name, names[name]) for name in used})


# ── the code as a module ─────────────────────────────────────────────────────────────────────────────────────────────


class _Code(ModuleType):
    """The module under test, as a test file imports it."""

    def __init__(self, name: str, link: Link, names: Names) -> None:
        super().__init__(name)
        vars(self)["_found"] = (link, names)
        self.__all__: list[str] = []  # `import_star` decides what a test gets
        self.__path__: list[str] = []
        vars(self)["_made"] = True

    def __setattr__(self, name: str, value: Any) -> None:
        if "_made" in vars(self) and not name.startswith("__"):
            link, _ = vars(self)["_found"]
            link.unjudgeable = f"the test replaces {name!r} of the code, which is in another process"
            raise UnjudgeableError(link.unjudgeable)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        link, names = vars(self)["_found"]
        if name not in names:
            link.used += not name.startswith("__")
            link.swayed += not name.startswith("__")
            raise AttributeError(f"the code defines no {name!r}")
        return obtained(link, name, names[name])


def offer_modules(link: Link, names: Names, wanted: list[str]) -> None:
    """Let the code be imported by every name in `wanted` that no module has."""
    for name in _missing(wanted):
        sys.modules[name] = _Code(name, link, names)


def _missing(names: list[str]) -> Iterator[str]:
    """The modules that are not there, with the packages that they would be in, and the one called `solution`.

    Where there is no pytest, it is pytest that is missing, and not the code.
    """
    yield "solution"
    for name in names:
        parts = name.split(".")
        if parts[0].startswith("pytest"):
            continue
        if parts[0] == "solution" or importlib.util.find_spec(parts[0]) is None:
            yield from (".".join(parts[: count + 1]) for count in range(len(parts)))


def import_star(module: str, place: dict[str, Any], wanted: Collection[str]) -> bool:
    """What `from … import *` does where the module is the code; False where it is not.

    A test gets what it uses (`wanted`) and has not got by itself: no name that it had changes its meaning.
    """
    code = importlib.import_module(module)
    if not isinstance(code, _Code):
        return False
    _, names = vars(code)["_found"]
    for name in wanted:
        if name in names and not name.startswith("_") and name not in place and not _taken(name, names[name]):
            place[name] = getattr(code, name)
    return True


def _taken(name: str, kind: list[Any]) -> bool:
    """Whether a name has a meaning for tests that the code must not change for them unless they ask for it by name."""
    return hasattr(builtins, name) or (kind == _OBJECT and name in MODULES)
