# SPDX-License-Identifier: Apache-2.0
"""Models as resources of a reward: ours, asked through the mock, and other people's client objects."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from reward_kit.errors import RewardError
from reward_kit.models import Message
from reward_kit.resources import LLMResourceWrapper, Model, ResourceWrapper, create_llm_resource
from reward_kit.typed_interface import reward_function

MOCK = {"mock": {"rules": [{"pattern": "capital of France", "response": "Paris"}], "responses": ["no idea"]}}


class Deployment:
    """As an on-demand LLM of the Fireworks SDK."""

    deployment_type = "on-demand"
    applied = 0

    def apply(self) -> None:
        self.applied += 1


def test_a_client_object_is_applied_once_and_handed_over() -> None:
    llm = Deployment()
    wrapper = create_llm_resource(llm)
    assert issubclass(LLMResourceWrapper, ResourceWrapper)
    with pytest.raises(RuntimeError, match="setup"):
        wrapper.get_client()
    wrapper.setup()
    wrapper.setup()
    assert (wrapper.get_client(), llm.applied) == (llm, 1)
    wrapper.cleanup()
    with pytest.raises(RuntimeError, match="setup"):
        wrapper.get_client()


def test_a_client_that_needs_no_deployment_is_handed_over_as_it_is() -> None:
    wrapper = create_llm_resource(client := object())
    wrapper.setup()
    assert wrapper.get_client() is client
    with pytest.raises(TypeError, match="'temperature'"):
        create_llm_resource(object(), temperature=1)


def test_a_models_name_makes_a_model_to_ask() -> None:
    judge = create_llm_resource("mock", **MOCK)

    @reward_function(resources={"llm": [judge]})
    def right(messages: list[Message], resources: dict[str, list[Model]], **kwargs: Any) -> bool:
        return resources["llm"][0].ask(messages[:1]).message.text == messages[-1].text

    call: Any = right
    turns = [{"role": "user", "content": "The capital of France?"}, {"role": "assistant", "content": "Paris"}]
    assert [call(messages=turns).score for _ in range(2)] == [1.0, 1.0]


async def test_an_async_reward_asks_on_its_own_loop_and_a_sync_one_beside_it() -> None:
    wrapper = create_llm_resource("mock", **MOCK)
    wrapper.setup()
    model: Model = wrapper.get_client()
    assert (await model.ask_async("What is the capital of France?")).message.text == "Paris"
    assert model.ask([Message(role="user", content="And of Spain?")]).message.text == "no idea"


def test_a_model_that_fails_is_a_reward_error() -> None:
    wrapper = create_llm_resource("mock", mock={"responses": ["x"], "fail_every": 1})
    wrapper.setup()
    with pytest.raises(RewardError, match="'mock' gave no answer"):
        wrapper.get_client().ask("anything")


def test_it_crosses_into_a_worker_before_it_is_set_up() -> None:
    copy = pickle.loads(pickle.dumps(create_llm_resource("mock", **MOCK)))
    copy.setup()
    assert copy.get_client().ask("capital of France").message.text == "Paris"


def test_a_wrapper_must_say_how() -> None:
    with pytest.raises(TypeError, match="abstract"):
        ResourceWrapper()  # type: ignore[abstract]
