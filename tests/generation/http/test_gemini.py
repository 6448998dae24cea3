# SPDX-License-Identifier: Apache-2.0
"""Google's own API, spoken to a server on this machine that checks the documented schema."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from reward_kit.config_models import ApiParamsConfig, GenerationConfig
from reward_kit.generation.endings import ending_of
from reward_kit.generation.factory import make_client
from reward_kit.generation.http.clients import OpenAICompatibleClient
from reward_kit.generation.http.gemini import _NO_SIGNATURE, GeminiClient
from reward_kit.models import Completion, Failure, Message
from tests.generation.asking import QUESTION, ask, one
from tests.generation.gemini_endpoint import React, candidate, google, reply, said, strict
from tests.generation.loopback import FakeTime, Loopback, Says, loopback, scripted
from tests.generation.responses_endpoint import ADD, CONVERSATIONS, call

CALL = {"functionCall": {"name": "add", "args": {"a": 1}}, "thoughtSignature": "sig=="}


@asynccontextmanager
async def asked(react: React, model: str = "gemini-3-x", **params: Any) -> AsyncIterator[tuple[Loopback, GeminiClient]]:
    """A strict server, and a client of it that never really waits."""
    async with loopback(strict(react)) as server:
        client = GeminiClient(
            model, api_base=server.api_base, api_key="the-key", api_params=ApiParamsConfig(**params),
            timing=FakeTime().timing(),
        )  # fmt: skip
        try:
            yield server, client
        finally:
            await client.close()


# ── the request ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_request_is_in_the_words_of_this_api() -> None:
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    more = {"safetySettings": safety, "response_format": schema, "tool_choice": "required", "top_logprobs": 2}
    async with asked(scripted(reply(said("yes")))) as (server, client):
        await one(client, tools=[ADD], temperature=0.5, top_k=3, stop=["END"], reasoning_effort="low", extra_body=more)
    assert server.heads[0].startswith("POST /v1/models/gemini-3-x:generateContent HTTP/1.1\r\n")
    assert "x-goog-api-key: the-key" in server.heads[0] and "authorization" not in server.heads[0].lower()
    assert server.requests[0] == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Is it?"}]}],
        "safetySettings": safety, "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "tools": [
            {"functionDeclarations": [{"name": "add", "parametersJsonSchema": ADD["function"]["parameters"]}]},
        ],
        "generationConfig": {
            "temperature": 0.5, "topK": 3, "stopSequences": ["END"], "maxOutputTokens": 99, "logprobs": 2,
            "thinkingConfig": {"thinkingLevel": "low"}, "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object"},
        },
    }  # fmt: skip


@pytest.mark.parametrize("messages", CONVERSATIONS)
async def test_any_conversation_is_one_that_the_endpoint_takes(messages: list[Message]) -> None:
    async with asked(scripted(reply(said("yes")))) as (_, client):
        assert (await one(client, messages)).text == "yes"


@pytest.mark.parametrize(("model", "sent"), [
    ("gemini-2.5-pro", {"thinkingBudget": 8192}), ("gemini-3.5-flash", {"thinkingLevel": "medium"}),
])  # fmt: skip
async def test_effort_is_a_budget_for_older_models_and_a_level_for_newer_ones(model: str, sent: dict[str, Any]) -> None:
    async with asked(scripted(reply(said("yes"))), model) as (server, client):
        await one(client, reasoning_effort="medium", extra_body={"thinkingConfig": {"includeThoughts": True}})
    assert server.requests[0]["generationConfig"]["thinkingConfig"] == {"includeThoughts": True, **sent}


async def test_several_answers_are_one_request_until_that_is_refused() -> None:
    def react(body: dict[str, Any], _: int) -> Says:
        count = body["generationConfig"].get("candidateCount", 1)
        if count > 2:
            return google(400, "Multiple candidates is not enabled for this model")
        return reply(*[said(f"{place}") for place in range(count)])

    async with asked(react) as (server, client):
        assert len([each for each in await ask(client, None, 0, 1, 2, 3, seed=1) if isinstance(each, Completion)]) == 4
    assert client.draws_at_once == 2 and len(server.requests) == 3
    seeds = {body["generationConfig"]["seed"] for body in server.requests[1:]}
    assert len(seeds) == 2


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("Unknown name \"seed\" at 'generation_config': Cannot find field.", "seed"),
        ("Logprobs is not enabled for models/m", "responseLogprobs"),
        ("Thinking level is not supported for this model: thinkingConfig.", "thinkingConfig"),
    ],
)
async def test_what_a_model_refuses_is_left_out_from_then_on(words: str, left: str) -> None:
    def react(body: dict[str, Any], _: int) -> Says:
        return google(400, words) if left in body["generationConfig"] else reply(said("yes"))

    async with asked(react) as (server, client):
        for _ in range(2):
            await one(client, seed=3, reasoning_effort="low", extra_body={"logprobs": True, "min_p": 0.1})
    assert [left in body["generationConfig"] for body in server.requests] == [True, False, False]
    assert "min_p" in client.dropped_parameters and len(client.dropped_parameters) == 2


# ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_thoughts_calls_usage_and_tokens_are_read() -> None:
    chosen = [{"token": "yes", "tokenId": 7, "logProbability": -0.5}]
    answered = reply(
        candidate({"text": "Hm.", "thought": True}, {"text": "yes"}, CALL, logprobsResult={"chosenCandidates": chosen}),
        thoughtsTokenCount=20, cachedContentTokenCount=4, promptTokenCount=100,
    )  # fmt: skip
    async with asked(scripted(answered)) as (_, client):
        answer = await one(client, tools=[ADD])
    assert (answer.text, answer.message.reasoning_content, answer.finish_reason) == ("yes", "Hm.", "tool_calls")
    assert answer.message.tool_calls == [call("call-r1-0-0", "add", '{"a":1}')]
    assert answer.tokens is not None and (answer.tokens.ids, answer.tokens.logprobs) == ([7], [-0.5])
    usage = answer.usage
    assert usage is not None and (usage.prompt_tokens, usage.completion_tokens) == (100, 22)
    assert (usage.reasoning_tokens, usage.cached_prompt_tokens) == (20, 4)


ENDINGS = {
    "answered": [said("yes")], "cut off": [said("ye", ended="MAX_TOKENS")], "empty": [{"finishReason": "STOP"}],
    "malformed call": [{"finishReason": "MALFORMED_FUNCTION_CALL"}],
}  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
async def test_an_answer_ends_as_it_does_at_every_other_api(ending: str) -> None:
    async with asked(scripted(reply(*ENDINGS[ending]))) as (server, client):
        answer = await one(client)
    assert ending_of(answer.finish_reason, answer.message) == ending
    assert len(server.requests) == 1


BLOCKED = Says(200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 9}})


@pytest.mark.parametrize("answered", [
    BLOCKED, reply(candidate(ended="SAFETY")), reply(said("y", ended="RECITATION")), Says(200, {"choices": []}),
    Says(200, {"candidates": [7]}),
])  # fmt: skip
async def test_what_is_filtered_or_unreadable_is_a_failure_and_not_asked_again(answered: Says) -> None:
    async with asked(scripted(answered)) as (server, client):
        (entry,) = await ask(client)
    assert isinstance(entry, Failure) and not entry.retryable and len(server.requests) == 1
    assert "usageMetadata" not in answered.body or entry.spent


async def test_one_candidate_that_was_filtered_takes_no_other_with_it() -> None:
    answered = reply(said("yes"), candidate(ended="SAFETY"), candidate({"text": "no"}, CALL))
    async with asked(scripted(answered)) as (_, client):
        first, second, third = await ask(client, None, 0, 1, 2)
    assert isinstance(first, Completion) and first.text == "yes" and first.message.sent_back is None
    assert isinstance(second, Failure) and isinstance(third, Completion) and third.message.sent_back is not None


# ── agents ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_signatures_go_back_with_the_parts_they_came_with_and_to_nobody_else() -> None:
    first = candidate({"text": "Hm.", "thought": True}, {"text": "So.", "thoughtSignature": "t"}, CALL)
    async with asked(lambda _, number: reply(first if number == 1 else said("Done."))) as (server, client):
        answer = await one(client, tools=[ADD])
        kept = Message.model_validate_json(answer.message.model_dump_json())
        result = Message(role="tool", content="2", tool_call_id="call-r1-0-0")
        await one(client, [*QUESTION, kept, result], tools=[ADD])
        await one(client, [*QUESTION, kept.model_copy(update={"content": "Otherwise."}), result], tools=[ADD])
    assert server.requests[1]["contents"][1] == first["content"]
    assert server.requests[1]["contents"][2]["parts"] == [
        {"functionResponse": {"id": "call-r1-0-0", "name": "add", "response": {"result": "2"}}},
    ]  # fmt: skip
    anew = {"functionCall": {"id": "call-r1-0-0", "name": "add", "args": {"a": 1}}, "thoughtSignature": _NO_SIGNATURE}
    assert server.requests[2]["contents"][1]["parts"] == [{"text": "Otherwise."}, anew]
    async with asked(scripted(reply(said("yes"))), "gemini-2.5-pro") as (elsewhere, other):
        await one(other, [*QUESTION, kept, result], tools=[ADD])
    del anew["thoughtSignature"]
    assert elsewhere.requests[0]["contents"][1]["parts"] == [{"text": "So."}, anew]


async def test_a_picture_that_a_tool_made_is_sent_with_its_result() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    turns = [
        *QUESTION, Message(role="assistant", content=None, tool_calls=[call("c1", "draw", "{}")]),
        Message(role="tool", content=[{"type": "text", "text": "Here."}, picture], tool_call_id="c1"),
    ]  # fmt: skip
    async with asked(scripted(reply(said("A cat.")))) as (server, client):
        await one(client, turns)
    (result,) = server.requests[0]["contents"][-1]["parts"]
    assert result["functionResponse"] == {
        "id": "c1", "name": "draw", "response": {"result": "Here."},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
    }  # fmt: skip


def test_the_user_may_choose_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    own, compatible = (make_client(GenerationConfig(model_name="gemini/m", api=api)) for api in (None, "chat"))
    assert isinstance(own, GeminiClient) and own.api_base.endswith("/v1beta")
    assert isinstance(compatible, OpenAICompatibleClient) and compatible.api_base.endswith("/v1beta/openai")
