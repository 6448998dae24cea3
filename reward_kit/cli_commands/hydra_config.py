# SPDX-License-Identifier: Apache-2.0
"""Composing a run's configuration with Hydra. The only module that knows Hydra.

The compose API is used, never `@hydra.main`: no change of directory, no logging set up, no output folder of its own.
Where `hydra.run.dir` is set, it is the run directory. The packaged groups (`dataset: gsm8k` …) are on the search path
of every config. Keys of the older package come out by our names: see `reward_kit.inherited_config`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import ConfigCompositionException
from omegaconf import DictConfig, OmegaConf, open_dict

import reward_kit.conf
from reward_kit.errors import ConfigError
from reward_kit.inherited_config import take
from reward_kit.redaction import blot, is_secret_name, looks_secret, mask
from reward_kit.storage.run_directory import left_out_of
from reward_kit.utils.near_names import did_you_mean
from reward_kit.utils.strict_yaml import check_yaml, read_yaml_text

__all__ = ["PACKAGED", "ConfigFile", "Job", "compose_jobs", "find_config", "read_settings"]

PACKAGED = Path(reward_kit.conf.__file__).parent
"""The directory of the groups that come with the package."""
_OF_BENCHMARK = "+benchmark=…"
"""What stands for the config of a run that names a benchmark and no config: there is no file, all is in the group."""

_GROUPS = frozenset({"dataset", "generation", "reward", "output"})
"""Keys that `key=name` chooses a config group for, rather than setting a value."""


class ConfigFile(NamedTuple):
    """The config that the command line names: its directory, and its name there, as Hydra wants them."""

    directory: Path
    name: str


class Job(NamedTuple):
    """One composed configuration of a sweep; a plain run is a sweep of one."""

    label: str
    """The swept overrides, such as `generation.n=4`; empty for a plain run."""
    values: dict[str, Any]
    ignored: list[str]
    """Keys of the older package that were left out of them."""
    left_out: list[str]
    """Credentials that a run left out of the config that it wrote, and that are not given again."""


def find_config(
    config_path: Path | None, config_name: str | None, overrides: Sequence[str]
) -> tuple[ConfigFile, list[str]]:
    """The config that the options, or a first argument that is a YAML file, name; and the overrides that are left."""
    rest = list(overrides)
    if config_name is None and rest and rest[0].endswith((".yaml", ".yml")):
        file = Path(rest.pop(0))
        config_path, config_name = file.parent, file.name
    if config_name is None and (benchmarks := [override for override in rest if _names_benchmark(override)]):
        own = (config_path or Path("conf")).resolve()
        _check_benchmarks(benchmarks, own, rest)
        return ConfigFile(own if own.is_dir() else PACKAGED, _OF_BENCHMARK), rest
    if config_name is None:
        raise ConfigError(
            "No config is named. Give a file (reward-kit run CONFIG.yaml), --config-path and --config-name, or a "
            "benchmark (+benchmark=gsm8k; `reward-kit benchmarks list` shows them all)."
        )
    directory = (config_path or Path("conf")).resolve()
    name = config_name if config_name.endswith((".yaml", ".yml")) else f"{config_name}.yaml"
    if not _is_file(directory / name):
        present = sorted(path.stem for path in directory.glob("*.yaml")) if directory.is_dir() else []
        hint = f"There are: {', '.join(present)}." if present else "Check --config-path."
        if (below := Path("conf", name)) != Path(directory, name) and _is_file(below):
            hint = f"There is {str(below)!r}: name that one."
        raise ConfigError(f"There is no config {name[:200]!r} in {str(directory)[:400]!r}. {hint}")
    return ConfigFile(directory, name), rest


def _names_benchmark(override: str) -> bool:
    return override.lstrip("+").partition("=")[0] == "benchmark"


def _check_benchmarks(overrides: Sequence[str], own: Path, others: Sequence[str]) -> None:
    """Refuse benchmarks that are neither ours nor the project's; where Hydra is told to look elsewhere, it decides."""
    if any(line.lstrip("+").startswith(_SEARCH_PATH) for line in others):
        return
    known = sorted({file.stem for place in (own, PACKAGED) for file in (place / "benchmark").glob("*.yaml")})
    named = [name for override in overrides for name in override.partition("=")[2].strip("'\"").split(",")]
    if unknown := [name for name in named if name.strip() not in known]:
        hint = did_you_mean(unknown[0], known)
        raise ConfigError(f"There is no benchmark {unknown[0]!r}{hint}. There are: {', '.join(known)}.")


def compose_jobs(config: ConfigFile, overrides: Sequence[str], *, sweep: bool) -> list[Job]:
    """The configuration of every job; more than one only when a sweep was asked for."""
    _check_overrides(overrides)
    _check_files(config, overrides)
    try:
        parsed = OverridesParser.create().parse_overrides(overrides=list(overrides))
        combinations = list(_combinations(parsed, sweep=sweep))
        composed = [(label, _compose(config, lines)) for label, lines in combinations]
        place = _run_directory(config, composed[0][1], overrides, sweep=sweep) if composed else None
        return [_job(config, label, values, place, overrides) for label, values in composed]
    except ConfigError:
        raise
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"The config {config.name!r}, or one it names, is not UTF-8 text. Save it as UTF-8."
        ) from error
    except RecursionError as error:
        raise ConfigError(
            f"The config {config.name!r} includes itself, or is nested too deep. Correct its defaults list."
        ) from error
    except Exception as error:
        # The door for configs: Hydra and OmegaConf raise whatever a config or an override makes them stumble over.
        raise ConfigError(
            f"The config {config.name!r} cannot be composed: {_one_line(error) or type(error).__name__}. Correct it."
        ) from error


def read_settings(words: Sequence[str]) -> dict[str, Any]:
    """What `key=value` says at commands whose config is not composed by Hydra: the same words, with the same values."""
    _check_overrides(words)
    try:
        parsed = OverridesParser.create().parse_overrides(overrides=list(words))
        if swept := [override.input_line for override in parsed if override.is_sweep_override()]:
            raise ConfigError(f"{mask(swept[0] or '')!r} is a sweep, which only `reward-kit run --multirun` makes.")
        if gone := [override.input_line for override in parsed if override.is_delete()]:
            raise ConfigError(f"{mask(gone[0] or '')!r} takes a key away, which only `reward-kit run` does.")
        given = OmegaConf.create({override.key_or_group: override.value() for override in parsed})
        values: dict[str, Any] = OmegaConf.to_container(given, resolve=True)  # type: ignore[assignment]  # a mapping
        return values
    except ConfigError:
        raise
    except Exception as error:  # as for configs: Hydra and OmegaConf raise whatever a word makes them stumble over
        raise ConfigError(f"{mask(' '.join(words))!r} cannot be read: {_one_line(error)}. Write KEY=VALUE.") from error


def _check_overrides(overrides: Sequence[str]) -> None:
    for override in overrides:
        if len(override) > _LONGEST_OVERRIDE:
            raise ConfigError(
                f"The override {mask(override[:40])!r}… has {len(override):,} characters; {_LONGEST_OVERRIDE:,} "
                "are the most: write it into the config file."
            )
        if max(override.count("["), override.count("{")) > _DEEPEST_OVERRIDE:
            raise ConfigError(
                f"The override {mask(override[:40])!r}… is nested too deep. Write it into the config file."
            )


_LONGEST_OVERRIDE = 10_000
"""Hydra's parser takes minutes for longer ones."""
_DEEPEST_OVERRIDE = 100


def _check_files(config: ConfigFile, overrides: Sequence[str]) -> None:
    """Look at the files that will be composed, as far as they can be told, before anything is built of them."""
    chosen = [override.partition("=") for override in overrides]
    waiting = [config.directory / config.name]
    waiting += [config.directory / group.lstrip("+~") / f"{name}.yaml" for group, equals, name in chosen if equals]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in seen or len(seen) > _MOST_FILES or not _is_file(path):
            continue
        seen.add(path)
        text = read_yaml_text(path, f"the config {str(path)!r}", "Make it readable.")
        check_yaml(text, f"The config {path.name!r}")
        waiting += [config.directory / name for name in _included(text)]
        waiting += [path.parent / name for name in _included(text)]


_MOST_FILES = 1_000


def _left_out(config: ConfigFile, values: dict[str, Any]) -> list[str]:
    """Of a config that a run wrote: the credentials that it left out and that are not given again."""
    if config.name == _OF_BENCHMARK:
        return []
    text = (config.directory / config.name).read_text(encoding="utf-8")
    return [path for path in left_out_of(text) if _is_missing(values, path.split("."))]


def _is_missing(values: Any, names: Sequence[str]) -> bool:
    for name in names:
        if not isinstance(values, dict) or name not in values:
            return True
        values = values[name]
    return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, or with a NUL: no file
        return False


def _included(text: str) -> list[str]:
    """The files that a config's defaults list names; Hydra says what is wrong with one that is none."""
    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return []
    defaults = values.get("defaults") if isinstance(values, dict) else None
    names: list[str] = []
    for entry in defaults if isinstance(defaults, list) else []:
        if isinstance(entry, str):
            names.append(f"{entry.partition('@')[0]}.yaml")
        elif isinstance(entry, dict):
            names += [
                f"{str(group).split()[-1].partition('@')[0]}/{name}.yaml" for group, name in entry.items() if group
            ]
    return [name.removesuffix(".yaml.yaml").removesuffix(".yaml") + ".yaml" for name in names]


def _combinations(parsed: Sequence[Override], *, sweep: bool) -> Iterator[tuple[str, list[str]]]:
    swept = [override for override in parsed if override.is_sweep_override()]
    if swept and not sweep:
        raise ConfigError(
            f"{mask(swept[0].input_line or '')!r} is a sweep. "
            "Add --multirun to run each value, or quote it: NAME='[a,b]'."
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
    if plain and override.key_or_group == "engine" and isinstance(override.value(), str):
        line = line.replace("engine=", "engine.name=", 1)  # so that `engine.address=…` can stand beside it
    if plain and override.key_or_group == "benchmark" and isinstance(override.value(), str):
        return f"+{line}"  # no config has a benchmark that this could change
    is_choice = override.key_or_group in _GROUPS and isinstance(override.value(), str) and "{" not in line
    return f"++{line}" if plain and not is_choice and not line.startswith("hydra") else line


def _compose(config: ConfigFile, overrides: list[str]) -> DictConfig:
    """The config, not yet resolved, with Hydra's own part."""
    lines = [*(line for line in overrides if not line.startswith(_SEARCH_PATH)), _search_path(config, overrides)]
    try:
        return _composed(config, None if config.name == _OF_BENCHMARK else config.name, lines)
    except ConfigCompositionException as error:
        choice = next((line for line in overrides if _is_choice_refused(line, error)), None)
        if choice is None:
            raise
        return _with_group(config, choice, [line for line in lines if line != choice])


def _composed(config: ConfigFile, name: str | None, overrides: list[str]) -> DictConfig:
    GlobalHydra.instance().clear()  # an earlier composition in this process must not be in the way
    with initialize_config_dir(config_dir=str(config.directory), job_name="reward-kit", version_base="1.3"):
        return compose(config_name=name, overrides=overrides, return_hydra_config=True)


_SEARCH_PATH = "hydra.searchpath="


def _search_path(config: ConfigFile, overrides: Sequence[str]) -> str:
    """Where else Hydra looks, as an override: where it was told to, then among the groups of the package."""
    given = [line for line in overrides if line.startswith(_SEARCH_PATH)]
    told = OverridesParser.create().parse_override(given[-1]).value() if given else _own_part(config).get("searchpath")
    entries = OmegaConf.create([str(entry) for entry in told] if isinstance(told, list) else [])
    # Hydra resolves `${oc.env:PWD}` in the file only.
    places = [*map(str, entries), "pkg://reward_kit.conf"]
    return _SEARCH_PATH + orjson.dumps(places).decode()


def _is_choice_refused(line: str, error: ConfigCompositionException) -> bool:
    """Whether Hydra has no place for a choice, such as `dataset=gsm8k` where the file has no such default."""
    group, equals, _ = line.partition("=")
    return bool(equals) and group in _GROUPS and str(error).startswith(f"Could not override '{group}'")


def _with_group(config: ConfigFile, choice: str, others: list[str]) -> DictConfig:
    """The config with the chosen section in the place of the one that is written in the file, not merged with it."""
    group = choice.partition("=")[0]
    own = [line for line in others if line.lstrip("+~").startswith(f"{group}.")]
    whole = _compose(config, [line for line in others if line not in own])
    section = _composed(config, None, [_search_path(config, others), f"+{choice}", *own])
    with open_dict(whole):
        whole[group] = section[group]
    return whole


def _job(config: ConfigFile, label: str, composed: DictConfig, place: str | None, overrides: Sequence[str]) -> Job:
    values = _plain(config, composed)
    if place is not None:
        values["output"] = {**(values.get("output") or {}), "output_dir": place}
    taken = take(values, lambda name: _dataset_called(config, name, overrides))
    return Job(label, taken.values, taken.ignored, _left_out(config, taken.values))


def _run_directory(config: ConfigFile, composed: DictConfig, overrides: Sequence[str], *, sweep: bool) -> str | None:
    """Where `hydra.run.dir` wants the run, or `hydra.sweep.dir` the runs of a sweep; None where neither is set.

    `output.output_dir` on the command line counts before them.
    """
    keys = [line.lstrip("+").partition("=")[0] for line in overrides]
    if "output.output_dir" in keys:
        return None
    written = _own_part(config)
    for section in ("sweep", "run") if sweep else ("run",):
        raw = OmegaConf.to_container(composed.hydra[section], resolve=False)
        given = isinstance(written.get(section), dict) and "dir" in written[section]
        told = given or f"hydra.{section}.dir" in keys
        if isinstance(raw, dict) and (told or raw["dir"] != _HYDRAS_OWN[section]):
            return str(composed.hydra[section].dir)
    return None


_HYDRAS_OWN = {
    "run": "outputs/${now:%Y-%m-%d}/${now:%H-%M-%S}",
    "sweep": "multirun/${now:%Y-%m-%d}/${now:%H-%M-%S}",
}
"""Where Hydra itself would put things, which nobody asked for."""


def _own_part(config: ConfigFile) -> dict[str, Any]:
    """What the file itself says to Hydra."""
    file = config.directory / config.name
    if config.name == _OF_BENCHMARK:
        return {}
    values = yaml.safe_load(file.read_text(encoding="utf-8"))
    told = values.get("hydra") if isinstance(values, dict) else None
    return told if isinstance(told, dict) else {}


def _dataset_called(config: ConfigFile, name: str, overrides: Sequence[str]) -> dict[str, Any]:
    """The settings of a dataset by the name of its config in the group `dataset`."""
    alone = _composed(config, None, [_search_path(config, overrides), f"+dataset={name}"])
    found: dict[str, Any] = _plain(config, alone)["dataset"]
    return found


def _plain(config: ConfigFile, composed: DictConfig) -> dict[str, Any]:
    """A composed config as plain values, without what is Hydra's."""
    if "hydra" in composed:
        HydraConfig.instance().set_config(composed)  # for `${hydra:runtime.cwd}` and the like
    own = OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])
    values = OmegaConf.to_container(own, resolve=True, throw_on_missing=True)
    if not isinstance(values, dict):
        raise ConfigError(f"The config {config.name!r} is a {type(values).__name__}. It must be a mapping.")
    return {str(key): value for key, value in values.items()}


def _one_line(error: Exception) -> str:
    return mask(" ".join(str(error).split()))
