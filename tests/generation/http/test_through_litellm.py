# SPDX-License-Identifier: Apache-2.0
"""`litellm/PROVIDER/NAME` as far as it goes without litellm; with it, see tests/with_litellm."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from reward_kit.config_models import GenerationConfig, Sampling
from reward_kit.errors import ConfigError
from reward_kit.generation.batch.choose import batch_model
from reward_kit.generation.factory import key_of, make_client
from reward_kit.models import Completion, Message


@pytest.fixture(autouse=True)
def a_key_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")


async def test_the_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    client = make_client(GenerationConfig(model_name="litellm/cohere_chat/command-a"))
    assert client.model == "cohere_chat/command-a"
    with pytest.raises(ConfigError, match=r"pip install 'reward-kit\[litellm\]'"):
        await client.generate([Message(role="user", content="?")], draws=[0], sampling=Sampling())
    await client.close()


async def test_what_a_provider_said_goes_back_through_litellm_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "index": 0}
    said: dict[str, Any] = {
        "role": "assistant", "content": None, "reasoning_content": "hm",
        "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}],
        "tool_calls": [call | {"provider_specific_fields": {"thought_signature": "sig=="}}],
        "provider_specific_fields": {"refusal": None, "thought_signatures": ["sig=="]},
    }  # fmt: skip
    asked: list[dict[str, Any]] = []

    async def acompletion(**given: Any) -> Any:
        asked.append(given)
        return SimpleNamespace(model_dump=lambda **_: {"choices": [{"message": said}]})

    fake = SimpleNamespace(acompletion=acompletion, get_llm_provider=lambda _: None)
    monkeypatch.setitem(sys.modules, "litellm", fake)
    client = make_client(GenerationConfig(model_name="litellm/gemini/m"))
    question = Message(role="user", content="?")
    (first,) = await client.generate([question], draws=[0], sampling=Sampling())
    assert isinstance(first, Completion)
    stored = Message.model_validate_json(first.message.model_dump_json())
    result = Message(role="tool", content="1", tool_call_id="c")
    await client.generate([question, stored, result], draws=[0], sampling=Sampling())
    assert asked[1]["messages"][1] == said
    assert stored.as_request().keys() == {"role", "content", "tool_calls"}
    await client.close()


def test_no_key_is_sent_but_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "sk-mine")
    assert key_of(GenerationConfig(model_name="litellm/cohere_chat/m")) is None
    assert key_of(GenerationConfig(model_name="litellm/cohere_chat/m", api_key_env="MINE")) == "sk-mine"


def test_what_it_cannot_be() -> None:
    with pytest.raises(ConfigError, match="litellm/PROVIDER/NAME"):
        make_client(GenerationConfig(model_name="litellm/m"))
    with pytest.raises(ConfigError, match=r"Leave `generation\.transport` out"):
        batch_model(GenerationConfig(model_name="litellm/openai/m", transport="batch"))
