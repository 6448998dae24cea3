# SPDX-License-Identifier: Apache-2.0
"""What of an answer is prose: code is cut out as Markdown means it, and words are alike however they are dressed."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.rewards._support.prose import outside_code, plain_words


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("a `b` c", "a   c"),
        ("a\n```\nb\n```\nc", "a\n\n\nc"),
        ("a\n~~~ python\nb\n~~~\nc", "a\n\n\nc"),
        ("a\n````\n```\nb\n```\n````\nc", "a\n\n\nc"),
        ("a\n```\nb\n~~~\nc", "a\n"),
        ("a ``` b", "a ``` b"),
        ("a\n``` `b` ```\nc", "a\n \nc"),
        ("a ``b ` c`` d ` e ``` f", "a   d ` e ``` f"),
        ("`` a `b` c", "`` a   c"),
        ("it's 5` and 6`\n` no", "it's 5 \n` no"),
    ],
)
def test_code_is_cut_out(text: str, prose: str) -> None:
    assert outside_code(text) == prose


@given(st.text(alphabet=st.characters(exclude_characters="`~")))
def test_what_has_no_fence_is_left_as_it_is(text: str) -> None:
    assert outside_code(text) == text


@given(st.lists(st.text(alphabet="abc`~ \n", max_size=6)))
def test_nothing_is_made_up(parts: list[str]) -> None:
    text = "".join(parts)
    left = iter(text)
    assert all(letter in left for letter in outside_code(text) if letter in "abc")


@given(st.text(alphabet="abcdeéñü xyz", max_size=60))
def test_words_are_alike_in_any_dress(text: str) -> None:
    for dressed in (text.upper(), unicodedata.normalize("NFD", text), text.replace("a", "a\u200b"), f"¡{text}!"):
        if sum(map(str.isalnum, text)) > 4:
            assert plain_words(dressed) == plain_words(text)


def test_letters_stand_for_words_where_there_are_none() -> None:
    assert plain_words("两个 words") == ["两", "个", "words"]
    assert plain_words("a" * 41) == ["a"] * 41
    assert plain_words("a" * 40) == ["a" * 40]
    assert plain_words("?! ?! a") == ["?", "!", "?", "!", "a"]
    assert plain_words("ab!", by_letter=True) == ["a", "b"]
    assert plain_words("") == []
