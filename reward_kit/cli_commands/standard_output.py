"""Keeping standard output for what was asked for, whatever user code prints meanwhile."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

__all__ = ["prints_on_stderr"]

_OUT, _ERR = 1, 2


@contextlib.contextmanager
def prints_on_stderr(*, when: bool = True) -> Iterator[None]:
    """Let what anyone writes to standard output, a program that a reward starts included, go to standard error."""
    if not when or sys.stdout is None:  # None: it was closed before we began
        yield
        return
    sys.stdout.flush()
    kept = os.dup(_OUT)
    os.dup2(_ERR, _OUT)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, _OUT)
        os.close(kept)
