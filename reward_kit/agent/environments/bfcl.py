# SPDX-License-Identifier: Apache-2.0
"""BFCL's multi-turn tasks as an environment, and its verdict as a reward. Needs the package `bfcl-eval`.

`single_turn_rows` has the tasks of a single turn, which need no environment: `exact_tool_match_reward(rules="bfcl")`.

    write_rows("multi_turn_base", "tasks.jsonl")               the tasks of a category as a dataset
    agent.environment: reward_kit.agent.environments.bfcl:Bfcl
    reward.function_path: reward_kit.agent.environments.bfcl:bfcl_multi_turn

The user's turns are scripted. The model makes calls, step by step, until it makes none that can be read; then the next
turn begins, and tools that were held back may be added. After `MOST_STEPS` steps in one turn, and one more, the model
is stopped. The verdict follows from the messages alone: the calls are made again, in fresh simulators.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.agent.environment import Answer, World
from reward_kit.agent.environments.bfcl_simulators import (
    MOST_STEPS,
    BfclVerdict,
    Simulators,
    UndecodableError,
    check,
    decoded,
    needs_bfcl,
)
from reward_kit.agent.tools import Tool
from reward_kit.agent.worker_worlds import InWorker
from reward_kit.answers.tool_calls.tools import as_json_schema
from reward_kit.errors import DatasetError, ReplayError
from reward_kit.models import (
    ChatCompletionMessageToolCall,
    EvaluateResult,
    Failure,
    FunctionCall,
    Message,
    Rollout,
    Sample,
    ToolUse,
)
from reward_kit.storage.files import write_whole
from reward_kit.typed_interface import reward_function

__all__ = [
    "Bfcl",
    "BfclWorld",
    "bfcl_multi_turn",
    "recorded_turns",
    "rows",
    "single_turn_rows",
    "task_row",
    "verdict_of",
    "write_rows",
]

CATEGORIES = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")
SINGLE_TURN = (
    "simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance",
    "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance",
)  # fmt: skip
"""Categories whose calls are judged by their syntax, in Python; where nothing is relevant, no call is right."""
_ERROR = "Error during execution: "
_UNKNOWN = re.compile(rf"{_ERROR}name '.*' is not defined$", re.DOTALL)
_VERSION = "BFCL_v4"


# ── the tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────


def rows(category: str) -> Iterator[dict[str, Any]]:
    """The tasks of a category, such as `multi_turn_base`, as rows of a dataset: the gold answer is the ground truth."""
    if category not in CATEGORIES:
        raise DatasetError(
            f"There is no category {category!r} of multi-turn tasks. There are: {', '.join(CATEGORIES)}."
        )
    gold = _gold(category)
    for task in _lines(f"{_VERSION}_{category}.json"):
        yield {
            "id": task["id"],
            "messages": task["question"][0],
            "ground_truth": gold[task["id"]],
            "user_turns": task["question"][1:],
            "initial_config": task["initial_config"],
            "involved_classes": task["involved_classes"],
            "missed_function": task.get("missed_function", {}),
        }


def single_turn_rows(category: str = "non_live") -> Iterator[dict[str, Any]]:
    """The tasks of a single turn, of a category such as `parallel`, or of all that are `non_live` or `live`.

    As BFCL does for models that call functions by an API: dots in the names of functions become underscores, and types
    have the names that JSON Schema knows.
    """
    groups = {"live": [name for name in SINGLE_TURN if name.startswith("live_")]}
    groups["non_live"] = [name for name in SINGLE_TURN if name not in groups["live"]]
    if category not in (*SINGLE_TURN, *groups):
        raise DatasetError(
            f"There is no category {category!r} of single-turn tasks. There are: "
            f"non_live, live, {', '.join(SINGLE_TURN)}."
        )
    for name in groups.get(category, [category]):
        gold = {} if "irrelevance" in name else _gold(name)
        for task in _lines(f"{_VERSION}_{name}.json"):
            yield task_row(task, gold.get(task["id"], []), name)


def task_row(task: Mapping[str, Any], gold: Sequence[Mapping[str, Any]], category: str) -> dict[str, Any]:
    """One task of a single turn as a row, `gold` being the acceptable calls; none where no call is right."""
    return {
        "id": task["id"],
        "messages": task["question"][0],
        "tools": [_as_tool(function) for function in task["function"]],
        "ground_truth": [_renamed(call) for call in gold],
        "category": category,
    }


def _gold(category: str) -> dict[str, list[dict[str, Any]]]:
    return {row["id"]: row["ground_truth"] for row in _lines(f"possible_answer/{_VERSION}_{category}.json")}


def _as_tool(function: Mapping[str, Any]) -> dict[str, Any]:
    named = {
        **function,
        "name": function["name"].replace(".", "_"),
        "parameters": as_json_schema(function["parameters"]),
    }
    return {"type": "function", "function": named}


def _renamed(call: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace(".", "_"): arguments for name, arguments in call.items()}


def write_rows(category: str, path: str | Path) -> int:
    """Write the tasks of a category as a JSONL dataset; how many there are."""
    lines = [json.dumps(row, ensure_ascii=False) for row in rows(category)]
    write_whole(Path(path), "".join(f"{line}\n" for line in lines))
    return len(lines)


def _lines(name: str) -> list[dict[str, Any]]:
    with (_package() / "data" / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _package() -> Path:
    with needs_bfcl():
        import bfcl_eval
    return Path(next(iter(bfcl_eval.__path__)))


class _Task(NamedTuple):
    """What a sample says of its task."""

    user_turns: Sequence[Sequence[Mapping[str, Any]]]
    initial_config: Mapping[str, Any]
    involved_classes: Sequence[str]
    missed_function: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, sample: Sample) -> _Task:
        """From the sample's columns."""
        columns = sample.columns
        missing = [name for name in cls._fields if name not in columns]
        if missing:
            raise DatasetError(
                f"Sample {sample.id!r} is not a task of BFCL: it has no column {missing[0]!r}. Write the dataset with "
                "reward_kit.agent.environments.bfcl.write_rows."
            )
        return cls(**{name: columns[name] for name in cls._fields})


def _simulators(task_id: str, classes: Sequence[str], config: Mapping[str, Any], name: str) -> Simulators:
    return Simulators(classes, config, long_context="long_context" in task_id, name=f"{name}_{task_id}")


# ── the environment ──────────────────────────────────────────────────────────────────────────────────────────────────


class Bfcl(InWorker):
    """The environment: each world in a process of its own, which a call of a model's may keep busy for ever.

    `model` and `tell_unreadable` are those of `BfclWorld`; the other options are those of `in_worker`.
    """

    def __init__(self, *, model: str = "model", tell_unreadable: bool = False, **options: Any) -> None:
        super().__init__(BfclWorld, {"model": model, "tell_unreadable": tell_unreadable}, **options)


class BfclWorld(World):
    """One episode: the simulated APIs, and a user whose turns are written down beforehand."""

    def __init__(self, sample: Sample, *, model: str = "model", tell_unreadable: bool = False) -> None:
        """Begin a task. `model` is part of the objects' names, which BFCL lets slip into some texts.

        BFCL shows a model nothing where its calls could not be read. Endpoints that insist on a reply to each call get
        one with `tell_unreadable`.
        """
        self._task = task = _Task.of(sample)
        self._prompt = sample.messages
        self._simulators = _simulators(sample.id, task.involved_classes, task.initial_config, model)
        self._tell_unreadable = tell_unreadable
        self._steps_of_turns = [0]
        self._was_stopped = False
        held_back = {name for names in task.missed_function.values() for name in names}
        self._tools = [tool for tool in self._documented() if tool.name not in held_back]

    def answer(self, message: Message) -> Answer:
        """The outputs of the calls, or the user's next turn where there are none that can be read."""
        calls = message.tool_calls or []
        try:
            step = _decoded_step(message)
        except UndecodableError:
            self.runner.uses += [ToolUse(id=call.id, name=call.function.name, error="bad_json") for call in calls]
            return self._next_turn([_unreadable(call) for call in calls] if self._tell_unreadable else [])
        if not step:
            return self._next_turn([])
        outputs = [self._simulators.run(call) for call in step]
        shown = [
            Message(role="tool", content=output, tool_call_id=call.id, name=call.function.name)
            for call, output in zip(calls, outputs, strict=True)
        ]
        self.runner.uses += [_use(call, output) for call, output in zip(calls, outputs, strict=True)]
        self._steps_of_turns[-1] += 1
        self._was_stopped = self._steps_of_turns[-1] > MOST_STEPS
        return Answer(shown, done=self._was_stopped)

    def facts(self) -> dict[str, Any]:
        """The steps with calls of each turn, whether the model was stopped, and the state of the simulated APIs."""
        return {
            "steps_of_turns": self._steps_of_turns,
            "was_stopped": self._was_stopped,
            "state": self._simulators.state(),
        }

    def _next_turn(self, shown: list[Message]) -> Answer:
        number = len(self._steps_of_turns)
        if number > len(self._task.user_turns):
            return Answer(shown, done=True)
        self._steps_of_turns.append(0)
        said = [Message.model_validate(message) for message in self._task.user_turns[number - 1]]
        if added := self._task.missed_function.get(str(number)):
            documented = {tool.name: tool for tool in self._documented()}
            self._tools = [*self.tools, *(documented[name] for name in added)]
            said = [Message(role="user", content=_more_functions())]
        return Answer([*shown, *said])

    def _documented(self) -> list[Tool]:
        described = [spec for name in self._task.involved_classes for spec in _documents(name)]
        return [
            Tool(spec["name"], spec["description"], spec["parameters"], self._call(spec["name"])) for spec in described
        ]

    def _call(self, name: str) -> Any:
        async def call(arguments: dict[str, Any]) -> str:
            return self._simulators.run(decoded([(name, arguments)])[0])

        return call


def _decoded_step(message: Message) -> list[str]:
    return decoded([(call.function.name, call.function.arguments) for call in message.tool_calls or []])


def _use(call: ChatCompletionMessageToolCall, output: str) -> ToolUse:
    error = None
    if output.startswith(_ERROR):
        error = "unknown_tool" if _UNKNOWN.match(output) else "exception"
    return ToolUse(id=call.id, name=call.function.name, error=error)


def _unreadable(call: ChatCompletionMessageToolCall) -> Message:
    told = json.dumps(
        {"error": {"kind": "bad_json", "message": "The calls of this turn cannot be read. None was run."}}
    )
    return Message(role="tool", content=told, tool_call_id=call.id, name=call.function.name)


@cache
def _more_functions() -> str:
    from bfcl_eval.constants.default_prompts import DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC

    return str(DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC)


@cache
def _documents(class_name: str) -> list[dict[str, Any]]:
    """The functions of a simulated API as BFCL documents them, with the types that JSON schema has."""
    from bfcl_eval.constants.executable_backend_config import MULTI_TURN_FUNC_DOC_FILE_MAPPING

    described = _lines(f"multi_turn_func_doc/{MULTI_TURN_FUNC_DOC_FILE_MAPPING[class_name]}")
    return [{**spec, "parameters": _as_schema(spec["parameters"])} for spec in described]


def _as_schema(described: Mapping[str, Any]) -> dict[str, Any]:
    from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI

    schema = {**described, "type": GORILLA_TO_OPENAPI.get(described.get("type", "string"), "string")}
    if isinstance(inner := described.get("properties"), Mapping):
        schema["properties"] = {name: _as_schema(property) for name, property in inner.items()}
    if isinstance(items := described.get("items"), Mapping):
        schema["items"] = _as_schema(items)
    return schema


# ── the verdict ──────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function
def bfcl_multi_turn(
    messages: list[Message],
    ground_truth: list[list[str]],
    initial_config: dict[str, Any],
    involved_classes: list[str],
    sample_id: str,
    **_: Any,
) -> EvaluateResult:
    """BFCL's verdict on an episode: 1 where it is valid, else 0, with the kind of the first error as the reason.

    The recorded calls are made again in fresh simulators. Outputs that differ from the recorded ones are no verdict
    but a failure that says where.
    """
    verdict = _verdict(messages, ground_truth, initial_config, involved_classes, sample_id)
    where = "" if verdict.turn is None else f" (turn {verdict.turn})"
    reason = verdict.kind if verdict.valid else f"{verdict.kind}: {verdict.message}{where}"
    return EvaluateResult(score=float(verdict.valid), reason=reason)


def verdict_of(rollout: Rollout) -> BfclVerdict:
    """The verdict on a rollout as it is on disk. One that failed is BFCL's `multi_turn:inference_error`."""
    if rollout.failure is not None:
        return BfclVerdict("multi_turn:inference_error", rollout.failure.message)
    task = _Task.of(rollout.sample)
    truth = rollout.sample.ground_truth
    return _verdict(rollout.turns, truth, task.initial_config, task.involved_classes, rollout.sample.id)


def _verdict(
    messages: Sequence[Message], gold: Sequence[Sequence[str]], config: Mapping[str, Any], classes: Sequence[str],
    task_id: str,
) -> BfclVerdict:  # fmt: skip
    turns, recorded = _read(messages)
    model = _simulators(task_id, classes, config, "model")
    ideal = _simulators(task_id, classes, config, "gold")
    verdict, seen = check(turns, gold, model, ideal)
    for place, (now, then) in enumerate(zip(seen, recorded, strict=False)):
        if then is not None and now != then:
            raise ReplayError(
                f"Call {place} of {task_id!r} gave {now[:200]!r} when it was made again, and the record has "
                f"{then[:200]!r}. Judge with the version of bfcl-eval that the episode was played with."
            )
    return verdict


def _read(messages: Iterable[Message]) -> tuple[list[list[list[str]]], list[str | None]]:
    """The calls of each step of each turn, and the recorded output of each call, where there is one."""
    turns: list[list[list[str]]] = []
    recorded: list[str | None] = []
    begins, waits_from = True, 0
    for message in messages:
        if message.role == "tool" and waits_from < len(recorded):
            recorded[waits_from] = message.text
            waits_from += 1
        if message.role != "assistant":
            continue
        if begins:
            turns.append([])
        try:
            step = _decoded_step(message)
        except UndecodableError:
            step = []
        begins, waits_from = not step, len(recorded)
        if step:
            turns[-1].append(step)
            recorded += [None] * len(step)
    return turns, recorded


# ── what others have recorded ────────────────────────────────────────────────────────────────────────────────────────


def recorded_turns(result: Any) -> list[Message] | Failure:
    """What BFCL has written down of a model, turn by turn and step by step, as assistant messages.

    A text instead of turns is what ended the model's run: a failure.
    """
    if not isinstance(result, list):
        return Failure(stage="generate", type="GenerationError", message=str(result))
    return [
        _recorded_step(step, f"call_{turn}_{number}")
        for turn, steps in enumerate(result)
        for number, step in enumerate(steps)
    ]


def _recorded_step(step: Any, name: str) -> Message:
    if not isinstance(step, list) or not step:
        return Message(role="assistant", content=step if isinstance(step, str) else "")
    calls = [
        ChatCompletionMessageToolCall(
            id=f"{name}_{place}",
            function=FunctionCall(name=function, arguments=given if isinstance(given, str) else json.dumps(given)),
        )
        for place, (function, given) in enumerate(pair for call in step for pair in call.items())
    ]
    return Message(role="assistant", content=None, tool_calls=calls)
