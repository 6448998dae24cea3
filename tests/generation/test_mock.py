# SPDX-License-Identifier: Apache-2.0
"""The mock model says what it was told to, the same way every time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.config_models import MockConfig, MockRule, Sampling
from reward_kit.errors import ConfigError
from reward_kit.generation.client import ModelClient
from reward_kit.generation.mock import MockModelClient
from reward_kit.models import Completion, Failure, Message


def ask(text: str) -> list[Message]:
    return [Message(role="system", content="Be brief."), Message(role="user", content=text)]


async def answers(config: MockConfig, text: str = "What is 3 + 4?", draws: int = 3) -> list[str]:
    results = await MockModelClient(config).generate(ask(text), draws=range(draws), sampling=Sampling())
    return [result.message.text for result in results if isinstance(result, Completion)]


def test_it_is_a_model_client() -> None:
    assert isinstance(MockModelClient(), ModelClient)


@given(prompt=st.text(max_size=40), draws=st.lists(st.integers(0, 50), min_size=1, max_size=5, unique=True))
async def test_unconfigured_answers_differ_by_draw_and_repeat_exactly(prompt: str, draws: list[int]) -> None:
    first = await MockModelClient().generate(ask(prompt), draws=draws, sampling=Sampling())
    again = await MockModelClient().generate(ask(prompt), draws=draws, sampling=Sampling(temperature=2.0))
    assert first == again
    texts = [result.message.text for result in first if isinstance(result, Completion)]
    assert len(texts) == len(set(texts)) == len(draws)
    assert all(prompt in text for text in texts)


async def test_scripted_answers_follow_the_draw_not_the_order_of_asking() -> None:
    client = MockModelClient(MockConfig(responses=["a", "b", "c"]))
    results = await client.generate(ask("?"), draws=[4, 0, 2], sampling=Sampling())
    assert [result.message.text for result in results if isinstance(result, Completion)] == ["b", "a", "c"]


async def test_the_first_matching_rule_answers_before_scripts_with_what_it_captured() -> None:
    rules = [
        MockRule(pattern=r"(\d+) - \d+", response="minus"),
        MockRule(pattern=r"(\d+) \+ (?P<second>\d+)", response=[r"\boxed{\1}", r"\frac{\g<second>}{1}"]),
    ]
    config = MockConfig(rules=rules, responses=["scripted"])
    assert await answers(config) == [r"\boxed{3}", r"\frac{4}{1}", r"\boxed{3}"]
    assert await answers(config, "Hello", draws=1) == ["scripted"]


async def test_a_function_answers_where_no_rule_does(tmp_path: Path) -> None:
    module = tmp_path / "replies.py"
    module.write_text(
        "from reward_kit.models import Message\n"
        "def plain(messages, draw): return f'{messages[-1].text}/{draw}'\n"
        "async def later(messages, draw): return Message(role='assistant', content='later')\n"
        "def rubbish(messages, draw): return 7\n"
        "def broken(messages, draw): raise ValueError('no idea')\n"
    )
    assert await answers(MockConfig(function_path=f"{module}:plain"), "hi", draws=2) == ["hi/0", "hi/1"]
    assert await answers(MockConfig(function_path=f"{module}:later"), draws=1) == ["later"]
    for name, said in (("rubbish", "returned a int"), ("broken", "ValueError: no idea")):
        client = MockModelClient(MockConfig(function_path=f"{module}:{name}"))
        (failure,) = await client.generate(ask("?"), draws=[0], sampling=Sampling())
        assert isinstance(failure, Failure) and failure.stage == "generate" and said in failure.message


async def test_usage_is_told_once_and_counts_words() -> None:
    client = MockModelClient(MockConfig(responses=["one two", "three"]))
    first, second = await client.generate(ask("a b c"), draws=[0, 1], sampling=Sampling())
    assert isinstance(first, Completion) and isinstance(second, Completion)
    assert first.usage is not None and (first.usage.prompt_tokens, first.usage.completion_tokens) == (5, 3)
    assert second.usage is None


async def test_max_tokens_cuts_after_that_many_words() -> None:
    client = MockModelClient(MockConfig(responses=["one  two\nthree four"]))
    (cut,) = await client.generate(ask("?"), draws=[0], sampling=Sampling(max_tokens=3))
    assert isinstance(cut, Completion)
    assert (cut.message.text, cut.finish_reason) == ("one  two\nthree", "length")


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (["Question:"], "18\n\n"), (["\n"], "18"), (["x", "Question:", "\n\n"], "18"), (["1"], ""),
        (["never"], "18\n\nQuestion: 9?"), ([""], "18\n\nQuestion: 9?"), (None, "18\n\nQuestion: 9?"),
    ],
)  # fmt: skip
async def test_an_answer_ends_before_the_first_stop_text(stop: list[str] | None, text: str) -> None:
    client = MockModelClient(MockConfig(responses=["18\n\nQuestion: 9?"]))
    (ended,) = await client.generate(ask("?"), draws=[0], sampling=Sampling(stop=stop))
    assert isinstance(ended, Completion)
    assert (ended.message.text, ended.finish_reason) == (text, "stop")


async def test_every_kth_answer_fails_and_may_be_asked_again() -> None:
    client = MockModelClient(MockConfig(fail_every=3))
    results = await client.generate(ask("?"), draws=range(7), sampling=Sampling())
    assert [isinstance(result, Failure) for result in results] == [False, False, True, False, False, True, False]
    assert all(result.retryable for result in results if isinstance(result, Failure))


def test_identity_follows_what_is_said_and_not_how_long_it_takes(tmp_path: Path) -> None:
    def identity(config: MockConfig) -> object:
        return MockModelClient(config).identity["config"]

    plain = identity(MockConfig(responses=["a"]))
    assert plain == identity(MockConfig(responses=["a"], latency_ms=5, fail_every=2))
    assert plain != identity(MockConfig(responses=["b"]))
    module = tmp_path / "replies.py"
    module.write_text("def f(messages, draw): return 'old'\n")
    old = identity(MockConfig(function_path=f"{module}:f"))
    module.write_text("def f(messages, draw): return 'newer'\n")
    assert old != identity(MockConfig(function_path=f"{module}:f"))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (MockConfig(rules=[MockRule(pattern="(", response="x")]), "'('"),
        (MockConfig(rules=[MockRule(pattern="a", response=[])]), "no response"),
        (MockConfig(function_path="no_such_module_here:f"), "no_such_module_here"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_at_once(config: MockConfig, said: str) -> None:
    with pytest.raises(ConfigError, match=said if said != "'('" else r"'\('"):
        MockModelClient(config)


async def test_a_reference_to_a_group_that_is_not_captured_is_a_config_error() -> None:
    client = MockModelClient(MockConfig(rules=[MockRule(pattern="What", response=r"\1")]))
    with pytest.raises(ConfigError, match="does not capture"):
        await client.generate(ask("What?"), draws=[0], sampling=Sampling())
