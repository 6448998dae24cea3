# SPDX-License-Identifier: Apache-2.0
"""What the first rows of a run lack that its rewards ask for, or give that they must not: said before anything is paid.

    works ──▶ the first rows that are owed: a ground truth? each column? none that chooses what runs here? ──▶ works

Only as many rows are looked at as it takes to find one that has what is asked for, and never more than a few: a column
that chooses may be empty in most rows.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator
from typing import Final

from reward_kit.datasets.columns import nearest_columns
from reward_kit.errors import ConfigError
from reward_kit.execution.owed import Work
from reward_kit.models import Sample
from reward_kit.reward_call import RESOURCES, RewardCall
from reward_kit.scoring.rewards import Rewards

__all__ = ["looked_at"]

_log = logging.getLogger(__name__)

_MOST: Final = 20
"""Rows that are read before the first is asked, where none of them has what a reward asks for."""
_MOST_OF_SPLITS: Final = 10_000
"""Rows that are read to see one of each split that has a reward of its own."""


def looked_at(
    works: Iterator[Work], rewards: Rewards, *, ahead: bool = True, keep_going: bool = False
) -> Iterator[Work]:
    """The same works. Before the first one, an error or a warning where the rows of a reward cannot be judged.

    Where splits have rewards of their own, it may read far `ahead` to see a row of each; where it may not, the first
    row alone tells what the data give that only the operator may choose. A run that keeps going has a row that gives it
    cost itself alone.
    """
    refuses = 0 if keep_going else _MOST if ahead else 1
    looks = {id(reward): _Look(reward.call, refuses) for reward in rewards.named.values()}
    looks = {name: look for name, look in looks.items() if look.open}
    ahead = ahead and len(rewards.named) > 1
    held: list[Work] = []
    for work in works:
        held.append(work)
        asking = looks.get(id(rewards.of(work.sample.split))) if work.draws or work.rollouts else None
        if asking is not None:
            asking.see(work.sample)
        if len(held) >= (_MOST_OF_SPLITS if ahead else _MOST):
            _say(looks)
            ahead = False
        looks = {name: look for name, look in looks.items() if look.open}
        if any(look.rows or ahead for look in looks.values()):
            continue
        yield from held
        held.clear()
        if not looks:
            yield from works
    _say(looks)
    yield from held


class _Look:
    """What one reward asks for, and has not been seen in a row yet."""

    def __init__(self, call: RewardCall, refuses: int) -> None:
        """`refuses`: in how many rows to look for what the data must not choose."""
        self._call = call
        self._refuses = refuses if call.operators else 0
        self.lacks = {*call.unfilled(RESOURCES), *(["ground_truth"] if call.wants("ground_truth") else [])}
        self.rows = 0
        self._columns: dict[str, object] = {}

    @property
    def open(self) -> bool:
        """Whether there is anything left to look for."""
        return bool(self.lacks) or self.rows < self._refuses

    def see(self, sample: Sample) -> None:
        """Take account of a row."""
        if self.rows < self._refuses and (why := self._call.refused(sample.columns)):
            raise ConfigError(why)
        self.rows += 1
        self._columns |= sample.columns
        self.lacks -= sample.columns.keys() - {"ground_truth"}
        if sample.ground_truth is not None:
            self.lacks.discard("ground_truth")
        if self.rows >= _MOST:
            self.say()

    def say(self) -> None:
        """Raise or warn of what none of the rows had."""
        rows = "the row" if self.rows == 1 else f"none of the first {self.rows} rows"
        has = "has no" if self.rows == 1 else "has a"
        for name in sorted(self.lacks - {"ground_truth"}):
            raise ConfigError(
                f"Reward {self._call.name!r} needs {name!r}, and {rows} {has} column of that name "
                f"({nearest_columns(name, self._columns)}). Write "
                f"`dataset.column_mapping={{{name}: COLUMN}}` with the column that holds it, set "
                f"`reward.params.{name}`, or give the parameter a default."
            )
        reads = "ground_truth" in self.lacks and _reads(self._call, "ground_truth")
        if reads or ("ground_truth" in self.lacks and self._call.requires("ground_truth")):
            said = (
                f"Reward {self._call.name!r} names 'ground_truth', and {rows} {has} ground truth "
                f"({nearest_columns('ground_truth', self._columns)}). Write "
                "`dataset.column_mapping={ground_truth: COLUMN}` with the column that holds it."
            )
            if reads and self._call.requires("ground_truth"):
                raise ConfigError(f"{said} If the reward can do without, write `ground_truth=None` in its signature.")
            _log.warning("%s", said)
        self.lacks.clear()


def _say(looks: dict[int, _Look]) -> None:
    for look in looks.values():
        if look.rows:
            look.say()


def _reads(call: RewardCall, name: str) -> bool:
    """Whether the reward does anything with its parameter; many name one only because all rewards do."""
    import dis  # here: most rows have what is asked for

    if not call.requires(name) and call.func.__module__.startswith("reward_kit."):
        return False  # a reward of the library says itself what it lacks
    code = getattr(inspect.unwrap(call.func), "__code__", None)
    if code is None:
        return True
    used = (each.argval for each in dis.get_instructions(code) if each.opname.startswith(("LOAD", "STORE_DEREF")))
    return any(name in value if isinstance(value, tuple) else name == value for value in used)
