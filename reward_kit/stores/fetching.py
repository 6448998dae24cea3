# SPDX-License-Identifier: Apache-2.0
"""Objects of a store copied to this machine, for those who need a real file, and files of this machine copied there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reward_kit.stores.objects import StoredObject
from reward_kit.stores.reasons import StoreError
from reward_kit.stores.store import Store

__all__ = ["fetch", "fetch_object", "send"]

_PIECE = 8 << 20


def fetch(address: str, folder: Path, options: Mapping[str, Any] | None = None) -> Path:
    """Copy the object at `address` into `folder`, under its own name; where it is now."""
    store = Store(address, options)
    facts = store.facts(address)
    if facts is None or facts.is_folder:
        raise StoreError("there is no such object", missing=True)
    return fetch_object(StoredObject(store, facts), folder)


def fetch_object(stored: StoredObject, folder: Path) -> Path:
    """The same for an object that was found already."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / stored.name
    with stored.open_raw() as source, target.open("wb") as copy:
        while piece := source.read(_PIECE):
            copy.write(piece)
    return target


def send(path: Path, address: str, options: Mapping[str, Any] | None = None) -> None:
    """Copy a file of this machine to `address`, whole."""
    Store(address, options).put(path, address)
