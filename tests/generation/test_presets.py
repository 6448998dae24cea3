# SPDX-License-Identifier: Apache-2.0
"""A prefix chooses the address, the key and the rules; the requests are those a real server on this machine sees."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from reward_kit.auth import key_variable_of
from reward_kit.config_models import GenerationConfig, JudgeConfig, Price, Sampling
from reward_kit.errors import AuthError, ConfigError
from reward_kit.generation.batch.choose import batch_model, batch_price
from reward_kit.generation.client import ModelClient
from reward_kit.generation.factory import make_client, make_judge_client
from reward_kit.generation.http.clients import FireworksModelClient, OpenAICompatibleClient
from reward_kit.generation.http.endpoint import EndpointClient
from reward_kit.generation.presets import ADDRESS_VARIABLES, PRESETS, asked_name
from reward_kit.generation.prices import price_for, price_of, price_table
from reward_kit.http.transport import Transport
from reward_kit.models import Completion, Message
from tests.doc_pages import ROOT
from tests.generation.gemini_endpoint import as_chat
from tests.generation.loopback import Loopback, Says, answer, complains, loopback

KEYS = {preset.key: f"key-of-{prefix}" for prefix, preset in PRESETS.items() if preset.key is not None}

ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
    "azure": "https://mine.openai.azure.com/openai/v1",
    "bedrock": "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1",
    "vertex": "https://aiplatform.googleapis.com/v1/projects/my-project/locations/global/endpoints/openapi",
    "together": "https://api.together.ai/v1",
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "deepseek": "https://api.deepseek.com/v1",
    "xai": "https://api.x.ai/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "fireworks": "https://api.fireworks.ai/inference/v1",
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every provider's key, each one different, and what Azure, Bedrock and Vertex need."""
    for name in ADDRESS_VARIABLES & os.environ.keys():
        monkeypatch.delenv(name)
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")


def config(model: str, **settings: Any) -> GenerationConfig:
    return GenerationConfig.model_validate({"model_name": model, "max_tokens": 9, **settings})


def made(model: str, **settings: Any) -> EndpointClient:
    client = make_client(config(model, **settings))
    assert isinstance(client, EndpointClient)
    return client


def sent_key(client: EndpointClient) -> str | None:
    """The key that the client would show to its host."""
    transport = client._transport
    assert isinstance(transport, Transport)
    headers = transport._headers
    assert len({"Authorization", "x-api-key", "x-goog-api-key"} & headers.keys()) < 2
    return (
        headers.get("x-api-key")
        or headers.get("x-goog-api-key")
        or headers.get("Authorization", "").removeprefix("Bearer ")
        or None
    )


# ── where a prefix leads, and which key goes there ───────────────────────────────────────────────────────────────────


def test_every_preset_has_its_address() -> None:
    assert {prefix: made(f"{prefix}/m").api_base for prefix in PRESETS} == ADDRESSES


@pytest.mark.parametrize("prefix", PRESETS)
def test_the_key_is_the_providers_own_and_goes_to_its_host_only(prefix: str) -> None:
    key = PRESETS[prefix].key
    assert sent_key(made(f"{prefix}/m")) == (None if key is None else KEYS[key])
    host = urlsplit(ADDRESSES[prefix]).hostname or ""
    assert key_variable_of(host) in {None, key}


@pytest.mark.parametrize("prefix", [prefix for prefix, preset in PRESETS.items() if preset.key])
def test_a_missing_key_is_said_with_its_variable(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = str(PRESETS[prefix].key)
    monkeypatch.delenv(variable)
    with pytest.raises(AuthError, match=variable):
        made(f"{prefix}/m")


@pytest.mark.parametrize("prefix", [prefix for prefix, preset in PRESETS.items() if preset.key])
def test_an_address_of_another_provider_gets_no_key(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = "groq" if prefix != "groq" else "mistral"
    monkeypatch.setenv(f"REWARD_KIT_{prefix.upper()}_API_BASE", ADDRESSES[other])
    with pytest.raises(AuthError, match="another provider's host"):
        made(f"{prefix}/m")
    monkeypatch.setenv(f"REWARD_KIT_{prefix.upper()}_API_BASE", "http://gateway.example.com/v1")
    with pytest.raises(AuthError, match="unencrypted"):
        made(f"{prefix}/m")


@pytest.mark.parametrize("endpoint", ["https://api.openai.com", "http://mine.openai.azure.com"])
def test_azures_endpoint_is_looked_at_too(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", endpoint)
    with pytest.raises(AuthError, match="AZURE_OPENAI_ENDPOINT"):
        made("azure/d")


def test_a_key_of_the_users_own_is_the_one_that_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "my-own")
    assert sent_key(made("anthropic/m", api_key_env="MINE")) == "my-own"
    assert sent_key(made("azure/m", api_key="given")) == "given"


# ── what the environment decides ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("prefix", "variable"),
    [("azure", "AZURE_OPENAI_ENDPOINT"), ("bedrock", "AWS_REGION"), ("vertex", "GOOGLE_CLOUD_PROJECT")],
)
def test_what_an_address_needs_is_asked_for(prefix: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable)
    with pytest.raises(ConfigError, match="needs the environment variable"):
        made(f"{prefix}/m")


@pytest.mark.parametrize("hostile", ["evil.example/", "x.evil.example#", "a@evil.example", "..", "eu west"])
@pytest.mark.parametrize(("prefix", "variable"), [("bedrock", "AWS_REGION"), ("vertex", "GOOGLE_CLOUD_LOCATION")])
def test_a_region_cannot_name_another_host(
    prefix: str, variable: str, hostile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, hostile)
    with pytest.raises(ConfigError, match=variable):
        made(f"{prefix}/m")


@pytest.mark.parametrize(
    ("version", "query"), [("preview", "?api-version=preview"), ("v1", "?api-version=v1"), ("2024-10-21", "")]
)
def test_azures_version_is_sent_unless_it_is_one_of_the_older_routes(
    version: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_VERSION", version)
    assert made("azure/d").api_base == ADDRESSES["azure"] + query


def test_a_region_of_vertex_has_a_host_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "europe-west4")
    assert (urlsplit(made("vertex/m").api_base).hostname) == "europe-west4-aiplatform.googleapis.com"


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("openai/gpt-6-luna", "gpt-6-luna"),
        ("openrouter/openai/gpt-6-luna", "openai/gpt-6-luna"),
        ("fireworks/gpt-oss-20b", "accounts/fireworks/models/gpt-oss-20b"),
        ("fireworks/accounts/me/models/mine", "accounts/me/models/mine"),
        ("vertex/gemini-2.5-flash", "google/gemini-2.5-flash"),
        ("vertex/meta/llama", "meta/llama"),
        ("vllm/Qwen/Qwen3-4B", "Qwen/Qwen3-4B"),
        ("ollama/qwen3:4b", "qwen3:4b"),
    ],
)
def test_the_name_behind_the_prefix_is_what_is_asked_for(model: str, sent: str) -> None:
    assert (made(model).model, asked_name(config(model))) == (sent, sent)


@pytest.mark.parametrize("model", ["openai/gpt-6-luna", "anthropic/m", "local/x", "mock/x"])
def test_with_an_address_of_its_own_a_name_is_left_as_it_is(model: str) -> None:
    client = made(model, api_base="http://127.0.0.1:1/v1", seed=1)
    assert (client.model, client.api_base, sent_key(client)) == (model, "http://127.0.0.1:1/v1", None)
    assert asked_name(config(model, api_base="http://127.0.0.1:1/v1")) == model
    assert client.draws_at_once > 1


@pytest.mark.parametrize("model", ["gpt-6-luna", "ft:gpt-6-luna:org::abc"])
def test_other_names_go_where_they_went(model: str) -> None:
    client = made(model)
    assert (client.model, client.api_base) == (model, "https://api.openai.com/v1")


def test_a_preset_has_the_price_of_its_model() -> None:
    assert price_of(made("anthropic/claude-haiku-5-5").model) is not None
    assert price_of(made("fireworks/gpt-oss-20b").model) is not None
    half = batch_price(config("openai/gpt-6-luna"))
    online = price_of("gpt-6-luna")
    assert half is not None and online is not None and half.input == online.input / 2
    # Another provider's model of the same name is not the one in the table.
    assert price_for(config("openrouter/openai/gpt-6-luna")) is None
    assert price_for(config("groq/gpt-6-luna")) is None


@pytest.mark.parametrize(
    ("model", "section", "name"),
    [
        ("azure/gpt-4o", "OpenAI", "gpt-4o"),
        ("vertex/gemini-2.5-flash", "Google", "gemini-2.5-flash"),
        ("gemini/gemini-2.5-flash", "Google", "gemini-2.5-flash"),
        ("anthropic/claude-haiku-4-5", "Anthropic", "claude-haiku-4-5"),
        ("openai/gpt-4o-2024-08-06", "OpenAI", "gpt-4o"),
        ("groq/openai/gpt-oss-120b", "Groq", "openai/gpt-oss-120b"),
        ("together/openai/gpt-oss-120b", "Together", "openai/gpt-oss-120b"),
        ("bedrock/openai.gpt-oss-20b-1:0", "Bedrock", "openai.gpt-oss-20b-1:0"),
        ("mistral/mistral-large-latest", "Mistral", "mistral-large-latest"),
        ("xai/grok-4.7", "xAI", "grok-4.7"),
        ("deepseek/deepseek-v4-pro", "DeepSeek", "deepseek-v4-pro"),
        ("fireworks/gpt-oss-20b", "Fireworks", "accounts/fireworks/models/gpt-oss-20b"),
    ],
)
def test_a_price_is_that_of_the_provider_who_is_asked(model: str, section: str, name: str) -> None:
    assert price_for(config(model)) == price_table().by_provider[section][name]


def test_every_section_of_prices_is_some_presets() -> None:
    assert {preset.prices for preset in PRESETS.values()} - {None} == price_table().by_provider.keys()


def test_a_name_alone_does_not_tell_that_a_host_of_others_models_is_asked() -> None:
    assert price_of("openai/gpt-oss-120b") is None
    assert price_for(config("openai/gpt-oss-120b", api_base="http://127.0.0.1:1/v1")) is None
    assert price_for(config("groq/m", price={"input": 1, "output": 2})) == Price(input=1, output=2)


def test_batches_know_the_prefix_too() -> None:
    assert batch_model(config("openai/gpt-6-luna")).client.model == "gpt-6-luna"
    fireworks = batch_model(config("fireworks/gpt-oss-20b"))
    assert fireworks.client.model == "accounts/fireworks/models/gpt-oss-20b"
    assert fireworks.shape == batch_model(config("accounts/fireworks/models/gpt-oss-20b")).shape
    assert isinstance(made("fireworks/gpt-oss-20b"), FireworksModelClient)


def test_a_judge_that_gives_numbers_has_the_key_of_its_own_host() -> None:
    for model in ("fireworks/embedder", "accounts/fireworks/models/embedder"):
        judge = make_judge_client(JudgeConfig(model_name=model, api="embeddings"))
        assert isinstance(judge, OpenAICompatibleClient)
        assert judge.api_base == ADDRESSES["fireworks"]
        assert sent_key(judge) == KEYS["FIREWORKS_API_KEY"]


# ── the requests, as a server sees them ──────────────────────────────────────────────────────────────────────────────

SAMPLING = {"temperature": 0.5, "max_tokens": 9, "seed": 3, "extra_body": {"logprobs": True}}
TWO = (0, 1)


async def ask(client: ModelClient, *draws: int, **sampling: Any) -> list[Completion]:
    question = [Message(role="system", content="Be brief."), Message(role="user", content="Is it?")]
    entries = await client.generate(question, draws=draws, sampling=Sampling(**sampling), sample_id="s")
    assert all(isinstance(entry, Completion) for entry in entries), entries
    return [entry for entry in entries if isinstance(entry, Completion)]


def elsewhere(monkeypatch: pytest.MonkeyPatch, prefix: str, server: Loopback) -> str:
    """Have the preset's requests go to the server, under the path they have at the provider's; returns that path."""
    path = urlsplit(ADDRESSES[prefix]).path
    monkeypatch.setenv(f"REWARD_KIT_{prefix.upper()}_API_BASE", f"http://127.0.0.1:{server.port}{path}")
    return path


def served(body: dict[str, Any], number: int) -> Says:
    """An answer in both shapes: each client reads its own."""
    said = answer(*["yes"] * body.get("n", 1))
    return Says(200, {**said.body, "content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn"})


@pytest.mark.parametrize("prefix", PRESETS)
async def test_a_presets_request_is_what_its_provider_expects(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    preset = PRESETS[prefix]
    async with loopback(as_chat(served)) as server:
        path = elsewhere(monkeypatch, prefix, server)
        client = made(f"{prefix}/m")
        try:
            assert len(await ask(client, *TWO, **SAMPLING)) == 2
        finally:
            await client.close()
    rules = preset.rules
    assert len(server.requests) == (1 if rules.takes_n else 2)
    for head in server.heads:
        route = {"messages": "messages", "gemini": "models/m:generateContent"}.get(preset.api, "chat/completions")
        assert head.startswith(f"POST {path}/{route} HTTP/1.1\r\n")
        sent = re.findall(r"(?im)^(?:authorization: Bearer|x-api-key:|x-goog-api-key:) (.*)\r$", head)
        assert sent == ([] if preset.key is None else [KEYS[preset.key]])
        assert not [key for name, key in KEYS.items() if name != preset.key and key in head]
    for body in server.requests:
        assert body["model"] == preset.model("m")
        assert [message["role"] for message in body["messages"]] == ["system", "user"][preset.api == "messages" :]
        assert body.get("n") == (2 if rules.takes_n else None)
        for name, value in {"temperature": 0.5, "max_tokens": 9, "logprobs": True}.items():
            if name in rules.refuses:
                assert name not in body
            else:
                assert body[rules.names.get(name, name)] == value
        seeds = [name for name in ("seed", "random_seed") if name in body]
        assert seeds == ([] if "seed" in rules.refuses else [rules.names.get("seed", "seed")])
    asked = {"temperature", "max_tokens", "seed", "logprobs"}
    assert client.dropped_parameters == {name: why for name, why in rules.refuses.items() if name in asked}


async def test_nothing_is_recorded_as_dropped_that_nobody_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(served) as server:
        elsewhere(monkeypatch, "anthropic", server)
        client = made("anthropic/m")
        try:
            await ask(client, 0, temperature=1.0, max_tokens=5)
        finally:
            await client.close()
    assert client.dropped_parameters == {}


REFUSALS = {
    "temperature": ("temperature", "Unsupported parameter: 'temperature' is not supported with this model."),
    "max_tokens": ("max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model."),
    "max_completion_tokens": ("max_completion_tokens", "Unrecognized request argument: max_completion_tokens"),
    "seed": (None, 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'),
    "random_seed": (None, "random_seed: Extra inputs are not permitted"),
    "logprobs": (None, "`logprobs` is not supported with this model"),
    "n": (None, "'n' : number must be at most 1"),
}


@pytest.mark.parametrize("prefix", PRESETS)
async def test_what_a_provider_refuses_is_left_out_and_recorded(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that takes none of the parameters, and says so one at a time, in words that providers use."""

    def picky(body: dict[str, Any], number: int) -> Says:
        for name, (param, words) in REFUSALS.items():
            if name in body and name not in wanted:
                return complains(400, words, param=param)
        return served(body, number)

    wanted = {"max_tokens"} if PRESETS[prefix].api == "messages" else set()  # Anthropic does not go without

    async with loopback(as_chat(picky)) as server:
        elsewhere(monkeypatch, prefix, server)
        client = made(f"{prefix}/m")
        try:
            assert len(await ask(client, *TWO, **SAMPLING)) == 2
            refused = len(server.requests)
            assert len(await ask(client, *TWO, **SAMPLING)) == 2
        finally:
            await client.close()
    assert {name for name in REFUSALS if name in server.requests[-1]} == wanted
    assert len(server.requests) == refused + 2, "what was learned is not asked again"
    names = PRESETS[prefix].rules.names
    asked = {"temperature", "max_tokens", "seed", "logprobs"} - wanted
    assert {names.get(name, name) for name in asked} <= set(client.dropped_parameters)
    assert client.draws_at_once == 1


async def test_the_users_word_on_n_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(served) as server:
        elsewhere(monkeypatch, "groq", server)
        client = made("groq/m", n_mode="native")
        try:
            await ask(client, *TWO)
        finally:
            await client.close()
    assert [body["n"] for body in server.requests] == [2]


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_page_has_every_prefix_with_its_address_and_key() -> None:
    rows = re.findall(r"(?m)^\| `(\w+)/` \| (.*)$", (ROOT / "docs" / "models.md").read_text(encoding="utf-8"))
    assert [prefix for prefix, _ in rows] == list(PRESETS)
    for prefix, row in rows:
        preset = PRESETS[prefix]
        if isinstance(preset.address, str):
            assert f"`{preset.address}`" in row
        assert (f"`{preset.key}`" if preset.key else "none") in row
        for name in {*preset.rules.refuses, *preset.rules.names, *preset.rules.names.values()}:
            assert f"`{name}`" in row, (prefix, name)
        assert ("one answer a request" in row) is not preset.rules.takes_n, prefix


@pytest.mark.parametrize(
    "name",
    ["antropic/claude-x", "opena/gpt-x", "olama/qwen", "x-ai/grok", "google/gemini-x", "fireworkss/q", "OpenAI/m"],
)
def test_a_prefix_that_is_nearly_a_providers_is_refused_before_prompts_go_elsewhere(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-openai")
    with pytest.raises(ConfigError, match=r"Did you mean .*generation\.api_base"):
        make_client(GenerationConfig(enabled=True, model_name=name))
    make_client(GenerationConfig(enabled=True, model_name=name, api_base="http://127.0.0.1:1/v1"))


@pytest.mark.parametrize(
    "name", ["mistralai/Mistral-7B", "meta-llama/Llama-4", "foo/bar", "anthropic/", "anthropic:claude"]
)
def test_a_name_of_no_provider_is_not_asked_at_openai(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-openai")
    with pytest.raises(ConfigError, match=r"generation\.(api_base|model_name)"):
        make_client(GenerationConfig(enabled=True, model_name=name))
    make_client(GenerationConfig(enabled=True, model_name=name, api_base="http://127.0.0.1:1/v1"))


# ── names that need no prefix ────────────────────────────────────────────────────────────────────────────────────────

SAME = [("gpt-4o", "openai/gpt-4o"), ("accounts/fireworks/models/m", "fireworks/accounts/fireworks/models/m"),
        ("accounts/fireworks/models/m", "fireworks/m"), ("o3", "openai/o3")]  # fmt: skip
ELSEWHERE: list[dict[str, str]] = [
    {}, {"OPENAI_BASE_URL": "https://proxy.example.com/v1"}, {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"},
    {"REWARD_KIT_OPENAI_API_BASE": "https://proxy.example.com/v1"}, {"FIREWORKS_API_BASE": "https://eu.fireworks.ai"},
    {"REWARD_KIT_FIREWORKS_API_BASE": "https://proxy.example.com/v1"},
    {"OPENAI_BASE_URL": "https://a.example.com/v1", "REWARD_KIT_OPENAI_API_BASE": "https://b.example.com/v1"},
]  # fmt: skip


def all_about(client: EndpointClient) -> tuple[object, ...]:
    rules = client._rules if isinstance(client, OpenAICompatibleClient) else None
    return type(client), client.model, client.api_base, sent_key(client), rules, client.draws_at_once, client.identity


@pytest.mark.parametrize("elsewhere", ELSEWHERE, ids=lambda names: "+".join(names) or "nowhere else")
@pytest.mark.parametrize(("alone", "whole"), SAME)
def test_a_name_alone_is_the_same_as_with_its_prefix_in_every_respect(
    alone: str, whole: str, elsewhere: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in elsewhere.items():
        monkeypatch.setenv(name, value)
    settings: dict[str, Any] = {"max_tokens": 9}
    one, other = (made(model, **settings) for model in (alone, whole))
    assert all_about(one) == all_about(other)
    prompt = one._prompt([Message(role="user", content="?")], None, Sampling(max_tokens=9), "s")
    assert one.body(prompt, [0]) == other.body(prompt, [0])
    assert ("max_completion_tokens" in one.body(prompt, [0])) == ("openai" in whole)
    assert price_for(config(alone)) == price_for(config(whole))
    judges = [make_judge_client(JudgeConfig(model_name=model)) for model in (alone, whole)]
    numbers = [make_judge_client(JudgeConfig(model_name=model, api="embeddings")) for model in (alone, whole)]
    for pair in (judges, numbers):
        assert all(isinstance(client, EndpointClient) for client in pair)
        assert all_about(pair[0]) == all_about(pair[1])  # type: ignore[arg-type]
        assert pair[0].api_base == one.api_base  # type: ignore[attr-defined]
    assert batch_model(config(alone)).shape == batch_model(config(whole)).shape
    assert batch_price(config(alone)) == batch_price(config(whole))
    ours = {name: value for name, value in elsewhere.items() if ("OPENAI" in name) == ("openai" in whole)}
    if ours:
        assert one.api_base.startswith([*ours.values()][-1])


def test_the_address_that_openais_own_client_heeds_is_for_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert made("anthropic/claude").api_base == ADDRESSES["anthropic"]
    assert made("Qwen/Qwen3-8B").model == "Qwen/Qwen3-8B", "a server of one's own has such names"
    assert made("Qwen/Qwen3-8B").api_base == "http://127.0.0.1:9/v1"
    assert made("m", api_base="http://127.0.0.1:8/v1").api_base == "http://127.0.0.1:8/v1"
    assert make_client(config("mock")).identity["endpoint"] == "mock"
    assert price_for(config("mock")) is not None


def test_the_address_gets_the_key_only_where_that_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://proxy.example.com/v1")
    with pytest.raises(AuthError, match=r"OPENAI_BASE_URL would send the key in OPENAI_API_KEY unencrypted"):
        made("gpt-4o")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.x.ai/v1")
    with pytest.raises(AuthError, match=r"OPENAI_BASE_URL names 'api\.x\.ai', another provider's host"):
        made("gpt-4o")


# ── which tools may be called ────────────────────────────────────────────────────────────────────────────────────────

ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
BY_NAME = {"type": "function", "function": {"name": "add"}}


@pytest.mark.parametrize(
    ("model", "given", "sent"),
    [
        ("gpt-4o", "required", "required"), ("vllm/m", BY_NAME, BY_NAME), ("vertex/m", "none", "none"),
        ("anthropic/m", "required", {"type": "any"}), ("anthropic/m", "auto", {"type": "auto"}),
        ("anthropic/m", "none", {"type": "none"}), ("anthropic/m", BY_NAME, {"type": "tool", "name": "add"}),
        ("anthropic/m", {"type": "any", "disable_parallel_tool_use": True},
         {"type": "any", "disable_parallel_tool_use": True}),
    ],
)  # fmt: skip
def test_tool_choice_is_sent_where_there_are_tools(model: str, given: Any, sent: Any) -> None:
    client, sampling = made(model), Sampling(extra_body={"tool_choice": given})
    for tools in ([ADD], None):
        prompt = client._prompt([Message(role="user", content="?")], tools, sampling, "s")
        assert client.body(prompt, [0]).get("tool_choice") == (sent if tools else None)


async def test_a_tool_choice_that_is_refused_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"error": {"message": "Unsupported parameter: 'tool_choice'", "param": "tool_choice"}}
    async with loopback(lambda body, number: Says(400, words)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.api_base)
        client = made("gpt-4o")
        (entry,) = await client.generate(
            [Message(role="user", content="?")], draws=[0], tools=[ADD],
            sampling=Sampling(extra_body={"tool_choice": "required"}),
        )  # fmt: skip
        await client.close()
    assert not isinstance(entry, Completion) and entry.type == "BadRequestError" and len(server.requests) == 1
