# SPDX-License-Identifier: Apache-2.0
"""The README's picture: what is on the screen in the end is drawn, and the picture loads nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.record_terminal import ROOT, screen, typed


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("one\r\ntwo\r\n", ["one", "two"]),
        ("10 %\r\x1b[2K100 %\r\n", ["100 %"]),
        ("bar\r\nrate\x1b[1A\r\x1b[2Kdone\r\nfast", ["done", "fast"]),
        ("bar\r\n\x1b[1A\x1b[2K\r", []),
        ("\x1b[?25l\x1b[1mbold\x1b[0m\x1b[?25h\r\n", ["\x1b[1mbold\x1b[0m"]),
    ],
)
def test_what_is_left_on_the_screen(written: str, left: list[str]) -> None:
    assert screen(written) == left


def test_a_command_sees_a_terminal(tmp_path: Path) -> None:
    assert screen(typed("test -t 1 && tput cols", tmp_path)) == ["96"]


def test_a_command_that_fails_gives_no_picture(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"'echo why; exit 3' ended with 3:\s+why"):
        typed("echo why; exit 3", tmp_path)


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "images").glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_shows_no_path_of_the_machine_it_was_made_on(picture: Path) -> None:
    shown = re.findall(r">([^<>]+)</text>", picture.read_text(encoding="utf-8"))
    assert len(shown) > 10 and [text for text in shown if re.search(r"(?:^|;|\s)/\w", text)] == []


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "images").glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_loads_nothing(picture: Path) -> None:
    addresses = re.findall(r"https?://[^\"' )]+", picture.read_text(encoding="utf-8"))
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
