# SPDX-License-Identifier: Apache-2.0
"""Tool calls that a model writes into its text, for models and servers that do not tell them apart."""

from __future__ import annotations

from collections.abc import Sequence

from reward_kit.agent.calls import UNREADABLE
from reward_kit.agent.tools import Tool
from reward_kit.answers.tool_calls.calls import CallError
from reward_kit.answers.tool_calls.formats import calls_in_text
from reward_kit.answers.tool_calls.tools import read_tools
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message
from reward_kit.utils import exact_json

__all__ = ["with_calls_in_text", "with_unread_call"]


def with_calls_in_text(message: Message, tools: Sequence[Tool]) -> Message:
    """The message with the calls that its text makes. Calls that cannot be read become one that says so."""
    try:
        found = calls_in_text(message.text, read_tools([tool.spec for tool in tools]))
    except CallError as error:
        calls = [_call(UNREADABLE, str(error))]
    else:
        calls = [_call(call.name, exact_json.dumps(dict(call.arguments)).decode()) for call in found]
    return message.model_copy(update={"tool_calls": calls}) if calls else message


def with_unread_call(message: Message) -> Message:
    """The message with a call that stands for the one which the endpoint could not read: the model is told so."""
    return message.model_copy(update={"tool_calls": [_call(UNREADABLE, "it is in none of the forms of a call")]})


def _call(name: str, arguments: str) -> ChatCompletionMessageToolCall:
    return ChatCompletionMessageToolCall(function=FunctionCall(name=name, arguments=arguments))
