# SPDX-License-Identifier: Apache-2.0
"""Refusals: the words of real endpoints, and the errors they deserve."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.errors import AuthError, EndpointError, RateLimitError, RewardKitError
from reward_kit.generation.http.refusals import SentRequest, error_in_answer, read_complaint, refusal
from reward_kit.generation.presets import PRESETS
from reward_kit.redaction import mask, remember
from tests.generation.http.refused_replies import REPLIES, Recorded

BODY = ("model", "messages", "temperature", "max_tokens", "top_k", "seed", "tools", "n")


def error_for(status: int, body: Any) -> RewardKitError:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    return refusal(status, {}, read_complaint(data), SentRequest("http://h/v1", "m", BODY))


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": {"message": "Unsupported parameter: 'seed'"}}, "ParameterRefused"),
        (400, {"message": "[{'type': 'extra_forbidden', 'loc': ('body', 'top_k')}]"}, "ParameterRefused"),
        (400, {"error": "temperature is deprecated for this model"}, "ParameterRefused"),
        (400, {"error": {"message": "top_k: must be at least 1"}}, "BadRequestError"),
        (400, {"error": {"message": "Unknown role 'x' in messages"}}, "BadRequestError"),
        (400, {"error": {"message": "max_tokens exceeds the maximum allowed value"}}, "BadRequestError"),
        (400, {"error": {"message": "This endpoint's maximum context length is 10 tokens"}}, "ContextLengthError"),
        (400, {"error": {"message": "n_cmpl must not exceed the number of slots"}}, "ChoicesRefused"),
        (400, {"error": {"message": "foo is not a valid model ID"}}, "EndpointError"),
        (404, b"404 page not found", "EndpointError"),
        (400, {"error": {"message": "Insufficient Balance"}}, "EndpointError"),
        (418, b"", "BadRequestError"),
        (507, b"", "ProviderError"),
    ],
)
def test_the_words_of_endpoints(status: int, body: Any, kind: str) -> None:
    assert type(error_for(status, body)).__name__ == kind


KINDS = {
    "wait": "RateLimitError", "stop: key": "AuthError", "stop": "EndpointError", "length": "ContextLengthError",
    "filtered": "FilteredError", "again": "ProviderError", "item": "BadRequestError",
}  # fmt: skip


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: f"{reply.preset}-{reply.status}-{reply.consequence}")
def test_what_providers_were_seen_to_say(reply: Recorded) -> None:
    complaint = read_complaint(orjson.dumps(reply.body))
    assert (complaint.answer is not None) == (reply.consequence == "answer")
    assert complaint.wait == (None if reply.wait is None else pytest.approx(reply.wait))
    if reply.consequence != "answer":
        error = refusal(reply.status, reply.headers, complaint, SentRequest("http://h/v1", "m", BODY))
        assert type(error).__name__ == KINDS[reply.consequence], error
        if reply.consequence == "wait" and (reply.wait or reply.headers):
            assert isinstance(error, RateLimitError) and error.retry_after == (complaint.wait or 7.0)


STOPPING = [reply for reply in REPLIES if reply.status in {400, 403} and reply.consequence in {"stop", "stop: key"}]


@pytest.mark.parametrize("reply", STOPPING, ids=lambda reply: f"{reply.preset}-{reply.status}")
@pytest.mark.parametrize("shape", ["{}", "Is it right to say: {}. Or not?", "Invalid: {}"])
def test_what_an_error_repeats_of_the_request_stops_nothing(reply: Recorded, shape: str) -> None:
    prompt = shape.format(_message_of(reply.body))
    sent = {"model": "m", "messages": [{"role": "user", "content": f"They wrote to me: {prompt} What now?"}]}
    asked = SentRequest("http://h/v1", "m", BODY, body=orjson.dumps(sent).decode())
    for said in (
        {"detail": [{"loc": ["body", "stop"], "msg": "must be a list", "input": sent}]},
        {"error": {"message": f"Invalid value: {orjson.dumps(sent).decode()}", "type": "BadRequestError"}},
    ):
        error = refusal(400, {}, read_complaint(orjson.dumps(said)), asked)
        assert type(error).__name__ == "BadRequestError", error
    own = refusal(reply.status, {}, read_complaint(orjson.dumps(reply.body)), SentRequest("http://h/v1", "m", BODY))
    assert isinstance(own, AuthError | EndpointError)


def _message_of(body: Any) -> str:
    first = body[0] if isinstance(body, list) else body
    error = first.get("error", first)
    return str(error["message"] if isinstance(error, dict) else error)


MAY_PASS = [
    "Rate limit exceeded: usage limit of 60 requests per minute", "You have used up your usage limit for this minute",
    "Spending limit per hour reached", "Your budget limit of 5 per day",
]  # fmt: skip


@pytest.mark.parametrize("words", MAY_PASS)
def test_a_limit_that_the_clock_lifts_is_waited_for(words: str) -> None:
    assert isinstance(error_for(429, {"error": {"message": words}}), RateLimitError)
    assert isinstance(
        error_for(429, {"error": {"message": words.partition("limit")[0] + "limit"}}), RateLimitError
    ) is ("Rate limit" in words)


def test_a_limit_that_google_names_by_its_time_is_waited_for() -> None:
    words = "You exceeded your current quota, please check your plan and billing details."
    failed = {"@type": "type.googleapis.com/google.rpc.QuotaFailure"}
    for limits, kind in (
        ([{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}], RateLimitError),
        ([{"quotaId": 7}, "x"], EndpointError), (None, EndpointError),
    ):  # fmt: skip
        body = [{"error": {"code": 429, "message": words, "details": [{**failed, "violations": limits}]}}]
        assert isinstance(error_for(429, body), kind)


WHO_ASKS = ["account", "organization", "project", "team", "workspace"]
WHAT_BECAME_OF_IT = ["disabled", "restricted", "suspended", "deactivated", "terminated", "flagged", "blocked"]


@pytest.mark.parametrize("who", WHO_ASKS)
@pytest.mark.parametrize("what", WHAT_BECAME_OF_IT)
@pytest.mark.parametrize("status", [400, 403])
def test_who_is_not_served_is_no_fault_of_a_prompt(who: str, what: str, status: int) -> None:
    for words in (f"This {who} has been {what}.", f"Your {who} (abc) was temporarily {what} for content policy"):
        assert isinstance(error_for(status, {"error": {"message": words}}), EndpointError)
    warned = f"Your prompt was flagged by moderation. Repeated attempts may lead to your {who} being {what}."
    assert type(error_for(status, {"error": {"message": warned}})).__name__ == "FilteredError"


NO_TOOLS = [
    "deepinfra error: Tool calling is not supported for model: mistralai/Mistral-Small-24B", "tools are not supported "
    "by this endpoint", "Unsupported parameter: 'tools' is not supported with this model.", "tools is not supported in "
    "this model", "This model doesn't support tool use.", "model 'gemma' does not currently support tools",
    "tools param requires --jinja flag", "The field `tools` is not supported by the model m", "This server cannot "
    "handle function calls", "Tool use is not yet supported on your deployment",
]  # fmt: skip
OF_THESE_TOOLS = [
    "Invalid tool: this model does not support tools of type 'web_search'", "tools[0].function.parameters: 'oneOf' is "
    "not supported", "Parallel tool calls are not supported with this model", "Custom tools are not supported with "
    "this model", "The model does not support tools with more than 64 parameters", "Tool 'search' is not supported "
    "with this model", "tools are not supported together with response_format", "does not support tools: search, find",
    "does not support tools 'search'", "parallel_tool_calls is not supported with this model",
]  # fmt: skip


@pytest.mark.parametrize("status", [400, 422, 500])
def test_where_no_tools_can_be_called_the_run_stops(status: int) -> None:
    for words in NO_TOOLS:
        error = error_for(status, {"error": {"message": words}})
        assert isinstance(error, EndpointError) and "cannot call tools" in str(error), words
        without = refusal(
            status, {}, read_complaint(orjson.dumps({"error": words})), SentRequest("http://h/v1", "m", ("model",))
        )
        assert not isinstance(without, EndpointError), words
    for words in OF_THESE_TOOLS:
        assert not isinstance(error_for(status, {"error": {"message": words}}), EndpointError), words


def test_every_preset_has_its_replies_each_with_a_source_and_a_date() -> None:
    assert {reply.preset for reply in REPLIES} == PRESETS.keys()
    assert all(re.search(r"20\d\d", reply.source) for reply in REPLIES)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 6m0s.", 360.0), ("try again in 20ms", 0.02), ("Please retry in 2.1s", 2.1),
        ("retry after 7 seconds", 7.0), ("Try again in 30 seconds.", 30.0), ("try again in 1h2m3s", 3723.0),
        ("Please wait 5 s and try again", 5.0), ("try again in 2 minutes", 120.0), ("Please try again later.", None),
        ("wait before trying again", None), ("Limit 30000, Used 5 s", None), ("try again in 3 attempts", None),
    ],
)  # fmt: skip
def test_the_time_to_come_back_is_read_from_the_words(words: str, seconds: float | None) -> None:
    assert read_complaint(orjson.dumps({"error": {"message": words}})).wait == seconds


@pytest.mark.parametrize("has_key", [True, False])
def test_a_wrong_key_and_none_at_all_are_told_apart(has_key: bool) -> None:
    sent = SentRequest("http://h/v1", "m", (), has_key)
    said = str(refusal(401, {}, read_complaint(b'{"error": {"message": "Unauthorized"}}'), sent))
    assert ("No key was sent" in said) != has_key
    assert mask(said) == said and "`generation.api_key_env`" in said


@given(st.integers(300, 599), st.binary(max_size=60))
def test_any_refusal_is_an_error_that_says_what_to_do(status: int, data: bytes) -> None:
    message = str(error_for(status, data))
    assert "http://h/v1" in message
    assert message.endswith((".", "later."))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(0, 999) | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["error", "message", "code", "param", "detail", "type"]), inner, max_size=4
            )
        ),
    )
)
def test_a_complaint_of_any_shape_is_read(body: Any) -> None:
    complaint = read_complaint(orjson.dumps(body))
    assert complaint.words
    assert len(complaint.words) <= 300


def test_the_key_is_blotted_out_of_what_is_quoted() -> None:
    remember("abc123")
    complaint = read_complaint(b'{"error": {"message": "bad key abc123"}}')
    assert complaint.words == "bad key ***"
    assert "abc123" not in complaint.text


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ({"choices": [{}]}, None),
        ({"error": None, "choices": [{}]}, None),
        ({"error": {"code": 429}}, 429),
        ({"error": {"code": "overloaded"}}, 502),
        ({"error": "boom"}, 502),
    ],
)
def test_errors_in_place_of_choices(reply: dict[str, Any], status: int | None) -> None:
    assert error_in_answer(reply) == status
