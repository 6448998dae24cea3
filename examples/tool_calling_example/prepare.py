# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl` and `answers.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write them elsewhere.

24 requests to an assistant with four tools: one call, several calls at once, and no call at all. They stand for the
Berkeley Function-Calling Leaderboard (`gorilla-llm/Berkeley-Function-Calling-Leaderboard`), whose files are read as
they are, and for `Salesforce/xlam-function-calling-60k`.
"""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def tool(name: str, about: str, required: list[str], **parameters: dict[str, Any]) -> dict[str, Any]:
    """A tool as OpenAI's API describes one."""
    schema = {"type": "object", "properties": parameters, "required": required}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}


TOOLS = [
    tool("weather", "The weather of a day in a city.", ["city"],
         city={"type": "string"}, days_ahead={"type": "integer", "default": 0}),
    tool("convert", "Convert an amount of money.", ["amount", "source", "target"],
         amount={"type": "number"}, source={"type": "string"}, target={"type": "string"}),
    tool("remind", "Set a reminder.", ["text", "minutes"], text={"type": "string"}, minutes={"type": "integer"}),
    tool("search", "Search the user's notes.", ["words"], words={"type": "array", "items": {"type": "string"}}),
]  # fmt: skip
CITIES = ["Oslo", "Rome", "Lima", "Cairo", "Quito", "Hanoi"]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A call that is expected."""
    return {"name": name, "arguments": arguments}


def requests() -> list[tuple[str, str, list[dict[str, Any]]]]:
    """The kind of each request, what is asked, and the calls that are right."""
    found: list[tuple[str, str, list[dict[str, Any]]]] = []
    for place, city in enumerate(CITIES):
        other = CITIES[place - 1]
        ahead, amount = place + 1, 20.5 + place
        pair = [call("weather", city=city), call("weather", city=other)]
        found += [
            (
                "one",
                f"How is the weather in {city} {ahead} days ahead?",
                [call("weather", city=city, days_ahead=ahead)],
            ),
            ("several", f"Compare today's weather in {city} and {other}.", pair),
            ("one", f"What are {amount} EUR in USD?", [call("convert", amount=amount, source="EUR", target="USD")]),
            ("none", f"Thank you for the tip about {city}!", []),
        ]
    return found


def rows() -> list[dict[str, Any]]:
    """The rows of the dataset."""
    return [
        {"id": f"{kind}-{number:02}", "user_query": text, "tools": TOOLS, "ground_truth": calls, "kind": kind}
        for number, (kind, text, calls) in enumerate(requests())
    ]


def answered_rows(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A request with two answers: all of the right calls, and one call too few or too many."""
    asked = {"role": "user", "content": row["user_query"]}
    rest = {name: value for name, value in row.items() if name != "user_query"}
    right: list[dict[str, Any]] = row["ground_truth"]
    return [{**rest, "messages": [asked, turn(made)]} for made in (right, right[:-1] or [call("remind", minutes=5)])]


def turn(calls: list[dict[str, Any]]) -> dict[str, Any]:
    """An assistant's turn that makes these calls."""
    made = [
        {"id": f"call_{number}", "type": "function",
         "function": {"name": one["name"], "arguments": json.dumps(one["arguments"])}}
        for number, one in enumerate(calls)
    ]  # fmt: skip
    return {"role": "assistant", "content": "", "tool_calls": made} if made else {"role": "assistant", "content": "OK."}


def main(folder: Path) -> None:
    """Write both files."""
    stored = [answered for row in rows()[:8] for answered in answered_rows(row)]
    for name, lines in (("dataset.jsonl", rows()), ("answers.jsonl", stored)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{len(lines)} rows written to {name}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
