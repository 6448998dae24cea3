"""What the engine calls a setting, a command with flags calls by its flag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = ["spoken_in_flags"]


@contextmanager
def spoken_in_flags(names: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Let the engine's errors name the flags of this command instead of the settings of a config."""
    from reward_kit.errors import RewardKitError

    try:
        yield
    except RewardKitError as error:
        text = str(error)
        for setting, flag in names:
            text = text.replace(setting, flag)
        if text != str(error):
            error.args = (text, *error.args[1:])
        raise
