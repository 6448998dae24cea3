# SPDX-License-Identifier: Apache-2.0
"""How many tokens a prompt has: the bound is one, and both grow with what is sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.generation.tokens import estimated_tokens, most_tokens
from reward_kit.models import Message

TOOL = {"type": "function", "function": {"name": "f", "description": "x" * 1000, "parameters": {"type": "object"}}}


def user(content: Any) -> list[Message]:
    return [Message(role="user", content=content)]


@given(texts=st.lists(st.text(max_size=200), max_size=5))
def test_the_bound_has_a_token_for_every_byte_and_is_above_the_estimate(texts: list[str]) -> None:
    messages = [Message(role="user", content=text) for text in texts]
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    assert most_tokens(messages) >= size
    assert estimated_tokens(messages) <= most_tokens(messages)


@given(texts=st.lists(st.text(max_size=200), max_size=5))
def test_longer_prompts_are_never_taken_for_shorter(texts: list[str]) -> None:
    messages = [Message(role="user", content=text) for text in texts]
    longer = [Message(role="user", content=text + "more") for text in texts]
    for tokens in (most_tokens, estimated_tokens):
        assert tokens(messages) <= tokens(longer)


def test_letters_of_other_scripts_are_not_taken_for_a_quarter_of_a_token() -> None:
    assert estimated_tokens(user("字" * 1300)) >= 1300


@pytest.mark.parametrize("tokens", [most_tokens, estimated_tokens])
def test_tools_calls_and_images_count(tokens: Any) -> None:
    plain = tokens(user("hi"))
    assert tokens(user("hi"), [TOOL] * 10) > plain + 2500
    called = Message.model_validate(
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "y" * 4000}}]}
    )  # fmt: skip
    assert tokens([*user("hi"), called]) > plain + 900
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}}
    assert plain + 900 < tokens(user([{"type": "text", "text": "hi"}, image])) < 20_000
