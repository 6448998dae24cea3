# SPDX-License-Identifier: Apache-2.0
"""Pickles that can only make values: a checkpoint is read without running anything that it names.

A pickle may name any function and have it called. Here it may name the types of plain values, and the classes that the
reader allows; all else is refused.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Container
from typing import Any

__all__ = ["dumps", "loads"]

_PLAIN = {
    "builtins": {"bytearray", "complex", "frozenset", "range", "set", "slice"},
    "collections": {"Counter", "OrderedDict", "deque"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "uuid": {"UUID"},
}
"""Types whose making has no effect beyond the value itself."""


class _Reader(pickle.Unpickler):
    """Reads values of plain types and of the `allowed` classes, which are named as `module:Class`."""

    def __init__(self, file: io.BytesIO, allowed: Container[str]) -> None:
        super().__init__(file)
        self._allowed = allowed

    def find_class(self, module: str, name: str) -> Any:
        """The class that a pickle names, if it may."""
        if name in _PLAIN.get(module, ()) or f"{module}:{name}" in self._allowed:
            return super().find_class(module, name)
        raise ValueError(
            f"the state names {module}.{name}, which is not read from a pickle. If you trust it, list "
            f"'{module}:{name}' under 'allowed_classes' in the config of the resource."
        )


def dumps(value: Any) -> bytes:
    """`value` as a pickle."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def loads(data: bytes, allowed: Container[str] = ()) -> Any:
    """The value of a pickle that may come from anywhere; a ValueError where it is damaged, or names anything else."""
    try:
        return _Reader(io.BytesIO(data), allowed).load()
    except Exception as error:  # a named boundary: damaged bytes raise anything
        if isinstance(error, ValueError) and "allowed_classes" in str(error):
            raise
        raise ValueError(f"the state cannot be read: {error}. Give the bytes that checkpoint() returned.") from error
