# SPDX-License-Identifier: Apache-2.0
"""Worlds × durability × users × branching × wrappers, each run killed with SIGKILL and entered again.

Its files are those of a quiet run, and no call that was answered is made again. Where a world begins by chance, what
was on disk when it was killed is in the files. `make test-kills` kills at many more points.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.agent import kill_worlds
from tests.agent.kill_worlds import TASK, says
from tests.agent.test_kill_and_resume import essence_of
from tests.loopback.faults import MORE, TIMES
from tests.loopback.killing import KILLED, KillingBench
from tests.loopback.runs import config, lines

WORLDS = Path(kill_worlds.__file__)
OTHERS = WORLDS.with_name("worlds.py")
DESK = "reward_kit.agent.environments.two_sided:TwoSided"
SAMPLES, N, AT_ONCE = 2, 2, 3
UNDER_WAY = SAMPLES * N
"""Episodes that are played at once: each may have asked something that was not answered."""


class Kind(NamedTuple):
    """A run, as far as it differs from others."""

    world: str
    reward: str = "of_the_world"
    user: str | None = None
    by_chance: bool = False
    more: Mapping[str, Any] = MappingProxyType({})


BRANCHES = {"branching": {"total": 2, "at": 1}}
SNAPSHOT = {"durability": "snapshot"}
RESTART = {"durability": "restart"}
NOTES = {"tools": [f"{WORLDS}:note"]}
ACCOUNT, SNAPSHOTS = f"{OTHERS}:Account", f"{OTHERS}:Snapshots"

KINDS = {
    "played again": Kind(ACCOUNT),
    "snapshots": Kind(SNAPSHOTS),
    "started again": Kind(ACCOUNT, more=RESTART),
    "a text game": Kind(f"{OTHERS}:Walk"),
    "a script": Kind(ACCOUNT, user="script"),
    "a script, snapshots": Kind(SNAPSHOTS, user="script"),
    "a model as user": Kind(ACCOUNT, user="model"),
    "a model as user, snapshots, tools": Kind(SNAPSHOTS, user="model", more=NOTES),
    "two sides": Kind(DESK, "of_the_desk", "model"),
    "two sides, elsewhere": Kind(f"{WORLDS}:desk_elsewhere", "of_the_world", "model"),
    "branches": Kind(ACCOUNT, more=BRANCHES),
    "branches, a model as user": Kind(ACCOUNT, user="model", more=BRANCHES),
    "branches, two sides": Kind(DESK, "of_the_desk", "model", more=BRANCHES),
    "elsewhere": Kind(f"{WORLDS}:elsewhere", more=NOTES),
    "elsewhere, branches, a script": Kind(f"{WORLDS}:elsewhere", user="script", more=BRANCHES),
    "chance": Kind(f"{WORLDS}:Chance", "of_the_facts", by_chance=True),
    "chance, a model as user": Kind(f"{WORLDS}:Chance", "of_the_facts", "model", by_chance=True),
}

FEW = ("started again", "a model as user, snapshots, tools", "branches, two sides", "chance, a model as user")


class Bench(KillingBench):
    """A bench for kinds of runs."""

    def settings(self, run: str, kind: Kind) -> dict[str, Any]:
        agent: dict[str, Any] = {"environment": kind.world, "concurrency": AT_ONCE, "max_turns": 8, **kind.more}
        if kind.world == DESK:
            agent["params"] = {"domain": kill_worlds.LIBRARY}
        if kind.user == "script":
            agent["user"] = {"script": ["And on.", "Once more."]}
        elif kind.user == "model":
            prompt = "You are a reader, {{ id }}."
            agent["user"] = {"model_name": "u", "api_base": self.endpoint.api_base, "prompt": prompt}
        is_desk = kind.world == DESK or "desk" in kind.world
        rows = [
            {"id": f"s{i}", "task": TASK, "messages": [{"role": "system", "content": f"policy {i}"}]}
            if is_desk else {"id": f"s{i}", "prompt": f"Save money, {i}."}
            for i in range(SAMPLES)
        ]  # fmt: skip
        config(self.home, rows=rows)
        cache = kind.more == RESTART  # turns are played again there, and must not be paid again
        values = self.run_settings(run, n=N, at_once=AT_ONCE, cache=cache, agent=agent)
        return values | {"reward": {"function_path": f"{WORLDS}:{kind.reward}", "workers": 1}}

    def paid(self) -> Counter[str]:
        """What both models were asked since the last time."""
        return Counter(json.dumps(body, sort_keys=True) for body in self.asked())


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Bench(tmp_path_factory.mktemp("matrix"), says) as made:
        yield made


def on_disk(run: Path) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """The messages of each unfinished episode that are whole on disk, in their order."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    path = run / "episodes.jsonl"
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        if not line.endswith(b"\n"):
            continue
        row = json.loads(line)
        told = found.setdefault((row["id"], row["response_index"]), [])
        if "opening" in row:
            told[:] = row["opening"]["messages"]
        else:
            told += [row["reply"]["message"]] if "reply" in row else row["answer"]["messages"]
    return found


def said(message: dict[str, Any]) -> tuple[Any, ...]:
    return message["role"], message.get("content"), json.dumps(message.get("tool_calls"))


@pytest.mark.parametrize("name", KINDS if MORE else FEW)
def test_a_run_killed_anywhere_is_the_quiet_run(bench: Bench, name: str) -> None:
    kind, dice = KINDS[name], random.Random(name)
    quiet, place = bench.home / "quiet", name.replace(" ", "-").replace(",", "")
    shutil.rmtree(quiet, ignore_errors=True)
    bench.paid()
    assert bench.enter(bench.settings("quiet", kind)) == 0
    whole, paid = essence_of(quiet), bench.paid()
    assert all(row["evaluation_score"] is not None for row in whole if "evaluation_score" in row), whole
    size = sum((quiet / file).stat().st_size for file in ("rollouts.jsonl", "results.jsonl"))
    asked, killed = paid.total(), 0
    for number in range(TIMES):
        run = f"{place}-{number}"
        point = {"bytes": dice.randint(size // 8, 2 * size)} if number % 2 else {"request": dice.randint(2, asked)}
        settings = bench.settings(run, kind)
        killed += bench.enter(settings, point) == KILLED
        before, known = bench.paid(), on_disk(bench.home / run)
        assert bench.enter(settings) == 0, point
        after = bench.paid()
        if kind.by_chance:
            ended = {(row["id"], row["response_index"]): row["turns"] for row in rollouts(bench.home / run)}
            for key, messages in known.items():
                assert [said(each) for each in ended[key][: len(messages)]] == [said(each) for each in messages], point
            repeated = before & after
        else:
            for one, other in zip(essence_of(bench.home / run), whole, strict=True):
                assert one == other, point
            repeated = (before + after) - paid
        assert repeated.total() <= UNDER_WAY, (point, repeated)
        shutil.rmtree(bench.home / run)
    assert killed, "no point was reached"


def rollouts(run: Path) -> list[dict[str, Any]]:
    return [
        {"id": row["sample"]["id"], "response_index": row["response_index"], "turns": row["turns"]}
        for row in lines(run / "rollouts.jsonl")
    ]
