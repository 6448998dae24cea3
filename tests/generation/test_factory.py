# SPDX-License-Identifier: Apache-2.0
"""A model's name chooses its client."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from reward_kit.config_models import GenerationConfig, MockConfig
from reward_kit.errors import AuthError, ConfigError
from reward_kit.generation.client import ModelClient
from reward_kit.generation.factory import make_client
from reward_kit.generation.http.clients import FireworksModelClient, OpenAICompatibleClient
from reward_kit.generation.mock import MockModelClient


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIREWORKS_API_BASE", raising=False)
    monkeypatch.setenv("FIREWORKS_API_KEY", "fw-test")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def made(model: str | None, **settings: object) -> ModelClient:
    return make_client(GenerationConfig.model_validate({"model_name": model, **settings}))


def test_mock_takes_its_configuration() -> None:
    client = made("mock", mock={"responses": ["a"]})
    assert isinstance(client, MockModelClient)
    assert client.identity == MockModelClient(MockConfig(responses=["a"])).identity


def test_a_model_called_mock_at_an_endpoint_is_the_endpoints() -> None:
    client = made("mock", api_base="http://localhost:8000/v1")
    assert isinstance(client, OpenAICompatibleClient) and client.api_base == "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("model", "api_base", "kind", "endpoint"),
    [
        ("accounts/fireworks/models/x", None, FireworksModelClient, "https://api.fireworks.ai/inference/v1"),
        ("x", "https://api.fireworks.ai/inference/v1", FireworksModelClient, "https://api.fireworks.ai/inference/v1"),
        ("accounts/a/models/x", "http://localhost:1/v1", OpenAICompatibleClient, "http://localhost:1/v1"),
        ("gpt-6-luna", None, OpenAICompatibleClient, "https://api.openai.com/v1"),
        ("x", "https://notfireworks.ai/v1", OpenAICompatibleClient, "https://notfireworks.ai/v1"),
    ],
)
def test_the_endpoint_is_told_by_the_base_or_by_the_name(
    model: str, api_base: str | None, kind: type[ModelClient], endpoint: str
) -> None:
    client = made(model, api_base=api_base)
    assert type(client) is kind
    assert (client.model, client.identity["endpoint"]) == (model, endpoint)


def test_a_key_that_is_needed_and_missing_is_said_before_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(AuthError, match="OPENAI_API_KEY"):
        made("gpt-6-luna")


@pytest.mark.parametrize("model", [None, ""])
def test_no_model_says_what_to_set(model: str | None) -> None:
    with pytest.raises(ConfigError, match=r"model_name.*'local'.*'mock'"):
        made(model)


@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="needs pip install 'reward-kit[local]'")
@pytest.mark.parametrize(("model", "said"), [("local:", "without a file"), ("local:/no/such.gguf", "no model file")])
def test_a_local_model_is_looked_for_at_once(model: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        made(model)


def test_the_mock_loads_neither_http_nor_the_embedded_model() -> None:
    program = (
        "import sys\n"
        "from reward_kit.config_models import GenerationConfig\n"
        "from reward_kit.generation.factory import make_client\n"
        "make_client(GenerationConfig(model_name='mock'))\n"
        "print(sorted({'aiohttp', 'xllamacpp', 'hydra', 'rich'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
