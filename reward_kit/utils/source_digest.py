# SPDX-License-Identifier: Apache-2.0
"""A digest of the source that defines an object: it changes when somebody edits the code, and not from run to run."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

__all__ = ["source_digest", "source_of", "stable_bytes"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
"""Types whose `repr` says everything, and says it the same way in every process."""


def source_digest(obj: Any) -> str:
    """The sha256 (hex) of the whole file that defines `obj`, and of its name in there.

    Decorators, partials and bound methods are looked through. What depends on more than its file (a lambda, a closure,
    a partial's arguments) adds its code and the plain values it holds; what has no file (a REPL) is described by these.
    """
    digest = hashlib.sha256()
    for part in _parts(obj):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _parts(obj: Any) -> Iterable[bytes]:
    if isinstance(obj, functools.partial):
        yield from (b"partial", stable_bytes(obj.args), stable_bytes(obj.keywords))
        yield from _parts(obj.func)
        return
    definition = _definition(obj)
    name = definition.__qualname__ if hasattr(definition, "__qualname__") else type(definition).__qualname__
    source = source_of(definition)
    yield name.encode()
    yield source if source is not None else f"{definition.__module__}".encode()
    if isinstance(definition, FunctionType) and (source is None or "<" in name):
        yield from (
            stable_bytes(definition.__code__),
            stable_bytes(definition.__defaults__),
            stable_bytes(definition.__kwdefaults__),
        )
        yield stable_bytes([_cell(cell) for cell in definition.__closure__ or ()])


def _definition(obj: Any) -> Any:
    """The function or class that holds the code: decorators and bindings undone, an instance replaced by its class."""
    obj = inspect.unwrap(obj) if callable(obj) else obj
    if isinstance(obj, MethodType):
        return _definition(obj.__func__)
    return obj if hasattr(obj, "__qualname__") else type(obj)


def source_of(definition: Any) -> bytes | None:
    """The whole file that defines a function or a class; None where there is none."""
    file = definition.__code__.co_filename if isinstance(definition, FunctionType) else _module_file(definition)
    try:
        return Path(file).read_bytes() if file else None
    except OSError:  # "<stdin>", or a file that is gone
        return None


def _module_file(definition: Any) -> str | None:
    module = sys.modules.get(definition.__module__ or "")
    return module.__file__ if module is not None and hasattr(module, "__file__") else None


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name the enclosing function has not bound yet
        return None


def stable_bytes(value: Any) -> bytes:
    """Bytes that are the same in every process for the same plain value; other objects are described by their type."""
    if isinstance(value, CodeType):
        return b"code" + value.co_code + stable_bytes([*value.co_consts, value.co_names, value.co_varnames])
    if isinstance(value, (tuple, list)):
        return b"[" + b",".join(map(stable_bytes, value)) + b"]"
    if isinstance(value, (set, frozenset)):
        return b"{" + b",".join(sorted(map(stable_bytes, value))) + b"}"
    if isinstance(value, Mapping):
        return (
            b"{"
            + b",".join(sorted(stable_bytes(key) + b":" + stable_bytes(item) for key, item in value.items()))
            + b"}"
        )
    if isinstance(value, FunctionType):
        return source_digest(value).encode()
    kind = type(value)
    return (repr(value) if kind in _PLAIN else f"{kind.__module__}.{kind.__qualname__}").encode()
