# SPDX-License-Identifier: Apache-2.0
"""The mock model of these configs. It gets one puzzle and one program wrong, and one puzzle without tags."""

import json
import re

from reward_kit import Message

PUZZLES = {"rolls": 24, "rope": 5, "ticket": 54, "birds": 18, "half": 125}
PROGRAMS = {
    "the larger": "print(max(int(part) for part in input().split()))",
    "vowels": "print(sum(letter in 'aeio' for letter in input()))",  # u is missing
}
RIVERS = {"Egypt": "Nile", "Brazil": "Amazon"}
LAMP = re.compile(r"lamp in the (?P<room>\w+) (?P<state>on|off)")


def answer(messages, draw):
    """Answer the last message; of several answers to a puzzle every second is wrong."""
    asked = messages[-1].text
    if lamp := LAMP.search(asked):
        return lamp_call(lamp["room"], lamp["state"] == "on")
    for words, program in PROGRAMS.items():
        if words in asked:
            return f"Here it is:\n```python\n{program}\n```"
    for country, river in RIVERS.items():
        if country in asked:
            return json.dumps({"river": river})
    (number,) = [number for word, number in PUZZLES.items() if word in asked]
    number += 10 * (draw % 2)
    if "half" in asked:
        return f"The answer is {number}."
    return f"<think>\nThat is easy.\n</think>\n<answer>\n{number}\n</answer>"


def lamp_call(room, on):
    """A call of the tool, without a text."""
    function = {"name": "set_lamp", "arguments": json.dumps({"on": on, "room": room})}
    tool_calls = [{"type": "function", "id": f"lamp-{room}", "function": function}]
    return Message.model_validate({"role": "assistant", "content": None, "tool_calls": tool_calls})
