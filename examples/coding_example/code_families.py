# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - statements and solutions are texts
"""Families of small programming problems. Each family has a statement, a right solution and typical wrong ones.

`@` in a text stands for the numbers of a variant, `@0` for the first. Wrong solutions are mistakes that models make: a
bound that is off by one, a case that was forgotten, a rule that was read too quickly. `prepare.py --check` runs all of
them in the sandbox.
"""

from __future__ import annotations

import random
import string
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

Arguments = tuple[Any, ...]


class Family(NamedTuple):
    """Problems that differ in a few numbers."""

    name: str
    entry_point: str | None
    """The function to write; None: a program that reads standard input and prints."""
    statement: str
    right: str
    wrong: tuple[str, ...]
    variants: tuple[Arguments, ...]
    inputs: Callable[[random.Random, Arguments], list[Any]]
    """Arguments of the function, or texts for standard input."""


class Problem(NamedTuple):
    """One variant of a family."""

    id: str
    family: str
    entry_point: str | None
    statement: str
    right: str
    wrong: tuple[str, ...]
    inputs: list[Any]


def filled(text: str, variant: Arguments) -> str:
    """The text with the numbers of a variant in their places."""
    text = textwrap.dedent(text).strip()
    for place, value in enumerate(variant):
        text = text.replace(f"@{place}", str(value))
    return text


def problems() -> list[Problem]:
    """Every variant of every family, with the same inputs each time: first one problem of each family, then the next."""
    most = max(len(family.variants) for family in FAMILIES)
    return [
        _problem(family, family.variants[n]) for n in range(most) for family in FAMILIES if n < len(family.variants)
    ]


def _problem(family: Family, variant: Arguments) -> Problem:
    return Problem(
        id=f"{family.name}-{'-'.join(map(str, variant))}",
        family=family.name,
        entry_point=family.entry_point,
        statement=filled(family.statement, variant),
        right=filled(family.right, variant),
        wrong=tuple(filled(wrong, variant) for wrong in family.wrong),
        inputs=family.inputs(random.Random(f"{family.name} {variant}"), variant),
    )


# ── inputs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def numbers(dice: random.Random, count: int, low: int = -20, high: int = 20) -> list[int]:
    return [dice.randint(low, high) for _ in range(count)]


def lists(*fixed: list[int], low: int = -20, high: int = 20) -> Callable[[random.Random, Arguments], list[Any]]:
    """Lists of numbers: the given ones, then some that are drawn."""
    return lambda dice, _: [(given,) for given in fixed] + [(numbers(dice, size, low, high),) for size in (6, 9, 12)]


def singles(*fixed: int, high: int = 3000) -> Callable[[random.Random, Arguments], list[Any]]:
    """Single numbers: the given ones, then some that are drawn."""
    return lambda dice, _: [(given,) for given in fixed] + [(dice.randint(2, high),) for _ in range(3)]


def lines(*parts: Any) -> str:
    return "\n".join(map(str, parts)) + "\n"


def words(dice: random.Random, count: int, letters: str = "abcde", longest: int = 8) -> list[str]:
    return ["".join(dice.choices(letters, k=dice.randint(1, longest))) for _ in range(count)]


def bookings(dice: random.Random, variant: Arguments) -> list[Any]:
    def some() -> str:
        return lines(*(f"{dice.choice(['in', 'out'])} {dice.randint(1, 120)}" for _ in range(8)))

    return [lines(f"out {variant[0] + 50}", "in 10"), lines("in 5"), some(), some(), some()]


def grids(dice: random.Random, _: Arguments) -> list[Any]:
    def grid(height: int, width: int) -> str:
        rows = ["".join(dice.choices("#.", weights=(3, 2), k=width)) for _ in range(height)]
        return lines(f"{height} {width}", *rows)

    return [lines("1 1", "#"), lines("3 3", "###", "###", "###"), grid(4, 5), grid(5, 4), grid(6, 6)]


def songs(dice: random.Random, _: Arguments) -> list[Any]:
    def song() -> str:
        return f"{dice.randint(0, 59):02}:{dice.randint(0, 59):02}"

    return [lines("00:05"), *(lines(*(song() for _ in range(count))) for count in (2, 3, 5, 8))]


def matrices(dice: random.Random, _: Arguments) -> list[Any]:
    def matrix(height: int, width: int) -> str:
        rows = (" ".join(map(str, numbers(dice, width, -9, 9))) for _ in range(height))
        return lines(f"{height} {width}", *rows)

    return [matrix(1, 1), matrix(1, 3), matrix(2, 3), matrix(3, 2), matrix(3, 3)]


# ── functions ────────────────────────────────────────────────────────────────────────────────────────────────────────

FUNCTIONS = [
    Family(
        "multiples",
        "sum_multiples",
        "Write a function sum_multiples(n) that returns the sum of all positive integers below n that are divisible "
        "by @0 or by @1.",
        "def sum_multiples(n):\n    return sum(i for i in range(1, n) if i % @0 == 0 or i % @1 == 0)",
        (
            "def sum_multiples(n):\n    return sum(range(@0, n, @0)) + sum(range(@1, n, @1))",
            "def sum_multiples(n):\n    return sum(i for i in range(1, n + 1) if i % @0 == 0 or i % @1 == 0)",
        ),
        ((3, 5), (2, 7), (4, 6), (3, 7), (5, 6), (2, 3), (4, 9), (6, 10), (5, 8), (7, 9)),
        lambda dice, v: [(1,), (v[0] * v[1] + 1,), (v[0] * v[1] * 2,), (dice.randint(90, 300),), (1000,)],
    ),
    Family(
        "at_least",
        "count_at_least",
        "Write a function count_at_least(xs) that returns how many numbers of the list xs are at least @0.",
        "def count_at_least(xs):\n    return sum(1 for x in xs if x >= @0)",
        (
            "def count_at_least(xs):\n    return sum(1 for x in xs if x > @0)",
            "def count_at_least(xs):\n    return sum(x for x in xs if x >= @0)",
        ),
        tuple((k,) for k in (-5, 0, 2, 3, 4, 5, 7, 8, 10, 12)),
        lambda dice, v: [([],), ([v[0], v[0], v[0] - 1],), *((numbers(dice, size),) for size in (6, 9, 12))],
    ),
    Family(
        "rotate",
        "rotate",
        "Write a function rotate(xs) that returns the list xs rotated to the right by @0 places: the last element moves "
        "to the front, @0 times. The list may be empty or shorter than @0.",
        "def rotate(xs):\n    if not xs:\n        return []\n    k = @0 % len(xs)\n    return xs[len(xs) - k:] + xs[:len(xs) - k]",
        (
            "def rotate(xs):\n    if not xs:\n        return []\n    k = @0 % len(xs)\n    return xs[k:] + xs[:k]",
            "def rotate(xs):\n    k = @0 % len(xs)\n    return xs[-k:] + xs[:-k]",
        ),
        tuple((k,) for k in range(1, 11)),
        lists([], [1, 2, 3, 4, 5]),
    ),
    Family(
        "caesar",
        "shift",
        "Write a function shift(text) that moves each letter a-z and A-Z by @0 places in the alphabet, from the end back "
        "to the beginning, and keeps its case. All other characters stay as they are.",
        """
        def shift(text):
            out = []
            for c in text:
                if "a" <= c <= "z":
                    c = chr((ord(c) - 97 + @0) % 26 + 97)
                elif "A" <= c <= "Z":
                    c = chr((ord(c) - 65 + @0) % 26 + 65)
                out.append(c)
            return "".join(out)
        """,
        (
            'def shift(text):\n    return "".join(chr(ord(c) + @0) if c.isalpha() else c for c in text)',
            'def shift(text):\n    return "".join(chr((ord(c) - 97 + @0) % 26 + 97) if c.isalpha() else c for c in text)',
        ),
        tuple((k,) for k in (1, 2, 3, 5, 7, 11, 13, 17, 19, 25)),
        lambda dice, _: [
            ("Zebra, xyz!",),
            ("",),
            ("Hello World",),
            ("".join(dice.choices(string.ascii_letters, k=12)),),
        ],
    ),
    Family(
        "chunks",
        "chunks",
        "Write a function chunks(xs) that cuts the list xs into lists of @0 elements each, in order. The last one may be "
        "shorter.",
        "def chunks(xs):\n    return [xs[i:i + @0] for i in range(0, len(xs), @0)]",
        (
            "def chunks(xs):\n    return [xs[i:i + @0] for i in range(0, len(xs) - @0 + 1, @0)]",
            "def chunks(xs):\n    return [xs[i:i + @0] for i in range(len(xs))]",
        ),
        tuple((k,) for k in range(2, 12)),
        lambda dice, v: [([],), ([1],), (numbers(dice, 2 * v[0]),), (numbers(dice, 2 * v[0] + 1),)],
    ),
    Family(
        "digit_sum",
        "digit_sum",
        "Write a function digit_sum(n) that returns the sum of the digits of the non-negative integer n, written in base "
        "@0.",
        "def digit_sum(n):\n    total = 0\n    while n:\n        total += n % @0\n        n //= @0\n    return total",
        (
            "def digit_sum(n):\n    return sum(int(c) for c in str(n))",
            "def digit_sum(n):\n    total = 0\n    while n >= @0:\n        total += n % @0\n        n //= @0\n    return total",
        ),
        tuple((k,) for k in (2, 3, 4, 5, 6, 7, 8, 9, 11, 12)),
        singles(0, 1),
    ),
    Family(
        "window",
        "window_max",
        "Write a function window_max(xs) that returns the largest number of every @0 neighbouring numbers of xs, from left "
        "to right. If xs has fewer than @0 numbers, return an empty list.",
        "def window_max(xs):\n    return [max(xs[i:i + @0]) for i in range(len(xs) - @0 + 1)]",
        (
            "def window_max(xs):\n    return [max(xs[i:i + @0]) for i in range(len(xs) - @0)]",
            "def window_max(xs):\n    return [max(xs[i:i + @0]) for i in range(len(xs))]",
        ),
        tuple((k,) for k in range(2, 12)),
        lambda dice, v: [([],), (numbers(dice, v[0] - 1),), (numbers(dice, v[0]),), (numbers(dice, v[0] + 7),)],
    ),
    Family(
        "in_base",
        "in_base",
        "Write a function in_base(n) that returns the non-negative integer n as a text in base @0, with the digits 0-9 and "
        "then a, b, c and so on.",
        """
        def in_base(n):
            digits = "0123456789abcdefghijklmnopqrstuvwxyz"
            out = digits[n % @0]
            while n >= @0:
                n //= @0
                out = digits[n % @0] + out
            return out
        """,
        (
            """
            def in_base(n):
                digits = "0123456789abcdefghijklmnopqrstuvwxyz"
                out = ""
                while n:
                    out = digits[n % @0] + out
                    n //= @0
                return out
            """,
            """
            def in_base(n):
                digits = "0123456789abcdefghijklmnopqrstuvwxyz"
                out = digits[n % @0]
                while n >= @0:
                    n //= @0
                    out += digits[n % @0]
                return out
            """,
        ),
        tuple((k,) for k in (2, 3, 4, 5, 7, 8, 11, 12, 16, 20)),
        singles(0, 1),
    ),
    Family(
        "nth_smallest",
        "nth_smallest",
        "Write a function nth_smallest(xs) that returns the @0. smallest of the different numbers in xs, or None if there "
        "are fewer than @0 different ones.",
        "def nth_smallest(xs):\n    different = sorted(set(xs))\n    return different[@0 - 1] if len(different) >= @0 else None",
        (
            "def nth_smallest(xs):\n    return sorted(xs)[@0 - 1] if len(xs) >= @0 else None",
            "def nth_smallest(xs):\n    return sorted(set(xs))[@0 - 1]",
        ),
        tuple((k,) for k in range(2, 12)),
        lambda dice, v: [([],), ([5] * v[0],), ([*numbers(dice, 3 * v[0], 0, v[0] + 3), 0, 0],), (numbers(dice, 12),)],
    ),
    Family(
        "pairs",
        "pairs_with_sum",
        "Write a function pairs_with_sum(xs) that returns how many pairs of places i < j in xs have numbers whose sum is "
        "@0.",
        "def pairs_with_sum(xs):\n    return sum(xs[i] + xs[j] == @0 for i in range(len(xs)) for j in range(i + 1, len(xs)))",
        (
            "def pairs_with_sum(xs):\n    return sum(xs[i] + xs[j] == @0 for i in range(len(xs)) for j in range(i, len(xs)))",
            "def pairs_with_sum(xs):\n    return sum(1 for x in set(xs) if @0 - x in xs) // 2",
        ),
        tuple((k,) for k in (0, 2, 4, 6, 8, 10, 12, 14, 16, 18)),
        lambda dice, v: [([],), ([v[0] // 2],), ([v[0] // 2] * 3,), *((numbers(dice, n, 0, v[0]),) for n in (8, 12))],
    ),
    Family(
        "group_digits",
        "grouped",
        'Write a function grouped(text) that puts "@1" between groups of @0 characters, counted from the right, as people '
        "do with long numbers.",
        """
        def grouped(text):
            parts = []
            while len(text) > @0:
                parts.insert(0, text[-@0:])
                text = text[:-@0]
            return "@1".join([text] + parts)
        """,
        (
            'def grouped(text):\n    return "@1".join(text[i:i + @0] for i in range(0, len(text), @0))',
            'def grouped(text):\n    out = ""\n    for i, c in enumerate(reversed(text)):\n        out = c + out\n'
            '        if i % @0 == @0 - 1:\n            out = "@1" + out\n    return out',
        ),
        ((2, "-"), (3, ","), (3, "_"), (3, "."), (4, "-"), (4, " "), (5, "|"), (2, ":"), (4, "/"), (5, "+")),
        lambda dice, v: [
            ("7",),
            ("1" * v[0],),
            ("12345678901",),
            ("".join(dice.choices("123456789", k=3 * v[0] + 1)),),
        ],
    ),
]

# ── programs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PROGRAMS = [
    Family(
        "sum_lines", None,
        "Read integers from standard input, one per line, until it ends. Print the sum of those that are divisible by @0.",
        "import sys\nprint(sum(int(line) for line in sys.stdin if int(line) % @0 == 0))",
        (
            "import sys\nprint(sum(1 for line in sys.stdin if int(line) % @0 == 0))",
            "print(sum(int(input()) for _ in range(3)))",
        ),
        tuple((k,) for k in range(2, 12)),
        lambda dice, v: [lines(v[0]), lines(1), *(lines(*numbers(dice, n, -60, 60), 5 * v[0]) for n in (5, 8, 12))],
    ),
    Family(
        "long_words", None,
        "The first line has a number n; n lines with one word each follow. Print the words with more than @0 letters in "
        "alphabetical order, one per line, or the word none if there are none.",
        """
        words = [input().strip() for _ in range(int(input()))]
        long = sorted(word for word in words if len(word) > @0)
        print("\\n".join(long) or "none")
        """,
        (
            """
            words = [input().strip() for _ in range(int(input()))]
            long = sorted(word for word in words if len(word) >= @0)
            print("\\n".join(long) or "none")
            """,
            """
            words = [input().strip() for _ in range(int(input()))]
            print("\\n".join(sorted(word for word in words if len(word) > @0)))
            """,
        ),
        tuple((k,) for k in range(1, 11)),
        lambda dice, v: [
            lines(1, "a"), lines(2, "b" * v[0], "c" * (v[0] + 1)),
            *(lines(n, *words(dice, n, longest=v[0] + 3)) for n in (4, 7)),
        ],
    ),
    Family(
        "account", None,
        "An account begins with @0. Each line of the input is `in X` or `out X`. A withdrawal that would leave less than "
        "@1 is refused. Print the final balance and the number of refused withdrawals, separated by a space.",
        """
        import sys
        balance, refused = @0, 0
        for line in sys.stdin:
            kind, amount = line.split()
            if kind == "in":
                balance += int(amount)
            elif balance - int(amount) >= @1:
                balance -= int(amount)
            else:
                refused += 1
        print(balance, refused)
        """,
        (
            """
            import sys
            balance = @0
            for line in sys.stdin:
                kind, amount = line.split()
                balance += int(amount) if kind == "in" else -int(amount)
            print(balance, 0)
            """,
            """
            import sys
            balance, refused = @0, 0
            for line in sys.stdin:
                kind, amount = line.split()
                if kind == "in":
                    balance += int(amount)
                elif balance >= @1:
                    balance -= int(amount)
                else:
                    refused += 1
            print(balance, refused)
            """,
        ),
        ((0, 0), (10, 0), (50, 0), (100, 0), (100, 10), (100, 20), (200, 50), (30, 5), (80, 40), (150, 100)),
        bookings,
    ),
    Family(
        "neighbours", None,
        "The first line has the height and the width of a grid; its rows follow, made of # and dots. Print how many # have "
        "at least @0 neighbours # above, below, left and right of them.",
        """
        height, width = map(int, input().split())
        grid = [input() for _ in range(height)]
        def is_wall(y, x):
            return 0 <= y < height and 0 <= x < width and grid[y][x] == "#"
        count = 0
        for y in range(height):
            for x in range(width):
                around = is_wall(y - 1, x) + is_wall(y + 1, x) + is_wall(y, x - 1) + is_wall(y, x + 1)
                count += is_wall(y, x) and around >= @0
        print(count)
        """,
        (
            """
            height, width = map(int, input().split())
            grid = [input() for _ in range(height)]
            def is_wall(y, x):
                return 0 <= y < height and 0 <= x < width and grid[y][x] == "#"
            count = 0
            for y in range(height):
                for x in range(width):
                    around = sum(is_wall(y + a, x + b) for a in (-1, 0, 1) for b in (-1, 0, 1))
                    count += is_wall(y, x) and around >= @0
            print(count)
            """,
            """
            height, width = map(int, input().split())
            grid = [input() for _ in range(height)]
            count = 0
            for y in range(height):
                for x in range(width):
                    around = [grid[y - 1][x], grid[(y + 1) % height][x], grid[y][x - 1], grid[y][(x + 1) % width]]
                    count += grid[y][x] == "#" and around.count("#") >= @0
            print(count)
            """,
        ),
        ((1,), (2,), (3,), (4,)),
        grids,
    ),
    Family(
        "playlist", None,
        "Each line of the input is the length of a song as MM:SS. Between two songs there is a pause of @0 seconds. Print how "
        "long the whole list takes, as H:MM:SS.",
        """
        import sys
        songs = sys.stdin.read().split()
        total = sum(int(song[:2]) * 60 + int(song[3:]) for song in songs) + @0 * (len(songs) - 1)
        print(f"{total // 3600}:{total // 60 % 60:02}:{total % 60:02}")
        """,
        (
            """
            import sys
            songs = sys.stdin.read().split()
            total = sum(int(song[:2]) * 60 + int(song[3:]) for song in songs) + @0 * len(songs)
            print(f"{total // 3600}:{total // 60 % 60:02}:{total % 60:02}")
            """,
            """
            import sys
            songs = sys.stdin.read().split()
            total = sum(int(song[:2]) * 60 + int(song[3:]) for song in songs) + @0 * (len(songs) - 1)
            print(f"{total // 3600}:{total // 60 % 60}:{total % 60}")
            """,
        ),
        tuple((k,) for k in (1, 2, 3, 4, 5, 8, 10, 15, 20, 30)),
        songs,
    ),
    Family(
        "frequent", None,
        "The input is one line of words. Print the @0 most frequent words with their counts, one `word count` per line, the "
        "most frequent first. Words with the same count come in alphabetical order.",
        """
        from collections import Counter
        counts = Counter(input().split())
        for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:@0]:
            print(word, count)
        """,
        (
            """
            from collections import Counter
            for word, count in Counter(input().split()).most_common(@0):
                print(word, count)
            """,
            """
            from collections import Counter
            counts = Counter(input().split())
            for word, count in sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)[:@0]:
                print(word, count)
            """,
        ),
        tuple((k,) for k in range(2, 12)),
        lambda dice, v: [
            lines("b a"), lines("z y x z y x w"), lines(" ".join(words(dice, 20, "abc", 1))),
            lines(" ".join(words(dice, 24, "ab", 3))),
        ],
    ),
    Family(
        "transpose", None,
        "The first line has the height and the width of a matrix; its rows follow. Print the transposed matrix with every "
        "number multiplied by @0, one row per line.",
        """
        height, width = map(int, input().split())
        rows = [list(map(int, input().split())) for _ in range(height)]
        for column in zip(*rows):
            print(*(@0 * x for x in column))
        """,
        (
            """
            height, width = map(int, input().split())
            for _ in range(height):
                print(*(@0 * int(x) for x in input().split()))
            """,
            """
            height, width = map(int, input().split())
            rows = [input().split() for _ in range(height)]
            for column in zip(*rows):
                print(*(@0 * x for x in column))
            """,
        ),
        tuple((k,) for k in (2, 3, 4, 5, 6, 7, 8, 9, 10, -1)),
        matrices,
    ),
    Family(
        "circle", None,
        "The input is a number n. The people 1 to n stand in a circle. Starting from person 1, every @0. person leaves until "
        "one is left. Print who that is.",
        "last = 0\nfor size in range(2, int(input()) + 1):\n    last = (last + @0) % size\nprint(last + 1)",
        (
            "last = 0\nfor size in range(2, int(input()) + 1):\n    last = (last + @0) % size\nprint(last)",
            "last = 0\nfor size in range(2, int(input()) + 1):\n    last = (last + @0 - 1) % size\nprint(last + 1)",
        ),
        tuple((k,) for k in range(2, 12)),
        lambda dice, _: [lines(1), lines(2), *(lines(dice.randint(3, 60)) for _ in range(3))],
    ),
    Family(
        "stairs", None,
        "The input is a number n. A stair of n steps is climbed in jumps of 1 to @0 steps. Print in how many ways, modulo "
        "@1.",
        """
        ways = [1]
        for step in range(1, int(input()) + 1):
            ways.append(sum(ways[max(0, step - @0):]) % @1)
        print(ways[-1] % @1)
        """,
        (
            """
            ways = [1]
            for step in range(1, int(input()) + 1):
                ways.append(sum(ways[max(0, step - @0 + 1):]) % @1)
            print(ways[-1] % @1)
            """,
            """
            n = int(input())
            ways = [1, 1]
            for step in range(2, n + 1):
                ways.append(ways[-1] + ways[-2])
            print(ways[n])
            """,
        ),
        ((2, 1000), (3, 1000), (4, 1000), (3, 997), (4, 997), (5, 997), (2, 10007), (3, 10007), (5, 10007), (6, 10007)),
        lambda dice, _: [lines(1), lines(2), lines(4), lines(dice.randint(20, 40)), lines(dice.randint(50, 90))],
    ),
    Family(
        "matching", None,
        "The input is one line with a text of the brackets @0. Print yes if every bracket that opens is closed by one of its "
        "own kind, in the right order, and no otherwise.",
        """
        kinds = {end: begin for begin, end in "@0".split()}
        open_ones = []
        good = True
        for c in input().strip():
            if c in kinds.values():
                open_ones.append(c)
            elif not open_ones or open_ones.pop() != kinds[c]:
                good = False
                break
        print("yes" if good and not open_ones else "no")
        """,
        (
            """
            text = input().strip()
            print("yes" if all(text.count(a) == text.count(b) for a, b in "@0".split()) else "no")
            """,
            """
            kinds = {end: begin for begin, end in "@0".split()}
            open_ones = []
            for c in input().strip():
                if c in kinds.values():
                    open_ones.append(c)
                elif open_ones and open_ones[-1] == kinds[c]:
                    open_ones.pop()
            print("no" if open_ones else "yes")
            """,
        ),
        (("()",), ("[]",), ("<>",), ("() []",), ("() <>",), ("[] <>",), ("() [] <>",)),
        lambda dice, v: [
            lines(v[0].replace(" ", "")), lines(v[0][::-1].replace(" ", "")), lines(v[0][0] * 2 + v[0][1]),
            lines(v[0][0] + v[0][1] * 2), lines("".join(dice.choices(v[0].replace(" ", ""), k=8))),
        ],
    ),
]  # fmt: skip

FAMILIES = [*FUNCTIONS, *PROGRAMS]
