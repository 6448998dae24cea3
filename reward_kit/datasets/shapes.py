# SPDX-License-Identifier: Apache-2.0
r"""Rows as people have them: the shapes of well-known datasets, recognised by their columns.

| format | columns | question | ground truth |
|---|---|---|---|
| `standard` | `messages`, `user_query` or `prompt` | as they say | `ground_truth_for_eval`, `ground_truth` |
| `gsm8k` | `question`, `answer` with `####` | `question` | what stands behind `####` |
| `math` | `problem`, `solution` | `problem` | `answer`, else the last `\boxed` of `solution` |
| `humaneval` | `prompt`, `test`, `entry_point` | `prompt` | the test program and the function it tests |
| `mbpp` | `text` (or `prompt`), `test_list` | `text` and the tests | the tests |
| `apps` | `question`, `input_output` | `question`, `starter_code` | the inputs and outputs |
| `livecodebench` | `question_content`, `public_test_cases` | the same | the public and private tests |
| `bfcl` | `question` of turns, `function` | the turns | `ground_truth`; `function` are the tools |
| `nemotron` | `messages`, `category`, `metadata` | the turns before the answer | by the category |
| `sharegpt` | `conversations` | the turns before the answer | the answer |
| `prompt_completion` | `prompt`, `completion` | `prompt` | `completion` |
| `instruction_output` | `instruction`, `output` | `instruction` and `input` | `output` |
| `question_answer` | one question column, one answer column | that column | that column |

A shape only adds columns under the names that the rest of the package knows. The row's own columns stay, so that a
reward that names one of them gets it.
"""

from __future__ import annotations

import base64
import binascii
import io
import pickle
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from reward_kit.config_models import DatasetFormat
from reward_kit.datasets.columns import USER_TURN, Columns
from reward_kit.datasets.ground_truths import boxed, sharegpt_turns, with_ground_truth
from reward_kit.datasets.rows import BadRow

__all__ = ["FORMATS", "Shape", "ShapeReader", "known_shapes"]

_QUESTIONS = ("question", "problem", "query", "instruction")
"""Columns that hold a question, where the row has none of our own names for it."""
_TRUTHS = ("answer", "solution", "expected_answer", "final_answer", "target", "output", "completion")
"""Columns that may hold a right answer."""
_CHOICES = ("choices", "options")
_STANDARD = frozenset({"messages", "user_query"})
_TRUTH_GIVEN = ("ground_truth_for_eval", "ground_truth")


class Shape(NamedTuple):
    """One known shape of rows."""

    name: DatasetFormat
    needs: frozenset[str]
    """The columns that a row of this shape has."""
    says: str
    """What is asked and what is right, in words."""
    read: Callable[[Columns], Columns]
    """The columns to add: question, ground truth, id, tools."""
    fits: Callable[[Columns], bool] = lambda _: True
    """Whether the values are of this shape, too."""

    def describes(self, columns: Columns) -> bool:
        """Whether a row looks like this shape."""
        return self.needs <= columns.keys() and self.fits(columns)


class ShapeReader:
    """Gives rows the columns that everybody knows. One per dataset; it remembers which shapes it met."""

    def __init__(self, given: DatasetFormat = "auto") -> None:
        self._given = None if given == "auto" else _BY_NAME[given]
        self.met: dict[str, str] = {}
        """Name and description of each shape that was met so far."""

    def read(self, columns: Columns) -> Columns:
        """The row with the columns that its shape adds; those it already has under our names stay as they are."""
        if self._given is None and not _STANDARD.isdisjoint(columns) and not _NEMOTRON.describes(columns):
            return columns
        shape = self._given or recognised(columns)
        return columns if shape is None else self._with(shape, columns)

    def read_answered(self, columns: Columns, response_column: str) -> Columns:
        """The same for a row that holds its answer, which is neither asked nor the ground truth."""
        if "conversations" in columns and _STANDARD.isdisjoint(columns):
            self.met.setdefault("sharegpt", "the last answer of 'conversations' is judged")
            return {**columns, "messages": sharegpt_turns(columns["conversations"])}
        rest = {name: value for name, value in columns.items() if name != response_column}
        if response_column not in columns and {"prompt", "completion"} <= rest.keys():
            self.met.setdefault("prompt_completion", "'prompt' is asked, 'completion' is the answer that is judged")
            given = rest.pop("completion")
            return {**self._unless_answered(rest), "completion": given, response_column: given}
        ready = self._unless_answered(rest)
        return {**ready, response_column: columns[response_column]} if response_column in columns else ready

    def _unless_answered(self, columns: Columns) -> Columns:
        """A conversation that ends with the answer is taken apart later, as it is."""
        return columns if "messages" in columns else self.read(columns)

    def _with(self, shape: Shape, columns: Columns) -> Columns:
        self.met.setdefault(shape.name, shape.says)
        if missing := sorted(shape.needs - columns.keys()):
            raise BadRow(f"`dataset.format={shape.name}` needs the column {missing[0]!r}, which is not there")
        added = shape.read(columns)
        if USER_TURN in columns:  # a template has said what is asked
            added = {name: value for name, value in added.items() if name not in ("user_query", "messages")}
        if any(columns.get(name) not in (None, "") for name in _TRUTH_GIVEN):
            added.pop("ground_truth", None)
        return {**columns, **added}


def recognised(columns: Columns) -> Shape | None:
    """The shape that a row's columns tell, or None where they tell none. Two that contradict are refused."""
    for shape in _SHAPES:
        if shape.describes(columns):
            return shape
    return _question_answer(columns)


def _question_answer(columns: Columns) -> Shape | None:
    """A question column and an answer column, where each is the only one of its kind."""
    questions = ["prompt"] if "prompt" in columns else [name for name in _QUESTIONS if _is_text(columns.get(name))]
    truths = [name for name in _TRUTHS if columns.get(name) not in (None, "")]
    truth_given = any(name in columns for name in _TRUTH_GIVEN)
    if questions == ["prompt"]:  # our own name: what else is there is not our business, unless it is clear
        if len(truths) != 1 or truth_given:
            return None
        return _plain_shape("prompt", truths[0])
    if not questions:
        return None
    if USER_TURN not in columns:
        if len(questions) > 1:
            raise BadRow(f"it is unclear what is asked: {_or(questions)}; {_write(questions[0], truths[:1])}")
        if choices := next((name for name in _CHOICES if columns.get(name)), None):
            raise BadRow(
                f"the choices in {choices!r} are not part of the question {questions[0]!r}; write how they are shown "
                f"with `dataset.prompt_template`, e.g. '{{{{ {questions[0]} }}}} {{{{ {choices} | join(\" / \") }}}}'"
            )
    if truth_given or not truths:
        return _plain_shape(questions[0], None)
    if len(truths) > 1:
        raise BadRow(f"it is unclear what is right: {_or(truths)}; {_write(questions[0], truths[:1])}")
    return _plain_shape(questions[0], truths[0])


def _plain_shape(question: str, truth: str | None) -> Shape:
    says = f"{question!r} is asked" + (f", {truth!r} is the ground truth" if truth else "")

    def read(columns: Columns) -> Columns:
        added = {} if question == "prompt" else {"user_query": columns[question]}
        return {**added, "ground_truth": _text_of(columns[truth])} if truth else added

    return Shape("question_answer", frozenset({question}), says, read)


def _or(names: list[str]) -> str:
    return " or ".join(map(repr, names))


def _write(question: str, truths: list[str]) -> str:
    mapping = ", ".join(
        [f"user_query: {question}", *(f"ground_truth: {truth}" for truth in truths)]
    )  # fmt: skip
    return f"say it, e.g. with `dataset.column_mapping={{{mapping}}}`"


# ── the shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _gsm8k(columns: Columns) -> Columns:
    return {"user_query": columns["question"], "ground_truth": columns["answer"].rpartition("####")[2].strip()}


def _math(columns: Columns) -> Columns:
    answer, solution = columns.get("answer"), columns["solution"]
    truth = answer if answer not in (None, "") else boxed(str(solution or "")) or solution
    return {"user_query": columns["problem"], "ground_truth": truth, **_named(columns, "unique_id")}


def _humaneval(columns: Columns) -> Columns:
    truth = {"test": columns["test"], "entry_point": columns["entry_point"]}
    return {"ground_truth": truth, **_named(columns, "task_id")}


def _mbpp(columns: Columns) -> Columns:
    query = columns.get("text") or columns.get("prompt") or ""
    tests = "\n".join(map(str, columns["test_list"]))
    setup = columns.get("test_setup_code") or "\n".join(columns.get("test_imports") or [])
    truth = {"test_list": columns["test_list"], **({"test_setup_code": setup} if setup else {})}
    shown = f"{query}\n\nThe code must pass these tests:\n\n{tests}"
    return {"user_query": shown, "ground_truth": truth, **_named(columns, "task_id")}


def _apps(columns: Columns) -> Columns:
    query = _with_starter(columns["question"], columns)
    return {"user_query": query, "ground_truth": columns["input_output"], **_named(columns, "problem_id")}


def _livecodebench(columns: Columns) -> Columns:
    public, private = _tests_of(columns["public_test_cases"]), _tests_of(columns.get("private_test_cases"))
    metadata = _from_json(columns.get("metadata"), {})
    function = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    return {
        "user_query": _with_starter(columns["question_content"], columns),
        "ground_truth": [{**test, "expected_output": test.get("output")} for test in (*public, *private)],
        **({"function_to_call": function} if function else {}),
        **_named(columns, "question_id"),
    }


def _bfcl(columns: Columns) -> Columns:
    turns = columns["question"]
    first = turns[0] if turns and isinstance(turns[0], list) else turns
    if len(turns) > 1 and isinstance(turns[0], list):
        raise BadRow("it has several scripted turns, and a run gives one answer; use the single-turn tasks")
    tools = [tool if "function" in tool else {"type": "function", "function": tool} for tool in columns["function"]]
    return {"messages": first, "tools": tools}


def _nemotron(columns: Columns) -> Columns:
    kind = str(columns.get("category") or columns.get("split") or "")
    ready = with_ground_truth(columns, kind)
    return {
        name: ready[name] for name in ("id", "messages", "ground_truth", "tools", "function_to_call", "metadata",
                                       "reference_response") if name in ready
    }  # fmt: skip


def _sharegpt(columns: Columns) -> Columns:
    ready = with_ground_truth({"messages": sharegpt_turns(columns["conversations"])}, "chat")
    return {"messages": ready["messages"], "ground_truth": ready.get("reference_response")}


def _prompt_completion(columns: Columns) -> Columns:
    return {"ground_truth": _text_of(columns["completion"])}


def _instruction_output(columns: Columns) -> Columns:
    given = columns.get("input")
    query = f"{columns['instruction']}\n\n{given}" if given else columns["instruction"]
    return {"user_query": query, "ground_truth": columns["output"]}


def _standard(_: Columns) -> Columns:
    return {}


_NEMOTRON = Shape(
    "nemotron", frozenset({"messages", "category", "metadata"}),
    "the turns before the answer are asked; the ground truth follows from 'category' and 'metadata'", _nemotron,
    lambda columns: _ends_with_an_answer(columns["messages"]),
)  # fmt: skip

_SHAPES = (
    _NEMOTRON,
    Shape("humaneval", frozenset({"prompt", "test", "entry_point"}),
          "'prompt' is asked, the program 'test' is the ground truth", _humaneval),
    Shape("mbpp", frozenset({"test_list"}),
          "the text and the tests are asked, 'test_list' is the ground truth", _mbpp,
          lambda columns: isinstance(columns["test_list"], list) and bool({"text", "prompt"} & columns.keys())),
    Shape("apps", frozenset({"question", "input_output"}),
          "'question' with 'starter_code' is asked, 'input_output' is the ground truth", _apps),
    Shape("livecodebench", frozenset({"question_content", "public_test_cases"}),
          "'question_content' with 'starter_code' is asked, the test cases are the ground truth", _livecodebench),
    Shape("bfcl", frozenset({"question", "function"}),
          "the turns of 'question' are asked, 'function' are the tools", _bfcl,
          lambda columns: isinstance(columns["question"], list) and isinstance(columns["function"], list)),
    Shape("sharegpt", frozenset({"conversations"}),
          "the turns before the answer are asked, the answer is the ground truth", _sharegpt),
    Shape("gsm8k", frozenset({"question", "answer"}),
          "'question' is asked, what stands behind #### in 'answer' is the ground truth", _gsm8k,
          lambda columns: isinstance(columns["answer"], str) and "####" in columns["answer"]),
    Shape("math", frozenset({"problem", "solution"}),
          "'problem' is asked, 'answer' or the \\boxed part of 'solution' is the ground truth", _math),
    Shape("instruction_output", frozenset({"instruction", "output"}),
          "'instruction' with 'input' is asked, 'output' is the ground truth", _instruction_output),
    Shape("prompt_completion", frozenset({"prompt", "completion"}),
          "'prompt' is asked, 'completion' is the ground truth", _prompt_completion),
)  # fmt: skip
"""The most telling first: a row with tests is code, whatever else it has."""

_BY_NAME: dict[str, Shape] = {
    "standard": Shape(
        "standard", frozenset(), "'messages', 'user_query' or 'prompt' is asked; 'ground_truth' is the ground truth",
        _standard,
    ),
    "question_answer": Shape(
        "question_answer", frozenset(),
        f"the one column of {', '.join(_QUESTIONS)} is asked; the one of {', '.join(_TRUTHS)} is the ground truth",
        lambda columns: shape.read(columns) if (shape := _question_answer(columns)) else {},
    ),
    **{shape.name: shape for shape in _SHAPES},
}  # fmt: skip


def known_shapes() -> tuple[Shape, ...]:
    """Every shape that a config can name."""
    return tuple(_BY_NAME.values())


FORMATS: tuple[str, ...] = ("auto", *_BY_NAME)
"""What `dataset.format` may say."""


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ends_with_an_answer(turns: Any) -> bool:
    turns = _from_json(turns, [])
    return isinstance(turns, list) and bool(turns) and isinstance(turns[-1], Mapping) and turns[-1].get("role") in (
        "assistant", "tool",
    )  # fmt: skip


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _named(columns: Columns, column: str) -> Columns:
    """The id that the set gives its rows, where the row has no `id`."""
    value = columns.get(column)
    return {"id": value} if value not in (None, "") and columns.get("id") in (None, "") else {}


def _with_starter(query: Any, columns: Columns) -> str:
    starter = columns.get("starter_code")
    return f"{query}\n\nBegin with this code:\n\n```python\n{starter}\n```" if starter else str(query)


def _text_of(value: Any) -> Any:
    """The text of the last of some turns; anything else as it is."""
    turns = value if isinstance(value, list) else None
    if turns and isinstance(turns[-1], Mapping) and "content" in turns[-1]:
        return turns[-1]["content"]
    return value


def _from_json(value: Any, nothing: Any) -> Any:
    if not isinstance(value, str):
        return nothing if value is None else value
    try:
        return orjson.loads(value)
    except ValueError:
        return nothing


def _tests_of(value: Any) -> list[dict[str, Any]]:
    """Test cases as a list, as JSON, or as LiveCodeBench packs its private ones."""
    tests = _from_json(value, None)
    if tests is None and isinstance(value, str) and value:
        tests = _from_json(_unpacked(value), None)
    if tests is None and value in (None, ""):
        return []
    if not isinstance(tests, list) or not all(isinstance(test, Mapping) for test in tests):
        raise BadRow("its test cases cannot be read; expected a list of {input, output}, or its JSON")
    return [dict(test) for test in tests]


_MOST_UNPACKED = 256 * 1024 * 1024
"""Bytes of test cases of one row: a row that unpacks to more is refused, not unpacked."""


def _unpacked(value: str) -> str | None:
    """The text in base64 of a compressed pickle. Only text is taken: a pickle of anything else could run code."""
    try:
        pressed = zlib.decompressobj()
        packed = pressed.decompress(base64.b64decode(value, validate=True), _MOST_UNPACKED)
        if pressed.unconsumed_tail:
            raise BadRow(f"its test cases have more than {_MOST_UNPACKED >> 20} MB")
        text = _TextUnpickler(io.BytesIO(packed)).load()
    except (binascii.Error, zlib.error, pickle.UnpicklingError, EOFError, ValueError, IndexError, KeyError):
        return None
    return text if isinstance(text, str) else None


class _TextUnpickler(pickle.Unpickler):
    """Reads plain values only: nothing is imported, so nothing can be called."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is not plain data")
