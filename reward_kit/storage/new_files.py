# SPDX-License-Identifier: Apache-2.0
"""Where a command may write a file that a person named: in the place of nothing but its own earlier file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reward_kit.errors import ConfigError
from reward_kit.storage.at_hand import exists
from reward_kit.storage.batch_journal import BATCHES
from reward_kit.storage.reviews import COUNT_OF_REVIEWS, REVIEWS
from reward_kit.storage.run_directory import OWN_FILES, RESULTS, ROLLOUTS
from reward_kit.storage.turn_journal import EPISODES
from reward_kit.stores.addresses import beside, is_stored, last_name

__all__ = ["check_new_file", "check_not_of_a_run", "is_run_directory"]

_JOURNALS = (ROLLOUTS, RESULTS, EPISODES, BATCHES)
_SIGNS_IN_A_STORE = (*_JOURNALS, "manifest.json", "mirror.json")
_TABLES = (".parquet", ".pq")


def is_run_directory(directory: Path) -> bool:
    """Whether a run lives here: it has a journal, or was entered and has none yet."""
    return any((directory / name).exists() for name in _JOURNALS) or (
        (directory / ".lock").exists() and (directory / "manifest.json").exists()
    )


def check_not_of_a_run(target: Path | str, option: str) -> None:
    """Refuse a target that is a run's own file, or has the name of one and is beside a run; also in a store."""
    if isinstance(target, str) and is_stored(target):
        own = _is_own(last_name(target)) and any(exists(beside(target, name)) for name in _SIGNS_IN_A_STORE)
    else:
        place = Path(target).resolve()  # a link leads to what would be lost
        own = _is_own(place.name) and is_run_directory(place.parent)
    if own:
        raise ConfigError(
            f"{str(target)!r} is a file of the run itself, and stays as it is. Name another file with {option}."
        )


def check_new_file(
    target: Path, option: str, kind: str, is_earlier: Callable[[Path], bool], *, beside_a_run: bool
) -> None:
    """Refuse a target that is a run's own file, or a file that is not an earlier one of this `kind`.

    `beside_a_run`: a name that is none of the run's own may be in a run directory. `is_earlier` is asked of a file that
    exists.
    """
    check_not_of_a_run(target, option)
    place = target.resolve()
    advice = f"Name another file with {option}."
    if not beside_a_run and is_run_directory(place.parent):
        raise ConfigError(f"{str(target)!r} is in a run directory. Name a file outside of it with {option}.")
    if place.suffix.lower() in _TABLES or place.name.lower().endswith((f".{REVIEWS}", f".{COUNT_OF_REVIEWS}")):
        raise ConfigError(f"{str(target)!r} has the name of a table of answers, or of its reviews. {advice}")
    if place.exists() and not _may_go(place, is_earlier):
        raise ConfigError(
            f"{str(target)!r} exists, and is not {kind} that this command wrote. It stays as it is. {advice}"
        )


def _is_own(name: str) -> bool:
    return name.casefold() in OWN_FILES  # some file systems take Results.jsonl for results.jsonl


def _may_go(place: Path, is_earlier: Callable[[Path], bool]) -> bool:
    if not place.is_file():  # a device or a pipe; reading one may never end
        return False
    try:
        return is_earlier(place)
    except OSError:  # nobody knows what it is
        return False
