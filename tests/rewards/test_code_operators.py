# SPDX-License-Identifier: Apache-2.0
"""Operators over every kind of test: what they make of a wrong program is 0.0, what they make of a right one 1.0.

`python -m tests.rewards.test_code_operators` prints the table of docs/code-rewards.md; with records, over HumanEval's.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reward_kit.config_models import SandboxConfig
from reward_kit.errors import SandboxError
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.deepcoder_reward import deepcoder_code_reward
from reward_kit.rewards.sql import sql_reward
from reward_kit.sandbox.from_settings import Sandboxes
from reward_kit.sandbox.namespaces.backend import NamespacesBackend
from tests.execution.shell_support import require_namespaces
from tests.rewards import code_operators as operators
from tests.rewards.code_operators import Operator, made_wrong
from tests.rewards.code_parts import require_zygote

RECORDS = Path(os.environ.get("REWARD_KIT_RECORDS", Path(__file__).parents[3] / "shared" / "data"))


class Task(NamedTuple):
    """A function, and cases that it is tested by."""

    function: str
    source: str
    cases: list[tuple[tuple[Any, ...], Any]]

    def kinds(self) -> dict[str, dict[str, Any]]:
        """The parameters of the reward, for each kind of test."""
        calls = [(f"{self.function}(*{given!r})", expected) for given, expected in self.cases]
        asserts = [
            f"assert {self.function}({', '.join(map(repr, given))}) == {expected!r}" for given, expected in self.cases
        ]
        body = "".join(
            f"    assert candidate({', '.join(map(repr, given))}) == {expected!r}\n" for given, expected in self.cases
        )
        methods = "".join(
            f"    def test_{number}(self): self.assertEqual({call}, {expected!r})\n"
            for number, (call, expected) in enumerate(calls)
        )
        values = [
            {"input": "\n".join(map(json.dumps, given)), "expected_output": json.dumps(expected)}
            for given, expected in self.cases
        ]
        loop = (
            f"    for given, expected in {self.cases!r}:\n        got = candidate(*given)\n"
            "        assert got == expected, got\n"
        )
        return {
            "values": {"ground_truth": values, "target_function": self.function},
            "asserts": {"ground_truth": asserts},
            "check": {"ground_truth": f"def check(candidate):\n{body}", "entry_point": self.function},
            "loop": {"ground_truth": f"def check(candidate):\n{loop}", "entry_point": self.function},
            "unittest": {
                "ground_truth": f"import unittest\nfrom solution import {self.function}\nclass "
                f"Tests(unittest.TestCase):\n{methods}"
            },
            "pytest": {
                "ground_truth": f"import pytest\nfrom solution import {self.function}\n"
                f"@pytest.mark.parametrize(('given', 'expected'), {self.cases!r})\n"
                f"def test_it(given, expected): assert {self.function}(*given) == expected\n"
            },
        }


TASKS = [
    Task(
        "odd_ones",
        "def odd_ones(xs):\n    return [x for x in xs if x % 2]",
        [(([1, 2, 3],), [1, 3]), (([],), []), (([4],), []), (([5, 5],), [5, 5])],
    ),
    Task(
        "is_even_sum",
        "def is_even_sum(a, b):\n    return (a + b) % 2 == 0",
        [((1, 1), True), ((1, 2), False), ((0, 0), True), ((7, 4), False)],
    ),
    Task(
        "joined", "def joined(words, mark):\n    return mark.join(words)", [((["a", "b"], "-"), "a-b"), (([], "x"), "")]
    ),
]


def judged(code: str, given: dict[str, Any], language: str = "python", timeout: float = 3) -> EvaluateResult:
    message = Message(role="assistant", content=f"```{language}\n{code}\n```")
    return deepcoder_code_reward(messages=[message], language=language, timeout=timeout, max_memory_mb=256, **given)


def named(all_of_them: list[Operator]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("operator", all_of_them, ids=lambda each: f"{each.kind}: {each.name}")


def scored(result: EvaluateResult) -> float | None:
    if "the tests need 'pytest'" in (result.reason or "") or "No module named 'pytest'" in (result.reason or ""):
        pytest.skip(str(result.reason))
    return result.score if result.is_score_valid else None


def kinds_for(operator: Operator, task: Task) -> dict[str, dict[str, Any]]:
    """All kinds of tests; of what takes all its time, those that it is told in different ways of."""
    kinds = task.kinds()
    return {name: kinds[name] for name in ("values", "unittest")} if operator.slow else kinds


def chosen(operator: Operator, every: list[Operator]) -> Task:
    return TASKS[every.index(operator) % len(TASKS)]


@named(operators.ATTACKS)
def test_a_wrong_function_neither_passes_nor_escapes(operator: Operator) -> None:
    require_zygote()
    task = chosen(operator, operators.ATTACKS)
    code = operator.rewrite(made_wrong(task.source, task.function), task.function)
    for kind, given in kinds_for(operator, task).items():
        result = judged(code, given, timeout=1 if operator.slow else 3)
        assert scored(result) == 0.0, (kind, result.reason)


@named(operators.HARMLESS)
def test_a_right_function_passes_however_it_is_written(operator: Operator) -> None:
    require_zygote()
    task = chosen(operator, operators.HARMLESS)
    for kind, given in task.kinds().items():
        result = judged(operator.rewrite(task.source, task.function), given, timeout=10)
        assert scored(result) == 1.0, (kind, result.reason)


# ── programs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

CASES = [("1 2", "3"), ("-4 4", "0"), ("10 20", "30")]
BY_INPUT = {"ground_truth": [{"input": f"{given}\n", "expected_output": f"{expected}\n"} for given, expected in CASES]}
RIGHT = {
    "python": "a, b = map(int, input().split())\nprint(a + b)",
    "javascript": "const [a, b] = require('fs').readFileSync(0, 'utf8').trim().split(' ').map(Number);\n"
    "console.log(a + b);",
    "c": "#include <stdio.h>\n"
    'int main(void) { int a, b; if (scanf("%d %d", &a, &b)) printf("%d\\n", a + b); return 0; }',
    "cpp": "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b << std::endl; }",
}
WRONG = {language: code.replace("a + b", "a + b + 1") for language, code in RIGHT.items()}
TOOLS = {"python": sys.executable, "javascript": "node", "c": "gcc", "cpp": "g++"}
PROGRAMS = {
    "python": (operators.PROGRAM_ATTACKS, operators.HARMLESS_PROGRAMS),
    "javascript": (operators.JAVASCRIPT_ATTACKS, operators.HARMLESS_JAVASCRIPT),
    "c": (operators.C_ATTACKS, operators.HARMLESS_C),
    "cpp": (operators.C_ATTACKS, operators.HARMLESS_C),
}


ALIKE = {"Python programs": ["python"], "JavaScript": ["javascript"], "C and C++": ["c", "cpp"]}
"""Languages that have the same operators."""


def programs(harmless: bool) -> pytest.MarkDecorator:
    each = [(language, operator) for language, both in PROGRAMS.items() for operator in both[harmless]]
    return pytest.mark.parametrize(
        ("language", "operator"), each, ids=[f"{language}: {operator.name}" for language, operator in each]
    )


def require(language: str) -> None:
    if language == "python":
        require_zygote()
        return
    require_namespaces()
    if shutil.which(TOOLS[language]) is None:
        pytest.skip(f"{TOOLS[language]} is not installed")


@programs(harmless=False)
def test_a_wrong_program_neither_passes_nor_escapes(language: str, operator: Operator) -> None:
    require(language)
    result = judged(operator.rewrite(WRONG[language], ""), BY_INPUT, language, timeout=1 if operator.slow else 3)
    assert scored(result) == 0.0, result.reason


@programs(harmless=True)
def test_a_right_program_passes_however_it_is_written(language: str, operator: Operator) -> None:
    require(language)
    result = judged(operator.rewrite(RIGHT[language], ""), BY_INPUT, language, timeout=10)
    assert scored(result) == 1.0, result.reason


# ── SQL ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

TABLES = """
CREATE TABLE people (id INTEGER, pay INTEGER);
INSERT INTO people VALUES (1, 10), (2, 20), (3, 10), (4, 5);
"""
QUERIES = {
    "rows": "SELECT id, pay FROM people WHERE pay > 5 AND id < 4",
    "no rows": "SELECT id, pay FROM people WHERE pay > 50 AND id < 4",
    "ties": "SELECT id, pay FROM people WHERE pay < 50 ORDER BY pay",
}


@pytest.mark.parametrize("name", QUERIES)
async def test_queries(tmp_path: Path, name: str) -> None:
    require_namespaces()
    path = tmp_path / "people.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(TABLES)
    connection.close()
    backend = NamespacesBackend()
    right = QUERIES[name]
    wrong = {
        operator.name: operator.rewrite(f"{right.split(' ORDER')[0]} AND id <> 2", "")
        for operator in operators.SQL_ATTACKS
    }
    harmless = {operator.name: operator.rewrite(right, "") for operator in operators.HARMLESS_SQL}
    try:
        for expected, queries in ((0.0, wrong), (1.0, harmless)):
            for operator, query in queries.items():
                result: Any = await sql_reward(
                    messages=[Message(role="assistant", content=query)],
                    ground_truth=right,
                    database=str(path),
                    sandbox=Sandboxes(backend, SandboxConfig(timeout=30)),
                    seconds=1.0 if operator == "never ends" else 30.0,
                )
                assert (result.score, result.is_score_valid) == (expected, True), (operator, result.reason)
    finally:
        await backend.close()


# ── what the docs say ────────────────────────────────────────────────────────────────────────────────────────────────


def table() -> dict[tuple[str, str], tuple[str, int]]:
    """The operators of each class of programs, and how many verdicts they come to."""
    task = TASKS[0]
    kinds: list[tuple[str, list[Operator], list[int]]] = [
        ("Python functions, wrong", operators.ATTACKS, [len(kinds_for(each, task)) for each in operators.ATTACKS]),
        ("Python functions, right", operators.HARMLESS, [len(task.kinds())] * len(operators.HARMLESS)),
        ("SQL, wrong", operators.SQL_ATTACKS, [len(QUERIES)] * len(operators.SQL_ATTACKS)),
        ("SQL, right", operators.HARMLESS_SQL, [len(QUERIES)] * len(operators.HARMLESS_SQL)),
    ]
    for name, languages in ALIKE.items():
        for side, every in zip(("wrong", "right"), PROGRAMS[languages[0]], strict=True):
            kinds.append((f"{name}, {side}", every, [len(languages)] * len(every)))
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for programs_of, every, verdicts in kinds:
        for operator, more in zip(every, verdicts, strict=True):
            names, count = found.get((programs_of, operator.kind), ("", 0))
            found[programs_of, operator.kind] = (f"{names}, {operator.name}".lstrip(", "), count + more)
    return found


def test_the_docs_show_what_is_tried() -> None:
    page = (Path(__file__).parents[2] / "docs" / "code-rewards.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| (\d+) \| 0 \|", page, re.MULTILINE)
    assert {(programs_of, kind): (names, int(count)) for programs_of, kind, names, count in rows} == table()


# ── recorded tasks ───────────────────────────────────────────────────────────────────────────────────────────────────


def recorded(count: int) -> list[tuple[str, str, dict[str, Any]]]:
    """The source, the function and the tests of HumanEval's tasks, as many as that, drawn with a seed."""
    file = RECORDS / "humaneval_dev.jsonl"
    if not file.is_file():
        pytest.skip("the records are not here")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        (
            row["prompt"] + row["canonical_solution"],
            row["entry_point"],
            {"ground_truth": row["test"], "entry_point": row["entry_point"]},
        )
        for row in random.Random(7).sample(rows, min(count, len(rows)))
    ]


def tried(tasks: list[tuple[str, str, dict[str, Any]]]) -> Iterator[tuple[Operator, float | None, float]]:
    """Each operator over each task: what it got, and what it should have got."""
    for source, function, given in tasks:
        for expected, every in ((0.0, operators.ATTACKS), (1.0, operators.HARMLESS)):
            for operator in every:
                if operator.slow:
                    continue
                start = source if expected else made_wrong(source, function)
                try:
                    result = judged(operator.rewrite(start, function), given, timeout=10)
                except SandboxError:
                    yield operator, None, expected
                    continue
                yield operator, result.score if result.is_score_valid else None, expected


def test_operators_over_recorded_tasks() -> None:
    require_zygote()
    wrong = [(operator.name, got) for operator, got, expected in tried(recorded(1)) if got != expected]
    assert not wrong


def main() -> None:
    """Print the table."""
    found: Counter[tuple[str, str, bool]] = Counter()
    for operator, got, expected in tried(recorded(int(sys.argv[1]) if len(sys.argv) > 1 else 3)):
        found[("harmless" if expected else "attack", operator.kind, got == expected)] += 1
        if got != expected:
            print("!", operator.kind, operator.name, got)
    for side, kind in sorted({(side, kind) for side, kind, _ in found}):
        print(f"| {side} | {kind} | {found[side, kind, True]} | {found[side, kind, False]} |")


if __name__ == "__main__":
    main()
