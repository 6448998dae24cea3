"""Composing a run's configuration with Hydra. The only module that knows Hydra.

The compose API is used, never `@hydra.main`: no change of directory, no logging set up, no output folder of its own.
The packaged groups (`dataset: gsm8k` …) are on the search path of every config.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from reward_kit.errors import ConfigError
from reward_kit.redaction import blot, is_secret_name, looks_secret, mask

__all__ = ["ConfigFile", "Job", "compose_jobs", "find_config"]

_GROUPS = frozenset({"dataset", "generation", "reward", "output"})
"""Keys that `key=name` chooses a config group for, rather than setting a value."""


class PackagedGroups(SearchPathPlugin):
    """Puts the groups that come with the package behind the user's own, which win."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra when it sets up its search path."""
        search_path.append("reward_kit", "pkg://reward_kit.conf")


class ConfigFile(NamedTuple):
    """Which config is meant."""

    directory: Path
    name: str


class Job(NamedTuple):
    """One composed configuration of a sweep; a plain run is a sweep of one."""

    label: str
    """The swept overrides, such as `generation.n=4`; empty for a plain run."""
    values: dict[str, Any]


def find_config(
    config_path: Path | None, config_name: str | None, overrides: Sequence[str]
) -> tuple[ConfigFile, list[str]]:
    """The config that the options, or a first argument that is a YAML file, name; and the overrides that are left."""
    rest = list(overrides)
    if config_name is None and rest and rest[0].endswith((".yaml", ".yml")):
        file = Path(rest.pop(0))
        config_path, config_name = file.parent, file.name
    if config_name is None:
        raise ConfigError(
            "No config is named. Give a file (reward-kit run CONFIG.yaml), or --config-path and --config-name."
        )
    directory = (config_path or Path("conf")).resolve()
    name = config_name if config_name.endswith((".yaml", ".yml")) else f"{config_name}.yaml"
    if not (directory / name).is_file():
        present = sorted(path.stem for path in directory.glob("*.yaml")) if directory.is_dir() else []
        hint = f"There are: {', '.join(present)}." if present else "Check --config-path."
        raise ConfigError(f"There is no config {name!r} in {str(directory)!r}. {hint}")
    return ConfigFile(directory, name), rest


def compose_jobs(config: ConfigFile, overrides: Sequence[str], *, sweep: bool) -> list[Job]:
    """The configuration of every job; more than one only when a sweep was asked for."""
    try:
        parsed = OverridesParser.create().parse_overrides(overrides=list(overrides))
        combinations = list(_combinations(parsed, sweep=sweep))
        return [Job(label, _compose(config, lines)) for label, lines in combinations]
    except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
        raise ConfigError(f"The config {config.name!r} cannot be composed: {_one_line(error)}. Correct it.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"The config {config.name!r}, or one it names, is not UTF-8 text. Save it as UTF-8."
        ) from error


def _combinations(parsed: Sequence[Override], *, sweep: bool) -> Iterator[tuple[str, list[str]]]:
    swept = [override for override in parsed if override.is_sweep_override()]
    if swept and not sweep:
        raise ConfigError(
            f"{mask(swept[0].input_line or '')!r} is a sweep. "
            "Add --multirun to run each value, or quote it: key='[a,b]'."
        )
    fixed = [_settable(override, override.input_line or "") for override in parsed if not override.is_sweep_override()]
    choices = [
        [_Choice(o, f"{o.get_key_element()}={value}", number) for number, value in enumerate(o.sweep_string_iterator())]
        for o in swept
    ]
    if math.prod(map(len, choices)) > _MOST_JOBS:
        raise ConfigError(
            f"The sweep has {math.prod(map(len, choices)):,} jobs. Sweep over fewer: {_MOST_JOBS:,} at most."
        )
    for chosen in itertools.product(*choices):
        yield ",".join(one.label for one in chosen), [*fixed, *(_settable(one.override, one.line) for one in chosen)]


_MOST_JOBS = 10_000


class _Choice(NamedTuple):
    """One value of a swept key."""

    override: Override
    line: str
    number: int

    @property
    def label(self) -> str:
        """The value as a directory is named after it; one that may be a credential is only numbered."""
        key = self.override.get_key_element()
        secret = is_secret_name(self.override.key_or_group) or looks_secret(self.line) or blot(self.line) != self.line
        return f"{key}={self.number + 1}" if secret else self.line


def _settable(override: Override, line: str) -> str:
    """Let a key be set whether or not the file names it; our own validation then says which keys there are."""
    plain = not (override.is_add() or override.is_force_add() or override.is_delete())
    is_choice = override.key_or_group in _GROUPS and isinstance(override.value(), str) and "{" not in line
    return f"++{line}" if plain and not is_choice and not line.startswith("hydra") else line


def _compose(config: ConfigFile, overrides: list[str]) -> dict[str, Any]:
    Plugins.instance().register(PackagedGroups)
    GlobalHydra.instance().clear()  # an earlier composition in this process must not be in the way
    with initialize_config_dir(config_dir=str(config.directory), job_name="reward-kit", version_base="1.3"):
        composed = compose(config_name=config.name, overrides=overrides)
    values = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    if not isinstance(values, dict):
        raise ConfigError(f"The config {config.name!r} is a {type(values).__name__}. It must be a mapping.")
    return {str(key): value for key, value in values.items() if key != "hydra"}


def _one_line(error: Exception) -> str:
    return mask(" ".join(str(error).split()))
