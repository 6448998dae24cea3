# SPDX-License-Identifier: Apache-2.0
"""How many tokens a prompt has, before anybody has counted: an upper bound for budgets, and an estimate for plans.

The bound rests on what tokenisers do: those of today's chat models cut text into pieces of at least one byte of UTF-8.
What they add (marks around each turn, the instructions that come with tools) is allowed for by fixed amounts. What a
request really used is in its `Usage`, and a budget learns from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from reward_kit.config_models import Sampling
from reward_kit.models import Message, Usage
from reward_kit.utils import exact_json

__all__ = ["UNBOUNDED_ANSWER_TOKENS", "answer_room", "estimated_tokens", "most_tokens", "most_usage"]

UNBOUNDED_ANSWER_TOKENS = 4096
"""What an answer is taken to be at most, where no max_tokens bounds it."""
_BOUNDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""What a request may call the bound of its answer's tokens."""

_CHARACTERS_PER_TOKEN = 4
"""Of English text, on average. Letters of other scripts are taken for a token each."""
_TOKENS_PER_TURN = 4
_MOST_TOKENS_PER_TURN = 16
_MOST_TOKENS_PER_PROMPT = 64
"""A default system prompt of the template, and the opening of the answer."""
_MOST_TOKENS_FOR_TOOLS = 512
"""The instructions that a template writes around the tools it is given."""
_TOKENS_PER_IMAGE = 1_000
_MOST_TOKENS_PER_IMAGE = 8_000

Tools = Sequence[dict[str, Any]] | None


def most_tokens(messages: Iterable[Message], tools: Tools = None) -> int:
    """More tokens than a prompt has.

    >>> most_tokens([Message(role="user", content="你好")])
    86
    """
    prompt = sum(_MOST_TOKENS_PER_TURN + _most_in(message) for message in messages)
    return _MOST_TOKENS_PER_PROMPT + prompt + (_MOST_TOKENS_FOR_TOOLS + _size(tools) if tools else 0)


def answer_room(sampling: Sampling) -> int:
    """How many tokens an answer may have.

    >>> answer_room(Sampling(max_tokens=20)), answer_room(Sampling(extra_body={"max_completion_tokens": 900}))
    (20, 900)
    """
    bounds = [sampling.max_tokens, *map(sampling.extra_body.get, _BOUNDS)]
    return max((bound for bound in bounds if type(bound) is int), default=UNBOUNDED_ANSWER_TOKENS)


def most_usage(messages: Iterable[Message], tools: Tools, sampling: Sampling, draws: int) -> Usage:
    """The most that a reply may use which does not tell. Each draw is taken to pay for the prompt."""
    prompt = most_tokens(messages, tools) * draws
    return Usage(prompt_tokens=prompt, completion_tokens=answer_room(sampling) * draws, at_most=True)


def estimated_tokens(messages: Iterable[Message], tools: Tools = None) -> int:
    """About how many tokens a prompt has: typically within a third, for English, code and other scripts.

    >>> estimated_tokens([Message(role="user", content="What is two plus two?")])
    10
    """
    turns = sum(_TOKENS_PER_TURN + _about_in(message) for message in messages)
    return turns + (-(-_size(tools) // _CHARACTERS_PER_TOKEN) if tools else 0)


def _most_in(message: Message) -> int:
    texts, images, rest = _pieces(message)
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) + rest + images * _MOST_TOKENS_PER_IMAGE


def _about_in(message: Message) -> int:
    texts, images, rest = _pieces(message)
    return sum(map(_about, texts)) + rest // _CHARACTERS_PER_TOKEN + images * _TOKENS_PER_IMAGE


def _about(text: str) -> int:
    plain = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return -(-plain // _CHARACTERS_PER_TOKEN) + len(text) - plain


def _pieces(message: Message) -> tuple[list[str], int, int]:
    """The texts of a turn, how many images it has, and the bytes of everything else."""
    content = message.content
    kept = message.sent_back
    if isinstance(content, str) and message.tool_calls is None and message.function_call is None and kept is None:
        return [content], 0, 0
    request = message.as_request(None if kept is None else kept.by)
    request.pop("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    images = [part for part in parts if "image" in str(part.get("type"))]
    texts = [str(part.get("text") or "") for part in parts if part.get("type") == "text"]
    others = [part for part in parts if part.get("type") != "text" and part not in images]
    return texts, len(images), _size([request, *others])


def _size(value: Any) -> int:
    return len(exact_json.dumps(value))
