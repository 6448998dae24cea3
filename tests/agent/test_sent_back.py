# SPDX-License-Identifier: Apache-2.0
"""What a model's endpoint said in a turn goes back to it with later turns as it came, and to nobody else.

Each preset has an endpoint on this machine that refuses anything else: it remembers its own turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reward_kit.agent import Episodes, World, tool
from reward_kit.agent.environment import environment_of
from reward_kit.agent.environments.two_sided import TwoSided
from reward_kit.agent.users import ModelUser, WithUser
from reward_kit.config_models import CacheConfig, GenerationConfig, Sampling
from reward_kit.generation.cache.responses import cached
from reward_kit.generation.client import ModelClient
from reward_kit.generation.factory import make_client
from reward_kit.generation.http.gemini import _NO_SIGNATURE
from reward_kit.generation.presets import ADDRESS_VARIABLES, PRESETS
from reward_kit.models import Message, Rollout, Sample
from reward_kit.storage.turn_journal import TurnJournal
from tests.agent.environments.test_two_sided import library, task
from tests.agent.worlds import Model, call, calls, essence, says, settings
from tests.generation.anthropic_endpoint import error
from tests.generation.anthropic_endpoint import message as blocks
from tests.generation.gemini_endpoint import candidate, google, reply
from tests.generation.loopback import Loopback, Reaction, Says, complains, loopback

TURNS = 3
Said = dict[str, Any]


def _made(number: int, name: str, given: str) -> Said:
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": given}}


def _gemini(number: int, made: Said | None) -> Said:
    signed = {"extra_content": {"google": {"thought_signature": f"sig+/{number}=="}}}
    return {"content": None if made else "Done.", **signed} | ({"tool_calls": [made | signed]} if made else {})


def _thinks(**names: Callable[[int], Any]) -> Callable[[int, Said | None], Said]:
    def said(number: int, made: Said | None) -> Said:
        thought = {name: value(number) for name, value in names.items()}
        return {"content": None if made else "Done.", **thought} | ({"tool_calls": [made]} if made else {})

    return said


def _mistral(number: int, made: Said | None) -> Said:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": f"hm {number}"}], "closed": True}
    parts = [thought, {"type": "text", "text": "So."}]
    return {"content": parts, "prefix": False} | ({"tool_calls": [made | {"index": 0}]} if made else {})


def _details(number: int) -> list[Said]:
    return [
        {"type": "reasoning.text", "text": f"hm {number}", "signature": f"s{number}", "index": 0, "format": None},
        {"type": "reasoning.encrypted", "data": f"gA{number}", "id": None},
    ]


def _text(number: int) -> str:
    return f"hm {number}"


PLAIN = _thinks(refusal=lambda _: None, annotations=lambda _: [])
SAYS: Mapping[str, Callable[[int, Said | None], Said]] = {
    "openai": PLAIN,
    "azure": _thinks(annotations=lambda number: [{"type": "url_citation", "url_citation": {"url": f"u{number}"}}]),
    "vertex": _gemini,
    "deepseek": _thinks(reasoning_content=lambda number: f"hm {number}" if number else ""),
    "openrouter": _thinks(reasoning=_text, reasoning_details=_details),
    "vllm": _thinks(reasoning=_text, reasoning_content=_text),
    "ollama": lambda number, made: _thinks(reasoning=_text)(number, made and made | {"index": 0}),
    "groq": _thinks(reasoning=_text),
    "together": _thinks(reasoning=_text),
    "fireworks": _thinks(reasoning_content=_text),
    "xai": _thinks(reasoning_content=_text, encrypted_content=lambda number: f"gA{number}"),
    "bedrock": _thinks(reasoning=_text, trace=lambda number: {"id": number, "parts": [{"of": "it"}]}),
    "mistral": _mistral,
}


def _without_nothing(value: Any) -> Any:
    """A message without what says nothing."""
    if isinstance(value, dict):
        kept = {name: _without_nothing(held) for name, held in value.items()}
        return {name: held for name, held in kept.items() if held not in (None, [], {})}
    return [_without_nothing(held) for held in value] if isinstance(value, list) else value


class Strict:
    """An endpoint that refuses a conversation in which its own turns are not as it said them."""

    def __init__(self, said: Callable[[int, Said | None], Said], tool_name: str = "deposit", given: str = "") -> None:
        self._said, self._tool, self._given = said, tool_name, given or '{"amount":1}'

    def turn(self, number: int) -> Said:
        return self._said(number, _made(number, self._tool, self._given) if number < TURNS - 1 else None)

    def __call__(self, body: Said, _: int) -> Reaction:
        own = [turn for turn in body["messages"] if turn["role"] == "assistant"]
        for number, turn in enumerate(own):
            expected = {"role": "assistant", **self.turn(number)}
            if _without_nothing(turn) != _without_nothing(expected):
                return complains(400, f"turn {number} was {expected}, and {turn} came back")
        said = {"role": "assistant", **self.turn(len(own))}
        return Says(200, {"model": "m", "choices": [{"message": said, "finish_reason": "stop"}], "usage": _usage()})


def _usage() -> dict[str, int]:
    return {"prompt_tokens": 9, "completion_tokens": 2}


def anthropic(body: Said, _: int) -> Reaction:
    """The same of Anthropic: blocks in another order than usual, with fields that nobody knows."""
    own = [turn["content"] for turn in body["messages"] if turn["role"] == "assistant"]
    for number, turn in enumerate(own):
        if turn != _blocks(number):
            return error(400, "invalid_request_error", f"`thinking` blocks cannot be modified: {turn}")
    return blocks(*_blocks(len(own)), stop="tool_use" if len(own) < TURNS - 1 else "end_turn")


def _blocks(number: int) -> list[Said]:
    thought = {"type": "thinking", "thinking": f"hm {number}", "signature": f"s{number}"}
    use = {"type": "tool_use", "id": f"toolu_{number}", "name": "deposit", "input": {"amount": 1}}
    words = {"type": "text", "text": "So.", "citations": None}
    if number == TURNS - 1:
        return [thought, words]
    return [words, thought, use | {"caller": {"type": "direct"}}, {"type": "redacted_thinking", "data": "x"}]


def generate_content(body: Said, _: int) -> Reaction:
    """The same of Gemini: parts with signatures, and thoughts among them."""
    own = [turn["parts"] for turn in body["contents"] if turn["role"] == "model"]
    for number, turn in enumerate(own):
        if turn != _parts(number):
            return google(400, f"Function call is missing a thought_signature in functionCall parts: {turn}")
    return reply(candidate(*_parts(len(own))))


def _parts(number: int) -> list[Said]:
    thought = {"text": f"hm {number}", "thought": True}
    call = {"functionCall": {"name": "deposit", "args": {"amount": 1}}, "thoughtSignature": f"sig+/{number}=="}
    return [thought, {"text": "So.", "thoughtSignature": f"t{number}"}, *([call] if number < TURNS - 1 else [])]


class Account(World):
    """An account, with somebody who keeps asking."""

    def __init__(self, sample: Sample) -> None:
        self.balance = 0

    @tool
    def deposit(self, amount: int) -> int:
        """Put money in."""
        self.balance += amount
        return self.balance


SAMPLE = Sample(id="s", messages=[Message(role="user", content="Save.")])
REACTS: Mapping[str, Callable[[Said, int], Reaction]] = {
    **{prefix: Strict(said) for prefix, said in SAYS.items()},
    "anthropic": anthropic,
    "gemini": generate_content,
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ADDRESS_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for key in {preset.key for preset in PRESETS.values()} - {None}:
        monkeypatch.setenv(str(key), "k")


def client_of(prefix: str, server: Loopback, monkeypatch: pytest.MonkeyPatch) -> ModelClient:
    monkeypatch.setenv(f"REWARD_KIT_{prefix.upper()}_API_BASE", server.api_base)
    return make_client(GenerationConfig(model_name=f"{prefix}/m"))


async def play(client: ModelClient, journal: TurnJournal | None = None, durability: str = "replay") -> Rollout:
    episodes = Episodes(
        client, Sampling(max_tokens=99), None, environment_of(Account), settings(durability=durability),
        journal=journal,
    )  # fmt: skip
    (rollout,) = await episodes(SAMPLE, [0])
    return rollout


def test_each_preset_has_its_endpoint() -> None:
    assert REACTS.keys() == PRESETS.keys()


@pytest.mark.parametrize("prefix", PRESETS)
async def test_each_preset_gets_its_turns_back_as_they_came(
    prefix: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with loopback(REACTS[prefix]) as server:
        client = client_of(prefix, server, monkeypatch)
        with TurnJournal(tmp_path / "episodes.jsonl") as journal:
            whole = await play(client, journal)
        assert whole.failure is None, whole.failure
        assert (whole.ended, len(whole.steps or ())) == ("answered", TURNS)
        lines = (tmp_path / "episodes.jsonl").read_bytes().splitlines(keepends=True)
        for kept in range(1, len(lines)):  # an entry of the run that ended behind any line
            (tmp_path / "episodes.jsonl").write_bytes(b"".join(lines[:kept]))
            with TurnJournal(tmp_path / "episodes.jsonl") as journal:
                assert essence(await play(client, journal)) == essence(whole)
        stored = Rollout.model_validate_json(whole.model_dump_json())
        requests = len(server.requests)
        with cached(client, CacheConfig(cache_dir=str(tmp_path), enabled=True)) as layered:
            played = [await play(layered) for _ in range(2)]
        assert len(server.requests) - requests == TURNS and played[1].cached
        assert essence(played[0]) == essence(played[1]) == essence(whole)
        await client.close()
    assert essence(stored) == essence(whole)


@pytest.mark.parametrize("prefix", PRESETS)
async def test_nobody_else_gets_it(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = Strict(PLAIN)
    async with loopback(REACTS[prefix]) as server:  # open to the end, so that nobody else gets its port
        client = client_of(prefix, server, monkeypatch)
        whole = await play(client)
        await client.close()
        shown = [*SAMPLE.messages, *whole.turns, Message(role="user", content="And now?")]
        for other, model in (("openai", "m"), ("anthropic", "m"), (prefix, "another"), (prefix, "m")):
            said = {"choices": [{"message": ordinary.turn(TURNS)}], **reply(candidate({"text": "Done."})).body}
            async with loopback(lambda *_, said=said: Says(200, said)) as elsewhere:
                monkeypatch.setenv(f"REWARD_KIT_{other.upper()}_API_BASE", elsewhere.api_base)
                asked = make_client(GenerationConfig(model_name=f"{other}/{model}"))
                await asked.generate(shown, draws=[0], sampling=Sampling(max_tokens=9))
                await asked.close()
            for part in (part for turn in elsewhere.requests[0].get("contents", ()) for part in turn["parts"]):
                assert part.keys() <= {"text", "functionCall", "functionResponse", "thoughtSignature"}
                assert part.get("thoughtSignature", _NO_SIGNATURE) == _NO_SIGNATURE
            for turn in elsewhere.requests[0].get("messages", ()):
                assert turn.keys() <= {"role", "content", "tool_calls", "tool_call_id", "name"}
                for made in turn.get("tool_calls", ()):
                    assert made.keys() == {"id", "type", "function"}
                if isinstance(turn["content"], list):
                    assert {part["type"] for part in turn["content"]} <= {"text", "tool_use", "tool_result"}


@pytest.mark.parametrize(
    "words", ["'messages.1' : property '{}' is unsupported", "messages.1.{}: Extra inputs are not permitted"]
)
async def test_what_an_endpoint_refuses_of_its_own_words_is_left_out_and_recorded(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = Strict(PLAIN)

    def refuses(body: Said, number: int) -> Reaction:
        own = [turn for turn in body["messages"] if turn["role"] == "assistant"]
        for turn in own:
            for held in (turn, *turn.get("tool_calls", ())):
                for name in ("reasoning", "index"):
                    if name in held:
                        return complains(400, words.format(name))
        said = {"role": "assistant", **strict.turn(len(own)), "reasoning": "hm"}
        if "tool_calls" in said:
            said["tool_calls"] = [made | {"index": 0} for made in said["tool_calls"]]
        return Says(200, {"choices": [{"message": said}], "usage": _usage()})

    async with loopback(refuses) as server:
        client = client_of("vllm", server, monkeypatch)
        whole = await play(client)
        dropped = client.dropped_parameters  # type: ignore[attr-defined]  # of clients of endpoints
        await client.close()
    assert whole.failure is None and len(whole.steps or ()) == TURNS, whole.failure
    assert dropped.keys() == {"reasoning", "index"} and len(server.requests) == TURNS + 2


@pytest.mark.parametrize("prefix", ["vertex", "deepseek", "openrouter", "vllm"])
async def test_a_model_that_plays_the_user_gets_its_own_back_too(
    prefix: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = '{"amount":1}'
    strict = Strict(lambda number, made: SAYS[prefix](number, made if number == 1 else None), "pay", given)
    sample = Sample(id="s", messages=[Message(role="system", content="policy")], columns={"task": task()})

    def agent(messages: Any, draw: int) -> Message:
        turn = sum(message.role == "assistant" for message in messages)
        return calls(call("who_has", {"book": "Emma"})) if turn == 1 else says("What else?")

    path = tmp_path / "episodes.jsonl"
    async with loopback(strict) as server:
        client = client_of(prefix, server, monkeypatch)

        async def conversation() -> Rollout:
            user = ModelUser(client, Sampling(max_tokens=9), None, "You are a reader.", "###STOP###")
            environment = WithUser(environment_of(TwoSided, (), {"domain": library, "max_steps": 14}), user)
            with TurnJournal(path) as journal:
                play = Episodes(
                    Model(agent), Sampling(), None, environment, settings(durability="replay"), journal=journal
                )
                (rollout,) = await play(sample, [0])
            return rollout

        whole = await conversation()
        assert whole.failure is None, whole.failure
        lines = path.read_bytes().splitlines(keepends=True)
        for kept in range(1, len(lines)):
            path.write_bytes(b"".join(lines[:kept]))
            again = await conversation()
            assert again.failure is None, again.failure.message
            assert essence(again) == essence(whole)
        await client.close()
    assert any(step.noted for step in whole.steps or ()), "the user has called a tool"
    assert all(turn.sent_back is None for turn in whole.turns if turn.role == "user"), "the agent is not shown it"
