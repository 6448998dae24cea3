# SPDX-License-Identifier: Apache-2.0
"""What a row means, at every door: the conversation, the ground truth, and the answers where it holds some.

    RowReader().sample(row)       what the row asks, and what a right answer looks like
    RowReader().rollouts(row)     the answers that it holds, each with that sample

| column | becomes |
|---|---|
| `id` (`id_column`), else `uuid`, `query_id`, `input_metadata.row_id` | the sample's id |
| `messages`, or `prompt` as a list | the conversation |
| `user_query`, or `prompt` as text | a conversation of one user turn |
| `system_prompt` | the system turn, unless the conversation begins with one |
| `ground_truth_for_eval`, `ground_truth` | the ground truth |
| the last turn of `messages`, if it is an assistant's | the ground truth, where no column is; judged, if answers are |
| `tools`, `split` | the sample's tools and split |
| `assistant_response` (`response_column`) | with generation disabled: the answer, or a list of answers |
| `response_index` | with generation disabled: which answer of its sample this is |
| any other | `Sample.columns`, handed to the reward by name |

Rows of other shapes (`question`/`answer`, HumanEval, ShareGPT …) are brought to these names by `shapes` first; which of
several columns is the ground truth says `ground_truths`. A column with a name of its own stays in `Sample.columns`
although it served as id, question or answer: a reward may name it.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from shlex import quote
from typing import Any, NamedTuple

from pydantic import ValidationError

from reward_kit.config_models import DatasetFormat
from reward_kit.datasets.columns import CONTENT, USER_TURN, Columns, nearest_columns
from reward_kit.datasets.ground_truths import (
    CANDIDATES,
    EXPLICIT,
    TASK,
    as_call,
    explicit_truth,
    is_held,
    plain_truth,
    said_in,
    says_truth,
)
from reward_kit.datasets.row_ids import content_id
from reward_kit.datasets.rows import BadRow, Written, as_python, plain, text_of
from reward_kit.datasets.shapes import KNOWN, ShapeReader
from reward_kit.datasets.truth_columns import id_by_content
from reward_kit.models import SYSTEM_ROLES, Message, Rollout, Sample, split_off_answer
from reward_kit.utils import exact_json
from reward_kit.utils.trusted import text_message, trusted

__all__ = ["ROLES", "Answered", "NothingAsked", "Question", "RowReader", "rollouts_of", "sample_of"]

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
"""Who may speak in a conversation. Another word is a mistake that no endpoint would understand."""
_sample = trusted(Sample)
_ANSWER = "assistant_response"
_OTHER_IDS = ("uuid", "query_id")
"""Columns that name a row where there is no `id`."""


class NothingAsked(BadRow):
    """The row has no question and no conversation, or an empty one."""


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

    def sample(self, name: str, position: int, written: Written = as_python) -> Sample:
        """The sample, under this id and at this position, with the ground truth as its source has it written."""
        return _sample(
            id=name,
            messages=self.messages,
            ground_truth=self.ground_truth,
            ground_truth_text=text_of(self.ground_truth, written),
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


class RowReader:
    """Reads rows as samples, and as rollouts where they hold answers. Made once for all rows of a dataset."""

    def __init__(
        self,
        format: DatasetFormat = "auto",
        *,
        id_column: str = "id",
        response_column: str = _ANSWER,
        system_prompt: str | None = None,
        split: str | None = None,
        truth_columns: Collection[str] = (),
    ) -> None:
        """Take what `dataset` says of how rows are read; `system_prompt` and `split` are for rows without their own.

        `truth_columns` are those that it names as the ground truth: they are no part of what names a row.
        """
        self.former_ids = False
        """Whether rows without an id are named as they once were: after their ground truth, too."""
        self.world_opens = False
        """Whether a row may ask nothing, because a world opens the conversation."""
        self._truth_columns = truth_columns
        given = (format, id_column, response_column, system_prompt, split, *truth_columns)
        self._has_no_settings = given == ("auto", "id", _ANSWER, None, None)
        self._reads_our_names = format == "auto" and id_column == "id"
        self._shapes = ShapeReader(format, response_column)
        self._id_column = id_column
        self._response_column = response_column
        self._system_prompt = system_prompt
        self._split = split

    @property
    def formats(self) -> dict[str, str]:
        """The shapes of rows that were recognised so far, and what each means."""
        return self._shapes.met

    def sample(self, row: Mapping[str, Any], position: int = 0) -> Sample:
        """What the row asks, and what a right answer looks like; a `BadRow` says why it cannot be read."""
        question = self._asked(plain(row))
        return question.sample(question.name, position)

    def sample_as_it_is(
        self, row: Mapping[str, Any], asked: list[Message] | None = None, written: Written = as_python, *,
        named: bool = True,
    ) -> Sample:  # fmt: skip
        """The same for a row that is never kept in a file: it may hold whatever its reward can use.

        `asked` is the conversation, where the caller has read it already: it may be empty then. If nobody looks at the
        id (`named` is False), a row without one may go without.
        """
        is_short = asked is not None and self._has_no_settings
        question = _simple_question(row, asked or [], named=named) if is_short else None
        question = question or self._asked({**row}, asked)
        return question.sample(question.name, 0, written)

    def sample_or_opening(self, row: Mapping[str, Any], written: Written) -> Sample:
        """The same for a world, which may open by itself: where the row asks nothing, the user's turn is empty."""
        try:
            return self.sample_as_it_is(row, written=written)
        except NothingAsked:
            rest = {name: value for name, value in row.items() if name not in ("messages", "prompt") or value}
            return self.sample_as_it_is({**rest, USER_TURN: ""}, written=written)

    def rollouts(self, row: Mapping[str, Any], position: int = 0) -> list[Rollout]:
        """The answers that the row holds, in their order; a `BadRow` says why there is none."""
        question, answers, index = self.answered(plain(row))
        sample = question.sample(question.name, position)
        return [
            Rollout(sample=sample, response_index=number, turns=turns)
            for number, turns in enumerate(answers, start=index or 0)
        ]

    def question(self, columns: Columns) -> Question:
        """What the row asks, for a model to answer. Like `answered` it takes `columns` apart: they are used up."""
        if self._reads_our_names and (truth := _truth_beside_our_names(tuple(columns))) is not None:
            name, asked = columns["id"], columns["user_query"]
            if type(name) is type(asked) is str and name.isascii() and name and asked:
                return self._plain_question(columns, truth)
        question = self._asked(columns)
        if question.messages and question.messages[-1].role == "assistant":
            raise BadRow(
                "the conversation ends with an assistant turn, so the model would be shown the answer; "
                "remove that turn, or score it with `generation.enabled=false`"
            )
        return question

    def _plain_question(self, columns: Columns, truth: str) -> Question:
        """What `_asked` says of a row whose id, question and truth have our names, for a third of the time."""
        name, messages = columns.pop("id"), [text_message("user", columns.pop("user_query"))]
        if self._system_prompt:
            messages.insert(0, text_message("system", self._system_prompt))
        return Question(name, True, messages, columns.pop(truth), self._split, None, columns)

    def _asked(self, columns: Columns, asked: list[Message] | None = None) -> Question:
        name = self._take_id(columns)
        known: str | None = columns.pop(CONTENT, None)
        rest = {**self._shapes.read(columns)}
        name = name or self._take_id(rest)
        if asked is None:
            messages, turns = self._conversation_of(rest)
        else:
            messages, turns = asked, []
            if not _take_conversation(rest)[0]:
                rest.pop("user_query", None)
        if turns and not says_truth(rest):
            rest["ground_truth"] = said_in(turns[-1].model_dump(exclude_none=True))
        content = "" if name is not None else known or self._content(columns, len(turns))
        return self._question(name, content, messages, rest)

    def _conversation_of(self, rest: Columns) -> tuple[list[Message], list[Message]]:
        """The conversation, and its answer where it ends with one; what tells them is taken out of the row."""
        try:
            return _conversation(rest, rest.pop(USER_TURN, None), is_answered=False)
        except NothingAsked:
            if not self.world_opens:
                raise
            for name in ("messages", "prompt"):
                rest.pop(name, None)
            return [], []

    def answered(self, columns: Columns) -> Answered:
        """What the row asks, and the answers it already holds."""
        index = _response_index(columns.pop("response_index", None))
        named = self._take_id(columns)
        known: str | None = columns.pop(CONTENT, None)
        user_turn = columns.pop(USER_TURN, None)
        prompt_columns = {name: value for name, value in columns.items() if name != self._response_column}
        rest = {**self._shapes.read_answered(columns)}
        name = named or self._take_id(rest)
        there = self._response_column in rest
        given = rest.pop(self._response_column, None)
        if self._response_column != _ANSWER and given is not None:
            rest[self._response_column] = given
        messages, turns = _conversation(rest, user_turn, is_answered=True)
        content = (known or self._content(prompt_columns, len(turns), self._response_column)) if name is None else ""
        answers = _answers(given, turns, self._response_column, there=there)
        if index is not None and len(answers) > 1:
            raise BadRow(f"'response_index' numbers one answer, but {self._response_column!r} holds {len(answers)}")
        return Answered(self._question(name, content, messages, rest), answers, index)

    def _content(self, columns: Columns, turns: int, answer: str | None = None) -> str:
        """What a row is called that has no id of its own: the hash of all its columns but the ground truth."""
        try:
            if not self.former_ids:
                return id_by_content(columns, self._truth_columns, answer=answer)
            held = {name: value for name, value in columns.items() if name != USER_TURN}
            return content_id(_without_answer(held, turns))
        except TypeError:  # a trainer's row, with something in it that no file can hold
            return content_id({name: value for name, value in columns.items() if isinstance(value, str)})

    def _take_id(self, columns: Columns) -> str | None:
        """The row's id. A column called `id` is used up; one of another name stays."""
        value = columns.pop(self._id_column, None)
        if self._id_column != "id":
            if value is not None:
                columns[self._id_column] = value
        elif value is None or value == "":
            value = next((columns[name] for name in _OTHER_IDS if columns.get(name)), None) or _row_id(columns)
        return _id(value, self._id_column)

    def _question(self, name: str | None, content: str, messages: list[Message], rest: Columns) -> Question:
        """`rest` is the row without its id and conversation."""
        system_prompt = _text_or_none(rest, "system_prompt")
        if system_prompt is None:
            system_prompt = self._system_prompt
        if system_prompt and not (messages and messages[0].role in SYSTEM_ROLES):
            messages = [text_message("system", system_prompt), *messages]
        return Question(
            name=content if name is None else name,
            named=name is not None,
            messages=messages,
            ground_truth=_take_truth(rest),
            split=_text_or_none(rest, "split") or self._split,
            tools=_tools(rest.pop("tools", None)),
            columns=rest,
        )


def sample_of(row: Mapping[str, Any]) -> Sample:
    """What a row asks, read as a dataset without settings is."""
    return RowReader().sample(row)


def rollouts_of(row: Mapping[str, Any]) -> list[Rollout]:
    """The answers that a row holds, read as a dataset without settings is."""
    return RowReader().rollouts(row)


# ── rows in which the names of the columns tell everything ───────────────────────────────────────────────────────────

_SPEAKING = KNOWN | {
    "id", *_OTHER_IDS, "input_metadata", "system_prompt", "split", "tools", "response_index", _ANSWER, "metadata",
    "reward_model", "reference_response", "choices", "options", USER_TURN, CONTENT, *TASK,
}  # fmt: skip
"""Names that mean something beside `messages`, `prompt` and the truth, or may."""
_CONVERSATIONS = ("messages", "prompt")


@functools.lru_cache(maxsize=1024)
def _truth_by_names(names: tuple[str, ...]) -> str | None:
    """The one column with the truth, empty where there is none; None where a row has to be looked at more closely."""
    others = [name for name in names if name not in _CONVERSATIONS]
    truths = [name for name in others if name == "ground_truth" or name in CANDIDATES]
    if len(truths) > 1 or truths in (["completion"], ["output"]):
        return None
    if any(name.lower() in _SPEAKING for name in others if name not in truths):
        return None
    return truths[0] if truths else ""


@functools.lru_cache(maxsize=1024)
def _truth_beside_our_names(names: tuple[str, ...]) -> str | None:
    """The column with the truth of rows with `id` and `user_query`; None where another name may mean something, too."""
    truths = [name for name in names if name in EXPLICIT]
    others = [name.lower() for name in names if name not in ("id", "user_query", *truths)]
    is_plain = "id" in names and "user_query" in names and len(truths) == 1
    return truths[0] if is_plain and not any(name in _SPEAKING or name in EXPLICIT for name in others) else None


def _simple_question(row: Mapping[str, Any], asked: list[Message], *, named: bool) -> Question | None:
    """What most rows of trainers and callers ask, which give no more than a prompt, a truth and columns of their own.

    It is what `RowReader` says of them, for a fraction of the time: they wait for each answer.
    """
    column = _truth_by_names(tuple(row))
    if column is None:
        return None
    rest = {name: value for name, value in row.items() if name != column}
    columns = {**(rest if column == "ground_truth" or not column else row)}
    for name in _CONVERSATIONS:
        turns = row.get(name)
        if isinstance(turns, list | dict):
            if isinstance(turns, dict) or not turns or turns[-1].get("role") == "assistant":
                return None
            del columns[name]
            break
        if name == "messages" and turns is not None:
            return None
    truth = row.get(column)
    if column != "ground_truth":
        truth = plain_truth(column, truth) if is_held(truth) else None
    try:
        content = content_id(rest) if named else ""
    except TypeError:
        return None
    return Question(content, False, asked, truth, None, None, columns)


def _row_id(columns: Columns) -> Any:
    """The id in the metadata of a row that an evaluation has written."""
    metadata = columns.get("input_metadata")
    return metadata.get("row_id") if isinstance(metadata, Mapping) else None


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


def _take_truth(columns: Columns) -> Any:
    truth = explicit_truth(columns)
    for name in EXPLICIT:
        columns.pop(name, None)
    return truth


def _tools(value: Any) -> list[dict[str, Any]] | None:
    tools = _from_json(value, "tools") if isinstance(value, str) else value
    if not tools:
        return None
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise BadRow(f"column 'tools' is {tools!r}; expected a list of objects")
    return tools


# ── the conversation ─────────────────────────────────────────────────────────────────────────────────────────────────


def _conversation(columns: Columns, user_turn: str | None, *, is_answered: bool) -> tuple[list[Message], list[Message]]:
    """Take the turns out of the row: what is asked, and what was answered to it.

    A user turn that a template made replaces the last one. Where no answer is judged, one is only set apart if
    `messages` end with it: a `prompt` that ends so is for a model to go on with.
    """
    name, value = _take_conversation(columns)
    if not name:
        return [text_message("user", _user_text(columns) if user_turn is None else user_turn)], []
    messages = _messages(value, name)
    asked, turns = split_off_answer(messages)
    if not is_answered and not _is_answer(name, asked, turns):
        asked, turns = messages, []
    return (_with_user_turn(asked, user_turn) if user_turn is not None else asked), turns


def _take_conversation(columns: Columns) -> tuple[str, Any]:
    """The column that holds turns, taken out of the row, and what it holds; the name is empty where there is none."""
    for name in ("messages", "prompt"):
        value = columns.get(name)
        if isinstance(value, list | dict) or (name == "messages" and is_held(value)):
            return name, columns.pop(name)
    return "", None


def _is_answer(name: str, asked: list[Message], turns: list[Message]) -> bool:
    """Whether a conversation that a model is asked holds the answer to it."""
    return name == "messages" and bool(turns) and turns[-1].role == "assistant" and _last_user_turn(asked) is not None


def _user_text(columns: Columns) -> str:
    name = "prompt" if not columns.get("user_query") and "prompt" in columns else "user_query"
    if name not in columns:
        hint = nearest_columns(name, columns)
        raise NothingAsked(
            f"there is no column 'user_query', 'prompt' or 'messages' ({hint}); `dataset.column_mapping` can rename one"
            f"{_as_question(columns)}"
        )
    value = columns.pop(name) if name == "user_query" else columns[name]
    if not is_held(value):
        raise NothingAsked(f"column {name!r} is {value!r}; expected text")
    if not isinstance(value, str):
        raise BadRow(f"column {name!r} is {value!r}; expected text")
    return value


def _as_question(columns: Columns) -> str:
    """How to say which column is asked: the one with the longest text, most likely; or where the rows are."""
    if rows := [name for name, value in columns.items() if _are_rows(value)]:
        return (
            f". If the rows are the objects in {' or '.join(map(repr, rows))}, write "
            f"`jq -c {quote(f'.{exact_json.dumps(rows[0]).decode()}[]')} FILE > ROWS.jsonl` and name that file"
        )
    texts = {name: value for name, value in columns.items() if isinstance(value, str) and value}
    longest = max(texts, key=lambda name: len(texts[name]), default=None)
    return f", e.g. `dataset.column_mapping={{user_query: {longest}}}`" if longest else ""


def _are_rows(value: Any) -> bool:
    """Whether a column holds a list of objects that may be rows themselves, and no turns of a conversation."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) and "role" not in one for one in value)


def _messages(value: Any, name: str) -> list[Message]:
    turns = _from_json(value, name) if isinstance(value, str) else value
    turns = [turns] if isinstance(turns, dict) else turns
    if turns == []:
        raise NothingAsked(f"column {name!r} is {value!r}; expected a list of messages")
    if not isinstance(turns, list):
        raise BadRow(f"column {name!r} is {value!r}; expected a list of messages")
    return [_message(turn, f"{name}[{index}]") for index, turn in enumerate(turns)]


def _message(turn: Any, name: str) -> Message:
    try:
        message = Message.model_validate(_with_json_arguments(turn))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise BadRow(
            f"{name} is not a message: {place and place + ': '}{first['msg'].removeprefix('Value error, ')}"
        ) from None
    if message.role not in ROLES:
        raise BadRow(f"{name} has the role {message.role!r}; expected {', '.join(ROLES)}")
    return message


def _with_json_arguments(turn: Any) -> Any:
    """The turn with its tool calls' arguments as JSON text; some sets and trainers keep them parsed."""
    calls = turn.get("tool_calls") if isinstance(turn, dict) else None
    return {**turn, "tool_calls": [as_call(call) for call in calls]} if isinstance(calls, list) and calls else turn


def _from_json(text: str, name: str) -> Any:
    try:
        return exact_json.loads(text)
    except ValueError:
        raise BadRow(f"column {name!r} is text but not JSON; expected a list of objects") from None


def _last_user_turn(messages: list[Message]) -> int | None:
    return next((index for index in reversed(range(len(messages))) if messages[index].role == "user"), None)


def _leading_system_turns(messages: list[Message]) -> int:
    return next((index for index, turn in enumerate(messages) if turn.role not in SYSTEM_ROLES), len(messages))


def _with_user_turn(messages: list[Message], text: str) -> list[Message]:
    turn = Message(role="user", content=text)
    index = _last_user_turn(messages)
    if index is None:
        start = _leading_system_turns(messages)
        return [*messages[:start], turn, *messages[start:]]
    return [*messages[:index], turn, *messages[index + 1 :]]


# ── answers that are in the data ─────────────────────────────────────────────────────────────────────────────────────


def _without_answer(columns: Columns, turns: int) -> Columns:
    """The row without the answer's turns, so that the variants of one conversation have the same content."""
    rest = {name: value for name, value in columns.items() if name != USER_TURN}
    name = "messages" if columns.get("messages") is not None else "prompt"
    conversation = columns.get(name)
    return {**rest, name: conversation[:-turns]} if turns and isinstance(conversation, list) else rest


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
