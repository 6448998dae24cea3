# SPDX-License-Identifier: Apache-2.0
"""Each preset's request beside the one that litellm sends: address, key and parameters. Every difference is meant."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import litellm
import pytest

from reward_kit.config_models import GenerationConfig, Sampling
from reward_kit.generation.factory import make_client
from reward_kit.generation.http.endpoint import EndpointClient
from reward_kit.generation.presets import ADDRESS_VARIABLES, PRESETS
from reward_kit.models import Message
from tests.generation.loopback import Loopback, Says, answer, loopback

LITELLM = {
    "openai": "openai/gpt-4o", "anthropic": "anthropic/claude-sonnet-4-5", "gemini": "gemini/gemini-2.5-flash",
    "azure": "azure/gpt-4o", "bedrock": "bedrock/openai.gpt-oss-120b-1:0", "vertex": "vertex_ai/gemini-2.5-flash",
    "together": "together_ai/openai/gpt-oss-120b", "groq": "groq/openai/gpt-oss-120b",
    "mistral": "mistral/mistral-large-latest", "deepseek": "deepseek/deepseek-v4-flash", "xai": "xai/grok-4.3",
    "openrouter": "openrouter/openai/gpt-4o", "fireworks": "fireworks_ai/accounts/fireworks/models/gpt-oss-120b",
    "ollama": "ollama_chat/qwen3:4b", "vllm": "hosted_vllm/Qwen/Qwen3-4B",
}  # fmt: skip
"""What litellm calls a model of each preset. The name behind its provider is the name behind our prefix."""

NATIVE = {
    "candidate_count": "n", "max_output_tokens": "max_tokens", "maxTokens": "max_tokens", "num_predict": "max_tokens",
    "topP": "top_p", "stopSequences": "stop", "stop_sequences": "stop", "responseLogprobs": "logprobs",
    "system_instruction": "system", "systemInstruction": "system", "candidateCount": "n",
    "maxOutputTokens": "max_tokens", "presencePenalty": "presence_penalty",
}  # fmt: skip
"""Parameters of providers' own APIs, by the names of chat completions."""
GROUPS = ("generationConfig", "inferenceConfig", "options")
"""Where such an API has its parameters."""

ITS_OWN_API = "litellm speaks the provider's own API; we its OpenAI-compatible endpoint, as it documents it"
ONE_AT_A_TIME = "not taken there, or not verified: we send one request for each answer, and n_mode=native asks for all"
NOT_LITELLMS = "litellm leaves it out; the provider takes it, or refuses it, which is met"
NEITHER = "the provider refuses it: litellm sends it all the same, and we leave it out and say so"
DIFFERENCES: dict[str, dict[str, str]] = {
    "openai": {
        "max_tokens": "OpenAI has deprecated it; litellm sends the new name to some models only",
        "max_completion_tokens": "OpenAI's name for it, which all of its models take",
    },
    "anthropic": {"top_k": NOT_LITELLMS},
    "gemini": {"top_logprobs": NOT_LITELLMS},
    "azure": {
        "path": "litellm uses the older routes by deployment and dated version; we the route v1, which has neither",
        "key": "both headers are taken; on the route v1 a key may be a bearer's",
    },
    "bedrock": {
        "path": ITS_OWN_API, "seed": NOT_LITELLMS, "logprobs": NOT_LITELLMS, "top_logprobs": NOT_LITELLMS,
        "presence_penalty": NOT_LITELLMS,
    },
    "together": {},
    "groq": {"n": ONE_AT_A_TIME, "logprobs": NEITHER, "top_logprobs": NEITHER},
    "mistral": {"presence_penalty": "litellm leaves it out; Mistral's API has it"},
    "deepseek": {"n": ONE_AT_A_TIME},
    "xai": {"stop": "litellm knows of models that refuse it; we learn that from the refusal"},
    "openrouter": {"usage": "litellm asks for the cost of each request; OpenRouter tells token counts without it"},
    "fireworks": {},
    "ollama": {
        "path": ITS_OWN_API, "key": "we send none, as Ollama wants none, unless the user names one",
        "logprobs": NOT_LITELLMS, "top_logprobs": NOT_LITELLMS, "presence_penalty": NOT_LITELLMS,
        "stream": "on in Ollama's own API unless it is turned off; off in the other",
    },
    "vllm": {"key": "we send none, unless the user names one"},
}  # fmt: skip
"""What differs, by preset, and why it is meant to."""

SAMPLING: dict[str, Any] = {"temperature": 0.5, "max_tokens": 9, "top_p": 0.9, "seed": 3, "stop": ["END"]}
MORE: dict[str, Any] = {"logprobs": True, "top_logprobs": 2, "presence_penalty": 0.1}
ADDRESSES = {"deepseek": "litellm uses /beta, where there is a completion of prefixes; /v1 is what DeepSeek documents"}
"""Where the addresses themselves differ, and why."""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ADDRESS_VARIABLES & os.environ.keys():
        monkeypatch.delenv(name)
    for preset in PRESETS.values():
        if preset.key:
            monkeypatch.setenv(preset.key, "the-key")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")


def served(body: dict[str, Any], number: int) -> Says:
    said = answer(*["yes"] * body.get("n", 1))
    return Says(200, {**said.body, "content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn"})


def ours(prefix: str) -> EndpointClient:
    client = make_client(GenerationConfig(model_name=f"{prefix}/{name_behind(prefix)}"))
    assert isinstance(client, EndpointClient)
    return client


def name_behind(prefix: str) -> str:
    return LITELLM[prefix].partition("/")[2]


def seen(server: Loopback) -> dict[str, Any]:
    """The first request: path, key, and the body's parameters by their names in chat completions."""
    head, body = server.heads[0], server.requests[0]
    found: dict[str, Any] = {"path": unquote(head.split(" ", 2)[1])}
    keys = re.findall(r"(?im)^(authorization|x-api-key|api-key|x-goog-api-key): (.*)\r$", head)
    found["key"] = [(name.lower(), value) for name, value in keys] or None
    for group in GROUPS:
        held = body.pop(group, {})
        if "responseLogprobs" in held:
            held["top_logprobs"] = held.pop("logprobs", None)  # how many, where the other says whether
        body |= held
    for name, value in body.items():
        found[NATIVE.get(name, name)] = value
    if "contents" in found or any("images" in turn for turn in found.get("messages", ())):
        found.pop("contents", None)
        found.pop("messages", None)  # in the shapes of their own APIs
    if "seed" in found or "random_seed" in found:
        found["random_seed" if "random_seed" in found else "seed"] = "derived from the sample"
    return found


async def our_request(prefix: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    client = ours(prefix)
    path = urlsplit(client.api_base).path
    async with loopback(served) as server:
        monkeypatch.setenv(f"REWARD_KIT_{prefix.upper()}_API_BASE", f"http://127.0.0.1:{server.port}{path}")
        client = ours(prefix)
        question = [Message(role="system", content="Be brief."), Message(role="user", content="Is it?")]
        sampling = Sampling(**SAMPLING, top_k=7 if prefix == "anthropic" else None, extra_body=MORE)
        try:
            await client.generate(question, draws=(0, 1), sampling=sampling, sample_id="s")
        finally:
            await client.close()
    return seen(server)


async def litellms_request(prefix: str) -> dict[str, Any]:
    own_api = prefix in {"anthropic", "azure", "bedrock", "ollama"}
    path = "" if own_api else urlsplit(ours(prefix).api_base).path
    question = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is it?"}]
    version = {"api_version": "2024-10-21"} if prefix == "azure" else {}
    async with loopback(served) as server:
        try:
            await litellm.acompletion(
                model=LITELLM[prefix], messages=question, api_base=f"http://127.0.0.1:{server.port}{path}",
                api_key="the-key", n=2, **SAMPLING, **MORE, drop_params=True, num_retries=0, max_retries=0, **version,
            )  # fmt: skip
        except Exception:  # noqa: BLE001 - it cannot read an answer that is not of its provider's own API
            assert server.requests
    return seen(server)


@pytest.mark.parametrize("prefix", [prefix for prefix in PRESETS if prefix != "vertex"])
async def test_a_presets_request_is_litellms_but_for_what_is_meant(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = await our_request(prefix, monkeypatch), await litellms_request(prefix)
    if prefix in {"gemini", "bedrock", "ollama"}:  # the conversation is in other shapes there
        for found in (mine, theirs):
            for name in ("messages", "system", "model"):
                found.pop(name, None)
    differ = {name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)}
    assert differ == DIFFERENCES[prefix].keys(), (mine, theirs)


def test_vertex_has_the_parameters_of_gemini() -> None:
    """litellm asks Vertex with Google's own package, which is not here: its parameters alone are compared."""
    made = [
        litellm.get_optional_params(
            model="gemini-2.5-flash", custom_llm_provider=provider, n=2, **SAMPLING, **MORE, drop_params=True
        )
        for provider in ("vertex_ai", "gemini")
    ]
    assert made[0].keys() - made[1].keys() == {"logprobs"}, "Vertex takes top_logprobs, which are called so there"
    assert made[1].keys() - made[0].keys() == set()
    assert PRESETS["vertex"].rules == PRESETS["gemini"].rules


@pytest.mark.parametrize(
    "prefix", ["openai", "together", "groq", "mistral", "deepseek", "xai", "openrouter", "fireworks"]
)
def test_an_address_is_litellms(prefix: str) -> None:
    *_, address = litellm.get_llm_provider(LITELLM[prefix])
    mine = ours(prefix).api_base
    if address is None:  # litellm leaves it to the client that it calls
        assert (prefix, mine) in {
            ("openai", "https://api.openai.com/v1"),
            ("openrouter", "https://openrouter.ai/api/v1"),
        }
    elif prefix in ADDRESSES:
        assert urlsplit(address).hostname == urlsplit(mine).hostname and address.rstrip("/") != mine
    else:
        assert address.rstrip("/") == mine
