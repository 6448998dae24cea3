# SPDX-License-Identifier: Apache-2.0
"""Processes that bubblewrap leaves behind as it exits, and whose time counts only when they have been waited for."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["await_orphans", "children"]


def children() -> set[int]:
    """The processes whose parent this one is, or has become."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(number) for text in map(Path.read_text, lists) for number in text.split()}


def await_orphans(others: set[int]) -> None:
    """Wait for all children but `others`, which were there before and stay."""
    while orphans := children() - others:
        for orphan in orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(orphan, 0)
