# SPDX-License-Identifier: Apache-2.0
"""How replies end: one table for every API, and the same verdict for the same event."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.config_models import MockConfig, Sampling
from reward_kit.errors import GenerationError
from reward_kit.generation.batch.lines import AnswerLines
from reward_kit.generation.client import ModelClient
from reward_kit.generation.endings import Ending, ending_of, reason_of
from reward_kit.generation.http.clients import OpenAICompatibleClient
from reward_kit.generation.http.messages import MessagesClient
from reward_kit.generation.http.through_litellm import LiteLLMClient
from reward_kit.generation.local import Choices
from reward_kit.generation.mock import MockModelClient
from reward_kit.generation.wire import read_completions
from reward_kit.http.exchange import Reply
from reward_kit.models import Completion, Failure, Message
from tests.doc_pages import section
from tests.generation.loopback import FakeTime

DOCS = Path(__file__).parents[2] / "docs"
Event = tuple[int, Any]
"""A status and a body."""
QUESTION = [Message(role="user", content="Is it?")]
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
BROKEN = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": '}}
NAMELESS = {"id": "c1", "type": "function", "function": {"name": None, "arguments": "{}"}}
FILTERED_400 = (400, {"error": {"message": "The response was filtered", "code": "content_filter", "param": "prompt"}})
DECLINED = {"type": "refusal", "refusal": "I will not."}
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
UNREAD = '<function=add{"a": 1}</function>'


def choice(content: Any, reason: Any = "stop", native: str | None = None, **message: Any) -> Event:
    said = {"role": "assistant", "content": content, **message}
    told = {"message": said, "finish_reason": reason} | ({} if native is None else {"native_finish_reason": native})
    return 200, {"choices": [told], "usage": {"prompt_tokens": 3}}


def alone(reason: Any) -> Event:
    """A choice that has a reason to end, and nothing else."""
    return 200, {"choices": [{"index": 0, "finish_reason": reason}], "usage": {"prompt_tokens": 3, "total_tokens": 9}}


def blocks(stop: str, *content: Any) -> Event:
    return 200, {"content": [*content], "stop_reason": stop, "usage": {"input_tokens": 3, "output_tokens": 2}}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def error_in_choice(code: Any, kind: str | None = None, content: str | None = "ye", **more: Any) -> Event:
    """OpenRouter's way to tell that a provider's error interrupted an answer."""
    told = {"code": code, "message": "No", **({} if kind is None else {"metadata": {"error_type": kind}}), **more}
    said = {"role": "assistant", "content": content}
    return 200, {"choices": [{"message": said, "finish_reason": "error", "error": told}]}


def error_beside(code: Any, kind: str) -> Event:
    """The same with the error beside the choices."""
    status, body = error_in_choice(code, kind)
    error = body["choices"][0].pop("error")
    return status, {**body, "error": error}


CHAT: Mapping[Ending, list[Event]] = {
    "answered": [
        choice("yes"), choice("yes", "eos"), choice("yes", None), choice(None, "tool_calls", tool_calls=[CALL]),
        choice(None, "tool_calls", tool_calls=[BROKEN]), choice("yes", "something new"), choice([text("yes")]),
    ],
    "cut off": [
        choice("ye", "length"), choice("", "length"), choice(None, "length"), choice(None, "MAX_TOKENS"),
        alone("length"), alone("MAX_TOKENS"), choice("ye", "stop", native="MAX_TOKENS"), choice("ye", "ERROR_LIMIT"),
        choice("ye", "length", native="completed"), choice([THOUGHT], "length"),
        error_in_choice(400, "max_tokens_exceeded"), error_in_choice(400, "context_length_exceeded"),
        error_beside(400, "max_tokens_exceeded"), error_in_choice(400, "max_tokens_exceeded", None),
        (400, {"error": {"message": "Could not finish the message because max_tokens or model output limit was "
               "reached. Please try again with higher max_tokens.", "type": "invalid_request_error"}}),
        choice(None, "length", reasoning_content="hm"), choice("ye", "model_length"),
    ],
    "refused": [
        choice(None, "stop", refusal="I will not."), choice("", "stop", refusal="I will not."),
        error_in_choice(403, "refusal"), error_in_choice(400, "refusal", None), error_beside(400, "refusal"),
        (400, {"error": {"code": 400, "message": "Refused", "metadata": {"error_type": "refusal"}}}),
        choice("No.", "refusal"), choice([DECLINED]), choice([text("Well."), DECLINED]), choice([DECLINED], None),
        alone("refusal"),
        (200, {"choices": [{"message": {}, "finish_reason": "content_filter", "native_finish_reason": "refusal"}]}),
    ],
    "malformed call": [
        choice(None, "MALFORMED_FUNCTION_CALL"), choice("add(", "malformed_function_call"),
        choice(None, "function_call_filter: MALFORMED_FUNCTION_CALL"),
        choice(None, "tool_calls", tool_calls=[NAMELESS]), alone("MALFORMED_FUNCTION_CALL"),
        choice(None, "malformed_tool_use"), choice("{", "malformed_model_output"),
        (400, {"error": {"message": "1 validation error for list[FunctionDefinition]\n  Invalid JSON: expected value",
               "type": "BadRequestError", "code": 400}}),
        (400, {"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "type":
               "invalid_request_error", "failed_generation": UNREAD}}),
        (400, {"error": {"message": "tool call validation failed", "code": "tool_use_failed"}}),
        (400, {"error": {"message": "Failed to generate JSON.", "code": "json_validate_failed",
               "failed_generation": "{\"a\": "}}),
        (500, {"error": f"error parsing tool call: raw='{UNREAD}', err=invalid character '<'"}),
        (500, {"error": {"code": 500, "message": f"Failed to parse input at pos 4: {UNREAD}", "type": "server_error"}}),
    ],
    "empty": [
        choice(None), choice(""), choice(None, None), choice(None, "stop", tool_calls=[]), choice([]),
        choice(None, "stop", reasoning_content="hm"), choice(None, "stop", refusal=None),
        (200, {"choices": [{"message": {}, "finish_reason": "stop"}]}),
    ],
    "filtered": [
        choice(None, "content_filter"), alone("content_filter"), alone("SAFETY"),
        choice("ye", "content_filter", native="end_turn"), choice("", "content_filter"),
        choice("half an ans", "content_filter"), choice(None, "SAFETY"),
        error_in_choice(403), error_in_choice(403, None, None), error_in_choice(400, "content_policy_violation"),
        error_in_choice(403, metadata={"reasons": ["violence"], "flagged_input": "…"}),
        error_in_choice("content_policy_violation"), error_beside(403, "content_policy_violation"),
        choice(None, "content_filter: PROHIBITED_CONTENT"), choice(None, "sensitive"),
        FILTERED_400, (403, {"code": "permission", "error": "Content violates usage guidelines."}),
    ],
    "unreadable": [
        (200, {"choices": []}), (200, {}), (200, {"choices": [{"finish_reason": "stop"}]}), (200, {"choices": ["yes"]}),
        alone("stop"), alone(None), alone("tool_calls"), (200, {"choices": [None]}), choice(0), choice(False),
        choice({}), choice(7), choice({"text": "yes"}),
        choice(None, "tool_calls", tool_calls="add"), choice(None, tool_calls=[7]),
        choice("yes", tool_calls=[{"function": "add"}]), (200, {"choices": {"0": "yes"}}),
    ],
    "broken off": [
        error_in_choice(502, "provider_unavailable"), error_in_choice(429, "rate_limit_exceeded"),
        error_in_choice(503), error_in_choice(408), error_in_choice(None), error_in_choice(402, "payment_required"),
        error_beside(502, "server"), error_in_choice("server_error"),
        choice("ye", "error"), choice(None, "abort"), choice("ye", "insufficient_system_resource"),
        (200, {"choices": [{"message": {"content": "ye"}, "error": {"message": "upstream died"}}]}),
    ],
}  # fmt: skip
MESSAGES: Mapping[Ending, list[Event]] = {
    "answered": [
        blocks("end_turn", text("yes")), blocks("stop_sequence", text("yes")), blocks("pause_turn", text("yes")),
        blocks("tool_use", {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1}}),
    ],
    "cut off": [
        blocks("max_tokens", text("ye")), blocks("max_tokens"), blocks("model_context_window_exceeded", text("ye")),
        blocks("max_tokens", {"type": "thinking", "thinking": "hm", "signature": "s"}),
    ],
    "refused": [blocks("refusal"), blocks("refusal", text("I"))],
    "malformed call": [blocks("tool_use", {"type": "tool_use"})],
    "empty": [
        blocks("end_turn"), blocks("end_turn", {"type": "thinking", "thinking": "hm", "signature": "s"}),
        blocks("end_turn", {"type": "text", "text": None}, {"type": "thinking", "thinking": None, "signature": "s"}),
    ],
    "filtered": [
        (400, {"type": "error", "error": {"type": "invalid_request_error", "message":
               "Output blocked by content filtering policy"}}),
    ],
    "unreadable": [(200, {}), (200, {"content": "yes"}), (200, {"content": [1]}), (200, {"content": None})],
    "broken off": [(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})],
}  # fmt: skip
JUDGED = {"answered", "cut off", "refused", "malformed call", "empty"}
RETRIES = 2


class Answers:
    """Carries every request to the same reply."""

    def __init__(self, status: int, body: Any) -> None:
        self.reply = Reply(status, {}, orjson.dumps(body))
        self.asked = 0

    async def post(self, data: bytes) -> Reply:
        self.asked += 1
        return self.reply

    def check_reachable(self, attempts_per_call: int) -> None:
        pass

    async def close(self) -> None:
        pass


def events(table: Mapping[Ending, list[Event]]) -> list[Any]:
    return [
        pytest.param(ending, event, id=f"{ending}-{number}")
        for ending, found in table.items()
        for number, event in enumerate(found)
    ]


async def ask(client: ModelClient) -> Completion | Failure:
    (outcome,) = await client.generate(QUESTION, draws=[0], sampling=Sampling())
    return outcome


def verdict(outcome: Completion | Failure | GenerationError) -> str:
    """The ending, as far as an outcome tells it."""
    if isinstance(outcome, Completion):
        return ending_of(outcome.finish_reason, outcome.message)
    kind, retryable = (
        (outcome.type, outcome.retryable)
        if isinstance(outcome, Failure)
        else (type(outcome).__name__, outcome.retryable)
    )
    return {
        ("FilteredError", False): "filtered", ("UnreadableReplyError", False): "unreadable",
        ("ProviderError", True): "broken off",
    }.get((kind, retryable), f"{kind} {retryable}")  # fmt: skip


async def check(ending: Ending, client: Any, answers: Answers) -> None:
    client._transport = answers
    client._timing = FakeTime().timing()
    client._params = client._params.model_copy(update={"max_retries": RETRIES})
    outcome = await ask(client)
    assert verdict(outcome) == ending, outcome
    assert isinstance(outcome, Completion) == (ending in JUDGED)
    assert answers.asked == (1 + RETRIES if ending == "broken off" else 1)


@pytest.mark.parametrize(("ending", "event"), events(CHAT))
async def test_chat_completions(ending: Ending, event: Event) -> None:
    await check(ending, OpenAICompatibleClient("m", api_base="http://h/v1"), Answers(*event))


@pytest.mark.parametrize(("ending", "event"), events(MESSAGES))
async def test_messages(ending: Ending, event: Event) -> None:
    await check(ending, MessagesClient("m", api_base="http://h/v1"), Answers(*event))


@pytest.mark.parametrize(("ending", "event"), events(CHAT))
@pytest.mark.parametrize("wrap", [False, True])
def test_lines_of_batches(ending: Ending, event: Event, wrap: bool) -> None:
    status, body = event
    line: dict[str, Any] = {"custom_id": "a", "response": {"status_code": status, "body": body}, "error": None}
    if wrap and status != 200:
        line = {"custom_id": "a", "response": None, "error": body["error"] if isinstance(body["error"], dict) else body}
        line["error"] = {**line["error"], "code": line["error"].get("code") or status}
    lines = AnswerLines(OpenAICompatibleClient("m", api_base="http://h/v1"), "http://h/v1", ())
    outcome: Completion | GenerationError
    try:
        outcome = lines.read(orjson.dumps(line))
    except GenerationError as error:
        outcome = error
    if not (wrap and status in {403, 500}):  # the line does not tell the status
        assert verdict(outcome) == ending, outcome


class FromLiteLLM(ModuleType):
    """The package litellm as far as we use it: it raises for a status, and gives an answer as a value."""

    exceptions = ModuleType("exceptions")
    exceptions.BadRequestError = type("BadRequestError", (Exception,), {})  # type: ignore[attr-defined]

    def __init__(self, status: int, body: Any) -> None:
        super().__init__("litellm")
        self.status, self.body, self.asked = status, body, 0

    def get_llm_provider(self, model: str) -> None:
        pass

    async def acompletion(self, **given: Any) -> Any:
        self.asked += 1
        if self.status != 200:
            error = Exception(f"litellm.BadRequestError: GroqException - {orjson.dumps(self.body).decode()}")
            error.status_code = self.status  # type: ignore[attr-defined]
            raise error
        return self

    def model_dump(self, exclude_none: bool) -> Any:
        assert exclude_none
        return _without_none(self.body)


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(held) for name, held in value.items() if held is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("ending", "event"), events(CHAT))
async def test_through_litellm(ending: Ending, event: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    package = FromLiteLLM(*event)
    monkeypatch.setitem(sys.modules, "litellm", package)
    client = LiteLLMClient("groq/m", timing=FakeTime().timing())
    client._params = client._params.model_copy(update={"max_retries": RETRIES})
    outcome = await ask(client)
    assert verdict(outcome) == ending, outcome
    assert package.asked == (1 + RETRIES if ending == "broken off" else 1)


@pytest.mark.parametrize("before", ["litellm.BadRequestError: OpenAIException - ",
                                    "litellm.BadRequestError: AzureException BadRequestError - "])  # fmt: skip
@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("cut off", "Could not finish the message because max_tokens or model output limit was reached."),
        ("malformed call", "2 validation errors for list[function-wrap[f()]]\n  Invalid JSON: expected value"),
        ("malformed call", f"Failed to parse input at pos 4: {UNREAD}"),
    ],
)  # fmt: skip
async def test_an_answer_is_told_by_words_alone(
    before: str, ending: Ending, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def complain(**given: Any) -> Any:
        error = Exception(before + words)
        error.status_code = 400  # type: ignore[attr-defined]
        raise error

    package = FromLiteLLM(400, {})
    monkeypatch.setattr(package, "acompletion", complain)
    monkeypatch.setitem(sys.modules, "litellm", package)
    assert verdict(await ask(LiteLLMClient("openai/m", timing=FakeTime().timing()))) == ending


@pytest.mark.parametrize("event", [event for event in (*CHAT["malformed call"], *CHAT["cut off"]) if event[0] != 200])
async def test_an_error_that_repeats_a_prompt_is_no_answer(event: Event) -> None:
    told = event[1]["error"]
    words = told if isinstance(told, str) else told["message"]
    body = {"error": {"message": f"Invalid value: 'They wrote {words}'", "type": "invalid_request_error"}}
    client: Any = OpenAICompatibleClient("m", api_base="http://h/v1")
    client._transport = Answers(400, body)
    assert verdict(await ask(client)) == "BadRequestError False"


REFUSED_THERE = choice(None, "stop", provider_specific_fields={"refusal": "I will not."})


@pytest.mark.parametrize(
    ("model", "event", "ending"),
    [
        ("openai/gpt-4o", REFUSED_THERE, "refused"), ("openai/gpt-4o", choice(None, "content_filter"), "filtered"),
        ("anthropic/claude-opus-5", choice(None, "content_filter"), "refused"),
    ],
)  # fmt: skip
async def test_a_refusal_stays_one_through_litellm(
    model: str, event: Event, ending: Ending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "litellm", FromLiteLLM(*event))
    assert verdict(await ask(LiteLLMClient(model, timing=FakeTime().timing()))) == ending


@pytest.mark.parametrize(
    ("ending", "reason", "delta"),
    [
        ("answered", "stop", {"content": "yes"}), ("cut off", "length", {}), ("empty", "stop", {}),
        ("answered", "tool_calls", {"tool_calls": [{"index": 0, **CALL}]}),
    ],
)  # fmt: skip
def test_the_embedded_model(ending: Ending, reason: str, delta: dict[str, Any]) -> None:
    collected = Choices(1)
    collected.add({"choices": [{"index": 0, "delta": delta}]})
    collected.add({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    (outcome,) = read_completions(collected.reply(), asked_model="local", most=1, latency_ms=1.0)
    assert verdict(outcome) == ending


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("answered", {"content": "yes"}), ("empty", {"content": ""}), ("cut off", {"finish_reason": "length"}),
        ("refused", {"content": "No.", "finish_reason": "refusal"}), ("filtered", {"finish_reason": "content_filter"}),
        ("broken off", {"content": "ye", "finish_reason": "error"}),
        ("malformed call", {"content": "add(", "finish_reason": "malformed_call"}),
    ],
)  # fmt: skip
async def test_the_mock(ending: Ending, said: dict[str, Any], tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_bytes(orjson.dumps({"rules": [{"pattern": "Is it", "response": said}]}))
    assert verdict(await ask(MockModelClient(MockConfig(script=str(script))))) == ending


@pytest.mark.parametrize("parts", [[{"type": "text", "text": None}], [{"type": "text"}], [text("")], [THOUGHT]])
async def test_a_part_without_a_text_says_nothing(parts: list[Any]) -> None:
    client: Any = OpenAICompatibleClient("m", api_base="http://h/v1")
    client._transport = Answers(*choice(parts))
    outcome = await ask(client)
    assert isinstance(outcome, Completion) and outcome.text == ""
    assert ending_of(outcome.finish_reason, outcome.message) == "empty"


async def test_what_the_model_wrote_is_what_is_judged() -> None:
    for event in [event for event in CHAT["malformed call"] if event[0] != 200]:
        client: Any = OpenAICompatibleClient("m", api_base="http://h/v1")
        client._transport = Answers(*event)
        outcome = await ask(client)
        assert isinstance(outcome, Completion) and outcome.usage is not None and outcome.usage.at_most
        told = event[1]["error"]
        written = told.get("failed_generation", "") if isinstance(told, dict) and event[0] == 400 else UNREAD
        assert outcome.message.text == written


async def test_of_several_choices_each_has_its_own_ending() -> None:
    said = [{"message": {"content": None}, "finish_reason": reason} for reason in ("content_filter", "stop", "length")]
    body = {"choices": [*said, {"message": {"content": "four"}}], "usage": {"prompt_tokens": 3, "completion_tokens": 9}}
    client: Any = OpenAICompatibleClient("m", api_base="http://h/v1")
    client._transport = Answers(200, body)
    outcomes = await client.generate(QUESTION, draws=range(4), sampling=Sampling())
    assert [verdict(outcome) for outcome in outcomes] == ["filtered", "empty", "cut off", "answered"]
    assert [getattr(outcome, "usage", None) is not None for outcome in outcomes] == [False, True, False, False]
    assert client._transport.asked == 1


async def test_of_several_choices_what_broke_off_is_asked_for_again() -> None:
    class Mended(Answers):
        async def post(self, data: bytes) -> Reply:
            self.asked += 1
            count = orjson.loads(data).get("n", 1)
            reasons = ("error", "stop") if self.asked == 1 else ("stop",) * count
            choices = [{"message": {"content": str(self.asked)}, "finish_reason": reason} for reason in reasons]
            return Reply(200, {}, orjson.dumps({"choices": choices}))

    client: Any = OpenAICompatibleClient("m", api_base="http://h/v1")
    client._transport = Mended(200, {})
    outcomes = await client.generate(QUESTION, draws=(0, 1), sampling=Sampling())
    assert [outcome.text for outcome in outcomes] == ["1", "2"]


@pytest.mark.parametrize("code", [400, 404, 413, 422])
async def test_a_choice_whose_request_is_refused_is_not_asked_for_again(code: int) -> None:
    client: Any = OpenAICompatibleClient("m", api_base="http://h/v1")
    client._transport = Answers(*error_in_choice(code, "invalid_image"))
    assert verdict(await ask(client)) == "BadRequestError False" and client._transport.asked == 1


@given(st.one_of(st.none(), st.integers(), st.text(max_size=20), st.lists(st.text())))
def test_any_word_is_a_reason_or_none(word: Any) -> None:
    reason = reason_of({"finish_reason": word, "native_finish_reason": word, "provider_specific_fields": word})
    assert reason is None or isinstance(reason, str)
    assert ending_of(reason, Message(role="assistant", content="")) in {*CHAT}


def test_every_ending_is_in_the_docs_with_what_follows() -> None:
    told_there = section(DOCS / "models.md", "How a reply ends")
    rows = [line for line in told_there.splitlines() if line.startswith("| **")]
    told = {row.split("**")[1]: row for row in rows}
    assert told.keys() == CHAT.keys()
    for ending, row in told.items():
        assert ("an answer" in row) == (ending in JUDGED), row
