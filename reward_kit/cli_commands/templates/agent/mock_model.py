"""Stands in for a model: at its first attempt it moves what it should, at its second it goes a longer way."""

import json
from collections.abc import Sequence

from reward_kit import Message
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall

Step = tuple[str, dict[str, str]]


def move(thing: str, source: str, target: str) -> Step:
    """A call of the tool `move`."""
    return "move", {"thing": thing, "source": source, "target": target}


SCRIPTS: dict[str, list[list[Step]]] = {
    "pen": [
        [("look", {"box": "red"}), move("pen", "red", "blue")],
        [move("pen", "red", "green"), move("pen", "green", "blue")],
    ],
    "empty": [
        [move("cup", "red", "blue"), move("key", "red", "blue")],
        [move("cup", "red", "blue"), move("key", "blue", "red")],
    ],
}


def answer(messages: Sequence[Message], draw: int) -> Message:
    """The next call of the script, or a last word once there is none."""
    asked = next(message.text for message in messages if message.role == "user")
    script = next(scripts for word, scripts in SCRIPTS.items() if word in asked)[draw % 2]
    done = sum(message.role == "assistant" for message in messages)
    if done == len(script):
        return Message(role="assistant", content="Done.")
    name, arguments = script[done]
    function = FunctionCall(name=name, arguments=json.dumps(arguments))
    return Message(role="assistant", tool_calls=[ChatCompletionMessageToolCall(id=f"call_{done}", function=function)])
