# SPDX-License-Identifier: Apache-2.0
"""Training data from judged answers: the right rows, each once, and none from what nobody judged."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reward_kit.storage.candidates import Candidate, Query
from reward_kit.storage.training_rows import SHAPES, Export, training_rows

PROMPT = [{"role": "user", "content": "1 + 1?"}]


def candidate(
    number: int, text: str, verified: bool | None, score: float | None = None, reasoning: str | None = None
) -> Any:
    told = score if score is not None or verified is None else float(verified)
    return Candidate(number, [{"role": "assistant", "content": text}], reasoning, told, verified)


def query(*candidates: Candidate, name: str = "q", prompt: Any = None, split: str = "math") -> Query:
    return Query(name, split, prompt or PROMPT, None, "2", list(candidates))


MIXED = query(
    candidate(0, "wrong", False), candidate(1, "two", True), candidate(2, "2", True, 2.0), candidate(3, "?", None),
    candidate(4, "two", True), candidate(5, "never", False, -1.0),
)  # fmt: skip


def made(shape: Any, *queries: Query, **wanted: Any) -> tuple[list[dict[str, Any]], Counter[str]]:
    counts: Counter[str] = Counter()
    return list(training_rows(queries or [MIXED], Export(shape, **wanted), counts)), counts


def text(turns: list[dict[str, Any]]) -> str:
    return str(turns[-1]["content"])


def test_sft_takes_the_best_verified_answer_or_all_of_them() -> None:
    (best,), _ = made("sft")
    assert best["messages"] == [*PROMPT, {"role": "assistant", "content": "2"}]
    assert (best["query_id"], best["split"]) == ("q", "math")
    rows, counts = made("sft", pick="all")
    assert [text(row["messages"]) for row in rows] == ["2", "two"]
    assert (counts["rows"], counts["duplicates"], counts["not judged"]) == (2, 1, 1)
    _, counts = made("sft", query(candidate(0, "x", False)))
    assert counts["queries without a verified answer"] == 1


def test_pairs_are_verified_against_refused_with_their_margin() -> None:
    (row,), _ = made("preference")
    assert (text(row["chosen"]), text(row["rejected"]), row["margin"]) == ("2", "never", 3.0)
    assert row["prompt"] == PROMPT and len(row["chosen"]) == 1
    rows, counts = made("preference", max_pairs=None)
    assert {(text(row["chosen"]), text(row["rejected"])) for row in rows} == {
        (chosen, rejected) for chosen in ("2", "two") for rejected in ("wrong", "never")
    }
    assert counts["duplicates"] == 2
    rows, counts = made("preference", max_pairs=None, min_margin=2.0)
    assert [row["margin"] for row in rows] == [3.0, 2.0, 2.0] and counts["pairs below the margin"] == 2
    _, counts = made("preference", query(candidate(0, "x", True), candidate(1, "y", None)))
    assert counts["queries without both a verified and a refused answer"] == 1


def test_the_first_pairs_are_of_different_answers() -> None:
    several = query(
        *[candidate(n, f"yes{n}", True) for n in range(2)], *[candidate(n, f"no{n}", False) for n in range(2, 4)]
    )
    rows, _ = made("preference", several, max_pairs=2)
    assert len({text(row["chosen"]) for row in rows}) == len({text(row["rejected"]) for row in rows}) == 2


def test_an_answer_is_never_preferred_to_itself() -> None:
    rows, counts = made("preference", query(candidate(0, "same", True), candidate(1, "same", False)))
    assert not rows and counts["pairs of equal answers"] == 1


def test_rm_rows_are_whole_conversations() -> None:
    (row,), _ = made("rm")
    assert row["chosen"][:-1] == row["rejected"][:-1] == PROMPT and row["margin"] == 3.0 and "prompt" not in row


def test_kto_rows_have_a_label_and_unjudged_answers_have_none() -> None:
    rows, counts = made("kto")
    assert [(text(row["completion"]), row["label"]) for row in rows] == [
        ("wrong", False), ("two", True), ("2", True), ("never", False),
    ]  # fmt: skip
    assert counts["duplicates"] == 1


def test_grpo_prompts_are_chosen_by_difficulty() -> None:
    (row,), _ = made("grpo")
    assert (row["prompt"], row["ground_truth"], row["pass_rate"], row["num_candidates"]) == (PROMPT, "2", 0.6, 5)
    rows, counts = made("grpo", max_pass_rate=0.5)
    assert not rows and counts["queries outside the pass rates"] == 1
    _, counts = made("grpo", query(candidate(0, "x", None)))
    assert counts["queries without a verdict"] == 1
    rows, counts = made("grpo", MIXED, MIXED._replace(id="again"))
    assert len(rows) == 1 and counts["duplicates"] == 1


def test_reasoning_is_left_out_put_into_tags_or_into_a_field() -> None:
    thoughtful = query(candidate(0, "2", True, reasoning="Add."))
    answers = {how: made("sft", thoughtful, reasoning=how)[0][0]["messages"][-1] for how in ("drop", "inline", "field")}
    assert answers["drop"] == {"role": "assistant", "content": "2"}
    assert answers["inline"]["content"] == "<think>\nAdd.\n</think>\n\n2"
    assert answers["field"] == {"role": "assistant", "content": "2", "reasoning_content": "Add."}


def test_splits_can_be_chosen_and_tools_come_along() -> None:
    other = MIXED._replace(id="o", split="code", tools='[{"type": "function"}]')
    rows, counts = made("sft", MIXED, other, splits=frozenset({"code"}), with_tools=True)
    assert [row["tools"] for row in rows] == ['[{"type": "function"}]'] and counts["queries"] == 1


verdicts = st.tuples(st.sampled_from(["a", "b", "c"]), st.none() | st.booleans())


@given(st.lists(st.lists(verdicts, max_size=5), max_size=4), st.sampled_from(sorted(SHAPES)))
def test_no_row_comes_twice_and_none_is_made_of_what_nobody_judged(given_: Any, shape: Any) -> None:
    queries = [
        query(
            *[candidate(n, f"{said}{verified}", verified) for n, (said, verified) in enumerate(told)], name=f"q{number}"
        )
        for number, told in enumerate(given_)
    ]
    rows, counts = made(shape, *queries, max_pairs=None, pick="all")
    stripped = [str({name: row[name] for name in row if name not in ("query_id", "split")}) for row in rows]
    assert len(set(stripped)) == len(stripped) == counts["rows"]
    assert "None" not in "".join(str(row.get(name, "")) for row in rows for name in ("messages", "chosen", "rejected"))
