# SPDX-License-Identifier: Apache-2.0
"""What is told of money at every door, beside the bill of the endpoint: agents, their users, judges, best-of-n.

Each run meets a mixture of replies and faults, and is killed at some of its requests and entered again. `make
test-kills` tries many more.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from reward_kit import evaluate
from reward_kit.cli_commands.several_models import for_each_model
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.shell import ShellEvaluation, shell_config
from tests.agent import worlds
from tests.agent.worlds import call
from tests.execution.shell_support import task
from tests.execution.test_bills import LATE, SETTINGS, check_told, rows
from tests.generation.loopback import Reaction, Says
from tests.loopback.bills import KINDS, LIMITLESS, PRICE, Biller
from tests.loopback.endpoint import serving
from tests.loopback.experiments import experiment, write_lines
from tests.loopback.faults import TIMES
from tests.loopback.killing import KILLED, KillingBench
from tests.loopback.runs import config

AT_ALL = sorted(name for name in KINDS if name not in LATE)
BOUNDED = sorted(name for name in AT_ALL if name not in LIMITLESS)
TURNS = 3
DOORS: dict[str, dict[str, Any]] = {
    "run": {}, "agent": {}, "agent, a user": {"user": {"prompt": "You are a user, kind={{ id.split('-')[0] }}."}},
    "agent, branches": {"branching": {"total": 2, "at": 1}}, "agent, started again": {"durability": "restart"},
    "judge": {}, "agent, judge": {}, "best of n": {},
}  # fmt: skip


class Acting(Biller):
    """Has an agent call a tool for some turns, where its reply would be a plain answer."""

    def __call__(self, body: dict[str, Any], number: int) -> Reaction:
        said = super().__call__(body, number)
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        if body.get("tools") and turn < TURNS and isinstance(said, Says) and isinstance(said.body, dict):
            for choice in said.body.get("choices") or ():
                message = choice.get("message")
                if choice.get("finish_reason") == "stop" and message and message.get("content"):
                    message |= {"content": None, "tool_calls": [call("deposit", {"amount": turn}, f"c{turn}")]}
                    choice["finish_reason"] = "tool_calls"
        return said


class Case(NamedTuple):
    """What a run meets."""

    kinds: list[str]
    max_cost: float | None
    retries: int
    at_once: int
    kills: list[int]

    @classmethod
    def drawn(cls, dice: random.Random) -> Case:
        """Any one."""
        is_limited = dice.random() < 0.5
        kills = [dice.randint(1, 25) for _ in range(dice.randint(0, 2))]
        return cls(
            # What a reply used beyond its allowance, nobody learns who was killed before it came.
            dice.sample(BOUNDED if is_limited or kills else AT_ALL, dice.randint(3, 9)),
            dice.choice([0.004, 0.008, 0.02]) if is_limited else None, dice.choice([0, 2]), dice.choice([1, 8, 64]),
            kills,
        )  # fmt: skip


class Bench(KillingBench):
    """A bench whose endpoint keeps another bill for each run."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, self._billed)
        self.biller: Biller = Acting()

    def _billed(self, body: dict[str, Any], number: int) -> Reaction:
        return self.biller(body, number)

    def settings(self, run: str, door: str, case: Case) -> dict[str, Any]:
        params = {"max_retries": case.retries, "timeout": 60.0, "max_concurrent_requests": case.at_once}
        values = self.run_settings(
            run, n=2, at_once=case.at_once, cache="again" in door, rows=rows(case.kinds), generation__price=PRICE,
            generation__max_tokens=30, **({} if case.max_cost is None else {"max_cost": case.max_cost}),
        )  # fmt: skip
        values["generation"]["api_params"] = params
        asked = {"api_base": self.endpoint.api_base, "price": PRICE, "max_tokens": 30}
        if "agent" in door:
            agent: dict[str, Any] = {"environment": f"{worlds.__file__}:Account", "max_turns": 6, **DOORS[door]}
            if "user" in agent:
                agent["user"] = {**agent["user"], **asked, "model_name": "u"}
            values["agent"] = {**agent, "concurrency": case.at_once}
        if "judge" in door:
            values["judge"] = {**asked, "model_name": "j", "cache": {"enabled": False}, "api_params": params}
            values["reward"] = {"function_path": "reward_kit.rewards.judge:judge_reward"}
        return values

    def experiment(self, run: str, case: Case) -> dict[str, Any]:
        asked = [{"uuid": row["id"], "frage": row["user_query"], "antwort": "4"} for row in rows(case.kinds)]
        values = experiment(
            self.home / run, dataset=str(write_lines(self.home / run / "math.jsonl", asked)), splits="math",
            verifiers={}, model="m", base_url=self.endpoint.api_base, max_tokens=30, prices={"m": PRICE},
            concurrency=case.at_once, max_cost=case.max_cost,
            column_mapping={"user_query": "frage", "ground_truth": "antwort"},
        )  # fmt: skip
        return values | {"mock": None}

    def run(self, name: str, door: str, case: Case) -> tuple[dict[str, Any], bool]:
        """The summary in the end, and whether it was killed on the way."""
        if door == "best of n":
            job, where = {"experiment": self.experiment(name, case)}, self.home / name / "results" / "run.run"
        else:
            job, where = {"config": self.settings(name, door, case)}, self.home / name
        ends = [self.enter_job(job, {"request": kill}) for kill in case.kills]
        ends.append(self.enter_job(job, {}))
        assert ends[-1] in (0, 3)
        summary: dict[str, Any] = orjson.loads((where / "summary.json").read_bytes())
        return summary, KILLED in ends


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Bench(tmp_path_factory.mktemp("doors")) as opened:
        yield opened


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(TIMES))
@pytest.mark.parametrize("door", DOORS)
def test_what_is_told_is_the_bill_at_every_door(bench: Bench, door: str, number: int) -> None:
    case = Case.drawn(random.Random(f"{door} {number}"))
    bench.biller = Acting()
    summary, was_killed = bench.run(f"{door}-{number}".replace(" ", "-").replace(",", ""), door, case)
    told = summary["cost"] + (summary.get("judge_cost") or 0.0)
    at_most = bool(summary.get("cost_is_at_most") or summary.get("judge_cost_is_at_most"))
    exactly = not was_killed and all(KINDS[kind].is_told for kind in case.kinds)
    billed = bench.biller.bill
    assert told >= billed * 0.99 - 1e-12, case
    assert at_most or told <= billed * 1.01 + 1e-12, case
    assert not (exactly and at_most), case
    if case.max_cost is not None:
        assert max(billed, told) <= case.max_cost + 1e-12, case


def by_evaluate(home: Path, api_base: str, kinds: list[str], **settings: Any) -> Mapping[str, Any]:
    return evaluate(
        [{key: held for key, held in row.items() if key != "id"} for row in rows(kinds, 6)], lambda response: 1.0,
        model="m", api_base=api_base, n=2, max_tokens=30, price=PRICE, cache={"enabled": False}, keep_going=True,
        **settings,
    ).summary  # fmt: skip


def by_shell(home: Path, api_base: str, kinds: list[str], **settings: Any) -> Mapping[str, Any]:
    """The commands are written and not executed: that costs nothing."""
    asked = [{**task(number), "task": row["user_query"]} for number, row in enumerate(rows(kinds, 6))]
    parts = {"model_name": "m", "api_base": api_base, "n": 2, "max_tokens": 30, "price": PRICE, "cache.enabled": False}
    given = {f"generation.{name}": value for name, value in parts.items()} | settings
    given |= {
        "dataset.path_or_name": str(write_lines(home / "tasks.jsonl", asked)),
        "output.output_dir": str(home / "run"),
    }
    return ShellEvaluation(shell_config(given), keep_going=True).infer().summary


@pytest.mark.parametrize("max_cost", [None, 0.012])
@pytest.mark.parametrize("door", [by_evaluate, by_shell])
def test_what_python_and_shell_tasks_tell_is_the_bill(
    tmp_path: Path, door: Callable[..., Mapping[str, Any]], max_cost: float | None
) -> None:
    told_kinds = [name for name in (AT_ALL if max_cost is None else BOUNDED) if KINDS[name].is_told]
    dice = random.Random(str(max_cost))
    for kinds in (dice.sample(told_kinds, 6), dice.sample(BOUNDED, 9)):
        biller = Biller()
        home = tmp_path / kinds[0]
        home.mkdir()
        with serving(biller) as endpoint:
            summary = door(home, endpoint.api_base, kinds, **({} if max_cost is None else {"max_cost": max_cost}))
        at_most = bool(summary.get("cost_is_at_most"))
        check_told(summary["cost"], biller.bill, at_most=at_most, exactly=all(KINDS[kind].is_told for kind in kinds))
        assert max_cost is None or max(biller.bill, summary["cost"]) <= max_cost + 1e-12, kinds


def test_each_of_several_models_tells_its_own_bill(tmp_path: Path) -> None:
    bills = {"one": Biller(), "two": Biller()}
    with serving(lambda body, number: bills[body["model"]](body, number)) as endpoint:
        values = config(tmp_path, endpoint.api_base, rows=rows(BOUNDED), **SETTINGS, max_cost=0.05)
        del values["generation"]["model_name"]
        values["generation"]["models"] = ["one", {"model_name": "two", "temperature": 0.5}]
        for label, of_one in for_each_model("", values):
            own = {**of_one, "output": {"output_dir": str(tmp_path / label.replace("/", "_"))}}
            summary = EvaluationPipeline(own, keep_going=True).run().summary
            biller = bills[own["generation"]["model_name"]]
            cost = summary["cost"]
            assert cost is not None and cost <= 0.05 + 1e-12
            check_told(cost, biller.bill, at_most=bool(summary.get("cost_is_at_most")), exactly=False)
    assert all(biller.bill for biller in bills.values())
