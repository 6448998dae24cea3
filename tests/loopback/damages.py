# SPDX-License-Identifier: Apache-2.0
"""What disks and people do to files: each takes the bytes of one, and dice."""

from __future__ import annotations

import random

__all__ = ["BYTES", "LINES", "cut", "flip"]


def flip(content: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << dice.randrange(8)]) + content[place + 1 :]


def overwrite(content: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(content))
    return content[:place] + bytes([dice.choice(b'019aez"},:{ \n\0\xff')]) + content[place + 1 :]


def delete(content: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(content))
    return content[:place] + content[place + dice.randint(1, 9) :]


def repeat(content: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(content))
    return content[:place] + content[place : place + dice.randint(1, 9)] + content[place:]


def zeros(content: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(content))
    part = content[place : place + 64]
    return content[:place] + bytes(len(part)) + content[place + len(part) :]


def in_the_tail(content: bytes, dice: random.Random) -> bytes:
    """The checksum itself, and what tells that there is one."""
    lines = content.splitlines(keepends=True)
    place = dice.randrange(len(lines))
    tail = lines[place][-24:]
    lines[place] = lines[place][:-24] + dice.choice([flip, overwrite, delete])(tail, dice)
    return b"".join(lines)


def cut(content: bytes, dice: random.Random) -> bytes:
    return content[: dice.randrange(len(content))]


def cut_lines(content: bytes, dice: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join(lines[: dice.randrange(len(lines))])


def drop_line(content: bytes, dice: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    del lines[dice.randrange(len(lines))]
    return b"".join(lines)


def double_line(content: bytes, dice: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join([*lines, dice.choice(lines)])


def swap_lines(content: bytes, dice: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    dice.shuffle(lines)
    return b"".join(lines)


BYTES = (flip, flip, overwrite, delete, repeat, zeros, in_the_tail)
LINES = (cut, cut_lines, drop_line, double_line, swap_lines)
