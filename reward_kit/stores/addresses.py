# SPDX-License-Identifier: Apache-2.0
"""Which names are addresses in an object store, and what they are made of. Nothing heavy is imported to tell."""

from __future__ import annotations

import re
from os import PathLike

__all__ = ["EXTRAS", "beside", "is_stored", "last_name", "scheme_of", "under"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

EXTRAS = {"s3": "aws", "s3a": "aws", "gs": "gcp", "gcs": "gcp", "hf": "hf"}
"""The extra that brings the package for each scheme. Any of them brings fsspec itself."""


def is_stored(name: str | PathLike[str] | None) -> bool:
    """Whether `name` is an address such as `s3://bucket/data.jsonl`, and not a path on this machine."""
    return isinstance(name, str) and _SCHEME.match(name) is not None


def scheme_of(address: str) -> str:
    """`s3` of `s3://bucket/data.jsonl`."""
    match = _SCHEME.match(address)
    if match is None:
        raise ValueError(f"{address!r} is not an address")
    return match[1].lower()


def under(address: str, *names: str) -> str:
    """The address of something inside the folder `address`."""
    return "/".join([address.rstrip("/"), *names])


def beside(address: str, name: str) -> str:
    """The address of `name` in the folder that `address` is in."""
    return f"{address.rstrip('/').rpartition('/')[0]}/{name}"


def last_name(address: str) -> str:
    """`data.jsonl` of `s3://bucket/data.jsonl`."""
    return address.rstrip("/").rpartition("/")[2]
