# SPDX-License-Identifier: Apache-2.0
"""Parameters that providers refuse, each in its provider's shape and words: mended, recorded, said once, remembered."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reward_kit.config_models import GenerationConfig, Sampling
from reward_kit.errors import AuthError
from reward_kit.generation.client import LimitedEndpoint
from reward_kit.generation.factory import make_client
from reward_kit.generation.presets import ADDRESS_VARIABLES, PRESETS
from reward_kit.models import Completion, Failure, Message
from tests.generation.gemini_endpoint import as_chat
from tests.generation.loopback import Loopback, Says, answer, loopback


class Refusal(NamedTuple):
    """What a provider says of a parameter that a model does not take."""

    provider: str
    parameter: str
    status: int
    body: Any
    instead: str | None = None
    """The parameter that is sent in its place."""


def openai(message: str, param: str | None = None, code: str | None = None) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def google(message: str) -> Any:
    return [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]


def fastapi(name: str, words: str = "Extra inputs are not permitted") -> Any:
    return [{"type": "extra_forbidden", "loc": ["body", name], "msg": words, "input": 1}]


NOT_HERE = "Unsupported parameter: '{}' is not supported with this model."
REFUSALS = [
    Refusal("openai", "temperature", 400, openai("Unsupported value: 'temperature' does not support 0.5 with this "
            "model. Only the default (1) value is supported.", "temperature", "unsupported_value")),
    Refusal("openai", "max_completion_tokens", 400,
            openai("Unrecognized request argument supplied: max_completion_tokens"), "max_tokens"),
    Refusal("openai", "logprobs", 403, openai("You are not allowed to request logprobs from this model")),
    Refusal("openai", "seed", 400, openai(NOT_HERE.format("seed"), "seed", "unsupported_parameter")),
    Refusal("openai", "n", 400, openai("Invalid 'n': integer above maximum value. Expected a value <= 1.", "n")),
    Refusal("azure", "max_tokens", 400, openai(NOT_HERE.format("max_tokens") + " Use 'max_completion_tokens' instead.",
            "max_tokens", "unsupported_parameter"), "max_completion_tokens"),
    Refusal("azure", "logprobs", 400,
            {"error": {"code": "BadRequest", "message": "logprobs, top_logprobs are not available for this model"}}),
    Refusal("anthropic", "temperature", 400, {"type": "error", "error": {"type": "invalid_request_error",
            "message": "temperature is deprecated for this model."}}),
    Refusal("anthropic", "top_p", 400, {"type": "error", "error": {"type": "invalid_request_error",
            "message": "`temperature` and `top_p` cannot both be specified for this model. Please use only one."}}),
    Refusal("gemini", "seed", 400, google('Invalid JSON payload received. Unknown name "seed": Cannot find field.')),
    Refusal("gemini", "logprobs", 400, google("Logprobs is not enabled for models/m")),
    Refusal("gemini", "n", 400, google("Multiple candidates is not enabled for this model")),
    Refusal("vertex", "n", 400, google("Only one candidate can be specified in the current model")),
    Refusal("vertex", "top_k", 400, google('Invalid JSON payload received. Unknown name "topK": Cannot find field.')),
    Refusal("bedrock", "seed", 400, {"message": "Malformed input request: #: extraneous key [seed] is not permitted, "
            "please reformat your input and try again."}),
    Refusal("together", "top_k", 422, {"error": {"message": "top_k is not supported by this model",
            "type": "invalid_request_error", "param": "top_k", "code": None}}),
    Refusal("groq", "seed", 400, openai("property 'seed' is unsupported")),
    Refusal("mistral", "top_k", 422, {"object": "error", "message": {"detail": fastapi("top_k")},
            "type": "invalid_request_error", "code": None}),
    Refusal("deepseek", "logprobs", 400, openai("This model does not support the parameter `logprobs`")),
    Refusal("xai", "reasoning_effort", 400, {"code": "Client specified an invalid argument",
            "error": "Argument not supported on this model: reasoningEffort"}),
    Refusal("openrouter", "temperature", 400, {"error": {"message": "Provider returned error", "code": 400, "metadata":
            {"provider_name": "OpenAI", "raw": json.dumps(openai(NOT_HERE.format("temperature"), "temperature"))}}}),
    Refusal("fireworks", "min_p", 400, {"error": {"object": "error", "type": "invalid_request_error",
            "message": "Extra inputs are not permitted, field: 'min_p', value: 0.1"}}),
    Refusal("ollama", "logprobs", 400, {"error": {"message": "logprobs is not supported", "type": "api_error"}}),
    Refusal("vllm", "top_k", 400, {"object": "error", "type": "BadRequestError", "param": None, "code": 400, "message":
            "[{'type': 'extra_forbidden', 'loc': ('body', 'top_k'), 'msg': 'Extra inputs are not permitted'}]"}),
    Refusal("vllm", "min_p", 422, {"detail": fastapi("min_p")}),
    Refusal("vllm", "temperature", 400, {"error": "invalid temperature: only 1 is allowed for this model"}),
]  # fmt: skip
SAMPLING = {
    "temperature": 0.5, "max_tokens": 9, "top_p": 0.9, "top_k": 3, "min_p": 0.1, "seed": 3, "reasoning_effort": "low",
    "extra_body": {"logprobs": True, "top_logprobs": 2},
}  # fmt: skip


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ADDRESS_VARIABLES & os.environ.keys():
        monkeypatch.delenv(name)
    for preset in PRESETS.values():
        if preset.key:
            monkeypatch.setenv(preset.key, "a-key")
    monkeypatch.setenv("HOME", str(tmp_path))


def served(body: dict[str, Any]) -> Says:
    said = answer(*["yes"] * body.get("n", 1))
    return Says(200, {**said.body, "content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn"})


async def ask(provider: str, server: Loopback, monkeypatch: pytest.MonkeyPatch, times: int) -> dict[str, str]:
    """Ask for two answers, as often as that; returns what the client records."""
    monkeypatch.setenv(f"REWARD_KIT_{provider.upper()}_API_BASE", server.api_base)
    client = make_client(GenerationConfig(model_name=f"{provider}/m"))
    assert isinstance(client, LimitedEndpoint)
    sampling = Sampling(**SAMPLING)
    try:
        for number in range(times):
            entries = await client.generate(
                [Message(role="user", content="Is it?")], draws=(0, 1), sampling=sampling, sample_id=str(number)
            )
            assert all(isinstance(entry, Completion) for entry in entries), entries
    finally:
        await client.close()
    return dict(client.dropped_parameters)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: f"{refusal.provider}-{refusal.parameter}")
async def test_a_refusal_is_mended_recorded_said_once_and_remembered(
    refusal: Refusal, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    name = refusal.parameter

    def react(body: dict[str, Any], number: int) -> Says:
        return Says(refusal.status, refusal.body) if name in body else served(body)

    with caplog.at_level(logging.WARNING, logger="reward_kit"):
        async with loopback(as_chat(react)) as server:
            recorded = await ask(refusal.provider, server, monkeypatch, times=3)
    refused = [body for body in server.requests if name in body]
    assert 1 <= len(refused) <= 2, "only what was on its way at the same time is refused again"
    assert name in recorded
    assert len([record for record in caplog.records if repr(name) in record.getMessage()]) == 1
    last, first = server.requests[-1], server.requests[0]
    missing = {name} | ({"top_logprobs"} if name == "logprobs" else set())
    added = {refusal.instead} if refusal.instead else set()
    assert last.keys() == (first.keys() | added) - missing - {"n"} | ({"n"} if "n" in last else set())
    if refusal.instead:
        assert last[refusal.instead] == 9


@pytest.mark.parametrize(
    "body",
    [
        openai("Your key is not allowed to use this model"),
        openai("You are not allowed to sample from this model"),
        {"error": {"message": "Forbidden", "code": 403}},
    ],
)
async def test_a_403_that_is_not_about_a_parameter_is_about_the_key(body: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(lambda _, number: Says(403, body)) as server:
        with pytest.raises(AuthError):
            await ask("openai", server, monkeypatch, times=1)
    assert len(server.requests) == 1


async def test_a_value_that_is_out_of_range_is_the_users_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    words = openai("temperature must be between 0 and 0.4", "temperature")
    async with loopback(lambda body, number: Says(400, words)) as server:
        monkeypatch.setenv("REWARD_KIT_OPENAI_API_BASE", server.api_base)
        client = make_client(GenerationConfig(model_name="openai/m"))
        try:
            (entry,) = await client.generate(
                [Message(role="user", content="?")], draws=(0,), sampling=Sampling(temperature=0.5)
            )
        finally:
            await client.close()
    assert isinstance(entry, Failure) and "between 0 and 0.4" in entry.message
    assert len(server.requests) == 1
