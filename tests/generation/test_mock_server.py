# SPDX-License-Identifier: Apache-2.0
"""The mock endpoint: what its script says is what a client meets, faults included."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml

from reward_kit.errors import AuthError, ConfigError
from reward_kit.evaluation import evaluate, evaluate_async
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult
from reward_kit.generation.judge import Judge
from reward_kit.generation.mock_script import read_script
from reward_kit.models import EvaluateResult, Message
from reward_kit.testing import MockServer, ScriptedAnswer
from reward_kit.typed_interface import reward_function
from tests.loopback.runs import config, questions

SUMS = {"rules": [{"pattern": r"What is (\d+)", "response": [r"It is \1.", r"\1, I think.", "Ask again."]}]}
"""Three answers to each of the usual questions: two draws get the first two, unless one was used up before."""


def ask(server: MockServer, prompt: str = "hello", key: str | None = None, **fields: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **fields}
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = Request(f"{server.url}/chat/completions", json.dumps(body).encode(), headers, method="POST")
    with urlopen(request, timeout=60) as reply:
        found: dict[str, Any] = json.load(reply)
        return found


def text(reply: Mapping[str, Any], choice: int = 0) -> str:
    return str(reply["choices"][choice]["message"]["content"])


def status(server: MockServer, **fields: Any) -> int:
    try:
        ask(server, **fields)
    except HTTPError as error:
        error.close()
        return error.code
    except (OSError, HTTPException, ValueError):
        return 0
    return 200


def run(home: Path, server: MockServer, **settings: Any) -> RunResult:
    return EvaluationPipeline(config(home, server.url, **settings)).run()


def answers(result: RunResult) -> set[str]:
    return {row["assistant_response"] for row in result.rows() if row["assistant_response"] is not None}


EVERY_ANSWER = {f"It is {number}." for number in range(4)} | {f"{number}, I think." for number in range(4)}


# ── our own runs against it ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 429, "retry_after": 0}, {"status": 503}, {"cut": "before"}, {"cut": "within"},
        {"malformed": "half"}, {"malformed": "empty"}, {"malformed": "html"},
    ],
    ids=str,
)  # fmt: skip
def test_a_run_gets_over_a_fault_that_passes(tmp_path: Path, fault: dict[str, Any]) -> None:
    """The first requests fail, and the run ends with every answer judged, each once."""
    with MockServer({**SUMS, "faults": [{**fault, "at": [1, 2]}]}) as server:
        result = run(tmp_path, server, generation__n=2)
    assert (result.judged, result.failed, result.status) == (8, 0, "finished")
    faults = [request for request in server.requests if request.fault is not None]
    assert len(faults) == 2 and all(request.status != 200 or "malformed" in fault for request in faults)
    assert len(server.requests) == 6, "one per sample, and one more for each fault"
    assert answers(result) == EVERY_ANSWER, "a fault uses no answer up"


def test_a_fault_that_does_not_pass_is_a_failure_of_its_sample_and_never_a_score(tmp_path: Path) -> None:
    faults: list[dict[str, Any]] = [
        {"pattern": "What is 0", "malformed": "no_choices"},
        {"pattern": "What is 1", "status": 400, "message": "This model's maximum context length is 10 tokens."},
        {"pattern": "What is 2", "cut": "before"},
    ]
    with MockServer({**SUMS, "faults": [{**fault, "times": 2 if "cut" in fault else 1} for fault in faults]}) as server:
        result = run(tmp_path, server, generation__api_params={"max_retries": 1})
        kinds = {row["id"]: row.get("failure", {}).get("type") for row in result.rows()}
        assert kinds == {"s0": "UnreadableReplyError", "s1": "ContextLengthError", "s2": "ProviderError", "s3": None}
        assert all(row["evaluation_score"] is None for row in result.rows() if "failure" in row)
        assert [request.status for request in server.requests if "What is 2" in request.prompt] == [0, 0], "tried twice"
        before = len(server.requests)
        settings = config(tmp_path, server.url, generation__api_params={"max_retries": 1})
        again = EvaluationPipeline(settings, retry_failed=True).run()
        assert (again.judged, again.failed) == (4, 0)
        assert {request.prompt for request in server.requests[before:]} == {f"What is {number}?" for number in range(3)}


def test_refused_parameters_are_left_out_and_noted(tmp_path: Path) -> None:
    with MockServer({**SUMS, "refuse_parameters": ["seed", "top_p"]}) as server:
        result = run(tmp_path, server, generation__seed=7, generation__top_p=0.5)
    assert (result.judged, result.failed) == (4, 0)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert set(manifest["dropped_parameters"]) == {"seed", "top_p"}
    assert all({"seed", "top_p"}.isdisjoint(request.body) for request in server.requests if request.status == 200)


def test_what_a_judges_endpoint_refuses_is_noted_too(tmp_path: Path) -> None:
    @reward_function
    async def asks(messages: list[Message], *, judge: Judge, **kwargs: Any) -> EvaluateResult:
        (reply,) = await judge.ask("Is it?")
        return EvaluateResult(score=1.0, reason=str(reply))

    rows = [{"user_query": str(number), "assistant_response": "yes"} for number in range(3)]
    with MockServer({**SUMS, "refuse_parameters": ["top_p"]}) as server:
        judge = {"model_name": "m", "api_base": server.url, "top_p": 0.5, "cache": {"enabled": False}}
        result = evaluate(rows, asks, judge=judge, output_dir=tmp_path / "run")
        assert (result.judged, result.failed) == (3, 0)
        assert "top_p" not in server.requests[-1].body
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert set(manifest["judge_dropped_parameters"]) == {"top_p"} and "dropped_parameters" not in manifest


def test_log_probabilities_that_were_asked_for_are_in_the_rollouts_also_from_the_cache(tmp_path: Path) -> None:
    cache = {"enabled": True, "cache_dir": str(tmp_path / "cache")}
    asked = {"generation__extra_body": {"logprobs": True}, "generation__cache": cache}
    with MockServer(SUMS) as server:
        for home in (tmp_path / "first", tmp_path / "second"):
            home.mkdir()
            run(home, server, **asked)
            lines = [json.loads(line) for line in (home / "run" / "rollouts.jsonl").read_bytes().splitlines()]
            words = [len(line["turns"][0]["content"].split()) for line in lines]
            assert [len(line["tokens"]["logprobs"]) for line in lines] == words
            assert [line["cached"] for line in lines] == [home.name == "second"] * 4
        run(tmp_path, server)
    assert b'"tokens"' not in (tmp_path / "run" / "rollouts.jsonl").read_bytes()


def test_an_endpoint_of_one_choice_a_request_gives_the_answers_in_turn(tmp_path: Path) -> None:
    with MockServer({**SUMS, "most_choices": 1}) as server:
        result = run(tmp_path, server, generation__n=2)
    assert (result.judged, answers(result)) == (8, EVERY_ANSWER)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert "1 per request from now on" in manifest["dropped_parameters"]["n"]


def test_a_key_is_asked_for_and_kept_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sk-right-and-secret")
    log = tmp_path / "log.jsonl"
    with MockServer({**SUMS, "api_key": "sk-right-and-secret"}, log=log) as server:
        with pytest.raises(AuthError, match="401"):
            run(tmp_path, server)
        result = run(tmp_path, server, generation__api_key_env="A_KEY")
        assert result.judged == 4
        assert "sk-right" not in repr(server.requests) + log.read_text()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["number"] for line in lines] == [request.number for request in server.requests]
    assert {line["status"] for line in lines} == {200, 401}


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_answers_come_in_order_then_by_rule_then_in_turn() -> None:
    script = {
        "in_order": ["first", {"content": "second", "finish_reason": "content_filter"}],
        "rules": [{"pattern": "tea", "model": "big-*", "response": "large"}, {"pattern": "tea", "response": "small"}],
        "responses": ["a", "b"],
    }
    with MockServer(script) as server:
        assert text(ask(server, "tea")) == "first"
        assert ask(server, "tea")["choices"][0]["finish_reason"] == "content_filter"
        assert [text(ask(server, "tea", model=model)) for model in ("big-1", "tiny")] == ["large", "small"]
        both = ask(server, "other", n=3)
        assert [text(both, choice) for choice in range(3)] == ["a", "b", "a"]
        assert text(ask(server, "other")) == "b", "the fourth answer to this prompt"
        assert text(ask(server, "another")) == "a"


def test_tool_calls_usage_log_probabilities_and_reasoning_are_sent() -> None:
    scripted = {
        "tool_calls": [{"name": "weather", "arguments": {"city": "\\1", "days": 2}}, {"name": "x", "arguments": "{"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3},
    }
    rules = [
        {"pattern": "in (.+)", "response": scripted},
        {"response": {"content": "yes it is", "reasoning_content": "hm", "logprobs": [-0.5, -1.5], "model": "m-2"}},
    ]
    with MockServer({"rules": rules}) as server:
        called = ask(server, "in Bern", tools=[])
        message = called["choices"][0]["message"]
        assert [call["function"]["name"] for call in message["tool_calls"]] == ["weather", "x"]
        assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"city": "Bern", "days": 2}
        assert message["tool_calls"][1]["function"]["arguments"] == "{"
        assert called["choices"][0]["finish_reason"] == "tool_calls" and called["usage"]["prompt_tokens"] == 11
        said = ask(server, "is it so", logprobs=True)
        tokens = said["choices"][0]["logprobs"]["content"]
        assert [(token["token"], token["logprob"]) for token in tokens] == [("yes", -0.5), (" it", -1.5), (" is", 0.0)]
        assert said["choices"][0]["message"]["reasoning_content"] == "hm" and said["model"] == "m-2"
        assert said["usage"] == {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
        cut = ask(server, "is it so", max_tokens=2)
        assert (text(cut), cut["choices"][0]["finish_reason"]) == ("yes it", "length")
        for stop in (" it", ["never", " it"]):
            ended = ask(server, "is it so", stop=stop)
            assert (text(ended), ended["choices"][0]["finish_reason"]) == ("yes", "stop")


def test_a_stream_adds_up_to_the_answer() -> None:
    with MockServer({"responses": ["one  two\nthree"]}) as server:
        body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "stream": True, "n": 2}
        body["stream_options"] = {"include_usage": True}
        request = Request(f"{server.url}/chat/completions", json.dumps(body).encode(), method="POST")
        with urlopen(request, timeout=60) as reply:
            assert reply.headers["Content-Type"] == "text/event-stream"
            events = [line.removeprefix("data: ") for line in reply.read().decode().split("\n\n") if line]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    assert chunks[-1]["usage"]["completion_tokens"] == 6
    for index in range(2):
        parts = [part for chunk in chunks for part in chunk["choices"] if part["index"] == index]
        assert "".join(part["delta"].get("content", "") for part in parts) == "one  two\nthree"
        assert parts[-1]["finish_reason"] == "stop"


def test_a_function_answers_and_one_that_raises_is_a_500() -> None:
    def reply(messages: Any, draw: int) -> str:
        return f"{messages[-1].text.upper()}{1 // (2 - draw)}"

    with MockServer(reply) as server:
        assert [text(ask(server, "ab")) for _ in range(2)] == ["AB0", "AB1"]
        assert status(server, prompt="ab") == 500


def test_models_and_requests_can_be_listed_and_forgotten() -> None:
    with MockServer({"models": ["small", "big-*"]}) as server:
        assert status(server, model="small") == status(server, model="big-1") == 200
        assert status(server, model="huge") == 404
        root = server.url.removesuffix("/v1")
        with urlopen(f"{server.url}/models", timeout=60) as reply:
            assert [model["id"] for model in json.load(reply)["data"]] == ["small", "big-*"]
        with urlopen(f"{root}/requests", timeout=60) as reply:
            assert [(one["number"], one["status"]) for one in json.load(reply)] == [(1, 200), (2, 200), (3, 404)]
        urlopen(Request(f"{root}/requests", method="DELETE"), timeout=60).close()
        assert server.requests == []
    with pytest.raises(RuntimeError, match="`with` block"):
        _ = server.url


@pytest.mark.parametrize(
    "fields", [{"messages": []}, {"messages": [{"content": "nobody says it"}]}, {"n": 0}, {"model": None}], ids=str
)
def test_a_request_that_no_endpoint_would_take_is_refused(fields: dict[str, Any]) -> None:
    with MockServer() as server:
        assert status(server, **fields) == 400


async def test_it_serves_code_that_blocks_a_running_loop() -> None:
    with MockServer(["4"]) as server:
        assert text(ask(server, "2 + 2?")) == "4"
        rows = [{"user_query": "2 + 2?", "ground_truth_for_eval": "5"}]
        model = {"model_name": "m", "api_base": server.url, "cache": {"enabled": False}}
        result = await evaluate_async(rows, lambda response: float("mock" in response), model="m", generation=model)
    assert result.mean_score == 1.0


# ── faults ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def faulty(seed: int, **fault: Any) -> list[int]:
    """The requests, of forty, that a fault picks."""
    with MockServer({"seed": seed, "faults": [{"status": 503, **fault}]}) as server:
        return [number for number in range(1, 41) if status(server) == 503]


def test_a_rate_picks_the_same_requests_for_the_same_seed() -> None:
    first = faulty(1, rate=0.3)
    assert first == faulty(1, rate=0.3) != faulty(2, rate=0.3)
    assert 4 <= len(first) <= 20
    assert faulty(1, rate=0.3, times=2) == first[:2]
    assert faulty(1, rate=1.0) == list(range(1, 41)) and faulty(1, rate=0.0) == []
    assert faulty(1, every=13, at=3) == [3, 13, 26, 39]


def test_a_late_answer_is_right_and_a_wait_can_be_asked_for() -> None:
    faults = [{"at": 1, "delay": 0.01}, {"at": 2, "status": 429, "retry_after": 2.5, "headers": {"X-Why": "load"}}]
    with MockServer({"responses": ["yes"], "faults": faults}) as server:
        assert text(ask(server)) == "yes"
        with pytest.raises(HTTPError) as refused:
            ask(server)
        assert (refused.value.headers["Retry-After"], refused.value.headers["X-Why"]) == ("2.5", "load")
        with refused.value as reply:
            assert json.load(reply)["error"]["code"] == "rate_limit_exceeded"
    assert [request.fault for request in server.requests] == ["delay", "status 429"]


# ── scripts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_script_is_read_from_yaml_and_from_json_lines(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({**SUMS, "responses": ["other"]}))
    lines = [SUMS["rules"][0], {"content": "in order"}, "also", {"fault": {"status": 429, "at": 9}}]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with MockServer(tmp_path / "a.yaml") as server:
        assert [text(ask(server, prompt)) for prompt in ("What is 5?", "x")] == ["It is 5.", "other"]
    with MockServer(tmp_path / "b.jsonl") as server:
        assert [text(ask(server, "What is 5?")) for _ in range(3)] == ["in order", "also", "It is 5."]


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ({"rules": [{"pattern": "(", "response": "x"}]}, "not a regular expression"),
        ({"rules": [{"pattern": "x", "response": []}]}, "no response"),
        ({"rulez": []}, "did you mean 'rules'"),
        ({"faults": [{"status": 500, "cut": "before"}]}, "write several faults"),
        ({"faults": [{"rate": 0.5}]}, "needs one of `status`"),
        ({"faults": [{"cut": "sometimes"}]}, "faults.0.cut"),
        ({"function_path": "nowhere.py:f"}, "function_path"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_script_is_said_before_anything_is_served(script: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(complaint)):
        MockServer(script)


def test_the_model_called_mock_reads_the_same_script(tmp_path: Path) -> None:
    scripted = {"rules": [{"pattern": r"What is (\d)", "response": {"content": r"\1", "finish_reason": "length"}}]}
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(scripted))
    told = {"mock": {"script": str(tmp_path / "script.yaml")}, "cache": {"enabled": False}}
    rows = questions(3)
    result = evaluate(
        rows, lambda response, ground_truth: float(response == ground_truth), model="mock", generation=told
    )
    assert result.mean_score == 1.0
    assert {row["finish_reason"] for row in result.rows()} == {"length"}
    with MockServer(tmp_path / "script.yaml") as server:
        assert [text(ask(server, row["user_query"])) for row in rows] == ["0", "1", "2"]


def test_an_answer_of_a_script_can_be_made_in_python() -> None:
    script = read_script({"responses": [ScriptedAnswer(refusal="No.")]})
    with MockServer(script) as server:
        message = ask(server)["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "No.")
