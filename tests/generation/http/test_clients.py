# SPDX-License-Identifier: Apache-2.0
"""The client of OpenAI-compatible endpoints, against endpoints on this machine that answer, refuse and misbehave."""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import Sampling
from reward_kit.errors import AuthError, ConfigError, EndpointError
from reward_kit.generation.client import ModelClient
from reward_kit.generation.http.clients import FireworksModelClient, OpenAICompatibleClient
from reward_kit.models import Completion, Failure, Message
from tests.generation.loopback import (
    FakeTime,
    Misbehave,
    Says,
    answer,
    ask,
    client_of,
    complains,
    failure,
    loopback,
    says_message,
    scripted,
    texts,
)

pytestmark = pytest.mark.usefixtures("each_exchange")

KEY = "sk-very-secret-0123456789"
N_SAYS = "number must be at most 1"


def choices_asked(body: dict[str, Any], _: int) -> Says:
    """An endpoint that supports `n`."""
    return answer(*[f"answer {i}" for i in range(body.get("n", 1))])


# ── what is sent, what is read ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_question_is_sent_as_configured_and_its_answer_read() -> None:
    async with loopback(scripted(answer("yes", model="m-2024"))) as endpoint, client_of(endpoint.api_base) as client:
        (entry,) = await ask(client, 0, temperature=0.5, top_k=3, stop=["."], extra_body={"guided": {"a": 1}})
    assert isinstance(entry, Completion)
    assert (entry.message.content, entry.finish_reason, entry.model, entry.cached) == ("yes", "stop", "m-2024", False)
    assert endpoint.requests == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Is it?"}],
            "temperature": 0.5,
            "top_k": 3,
            "stop": ["."],
            "guided": {"a": 1},
        }
    ]


async def test_the_key_is_sent_as_a_bearer_token() -> None:
    async with loopback(scripted(answer())) as endpoint, client_of(endpoint.api_base, api_key=KEY) as client:
        await ask(client)
    assert f"authorization: bearer {KEY}" in endpoint.heads[0].lower()
    assert endpoint.heads[0].startswith("POST /v1/chat/completions ")


async def test_tool_calls_and_reasoning_are_read() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    message = {"role": "assistant", "content": None, "tool_calls": [call], "reasoning": "I add"}
    tools = [{"type": "function", "function": {"name": "add"}}]
    async with (
        loopback(scripted(says_message(message, "tool_calls"))) as endpoint,
        client_of(endpoint.api_base) as client,
    ):
        (entry,) = await ask(client, tools=tools)
    assert isinstance(entry, Completion)
    assert endpoint.requests[0]["tools"] == tools
    assert entry.finish_reason == "tool_calls"
    assert entry.message.content is None
    assert entry.message.reasoning_content == "I add"
    assert entry.message.tool_calls is not None
    assert (entry.message.tool_calls[0].id, entry.message.tool_calls[0].function.arguments) == ("c1", '{"a":1}')


async def test_usage_is_read_with_its_details() -> None:
    reply = answer(
        "yes",
        prompt_tokens=7,
        completion_tokens=5,
        completion_tokens_details={"reasoning_tokens": 4},
        prompt_tokens_details={"cached_tokens": 6},
    )
    async with loopback(scripted(reply)) as endpoint, client_of(endpoint.api_base) as client:
        (entry,) = await ask(client)
    assert isinstance(entry, Completion)
    assert entry.usage is not None
    assert entry.usage.model_dump(exclude_unset=True) == {
        "prompt_tokens": 7,
        "completion_tokens": 5,
        "reasoning_tokens": 4,
        "cached_prompt_tokens": 6,
    }


async def test_extra_body_may_not_take_what_is_ours() -> None:
    async with client_of("http://127.0.0.1:9/v1") as client:
        with pytest.raises(ConfigError, match="'stream'"):
            await ask(client, extra_body={"stream": True})


async def test_a_prompt_that_json_cannot_hold_fails_alone() -> None:
    async with client_of("http://127.0.0.1:9/v1") as client:
        entries = await client.generate([Message(role="user", content="\ud800")], draws=(0,), sampling=Sampling())
    assert failure(entries).type == "BadRequestError"


async def test_connections_are_reused() -> None:
    async with (
        loopback(scripted(answer())) as endpoint,
        client_of(endpoint.api_base, max_concurrent_requests=3) as client,
    ):
        for _ in range(5):
            await asyncio.gather(*(ask(client) for _ in range(6)))
    assert len(endpoint.requests) == 30
    assert endpoint.connections <= 3


def test_a_closed_client_opens_again_in_this_loop_and_in_another() -> None:
    port = _free_port()
    client = OpenAICompatibleClient("m", api_base=f"http://127.0.0.1:{port}/v1")

    async def once() -> list[str]:
        async with loopback(scripted(answer()), port=port):
            answers = texts(await ask(client))
            await client.close()
            answers += texts(await ask(client))
            await client.close()
            return answers

    assert asyncio.run(once()) == ["yes", "yes"]
    assert asyncio.run(once()) == ["yes", "yes"]


# ── n ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_draws_of_a_sample_go_in_one_request_whose_usage_stands_once() -> None:
    async with loopback(choices_asked) as endpoint, client_of(endpoint.api_base) as client:
        entries = await ask(client, 2, 5, 7)
    assert texts(entries) == ["answer 0", "answer 1", "answer 2"]
    assert [body["n"] for body in endpoint.requests] == [3]
    usages = [entry.usage for entry in entries if isinstance(entry, Completion)]
    assert usages[0] is not None
    assert usages[0].completion_tokens == 6
    assert usages[1:] == [None, None]


async def test_an_endpoint_that_ignores_n_is_asked_for_the_missing_draws_and_remembered() -> None:
    async with (
        loopback(lambda body, number: answer(f"answer {number}")) as endpoint,
        client_of(endpoint.api_base) as client,
    ):
        first = texts(await ask(client, 0, 1, 2))
        second = texts(await ask(client, 0, 1))
    assert first[0] == "answer 1"
    assert len({*first, *second}) == 5
    assert [body.get("n") for body in endpoint.requests] == [3, None, None, None, None]


async def test_an_endpoint_that_caps_n_is_asked_within_the_cap() -> None:
    async with (
        loopback(lambda body, _: choices_asked({"n": min(body.get("n", 1), 2)}, 0)) as endpoint,
        client_of(endpoint.api_base) as client,
    ):
        assert len(texts(await ask(client, *range(5)))) == 5
        assert len(texts(await ask(client, *range(4)))) == 4
    assert [body.get("n") for body in endpoint.requests] == [5, 2, None, 2, 2]


@pytest.mark.parametrize(
    "refusal",
    [
        complains(400, "'n' : number must be at most 1", param="n"),
        complains(400, "Invalid n value (currently only n = 1 is supported)"),
        complains(422, "Only one completion choice is allowed"),
    ],
)
async def test_an_endpoint_that_refuses_n_is_asked_one_at_a_time_and_remembered(refusal: Says) -> None:
    def react(body: dict[str, Any], number: int) -> Says:
        return refusal if "n" in body else answer(f"answer {number}")

    async with loopback(react) as endpoint, client_of(endpoint.api_base) as client:
        assert len(set(texts(await ask(client, 0, 1, 2)))) == 3
        asked_with_n = len([body for body in endpoint.requests if "n" in body])
        assert len(texts(await ask(client, 0, 1, 2))) == 3
    assert len([body for body in endpoint.requests if "n" in body]) == asked_with_n == 1
    assert len(endpoint.requests) == 1 + 3 + 3


async def test_fanout_never_sends_n_and_a_failed_draw_fails_alone() -> None:
    def react(body: dict[str, Any], number: int) -> Says:
        return complains(400, "bad luck") if number == 2 else answer()

    async with loopback(react) as endpoint, client_of(endpoint.api_base, n_mode="fanout") as client:
        entries = await ask(client, 0, 1, 2)
    assert all("n" not in body for body in endpoint.requests)
    assert sorted(type(entry).__name__ for entry in entries) == ["Completion", "Completion", "Failure"]


async def test_native_insists_on_n() -> None:
    async with (
        loopback(scripted(complains(400, N_SAYS, param="n"))) as endpoint,
        client_of(endpoint.api_base, n_mode="native") as client,
    ):
        entries = await ask(client, 0, 1)
    assert len(endpoint.requests) == 1
    assert [entry.type for entry in entries if isinstance(entry, Failure)] == ["BadRequestError", "BadRequestError"]


async def test_each_request_has_a_seed_of_its_own_that_repeats() -> None:
    async def seeds(sample_id: str) -> list[int]:
        async with loopback(scripted(answer())) as endpoint, client_of(endpoint.api_base, n_mode="fanout") as client:
            await ask(client, 0, 1, 2, sample_id=sample_id, seed=17)
        return sorted(body["seed"] for body in endpoint.requests)

    first, again, other = await seeds("a"), await seeds("a"), await seeds("b")
    assert first == again
    assert len({*first, *other}) == 6
    assert all(0 <= seed < 2**31 for seed in [*first, *other])


# ── refused parameters ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("top_k", complains(400, "Unrecognized request argument supplied: top_k")),
        (
            "top_k",
            Says(
                422,
                {
                    "detail": [
                        {"type": "extra_forbidden", "loc": ["body", "top_k"], "msg": "Extra inputs are not permitted"}
                    ]
                },
            ),
        ),
        ("top_k", complains(400, "Extra inputs are not permitted, field: 'top_k', value: 5")),
        (
            "temperature",
            complains(
                400, "Unsupported value: 'temperature' does not support 0.2 with this model.", param="temperature"
            ),
        ),
    ],
)
async def test_a_refused_parameter_is_dropped_remembered_and_recorded(name: str, refusal: Says) -> None:
    def react(body: dict[str, Any], _: int) -> Says:
        return refusal if name in body else answer()

    async with loopback(react) as endpoint, client_of(endpoint.api_base, max_retries=0) as client:
        assert texts(await ask(client, temperature=0.2, top_k=5)) == ["yes"]
        assert texts(await ask(client, temperature=0.2, top_k=5)) == ["yes"]
    assert [name in body for body in endpoint.requests] == [True, False, False]
    assert list(client.dropped_parameters) == [name]
    assert name in client.dropped_parameters[name]


async def test_max_tokens_is_renamed_where_the_endpoint_wants_it_so() -> None:
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."

    def react(body: dict[str, Any], _: int) -> Says:
        return (
            complains(400, words, param="max_tokens", code="unsupported_parameter")
            if "max_tokens" in body
            else answer()
        )

    async with loopback(react) as endpoint, client_of(endpoint.api_base) as client:
        assert texts(await ask(client, max_tokens=9)) == ["yes"]
    assert endpoint.requests[1]["max_completion_tokens"] == 9
    assert "max_tokens" not in endpoint.requests[1]


async def test_many_requests_that_learn_of_one_refusal_at_once_all_succeed() -> None:
    def react(body: dict[str, Any], _: int) -> Says:
        refused = next((name for name in ("top_k", "min_p", "seed") if name in body), None)
        return complains(400, f"Unknown parameter: '{refused}'") if refused else answer()

    async with loopback(react) as endpoint, client_of(endpoint.api_base, max_retries=0) as client:
        entries = await asyncio.gather(*(ask(client, top_k=2, min_p=0.1, seed=3) for _ in range(8)))
    assert all(texts(entry) == ["yes"] for entry in entries)
    assert sorted(client.dropped_parameters) == ["min_p", "seed", "top_k"]


async def test_a_value_out_of_range_is_the_users_to_mend() -> None:
    refusal = complains(400, "temperature must be between 0 and 2", param="temperature", code="decimal_above_max_value")
    async with loopback(scripted(refusal)) as endpoint, client_of(endpoint.api_base) as client:
        assert failure(await ask(client, temperature=5)).type == "BadRequestError"
    assert len(endpoint.requests) == 1
    assert client.dropped_parameters == {}


async def test_what_a_request_cannot_do_without_is_never_dropped() -> None:
    async with (
        loopback(scripted(complains(400, "'tools' is not supported", param="tools"))) as endpoint,
        client_of(endpoint.api_base) as client,
    ):
        assert failure(await ask(client, tools=[{"type": "function"}])).type == "BadRequestError"
    assert len(endpoint.requests) == 1


# ── failures that may pass ───────────────────────────────────────────────────────────────────────────────────────────


async def _reset(writer: asyncio.StreamWriter) -> None:
    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def _hang(_: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def _trickle(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b" ")
        await asyncio.sleep(0.01)


async def _end_early(writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"choices":')
    writer.close()


PASSING: dict[str, Says | Misbehave] = {
    "429": complains(429, "slow down"),
    "500": complains(500),
    "502 in HTML": Says(502, b"<html>Bad Gateway</html>", {"Content-Type": "text/html"}),
    "503": complains(503),
    "529": complains(529),
    "408": complains(408),
    "truncated JSON": Says(200, b'{"choices": [{"mess'),
    "not an object": Says(200, b"[]"),
    "HTML with 200": Says(200, b"<html>Welcome</html>", {"Content-Type": "text/html"}),
    "an error in place of choices": Says(200, {"error": {"code": 503, "message": "upstream"}}),
    "a broken choice": Says(200, {"choices": [{"message": {"content": "ye"}, "error": {"message": "upstream died"}}]}),
    "a reset": _reset,
    "an early end": _end_early,
}


@pytest.mark.parametrize("kind", PASSING)
async def test_a_failure_that_passes_costs_only_a_retry(kind: str) -> None:
    async with loopback(scripted(PASSING[kind], answer())) as endpoint, client_of(endpoint.api_base) as client:
        assert texts(await ask(client)) == ["yes"]
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize("kind", [kind for kind in PASSING if kind != "429"])
async def test_a_failure_that_stays_is_a_value_after_the_last_retry(kind: str) -> None:
    async with loopback(scripted(PASSING[kind])) as endpoint, client_of(endpoint.api_base, max_retries=2) as client:
        failed = failure(await ask(client))
    assert len(endpoint.requests) == 3
    assert failed.stage == "generate"
    assert failed.type == "ProviderError"
    assert failed.retryable


@pytest.mark.parametrize("misbehave", [_hang, _trickle])
async def test_a_request_that_takes_too_long_is_given_up(misbehave: Misbehave) -> None:
    async with (
        loopback(scripted(misbehave)) as endpoint,
        client_of(endpoint.api_base, timeout=0.1, max_retries=1) as client,
    ):
        failed = failure(await ask(client))
    assert len(endpoint.requests) == 2
    assert failed.type == "ProviderError"
    assert "api_params.timeout" in failed.message


async def test_the_waits_grow_and_are_counted() -> None:
    time = FakeTime()
    async with (
        loopback(scripted(complains(500))) as endpoint,
        client_of(endpoint.api_base, time=time, max_retries=4) as client,
    ):
        failure(await ask(client))
    assert time.slept == [0.5, 1.0, 2.0, 4.0]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "Retry-After": "9"}, 0.25),
        ({"Date": "Wed, 01 Jan 2025 00:00:00 GMT", "Retry-After": "Wed, 01 Jan 2025 00:00:09 GMT"}, 9.0),
        ({"Retry-After": "86400"}, 120.0),
    ],
)
async def test_what_the_endpoint_asks_to_wait_is_waited(status: int, headers: dict[str, str], wait: float) -> None:
    time = FakeTime()
    replies = scripted(complains(status, headers=headers), answer())
    async with loopback(replies) as endpoint, client_of(endpoint.api_base, time=time) as client:
        assert texts(await ask(client)) == ["yes"]
    assert time.slept == [wait + 0.5]


async def test_load_complaints_lower_the_limit_and_answers_raise_it() -> None:
    struggling = True

    def react(body: dict[str, Any], _: int) -> Says:
        return complains(429) if struggling else answer()

    async with (
        loopback(react) as endpoint,
        client_of(endpoint.api_base, max_concurrent_requests=8, max_wait=0) as client,
    ):
        await asyncio.gather(*(ask(client) for _ in range(8)))
        assert client.limit == 5  # one cut for the whole burst, not eight
        await asyncio.gather(*(ask(client) for _ in range(40)))
        assert client.limit == 1
        struggling = False
        await asyncio.gather(*(ask(client) for _ in range(60)))
        assert client.limit == 8
        assert client.in_flight == 0
    assert endpoint.most_at_once <= 8


# ── failures that do not pass ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "refusal",
    [
        complains(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
        complains(400, "too long", code="context_length_exceeded"),
        complains(400, "the request exceeds the available context size"),
        Says(413, b"Payload Too Large"),
    ],
)
async def test_a_prompt_too_long_is_told_apart_and_not_retried(refusal: Says) -> None:
    async with loopback(scripted(refusal)) as endpoint, client_of(endpoint.api_base) as client:
        failed = failure(await ask(client))
    assert (failed.type, failed.retryable) == ("ContextLengthError", False)
    assert len(endpoint.requests) == 1


async def test_a_bad_request_carries_the_endpoints_own_words_shortened() -> None:
    async with (
        loopback(scripted(complains(400, "roles must alternate " * 100))) as endpoint,
        client_of(endpoint.api_base) as client,
    ):
        failed = failure(await ask(client))
    assert failed.type == "BadRequestError"
    assert "roles must alternate" in failed.message
    assert len(failed.message) < 500


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (complains(401, "bad key"), AuthError),
        (complains(403, "no access"), AuthError),
        (complains(404, "model 'm' not found"), EndpointError),
        (complains(400, "Model Not Exist"), EndpointError),
        (complains(405), EndpointError),
        (complains(402, "Insufficient credits"), EndpointError),
        (complains(429, "You exceeded your current quota", code="insufficient_quota"), EndpointError),
        (Says(301, b"", {"Location": "https://elsewhere/v1"}), EndpointError),
    ],
)
@pytest.mark.parametrize("n_mode", ["auto", "fanout"])
async def test_what_no_request_can_mend_stops_the_run(refusal: Says, error: type[Exception], n_mode: str) -> None:
    async with loopback(scripted(refusal)) as endpoint, client_of(endpoint.api_base, n_mode=n_mode) as client:
        with pytest.raises(error):
            await ask(client, 0, 1, 2)
        assert client.in_flight == 0
    assert len(endpoint.requests) <= 3


async def test_a_key_refused_in_the_middle_of_a_run_stops_it() -> None:
    replies = scripted(answer(), complains(500), complains(401, "revoked"))
    async with loopback(replies) as endpoint, client_of(endpoint.api_base) as client:
        assert texts(await ask(client)) == ["yes"]
        with pytest.raises(AuthError, match="revoked"):
            await ask(client)


async def test_a_prompt_flagged_by_moderation_fails_alone() -> None:
    async with (
        loopback(scripted(complains(403, "Your input was flagged"))) as endpoint,
        client_of(endpoint.api_base) as client,
    ):
        assert failure(await ask(client)).type == "FilteredError"


async def test_the_key_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = f"Incorrect API key provided: {KEY}"
    replies = scripted(complains(500, echo), Says(200, echo.encode()), complains(401, echo))
    async with loopback(replies) as endpoint, client_of(endpoint.api_base, api_key=KEY) as client:
        with pytest.raises(AuthError, match="Incorrect API key") as caught:
            await ask(client)
        shown = [str(caught.value), repr(caught.value), repr(client), str(client.identity), caplog.text]
    assert endpoint.requests
    assert not any(KEY in text for text in shown)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def test_an_endpoint_that_is_not_there_stops_the_run_after_a_while() -> None:
    async with client_of(f"http://127.0.0.1:{_free_port()}/v1", max_retries=1) as client:
        failures = 0
        with pytest.raises(EndpointError, match="does not answer"):
            for failures in range(100):  # noqa: B007 - read after the loop
                assert failure(await ask(client)).type == "ProviderError"
    assert failures == 19


async def test_an_endpoint_that_answered_before_is_given_longer() -> None:
    port = _free_port()
    async with client_of(f"http://127.0.0.1:{port}/v1", max_retries=0) as client:
        for _ in range(10):
            assert failure(await ask(client)).type == "ProviderError"
        async with loopback(scripted(answer()), port=port):
            assert texts(await ask(client)) == ["yes"]
        await client.close()  # what is left of the connection to the endpoint that has gone
        failures = 0
        with pytest.raises(EndpointError, match="no longer answers"):
            for failures in range(1000):  # noqa: B007 - read after the loop
                assert failure(await ask(client)).type == "ProviderError"
    assert failures == 199


async def test_a_run_that_must_stop_does_not_wait_for_the_draws_beside() -> None:
    async with (
        loopback(lambda _, number: complains(401, "revoked") if number == 3 else _hang) as endpoint,
        client_of(endpoint.api_base, n_mode="fanout") as client,
    ):
        with pytest.raises(AuthError, match="revoked"):
            await ask(client, 0, 1, 2)
        assert client.in_flight == 0


async def test_a_cancelled_request_gives_its_slot_back() -> None:
    async with loopback(scripted(_hang)) as endpoint, client_of(endpoint.api_base, max_concurrent_requests=1) as client:
        first, second = asyncio.ensure_future(ask(client)), asyncio.ensure_future(ask(client))
        while not endpoint.requests:
            await asyncio.sleep(0)
        assert client.in_flight == 1
        for task in (second, first):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert client.in_flight == 0


# ── addresses and keys ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("base", ["localhost:8000/v1", "ftp://host/v1", "http://", "http://host:99999/v1", ""])
def test_an_address_that_is_none_is_refused(base: str) -> None:
    with pytest.raises(ConfigError, match="api_base"):
        OpenAICompatibleClient("m", api_base=base)


def test_credentials_in_the_address_are_refused_unseen() -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAICompatibleClient("m", api_base=f"https://user:{KEY}@host/v1")
    assert KEY not in str(caught.value)


def test_a_key_that_cannot_be_sent_is_refused_unseen() -> None:
    with pytest.raises(AuthError) as caught:
        OpenAICompatibleClient("m", api_base="https://host/v1", api_key=KEY + "\nX-Evil: 1")
    assert KEY not in str(caught.value)


async def test_the_route_follows_the_path_and_the_query_stays() -> None:
    async with loopback(scripted(answer())) as endpoint:
        for base in (
            f"{endpoint.api_base}/",
            f"{endpoint.api_base}/chat/completions",
            f"{endpoint.api_base}?api-version=1",
        ):
            async with client_of(base) as client:
                assert texts(await ask(client)) == ["yes"]
    paths = [head.split()[1] for head in endpoint.heads]
    assert paths == ["/v1/chat/completions", "/v1/chat/completions", "/v1/chat/completions?api-version=1"]


def test_fireworks_finds_its_address_and_its_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("FIREWORKS_API_KEY", raising=False)
    with pytest.raises(AuthError, match="FIREWORKS_API_KEY"):
        FireworksModelClient("accounts/fireworks/models/x")
    monkeypatch.setenv("FIREWORKS_API_KEY", KEY)
    client = FireworksModelClient("accounts/fireworks/models/x")
    assert client.identity == {
        "endpoint": "https://api.fireworks.ai/inference/v1",
        "model": "accounts/fireworks/models/x",
    }
    assert isinstance(client, ModelClient)
