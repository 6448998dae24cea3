# SPDX-License-Identifier: Apache-2.0
"""Asking a server in the generic dialect: what comes back is the verdict, and a failure is never a zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reward_kit.errors import ConfigError, RewardKitError
from reward_kit.serving.app import build_app
from reward_kit.serving.settings import ServeSettings
from tests.serving.rewards import equal, ranked, worst
from tests.serving.served import Server, asked, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    rewards: dict[str, Callable[..., Any]] = {"equal": equal, "worst": worst, "ranked": ranked}
    with serving(rewards, reward={"timeout": 20.0, "memory_mb": 256}) as found:
        yield found


def test_an_answer_is_judged(server: Server) -> None:
    found = server.post("/evaluate", asked("a", "a", kwargs={"x": 1}, y=2))

    assert found.status == 200
    assert found.json == {
        "score": 1.0,
        "is_score_valid": True,
        "reason": "['x', 'y']",
        "metrics": {},
        "step_outputs": None,
        "error": None,
    }


def test_metrics_come_along(server: Server) -> None:
    found = server.post("/rewards/worst/evaluate", asked("b", "a")).json

    assert found["score"] == 0.0
    assert found["metrics"] == {"equal": {"score": 1.0, "reason": "m", "is_score_valid": True}}


@pytest.mark.parametrize("reward", ["equal", "worst"])
def test_a_batch_is_answered_in_order(server: Server, reward: str) -> None:
    items = [asked(str(number), str(number % 3)) for number in range(200)]

    found = server.post(f"/rewards/{reward}/evaluate/batch", {"items": items})

    assert [each["score"] for each in found.json["results"]] == [float(n == n % 3) for n in range(200)]


def test_answers_that_wait_wait_together(server: Server) -> None:
    """One after the other they would take longer than the server gives a request."""
    items = [asked("wait 2") for _ in range(200)]

    found = server.post("/evaluate/batch", {"items": items})

    assert {each["is_score_valid"] for each in found.json["results"]} == {True}


def test_a_group_is_judged_together(server: Server) -> None:
    conversations = [[{"role": "assistant", "content": "x" * n}] for n in (3, 1, 2)]

    found = server.post("/rewards/ranked/evaluate", {"rollouts_messages": conversations})

    assert [each["score"] for each in found.json["results"]] == [2.0, 0.0, 1.0]


def test_a_batch_has_a_group_for_each_sample(server: Server) -> None:
    items = [asked("x" * n, sample_id=sample) for n, sample in ((2, "a"), (9, "b"), (1, "a"), (5, "b"), (3, "b"))]

    found = server.post("/rewards/ranked/evaluate/batch", {"items": items}).json["results"]

    assert [(each["score"], each["reason"]) for each in found] == [
        (1.0, "of 2"), (2.0, "of 3"), (0.0, "of 2"), (1.0, "of 3"), (0.0, "of 3"),
    ]  # fmt: skip


def test_without_a_sample_id_the_answers_to_a_prompt_belong_together(server: Server) -> None:
    items = [asked("x" * n, truth) for n, truth in ((2, "1"), (9, "2"), (1, "1"), (5, "2"))]
    for item, prompt in zip(items, "qrst", strict=True):
        item["messages"][0]["content"] = prompt
    found = server.post("/rewards/ranked/evaluate/batch", {"items": items}).json["results"]
    assert [each["reason"] for each in found] == ["of 1"] * 4, "other prompts"
    for item in items:
        item["messages"][0]["content"], item["ground_truth"] = "q", "1"
    found = server.post("/rewards/ranked/evaluate/batch", {"items": items}).json["results"]
    assert [(each["score"], each["reason"]) for each in found] == [
        (1.0, "of 4"),
        (3.0, "of 4"),
        (0.0, "of 4"),
        (2.0, "of 4"),
    ]


def test_a_group_that_is_none_is_refused(server: Server) -> None:
    items = [asked("a", "1", sample_id="s"), asked("b", "2", sample_id="s")]
    assert server.post("/rewards/ranked/evaluate/batch", {"items": items}).status == 422


@pytest.mark.parametrize("answer", ["raise"])
def test_a_failure_is_no_score(server: Server, answer: str) -> None:
    found = server.post("/evaluate", asked(answer))

    assert found.status == 200
    assert found.json["score"] is None
    assert found.json["is_score_valid"] is False
    assert "as asked" in found.json["error"]
    assert found.json["failure"] == {"type": "RewardError", "retryable": False}
    assert "Traceback" not in found.body.decode()


def test_the_inherited_route_answers_with_a_number_or_an_error(server: Server) -> None:
    assert server.post("/reward", asked("a", "a")).json["score"] == 1.0
    failed = server.post("/reward", asked("raise"))
    assert failed.status == 500
    assert "as asked" in failed.json["detail"]


def test_without_ground_truth_the_inherited_route_gives_the_prompt(server: Server) -> None:
    body = asked("a")
    del body["ground_truth"]

    assert server.post("/reward", body).json["score"] == 0.0


def test_what_a_reward_returns_may_not_even_be_text(server: Server) -> None:
    found = server.post("/rewards/worst/evaluate", asked("surrogate"))

    assert found.json["score"] == 0.5
    assert found.json["reason"].startswith("half a character")


def test_what_is_served_is_told(server: Server) -> None:
    assert server.get("/health").json == {"status": "ok"}
    assert server.get("/ready").json == {"status": "ready"}
    told = server.get("/").json
    assert told["rewards"] == ["equal", "worst", "ranked"]
    assert {"/evaluate", "/evaluate/batch", "/reward", "/rewards/worst/evaluate"} <= set(told["endpoints"])
    document = server.get("/openapi.json").json
    assert document["openapi"].startswith("3.1")
    assert "post" in document["paths"]["/rewards/{name}/evaluate/batch"]
    assert set(told["endpoints"]) >= {path for path in document["paths"] if "{" not in path and path[1:5] == "eval"}


def test_figures_are_told(server: Server) -> None:
    server.post("/evaluate", asked("raise"))

    text = server.get("/metrics").body.decode()

    assert 'reward_kit_failures_total{reward="equal",type="RewardError"}' in text
    assert 'reward_kit_requests_total{method="POST",route="/evaluate",status="200"}' in text
    assert 'reward_kit_score_bucket{reward="equal",le="+Inf"}' in text
    for line in text.splitlines():
        assert line.startswith("#") or (len(line.rsplit(" ", 1)) == 2 and float(line.rsplit(" ", 1)[1]) >= 0)


def test_a_request_has_an_id(server: Server) -> None:
    named = server.post("/evaluate", asked("a"), {"X-Request-Id": "mine-1"})
    assert named.headers["x-request-id"] == "mine-1"
    unnamed = server.post("/evaluate", asked("a"), {"X-Request-Id": "not {one}"})
    others = server.post("/evaluate", asked("a"))
    assert len({unnamed.headers["x-request-id"], others.headers["x-request-id"], "not {one}"}) == 3


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"rewards": {}}, ValueError),
        ({"rewards": {"a/b": {"function_path": "math"}}}, ValueError),
        ({"rewards": {"a": {"function_path": "no.such.reward"}}}, RewardKitError),
        ({"rewards": {"a": {"function_path": "math"}}, "dialects": ["klingon"]}, ConfigError),
        ({"rewards": {"a": {"function_path": "math"}}, "tls": {"key": "k.pem"}}, ValueError),
        ({"rewards": {"a": {"function_path": "math"}}, "access": {"google_audience": "https://x"}}, ValueError),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_served(
    settings: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        build_app(ServeSettings.model_validate(settings))
