# SPDX-License-Identifier: Apache-2.0
"""A shell evaluation: both of its phases at once, or one of them, as a run of the one pipeline.

    tasks ─▶ inference ══▶ rollouts.jsonl, commands.jsonl ──▶ execution ══▶ results.jsonl
             a model writes n commands per task               each runs in a fresh sandbox, then its condition

`commands.jsonl` tells the rollouts in other columns, and is written in the same turn. A phase of execution alone reads
that file and nothing else: it may be made here, elsewhere, or by somebody else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from reward_kit.config_models import PipelineConfig, validated
from reward_kit.datasets.files import file_format
from reward_kit.datasets.shell_tasks import PROMPT, load_tasks
from reward_kit.doors import AT_SHELL, nested
from reward_kit.errors import ConfigError
from reward_kit.execution.engine import Reporter
from reward_kit.execution.finish import rollout_figures
from reward_kit.execution.parts.mirroring import restored
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.plan import Plan
from reward_kit.execution.result import Phase, RunResult
from reward_kit.execution.run_summary import beside_the_cost
from reward_kit.execution.shell.commands_file import CommandsFile, Shard, command_of
from reward_kit.execution.shell.summary import count_commands, execution_figures, whole_summary
from reward_kit.execution.vocabulary import Vocabulary
from reward_kit.sandbox.from_settings import sandboxes_at_a_time
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_lines import Entry, Head
from reward_kit.storage.projected_file import ProjectedFile
from reward_kit.storage.run_directory import RunDirectory
from reward_kit.storage.shell_tables import shell_result_row
from reward_kit.storage.vocabularies import SHELL
from reward_kit.stores.addresses import is_stored
from reward_kit.utils import exact_json
from reward_kit.utils.checksums import CHECK
from reward_kit.utils.clock import now
from reward_kit.utils.event_loop import run_sync

__all__ = ["COMMANDS", "ShellEvaluation", "shell_config"]

COMMANDS = "commands.jsonl"
"""What the two phases share."""

_REWARD = "reward_kit.rewards.shell:shell_reward"
_ASKING = "generation."
_SPARE_SECONDS = 300.0
"""What a task may take beside its three timed steps: waiting for a sandbox, opening it, closing it."""


def shell_config(given: Mapping[str, Any], name: str = "The shell evaluation") -> PipelineConfig:
    """The settings of a shell evaluation from those that are given, by place as `doors.AT_SHELL` has them.

    `name` is what a message calls who gave them.
    """
    source = given.get("dataset.path_or_name")
    own = {"dataset.prompt_template": PROMPT, "reward.function_path": _REWARD, "reward.params": {"extract": False}}
    settings = AT_SHELL.with_defaults({**own, **given})
    if given.get("generation.enabled") is False:  # nobody is asked, so nothing is said of how
        settings = {
            place: value for place, value in settings.items() if place in given or not place.startswith(_ASKING)
        }
    if source is None:
        settings = {place: value for place, value in settings.items() if not place.startswith("dataset.")}
    elif "dataset.split" not in given and _is_local(str(source)):
        del settings["dataset.split"]
    config = validated(PipelineConfig, nested(settings), name, spell=lambda place: f"`{place}`")
    if config.reward.timeout is not None:
        return config
    timeout = 3 * config.sandbox.timeout + _SPARE_SECONDS
    return config.model_copy(update={"reward": config.reward.model_copy(update={"timeout": timeout})})


def _is_local(source: str) -> bool:
    return is_stored(source) or file_format(source) is not None or "*" in source or os.path.exists(source)


@dataclass(frozen=True)
class ShellEvaluation:
    """What to evaluate, and how. Each phase can be run again, and then does only what is missing."""

    config: PipelineConfig
    """The settings of its run: see `shell_config`."""
    commands_file: Path | None = None
    """What the execution reads; `commands.jsonl` in the output directory when left out."""
    commands_address: str | None = None
    """Where that file was fetched from, if it was."""
    shard: Shard | None = None
    retry_failed: bool = False
    keep_going: bool = False
    """Go on where the first commands could not be run, all for the same reason."""
    rescore: bool = False
    """Execute the commands again where other settings were used before; those results are kept aside."""
    resume_from_mirror: bool = False
    """Go on with what the mirror holds, in an empty output directory."""
    detach: bool = False
    """Submit batches, and do not wait for them."""

    def run(self, reporter: Reporter | None = None) -> RunResult:
        """Both phases at once: each command is executed as soon as it is written down."""
        vocabulary = Vocabulary(shell_result_row, execution_figures, self._whole_summary, _commands, _owe_changed_here)
        return self._generating("both", reporter, vocabulary).run()

    def infer(self, reporter: Reporter | None = None) -> RunResult:
        """Phase 1: have the model write n commands per task, and put them into `commands.jsonl`."""
        return self._generating("inference", reporter).run()

    def execute(self, reporter: Reporter | None = None) -> RunResult:
        """Phase 2: run each command of the commands file in a fresh sandbox, and see whether its condition holds."""
        if self.resume_from_mirror:  # before the commands are looked for
            run_sync(partial(restored, self.config.output))
        return self._executing(reporter).run()

    def plan(self, phase: Phase) -> Plan:
        """What a phase, or both, would take and cost, without calling anyone and without writing anything."""
        return (self._executing() if phase == "execution" or self.rescore else self._generating(phase)).plan()

    def _generating(
        self, phase: Phase, reporter: Reporter | None = None, vocabulary: Vocabulary | None = None
    ) -> EvaluationPipeline:
        dataset = self.config.dataset
        if dataset is None:
            raise ConfigError("No dataset is named. Add --dataset with a file or a Hugging Face name.")
        return EvaluationPipeline(
            self.config, phase=phase, retry_failed=self.retry_failed, reporter=reporter,
            resume_from_mirror=self.resume_from_mirror, detach=self.detach, keep_going=self.keep_going,
            samples=load_tasks(dataset, limit=self.config.sample_limit, system_prompt=self.config.system_prompt),
            vocabulary=vocabulary or Vocabulary(summary=self._inference_summary, projection=_commands),
        )  # fmt: skip

    def _executing(self, reporter: Reporter | None = None) -> EvaluationPipeline:
        commands = CommandsFile(self.commands_path, self.shard, self.config.sample_limit)
        facts = {"commands_file": self.commands_shown, "setups": commands.setups, "model": commands.model}

        def summary(figures: dict[str, Any], directory: RunDirectory) -> dict[str, Any]:
            phase = self._execution_phase(figures | facts, directory)
            return whole_summary((directory.read_summary() or {}).get("inference"), phase) | _entry(figures)

        vocabulary = Vocabulary(
            shell_result_row, execution_figures, summary, prepare=lambda directory: _owe_changed(commands, directory)
        )
        return EvaluationPipeline(
            self.config.model_copy(update={"dataset": None}), rollouts=commands, rescore=self.rescore,
            retry_failed=self.retry_failed, reporter=reporter, vocabulary=vocabulary,
            resume_from_mirror=self.resume_from_mirror, keep_going=self.keep_going,
        )  # fmt: skip

    @property
    def output_dir(self) -> Path:
        """Where the files go."""
        return Path(self.config.output.output_dir)

    @property
    def commands_path(self) -> Path:
        """The file of commands that the execution phase reads: the one that was named, else the run's own."""
        return self.commands_file or self.output_dir / COMMANDS

    @property
    def commands_shown(self) -> str:
        """What the file of commands is called where a person reads it."""
        return self.commands_address or str(self.commands_path)

    # -- summaries

    def _inference_summary(self, figures: dict[str, Any], directory: RunDirectory) -> dict[str, Any]:
        phase = self._inference_phase(figures, directory)
        return whole_summary(phase, (directory.read_summary() or {}).get("execution")) | _entry(figures)

    def _whole_summary(self, figures: dict[str, Any], directory: RunDirectory) -> dict[str, Any]:
        """Of both phases at once: what is said of the commands comes from the rollouts."""
        with Journal(directory.rollouts_path, read_only=True) as rollouts:
            generated = rollout_figures(rollouts) | {name: figures[name] for name in ("skipped_rows", "this_entry")}
        inference = self._inference_phase(generated, directory)
        found = count_commands(directory.path / COMMANDS)
        facts = {"commands_file": str(self.commands_path), "setups": found.setups, "model": found.model}
        execution = self._execution_phase(figures | facts, directory)
        seconds = {"total_seconds": _seconds(directory, figures, "inference", "execution", "both")}
        return whole_summary(inference, execution) | seconds | _entry(figures)

    def _inference_phase(self, figures: dict[str, Any], directory: RunDirectory) -> dict[str, Any]:
        counts = count_commands(directory.path / COMMANDS)
        total = figures["rollouts"]
        sampling, dataset = self.config.generation, self.config.dataset
        return {
            "records": total,
            "tasks": figures["samples"],
            "commands": counts.commands,
            "no_command": counts.no_command,
            "generation_success_rate": counts.commands / total if total else None,
            **{name: figures[name] for name in ("failed", "failures_by_kind", "failure_examples", "skipped_rows")},
            **{name: figures[name] for name in ("prompt_tokens", "completion_tokens", "cost")},
            **beside_the_cost(figures),
            "model": sampling.model_name,
            "dataset": dataset and dataset.path_or_name,
            "n": sampling.n,
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
            **_timing(directory, "inference", figures),
        }

    def _execution_phase(self, figures: dict[str, Any], directory: RunDirectory) -> dict[str, Any]:
        hidden = ("phase", "n", "skipped_rows", "this_entry", "not_asked_for")
        phase = {name: value for name, value in figures.items() if name not in hidden}
        sandbox, at_a_time = self.config.sandbox, self.config.reward.concurrency
        phase |= {"sandbox": figures["this_entry"]["sandbox"] or sandbox.backend, "sandbox_image": sandbox.image}
        phase |= {"setup_join": sandbox.setup_join, "concurrency": at_a_time or sandboxes_at_a_time()}
        phase |= {"shard": None if self.shard is None else str(self.shard)}
        return phase | _timing(directory, "execution", figures)


def _commands(directory: Path) -> ProjectedFile:
    return ProjectedFile(directory / COMMANDS, command_of)


def _owe_changed(commands: CommandsFile, directory: RunDirectory) -> None:
    """Owe again what was executed with another command than the file has now."""
    if not directory.results_path.exists():
        return
    with Journal(directory.results_path, owed_again=True) as results:
        stale = [line for line in results.rows() if _changed(line, commands)]
        if stale:
            results.append([_owed_again(line) for line in stale])


def _owe_changed_here(directory: RunDirectory) -> None:
    """The same, of the commands that this very directory holds."""
    if directory.results_path.exists() and (directory.path / COMMANDS).exists():
        _owe_changed(CommandsFile(directory.path / COMMANDS), directory)


def _changed(line: dict[str, Any], commands: CommandsFile) -> bool:
    key = str(line["id"]), int(line["response_index"])
    if line["status"] == "retry" or key not in commands.keys:
        return False
    return bool(commands.command_of(key) != line[SHELL.response])


def _owed_again(line: dict[str, Any]) -> Entry:
    status: Literal["retry"] = "retry"
    head = Head(line["id"], line["response_index"], line["position"], line["content"], status, line["cost"])
    gone = {SHELL.response: None, "error": "The command changed since it was executed.", SHELL.is_verified: None}
    body = {name: value for name, value in line.items() if name not in {"schema", CHECK, *Head._fields}} | gone
    return Entry(head, exact_json.dumps(body))


def _timing(directory: RunDirectory, phase: str, figures: dict[str, Any]) -> dict[str, Any]:
    """When a phase began and ended, and the seconds it took in all its entries that came to an end."""
    entries = [entry for entry in directory.phases if entry["phase"] in (phase, "both")]
    return {
        "seconds": _seconds(directory, figures, phase, "both"),
        "start_time": entries[0]["started"],
        "end_time": now(),
    }


def _seconds(directory: RunDirectory, figures: dict[str, Any], *phases: str) -> float:
    before = (float(entry.get("seconds", 0.0)) for entry in directory.phases if entry["phase"] in phases)
    return sum(before) + float(figures["this_entry"]["seconds"])


def _entry(figures: dict[str, Any]) -> dict[str, Any]:
    return {"this_entry": figures["this_entry"]}
