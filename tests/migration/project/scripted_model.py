# SPDX-License-Identifier: Apache-2.0
"""What the mock model says in the tests: mostly right, and wrong where a test wants to see it."""

import json
import re

from reward_kit import Message

NUMBERS = {"pens": 36, "seats": 320, "coins": 37, "minutes": 180}
PROGRAMS = {"double": "print(2 * int(input()))", "backwards": "print(input())"}
CAPITALS = {"France": "Paris", "Norway": "Bergen"}


def answer(messages, draw):
    """An answer to one of the questions in data/; every other draw of a sum is off by one."""
    question = messages[-1].text
    if (city := re.search(r"weather in (\w+)", question)) is not None:
        call = {"name": "get_weather", "arguments": json.dumps({"city": city[1]})}
        calls = [{"id": "c", "type": "function", "function": call}]
        return Message.model_validate({"role": "assistant", "content": None, "tool_calls": calls})
    for word, program in PROGRAMS.items():
        if word in question:
            return f"```python\n{program}\n```"
    for country, city in CAPITALS.items():
        if country in question:
            return json.dumps({"city": city})
    number = next(number for word, number in NUMBERS.items() if word in question) + draw % 2
    return f"<think>\nI count.\n</think>\n<answer>\n{number}\n</answer>"
