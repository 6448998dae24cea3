# SPDX-License-Identifier: Apache-2.0
"""For a name that does not exist: the existing name that looks most like it."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """` (did you mean 'math'?)` with the known name that is nearest to `name`; the empty text if none is near.

    `cutoff` says how alike two names must be, from 0 (any two names) to 1 (the same name).
    """
    import difflib

    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f" (did you mean {nearest[0]!r}?)" if nearest else ""
