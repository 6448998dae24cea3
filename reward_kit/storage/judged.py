# SPDX-License-Identifier: Apache-2.0
"""The one reader of judged answers: a line of results or a row of a table, in words that mean the same everywhere.

    results.jsonl (of run, best-of-n, shell) ─┐
    a Parquet file, a table in memory ────────┴─▶ JudgedAnswer    its fields are made when somebody asks for them

Candidates and episodes of `export`, figures, the viewer's pages and reviews all read answers here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, Self

from reward_kit.answers.reasoning import split_reasoning
from reward_kit.errors import ConfigError, DatasetError, MissingExtraError, StorageError
from reward_kit.models import Message, Rollout, Sample, answer_begins
from reward_kit.storage.best_of_n_tables import refuse_damaged_parquet
from reward_kit.storage.journal import Journal
from reward_kit.storage.large_parts import whole_row
from reward_kit.storage.run_directory import RESULTS, ROLLOUTS, refuse_cut
from reward_kit.storage.samples import Samples
from reward_kit.storage.shell_tables import extra_columns
from reward_kit.storage.tables import rollout_from_line
from reward_kit.storage.thresholds import Thresholds
from reward_kit.storage.vocabularies import (
    CONVERSATIONS,
    FIGURES,
    RUN,
    SHELL,
    TEXTS,
    Field,
    ReadVerdict,
    find_columns,
    plain_names,
    refuse_other_columns,
    verdict_of,
)
from reward_kit.utils import exact_json
from reward_kit.utils.checksums import CHECK, check_line

__all__ = [
    "Conversation", "JudgedAnswer", "Key", "RolloutsBeside", "Turns", "as_text", "excerpt", "is_table", "parsed",
    "read_answers", "row_of_line", "spoken", "step_places",
]  # fmt: skip

Turns = list[dict[str, Any]]
Key = tuple[str, int]
"""Which answer it is: the sample's id, and its index among the sample's answers."""

_NAMES = {**FIGURES, **TEXTS}
_OF_SHELL = SHELL.columns()
_SHELL_NAMES = {field: tuple(name for name in names if name in _OF_SHELL) for field, names in _NAMES.items()}
_BATCH = 1024
"""Rows of a table in memory at a time."""


class Conversation(NamedTuple):
    """What was asked, and what the model, and perhaps a world, added to it."""

    prompt: Turns
    turns: Turns


class JudgedAnswer:
    """What a line or row says of one answer. Nothing is computed: figures come from `analysis`."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        """Keep the row as it stands in its file."""
        self.row = row
        self._is_shell = SHELL.is_verified in row  # the dataset's own columns, of any name, stand among these

    @classmethod
    def of_line(cls, line: bytes, samples: Samples | None = None) -> Self:
        """Read from a line of a file of results; with `samples`, also the large parts that it names in them."""
        row = exact_json.loads(line)
        return cls(row if samples is None else whole_row(row, samples))

    def _column(self, name: Field) -> str:
        """The first of the names of a column that holds something; empty where none does."""
        names = _SHELL_NAMES if self._is_shell else _NAMES
        for column in names[name]:
            if self.row.get(column) is not None:
                return column
        return ""

    def field(self, name: Field) -> Any:
        """What the row holds under any of the names of a column; None where it holds nothing."""
        return self.row.get(self._column(name))

    def _words(self, name: Field) -> str | None:
        """A text; where it stands in a column of messages, what the last of them says."""
        held = self.row.get(column := self._column(name))
        return held if held is None or (isinstance(held, str) and column not in CONVERSATIONS) else spoken(held)

    def own(self, column: str) -> Any:
        """What stands in a column of ours, and not in one of the dataset's that has its name."""
        return None if self._is_shell and column not in _OF_SHELL else self.row.get(column)

    def listed(self, column: str) -> list[Any]:
        """A column of ours that holds a list, or the text of one."""
        held = parsed(self.own(column))
        return held if isinstance(held, list) else []

    @property
    def id(self) -> str:
        """The sample that was answered."""
        return str(self.field("query_id"))

    @property
    def index(self) -> int:
        """Which of the sample's answers it is."""
        return self.field("candidate_idx") or 0

    @property
    def key(self) -> Key:
        """Both of them."""
        return self.id, self.index

    def verdict(self, thresholds: Thresholds) -> ReadVerdict:
        """What was said of it."""
        return verdict_of(self.row, thresholds)

    # ── what was asked ───────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def query(self) -> str:
        """What the user said last."""
        return self._words("query") or ""

    @property
    def ground_truth(self) -> Any:
        """What the answer is compared with."""
        return self.field("ground_truth")

    @cached_property
    def columns(self) -> dict[str, Any]:
        """The dataset's own columns."""
        if self._is_shell:
            return {name: value for name, value in extra_columns(self.row).items() if name != CHECK}
        held = parsed(self.row.get("columns"))
        return held if isinstance(held, dict) else {}

    @cached_property
    def _messages(self) -> Conversation:
        """What stands in the column of messages: of a run's line the answer, too, which others have beside them."""
        messages = [turn for turn in self.listed("messages") if isinstance(turn, dict)]
        if RUN.query not in self.row:
            return Conversation(messages, [])
        places = step_places(messages, steps := self.listed("steps"))
        roles = [turn.get("role") for turn in messages]
        begin = answer_begins(roles) if places is None else places[0] - steps[0]["turn"]
        return Conversation(messages[:begin], messages[begin:])

    def _answer_alone(self) -> Turns:
        said, calls = self._words("response"), self.listed("tool_calls")
        if said is None and not calls:
            return []
        turn = {"role": "assistant", "content": said or ""}
        thoughts = self.own("reasoning")
        return [turn | ({"reasoning_content": thoughts} if thoughts else {}) | ({"tool_calls": calls} if calls else {})]

    @property
    def prompt(self) -> Turns:
        """What was asked."""
        return self._messages.prompt if self.own("messages") else [{"role": "user", "content": self.query}]

    @property
    def asked(self) -> Turns:
        """All that was said before the model's first word: the prompt, and what a world began with."""
        return [*self.prompt, *takewhile(lambda turn: turn.get("role") != "assistant", self.turns)]

    @property
    def tools(self) -> list[Any]:
        """What the model was offered."""
        return self.listed("tools")

    # ── what was answered ────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def turns(self) -> Turns:
        """What the model said, and what it was answered, after the prompt."""
        is_alone = RUN.query not in self.row or not self.row.get("messages")
        return self._answer_alone() if is_alone else self._messages.turns

    @cached_property
    def _answer(self) -> tuple[str, str | None]:
        """The answer's text and its reasoning: told apart by the endpoint, or thought aloud in the text."""
        text = self._words("response") or ""
        apart = (self.turns[-1] if self.turns else {}).get("reasoning_content")
        if apart:
            return text, as_text(apart)
        thought, rest = split_reasoning(text) if text else ("", "")
        return (rest.lstrip("\n"), thought.strip()) if thought.strip() and rest != text else (text, None)

    @property
    def response(self) -> str:
        """The answer, without its reasoning."""
        return self._answer[0]

    @property
    def reasoning(self) -> str | None:
        """What the model thought before it answered."""
        return self._answer[1]

    @cached_property
    def length(self) -> int:
        """Characters of the answer, also where it was cut."""
        return len(self.response)

    @property
    def tool_calls(self) -> list[Any]:
        """The calls of the last turn."""
        held = parsed((self.turns[-1] if self.turns else {}).get("tool_calls"))
        return held if isinstance(held, list) else []

    # ── what was said of it ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def reason(self) -> str:
        """Why, in the words of the reward."""
        return as_text(self.field("verification_reason"))

    @property
    def error(self) -> str | None:
        """Why there is no verdict."""
        held = self.row.get("error")
        return None if held is None else as_text(held)

    @property
    def metrics(self) -> Mapping[str, Any]:
        """What was measured beside the score."""
        held = parsed(self.row.get(RUN.metrics))
        return held if isinstance(held, dict) else {}

    def text(self, name: str) -> str:
        """One of the long texts."""
        return _LONG_TEXTS[name](self)

    def rollout(self) -> Rollout:
        """The answer as the rollout that was judged, as far as the row tells."""
        name, index = self.key
        try:
            prompt, turns = ([Message.model_validate(turn) for turn in part] for part in (self.prompt, self.turns))
            sample = Sample(
                id=name,
                messages=prompt,
                ground_truth=self.ground_truth,
                split=self.own("split"),
                columns=self.columns,
                tools=self.tools or None,
            )
            return Rollout(sample=sample, response_index=index, turns=turns, model=self.row.get("model"))
        except ValueError as error:
            raise StorageError(
                f"The answer {index} of {name!r} is not a conversation that can be read ({error}). Restore the file."
            ) from error


_LONG_TEXTS: dict[str, Callable[[JudgedAnswer], str]] = {
    "query": lambda answer: answer.query,
    "response": lambda answer: answer.response,
    "reasoning": lambda answer: answer.reasoning or "",
    "ground_truth": lambda answer: as_text(answer.ground_truth),
    "reason": lambda answer: answer.reason or answer.error or "",
}


def step_places(messages: Sequence[Mapping[str, Any]], steps: Sequence[Any]) -> list[int] | None:
    """Where the turns of an episode's steps stand among all messages; None where there are none, or nobody knows.

    A step says where its turn stands among the episode's, and the last one is the model's last turn.
    """
    turns = [step["turn"] for step in steps if isinstance(step, Mapping) and isinstance(step.get("turn"), int)]
    last = max((place for place, turn in enumerate(messages) if turn.get("role") == "assistant"), default=None)
    if not turns or last is None or len(turns) < len(steps) or last < turns[-1]:
        return None
    places: list[int] = [last - turns[-1] + turn for turn in turns]
    fits = all(0 <= place < len(messages) and messages[place].get("role") == "assistant" for place in places)
    return places if fits else None


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def parsed(held: Any) -> Any:
    """A value, or what its text holds where it is JSON."""
    if isinstance(held, str) and held[:1] in ("{", "["):
        try:
            return exact_json.loads(held)
        except exact_json.JSONDecodeError:
            return held
    return held


def spoken(value: Any) -> str:
    """What is said in a value: a text as it is; of messages, also as JSON, what the user said last."""
    if isinstance(value, str):
        if not value.startswith(("[{", '{"')) or (turns := parsed(value)) is value:
            return value
        value = turns
    if isinstance(value, list) and value and all(isinstance(turn, dict) for turn in value):
        questions = [turn for turn in value if turn.get("role") == "user"] or value
        return as_text(questions[-1].get("content"))
    return "" if value is None else str(value)


def as_text(value: Any) -> str:
    """A value as text: a text as it is, nothing as nothing, everything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return exact_json.dumps(value, str, non_str_keys=True).decode("utf-8", "replace")


def excerpt(text: str, width: int) -> str:
    """The beginning of a text in one line."""
    shown = " ".join(text[: 4 * width].split())
    return shown if len(shown) <= width and len(text) <= 4 * width else shown[: max(0, width - 1)].rstrip() + "…"


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def row_of_line(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """The columns of a line of results; one that is damaged, or no result, is refused by its number."""
    whole = check_line(line)
    if whole is False or (whole is None and line.startswith((b'{"schema":2,', b'{"schema":3,'))):
        raise StorageError(
            f"Line {number} of {str(path)!r} is damaged: it is not what was written there. Run its command again, "
            "which judges that answer again."
        )
    try:
        row = exact_json.loads(line)
    except exact_json.JSONDecodeError as error:
        raise DatasetError(
            f"Line {number} of {str(path)!r} is not JSON: {error}. Run its command again, which repairs its files."
        ) from error
    if not isinstance(row, dict) or not {"id", "task_id"} & row.keys():
        raise DatasetError(f"Line {number} of {str(path)!r} is not a result. Name a results.jsonl of `reward-kit run`.")
    if not whole:
        refuse_other_columns(row, f"Line {number} of {str(path)!r}")
    return row


def is_table(source: Path) -> bool:
    """Whether it is a Parquet file."""
    return source.suffix.lower() in (".parquet", ".pq")


def read_answers(source: Path) -> Iterator[JudgedAnswer]:
    """The answers in a run directory, its results.jsonl or a Parquet file, in their order."""
    if not source.exists():
        raise ConfigError(f"There is no {str(source)!r}. Name a run directory, its results.jsonl, or a Parquet file.")
    if is_table(source):
        return _in_table(source)
    results = source / RESULTS if source.is_dir() else source
    if not results.exists():
        raise ConfigError(f"{str(source)!r} holds no {RESULTS}. Name the output directory of a run that judged.")
    return _in_journal(results)


def _in_journal(path: Path) -> Iterator[JudgedAnswer]:
    with Journal(path, read_only=True) as journal:
        refuse_cut(journal)
        for line in journal.in_order():
            answer = JudgedAnswer.of_line(line, journal.samples)
            if not check_line(line):
                name, index = answer.key
                refuse_other_columns(answer.row, f"The result {index} of {name!r} in {str(path)!r}")
            yield answer


_READ = ("query_id", "split", "query", "messages", "tools", "ground_truth", "candidate_idx", "response", "reasoning",
         "tool_calls", "is_verified", "score")  # fmt: skip


def _in_table(path: Path) -> Iterator[JudgedAnswer]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError(f"Reading {str(path)!r}", "parquet") from error
    try:
        refuse_damaged_parquet(path)
        with ParquetFile(path, page_checksum_verification=True) as file:
            names = _columns_in(set(file.schema_arrow.names), path)
            for batch in file.iter_batches(batch_size=_BATCH, columns=list(names.values())):
                columns = [batch[name].to_pylist() for name in names.values()]
                for values in zip(*columns, strict=True):
                    yield JudgedAnswer(dict(zip(names, values, strict=True)))
    except (ArrowException, OSError) as error:
        raise StorageError(f"{str(path)!r} is not readable as Parquet: {error}. Make it again.") from error


def _columns_in(present: set[str], path: Path) -> dict[Field, str]:
    """The column of the file that holds each field."""
    found = find_columns({field: plain_names(field) for field in _READ}, present)
    missing = [field for field in ("query_id", "response", "is_verified") if field not in found]
    if missing or not {"query", "messages"} & found.keys():
        lacking = missing[0] if missing else "query"
        raise StorageError(
            f"{str(path)!r} has no column {lacking!r}: it is not a best-of-N table. Name one that `best-of-n` wrote."
        )
    return found


class RolloutsBeside:
    """The rollouts beside a file of results, where there are any: the only ones who know all that was said."""

    def __init__(self, directory: Path | None) -> None:
        """Open the file, if there is one."""
        path = None if directory is None else directory / ROLLOUTS
        self._journal = Journal(path, read_only=True) if path is not None and path.exists() else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._journal is not None:
            self._journal.close()

    def get(self, key: Key) -> Rollout | None:
        """The rollout of an answer."""
        offset = None if self._journal is None else self._journal.index().offset(*key)
        if self._journal is None or offset is None:
            return None
        return rollout_from_line(self._journal.line_at(offset), self._journal.samples)
