# SPDX-License-Identifier: Apache-2.0
"""Refusals: the words of real endpoints, and the errors they deserve."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.errors import RewardKitError
from reward_kit.generation.http.refusals import SentRequest, error_in_answer, read_complaint, refusal
from reward_kit.redaction import remember

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
