# SPDX-License-Identifier: Apache-2.0
"""One table says how results are spelled: every line that is written fits it, and every reader goes by it."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from reward_kit.storage.thresholds import Thresholds
from reward_kit.storage.vocabularies import (
    BEST_OF_N,
    FIGURES,
    RUN,
    SHELL,
    TEXTS,
    ColumnNames,
    find_columns,
    plain_names,
    verdict_of,
    vocabulary_of,
)

GOLDEN = Path(__file__).parents[1] / "golden"
DIRECTORIES = [("run", RUN), ("best_of_n/table.run", BEST_OF_N), ("shell", SHELL), ("shell_foreign", SHELL)]


@pytest.mark.parametrize(("directory", "words"), DIRECTORIES)
def test_every_line_fits_its_vocabulary(directory: str, words: ColumnNames) -> None:
    lines = [orjson.loads(line) for line in (GOLDEN / directory / "results.jsonl").read_bytes().splitlines()]
    assert lines
    for line in lines:
        assert vocabulary_of(line) is words
        assert {words.query, words.ground_truth, words.response} <= line.keys()
        if not words.holds_any_column:
            assert line.keys() <= words.columns()
        verdict = verdict_of(line, Thresholds())
        assert (verdict.is_verified is None) is (verdict.score is None) is (line["status"] != "ok")


def test_a_column_of_the_dataset_does_not_change_the_vocabulary_of_a_shell_line() -> None:
    assert vocabulary_of({SHELL.is_verified: None, RUN.query: "?", RUN.score: 1.0}) is SHELL


def test_the_threshold_of_the_split_decides_and_a_score_that_is_not_valid_is_no_verdict() -> None:
    thresholds = Thresholds(1.0, {"easy": 0.5})
    line = {RUN.query: "?", RUN.score: 0.5, RUN.score_is_valid: True}
    assert verdict_of(line, thresholds) == (0.5, False)
    assert verdict_of(line | {"split": "easy"}, thresholds) == (0.5, True)
    assert verdict_of(line | {RUN.score_is_valid: False}, thresholds) == (None, None)
    assert verdict_of({SHELL.is_verified: True}, thresholds) == (1.0, True)


def test_our_own_names_come_before_those_of_others() -> None:
    present = {"question", RUN.query, SHELL.response, "answer", BEST_OF_N.score, "verification_score"}
    assert find_columns(TEXTS, present) == {"query": RUN.query, "response": SHELL.response}
    assert find_columns(FIGURES, present) == {"score": BEST_OF_N.score}


def test_a_conversation_does_not_pass_for_the_answer_in_it() -> None:
    assert "output_messages" in TEXTS["response"] and "output_messages" not in plain_names("response")
    assert "messages" not in plain_names("query") and plain_names("reasoning") == ("reasoning",)


def test_no_other_module_spells_out_what_a_vocabulary_calls_a_verdict() -> None:
    package = Path(__file__).parents[2] / "reward_kit"
    telling = {RUN.score, RUN.verification_reason, RUN.metrics, RUN.ground_truth, SHELL.is_verified}
    found = [
        (path.name, name)
        for room in ("storage", "analysis", "execution", "scoring")
        for path in (package / room).rglob("*.py")
        for name in telling
        if f'"{name}"' in path.read_text()
    ]
    assert {path for path, _ in found} == {"vocabularies.py"}
