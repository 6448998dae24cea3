# SPDX-License-Identifier: Apache-2.0
"""Prints the steps of episodes with their rewards, returns and advantages, from a dump of steps or of episodes.

    reward-kit export outputs/agent --to episodes -o episodes.jsonl
    python scripts/view_rl_trajectory.py episodes.jsonl
    python scripts/view_rl_trajectory.py episodes.jsonl --query lake-3 --best 2 --worst 2

A dump is JSON lines: a row per step (`export --to steps`, or the log of a training loop), or a row per episode
(`export --to episodes`). Steps that have the same number under `same` were taken in the same state and are compared
with each other.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]
SHOWN = 60
"""Characters of what the model saw or said that are printed, unless told otherwise."""


class Episode(NamedTuple):
    """The rows of one episode, each with what the model saw last and what it said, where the dump has that."""

    whole: Row
    steps: list[Row]


def main(arguments: list[str] | None = None) -> None:
    """Print what was asked for."""
    options = _options(arguments)
    try:
        episodes = [one for one in read(options.dump) if options.query in (None, one.whole["query_id"])]
    except (OSError, ValueError, KeyError) as error:
        sys.exit(
            f"{str(options.dump)!r} is no dump of steps or episodes ({error!r}). Make one with `reward-kit export`."
        )
    if not episodes:
        sys.exit(f"There are no episodes of {options.query!r}." if options.query else "There are no episodes.")
    for query, group in groupby(episodes, key=lambda one: one.whole["query_id"]):
        members = list(group)
        scores = [one.whole["score"] for one in members]
        said = f"{query}: {len(members)} episodes, mean score {sum(scores) / len(scores):.3g}"
        print(f"{said}\n{'=' * len(said)}\n")
        for one in chosen(members, options.best, options.worst):
            print("\n".join(lines(one, options.width)) + "\n")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("dump", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--query", help="only the episodes of this sample")
    parser.add_argument("--best", type=int, metavar="N", help="of each sample, only the N of the highest scores")
    parser.add_argument("--worst", type=int, metavar="N", help="of each sample, only the N of the lowest scores")
    parser.add_argument("--width", type=int, default=SHOWN, metavar="N", help=f"characters of a text; default: {SHOWN}")
    return parser.parse_args(arguments)


def read(path: Path) -> Iterator[Episode]:
    """The episodes of a dump, of either kind."""
    with path.open(encoding="utf-8") as file:
        rows = (json.loads(line) for line in file if line.strip())
        for _, group in groupby(rows, key=lambda row: (row["query_id"], row["response_index"])):
            members = list(group)
            if "steps" in members[0]:
                yield from (Episode(row, _with_messages(row)) for row in members)
            else:
                yield Episode(
                    members[0], [_with_texts(row, row.get("prompt"), row.get("completion")) for row in members]
                )


def _with_messages(row: Row) -> list[Row]:
    """The steps of an episode's row, each with its part of the conversation."""
    prompt, turns = row["prompt"], row["completion"]
    return [
        _with_texts(step, [*prompt, *turns[: step["turn"]]], turns[step["turn"] : step["turn"] + 1])
        for step in row["steps"]
    ]


def _with_texts(step: Row, seen: list[Row] | None, said: list[Row] | None) -> Row:
    """A log has no messages: there, the name of the state is all that is known of what was seen."""
    state = " ".join((step["state"] or "").split())
    return step | {"seen": _text(seen[-1]) if seen else state, "said": _text(said[0]) if said else ""}


def _text(message: Row) -> str:
    """One message on one line: its text, then the calls it makes."""
    content = message.get("content") or ""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return " ".join([*text.split(), *(f"{call['name']}({call['arguments']})" for call in calls)])


def chosen(episodes: list[Episode], best: int | None, worst: int | None) -> Iterable[Episode]:
    """All of them; or the best, then the worst, each once."""
    if best is None and worst is None:
        return episodes
    order = sorted(range(len(episodes)), key=lambda place: -episodes[place].whole["score"])
    picked = [*order[: best or 0], *order[len(order) - (worst or 0) :]]
    return [episodes[place] for place in dict.fromkeys(picked)]


def lines(episode: Episode, width: int) -> Iterator[str]:
    """One episode as lines of text."""
    whole = episode.whole
    ended = whole.get("ended") or ("truncated" if whole.get("truncated") else None)
    told = [f"score {whole['score']:.3g}", f"{len(episode.steps)} steps", *([f"ended: {ended}"] if ended else [])]
    yield f"episode {whole['response_index']}   {', '.join(told)}"
    yield "  step    reward    return  same  episode A    step A         A   saw → said"
    for step in episode.steps:
        numbers = (
            f"{_number(step['reward'])}{_number(step['return_to_go'])}{step['state_group']:>6}"
            f"{_number(step['episode_advantage'], 11)}{_number(step['step_advantage'])}{_number(step['advantage'])}"
        )
        yield f"  {step['step']:>4}{numbers}   {_cut(step['seen'], width)} → {_cut(step['said'], width)}".rstrip(" →")


def _number(value: float | None, width: int = 10) -> str:
    return f"{'–' if value is None else f'{value:.3f}':>{width}}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


if __name__ == "__main__":
    main()
