# SPDX-License-Identifier: Apache-2.0
"""YAML that people write: what is meant is read, and what cannot be meant is an error that says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.errors import ConfigError
from reward_kit.utils.strict_yaml import check_yaml, load_yaml, read_yaml_text

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(codec="ascii", categories=["L", "N"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcdef", min_size=1, max_size=4), inner),
    max_leaves=20,
)


@given(plain)
def test_what_was_written_is_read(value: Any) -> None:
    assert load_yaml(yaml.safe_dump(value), "A config") == value


def test_aliases_stand_for_what_they_name() -> None:
    assert load_yaml("a: &x [1, 2]\nb: *x\nc: &y 3\nd: *y\n", "A config") == {"a": [1, 2], "b": [1, 2], "c": 3, "d": 3}


@pytest.mark.parametrize("text", ["n: 4\nn: 8\n", "generation: {n: 4, n: 8}\n", "- {a: 1, 'a': 2}\n"])
def test_a_key_that_is_given_twice_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^A config is not YAML: the key '(n|a)' is given twice.* Correct it\.$"):
        load_yaml(text, "A config")


def test_aliases_that_multiply_are_refused_before_they_are_built() -> None:
    levels = [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]" for level in range(1, 9)]
    bomb = "\n".join(["l0: &l0 [x, x, x, x, x, x, x, x, x, x]", *levels])
    with pytest.raises(ConfigError, match="its aliases make more than 200,000 values of it"):
        check_yaml(bomb, "A config")


def test_an_alias_inside_what_it_names_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"the alias \*a stands inside what it names, or for nothing"):
        load_yaml("a: &a [*a]\n", "A config")


@pytest.mark.parametrize("depth", [101, 5_000])
def test_endless_depth_is_refused(depth: int) -> None:
    with pytest.raises(ConfigError, match="A config is not YAML"):
        load_yaml("[" * depth + "]" * depth, "A config")
    assert load_yaml("[" * 100 + "]" * 100, "A config")


def test_a_text_that_is_far_too_long_is_refused_unread() -> None:
    with pytest.raises(ConfigError, match=r"has 16,777,217 characters.* Name another file\.$"):
        check_yaml("#" * ((16 << 20) + 1), "A config")


@pytest.mark.parametrize(
    "text", ["a: [1, 2", "a: b: c", "\x00", "!!python/object:os.system {}", "a: !!int x", "? [a]\n: 1"]
)
def test_what_is_no_plain_yaml_is_one_line_that_says_so(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_yaml(text, "The file 'run.yaml'")
    message = str(caught.value)
    assert message.startswith("The file 'run.yaml' is not YAML: ")
    assert message.endswith(". Correct it.")
    assert "\n" not in message


def test_a_secret_in_a_broken_file_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        load_yaml("sk-proj-abcdefghijklmnopqrstuvwxyz0123456789: 1\n" * 2, "A config")
    assert "abcdefghijklmnop" not in str(caught.value)


def test_a_file_that_cannot_be_read_says_why_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("name: Zoë".encode("latin-1"))
    (tmp_path / "good.yaml").write_text("name: Zoë", encoding="utf-8")
    assert read_yaml_text(tmp_path / "good.yaml", "the file", "Name it.") == "name: Zoë"
    with pytest.raises(ConfigError, match=r"not UTF-8 text\. Save it as UTF-8\.$"):
        read_yaml_text(tmp_path / "latin.yaml", "The file", "Name it.")
    with pytest.raises(ConfigError, match=r"^Cannot read the file \(No such file or directory\)\. Name another\.$"):
        read_yaml_text(tmp_path / "none.yaml", "the file", "Name another.")
    with pytest.raises(ConfigError, match=r"^Cannot read the file \(embedded null byte\)\. Name another\.$"):
        read_yaml_text(Path("a\0b"), "the file", "Name another.")
