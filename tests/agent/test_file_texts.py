# SPDX-License-Identifier: Apache-2.0
"""What a model is shown of a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.agent.file_texts import file_text
from reward_kit.agent.tools import ToolError


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20), st.integers(0, 40))
def test_a_cut_through_a_character_leaves_it_out_and_makes_no_file_binary(text: str, most: int) -> None:
    shown = file_text("f", text.encode(), most)
    assert text.startswith(shown)
    assert len(shown.encode()) <= most < len(shown.encode()) + 4 or shown == text
    assert file_text("f", text.encode()) == text


def test_the_size_that_is_said_is_of_the_whole_file() -> None:
    with pytest.raises(ToolError, match=r"'f' is a binary file of 2,000,001 bytes"):
        file_text("f", b"\xff" + bytes(2_000_000), 10)
