# SPDX-License-Identifier: Apache-2.0
"""`evaluate`: a whole evaluation from Python, and what comes of it."""

from __future__ import annotations

import difflib
import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from reward_kit.config_models import (
    DatasetConfig,
    GenerationConfig,
    OutputConfig,
    PipelineConfig,
    RewardConfig,
    load_config,
    validated,
)
from reward_kit.datasets.sources import Given
from reward_kit.doors import nested
from reward_kit.errors import ConfigError, SameFailureError
from reward_kit.execution.engine import Reporter
from reward_kit.execution.options import RunOptions
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.progress import LineReporter, NotebookReporter, in_notebook
from reward_kit.execution.result import RunResult
from reward_kit.execution.summary import about_earlier, about_invalid
from reward_kit.generation.client import ModelClient
from reward_kit.generation.factory import check_model
from reward_kit.scoring.rewards import load_rewards
from reward_kit.typed_interface import name_of
from reward_kit.utils.event_loop import run_sync
from reward_kit.utils.module_loader import load_object

__all__ = ["Data", "Table", "as_keywords", "check_evaluation", "evaluate", "evaluate_async"]

_log = logging.getLogger(__name__)


class Table(Protocol):
    """A DataFrame of pandas or polars, or an Arrow table. None of them is imported to be recognised."""

    @property
    def columns(self) -> Any:
        """The names of the table's columns, or the columns themselves: each library has its own idea."""


Data: TypeAlias = str | Path | Iterable[Given] | Table
"""A file, the name of a Hugging Face dataset, rows or samples, a Hugging Face `Dataset`, or a table."""


def evaluate(  # noqa: PLR0913 - parts of a config
    data: Data | None = None,
    /,
    reward: Callable[..., Any] | str | None = None,
    *,
    dataset: Data | Mapping[str, Any] | None = None,
    model: str | ModelClient | None = None,
    n: int = 1,
    params: Mapping[str, Any] | None = None,
    reward_settings: Mapping[str, Any] | None = None,
    output_dir: str | Path | None = None,
    progress: bool | Reporter | None = None,
    rescore: bool = False,
    retry_failed: bool = False,
    keep_going: bool = False,
    **settings: Any,
) -> RunResult:
    """Judge n answers per sample with `reward`, and return the figures.

    The data come first, or as `dataset`: a file, a Hugging Face name, a list of rows or samples, a DataFrame, an Arrow
    table or a Hugging Face `Dataset`. Where they come first, `dataset` may hold settings of the config's `dataset`.
    `reward` is a function, decorated or plain, or its import path. Without a `model`, the answers are taken from the
    data. With an `output_dir` the run is durable, and calling again resumes it. Without one, its files are in a
    temporary directory, which exists as long as the result.

    `params` reach the reward by name; `reward_settings` are further keys of the config's `reward`, such as `timeout` or
    `pass_threshold`. All other keywords are settings of the config, whole parts of it (`generation={…}`, `judge={…}`)
    or keys of its `generation` (`temperature=0.2`, `max_tokens=200`). `progress` shows how far the run is: by default
    in notebooks only. `retry_failed` tries again what failed before in `output_dir`; `rescore` asks no model there, and
    judges the answers that are kept again where the reward is another one. Where the first 20 answers cannot be judged,
    all for the same reason, `SameFailureError` is raised, unless it is told to `keep_going`.

        result = evaluate([{"user_query": "2+2?", "ground_truth_for_eval": "4"}], my_reward, model="local", n=4)
        print(result.mean_score, result.interval, result.pass_at(2))
    """
    return run_sync(
        partial(
            evaluate_async, data, reward, dataset=dataset, model=model, n=n, params=params,
            reward_settings=reward_settings, output_dir=output_dir, progress=_reporter(progress) or False,
            rescore=rescore, retry_failed=retry_failed, keep_going=keep_going, **settings,
        )
    )  # fmt: skip


async def evaluate_async(  # noqa: PLR0913 - parts of a config
    data: Data | None = None,
    /,
    reward: Callable[..., Any] | str | None = None,
    *,
    dataset: Data | Mapping[str, Any] | None = None,
    model: str | ModelClient | None = None,
    n: int = 1,
    params: Mapping[str, Any] | None = None,
    reward_settings: Mapping[str, Any] | None = None,
    output_dir: str | Path | None = None,
    progress: bool | Reporter | None = None,
    rescore: bool = False,
    retry_failed: bool = False,
    keep_going: bool = False,
    **settings: Any,
) -> RunResult:
    """`evaluate` for callers that are asynchronous themselves: other tasks of their loop go on meanwhile."""
    given = _given(data, reward, dataset, model, n, params, reward_settings, settings)
    directory = _directory(output_dir)
    given.config["output"] = {**given.config.get("output", {}), "output_dir": str(directory)}
    try:
        options = RunOptions(
            reward=given.reward, samples=given.rows, client=given.client, reporter=_reporter(progress),
            rescore=rescore, retry_failed=retry_failed, keep_going=keep_going,
        )  # fmt: skip
        result = await EvaluationPipeline(load_config(given.config), options).run_async()
    except BaseException:
        if output_dir is None:
            _remove(directory, os.getpid())
        raise
    if output_dir is None:
        weakref.finalize(result, _remove, directory, os.getpid())
    if result.status == "failing":
        raise SameFailureError(result.reason or "", result)
    _warn_if_all_failed(result)
    if invalid := result.counters.invalid:
        _log.warning("%s", about_invalid(invalid))
    if earlier := result.summary["this_entry"].get("earlier"):
        _log.warning("%s", about_earlier(earlier))
    return result


def check_evaluation(
    data: Data,
    /,
    reward: Callable[..., Any] | str,
    *,
    model: str | ModelClient | None = None,
    n: int = 1,
    params: Mapping[str, Any] | None = None,
    reward_settings: Mapping[str, Any] | None = None,
    **settings: Any,
) -> None:
    """Refuse what `evaluate` would refuse before its first answer; nothing is asked, and nothing is written.

    Checked are the settings, the reward, and the model: its name and its key.
    """
    given = _given(data, reward, None, model, n, params, reward_settings, settings)
    config = EvaluationPipeline(load_config(given.config), RunOptions(reward=given.reward, client=given.client)).config
    load_rewards(config.reward, given.reward)
    if config.generation.enabled and given.client is None and config.engine.name == "local":
        check_model(config.generation)


def as_keywords(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a run by place, as keywords of `evaluate`."""
    parts = nested(settings)
    generation, reward, output = (dict(parts.pop(name, {})) for name in ("generation", "reward", "output"))
    validated(OutputConfig, output, "The output", section="output")  # before a directory is made of its name
    named = {
        "model": generation.pop("model_name", None), "n": generation.pop("n", None),
        "reward": reward.pop("function_path", None), "params": reward.pop("params", None),
        "output_dir": output.pop("output_dir", None), "reward_settings": reward, "generation": generation,
        "output": output,
    }  # fmt: skip
    return {**parts, **{name: value for name, value in named.items() if value is not None and value != {}}}


# ── what was given ───────────────────────────────────────────────────────────────────────────────────────────────────


class _Given(NamedTuple):
    """What `evaluate` was given, as a pipeline takes it."""

    config: dict[str, Any]
    """Without a place for the files."""
    reward: Callable[..., Any] | None
    rows: Iterable[Given] | None
    client: ModelClient | None


def _given(
    data: Data | None,
    reward: object,
    dataset: Data | Mapping[str, Any] | None,
    model: str | ModelClient | None,
    n: int,
    params: Mapping[str, Any] | None,
    reward_settings: Mapping[str, Any] | None,
    settings: Mapping[str, Any],
) -> _Given:
    data, data_settings = _told_apart(data, dataset)
    reward = _checked_reward(reward)
    client = None if model is None or isinstance(model, str) else model
    config = _config_parts(settings)
    name = client.model if client is not None else model
    config["generation"] = {"enabled": model is not None, "model_name": name, "n": n, **config.get("generation", {})}
    config["reward"] = {
        "function_path": _label(reward), "params": _named_params(params or {}), **(reward_settings or {})
    }  # fmt: skip
    rows = None
    if isinstance(data, str | Path):
        config["dataset"] = {**data_settings, "path_or_name": str(data)}
    elif data is None:
        config["dataset"] = data_settings
    else:
        rows = cast("Iterable[Given]", data)
        if data_settings:
            config["dataset"] = {"path_or_name": "the given rows", **data_settings}
    return _Given(config, reward if callable(reward) else None, rows, client)


def _told_apart(data: Data | None, dataset: Data | Mapping[str, Any] | None) -> tuple[Data | None, Mapping[str, Any]]:
    """The data, and the settings of how they are read; `dataset` may be the one or the other."""
    settings: Mapping[str, Any] = dataset if isinstance(dataset, Mapping) else {}
    if data is not None and dataset is not None and not isinstance(dataset, Mapping):
        raise ConfigError("The data are given twice. Give them first, or as dataset=…, and settings as dataset={…}.")
    if data is None and not isinstance(dataset, Mapping):
        data = dataset
    if data is None and not settings:
        raise ConfigError("No data are given. Give rows, a file or the name of a Hugging Face dataset first.")
    if isinstance(data, Mapping):
        data = _one_split(data, settings)
    if data is not None and not (isinstance(data, Path) or hasattr(data, "__iter__") or hasattr(data, "columns")):
        raise ConfigError(
            f"The data are of type {type(data).__name__}. Give rows, a table, a file or the name of a Hugging Face "
            "dataset first, and then the reward."
        )
    return data, settings


def _one_split(data: Mapping[Any, Any], settings: Mapping[str, Any]) -> Data:
    """The split that the settings name, of several that are given as a mapping."""
    split = settings.get("split")
    if split in data:
        return cast(Data, data[split])
    raise ConfigError(
        f"The data are a mapping with the keys {', '.join(map(repr, list(data)[:8]))}, not a list of rows. "
        "Give one of its values, put a single row into a list, or choose a split with dataset={'split': …}."
    )


def _checked_reward(reward: object) -> Callable[..., Any] | str:
    if isinstance(reward, str) or callable(reward):
        return reward
    what = "no reward is given" if reward is None else f"the reward is of type {type(reward).__name__}"
    raise ConfigError(
        f"Evaluating needs a function that judges, and {what}. Give one, or its import path, "
        "such as 'my_rewards.py:exact', or a name that `reward-kit rewards list` shows."
    )


def _label(reward: Callable[..., Any] | str) -> str:
    """How the config names the reward: by its path, or by where a function that was given came from."""
    return reward if isinstance(reward, str) else f"{reward.__module__}:{name_of(reward)}"


_PARTS = PipelineConfig.model_fields.keys() - {"dataset", "reward"}
_OF_GENERATION = (GenerationConfig.model_fields.keys() | {"base_url"}) - {"enabled", "model_name", "n"}
_OWN = (
    "dataset",
    "keep_going",
    "model",
    "n",
    "output_dir",
    "params",
    "progress",
    "rescore",
    "retry_failed",
    "reward",
    "reward_settings",
)


def _config_parts(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords as parts of a config; those that are keys of its `generation` are put there."""
    parts = {name: value for name, value in settings.items() if name in _PARTS}
    if isinstance(parts.get("agent"), Mapping):
        parts["agent"] = _named_agent(parts["agent"])
    generation = dict(parts.get("generation") or {})
    for name, value in settings.items():
        if name in _PARTS:
            continue
        if name not in _OF_GENERATION:
            raise ConfigError(f"evaluate() has no keyword {name!r}; {_meant(name)}")
        if name in generation:
            raise ConfigError(f"{name!r} is given twice: as a keyword and in generation={{…}}. Give it once.")
        generation[name] = value
    return {**parts, "generation": generation} if generation else parts


def _named_agent(agent: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an agent, with what was given as an object named by where it can be imported from."""
    named = dict(agent)
    for key in ("environment", "approve"):
        if callable(named.get(key)):
            named[key] = _import_path(named[key], f"agent.{key}")
    if isinstance(named.get("tools"), Sequence) and not isinstance(named["tools"], str):
        named["tools"] = [_import_path(each, "agent.tools") if callable(each) else each for each in named["tools"]]
    return named


def _named_params(given: Any, key: str = "reward.params") -> Any:
    """The params as a config has them, with each function named by where it can be imported from."""
    if isinstance(given, Mapping):
        return {name: _named_params(value, f"{key}.{name}") for name, value in given.items()}
    if isinstance(given, list | tuple):
        return [_named_params(value, key) for value in given]
    if not callable(given):
        return given
    if getattr(given, "__module__", None) == "__main__":  # which in a worker process is another program
        raise ConfigError(f"`{key}` is a function of the program that runs. Put it into a module, and import it here.")
    return _import_path(given, key)


def _import_path(given: Any, key: str) -> str:
    """Where an object can be imported from, as a config names it."""
    path = f"{getattr(given, '__module__', None)}:{getattr(given, '__qualname__', None)}"
    try:
        found = load_object(path)
    except ImportError:
        found = None
    if found is not given:
        raise ConfigError(
            f"`{key}` is {given!r}, which could not be loaded by its name when the run is resumed. Define it at the "
            "top level of a module, or give its import path, such as 'my_worlds.py:Savings'."
        )
    return path


def _meant(name: str) -> str:
    """What an unknown keyword may have meant, as it is to be written."""
    if name == "model_name":
        return "did you mean model=…?"
    for keyword, part in (("dataset", DatasetConfig), ("reward_settings", RewardConfig)):
        if name in part.model_fields:
            return f"did you mean {keyword}={{{name!r}: …}}?"
    inner = [
        f"{part}={{{name!r}: …}}" for part, field in PipelineConfig.model_fields.items()
        if name in getattr(field.annotation, "model_fields", {})
    ]  # fmt: skip
    if inner:
        return f"did you mean {inner[0]}?"
    known = {*_OWN, *_PARTS, *_OF_GENERATION}
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}=…?" if close else f"known are: {', '.join(sorted(known))}."


# ── around a run ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _reporter(progress: bool | Reporter | None) -> Reporter | None:
    if progress is None:
        progress = in_notebook()
    if isinstance(progress, bool):
        return (NotebookReporter() if in_notebook() else LineReporter()) if progress else None
    return progress


def _directory(output_dir: str | Path | None) -> Path:
    return Path(output_dir) if output_dir is not None else Path(tempfile.mkdtemp(prefix="reward-kit-"))


def _remove(directory: Path, owner: int) -> None:
    """Remove a temporary directory; a forked copy of the process that made it leaves it alone."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def _warn_if_all_failed(result: RunResult) -> None:
    if result.status == "finished" and result.failed and not result.judged:
        example = next(iter(result.summary.get("failure_examples", {}).values()), "")
        _log.warning("Nothing could be judged: all %d answers failed, such as: %s", result.failed, example)
