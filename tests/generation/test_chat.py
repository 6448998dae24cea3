# SPDX-License-Identifier: Apache-2.0
"""`chat`: one question from synchronous code, wherever it stands."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reward_kit import chat, chat_async, evaluate
from reward_kit.errors import ConfigError, GenerationError
from reward_kit.models import Message
from reward_kit.testing import MockServer

ECHO = {"rules": [{"pattern": "(.*)", "response": r"You said \1"}]}


def test_a_question_and_a_conversation_are_asked_with_the_settings_given() -> None:
    with MockServer(ECHO) as server:
        assert chat("hello", "m", api_base=server.url, temperature=0.25, max_tokens=9).text == "You said hello"
        talk: list[Any] = [{"role": "system", "content": "Be brief."}, Message(role="user", content="why")]
        tool = {"type": "function", "function": {"name": "look", "parameters": {}}}
        answer = chat(talk, "m", api_base=server.url, tools=[tool])
    assert answer.text == "You said why" and answer.usage is not None
    first, second = server.requests
    assert (first.body["temperature"], first.body["max_tokens"], first.model) == (0.25, 9, "m")
    assert [turn["role"] for turn in second.body["messages"]] == ["system", "user"]
    assert second.body["tools"] == [tool] and "temperature" not in second.body


async def test_it_works_inside_a_running_loop_and_the_asynchronous_form_lets_others_go_on() -> None:
    go_on = threading.Event()

    async def reply(messages: Sequence[Message], draw: int) -> str:
        while messages[-1].text == "slow" and not go_on.is_set():
            await asyncio.sleep(0.01)
        return f"You said {messages[-1].text}"

    with MockServer(reply) as server:
        assert chat("hello", "m", api_base=server.url).text == "You said hello"
        slow = asyncio.ensure_future(chat_async("slow", "m", api_base=server.url))
        quick = await chat_async("quick", "m", api_base=server.url)
        assert quick.text == "You said quick" and not slow.done()
        go_on.set()
        assert (await slow).text == "You said slow"


def test_many_threads_may_ask_at_once() -> None:
    with MockServer(ECHO) as server, ThreadPoolExecutor(8) as several:
        asked = [str(number) for number in range(40)]
        said = list(several.map(lambda text: chat(text, "m", api_base=server.url).text, asked))
    assert said == [f"You said {text}" for text in asked]


def test_more_settings_than_clients_that_are_kept_open() -> None:
    with MockServer(ECHO) as server:
        said = {chat("x", f"m{number}", api_base=server.url).text for number in range(40)}
    assert said == {"You said x"} and len(server.requests) == 40


def test_no_answer_is_an_error_with_the_endpoints_words() -> None:
    refusing = MockServer({"faults": [{"status": 400, "message": "not that"}]})
    with refusing as server, pytest.raises(GenerationError, match=r"'m' gave no answer.*not that"):
        chat("hello", "m", api_base=server.url)
    with MockServer({"faults": [{"status": 503, "at": 1}], "responses": ["at last"]}) as server:
        assert chat("hello", "m", api_base=server.url).text == "at last", "what passes is tried again"


@pytest.mark.parametrize(
    ("prompt", "settings", "complaint"),
    [
        ("x", {"temperatur": 1}, "temperature"),
        ([], {}, "no messages"),
        ([{"content": "who says so"}], {}, "not a conversation"),
        ("x", {"n": 2}, "'n'"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(prompt: Any, settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        chat(prompt, "mock", **settings)


def test_answers_are_kept_only_where_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with MockServer({"responses": ["a", "b", "c", "d"]}) as server:
        assert [chat("x", "m", api_base=server.url).text for _ in range(2)] == ["a", "b"]
        assert list(tmp_path.iterdir()) == []
        kept: Any = {"api_base": server.url, "cache": {"enabled": True, "cache_dir": str(tmp_path / "cache")}}
        assert [chat("x", "m", **kept).text for _ in range(2)] == ["c", "c"]
        assert chat("x", "m", draw=1, **kept).text == "d"


def test_a_forked_child_asks_for_itself() -> None:
    with MockServer(ECHO) as server:
        assert chat("parent", "m", api_base=server.url).text == "You said parent"
        context = multiprocessing.get_context("fork")
        answers = context.SimpleQueue()
        child = context.Process(target=lambda: answers.put(chat("child", "m", api_base=server.url).text))
        child.start()
        child.join(60)
        assert (child.exitcode, answers.get()) == (0, "You said child")


def test_a_reward_in_a_worker_may_ask() -> None:
    with MockServer(
        {"rules": [{"pattern": "good", "response": "yes"}, {"pattern": "bad", "response": "no"}]}
    ) as server:
        rows = [{"user_query": "?", "assistant_response": text, "url": server.url} for text in ("good", "bad")]
        result = evaluate(rows, approved)
    result.raise_for_failures()
    assert [row["evaluation_score"] for row in result.rows()] == [1.0, 0.0]


def approved(response: str, url: str) -> float:
    return float(chat(response, "m", api_base=url).text == "yes")
