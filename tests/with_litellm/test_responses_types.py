# SPDX-License-Identifier: Apache-2.0
"""Requests to OpenAI's Responses and their replies, by the types of OpenAI's own package; models by litellm's table."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from reward_kit.config_models import GenerationConfig, Sampling
from reward_kit.generation.http.responses import ResponsesClient
from reward_kit.generation.presets import api_of
from reward_kit.models import Completion, Message
from tests.generation.asking import QUESTION
from tests.generation.loopback import loopback, scripted
from tests.generation.responses_endpoint import ADD, CONVERSATIONS, called, reasoning, response, said

REQUEST = TypeAdapter(ResponseCreateParamsNonStreaming)
REPLIES = [
    response(said("yes")),
    response(said(refusal="No.")),
    response(reasoning("Add."), called("add", "{}", "c1"), input_tokens_details={"cached_tokens": 4},
             output_tokens_details={"reasoning_tokens": 1}),
    response(said("y"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    response(status="failed", error={"code": "server_error", "message": "Sorry."}),
]  # fmt: skip
REGION = re.compile("/(eu|us|global)/")
"""Its table says less of these, and they are models that it has elsewhere."""


@pytest.mark.parametrize("messages", CONVERSATIONS)
async def test_a_request_has_the_types_of_openais_package(messages: list[Message]) -> None:
    first = [reasoning("Add."), said("So.", phase="commentary"), called("add", '{"a": 1}', "c1")]
    async with loopback(lambda _, number: response(*first) if number == 1 else response(said("Done."))) as server:
        client = ResponsesClient("gpt-5-pro", api_base=server.api_base, api_key="k")
        schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
        sampling = Sampling(max_tokens=99, reasoning_effort="low", extra_body={"response_format": schema})
        (answer,) = await client.generate(messages, draws=[0], sampling=sampling, tools=[ADD])
        assert isinstance(answer, Completion)
        again = [*messages, answer.message, Message(role="tool", content="2", tool_call_id="c1")]
        await client.generate(again, draws=[0], sampling=sampling, tools=[ADD])
        await client.close()
    for body in server.requests:
        REQUEST.validate_python(json.loads(json.dumps(body)), strict=False)


@pytest.mark.parametrize("reply", REPLIES)
def test_the_endpoint_of_the_tests_answers_as_the_package_reads(reply: object) -> None:
    fields = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    details = {"cached_tokens": 0, "cache_write_tokens": 0}
    body = {**fields, **reply.body}  # type: ignore[attr-defined]
    used = {"output_tokens_details": {"reasoning_tokens": 0}, **body["usage"]}
    used["input_tokens_details"] = {**details, **used.get("input_tokens_details", {})}
    Response.model_validate({**body, "usage": used}, strict=True)


def test_models_that_litellm_asks_by_responses_are_asked_so_by_us() -> None:
    table = json.loads((files("litellm") / "model_prices_and_context_window_backup.json").read_text(encoding="utf-8"))
    wrong = []
    for name, entry in table.items():
        provider, api = entry.get("litellm_provider"), entry.get("mode")
        if provider not in {"openai", "xai", "azure"} or api not in {"chat", "responses"} or REGION.search(name):
            continue
        only = entry.get("supported_endpoints") == ["/v1/responses"]
        ours = api_of(GenerationConfig(model_name=f"{provider}/{name.rpartition('/')[2]}"))
        if ours != ("responses" if only else api):
            wrong.append((name, ours))
    assert sorted(wrong) == []


async def test_a_reply_that_the_package_made_is_read() -> None:
    made = Response.model_validate({
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5-pro", "status": "completed",
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "output": [reasoning("Hm."), said("yes")],
        "usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10,
                  "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 1},
                  "output_tokens_details": {"reasoning_tokens": 1}},
    })  # fmt: skip
    reply = response()
    async with loopback(scripted(type(reply)(200, made.model_dump(mode="json")))) as server:
        client = ResponsesClient("gpt-5-pro", api_base=server.api_base, api_key="k")
        (answer,) = await client.generate(QUESTION, draws=[0], sampling=Sampling())
        await client.close()
    assert isinstance(answer, Completion) and answer.usage is not None
    assert (answer.text, answer.message.reasoning_content, answer.usage.prompt_tokens) == ("yes", "Hm.", 7)
