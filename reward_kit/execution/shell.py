"""The two phases of a shell evaluation, each a run of the one pipeline.

    tasks ─▶ inference ══▶ rollouts.jsonl ──▶ commands.jsonl ─▶ execution ══▶ results.jsonl
             a model writes n commands a task                    each runs in a fresh sandbox, then its condition

`commands.jsonl` is all that the execution reads: it may be made here, elsewhere, or by somebody else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

from reward_kit.config_models import (
    DatasetConfig,
    EvaluationParamsConfig,
    GenerationConfig,
    OutputConfig,
    PipelineConfig,
    RewardConfig,
    SandboxConfig,
    validated,
)
from reward_kit.datasets.files import file_format
from reward_kit.datasets.shell_tasks import PROMPT, load_tasks
from reward_kit.errors import ConfigError
from reward_kit.execution.local_engine import Reporter
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult
from reward_kit.execution.shell_commands import CommandsFile, Shard
from reward_kit.execution.shell_follow import Following, write_commands
from reward_kit.execution.shell_summary import execution_figures, whole_summary
from reward_kit.execution.vocabulary import Vocabulary
from reward_kit.sandbox.from_settings import sandboxes_at_a_time
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_lines import Entry, Head
from reward_kit.storage.run_directory import RESULTS, RunDirectory
from reward_kit.storage.shell_tables import shell_result_entry
from reward_kit.utils.checksums import CHECK
from reward_kit.utils.clock import now

__all__ = ["COMMANDS", "ShellEvaluation"]

COMMANDS = "commands.jsonl"
"""What the two phases share."""

_REWARD = "reward_kit.rewards.shell:shell_reward"
_SPARE_SECONDS = 300.0
"""What a task may take beside its three timed steps: waiting for a sandbox, opening it, closing it."""


@dataclass(frozen=True)
class ShellEvaluation:
    """What to evaluate, and how. Each phase can be entered again and does only what is still owed."""

    output_dir: Path = Path("evaluation_results")
    dataset: str | None = None
    """A file, or the name of a Hugging Face dataset."""
    config_name: str | None = None
    """The configuration (subset) of a Hugging Face dataset."""
    on_bad_row: Literal["error", "skip"] = "error"
    """Stop at a row that is no task, or leave it out and count it."""
    split: str = "test"
    """The split of a Hugging Face dataset."""
    max_samples: int | None = None
    generation: GenerationConfig = field(default_factory=GenerationConfig)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    concurrency: int | None = None
    """Sandboxes at a time."""
    commands_file: Path | None = None
    """What the execution reads; `commands.jsonl` in the output directory when left out."""
    shard: Shard | None = None
    retry_failed: bool = False

    def infer(self, reporter: Reporter | None = None) -> RunResult:
        """Phase 1: have the model write n commands a task, and put them into `commands.jsonl`."""
        if self.dataset is None:
            raise ConfigError("No dataset is named. Add --dataset with a file or a Hugging Face name.")
        config = self._config(self._dataset(self.dataset))
        tasks = load_tasks(self._dataset(self.dataset), limit=self.max_samples)
        following = Following(self.output_dir, COMMANDS, reporter)
        vocabulary = Vocabulary(summary=self._inference_summary)
        result = EvaluationPipeline(
            config, phase="inference", samples=tasks, retry_failed=self.retry_failed, reporter=following,
            vocabulary=vocabulary,
        ).run()  # fmt: skip
        if not (self.output_dir / COMMANDS).exists():  # the run was finished before, and the file taken away
            write_commands(self.output_dir, COMMANDS)
        return result

    def execute(self, reporter: Reporter | None = None) -> RunResult:
        """Phase 2: run each command of the commands file in a fresh sandbox, and see whether its condition holds."""
        commands = CommandsFile(self.commands_path, self.shard, self.max_samples)
        self._owe_changed(commands)
        facts = {"commands_file": str(self.commands_path), "setups": commands.setups, "model": commands.model}

        def summary(figures: dict[str, Any], directory: RunDirectory) -> dict[str, Any]:
            return self._execution_summary(figures | facts, directory)

        vocabulary = Vocabulary(shell_result_entry, execution_figures, summary)
        return EvaluationPipeline(
            self._config(None), rollouts=commands, retry_failed=self.retry_failed, reporter=reporter,
            vocabulary=vocabulary,
        ).run()  # fmt: skip

    @property
    def commands_path(self) -> Path:
        """What the execution reads."""
        return self.commands_file or self.output_dir / COMMANDS

    def _dataset(self, name: str) -> DatasetConfig:
        given: dict[str, Any] = {"path_or_name": name, "prompt_template": PROMPT}
        given |= {"config_name": self.config_name, "on_bad_row": self.on_bad_row}
        dataset = validated(DatasetConfig, given, "The dataset", section="dataset")
        local = file_format(name) is not None or "*" in name or os.path.exists(name)
        return dataset if local else dataset.model_copy(update={"split": self.split})

    def _config(self, dataset: DatasetConfig | None) -> PipelineConfig:
        return PipelineConfig(
            dataset=dataset,
            generation=self.generation,
            reward=RewardConfig(
                function_path=_REWARD,
                params={"extract": False},
                timeout=3 * self.sandbox.timeout + _SPARE_SECONDS,
                concurrency=self.concurrency,
            ),
            sandbox=self.sandbox,
            evaluation_params=EvaluationParamsConfig(limit_samples=self.max_samples),
            output=OutputConfig(output_dir=str(self.output_dir)),
        )

    def _owe_changed(self, commands: CommandsFile) -> None:
        """Owe again what was executed with another command than the file has now."""
        path = self.output_dir / RESULTS
        if not path.exists():
            return
        with RunDirectory(self.output_dir), Journal(path, owed_again=True) as results:
            stale = [line for line in map(orjson.loads, results.in_order()) if _changed(line, commands)]
            if stale:
                results.append([_owed_again(line) for line in stale])

    # -- summaries

    def _inference_summary(self, figures: dict[str, Any], directory: RunDirectory) -> dict[str, Any]:
        counts = write_commands(directory.path, COMMANDS)
        total = figures["rollouts"]
        sampling = self.generation
        phase = {
            "records": total,
            "tasks": figures["samples"],
            "commands": counts.commands,
            "no_command": counts.no_command,
            "generation_success_rate": counts.commands / total if total else None,
            **{name: figures[name] for name in ("failed", "failures_by_kind", "failure_examples", "skipped_rows")},
            **{name: figures[name] for name in ("prompt_tokens", "completion_tokens", "cost")},
            "model": sampling.model_name,
            "dataset": self.dataset,
            "n": sampling.n,
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
            **_timing(directory, "inference", figures),
        }
        return whole_summary(phase, (directory.read_summary() or {}).get("execution")) | _entry(figures)

    def _execution_summary(self, figures: dict[str, Any], directory: RunDirectory) -> dict[str, Any]:
        hidden = ("phase", "n", "skipped_rows", "this_entry")
        phase = {name: value for name, value in figures.items() if name not in hidden}
        phase |= {"sandbox": figures["this_entry"]["sandbox"] or self.sandbox.backend}
        phase |= {"sandbox_image": self.sandbox.image}
        phase |= {"setup_join": self.sandbox.setup_join, "concurrency": self.concurrency or sandboxes_at_a_time()}
        phase |= {"shard": None if self.shard is None else str(self.shard)}
        phase |= _timing(directory, "execution", figures)
        return whole_summary((directory.read_summary() or {}).get("inference"), phase) | _entry(figures)


def _changed(line: dict[str, Any], commands: CommandsFile) -> bool:
    key = str(line["id"]), int(line["response_index"])
    if line["status"] == "retry" or key not in commands.keys:
        return False
    return bool(commands.command_of(key) != line["generated_command"])


def _owed_again(line: dict[str, Any]) -> Entry:
    status: Literal["retry"] = "retry"
    head = Head(line["id"], line["response_index"], line["position"], line["content"], status, line["cost"])
    gone = {"generated_command": None, "error": "The command changed since it was executed.", "overall_success": None}
    body = {name: value for name, value in line.items() if name not in {"schema", CHECK, *Head._fields}} | gone
    return Entry(head, orjson.dumps(body))


def _timing(directory: RunDirectory, phase: str, figures: dict[str, Any]) -> dict[str, Any]:
    """When a phase began and ended, and the seconds it took in all its entries that came to an end."""
    entries = [entry for entry in directory.phases if entry["phase"] == phase]
    before = sum(float(entry.get("seconds", 0.0)) for entry in entries)
    return {
        "seconds": before + figures["this_entry"]["seconds"],
        "start_time": entries[0]["started"],
        "end_time": now(),
    }


def _entry(figures: dict[str, Any]) -> dict[str, Any]:
    return {"this_entry": figures["this_entry"]}
