# SPDX-License-Identifier: Apache-2.0
"""A row means the same at every door: the same id, question, conversation, truth and columns, or the same refusal."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets import load_rollouts, load_samples, rollouts_from_rows, samples_from_rows
from reward_kit.datasets.ground_truths import CANDIDATES, AmbiguousTruth
from reward_kit.datasets.interpret import RowReader, rollouts_of, sample_of
from reward_kit.datasets.rows import BadRow
from reward_kit.datasets.splits import Split, SplitAnswers, SplitStream
from reward_kit.errors import DatasetError
from reward_kit.evaluating import evaluate
from reward_kit.evaluators import preview_reward, read_samples
from reward_kit.integrations.world_session import sample_from_row
from reward_kit.models import Message, Sample
from reward_kit.regenerating import regenerate
from tests.datasets.row_shapes import KNOWN, Case, answered, cases, meaning

OUR_NAMES = st.sampled_from(["id", "user_query", "ground_truth", "ground_truth_for_eval"])
OTHER_NAMES = st.sampled_from([
    "ID", "User_Query", "Ground_Truth", "messages", "prompt", "question", "answer", "solution", "split", "tools",
    "system_prompt", "uuid", "metadata", "reward_model", "choices", "task", "success_condition", "response_index",
    "difficulty", "label", "input", "category", "test", "entry_point",
])  # fmt: skip
VALUES: st.SearchStrategy[object] = st.one_of(
    st.none(), st.sampled_from(["", "4", "a text", "Grüße", "\ud800"]), st.integers(0, 9), st.just([])
)


@settings(max_examples=300)
@given(st.dictionaries(OUR_NAMES, VALUES, min_size=3), st.dictionaries(OTHER_NAMES, VALUES, max_size=2), st.booleans())
def test_rows_with_our_names_mean_what_the_long_way_says(
    ours: dict[str, Any], others: dict[str, Any], system: bool
) -> None:
    def read(*, quickly: bool) -> Any:
        reader = RowReader(system_prompt="Be brief." if system else None, split="test")
        if not quickly:
            reader._reads_our_names = False
        try:
            return reader.question({**ours, **others}), reader.formats
        except BadRow as refusal:
            return str(refusal)

    assert read(quickly=True) == read(quickly=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


def written(place: Path, *rows: dict[str, Any]) -> str:
    file = place / "chat.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def outcome(read: Callable[[], Iterable[Sample]]) -> Any:
    """What a door makes of one row: its meaning, or the columns between which it cannot choose."""
    try:
        (sample,) = read()
    except AmbiguousTruth as refused:
        return refused.candidates
    except DatasetError as refused:  # the door of a file names the place as well
        return next(found.candidates for found in _causes(refused) if isinstance(found, AmbiguousTruth))
    return meaning(sample)


def _causes(error: BaseException) -> Iterable[BaseException]:
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


def check(case: Case, place: Path) -> None:
    before = copy.deepcopy(case.row)
    read = outcome(lambda: [RowReader().sample(case.row)])
    assert case.row == before, "the row given is never changed"
    if case.unclear:
        assert read == case.unclear
    else:
        assert sample_of(case.row).messages[-1].text == case.asked
        assert repr(read[2]) == repr(case.truth)
    config = DatasetConfig(path_or_name=written(place, case.row))
    assert outcome(lambda: load_samples(config)) == read
    assert outcome(lambda: samples_from_rows([case.row])) == read
    assert outcome(lambda: [sample_from_row(case.row)]) == read


@settings(max_examples=200)
@given(cases())
def test_a_row_asks_the_same_at_every_door(place: Path, case: Case) -> None:
    check(case, place)


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: "+".join(case.row))
def test_a_known_format_says_what_is_right(place: Path, case: Case) -> None:
    check(case, place)


@settings(max_examples=150)
@given(cases())
def test_an_answer_beside_the_row_changes_nothing_of_what_it_asks(place: Path, case: Case) -> None:
    row = answered(case)
    read = outcome(lambda: [rollouts_of(row)[0].sample])
    config = DatasetConfig(path_or_name=written(place, row))
    assert outcome(lambda: [one.sample for one in load_rollouts(config)]) == read
    assert outcome(lambda: [one.sample for one in rollouts_from_rows([row])]) == read
    if case.unclear:
        assert read == case.unclear
    elif "conversations" not in row and "category" not in row and "completion" not in row:
        asked = RowReader().sample(case.row)
        # An answer at the end of the conversation is not judged here, and no truth either: another one is judged.
        assert read == meaning(asked.model_copy(update={"ground_truth": None} if case.truth_is_answer else {}))


@settings(max_examples=200)
@given(cases().filter(lambda case: not {"category", "metadata"} <= case.row.keys()))
def test_a_split_of_no_special_kind_is_read_as_a_run_reads_it(place: Path, case: Case) -> None:
    row = {**case.row, "split": "chat"}
    config = DatasetConfig(path_or_name=written(place, row))
    read = outcome(lambda: [RowReader().sample(row)])
    split = outcome(lambda: SplitStream(config, [Split("chat", "chat")]))
    assert split == read or _without_reference(split) == read


def _without_reference(read: tuple[Any, ...]) -> tuple[Any, ...]:
    """An experiment hands the answer of a conversation over, too."""
    *before, columns, tools, split = read
    return (*before, {name: value for name, value in columns.items() if name != "reference_response"}, tools, split)


def test_evaluate_and_preview_judge_what_the_reader_reads(place: Path) -> None:
    """Hundreds of rows at once: with an answer of a model, with their own, and as a preview."""
    found: list[Case] = []

    @settings(max_examples=100, database=None)
    @given(st.lists(cases(), min_size=1, max_size=3))
    def collect(some: list[Case]) -> None:
        found.extend(case for case in some if not case.unclear)

    collect()
    rows = [{**answered(case), "id": f"row-{number}"} for number, case in enumerate(found)]
    seen: dict[str, Any] = {}

    async def judge(messages: list[Message], sample_id: str, ground_truth: Any = None) -> float:
        seen[sample_id] = ([turn.text for turn in messages[:-1]], repr(ground_truth))
        return 1.0

    assert evaluate(rows, judge).judged == len(rows)
    local, seen = seen, {}
    file = written(place, *rows)
    assert evaluate(file, judge).judged == len(rows)
    from_file, seen = seen, {}
    assert {name: truth.strip("'").lower() for name, (_, truth) in from_file.items()} == {
        name: truth.strip("'").lower() for name, (_, truth) in local.items()
    }, "only a file has a text of its own for True"
    result = preview_reward(judge, read_samples(Path(file), len(rows)))
    assert [one.score for one in result.results] == [1.0] * len(rows)
    assert seen == from_file
    asking = [{**case.row, "id": f"row-{number}"} for number, case in enumerate(found)]
    seen = {}
    assert evaluate(asking, judge, model="mock").judged == len(rows)
    for number, case in enumerate(found):
        name = f"row-{number}"
        assert seen[name][0][-1] == case.asked
        if not case.truth_is_answer and case.row.keys().isdisjoint({"conversations", "category", "completion"}):
            assert seen[name] == local[name]


NUMBERS = ("4", "4.50", "-0.0", "1e3", "0.10", "true", "false", "3.14159265358979323846", "1180591620717411303425")
SAYING = ('"ground_truth": {}', '"answer": {}', '"Target": {}', '"reward_model": {{"ground_truth": {}}}')


def test_every_door_to_a_file_hands_a_number_over_as_the_file_has_it(tmp_path: Path) -> None:
    said = [(number, says) for number in NUMBERS for says in SAYING]
    lines = [
        f'{{"id": "{place}", "prompt": "?", "assistant_response": "a", {says.format(number)}}}'
        for place, (number, says) in enumerate(said)
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(lines))
    seen: list[tuple[str, Any]] = []

    async def judge(messages: list[Message], sample_id: str, ground_truth: Any = None) -> float:
        seen.append((sample_id, ground_truth))
        return 1.0

    as_written = [(str(place), number) for place, (number, _) in enumerate(said)]
    evaluate(str(file), judge)
    assert sorted(seen) == sorted(as_written)
    seen.clear()
    preview_reward(judge, read_samples(file, len(lines)))
    assert sorted(seen) == sorted(as_written)
    seen.clear()
    regenerate(str(file), judge, model="mock", cache={"enabled": False})
    assert sorted(seen) == sorted(2 * as_written), "the old answers, and the new ones"
    table = SplitAnswers(DatasetConfig(path_or_name=str(file)), [Split("sums", "sums")])
    texts = [each.sample.ground_truth_text or str(each.sample.ground_truth) for each in table]
    assert texts == [number for number, _ in said]


def test_what_a_column_in_other_capitals_says_stands_behind_the_conversation() -> None:
    sample = sample_of({"messages": [{"role": "user", "content": "a"}], "Prompt": "b"})
    assert ([turn.text for turn in sample.messages], sample.columns) == (["a"], {"Prompt": "b"})
    (again,) = samples_from_rows([sample])
    assert meaning(again) == meaning(sample)


def test_one_message_is_a_conversation_in_a_split_too(place: Path) -> None:
    row = {"id": "a", "messages": {"role": "user", "content": "?"}, "answer": "4"}
    config = DatasetConfig(path_or_name=written(place, row))
    (sample,) = SplitStream(config, [Split("sums", "sums")])
    assert ([turn.text for turn in sample.messages], sample.ground_truth) == (["?"], "4")


# ── what is read, and what is refused with the line to write ─────────────────────────────────────────────────────────


@pytest.mark.parametrize(("one", "other"), [("solution", "answer"), ("label", "Target"), ("OUTPUT", "reference")])
@pytest.mark.parametrize("asked", ["prompt", "question", "user_query", "Query", "messages"])
def test_two_that_could_be_right_are_an_error_with_the_key_that_decides(asked: str, one: str, other: str) -> None:
    row = {asked: [{"role": "user", "content": "?"}] if asked == "messages" else "?", one: "a", other: "b"}
    with pytest.raises(AmbiguousTruth) as refused:
        sample_of(row)
    first, second = refused.value.candidates
    assert {first, second} == {one, other}
    assert f"{first!r} or {second!r}" in str(refused.value)
    assert f"`dataset.column_mapping={{ground_truth: {first}}}`" in str(refused.value)
    mapped = DatasetConfig(path_or_name="rows", column_mapping={"ground_truth": other})
    (sample,) = samples_from_rows([row], settings=mapped)
    assert sample.ground_truth == "b"
    assert sample_of({**row, other: "a"}).ground_truth == "a", "the same twice is no conflict"


@pytest.mark.parametrize("name", CANDIDATES)
def test_the_column_of_the_answers_is_never_what_is_right(name: str) -> None:
    row = {"prompt": "?", name: "an answer", "ground_truth_for_eval" if name == "answer" else "answer": "right"}
    (rollout,) = RowReader(response_column=name).rollouts(row)
    assert (rollout.turns[-1].text, rollout.sample.ground_truth) == ("an answer", "right")
    assert RowReader(response_column=name).sample(row).ground_truth == "right"


def test_columns_that_differ_in_capitals_only_are_candidates_like_others() -> None:
    with pytest.raises(AmbiguousTruth, match="'Answer' or 'ANSWER'"):
        sample_of({"prompt": "?", "Answer": "4", "ANSWER": "5"})
    assert sample_of({"prompt": "?", "answer": "4", "ANSWER": "5"}).ground_truth == "4"
    with pytest.raises(BadRow, match="unclear what is asked: 'Question' or 'QUESTION'"):
        sample_of({"Question": "a", "QUESTION": "b"})


def test_only_the_standard_format_asks_no_other_column() -> None:
    row = {"prompt": "?", "answer": "4", "solution": "5"}
    assert RowReader("standard").sample(row).ground_truth is None
    with pytest.raises(BadRow):
        RowReader("standard").sample({"Prompt": "?"})


def test_a_sample_is_not_read_a_second_time() -> None:
    sample = Sample(id="a", messages=[Message(role="user", content="?")], columns={"answer": "4", "solution": "5"})
    (again,) = samples_from_rows([sample])
    assert meaning(again) == meaning(sample)


def test_the_answers_of_a_row_are_in_their_order() -> None:
    rollouts = rollouts_of({"prompt": "?", "answer": "4", "assistant_response": ["a", "b"]})
    assert [(one.response_index, one.turns[-1].text) for one in rollouts] == [(0, "a"), (1, "b")]
    (numbered,) = rollouts_of({"prompt": "?", "assistant_response": "a", "response_index": 3})
    assert numbered.response_index == 3


@settings(max_examples=400)
@given(cases())
def test_the_short_way_of_trainers_rows_ends_where_the_long_one_does(case: Case) -> None:
    def sample_in(row: dict[str, Any]) -> Any:
        return outcome(lambda: [RowReader().sample(row)])

    read = sample_in(case.row)
    if case.unclear or case.ends_with_answer or "conversations" in case.row or "category" in case.row:
        return
    asked = RowReader().sample(case.row).messages
    row = copy.deepcopy(case.row)
    assert outcome(lambda: [RowReader().sample_as_it_is(row, asked)]) == read
    assert row == case.row
