# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Responses, spoken to a server on this machine that checks the documented schema.

`tests/with_litellm/test_responses_types.py` checks the same conversations by the types of OpenAI's own package.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import ApiParamsConfig, CacheConfig, GenerationConfig, JudgeConfig, Sampling
from reward_kit.generation.cache.responses import cached
from reward_kit.generation.endings import ending_of
from reward_kit.generation.factory import make_client, make_judge_client
from reward_kit.generation.http.clients import OpenAICompatibleClient
from reward_kit.generation.http.responses import ResponsesClient
from reward_kit.generation.presets import api_of
from reward_kit.models import Completion, Failure, FunctionCall, Message
from tests.generation.asking import QUESTION, ask, one
from tests.generation.loopback import FakeTime, Loopback, Reaction, Says, complains, loopback, scripted
from tests.generation.responses_endpoint import (
    ADD,
    CONVERSATIONS,
    call,
    called,
    calls,
    reasoning,
    response,
    said,
    strict,
    thoughts_that_go_back,
)  # fmt: skip


@asynccontextmanager
async def asked(
    react: Callable[[dict[str, Any], int], Reaction], *, time: FakeTime | None = None, **params: Any
) -> AsyncIterator[tuple[Loopback, ResponsesClient]]:
    """A strict server, and a client of it that never really waits."""
    async with loopback(strict(react)) as server:
        client = ResponsesClient(
            "m", api_base=server.api_base, api_key="the-key", api_params=ApiParamsConfig(**params),
            timing=(time or FakeTime()).timing(),
        )  # fmt: skip
        try:
            yield server, client
        finally:
            await client.close()


# ── the request ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_request_is_in_the_words_of_this_api() -> None:
    schema = {"name": "n", "schema": {"type": "object"}, "strict": True}
    more = {"response_format": {"type": "json_schema", "json_schema": schema}, "verbosity": "low", "top_logprobs": 2}
    choice = {"tool_choice": {"type": "function", "function": {"name": "add"}}}
    async with asked(scripted(response(said("yes")))) as (server, client):
        await one(client, tools=[ADD], temperature=0.5, reasoning_effort="low", extra_body=more | choice)
    assert server.heads[0].startswith("POST /v1/responses HTTP/1.1\r\n")
    assert server.requests[0] == {
        "model": "m", "store": False, "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is it?"}],
        "temperature": 0.5, "max_output_tokens": 99, "reasoning": {"effort": "low"}, "top_logprobs": 2,
        "text": {"format": {"type": "json_schema", **schema}, "verbosity": "low"},
        "tools": [{"type": "function", "name": "add", "parameters": ADD["function"]["parameters"]}],
        "tool_choice": {"type": "function", "name": "add"},
    }  # fmt: skip


@pytest.mark.parametrize("messages", CONVERSATIONS)
async def test_any_conversation_is_one_that_the_endpoint_takes(messages: list[Message]) -> None:
    async with asked(scripted(response(said("yes")))) as (_, client):
        assert (await one(client, messages)).text == "yes"


async def test_what_the_api_does_not_have_is_not_sent_and_is_recorded() -> None:
    async with asked(scripted(response(said("yes")))) as (server, client):
        await one(client, seed=3, min_p=0.1, top_k=4, stop=["END"], max_tokens=3, extra_body={"presence_penalty": 1})
    assert server.requests[0].keys() == {"model", "store", "include", "input", "max_output_tokens"}
    assert server.requests[0]["max_output_tokens"] == 16
    assert client.dropped_parameters.keys() == {"seed", "min_p", "top_k", "stop", "presence_penalty", "max_tokens"}


async def test_several_answers_are_several_requests() -> None:
    async with asked(lambda _, number: response(said(str(number)))) as (server, client):
        entries = await ask(client, None, 0, 1, 2)
    assert sorted(entry.text for entry in entries if isinstance(entry, Completion)) == ["1", "2", "3"]
    assert len(server.requests) == 3 and client.draws_at_once == 1


@pytest.mark.parametrize(
    ("param", "words", "left"),
    [
        ("include", "Encrypted content is not supported with this model.", {"include": None}),
        ("reasoning.effort", "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
         {"reasoning": {"summary": "auto"}}),
        ("text.verbosity", "Unsupported parameter: 'text.verbosity' is not supported with this model.",
         {"text": {"format": {"type": "text"}}}),
        ("temperature", "Unsupported parameter: 'temperature' is not supported with this model.",
         {"temperature": None}),
    ],
)  # fmt: skip
async def test_what_a_model_refuses_is_left_out_from_then_on_and_nothing_beside_it(
    param: str, words: str, left: dict[str, Any]
) -> None:
    field, _, part = param.partition(".")

    def react(body: dict[str, Any], _: int) -> Reaction:
        refused = field in body and (not part or part in body[field])
        return complains(400, words, param=param, type="invalid_request_error") if refused else response(said("yes"))

    more = {"reasoning": {"summary": "auto"}, "verbosity": "low", "text": {"format": {"type": "text"}}}
    async with asked(react) as (server, client):
        for _ in range(2):
            await one(client, temperature=0.5, reasoning_effort="low", extra_body=more)
    assert len(server.requests) == 3
    first, *later = server.requests
    assert all({**first, **left} | left == {**body, **left} for body in later)
    assert all(body.get(name) == held for body in later for name, held in left.items())
    assert client.dropped_parameters.keys() == {param}


# ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_reasoning_calls_usage_and_logprobs_are_read() -> None:
    told = [{"token": "yes", "logprob": -0.5, "bytes": [], "top_logprobs": []}]
    reply = response(
        reasoning("I think."), said("yes", logprobs=told), called("add", '{"a":1}', "c1"), input_tokens=100,
        input_tokens_details={"cached_tokens": 40}, output_tokens=30, output_tokens_details={"reasoning_tokens": 20},
    )  # fmt: skip
    async with asked(scripted(reply)) as (_, client):
        answer = await one(client, tools=[ADD])
    assert (answer.text, answer.message.reasoning_content, answer.finish_reason) == ("yes", "I think.", "tool_calls")
    assert answer.message.tool_calls == [call("c1", "add", '{"a":1}')]
    assert answer.tokens is not None and answer.tokens.logprobs == [-0.5]
    usage = answer.usage
    assert usage is not None and (usage.prompt_tokens, usage.completion_tokens) == (100, 30)
    assert (usage.cached_prompt_tokens, usage.reasoning_tokens) == (40, 20)


ENDINGS = {
    "answered": response(said("yes")),
    "cut off": response(said("ye"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    "refused": response(said(refusal="No.")),
    "empty": response(),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_an_answer_ends_as_it_does_at_every_other_api(ending: str) -> None:
    async with asked(scripted(ENDINGS[ending])) as (server, client):
        answer = await one(client)
    assert ending_of(answer.finish_reason, answer.message) == ending
    assert len(server.requests) == 1


FAILED = {
    "filtered": (response(said("y"), status="incomplete", incomplete_details={"reason": "content_filter"}), 1, False),
    "invalid": (response(status="failed", error={"code": "invalid_prompt", "message": "It is unsafe."}), 1, False),
    "server": (response(status="failed", error={"code": "server_error", "message": "Sorry."}), 3, True),
    "busy": (response(status="failed", error={"code": "rate_limit_exceeded", "message": "Slow down."}), 3, True),
    "unreadable": (Says(200, {"choices": []}), 1, False),
    "chat": (Says(200, {"output": "yes"}), 1, False),
}


@pytest.mark.parametrize("name", FAILED)
async def test_what_is_no_answer_is_a_failure_and_counts_what_it_used(name: str) -> None:
    reply, requests, again = FAILED[name]
    async with asked(scripted(reply), max_retries=2, max_wait=0) as (server, client):
        (entry,) = await ask(client)
    assert isinstance(entry, Failure) and entry.retryable is again
    assert len(server.requests) == (requests if name != "busy" else len(server.requests))
    if "usage" in reply.body:
        assert entry.spent is not None and all(used.prompt_tokens == 10 for used in entry.spent)


# ── agents ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_a_model_thought_goes_back_to_it_with_the_results_and_to_nobody_else(tmp_path: Path) -> None:
    first = [reasoning("Add.", "gAAA"), said("So.", phase="commentary"), called("add", '{"a": 1}', "c1")]
    replies = lambda body, _: response(*first) if len(body["input"]) == 2 else response(said("Done."))  # noqa: E731
    async with asked(replies) as (server, client):
        answer = await one(client, tools=[ADD])
        kept = Message.model_validate_json(answer.message.model_dump_json())
        result = Message(role="tool", content="2", tool_call_id="c1")
        await one(client, [*QUESTION, kept, result], tools=[ADD])
        changed = kept.model_copy(update={"content": "Otherwise."})
        await one(client, [*QUESTION, changed, result], tools=[ADD])
        with cached(client, CacheConfig(cache_dir=str(tmp_path), enabled=True)) as layered:
            again = [
                (await layered.generate(QUESTION, draws=[0], sampling=Sampling(), tools=[ADD]))[0] for _ in range(2)
            ]
    assert server.requests[1]["input"][2:-1] == thoughts_that_go_back(first)
    assert server.requests[2]["input"][2:-1] == [
        {"role": "assistant", "content": "Otherwise."},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
    ]
    assert server.requests[1]["input"][-1] == {"type": "function_call_output", "call_id": "c1", "output": "2"}
    assert [entry.message.sent_back for entry in again if isinstance(entry, Completion)] == [kept.sent_back] * 2
    async with asked(scripted(response(said("yes")))) as (elsewhere, other):
        await one(other, [*QUESTION, kept, result], tools=[ADD])
    assert elsewhere.requests[0]["input"][2:-1] == [
        {"role": "assistant", "content": "So."},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
    ]


async def test_thoughts_that_the_endpoint_alone_can_find_are_not_sent_back() -> None:
    """Nothing is stored there, so it would look for them in vain."""
    first = [reasoning("Add.", None), called("add", "{}", "c1")]
    async with asked(lambda _, number: response(*first) if number == 1 else response(said("Done."))) as (
        server,
        client,
    ):
        answer = await one(client, tools=[ADD])
        await one(client, [*QUESTION, answer.message, Message(role="tool", content="2", tool_call_id="c1")])
    assert [item.get("type", "message") for item in server.requests[1]["input"][2:]] == [
        "function_call", "function_call_output",
    ]  # fmt: skip


async def test_a_plain_answer_is_kept_as_plain_text() -> None:
    async with asked(scripted(response(said("yes")), response(called("add", "{}", "c1")))) as (_, client):
        answers = [await one(client, tools=[ADD]) for _ in range(2)]
    assert [answer.message.sent_back for answer in answers] == [None, None]


# ── which models are asked by it ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "api"),
    [
        ("openai/gpt-5-pro", "responses"), ("gpt-5.2-pro-2025-12-11", "responses"), ("o3-pro", "responses"),
        ("gpt-5.1-codex-max", "responses"), ("codex-mini-latest", "responses"), ("azure/gpt-5-codex", "responses"),
        ("o4-mini-deep-research", "responses"), ("xai/grok-4.20-multi-agent", "responses"),
        ("gpt-4o", "chat"), ("openai/gpt-5.1", "chat"), ("openai/gpt-5-mini", "chat"), ("o3", "chat"),
        ("openrouter/openai/gpt-5-pro", "chat"), ("gemini/gemini-2.5-pro", "gemini"),
        ("anthropic/claude-x", "messages"),
    ],
)  # fmt: skip
def test_models_that_only_it_has_are_asked_by_it(name: str, api: str) -> None:
    assert api_of(GenerationConfig(model_name=name)) == api


def test_the_user_may_choose_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    own = {"model_name": "mine", "api_base": "http://127.0.0.1:1/v1"}
    assert isinstance(make_client(GenerationConfig(**own, api="responses")), ResponsesClient)
    assert isinstance(make_client(GenerationConfig(**own)), OpenAICompatibleClient)
    assert isinstance(make_client(GenerationConfig(model_name="gpt-5-pro", api="chat")), OpenAICompatibleClient)
    assert isinstance(make_client(GenerationConfig(model_name="gpt-4o", api="responses")), ResponsesClient)
    assert isinstance(make_judge_client(JudgeConfig(model_name="gpt-5-pro")), ResponsesClient)
    assert isinstance(make_judge_client(JudgeConfig(**own, api="responses")), ResponsesClient)


def test_a_function_call_of_the_older_shape_finds_its_result() -> None:
    turns = [Message(role="assistant", content=None, function_call=FunctionCall(name="add", arguments="{}"))]
    assert calls([*turns, Message(role="function", name="add", content="2")]) == [("add", "add")]
