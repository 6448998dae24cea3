# SPDX-License-Identifier: Apache-2.0
"""Test cases of a reward: answers of which a person said whether they pass, one per line of a JSON file.

    {"messages": [{"role": "user", "content": "6 x 12?"}, {"role": "assistant", "content": "72"}],
     "ground_truth": "72", "expect": "pass"}

    messages      the conversation, the answer last; or `prompt` and `answer` as texts
    expect        "pass" or "fail": what the reward should come to
    ground_truth  what the reward compares the answer with        columns    what else it is handed, by name
    ground_truth_text   how its dataset writes it, where that is a number and this line may write it otherwise
    threshold     the score from which on an answer passes; 1 unless it is given
    id, response_index, split, tools, note, was, reviewer         for people; the reward may ask for some of them

`reward-kit review --export` writes such a file, and they are as easily written by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from reward_kit.config_models import JudgeConfig, RewardConfig, SandboxConfig
from reward_kit.datasets.rows import Written, as_written, text_of
from reward_kit.errors import DatasetError
from reward_kit.models import EvaluateResult, Message, Rollout, Sample, set_fields, split_off_answer
from reward_kit.scoring.rewards import Reward
from reward_kit.scoring.scorers import open_scorer
from reward_kit.storage.files import Draft
from reward_kit.storage.row_json import json_line
from reward_kit.utils import exact_json

__all__ = ["Case", "CaseOutcome", "case_of", "check_cases", "is_of_reviews", "read_cases", "write_cases"]

Expected = Literal["pass", "fail"]
_KNOWN = frozenset({
    "answer", "columns", "expect", "ground_truth", "ground_truth_text", "id", "messages", "note", "prompt",
    "response_index", "reviewer", "split", "threshold", "tools", "was",
})  # fmt: skip
_OF_REVIEWS = frozenset({"expect", "id", "messages", "response_index", "reviewer", "was"})
"""What every case has that was made of a review."""


@dataclass(frozen=True, slots=True)
class Case:
    """An answer, and whether it should pass."""

    rollout: Rollout
    expect: Expected
    threshold: float | None = None
    """None: as the caller says."""
    note: str = ""
    was: Mapping[str, Any] = field(default_factory=dict)
    """The verdict that a person looked at: score, passed, reason."""
    reviewer: str = ""

    @property
    def name(self) -> str:
        """How it is called in a list."""
        return f"{self.rollout.sample.id}#{self.rollout.response_index}"


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What became of a case."""

    case: Case
    state: Literal["as expected", "regressed", "failed", "error"]
    """Where the verdict is not as expected: `regressed` if it was once, as the case says in `was`; else `failed`."""
    score: float | None
    says: str
    """The reward's reason, or what went wrong."""

    def as_dict(self) -> dict[str, Any]:
        """The outcome as plain values, for JSON."""
        return {
            "id": self.case.rollout.sample.id, "response_index": self.case.rollout.response_index,
            "expect": self.case.expect, "state": self.state, "score": self.score, "says": self.says,
            "note": self.case.note,
        }  # fmt: skip


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def case_of(rollout: Rollout, expect: Expected, **more: Any) -> Case:
    """A case of a rollout that a person looked at."""
    return Case(rollout, expect, **more)


def write_cases(path: Path, cases: Sequence[Case]) -> None:
    """Write the cases, one per line; the file appears whole or not at all."""
    with Draft(path, advice="Name another file.") as draft:
        draft.write_all(json_line(_as_row(case)) for case in cases)


def is_of_reviews(path: Path) -> bool:
    """Whether every line of a file is a case that was made of a review, and none was written by hand."""
    with path.open("rb") as file:
        return all(map(_is_of_review, file))


def _is_of_review(line: bytes) -> bool:
    try:
        row = exact_json.loads(line)
    except exact_json.JSONDecodeError:
        return False
    return isinstance(row, dict) and _OF_REVIEWS <= row.keys() <= _KNOWN


def _as_row(case: Case) -> dict[str, Any]:
    sample = case.rollout.sample
    row = {
        "id": sample.id,
        "response_index": case.rollout.response_index,
        "messages": [set_fields(message) for message in case.rollout.messages],
        "ground_truth": sample.ground_truth,
        "ground_truth_text": sample.ground_truth_text,
        "columns": sample.columns,
        "split": sample.split,
        "tools": sample.tools,
        "expect": case.expect,
        "threshold": case.threshold,
        "note": case.note,
        "was": dict(case.was),
        "reviewer": case.reviewer,
    }
    return {name: value for name, value in row.items() if value not in (None, {}, "")}


def read_cases(path: Path) -> list[Case]:
    """The cases of a file. What is wrong with a line is said with its number."""
    cases = list(_read(path))
    if not cases:
        raise DatasetError(f"{str(path)!r} holds no cases. Write one per line, or name another file.")
    return cases


def _read(path: Path) -> Iterator[Case]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DatasetError(f"{str(path)!r} cannot be read ({error.strerror}). Name a file of cases.") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        which = f"Line {number} of {str(path)!r}"
        try:
            row, texts = exact_json.loads_with_texts(line)
        except exact_json.JSONDecodeError as error:
            raise DatasetError(f"{which} is not JSON: {error}. Write one case per line.") from error
        if not isinstance(row, dict):
            raise DatasetError(f"{which} is not an object. Write one case per line, between braces.")
        yield _case(row, number, which, as_written(texts))


def _case(row: Mapping[str, Any], number: int, which: str, written: Written) -> Case:
    if unknown := sorted(row.keys() - _KNOWN):
        raise DatasetError(f"{which} has an unknown key {unknown[0]!r}. Expected: {', '.join(sorted(_KNOWN))}.")
    if (expect := row.get("expect")) not in ("pass", "fail"):
        raise DatasetError(f'{which} has the expectation {expect!r}. Write "expect": "pass" or "fail".')
    threshold = row.get("threshold")
    if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, int | float)):
        raise DatasetError(f"{which} has the threshold {threshold!r}. Write a number, or leave it out.")
    try:
        rollout = _rollout(row, number, written)
    except ValueError as error:  # pydantic's is one
        raise DatasetError(
            f"{which} holds no conversation that ends in an answer ({_short(error)}). {_SHAPE}"
        ) from error
    was = row.get("was")
    return Case(
        rollout, expect, threshold, str(row.get("note") or ""), was if isinstance(was, dict) else {},
        str(row.get("reviewer") or ""),
    )  # fmt: skip


_SHAPE = "Give `messages` with the answer last, or `answer` as text."


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:160]


def _rollout(row: Mapping[str, Any], number: int, written: Written) -> Rollout:
    messages = row.get("messages")
    if messages is None:
        if not isinstance(row.get("answer"), str):
            raise ValueError("there is neither `messages` nor `answer`")
        messages = [
            {"role": "user", "content": row.get("prompt") or ""},
            {"role": "assistant", "content": row["answer"]},
        ]
    if not isinstance(messages, list) or not all(isinstance(turn, dict) and "role" in turn for turn in messages):
        raise ValueError("`messages` is not a list of messages with roles")
    prompt, turns = split_off_answer([Message.model_validate(turn) for turn in messages])
    if not turns:
        raise ValueError("nothing is answered to the last question")
    sample = Sample(
        id=str(row.get("id") or f"case-{number}"),
        messages=prompt,
        ground_truth=row.get("ground_truth"),
        ground_truth_text=row.get("ground_truth_text") or text_of(row.get("ground_truth"), written),
        split=row.get("split"),
        columns=row.get("columns") or {},
        tools=row.get("tools"),
    )
    return Rollout(
        sample=sample,
        response_index=int(row.get("response_index") or 0),
        turns=turns,
    )


def _was_as_expected(case: Case) -> bool:
    """Whether the verdict that a person looked at was the expected one. A case written by hand has no such verdict."""
    passed = case.was.get("passed")
    return isinstance(passed, bool) and passed is (case.expect == "pass")


# ── judging ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def check_cases(
    cases: Sequence[Case],
    config: RewardConfig,
    sandbox: SandboxConfig = SandboxConfig(),  # noqa: B008 - frozen
    judge: JudgeConfig = JudgeConfig(),  # noqa: B008 - frozen
) -> list[CaseOutcome]:
    """Have the reward judge every case, in worker processes or sandboxes as in a run; in the order of the cases.

    A reward that judges groups is given each answer as a group of one.
    """
    reward = Reward(config)
    async with open_scorer(reward, None, sandbox, judge, at_hand=len(cases)) as scorer:
        places = asyncio.Semaphore(scorer.concurrency)

        async def outcome(case: Case) -> CaseOutcome:
            async with places:
                (verdict,) = await scorer.score([case.rollout])
            if not isinstance(verdict, EvaluateResult):
                return CaseOutcome(case, "error", None, f"{verdict.type}: {verdict.message}")
            threshold = config.pass_threshold if case.threshold is None else case.threshold
            as_expected = (verdict.score >= threshold) is (case.expect == "pass")
            wrong: Literal["regressed", "failed"] = "regressed" if _was_as_expected(case) else "failed"
            return CaseOutcome(case, "as expected" if as_expected else wrong, verdict.score, verdict.reason or "")

        return list(await asyncio.gather(*map(outcome, cases)))
