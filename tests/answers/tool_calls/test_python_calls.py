# SPDX-License-Identifier: Apache-2.0
"""Python's call syntax, compared with what Python itself makes of it."""

from __future__ import annotations

import ast
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.answers.tool_calls.calls import CallError
from reward_kit.answers.tool_calls.python_calls import looks_like_calls, read_python_calls

LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text() | st.floats(allow_nan=False, width=32),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)


@given(st.dictionaries(NAMES, LITERALS.filter(lambda value: "inf" not in repr(value)), max_size=4))
def test_whatever_python_writes_is_read_as_python_reads_it(arguments: dict[str, Any]) -> None:
    written = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    (call,) = read_python_calls(f"pkg.f({written})")
    assert (call.name, call.arguments) == ("pkg.f", arguments)


@pytest.mark.parametrize(
    "literal",
    [
        "'it\\'s'", '"a\\tb\\n"', "'''x\ny'''", '"""say "hi" now"""', "r'\\d+'", "u'ü'", "'\\x41\\u00e9\\U0001F600'",
        "'\\101'", "'\\d stays'", "'a' 'b'", "(1, 2)", "(1,)", "(1)", "()", "[1, 2,]", "{'a': {'b': []},}",
        "-1", "+2.5", "1e3", "1_000", ".5", "1.", "''", "'''a\\'''b'''",
    ],
)  # fmt: skip
def test_literals_mean_what_they_mean_in_python(literal: str) -> None:
    (call,) = read_python_calls(f"f(x={literal})")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an escape that is none is worth a warning to Python
        meant = ast.literal_eval(literal)
    assert call.arguments["x"] == (list(meant) if isinstance(meant, tuple) else meant)


def test_json_words_count_as_values_too() -> None:
    (call,) = read_python_calls("f(a=true, b=false, c=null)")
    assert call.arguments == {"a": True, "b": False, "c": None}


@pytest.mark.parametrize(
    "text",
    ["f", "f(", "f(1", "f)(", "f(1))", "f(x=)", "f(=1)", "f(x==1)", "f(*[1])", "f(**{})", "f(x=1 y=2)", "f(x=1, 2)",
     "f(lambda: 1)", "f(x=[1)", "f(x={1: 2})", "f(x={'a': 1, 'a': 2})", "f(x=f'{1}')", "f(x=b'1')", "f(x=1j)",
     "f(x=1e999)", "f(x='\\U99999999')", "f() g()", "f(); g()", "[f()", "f()]", "import os", "f(x='a\nb')"],
)  # fmt: skip
def test_what_is_no_call_with_literals_is_refused(text: str) -> None:
    with pytest.raises(CallError):
        read_python_calls(text)


def test_only_an_outline_is_needed_to_look_like_calls() -> None:
    assert looks_like_calls("[f(x=\n)]") and looks_like_calls("f(nonsense)") and looks_like_calls("f()\n```")
    assert not looks_like_calls("f (x)") and not looks_like_calls("The f(x)") and not looks_like_calls("f(x) is nice")
