# SPDX-License-Identifier: Apache-2.0
"""Plans carried out against a world in memory that refuses or dies at any action: nothing is lost or made twice."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_kit.deploy.carry_out import MissingThing, Run, carry_out, take_away
from reward_kit.deploy.plan import Action, Plan, Request, Step, fact_at, filled, shown
from reward_kit.deploy.state import Deployment, Deployments, check_id
from reward_kit.errors import DeployError


class Killed(BaseException):
    """The process is gone: nothing catches this."""


class World:
    """Things by name. An action may be refused, or be the last one before a kill (before or after it took effect)."""

    def __init__(self) -> None:
        self.things: dict[str, str] = {}
        self.made = 0
        self.asked = 0
        self.at: tuple[int, str] | None = None

    def do(self, action: Action, secrets: Mapping[str, str]) -> Any:
        assert isinstance(action, Request)
        self.asked += 1
        trouble = self.at[1] if self.at is not None and self.at[0] == self.asked else ""
        if trouble == "refused":
            raise DeployError("denied")
        if trouble == "before":
            raise Killed
        answer = self._do(action)
        if trouble == "after":
            raise Killed
        return answer

    def _do(self, action: Request) -> Any:
        name = action.parameters["name"]
        if action.operation == "make":
            assert name not in self.things, f"{name} was made twice"
            self.made += 1
            self.things[name] = f"id-{self.made}"
        elif name not in self.things:
            raise MissingThing(name)
        elif action.operation == "remove":
            assert action.parameters["id"] in (self.things[name], "")
            del self.things[name]
            return {}
        return {"Thing": {"Id": self.things[name]}}


def ask(operation: str, name: str, **parameters: str) -> Request:
    return Request(service="world", operation=operation, parameters={"name": name, **parameters})


def step(name: str, *, needs: str = "") -> Step:
    more = {"needs": f"${{{needs}.id}}"} if needs else {}
    return Step(
        name=name, title=f"the {name}", look=ask("look", name), make=(ask("make", name, **more),),
        change=(ask("change", name, **more),), facts={"id": "Id|Thing.Id"}, remove=(ask("remove", name, id=""),),
    )  # fmt: skip


PLAN = Plan(
    target="docker", url="https://x/${c.id}", auth="open", steps=(step("a"), step("b", needs="a"), step("c", needs="b"))
)


def run(world: World, kept: Deployments) -> Deployment:
    deployment = kept.read("x") or Deployment(id="x", target="docker")
    return carry_out(PLAN, deployment, Run(kept, world, {}, lambda _: None))


@pytest.mark.parametrize("kind", ["refused", "before", "after"])
@pytest.mark.parametrize("at", range(1, 7))
def test_stopped_at_each_action_it_goes_on_and_can_be_deleted(at: int, kind: str) -> None:
    stop_and_go_on([(at, kind)])


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["refused", "before", "after"])), max_size=4))
def test_stopped_again_and_again_it_goes_on_and_can_be_deleted(troubles: list[tuple[int, str]]) -> None:
    stop_and_go_on(troubles)


def stop_and_go_on(troubles: list[tuple[int, str]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        kept, world = Deployments(Path(place)), World()
        for trouble in troubles:
            world.asked, world.at = 0, trouble
            try:
                run(world, kept)
            except DeployError as error:
                assert "Run the same command again" in str(error)
            except Killed:
                pass
            known = kept.read("x")
            for thing in world.things:  # whatever exists, the file knows how to take it away
                assert known is not None and any(one.name == thing and one.remove for one in known.steps)
        world.at = None
        made = run(world, kept)
        assert made.status == "ready" and set(world.things) == {"a", "b", "c"}
        assert made.url == f"https://x/{world.things['c']}"
        assert take_away(made, kept, world, lambda _: None) == []
        assert world.things == {} and kept.read("x") is None


@settings(max_examples=20)
@given(st.integers(1, 9), st.sampled_from(["refused", "before", "after"]))
def test_deleting_is_stopped_anywhere_and_goes_on(at: int, trouble: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        kept, world = Deployments(Path(place)), World()
        run(world, kept)
        world.asked, world.at = 0, (at, trouble)
        with contextlib.suppress(Killed):
            take_away(kept.get("x"), kept, world, lambda _: None)
        world.at = None
        if kept.read("x") is not None:
            assert take_away(kept.get("x"), kept, world, lambda _: None) == []
        assert world.things == {} and kept.ids() == []


def test_what_failed_is_told_with_what_exists(tmp_path: Path) -> None:
    kept, world = Deployments(tmp_path), World()
    world.at = (5, "refused")  # looking for c
    with pytest.raises(DeployError, match=r"stopped at the c: denied\. What exists: the a, the b\.") as stopped:
        run(world, kept)
    assert "reward-kit deploy delete x" in str(stopped.value)


def test_what_another_plan_made_is_taken_away(tmp_path: Path) -> None:
    kept, world = Deployments(tmp_path), World()
    made = run(world, kept)
    smaller = PLAN.model_copy(update={"steps": PLAN.steps[:2], "url": "https://y"})
    carry_out(smaller, made, Run(kept, world, {}, lambda _: None))
    assert set(world.things) == {"a", "b"}


def test_what_a_new_version_takes_the_place_of_is_taken_away(tmp_path: Path) -> None:
    kept, world = Deployments(tmp_path), World()
    made = run(world, kept)
    new = step("a").model_copy(update={
        "look": ask("look", "a2"), "make": (ask("make", "a2"),), "remove": (ask("remove", "a2", id=""),),
    })  # fmt: skip
    plan = PLAN.model_copy(update={"steps": (new, *PLAN.steps[1:])})
    world.asked, world.at = 0, (2, "after")  # killed when the new one was made
    with contextlib.suppress(Killed):
        carry_out(plan, made, Run(kept, world, {}, lambda _: None))
    assert set(world.things) == {"a", "a2", "b", "c"}
    world.at = None
    carry_out(plan, kept.get("x"), Run(kept, world, {}, lambda _: None))
    assert set(world.things) == {"a2", "b", "c"}
    assert take_away(kept.get("x"), kept, world, lambda _: None) == [] and world.things == {}


def test_a_thing_that_is_there_and_unknown_is_not_touched(tmp_path: Path) -> None:
    kept, world = Deployments(tmp_path), World()
    world.things["b"] = "theirs"
    with pytest.raises(DeployError, match=r"exists already.*--force"):
        run(world, kept)
    assert take_away(kept.get("x"), kept, world, lambda _: None) == []
    assert world.things == {"b": "theirs"}


def test_the_file_is_for_this_machine_alone_and_damage_is_said(tmp_path: Path) -> None:
    kept = Deployments(tmp_path / "d")
    run(World(), kept)
    assert (tmp_path / "d" / ".gitignore").read_text() == "*\n"
    assert (tmp_path / "d" / "x.json").stat().st_mode & 0o777 == 0o600
    with kept.alone("x"), pytest.raises(DeployError, match="Another command"), kept.alone("x"):
        pass
    (tmp_path / "d" / "x.json").write_text(json.dumps({"id": "x"}))
    with pytest.raises(DeployError, match="is not what reward-kit wrote"):
        kept.get("x")
    shutil.rmtree(tmp_path / "d")
    with pytest.raises(DeployError, match=r"There is no deployment 'x'\. None was made from this folder"):
        kept.get("x")


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "../x", "a" * 49, "a b"])
def test_ids_that_no_target_takes_are_refused(name: str) -> None:
    with pytest.raises(DeployError, match="cannot be used"):
        check_id(name)


def test_places_are_filled_and_secrets_are_not_shown() -> None:
    action = ask("make", "n", value="${secret:api_key}", other="${a.id}-${b.id}")
    assert shown(action, {"a.id": "1"}).parameters["value"] == "***"
    assert shown(action, {"a.id": "1"}).parameters["other"] == "1-<b.id>"
    assert filled(action, {"a.id": "1", "b.id": "2"}).parameters["value"] == "${secret:api_key}"
    assert filled(action, {"a.id": "1", "b.id": "2"}, {"api_key": "k"}).parameters["value"] == "k"
    with pytest.raises(DeployError, match=r"'b\.id' is not known"):
        filled(action, {"a.id": "1"})
    assert (
        fact_at({"A": {"B": 1}}, "X.Y|A.B") == "1" and fact_at('{"A": "z"}', "A") == "z" and fact_at("t\n", "") == "t"
    )
