# SPDX-License-Identifier: Apache-2.0
"""Datasets of several splits: from folders, files, paths with {split}, and the Hub's own layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets import splits
from reward_kit.datasets.splits import Split, SplitAnswers, SplitStream, is_local
from reward_kit.errors import DatasetError
from reward_kit.models import Rollout
from tests.loopback.experiments import ROWS, chat_row, dataset, math_row, write_lines

THREE = [Split(name, name) for name in ROWS]
MATH = [Split("math", "math")]


def load(path: Path | str, splits: list[Split] = THREE, each: int | None = None, skip: bool = True) -> SplitStream:
    config = DatasetConfig(path_or_name=str(path), on_bad_row="skip" if skip else "error")
    return SplitStream(config, splits, each=each)


def names(stream: SplitStream) -> list[tuple[str | None, str]]:
    return [(sample.split, sample.id) for sample in stream]


ALL = [(split, f"{split}-{number}") for split in ROWS for number in range(3)]


def test_a_folder_has_a_file_a_split(tmp_path: Path) -> None:
    stream = load(dataset(tmp_path))
    assert names(stream) == ALL
    assert [sample.position for sample in stream] == list(range(9))
    assert stream.size_hint() == 9


def test_one_file_has_rows_that_say_their_split(tmp_path: Path) -> None:
    rows = [ROWS[split](number) for number in range(3) for split in ROWS]
    assert names(load(write_lines(tmp_path / "by_category.jsonl", rows))) == ALL
    told = [{**row, "split": row["category"], "category": "hard"} for row in rows]
    assert names(load(write_lines(tmp_path / "by_split.jsonl", told), each=2)) == [
        name for name in ALL if not name[1].endswith("2")
    ]


@pytest.mark.parametrize("read_to_count", [splits._READ_TO_COUNT, 0])
def test_a_file_that_splits_share_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_to_count: int
) -> None:
    monkeypatch.setattr(splits, "_READ_TO_COUNT", read_to_count)
    path = write_lines(tmp_path / "all.jsonl", [ROWS[split](number) for number in range(3) for split in ROWS])
    assert load(path).size_hint() == 9
    assert load(path, each=2).size_hint() == 6
    assert load(path, each=4).size_hint() == 9


def test_rows_of_splits_that_are_not_asked_for_do_not_count(tmp_path: Path) -> None:
    rows = [{**ROWS[split](number), "split": split} for number in range(3) for split in ROWS]
    path = write_lines(tmp_path / "all.jsonl", rows)
    assert load(path, MATH).size_hint() == len(names(load(path, MATH))) == 3
    assert load(path, THREE[:2]).size_hint() == len(names(load(path, THREE[:2]))) == 6
    path = write_lines(tmp_path / "more.jsonl", [*rows, {"question": "Of which split?"}])
    assert load(path, THREE[:2]).size_hint() == len(names(load(path, THREE[:2]))) == 6


def write_parquet(folder: Path, split: str, name: str) -> str:
    """Rows with the types of Nemotron-Post-Training-Dataset-v1."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    function = pa.struct([("name", pa.string()), ("arguments", pa.string())])
    call = pa.struct([("id", pa.string()), ("type", pa.string()), ("function", function)])
    turn = pa.struct([("role", pa.string()), ("content", pa.string()), ("tool_calls", pa.list_(call))])
    texts = ("uuid", "license", "generator", "version", "category", "reasoning", "metadata")
    schema = pa.schema([*((text, pa.string()) for text in texts), ("messages", pa.list_(turn))])
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-00000-of-00001.parquet"
    parquet.write_table(pa.Table.from_pylist([ROWS[split](number) for number in range(3)], schema), path)
    return str(path)


def test_the_layout_of_the_hub_is_read_from_disk(tmp_path: Path) -> None:
    for split, part in (("math", "math"), ("code", "code"), ("tool_calling", "tool")):
        write_parquet(tmp_path / "data", split, part)
    stream = load(tmp_path)
    assert names(stream) == ALL
    assert [sample.ground_truth for sample in stream][:3] == ["1", "2", "3"]


def test_a_path_may_have_the_split_in_it(tmp_path: Path) -> None:
    dataset(tmp_path)
    assert names(load(tmp_path / "data" / "{split}.jsonl")) == ALL


@pytest.mark.parametrize("streaming", [True, False])
def test_splits_of_the_hub_are_loaded_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streaming: bool
) -> None:
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    files = {split: write_parquet(tmp_path / "data", split, split) for split in ROWS}
    config = DatasetConfig(source_type="huggingface", path_or_name="parquet", data_files=files, streaming=streaming)
    stream = SplitStream(config, THREE, each=2)
    assert names(stream) == [name for name in ALL if not name[1].endswith("2")]
    tools = [sample.tools for sample in stream if sample.split == "tool_calling"]
    assert tools[0] is not None and tools[0][0]["function"]["name"] == "look_up"


def test_unusable_rows_are_left_out_and_counted_and_do_not_count_for_the_limit(tmp_path: Path) -> None:
    empty = chat_row(9, "math", [{"role": "user", "content": "-"}], {})
    path = write_lines(tmp_path / "math.jsonl", [empty, math_row(0), empty, math_row(1), math_row(2)])
    stream = load(path, MATH, each=2)
    assert names(stream) == [("math", "math-0"), ("math", "math-1")]
    assert stream.skipped == 2
    with pytest.raises(DatasetError, match=r"math.jsonl', line 1: the prompt is '-'"):
        list(load(path, MATH, skip=False))


def test_a_split_of_nothing_but_unusable_rows_ends_soon(tmp_path: Path) -> None:
    empty = [chat_row(number, "code", [{"role": "user", "content": "-"}], {"dataset": "apps"}) for number in range(500)]
    stream = load(write_lines(tmp_path / "code.jsonl", empty), [Split("code", "code")])
    with pytest.raises(DatasetError, match=r"None of the first 100 rows of split 'code' can be used.*added from"):
        list(stream)
    assert stream.skipped == 100


def test_a_split_without_rows_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "all.jsonl", [math_row(0)])
    stream = load(path, [*MATH, Split("maths", "math")])
    with pytest.raises(DatasetError, match="has no row of split 'maths'"):
        stream.check()
    load(path, MATH).check()


def test_rows_that_do_not_say_their_split_belong_to_the_only_one(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "plain.jsonl", [{"user_query": "1 + 1?", "ground_truth": "2"}])
    (sample,) = load(path, MATH)
    assert (sample.split, sample.ground_truth, sample.messages[0].text) == ("math", "2", "1 + 1?")
    with pytest.raises(DatasetError, match="no column 'split'"):
        list(load(path))


def test_how_much_is_asked_for_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    path = dataset(tmp_path)
    assert load(path, each=1).fingerprint() != load(path, each=2).fingerprint() != load(path).fingerprint()
    assert load(path, each=2).fingerprint() == load(path, each=2).fingerprint()


def test_ids_must_differ_across_splits_so_that_tables_can_be_joined(tmp_path: Path) -> None:
    for split in ("math", "other"):
        write_lines(tmp_path / f"{split}.jsonl", [{"id": 1, "user_query": f"{split}?", "ground_truth": "2"}])
    with pytest.raises(DatasetError, match="id '1' is already taken by"):
        list(load(tmp_path, [*MATH, Split("other", "other")], skip=False))


def test_names_of_the_hub_and_paths_are_told_apart(tmp_path: Path) -> None:
    assert not is_local("nvidia/Nemotron-Post-Training-Dataset-v1")
    assert all(map(is_local, ["a.jsonl", "./a", "data/{split}", str(tmp_path), "x/*.parquet"]))


# ── answers that the rows hold ───────────────────────────────────────────────────────────────────────────────────────


def answers(path: Path, column: str, splits: list[Split] = MATH, each: int | None = None) -> list[Rollout]:
    config = DatasetConfig(path_or_name=str(path), on_bad_row="skip", response_column=column)
    return list(SplitAnswers(config, splits, each=each))


def test_answers_in_a_column_are_neither_asked_nor_the_ground_truth(tmp_path: Path) -> None:
    """`answer` is where a ground truth is looked for otherwise."""
    rows = [{"question": "1 + 1?", "solution": "2", "answer": ["It is 2.", "It is 3."]}]
    found = answers(write_lines(tmp_path / "a.jsonl", rows), "answer")
    assert [(one.response_index, one.turns[-1].text) for one in found] == [(0, "It is 2."), (1, "It is 3.")]
    assert {one.sample.ground_truth for one in found} == {"2"}
    assert [turn.text for turn in found[0].sample.messages] == ["1 + 1?"]
    only = [{"question": "1 + 1?", "answer": "It is 2."}]
    with pytest.raises(DatasetError, match="no ground truth to verify an answer with"):
        answers(write_lines(tmp_path / "b.jsonl", only), "answer")


def test_a_row_has_the_same_id_whether_it_is_answered_or_holds_its_answer(tmp_path: Path) -> None:
    row = {"question": "1 + 1?", "ground_truth": "2"}
    asked = list(load(write_lines(tmp_path / "asked.jsonl", [row]), MATH))
    held = answers(write_lines(tmp_path / "held.jsonl", [{**row, "said": "2"}]), "said")
    assert [one.sample.id for one in held] == [sample.id for sample in asked]


def test_a_limit_counts_queries_of_each_split_however_many_rows_one_has(tmp_path: Path) -> None:
    rows = [
        {**ROWS[split](number), "said": f"{number}.{draw}", "response_index": draw}
        for split in ("math", "tool_calling") for number in range(3) for draw in range(2)
    ]  # fmt: skip
    splits = [Split(name, name) for name in ("math", "tool_calling")]
    found = answers(write_lines(tmp_path / "rows.jsonl", rows), "said", splits, each=2)
    assert [(one.sample.id, one.turns[-1].text) for one in found] == [
        (f"{split.name}-{number}", f"{number}.{draw}") for split in splits for number in range(2) for draw in range(2)
    ]
    assert [one.sample.position for one in found] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_row_without_the_column_is_left_out_and_a_misspelt_column_is_named(tmp_path: Path) -> None:
    rows = [{"id": "a", "user_query": "?", "ground_truth": "1", "said": ""}, {"id": "b", "user_query": "?"}]
    path = write_lines(tmp_path / "rows.jsonl", rows)
    assert [one.sample.id for one in answers(path, "said")] == ["a"]
    with pytest.raises(DatasetError, match=r"no column 'sayd' with the answer .did you mean 'said'"):
        answers(path, "sayd")
