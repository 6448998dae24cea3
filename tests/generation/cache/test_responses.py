# SPDX-License-Identifier: Apache-2.0
"""What was paid for is found again, draw by draw, and is asked for once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import Sampling
from reward_kit.errors import AuthError, StorageError
from reward_kit.generation.cache.responses import CachedClient, ResponseCache, draw_key, request_key
from reward_kit.models import ChatCompletionMessageToolCall, Completion, Failure, FunctionCall, Message, Usage

PROMPT = [Message(role="user", content="What is 6 × 7?")]
WARM = Sampling(temperature=0.7)


def key(number: int) -> str:
    return draw_key(b"test", number)


def answer(text: str, **fields: Any) -> Completion:
    return Completion(message=Message(role="assistant", content=text), **fields)


def text_of(completion: Completion | Failure | None) -> object:
    return completion.message.content if isinstance(completion, Completion) else completion


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ResponseCache]:
    with ResponseCache(tmp_path) as opened:
        yield opened


# ── the store ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "completion",
    [
        answer("42"),
        answer("", finish_reason="length", usage=Usage(prompt_tokens=3, completion_tokens=0, reasoning_tokens=0)),
        answer("zwei\nZeilen \u2028 \x00 {}}\n", latency_ms=1.25, model="other"),
        answer("long " * 40_000),
        Completion(
            message=Message(role="assistant", content=[{"type": "text", "text": "part"}], reasoning_content="hm")
        ),
        Completion(
            message=Message(
                role="assistant",
                content=None,
                tool_calls=[ChatCompletionMessageToolCall(id="1", function=FunctionCall(name="f", arguments="{}"))],
            )
        ),
    ],
)
def test_a_completion_comes_back_as_it_was_marked_as_cached(cache: ResponseCache, completion: Completion) -> None:
    cache.put(key(1), completion)
    assert cache.get(key(1)) == completion.model_copy(update={"cached": True})
    with ResponseCache(cache.cache_dir) as reopened:
        assert reopened.get(key(1)) == completion.model_copy(update={"cached": True})


def test_what_was_not_put_is_not_found(cache: ResponseCache) -> None:
    assert cache.get(key(1)) is None
    cache.put(key(1), answer("1"))
    assert cache.get(key(2)) is None


def test_the_later_of_two_entries_counts(cache: ResponseCache) -> None:
    cache.put(key(1), answer("first"))
    cache.put(key(1), answer("second"))
    assert text_of(cache.get(key(1))) == "second"
    with ResponseCache(cache.cache_dir) as reopened:
        assert text_of(reopened.get(key(1))) == "second"


def test_keys_that_share_a_digest_are_told_apart(cache: ResponseCache) -> None:
    twin = key(1)[:-1] + ("0" if key(1)[-1] != "0" else "1")
    cache.put(key(1), answer("1"))
    assert cache.get(twin) is None


def test_entries_of_another_writer_are_soon_seen(cache: ResponseCache) -> None:
    with ResponseCache(cache.cache_dir) as other:
        for number in range(50):
            writer, reader = (cache, other) if number % 3 else (other, cache)
            assert reader.get(key(number)) is None
            writer.put(key(number), answer(str(number)))
            time.sleep(0.02)
            assert text_of(reader.get(key(number))) == str(number)
        assert [text_of(cache.get(key(number))) for number in range(50)] == [str(number) for number in range(50)]


def test_a_directory_that_cannot_be_made_stops_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot be written .*generation\.cache\.cache_dir"):
        ResponseCache(tmp_path / "file" / "cache")


def test_text_that_json_cannot_hold_is_not_cached(cache: ResponseCache, caplog: pytest.LogCaptureFixture) -> None:
    cache.put(key(1), answer("\ud800"))
    assert cache.get(key(1)) is None
    assert len(caplog.records) == 1


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def a_key(
    identity: Mapping[str, Any] | None = None,
    messages: Sequence[Message] = PROMPT,
    tools: list[dict[str, Any]] | None = None,
    sampling: Sampling = WARM,
) -> bytes:
    return request_key(identity or {"model": "m", "endpoint": "e"}, messages, tools, sampling)


def test_everything_that_determines_the_answer_is_in_the_key() -> None:
    requests = [
        a_key(),
        a_key({"model": "other", "endpoint": "e"}),
        a_key({"model": "m", "endpoint": "other"}),
        a_key(messages=[Message(role="user", content="What is 6 × 8?")]),
        a_key(messages=[Message(role="system", content="What is 6 × 7?")]),
        a_key(messages=[Message(role="system", content=""), *PROMPT]),
        a_key(tools=[{"type": "function", "function": {"name": "f"}}]),
        a_key(sampling=Sampling()),
        a_key(sampling=Sampling(temperature=0.0)),
        a_key(sampling=Sampling(temperature=0.7, max_tokens=5)),
        a_key(sampling=Sampling(temperature=0.7, seed=1)),
        a_key(sampling=Sampling(temperature=0.7, stop=["\n"])),
        a_key(sampling=Sampling(temperature=0.7, extra_body={"logit_bias": {"1": 2}})),
    ]
    keys = [draw_key(request, draw) for request in requests for draw in (0, 1, 11)]
    assert len(set(keys)) == len(keys)


def test_what_does_not_reach_the_model_is_not_in_the_key() -> None:
    thoughtful = [Message(role="user", content="What is 6 × 7?", reasoning_content="never sent")]
    assert a_key(messages=thoughtful) == a_key()
    assert a_key({"endpoint": "e", "model": "m"}) == a_key({"model": "m", "endpoint": "e"})


def test_the_id_of_a_sample_is_in_the_key_when_its_seed_depends_on_it() -> None:
    identity, seeded = {"model": "m"}, Sampling(seed=1)
    one, other = (request_key(identity, PROMPT, None, seeded, sample_id) for sample_id in ("one", "other"))
    assert one != other
    assert request_key(identity, PROMPT, None, WARM, "one") == request_key(identity, PROMPT, None, WARM, "other")


def test_a_key_stays_the_same_for_ever() -> None:
    """When this fails, every answer users have paid for is lost to them: change CACHE_SCHEMA, and know that it is."""
    assert draw_key(a_key(), 3) == "68771f46f5ff96ae20a4a2d4b5591aa65cca2768463f3d62aab842b1855137cf"


@pytest.mark.parametrize("odd", [{"big": 2**70}, {"text": "\ud800"}, {1: "number"}])
def test_what_orjson_refuses_still_has_a_key(odd: dict[Any, Any]) -> None:
    sampling = Sampling.model_construct(extra_body={"odd": odd})  # a config refuses some of these
    assert a_key(sampling=sampling) == a_key(sampling=sampling) != a_key()


# ── the client ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Counting:
    """A client that gives every call another answer, so that an answer asked for twice shows."""

    model = "counting"

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.closed = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.errors: list[Exception] = []
        self.failing: set[int] = set()

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"endpoint": "nowhere", "model": self.model}

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        draws: Sequence[int],
        sampling: Sampling,
        tools: list[dict[str, Any]] | None = None,
        sample_id: str = "",
    ) -> list[Completion | Failure]:
        self.asked.append(list(draws))
        call = len(self.asked)
        await self.gate.wait()
        if self.errors:
            raise self.errors.pop()
        return [self._one(call, draw) for draw in draws]

    def _one(self, call: int, draw: int) -> Completion | Failure:
        if draw in self.failing:
            return Failure(stage="generate", type="ProviderError", message="overloaded", retryable=True)
        return answer(f"call {call} draw {draw}", usage=Usage(prompt_tokens=5, completion_tokens=2))

    async def close(self) -> None:
        self.closed = True


async def test_n_variants_stay_n_different_variants_and_repeat_for_free(cache: ResponseCache) -> None:
    inner = Counting()
    client = CachedClient(inner, cache)
    cold = Sampling(temperature=0.0)
    first = await client.generate(PROMPT, draws=[0, 1, 2], sampling=cold)
    again = await client.generate(PROMPT, draws=[2, 0, 1], sampling=cold)
    assert [text_of(one) for one in first] == ["call 1 draw 0", "call 1 draw 1", "call 1 draw 2"]
    assert [text_of(one) for one in again] == ["call 1 draw 2", "call 1 draw 0", "call 1 draw 1"]
    assert [one.cached for one in [*first, *again] if isinstance(one, Completion)] == [False] * 3 + [True] * 3
    assert inner.asked == [[0, 1, 2]]


async def test_raising_n_asks_only_for_the_new_draws_in_one_call(cache: ResponseCache) -> None:
    inner = Counting()
    client = CachedClient(inner, cache)
    await client.generate(PROMPT, draws=[1, 3], sampling=WARM)
    assert client.peek(PROMPT, range(5), WARM) == [False, True, False, True, False]
    answers = await client.generate(PROMPT, draws=range(5), sampling=WARM)
    assert inner.asked == [[1, 3], [0, 2, 4]]
    assert [text_of(one) for one in answers] == [f"call {1 if draw in (1, 3) else 2} draw {draw}" for draw in range(5)]


async def test_seeded_samples_with_one_prompt_have_answers_of_their_own(cache: ResponseCache) -> None:
    inner = Counting()
    client = CachedClient(inner, cache)
    seeded = Sampling(seed=1)
    for sample_id in ("one", "other", "one"):
        await client.generate(PROMPT, draws=[0], sampling=seeded, sample_id=sample_id)
    assert inner.asked == [[0], [0]]
    assert client.peek(PROMPT, [0, 1], seeded, sample_id="other") == [True, False]
    assert client.peek(PROMPT, [0], seeded, sample_id="third") == [False]


async def test_failures_are_not_stored(cache: ResponseCache) -> None:
    inner = Counting()
    inner.failing = {1}
    client = CachedClient(inner, cache)
    first = await client.generate(PROMPT, draws=[0, 1], sampling=WARM)
    assert isinstance(first[1], Failure)
    inner.failing = set()
    second = await client.generate(PROMPT, draws=[0, 1], sampling=WARM)
    assert [text_of(one) for one in second] == ["call 1 draw 0", "call 2 draw 1"]
    assert inner.asked == [[0, 1], [1]]


async def test_the_same_draw_is_not_asked_for_twice_at_once(cache: ResponseCache) -> None:
    inner = Counting()
    inner.failing = {2}
    inner.gate.clear()
    client = CachedClient(inner, cache)
    first = asyncio.create_task(client.generate(PROMPT, draws=[0, 1, 2], sampling=WARM))
    await asyncio.sleep(0)
    second = asyncio.create_task(client.generate(PROMPT, draws=[3, 2, 1], sampling=WARM))
    await asyncio.sleep(0)
    inner.gate.set()
    ours, theirs = await first, await second
    assert inner.asked == [[0, 1, 2], [3]]
    assert [text_of(one) for one in theirs] == ["call 2 draw 3", ours[2], "call 1 draw 1"]
    assert [one.cached for one in theirs if isinstance(one, Completion)] == [False, True]


async def test_who_waits_asks_for_itself_when_the_other_gives_up(cache: ResponseCache) -> None:
    inner = Counting()
    inner.gate.clear()
    client = CachedClient(inner, cache)
    first, second, third = (asyncio.create_task(client.generate(PROMPT, draws=[0], sampling=WARM)) for _ in range(3))
    await asyncio.sleep(0)
    third.cancel()
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    inner.gate.set()
    assert [text_of(one) for one in await second] == ["call 2 draw 0"]
    assert first.cancelled()
    assert third.cancelled()


async def test_an_error_that_stops_the_run_reaches_everyone(cache: ResponseCache) -> None:
    inner = Counting()
    inner.errors = [AuthError("no"), AuthError("no")]
    client = CachedClient(inner, cache)
    calls = [client.generate(PROMPT, draws=[0], sampling=WARM) for _ in range(2)]
    assert [type(error) for error in await asyncio.gather(*calls, return_exceptions=True)] == [AuthError, AuthError]
    assert text_of((await client.generate(PROMPT, draws=[0], sampling=WARM))[0]) == "call 3 draw 0"


async def test_it_is_the_inner_client_otherwise(cache: ResponseCache) -> None:
    inner = Counting()
    client = CachedClient(inner, cache)
    assert (client.model, client.identity) == (inner.model, inner.identity)
    await client.close()
    assert inner.closed
