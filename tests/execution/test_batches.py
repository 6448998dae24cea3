# SPDX-License-Identifier: Apache-2.0
"""Runs whose answers come by batches, against a provider on this machine that can fail at every step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import ConfigError, EndpointError
from reward_kit.execution.pipeline import EvaluationPipeline
from tests.loopback.batches import KEY, Provider, serving
from tests.loopback.runs import config, judged, lines, questions, results


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCH_KEY", KEY)


def by_batches(home: Path, base: str, *, count: int = 7, n: int = 3, **settings: Any) -> EvaluationPipeline:
    home.mkdir(parents=True, exist_ok=True)
    values = config(
        home, base, rows=questions(count), generation__transport="batch", generation__n=n,
        generation__api_key_env="BATCH_KEY", generation__batch={"poll_seconds": 0.01},
        generation__api_params={"max_retries": 3}, generation__price={"input": 2.0, "output": 4.0},
    )  # fmt: skip
    for path, value in settings.items():
        if path == "detach":
            continue
        part = values
        *parents, last = path.split("__")
        for name in parents:
            part = part.setdefault(name, {})
        part[last] = value
    return EvaluationPipeline(values, detach=bool(settings.get("detach")))


def online(home: Path, base: str, **more: Any) -> dict[Any, Any]:
    """The judged rows of an ordinary run, one request per answer."""
    values = config(
        home, base, rows=questions(more.get("count", 7)), generation__n=more.get("n", 3), generation__n_mode="fanout",
    )  # fmt: skip
    values["output"]["output_dir"] = str(home / "online")
    EvaluationPipeline(values).run()
    return judged(results(home, "online"))


def paid_once(provider: Provider) -> bool:
    return set(provider.answered.values()) == {1}


def test_a_run_by_batches_has_the_answers_of_one_online(tmp_path: Path) -> None:
    provider = Provider(polls=3)
    with serving(provider) as base:
        result = by_batches(tmp_path, base, generation__batch={"max_requests": 5, "poll_seconds": 0.01}).run()
        expected = online(tmp_path, base)
    assert result.status == "finished"
    assert judged(results(tmp_path)) == expected
    assert provider.complaints == []
    assert len(provider.batches) == 5  # 21 requests, 5 at a time
    assert paid_once(provider)
    rows = results(tmp_path)
    assert {row["cost"] for row in rows.values()} == {(10 * 1.0 + 20 * 2.0) / 1e6}
    assert not (tmp_path / "run/batches").exists()
    events = [line["event"] for line in lines(tmp_path / "run/batches.jsonl")]
    assert events.count("absorbed") == 5


def test_it_is_refused_where_it_cannot_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="answers in this process"):
        by_batches(tmp_path, "http://127.0.0.1:1/v1", generation__model_name="mock", generation__api_base=None)
    with pytest.raises(ConfigError, match="waits for each answer"):
        by_batches(tmp_path, "http://127.0.0.1:1/v1", agent={"sandbox_tools": ["bash"]})
    with pytest.raises(ConfigError, match="n_mode"):
        by_batches(tmp_path, "http://127.0.0.1:1/v1", generation__n_mode="native")
    assert EndpointError
