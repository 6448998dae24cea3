# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl` and `answers.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write them elsewhere.

Six problems of mathematics, five programs and four requests for tool calls, in the shape of the set they stand for:
`nvidia/Nemotron-Post-Training-Dataset-v1` (25 million rows). There, too, `category` names a row's split, `metadata` is
a JSON text, and the conversation ends with the answer, except in the split `code`.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

HERE = Path(__file__).resolve().parent


class Query(NamedTuple):
    """A row to be, the ground truth that its verifier needs, and an answer of each kind."""

    category: str
    prompt: list[dict[str, Any]]
    metadata: dict[str, Any]
    ground_truth: Any
    right: dict[str, Any]
    wrong: dict[str, Any]
    answer_in_row: bool = True


def said(text: str) -> dict[str, Any]:
    """An assistant's turn."""
    return {"role": "assistant", "content": text}


# ── mathematics ──────────────────────────────────────────────────────────────────────────────────────────────────────

PROBLEMS = [
    ("What is 7 + 5?", "12", "13"),
    ("What is 9 times 6?", "54", "56"),
    ("A pen costs 3 coins. How many coins do 4 pens cost?", "12", "7"),
    ("What is one half plus one quarter, as a fraction?", r"\frac{3}{4}", r"\frac{2}{6}"),
    ("What is the square root of 81?", "9", "8"),
    ("How many minutes are there in 2 hours?", "120", "200"),
]


def problem(number: int, question: str, right: str, wrong: str) -> Query:
    """A problem. Every second row states its answer in the metadata; the others only have it in the conversation."""
    prompt = [{"role": "user", "content": f"{question} Put the final answer into \\boxed{{}}."}]
    metadata = {"problem_source": "handwritten"} | ({"expected_answer": right} if number % 2 == 0 else {})
    good, bad = (said(f"<think>Work it out.</think>The answer is \\boxed{{{result}}}.") for result in (right, wrong))
    return Query("math", prompt, metadata, right, good, bad)


# ── programs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PROGRAMS = [
    (
        "Read two integers from standard input, one a line, and print their sum.",
        [("2\n3\n", "5"), ("-4\n4\n", "0")],
        "print(int(input()) + int(input()))",
    ),
    (
        "Read a line from standard input and print it reversed.",
        [("abc\n", "cba"), ("level\n", "level")],
        "print(input()[::-1])",
    ),
    (
        "Read an integer n from standard input and print the sum of the integers from 1 to n.",
        [("4\n", "10"), ("1\n", "1"), ("100\n", "5050")],
        "print(sum(range(1, int(input()) + 1)))",
    ),
    (
        "Read a line of words from standard input and print how many words it has.",
        [("one two three\n", "3"), ("alone\n", "1")],
        "print(len(input().split()))",
    ),
    (
        "Read an integer from standard input and print 'even' or 'odd'.",
        [("7\n", "odd"), ("0\n", "even")],
        "print('odd' if int(input()) % 2 else 'even')",
    ),
]


def program(question: str, tests: list[tuple[str, str]], right: str) -> Query:
    """A program to write. The wrong one prints what the first test expects, whatever it reads."""
    ask = f"Write a Python program. {question} Answer with one fenced code block."
    metadata = {"test_cases": [{"input": given, "output": wanted} for given, wanted in tests], "difficulty": "easy"}
    truth = [{"input": given, "expected_output": wanted} for given, wanted in tests]
    good, bad = (said(f"```python\n{code}\n```") for code in (right, f"print({tests[0][1]!r})"))
    return Query("code", [{"role": "user", "content": ask}], metadata, truth, good, bad, answer_in_row=False)


# ── tool calls ───────────────────────────────────────────────────────────────────────────────────────────────────────


def tool(name: str, about: str, **parameters: str) -> dict[str, Any]:
    """A tool as OpenAI's API describes one; every parameter is required."""
    properties = {parameter: {"type": kind} for parameter, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}


TOOLS = [
    tool("get_weather", "The weather of a city now.", city="string"),
    tool("convert_currency", "Convert an amount of money.", amount="number", source="string", target="string"),
    tool("set_alarm", "Set an alarm.", time="string"),
]
REQUESTS: list[tuple[str, list[tuple[str, dict[str, Any]]]]] = [
    ("What is the weather in Lisbon?", [("get_weather", {"city": "Lisbon"})]),
    ("Wake me up at 6:30 in the morning.", [("set_alarm", {"time": "06:30"})]),
    ("How much are 20 EUR in JPY?", [("convert_currency", {"amount": 20, "source": "EUR", "target": "JPY"})]),
    ("Compare the weather of Oslo and Rome.", [("get_weather", {"city": city}) for city in ("Oslo", "Rome")]),
]


def request(question: str, calls: list[tuple[str, dict[str, Any]]]) -> Query:
    """A request for tool calls. The wrong answer makes none."""
    prompt = [
        {"role": "system", "content": "Call the tools that the request needs, and nothing else."},
        {"role": "user", "content": question},
    ]
    made = [
        {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for place, (name, arguments) in enumerate(calls)
    ]
    good = {**said(""), "tool_calls": made}
    return Query("tool_calling", prompt, {"tools": TOOLS}, made, good, said("I cannot look that up."))


# ── the files ────────────────────────────────────────────────────────────────────────────────────────────────────────

QUERIES = [
    *(problem(number, *given) for number, given in enumerate(PROBLEMS)),
    *(program(*given) for given in PROGRAMS),
    *(request(*given) for given in REQUESTS),
]
UNSOLVED = 5
"""Of so many queries, the last has only wrong answers: there is none to keep."""


def name_of(query: Query) -> str:
    """The query's name: the same one for the same question."""
    return str(uuid5(NAMESPACE_URL, query.prompt[-1]["content"]))


def dataset_row(query: Query) -> dict[str, Any]:
    """A row in the shape of the public set."""
    return {
        "uuid": name_of(query),
        "license": "apache-2.0",
        "generator": "handwritten",
        "version": "1",
        "category": query.category,
        "reasoning": "off",
        "messages": [*query.prompt, *([query.right] if query.answer_in_row else [])],
        "metadata": json.dumps(query.metadata),
    }


def answered_rows(query: Query, solved: bool) -> list[dict[str, Any]]:
    """A query with three stored answers, of which one is right, or none."""
    row = {"id": name_of(query), "category": query.category, "ground_truth": query.ground_truth}
    row |= {"tools": query.metadata["tools"]} if "tools" in query.metadata else {}
    answers = [query.wrong, query.right if solved else query.wrong, query.wrong]
    return [{**row, "messages": [*query.prompt, answer]} for answer in answers]


def main(folder: Path) -> None:
    """Write both files."""
    numbered = enumerate(QUERIES, start=1)
    stored = [row for number, query in numbered for row in answered_rows(query, solved=number % UNSOLVED != 0)]
    for name, lines in (("dataset.jsonl", [dataset_row(query) for query in QUERIES]), ("answers.jsonl", stored)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{len(lines)} rows written to {name}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
