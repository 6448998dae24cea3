# SPDX-License-Identifier: Apache-2.0
"""Renaming, preprocessing and templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets import SampleStream, samples_from_rows
from reward_kit.errors import ConfigError, DatasetError

PREPROCESS = """
def shout(row):
    row["user_query"] = row["user_query"].upper()
    return row

def twice(row):
    return [{**row, "copy": 0}, {**row, "copy": 1}]

def only_short(row):
    return row if len(row["user_query"]) < 5 else None

def divide(row):
    return {**row, "share": 1 / row["n"]}

def wrong(row):
    return 7
"""


def loaded(rows: list[dict[str, Any]], **settings: Any) -> SampleStream:
    return samples_from_rows(rows, settings=DatasetConfig(path_or_name="rows", **settings))


@pytest.fixture
def steps(tmp_path: Path) -> str:
    (tmp_path / "steps.py").write_text(PREPROCESS)
    return str(tmp_path / "steps.py")


def test_columns_are_renamed_and_the_others_kept() -> None:
    row = {"q": "2 + 2", "meta": {"answer": {"text": "4"}}, "level": 3, "a.b": 1}
    mapping = {"user_query": "q", "ground_truth": "meta.answer.text", "dotted": "a.b"}
    (sample,) = loaded([row], column_mapping=mapping)
    assert (sample.messages[0].content, sample.ground_truth) == ("2 + 2", "4")
    assert sample.columns == {"q": "2 + 2", "meta": row["meta"], "level": 3, "dotted": 1}


def test_two_columns_can_change_places_and_one_can_be_copied() -> None:
    (sample,) = loaded([{"a": "x", "b": "y"}], column_mapping={"a": "b", "b": "a", "user_query": "a"})
    assert (sample.messages[0].content, sample.columns) == ("x", {"a": "y", "b": "x"})


def test_a_missing_column_names_the_row_the_column_and_the_nearest() -> None:
    rows: list[dict[str, Any]] = [{"question": "a"}, {"questions": "b", "meta": 1}]
    with pytest.raises(DatasetError, match=r"row 2: there is no column 'question'.*did you mean 'questions'"):
        list(loaded(rows, column_mapping={"user_query": "question"}))
    with pytest.raises(DatasetError, match=r"'meta\.answer'"):
        list(loaded(rows[1:], column_mapping={"user_query": "meta.answer"}))


def test_preprocessing_changes_multiplies_and_drops_rows(steps: str) -> None:
    rows = [{"user_query": "ab"}, {"user_query": "far too long"}, {"user_query": "cd"}]
    paths = [f"{steps}:{name}" for name in ("only_short", "shout", "twice")]
    samples = list(loaded(rows, preprocess=paths))
    assert [(sample.messages[0].content, sample.columns["copy"]) for sample in samples] == [
        ("AB", 0),
        ("AB", 1),
        ("CD", 0),
        ("CD", 1),
    ]
    assert rows[0] == {"user_query": "ab"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [("divide", "raised ZeroDivisionError: division by zero"), ("wrong", "returned a int; expected a dict")],
)
def test_a_failing_preprocess_is_named_with_the_row(steps: str, name: str, reason: str) -> None:
    rows = [{"user_query": "a", "n": 0}]
    with pytest.raises(DatasetError, match=rf"row 1: preprocess '.*steps\.py:{name}' {reason}"):
        list(loaded(rows, preprocess=[f"{steps}:{name}"]))


def test_a_preprocess_that_does_not_load_is_a_config_error(steps: str) -> None:
    with pytest.raises(ConfigError, match=r"`dataset.preprocess`: .*did you mean 'shout'"):
        loaded([], preprocess=[f"{steps}:shoot"])


@given(name=st.from_regex(r"[a-z]{1,8}_", fullmatch=True), text=st.text(min_size=1))
def test_a_template_makes_the_user_turn_and_keeps_the_columns(name: str, text: str) -> None:
    (sample,) = loaded([{name: text}], prompt_template="<{{ %s }}>\n" % name)  # noqa: UP031 - braces belong to Jinja
    assert [turn.content for turn in sample.messages] == [f"<{text}>\n"]
    assert sample.columns == {name: text}


def test_a_template_replaces_the_last_user_turn_of_a_conversation() -> None:
    turns = [{"role": role, "content": role} for role in ("system", "user", "assistant", "user", "tool")]
    (sample,) = loaded([{"messages": turns, "x": 1}], prompt_template="{{ x }}")
    assert [turn.content for turn in sample.messages] == ["system", "user", "assistant", "1", "tool"]


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ questoin }}", r"'questoin' is undefined \(the row's columns are 'question'\)"),
        ("{{ question / 2 }}", "raised TypeError"),
        ("{{ question.__class__.__mro__ }}", "unsafe"),
    ],
)
def test_a_template_that_fails_names_the_row(template: str, reason: str) -> None:
    with pytest.raises(DatasetError, match=f"row 1: `dataset.prompt_template`.*{reason}"):
        list(loaded([{"question": "a"}], prompt_template=template))


def test_a_template_that_is_none_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="not a Jinja template"):
        loaded([], prompt_template="{{ question")


@pytest.mark.parametrize(
    ("template", "written"),
    [
        ("Solve: {q}", "'Solve: {{ q }}'"), ("{q} is {a}.", "'{{ q }} is {{ a }}.'"), ("{ q }", "'{{ q }}'"),
        (r"{q} in \boxed{a}", r"{{ q }} in"), ("{question}", "'question' is no column"),
    ],
)  # fmt: skip
def test_a_template_in_single_braces_is_refused_with_the_one_to_write(template: str, written: str) -> None:
    config = DatasetConfig.model_validate({"path_or_name": "x", "prompt_template": template})
    with pytest.raises(ConfigError, match="single braces") as refused:
        list(samples_from_rows([{"q": "1 + 1?", "a": "2"}], settings=config))
    assert written in str(refused.value)


@pytest.mark.parametrize("template", ["{q!r:>5}", "{q[0]}", "{q.text}", "%(q)s", "$q"])
def test_a_template_of_another_language_is_refused_with_the_one_to_write(template: str) -> None:
    config = DatasetConfig.model_validate({"path_or_name": "x", "prompt_template": f"It costs $5: {template}"})
    with pytest.raises(ConfigError, match=r"asked the same text.*'It costs \$5: \{\{ q \}\}'"):
        list(samples_from_rows([{"q": "?", "a": "4"}], settings=config))


def test_a_template_that_names_no_column_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    config = DatasetConfig.model_validate(
        {"path_or_name": "x", "prompt_template": "Tell a joke for $5 {loudly, please}."}
    )
    assert len(list(samples_from_rows([{"q": "?"}, {"q": "!"}], settings=config))) == 2
    assert [record.message for record in caplog.records if "same text" in record.message] == [
        "`dataset.prompt_template` names no column, so every row is asked the same text."
    ]


@pytest.mark.parametrize(
    ("template", "warned"),
    [
        ("{{ q }} with {a}", True), (r"{{ q }} Put it in \boxed{a}.", False), ("{{ q }} {b}", False),
        ('{{ q }} as {"a": 1}', False), (r"Put it in \boxed{a}", False), ("{% if q %}{{ q }}{% endif %}", False),
    ],
)  # fmt: skip
def test_braces_beside_those_of_jinja_are_sent_and_a_column_among_them_is_said_once(
    template: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    config = DatasetConfig.model_validate({"path_or_name": "x", "prompt_template": template})
    samples = list(samples_from_rows([{"q": "1 + 1?", "a": "2"}] * 3, settings=config))
    assert len(samples) == 3
    assert sum("single braces" in record.message for record in caplog.records) == warned
