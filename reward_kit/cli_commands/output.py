"""What several commands say alike: their exit codes, a summary as JSON, logs, and the command that goes on."""

from __future__ import annotations

import re
import shlex
import sys
from typing import Any

__all__ = ["INTERRUPTED", "NOTHING_JUDGED", "STOPPED_BY_BUDGET", "log_to_stderr", "print_json", "same_command"]

NOTHING_JUDGED = 1
"""The exit code of a command that ended, and has nothing to show."""
STOPPED_BY_BUDGET = 3
"""Of one that `max_cost` stopped; it can go on."""
INTERRUPTED = 130
"""Of one that somebody stopped; it can go on."""

_KEY = re.compile(r"(api[_-]key['\"]?\s*[=:]\s*)[^,}\s]+")


def print_json(value: Any) -> None:
    """Print a value on standard output, where nothing else is."""
    import orjson

    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    sys.stdout.flush()


def log_to_stderr() -> None:
    """Show everything that is logged, for `--verbose`."""
    import logging

    logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("asyncio").setLevel(logging.INFO)


def same_command() -> str:
    """What was typed, without a key that may have been among it."""
    typed = list(sys.argv[1:])
    for place, argument in enumerate(typed[:-1]):
        if argument == "--api-key":
            typed[place + 1] = "…"
    return shlex.join(["reward-kit", *(_KEY.sub(r"\1…", argument) for argument in typed)])
