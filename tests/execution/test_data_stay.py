# SPDX-License-Identifier: Apache-2.0
"""Data stay byte for byte, whatever settings are called; an answer that holds a key which was sent is a failed item."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from reward_kit import reward_function
from reward_kit.agent import World, tool
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult
from reward_kit.models import Sample
from reward_kit.redaction import forget_all
from tests.generation.loopback import Reaction, Says, answer
from tests.loopback.endpoint import honest, serving
from tests.loopback.runs import config, lines, questions, results

WORDS = {
    "close_token": "</reasoning>", "secret_word": "pineapple", "password": "open-sesame-42", "pass": "sesame7",
    "api_key": "A major, then G minor", "auth": "<|auth_2026_v1|>", "private_key": "hunter22hunter",
    "login": "bob-the-1st", "token": "https://example.org/a?b=c", "signature": "def f(x): return x",
    "credentials": "0123456789012345",
}  # fmt: skip
"""What people give to rewards and worlds under such names, and what their models' answers then hold."""
KEY = "zq7-Planted+Key/4711==x"


@reward_function
def finds(messages: list[Any], **words: Any) -> dict[str, Any]:
    text = messages[-1].content
    found = sorted(word for word in words.values() if word in WORDS.values() and word in text)
    return {"score": len(found) / len(WORDS), "reason": f"found {found}", "metrics": {}}


def named(names: Any) -> dict[str, str]:
    return dict(zip(names, WORDS.values(), strict=True))


def telling(body: dict[str, Any], _: int) -> Says:
    return answer(*[f"I think. {' and '.join(WORDS.values())}" for _ in range(body.get("n", 1))])


def run(home: Path, api_base: str | None, phase: Any = "both", **settings: Any) -> RunResult:
    forget_all()  # each is a process of its own
    told = config(home, api_base, rows=questions(2), **settings)
    return EvaluationPipeline(told, phase=phase, reward=finds).run()


def rows(home: Path, name: str) -> list[dict[str, Any]]:
    dropped = {"generated_at", "latency_ms", "cached", "check"}
    return [{key: value for key, value in row.items() if key not in dropped} for row in lines(home / "run" / name)]


def test_what_a_param_is_called_changes_no_byte_of_the_data(tmp_path: Path) -> None:
    plain, secret, later = (tmp_path / name for name in ("plain", "secret", "later"))
    for home in (plain, secret, later):
        home.mkdir()
    cached = {"generation__cache__enabled": True, "generation__n": 2}
    with serving(telling) as endpoint:
        run(plain, endpoint.api_base, reward__params=named([f"word_{i}" for i in range(len(WORDS))]), **cached)
        run(secret, endpoint.api_base, reward__params=named(WORDS), **cached)
        asked = len(endpoint.requests)
        again = run(secret, endpoint.api_base, output__output_dir=str(later / "run"), **cached)
        assert len(endpoint.requests) == asked, "from the cache"
    with serving(telling) as endpoint:
        run(later, endpoint.api_base, "inference", output__output_dir=str(later / "apart"), reward__params=named(WORDS))
    run(later, None, "execution", output__output_dir=str(later / "apart"), reward__params=named(WORDS))

    assert rows(secret, "results.jsonl") == rows(plain, "results.jsonl")
    assert rows(secret, "rollouts.jsonl") == rows(plain, "rollouts.jsonl")
    assert [row["evaluation_score"] for row in rows(secret, "results.jsonl")] == [1.0] * 4
    assert [row["assistant_response"] for row in rows(later, "results.jsonl")] == [
        row["assistant_response"] for row in rows(plain, "results.jsonl")
    ]
    assert again.judged == 4
    assert {row["evaluation_score"] for row in lines(later / "apart" / "results.jsonl")} == {1.0}


class Vault(World):
    """Opens for a word that its operator set."""

    def __init__(self, sample: Sample, password: str) -> None:
        self.password, self.given = password, ""

    @tool
    async def unlock(self, word: str) -> str:
        """Try a word.

        Args:
            word: the word
        """
        self.given = word
        return f"{word} is {'right' if word == self.password else 'wrong'}"

    def facts(self) -> dict[str, Any]:
        return {"given": self.given, "wanted": self.password}


@reward_function
def opened(messages: list[Any], facts: dict[str, Any], **kwargs: Any) -> float:
    return float(facts["given"] == facts["wanted"] == "open-sesame-42")


def test_a_word_of_a_world_reaches_its_tools_as_the_model_wrote_it(tmp_path: Path) -> None:
    def react(body: dict[str, Any], _: int) -> Reaction:
        if body["messages"][-1]["role"] == "tool":
            assert body["messages"][-1]["content"] == "open-sesame-42 is right"
            return answer("done")
        call = {"name": "unlock", "arguments": '{"word": "open-sesame-42"}'}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": call}],
        }
        return Says(200, {"choices": [{"message": message, "finish_reason": "tool_calls"}]})

    world = {"environment": f"{__name__}:Vault", "params": {"password": "open-sesame-42"}}
    with serving(react) as endpoint:
        told = config(tmp_path, endpoint.api_base, rows=questions(1), agent=world)
        result = EvaluationPipeline(told, reward=opened).run()
    assert result.judged == 1
    assert [row["evaluation_score"] for row in lines(tmp_path / "run" / "results.jsonl")] == [1.0]
    assert "open-sesame-42" not in (tmp_path / "run" / "config.yaml").read_text()


# ── a key that was sent ──────────────────────────────────────────────────────────────────────────────────────────────

ECHOES = {
    "as it is": KEY, "with its scheme": f"Bearer {KEY}", "quoted": quote(KEY, safe=""), "in hex": KEY.encode().hex(),
    "in base64": base64.b64encode(f"user:{KEY}".encode()).decode(), "among others": f"it is{KEY}indeed",
}  # fmt: skip


def choices(told: str, where: str, count: int) -> Says:
    """Answers of which the second holds what is told."""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": json.dumps({"x": told})}}
    parts: dict[str, dict[str, Any]] = {
        "content": {"content": told}, "reasoning": {"content": "x", "reasoning_content": told},
        "call": {"content": None, "tool_calls": [call]}, "escaped": {"content": told},
    }  # fmt: skip
    messages = [{"role": "assistant", **(parts[where] if i == 1 else {"content": f"fine {i}"})} for i in range(count)]
    body = {
        "id": told, "usage": {"prompt_tokens": 10, "completion_tokens": 6},
        "choices": [{"index": i, "message": message, "finish_reason": "stop"} for i, message in enumerate(messages)],
    }  # fmt: skip
    text = json.dumps(body)
    return Says(200, (text.replace("z", "\\u007a") if where == "escaped" else text).encode())


@pytest.mark.parametrize(
    ("echo", "where"),
    [*((echo, "content") for echo in ECHOES), *(("as it is", where) for where in ("reasoning", "call", "escaped"))],
)
def test_an_answer_that_holds_the_key_fails_alone_is_counted_and_is_nowhere(
    tmp_path: Path, echo: str, where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    price = {"input": 1e6, "output": 1e6}  # for a million tokens: one for each
    with serving(lambda body, _: choices(ECHOES[echo], where, body.get("n", 1))) as endpoint:
        settings = {
            "generation__n": 3, "generation__api_key_env": "MY_KEY", "generation__price": price,
            "generation__cache__enabled": True, "generation__n_mode": "native",
        }  # fmt: skip
        result = run(tmp_path, endpoint.api_base, **settings)
        again = run(tmp_path, endpoint.api_base, **settings)
        assert len(endpoint.requests) == 2, "nothing is asked again"

    assert (result.judged, result.failed) == (again.judged, again.failed) == (4, 2)
    found = results(tmp_path)
    assert {key[1] for key, row in found.items() if row["error"] is not None} == {1}
    assert all("Nothing of it is kept" in row["error"] for row in found.values() if row["error"])
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["cost"] == 32.0, "also of what is not kept"
    said = [record.getMessage() for record in caplog.records if "holds a key" in record.getMessage()]
    assert len([line for line in said if "answer 1" in line]) == 1, "once, with its place"
    spelled = {value.encode() for value in (KEY, quote(KEY, safe=""), KEY.encode().hex(), ECHOES["in base64"])}
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(value in content for value in spelled for content in kept)


def test_a_key_in_what_is_not_kept_of_a_reply_fails_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)

    def react(body: dict[str, Any], _: int) -> Says:
        reply = json.loads(honest(body, 0).encoded().partition(b"\r\n\r\n")[2])
        return Says(200, {**reply, "id": KEY, "system_fingerprint": KEY}, {"X-Request-Id": KEY})

    with serving(react) as endpoint:
        assert run(tmp_path, endpoint.api_base, generation__api_key_env="MY_KEY").judged == 2


@pytest.mark.parametrize("key", ["EMPTY", "token-abc123", "sk-no-key-required", "none", "abc1234", "abcdefghijk"])
def test_a_placeholder_or_a_short_key_in_an_answer_is_a_word(
    tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", key)
    with serving(lambda body, _: answer(f"the word {key} is in it")) as endpoint:
        assert run(tmp_path, endpoint.api_base, generation__api_key_env="MY_KEY").judged == 2
    assert {row["assistant_response"] for row in lines(tmp_path / "run" / "results.jsonl")} == {
        f"the word {key} is in it"
    }


def test_a_key_of_the_environment_that_was_never_sent_is_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(lambda body, _: answer(f"it is {KEY}")) as endpoint:
        assert run(tmp_path, endpoint.api_base).judged == 2
    assert KEY in (tmp_path / "run" / "rollouts.jsonl").read_text()


SERVER = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method = asked["method"]
    if method == "server/discover":
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    result = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s"}},
        "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
    }.get(method)
    if result is None:
        if os.environ.get("DIE"):
            sys.exit(f"refused with {os.environ['DB_PASS']}")
        result = {"content": [{"type": "text", "text": "connected with " + os.environ["DB_PASS"]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("die", ["", "yes"])
def test_what_an_mcp_server_repeats_of_its_environment_is_nowhere(tmp_path: Path, die: str) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    server = {
        "command": [sys.executable, str(tmp_path / "server.py")], "sandbox": "none", "stateless": True, "warm": 0,
        "env": {"DB_PASS": KEY, "DIE": die, "LOG_LEVEL": "debug"},
    }  # fmt: skip
    with serving(lambda body, _: Says(200, {"choices": [{"message": message}]})) as endpoint:
        told = config(
            tmp_path, endpoint.api_base, rows=questions(1),
            agent={"environment": "reward_kit.agent:McpEnvironment", "params": server, "world_retries": 0},
        )  # fmt: skip
        result = EvaluationPipeline(told, reward=finds).run()
    assert (result.judged, result.failed) == (0, 1)
    assert "LOG_LEVEL: debug" in (tmp_path / "run" / "config.yaml").read_text()
    for path in (path for path in (tmp_path / "run").rglob("*") if path.is_file()):
        assert KEY.encode() not in path.read_bytes(), path
