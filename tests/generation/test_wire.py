# SPDX-License-Identifier: Apache-2.0
"""The shapes on the wire, whatever comes over it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.config_models import Sampling
from reward_kit.errors import GenerationError, ProviderError
from reward_kit.generation.wire import (
    derived_seed,
    names_sent_back,
    read_completions,
    read_json,
    settings_of,
    without_sent_back,
)
from reward_kit.models import Completion, Message

scalars = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=5)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def mostly(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects of the right shape in which any field may be missing or hold anything."""
    return st.fixed_dictionaries({}, optional={name: field | anything for name, field in fields.items()}) | anything


functions = mostly(name=st.text(max_size=5), arguments=st.text(max_size=5))
messages = mostly(
    content=st.text(max_size=5) | st.none(),
    tool_calls=st.lists(mostly(id=st.text(max_size=3), function=functions), max_size=2),
    function_call=functions,
    reasoning=st.text(max_size=5),
    reasoning_content=st.text(max_size=5),
    refusal=st.text(max_size=5),
)
details = mostly(reasoning_tokens=st.integers(0, 9), cached_tokens=st.integers(0, 9))
usages = mostly(prompt_tokens=st.integers(0, 9), prompt_tokens_details=details, completion_tokens_details=details)
choices = mostly(message=messages, finish_reason=st.sampled_from(["stop", "error", None]), error=anything)
replies = mostly(choices=st.lists(choices, max_size=3), usage=usages, model=st.text(max_size=3))


@given(replies)
def test_any_reply_is_read_or_is_a_broken_answer(reply: Any) -> None:
    try:
        completions = read_completions(read_json(orjson.dumps(reply)), asked_model="m", most=2, latency_ms=1.0)
    except GenerationError as error:
        assert str(error).endswith("Try again." if isinstance(error, ProviderError) else ".")
        assert error.retryable == isinstance(error, ProviderError)
    else:
        assert 1 <= len(completions) <= 2
        answers = [outcome for outcome in completions if isinstance(outcome, Completion)]
        assert answers and all(answer.usage is None for answer in answers[1:])


names = st.text("abc", min_size=1, max_size=3)
kinds = names | st.just("text")
more = st.dictionaries(names, anything, max_size=3)
said = st.fixed_dictionaries(
    {"content": st.none() | st.text(max_size=5) | st.lists(st.fixed_dictionaries({"type": kinds, "text": names}))},
    optional={
        "reasoning": st.text(max_size=5),
        "reasoning_content": st.text(max_size=5),
        "tool_calls": st.lists(
            st.tuples(st.just({"id": "1", "function": {"name": "f", "arguments": "{}"}}), more, more).map(
                lambda parts: {**parts[1], **parts[0], "function": {**parts[2], **parts[0]["function"]}}
            ),
            min_size=1,
            max_size=3,
        ),
    },
)


def says_anything(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(says_anything, value.values() if isinstance(value, dict) else value))
    return value is not None


def holds(whole: Any, part: Any) -> bool:
    """Whether everything that the part says is said in the whole, at its place."""
    if isinstance(part, dict):
        return not says_anything(part) or (
            isinstance(whole, dict) and all(holds(whole.get(name), held) for name, held in part.items())
        )
    if isinstance(part, list):
        return not says_anything(part) or (
            isinstance(whole, list)
            and len(whole) == len(part)
            and all(holds(*pair) for pair in zip(whole, part, strict=True))
        )
    return part is None or bool(whole == part)


def for_anybody(request: dict[str, Any]) -> dict[str, Any]:
    """A turn with nothing but text in its content."""
    if not isinstance(request["content"], list):
        return request
    return request | {"content": [part for part in request["content"] if part["type"] == "text"] or ""}


@given(said, more)
def test_whatever_a_message_says_goes_back_to_whoever_said_it_and_to_nobody_else(
    said: dict[str, Any], more: dict[str, Any]
) -> None:
    raw = read_json(orjson.dumps({"role": "assistant", **more, **said}))
    reply = {"choices": [{"message": raw}]}
    try:
        (entry,) = read_completions(reply, asked_model="m", most=1, latency_ms=1.0, by="us")
        (plain,) = read_completions(reply, asked_model="m", most=1, latency_ms=1.0)
    except GenerationError:
        return  # it cannot be read
    assert isinstance(entry, Completion) and isinstance(plain, Completion)
    stored = Message.model_validate_json(entry.message.model_dump_json())
    back = stored.as_request("us")
    assert holds(back, raw)
    assert stored.as_request() == stored.as_request("them") == for_anybody(plain.message.as_request())
    left = without_sent_back([back], names_sent_back([back]))
    assert left == [plain.message.as_request()] or any(
        "function" in call and len(call["function"]) > 2 for call in back.get("tool_calls") or ()
    )


@given(st.binary(max_size=40))
def test_any_bytes_are_an_object_or_a_broken_answer(data: bytes) -> None:
    try:
        assert isinstance(read_json(data), dict)
    except ProviderError as error:
        assert error.retryable


@given(st.integers(), st.text(), st.integers(0, 1000))
def test_seeds_have_31_bits_and_repeat(seed: int, sample_id: str, draw: int) -> None:
    assert 0 <= derived_seed(seed, sample_id, draw) < 2**31
    assert derived_seed(seed, sample_id, draw) == derived_seed(seed, sample_id, draw)


def test_seeds_are_the_same_on_every_machine_and_differ_by_each_part() -> None:
    assert derived_seed(1, "a", 0) == 544851141
    assert len({derived_seed(s, i, d) for s in (1, 2) for i in ("a", "b") for d in (0, 1)}) == 8


def test_only_what_was_set_is_told() -> None:
    assert settings_of(Sampling()) == {}
    told = settings_of(Sampling(temperature=0.0, min_p=0.1, reasoning_effort="low", seed=3, extra_body={"top_k": 1}))
    assert told == {"temperature": 0.0, "min_p": 0.1, "reasoning_effort": "low", "top_k": 1}


@pytest.mark.parametrize("parts", [[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]])
def test_content_in_parts_is_kept(parts: list[dict[str, str]]) -> None:
    reply = {"choices": [{"message": {"content": parts}}]}
    (completion,) = read_completions(reply, asked_model="m", most=1, latency_ms=0.0)
    assert isinstance(completion, Completion)
    assert completion.message.content == parts
    assert completion.message.text == "ab"


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (b'"content":"42"},"logprobs":{"content":[{"logprob":NaN},{"logprob":-Infinity}]}', "42"),
        (rb'"content":"4\ud83d2"}', "4?2"),
        (b'"content":"4\xc32"}', "4\N{REPLACEMENT CHARACTER}2"),
    ],
)
def test_a_whole_answer_that_is_no_strict_json_is_not_thrown_away(odd: bytes, said: str) -> None:
    body = b'{"choices":[{"message":{"role":"assistant",' + odd + b'}],"usage":{"prompt_tokens":3,"total_tokens":5}}'
    (completion,) = read_completions(read_json(body), asked_model="m", most=1, latency_ms=1.0)
    assert isinstance(completion, Completion)
    assert completion.message.content == said
    assert completion.usage is not None and completion.usage.prompt_tokens == 3


@pytest.mark.parametrize(
    "count", [b"-5", b"NaN", b"Infinity", b"9223372036854775807", b"1e400", b'"7"', b"true", b"2.5"]
)
@pytest.mark.parametrize("name", [b"prompt_tokens", b"completion_tokens"])
def test_counts_that_cannot_be_are_unknown(name: bytes, count: bytes) -> None:
    told = b'"%b":%b' % (name, count)
    body = b'{"choices":[{"message":{"content":"42"}}],"usage":{"total_tokens":7,%b}}' % told
    (completion,) = read_completions(read_json(body), asked_model="m", most=1, latency_ms=1.0)
    assert isinstance(completion, Completion)
    assert completion.usage is None
