# SPDX-License-Identifier: Apache-2.0
"""What a server shows: the runs that were found, the database that sorts their rows, and who keeps reviews."""

from __future__ import annotations

import contextlib
import getpass
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from reward_kit.viewer import wire
from reward_kit.viewer.opened import OpenedRun
from reward_kit.viewer.problems import NotThere
from reward_kit.viewer.queries import Database
from reward_kit.viewer.rows import Orders
from reward_kit.viewer.sources import find_runs

__all__ = ["NoReviews", "Reviews", "Viewer", "open_viewer"]


class Reviews(Protocol):
    """What the pages need to know of reviews."""

    def count(self, run: OpenedRun) -> int:
        """How many decisions there are on a run's records."""

    def of_sample(self, run: OpenedRun, name: str) -> Mapping[int, wire.Review]:
        """The last word of whoever looks now on each candidate of a sample, by candidate."""


class NoReviews:
    """Where nobody reviews."""

    def count(self, run: OpenedRun) -> int:
        """None."""
        return 0

    def of_sample(self, run: OpenedRun, name: str) -> Mapping[int, wire.Review]:
        """None."""
        return {}


@dataclass(frozen=True)
class Viewer:
    """What is shown, to whom, and what they may do."""

    runs: Mapping[str, OpenedRun]
    """By their keys. A request can name these and nothing else."""
    database: Database
    allow_run: bool = False
    reviewer: str = ""
    reviews: Reviews = field(default_factory=NoReviews)
    orders: Orders = field(default_factory=Orders)

    def run(self, key: str) -> OpenedRun:
        """The run of this key."""
        found = self.runs.get(key)
        if found is None:
            raise NotThere("There is no such run here. Go back to the overview.")
        return found


@contextlib.contextmanager
def open_viewer(
    paths: Sequence[Path], *, allow_run: bool = False, reviewer: str | None = None, reviews: Reviews | None = None
) -> Iterator[Viewer]:
    """A viewer over the runs at and under these paths."""
    found = find_runs(paths)
    database = Database([one.path for one in found if one.is_table])
    with contextlib.closing(database):
        runs = {one.key: OpenedRun(one, database) for one in found}
        yield Viewer(runs, database, allow_run, reviewer or _user(), reviews or NoReviews())


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "me"
