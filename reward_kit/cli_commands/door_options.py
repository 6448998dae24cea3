# SPDX-License-Identifier: Apache-2.0
"""The flags of a command that are settings of a run, and `key=value` for all others, as `doors` has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import click

from reward_kit.cli_commands.options import MOST, FiniteNumber, FiniteRange, NamedChoice, completed_by, key_value_pairs
from reward_kit.doors import Door, Field, field_at

__all__ = ["COMMAND_LINE", "SettingOption", "door_options", "given_settings", "run_options", "split_words"]

COMMAND_LINE = "The command line"
"""What a message calls the holder of settings that were typed."""
_PAIRS = {
    "dataset.column_mapping": ("NEW=OLD", "user_query=question"),
    "reward.by_split": ("SPLIT=WHO", "math=math"),
    "reward.params": ("KEY=VALUE", "max_length=100"),
}
"""Mappings whose flag is given once for each entry: how an entry is written, and an example."""
_WORD = re.compile(r"[+~]*[a-z_][\w.@-]*=")
"""How `key=value` begins. No address and no path to a file does."""


class SettingOption(click.Option):
    """A flag of a setting, or of several that it sets alike."""

    def __init__(self, names: Sequence[str], places: tuple[str, ...], known: Field, **attributes: Any) -> None:
        """`places` are those of the settings; `known` is what is known of the first."""
        super().__init__(names, **attributes)
        self.places = places
        self._known = known

    def read(self, value: Any) -> Any:
        """What was typed as a config has it."""
        flag, place = self.opts[0], self.places[0]
        if place == "reward.params":
            from reward_kit.cli_commands.reward_trial import read_params

            return read_params(value)
        if place in _PAIRS:
            shape, example = _PAIRS[place]
            return key_value_pairs(value, flag, f"{shape}, such as {example}")
        if self._known.kind == "mapping":
            return _json_object(flag, value)
        return list(value) if self.multiple else value


def door_options(door: Door, *, before: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the flags of its door, and any setting of a run as `key=value`.

    `before` is how help shows the other words that stand among the settings.
    """

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        words = click.argument(
            "words",
            nargs=-1,
            metavar=f"{before} [KEY=VALUE]...".strip(),
            shell_complete=completed_by("complete_overrides"),
        )
        command = words(command)
        for flags in reversed([*door.flags]):
            command = _option(door, flags)(command)
        return command

    return decorated


def _option(door: Door, flags: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """One flag. Its kind, limits, default and help are those of its setting, where the door has no others."""
    names, places = flags.split(), door.places[door.name_of(flags)]
    known = field_at(places[0]) or Field("text", "")
    several = places[0] in _PAIRS or known.kind == "texts"
    default = door.default_of(places[0])
    more = " May be given again." if several else "  [required]" if places[0] in door.requires else ""
    return click.option(
        door.name_of(flags), *([f"{name}/--no-{name[2:]}" for name in names] if known.kind == "bool" else names),
        cls=SettingOption,
        places=places,
        known=known,
        type=_type(known, door.least.get(places[0])),
        default=() if several else default,
        show_default=not several and default is not None,
        help=f"{door.help.get(places[0], known.meaning)}{more}",
        metavar=_metavar(places[0], known),
        multiple=several,
        shell_complete=completed_by("complete_setting"),
    )  # fmt: skip


_RUN_OPTIONS: dict[str, tuple[str, str]] = {
    "rescore": ("--rescore", "Judge the rollouts of an old run again, with these settings."),
    "retry_failed": ("--retry-failed", "Retry all failed items, permanent failures included."),
    "keep_going": ("--keep-going", "Go on where the first 20 {items} all fail to be {judged} in one way."),
    "overwrite": (
        "--overwrite",
        "Start from the beginning, even if the output of another run is there. The old run is kept, moved aside.",
    ),
    "detach": ("--detach", "With batches: submit them and exit. Run the same command later to fetch the answers."),
    "resume_from_mirror": (
        "--resume-from-mirror", "Go on with the run that the mirror holds, in an empty directory.",
    ),
    "dry_run": ("--dry-run", "Print the plan ({rows}, requests, cached, tokens, cost); send and write nothing."),
    "quiet": ("-q --quiet", "No progress and no table; errors only."),
    "as_json": ("--json", "Print the summary as JSON on standard output."),
    "verbose": ("-v --verbose", "Log what happens, and show tracebacks."),
}  # fmt: skip
"""What a run is told beside its settings: the flags of each option, and its help."""
_PHASE = "both: {generate} and {judge}. inference: only {generate}. execution: only {judge} what was made; needs no "
_WORDS = {
    "items": "answers", "judged": "judged", "rows": "rows", "generate": "generate", "judge": "score",
}  # fmt: skip


def run_options(*names: str, **words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command these of the options that a run has beside its settings; help says some `words` otherwise."""
    said = _WORDS | words

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(names):
            if name == "phase":
                kinds, about = click.Choice(["both", "inference", "execution"]), f"{_PHASE}dataset and no key."
                option = click.option(
                    "--phase", type=kinds, default="both", show_default=True, help=about.format(**said)
                )  # fmt: skip
            else:
                flags, about = _RUN_OPTIONS[name]
                option = click.option(*flags.split(), name, is_flag=True, help=about.format(**said))
            command = option(command)
        return command

    return decorated


def split_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that are settings, and the others."""
    settings = [word for word in words if _WORD.match(word)]
    return settings, [word for word in words if word not in settings]


def given_settings(context: click.Context, door: Door, words: Sequence[str] | None = None) -> dict[str, Any]:
    """The settings that were typed, each by its place: flags, and over them what is given as `key=value`.

    `words` are those that may be settings, where the command has others.
    """
    given: dict[str, Any] = {}
    options = [option for option in context.command.params if isinstance(option, SettingOption)]
    for option in options:
        if context.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE:
            value = option.read(context.params[option.name or ""])
            given |= dict.fromkeys(option.places, value)
    settings, others = split_words(context.params["words"] if words is None else words)
    if others:
        raise click.UsageError(f"Got an unexpected argument {others[0]!r}. A setting is given as KEY=VALUE.", context)
    if settings:
        from reward_kit.cli_commands.hydra_config import read_settings

        given |= door.settings(read_settings(settings), COMMAND_LINE)
    for option in options:
        if option.places[0] in door.requires and given.get(option.places[0]) is None:
            raise click.MissingParameter(ctx=context, param=option)
    return given


def _type(known: Field, least: int | None) -> Any:
    if known.choices:
        return NamedChoice(known.choices)
    low, above, most = known.least if least is None else least, known.above, known.most
    if (low, above, most) == (None, None, None):
        return {"int": click.INT, "float": FiniteNumber(), "bool": click.BOOL}.get(known.kind, click.STRING)
    if known.kind == "int":
        return click.IntRange(None if low is None else int(low), MOST if most is None else int(most))
    return FiniteRange(min=above if low is None else low, min_open=low is None, max=most)


def _metavar(place: str, known: Field) -> str | None:
    if place in _PAIRS:
        return _PAIRS[place][0]
    return "JSON" if known.kind == "mapping" else "FILE" if place == "prices" else None


def _json_object(flag: str, text: str) -> dict[str, Any]:
    from reward_kit.utils import exact_json

    try:
        value = exact_json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise click.UsageError(f"{flag} is {text!r}; expected a JSON object.")
    return value
