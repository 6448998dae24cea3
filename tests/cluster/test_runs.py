# SPDX-License-Identifier: Apache-2.0
"""Whole runs on a cluster: limits of all actors together, where they run, what they know, what logs do not tell."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import ConfigError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.ray_engine.services import _Endpoint
from reward_kit.models import EvaluateResult, Message
from tests.cluster.nodes import Misfortune, Nodes, kill_an_actor
from tests.cluster.test_faults import slowly
from tests.execution.test_bills import LATE, SETTINGS, check_told, rows
from tests.generation.loopback import Loopback, Reaction, Says
from tests.loopback import batches
from tests.loopback.bills import KINDS, LIMITLESS, Biller
from tests.loopback.endpoint import honest, prompt_of, serving
from tests.loopback.runs import config, judged, lines, questions, results


def told(home: Path, nodes: Nodes, endpoint: Loopback | None = None, rows: int = 60, **settings: Any) -> dict[str, Any]:
    engine = {"name": "ray", "address": nodes.address, "working_dir": str(home), **settings.pop("engine", {})}
    base = None if endpoint is None else endpoint.api_base
    return config(home, base, rows=questions(rows), engine=engine, **settings)


def test_requests_in_flight_and_money_are_limited_for_all_actors_together(tmp_path: Path, nodes: Nodes) -> None:
    with serving(slowly) as endpoint:
        values = told(
            tmp_path, nodes, endpoint, rows=200, engine={"generate": {"actors": 3, "concurrency": 8}},
            generation__api_params={"max_concurrent_requests": 5}, max_cost=0.5,
            generation__price={"input": 100.0, "output": 1000.0}, generation__max_tokens=2,
        )  # fmt: skip
        result = EvaluationPipeline(values).run()
        assert endpoint.most_at_once <= 5
    assert result.status == "stopped"
    assert 0 < len(endpoint.requests) < 200
    spent = sum(line["cost"] for line in lines(tmp_path / "run" / "rollouts.jsonl"))
    assert spent <= 0.5
    assert spent >= 0.4, "and what there is is spent"
    assert len(results(tmp_path)) == len(endpoint.requests), "what was paid for is judged"


@pytest.mark.parametrize("max_cost", [None, 0.05])
def test_money_is_told_beside_the_bill(tmp_path: Path, nodes: Nodes, max_cost: float | None) -> None:
    biller = Biller()
    kinds = [name for name in KINDS if name not in LATE and (max_cost is None or name not in LIMITLESS)]
    with serving(biller) as endpoint:
        values = told(
            tmp_path, nodes, endpoint, engine={"generate": {"actors": 2, "concurrency": 8}}, generation__n=2,
            max_cost=max_cost, **SETTINGS,
        )  # fmt: skip
        config(tmp_path, rows=rows(kinds))
        summary = EvaluationPipeline(values, keep_going=True).run().summary
    cost = summary["cost"]
    assert cost is not None
    check_told(cost, biller.bill, at_most=bool(summary.get("cost_is_at_most")), exactly=False)
    assert max_cost is None or max(cost, biller.bill) <= max_cost + 1e-12


def test_answers_of_batches_are_judged_by_actors(tmp_path: Path, nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver alone submits and fetches; only judging is spread over the cluster."""
    monkeypatch.setenv("BATCH_KEY", batches.KEY)
    by_batches = {"transport": "batch", "api_key_env": "BATCH_KEY", "batch": {"poll_seconds": 0.01}, "n": 2}
    provider = batches.Provider(polls=2)
    with batches.serving(provider) as base:
        for name in ("ray", "local"):
            values = told(tmp_path, nodes, rows=20) if name == "ray" else config(tmp_path, rows=questions(20))
            values["generation"] |= {"model_name": "m", "api_base": base, **by_batches}
            values["output"]["output_dir"] = str(tmp_path / name)
            assert EvaluationPipeline(values).run().status == "finished"
            assert len(provider.batches) == 1 and set(provider.answered.values()) == {1}
            provider.batches.clear()
            provider.answered.clear()
    assert provider.complaints == []
    assert judged(results(tmp_path, "ray")) == judged(results(tmp_path, "local"))


def test_a_rate_holds_for_all_actors_together(tmp_path: Path, nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request comes before the driver's schedule, and the schedule has the rate, whoever was charged."""
    times: list[float] = []
    schedule: list[float] = []
    charge = _Endpoint.charge

    def noted(self: _Endpoint, tokens: float) -> float:
        wait = charge(self, tokens)
        schedule.append(time.monotonic() + wait)
        return wait

    monkeypatch.setattr(_Endpoint, "charge", noted)

    def stamped(body: dict[str, Any], number: int) -> Reaction:
        times.append(time.monotonic())
        return honest(body, number)

    with serving(stamped) as endpoint:
        limits = {"max_concurrent_requests": 32, "rate_limit_qps": 20}
        values = told(
            tmp_path, nodes, endpoint, engine={"generate": {"actors": 3}}, generation__api_params=limits
        )  # fmt: skip
        EvaluationPipeline(values).run()
    assert len(times) == 60
    assert all(due - schedule[0] >= place / 20 - 0.11 for place, due in enumerate(sorted(schedule)))
    assert all(came >= due - 0.01 for came, due in zip(sorted(times), sorted(schedule), strict=True))


def test_scoring_runs_only_where_the_sandboxes_are_and_generating_elsewhere(tmp_path: Path, nodes: Nodes) -> None:
    where = tmp_path / "where.py"
    where.write_text(
        "import os\n"
        "async def node(messages, **kwargs):\n"
        "    import ray\n"
        "    from reward_kit import EvaluateResult\n"
        "    return EvaluateResult(score=1.0, reason=ray.get_runtime_context().get_node_id())\n"
    )
    engine = {
        "generate": {"actors": 2, "resources": {"plain": 1}},
        "score": {"actors": 2, "resources": {"sandbox": 1}},
    }
    values = told(tmp_path, nodes, engine=engine, reward="quick")
    values["reward"]["function_path"] = f"{where}:node"
    EvaluationPipeline(values).run()
    places = {row["evaluation_reason"] for row in results(tmp_path).values()}
    assert places == {nodes.node_with("sandboxed")}


def test_no_secret_is_in_a_log_or_a_file_of_the_cluster(tmp_path: Path, nodes: Nodes) -> None:
    key, other = "sk-live-1234567890abcdefghij", "hunter2-hunter2-hunter2"

    def wants_a_key(body: dict[str, Any], number: int) -> Reaction:
        return honest(body, number) if f"Bearer {key}" in endpoint.heads[-1] else Says(401, {"error": "no"})

    with serving(wants_a_key) as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_MODEL_KEY", key)
        patch.setenv("MY_TOOL_TOKEN", other)
        values = told(
            tmp_path, nodes, endpoint, rows=10, engine={"env": ["MY_TOOL_TOKEN"]},
            generation__api_key_env="MY_MODEL_KEY", reward__params={"api_key": "reward-secret-112358"},
        )  # fmt: skip
        tool = tmp_path / "tool.py"
        tool.write_text(
            "import hashlib, os\n"
            "async def checked(messages, api_key, **kwargs):\n"
            "    seen = hashlib.sha256((os.environ['MY_TOOL_TOKEN'] + api_key).encode()).hexdigest()\n"
            f"    ok = seen == {hashlib.sha256(f'{other}reward-secret-112358'.encode()).hexdigest()!r}\n"
            "    return 1.0 if ok else 0.0\n"
        )
        values["reward"]["function_path"] = f"{tool}:checked"
        EvaluationPipeline(values).run()
    assert {row["evaluation_score"] for row in results(tmp_path).values()} == {1.0}
    looked_at = 0
    for file in nodes.logs.rglob("*"):
        if file.is_file() and not file.is_socket():
            content = file.read_bytes()
            looked_at += 1
            for secret in (key, other, "reward-secret-112358"):
                assert secret.encode() not in content, file
    assert looked_at > 10
    for file in (tmp_path / "run").iterdir():
        assert key.encode() not in file.read_bytes()


def test_a_reward_of_a_notebook_and_of_a_module_beside_it_travel(tmp_path: Path, nodes: Nodes) -> None:
    """As in a notebook's cell: the reward is an object, and the module that it needs is only in this directory."""
    (tmp_path / "beside_the_notebook.py").write_text("GRADE = 0.25\n")
    program = tmp_path / "cell.py"
    values = told(tmp_path, nodes, rows=5, reward="quick")
    program.write_text(
        "import json, sys\n"
        "from reward_kit.execution.pipeline import EvaluationPipeline\n"
        "def graded(messages, **kwargs):\n"
        "    import beside_the_notebook\n"
        "    return beside_the_notebook.GRADE\n"
        "if __name__ == '__main__':\n"
        "    print(EvaluationPipeline(json.load(sys.stdin), reward=graded).run().status)\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], input=json.dumps(values), cwd=tmp_path, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.stdout == "finished\n", done.stderr
    assert {row["evaluation_score"] for row in results(tmp_path).values()} == {0.25}


def test_a_reward_that_does_not_load_on_the_nodes_ends_the_run_with_a_sentence(tmp_path: Path, nodes: Nodes) -> None:
    values = told(tmp_path, nodes, rows=3)
    place = tmp_path / "only_here"
    place.mkdir()
    (place / "picky.py").write_text(
        f"import os\nif os.getpid() != {os.getpid()}:\n    raise RuntimeError('not on this node')\n"
        "async def picky(messages, **kwargs):\n    return 1.0\n"
    )
    values["reward"]["function_path"] = f"{place}/picky.py:picky"
    with pytest.raises(ConfigError, match=r"The reward cannot be loaded.*not on this node"):
        EvaluationPipeline(values).run()


def test_episodes_go_on_from_their_turns_when_their_actor_dies(tmp_path: Path, nodes: Nodes) -> None:
    world = tmp_path / "world.py"
    world.write_text(
        "from reward_kit.agent.environment import Answer, World\n"
        "from reward_kit.models import Message\n"
        "class Three(World):\n"
        "    def __init__(self, sample):\n"
        "        super().__init__()\n"
        "        self.turns = 0\n"
        "    async def answer(self, message):\n"
        "        self.turns += 1\n"
        "        again = Message(role='user', content=f'again {self.turns}')\n"
        "        return Answer([again], 1.0, self.turns == 4)\n"
    )

    def talks(body: dict[str, Any], number: int) -> Reaction:
        del number

        async def reply(writer: Any) -> None:
            import asyncio

            await asyncio.sleep(0.05)
            said = [turn["content"] for turn in body["messages"] if turn["role"] == "user"]
            writer.write(honest({**body, "messages": [{"role": "user", "content": " ".join(said)}]}, 1).encoded())
            await writer.drain()

        return reply

    rng = random.Random(7)
    with serving(talks) as endpoint:
        values = told(tmp_path, nodes, endpoint, rows=40, engine={"generate": {"actors": 2, "concurrency": 4}})
        values["agent"] = {"environment": f"{world}:Three", "concurrency": 8}
        harm = lambda: kill_an_actor("GenerateStation", rng)  # noqa: E731
        with Misfortune(lambda: len(endpoint.requests), [30, 90], harm) as fate:
            result = EvaluationPipeline(values).run()
        assert result.status == "finished" and fate.done >= 1
        assert result.counters.episodes is not None and result.counters.episodes.turns >= 160
        paid = len(endpoint.requests)
        assert 160 <= paid <= 160 + fate.done * 8, "only turns whose reply was on its way are asked for again"
        asked = [prompt_of(body) for body in endpoint.requests]
        assert len(set(asked)) >= 4
        here = tmp_path / "local"
        here.mkdir()
        locally = {name: part for name, part in values.items() if name != "engine"}
        locally["output"] = {"output_dir": str(here / "run")}
        EvaluationPipeline(locally).run()
    assert judged(results(tmp_path)) == judged(results(here))
    rollouts = {line["id"]: line for line in lines(tmp_path / "run" / "rollouts.jsonl")}
    assert all(len(line["steps"]) == 4 for line in rollouts.values())
    assert not (tmp_path / "run" / "episodes.jsonl").exists()


def test_the_other_front_doors(tmp_path: Path, nodes: Nodes) -> None:
    tasks = [
        {"task": f"print {n}", "setup_commands": [], "success_condition": f'[ "$(cat out)" = {n} ]'} for n in range(3)
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    rows = [{"id": str(n), "user_query": f"{n}+{n}?", "ground_truth": str(2 * n)} for n in range(4)]
    (tmp_path / "math.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    flags = ["--engine", "ray", f"engine.address={nodes.address}", "engine.score.resources.sandbox=1"]
    shell = ["shell", "--model", "mock", "--dataset", "tasks.jsonl", "-o", "out", *flags]
    best = [
        "best-of-n", "--dataset", "math.jsonl", "--splits", "math", "--model", "mock", "-n", "2", "-o", "b.parquet",
        *flags,
    ]  # fmt: skip
    for command in (shell, best):
        done = subprocess.run(
            [sys.executable, "-m", "reward_kit.cli", *command, "--json"], cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        assert not re.search(r"raylet|gcs_client|core_worker", done.stderr), done.stderr
    assert len(lines(tmp_path / "out" / "results.jsonl")) == 3
    assert len(lines(tmp_path / "b.run" / "results.jsonl")) == 8


def test_a_given_reward_judges_as_locally(tmp_path: Path, nodes: Nodes) -> None:
    factor = 0.5

    def half(messages: list[Message], **_: Any) -> EvaluateResult:
        return EvaluateResult(score=factor, reason=messages[-1].text)

    values = told(tmp_path, nodes, rows=5)
    EvaluationPipeline(values, reward=half).run()
    assert {row["evaluation_score"] for row in results(tmp_path).values()} == {0.5}
