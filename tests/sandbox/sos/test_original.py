# SPDX-License-Identifier: Apache-2.0
"""What is typed into the original server's terminal is plain, and means what was meant."""

from __future__ import annotations

import subprocess

from hypothesis import example, given, settings
from hypothesis import strategies as st

from reward_kit.sandbox.sos.original import quoted

TEXTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40)


@given(text=TEXTS)
def test_a_quoted_command_holds_nothing_a_terminal_acts_on(text: str) -> None:
    assert quoted(text).isprintable() and quoted(text).isascii() and "!" not in quoted(text)


@settings(max_examples=25)
@given(text=TEXTS)
@example(text="!! `$(x)` \\n 'q' \"d\" \t end\\")
def test_a_quoted_command_reaches_the_shell_as_it_was(text: str) -> None:
    said = subprocess.run(["bash", "-c", f"printf %s {quoted(text)}"], capture_output=True, check=True)
    assert said.stdout == text.encode()
