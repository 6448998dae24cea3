# SPDX-License-Identifier: Apache-2.0
"""Options of multiple-choice questions in their order, and rows that are shown before a question."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from reward_kit.config_models import DatasetConfig, load_config, without_unused
from reward_kit.datasets import load_samples
from reward_kit.datasets.loader import samples_from_rows
from reward_kit.errors import ConfigError, DatasetError
from reward_kit.models import Sample

WriteRows = Callable[..., str]
SHOWN = "{{ question }} {{ choices | join('/') }}"


def one(row: dict[str, Any], **choices: Any) -> Sample:
    settings = DatasetConfig.model_validate({"path_or_name": "x", "prompt_template": SHOWN, "choices": choices})
    (sample,) = samples_from_rows([{"question": "Which?", **row}], settings=settings)
    return sample


@pytest.mark.parametrize(
    ("row", "settings", "truth"),
    [
        ({"c": ["red", "blue"], "a": 1}, {"options": "c", "right": "a"}, "B"),
        ({"c": ["red", "blue"], "a": "A"}, {"options": "c", "right": "a"}, "A"),
        ({"c": ["red", "blue"], "a": "blue"}, {"options": "c", "right": "a"}, "B"),
        ({"c": ["B", "A"], "a": "A"}, {"options": "c", "right": "a"}, "B"),
        ({"c": ["red", "blue"], "a": "1"}, {"options": "c", "right": "a"}, "B"),
        ({"c": [3, 1], "a": "1"}, {"options": "c", "right": "a"}, "B"),
        ({"t": {"c": ["u", "v", "w"], "l": [0, 1, 1]}}, {"options": "t.c", "right": "t.l"}, ["B", "C"]),
        ({"good": "yes ", "bad": "no"}, {"options": ["bad", "good"], "right": "good"}, "B"),
    ],
)
def test_the_right_option_is_told_in_many_ways(row: dict[str, Any], settings: dict[str, Any], truth: Any) -> None:
    assert one(row, **settings).ground_truth == truth


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"c": ["red", "blue"], "a": "green"}, "'green', which is none of the options"),
        ({"c": ["red", "blue"], "a": 2}, "is 2, which is none"),
        ({"c": ["red", "blue"], "a": [0, 0]}, "none of the options"),
        ({"c": ["red"], "a": 0}, "expected a list of 2 to 26"),
        ({"c": "red", "a": 0}, "expected a list"),
        ({"c": ["red", None], "a": 0}, "expected texts"),
        ({"a": 0}, "no column 'c', which `dataset.choices.options` names"),
        ({"c": ["red", "blue"]}, "no column 'a', which `dataset.choices.right` names"),
    ],
)
def test_options_that_cannot_be_used_are_bad_rows(row: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DatasetError, match=complaint):
        one(row, options="c", right="a")


def test_mixing_depends_on_the_seed_and_the_row_alone() -> None:
    options = ["north", "east", "south", "west"]
    rows = [{"question": f"{n}?", "c": options, "a": 0} for n in range(40)]

    def mixed(seed: int, some: list[dict[str, Any]]) -> dict[str, tuple[list[str], Any]]:
        settings = DatasetConfig.model_validate(
            {
                "path_or_name": "x",
                "prompt_template": SHOWN,
                "choices": {"options": "c", "right": "a", "shuffle_seed": seed},
            }
        )
        samples = samples_from_rows(some, settings=settings)
        return {s.columns["question"]: (s.columns["choices"], s.ground_truth) for s in samples}

    first = mixed(7, rows)
    assert first == mixed(7, rows) and first != mixed(8, rows)
    assert mixed(7, rows[20:]).items() <= first.items()
    assert all(choices["ABCD".index(truth)] == "north" for choices, truth in first.values())
    assert {truth for _, truth in first.values()} == set("ABCD")


@pytest.mark.parametrize("right", ["a", "c.a"])
def test_a_corrected_truth_leaves_the_order_as_it_was(right: str) -> None:
    options = [*"nesw"]
    name, inner = right.rpartition(".")[0], right[-1]

    def letters_of(number: int, truth: int) -> list[str]:
        truths = {"a": truth} if not name else {}
        held = {"options": options, **({inner: truth} if name else {})}
        shown = one(
            {"question": f"{number}?", "c": held, **truths}, options="c.options", right=right, shuffle_seed=3
        )  # fmt: skip
        return list(shown.columns["choices"])

    assert all(letters_of(number, 0) == letters_of(number, 2) for number in range(20))
    assert len({tuple(letters_of(number, 0)) for number in range(20)}) > 1


def few_shot(path: str, template: str | None = None, **settings: Any) -> list[str]:
    template = template or "{% for row in few_shot %}{{ row.question }}={{ row.answer }};{% endfor %}{{ question }}"
    config = DatasetConfig.model_validate({"path_or_name": path, "prompt_template": template, "few_shot": settings})
    return [sample.messages[-1].text for sample in load_samples(config)]


@pytest.fixture
def sums(write_rows: WriteRows) -> str:
    return write_rows(
        *[{"question": f"q{n}", "answer": str(n), "kind": "even" if n % 2 == 0 else "odd"} for n in range(8)]
    )


def test_rows_are_drawn_with_a_seed_and_never_judged(sums: str, caplog: pytest.LogCaptureFixture) -> None:
    asked = few_shot(sums, count=3, seed=1)
    assert "They are not judged" in caplog.text
    assert asked == few_shot(sums, count=3, seed=1) != few_shot(sums, count=3, seed=2)
    shown = {tuple(text.split(";")[:-1]) for text in asked}
    judged = {text.split(";")[-1] for text in asked}
    (examples,) = shown
    assert len(examples) == 3 and len(judged) == 5 == len(asked)
    assert judged.isdisjoint(example.partition("=")[0] for example in examples)
    assert few_shot(sums, count=0)[0] == "q0"


def test_the_first_rows_and_those_of_the_same_kind_can_be_asked_for(sums: str) -> None:
    assert few_shot(sums, count=2, first=True)[:2] == ["q0=0;q1=1;q2", "q0=0;q1=1;q3"]
    assert few_shot(sums, count=2, first=True, same="kind")[:2] == ["q0=0;q2=2;q4", "q1=1;q3=3;q5"]
    assert few_shot(sums, count=2, first=True, pool=3)[-1] == "q0=0;q1=1;q7"


def test_rows_of_another_file_go_through_the_same_settings(sums: str, write_rows: WriteRows) -> None:
    other = write_rows({"question": "other", "answer": "9"}, name="other.jsonl")
    assert few_shot(sums, count=1, path_or_name=other)[0] == "other=9;q0"
    config = {
        "path_or_name": other,
        "column_mapping": {"asked": "question"},
        "prompt_template": "{% for row in few_shot %}{{ row.asked }} {% endfor %}{{ asked }}",
        "few_shot": {"count": 1, "path_or_name": sums, "first": True},
    }
    (sample,) = load_samples(DatasetConfig.model_validate(config))
    assert sample.messages[0].text == "q0 other"
    assert "few_shot" not in json.dumps(sample.columns)


def test_too_few_rows_are_an_error_that_says_so(sums: str, write_rows: WriteRows) -> None:
    other = write_rows({"question": "other", "answer": "9", "kind": "even"}, name="other.jsonl")
    said = r"count` is 8: .* There are only 1 rows to show\. Set `dataset.few_shot.count=0`"
    with pytest.raises(DatasetError, match=said):
        few_shot(sums, count=8, path_or_name=other)
    with pytest.raises(DatasetError, match="only 1 rows with the same 'kind'"):
        few_shot(sums, count=4, same="kind", path_or_name=other)
    with pytest.raises(DatasetError, match="every row was dropped"):
        few_shot(sums, count=8)


def test_a_row_of_another_file_is_not_judged_where_it_is_shown(sums: str, write_rows: WriteRows) -> None:
    other = write_rows({"id": "x", "question": "q3", "answer": "3", "kind": "odd"}, name="other.jsonl")
    asked = few_shot(sums, count=1, path_or_name=other)
    assert len(asked) == 7 and "q3=3;q3" not in asked


def test_a_change_of_the_examples_is_noticed(sums: str, write_rows: WriteRows) -> None:
    other = write_rows({"question": "other", "answer": "9"}, name="other.jsonl")
    template = "{% for row in few_shot %}{{ row.question }}{% endfor %}{{ question }}"
    config = {"path_or_name": sums, "prompt_template": template, "few_shot": {"count": 1, "path_or_name": other}}
    stream = load_samples(DatasetConfig.model_validate(config))
    before = stream.fingerprint()
    write_rows({"question": "another one", "answer": "9"}, name="other.jsonl")
    assert stream.fingerprint() != before
    plain = load_samples(DatasetConfig(path_or_name=sums))
    assert plain.fingerprint() not in (before, None)


def test_rows_that_no_template_shows_are_refused() -> None:
    with pytest.raises(ConfigError, match="`prompt_template`, which has to name them"):
        load_config({"dataset": {"path_or_name": "x", "few_shot": {"count": 1}}, "reward": {"function_path": "math"}})


def test_a_config_without_them_is_written_as_before() -> None:
    config = load_config({"dataset": {"path_or_name": "x"}, "reward": {"function_path": "math"}})
    assert not {"choices", "few_shot"} & without_unused(config.model_dump(mode="json"))["dataset"].keys()


def test_examples_of_a_derived_dataset_come_from_its_base(sums: str) -> None:
    config = {
        "base_dataset": {"path_or_name": sums, "max_samples": 4},
        "prompt_template": "{% for row in few_shot %}{{ row.question }} {% endfor %}{{ question }}",
        "few_shot": {"count": 2, "first": True},
    }
    assert [sample.messages[0].text for sample in load_samples(DatasetConfig.model_validate(config))] == [
        "q0 q1 q2",
        "q0 q1 q3",
    ]
