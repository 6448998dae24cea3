# SPDX-License-Identifier: Apache-2.0
"""How each command spells the settings of a run: a table from its flags to their places in the config of a run.

    the command's defaults ─▶ its file ─▶ flags ─▶ key=value     what comes later counts before what comes earlier
                                   ═▶ settings by place ─▶ the config of a run

Every command takes every setting of a run by its place: `generation.top_k=20` on the command line, the same or a
section in its file. A flag is a shorter name of a setting; without its dashes, so is a key of a file. Kinds, limits,
defaults and help come from the fields of `config_models`, by way of `settings.json`: help is shown before the models
could be imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from reward_kit.errors import ConfigError, Setting
from reward_kit.utils.near_names import did_you_mean

__all__ = [
    "AT_AGENT_EVAL", "AT_BEST_OF_N", "AT_PREVIEW", "AT_REGENERATE", "AT_RUN", "AT_SHELL", "DOORS", "Door", "Field",
    "field_at", "fields_below", "leaves", "nested",
]  # fmt: skip


# ── the settings of a run ────────────────────────────────────────────────────────────────────────────────────────────


class Field(NamedTuple):
    """What is known of a setting without its model."""

    kind: str
    """`int`, `float`, `bool`, `text`, `texts` (a list), `names` (a mapping of texts), `mapping`, or `any`."""
    meaning: str
    default: Any = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    above: float | None = None
    """Where the number must be more than this."""
    most: float | None = None
    section: str | None = None
    """The model of the section that begins here."""


@cache
def _models() -> dict[str, dict[str, Field]]:
    """The fields of each model, from the file that is made of them."""
    written = json.loads(Path(__file__).with_name("settings.json").read_text("utf-8"))
    return {
        model: {name: Field(**{**given, "choices": tuple(given.get("choices", ()))}) for name, given in fields.items()}
        for model, fields in written.items()
    }


def fields_below(section: str) -> Mapping[str, Field]:
    """The fields of a section by their names; those of the whole config where `section` is empty."""
    found = field_at(section) if section else None
    model = found.section if found else None if section else "PipelineConfig"
    return {} if model is None else _models()[model]


def field_at(place: str) -> Field | None:
    """The setting with this place in the config of a run, or the section."""
    section, _, name = place.rpartition(".")
    return fields_below(section).get(name)


def leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A section as its settings, each by its place. What is no section comes back as it is."""
    if isinstance(value, Mapping) and fields_below(place):
        for name, held in value.items():
            yield from leaves(f"{place}.{name}", held)
    else:
        yield place, value


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by place as the sections that a config has; a place inside of a mapping is put into that mapping."""
    config: dict[str, Any] = {}
    for place, value in settings.items():
        *sections, name = place.split(".")
        holder = config
        for section in sections:
            inner = holder.get(section)
            holder[section] = dict(inner) if isinstance(inner, Mapping) else {}
            holder = holder[section]
        holder[name] = value
    return config


# ── a command ────────────────────────────────────────────────────────────────────────────────────────────────────────

_OPTIONS = frozenset({"keep_going", "overwrite", "phase", "rescore", "resume_from_mirror", "retry_failed"})
"""What a run is told beside its config; a flag of this name at each command that has it."""
_OLDER_NAMES = {"base_url": "api_base"}


Places: TypeAlias = "str | tuple[str, ...]"
"""The place of a setting, or of several that are set alike."""


def _all(places: Places) -> tuple[str, ...]:
    return (places,) if isinstance(places, str) else places


@dataclass(frozen=True)
class Door:
    """One command: its flags, and how it differs from `run`."""

    flags: Mapping[str, Places]
    """The names of a flag, the main one first, and the place of its setting, or several."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Where they differ from those of a run. None: it depends."""
    requires: tuple[str, ...] = ()
    """Settings that have to be given."""
    least: Mapping[str, int] = field(default_factory=dict)
    """The smallest number that a flag takes, where that is not the least of a run."""
    help: Mapping[str, str] = field(default_factory=dict)
    """By place, where the words of the setting do not fit here; and of what a run does not have."""
    decides: Mapping[str, str] = field(default_factory=dict)
    """Settings and sections that the command decides itself, and what to do instead."""
    keys: Mapping[str, Places] = field(default_factory=dict)
    """Further short names for its file."""
    words: Mapping[str, str] = field(default_factory=dict)
    """How messages call a setting, or a setting with a value, where no flag of its own does."""

    @cached_property
    def places(self) -> dict[str, tuple[str, ...]]:
        """The places of each short name: `max_tokens`, for the flag `--max-tokens`."""
        named = {
            flag.lstrip("-").replace("-", "_"): _all(places)
            for flags, places in self.flags.items() for flag in flags.split()
        }  # fmt: skip
        more = {key: _all(places) for key, places in self.keys.items()}
        return {"engine": ("engine.name",), **named, **more}

    def settings(self, given: Mapping[str, Any], name: str) -> dict[str, Any]:
        """What a file or a command line holds by short names, places and sections: each setting by its place.

        `name` is what a message calls the holder.
        """
        found: dict[str, Any] = {}
        given_as: dict[str, str] = {}
        for key, value in given.items():
            for place, held in self._placed(key, value, name):
                called = key if key in self.places else place
                if place in found:
                    raise ConfigError(
                        f"{name} has a problem: {given_as[place]!r} and {called!r} are two names of one key; give one "
                        "of them."
                    )
                self._refuse_decided(place)
                found[place], given_as[place] = held, called
        return found

    def _placed(self, key: str, value: Any, name: str) -> Iterator[tuple[str, Any]]:
        top = key.partition(".")[0]
        if key in self.places and not (isinstance(value, Mapping) and fields_below(key)):
            for place in self.places[key]:
                yield from leaves(place, value)
        elif top in fields_below(""):
            for place, held in leaves(key, value):
                section, dot, last = place.rpartition(".")
                is_older = last in _OLDER_NAMES and _OLDER_NAMES[last] in fields_below(section)
                yield (f"{section}{dot}{_OLDER_NAMES[last]}" if is_older else place), held
        elif (key,) in self.places.values():  # what a run does not have, by its place
            yield key, value
        else:
            known = [*self.places, *(name for name in fields_below("") if name not in self.decides)]
            raise ConfigError(f"{name} has a problem: unknown key {key!r}; {_nearest(key, known)}")

    def _refuse_decided(self, place: str) -> None:
        for decided, instead in self.decides.items():
            if place == decided or place.startswith(f"{decided}."):
                raise ConfigError(f"`{place}` cannot be set here: {instead}")

    def name_of(self, flags: str) -> str:
        """The short name of a flag of the table: its main one, without the dashes."""
        return _main(flags).lstrip("-").replace("-", "_")

    def default_of(self, place: str) -> Any:
        """What counts for a setting where nobody sets it."""
        known = field_at(place)
        return self.defaults.get(place, known and known.default)

    def with_defaults(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Settings by place, over the command's own defaults."""
        return {**{place: value for place, value in self.defaults.items() if value is not None}, **given}

    def key_of(self, place: str) -> str:
        """The short name of a setting, where it has one, as a file holds it."""
        named = (key for key, places in self.places.items() if place in places)
        return next((key for key in named if len(key) > 1), place)

    def spell(self, setting: Setting) -> str:
        """A setting that a message names as it is given to this command."""
        if (words := self.words.get(setting.whole) or self.words.get(setting.place)) is not None:
            return words
        if setting.place in _OPTIONS:
            return f"`{_flag(setting.place)}{_behind(setting.value)}`"
        for flags, places in self.flags.items():
            for place in _all(places):
                if setting.place == place:
                    return f"`{_main(flags)}{_behind(setting.value)}`"
                if setting.place.startswith(f"{place}.") and not fields_below(place):  # a flag that takes NAME=VALUE
                    inner = setting.place.removeprefix(f"{place}.")
                    return f"`{_main(flags)} {Setting(inner, setting.value).whole}`"
        return str(setting)


def _main(flags: str) -> str:
    names = flags.split()
    return next((name for name in names if name.startswith("--")), names[0])


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _behind(value: str | None) -> str:
    return "" if value is None else f" {value}"


def _nearest(key: str, known: Sequence[str]) -> str:
    """What an unknown key may have meant: a key of the command, or the place of a setting with this name."""
    inside = [f"{section}.{key}" for section in known if key in fields_below(section)]
    near = f" (did you mean {inside[0]!r}?)" if inside else did_you_mean(key, known, cutoff=0.5)
    return near.strip(" ()") or f"known here: {', '.join(sorted({*known}))}."


# ── the commands ─────────────────────────────────────────────────────────────────────────────────────────────────────

_MODEL_NAME = (
    "PROVIDER/NAME (anthropic/NAME); a model the endpoint knows; `local`; or `mock` for answers without a model."
)
_MODEL = {
    "--model": "generation.model_name",
    "--base-url --api-base": "generation.api_base",
    "--api-key-env": "generation.api_key_env",
    "--temperature": "generation.temperature",
    "--max-tokens": "generation.max_tokens",
}
_JUDGE = {
    "--judge-model": "judge.model_name",
    "--judge-base-url --judge-api-base": "judge.api_base",
    "--judge-api-key-env": "judge.api_key_env",
}
_HELP_FOR_MODELS = {
    "generation.model_name": _MODEL_NAME,
    "generation.mock.function_path": "For the model `mock`: the path of a function (messages, draw).",
    "judge.model_name": "The model that is asked for verdicts, where one is asked.",
    "judge.api_base": "The endpoint of that model.",
    "judge.api_key_env": "The environment variable that holds the key of that endpoint.",
}
_SANDBOX = {"--sandbox": "sandbox.backend", "--sandbox-image": "sandbox.image", "--sos-url": "sandbox.sos_url"}
_HELP_FOR_RUNS = {
    **_HELP_FOR_MODELS,
    "sandbox.image": "A container image, or the directory of a root filesystem (namespaces). Default: the backend's; "
    "for an SoS server that is not ours, deathbyknowledge/shellm-sandbox:latest.",
    "sandbox.sos_url": "The address of an SoS server. Without --sandbox, it implies --sandbox sos.",
    "prices": "A YAML file with the prices of models: for each model, `input` and `output`, per million tokens.",
}
_ONE_MODEL = {"generation.models": "name one model. Several are compared by `reward-kit run`."}
_PRICES = {"generation.price": "`--prices`", "judge.price": "`--prices`"}

AT_RUN = Door({}, words={"output.output_dir=…": "`output.output_dir=…` or start from the beginning with `--overwrite`"})

AT_BEST_OF_N = Door(
    {
        "--dataset": "dataset.path_or_name",
        "--config-name": "dataset.config_name",
        "--splits": "dataset.split",
        "--streaming": "dataset.streaming",
        "--max-samples --max-queries": "dataset.max_samples",
        "--format": "dataset.format",
        "--column-mapping": "dataset.column_mapping",
        "--preprocess": "dataset.preprocess",
        "--prompt-template": "dataset.prompt_template",
        "--id-column": "dataset.id_column",
        "--response-column": "dataset.response_column",
        "--on-bad-row": "dataset.on_bad_row",
        "--verifier": "reward.by_split",
        "--system-prompt": "system_prompt",
        **_MODEL,
        "--num-candidates -n": "generation.n",
        "--top-p": "generation.top_p",
        "--reasoning-effort": "generation.reasoning_effort",
        "--seed": "generation.seed",
        "--extra-body": "generation.extra_body",
        "--transport": "generation.transport",
        "--concurrency": "generation.api_params.max_concurrent_requests",
        "--request-timeout --timeout": "generation.api_params.timeout",
        **_SANDBOX,
        **_JUDGE,
        "--max-cost": "max_cost",
        "--prices": "prices",
        "--cache-dir": "generation.cache.cache_dir",
        "--mock": "generation.mock.function_path",
        "--output -o": "table",
        "--mirror": "output.mirror",
        "--notes": "notes",
        "--engine": "engine.name",
    },
    defaults={
        "generation.n": 4, "generation.max_tokens": 2048, "dataset.on_bad_row": "skip",
        "dataset.response_column": None, "sandbox.sos_url": None,
    },
    least={"dataset.max_samples": 1},
    help={
        **_HELP_FOR_RUNS,
        "dataset.path_or_name": "A Hugging Face name, a file, a folder, or a path with {split} in it.",
        "dataset.split": "The splits, separated by commas.",
        "dataset.max_samples": "Use at most this many queries of each split, the first ones.",
        "dataset.response_column": "A column with answers. They are verified, and no model is asked.",
        "reward.by_split": "Who verifies a split: math, code, tool_calling, or the path of a reward.",
        "table": "The Parquet file.",
        "notes": "A note on what you test. It is kept in the metadata of the Parquet file.",
    },
    decides={
        **_ONE_MODEL,
        "dataset.base_dataset": "name the dataset with `dataset.path_or_name`.",
        "dataset.few_shot": "examples are shown before questions in `reward-kit run`.",
        "reward.function_path": "each split has a verifier of its own; name it with `reward.by_split`.",
        "rollouts_file": "name answers that are there with `dataset.response_column`.",
    },
    keys={
        "verifiers": "reward.by_split", "batch": "generation.batch",
        "storage_options": ("dataset.storage_options", "output.storage_options"),
    },
    words={
        **_PRICES,
        "evaluation_params.limit_samples": "`--max-samples`",
        "output.output_dir": "`--output`",
        "output.output_dir=…": "`--output …` or start from the beginning with `--overwrite`",
    },
)  # fmt: skip

AT_SHELL = Door(
    {
        "--dataset": "dataset.path_or_name",
        "--config-name": "dataset.config_name",
        "--split": "dataset.split",
        "--output-dir -o": "output.output_dir",
        "--mirror": "output.mirror",
        "--max-samples": "evaluation_params.limit_samples",
        "--on-bad-row": "dataset.on_bad_row",
        **_MODEL,
        "-n": "generation.n",
        "--api-key": "generation.api_key",
        "--request-timeout": "generation.api_params.timeout",
        "--transport": "generation.transport",
        "--cache-dir": "generation.cache.cache_dir",
        **_SANDBOX,
        "--commands-file": "rollouts_file",
        "--concurrency": ("generation.api_params.max_concurrent_requests", "reward.concurrency"),
        "--setup-join": "sandbox.setup_join",
        "--snapshots": "sandbox.snapshots",
        "--command-timeout --timeout": "sandbox.timeout",
        "--max-cost": "max_cost",
        "--prices": "prices",
        "--engine": "engine.name",
    },
    defaults={
        "dataset.split": "test", "sandbox.sos_url": None, "output.output_dir": "evaluation_results",
        "generation.temperature": 0.6, "generation.max_tokens": 2000,
        "generation.mock.function_path": "reward_kit.generation.mock_shell:answer",
        "generation.api_params.max_concurrent_requests": None,
    },
    least={"evaluation_params.limit_samples": 1},
    help={
        **_HELP_FOR_RUNS,
        "dataset.path_or_name": "The tasks: a file (JSONL, CSV, Parquet) or the name of a Hugging Face dataset.",
        "dataset.split": "The split of a Hugging Face dataset.",
        "dataset.on_bad_row": "error: stop at a row that is not a task. skip: leave it out and count it.",
        "evaluation_params.limit_samples": "Use at most this many tasks, the first ones.",
        "generation.n": "Commands per task.",
        "generation.api_base": "An OpenAI-compatible endpoint. Default: OPENAI_BASE_URL, or the provider's own "
        "endpoint.",
        "generation.api_key_env": "The environment variable that holds the endpoint's key. Default: OPENAI_API_KEY.",
        "generation.api_key": "The key itself. Use --api-key-env instead: other users of this machine can see a "
        "command line.",
        "generation.api_params.max_concurrent_requests": "Requests at a time, and sandboxes at a time.",
        "rollouts_file": "Run the commands of this file. It may be in an object store.",
    },
    decides={
        **_ONE_MODEL,
        "reward.function_path": "the success condition of each task judges. Other rewards judge in `reward-kit run`.",
        "agent": "a model writes one command for each task. Agents act in `reward-kit run`.",
    },
    words={
        **_PRICES,
        "dataset.max_samples": "`--max-samples`",
        "generation.cache.enabled=false": "`--no-cache`",
        "reward.timeout": "`--command-timeout`",
    },
)  # fmt: skip

AT_REGENERATE = Door(
    {
        "--reward -r": "reward.function_path",
        "--param -p": "reward.params",
        **_MODEL,
        "-n": "generation.n",
        "--mock": "generation.mock.function_path",
        **_JUDGE,
        "--max-cost": "max_cost",
        "--output-dir -o": "output.output_dir",
        "--on-bad-row": "dataset.on_bad_row",
    },
    defaults={"output.output_dir": None},
    requires=("generation.model_name", "output.output_dir"),
    help={
        **_HELP_FOR_MODELS,
        "reward.function_path": "What judges both sides: a reward's name, or its import path, such as "
        "my_rewards.py:correct. Default: the reward of the stored run, with its settings.",
        "reward.params": "A parameter of the reward; the value is read as YAML.",
        "generation.n": "New answers per prompt.",
        "output.output_dir": "Where both sides are kept, as the runs `old` and `new`. The same directory again goes on "
        "there.",
        "dataset.on_bad_row": "error: stop at a row of STORED that holds no answer. skip: leave it out.",
    },
    decides={
        **_ONE_MODEL,
        "rollouts_file": "STORED says which answers are judged.",
        "agent": "an agent's episodes cannot be answered again.",
    },
    words={"dataset.path_or_name": "`STORED`"},
)

AT_AGENT_EVAL = Door(
    {
        "--model": "generation.model_name",
        "--num-rollouts": "generation.n",
        "--output-dir": "output.output_dir",
        "--max-concurrency": "agent.concurrency",
    },
    defaults={"output.output_dir": "agent_runs", "agent.concurrency": 3},
    help={
        "generation.model_name": "PROVIDER/NAME (openai/NAME), or any other model of a run; default: the variable "
        "MODEL_AGENT.",
        "generation.n": "Episodes per sample, instead of the task's number.",
        "output.output_dir": "Where the files go, one directory per task. The same command again goes on there.",
        "agent.concurrency": "With --parallel, the most tasks at a time. Also the most episodes of a task at a time.",
    },
    decides={
        **_ONE_MODEL,
        "dataset": "the file of the task says what is played.",
        "reward.function_path": "the file of the task names its reward.",
        "reward.params": "the file of the task names its reward.",
        "agent.environment": "the file of the task says in which world it is played.",
        "agent.params": "the file of the task says in which world it is played.",
        "rollouts_file": "use --rescore to judge the episodes that are there.",
    },
)

AT_PREVIEW = Door(
    {
        "--samples -s": "dataset.path_or_name",
        "--max-samples": "dataset.max_samples",
    },
    defaults={"dataset.max_samples": 5},
    least={"dataset.max_samples": 1},
    help={
        "dataset.path_or_name": "JSON lines, CSV or Parquet: rows with an answer, such as `messages`, read as a run "
        "reads them.",
        "dataset.max_samples": "How many to judge.",
    },
    decides={
        "generation": "the samples have their answers.",
        "agent": "the samples have their answers.",
        "rollouts_file": "name the samples with `dataset.path_or_name`.",
    },
    words={"reward.function_path": "`REWARD`"},
)

DOORS = {
    "run": AT_RUN, "best-of-n": AT_BEST_OF_N, "shell": AT_SHELL, "regenerate": AT_REGENERATE,
    "agent-eval": AT_AGENT_EVAL, "preview": AT_PREVIEW,
}  # fmt: skip
"""Every command that takes the settings of a run, by its name."""
