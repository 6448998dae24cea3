# SPDX-License-Identifier: Apache-2.0
"""Runs and tables of object stores, fetched to this machine for as long as somebody reads them."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from reward_kit.errors import StorageError
from reward_kit.storage.run_directory import RESULTS, ROLLOUTS
from reward_kit.storage.samples import SAMPLES
from reward_kit.stores.addresses import beside, is_stored, last_name, under
from reward_kit.stores.fetching import fetch_object, send
from reward_kit.stores.objects import StoredObject
from reward_kit.stores.reasons import StoreError
from reward_kit.stores.store import Facts, Store

__all__ = ["at_hand", "exists", "fetch_source", "written_to"]

_DOCUMENTS = ("manifest.json", "config.yaml", "summary.json")
"""Small files beside results that say what they mean."""


@contextlib.contextmanager
def at_hand(*sources: str | Path, rollouts: bool = False) -> Iterator[list[Path]]:
    """The sources as paths of this machine: those in a store are fetched, and deleted in the end.

    `rollouts`: also the rollouts of run directories, which most readers do not need.
    """
    with contextlib.ExitStack() as folders:
        paths = []
        for source in sources:
            if isinstance(source, str) and is_stored(source):
                folder = folders.enter_context(tempfile.TemporaryDirectory(prefix="reward-kit-"))
                paths.append(fetch_source(source, Path(folder), rollouts=rollouts))
            else:
                paths.append(Path(source))
        yield paths


def exists(name: str | Path) -> bool:
    """Whether there is a file of this name, on this machine or in a store."""
    if not (isinstance(name, str) and is_stored(name)):
        return Path(name).exists()
    with _said_of(name):
        return Store(name).facts(name) is not None


@contextlib.contextmanager
def written_to(name: str | Path) -> Iterator[Path]:
    """A path to write to; where `name` is in a store, what was written is copied there in the end, whole."""
    if not (isinstance(name, str) and is_stored(name)):
        yield Path(name)
        return
    with tempfile.TemporaryDirectory(prefix="reward-kit-") as folder:
        draft = Path(folder, last_name(name))
        yield draft
        with _said_of(name):
            send(draft, name)


@contextlib.contextmanager
def _said_of(address: str) -> Iterator[None]:
    """What goes wrong inside is said of `address`, with what to do."""
    try:
        yield
    except StoreError as error:
        raise StorageError(
            f"Cannot use {address!r}: {error}. Check the address, and the rights and credentials: the store's own "
            "environment variables."
        ) from error


def fetch_source(address: str, folder: Path, *, rollouts: bool = False) -> Path:
    """Fetch a file of results, a table, a run directory, or a mirror into `folder`; where it is now."""
    from reward_kit.storage.mirror.ownership import read_contents, read_owner  # for those who fetch only
    from reward_kit.storage.mirror.restoring import download

    wanted = {SAMPLES, RESULTS, *_DOCUMENTS, *([ROLLOUTS] if rollouts else [])}
    with _said_of(address):
        store = Store(address)
        if (owner := read_owner(store, address.rstrip("/"))) is not None:
            place = _made(folder / last_name(address))
            contents = read_contents(store, address.rstrip("/"), owner)
            contents.files = {name: file for name, file in contents.files.items() if name in wanted}
            download(store, address.rstrip("/"), contents, place)
            return place
        found = store.facts(address)
        if found is None:
            raise StoreError("there is no such object or folder", missing=True)
        if found.is_folder:
            return _fetch_folder(store, address, _made(folder / last_name(address)), wanted)
        return _fetch_file(store, found, folder, wanted)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _fetch_file(store: Store, found: Facts, folder: Path, wanted: Collection[str]) -> Path:
    """A file; beside the results of a run also what says what they mean."""
    folder = folder / last_name(beside(found.address, ""))  # the results of a run are called after their directory
    path = fetch_object(StoredObject(store, found), folder)
    if path.name == RESULTS:
        for name in set(wanted) - {RESULTS}:
            if (facts := store.facts(beside(found.address, name))) is not None:
                fetch_object(StoredObject(store, facts), folder)
    return path


def _fetch_folder(store: Store, address: str, place: Path, wanted: Collection[str]) -> Path:
    """The files of a run; of a folder of runs, as a sweep leaves it, those of each."""
    inside = store.inside(address)
    files = [facts for facts in inside if not facts.is_folder and last_name(facts.address) in wanted]
    if not any(last_name(facts.address) == RESULTS for facts in files):
        for run in (facts.address for facts in inside if facts.is_folder):
            if store.facts(under(run, RESULTS)) is not None:
                _fetch_folder(store, run, _made(place / last_name(run)), wanted)
        return place
    for facts in files:
        fetch_object(StoredObject(store, facts), place)
    return place
