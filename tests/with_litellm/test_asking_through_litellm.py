# SPDX-License-Identifier: Apache-2.0
"""Models asked through litellm, at endpoints on this machine: our limits, retries, cache and refusals hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import ApiParamsConfig, CacheConfig, GenerationConfig, Sampling
from reward_kit.errors import AuthError, ConfigError
from reward_kit.generation.cache.responses import cached
from reward_kit.generation.factory import make_client
from reward_kit.generation.http.through_litellm import LiteLLMClient
from reward_kit.models import Completion, Failure, Message
from tests.agent.test_sent_back import SAYS, TURNS, Strict, play
from tests.generation.anthropic_endpoint import message, strict, text, tool_use
from tests.generation.loopback import FakeTime, Says, answer, complains, loopback, says_message, scripted

QUESTION = [Message(role="system", content="Be brief."), Message(role="user", content="Is it?")]
ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_KEY", f"sk-of-{name.lower()}")


def client_of(model: str, time: FakeTime | None = None, **params: Any) -> LiteLLMClient:
    return LiteLLMClient(model, api_params=ApiParamsConfig(**params), timing=(time or FakeTime()).timing())


async def ask(client: LiteLLMClient, *draws: int, **given: Any) -> list[Completion | Failure]:
    sampling = Sampling(**{"max_tokens": 9, **given.pop("sampling", {})})
    return await client.generate(QUESTION, draws=draws or (0,), sampling=sampling, sample_id="s", **given)


async def test_several_answers_with_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(lambda body, number: answer(*["yes"] * body.get("n", 1))) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.api_base)
        client = make_client(GenerationConfig(model_name="litellm/openai/gpt-4o"))
        assert isinstance(client, LiteLLMClient) and client.model == "openai/gpt-4o"
        entries = await ask(client, 0, 1, sampling={"temperature": 0.5, "seed": 3})
    assert [entry.text for entry in entries if isinstance(entry, Completion)] == ["yes", "yes"]
    assert isinstance(entries[0], Completion) and entries[0].usage is not None
    assert (entries[0].usage.prompt_tokens, entries[0].usage.completion_tokens) == (10, 4)
    (body,) = server.requests
    assert (body["model"], body["n"], body["temperature"], body["max_tokens"]) == ("gpt-4o", 2, 0.5, 9)
    assert "sk-of-openai" in server.heads[0] and "sk-of-anthropic" not in server.heads[0]


async def test_what_litellm_does_not_take_is_left_out_and_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(strict(scripted(message(tool_use("add", {"a": 1}), stop="tool_use")))) as server:
        monkeypatch.setenv("ANTHROPIC_API_BASE", f"http://127.0.0.1:{server.port}")
        client = client_of("anthropic/claude-sonnet-4-5")
        for _ in range(2):
            (entry,) = await ask(client, tools=[ADD], sampling={"seed": 3, "temperature": 0.5})
    assert isinstance(entry, Completion), entry
    assert entry.message.tool_calls and entry.message.tool_calls[0].function.name == "add"
    assert entry.finish_reason == "tool_calls"
    assert client.dropped_parameters.keys() == {"seed"}
    assert len(server.requests) == 2


async def test_litellm_tries_nothing_again_and_we_do(monkeypatch: pytest.MonkeyPatch) -> None:
    time = FakeTime()
    replies = scripted(complains(429, "slow down", {"Retry-After": "7"}), complains(503, "busy"), answer("yes"))
    async with loopback(replies) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.api_base)
        (entry,) = await ask(client_of("openai/gpt-4o", time, max_retries=2))
        assert isinstance(entry, Completion), entry
        assert len(server.requests) == 3
        assert time.slept[0] >= 7
    async with loopback(scripted(complains(500, "broken"))) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.api_base)
        (entry,) = await ask(client_of("openai/gpt-4o", max_retries=1))
    assert isinstance(entry, Failure) and entry.type == "ProviderError"
    assert len(server.requests) == 2


async def test_a_wrong_key_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(scripted(complains(401, "Incorrect API key provided: sk-of-openai"))) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.api_base)
        with pytest.raises(AuthError):
            await ask(client_of("openai/gpt-4o"))
    assert len(server.requests) == 1


async def test_a_provider_that_litellm_does_not_know_is_said_at_once() -> None:
    with pytest.raises(ConfigError, match="litellm knows no provider for 'nobody/m'"):
        await ask(client_of("nobody/m"))


async def test_the_cache_is_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with loopback(strict(scripted(message(text())))) as server:
        monkeypatch.setenv("ANTHROPIC_API_BASE", f"http://127.0.0.1:{server.port}")
        client = client_of("anthropic/claude-sonnet-4-5")
        with cached(client, CacheConfig(cache_dir=str(tmp_path))) as layered:
            for _ in range(2):
                (entry,) = await layered.generate(QUESTION, draws=[0], sampling=Sampling(max_tokens=9))
    assert isinstance(entry, Completion) and entry.cached and entry.text == "yes"
    assert len(server.requests) == 1


def _gemini(body: dict[str, Any], number: int) -> Says:
    """Google's own API: it refuses a call that comes back without its signature."""
    for content in body["contents"]:
        for part in content["parts"]:
            if "functionCall" in part and part.get("thoughtSignature") != "c2ln":
                return Says(400, {"error": {"code": 400, "message": "Function call is missing a thought_signature"}})
    call = {"functionCall": {"name": "add", "args": {"a": 1}}, "thoughtSignature": "c2ln"}
    parts = [call] if number == 1 else [{"text": "yes"}]
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 11}
    said = [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]
    return Says(200, {"candidates": said, "usageMetadata": usage, "modelVersion": "m"})


def _deepseek(body: dict[str, Any], number: int) -> Says:
    """DeepSeek's: it refuses a turn that comes back without its thoughts."""
    if any(turn["role"] == "assistant" and turn.get("reasoning_content") != "hm" for turn in body["messages"]):
        return complains(400, "The reasoning_content in the thinking mode must be passed back to the API.")
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    said = {"content": None, "tool_calls": [call]} if number == 1 else {"content": "yes"}
    return says_message({"role": "assistant", "reasoning_content": "hm", **said})


def _anthropic(body: dict[str, Any], number: int) -> Says:
    """Anthropic's: it refuses turns that begin with another block than they did."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    if any(turn["role"] == "assistant" and turn["content"][0] != thought for turn in body["messages"]):
        return Says(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "Expected thinking"}})
    return message(thought, tool_use("add", {"a": 1}), stop="tool_use") if number == 1 else message(thought, text())


@pytest.mark.parametrize(
    ("model", "react", "path"),
    [
        ("gemini/gemini-3-pro-preview", _gemini, ""),
        ("deepseek/deepseek-reasoner", _deepseek, "/v1"),
        ("anthropic/claude-sonnet-4-5", _anthropic, ""),
    ],
)
async def test_what_a_model_thought_goes_back_with_the_results_of_its_calls(
    model: str, react: Callable[[dict[str, Any], int], Says], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = model.partition("/")[0].upper()
    monkeypatch.setenv(f"{provider}_API_KEY", "sk-x")
    extra = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if provider == "ANTHROPIC" else {}
    sampling = Sampling(max_tokens=2000, extra_body=extra)
    async with loopback(react) as server:
        monkeypatch.setenv(f"{provider}_API_BASE", f"http://127.0.0.1:{server.port}{path}")
        client = client_of(model)
        (first,) = await client.generate(QUESTION, draws=[0], sampling=sampling, tools=[ADD])
        assert isinstance(first, Completion) and first.message.tool_calls, first
        kept = Message.model_validate_json(first.message.model_dump_json())
        result = Message(role="tool", content="1", tool_call_id=first.message.tool_calls[0].id)
        (second,) = await client.generate([*QUESTION, kept, result], draws=[0], sampling=sampling, tools=[ADD])
    assert isinstance(second, Completion) and second.text == "yes", second
    assert len(server.requests) == 2


async def test_replies_end_as_they_do_at_the_provider_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    declined = {"role": "assistant", "content": None, "refusal": "I will not."}
    unread = {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<add>"}
    replies = [
        ("anthropic/claude-sonnet-4-5", message(stop="refusal"), "refusal"),
        ("anthropic/claude-sonnet-4-5", message(stop="max_tokens"), "length"),
        ("openai/gpt-4o", Says(200, {"choices": [{"message": declined, "finish_reason": "stop"}]}), "refusal"),
        ("groq/m", Says(400, {"error": {**unread, "type": "invalid_request_error"}}), "malformed_call"),
    ]
    monkeypatch.setenv("GROQ_API_KEY", "gsk-of-groq")
    for model, reply, reason in replies:
        async with loopback(scripted(reply)) as server:
            monkeypatch.setenv("ANTHROPIC_API_BASE", f"http://127.0.0.1:{server.port}")
            monkeypatch.setenv("OPENAI_API_BASE", server.api_base)
            monkeypatch.setenv("GROQ_API_BASE", server.api_base)
            (entry,) = await ask(client_of(model))
        assert isinstance(entry, Completion) and entry.finish_reason == reason, (model, entry)


@pytest.mark.parametrize(
    ("model", "endpoint"),
    [
        ("openrouter/x/m", "openrouter"), ("hosted_vllm/m", "together"), ("openai/m", "vertex"), ("openai/m", "ollama"),
        ("together_ai/m", "together"), ("xai/m", "xai"),
    ],
)  # fmt: skip
async def test_an_agents_model_gets_its_turns_back_as_the_provider_said_them(
    model: str, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = model.partition("/")[0].upper()
    monkeypatch.setenv(f"{provider}_API_KEY", "sk-x")
    async with loopback(Strict(SAYS[endpoint])) as server:
        monkeypatch.setenv(f"{provider}_API_BASE", server.api_base)
        rollout = await play(client_of(model))
    assert rollout.failure is None and len(rollout.steps or ()) == TURNS, rollout.failure
