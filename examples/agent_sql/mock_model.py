# SPDX-License-Identifier: Apache-2.0
"""A scripted agent in the place of a model, so that the example runs anywhere.

It knows the right statements. Its second attempt at each sample is careless: it empties the table of purchases first,
which only its own copy of the database suffers from.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from reward_kit import Message
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall

ROWS = [json.loads(line) for line in (Path(__file__).parent / "dataset.jsonl").read_text(encoding="utf-8").splitlines()]
CHANGES = {
    "cancel-purchase": [
        "UPDATE purchase SET status = 'cancelled' WHERE id = 7",
        "UPDATE product SET stock = stock + 2 WHERE id = 2",
    ],
    "mei-moves": ["UPDATE customer SET city = 'Porto' WHERE name = 'Mei'"],
}


def answer(messages: Sequence[Message], draw: int) -> Message:
    """The next statement of the script, or the answer once there is none."""
    asked = next(message.text for message in messages if message.role == "user")
    row = next(row for row in ROWS if row["user_query"] == asked)
    script = ["DELETE FROM purchase"] if draw % 2 else []
    script += CHANGES.get(row["id"]) or [row["answer_sql"]]
    done = sum(message.role == "assistant" for message in messages)
    if done < len(script):
        return _call(script[done], done)
    seen = json.loads(messages[-1].text)
    rows = seen if isinstance(seen, list) else [{"": "done"}]
    value = next(iter(rows[0].values())) if rows else "nothing"
    return Message(role="assistant", content=f"Answer: {value}")


def _call(query: str, number: int) -> Message:
    function = FunctionCall(name="execute_sql", arguments=json.dumps({"query": query}))
    call = ChatCompletionMessageToolCall(id=f"call_{number}", function=function)
    return Message(role="assistant", content="", tool_calls=[call])
