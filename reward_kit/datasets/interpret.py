# SPDX-License-Identifier: Apache-2.0
"""What a row means: the conversation, the ground truth, and with generation disabled the answers it holds.

| column | becomes |
|---|---|
| `id` (`id_column`), else `uuid`, `query_id` | the sample's id |
| `messages`, or `prompt` as a list | the conversation |
| `user_query`, or `prompt` as text | a conversation of one user turn |
| `system_prompt` | the system turn, unless the conversation begins with one |
| `ground_truth_for_eval`, `ground_truth` | the ground truth |
| `tools`, `split` | the sample's tools and split |
| `assistant_response` (`response_column`) | with generation disabled: the answer, or a list of answers |
| `response_index` | with generation disabled: which answer of its sample this is |
| any other | `Sample.columns`, handed to the reward by name |

Rows of other shapes (`question`/`answer`, HumanEval, ShareGPT …) are brought to these names by `shapes` first. A column
with a name of its own stays in `Sample.columns` although it served as id, question or answer: a reward may name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from reward_kit.datasets.columns import CONTENT, USER_TURN, Columns, nearest_columns
from reward_kit.datasets.row_ids import content_id
from reward_kit.datasets.rows import BadRow
from reward_kit.datasets.shapes import ShapeReader
from reward_kit.models import Message, Sample
from reward_kit.utils.trusted import text_message, trusted

__all__ = ["ROLES", "Answered", "Interpreter", "Question"]

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
"""Who may speak in a conversation. Another word is a mistake that no endpoint would understand."""
_SYSTEM_ROLES = ("system", "developer")
_sample = trusted(Sample)
_ANSWER = "assistant_response"
_OTHER_IDS = ("uuid", "query_id")
"""Columns that name a row where there is no `id`."""


class Question(NamedTuple):
    """What a row asks; a sample but for its place."""

    name: str
    """The id the row gives itself, else the hash of its content."""
    named: bool
    """Whether the row gives itself an id."""
    messages: list[Message]
    ground_truth: Any
    split: str | None
    tools: list[dict[str, Any]] | None
    columns: Columns

    def sample(self, name: str, position: int) -> Sample:
        """The sample, under this id and at this position."""
        return _sample(
            id=name,
            messages=self.messages,
            ground_truth=self.ground_truth,
            split=self.split,
            columns=self.columns,
            tools=self.tools,
            position=position,
        )


class Answered(NamedTuple):
    """A sample with the answers that its row holds."""

    question: Question
    answers: list[list[Message]]
    """The turns of each answer."""
    response_index: int | None
    """Which variant the row says it is."""

    def named(self, name: str) -> Answered:
        """The same under another name."""
        return self._replace(question=self.question._replace(name=name))


class Interpreter:
    """Turns columns into samples. It takes the columns apart: they are not to be used afterwards."""

    def __init__(
        self,
        shapes: ShapeReader,
        *,
        id_column: str,
        response_column: str,
        system_prompt: str | None = None,
        split: str | None = None,
    ) -> None:
        self._shapes = shapes
        self._id_column = id_column
        self._response_column = response_column
        self._system_prompt = system_prompt
        self._split = split

    @property
    def formats(self) -> dict[str, str]:
        """The shapes of rows that were recognised so far, and what each means."""
        return self._shapes.met

    def question(self, columns: Columns) -> Question:
        """What the row asks, for a model to answer."""
        name, content = self._identity(columns)
        columns = self._shapes.read(columns)
        name = name or self._take_id(columns)
        messages = _conversation(columns, columns.pop(USER_TURN, None))
        if messages[-1].role == "assistant":
            raise BadRow(
                "the conversation ends with an assistant turn, so the model would be shown the answer; "
                "remove that turn, or score it with `generation.enabled=false`"
            )
        return self._question(name, content, messages, columns)

    def answered(self, columns: Columns) -> Answered:
        """What the row asks, and the answers it already holds."""
        index = _response_index(columns.pop("response_index", None))
        named = self._take_id(columns)
        known: str | None = columns.pop(CONTENT, None)
        user_turn = columns.pop(USER_TURN, None)
        prompt_columns = {name: value for name, value in columns.items() if name != self._response_column}
        rest = self._shapes.read_answered(columns, self._response_column)
        name = named or self._take_id(rest)
        there = self._response_column in rest
        given = rest.pop(self._response_column, None)
        if self._response_column != _ANSWER and given is not None:
            rest[self._response_column] = given
        messages, turns = _split_off_answer(_conversation(rest, user_turn))
        content = (known or content_id(_without_answer(prompt_columns, len(turns)))) if name is None else ""
        answers = _answers(given, turns, self._response_column, there=there)
        if index is not None and len(answers) > 1:
            raise BadRow(f"'response_index' numbers one answer, but {self._response_column!r} holds {len(answers)}")
        return Answered(self._question(name, content, messages, rest), answers, index)

    def _identity(self, columns: Columns) -> tuple[str | None, str]:
        """The row's own id, and the hash of what it holds where it has none."""
        name = self._take_id(columns)
        given: str | None = columns.pop(CONTENT, None)
        if name is not None:
            return name, ""
        if given is not None:
            return None, given
        return None, content_id({name: value for name, value in columns.items() if name != USER_TURN})

    def _take_id(self, columns: Columns) -> str | None:
        """The row's id. A column called `id` is used up; one of another name stays."""
        value = columns.pop(self._id_column, None)
        if self._id_column != "id":
            if value is not None:
                columns[self._id_column] = value
        elif value is None or value == "":
            value = next((columns[name] for name in _OTHER_IDS if columns.get(name)), None)
        return _id(value, self._id_column)

    def _question(self, name: str | None, content: str, messages: list[Message], rest: Columns) -> Question:
        """`rest` is the row without its id and conversation."""
        system_prompt = _text_or_none(rest, "system_prompt")
        if system_prompt is None:
            system_prompt = self._system_prompt
        if system_prompt and messages[0].role not in _SYSTEM_ROLES:
            messages = [text_message("system", system_prompt), *messages]
        return Question(
            name=content if name is None else name,
            named=name is not None,
            messages=messages,
            ground_truth=_ground_truth(rest),
            split=_text_or_none(rest, "split") or self._split,
            tools=_tools(rest.pop("tools", None)),
            columns=rest,
        )


def _id(value: Any, column: str) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, str) and _is_unicode(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise BadRow(f"column {column!r} is {value!r}; an id is text or a whole number")


def _is_unicode(text: str) -> bool:
    """Whether the text can be written to a file: half of a surrogate pair cannot."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _text_or_none(columns: Columns, name: str) -> str | None:
    value = columns.pop(name, None)
    if value is not None and not isinstance(value, str):
        raise BadRow(f"column {name!r} is {value!r}; expected text")
    return value


def _ground_truth(columns: Columns) -> Any:
    first, second = columns.pop("ground_truth_for_eval", None), columns.pop("ground_truth", None)
    if first in (None, "") or second in (None, "") or first == second:
        return second if first is None or (first == "" and second is not None) else first
    raise BadRow("'ground_truth_for_eval' and 'ground_truth' differ; keep the one that is right")


def _tools(value: Any) -> list[dict[str, Any]] | None:
    tools = _from_json(value, "tools") if isinstance(value, str) else value
    if not tools:
        return None
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise BadRow(f"column 'tools' is {tools!r}; expected a list of objects")
    return tools


# ── the conversation ─────────────────────────────────────────────────────────────────────────────────────────────────


def _conversation(columns: Columns, user_turn: str | None) -> list[Message]:
    """Take the turns out of the row; a user turn that a template made replaces the last one."""
    for name in ("messages", "prompt"):
        value = columns.get(name)
        if isinstance(value, list) or (name == "messages" and value not in (None, "")):
            del columns[name]
            messages = _messages(value, name)
            return _with_user_turn(messages, user_turn) if user_turn is not None else messages
    return [text_message("user", _user_text(columns) if user_turn is None else user_turn)]


def _user_text(columns: Columns) -> str:
    name = "prompt" if not columns.get("user_query") and "prompt" in columns else "user_query"
    if name not in columns:
        hint = nearest_columns(name, columns)
        raise BadRow(
            f"there is no column 'user_query', 'prompt' or 'messages' ({hint}); `dataset.column_mapping` can rename one"
        )
    value = columns.pop(name) if name == "user_query" else columns[name]
    if not isinstance(value, str) or not value:
        raise BadRow(f"column {name!r} is {value!r}; expected text")
    return value


def _messages(value: Any, name: str) -> list[Message]:
    turns = _from_json(value, name) if isinstance(value, str) else value
    if not isinstance(turns, list) or not turns:
        raise BadRow(f"column {name!r} is {value!r}; expected a list of messages")
    return [_message(turn, f"{name}[{index}]") for index, turn in enumerate(turns)]


def _message(turn: Any, name: str) -> Message:
    try:
        message = Message.model_validate(turn)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise BadRow(
            f"{name} is not a message: {place and place + ': '}{first['msg'].removeprefix('Value error, ')}"
        ) from None
    if message.role not in ROLES:
        raise BadRow(f"{name} has the role {message.role!r}; expected {', '.join(ROLES)}")
    return message


def _from_json(text: str, name: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        raise BadRow(f"column {name!r} is text but not JSON; expected a list of objects") from None


def _last_user_turn(messages: list[Message]) -> int | None:
    return next((index for index in reversed(range(len(messages))) if messages[index].role == "user"), None)


def _leading_system_turns(messages: list[Message]) -> int:
    return next((index for index, turn in enumerate(messages) if turn.role not in _SYSTEM_ROLES), len(messages))


def _with_user_turn(messages: list[Message], text: str) -> list[Message]:
    turn = Message(role="user", content=text)
    index = _last_user_turn(messages)
    if index is None:
        start = _leading_system_turns(messages)
        return [*messages[:start], turn, *messages[start:]]
    return [*messages[:index], turn, *messages[index + 1 :]]


# ── answers that are in the data ─────────────────────────────────────────────────────────────────────────────────────


def _split_off_answer(messages: list[Message]) -> tuple[list[Message], list[Message]]:
    """What was asked, up to the last user turn, and what was answered to it."""
    index = _last_user_turn(messages)
    end = _leading_system_turns(messages) if index is None else index + 1
    return messages[:end], messages[end:]


def _without_answer(columns: Columns, turns: int) -> Columns:
    """The row without the answer's turns, so that the variants of one conversation have the same content."""
    name = "messages" if columns.get("messages") is not None else "prompt"
    conversation = columns.get(name)
    if not turns or not isinstance(conversation, list):
        return columns
    return {**columns, name: conversation[:-turns]}


def _answers(given: Any, turns: list[Message], column: str, *, there: bool) -> list[list[Message]]:
    """The answers of a row; `there` says whether the row has the column at all."""
    if given is None:
        if not any(turn.role == "assistant" for turn in turns):
            raise BadRow(
                f"there is no answer: no value (null, or NaN) in column {column!r}. An empty answer is empty text"
                if there
                else f"there is no answer: no column {column!r}, and no assistant turn at the end of 'messages'"
            )
        return [_answered(turns)]
    if isinstance(given, str):
        # Where the conversation ends with this very answer, its turns tell more (tool calls, reasoning).
        return [turns if turns and turns[-1].text == given else [Message(role="assistant", content=given)]]
    if isinstance(given, list) and given:
        if all(isinstance(answer, str) for answer in given):
            return [[Message(role="assistant", content=answer)] for answer in given]
        if all(isinstance(turn, Mapping) for turn in given):
            return [_answered(_messages(given, column))]
    raise BadRow(f"column {column!r} is {given!r}; expected an answer, or a list of answers")


def _answered(turns: list[Message]) -> list[Message]:
    """The turns, whose last must say something: no content and no tool call is no answer, not an empty one."""
    last = turns[-1] if turns else None
    if last is None or last.role != "assistant" or last.tool_calls or last.function_call:
        return turns
    if last.content is None or "content" not in last.model_fields_set:
        raise BadRow("there is no answer: the last turn has neither content nor a tool call")
    return turns


def _response_index(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        value = int(value)  # CSV knows only text
    if value == "":  # an empty cell of a CSV file
        return None
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise BadRow(f"column 'response_index' is {value!r}; expected 0, 1, 2 …")


class RowReader:
    """STUB until the rows branch is merged."""

    def __init__(self) -> None:
        self._interpreter = Interpreter(ShapeReader(), id_column="id", response_column="assistant_response")

    def sample(self, row: Mapping[str, Any], position: int = 0, *, asked: list[Message] | None = None) -> Sample:
        columns = dict(row)
        if asked is None:
            question = self._interpreter.question(columns)
        else:
            columns["messages"] = asked or [{"role": "user", "content": ""}]
            question = self._interpreter.question(columns)._replace(messages=asked)
        return question.sample(question.name, position)

    def rollouts(self, row: Mapping[str, Any], position: int = 0) -> list[Any]:
        from reward_kit.models import Rollout

        answered = self._interpreter.answered(dict(row))
        sample = answered.question.sample(answered.question.name, position)
        return [Rollout(sample=sample, response_index=i, turns=t) for i, t in enumerate(answered.answers)]
