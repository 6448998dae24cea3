# SPDX-License-Identifier: Apache-2.0
"""Anthropic's Messages, spoken to a server on this machine that checks the documented schema."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import ApiParamsConfig, CacheConfig, GenerationConfig, Sampling
from reward_kit.errors import AuthError, ConfigError, EndpointError
from reward_kit.generation.batch.choose import batch_model
from reward_kit.generation.cache.responses import cached
from reward_kit.generation.http.messages import ANSWER_TOKENS, MessagesClient
from reward_kit.generation.presets import PRESETS
from reward_kit.generation.prices import cost_of, price_of
from reward_kit.models import ChatCompletionMessageToolCall, Completion, Failure, FunctionCall, Message
from tests.generation.anthropic_endpoint import error, message, strict, text, tool_use
from tests.generation.asking import QUESTION, ask, one
from tests.generation.loopback import FakeTime, Loopback, Reaction, loopback, scripted

ADD = {
    "type": "function",
    "function": {"name": "add", "description": "Add.", "parameters": {"properties": {"a": {"type": "integer"}}}},
}
THINKING = {"type": "enabled", "budget_tokens": 1024}


@asynccontextmanager
async def asked(
    react: Callable[[dict[str, Any], int], Reaction], *, time: FakeTime | None = None, **params: Any
) -> AsyncIterator[tuple[Loopback, MessagesClient]]:
    """A strict server, and a client of it that never really waits."""
    async with loopback(strict(react)) as server:
        client = MessagesClient(
            "m", api_base=server.api_base, api_key="the-key", api_params=ApiParamsConfig(**params),
            timing=(time or FakeTime()).timing(), rules=PRESETS["anthropic"].rules,
        )  # fmt: skip
        try:
            yield server, client
        finally:
            await client.close()


def always(*blocks: dict[str, Any], **said: Any) -> Callable[[dict[str, Any], int], Reaction]:
    return scripted(message(*(blocks or (text(),)), **said))


def call(name: str, arguments: str, identity: str = "toolu_01") -> ChatCompletionMessageToolCall:
    return ChatCompletionMessageToolCall(id=identity, function=FunctionCall(name=name, arguments=arguments))


# ── the request ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_request_has_its_own_headers_route_and_system() -> None:
    async with asked(always()) as (server, client):
        answer = await one(client, temperature=0.5, top_p=0.9, top_k=3, stop=["END"])
    assert answer.message.content == "yes"
    head = server.heads[0]
    assert head.startswith("POST /v1/messages HTTP/1.1\r\n")
    assert re.findall(r"(?im)^x-api-key: (.*)\r$", head) == ["the-key"]
    assert re.findall(r"(?im)^anthropic-version: (.*)\r$", head) == ["2023-06-01"]
    assert "authorization" not in head.lower()
    assert server.requests[0] == {
        "model": "m",
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Is it?"}]}],
        "temperature": 0.5, "max_tokens": 99, "top_p": 0.9, "top_k": 3, "stop_sequences": ["END"],
    }  # fmt: skip


async def test_several_answers_are_several_requests() -> None:
    async with asked(lambda body, number: message(text(str(number)))) as (server, client):
        entries = await ask(client, None, 0, 1, 2)
    assert sorted(entry.text for entry in entries if isinstance(entry, Completion)) == ["1", "2", "3"]
    assert len(server.requests) == 3 and client.draws_at_once == 1


async def test_what_the_api_does_not_have_is_not_sent_and_is_recorded(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with asked(always()) as (server, client):
            for _ in range(2):
                await one(client, seed=3, min_p=0.1, temperature=1.5, extra_body={"logprobs": True}, max_tokens=None)
    assert server.requests[-1].keys() == {"model", "system", "messages", "temperature", "max_tokens"}
    assert (server.requests[-1]["temperature"], server.requests[-1]["max_tokens"]) == (1.0, ANSWER_TOKENS)
    assert client.dropped_parameters.keys() == {"seed", "min_p", "temperature", "logprobs", "max_tokens"}
    assert len(caplog.records) == 5, "each is said once"


async def test_effort_is_sent_in_the_apis_own_words_beside_other_outputs() -> None:
    async with asked(always()) as (server, client):
        await one(client, reasoning_effort="low", extra_body={"output_config": {"format": {"type": "json_schema"}}})
    assert server.requests[0]["output_config"] == {"effort": "low", "format": {"type": "json_schema"}}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("temperature", "temperature is deprecated for this model."),
        ("top_p", "`temperature` and `top_p` cannot both be specified for this model. Please use only one."),
        ("thinking", '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".'),
        ("output_config", "output_config.effort: Extra inputs are not permitted"),
    ],
)
async def test_what_a_model_refuses_is_left_out_from_then_on(name: str, words: str) -> None:
    def react(body: dict[str, Any], number: int) -> Reaction:
        return error(400, "invalid_request_error", words) if name in body else message(text())

    thinking = {"thinking": THINKING} if name == "thinking" else {}
    asked_for = {"temperature": 0.5, "top_p": 0.9, "reasoning_effort": "low"}
    sampling: dict[str, Any] = {**asked_for, "max_tokens": 2000, "extra_body": thinking}
    async with asked(react) as (server, client):
        await one(client, **sampling)
        await one(client, **sampling)
    assert [name in body for body in server.requests] == [True, False, False]
    assert client.dropped_parameters[name] == words.rstrip(".")


async def test_what_cannot_be_left_out_is_refused_once_more_and_then_a_failure() -> None:
    words = "max_tokens: this value is not supported"
    async with asked(scripted(error(400, "invalid_request_error", words))) as (server, client):
        (entry,) = await ask(client)
    assert isinstance(entry, Failure) and words in entry.message
    assert len(server.requests) == 2


# ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_tools_and_their_results_go_to_and_fro() -> None:
    conversation = [
        *QUESTION,
        Message(role="assistant", content="", tool_calls=[call("add", '{"a": 1}', "c:1"), call("add", "{bad", "c2")]),
        Message(role="tool", content="2", tool_call_id="c:1"),
        Message(role="tool", content="", tool_call_id="c2"),
        Message(role="user", content="And now?"),
    ]
    reply = always(text("I add."), tool_use("add", {"a": 3}), stop="tool_use")
    async with asked(reply) as (server, client):
        answer = await one(client, conversation, tools=[{**ADD, "cache_control": {"type": "ephemeral"}}])
    body = server.requests[0]
    assert body["tools"] == [
        {
            "name": "add", "description": "Add.", "cache_control": {"type": "ephemeral"},
            "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
        }
    ]  # fmt: skip
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][1]["content"] == [
        {"type": "tool_use", "id": "c_1", "name": "add", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "add", "input": {"INVALID_JSON": "{bad"}},
    ]
    assert body["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c_1", "content": [{"type": "text", "text": "2"}]},
        {"type": "tool_result", "tool_use_id": "c2", "content": []},
        {"type": "text", "text": "And now?"},
    ]
    assert (answer.finish_reason, answer.message.content) == ("tool_calls", "I add.")
    assert answer.message.tool_calls == [call("add", '{"a":3}')]


async def test_calls_without_an_id_find_their_results() -> None:
    conversation = [
        *QUESTION,
        Message(role="assistant", content=None, function_call=FunctionCall(name="add", arguments="")),
        Message(role="function", name="add", content="2"),
    ]
    async with asked(always()) as (server, client):
        await one(client, conversation, tools=[ADD])
    called, result = server.requests[0]["messages"][1:]
    assert called["content"][0]["id"] == result["content"][0]["tool_use_id"] == "call_1"


async def test_thinking_goes_back_with_the_results_of_the_tools_it_called() -> None:
    thought = {"type": "thinking", "thinking": "Add them.", "signature": "sig"}
    replies = scripted(
        message(thought, {"type": "redacted_thinking", "data": "x"}, tool_use("add", {"a": 3}), stop="tool_use"),
        message({**thought, "thinking": "Done."}, text("3")),
    )
    sampling: dict[str, Any] = {
        "max_tokens": 2000,
        "temperature": 0.7,
        "top_k": 5,
        "extra_body": {"thinking": THINKING},
    }
    async with asked(replies) as (server, client):
        first = await one(client, tools=[ADD], **sampling)
        kept = Message.model_validate_json(first.message.model_dump_json())  # as a file or the cache has it
        again = [*QUESTION, kept, Message(role="tool", content="3", tool_call_id="toolu_01")]
        second = await one(client, again, tools=[ADD], **sampling)
    assert first.message.reasoning_content == "Add them."
    assert server.requests[1]["messages"][1]["content"] == [
        thought, {"type": "redacted_thinking", "data": "x"}, tool_use("add", {"a": 3}),
    ]  # fmt: skip
    assert (second.message.content, second.message.reasoning_content) == ("3", "Done.")
    assert second.message.sent_back is not None, "the conversation may go on"
    assert client.dropped_parameters.keys() == {"temperature", "top_k"}


# ── content ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_parts_images_and_cache_control() -> None:
    cache = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    conversation = [
        Message(role="system", content=[{"type": "text", "text": "Long.", **cache}]),
        Message(
            role="user",
            content=[
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}, **cache},
                {"type": "text", "text": ""},
                {"type": "text", "text": "What?", **cache},
            ],
        ),
        Message(role="developer", content="Also."),
    ]
    async with asked(always()) as (server, client):
        await one(client, conversation, extra_body=cache)
    body = server.requests[0]
    assert body["cache_control"] == cache["cache_control"]
    assert body["system"] == [{"type": "text", "text": "Long.", **cache}, {"type": "text", "text": "Also."}]
    assert body["messages"][0]["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}, **cache},
        {"type": "text", "text": "What?", **cache},
    ]


async def test_a_part_that_cannot_be_sent_fails_its_prompt_only() -> None:
    audio = [Message(role="user", content=[{"type": "input_audio", "input_audio": {}}])]
    lost = [Message(role="user", content="?"), Message(role="tool", content="2")]
    async with asked(always()) as (server, client):
        for messages in (audio, lost):
            (entry,) = await ask(client, messages)
            assert isinstance(entry, Failure) and entry.type == "BadRequestError" and not entry.retryable
        await one(client)
    assert len(server.requests) == 1


# ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_tokens_of_the_cache_are_counted_and_priced() -> None:
    counts = {"input_tokens": 100, "output_tokens": 10}
    told = {"cache_read_input_tokens": 1000, "cache_creation_input_tokens": 200}
    async with asked(always(text(), model="m-2026", **counts, **told)) as (_, client):
        answer = await one(client)
    usage = answer.usage
    assert usage is not None and answer.model == "m-2026"
    assert (usage.prompt_tokens, usage.completion_tokens) == (1300, 10)
    assert (usage.cached_prompt_tokens, usage.cache_write_tokens) == (1000, 200)
    price = price_of("claude-sonnet-4-5")
    assert price is not None
    assert cost_of(usage, price) == pytest.approx((100 * 3 + 1000 * 0.3 + 200 * 3.75 + 10 * 15) / 1e6, abs=1e-15)


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_rates_overload_and_errors_of_the_server_are_tried_again() -> None:
    time = FakeTime()
    failures = [
        error(429, "rate_limit_error", "too fast", {"retry-after": "7"}),
        error(529, "overloaded_error", "Overloaded"),
        error(500, "api_error", "Internal server error"),
    ]
    async with asked(scripted(*failures, message(text())), time=time) as (server, client):
        assert (await one(client)).text == "yes"
        assert client.limit < ApiParamsConfig().max_concurrent_requests, "load was complained of"
    assert len(server.requests) == 4 and time.slept[0] >= 7


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(401, "authentication_error", "invalid x-api-key"), AuthError),
        (error(403, "permission_error", "not yours"), AuthError),
        (error(402, "billing_error", "unpaid"), EndpointError),
        (error(404, "not_found_error", "model: m"), EndpointError),
        (error(400, "invalid_request_error", "Your credit balance is too low to access the API."), EndpointError),
    ],
)
async def test_what_no_request_can_mend_stops_the_run(reply: Any, kind: type[Exception]) -> None:
    async with asked(scripted(reply)) as (server, client):
        with pytest.raises(kind):
            await ask(client)
    assert len(server.requests) == 1


async def test_a_prompt_that_is_too_long_fails_alone() -> None:
    words = "prompt is too long: 250000 tokens > 200000 maximum"
    async with asked(scripted(error(400, "invalid_request_error", words), message(text()))) as (_, client):
        (entry,) = await ask(client)
        assert isinstance(entry, Failure) and entry.type == "ContextLengthError"
        await one(client)


# ── in its layers ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_answer_with_tools_and_thinking_comes_from_the_cache_as_it_was(tmp_path: Path) -> None:
    thought = {"type": "thinking", "thinking": "Add them.", "signature": "sig"}
    sampling = Sampling(max_tokens=2000, extra_body={"thinking": THINKING})
    async with asked(always(thought, tool_use("add", {"a": 3}), stop="tool_use")) as (server, client):
        with cached(client, CacheConfig(cache_dir=str(tmp_path))) as layered:
            first, second = [
                (await layered.generate(QUESTION, draws=[0], sampling=sampling, tools=[ADD]))[0] for _ in range(2)
            ]
    assert len(server.requests) == 1
    assert isinstance(first, Completion) and isinstance(second, Completion) and second.cached
    assert first.message == second.message and second.message.sent_back is not None
    assert second.message.sent_back.fields["blocks"][0] == thought


async def test_blocks_that_somebody_has_changed_are_made_anew() -> None:
    thought = {"type": "thinking", "thinking": "Add them.", "signature": "sig"}
    async with asked(always(thought, text("So."), tool_use("add", {"a": 3}), stop="tool_use")) as (server, client):
        said = (await one(client, tools=[ADD])).message
        result = Message(role="tool", content="3", tool_call_id="toolu_01")
        for changed in ({"content": "Well."}, {"tool_calls": None, "content": "So."}):
            turn = said.model_copy(update=changed)
            more = [result] if turn.tool_calls else [Message(role="user", content="And?")]
            await one(client, [*QUESTION, turn, *more], tools=[ADD])
    assert server.requests[1]["messages"][1]["content"] == [text("Well."), tool_use("add", {"a": 3})]
    assert server.requests[2]["messages"][1]["content"] == [text("So.")]


def test_it_is_not_asked_by_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"anthropic/m.*Leave `generation\.transport` out"):
        batch_model(GenerationConfig(model_name="anthropic/m", transport="batch"))
