# SPDX-License-Identifier: Apache-2.0
"""Data choose values, and nothing that runs, is opened or is contacted here: every reward, at every door.

The rows are made from the rewards' signatures, so a new reward, or a new parameter, is tried without a line here.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from reward_kit import evaluate
from reward_kit.agent.environments.bfcl_simulators import Simulators
from reward_kit.agent.task_reward import task_reward
from reward_kit.errors import ConfigError, RewardError
from reward_kit.integrations.trl import create_trl_adapter
from reward_kit.metric_folders import by_metrics
from reward_kit.reward_call import NOT_COLUMNS, RESERVED, RESOURCES, RewardCall
from reward_kit.rewards.catalogue import RewardEntry, describe, library_entries
from reward_kit.typed_interface import marks_of, resolved_annotation, signature_of
from reward_kit.utils.module_loader import load_function
from tests.rewards.traps import CANARY, Hostile, Traps, hostile, traps
from tests.serving.served import serving

__all__ = ["traps"]

OTHERS = (
    "agent.environments.two_sided:two_sided",
    "agent.environments.bfcl:bfcl_multi_turn",
    "agent.task_reward:task_reward",
)
ENTRIES = [*library_entries(), *(describe(f"reward_kit.{path}") for path in OTHERS)]
"""The catalogue, and the rewards that belong to worlds."""
ANSWER = 'I say:\n```python\nprint(input())\n```\nThe answer is {"a": 4}, os.system(x=1). It is 4.'
JUDGE = {"model_name": "mock", "mock": {"responses": ["VERDICT: 5", "VERDICT: A"]}, "cache": {"enabled": False}}
NEEDED: dict[str, dict[str, Any]] = {
    "bfcl_multi_turn": {"initial_config": {}, "involved_classes": ["WebSearchAPI"], "truth": [["f(url='http://x')"]]},
    "cosine_length_reward": {"is_correct": True},
    "ifeval_reward": {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]},
    "lean_proof_reward": {"statement": "theorem t : 1 = 1"},
    "shell_reward": {"success_condition": "true"},
    "sql_reward": {"truth": "SELECT 4"},
    "tag_count_reward": {"required_tags": ["think"]},
    "two_sided": {"task": {"evaluation_criteria": {"actions": []}}},
}
"""The columns, and the `truth`, without which a reward judges nothing."""
PARAMS: dict[str, dict[str, Any]] = {
    "composite_reward": {"parts": ["math_reward", "fractional_code_reward", "sql_reward", "judge_reward"]},
    "task_reward": {"reward": "fractional_code_reward"},
}

each = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)


def rows_for(entry: RewardEntry, traps: Traps) -> list[Hostile]:
    runs_code = {"sandbox", "isolated_python"} & {*entry.resources}
    needed = {**({} if runs_code else {"truth": "4"}), **NEEDED.get(entry.name, {})}
    return list(hostile(load_function(entry.path), traps, needed))


def conversation(answer: str = ANSWER) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "?"}, {"role": "assistant", "content": answer}]


# ── the doors ────────────────────────────────────────────────────────────────────────────────────────────────────────


@each
def test_a_dataset_springs_no_trap(entry: RewardEntry, traps: Traps, tmp_path: Path) -> None:
    asked = {"user_query": "?", "assistant_response": ANSWER}
    lines = [
        json.dumps({**asked, "id": f"{n}", "ground_truth": row.truth, **row.columns})
        for n, row in enumerate(rows_for(entry, traps))
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    evaluate(
        str(tmp_path / "rows.jsonl"), entry.path, dataset={"on_bad_row": "skip"}, judge=JUDGE,
        params=PARAMS.get(entry.name), reward_settings={"workers": 1}, keep_going=True,
    )  # fmt: skip
    assert not traps.sprung()


def bodies(row: Hostile, entry: RewardEntry) -> list[tuple[str, dict[str, Any]]]:
    """The same row as callers of several kinds send it."""
    subject = {"rollouts_messages": [conversation()] * 2} if entry.mode == "batch" else {"messages": conversation()}
    asked = {**subject, "ground_truth": row.truth}
    generic = [("evaluate", {**asked, "kwargs": dict(row.columns)}), ("evaluate", {**row.columns, **asked})]
    if entry.mode == "batch":
        return generic
    extra = {**row.columns, "prompt": "?"}
    return [*generic, ("verl", {"solution_str": ANSWER, "ground_truth": row.truth, "extra_info": extra})]


@each
def test_a_caller_springs_no_trap(entry: RewardEntry, traps: Traps) -> None:
    reward: dict[str, Any] = {"params": PARAMS.get(entry.name, {}), "workers": 1}
    with serving(load_function(entry.path), reward=reward, judge=JUDGE) as server:
        for number, row in enumerate(rows_for(entry, traps)):
            kinds = bodies(row, entry)
            path, body = kinds[number % len(kinds)]
            reply = server.post(f"/{path}", body)
            assert CANARY.encode() not in reply.body, row.name
            name = row.name.partition("=")[0]
            if name in {*entry.operators} - {*reward["params"]} - NOT_COLUMNS:
                assert reply.status == 422 and f"{name!r}" in reply.json["detail"], row.name
    assert not traps.sprung()


@each
def test_a_trainer_springs_no_trap(entry: RewardEntry, traps: Traps) -> None:
    parameters = signature_of(load_function(entry.path)).parameters
    given = {name: JUDGE if name == "judge" else None for name in entry.resources}
    required = {name: value for name, value in given.items() if parameters[name].default is inspect.Parameter.empty}
    params = {**PARAMS.get(entry.name, {}), **required}
    adapter = create_trl_adapter(entry.path, static_reward_kwargs=params, workers=0, on_error="none")
    for row in rows_for(entry, traps):
        columns = {name: [value] for name, value in row.columns.items()}
        with contextlib.suppress(ConfigError):  # what the reward needs may be what no column can give
            adapter(["?"], [ANSWER], ground_truth=[row.truth], **columns)
    assert not traps.sprung()


# ── rewards that call rewards ────────────────────────────────────────────────────────────────────────────────────────

JUDGED = "reward_kit.rewards.code_execution:fractional_code_reward"


def test_a_whole_refuses_what_its_parts_leave_to_the_operator(traps: Traps) -> None:
    evil = traps.poisons()["python file"]
    parts = [{"reward": JUDGED, "params": {"python": "python3"}}, "accuracy_reward"]
    wholes = [RewardCall("composite_reward", {"parts": parts}), RewardCall(task_reward, {"reward": JUDGED})]
    for call in wholes:
        assert {"special_judge", "environment", "api_key"} <= call.operators
        assert "'special_judge'" in str(call.refused({"special_judge": evil}))
    assert "python" not in wholes[0].operators and "extract_fn" in wholes[0].operators
    assert wholes[0].refused({"python": "theirs"}) is None, "its param is set, so no column counts"


def test_metrics_of_folders_refuse_it_too(traps: Traps) -> None:
    judge = by_metrics({"code": JUDGED, "sql": "sql_reward"})
    tests = [{"input": "4", "expected_output": "4"}]
    for name, poison in {"special_judge": "python file", "database": "data file"}.items():
        with pytest.raises(RewardError, match=f"data give '{name}'"):
            judge(conversation(), tests, **{name: traps.poisons()[poison]})
    assert not traps.sprung()


def test_a_task_names_no_simulator_that_leaves_the_memory() -> None:
    with pytest.raises(ValueError, match=r"'WebSearchAPI'.*GorillaFileSystem"):
        Simulators(["WebSearchAPI"], {})


# ── the traps themselves ─────────────────────────────────────────────────────────────────────────────────────────────


def careless(messages: Any, checker: Any = None, path: Any = None, url: Any = None, **kwargs: Any) -> float:
    """What an author might write who trusts the data."""
    if isinstance(checker, str):
        load_function(checker)(stmt=kwargs.get("command", "0"), number=1)
    if isinstance(path, str):
        Path(path).read_bytes()
    if isinstance(url, str):
        urllib.request.urlopen(url, timeout=10)
    return 1.0


def test_each_trap_springs_where_a_reward_trusts_the_data(traps: Traps) -> None:
    poisons = traps.poisons()
    asked = {"user_query": "?", "assistant_response": ANSWER, "ground_truth": "4"}
    columns = [
        {"checker": poisons["python file"]}, {"checker": "timeit:timeit", "command": traps.python},
        {"path": poisons["data file"]}, {"path": poisons["text file"]}, {"url": poisons["url"]},
    ]  # fmt: skip
    evaluate([{**asked, **each} for each in columns], careless, reward_settings={"workers": 1}, keep_going=True)
    assert {*traps.sprung()} == {
        "ran: python", "opened: evil.py", "opened: data.sqlite", "opened: notes.txt", "contacted"
    }  # fmt: skip


# ── the marks ────────────────────────────────────────────────────────────────────────────────────────────────────────

SUSPICIOUS = re.compile(
    r"(^|_)(fn|func|path|file|folder|dir|url|host|address|endpoint|key|command|commands|database|model|judge|llm|client|"
    r"verifier|checker|environment|env|python|lean|interpreter|compiler|image|module|parts|votes|games|temperature|params)"
    r"(_|$)|callable|import path|interpreter|paid|address|command",
    re.IGNORECASE,
)
PLAIN = {
    "setup_commands": "run in the sandbox, as the rows of a shell dataset have them",
    "success_condition": "runs in the sandbox, as the rows of a shell dataset have it",
    "header": "imports of Lean, read in the sandbox",
    "state": "what the calls did, as data; it is only looked at",
    "function_to_call": "the name of a function of the answer's code, called in the sandbox",
}
"""Parameters that look as if they were the operator's, and are values: why."""


@each
def test_what_looks_like_the_operators_is_marked(entry: RewardEntry) -> None:
    reward = load_function(entry.path)
    marks = marks_of(reward)
    told = dict(re.findall(r"`(\w+)`,? (?:is|are|opens|names|holds|a) ([^.]{0,60})", entry.details))
    for name, parameter in signature_of(reward).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD or name in {*RESERVED, *RESOURCES, *marks.operators, *marks.below}:
            continue
        annotation = str(resolved_annotation(reward, parameter))
        looks = SUSPICIOUS.search(name) or "Callable" in annotation or SUSPICIOUS.search(told.get(name, ""))
        assert not looks or name in PLAIN, f"mark {name!r} as Operator[…], or say in PLAIN why data may choose it"
