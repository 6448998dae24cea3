# SPDX-License-Identifier: Apache-2.0
"""Keys of the older package's configs: which are taken, by which names, and that no others are."""

from __future__ import annotations

from typing import Any

import pytest

from reward_kit.config_models import load_config
from reward_kit.errors import ConfigError
from reward_kit.inherited_config import KEYS, InheritedKey, remark, take

PLAIN: dict[str, Any] = {
    "dataset": {"path_or_name": "rows.jsonl"},
    "generation": {"model_name": "mock"},
    "reward": {"function_path": "math", "params": {}},
    "output": {"output_dir": "here"},
}
VALUES: dict[str, Any] = {
    "dataset.preprocessing_steps": ["steps.one"],
    "dataset.derived_column_mapping": {"user_query": "question"},
    "dataset.derived_max_samples": 3,
    "dataset.hf_extra_load_params.revision": "v1.2",
    "dataset.hf_extra_load_params": {},
    "generation.max_new_tokens": 64,
    "reward_function_path": "my_rewards.mine",
    "reward_params": {"a": 1},
    "output_file": "copy.jsonl",
    "seed": 42,
    "logging_params": {"batch_log_interval": 10},
    "verbose": True,
    "hydra_output_dir": "there",
}


def without(config: dict[str, Any], path: str | None) -> dict[str, Any]:
    """A copy of a config that lacks one key."""
    made = {name: dict(value) for name, value in config.items()}
    if path is not None:
        section, _, name = path.rpartition(".")
        made[section].pop(name, None)
    return made


def at(config: dict[str, Any], path: str) -> Any:
    *sections, name = path.split(".")
    for section in sections:
        config = config.get(section, {})
    return config.get(name)


def put(config: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    *sections, name = path.split(".")
    part = config
    for section in sections:
        part = part.setdefault(section, {})
    part[name] = value
    return config


@pytest.mark.parametrize("key", KEYS, ids=[key.path for key in KEYS])
def test_what_becomes_of_a_key(key: InheritedKey) -> None:
    """This runs each line of the first table in docs/migrating.md, which is made from the same `KEYS`."""
    value = VALUES.get(key.path, "some text")
    taken = take(put(without(PLAIN, key.becomes), key.path, value))
    assert at(taken.values, key.path) is None
    if key.becomes is None:
        assert taken.ignored == [key.path] and taken.values == PLAIN
    else:
        assert taken.ignored == [] and at(taken.values, key.becomes) == value
    load_config(taken.values)
    with pytest.raises(ConfigError, match="unknown key"):
        load_config(put(without(PLAIN, None), key.path, value))  # it is this table that takes it, and nothing else


@pytest.mark.parametrize("key", [key for key in KEYS if key.becomes], ids=lambda key: key.path)
def test_a_setting_with_both_its_names_is_refused_or_ours_counts(key: InheritedKey) -> None:
    assert key.becomes is not None
    other = {"dataset.preprocess": ["a.b"], "dataset.column_mapping": {"a": "b"}, "reward.params": {"b": 2}}
    ours = other.get(key.becomes, 7 if isinstance(VALUES[key.path], int) else "ours")
    both = put(put(without(PLAIN, None), key.becomes, ours), key.path, VALUES[key.path])
    if not key.gives_way:
        with pytest.raises(ConfigError, match="two names of one setting"):
            take(both)
        return
    taken = take(both)
    assert at(taken.values, key.becomes) == ours and taken.ignored == [key.path]


def test_a_config_of_ours_comes_back_as_it_is() -> None:
    config = {
        "dataset": {"path_or_name": "a", "column_mapping": {"x": "x"}, "base_dataset": None},
        "generation": {"model_name": "m", "api_base": "https://api.fireworks.ai/inference/v1"},
        "reward": {"function_path": "math"},
    }
    assert take(config) == (config, [])


@pytest.mark.parametrize(
    "path", ["verbos", "dataset.descripton", "generation.batchsize", "dataset.hf_path", "dataset.dataset_source_type"]
)
def test_a_typo_is_refused_as_ever(path: str) -> None:
    with pytest.raises(ConfigError, match="unknown key"):
        load_config(take(put(without(PLAIN, None), path, "x")).values)


def test_the_version_of_a_dataset_is_not_lost_and_what_else_was_handed_to_its_loader_is_named() -> None:
    extra = {"revision": "v1.2", "data_dir": "part", "num_proc": 4}
    given = {"path_or_name": "somebody/set", "hf_extra_load_params": extra}
    taken = take({"dataset": {"base_dataset": given}, "verbose": True})
    assert taken.values["dataset"] == {"base_dataset": {"path_or_name": "somebody/set", "revision": "v1.2"}}
    said = remark(taken.ignored)
    assert said.startswith("Left out, because nothing depends on them: `verbose`. You can delete them. Not passed on")
    assert "`dataset.hf_extra_load_params.data_dir`, `dataset.hf_extra_load_params.num_proc`" in said
    assert extra == {"revision": "v1.2", "data_dir": "part", "num_proc": 4}, "what was given is left as it is"
    alone = take({"dataset": {"path_or_name": "somebody/set", "hf_extra_load_params": {"revision": "v1.2"}}})
    assert alone == ({"dataset": {"path_or_name": "somebody/set", "revision": "v1.2"}}, [])


def test_a_column_that_is_mapped_to_nothing_needs_no_mapping() -> None:
    mapping = {"user_query": "question", "solution": None, "id": "id"}
    plain = take({"dataset": {"path_or_name": "a", "column_mapping": mapping}}).values["dataset"]
    assert plain["column_mapping"] == {"user_query": "question", "id": "id"}
    inherited = take({"dataset": {"_target_": "x", "path_or_name": "a", "column_mapping": mapping}}).values["dataset"]
    assert inherited["column_mapping"] == {"user_query": "question"}, (
        "`id: id` changes nothing, also where there is none"
    )


def test_the_column_of_answers_is_a_setting() -> None:
    mapping = {"assistant_response_column": "reply"}
    taken = take({"dataset": {"path_or_name": "a", "column_mapping": mapping}}).values["dataset"]
    assert (taken["response_column"], taken["column_mapping"]) == ("reply", {})


def test_a_base_dataset_may_be_a_name() -> None:
    configs: dict[str, dict[str, Any]] = {
        "derived": {"_target_": "x", "base_dataset": "plain", "derived_max_samples": 2},
        "plain": {"path_or_name": "rows.jsonl", "description": "d"},
        "endless": {"base_dataset": "endless"},
    }
    taken = take({"dataset": {"base_dataset": "derived"}}, configs.__getitem__)
    assert taken.values["dataset"] == {
        "base_dataset": {"base_dataset": {"path_or_name": "rows.jsonl"}, "max_samples": 2}
    }
    assert taken.ignored == ["dataset._target_", "dataset.description"]
    with pytest.raises(ConfigError, match="form a circle"):
        take({"dataset": {"base_dataset": "endless"}}, configs.__getitem__)
    with pytest.raises(ConfigError, match="only `reward-kit run` can look up"):
        take({"dataset": {"base_dataset": "plain"}})


def test_what_a_derived_dataset_cannot_be_is_refused() -> None:
    base = {"base_dataset": {"path_or_name": "a"}}
    assert "output_format" not in take({"dataset": {**base, "output_format": "evaluation_format"}}).values["dataset"]
    assert "transformations" not in take({"dataset": {**base, "transformations": []}}).values["dataset"]
    with pytest.raises(ConfigError, match="'evaluation_format' only"):
        take({"dataset": {**base, "output_format": "conversations"}})
    with pytest.raises(ConfigError, match=r"dataset\.preprocess"):
        take({"dataset": {**base, "transformations": ["x"]}})


def test_the_address_of_fireworks_is_of_no_model_in_this_process() -> None:
    address = "https://api.fireworks.ai/inference/v1"
    for model in ("mock", "local", "local:/m.gguf"):
        assert "api_base" not in take({"generation": {"model_name": model, "api_base": address}}).values["generation"]
    kept = take({"generation": {"model_name": "mock", "api_base": "http://localhost:1/v1"}}).values["generation"]
    assert kept["api_base"] == "http://localhost:1/v1"
