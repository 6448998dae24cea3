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
| `question_answer` | one question column, our own or another | that column | the one candidate (`ground_truths`) |

A shape only adds columns under the names that the rest of the package knows. The row's own columns stay, so that a
reward that names one of them gets it. A `prompt` beside a question (GSM8K made ready for a trainer) is what is asked,
unless a config names the format, or the question is put together of several columns (`mbpp`, `instruction_output`).
Names are recognised with other capitals where none is written exactly so.
"""

from __future__ import annotations

import base64
import binascii
import functools
import io
import pickle
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from reward_kit.config_models import DatasetFormat
from reward_kit.datasets.columns import USER_TURN, Columns
from reward_kit.datasets.ground_truths import (
    CANDIDATES,
    EXPLICIT,
    AmbiguousTruth,
    Truth,
    boxed,
    explicit_truth,
    is_held,
    says_truth,
    sharegpt_turns,
    spelled,
    truth_among,
    with_ground_truth,
)
from reward_kit.datasets.rows import BadRow
from reward_kit.utils import exact_json

__all__ = ["FORMATS", "KNOWN", "Shape", "ShapeReader", "known_shapes"]

_QUESTIONS = ("question", "problem", "query", "instruction")
"""Columns that hold a question, where the row has none of our own names for it."""
_LAST_QUESTION = "input"
"""Holds the question where no other column does: beside one, it is what the question is about."""
_CHOICES = ("choices", "options")
_STANDARD = frozenset({"messages", "user_query"})
_OWN = ("messages", "user_query", "prompt")


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
    decides: Literal["always", "named", "never"] = "always"
    """Whether it says what is right, whatever other column may hold the truth: always, or only if a config names it."""
    makes_question: bool = False
    """Whether it puts the question together: a text `prompt` beside it may hold the answer, too, and is not asked."""


class Names(NamedTuple):
    """What the names of a row's columns tell. Rows of a dataset have the same, so it is worked out once."""

    other_capitals: dict[str, str]
    """The names that we know to those that the row writes with other capitals."""
    shapes: tuple[Shape, ...]
    """The shapes whose columns are all there."""
    questions: tuple[str, ...]
    """Columns that may hold the question, as the row calls them."""
    says_truth: bool
    """Whether a column says what is right."""


class ShapeReader:
    """Gives rows the columns that everybody knows. One per dataset; it remembers which shapes it met."""

    def __init__(self, given: DatasetFormat = "auto", answer: str | None = None) -> None:
        """`answer` is the column with the answers to be judged, which is no truth."""
        self._given = None if given == "auto" else _BY_NAME[given]
        self._answer = answer
        self.met: dict[str, str] = {}
        """Name and description of each shape that was met so far."""

    def read(self, columns: Columns, *, only_shape: bool = False) -> Columns:
        """The row with the columns that its shape adds; those it already has under our names stay as they are.

        With `only_shape` no column is taken for the truth unless the shape says so.
        """
        if self._given is _BY_NAME["standard"]:
            return columns
        names = _names_of(tuple(columns))
        view = _with_our_names(columns, names)
        added, asked = self._shaped(columns, view, names)
        if asked and not only_shape:
            added |= self._truth(columns, asked, names)
        return {**columns, **added} if added else columns

    def read_answered(self, columns: Columns) -> Columns:
        """The same for a row that holds its answer, which is neither asked nor the ground truth."""
        answer = self._answer or ""
        rest = {name: value for name, value in columns.items() if name != answer}
        if "conversations" in columns and _STANDARD.isdisjoint(columns):
            self.met.setdefault("sharegpt", "the last answer of 'conversations' is judged")
            spoken = sharegpt_turns(columns["conversations"])
            return {**columns, "messages": spoken, **self._truth_beside_turns(rest)}
        if answer not in columns and {"prompt", "completion"} <= rest.keys():
            self.met.setdefault("prompt_completion", "'prompt' is asked, 'completion' is the answer that is judged")
            given = rest.pop("completion")
            return {**self.read(rest), "completion": given, answer: given}
        turns = _with_our_names(rest, _names_of(tuple(rest))).get("messages")
        ready = {**rest, "messages": turns, **self._truth_beside_turns(rest)} if is_held(turns) else self.read(rest)
        return {**ready, answer: columns[answer]} if answer in columns else ready

    def _truth_beside_turns(self, columns: Columns) -> Columns:
        """What a row says of the truth outside its conversation, which is taken apart later, as it is."""
        if self._given is _BY_NAME["standard"]:
            return {}
        names = _names_of(tuple(columns))
        view = _with_our_names(columns, names)
        if _NEMOTRON in names.shapes and _NEMOTRON.fits(view):
            return _unless_said(columns, _nemotron_truth(view), decides=True)
        return self._truth(columns, "messages", names)

    def _shaped(self, columns: Columns, view: Columns, names: Names) -> tuple[Columns, str]:
        """The columns that the row's shape adds; and what is asked, where the shape leaves open what is right."""
        shape = _recognised(view, names) if self._given is None else self._given
        if shape is None or shape is _QUESTION_ANSWER:
            return _asked(view, names)
        self.met.setdefault(shape.name, shape.says)
        if missing := sorted(shape.needs - view.keys()):
            raise BadRow(f"`dataset.format={shape.name}` needs the column {missing[0]!r}, which is not there")
        decides = shape.decides == "always" or (shape.decides == "named" and self._given is not None)
        added = _unless_said(columns, shape.read(view), decides)
        said = USER_TURN in view  # by a template
        has_prompt = is_held(view.get("prompt")) and self._given is None and not shape.makes_question
        if said or has_prompt:
            added = {name: value for name, value in added.items() if name not in ("user_query", "messages")}
        return added if said else _own_question(view, names) | added, "" if decides else shape.name

    def _truth(self, columns: Columns, asked: str, names: Names) -> Columns:
        """The truth that no shape has said, as a column to add."""
        truth = None if names.says_truth else self._open_truth(columns)
        if asked not in _BY_NAME and "question_answer" not in self.met and (truth or asked not in _OWN):
            right = f", {truth.column!r} is the ground truth" if truth else ""
            self.met["question_answer"] = f"{asked!r} is asked{right}"
        return {} if truth is None else {"ground_truth": truth.value}

    def _open_truth(self, columns: Columns) -> Truth | None:
        if says_truth(columns):
            return Truth("reward_model.ground_truth", explicit_truth(columns))
        return truth_among(columns, but=self._answer)


@functools.lru_cache(maxsize=1024)
def _names_of(columns: tuple[str, ...]) -> Names:
    spellings = {known: spelled((known,), columns) for known in KNOWN.difference(columns)}
    other = {known: found[0] for known, found in spellings.items() if len(found) == 1}
    ours = {*columns, *other}
    return Names(
        other,
        tuple(one for one in _SHAPES if one.needs <= ours),
        spelled(_QUESTIONS, columns),
        bool(spelled(EXPLICIT, columns)),
    )


def _with_our_names(columns: Columns, names: Names) -> Columns:
    """The row with what it writes in other capitals under the names that we know, too."""
    if not names.other_capitals:
        return columns
    return {**columns, **{ours: columns[theirs] for ours, theirs in names.other_capitals.items()}}


def _recognised(view: Columns, names: Names) -> Shape | None:
    """The shape that a row's columns tell, or None where they tell none."""
    if not names.shapes:
        return None
    own = is_held(view.get("messages")) or is_held(view.get("user_query"))
    for shape in names.shapes:
        if (shape is _NEMOTRON or not own) and shape.fits(view):
            return shape
    return None


def _unless_said(columns: Columns, added: Columns, decides: bool) -> Columns:
    """What a shape adds, without its ground truth where the row says another.

    A row that says that there is none is believed, unless its shape decides what is right.
    """
    said = says_truth(columns) and (is_held(explicit_truth(columns)) or not decides)
    return {name: value for name, value in added.items() if name != "ground_truth"} if said else added


def _own_question(view: Columns, names: Names) -> Columns:
    """What is asked, where a column of ours with other capitals says it."""
    asked = next((name for name in _OWN if is_held(view.get(name))), "")
    return _as_asked(view[asked], asked) if asked in names.other_capitals else {}


def _asked(view: Columns, names: Names) -> tuple[Columns, str]:
    """What is asked in a row of no special shape, and the column that says it."""
    for name in _OWN:
        value = view.get(name)
        if value is not None and value != "":  # as `is_held` says it, without a call per row and column
            return _as_asked(value, name) if name in names.other_capitals else {}, name
    questions = [name for name in names.questions if _is_text(view.get(name))]
    if not questions and is_held(view.get(_LAST_QUESTION)):
        questions = [_LAST_QUESTION]
    if not questions:
        return {}, _OWN[-1]
    if USER_TURN in view:
        return {}, questions[0]
    if len(questions) > 1:
        raise BadRow(
            f"it is unclear what is asked: {' or '.join(map(repr, questions))}; say it, e.g. with "
            f"`dataset.column_mapping={{user_query: {questions[0]}}}`"
        )
    if choices := next((name for name in _CHOICES if view.get(name)), None):
        raise BadRow(
            f"the choices in {choices!r} are not part of the question {questions[0]!r}; write how they are shown "
            f"with `dataset.prompt_template`, e.g. '{{{{ {questions[0]} }}}} {{{{ {choices} | join(\" / \") }}}}'"
        )
    return _as_asked(view[questions[0]], questions[0]), questions[0]


def _as_asked(value: Any, name: str) -> Columns:
    return {"messages" if isinstance(value, list) or name == "messages" else "user_query": value}


# ── the shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _gsm8k(columns: Columns) -> Columns:
    return {"user_query": columns["question"], "ground_truth": columns["answer"].rpartition("####")[2].strip()}


def _math(columns: Columns) -> Columns:
    answer, solution = columns.get("answer"), columns["solution"]
    if not is_held(answer):
        found = truth_among(columns, but="solution")
        answer = found.value if found else boxed(str(solution or "")) or solution
    return {"user_query": columns["problem"], "ground_truth": answer, **_named(columns, "unique_id")}


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


def _nemotron_truth(columns: Columns) -> Columns:
    """What such a row says of the truth beside the answer that it holds."""
    rest = {name: value for name, value in columns.items() if name != "messages"}
    try:
        ready = with_ground_truth(rest, str(columns.get("category") or columns.get("split") or ""))
    except AmbiguousTruth:
        raise
    except BadRow:  # the answer itself may be the only place that the kind has for it
        return {}
    return {name: ready[name] for name in ("ground_truth", "function_to_call") if name in ready}


def _sharegpt(columns: Columns) -> Columns:
    ready = with_ground_truth({"messages": sharegpt_turns(columns["conversations"])}, "chat")
    return {"messages": ready["messages"], "ground_truth": ready["ground_truth"]}


def _prompt_completion(columns: Columns) -> Columns:
    return {"ground_truth": _plain(columns, "completion")}


def _instruction_output(columns: Columns) -> Columns:
    given = columns.get("input")
    query = f"{columns['instruction']}\n\n{given}" if given else columns["instruction"]
    return {"user_query": query, "ground_truth": _plain(columns, "output")}


def _plain(columns: Columns, name: str) -> Any:
    found = truth_among(columns, (name,))
    return None if found is None else found.value


def _nothing(_: Columns) -> Columns:
    return {}


_NEMOTRON = Shape(
    "nemotron", frozenset({"messages", "category", "metadata"}),
    "the turns before the answer are asked; the ground truth follows from 'category' and 'metadata'", _nemotron,
    lambda columns: _ends_with_an_answer(columns["messages"]), makes_question=True,
)  # fmt: skip

_SHAPES = (
    _NEMOTRON,
    Shape("humaneval", frozenset({"prompt", "test", "entry_point"}),
          "'prompt' is asked, the program 'test' is the ground truth", _humaneval),
    Shape("mbpp", frozenset({"test_list"}),
          "the text and the tests are asked, 'test_list' is the ground truth", _mbpp,
          lambda columns: isinstance(columns["test_list"], list) and bool({"text", "prompt"} & columns.keys()),
          makes_question=True),
    Shape("apps", frozenset({"question", "input_output"}),
          "'question' with 'starter_code' is asked, 'input_output' is the ground truth", _apps),
    Shape("livecodebench", frozenset({"question_content", "public_test_cases"}),
          "'question_content' with 'starter_code' is asked, the test cases are the ground truth", _livecodebench),
    Shape("bfcl", frozenset({"question", "function"}),
          "the turns of 'question' are asked, 'function' are the tools", _bfcl,
          lambda columns: isinstance(columns["question"], list) and isinstance(columns["function"], list)),
    Shape("sharegpt", frozenset({"conversations"}),
          "the turns before the answer are asked, the answer is the ground truth", _sharegpt, decides="never"),
    Shape("gsm8k", frozenset({"question", "answer"}),
          "'question' is asked, what stands behind #### in 'answer' is the ground truth", _gsm8k,
          lambda columns: isinstance(columns["answer"], str) and "####" in columns["answer"]),
    Shape("math", frozenset({"problem", "solution"}),
          "'problem' is asked, 'answer' or the \\boxed part of 'solution' is the ground truth", _math),
    Shape("instruction_output", frozenset({"instruction", "output"}),
          "'instruction' with 'input' is asked, 'output' is the ground truth", _instruction_output, decides="named",
          makes_question=True),
    Shape("prompt_completion", frozenset({"prompt", "completion"}),
          "'prompt' is asked, 'completion' is the ground truth", _prompt_completion, decides="named"),
)  # fmt: skip
"""The most telling first: a row with tests is code, whatever else it has."""

_QUESTION_ANSWER = Shape(
    "question_answer", frozenset(),
    f"the one column of {', '.join((*_QUESTIONS, _LAST_QUESTION))} is asked; the one of {', '.join(CANDIDATES)} is the "
    "ground truth",
    _nothing,
)  # fmt: skip

_BY_NAME: dict[str, Shape] = {
    "standard": Shape(
        "standard", frozenset(), "'messages', 'user_query' or 'prompt' is asked; 'ground_truth' is the ground truth",
        _nothing,
    ),
    "question_answer": _QUESTION_ANSWER,
    **{shape.name: shape for shape in _SHAPES},
}  # fmt: skip

KNOWN = frozenset(
    {*_OWN, *EXPLICIT, *_QUESTIONS, _LAST_QUESTION, *CANDIDATES}.union(*(shape.needs for shape in _SHAPES))
)
"""Names that are recognised with other capitals, too."""


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


def _from_json(value: Any, nothing: Any) -> Any:
    if not isinstance(value, str):
        return nothing if value is None else value
    try:
        return exact_json.loads(value)
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
