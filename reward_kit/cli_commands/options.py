# SPDX-License-Identifier: Apache-2.0
"""What a command is given, checked alike by every command: finite numbers, ports, names, and files of our own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reward_kit.stores.addresses import is_stored
from reward_kit.utils.near_names import did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    _TextChoice = click.Choice[str]
else:
    _TextChoice = click.Choice  # not generic before click 8.2

__all__ = [
    "MOST",
    "PORT",
    "FiniteNumber",
    "FiniteRange",
    "NamedChoice",
    "NamedPath",
    "NamedSource",
    "check_arguments",
    "completed_by",
    "given_arguments",
    "key_value_pairs",
    "reading_own_files",
]

MOST = 2**31 - 1
"""The largest count that an option takes."""
PORT = click.IntRange(1, 65_535)


class FiniteNumber(click.types.FloatParamType):
    """A number; `nan` and `inf`, which pass any comparison or none, are refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number that `value` stands for; click's error where it is none, or not finite."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class FiniteRange(click.FloatRange):
    """A finite number within bounds, at least one of which is given: help shows them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number that `value` stands for; click's error where it is none, not finite, or out of bounds."""
        try:
            number = float(super().convert(value, param, ctx))
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class NamedChoice(_TextChoice):
    """One of several names. If a name is none of them, the message also says which one is nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name that `value` stands for; click's error, with the nearest name, where it is none of them."""
        try:
            return str(super().convert(value, param, ctx))
        except click.BadParameter as error:
            self.fail(f"{error.message.removesuffix('.')}{did_you_mean(str(value), self.choices)}.", param, ctx)


class NamedPath(click.Path):
    """A path. The empty one, which would mean the current directory, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path that `value` stands for; click's error where it is empty."""
        if not str(value).strip():
            self.fail("It is empty. Name a file or a folder.", param, ctx)
        return super().convert(value, param, ctx)


class NamedSource(NamedPath):
    """A path, or the address of something in an object store, which stays a text: `s3://bucket/run`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The address as it is; else the path that `value` stands for."""
        return value if isinstance(value, str) and is_stored(value) else super().convert(value, param, ctx)


def check_arguments(arguments: list[str]) -> None:
    """Refuse what no file name, model or text can hold, and remember the rest: see `given_arguments`."""
    for argument in arguments:
        if "\0" in argument:
            raise click.UsageError(f"{argument[:60]!r} holds a NUL character. Remove it.")
    _given[:] = arguments


_given: list[str] = []


def given_arguments() -> list[str]:
    """What the command line was called with. A script that calls `main` may have put the command before its own."""
    return list(_given)


Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem[str]]"]


def completed_by(name: str) -> Completer:
    """A function of `completion` by its name, which is imported when somebody presses Tab."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        from reward_kit.cli_commands import completion

        found: Completer = vars(completion)[name]
        return found(ctx, param, incomplete)

    return complete


@contextmanager
def reading_own_files(*paths: Path | str) -> Iterator[None]:
    """The door for files that reward-kit wrote: whatever is wrong inside is said of the files, in one sentence."""
    from reward_kit.errors import RewardKitError, StorageError

    names = ", ".join(repr(str(path)) for path in paths)
    try:
        yield
    except (RewardKitError, click.ClickException, click.exceptions.Exit, BrokenPipeError):
        raise  # a pipe is broken where nobody reads on (`| head`): click ends quietly then
    except OSError as error:
        place = names if error.filename is None else repr(str(error.filename))
        raise StorageError(f"Cannot use {place} ({error.strerror or error}). Name another file or folder.") from error
    except Exception as error:
        # A damaged or foreign line may break anything that reads it; the file is at fault, not the reader.
        raise StorageError(
            f"{names} holds something that reward-kit did not write ({type(error).__name__}: {str(error)[:200]}). Name "
            "a run directory, its results.jsonl or the Parquet of best-of-n, or restore the file."
        ) from error


def key_value_pairs(given: tuple[str, ...], flag: str, expected: str) -> dict[str, str]:
    """What a flag that may be given again says, each time as KEY=VALUE."""
    pairs = [(text, text.partition("=")) for text in given]
    if wrong := [text for text, (key, equals, value) in pairs if not (key and equals and value)]:
        raise click.UsageError(f"{flag} is {wrong[0]!r}; expected {expected}.")
    return {key.strip(): value.strip() for _, (key, _, value) in pairs}
