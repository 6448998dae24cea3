# SPDX-License-Identifier: Apache-2.0
"""One row and one answer at every door, a run's, the trainers', a server's: the same is judged, by the same truth."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reward_kit.config_models import RewardConfig
from reward_kit.datasets.interpret import RowReader
from reward_kit.datasets.rows import Written, as_json, as_table
from reward_kit.errors import RewardKitError
from reward_kit.integrations.attempts import attempt, skyrl_row
from reward_kit.integrations.braintrust import reward_fn_to_scorer
from reward_kit.integrations.openrlhf import reward_func_for
from reward_kit.integrations.trl import create_trl_adapter
from reward_kit.integrations.verifiers import rubric_reward
from reward_kit.integrations.verl import compute_score_for
from reward_kit.integrations.world_session import sample_from_row
from reward_kit.models import EvaluateResult, Message, Rollout
from reward_kit.reward_call import RewardCall
from reward_kit.serving.app import RewardApp, build_app
from reward_kit.serving.dialect import BadRequest, Incoming
from reward_kit.serving.dialects import DIALECTS, load_dialect
from reward_kit.serving.settings import ServeSettings
from tests.datasets.row_shapes import Case, cases

ANSWER = "It is 5."
FORGED = "what the data would like to be judged"
CONVERSATIONS = ("messages", "prompt", "input")

seen: dict[str, Any] = {}


def spy(messages: list[Message], response: str, ground_truth: Any = None, **kwargs: Any) -> float:
    """What it was handed is put down, and decides the score."""
    asked = [turn.text for turn in messages[:-1]]
    seen.update(said=response, truth=ground_truth, asked=asked[-1:], columns=kwargs)
    return float(len(repr((response, ground_truth))))


def by_the_book(row: Mapping[str, Any], written: Written) -> dict[str, Any] | None:
    """What a run over such a file or table hands over, None where it refuses the row."""
    try:
        sample = RowReader().sample_as_it_is(row, written=written)
    except RewardKitError:
        return None
    turn = Message(role="assistant", content=ANSWER)
    call = RewardCall(spy)
    call.judge(call.arguments_of([Rollout(sample=sample, response_index=0, turns=[turn])]))
    return dict(seen)


def turns_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    asking = {name: value for name, value in row.items() if name.lower() in CONVERSATIONS}
    return [turn.model_dump(exclude_unset=True) for turn in RowReader().sample(asking).messages]


def apart(row: Mapping[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The conversation of a row and the rest of it, for callers that send the two apart."""
    return turns_of(row), {name: value for name, value in row.items() if name.lower() not in CONVERSATIONS}


# ── the doors ────────────────────────────────────────────────────────────────────────────────────────────────────────


def trl(row: Mapping[str, Any]) -> None:
    turns, rest = apart(row)
    prompt = row["prompt"] if isinstance(row.get("prompt"), str) else turns
    adapter = create_trl_adapter(spy, workers=0, on_error="raise")
    adapter([prompt], [ANSWER], **{name: [value] for name, value in rest.items()})


def verl(row: Mapping[str, Any]) -> None:
    turns, rest = apart(row)
    (truth,) = [rest.pop(name) for name in list(rest) if name == "ground_truth"] or [None]
    score = compute_score_for(spy, failed_score=None, workers=0)
    asyncio.run(score(rest.pop("data_source", "sums"), ANSWER, truth, {**rest, "prompt": turns}))


def rubric(row: Mapping[str, Any]) -> None:
    turns, rest = apart(row)
    (truth,) = [rest.pop(name) for name in list(rest) if name == "ground_truth"] or [None]
    asyncio.run(rubric_reward(spy, workers=0)(turns, ANSWER, truth, rest))


def openrlhf(row: Mapping[str, Any]) -> None:
    prompt, label = str(turns_of(row)), RowReader().sample(row).ground_truth
    reward_func_for(spy, failed_score=None, workers=0)([f"<s>{prompt}{ANSWER}"], [prompt], [label])


def world(row: Mapping[str, Any]) -> None:
    turn = Message(role="assistant", content=ANSWER)
    call = RewardCall(spy)
    call.judge(call.arguments_of([Rollout(sample=sample_from_row(row), response_index=0, turns=[turn])]))


def through(
    dialect: str, path: str, body: Callable[[list[dict[str, Any]], dict[str, Any]], Any]
) -> Callable[..., None]:
    route = next(route for route in load_dialect(dialect).routes if route.path == path)

    def door(row: Mapping[str, Any]) -> None:
        (rollout,) = route.read(Incoming(json.loads(json.dumps(body(*apart(row)))), {})).asked
        assert isinstance(rollout, Rollout)
        call = RewardCall(spy)
        call.judge(call.arguments_of([rollout]))

    return door


def spoken(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


DOORS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "trl": trl,
    "verl": verl,
    "rubric": rubric,
    "openrlhf": openrlhf,
    "world": world,
    "reward": through("generic", "/reward", lambda turns, rest: {**rest, "messages": [*turns, spoken(ANSWER)]}),
    "generic": through("generic", "/evaluate", lambda turns, rest: {**rest, "messages": [*turns, spoken(ANSWER)]}),
    "kwargs": through(
        "generic", "/evaluate", lambda turns, rest: {"messages": [*turns, spoken(ANSWER)], "kwargs": rest}
    ),
    "fireworks": through(
        "fireworks", "/fireworks/evaluate", lambda turns, rest: {**rest, "messages": [*turns, spoken(ANSWER)]}
    ),
    "slime": through("slime", "/slime", lambda turns, rest: {**rest, "prompt": turns, "response": ANSWER}),
    "nemo-gym": through(
        "nemo-gym", "/verify",
        lambda turns, rest: {
            **rest, "responses_create_params": {"input": [{"type": "message", **turn} for turn in turns]},
            "response": {"output": [{"type": "message", **spoken(ANSWER)}]},
        },
    ),
    "azure": through(
        "azure", "/azure",
        lambda turns, rest: {"item": {**rest, "messages": turns}, "sample": {"output_text": ANSWER}},
    ),
}  # fmt: skip


FROM_TABLES = frozenset({"trl", "verl", "rubric", "openrlhf", "world"})
TELL_APART = frozenset({"verl", "rubric", "openrlhf"})
"""Doors whose callers tell the ground truth apart from the row."""


def plain_enough(case: Case) -> bool:
    """Whether the row asks in words, without an answer in it, so that a prompt can be told apart from it."""
    names = {name.lower() for name in case.row}
    asked = names & {"messages", "prompt", "user_query", "question", "problem", "query", "instruction", "input"}
    only = asked <= {"messages"} or asked <= {"prompt"}
    known = names & {"conversations", "category", "completion", "test", "input_output"}
    tool_calls = "tool_call" in json.dumps(case.row)  # the Responses API writes them in another way
    return only and not known and not case.ends_with_answer and not tool_calls and len(asked) == 1


@pytest.mark.parametrize("door", list(DOORS))
@settings(max_examples=60, suppress_health_check=[HealthCheck.filter_too_much])
@given(case=cases().filter(plain_enough))
def test_a_row_means_the_same_at_every_door(door: str, case: Case) -> None:
    row = {name: value for name, value in case.row.items() if name not in ("id", "uuid", "input_metadata")}
    if door in TELL_APART and (case.unclear or not any(name == "ground_truth" for name in row)):
        return
    expected = by_the_book(row, as_table if door in FROM_TABLES else as_json)
    seen.clear()
    if expected is None:
        with pytest.raises((RewardKitError, BadRequest), match="unclear what"):
            DOORS[door](row)
        return
    DOORS[door](row)
    assert seen["said"] == ANSWER
    if door == "reward" and expected["truth"] is None:  # as older callers know it, who are handed the prompt
        expected["truth"] = turns_of(row)
    assert repr(seen["truth"]) == repr(expected["truth"])
    if door == "openrlhf":  # it has nothing but a text, and what is right
        return
    assert seen["asked"] == expected["asked"]
    told_apart = {name for name in row if name.lower() in CONVERSATIONS and (door, name) != ("trl", "prompt")}
    columns = {name: value for name, value in expected["columns"].items() if name not in told_apart}
    assert {name: seen["columns"].get(name) for name in columns} == columns


# ── any columns beside a prompt ──────────────────────────────────────────────────────────────────────────────────────

ASKED = "Think. What is 2 + 2?"
COLUMNS: dict[str, list[Any]] = {
    **{name: ["2 + 2?"] for name in ("question", "Question", "problem", "query", "instruction", "question_content")},
    **{name: ["4", 4.0] for name in ("target", "label", "expected_answer", "final_answer", "reference", "completion")},
    "input": ["2 + 2", ""], "answer": ["4", "Add.\n#### 4", 4, ["4"], "", None, True, {"a": 1}], "Answer": ["5"],
    "solution": [r"So \boxed{4}", "4", ["4"]], "output": ["4", "5"], "ground_truth_for_eval": ["4", "5"],
    "ground_truth": ["4", 4, 0, False, 1.5, None, "", [], {}, ["a"]], "reward_model": [{"ground_truth": "4"}, {}],
    "input_output": ["{}"], "test_list": [["assert f()"]], "text": ["Write f."], "test": ["t"], "entry_point": ["f"],
    "conversations": [[{"from": "human", "value": "2 + 2?"}, {"from": "gpt", "value": "4"}]], "starter_code": ["def f"],
    "public_test_cases": ["[]"], "choices": [["a", "b"]], "system_prompt": ["Be brief."], "split": ["train"],
    "tools": [[{"type": "function", "function": {"name": "f"}}]], "category": ["math"], "data_source": ["sums"],
    "metadata": ["{}", {"expected_answer": "4"}], "extra_info": [{"answer": "9"}], "task": ["Add."],
    "success_condition": ["true"], "setup_commands": [["true"]], "difficulty": [1, 2.5], "id": ["row-1", 7],
    "uuid": ["u"], "query_id": ["q"], "input_metadata": [{"row_id": "r"}],
    **{name: [FORGED] for name in ("model", "steps", "sample_id", "assistant_response", "rollout", "columns")},
}  # fmt: skip
"""What people have beside a `prompt`, made ready for a trainer: all that means something to some format, and more."""
MADE_OF_SEVERAL = ({"test_list"}, {"instruction", "output"})
"""Formats whose question a run puts together of several columns; a trainer has asked its prompt already."""
_TURN = {"role": "user", "content": ASKED}
PROMPTS: list[Any] = [ASKED, [_TURN], [{"role": "system", "content": "S"}, _TURN]]
rows_beside = st.lists(st.sampled_from(list(COLUMNS)), max_size=6, unique=True).flatmap(
    lambda names: st.fixed_dictionaries(
        {"prompt": st.sampled_from(PROMPTS), **{name: st.sampled_from(COLUMNS[name]) for name in names}}
    )
)


def told(row: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """A row as callers have it who tell prompt and truth apart."""
    rest = {name: value for name, value in row.items() if name not in ("prompt", "ground_truth")}
    return row["prompt"], row.get("ground_truth"), rest


def trl_beside(row: dict[str, Any]) -> None:
    given = {name: [value] for name, value in row.items() if name != "prompt"}
    create_trl_adapter(spy, workers=0, on_error="raise")([row["prompt"]], [ANSWER], **given)


def verl_beside(row: dict[str, Any]) -> None:
    prompt, truth, rest = told(row)
    score = compute_score_for(spy, failed_score=None, workers=0)
    asyncio.run(score(rest.pop("data_source", None), ANSWER, truth, {**rest, "prompt": prompt}))


def rubric_beside(row: dict[str, Any]) -> None:
    prompt, truth, rest = told(row)
    asyncio.run(rubric_reward(spy, workers=0)(prompt, ANSWER, truth, rest))


def skyrl_beside(row: dict[str, Any]) -> None:
    call = RewardCall(spy)
    call.judge(call.arguments_of([attempt(row, row["prompt"], ANSWER)]))


def whole(dialect: str, path: str, body: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], None]:
    """A door whose callers send the row as it is."""
    route = next(route for route in load_dialect(dialect).routes if route.path == path)

    def door(row: dict[str, Any]) -> None:
        (rollout,) = route.read(Incoming(json.loads(json.dumps(body(row))), {})).asked
        assert isinstance(rollout, Rollout)
        call = RewardCall(spy)
        call.judge(call.arguments_of([rollout]))

    return door


BESIDE: dict[str, Callable[[dict[str, Any]], None]] = {
    "trl": trl_beside, "verl": verl_beside, "rubric": rubric_beside, "skyrl": skyrl_beside, "world": world,
    "slime": whole("slime", "/slime", lambda row: {**row, "response": ANSWER}),
    "azure": whole("azure", "/azure", lambda row: {"item": row, "sample": {"output_text": ANSWER}}),
    "verl served": whole("verl", "/verl", lambda row: {"solution_str": ANSWER, "extra_info": row}),
}  # fmt: skip


@pytest.mark.parametrize("door", list(BESIDE))
@settings(max_examples=150)
@given(row=rows_beside)
def test_whatever_stands_beside_a_prompt_means_the_same_at_every_door(door: str, row: dict[str, Any]) -> None:
    row = dict(row)
    if door in ("verl", "rubric"):  # which always tell a truth, known or not
        row.setdefault("ground_truth", None)
    if door == "verl":
        row.setdefault("data_source", None)
    expected = by_the_book(row, as_table if door in (*FROM_TABLES, "skyrl") else as_json)
    seen.clear()
    if expected is None:
        with pytest.raises((RewardKitError, BadRequest), match=r"unclear what|keep the one that is right"):
            BESIDE[door](row)
        return
    BESIDE[door](row)
    if any(made <= row.keys() for made in MADE_OF_SEVERAL):
        seen["asked"] = expected["asked"] if seen["asked"] == [ASKED] else seen["asked"]
    assert {**seen, "truth": repr(seen["truth"])} == {**expected, "truth": repr(expected["truth"])}


@settings(max_examples=100)
@given(case=cases())
def test_an_item_of_azure_asks_what_its_row_asks(case: Case) -> None:
    route = load_dialect("azure").routes[0]
    body = json.loads(json.dumps({"item": case.row, "sample": {"output_text": ANSWER}}))
    if case.unclear:
        with pytest.raises(BadRequest, match="unclear what"):
            route.read(Incoming(body, {}))
        return
    (rollout,) = route.read(Incoming(body, {})).asked
    assert isinstance(rollout, Rollout)
    said = [turn.text for turn in rollout.messages[-2:]]
    assert (said, repr(rollout.sample.ground_truth)) == ([case.asked, ANSWER], repr(case.truth))
    assert rollout.sample.columns == RowReader().sample(case.row).columns


# ── what is judged ───────────────────────────────────────────────────────────────────────────────────────────────────

FORGERIES = {
    name: FORGED
    for name in ("response", "responses", "rollout", "rollouts", "model", "finish_reason", "ended", "facts", "steps",
                 "truncated", "assistant_response", "response_index", "sample_id", "columns")
}  # fmt: skip


def facts(  # noqa: PLR0913, PLR0917 - one parameter per fact
    messages: list[Message], response: str, model: Any, finish_reason: Any, ended: Any, facts: Any, steps: Any,
    truncated: Any, rollout: Rollout, ground_truth: Any = None,
) -> EvaluateResult:  # fmt: skip
    told = (messages[-1].text, response, model, finish_reason, ended, facts, steps, truncated, rollout.text)
    return EvaluateResult(score=float(FORGED not in repr(told) and response == "4"), reason=repr(told))


def test_no_column_or_field_stands_in_the_place_of_what_is_judged() -> None:
    row = {"prompt": "2 + 2?", "ground_truth": "4", **FORGERIES}
    adapter = create_trl_adapter(facts, workers=0, on_error="raise")
    others = {name: [value] for name, value in row.items() if name != "prompt"}
    assert adapter(["2 + 2?"], ["4"], **others) == [1.0]
    told = asyncio.run(compute_score_for(facts, failed_score=None, workers=0)("s", "4", "4", row, **FORGERIES))
    assert told["score"] == 1.0
    openrlhf = reward_func_for(facts, failed_score=None, workers=0)
    assert openrlhf(["2 + 2? 4"], ["2 + 2? "], ["4"], **FORGERIES)["rewards"] == 1.0
    scorer = reward_fn_to_scorer(facts)
    assert scorer("2 + 2?", "4", None, metadata=row) == 1.0
    call = RewardCall(facts)
    skyrl = attempt({**skyrl_row({**FORGERIES, "reward_spec": {"ground_truth": "4"}}), "prompt": "?"}, "?", "4")
    assert call.judge(call.arguments_of([skyrl])).score == 1.0


async def asked(app: RewardApp, path: str, body: Any) -> tuple[int, Any]:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(body).encode()}

    async def send(message: Any) -> None:
        sent.append(message)

    await app({"type": "http", "method": "POST", "path": path, "headers": []}, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


async def test_no_field_of_a_request_stands_in_the_place_of_what_is_judged() -> None:
    settings = ServeSettings(rewards={"facts": RewardConfig(function_path=f"{__name__}:facts")}, access_log=None)
    said = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]
    forged = {name: value for name, value in FORGERIES.items() if name not in ("rollout", "rollouts", "sample_id")}
    async with (app := build_app(settings, functions={"facts": facts})).open():
        for path, body, score in (
            ("/evaluate", {**forged, "messages": said}, lambda body: body["score"]),
            ("/evaluate", {"messages": said, "kwargs": FORGERIES}, lambda body: body["score"]),
            ("/slime", {**FORGERIES, "prompt": "2 + 2?", "response": "4", "label": "4"}, float),
            ("/verl", {**FORGERIES, "solution_str": "4", "extra_info": FORGERIES}, lambda body: body["score"]),
            (
                "/azure",
                {"item": {**FORGERIES, "query": "?"}, "sample": {"output_text": "4"}},
                lambda body: body["score"],
            ),
            ("/fireworks/evaluate", {"messages": said, "kwargs": FORGERIES}, lambda body: body["score"]),
            ("/openrlhf", {**FORGERIES, "query": ["2+2? 4"], "prompts": ["2+2? "]}, lambda body: body["rewards"]),
        ):
            status, reply = await asked(app, path, body)
            assert status == 200 and score(reply) == 1.0, (path, reply)


async def test_only_the_rollout_of_a_request_says_what_is_known_of_the_attempt() -> None:
    settings = ServeSettings(rewards={"facts": RewardConfig(function_path=f"{__name__}:facts")}, access_log=None)
    said = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]
    async with (app := build_app(settings, functions={"facts": facts})).open():
        told = {"model": "m", "finish_reason": "stop", "steps": [{"turn": 0, "reward": 0.5}], "facts": {"a": 1}}
        status, reply = await asked(app, "/evaluate", {"messages": said, "rollout": told})
        assert status == 200 and "'m', 'stop', None, {'a': 1}, [Step(turn=0, reward=0.5" in reply["reason"]
        unreadable: list[Any] = ["text", [], {"steps": "many"}, {"turns": said, "truncated": "maybe"}]
        for wrong in unreadable:
            status, reply = await asked(app, "/evaluate", {"messages": said, "rollout": wrong})
            assert status == 422, (wrong, reply)
        forged = {"turns": [{"role": "assistant", "content": FORGED}], "sample": {"id": FORGED, "messages": []}}
        status, reply = await asked(app, "/evaluate", {"messages": said, "rollout": forged})
        assert (status, reply["score"]) == (200, 1.0)


def compared(rollouts_messages: list[list[Message]], **kwargs: Any) -> list[float]:
    return [float(len(rollouts_messages)) for _ in rollouts_messages]


def test_a_reward_that_compares_answers_is_refused_to_callers_that_send_one() -> None:
    group = RewardConfig(function_path="compared")
    for dialect in set(DIALECTS) - {"generic"}:
        with pytest.raises(RewardKitError, match=f"callers of the dialect '{dialect}' send one answer at a time"):
            build_app(ServeSettings(rewards={"compared": group}, dialects=[dialect]), functions={"compared": compared})
    app = build_app(ServeSettings(rewards={"compared": group}, access_log=None), functions={"compared": compared})
    said = {"prompt": "?", "response": "4"}

    async def ask() -> tuple[int, Any]:
        async with app.open():
            return await asked(app, "/slime", said)

    assert asyncio.run(ask())[0] == 404
