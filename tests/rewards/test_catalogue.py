# SPDX-License-Identifier: Apache-2.0
"""Every reward of the library keeps what the library promises: it says what it does, and no answer stops it.

A reward that needs more than messages and a ground truth has its arguments in `ARGUMENTS`.
"""

from __future__ import annotations

import asyncio
import doctest
import importlib
import inspect
import random
import tomllib
from pathlib import Path
from typing import Any

import pytest

from reward_kit.models import EvaluateResult
from reward_kit.rewards.catalogue import RewardEntry, describe, entries, library_entries, unmet_needs
from reward_kit.scoring.worker_call import WorkerCall
from reward_kit.utils.module_loader import load_function
from reward_kit.workers import Died, Outcome, TimedOut, WorkerPool
from tests.execution.shell_support import require_namespaces

ENTRIES = library_entries()
EXTRAS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["optional-dependencies"]

JUDGE = {"model_name": "mock", "mock": {"responses": ["VERDICT: 5", "VERDICT: A"]}, "cache": {"enabled": False}}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "composite_reward": {"parts": {"length": {"reward": "length_reward", "params": {"target_length": 3}}}},
    "cosine_length_reward": {"is_correct": True},
    "shell_reward": {"success_condition": "true"},
    "tournament_reward": {"judge": JUDGE},
    "tag_count_reward": {"required_tags": ["think", "answer"]},
}
"""What a call needs beside `messages` and `ground_truth`; a required parameter that is not here is given None."""

each = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)


def arguments_of(entry: RewardEntry) -> dict[str, Any]:
    parameters = inspect.signature(load_function(entry.path)).parameters.values()
    reserved = {"messages", "rollouts_messages", "ground_truth"}
    required = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    return {**{name: None for name in required if name not in reserved}, **ARGUMENTS.get(entry.name, {})}


# ── what it says ─────────────────────────────────────────────────────────────────────────────────────────────────────


@each
def test_it_says_what_the_score_means_what_it_costs_and_what_it_does_not_detect(entry: RewardEntry) -> None:
    assert entry.summary.endswith((".", "…"))
    assert entry.cost, "add a line `Cost: …`"
    assert entry.does_not_detect, "add a line `Does not detect: …`"
    assert entry.metrics, "add a line `Metrics: …`"


@each
def test_its_needs_can_be_checked(entry: RewardEntry) -> None:
    for need in entry.needs:
        kind, _, name = need.partition(" ")
        assert need == "sandbox" or (kind in {"extra", "program"} and name.strip("`") and name[0] == name[-1] == "`")
        assert kind != "extra" or name.strip("`") in EXTRAS


@each
def test_its_example_runs(entry: RewardEntry) -> None:
    if missing := unmet_needs(entry):
        pytest.skip(f"needs {missing[0]}")
    if "sandbox" in entry.needs:
        require_namespaces()
    module = importlib.import_module(entry.path.partition(":")[0])
    example = doctest.DocTestParser().get_doctest(entry.example, dict(vars(module)), entry.name, module.__file__, 0)
    assert any(entry.name in step.source for step in example.examples), "let the example use the reward itself"
    told: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(example, out=told.append)
    assert outcome.failed == 0, "".join(told)


def test_names_are_unmistakable() -> None:
    names = [entry.name for entry in ENTRIES]
    assert len({name.removesuffix("_reward") for name in names}) == len(names)
    assert "catalogue" not in names and "reward_function" not in names


def test_a_reward_of_ones_own_may_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def polite(messages, limit=3, **kwargs):\n    return 1.0\n")
    entry = describe(f"{tmp_path}/mine.py:polite")
    assert (entry.name, entry.signature, entry.summary) == ("polite", "(messages, limit=3, **kwargs)", "")


def test_what_only_params_fill_is_listed() -> None:
    assert describe("accuracy").operators == ("compare_fn", "extract_fn")
    assert describe("sql").operators == ("database_folder",)
    assert describe("judge").operators == ("votes",), "the judge is handed over by the run"


def test_a_label_may_run_over_lines(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        'def polite(messages, **kwargs):\n    """One if polite.\n\n    More of it.\n\n    Cost: a little,\n'
        '    or more.\n    Needs: program `no-such-program`; sandbox.\n\n    >>> 1\n    1\n    """\n'
    )
    entry = describe(f"{tmp_path}/mine.py:polite")
    assert entry.cost == "a little, or more."
    assert entry.details == "More of it."
    assert entry.example == ">>> 1\n1"
    assert unmet_needs(entry) == ["program `no-such-program`"]


def test_packages_may_name_rewards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = tmp_path / "their_rewards-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-rewards\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[reward_kit.rewards]\ntheir_reward = their_rewards:judge\nmath_reward = their_rewards:judge\n"
    )
    (tmp_path / "their_rewards.py").write_text(
        'def judge(messages, **kwargs):\n    """One, always."""\n    return 1.0\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    known = {entry.name: entry.path for entry in entries()}
    assert known["their_reward"] == "their_rewards:judge"
    assert known["math_reward"] == "reward_kit.rewards.math:math_reward", "the library's names mean the same everywhere"


# ── what it does ─────────────────────────────────────────────────────────────────────────────────────────────────────


@each
def test_where_nobody_has_answered_it_gives_no_verdict(entry: RewardEntry) -> None:
    for messages in ([{"role": "user", "content": "1"}], []):
        subject = {"rollouts_messages": [messages]} if entry.mode == "batch" else {"messages": messages}
        returned = load_function(entry.path)(**subject, ground_truth="1", unknown_column=3, **arguments_of(entry))
        result = asyncio.run(returned) if entry.is_async else returned
        (judged,) = result if entry.mode == "batch" else [result]
        assert isinstance(judged, EvaluateResult)
        assert judged.score == 0.0 and not judged.is_score_valid
        assert not judged.metrics["error"].is_score_valid


REPEATED = ("a", "([{<", "\\boxed{", "<think><answer>", "\n", " \t", "```\n", "9", "1. ", "$\\[\\(", "\u0301", '{"a":[')
WORDS = "the of sum then First, step 1: answer is - so we have x = 3 <b> \\frac{ $ ` ( 中"


def hostile_answers() -> dict[str, str]:
    """What makes careless patterns and loops take for ever: a megabyte of it mixed, a quarter of each alone."""
    mixed = " ".join(random.Random(0).choices(WORDS.split(), k=300_000))
    return {"mixed": mixed, **{part: part * (250_000 // len(part)) for part in REPEATED}}


def judge_any() -> Any:
    scorers: dict[str, Any] = {}

    def judge(path: str, params: dict[str, Any], payload: Any) -> None:
        scorer = scorers.get(path) or scorers.setdefault(path, WorkerCall(path, params))
        scorer(payload)

    return judge


@pytest.mark.timeout(600)
async def test_no_answer_keeps_a_reward_busy() -> None:
    """Each ends by itself, with a verdict or without, within a time and a memory that only linear work keeps to."""
    outcomes: dict[tuple[str, str], asyncio.Future[Outcome]] = {}
    async with WorkerPool(judge_any, size=2, timeout=20, memory_mb=4096) as pool:
        for entry in ENTRIES:
            if unmet_needs(entry):
                continue
            for kind, text in hostile_answers().items():
                turns = [{"role": "assistant", "content": text}]
                subject = {"rollouts_messages": [turns, turns]} if entry.mode == "batch" else {"messages": turns}
                payload = {**subject, "ground_truth": "1", "columns": {}}
                outcomes[entry.name, kind] = pool.submit((entry.path, arguments_of(entry), payload), {})
        ended = {key: await outcome for key, outcome in outcomes.items()}
    lost = {key: outcome for key, outcome in ended.items() if isinstance(outcome, TimedOut | Died)}
    assert not lost
