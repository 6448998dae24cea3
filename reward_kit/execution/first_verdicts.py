# SPDX-License-Identifier: Apache-2.0
"""Whether a reward works at all: told by the first verdicts of a run, so that no more is paid for one that does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from reward_kit.execution.split_rewards import unverified
from reward_kit.models import Failure, Record
from reward_kit.scoring.rewards import Rewards

__all__ = ["FirstVerdicts"]

_MANY: Final = 20
"""Answers that fail alike before it is clear that the others would, too."""
_VALUES: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|\b\w*\d\w*\b|[-+]?\d[\d.,]*")
"""What differs between two messages that say the same: what is quoted, and whatever has a digit."""
_LONGEST: Final = 300


class FirstVerdicts:
    """Looks at the verdicts of each reward until one of them is another than its first, and at none after that."""

    def __init__(self, stop: Callable[[str], None], rewards: Rewards) -> None:
        """`stop` is told why a run had better end."""
        self._stop, self._rewards = stop, rewards
        self._open = {id(each): _Alike() for each in rewards.named.values() if each.call.func is not unverified}

    @property
    def done(self) -> bool:
        """Whether there is nothing left to look for."""
        return not self._open

    def see(self, record: Record) -> None:
        """Take account of a verdict. An answer that could not be had is none."""
        reward = id(self._rewards.of(record.rollout.sample.split))
        alike, failure = self._open.get(reward), record.failure
        if alike is None or record.rollout.failure is not None:
            return
        if failure is None or not alike.holds(failure):
            del self._open[reward]
        elif alike.count == _MANY:
            self._open.clear()
            self._stop(_sentence(failure))


@dataclass
class _Alike:
    """Failures that say the same."""

    count: int = 0
    way: tuple[str, str] | None = None

    def holds(self, failure: Failure) -> bool:
        """Whether one more says the same, which is counted."""
        way = _way_of(failure)
        self.way = self.way or way
        self.count += 1
        return self.way == way


def _way_of(failure: Failure) -> tuple[str, str]:
    return failure.type, _VALUES.sub("…", failure.message)


def _sentence(failure: Failure) -> str:
    message = " ".join(failure.message.split())
    message = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
    return (
        f"The first {_MANY} answers could not be judged, all for the same reason, such as: {message.rstrip('.')}. "
        "No more is asked. Mend the reward, or what it needs, then run the same again: answers that are here are "
        "judged, and not asked for again. With `keep_going` it does not stop here."
    )
