# SPDX-License-Identifier: Apache-2.0
"""A key goes to the host it belongs to: through redirects, proxies, addresses of the user's own, for every provider."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from reward_kit.auth import KEY_VARIABLES
from reward_kit.config_models import GenerationConfig, JudgeConfig, Sampling
from reward_kit.errors import AuthError, ConfigError, EndpointError
from reward_kit.generation.factory import key_of, make_client
from reward_kit.generation.http.endpoint import EndpointClient
from reward_kit.generation.presets import ADDRESS_VARIABLES, PRESETS
from reward_kit.http.transport import Transport
from reward_kit.models import Failure, Message
from tests.generation.loopback import Says, loopback

KEYS = {preset.key: f"sk-secret-of-{prefix}" for prefix, preset in PRESETS.items() if preset.key is not None}
KEYS |= {name: f"sk-secret-in-{name}" for name in KEY_VARIABLES.values() if name not in KEYS}
WITH_KEYS = [prefix for prefix, preset in PRESETS.items() if preset.key]
PROXIES = [f"{scheme}_proxy" for scheme in ("http", "https", "all", "no")]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every provider's key, each one different, and no proxy."""
    for name in (*PROXIES, *map(str.upper, PROXIES), *ADDRESS_VARIABLES):
        if name in os.environ:
            monkeypatch.delenv(name)
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")


def keys_in(text: str) -> set[str]:
    """The variables whose keys are in it."""
    return {name for name, key in KEYS.items() if key in text}


def client_for(**settings: Any) -> EndpointClient:
    config = GenerationConfig.model_validate({"api_params": {"max_retries": 0}, **settings})
    client = make_client(config)
    assert isinstance(client, EndpointClient)
    return client


def headers_of(client: EndpointClient) -> str:
    """All headers that the client sends to its host."""
    transport = client._transport
    assert isinstance(transport, Transport)
    return repr(transport._headers)


async def ask(client: EndpointClient) -> Any:
    question = [Message(role="user", content="Is it?")]
    try:
        return await client.generate(question, draws=(0,), sampling=Sampling(max_tokens=5))
    finally:
        await client.close()


# ── redirects ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("exchange", ["raw", "session"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("prefix", PRESETS)
async def test_no_redirect_is_followed(
    prefix: str, status: int, exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if exchange == "session":
        monkeypatch.setattr(Transport, "_raw_exchange", lambda _: None)
    async with loopback(lambda body, number: Says(500)) as thief:
        there = f"http://localhost:{thief.port}/v1/chat/completions"
        async with loopback(lambda body, number: Says(status, b"", {"Location": there})) as server:
            monkeypatch.setenv(f"REWARD_KIT_{prefix.upper()}_API_BASE", server.api_base)
            with pytest.raises(EndpointError, match="redirects"):
                await ask(client_for(model_name=f"{prefix}/m"))
    variable = PRESETS[prefix].key
    assert keys_in("".join(server.heads)) == ({variable} if variable else set())
    assert thief.requests == [] and thief.connections == 0


# ── addresses of the user's own ──────────────────────────────────────────────────────────────────────────────────────

LABEL = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=8).filter(
    lambda label: not label.startswith("-") and not label.endswith("-")
)
DOMAIN = st.sampled_from(sorted(KEY_VARIABLES))
HOSTS = st.one_of(
    st.lists(LABEL, min_size=2, max_size=4).map(".".join),
    DOMAIN,
    st.tuples(LABEL, DOMAIN).map(".".join),
    st.tuples(LABEL, DOMAIN).map("".join),
    st.tuples(LABEL, DOMAIN).map("-".join),
    st.tuples(DOMAIN, LABEL).map(".".join),
    st.tuples(DOMAIN, LABEL, st.sampled_from(["com", "ai"])).map(".".join),
)


@given(HOSTS, st.sampled_from(["", ":8443", ":443"]), st.sampled_from(sorted(PRESETS)), st.booleans())
def test_an_address_gets_the_key_of_its_own_host_or_none(host: str, port: str, prefix: str, upper: bool) -> None:
    """Whatever the model is called: a prefix says nothing where there is an address."""
    shown = host.upper() if upper else host
    client = client_for(model_name=f"{prefix}/m", api_base=f"https://{shown}{port}/v1")
    owners = {variable for domain, variable in KEY_VARIABLES.items() if host == domain or host.endswith(f".{domain}")}
    assert keys_in(headers_of(client)) == owners


@pytest.mark.parametrize("prefix", WITH_KEYS)
@pytest.mark.parametrize(
    "trick", ["https://{host}@evil.example/v1", "https://evil.example/{host}/v1", "https://evil.example#{host}",
              "https://evil.example\\@{host}/v1", "https://{host}.evil.example/v1", "https://evil.example?{host}"],
)  # fmt: skip
def test_an_address_that_only_looks_like_a_providers_gets_no_key(prefix: str, trick: str) -> None:
    host = urlsplit(client_for(model_name=f"{prefix}/m").api_base).hostname
    try:
        client = client_for(model_name="m", api_base=trick.format(host=host))
    except (ConfigError, AuthError, ValidationError):
        return  # it is refused
    assert keys_in(headers_of(client)) == set()


@pytest.mark.parametrize("prefix", WITH_KEYS)
@pytest.mark.parametrize("host", sorted(KEY_VARIABLES))
def test_no_variable_sends_a_providers_key_to_another_provider(
    prefix: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = PRESETS[prefix].key
    monkeypatch.setenv(f"REWARD_KIT_{prefix.upper()}_API_BASE", f"https://api.{host}/v1")
    try:
        sent = keys_in(headers_of(client_for(model_name=f"{prefix}/m")))
    except AuthError:
        return
    assert sent <= {own} and KEY_VARIABLES[host] in {own}


@pytest.mark.parametrize("judge", PRESETS)
@pytest.mark.parametrize("model", PRESETS)
def test_the_model_and_its_judge_have_each_their_own_key(model: str, judge: str) -> None:
    generation = GenerationConfig(model_name=f"{model}/m", api_params={"max_retries": 0})
    judging = JudgeConfig(model_name=f"{judge}/m")
    keys = (key_of(generation), key_of(judging))
    assert keys == tuple(KEYS[name] if (name := PRESETS[prefix].key) else None for prefix in (model, judge))


# ── proxies ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("prefix", WITH_KEYS)
async def test_a_proxy_is_told_the_host_and_never_the_key(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that refuses to connect has seen all that it is told before the encryption begins."""
    seen: list[str] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:word@127.0.0.1:{port}")
        client = client_for(model_name=f"{prefix}/m")
        (entry,) = await ask(client)
    assert isinstance(entry, Failure), "nothing is reached without the proxy"
    host = urlsplit(client.api_base).hostname
    assert seen and all(head.startswith(f"CONNECT {host}:443 HTTP/1.1\r\n") for head in seen)
    assert keys_in("".join(seen)) == set()
    assert "proxy-authorization" in seen[0].lower(), "the proxy's own login goes to the proxy"
