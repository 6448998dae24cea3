# SPDX-License-Identifier: Apache-2.0
"""Every command takes every setting of a run, by whatever name it is given, and makes the same config of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from reward_kit.cli import COMMANDS
from reward_kit.cli_commands.door_options import SettingOption, given_settings
from reward_kit.cli_commands.shell_cmd import _settings as typed_at_shell
from reward_kit.config_models import PipelineConfig, load_config
from reward_kit.doors import AT_AGENT_EVAL, DOORS, Door, Field, field_at, fields_below, leaves, nested
from reward_kit.errors import ConfigError, Setting
from reward_kit.evaluating import as_keywords
from reward_kit.execution.agent_tasks.definition import config_of, load_task
from reward_kit.execution.best_of_n.experiment import load_experiment, read_experiment_file
from reward_kit.execution.shell import shell_config


def every_setting(section: str = "") -> Iterator[str]:
    """The places of all settings; a dataset inside of a dataset inside of a dataset is not gone into."""
    for name, field in fields_below(section).items():
        place = f"{section}.{name}" if section else name
        if field.section is None:
            yield place
        elif not place.endswith("base_dataset.base_dataset"):
            yield from every_setting(place)


SETTINGS = sorted(every_setting())
SPECIAL: dict[str, Any] = {
    "api_base": "http://localhost:1/v1", "api_key_env": "MY_KEY",
    "sandbox.sos_url": "http://localhost:1", "generation.models": ["a", "b"], "data_files": "a.jsonl",
    "engine.env": ["NAME"], "agent.branching.at": 2, "agent.sandbox_tools": ["bash"], "choices.options": "o",
    "choices.right": "answer",
    "agent.user.script": ["a", "b"], "agent.user.prompt": "p", "agent.stop_pattern": "x+", "prices": "prices.yaml",
    "mock.rules": [{"pattern": "a", "response": "b"}], "reward.by_split": {"code": {"function_path": "m:f"}},
    "price.input": 2.5, "rollouts_file": "some.jsonl", "table": "other.parquet",
    "extra_body": {"a": 1, "b": [True, None]}, "dataset.split": "math", "dataset.format": "math",
}  # fmt: skip
"""Values of settings that not every value of their kind fits."""
WITH: dict[str, dict[str, Any]] = {
    "agent.user.model_name": {"agent.user.prompt": "p"}, "agent.user.prompt": {"agent.user.model_name": "m"},
    "agent.capture": {"agent.sandbox_tools": ["bash"]}, "engine.address": {"engine.name": "ray"},
    "dataset.few_shot.": {"dataset.few_shot.count": 2, "dataset.prompt_template": "{{ few_shot }}"},
    "dataset.base_dataset.few_shot.": {
        "dataset.base_dataset.few_shot.count": 2, "dataset.base_dataset.prompt_template": "{{ few_shot }}",
    },
    "dataset.choices.": {"dataset.choices.options": "o", "dataset.choices.right": "r"},
    "dataset.base_dataset.choices.": {
        "dataset.base_dataset.choices.options": "o", "dataset.base_dataset.choices.right": "r",
    },
    "dataset.base_dataset.": {"dataset.base_dataset.path_or_name": "base.jsonl"},
    "agent.branching.": {"agent.branching.total": 3},
    "reward.remote.client_key_file": {"reward.remote.client_cert_file": "cert.pem"},
}  # fmt: skip
"""What has to be given beside a setting, or beside all that begin so."""


def value_of(place: str, field: Field, default: Any) -> Any:
    """A value that is not the default."""
    parts = place.split(".")
    endings = (".".join(parts[start:]) for start in range(len(parts)))
    if (special := next((ending for ending in endings if ending in SPECIAL), None)) is not None:
        return SPECIAL[special]
    if field.choices or field.kind == "bool":
        return next(choice for choice in field.choices or (True, False) if choice != default)
    if field.kind in ("int", "float"):
        least = field.above if field.least is None else field.least
        number = 0.75 if field.most == 1 else (least or 0) + 17
        return int(number) if field.kind == "int" else float(number)
    many: dict[str, Any] = {"texts": ["a", "b"], "names": {"new": "old"}, "mapping": {"key": 3}}
    if field.kind in many:
        return many[field.kind]
    return "m.py:f" if place.endswith(("options", "environment", "approve")) else "text"


def beside(place: str) -> dict[str, Any]:
    """What has to be given with a setting, for a config to be valid."""
    found: dict[str, Any] = {}
    for where, more in WITH.items():
        if place == where or (where.endswith(".") and place.startswith(where)):
            found |= more
    for price in ("generation.price.", "judge.price.", "agent.user.price."):
        if place.startswith(price):
            found |= {f"{price}input": 1.0, f"{price}output": 1.0}
        if place.startswith(f"{price}long_prompts."):
            long = f"{price}long_prompts."
            found |= {f"{long}above": 9, f"{long}input": 2.0, f"{long}output": 2.0}
    if place.startswith("agent.user.") and "agent.user.model_name" not in found and place != "agent.user.script":
        found |= {"agent.user.script": ["hello"]} if place not in WITH else {}
    found.pop(place, None)
    return found


def as_words(settings: Mapping[str, Any]) -> list[str]:
    """Settings as they are typed."""
    return [f"{place}={_typed(value)}" for place, value in settings.items()]


def _typed(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}: {_typed(held)}" for key, held in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_typed, value)) + "]"
    return json.dumps(value) if not isinstance(value, str) else "'" + value.replace("'", "\\'") + "'"


def command(name: str) -> click.Command:
    entry = COMMANDS[name]
    found: click.Command = vars(import_module(f"reward_kit.cli_commands.{entry.module}"))[entry.name]
    return found


def typed(name: str, words: list[str]) -> click.Context:
    """The context of a command that was typed so."""
    return command(name).make_context(name, [*words])


# ── what each command makes of settings ──────────────────────────────────────────────────────────────────────────────

NEEDED: dict[str, list[str]] = {
    "best-of-n": ["--dataset", "d.jsonl", "--splits", "code", "--model", "m", "--output", "t.parquet"],
    "shell": ["--model", "m", "--dataset", "d.jsonl"],
    "regenerate": ["stored.jsonl", "--model", "m", "--output-dir", "out", "--reward", "math"],
    "agent-eval": ["--task-def", "task.yaml", "--model", "m"],
    "preview": ["math"],
}


def at_best_of_n(words: list[str], file: Path | None) -> Any:
    context = typed("best-of-n", words)
    given = given_settings(context, DOORS["best-of-n"])
    values = {} if file is None else DOORS["best-of-n"].settings(read_experiment_file(file), "The file")
    return load_experiment({**values, **given})


def at_shell(words: list[str], file: Path | None) -> Any:
    context = typed("shell", words)
    old = any(word.startswith(("rollouts_file=", "--commands-file")) for word in words)
    given = typed_at_shell(context, "execution" if old else "both", context.params)
    return {"rollouts_file": given.pop("rollouts_file", None), "prices": given.pop("prices", None)}, shell_config(given)


def by_evaluating(name: str, words: list[str], file: Path | None) -> Any:
    keywords = as_keywords(
        given_settings(typed(name, words), DOORS[name]) if name == "regenerate" else _at_preview(words)
    )
    return keywords, load_config({"reward": {"function_path": "m:f"}, **_sections(keywords)})


def _at_preview(words: list[str]) -> dict[str, Any]:
    return given_settings(typed("preview", words), DOORS["preview"], [word for word in words if "=" in word])


def _sections(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of `evaluate` that are parts of a config."""
    parts = {name: part for name, part in keywords.items() if name in PipelineConfig.model_fields}
    if "dataset" in parts:
        parts["dataset"] = {"path_or_name": "the given rows", **parts["dataset"]}
    reward = {"function_path": "m:f", "params": keywords.get("params", {}), **keywords.get("reward_settings", {})}
    return {**parts, "reward": reward}


def at_agent_eval(words: list[str], file: Path | None) -> Any:
    context = typed("agent-eval", words)
    return config_of(load_task(Path("task.yaml")), Path("out"), settings=given_settings(context, AT_AGENT_EVAL))


MADE: dict[str, Callable[[list[str], Path | None], Any]] = {
    "best-of-n": at_best_of_n,
    "shell": at_shell,
    "regenerate": lambda words, file: by_evaluating("regenerate", words, file),
    "agent-eval": at_agent_eval,
    "preview": lambda words, file: by_evaluating("preview", words, file),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stored.jsonl").touch()
    (tmp_path / "prices.yaml").write_text("m: {input: 1, output: 2}\n")
    task = {
        "name": "t",
        "reward_function_path": "m:f",
        "initial_user_prompt": "Go.",
        "resource_type": "PythonStateResource",
    }
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
    return tmp_path


def without(words: list[str], door: Door, places: tuple[str, ...]) -> list[str]:
    """The words that are needed, without the flags of these settings: to give one twice is another matter."""
    set_by = {flags: door.places[door.name_of(flags)] for flags in door.flags}
    named = {flag for flags, own in set_by.items() if {*own} & {*places} for flag in flags.split()}
    flags = [index for index, word in enumerate(words) if word in named]
    return [word for index, word in enumerate(words) if index not in flags and index - 1 not in flags]


def is_decided(door: Door, place: str) -> bool:
    return any(place == decided or place.startswith(f"{decided}.") for decided in door.decides)


def flag_of(name: str, place: str) -> SettingOption | None:
    """The flag that sets this alone."""
    options = (option for option in command(name).params if isinstance(option, SettingOption))
    return next((option for option in options if option.places == (place,)), None)


def flag_words(option: SettingOption, value: Any) -> list[str]:
    """A setting as its flag is typed."""
    if isinstance(value, bool):
        return [option.opts[0] if value else option.secondary_opts[0]]
    if option.multiple and isinstance(value, dict):
        return [word for key, held in value.items() for word in (option.opts[0], f"{key}={held}")]
    if option.multiple:
        return [word for each in value for word in (option.opts[0], each)]
    return [option.opts[0], json.dumps(value) if isinstance(value, dict) else str(value)]


@pytest.mark.parametrize("name", MADE)
def test_every_setting_is_the_same_by_key_value_by_flag_and_by_file(name: str, here: Path) -> None:
    door, make = DOORS[name], MADE[name]
    taken, plain = 0, make(NEEDED[name], None)
    for place in SETTINGS:
        if is_decided(door, place):
            with pytest.raises(ConfigError, match="cannot be set here: "):
                given_settings(typed(name, [*NEEDED[name], f"{place}=1"]), door, [f"{place}=1"])
            continue
        field = field_at(place)
        assert field is not None
        settings = {**beside(place), place: value_of(place, field, door.default_of(place))}
        if (name, place) == ("best-of-n", "reward.by_split"):
            settings[place] = {"code": "math"}  # a flag has names only
        if any(is_decided(door, other) for other in settings) or (name, place) == (
            "agent-eval",
            "generation.transport",
        ):
            continue  # an agent cannot wait for batches
        needed = without(NEEDED[name], door, tuple(settings))
        made = make([*needed, *as_words(settings)], None)
        assert made != plain, f"{place} has no effect"
        taken += 1
        option = flag_of(name, place)
        if option is not None:
            others = {other: value for other, value in settings.items() if other != place}
            assert make([*needed, *flag_words(option, settings[place]), *as_words(others)], None) == made, place
        if name == "best-of-n":
            file = here / "experiment.yaml"
            for written in (settings, nested(settings)):
                file.write_text(yaml.safe_dump(written))
                assert make(needed, file) == made, place
    assert taken > 100


def test_what_is_given_later_counts(here: Path) -> None:
    file = here / "experiment.yaml"
    file.write_text("n: 2\n")
    needed = NEEDED["best-of-n"]
    drawn = [
        at_best_of_n([*needed, *more], from_file).run.generation.n
        for more, from_file in (
            ([], None), ([], file), (["-n", "3"], file), (["-n", "3", "generation.n=5"], file),
            (["num_candidates=6", "-n", "3"], file), (["generation.n=5"], None),
        )
    ]  # fmt: skip
    assert drawn == [4, 2, 3, 5, 6, 5]


def test_two_names_of_one_setting_are_refused_where_they_stand_together() -> None:
    for given in (
        {"n": 1, "generation.n": 2},
        {"num_candidates": 1, "generation": {"n": 1}},
        {"n": 1, "num_candidates": 1},
    ):
        with pytest.raises(ConfigError, match="are two names of one key"):
            DOORS["best-of-n"].settings(given, "The experiment")


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("generation.tempature=1", "generation.temperature"), ("rate_limit_qps=1", ""), ("top_k=5", "generation.top_k"),
        ("sandbox.memory=9", "sandbox.memory_mb"), ("outptu.sync=batch", "output"), ("max_costs=1", "max_cost"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_refused_and_the_nearest_is_named(name: str, word: str, near: str, here: Path) -> None:
    if is_decided(DOORS[name], near):
        return
    with pytest.raises(ConfigError, match="unknown key") as caught:
        made = MADE[name]([*NEEDED[name], word], None)
        assert made is None
    assert near in str(caught.value)


@pytest.mark.parametrize("word", ["generation.n=1,2", "~generation.n", "generation.n=[1", "=5"])
def test_what_cannot_be_read_is_said_in_a_sentence(word: str) -> None:
    with pytest.raises((ConfigError, click.UsageError), match=r"[.]$"):
        given_settings(typed("shell", [*NEEDED["shell"], word]), DOORS["shell"])


def test_a_key_may_name_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOW_MANY", "5")
    given = given_settings(typed("shell", [*NEEDED["shell"], "generation.n=${oc.env:HOW_MANY}"]), DOORS["shell"])
    assert given["generation.n"] in (5, "5")


# ── the tables ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_index_knows_the_fields_of_the_models() -> None:
    assert set(fields_below("")) == set(PipelineConfig.model_fields)
    assert len(SETTINGS) > 200 and {"generation.api_params.rate_limit_qps", "agent.user.prompt"} <= set(SETTINGS)


@pytest.mark.parametrize("name", DOORS)
def test_each_flag_is_of_settings_and_each_name_is_given_once(name: str) -> None:
    door = DOORS[name]
    own = {"prices", "table", "notes"}
    names = [flag for flags in door.flags for flag in flags.split()]
    assert len(names) == len({*names})
    for places in door.places.values():
        for place in places:
            assert place in own or field_at(place) is not None, place
    for place in [*door.defaults, *door.decides, *door.requires, *door.least, *door.help]:
        assert place in own or field_at(place) is not None, place
    for place, value in door.defaults.items():
        assert value != getattr(field_at(place), "default", None) or value is None, f"{place} is no other than in a run"


PHRASES = {"`output.output_dir=…` or start from the beginning with `--overwrite`",
           "`--output …` or start from the beginning with `--overwrite`"}  # fmt: skip


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("value", [None, "x", "…"])
def test_a_setting_in_a_message_is_spelled_whole_and_can_be_typed_so(name: str, value: str | None) -> None:
    known = {flag for parameter in command(name).params for flag in (*parameter.opts, *parameter.secondary_opts)}
    for place in SETTINGS:
        spelled = DOORS[name].spell(Setting(place, value))
        if spelled in PHRASES:
            continue
        found = re.fullmatch(r"`([^`]+)`", spelled)
        assert found is not None, spelled
        word = found[1].split()[0]
        if word.startswith("-"):
            assert word in known
        else:
            assert word.isupper() or word.startswith(place) or word == "generation.price", spelled


def test_settings_are_flattened_and_nested_to_the_same() -> None:
    config = {"generation": {"n": 2, "extra_body": {"a": {"b": 1}}, "api_params": {"timeout": 3}}, "max_cost": 1}
    flat = dict(setting for name, part in config.items() for setting in leaves(name, part))
    assert flat == {
        "generation.n": 2, "generation.extra_body": {"a": {"b": 1}}, "generation.api_params.timeout": 3, "max_cost": 1,
    }  # fmt: skip
    assert nested(flat) == config
    assert nested({**flat, "generation.extra_body.a.c": 2})["generation"]["extra_body"] == {"a": {"b": 1, "c": 2}}
    assert flat["generation.extra_body"] == {"a": {"b": 1}}, "what was given is left as it is"
