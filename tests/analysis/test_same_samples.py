# SPDX-License-Identifier: Apache-2.0
"""Two runs are paired on samples that are the same: others of the same id are counted, said, left out."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.analysis import Pairing, RunComparison, as_markdown, compare, load
from reward_kit.analysis.present.conclusions import comparison_conclusion
from reward_kit.datasets import content_digest
from reward_kit.models import Message, Sample
from tests.analysis.experiments import table_of, write

Row = dict[str, Any]


def sample(
    question: str = "2 + 3?",
    truth: Any = "5",
    system: str | None = None,
    columns: Mapping[str, Any] | None = None,
) -> Row:
    return {"question": question, "truth": truth, "system": system, "columns": dict(columns or {})}


def turns(asked: Row) -> list[Row]:
    system = [{"role": "system", "content": asked["system"]}] if asked["system"] else []
    return [*system, {"role": "user", "content": asked["question"]}]


def line_of_run(name: str, index: int, score: float | None, asked: Row, *, digest: bool) -> Row:
    """A line as `reward-kit run` writes it."""
    messages = turns(asked)
    whole = Sample(
        id=name,
        messages=[Message.model_validate(turn) for turn in messages],
        ground_truth=asked["truth"],
        columns=asked["columns"],
    )
    return {
        "id": name, "response_index": index, "user_query": asked["question"], "system_prompt": asked["system"],
        "messages": [*messages, {"role": "assistant", "content": f"{score}"}], "assistant_response": f"{score}",
        "ground_truth_for_eval": asked["truth"], "evaluation_score": score, "is_score_valid": score is not None,
        "evaluation_metrics": {}, "status": "ok", "cost": None, "split": None, "columns": asked["columns"],
        **({"content": content_digest(whole)} if digest else {}),
    }  # fmt: skip


def run(
    path: Path, samples: Mapping[str, Row], scores: Mapping[str, list[float | None]] | None = None, *,
    digest: bool = True, reward: Mapping[str, Any] | None = None,
) -> Path:  # fmt: skip
    held = scores or {}
    lines = [
        line_of_run(name, index, score, asked, digest=digest)
        for name, asked in samples.items()
        for index, score in enumerate(held.get(name, [1.0, 0.0]))
    ]
    path.mkdir(parents=True, exist_ok=True)
    (path / "results.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    if reward is not None:
        settings = {"digest": f"{hash(str(reward)):x}", "settings": dict(reward)}
        (path / "manifest.json").write_bytes(orjson.dumps({"digests": {"results": settings}}))
    return path


def table(path: Path, samples: Mapping[str, Row], *, own: bool = True) -> Path:
    """A Parquet of `best-of-n`; or, not our own, of a program that knows a query and its truth."""
    rows = []
    for name, asked in samples.items():
        truth = asked["truth"] if isinstance(asked["truth"], str) else json.dumps(asked["truth"])
        for index in range(2):
            row = {"query_id": name, "candidate_idx": index, "is_verified": index == 0, "query": asked["question"],
                   "ground_truth": truth}  # fmt: skip
            if own:
                columns = json.dumps(asked["columns"]) if asked["columns"] else None
                row |= {"messages": json.dumps(turns(asked)), "tools": None, "columns": columns}
            rows.append(row)
    return write(path, table_of(rows))


def pairing(found: RunComparison) -> Pairing:
    (one,) = found.pairings
    return one


SAMPLES = {f"q{number}": sample(f"{number} + 1?", str(number + 1)) for number in range(60)}
KINDS: dict[str, tuple[str, Row]] = {
    "question": ("another question", {"question": "7 - 1?"}),
    "truth": ("another ground truth", {"truth": "nobody knows"}),
    "column": ("other columns", {"columns": {"setup": "mkdir a"}}),
}
WRITERS = {
    "digest": lambda path, samples: run(path / "run", samples),
    "no digest": lambda path, samples: run(path / "run", samples, digest=False),
    "table": lambda path, samples: table(path / "own.parquet", samples),
    "foreign": lambda path, samples: table(path / "foreign.parquet", samples, own=False),
}


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (first, second, kind)
        for first in WRITERS
        for second in WRITERS
        for kind in KINDS
        if kind != "column" or "foreign" not in (first, second)  # such a table holds no columns of a dataset
    ],
)
def test_another_sample_under_the_same_id_is_counted_and_never_paired(
    tmp_path: Path, first: str, second: str, kind: str
) -> None:
    name, change = KINDS[kind]
    changed = {key: asked | change if key in ("q3", "q41") else asked for key, asked in SAMPLES.items()}
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    found = compare(WRITERS[first](tmp_path / "a", SAMPLES), WRITERS[second](tmp_path / "b", changed))
    one = pairing(found)
    assert (one.samples.shared, one.samples.same, dict(one.samples.changed)) == (60, 58, {name: 2})
    assert (one.common, one.only_baseline, one.only_other) == (58, 0, 0)
    assert all(figure.queries <= 58 for figure in one.differences)
    said = comparison_conclusion(found)[0]
    assert said.startswith("58 of 60 samples are the same in both; 2 have the same id but " + name), said


@pytest.mark.parametrize("first", WRITERS)
@pytest.mark.parametrize("second", WRITERS)
def test_the_same_samples_are_the_same_in_every_file(tmp_path: Path, first: str, second: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    samples = {key: asked | {"columns": {"level": 1, "tags": ["x"]}} for key, asked in SAMPLES.items()}
    samples |= {"n1": sample("how many?", 4), "n2": sample("which?", ["a", {"b": 1}]), "n3": sample("so?", True)}
    found = compare(WRITERS[first](tmp_path / "a", samples), WRITERS[second](tmp_path / "b", samples))
    one = pairing(found)
    assert (one.common, dict(one.samples.changed), one.samples.unchecked) == (63, {}, 0)
    assert comparison_conclusion(found)[0].startswith("No difference was seen")


@pytest.mark.parametrize("digest", [True, False])
def test_a_changed_system_prompt_alone_is_a_warning_and_still_a_pair(tmp_path: Path, digest: bool) -> None:
    other = {key: asked | {"system": "Be brief."} for key, asked in SAMPLES.items()}
    found = compare(run(tmp_path / "a", SAMPLES, digest=digest), run(tmp_path / "b", other, digest=digest))
    assert pairing(found).common == 60
    assert comparison_conclusion(found)[0] == (
        "60 of the 60 samples that are the same were asked with another system prompt or with other tools."
    )


def test_columns_of_stored_answers_may_describe_the_answers(tmp_path: Path) -> None:
    """A table of answers by each of two models: a column that names the model is no other question."""
    a, b = (
        run(tmp_path / name, {key: asked | {"columns": {"model": name}} for key, asked in SAMPLES.items()})
        for name in "ab"
    )
    assert pairing(compare(a, b)).common == 0, "a model was asked: columns belong to the question"
    for path in (a, b):
        settings = {"generation.enabled": False}
        (path / "manifest.json").write_bytes(orjson.dumps({"digests": {"rollouts": {"settings": settings}}}))
    found = compare(a, b)
    assert (pairing(found).common, pairing(found).samples.columns_differ) == (60, 60)
    assert comparison_conclusion(found)[0] == (
        "60 of the 60 samples that are the same differ in other columns ('model'), which may describe the answers."
    )


def test_where_no_sample_is_the_same_nothing_is_compared(tmp_path: Path) -> None:
    other = {key: sample(f"What is {key}?") for key in SAMPLES}
    found = compare(run(tmp_path / "a", SAMPLES), run(tmp_path / "b", other))
    one = pairing(found)
    assert (one.common, one.differences, one.flips, one.gained, one.lost) == (0, (), (), 0, 0)
    assert comparison_conclusion(found) == [
        "0 of 60 samples are the same in both; 60 have the same id but another question and are left out, so nothing "
        "can be compared."
    ]
    assert "p =" not in as_markdown(found)


def test_a_file_that_tells_nothing_of_its_samples_is_paired_by_id_and_that_is_said(tmp_path: Path) -> None:
    rows = [{"query_id": key, "is_verified": True} for key in SAMPLES]
    found = compare(run(tmp_path / "a", SAMPLES), table_of(rows))
    assert (pairing(found).common, pairing(found).samples.unchecked) == (60, 60)
    assert comparison_conclusion(found)[0].startswith("Of 60 samples only the id could be compared: one of the files")


def test_a_mended_label_keeps_its_id_and_is_another_sample(tmp_path: Path) -> None:
    """Also where one run holds answers to both."""
    mended = SAMPLES | {"q1": SAMPLES["q1"] | {"truth": "2.5"}}
    path = run(tmp_path / "b", mended)
    old = line_of_run("q1", 2, 0.0, SAMPLES["q1"], digest=True)
    (path / "results.jsonl").write_bytes((path / "results.jsonl").read_bytes() + orjson.dumps(old) + b"\n")
    found = compare(run(tmp_path / "a", SAMPLES), path)
    assert (pairing(found).common, dict(pairing(found).samples.changed)) == (59, {"answers to more than one sample": 1})


def test_of_many_runs_each_says_what_it_leaves_out(tmp_path: Path) -> None:
    others = [SAMPLES | {f"q{n}": sample("7 - 1?") for n in range(wrong)} for wrong in (0, 1, 2, 60)]
    found = compare(*(run(tmp_path / f"r{n}", each) for n, each in enumerate([SAMPLES, *others])))
    assert [one.common for one in found.pairings] == [60, 59, 58, 0]
    assert comparison_conclusion(found)[0] == (
        "Not all samples are the same as in r0: r2 (1 has the same id but another question and is left out); r3 (2 "
        "have the same id but another question and are left out); r4 (60 have the same id but another question and are "
        "left out, so nothing can be compared)."
    )


ASKED = st.builds(
    sample,
    question=st.sampled_from(["a?", "b?"]),
    truth=st.sampled_from(["1", "2", 1, None]),
    system=st.sampled_from([None, "Be brief."]),
    columns=st.sampled_from([{}, {"setup": "x"}, {"setup": "y"}]),
)


@given(
    left=st.dictionaries(st.sampled_from("stuvwxyz"), ASKED, min_size=1),
    right=st.dictionaries(st.sampled_from("stuvwxyz"), ASKED, min_size=1),
    digests=st.tuples(st.booleans(), st.booleans()),
)
def test_exactly_the_same_samples_are_paired(
    left: dict[str, Row], right: dict[str, Row], digests: tuple[bool, bool]
) -> None:
    def identity(asked: Row) -> str:
        truth = "" if asked["truth"] is None else str(asked["truth"])
        return json.dumps([asked["question"], truth, asked["columns"]])

    with TemporaryDirectory() as folder:
        a, b = (Path(folder) / name for name in "ab")
        found = pairing(compare(run(a, left, digest=digests[0]), run(b, right, digest=digests[1])))
    shared = left.keys() & right.keys()
    same = {name for name in shared if identity(left[name]) == identity(right[name])}
    assert (found.samples.shared, found.samples.same, found.common) == (len(shared), len(same), len(same))
    assert sum(found.samples.changed.values()) == len(shared) - len(same)
    assert found.samples.asked_differently == sum(left[name]["system"] != right[name]["system"] for name in same)
    assert (found.only_baseline, found.only_other) == (len(left) - len(shared), len(right) - len(shared))


# ── other rewards ────────────────────────────────────────────────────────────────────────────────────────────────────

REWARD = {"reward.function": "right", "reward.source": "aa", "reward.params": {}}
PREFERS = ("better", "worse")


@pytest.mark.parametrize("others", [1, 2, 4])
def test_no_run_is_better_than_one_that_another_reward_judged(tmp_path: Path, others: int) -> None:
    zeros: dict[str, list[float | None]] = {key: [0.0, 0.0] for key in SAMPLES}
    baseline = run(tmp_path / "a", SAMPLES, zeros, reward=REWARD)
    same = run(tmp_path / "same", SAMPLES, reward=REWARD)
    assert "same is better than a" in comparison_conclusion(compare(baseline, same))[0]
    changed = [
        run(tmp_path / f"b{n}", SAMPLES, reward=REWARD | {"reward.source": "bb", "reward.params": {"n": n}})
        for n in range(others)
    ]
    found = compare(baseline, *changed)
    assert all(one.judged_differently == ("reward.source", "reward.params") for one in found.pairings)
    said = " ".join(comparison_conclusion(found))
    assert not any(word in said + as_markdown(found) for word in PREFERS), said
    assert "judged by different rewards" in said or "Judged by another reward" in said


def test_the_reward_of_a_split_that_only_one_run_has_is_no_difference(tmp_path: Path) -> None:
    a, b = (run(tmp_path / name, SAMPLES, reward=REWARD | more) for name, more in
            (("a", {}), ("b", {"code.reward.source": "cc", "reward.params": {}})))  # fmt: skip
    lines = (b / "results.jsonl").read_bytes().splitlines()
    other = {**orjson.loads(lines[0]), "id": "elsewhere", "split": "code"}
    (a / "results.jsonl").write_bytes((a / "results.jsonl").read_bytes().replace(b'"split":null', b'"split":"math"'))
    math = b"\n".join(lines).replace(b'"split":null', b'"split":"math"') + b"\n"
    (b / "results.jsonl").write_bytes(math + orjson.dumps(other) + b"\n")
    found = pairing(compare(a, b))
    assert (found.common, found.judged_differently) == (60, ())


def test_another_threshold_is_another_reward_where_scores_are_graded(tmp_path: Path) -> None:
    scores: dict[str, list[float | None]] = {key: [0.6, 0.7] for key in SAMPLES}
    a, b = (run(tmp_path / name, SAMPLES, scores, reward=REWARD) for name in "ab")
    for path, limit in ((a, 0.65), (b, 0.5)):
        (path / "summary.json").write_bytes(orjson.dumps({"pass_threshold": limit}))
    assert pairing(compare(a, b)).judged_differently == ("reward.pass_threshold",)
    loaded = [load(path, pass_threshold=0.5) for path in (a, b)]
    assert pairing(compare(*loaded)).judged_differently == ()


JUDGED_BY = {"reward.function": "math_reward", "reward.source": "aa", "reward.params": {}}


def judged_table(path: Path, settings: Mapping[str, Any]) -> Path:
    """A table of `best-of-n`, whose splits have verifiers of their own."""
    named = {f"train.{name}": value for name, value in settings.items()} | {"reward.function": "unverified"}
    rows = [
        {"query_id": name, "candidate_idx": index, "split": "train", "is_verified": index == 0,
         "query": asked["question"], "ground_truth": asked["truth"], "messages": json.dumps(turns(asked)),
         "tools": None, "columns": None}
        for name, asked in SAMPLES.items() for index in range(2)
    ]  # fmt: skip
    said = {"digests": {"results": f"{hash(str(named)):x}"}, "judged_by": named}
    return write(path, table_of(rows).replace_schema_metadata({"run": json.dumps(said)}))


def judged_run(path: Path, settings: Mapping[str, Any]) -> Path:
    directory = run(path, SAMPLES, reward=settings)
    lines = (directory / "results.jsonl").read_bytes().replace(b'"split":null', b'"split":"train"')
    (directory / "results.jsonl").write_bytes(lines)
    return directory


@pytest.mark.parametrize(("one", "two"), [*itertools.product([judged_run, judged_table], repeat=2)])
def test_what_judged_is_compared_whatever_kind_of_file_tells_it(
    one: Callable[..., Path], two: Callable[..., Path], tmp_path: Path
) -> None:
    a, same = one(tmp_path / "a.parquet", JUDGED_BY), two(tmp_path / "b.parquet", JUDGED_BY)
    other = two(tmp_path / "c.parquet", JUDGED_BY | {"reward.source": "bb"})
    assert [each.judged_differently for each in compare(a, same, other).pairings] == [(), ("reward.source",)]
