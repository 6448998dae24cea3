# SPDX-License-Identifier: Apache-2.0
"""BFCL's multi-turn tasks: the package itself says what is right. Run by `make test-frameworks`."""

from __future__ import annotations

import contextlib
import io
import json
import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("bfcl_eval", reason="bfcl-eval is in .venv-frameworks: make test-frameworks")

from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call

from reward_kit.agent.environment import Answer, environment_of, finished
from reward_kit.agent.environments import bfcl
from reward_kit.agent.environments.bfcl import Bfcl, BfclWorld, bfcl_multi_turn, recorded_turns, rows, verdict_of
from reward_kit.agent.environments.bfcl_simulators import MOST_STEPS, Simulators, UndecodableError, check, decoded
from reward_kit.agent.episode import Episodes
from reward_kit.agent.playback import Playback
from reward_kit.config_models import AgentConfig, Sampling
from reward_kit.errors import DatasetError, ReplayError
from reward_kit.evaluation import evaluate
from reward_kit.models import Failure, Message, Rollout, Sample

Step = list[tuple[str, str]]
"""Calls of one step: function, and arguments as JSON."""


@cache
def tasks() -> dict[str, dict[str, Any]]:
    return {row["id"]: row for category in bfcl.CATEGORIES for row in rows(category)}


def sample_of(task_id: str) -> Sample:
    row = tasks()[task_id]
    columns = {name: row[name] for name in ("user_turns", "initial_config", "involved_classes", "missed_function")}
    return Sample(id=task_id, messages=row["messages"], ground_truth=row["ground_truth"], columns=columns)


def gold_steps(task_id: str) -> list[list[Step]]:
    """The gold answer as a model would give it: each turn's calls in one step, then a step without any."""
    turns = tasks()[task_id]["ground_truth"]
    return [[*([[_as_json(call) for call in turn]] if turn else []), []] for turn in turns]


def _as_json(call: str) -> tuple[str, str]:
    """A gold call, which may give arguments by position, as function and JSON."""
    import ast
    import inspect

    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    given = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
    if node.args:
        names = [name for name in inspect.signature(_method(node.func.id)).parameters if name != "self"]
        given |= dict(zip(names, map(ast.literal_eval, node.args), strict=False))
    return node.func.id, json.dumps(given)


@cache
def _method(name: str) -> Any:
    classes = {kind for row in tasks().values() for kind in row["involved_classes"]}
    made = Simulators(sorted(classes), {})
    return next(getattr(each, name) for each in made.instances.values() if hasattr(each, name))


def recorded(turns: Sequence[Sequence[Step]]) -> list[Message]:
    said = recorded_turns([[[{name: given} for name, given in step] for step in turn] for turn in turns])
    assert isinstance(said, list)
    return said


def theirs(task_id: str, turns: Sequence[Sequence[Step]], name: str) -> str:
    """What the package's own checker says."""
    row = tasks()[task_id]
    readable = [[step for step in map(_read, turn) if step] for turn in turns]
    if len(readable) != len(row["ground_truth"]):
        return "multi_turn:force_terminated"
    with contextlib.redirect_stdout(io.StringIO()):
        found = multi_turn_checker(readable, row["ground_truth"], row, "", name)
    return "valid" if found["valid"] else str(found["error_type"])


def _read(step: Step) -> list[str]:
    try:
        return decoded(step)
    except UndecodableError:
        return []


def played(task_id: str, said: Sequence[Message]) -> Rollout:
    """An episode, played without an engine and read back from its line."""
    world, turns = BfclWorld(sample_of(task_id)), list[Message]()
    for message in said:
        world.runner.begin_turn()
        answer = world.answer(message)
        turns += [message, *answer.messages]
        if answer.done:
            break
    rollout = Rollout(sample=sample_of(task_id), response_index=0, turns=turns, facts=world.facts())
    return Rollout.model_validate_json(rollout.model_dump_json())


# ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_gold_answer_is_valid() -> None:
    wrong = [task_id for task_id in tasks() if not verdict_of(played(task_id, recorded(gold_steps(task_id)))).valid]
    assert len(tasks()) == 800 and wrong == []


def _spoilt(turns: list[list[Step]], draw: random.Random) -> list[list[Step]]:  # noqa: C901 - a case for each mistake
    """The gold answer with some mistakes that models make."""
    turns = [[list(step) for step in turn] for turn in turns]
    for _ in range(draw.randint(1, 3)):
        turn = draw.choice(turns)
        place = draw.randrange(len(turn))
        step = turn[place]
        match draw.randrange(9):
            case 0:
                turn[place] = step[:-1]
            case 1 if step:
                turn.insert(place, [draw.choice(step)])
            case 2 if _read(step):
                step[0] = (step[0][0], json.dumps({**json.loads(step[0][1]), "no_such": 1}))
            case 3:
                turn.insert(place, [("no_such_function", "{}"), ("json", "{}"), ("exec", '{"cmd": "ls"}')])
            case 4:
                turn.insert(place, [("ls<|channel|>commentary", '{"a": true}')])
            case 5 if step:
                step[0] = (step[0][0], step[0][1][:-1])
            case 6 if _read(step):
                values = {key: f"{value} (see cat (x))" for key, value in json.loads(step[0][1]).items()}
                step[0] = (step[0][0], json.dumps(values))
            case 7 if step:
                draw.shuffle(step)
            case 8:
                turn.insert(place, [("run", "{}"), ("round", '{"number": 2.5}'), ("ls", '{"a": NaN}')])
    return turns


@pytest.mark.parametrize("seed", range(8))
def test_spoilt_answers_get_the_verdict_of_the_package(seed: int) -> None:
    draw = random.Random(seed)
    for number, task_id in enumerate(draw.sample(sorted(tasks()), 40)):
        turns = _as_played(_spoilt(gold_steps(task_id), draw))
        ours = verdict_of(played(task_id, recorded(turns)))
        assert ours.kind == theirs(task_id, turns, f"m{seed}_{number}"), (task_id, turns)


def _as_played(turns: list[list[Step]]) -> list[list[Step]]:
    """Only what a model would have been asked for: a turn ends with the first step that cannot be read or is empty."""
    kept: list[list[Step]] = []
    for turn in turns:
        readable = next((place for place, step in enumerate(turn) if not _read(step)), len(turn))
        kept.append([*turn[:readable], []])
    return kept


@pytest.mark.parametrize("seed", range(4))
def test_outputs_are_those_of_the_package_byte_for_byte(seed: int) -> None:
    draw = random.Random(100 + seed)
    for number, task_id in enumerate(draw.sample(sorted(tasks()), 25)):
        row, name = tasks()[task_id], f"o{seed}_{number}"
        is_long = "long_context" in task_id
        ours = Simulators(
            row["involved_classes"], row["initial_config"], long_context=is_long, name=f"{name}_{task_id}"
        )
        for turn in _spoilt(gold_steps(task_id), draw):
            for step in map(_read, turn):
                expected, _ = execute_multi_turn_func_call(
                    step, row["initial_config"], row["involved_classes"], name, task_id, long_context=is_long
                )
                assert [ours.run(call) for call in step] == expected


def test_what_ended_an_inference_is_an_inference_error() -> None:
    failure = recorded_turns("Error during inference: down")
    assert isinstance(failure, Failure)
    rollout = Rollout(sample=sample_of("multi_turn_base_0"), response_index=0, failure=failure)
    assert verdict_of(rollout).kind == "multi_turn:inference_error"


def test_the_reward_names_the_kind_of_error() -> None:
    rollout = played("multi_turn_base_0", recorded([[[]] for _ in gold_steps("multi_turn_base_0")]))
    sample = rollout.sample
    result = bfcl_multi_turn(
        messages=rollout.messages, ground_truth=sample.ground_truth, sample_id=sample.id, **sample.columns
    )
    assert result.score == 0.0
    assert result.reason == "multi_turn:empty_turn_model_response: no calls were made (turn 0)"


def test_a_record_that_cannot_have_happened_is_no_verdict() -> None:
    rollout = played("multi_turn_base_0", recorded(gold_steps("multi_turn_base_0")))
    forged = [
        message.model_copy(update={"content": "{}"}) if message.role == "tool" else message for message in rollout.turns
    ]
    with pytest.raises(ReplayError, match="Call 0 of 'multi_turn_base_0' gave"):
        verdict_of(rollout.model_copy(update={"turns": forged}))


# ── the world ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_functions_that_were_held_back_are_added_in_their_turn() -> None:
    task_id = "multi_turn_miss_func_1"
    world = BfclWorld(sample_of(task_id))
    before = {tool.name for tool in world.tools}
    assert "mv" not in before
    world.answer(Message(role="assistant", content="done"))
    answer = world.answer(Message(role="assistant", content="I cannot"))
    assert {tool.name for tool in world.tools} == before | {"mv"}
    assert [message.role for message in answer.messages] == ["user"] and "functions" in answer.messages[0].text
    schema = {tool.name: tool.parameters for tool in world.tools}["mv"]
    assert schema["type"] == "object" and schema["properties"]["source"]["type"] == "string"


def test_a_model_that_does_not_stop_is_stopped() -> None:
    turns = [[[("ls", "{}")]] * (MOST_STEPS + 5)]
    rollout = played("multi_turn_base_0", recorded(turns))
    assert sum(message.role == "assistant" for message in rollout.turns) == MOST_STEPS + 1
    assert rollout.facts is not None and rollout.facts["was_stopped"]
    assert verdict_of(rollout).kind == "multi_turn:force_terminated"


def test_calls_that_cannot_be_read_end_the_turn_and_none_is_run() -> None:
    world = BfclWorld(sample_of("multi_turn_base_0"))
    (message,) = recorded([[[("mkdir", '{"dir_name": "x"}'), ("ls", "{")]]])
    before = world.facts()["state"]
    answer = world.answer(message)
    assert [each.role for each in answer.messages] == ["user"]
    assert [use.error for use in world.runner.uses] == ["bad_json", "bad_json"]
    assert world.facts()["state"] == before
    telling = BfclWorld(sample_of("multi_turn_base_0"), tell_unreadable=True)
    assert [each.role for each in telling.answer(message).messages] == ["tool", "tool", "user"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("__import__", {"name": "os"}),
        ("open", {"file": "made_by_a_model", "mode": "w"}),
        ("breakpoint", {}),
        ("ls", {"a=[].__class__.__base__.__subclasses__(), b": 1}),
        ("ls", {"a=__import__('os').system('touch made_by_a_model'), b": 1}),
        ("(lambda: open('made_by_a_model', 'w'))", {}),
        ("model_multi_turn_base_0_GorillaFileSystem_instance._load_scenario", {"scenario": {}}),
        ("json.loads", {"s": "1"}),
        ("exec", {"globals": {}}),
        ("cd", {"folder='a'); open('made_by_a_model', 'w'": 1}),
    ],
)
def test_nothing_runs_but_the_simulators(
    name: str, arguments: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    world = BfclWorld(sample_of("multi_turn_base_0"))
    before = world.facts()["state"]
    (message,) = recorded([[[(name, json.dumps(arguments))]]])
    assert world.answer(message).messages[0].text.startswith("Error during execution: ")
    assert list(tmp_path.iterdir()) == [] and world.facts()["state"] == before


@pytest.mark.parametrize(
    "environment", [environment_of(Bfcl), environment_of(BfclWorld)], ids=["in processes", "in one process"]
)
async def test_two_draws_of_one_task_do_not_touch_each_other(environment: Any) -> None:
    task_id = "multi_turn_base_0"
    one, other = await environment.open(sample_of(task_id)), await environment.open(sample_of(task_id))
    shown: dict[int, list[str]] = {0: [], 1: []}
    for message in recorded(gold_steps(task_id)):
        for draw, world in enumerate((one, other)):  # by turns
            answer: Answer = await finished(world.answer(message))
            shown[draw] += [each.text for each in answer.messages]
    alone = [
        message.text for message in played(task_id, recorded(gold_steps(task_id))).turns if message.role != "assistant"
    ]
    assert shown[0] == shown[1] == alone
    await environment.close()


async def test_episodes_of_an_engine_are_judged_from_their_lines() -> None:
    chosen = ["multi_turn_base_0", "multi_turn_miss_func_1", "multi_turn_long_context_3"]
    spoilt = {task_id: _as_played(_spoilt(gold_steps(task_id), random.Random(5))) for task_id in chosen}
    client = Playback(
        {
            **{(task_id, 0): recorded(gold_steps(task_id)) for task_id in chosen},
            **{(task_id, 1): recorded(spoilt[task_id]) for task_id in chosen},
        }
    )
    config = AgentConfig(max_turns=1000, max_bad_calls=None)
    environment = Bfcl()
    episodes = Episodes(client, Sampling(), None, environment, config)
    for number, task_id in enumerate(chosen):
        rollouts = await episodes(sample_of(task_id), [0, 1])
        lines = [Rollout.model_validate_json(rollout.model_dump_json()) for rollout in rollouts]
        assert [rollout.failure for rollout in lines] == [None, None]
        assert verdict_of(lines[0]).valid
        assert verdict_of(lines[1]).kind == theirs(task_id, spoilt[task_id], f"e{number}")
    await environment.close()


def test_a_run_plays_and_judges_it(tmp_path: Path) -> None:
    chosen = ["multi_turn_base_0", "multi_turn_miss_func_1"]
    (tmp_path / "tasks.jsonl").write_text("".join(f"{json.dumps(tasks()[task_id])}\n" for task_id in chosen))
    lazy = {(task_id, 1): recorded([[[]] for _ in gold_steps(task_id)]) for task_id in chosen}
    result = evaluate(
        str(tmp_path / "tasks.jsonl"),
        "reward_kit.agent.environments.bfcl:bfcl_multi_turn",
        model=Playback({**{(task_id, 0): recorded(gold_steps(task_id)) for task_id in chosen}, **lazy}),
        n=2,
        agent={"environment": "reward_kit.agent.environments.bfcl:Bfcl", "max_turns": 1000, "max_bad_calls": None},
        output_dir=tmp_path / "out",
    )
    result.raise_for_failures()
    judged = {(row["id"], row["response_index"]): row["evaluation_score"] for row in result.rows()}
    assert judged == {(task_id, draw): 1.0 - draw for task_id in chosen for draw in (0, 1)}


def test_a_sample_that_is_no_task_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no column 'user_turns'"):
        BfclWorld(Sample(id="x", messages=[]))
    with pytest.raises(DatasetError, match="There are: multi_turn_base"):
        next(rows("multi_turn"))
    assert bfcl.write_rows("multi_turn_base", tmp_path / "tasks.jsonl") == 200
    first: dict[str, Any] = json.loads((tmp_path / "tasks.jsonl").read_text().splitlines()[0])
    assert first["id"] == "multi_turn_base_0" and first["messages"][0]["role"] == "user"


def test_simulators_hold_no_piece_of_a_table_that_others_hold() -> None:
    def cards() -> dict[str, dict[str, Any]]:
        travel = Simulators(["TravelAPI"], {}, long_context=True).instances["TravelAPI"]
        held: dict[str, dict[str, Any]] = travel.credit_card_list
        return held

    first, expected = cards(), json.dumps(cards())
    assert first
    for card in first.values():
        card["balance"] = -1
    assert json.dumps(cards()) == expected


def test_checks_count_outputs_as_often_as_they_are_wanted() -> None:
    def fresh() -> Simulators:
        return Simulators(["MathAPI"], {})

    twice = ["add(a=1,b=1)", "add(a=1,b=1)"]
    assert (
        check([[["add(a=1,b=1)"]]], [twice], fresh(), fresh()).verdict.kind == "multi_turn:execution_response_mismatch"
    )
    assert check([[twice]], [twice], fresh(), fresh()).verdict.valid


@pytest.fixture(autouse=True)
def _no_objects_left_in_globals() -> Iterator[None]:
    """The package keeps what its checker made: take it out again, so that no test meets another's."""
    from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils

    before = set(vars(multi_turn_utils))
    yield
    for name in set(vars(multi_turn_utils)) - before:
        delattr(multi_turn_utils, name)
