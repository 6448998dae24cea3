# SPDX-License-Identifier: Apache-2.0
"""The parts of a run: each is a file and a line in a table, and whoever takes both away takes away nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reward_kit.errors import ConfigError
from reward_kit.execution import parts
from reward_kit.execution.engine import End
from reward_kit.execution.engines import ENGINES, engine_of
from reward_kit.execution.options import RunInputs, RunOptions
from reward_kit.execution.parts.part import Entry, Part
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult
from reward_kit.generation.mock import MockModelClient
from reward_kit.storage.run_directory import RunDirectory
from tests.loopback.runs import config

FOLDER = Path(parts.__file__).parent

REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "mirroring": ({}, {"resume_from_mirror": True}, "needs a mirror to go on from"),
    "by_batches": ({"generation__transport": "batch"}, {"client": MockModelClient()}, "cannot be used with batches"),
    "agent_turns": ({"agent": {"tools": ["nobody:nothing"]}}, {}, "nobody"),
}
"""By part: settings and options of which it says that they cannot be."""


def test_every_file_is_in_the_table_and_nothing_else_is() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "part"} == parts.PARTS.keys() == REFUSED.keys()


@pytest.mark.parametrize("name", REFUSED)
def test_without_its_line_a_part_is_gone_and_runs_go_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, options, said = REFUSED[name]
    told = config(tmp_path, **settings)
    with pytest.raises(ConfigError, match=said):
        EvaluationPipeline(told, **options).run()
    monkeypatch.delitem(parts.PARTS, name)
    assert EvaluationPipeline(told, **options).run().judged == 4


class Diary(Part):
    """Writes down when it has its turn, and what it can see then."""

    written: list[str]

    def __init__(self, inputs: RunInputs) -> None:
        super().__init__(inputs)
        type(self).written = ["made"]

    def check(self, *, planning: bool) -> None:
        self.written.append(f"check, {self.inputs.path.exists()}, {planning}")

    async def prepare(self) -> None:
        self.written.append(f"prepare, {self.inputs.path.exists()}")

    async def enter(self, directory: RunDirectory) -> None:
        self.written.append(f"enter, {[path.name for path in directory.path.iterdir()]}")

    async def before(self, entry: Entry) -> End | None:
        self.written.append(f"before, {len(entry.ledger.rollouts)}")
        return None

    def after(self, entry: Entry, end: End) -> End:
        self.written.append(f"after, {entry.rollouts.keys}, {end.status}")
        return End("stopped", "the diary is full")

    async def leave(self, result: RunResult | None) -> RunResult | None:
        self.written.append(f"leave, {result and result.status}")
        return result


class Objection(Part):
    """Ends every run before its stages."""

    async def before(self, entry: Entry) -> End | None:
        del entry
        return End("detached", "not today")


class Mishap(Part):
    """Something goes wrong in the middle."""

    async def before(self, entry: Entry) -> End | None:
        del entry
        raise ConfigError("a mishap")


@pytest.fixture
def more_parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Adds parts to the table, as a file for each would."""

    def add(*kinds: type[Part]) -> None:
        for kind in kinds:
            name = kind.__name__.lower()
            module = ModuleType(name)
            setattr(module, kind.__name__, kind)
            monkeypatch.setitem(sys.modules, f"{parts.__name__}.{name}", module)
            monkeypatch.setitem(parts.PARTS, name, kind.__name__)

    return add


def test_a_part_has_its_turn_at_every_step(more_parts: Any, tmp_path: Path) -> None:
    more_parts(Diary)
    pipeline = EvaluationPipeline(config(tmp_path))
    pipeline.plan()
    assert Diary.written == ["made", "check, False, True"], "a plan enters nothing"
    result = pipeline.run()
    assert Diary.written[2:] == [
        "check, False, False", "prepare, False", "enter, ['.lock']", "before, 0", "after, 4, finished", "leave, stopped"
    ]  # fmt: skip
    assert (result.status, result.reason, result.judged) == ("stopped", "the diary is full", 4)


def test_a_part_may_end_a_run_before_its_stages(more_parts: Any, tmp_path: Path) -> None:
    more_parts(Diary, Objection)
    result = EvaluationPipeline(config(tmp_path)).run()
    assert (result.status, result.reason, result.counters.generated) == ("detached", "not today", 0)
    assert Diary.written[-2:] == ["before, 0", "leave, detached"]


def test_a_part_that_was_entered_leaves_whatever_goes_wrong(more_parts: Any, tmp_path: Path) -> None:
    more_parts(Diary, Mishap)
    with pytest.raises(ConfigError, match="a mishap"):
        EvaluationPipeline(config(tmp_path)).run()
    assert Diary.written[-2:] == ["before, 0", "leave, None"]


def test_options_are_one_value_and_may_be_given_by_name(tmp_path: Path) -> None:
    told = config(tmp_path)
    assert EvaluationPipeline(told, RunOptions(phase="inference")).run().counters.generated == 4
    assert EvaluationPipeline(told, phase="execution").run().judged == 4
    with pytest.raises(TypeError, match="phaze"):
        EvaluationPipeline(told, phaze="execution")
    with pytest.raises(TypeError, match="twice"):
        EvaluationPipeline(told, RunOptions(phase="execution"), rescore=True)


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_of_the_table_can_be_made(name: str, tmp_path: Path) -> None:
    pytest.importorskip("ray") if name == "ray" else None
    inputs = RunInputs.of(config(tmp_path), RunOptions(engine=name))
    engine = engine_of(inputs, tmp_path, None, None, None)  # type: ignore[arg-type]
    assert type(engine).__name__ == ENGINES[name][1]
