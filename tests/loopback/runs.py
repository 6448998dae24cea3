# SPDX-License-Identifier: Apache-2.0
"""Whole runs in a few words: a dataset and a config in a directory, and what the run left there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from reward_kit.models import Sample
from reward_kit.storage.large_parts import whole_row
from reward_kit.storage.samples import SAMPLES, Samples
from reward_kit.utils.checksums import sealed_document, sealed_line, unsealed

REWARDS = Path(__file__).with_name("rewards.py")

Key = tuple[str, int]


def questions(count: int, form: str = "What is {}?") -> list[dict[str, Any]]:
    """Rows s0, s1, …"""
    return [
        {"id": f"s{i}", "user_query": form.format(i), "ground_truth_for_eval": str(i), "level": i % 3}
        for i in range(count)
    ]


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows))
    return path


def config(
    home: Path, api_base: str | None = None, *, rows: Sequence[Mapping[str, Any]] | None = None, reward: str = "quick",
    **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """A config whose files are all under `home`. Settings are dotted paths with `__` for the dot."""
    dataset = home / "dataset.jsonl"
    if rows is not None or not dataset.exists():
        write_rows(dataset, rows if rows is not None else questions(4))
    values: dict[str, Any] = {
        "dataset": {"path_or_name": str(dataset)},
        "generation": {
            "model_name": "mock" if api_base is None else "m",
            "api_base": api_base,
            "seed": 1,
            "cache": {"enabled": False, "cache_dir": str(home / "cache")},
            "api_params": {"max_concurrent_requests": 4},
        },
        "reward": {"function_path": f"{REWARDS}:{reward}", "workers": 1},
        "output": {"output_dir": str(home / "run")},
    }
    for path, value in settings.items():
        *parents, last = path.split("__")
        part = values
        for name in parents:
            part = part.setdefault(name, {})
        part[last] = value
    return values


def lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file, each of which must be whole, with what they name of their samples."""
    content = path.read_bytes()
    assert content.endswith(b"\n") or not content
    samples = Samples(path.with_name(SAMPLES), read_only=True)
    return [whole_row(orjson.loads(line), samples) for line in content.splitlines()]


def put_samples_inside(run: Path) -> None:
    """Make of a run directory what it was when each line of rollouts held its sample."""
    samples = Samples(run / SAMPLES, read_only=True)
    content = b""
    for line in (run / "rollouts.jsonl").read_bytes().splitlines(keepends=True):
        start = line.index(b'"sample":"')
        name = line[start + 10 : start + 42]
        sample = Sample.model_validate_json(samples.line(name)).model_dump_json(exclude_none=True).encode()
        body = unsealed(line).replace(b'{"schema":3', b'{"schema":2', 1)
        content += sealed_line(body[:start] + b'"sample":' + sample + body[start + 43 :])
    (run / SAMPLES).unlink()
    manifest = orjson.loads((run / "manifest.json").read_bytes())
    del manifest["holds"][SAMPLES]
    (run / "manifest.json").write_bytes(sealed_document(manifest))
    (run / "rollouts.jsonl").write_bytes(content)


def keys(rows: Iterable[Mapping[str, Any]]) -> list[Key]:
    return [(row["id"], row["response_index"]) for row in rows]


def results(home: Path, run: str = "run") -> dict[Key, dict[str, Any]]:
    """The result rows by key, of which there must be one each."""
    rows = lines(home / run / "results.jsonl")
    by_key = dict(zip(keys(rows), rows, strict=True))
    assert len(by_key) == len(rows), "a key occurs twice"
    return by_key


JUDGED = (
    "user_query", "system_prompt", "messages", "assistant_response", "ground_truth_for_eval", "evaluation_score",
    "evaluation_reason", "evaluation_metrics", "is_score_valid", "error", "model", "finish_reason", "split", "columns",
)  # fmt: skip
"""The columns that a run must bring out the same however often it was interrupted."""


def judged(rows: Mapping[Key, Mapping[str, Any]]) -> dict[Key, dict[str, Any]]:
    """The rows without what differs from one run to the next: times, costs, and what came from the cache."""
    return {key: {name: row.get(name) for name in JUDGED} for key, row in rows.items()}
