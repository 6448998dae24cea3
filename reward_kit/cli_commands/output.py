# SPDX-License-Identifier: Apache-2.0
"""What several commands say alike, and the one door to the screen: `echo`, `console`, `print_json`, logs, errors.

Answers, exceptions, file names and metrics are written by others. What goes through here reaches a terminal without
escape sequences, control characters and marks that turn the direction of text, and without credentials.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from reward_kit.cli_commands.options import given_arguments
from reward_kit.errors import Setting, with_settings_named
from reward_kit.redaction import blot, mask, mask_words

if TYPE_CHECKING:
    from rich.console import Console

    from reward_kit.execution.result import RunResult

__all__ = [
    "BELOW_FLOOR",
    "DETACHED",
    "FAILING",
    "INTERRUPTED",
    "NOTHING_JUDGED",
    "NOT_MIRRORED",
    "STOPPED_BY_BUDGET",
    "Line",
    "answers_made",
    "echo",
    "echo_error",
    "echo_failing",
    "echo_json",
    "echo_lines",
    "echo_not_mirrored",
    "echo_nothing_done",
    "exit_code",
    "failure_lines",
    "in_own_words",
    "make_console",
    "name_settings",
    "print_json",
    "prints_on_stderr",
    "remarks",
    "same_command",
    "show_logs",
    "shown",
]

NOTHING_JUDGED = 1
"""The exit code of a command that ended, and has nothing to show."""
STOPPED_BY_BUDGET = 3
"""Of one that `max_cost` stopped; it can go on."""
BELOW_FLOOR = 4
"""Of one whose figures are below what `--fail-under` asks for."""
NOT_MIRRORED = 5
"""Of one whose run is done, and not all of it could be copied to its mirror."""
DETACHED = 6
"""Of one that left batches under way, as it was told to; it can go on."""
FAILING = 7
"""Of one whose first answers could not be judged, all for the same reason; it can go on."""
INTERRUPTED = 130
"""Of one that somebody stopped; it can go on."""


def exit_code(status: str, done: int) -> int:
    """How a command ends whose run has this status and `done` items to show for it."""
    if status == "interrupted":
        return INTERRUPTED
    if status == "detached":
        return DETACHED
    if status == "stopped":
        return STOPPED_BY_BUDGET
    if status == "failing":
        return FAILING
    return 0 if done else NOTHING_JUDGED


def answers_made(result: RunResult) -> int:
    """What a run has to show: judged answers, or, where it only generated, answers."""
    return result.judged if "records" in result.summary else result.summary.get("rollouts", 0) - result.failed


# ── text on a terminal ───────────────────────────────────────────────────────────────────────────────────────────────

_NOT_FOR_TERMINALS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line break, DEL, C1
    "\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # no width, or turning the direction
    "\ud800-\udfff\U000e0000-\U000e007f]"  # halves of characters; tags
)
_JOINERS = frozenset("\u200c\u200d")
"""Words of some languages, and some emoji, need them."""


def shown(text: str) -> str:
    """Text of others as it may be put on a terminal: what would act there stands as its code, such as `\\x1b`."""
    return _NOT_FOR_TERMINALS.sub(_code, text) if not (text.isascii() and text.isprintable()) else text


def _code(match: re.Match[str]) -> str:
    character = match[0]
    if character in _JOINERS:
        return character
    return ascii(character)[1:-1]


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line, or several."""
    click.echo(shown(blot(text)), err=err)


def echo_error(text: str) -> None:
    """Print what went wrong on standard error, in one line."""
    click.echo(f"Error: {shown(mask(in_own_words(' '.join(text.split(chr(10))))))}", err=True)


class Line(NamedTuple):
    """A line of a small table: what it is about in bold, a figure, and something fainter beside it."""

    label: str
    value: str = ""
    note: str = ""


def echo_lines(lines: Sequence[Line], *, indent: int = 0, err: bool = False) -> None:
    """Print lines of a label and a value, the values below each other. Credentials are taken out first."""
    color = False if os.environ.get("NO_COLOR") else None  # None: click sees whether it is a terminal
    cleaned = [Line(*(shown(blot(part)) for part in line)) for line in lines]
    width = max((len(line.label) for line in cleaned), default=0) if len(cleaned) > 1 else 0
    for line in cleaned:
        shown_line = f"{click.style(line.label.ljust(width), bold=True)}{'  ' if width else ' '}{line.value}"
        note = f"  {click.style(line.note, dim=True)}" if line.note else ""
        click.echo(f"{' ' * indent}{shown_line}{note}".rstrip(), err=err, color=color)


def make_console(**options: Any) -> Console:
    """A console of rich whose every text is cleaned as it is rendered, wherever it came from."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class CleanConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Any:
            for segment in super().render(renderable, options):
                if segment.control:  # rich's own: moving the cursor, hiding it
                    yield segment
                else:
                    yield Segment(shown(blot(segment.text)), segment.style)

    return CleanConsole(**options)


def print_json(value: Any) -> None:
    """Print a value on standard output, where nothing else is."""
    import orjson

    echo_json(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def echo_json(text: str) -> None:
    """Print JSON: the same data, with what would act on a terminal written as JSON's own escapes."""
    click.echo(_NOT_FOR_TERMINALS.sub(_json_code, blot(text)))


def _json_code(match: re.Match[str]) -> str:
    import json

    return match[0] if match[0] in _JOINERS else json.dumps(match[0])[1:-1]


class _CleanFormatter(logging.Formatter):
    """Logs, tracebacks included, as they may be shown."""

    def format(self, record: logging.LogRecord) -> str:
        return shown(mask(super().format(record)))


def show_logs(*, verbose: bool) -> None:
    """Show what is logged on standard error: everything where `--verbose` was given, else warnings."""
    if not verbose:
        if logging.lastResort is not None:  # shows warnings that nobody else takes
            logging.lastResort.setFormatter(_CleanFormatter("%(message)s"))
        return
    handler = logging.StreamHandler()
    handler.setFormatter(_CleanFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.DEBUG, handlers=[handler])
    for name in ("asyncio", *_TALKATIVE):
        logging.getLogger(name).setLevel(logging.INFO)


_TALKATIVE = ("aiobotocore", "boto3", "botocore", "fsspec", "gcsfs", "google", "s3fs", "s3transfer", "urllib3")
"""Packages of object stores, which would log every request with what signs it."""


def same_command(*more: str) -> str:
    """What was typed, without a key that may have been among it, and with `more` where that was not."""
    given = given_arguments()
    typed = [*given, *(flag for flag in more if flag not in given)]
    return shlex.join(["reward-kit", *mask_words(typed)])


# ── settings, in the words of the command ────────────────────────────────────────────────────────────────────────────

_spelling: ContextVar[Callable[[Setting], str]] = ContextVar("_spelling", default=str)


def name_settings(spell: Callable[[Setting], str]) -> None:
    """From here on, show the settings that messages name as this command spells them: see `Door.spell`."""
    _spelling.set(spell)


def in_own_words(message: str) -> str:
    """A message of the engine with the settings it names as this command spells them."""
    return with_settings_named(message, _spelling.get())


# ── failures and remarks ─────────────────────────────────────────────────────────────────────────────────────────────


_LONGEST = 300
"""Characters of a message that are shown; the whole one is in the file of results."""


def failure_lines(summary: Mapping[str, Any]) -> list[str]:
    """What is said of each kind of failure, the most frequent first; below it, where the first one was raised."""
    examples: Mapping[str, str] = summary.get("failure_examples") or {}
    kinds: Mapping[str, int] = summary.get("failures_by_kind") or {}
    traces: Mapping[str, str] = summary.get("failure_tracebacks") or {}
    return [
        f"{count:,} × {kind}, such as: {_short(examples.get(kind, ''))}{_place_in(traces.get(kind, ''))}"
        for kind, count in kinds.items()
    ]


def _place_in(trace: str) -> str:
    """The last frame of a traceback that is in no library, in lines of its own: the file, the line, and its code."""
    lines = trace.splitlines()
    frames = [number for number, line in enumerate(lines) if line.startswith('  File "')]
    own = [number for number in frames if "/lib/python" not in lines[number]] or frames
    if not own:
        return ""
    code = lines[own[-1] + 1 : own[-1] + 2]
    return "".join(f"\n    {line}" for line in [lines[own[-1]], *(line for line in code if line.startswith("    "))])


def echo_nothing_done(was_done: str, summary: Mapping[str, Any]) -> None:
    """Say, also to those who asked for quiet, that nothing at all `was_done`, and why."""
    first = next(iter((summary.get("failure_examples") or {}).values()), None)
    if first is None:
        why = "there was nothing to do. Check the dataset and the limits on how much of it is taken."
    else:
        again = "Fix that, then run the same command again; add --retry-failed if it says that there is nothing to do."
        why = f"the first failure was: {_as_sentence(_short(first))} {again}"
    echo(f"Error: Nothing could be {was_done}: {why}", err=True)


def _as_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def echo_failing(result: RunResult, *, when: bool) -> None:
    """Say why a run ended whose first answers all failed alike, to those who saw no table."""
    if when and result.status == "failing" and result.reason is not None:
        echo_error(result.reason)


def echo_not_mirrored(*reasons: str | None) -> int:
    """Say, also to those who asked for quiet, what is not in a mirror; how the command ends for it."""
    said = [reason for reason in reasons if reason is not None]
    for reason in said:
        echo_error(reason)
    return NOT_MIRRORED if said else 0


def _short(message: str) -> str:
    """On one line, with its middle left out where it is long: what a program wrote last says most of why it ended."""
    line = in_own_words(" ".join(message.split()))
    half = _LONGEST // 2
    return line if len(line) <= _LONGEST else f"{line[:half]} … {line[-half:]}"


def remarks(summary: Mapping[str, Any]) -> list[str]:
    """A sentence or two for each thing that the figures alone do not tell."""
    beyond: int = summary.get("not_asked_for") or 0
    invalid: int = (summary.get("this_entry") or {}).get("invalid") or 0
    earlier: Mapping[str, Any] | None = (summary.get("this_entry") or {}).get("earlier")
    found = [_not_asked_for(beyond)] if beyond else []
    if not (invalid or earlier):
        return found
    from reward_kit.execution.summary import about_earlier, about_invalid

    found += [in_own_words(about_earlier(earlier))] if earlier else []
    return found + ([in_own_words(about_invalid(invalid))] if invalid else [])


def _not_asked_for(answers: int) -> str:
    subject = "1 answer is" if answers == 1 else f"{answers:,} answers are"
    return (
        f"{subject} in these figures that the dataset, its limit or n no longer call for: "
        "they were paid for and are kept."
        " For figures without them, choose another output directory; what is cached costs nothing."
    )


# ── standard output, kept for what was asked for ─────────────────────────────────────────────────────────────────────


_OUT, _ERR = 1, 2


@contextlib.contextmanager
def prints_on_stderr(*, when: bool = True) -> Iterator[None]:
    """Let what anyone writes to standard output, a program that a reward starts included, go to standard error."""
    if not when or sys.stdout is None:  # None: it was closed before we began
        yield
        return
    sys.stdout.flush()
    kept = os.dup(_OUT)
    os.dup2(_ERR, _OUT)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, _OUT)
        os.close(kept)
