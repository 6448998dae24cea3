# SPDX-License-Identifier: Apache-2.0
"""Embeddings and reward models, asked over HTTP through the run's own client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import ConfigError, RewardError
from reward_kit.evaluation import evaluate
from reward_kit.models import Message
from reward_kit.rewards.reward_model import reward_model_reward
from reward_kit.rewards.similarity import embedding_similarity_reward
from tests.generation.loopback import Reaction, Says, answer, complains
from tests.loopback.endpoint import serving

TALK = [Message(role="user", content="What is 2 + 2?"), Message(role="assistant", content="<think>hm</think>4")]
VECTORS = {"a cat": [1.0, 0.0], "a dog": [0.6, 0.8], "a car": [-1.0, 0.0]}


def embeds(body: dict[str, Any], _: int) -> Says:
    vector = VECTORS.get(body["input"], [0.0, 1.0])
    usage = {"prompt_tokens": 1000, "total_tokens": 1000}
    return Says(200, {"object": "list", "data": [{"index": 0, "embedding": vector}], "model": "m", "usage": usage})


def settings(base: str, api: str, cache: Path | None = None, **more: Any) -> dict[str, Any]:
    kept: dict[str, Any] = {"enabled": False} if cache is None else {"enabled": True, "cache_dir": str(cache)}
    return {"model_name": "m", "api_base": base, "api_key": "k", "api": api, "cache": kept, **more}


# ── embeddings ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "truth", "score"),
    [("a cat", "a cat", 1.0), ("a cat", "a dog", 0.6), ("a cat", "a car", 0.0), ("a cat", ["a car", "a dog"], 0.6)],
)
async def test_the_score_is_the_cosine_with_the_nearest_text(text: str, truth: Any, score: float) -> None:
    reply = [Message(role="assistant", content=text)]
    with serving(embeds) as endpoint:
        judge = settings(endpoint.api_base, "embeddings")
        result = await embedding_similarity_reward(reply, judge=judge, ground_truth=truth)
        assert result.score == pytest.approx(score)
        assert endpoint.requests[0] == {"model": "m", "input": text, "encoding_format": "float"}
        assert endpoint.heads[0].startswith("POST /v1/embeddings ")


async def test_what_cannot_be_compared_is_no_verdict_and_an_empty_answer_is_wrong() -> None:
    with serving(embeds) as endpoint:
        judge = settings(endpoint.api_base, "embeddings")
        unusable: list[Any] = [None, "", [], True]
        for truth in unusable:
            result = await embedding_similarity_reward(TALK, judge=judge, ground_truth=truth)
            assert not result.is_score_valid
        empty = [Message(role="assistant", content="<think>a cat</think>")]
        assert (await embedding_similarity_reward(empty, judge=judge, ground_truth="a cat")).score == 0.0
        assert not endpoint.requests


@pytest.mark.parametrize(
    "body",
    [{}, {"data": []}, {"data": [{"embedding": []}]}, {"data": [{"embedding": ["x"]}]},
     {"data": [{"embedding": [None]}]}, {"data": [{"embedding": [0.0, 0.0]}]}, {"data": [{"embedding": "AAAA"}]}],
)  # fmt: skip
async def test_an_endpoint_that_gives_no_vector_is_no_verdict(body: Any) -> None:
    with serving(lambda *_: Says(200, body)) as endpoint:
        judge = settings(endpoint.api_base, "embeddings", api_params={"max_retries": 0})
        with pytest.raises(RewardError):
            await embedding_similarity_reward(TALK, judge=judge, ground_truth="a cat")


ROWS = [{"user_query": "?", "assistant_response": f"text {i}", "ground_truth": "a cat"} for i in range(6)]


def test_a_run_pays_for_each_text_once_and_keeps_to_its_limits(tmp_path: Path) -> None:
    with serving(embeds) as endpoint:
        judge = settings(endpoint.api_base, "embeddings", tmp_path, price={"input": 1.0, "output": 0.0})
        for _ in range(2):
            assert evaluate(ROWS, embedding_similarity_reward, judge=judge).mean_score == 0.0
        asked = [request["input"] for request in endpoint.requests]
        assert sorted(asked) == sorted({*asked}) == sorted({"a cat", *(str(row["assistant_response"]) for row in ROWS)})


def test_a_failure_that_may_pass_is_tried_again_and_any_other_is_no_verdict() -> None:
    def react(body: dict[str, Any], number: int) -> Reaction:
        return complains(503) if number == 1 else embeds(body, number)

    with serving(react) as endpoint:
        judge = settings(endpoint.api_base, "embeddings")
        assert evaluate(ROWS[:1], embedding_similarity_reward, judge=judge).mean_score == 0.0
        assert len(endpoint.requests) == 3
    with serving(lambda *_: complains(400, "no")) as endpoint:
        judge = settings(endpoint.api_base, "embeddings")
        run = evaluate(ROWS[:1], embedding_similarity_reward, judge=judge)
        assert (run.judged, run.failed) == (0, 1)


def test_max_cost_stops_a_run_before_it_is_exceeded(tmp_path: Path) -> None:
    with serving(embeds) as endpoint:
        price = {"input": 1000.0, "output": 0.0}  # a thousand tokens per text, so one unit of money for each
        judge = settings(endpoint.api_base, "embeddings", tmp_path, price=price)
        run = evaluate(ROWS, embedding_similarity_reward, judge=judge, max_cost=3.5, reward_settings={"concurrency": 1})
        assert run.status != "finished" and "max_cost" in str(run.reason)
        assert len(endpoint.requests) <= 4
        with pytest.raises(ConfigError, match=r"price of 'm' is not known"):
            evaluate(ROWS, embedding_similarity_reward, judge=settings(endpoint.api_base, "embeddings"), max_cost=1.0)


# ── reward models ────────────────────────────────────────────────────────────────────────────────────────────────────

SHAPES: dict[str, Any] = {
    "pooling": {"data": [{"index": 0, "data": [-2.5]}]},
    "classify": {"data": [{"index": 0, "label": "LABEL_0", "probs": [0.25], "num_classes": 1}]},
    "score": {"data": [{"index": 0, "score": 0.75}]},
}


@pytest.mark.parametrize(("api", "score"), [("pooling", -2.5), ("classify", 0.25), ("score", 0.75)])
async def test_the_shapes_of_vllm_are_read(api: str, score: float) -> None:
    with serving(lambda *_: Says(200, SHAPES[api])) as endpoint:
        result = await reward_model_reward(TALK, judge=settings(endpoint.api_base, api))
        assert result.score == score and 0.0 < result.metrics["reward_model"].score < 1.0
        (request,) = endpoint.requests
        assert endpoint.heads[0].startswith(f"POST /{api} ")
    if api == "score":
        assert request == {"model": "m", "text_1": "What is 2 + 2?", "text_2": "4"}
    else:
        assert [turn["content"] for turn in request["messages"]] == ["What is 2 + 2?", "4"]


async def test_a_vector_per_token_counts_by_its_last() -> None:
    with serving(lambda *_: Says(200, {"data": [{"data": [[0.1], [0.2], [1.5]]}]})) as endpoint:
        assert (await reward_model_reward(TALK, judge=settings(endpoint.api_base, "pooling"))).score == 1.5


@pytest.mark.parametrize("text", ["reward:-3.25", "-3.25", " Score = -3.25\n", "[-3.25]"])
async def test_a_chat_endpoint_may_answer_with_a_number(text: str) -> None:
    with serving(lambda *_: answer(text)) as endpoint:
        assert (await reward_model_reward(TALK, judge=settings(endpoint.api_base, "chat"))).score == -3.25


@pytest.mark.parametrize("text", ["", "good", "1 or 2", "[0.1, 0.9]", "[]", "true", "null", "NaN", "1e999"])
async def test_anything_but_one_number_is_no_verdict(text: str) -> None:
    with serving(lambda *_: answer(text)) as endpoint, pytest.raises(RewardError):
        await reward_model_reward(TALK, judge=settings(endpoint.api_base, "chat"))


async def test_the_sigmoid_keeps_the_score_between_0_and_1() -> None:
    for number in (-1e30, -2.0, 0.0, 2.0, 1e30):
        with serving(lambda *_, number=number: Says(200, {"data": [{"data": [number]}]})) as endpoint:
            result = await reward_model_reward(TALK, judge=settings(endpoint.api_base, "pooling"), transform="sigmoid")
            assert 0.0 <= result.score <= 1.0 and (result.score > 0.5) == (number > 0)


def test_an_unknown_api_is_refused() -> None:
    with pytest.raises((ConfigError, ValueError)):
        evaluate(ROWS[:1], reward_model_reward, judge={"model_name": "m", "api": "rerank"}).mean_score  # noqa: B018
