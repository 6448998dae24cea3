# SPDX-License-Identifier: Apache-2.0
"""Evaluators: a reward with its files, to be looked at here and created at Fireworks.

    evaluator = Evaluator()
    evaluator.load_metric_folder("words", "metrics/words")
    evaluator.preview("samples.jsonl").display()      # judged on this machine, by the real code
    evaluator.create("words-v1")                      # sent to Fireworks, and built there

A preview never invents a score: what could not be judged has none, and says why.
"""

from __future__ import annotations

import json
import logging
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets.files import file_format
from reward_kit.datasets.interpret import RowReader, rollouts_of
from reward_kit.datasets.rows import BadRow, BadRows, Origin, Row
from reward_kit.datasets.sources import Given, open_source
from reward_kit.deploy.fireworks.api import FireworksAPI, Progress
from reward_kit.deploy.fireworks.evaluator_source import (
    source_of_code,
    source_of_folders,
    source_of_reward,
    source_of_url,
)
from reward_kit.deploy.fireworks.evaluators import EvaluatorSource, create_evaluator
from reward_kit.deploy.fireworks.legacy_preview import hosted_preview
from reward_kit.errors import ConfigError, DatasetError
from reward_kit.evaluating import evaluate
from reward_kit.metric_folders import ENTRY, FUNCTION, by_metrics, check_folder, named_folders
from reward_kit.remote.protocol import ROUTE
from reward_kit.remote.reward import open_remote
from reward_kit.reward_call import RewardCall
from reward_kit.storage.files import Draft
from reward_kit.storage.vocabularies import RUN

__all__ = [
    "Evaluator",
    "EvaluatorPreviewResult",
    "PreviewedSample",
    "create_evaluation",
    "deploy_folder_evaluation",
    "huggingface_dataset_to_jsonl",
    "preview_evaluation",
    "preview_folder_evaluation",
    "preview_reward",
    "read_samples",
]

_log = logging.getLogger(__name__)
_SHOWN_REASON = 60


@dataclass
class PreviewedSample:
    """What was said of one sample."""

    index: int
    success: bool
    score: float | None
    """None where it could not be judged."""
    per_metric_evals: dict[str, Any]
    reason: str = ""
    """The reward's reason, or why there is no score."""


class EvaluatorPreviewResult:
    """What an evaluator says of a few samples."""

    def __init__(self) -> None:
        self.results: list[PreviewedSample] = []
        self.total_samples = 0
        self.total_runtime_ms = 0

    def add_result(
        self,
        sample_index: int,
        success: bool,
        score: float | None,
        per_metric_evals: Mapping[str, Any],
        reason: str = "",
    ) -> None:
        """Add what was said of one sample."""
        self.results.append(PreviewedSample(sample_index, success, score, dict(per_metric_evals), reason))
        self.total_samples = max(self.total_samples, len(self.results))

    def lines(self) -> list[str]:
        """A table, and a line that sums it up."""
        metrics = list(dict.fromkeys(name for one in self.results for name in one.per_metric_evals))
        header = ["sample", "score", *metrics, "reason"]
        rows = [
            [str(one.index + 1), _number(one.score), *(_number(_score_in(one, name)) for name in metrics),
             _shortened(one.reason)]
            for one in self.results
        ]  # fmt: skip
        widths = [max(len(line[column]) for line in [header, *rows]) for column in range(len(header))]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
                 for line in [header, *rows]]  # fmt: skip
        judged = [one.score for one in self.results if one.score is not None]
        mean = f", mean score {sum(judged) / len(judged):.3f}" if judged else ""
        return [*table, "", f"{len(judged)} of {self.total_samples} samples judged{mean}, {self.total_runtime_ms} ms"]

    def display(self) -> None:
        """Print the table."""
        print("\n".join(self.lines()))


class Evaluator:
    """What judges: a reward, folders of metrics, a text of Python, or the address of a reward that is served."""

    def __init__(
        self,
        multi_metrics: bool = False,
        remote_url: str | None = None,
        ts_mode_config: Mapping[str, Any] | None = None,
        reward_function_mode: str = "pointwise",
        account_id: str | None = None,
        api_key: str | None = None,
    ) -> None:
        """`ts_mode_config` holds a text of Python as `python_code`, with `file_name` and `criterion_name` beside it."""
        _refuse_groups(reward_function_mode)
        self.multi_metrics = multi_metrics
        self.remote_url = remote_url
        self.ts_mode_config = dict(ts_mode_config or {})
        self.reward_function_mode = reward_function_mode
        self.metric_folders: dict[str, Path] = {}
        self.code_files: dict[str, str] = {}
        """The metrics' Python files as texts, by `METRIC/FILE`."""
        self._account_id, self._api_key = account_id, api_key
        self._reward: tuple[str, dict[str, Any]] | None = None

    # -- what judges

    def load_reward(self, reward: str, params: Mapping[str, Any] | None = None) -> None:
        """Judge by a reward: its name in the library, or its import path, such as `rewards.py:correct`."""
        self._reward = (reward, dict(params or {}))

    def load_metric_folder(self, metric_name: str, folder_path: str | Path) -> dict[str, str]:
        """Add a folder whose `main.py` has a function `evaluate`; its Python files by name."""
        folder = check_folder(Path(folder_path))
        self.metric_folders[metric_name] = folder
        texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}
        self.code_files |= {f"{metric_name}/{name}": text for name, text in texts.items()}
        return texts

    def load_multi_metrics_folder(self, folder_path: str | Path) -> dict[str, str]:
        """Add a folder whose one `evaluate` returns several metrics."""
        return self.load_metric_folder("eval", folder_path)

    def load_samples_from_jsonl(self, sample_file: str | Path, max_samples: int = 5) -> list[dict[str, Any]]:
        """The first samples of a file, each checked to be a conversation."""
        return [row.columns for row in read_samples(Path(sample_file), max_samples)]

    def source(self) -> EvaluatorSource:
        """The files that are sent to Fireworks."""
        if self.remote_url is not None:
            return source_of_url(self.remote_url)
        if self.ts_mode_config:
            return source_of_code(
                str(self.ts_mode_config["python_code"]),
                str(self.ts_mode_config.get("file_name", ENTRY)),
                str(self.ts_mode_config.get("criterion_name", "default_code_criterion")),
                str(self.ts_mode_config.get("description", "")),
            )
        if self._reward is not None:
            reward, params = self._reward
            _refuse_groups(RewardCall(reward, params).mode)
            file, is_file, _ = reward.rpartition(".py:")
            return source_of_reward(reward, params, Path(f"{file}.py").resolve().parent if is_file else None)
        return source_of_folders(self._known_folders())

    # -- what can be done with it

    def preview(
        self, sample_file: str | Path, max_samples: int = 5, *, hosted: bool = False, **settings: Any
    ) -> EvaluatorPreviewResult:
        """Judge the first samples of a file: here, by the real code; with `hosted`, by Fireworks' older service.

        `settings` are those of `evaluate`, for judging here.
        """
        samples = read_samples(Path(sample_file), max_samples)
        if hosted:
            return _from_fireworks(self.source(), samples, self._api())
        if self.remote_url is not None:
            bare = self.remote_url.rstrip("/")
            address = bare if bare.endswith(ROUTE) else f"{bare}{ROUTE}"
            return preview_reward(open_remote(address, stops_run=True, inherited_key=True), samples, **settings)
        if self.ts_mode_config:
            return self._preview_code(samples, **settings)
        if self._reward is not None:
            return preview_reward(self._reward[0], samples, self._reward[1], **settings)
        paths = {name: f"{folder.resolve() / ENTRY}:{FUNCTION}" for name, folder in self._known_folders().items()}
        judging = by_metrics(paths) if len(paths) > 1 else next(iter(paths.values()))
        return preview_reward(judging, samples, **settings)

    def create(
        self,
        evaluator_id: str,
        display_name: str | None = None,
        description: str | None = None,
        force: bool = False,
        *,
        tell: Callable[[str], None] | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Create it at Fireworks and wait until it is built there. What Fireworks says of it."""
        return create_evaluator(
            self._api(), evaluator_id, self.source(), display_name=display_name, description=description, force=force,
            tell=tell, progress=progress,
        )  # fmt: skip

    def _known_folders(self) -> Mapping[str, Path]:
        if not self.metric_folders:
            raise ConfigError(
                "The evaluator has nothing to judge by. Give it a reward, metric folders, code, or a remote_url."
            )
        return self.metric_folders

    def _api(self) -> FireworksAPI:
        return FireworksAPI(self._api_key, self._account_id)

    def _preview_code(self, samples: Sequence[Row], **settings: Any) -> EvaluatorPreviewResult:
        name = str(self.ts_mode_config.get("file_name", ENTRY))
        with tempfile.TemporaryDirectory(prefix="reward-kit-") as folder:
            file = Path(folder) / Path(name).name
            file.write_text(str(self.ts_mode_config["python_code"]), encoding="utf-8")
            return preview_reward(f"{file}:{FUNCTION}", samples, **settings)


def _refuse_groups(mode: str) -> None:
    if mode != "pointwise":
        raise ConfigError(
            f"An evaluator judges one answer at a time, and the reward's mode is {mode!r}. Run a reward that judges "
            "groups with `reward-kit run`."
        )


def preview_reward(
    reward: str | Callable[..., Any], samples: Sequence[Given], params: Mapping[str, Any] | None = None, **settings: Any
) -> EvaluatorPreviewResult:
    """Judge the answers of rows by a reward, on this machine and as a run would: in workers, with its time limit.

    `settings` are those of `evaluate`.
    """
    begun = time.monotonic()
    result = EvaluatorPreviewResult()
    run = evaluate(samples, reward, params=params, keep_going=True, **settings)
    for index, row in enumerate(run.rows()):
        failure = row.get("failure")
        if failure is not None:
            result.add_result(index, False, None, {}, f"not judged: {failure['message']}")
        else:
            score = row[RUN.score] if row[RUN.score_is_valid] else None
            result.add_result(
                index, score is not None, score, row[RUN.metrics] or {}, row[RUN.verification_reason] or ""
            )
    result.total_samples = max(len(samples), len(result.results))
    result.total_runtime_ms = round((time.monotonic() - begun) * 1000)
    return result


def _from_fireworks(source: EvaluatorSource, samples: Sequence[Row], api: FireworksAPI) -> EvaluatorPreviewResult:
    said = hosted_preview(api, source, [_as_conversation(sample.columns) for sample in samples])
    result = EvaluatorPreviewResult()
    for index, one in enumerate(said.get("results") or []):
        success = bool(one.get("success"))
        score = one.get("score")
        reason = str(one.get("reason") or one.get("errorMessage") or "")
        result.add_result(index, success, score if success else None, one.get("perMetricEvals") or {}, reason)
    result.total_samples = int(said.get("totalSamples") or len(samples))
    result.total_runtime_ms = int(said.get("totalRuntimeMs") or 0)
    return result


def _as_conversation(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with what was asked and answered as `messages`, and the ground truth, as Fireworks takes them."""
    rollout = rollouts_of(row)[0]
    turns = [turn.as_request() for turn in rollout.messages]
    truth = rollout.sample.ground_truth
    return {**row, "messages": turns, **({} if truth is None else {"ground_truth": truth})}


# ── samples ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_samples(file: Path, most: int) -> list[Row]:
    """The first rows of a file that hold an answer, as they are; `evaluate` reads them as a run does.

    One that cannot be read so is a `DatasetError` that names its line.
    """
    config = DatasetConfig(path_or_name=str(file), source_type=None if file_format(file.name) else "jsonl")
    bad, reader = _NotJudged(skip=False), RowReader()
    samples = [*islice(open_source(config).rows(bad), most)]
    for row in samples:
        try:
            reader.rollouts(row.columns)
        except BadRow as problem:
            bad.report(row.origin, row.number, str(problem))
    if not samples:
        raise DatasetError(f'{str(file)!r} has no samples. Write one conversation per line, as {{"messages": […]}}.')
    return samples


class _NotJudged(BadRows):
    """Says of a bad row what a preview can do about it."""

    def report(self, origin: Origin, number: int, reason: str) -> None:
        place = f"{origin.unit.capitalize()} {number} of {origin.name!r}"
        raise DatasetError(f"{place} cannot be judged: {reason}. Correct or remove it.")


def huggingface_dataset_to_jsonl(
    dataset_name: str,
    split: str = "train",
    output_file: str | None = None,
    max_samples: int = 100,
    message_key_map: Mapping[str, str] | None = None,
    response_key: str = "response",
    prompt_key: str = "prompt",
) -> str:
    """Write rows of a Hugging Face dataset as conversations, one a line, and return the file's name.

    `message_key_map` says which further columns are kept, and under which names: theirs to ours.
    """
    named = message_key_map or {}
    source = open_source(DatasetConfig(path_or_name=dataset_name, split=split))
    if output_file is None:
        with tempfile.NamedTemporaryFile(prefix="reward-kit-", suffix=".jsonl", delete=False) as made:
            output_file = made.name
    written = 0
    with Draft(Path(output_file), advice="Nothing was changed: make room.") as draft:
        for held in islice(source.rows(BadRows(skip=True)), max_samples):
            row = held.columns
            conversation = _conversation(row, prompt_key, response_key)
            if conversation is None:
                continue
            kept = {ours: row[theirs] for theirs, ours in named.items() if theirs in row}
            draft.write(json.dumps({"messages": conversation, **kept}, default=str).encode() + b"\n")
            written += 1
    if not written:
        raise DatasetError(
            f"No row of {dataset_name!r} has the columns {prompt_key!r} and {response_key!r}, or 'messages'. Name its "
            "columns as prompt_key and response_key."
        )
    return output_file


def _conversation(row: Mapping[str, Any], prompt_key: str, response_key: str) -> list[dict[str, Any]] | None:
    if isinstance(row.get("messages"), list):
        return list(row["messages"])
    if prompt_key not in row or response_key not in row:
        return None
    asked, answered = row[prompt_key], row[response_key]
    return [{"role": "user", "content": str(asked)}, {"role": "assistant", "content": str(answered)}]


# ── the inherited functions ──────────────────────────────────────────────────────────────────────────────────────────


def preview_evaluation(  # noqa: PLR0913, PLR0917 - inherited
    metric_folders: Sequence[str] | None = None,
    multi_metrics: bool = False,
    folder: str | None = None,
    python_code_to_evaluate: str | None = None,
    python_file_name_for_code: str = ENTRY,
    criterion_name_for_code: str = "default_code_criterion",
    criterion_description_for_code: str = "Python code execution",
    sample_file: str | None = None,
    max_samples: int = 5,
    huggingface_dataset: str | None = None,
    huggingface_split: str = "train",
    huggingface_message_key_map: Mapping[str, str] | None = None,
    huggingface_response_key: str = "response",
    huggingface_prompt_key: str = "prompt",
    reward_function_mode: str = "pointwise",
    account_id: str | None = None,
    api_key: str | None = None,
    *,
    remote_url: str | None = None,
    hosted: bool = False,
    **settings: Any,
) -> EvaluatorPreviewResult:
    """Judge a few samples here, with the real code; with `hosted`, by Fireworks' older preview service.

    `metric_folders` are items such as `words=metrics/words`. The samples come from a JSON-lines file or a Hugging Face
    dataset. `settings` are those of `evaluate`, for judging here.
    """
    evaluator = _evaluator(
        metric_folders, folder, multi_metrics,
        _code(
            python_code_to_evaluate, python_file_name_for_code, criterion_name_for_code, criterion_description_for_code
        ),
        remote_url, reward_function_mode, account_id, api_key,
    )  # fmt: skip
    if sample_file is None and huggingface_dataset is None:
        raise ConfigError("There are no samples to judge. Give sample_file or huggingface_dataset.")
    with tempfile.TemporaryDirectory(prefix="reward-kit-") as scratch:
        file = sample_file or huggingface_dataset_to_jsonl(
            str(huggingface_dataset), huggingface_split, str(Path(scratch) / "samples.jsonl"), max_samples,
            huggingface_message_key_map, huggingface_response_key, huggingface_prompt_key,
        )  # fmt: skip
        return evaluator.preview(file, max_samples, hosted=hosted, **settings)


def preview_folder_evaluation(evaluator_folder: str, *args: Any, **named: Any) -> EvaluatorPreviewResult:
    """`preview_evaluation` of one folder: a metric's, or one whose sub-folders are metrics."""
    names = ("sample_file", "max_samples", "multi_metrics", "huggingface_dataset", "huggingface_split",
             "huggingface_message_key_map", "huggingface_response_key", "huggingface_prompt_key")  # fmt: skip
    given = {**dict(zip(names, args, strict=False)), **named}
    return preview_evaluation(**_folder_arguments(evaluator_folder, given))


def create_evaluation(  # noqa: PLR0913, PLR0917 - inherited
    evaluator_id: str,
    metric_folders: Sequence[str] | None = None,
    multi_metrics: bool = False,
    folder: str | None = None,
    python_code_to_evaluate: str | None = None,
    python_file_name_for_code: str = ENTRY,
    criterion_name_for_code: str = "default_code_criterion",
    criterion_description_for_code: str = "Python code execution",
    display_name: str | None = None,
    description: str | None = None,
    force: bool = False,
    huggingface_dataset: str | None = None,
    huggingface_split: str = "train",
    huggingface_message_key_map: Mapping[str, str] | None = None,
    huggingface_response_key: str = "response",
    huggingface_prompt_key: str = "prompt",
    remote_url: str | None = None,
    reward_function_mode: str = "pointwise",
    account_id: str | None = None,
    api_key: str | None = None,
) -> dict[str, Any]:
    """Create an evaluator at Fireworks, and wait until it is built there.

    The `huggingface_…` arguments have no effect: an evaluator has no data of its own. Upload them with
    `reward-kit export --to fireworks --upload`.
    """
    evaluator = _evaluator(
        metric_folders, folder, multi_metrics,
        _code(
            python_code_to_evaluate, python_file_name_for_code, criterion_name_for_code, criterion_description_for_code
        ),
        remote_url, reward_function_mode, account_id, api_key,
    )  # fmt: skip
    if huggingface_dataset is not None:
        _log.warning("create_evaluation sends no data: huggingface_dataset=%r has no effect.", huggingface_dataset)
    return evaluator.create(evaluator_id, display_name, description, force)


def deploy_folder_evaluation(evaluator_id: str, evaluator_folder: str, *args: Any, **named: Any) -> dict[str, Any]:
    """`create_evaluation` of one folder: a metric's, or one whose sub-folders are metrics."""
    names = ("display_name", "description", "force", "multi_metrics", "huggingface_dataset", "huggingface_split",
             "huggingface_message_key_map", "huggingface_response_key", "huggingface_prompt_key")  # fmt: skip
    given = {**dict(zip(names, args, strict=False)), **named}
    return create_evaluation(evaluator_id, **_folder_arguments(evaluator_folder, given))


def _folder_arguments(folder: str, given: dict[str, Any]) -> dict[str, Any]:
    place = Path(folder)
    if (place / ENTRY).is_file():
        return {**given, "folder": folder} if given.get("multi_metrics") else {
            **given, "metric_folders": [f"{place.resolve().name}={folder}"]
        }  # fmt: skip
    inner = sorted(path.parent for path in place.glob(f"*/{ENTRY}")) if place.is_dir() else []
    if not inner:
        raise ConfigError(f"Neither {folder!r} nor a folder in it has a {ENTRY}. Give the folder of a metric.")
    return {**given, "metric_folders": [f"{path.name}={path}" for path in inner]}


def _code(code: str | None, file_name: str, criterion: str, about: str) -> dict[str, str]:
    if code is None:
        return {}
    return {"python_code": code, "file_name": file_name, "criterion_name": criterion, "description": about}


def _evaluator(
    metric_folders: Sequence[str] | None,
    folder: str | None,
    multi_metrics: bool,
    code: Mapping[str, str],
    remote_url: str | None,
    mode: str,
    account_id: str | None,
    api_key: str | None,
) -> Evaluator:
    given = [bool(metric_folders), folder is not None, bool(code), remote_url is not None]
    if sum(given) != 1:
        raise ConfigError("Give one of: metric folders, a folder, Python code, or the address of a served reward.")
    evaluator = Evaluator(multi_metrics, remote_url, code, mode, account_id, api_key)
    for name, path in named_folders(metric_folders or ()).items():
        evaluator.load_metric_folder(name, path)
    if folder is not None:
        evaluator.load_multi_metrics_folder(folder)
    return evaluator


def _score_in(one: PreviewedSample, metric: str) -> float | None:
    held = one.per_metric_evals.get(metric)
    score = held.get("score") if isinstance(held, Mapping) else held
    return score if isinstance(score, int | float) else None


def _shortened(reason: str) -> str:
    words = " ".join(reason.split())
    return words if len(words) <= _SHOWN_REASON else f"{words[: _SHOWN_REASON - 1]}…"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
