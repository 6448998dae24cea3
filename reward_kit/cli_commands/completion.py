# SPDX-License-Identifier: Apache-2.0
"""What the Tab key offers beside commands and options: files, keys of a config with their values, names of rewards.

A key is offered a section at a time (`generation.`, then `generation.model_name=`), and a value where the key has a
known set of them. Nothing of this is imported before somebody presses Tab.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    ZshComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from reward_kit.cli_commands.door_options import SettingOption
from reward_kit.doors import field_at, fields_below

__all__ = [
    "SHELLS", "complete_benchmarks", "complete_deployments", "complete_examples", "complete_models",
    "complete_overrides", "complete_paths", "complete_rewards", "complete_setting", "offer", "register_shells",
    "script_of",
]  # fmt: skip

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_REWARD_KIT_COMPLETE"
"""What a shell sets when it asks: the name that click makes of the program's."""

_CONFIG_FILES = (".yaml", ".yml")
_FILES = re.compile(r"(path_or_name|_file|_dir|script|data_files|table|prices)$")
"""Keys that take a file or a folder."""


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def complete_paths(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Files and folders, for options that also take other names."""
    return offer(_paths(incomplete))


def _paths(incomplete: str, suffixes: tuple[str, ...] = ()) -> Iterator[str]:
    """The files (with one of these suffixes) and folders that begin so; folders end in a slash."""
    folder, _, beginning = incomplete.rpartition("/")
    place = Path(f"{folder}/" if incomplete.startswith("/") and not folder else folder or ".").expanduser()
    before = incomplete[: len(incomplete) - len(beginning)]
    try:
        found = sorted(place.iterdir())
    except OSError:
        return
    for path in found:
        hidden = path.name.startswith(".") and not beginning.startswith(".")
        if hidden or not path.name.startswith(beginning):
            continue
        if path.is_dir():
            yield f"{before}{path.name}/"
        elif not suffixes or path.suffix in suffixes:
            yield f"{before}{path.name}"


# ── rewards ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def complete_rewards(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Rewards by name, and Python files that may hold one."""
    return offer(_rewards(incomplete))


def _rewards(incomplete: str) -> Iterator[str]:
    from reward_kit.reward_names import library_rewards, plugin_rewards

    names = (*library_rewards(), *plugin_rewards())
    yield from (name for name in names if name.startswith(incomplete))
    if incomplete:  # without a letter, the names of rewards are enough
        yield from _paths(incomplete, (".py",))


# ── benchmarks ───────────────────────────────────────────────────────────────────────────────────────────────────────


def complete_benchmarks(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The benchmarks that can be run by name."""
    return offer(_benchmarks(incomplete))


def _benchmarks(incomplete: str) -> Iterator[str]:
    from reward_kit.cli_commands.benchmark_configs import benchmark_names

    return (name for name in benchmark_names() if name.startswith(incomplete))


def complete_examples(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The example folders."""
    from reward_kit.cli_commands.examples_cmd import example_names

    return offer(name for name in example_names() if name.startswith(incomplete))


# ── models ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def complete_models(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Models inside this process, and the prefixes of providers."""
    return offer(_models(incomplete))


def _models(incomplete: str) -> Iterator[str]:
    from reward_kit.generation.presets import PRESETS

    names = ("local", "mock", *(f"{prefix}/" for prefix in PRESETS), "litellm/")
    yield from (name for name in names if name.startswith(incomplete))


# ── deployments ──────────────────────────────────────────────────────────────────────────────────────────────────────


def complete_deployments(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The deployments that were made from this folder."""
    from reward_kit.deploy.state import Deployments

    return offer(one for one in Deployments().ids() if one.startswith(incomplete))


# ── keys of a config ─────────────────────────────────────────────────────────────────────────────────────────────────


def complete_overrides(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The config file of `run` where none is named yet; then keys, and their values."""
    sign = incomplete[: len(incomplete) - len(incomplete.lstrip("+~"))]
    key, equals, value = incomplete[len(sign) :].partition("=")
    if equals:
        return offer(f"{sign}{key}={found}" for found in _values(key, value))
    keys = [f"{sign}{found}" for found in _keys(key)]
    named = (
        "config_name" not in ctx.params
        or ctx.params["config_name"]
        or any(str(given).endswith(_CONFIG_FILES) for given in ctx.params.get("overrides") or ())
    )
    benchmark = [f"{sign}benchmark="] if not named and "benchmark".startswith(key) else []
    return offer([*([] if named or sign else _paths(incomplete, _CONFIG_FILES)), *benchmark, *keys])


def complete_setting(_: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The values of a flag that is a setting."""
    return offer(_values(parameter.places[0], incomplete) if isinstance(parameter, SettingOption) else ())


def _keys(incomplete: str) -> list[str]:
    """What the key may go on with: sections, which end in a dot, and keys, which end in an equals sign."""
    section, dot, beginning = incomplete.rpartition(".")
    return [
        f"{section}{dot}{name}{'.' if field.section else '='}"
        for name, field in fields_below(section).items()
        if name.startswith(beginning)
    ]


def _values(key: str, incomplete: str) -> Iterator[str]:
    if key == "reward.function_path":
        yield from _rewards(incomplete)
    elif key == "benchmark":
        yield from _benchmarks(incomplete)
    elif key.endswith("model_name"):
        yield from _models(incomplete)
    elif _FILES.search(key):
        yield from _paths(incomplete)
    elif key.endswith("function_path"):
        yield from _paths(incomplete, (".py",))
    else:
        field = field_at(key)
        known = field.choices or _SWITCH[field.kind == "bool"] if field else ()
        yield from (value for value in known if value.startswith(incomplete))


_SWITCH = ((), ("true", "false"))


# ── shells ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def offer(values: Iterable[str]) -> list[CompletionItem[str]]:
    """The values as the shell is told of them, each once."""
    return [CompletionItem(value) for value in dict.fromkeys(values)]


_PLAIN_IN_BASH = "COMPREPLY+=($value)"
_NO_SPACE_IN_BASH = f"{_PLAIN_IN_BASH}\n            [[ $value == *[=./] ]] && compopt -o nospace"
_WORDS_IN_BASH = 'COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD'
_LINE_IN_BASH = 'COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT"'
_ADD_IN_ZSH = "compadd -U -V unsorted -a completions"
_NO_SPACE_IN_ZSH = """local -a open=(${(M)completions:#*[=./]}) whole=(${completions:#*[=./]})
        compadd -U -V unsorted -S '' -a open
        compadd -U -V unsorted -a whole"""


class _Bash(BashComplete):
    """Bash cuts words at = and :, and puts a space behind what it completes; a key and its value are one word here."""

    source_template = BashComplete.source_template.replace(_PLAIN_IN_BASH, _NO_SPACE_IN_BASH).replace(
        _WORDS_IN_BASH, _LINE_IN_BASH
    )
    _kept = ""
    """What bash leaves as it is of the word that is completed."""

    def get_completion_args(self) -> tuple[list[str], str]:
        if "COMP_LINE" not in os.environ:  # a click whose script is another
            return super().get_completion_args()
        # COMP_POINT counts bytes.
        line = os.environ["COMP_LINE"].encode()[: int(os.environ["COMP_POINT"])].decode(errors="ignore")
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        breaks = [place for place, character in enumerate(incomplete) if character in "=:"]
        self._kept = incomplete[: breaks[-1] + 1] if breaks else ""
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        value = str(item.value).removeprefix(self._kept)
        return f"{item.type},{value}"


class _Zsh(ZshComplete):
    source_template = ZshComplete.source_template.replace(_ADD_IN_ZSH, _NO_SPACE_IN_ZSH)


def register_shells() -> None:
    """Let click use these, in the place of its own."""
    add_completion_class(_Bash)
    add_completion_class(_Zsh)


def script_of(shell: str, cli: click.Command) -> str:
    """The script that a shell has to read to ask `reward-kit` at the Tab key."""
    register_shells()
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"{shell!r} is not a shell that is known. Choose {', '.join(SHELLS)}.")
    return found(cli, {}, "reward-kit", VARIABLE).source()
