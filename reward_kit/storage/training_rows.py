# SPDX-License-Identifier: Apache-2.0
"""Judged answers as training data, in the shapes that TRL's trainers read.

| shape | one row | trainer |
|---|---|---|
| `sft` | messages | SFTTrainer |
| `preference` | prompt, chosen, rejected, margin | DPOTrainer, RewardTrainer |
| `rm` | chosen, rejected (whole conversations), margin | RewardTrainer |
| `kto` | prompt, completion, label | KTOTrainer |
| `grpo` | prompt, ground_truth, pass_rate | GRPOTrainer, RLOOTrainer |
| `fireworks` | messages (the prompt), ground_truth, pass_rate | reinforcement fine-tuning at Fireworks |

An answer that was not judged is neither right nor wrong, and goes into none of them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from reward_kit.storage.candidates import Candidate, Query
from reward_kit.storage.judged import Turns
from reward_kit.utils import exact_json
from reward_kit.utils.digest_map import DigestMap

__all__ = ["SHAPES", "Export", "Shape", "training_rows"]

Shape = Literal["sft", "preference", "rm", "kto", "grpo", "fireworks"]
"""What the rows are for."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Export:
    """What is wanted of the judged answers."""

    shape: Shape
    pick: Literal["best", "all"] = "best"
    """sft: the best verified answer of a query, or all of them."""
    max_pairs: int | None = 1
    """preference, rm: pairs per query, at most."""
    min_margin: float = 0.0
    """preference, rm: by how much the chosen answer's score must exceed the rejected one's."""
    min_pass_rate: float = 0.0
    max_pass_rate: float = 1.0
    """grpo, fireworks: queries whose share of verified answers lies in here."""
    reasoning: Literal["drop", "inline", "field"] = "drop"
    """Leave reasoning out; put it before the answer in <think> tags; or as the field `reasoning_content`."""
    splits: frozenset[str] = frozenset()
    """Only these, where some are named."""
    with_tools: bool = False
    """Give every row a column `tools`."""


def training_rows(queries: Iterable[Query], export: Export, counts: Counter[str]) -> Iterator[Row]:
    """The rows, each once. `counts` is filled with what was read, what became of it, and why."""
    rows_of = SHAPES[export.shape]
    seen = DigestMap()
    for query in queries:
        if export.splits and query.split not in export.splits:
            continue
        counts["queries"] += 1
        counts["candidates"] += len(query.candidates)
        counts["not judged"] += len(query.candidates) - len(query.judged)
        for row in rows_of(query, export, counts):
            key = _digest(row)
            if seen.get(key) >= 0:
                counts["duplicates"] += 1
                continue
            seen.put(key, 1)
            counts["rows"] += 1
            yield row | _provenance(query, export)


def _digest(row: Row) -> int:
    """Of the turns alone: the same answer to the same prompt is the same, whoever gave it and whatever its score."""
    turns = [value for value in row.values() if isinstance(value, list)]
    return int.from_bytes(hashlib.blake2b(exact_json.dumps(turns), digest_size=8).digest(), "big") >> 1


def _provenance(query: Query, export: Export) -> Row:
    row: Row = {"query_id": query.id, "split": query.split}
    return row | {"tools": query.tools} if export.with_tools else row


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _sft(query: Query, export: Export, counts: Counter[str]) -> Iterator[Row]:
    verified, _ = _told_apart(query)
    if not verified:
        counts["queries without a verified answer"] += 1
    for candidate in verified[:1] if export.pick == "best" else verified:
        yield {"messages": [*query.prompt, *_answer(candidate, export)]}


def _preference(query: Query, export: Export, counts: Counter[str]) -> Iterator[Row]:
    for chosen, rejected, margin in _pairs(query, export, counts):
        yield {"prompt": query.prompt, "chosen": chosen, "rejected": rejected, "margin": margin}


def _rm(query: Query, export: Export, counts: Counter[str]) -> Iterator[Row]:
    for chosen, rejected, margin in _pairs(query, export, counts):
        yield {"chosen": [*query.prompt, *chosen], "rejected": [*query.prompt, *rejected], "margin": margin}


def _kto(query: Query, export: Export, counts: Counter[str]) -> Iterator[Row]:
    for candidate in query.judged:
        yield {"prompt": query.prompt, "completion": _answer(candidate, export), "label": bool(candidate.is_verified)}


def _grpo(query: Query, export: Export, counts: Counter[str]) -> Iterator[Row]:
    judged = query.judged
    if not judged:
        counts["queries without a verdict"] += 1
        return
    rate = sum(bool(candidate.is_verified) for candidate in judged) / len(judged)
    if not export.min_pass_rate <= rate <= export.max_pass_rate:
        counts["queries outside the pass rates"] += 1
        return
    yield {
        "prompt": query.prompt, "ground_truth": query.ground_truth, "pass_rate": rate, "num_candidates": len(judged)
    }  # fmt: skip


def _fireworks(query: Query, export: Export, counts: Counter[str]) -> Iterator[Row]:
    """The rows of `grpo`, under the name that Fireworks looks for."""
    for row in _grpo(query, export, counts):
        yield {"messages": row.pop("prompt"), **row}


SHAPES: dict[Shape, Callable[[Query, Export, Counter[str]], Iterator[Row]]] = {
    "sft": _sft,
    "preference": _preference,
    "rm": _rm,
    "kto": _kto,
    "grpo": _grpo,
    "fireworks": _fireworks,
}
"""What makes the rows of each shape."""


def _told_apart(query: Query) -> tuple[list[Candidate], list[Candidate]]:
    """The verified answers, best first, and the refused ones, worst first."""
    verified = [candidate for candidate in query.judged if candidate.is_verified]
    refused = [candidate for candidate in query.judged if not candidate.is_verified]
    verified.sort(key=lambda candidate: (-_score(candidate), candidate.candidate_idx))
    refused.sort(key=lambda candidate: (_score(candidate), candidate.candidate_idx))
    return verified, refused


def _pairs(query: Query, export: Export, counts: Counter[str]) -> Iterator[tuple[Turns, Turns, float]]:
    """Pairs of a verified and a refused answer; no answer is used twice until all were used."""
    verified, refused = _told_apart(query)
    if not verified or not refused:
        counts["queries without both a verified and a refused answer"] += 1
        return
    made = 0
    for shift in range(len(refused)):
        for place, chosen in enumerate(verified):
            rejected = refused[(place + shift) % len(refused)]
            margin = _score(chosen) - _score(rejected)
            answers = _answer(chosen, export), _answer(rejected, export)
            if margin < export.min_margin:
                counts["pairs below the margin"] += 1
                continue
            if answers[0] == answers[1]:
                counts["pairs of equal answers"] += 1
                continue
            yield *answers, margin
            made += 1
            if made == export.max_pairs:
                return


def _score(candidate: Candidate) -> float:
    return float(bool(candidate.is_verified)) if candidate.score is None else candidate.score


def _answer(candidate: Candidate, export: Export) -> Turns:
    """The answer's turns, with its reasoning where and how it is wanted."""
    if candidate.reasoning is None or export.reasoning == "drop":
        return candidate.turns
    *before, last = candidate.turns
    if export.reasoning == "field":
        return [*before, last | {"reasoning_content": candidate.reasoning}]
    return [*before, last | {"content": f"<think>\n{candidate.reasoning}\n</think>\n\n{last['content'] or ''}"}]
