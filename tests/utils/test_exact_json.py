# SPDX-License-Identifier: Apache-2.0
"""JSON whose numbers keep their digits, whichever of the two readers reads it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reward_kit.utils.exact_json import JSONDecodeError, dumps, loads, loads_with_texts

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**60), max_value=10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(value=VALUES, ascii_only=st.booleans())
@example(value={"a": 2**64}, ascii_only=True)
@example(value=[-(2**63) - 1, "1" * 30], ascii_only=True)
@example(value=json.loads("[" * 400 + "]" * 400), ascii_only=True)
def test_a_value_comes_back_equal_in_type(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    for given_text in (text, text.encode()):
        assert repr(loads(given_text)) == repr(loads(given_text, unique_keys=True)) == repr(value)
    assert repr(loads(dumps(value))) == repr(value)
    assert repr(loads_with_texts(text.encode())[0]) == repr(value)


@given(
    around=VALUES,
    key=TEXT,
    values=st.tuples(VALUES, VALUES),
    more=st.dictionaries(TEXT, VALUES, max_size=2),
    escaped=st.booleans(),
)
@example(around=None, key="a", values=(1, 1), more={}, escaped=False)
@example(around=None, key="a", values=('"', '"'), more={}, escaped=True)
@example(around=2**70, key="a", values=(1, 1), more={}, escaped=False)
@example(around=None, key="", values=(None, None), more={"\\": None}, escaped=True)
def test_a_key_that_stands_twice_is_found_wherever_it_is(
    around: Any, key: str, values: tuple[Any, Any], more: dict[str, Any], escaped: bool
) -> None:
    pairs = [(key, values[0]), *((name, value) for name, value in more.items() if name != key), (key, values[1])]
    inner = "{" + ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in pairs) + "}"
    text = f'[{json.dumps(around)},{{"deep":[{inner}]}}]'
    if escaped:
        text = re.sub(r'((?<!\\)(?:\\\\)*)\\"', r"\1\\u0022", text)
    with pytest.raises(JSONDecodeError, match=r"stands twice in one object\Z"):  # no place, and no wrong one
        loads(text, unique_keys=True)
    assert repr(loads(text)) == repr(json.loads(text))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[NaN, 12345678901234567890]", "NaN is not JSON"),
        (b"[1e999, 12345678901234567890]", "too large for a float"),
        (b'["\\ud800", 12345678901234567890]', "half of a character"),
        (b'["\xff", 12345678901234567890]', "not UTF-8"),
        (b"1" * 5000, "more than 4300 digits"),
        (b"[" * 100_000 + b"1" * 20, "nested too deep"),
        (b"[12345678901234567890", "line 1 column"),
        (b"1e999", "infinity"),
    ],
)
def test_what_is_no_json_is_no_json_for_either_reader(text: bytes, reason: str) -> None:
    with pytest.raises(JSONDecodeError, match=reason):
        loads(text)


def test_a_pair_of_escapes_is_one_character() -> None:
    assert loads(b'["\\ud83d\\ude00", 12345678901234567890]')[0] == "\N{GRINNING FACE}"


def test_what_json_cannot_hold_is_not_written() -> None:
    values: list[Any] = [["\ud800", 2**70], [float("nan"), 2**70], object()]
    for value in values:
        with pytest.raises(TypeError):
            dumps(value)
    assert dumps({1: 2**70}, non_str_keys=True) == b'{"1":1180591620717411303424}'


@given(value=st.floats(allow_nan=False, allow_infinity=False), form=st.sampled_from([".2f", ".17g", "e", "g", "r"]))
def test_a_float_keeps_its_text_where_python_writes_it_otherwise(value: float, form: str) -> None:
    text = repr(value) if form == "r" else format(value, form)
    value = float(text)
    found, texts = loads_with_texts(f'{{"a": {text}, "b": "{text}", "c": 1.25}}'.encode())
    assert found == {"a": value, "b": text, "c": 1.25}
    known = texts.get(id(found["a"]))
    if type(found["a"]) is float:
        assert (None if known is None else known[1]) == (None if text == repr(value) else text)
