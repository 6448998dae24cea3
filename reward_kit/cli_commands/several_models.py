# SPDX-License-Identifier: Apache-2.0
"""`generation.models`: one run for each of several models, and one comparison of them in the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reward_kit.cli_commands.output import echo
from reward_kit.errors import ConfigError, RewardKitError
from reward_kit.redaction import blot, looks_secret

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["for_each_model", "show_comparison"]


def for_each_model(label: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A run's label and plain config, once for each of its models; as they are where it has only one.

    The labels are those of a sweep over `generation.model_name`, so the directories are, too.
    """
    section = values.get("generation")
    models = section.get("models") if isinstance(section, Mapping) else None
    if not isinstance(section, Mapping) or not isinstance(models, list):
        yield label, values  # none, or something that validation has words for
        return
    if section.get("model_name") is not None:
        raise ConfigError(
            "Both `generation.model_name` and `generation.models` are set. Leave one of them out: "
            "generation.model_name=null, or generation.models=null."
        )
    if not models:
        raise ConfigError("`generation.models` is empty. Name the models, or leave it out.")
    shared = {name: value for name, value in section.items() if name not in {"models", "model_name"}}
    taken: set[str] = set()
    for number, entry in enumerate(models):
        own = _settings(entry, number)
        named = _named(own["model_name"], number, taken)
        joined = f"{label},{named}" if label else named
        yield joined, {**values, "generation": {**shared, **own}}


def _settings(entry: object, number: int) -> Mapping[str, Any]:
    settings = {"model_name": entry} if isinstance(entry, str) else entry
    if not isinstance(settings, Mapping) or not isinstance(settings.get("model_name"), str) or "models" in settings:
        raise ConfigError(
            f"`generation.models[{number}]` names no model. Write a model's name, or settings with one: "
            "{model_name: NAME, temperature: 0.2}."
        )
    return settings


def _named(model: str, number: int, taken: set[str]) -> str:
    """The model as a directory is called after it: none like another, and none that shows a credential."""
    hidden = looks_secret(model) or blot(model) != model
    name = f"generation.model_name={number + 1 if hidden else model}"
    while name.replace("/", "_") in taken:
        name += f",{number + 1}"
    taken.add(name.replace("/", "_"))
    return name


def show_comparison(directories: Sequence[Path]) -> None:
    """Print the runs side by side, and each paired with the first, as `reward-kit inspect` does."""
    try:
        from reward_kit.analysis import compare, load
        from reward_kit.cli_commands.display.inspect import InspectDisplay

        found = compare(*(load(directory) for directory in directories))
    except RewardKitError as error:  # an extra is missing, or nothing was judged: the runs themselves are done
        echo(f"The models are not compared: {error}", err=True)
        return
    InspectDisplay(color=True).show_comparison(found, full=False)
