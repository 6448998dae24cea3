# SPDX-License-Identifier: Apache-2.0
"""Judged answers, query by query, from whatever holds them: a run directory, a results.jsonl, a best-of-N Parquet.

Every vocabulary is read into the same two values, and reasoning is told apart from the answer in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Self

from reward_kit.answers.command import extract_command
from reward_kit.answers.reasoning import split_reasoning
from reward_kit.errors import ConfigError, MissingExtraError, StorageError
from reward_kit.models import Message
from reward_kit.storage.best_of_n_tables import refuse_damaged_parquet
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_index import JournalIndex
from reward_kit.storage.run_directory import RESULTS, ROLLOUTS, refuse_cut
from reward_kit.storage.tables import rollout_from_line
from reward_kit.storage.thresholds import Thresholds, thresholds_of
from reward_kit.storage.vocabularies import (
    BEST_OF_N,
    RUN,
    SHELL,
    ReadVerdict,
    find_columns,
    plain_names,
    refuse_other_columns,
    verdict_of,
    vocabulary_of,
)
from reward_kit.utils import exact_json
from reward_kit.utils.checksums import check_line
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = ["Candidate", "Query", "Turns", "read_queries", "split_off_answer"]

_BATCH = 1024
"""Parquet rows in memory at a time."""

Turns = list[dict[str, Any]]


class Candidate(NamedTuple):
    """One answer, and what was said of it."""

    candidate_idx: int
    turns: Turns
    """The answer's turns, without reasoning; none where there is no answer."""
    reasoning: str | None
    score: float | None
    is_verified: bool | None
    """None: not judged."""


class Query(NamedTuple):
    """What was asked, with all its answers."""

    id: str
    split: str | None
    prompt: Turns
    tools: str | None
    """As JSON text."""
    ground_truth: str | None
    """As text; JSON where it is not text."""
    candidates: list[Candidate]

    @property
    def judged(self) -> list[Candidate]:
        """The answers that have a verdict."""
        return [candidate for candidate in self.candidates if candidate.is_verified is not None and candidate.turns]


class _Row(NamedTuple):
    """One line or row, before those of a query are put together."""

    query: Query
    candidate: Candidate


def read_queries(source: Path, *, threshold: float | None = None) -> Iterator[Query]:
    """The queries in `source`. A score of `threshold` verifies an answer, where the source does not say itself."""
    if not source.exists():
        raise ConfigError(f"There is no {str(source)!r}. Name a run directory, its results.jsonl, or a Parquet file.")
    if source.is_dir():
        results = source / RESULTS
        if not results.exists():
            raise ConfigError(f"{str(source)!r} holds no {RESULTS}. Name the output directory of a run that judged.")
        return _together(_journal_rows(results, thresholds_of(source, threshold)), source)
    if source.suffix.lower() in (".parquet", ".pq"):
        return _together(_parquet_rows(source, threshold), source)
    return _together(_journal_rows(source, thresholds_of(source.parent, threshold)), source)


def _together(rows: Iterable[_Row], source: Path) -> Iterator[Query]:
    """The rows of each query as one; they must stand together."""
    seen = DigestMap()
    for name, group in groupby(rows, key=lambda row: row.query.id):
        key = digest64(name)
        if seen.get(key) >= 0:
            raise StorageError(
                f"The rows of query {name!r} are not next to each other in {str(source)!r}. Sort the file by query_id."
            )
        seen.put(key, 1)
        members = list(group)
        yield members[0].query._replace(candidates=[row.candidate for row in members])


# ── journals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _journal_rows(path: Path, thresholds: Thresholds) -> Iterator[_Row]:
    with Journal(path, read_only=True) as journal, _Rollouts(path.with_name(ROLLOUTS)) as rollouts:
        refuse_cut(journal)
        for line in journal.in_order():
            if b'"branch":{' in line and exact_json.loads(line).get("branch") is not None:
                continue  # an agent's episode that shares steps with another: no answer of its own
            yield _journal_row(line, path, thresholds, rollouts)


def _journal_row(line: bytes, path: Path, thresholds: Thresholds, rollouts: _Rollouts) -> _Row:
    row = exact_json.loads(line)
    if not check_line(line):
        refuse_other_columns(row, f"The result {row['response_index']} of {row['id']!r} in {str(path)!r}")
    vocabulary = vocabulary_of(row)
    if vocabulary is SHELL:
        return _from_shell(row, thresholds, rollouts)
    return _READERS[vocabulary.name](row, thresholds)


class _Rollouts:
    """The rollouts beside a file of results, where there are any: the only ones who know all that was said."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path, read_only=True) if path.exists() else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._journal is not None:
            self._journal.close()

    @cached_property
    def _index(self) -> JournalIndex:
        return self._journal.index() if self._journal is not None else JournalIndex()

    def conversation(self, sample_id: str, response_index: int) -> tuple[Turns, Turns] | None:
        """What was asked, and what was answered."""
        offset = self._index.offset(sample_id, response_index)
        if self._journal is None or offset is None:
            return None
        rollout = rollout_from_line(self._journal.line_at(offset))
        return _as_turns(rollout.sample.messages), _as_turns(rollout.turns)


def _as_turns(messages: list[Message]) -> Turns:
    return [message.model_dump(exclude_none=True) for message in messages]


def _from_run(line: dict[str, Any], thresholds: Thresholds) -> _Row:
    prompt, turns = split_off_answer(line["messages"])
    query = Query(line["id"], line["split"], prompt, None, _text(line[RUN.ground_truth]), [])
    return _Row(query, _candidate(line["response_index"], turns, verdict_of(line, thresholds)))


def _from_experiment(line: dict[str, Any], thresholds: Thresholds) -> _Row:
    verdict = verdict_of(line, thresholds)
    columns = {
        **line, "query_id": line["id"], "candidate_idx": line["response_index"], "response": line[BEST_OF_N.response],
        "score": verdict.score, "is_verified": verdict.is_verified,
    }  # fmt: skip
    return _from_columns(columns, None)


def _from_shell(line: dict[str, Any], thresholds: Thresholds, rollouts: _Rollouts) -> _Row:
    """With the prompt and the answer as they were; where only the commands are known, the task and its command."""
    index, command = line["response_index"], line[SHELL.response]
    conversation = rollouts.conversation(line["id"], index)
    if conversation is None or not _holds(conversation[1], command):
        turns = [] if command is None else [{"role": "assistant", "content": command}]
        conversation = [{"role": "user", "content": line[SHELL.query]}], turns
    query = Query(line["id"], None, conversation[0], None, line[SHELL.ground_truth], [])
    return _Row(query, _candidate(index, conversation[1], verdict_of(line, thresholds)))


def _holds(answer: Turns, command: str | None) -> bool:
    """Whether the answer is the one the command was taken from: a file of commands may be changed by hand."""
    return bool(answer) and extract_command(str(answer[-1].get("content") or "")) == command


_READERS: dict[str, Callable[[dict[str, Any], Thresholds], _Row]] = {
    RUN.name: _from_run,
    BEST_OF_N.name: _from_experiment,
}


def split_off_answer(messages: Turns) -> tuple[Turns, Turns]:
    """What was asked, up to the last user turn, and what was answered to it."""
    prompt_places = [place for place, turn in enumerate(messages) if turn["role"] in ("user", "system", "developer")]
    end = prompt_places[-1] + 1 if prompt_places else 0
    return messages[:end], messages[end:]


def _candidate(index: int, turns: Turns, verdict: ReadVerdict) -> Candidate:
    plain, thoughts = [], []
    for turn in turns:
        apart = turn.get("reasoning_content")
        content = turn.get("content")
        if isinstance(content, str) and turn["role"] == "assistant":
            aloud, answer = split_reasoning(content)
            content = answer.strip() if answer != content else content
            thoughts += [part for part in (apart, aloud.strip()) if part]
        kept = {name: value for name, value in turn.items() if name not in ("reasoning_content", "sent_back")}
        plain.append({**kept, "content": content})
    return Candidate(index, plain, "\n\n".join(thoughts) or None, *verdict)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else exact_json.dumps(value).decode()


# ── parquet ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_NEEDED = ("query_id", "response", "is_verified")
_READ = ("query_id", "split", "query", "messages", "tools", "ground_truth", "candidate_idx", "response", "reasoning",
         "tool_calls", "is_verified", "score")  # fmt: skip


def _parquet_rows(path: Path, threshold: float | None) -> Iterator[_Row]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError(f"Reading {str(path)!r}", "parquet") from error
    try:
        refuse_damaged_parquet(path)
        with ParquetFile(path, page_checksum_verification=True) as file:
            columns = _columns_in(set(file.schema_arrow.names), path)
            for batch in file.iter_batches(batch_size=_BATCH, columns=list(columns.values())):
                for row in batch.to_pylist():
                    yield _from_columns({field: row[name] for field, name in columns.items()}, threshold)
    except (ArrowException, OSError) as error:
        raise StorageError(f"{str(path)!r} is not readable as Parquet: {error}. Make it again.") from error


def _columns_in(present: set[str], path: Path) -> dict[str, str]:
    """The column of the file that holds each field."""
    found = find_columns({field: plain_names(field) for field in _READ}, present)
    missing = [field for field in _NEEDED if field not in found]
    if missing or not {"query", "messages"} & found.keys():
        lacking = missing[0] if missing else "query"
        raise StorageError(
            f"{str(path)!r} has no column {lacking!r}: it is not a best-of-N table. Name one that `best-of-n` wrote."
        )
    return found


def _from_columns(row: Mapping[str, Any], threshold: float | None) -> _Row:
    stored = row.get("messages")
    prompt: Turns = exact_json.loads(stored) if stored else [{"role": "user", "content": row.get("query")}]
    query = Query(str(row["query_id"]), row.get("split"), prompt, row.get("tools"), row.get("ground_truth"), [])
    score, verified = row.get("score"), row["is_verified"]
    if threshold is not None and score is not None:
        verified = score >= threshold
    candidate = Candidate(row.get("candidate_idx") or 0, _turns(row), row.get("reasoning"), score, verified)
    return _Row(query, candidate)


def _turns(row: Mapping[str, Any]) -> Turns:
    response, calls = row.get("response"), row.get("tool_calls")
    if response is None and not calls:
        return []
    turn: dict[str, Any] = {"role": "assistant", "content": response or ""}
    return [turn | {"tool_calls": exact_json.loads(calls)} if calls else turn]
