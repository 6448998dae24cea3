# SPDX-License-Identifier: Apache-2.0
"""A store behind an address: its objects listed, read and written by fsspec, with errors of one kind and retries.

Credentials come from where each cloud's own tools look for them: the environment, its files of settings, the machine.
`options` are handed to fsspec's filesystem as they are, and are never shown or written down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from reward_kit.errors import ConfigError, MissingExtraError, needs_extra
from reward_kit.redaction import remember_settings
from reward_kit.stores.addresses import EXTRAS, scheme_of
from reward_kit.stores.reasons import StoreError, store_error

__all__ = ["Facts", "Store"]

Found = TypeVar("Found")

_ATTEMPTS = 6
_FIRST_WAIT = 0.2
_LONGEST_WAIT = 6.0
_VERSIONS = ("ETag", "etag", "generation", "blob_id", "oid", "md5Hash", "mtime", "LastModified", "updated", "created")
"""What stores call that which changes with an object's content, the surest first."""


class Facts(NamedTuple):
    """What a store says of an object."""

    address: str
    size: int
    version: str | None
    """Another one when the content is another; None where the store tells nothing of the kind."""
    is_folder: bool = False


class Store:
    """The filesystem that `address` is in. Nothing is asked of it until something is wanted."""

    def __init__(self, address: str, options: Mapping[str, Any] | None = None, *, attempts: int = _ATTEMPTS) -> None:
        """Find the filesystem. A package that is missing, or a scheme that nobody knows, is an error."""
        remember_settings({"storage_options": dict(options or {})})
        self._fs = _filesystem(address, dict(options or {}))
        self._attempts = attempts

    def facts(self, address: str) -> Facts | None:
        """What there is at `address`; None where there is nothing."""
        try:
            return self._facts(self._ask(lambda: self._afresh.info(self._path(address))))
        except StoreError as error:
            if error.missing:
                return None
            raise

    def inside(self, folder: str) -> list[Facts]:
        """What lies directly in a folder, in the order of the names; nothing where there is no such folder."""
        try:
            entries = self._ask(lambda: self._afresh.ls(self._path(folder), detail=True))
        except StoreError as error:
            if error.missing:
                return []
            raise
        own = self._path(folder).rstrip("/")
        found = [self._facts(entry) for entry in entries if str(entry["name"]).rstrip("/") != own]
        return sorted(found, key=lambda facts: facts.address)

    def matching(self, pattern: str) -> list[Facts]:
        """The objects that a glob matches, in the order of their names."""
        found: dict[str, dict[str, Any]] = self._ask(lambda: self._afresh.glob(self._path(pattern), detail=True))
        facts = [self._facts(entry) for entry in found.values()]
        return sorted((one for one in facts if not one.is_folder), key=lambda facts: facts.address)

    def read(self, address: str, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`, all of them: what is cut off on its way is asked for again."""

        def ask() -> bytes:
            data: bytes = self._fs.cat_file(self._path(address), start=start, end=end)
            if len(data) != end - start:
                raise StoreError(f"{len(data)} of {end - start} bytes came", transient=True)
            return data

        return self._ask(ask) if end > start else b""

    def read_whole(self, address: str) -> bytes:
        """A small object."""
        data: bytes = self._ask(lambda: self._fs.cat_file(self._path(address)))
        return data

    def write(self, address: str, data: bytes, *, only_new: bool = False) -> None:
        """Write an object whole. `only_new`: unless there is one already, which is a `StoreError` that `exists`."""
        path = self._path(address)
        if not only_new:
            self._ask(lambda: self._fs.pipe_file(path, data))
            return
        try:
            self._ask(lambda: self._fs.pipe_file(path, data, mode="create"))
        except StoreError as error:
            # What was sent twice, because the first answer was lost, is there by our own doing.
            if not (error.exists or "PreconditionFailed" in str(error) or "pre-conditions" in str(error)):
                raise
            if self.read_whole(address) != data:
                raise StoreError(str(error), exists=True) from error

    def put(self, local: Path, address: str) -> None:
        """Copy a file of this machine into the store."""
        self._ask(lambda: self._fs.put_file(str(local), self._path(address)))
        facts = self.facts(address)
        if facts is None or facts.size != local.stat().st_size:
            raise StoreError(
                f"{0 if facts is None else facts.size} of {local.stat().st_size} bytes came", transient=True
            )

    def copy(self, address: str, target: str) -> None:
        """Copy an object inside the store."""
        self._ask(lambda: self._fs.cp_file(self._path(address), self._path(target)))

    def delete(self, addresses: Iterable[str]) -> None:
        """Delete objects; those that are gone already are no error."""
        for address in addresses:
            try:
                self._ask(partial(self._fs.rm_file, self._path(address)))
            except StoreError as error:
                if not error.missing:
                    raise

    # -- fsspec

    def _path(self, address: str) -> str:
        return str(self._fs._strip_protocol(address))

    @property
    def _afresh(self) -> Any:
        """The filesystem, which will ask the store and not tell what it remembers of it."""
        self._fs.invalidate_cache()
        return self._fs

    def _facts(self, info: Mapping[str, Any]) -> Facts:
        version = next((f"{name}={info[name]}" for name in _VERSIONS if info.get(name)), None)
        address = str(self._fs.unstrip_protocol(str(info["name"])))
        return Facts(address, int(info.get("size") or 0), version, info.get("type") == "directory")

    def _ask(self, action: Callable[[], Found]) -> Found:
        """What the action returns. Errors that may pass are waited out a few times; the last one is raised."""
        wait = _FIRST_WAIT
        for left in range(self._attempts - 1, -1, -1):
            try:
                return action()
            except Exception as error:  # a named boundary: each store's package has errors of its own
                found = store_error(error)
                if not (found.transient and left):
                    raise found from error
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        raise AssertionError("the last attempt returns or raises")


def _filesystem(address: str, options: dict[str, Any]) -> Any:
    scheme = scheme_of(address)
    extra = EXTRAS.get(scheme, "aws")
    with needs_extra(f"Reading or writing {scheme}://", extra):
        import fsspec
        from fsspec.registry import known_implementations
    try:
        kind = fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        if scheme in EXTRAS:
            raise MissingExtraError(f"Reading or writing {scheme}://", extra) from error
        advice = str(known_implementations.get(scheme, {}).get("err", "")).rstrip(".")
        raise ConfigError(f"{address!r} needs a package that is not installed. {advice}.") from error
    except ValueError as error:
        raise ConfigError(
            f"{address!r} begins with {scheme}://, which is not a known kind of store. Use s3://, gs:// or hf://, or a "
            "path."
        ) from error
    try:
        # An instance of our own: one that fsspec remembers has the credentials and the endpoint of another time.
        return kind(**options, skip_instance_cache=True)
    except Exception as error:
        raise store_error(error) from error
