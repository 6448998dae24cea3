# SPDX-License-Identifier: Apache-2.0
"""Where an exception was raised, as text for a record: file, line and code of each frame, of bounded length.

    Traceback (most recent call last):
      File "rewards.py", line 12, in right
        return float(row["answer"] == text)
    KeyError: 'answer'

The frames of reward-kit that only lead to somebody's code are left out. Files below the current directory are named
from there, so that a record does not tell where somebody keeps them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from reward_kit.errors import message_of

__all__ = ["raised_where"]

_PACKAGE = str(Path(__file__).parent) + os.sep
_REWARDS = str(Path(__file__).parent / "rewards") + os.sep

_FIRST_FRAMES, _LAST_FRAMES = 5, 15
"""Of a longer traceback, such as that of an endless recursion, the middle is left out."""
_LONGEST_LINE = 200
_LONGEST_CHAIN = 4
"""Exceptions that led to one another."""
_LONGEST = 6000
"""Characters in all; the end is kept, since it tells most."""

_Frame: TypeAlias = tuple[str, int, str]
"""File, line, and the name of the function."""


def raised_where(error: BaseException) -> str:
    """The traceback of an exception, with those that it came from before it."""
    parts: list[str] = []
    for reached, link in _chain(error):
        parts.append(_one(reached) + (f"\n\n{link}\n\n" if link else ""))
    text = "".join(reversed(parts))
    return text if len(text) <= _LONGEST else f"…{text[-_LONGEST:]}"


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """The exception, then the one that it came from, and so on; each with how it led to the one before."""
    reached: BaseException | None = error
    link = ""
    for _ in range(_LONGEST_CHAIN):
        if reached is None:
            return
        yield reached, link
        if reached.__cause__ is not None:
            reached, link = reached.__cause__, "It was the cause of the following:"
        elif isinstance(reached, BaseExceptionGroup):
            reached, link = reached.exceptions[0], "It is the first of the following group:"
        else:
            reached = None if reached.__suppress_context__ else reached.__context__
            if reached is not None and not _of_its_author([*_frames(reached.__traceback__)]):
                return  # reward-kit handled something of its own when it called the reward
            link = "While it was handled, the following was raised:"


def _one(error: BaseException) -> str:
    every = [*_frames(error.__traceback__)]
    frames = _of_its_author(every) or every
    left_out = len(frames) - _FIRST_FRAMES - _LAST_FRAMES
    lines = [_shown(frame) for frame in frames]
    if left_out > 0:
        lines[_FIRST_FRAMES:-_LAST_FRAMES] = [f"  … {left_out} more …"]
    lines.append(_cut(f"{type(error).__name__}: {message_of(error)}"))
    return "\n".join(["Traceback (most recent call last):", *lines])


def _frames(trace: TracebackType | None) -> Iterator[_Frame]:
    while trace is not None:
        code = trace.tb_frame.f_code
        yield code.co_filename, trace.tb_lineno, code.co_name
        trace = trace.tb_next


def _of_its_author(frames: list[_Frame]) -> list[_Frame]:
    """The frames from the first on that is the reward's own."""
    for position, (file, _, _) in enumerate(frames):
        if not file.startswith(_PACKAGE) or file.startswith(_REWARDS):
            return frames[position:]
    return []


def _shown(frame: _Frame) -> str:
    import linecache  # here: only a reward that raises needs it

    file, line, function = frame
    code = linecache.getline(file, line).strip()
    return f'  File "{_from_here(file)}", line {line}, in {function}' + (f"\n    {_cut(code)}" if code else "")


def _from_here(file: str) -> str:
    try:
        here = os.getcwd() + os.sep
    except OSError:  # it was removed
        return file
    return file.removeprefix(here)


def _cut(text: str) -> str:
    line = " ".join(text.split("\n"))
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
