# SPDX-License-Identifier: Apache-2.0
"""The tokens of answers: every shape in which they are told is read into one form, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from reward_kit.config_models import GenerationConfig, Sampling
from reward_kit.errors import ConfigError, EndpointError
from reward_kit.generation.factory import check_model, make_client
from reward_kit.generation.token_data import tokens_of
from reward_kit.models import Completion, Message, Tokens
from tests.generation.loopback import Says, complains, loopback, scripted

IDS, LOGPROBS, PROMPT = [5, 7], [-0.5, -1.25], [1, 2, 3]
PLAIN = [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -1.25}]
BY_ID = [{"token": "token_id:5", "logprob": -0.5}, {"token": "token_id:7", "logprob": -1.25}]
SHAPES: dict[str, tuple[dict[str, Any], dict[str, Any], Tokens]] = {
    "openai": ({"logprobs": {"content": PLAIN}}, {}, Tokens(logprobs=LOGPROBS)),
    "vllm": (
        {"logprobs": {"content": PLAIN}, "token_ids": IDS}, {"prompt_token_ids": PROMPT},
        Tokens(prompt_ids=PROMPT, ids=IDS, logprobs=LOGPROBS),
    ),
    "sglang": (
        {"token_ids": IDS, "prompt_token_ids": PROMPT}, {}, Tokens(prompt_ids=PROMPT, ids=IDS),
    ),
    "vllm, ids in the place of texts": ({"logprobs": {"content": BY_ID}}, {}, Tokens(ids=IDS, logprobs=LOGPROBS)),
    "sglang before": (
        {"meta_info": {"output_token_logprobs": [[-0.5, 5, "a"], [-1.25, 7, None]]}, "prompt_token_ids": PROMPT}, {},
        Tokens(prompt_ids=PROMPT, ids=IDS, logprobs=LOGPROBS),
    ),
    "nemo gym": (
        {"message": {"generation_token_ids": IDS, "generation_log_probs": LOGPROBS, "prompt_token_ids": PROMPT}}, {},
        Tokens(prompt_ids=PROMPT, ids=IDS, logprobs=LOGPROBS),
    ),
    "together": (
        {"logprobs": {"tokens": ["a", "b"], "token_ids": IDS, "token_logprobs": LOGPROBS}}, {},
        Tokens(ids=IDS, logprobs=LOGPROBS),
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_is_read_into_one_form(shape: str) -> None:
    choice, reply, expected = SHAPES[shape]
    assert tokens_of({"message": {"content": "ab"}, **choice}, reply) == expected


@pytest.mark.parametrize("shape", [name for name, (_, _, told) in SHAPES.items() if told.ids and told.logprobs])
def test_ids_and_log_probabilities_of_other_numbers_are_of_no_answer(shape: str) -> None:
    def shortened(value: Any, name: str = "") -> Any:
        if name in {"token_ids", "generation_token_ids"}:
            return value[:-1]
        return {key: shortened(held, key) for key, held in value.items()} if isinstance(value, dict) else value

    choice, reply, expected = SHAPES[shape]
    if shortened(choice) != choice:
        assert tokens_of(shortened(choice), reply) is None
    else:  # one list holds both
        assert tokens_of(choice, reply) == expected


_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_names = ("logprobs", "token_ids", "meta_info", "message", "prompt_token_ids")


@given(choice=st.dictionaries(st.sampled_from(_names), _anything), inner=st.sampled_from(_names), held=_anything)
def test_whatever_is_told_of_tokens_no_answer_is_lost(choice: dict[str, Any], inner: str, held: Any) -> None:
    nested = {"content": held, "token_ids": held, "output_token_logprobs": held, "generation_token_ids": held}
    for told in (choice, {**choice, inner: nested}):
        tokens = tokens_of(told, {})
        assert tokens is None or tokens == Tokens.model_validate(tokens.model_dump())


# ── asked for ────────────────────────────────────────────────────────────────────────────────────────────────────────


def reply_of(shape: str) -> Says:
    choice, reply, _ = SHAPES[shape]
    made = {"finish_reason": "stop", **choice, "message": {"content": "ab", **choice.get("message", {})}}
    return Says(200, {"choices": [made], **reply, "usage": {"prompt_tokens": 3, "completion_tokens": 2}})


async def ask(config: GenerationConfig) -> Completion:
    client = make_client(config)
    try:
        question = [Message(role="user", content="Is it?")]
        (answer,) = await client.generate(question, draws=[0], sampling=config.sampling())
    finally:
        await client.close()
    assert isinstance(answer, Completion), answer
    return answer


@pytest.mark.parametrize(("asked", "more"), [("ids", {}), ("ids+logprobs", {"logprobs": True})])
async def test_an_endpoint_is_asked_for_them(asked: Any, more: dict[str, Any]) -> None:
    async with loopback(scripted(reply_of("vllm"))) as server:
        answer = await ask(GenerationConfig(model_name="m", api_base=server.api_base, tokens=asked))
    sent = server.requests[0]
    assert {name: sent[name] for name in sent.keys() & {"return_token_ids", "logprobs", "tokens"}} == {
        "return_token_ids": True, **more,
    }  # fmt: skip
    assert answer.tokens == SHAPES["vllm"][2]


async def test_together_tells_them_in_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOGETHER_API_KEY", "k")
    async with loopback(scripted(reply_of("together"))) as server:
        monkeypatch.setenv("REWARD_KIT_TOGETHER_API_BASE", server.api_base)
        answer = await ask(GenerationConfig(model_name="together/m", tokens="ids+logprobs"))
    assert (server.requests[0]["logprobs"], answer.tokens) == (1, SHAPES["together"][2])


@pytest.mark.parametrize("reply", [reply_of("openai"), Says(200, {"choices": [{"message": {"content": "ab"}}]})])
async def test_the_first_answer_without_them_ends_the_run(reply: Says) -> None:
    async with loopback(scripted(reply)) as server:
        with pytest.raises(EndpointError, match=r"asks for ids, and http.* answered without ids"):
            await ask(GenerationConfig(model_name="m", api_base=server.api_base, tokens="ids"))
    assert len(server.requests) == 1


async def test_an_endpoint_that_refuses_the_words_ends_the_run_too() -> None:
    words = "Unrecognized request argument supplied: return_token_ids"

    def react(body: dict[str, Any], _: int) -> Says:
        return complains(400, words) if "return_token_ids" in body else reply_of("openai")

    async with loopback(react) as server:
        with pytest.raises(EndpointError, match="without ids"):
            await ask(GenerationConfig(model_name="m", api_base=server.api_base, tokens="ids"))


@pytest.mark.parametrize("name", ["gpt-4o", "anthropic/m", "gemini/m", "mock", "local", "litellm/a/b", "gpt-5-pro"])
def test_a_provider_that_never_tells_them_is_refused_before_it_is_asked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    config = GenerationConfig(model_name=name, tokens="ids")
    for door in (make_client, check_model):
        with pytest.raises(ConfigError, match="where they are not told"):
            door(config)
    with pytest.raises(ValidationError, match="batches tell no tokens"):
        GenerationConfig(model_name=name, tokens="ids", transport="batch")


def test_what_is_asked_of_tokens_is_part_of_what_is_asked() -> None:
    assert Sampling(tokens="ids").given() == {"tokens": "ids"} and Sampling().given() == {}
