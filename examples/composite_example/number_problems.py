# SPDX-License-Identifier: Apache-2.0
"""Questions with a number as their answer, programs that compute it, and answers of several kinds."""

from typing import Any, NamedTuple

FORM = (
    "Give the number in \\boxed{{}}, and a Python function {function}(n) that computes it for any n in one code block."
)


class Family(NamedTuple):
    """A question about n, and the function that answers it."""

    name: str
    function: str
    question: str
    right: str
    wrong: str
    """A program with a typical mistake."""
    asked: tuple[int, ...]
    tested: tuple[int, ...]


FAMILIES = [
    Family(
        "divisors", "divisors", "How many divisors does n = {n} have, 1 and n included?",
        "def divisors(n):\n    return sum(n % d == 0 for d in range(1, n + 1))",
        "def divisors(n):\n    return sum(n % d == 0 for d in range(2, n))",
        (12, 36, 60, 97, 120), (1, 2, 24, 100, 210),
    ),
    Family(
        "primes", "primes_below", "How many prime numbers are below n = {n}?",
        "def primes_below(n):\n    return sum(all(p % d for d in range(2, int(p ** 0.5) + 1)) for p in range(2, n))",
        "def primes_below(n):\n    return sum(all(p % d for d in range(2, int(p ** 0.5) + 1)) for p in range(1, n))",
        (20, 30, 50, 70, 100), (2, 3, 10, 41, 150),
    ),
    Family(
        "digits_of_power", "digit_sum", "What is the sum of the decimal digits of 2 to the power of n = {n}?",
        "def digit_sum(n):\n    return sum(map(int, str(2 ** n)))",
        "def digit_sum(n):\n    return sum(map(int, str(n ** 2)))",
        (8, 10, 12, 15, 20), (0, 1, 5, 25, 64),
    ),
    Family(
        "collatz", "steps",
        "Start with n = {n}. Halve an even number; triple an odd one and add 1. After how many steps is 1 reached?",
        "def steps(n):\n    count = 0\n    while n != 1:\n        n = n // 2 if n % 2 == 0 else 3 * n + 1\n"
        "        count += 1\n    return count",
        "def steps(n):\n    count = 1\n    while n != 1:\n        n = n // 2 if n % 2 == 0 else 3 * n + 1\n"
        "        count += 1\n    return count",
        (6, 7, 9, 11, 18), (1, 2, 13, 27, 97),
    ),
    Family(
        "squares", "sum_of_squares", "What is the sum of the squares of the odd numbers from 1 to n = {n}?",
        "def sum_of_squares(n):\n    return sum(k * k for k in range(1, n + 1, 2))",
        "def sum_of_squares(n):\n    return sum(k * k for k in range(1, n, 2))",
        (5, 9, 10, 15, 21), (1, 2, 7, 30, 51),
    ),
    Family(
        "coprime", "coprime", "How many numbers from 1 to n = {n} have no divisor in common with n but 1?",
        "from math import gcd\n\ndef coprime(n):\n    return sum(gcd(k, n) == 1 for k in range(1, n + 1))",
        "def coprime(n):\n    return sum(n % k != 0 for k in range(1, n + 1))",
        (12, 15, 20, 36, 49), (1, 2, 9, 30, 101),
    ),
]  # fmt: skip


class Problem(NamedTuple):
    """One question, its right answer, and programs for it."""

    id: str
    text: str
    result: int
    function: str
    right: str
    wrong: str
    tests: list[dict[str, str]]


def problems() -> list[Problem]:
    """The first question of each family, then the second, and so on."""
    return [_problem(family, family.asked[place]) for place in range(5) for family in FAMILIES]


def _problem(family: Family, n: int) -> Problem:
    names: dict[str, Any] = {}
    exec(family.right, names)
    compute = names[family.function]
    return Problem(
        id=f"{family.name}-{n}",
        text=f"{family.question.format(n=n)} {FORM.format(function=family.function)}",
        result=compute(n),
        function=family.function,
        right=family.right,
        wrong=family.wrong,
        tests=[{"input": str(other), "expected_output": str(compute(other))} for other in family.tested],
    )


def said(result: int, code: str) -> str:
    """An answer with both parts, as a model writes it."""
    return f"The number is \\boxed{{{result}}}.\n\n```python\n{code}\n```"


def answers(problem: Problem) -> dict[str, str]:
    """Answers of five kinds, by what is wrong with them."""
    recited = f"def {problem.function}(n):\n    return {problem.result}"
    return {
        "nothing": said(problem.result, problem.right),
        "the number": said(problem.result + 1, problem.right),
        "the program": said(problem.result, problem.wrong),
        "a program that recites": said(problem.result, recited),
        "no program": f"The number is \\boxed{{{problem.result}}}.",
    }
