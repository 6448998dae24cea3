# SPDX-License-Identifier: Apache-2.0
r"""Which value of a row is the right answer: one rule for every door, and the places of its own that a chat set has.

    ground_truth_for_eval, ground_truth, reward_model.ground_truth    says it: counts, whatever else is there
    answer, solution, expected_answer …                               the one that holds something; if two differ: error

Chat rows of post-training sets (nvidia/Nemotron-Post-Training-Dataset-v1 and alike) hold the answer among the turns:

    uuid · category · messages [{role, content, tool_calls}] · metadata (JSON text) · tools

What it is verified against depends on the kind of problem:

| kind | prompt | ground truth |
|---|---|---|
| math | the turns before the answer | `expected_answer` in the metadata, else what the answer puts into `\boxed` |
| code | the same | test cases in a column or the metadata, as a list of {input, expected_output} |
| tool_calling | the turns before the first tool calls | these calls; `tools` come from the metadata or the column |
| any other | the turns before the answer | a column, where there is one; the answer becomes `reference_response` |

What a column says counts first, then `expected_answer` in the metadata of mathematics, which is meant for nothing else,
then what a column may hold. Of code, only what a column says: a solution is a program, and not what a program prints.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from reward_kit.answers.reasoning import without_reasoning
from reward_kit.datasets.columns import Columns
from reward_kit.datasets.rows import BadRow
from reward_kit.utils import exact_json

__all__ = [
    "ANSWERS",
    "CANDIDATES",
    "EXPLICIT",
    "KINDS",
    "TASK",
    "AmbiguousTruth",
    "Truth",
    "as_call",
    "boxed",
    "explicit_truth",
    "is_held",
    "is_plain_chat",
    "plain_truth",
    "said_in",
    "says_truth",
    "sharegpt_turns",
    "spelled",
    "truth_among",
    "with_ground_truth",
]

EXPLICIT = ("ground_truth_for_eval", "ground_truth")
"""Columns that say what is right. Where one of them is there, no other column is asked, also if it holds nothing."""

ANSWERS = ("answer", "solution", "expected_answer", "final_answer")
"""The candidates that are nothing else."""
CANDIDATES = (*ANSWERS, "target", "output", "completion", "label", "reference_answer", "reference")
"""Columns that may hold the right answer, for every door. Nobody else has a list of them."""

TASK = frozenset({"task", "success_condition"})
"""Columns of a task for the shell: its condition says what is right, and what else is there is not asked."""

KINDS = ("math", "code", "tool_calling")
"""Kinds of problems with a place of their own for the ground truth. Any other name is a kind without one."""

_TEST_CASES = ("test_cases", "tests", "unit_tests", "input_output")
_EMPTY = ("", "-", None)
"""What stands where a licence kept the prompt out: it is to be joined from the set that the metadata names."""


# ── one rule ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class AmbiguousTruth(BadRow):
    """Several columns may hold the right answer, and they differ."""

    def __init__(self, candidates: Iterable[str]) -> None:
        """Name the columns, as the row calls them."""
        self.candidates = tuple(candidates)
        super().__init__(
            f"it is unclear what is right: {' or '.join(map(repr, self.candidates))}; "
            f"say it, e.g. with `dataset.column_mapping={{ground_truth: {self.candidates[0]}}}`"
        )


class Truth(NamedTuple):
    """A right answer, and the column that holds it."""

    column: str
    value: Any


def is_held(value: Any) -> bool:
    """Whether a column holds anything; an empty list of calls is something."""
    return value is not None and value != ""


def says_truth(columns: Mapping[str, Any]) -> bool:
    """Whether the row says what is right, also if it says that it does not know."""
    return bool(spelled(EXPLICIT, tuple(columns))) or _in_rule(columns) is not None


def explicit_truth(columns: Mapping[str, Any]) -> Any:
    """What the row says is right; two columns that say different things are refused."""
    given = [columns[name] for name in spelled(EXPLICIT, tuple(columns))]
    if len(given) == 1:
        return given[0]
    if not given:
        return None if (rule := _in_rule(columns)) is None else rule["ground_truth"]
    held = [value for value in given if is_held(value)]
    if any(not _same(held[0], value) for value in held):
        raise BadRow("'ground_truth_for_eval' and 'ground_truth' differ; keep the one that is right")
    return held[0] if held else "" if "" in given else None


def _in_rule(columns: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """verl's `reward_model: {style, ground_truth}`."""
    rule = columns.get("reward_model")
    return rule if isinstance(rule, Mapping) and "ground_truth" in rule else None


def truth_among(
    columns: Mapping[str, Any], candidates: tuple[str, ...] = CANDIDATES, *, but: str | None = None
) -> Truth | None:
    """The one of the candidates that holds something. Several are an error, unless they hold the same."""
    if columns.keys() >= TASK:
        return None
    held = [
        Truth(name, plain_truth(name, columns[name]))
        for name in spelled(candidates, tuple(columns)) if name != but and is_held(columns[name])
    ]  # fmt: skip
    if not held:
        return None
    if any(not _same(held[0].value, other.value) for other in held[1:]):
        raise AmbiguousTruth(truth.column for truth in held)
    return held[0]


@functools.lru_cache(maxsize=1024)
def spelled(known: tuple[str, ...], columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns called by one of the known names; where none has a name exactly, those with other capitals.

    Rows of one dataset have the same columns, so this is mostly worked out before.
    """
    there = set(columns)
    return tuple(
        name for one in known for name in ([one] if one in there else [name for name in columns if name.lower() == one])
    )


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def plain_truth(name: str, value: Any) -> Any:
    """What the last of some turns says, and the text in TRL's `solution: ["4"]`; anything else as it is."""
    if not isinstance(value, list) or not value:
        return value
    if isinstance(value[-1], Mapping) and "content" in value[-1]:
        return said_in(_turn(value[-1]))
    if len(value) == 1 and isinstance(value[0], str) and name.lower() == "solution":
        return value[0]
    return value


def said_in(turn: Mapping[str, Any]) -> Any:
    """What a turn says, as a ground truth: its calls of tools, else its text; None where it says nothing."""
    if calls := turn.get("tool_calls"):
        return {"tool_calls": [as_call(call) for call in calls]}
    content = turn.get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "".join(str(text) for text in texts if text is not None)
    return content or None


# ── the kinds of chat rows ───────────────────────────────────────────────────────────────────────────────────────────

_MARKS = {"category", "metadata"}
"""Columns of a set that says what each row is verified against; where it does not, the answer is a mere reference."""

Turns = list[dict[str, Any]]


def with_ground_truth(columns: Columns, kind: str) -> Columns:
    """The row with a prompt that does not hold the answer, and its ground truth, under their usual names."""
    row = dict(columns)
    metadata = _object(row.get("metadata"))
    if "messages" not in row:
        return _with_known_truth(row, metadata, kind)
    turns = _turns(row["messages"])
    prompt, answer = _split_calls(turns) if kind == "tool_calling" else _split_answer(turns)
    _refuse_placeholder(prompt, metadata)
    row["messages"] = prompt
    if kind == "tool_calling":
        _offer_tools(row, metadata)
    if answer is None or kind in KINDS:
        return _with_known_truth(row, metadata, kind, answer)
    row.setdefault("reference_response", answer.get("content"))
    ready = _with_known_truth(row, metadata, kind, answer)
    if ready["ground_truth"] is None and not says_truth(columns) and is_plain_chat(columns, kind):
        ready["ground_truth"] = said_in(answer)
    return ready


def is_plain_chat(columns: Mapping[str, Any], kind: str) -> bool:
    """Whether a conversation is read as in any dataset, for neither the kind nor the set says more of it."""
    return kind not in KINDS and not columns.keys() >= _MARKS


def _with_known_truth(row: Columns, metadata: Mapping[str, Any], kind: str, answer: Any = None) -> Columns:
    truth = _truth(row, metadata, kind, answer)
    if not is_held(truth) and kind in KINDS:
        raise BadRow(f"there is no ground truth to verify an answer with: {_WHERE[kind]}")
    for name in EXPLICIT:
        row.pop(name, None)
    row["ground_truth"] = truth
    if kind == "code":
        _name_function(row, metadata)
    return row


_WHERE = {
    "math": r"no column 'ground_truth', no 'expected_answer' in the metadata, and no \boxed in the answer",
    "code": "no column 'ground_truth' or 'test_cases', and no test cases in the metadata",
    "tool_calling": "no column 'ground_truth', and no assistant turn in the conversation",
}


def _truth(row: Columns, metadata: Mapping[str, Any], kind: str, answer: Any) -> Any:
    said = explicit_truth(row)
    if kind == "code":
        places = [said, *(source.get(name) for source in (row, metadata) for name in _TEST_CASES)]
        return _test_cases(next((tests for tests in places if tests not in (None, "", [], {})), None))
    if is_held(said):
        return said
    if kind == "math" and is_held(metadata.get("expected_answer")):
        return metadata["expected_answer"]
    if not says_truth(row) and (found := truth_among(row)) is not None:
        return found.value
    found_elsewhere = _of_kind(metadata, kind, answer)
    return said if found_elsewhere is None else found_elsewhere


def _of_kind(metadata: Mapping[str, Any], kind: str, answer: Any) -> Any:
    """What the conversation or its metadata hold in the place that the kind has for it."""
    if kind == "math":
        said = explicit_truth(metadata)
        found = None if is_held(said) else truth_among(metadata, ANSWERS)
        return said if is_held(said) else _boxed(answer) if found is None else found.value
    if kind == "tool_calling" and answer is not None:
        return {"tool_calls": answer.get("tool_calls") or []}
    return None


# ── the conversation ─────────────────────────────────────────────────────────────────────────────────────────────────


def _turns(value: Any) -> Turns:
    turns = _json(value) if isinstance(value, str) else value
    turns = [turns] if isinstance(turns, Mapping) else turns
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, Mapping) for turn in turns):
        raise BadRow(f"column 'messages' is {value!r}; expected a list of messages")
    return [_turn(turn) for turn in turns]


_SPEAKERS = {
    "human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant",
    "bard": "assistant", "model": "assistant", "assistant": "assistant", "system": "system", "tool": "tool",
    "observation": "tool",
}  # fmt: skip
"""Who speaks in ShareGPT's conversations, by the names that sets of that shape use."""


def sharegpt_turns(value: Any) -> Turns:
    """A conversation of `{from, value}` (or `{role, content}`) as messages."""
    turns = _json(value) if isinstance(value, str) else value
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, Mapping) for turn in turns):
        raise BadRow("column 'conversations' is not a list of {from, value}")
    return [_spoken(turn) for turn in turns]


def _spoken(turn: Mapping[str, Any]) -> dict[str, Any]:
    speaker = turn.get("from", turn.get("role"))
    role = _SPEAKERS.get(str(speaker).lower())
    if role is None:
        raise BadRow(f"a turn of 'conversations' is from {speaker!r}; expected human, gpt, system or tool")
    return {"role": role, "content": turn.get("value", turn.get("content"))}


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    """The turn without the empty fields that a table gives every turn, and with its arguments as text."""
    kept = {name: value for name, value in turn.items() if value is not None and value != []}
    kept.setdefault("content", None if "tool_calls" in kept else "")
    if "tool_calls" in kept:
        kept["tool_calls"] = [as_call(call) for call in kept["tool_calls"]]
    return kept


def as_call(call: Any) -> dict[str, Any]:
    """A tool call with its arguments as text."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or "name" not in function:
        raise BadRow(f"a tool call is {call!r}; expected {{function: {{name, arguments}}}}")
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else exact_json.dumps(arguments or {}).decode()
    return {
        "id": call.get("id") or "", "type": "function", "function": {"name": function["name"], "arguments": text}
    }  # fmt: skip


def _split_answer(turns: Turns) -> tuple[Turns, dict[str, Any] | None]:
    """The turns up to the last user turn, and the last assistant turn behind it."""
    last = next((place for place in reversed(range(len(turns))) if turns[place].get("role") == "user"), len(turns) - 1)
    answers = [turn for turn in turns[last + 1 :] if turn.get("role") == "assistant"]
    return turns[: last + 1], answers[-1] if answers else None


def _split_calls(turns: Turns) -> tuple[Turns, dict[str, Any] | None]:
    """The turns before the first assistant turn that calls tools; where none does, before the first of them."""
    answers = [place for place, turn in enumerate(turns) if turn.get("role") == "assistant"]
    calling = [place for place in answers if turns[place].get("tool_calls")]
    place = (calling or answers or [len(turns)])[0]
    return turns[:place], turns[place] if place < len(turns) else None


def _refuse_placeholder(prompt: Turns, metadata: Mapping[str, Any]) -> None:
    questions = [turn.get("content") for turn in prompt if turn.get("role") == "user"]
    if not questions or all(content in _EMPTY or str(content).strip() in _EMPTY for content in questions):
        shown = questions[-1] if questions else None
        source = {name: value for name, value in metadata.items() if isinstance(value, str | int)}
        hint = f"; its metadata says {source!r}" if source else ""
        raise BadRow(
            f"the prompt is {shown!r}: this dataset leaves it out, and it must be added from the original dataset{hint}"
        )


# ── ids, tools, answers and tests ────────────────────────────────────────────────────────────────────────────────────


def _offer_tools(row: Columns, metadata: Mapping[str, Any]) -> None:
    tools = row.get("tools") or metadata.get("tools")
    tools = _json(tools) if isinstance(tools, str) else tools
    if isinstance(tools, list):
        row["tools"] = [_tool(tool) for tool in tools]
    if "tools" in metadata:  # told once is enough
        row["metadata"] = {name: value for name, value in metadata.items() if name != "tools"}


def _tool(tool: Any) -> dict[str, Any]:
    if not isinstance(tool, Mapping):
        raise BadRow(f"a tool is {tool!r}; expected an object")
    return dict(tool) if "function" in tool else {"type": "function", "function": dict(tool)}


def _boxed(answer: Any) -> str | None:
    r"""What the answer's last \boxed holds."""
    return boxed(without_reasoning(str(answer.get("content") or ""))) if isinstance(answer, Mapping) else None


def boxed(text: str) -> str | None:
    r"""What the last \boxed of a text holds; None where there is none."""
    start = text.rfind(r"\boxed{")
    if start < 0:
        return None
    depth, begin = 0, start + len(r"\boxed{")
    for place in range(begin - 1, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[begin:place].strip() or None
    return None


def _test_cases(value: Any) -> Any:
    """Test cases as a list of {input, expected_output}; what is no list of tests, such as an output, as it is."""
    tests = _json(value) if isinstance(value, str) and value.lstrip()[:1] in ("[", "{") else value
    if isinstance(tests, Mapping) and isinstance(tests.get("inputs"), list):
        pairs = zip(tests["inputs"], tests.get("outputs") or [], strict=False)
        return [{"input": given, "expected_output": expected} for given, expected in pairs]
    if isinstance(tests, list) and all(isinstance(test, Mapping) for test in tests):
        return [_test(test) for test in tests]
    return value


def _test(test: Mapping[str, Any]) -> dict[str, Any]:
    expected = test.get("expected_output", test.get("output"))
    return {**{name: value for name, value in test.items() if name != "output"}, "expected_output": expected}


def _name_function(row: Columns, metadata: Mapping[str, Any]) -> None:
    """Tell the verifier which function the tests call, where the row says so."""
    tests = _object(row.get("input_output")) or _object(metadata.get("input_output"))
    names = [tests.get("fn_name"), metadata.get("fn_name"), metadata.get("func_name"), row.get("fn_name")]
    name = next((name for name in names if isinstance(name, str) and name), None)
    if name is not None:
        row.setdefault("function_to_call", name)


def _object(value: Any) -> dict[str, Any]:
    """A JSON object, as it is or as text; nothing where it is something else."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _json(value)
    return dict(value) if isinstance(value, Mapping) else {}


def _json(text: str) -> Any:
    try:
        return exact_json.loads(text)
    except ValueError:
        raise BadRow(f"{text[:40]!r}… is text but not JSON") from None
