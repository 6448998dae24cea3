# SPDX-License-Identifier: Apache-2.0
"""The small lambdas of tasks: computed without Python's `eval`."""

from __future__ import annotations

from typing import Any

import pytest

from reward_kit.agent.result_transform import read_transform
from reward_kit.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("lambda x: x == 2", 2, True),
        ("lambda x: x == 2", 3, False),
        ("lambda count: 1 < count <= 3", 3, True),
        ("lambda x: x is not None and x > 0", None, False),
        ("lambda x: x or 'empty'", "", "empty"),
        ("lambda x: not x", 0, True),
        ("lambda x: -x + 2 * 3 % 4 / 2", 1, 0.0),
        ("lambda x: len(x) == 2 and x[0] == 'a'", ["a", "b"], True),
        ("lambda x: x in ('done', 'sent')", "sent", True),
        ("lambda x: x['n'] if x else None", {"n": 1}, 1),
        ("lambda x: int(x) >= 5", "7", True),
        ("lambda x: sorted(x) == [1, 2]", [2, 1], True),
    ],
)
def test_what_a_transform_may_say(text: str, value: Any, expected: Any) -> None:
    assert read_transform(text)(value) == expected


@pytest.mark.parametrize(
    "text",
    [
        "lambda x: __import__('os').system('true')",
        "lambda x: x.__class__",
        "lambda x: ().__class__.__mro__",
        "lambda x: open('/etc/passwd')",
        "lambda x: [y for y in x]",
        "lambda x: (lambda y: y)(x)",
        "lambda x: f'{x}'",
        "lambda x: 9 ** 9 ** 9",
        "lambda x: 1 << 99999",
        "lambda x: max(x, key=abs)",
        "lambda x, y: x",
        "lambda *x: x",
        "x == 1",
        "lambda x: (",
        "lambda x: y",
        "lambda x: " + "(" * 5000,
        "lambda x: x" + " + x" * 5000,
    ],
)
def test_what_a_transform_may_not_say_is_refused_before_it_runs(text: str) -> None:
    with pytest.raises(ConfigError):
        read_transform(text)
