# SPDX-License-Identifier: Apache-2.0
"""The stand-in for a model: right solutions in even draws, typical mistakes in odd ones."""

from collections.abc import Sequence

from reward_kit.models import Message

SOLUTIONS = {
    "greatest common divisor": ("from math import gcd\nprint(gcd(*map(int, input().split())))",
                                "a, b = map(int, input().split())\nprint(min(a, b))"),
    "rising run": ("input()\nxs = list(map(int, input().split()))\nbest = run = 1\nfor a, b in zip(xs, xs[1:]):\n"
                   "    run = run + 1 if b > a else 1\n    best = max(best, run)\nprint(best)",
                   "input()\nxs = list(map(int, input().split()))\nprint(len(set(xs)))"),
    "reverse_words": ('def reverse_words(text):\n    return " ".join(reversed(text.split()))',
                      "def reverse_words(text):\n    return text[::-1]"),
    "merged": ("def merged(xs, ys):\n    return sorted(xs + ys)", "def merged(xs, ys):\n    return xs + ys"),
    "letters the same": ("text = input()\nprint(min(text.count('a'), text.count('b')))",
                         "text = input()\nprint(text.count('b'))"),
    "Pascal": ("from math import comb\nn = int(input())\nprint(*(comb(n, k) for k in range(n + 1)))",
               "n = int(input())\nprint(*(2 ** k for k in range(n + 1)))"),
}  # fmt: skip


def answer(messages: Sequence[Message], draw: int) -> str:
    """The solution of this draw, after some thinking."""
    for word, solutions in SOLUTIONS.items():
        if word in messages[-1].text:
            return f"<think>\nLet me see.\n</think>\n\n```python\n{solutions[draw % 2]}\n```"
    return "I do not know."
