# SPDX-License-Identifier: Apache-2.0
"""Configs of the package that had this name before 0.5, taken as they are.

`KEYS` says what becomes of each of its keys that `config_models` does not know. The code below and the tables of
docs/migrating.md are both made from it. A key that is not in this table is refused as ever: a typo must not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from reward_kit.errors import ConfigError

__all__ = ["KEYS", "InheritedKey", "Taken", "documented", "not_passed_on", "remark", "take"]


class InheritedKey(NamedTuple):
    """One key of the older package, and what becomes of it."""

    path: str
    """Where it stands, with dots."""
    becomes: str | None
    """Our key for the same; None: nothing is done with it."""
    why: str
    """For the documentation: why it is taken like this."""
    gives_way: bool = False
    """Where our key is set too: the inherited one is left out. Otherwise both at once are refused."""
    had_effect: bool = False
    """It is a section, and what was in it had an effect: each entry that no other key takes is named by itself."""


KEYS = (
    InheritedKey("dataset._target_", None, "there is one loader"),
    InheritedKey("dataset.description", None, "nothing reads it"),
    InheritedKey("dataset.hf_extra_load_params.revision", "dataset.revision", "the same version is loaded"),
    InheritedKey(
        "dataset.hf_extra_load_params", None,
        "what else was in it went to the loader of Hugging Face datasets; the other settings of `dataset` say what "
        "is loaded", had_effect=True,
    ),
    InheritedKey("dataset.preprocessing_steps", "dataset.preprocess", "the same: functions of a row, in order"),
    InheritedKey("dataset.derived_column_mapping", "dataset.column_mapping", "a derived dataset is a dataset"),
    InheritedKey("dataset.derived_max_samples", "dataset.max_samples", "a derived dataset is a dataset"),
    InheritedKey("generation._target_", None, "`model_name` says who answers"),
    InheritedKey("generation.batch_size", None, "`api_params.max_concurrent_requests` says how many at a time"),
    InheritedKey(
        "generation.max_new_tokens", "generation.max_tokens",
        "it had no effect, and says what was wanted; where `max_tokens` stands, too, that one counts", gives_way=True,
    ),
    InheritedKey("reward._target_", None, "`function_path` says what judges"),
    InheritedKey("reward_function_path", "reward.function_path", "the same"),
    InheritedKey("reward_params", "reward.params", "the same"),
    InheritedKey("output_file", "output.results_file", "the same, in the run directory"),
    InheritedKey("seed", "generation.seed", "it had no effect, and says what was wanted", gives_way=True),
    InheritedKey("logging_params", None, "how often is logged no longer bounds how many requests are under way"),
    InheritedKey("verbose", None, "`reward-kit run --verbose` is a flag"),
    InheritedKey("description", None, "nothing reads it"),
    InheritedKey(
        "hydra_output_dir", "output.output_dir", "the program set it itself, from `hydra.run.dir`", gives_way=True
    ),
)  # fmt: skip
"""Every key of the older package that is not a key of ours, in the order of the documentation."""

_DATASET = "dataset."
_ANSWER_COLUMN = "assistant_response_column"
_OUTPUT_FORMAT = "evaluation_format"


class Taken(NamedTuple):
    """A config in our words."""

    values: dict[str, Any]
    ignored: list[str]
    """The keys that were left out, because they have no effect."""


FindDataset = Callable[[str], Mapping[str, Any]]
"""The settings of a dataset by the name of its config."""


def take(given: Mapping[str, Any], find_dataset: FindDataset | None = None) -> Taken:
    """A config with the keys of the older package by our names. One that has none of them comes back as it is."""
    values, ignored = dict(given), list[str]()
    for key in KEYS:
        if not key.path.startswith(_DATASET):
            _take_key(values, key, ignored)
    if isinstance(values.get("dataset"), Mapping):
        values["dataset"] = _dataset(values["dataset"], "dataset", ignored, find_dataset, depth=0)
    if isinstance(values.get("generation"), Mapping):
        values["generation"] = _model(values["generation"])
    return Taken(values, ignored)


def remark(ignored: list[str]) -> str:
    """What is said about keys that were left out: those without an effect, and those that had one, by themselves."""
    lost = not_passed_on(ignored)
    idle = [name for name in dict.fromkeys(ignored) if name not in lost]
    said: list[str] = []
    if idle:
        said.append(f"Left out, because nothing depends on them: {_listed(idle)}. You can delete them.")
    if lost:
        said.append(
            f"Not passed on to Hugging Face: {_listed(lost)}. Check that the right data is loaded without them; where "
            "it is not, load it yourself in a function, and name that function as `dataset.path_or_name`."
        )
    return " ".join(said)


def not_passed_on(ignored: list[str]) -> list[str]:
    """Of the keys that were left out, those that had an effect."""
    return [name for name in dict.fromkeys(ignored) if name.startswith(_NOT_PASSED_ON)]


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_NOT_PASSED_ON = tuple(f"{key.path}." for key in KEYS if key.had_effect)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _take_key(values: dict[str, Any], key: InheritedKey, ignored: list[str]) -> None:
    section, _, name = key.path.rpartition(".")
    holder = _copied(values, section)
    if holder is None or name not in holder:
        return
    value = holder.pop(name)
    if not holder and "." in section:
        _take_out(values, section)  # a section of theirs, and all that was in it is taken
    if key.had_effect and isinstance(value, Mapping) and value:
        ignored.extend(f"{key.path}.{entry}" for entry in value)
    elif key.becomes is None or not (_is_nothing(value) or _set(values, key, value)):
        ignored.append(key.path)


def _copied(values: dict[str, Any], section: str) -> dict[str, Any] | None:
    """A section that may be changed: a copy of ours, down from `values`. None where there is no such section."""
    holder = values
    for name in section.split(".") if section else ():
        inner = holder.get(name)
        if not isinstance(inner, Mapping):
            return None
        copy = dict(inner)
        holder[name] = copy
        holder = copy
    return holder


def _take_out(values: dict[str, Any], path: str) -> None:
    section, _, name = path.rpartition(".")
    holder = _copied(values, section)
    assert holder is not None  # it held what was just taken
    del holder[name]


def _set(values: dict[str, Any], key: InheritedKey, value: Any) -> bool:
    """Put a value where our key is; False where that one is set already, and counts."""
    assert key.becomes is not None
    section, _, name = key.becomes.rpartition(".")
    part = values.get(section) or {}
    if not isinstance(part, Mapping):
        raise ConfigError(f"`{section}` is a {type(part).__name__}, not a mapping of settings. Correct it.")
    present = part.get(name)
    if not _is_nothing(present) and present != value:
        if key.gives_way:
            return False
        raise ConfigError(f"`{key.path}` and `{key.becomes}` are two names of one setting. Give one of them.")
    values[section] = {**part, name: value}
    return True


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | Mapping) and not value)


def _model(generation: Mapping[str, Any]) -> dict[str, Any]:
    """The model's settings. The address of Fireworks, which older configs have, is not that of a model right here."""
    model, address = generation.get("model_name"), generation.get("api_base")
    here = isinstance(model, str) and (model in {"mock", "local"} or model.startswith("local:"))
    if here and isinstance(address, str) and address.rstrip("/") == _FIREWORKS:
        return {name: value for name, value in generation.items() if name != "api_base"}
    return dict(generation)


_FIREWORKS = "https://api.fireworks.ai/inference/v1"


# ── datasets ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _dataset(
    given: Mapping[str, Any], place: str, ignored: list[str], find_dataset: FindDataset | None, depth: int
) -> dict[str, Any]:
    """A dataset's settings in our words, its base's included; `place` is what a message calls it."""
    within: dict[str, Any] = {"dataset": dict(given)}
    for key in KEYS:
        if key.path.startswith(_DATASET):
            _take_key(within, key, ignored)
    dataset: dict[str, Any] = within["dataset"]
    _check_fixed(dataset, place)
    if isinstance(dataset.get("column_mapping"), Mapping):
        dataset = _columns(dataset, inherited=dataset.keys() != given.keys())
    base = dataset.get("base_dataset")
    if isinstance(base, str):
        base = _found(base, place, find_dataset, depth)
    if isinstance(base, Mapping):
        dataset["base_dataset"] = _dataset(base, f"{place}.base_dataset", ignored, find_dataset, depth + 1)
    return dataset


def _check_fixed(dataset: dict[str, Any], place: str) -> None:
    """Take out what may only have one value."""
    form = dataset.pop("output_format", None)
    if form not in {None, _OUTPUT_FORMAT}:
        raise ConfigError(
            f"`{place}.output_format` is {form!r}. Rows are read as {_OUTPUT_FORMAT!r} only: leave the key out, and "
            "shape them with `column_mapping` or `preprocess`."
        )
    if not _is_nothing(dataset.pop("transformations", None)):
        raise ConfigError(
            f"`{place}.transformations` is not known here. Write them as functions of a row into `{place}.preprocess`."
        )


def _columns(dataset: dict[str, Any], *, inherited: bool) -> dict[str, Any]:
    """Columns that are mapped to nothing, or in an inherited dataset to themselves, need no mapping."""
    mapping = dict(dataset["column_mapping"])
    answer = mapping.pop(_ANSWER_COLUMN, None)
    if isinstance(answer, str):
        dataset = {**dataset, "response_column": answer}
    kept = {new: old for new, old in mapping.items() if old is not None and not (inherited and new == old)}
    return {**dataset, "column_mapping": kept}


def _found(name: str, place: str, find_dataset: FindDataset | None, depth: int) -> Mapping[str, Any]:
    if find_dataset is None:
        raise ConfigError(
            f"`{place}.base_dataset` is the name {name!r}, which only `reward-kit run` can look up. Here, give its "
            "settings: a mapping with `path_or_name`."
        )
    if depth > _DEEPEST:
        raise ConfigError(f"`{place}.base_dataset` is {name!r}, and these names form a circle. Correct the names.")
    return find_dataset(name)


_DEEPEST = 20


def documented() -> Iterator[tuple[str, str, str]]:
    """Each key as the documentation has it: what you have, what happens now, why."""
    for key in KEYS:
        left_out = "not passed on" if key.had_effect else "ignored"
        now = f"{left_out}, and named in one remark" if key.becomes is None else f"`{key.becomes}`"
        yield f"`{key.path}`", now, key.why
