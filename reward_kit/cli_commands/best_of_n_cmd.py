# SPDX-License-Identifier: Apache-2.0
"""`reward-kit best-of-n`: an experiment's YAML in, a Parquet file of verified candidates out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reward_kit.cli_commands.door_options import door_options, given_settings, run_options
from reward_kit.cli_commands.options import NamedPath
from reward_kit.cli_commands.output import (
    NOTHING_JUDGED,
    answers_made,
    echo_failing,
    echo_not_mirrored,
    echo_nothing_done,
    exit_code,
    name_settings,
    prints_on_stderr,
    show_logs,
)
from reward_kit.doors import AT_BEST_OF_N, nested

if TYPE_CHECKING:
    from reward_kit.execution.best_of_n import BestOfN

__all__ = ["best_of_n"]


@click.command("best-of-n")
@click.option("-c", "--config", type=NamedPath(path_type=Path), help="The experiment's YAML file.")
@door_options(AT_BEST_OF_N)
@run_options(
    "phase", "overwrite", "rescore", "retry_failed", "keep_going", "detach", "resume_from_mirror", "dry_run", "quiet",
    "as_json", "verbose", rows="queries", judge="verify", judged="verified",
)  # fmt: skip
@click.pass_context
def best_of_n(context: click.Context, /, **flags: Any) -> None:
    """Draw n candidates for each query of each split, verify them, and write one Parquet file.

    The config file holds the settings; a flag counts before the file, and key=value before a flag. Any setting of a run
    may be given as key=value. Run the same command again after any interruption: it goes on where it was, and nothing
    is paid twice. If you raise --num-candidates or --max-queries later, you pay only for the new candidates.

    \b
    reward-kit best-of-n --config experiments/baseline.yaml
    reward-kit best-of-n --config experiments/baseline.yaml --model gpt-6-luna --max-queries 200
    reward-kit best-of-n --config experiments/baseline.yaml generation.api_params.rate_limit_qps=5 --dry-run
    reward-kit best-of-n --dataset data.jsonl --splits math --model local -n 4 -o out.parquet
    reward-kit best-of-n -c stem.yaml --verifier stem=my_rewards.py:multiple_choice
    reward-kit best-of-n --dataset answered.jsonl --splits math --response-column model_answer -o out.parquet
    reward-kit inspect experiments/results/baseline_run.parquet

    Exit codes: 0 done; 1 failed, or nothing could be verified; 2 wrong usage or data; 3 stopped by max_cost;
    5 done, but not all of it is in the mirror; 6 left with batches under way (--detach);
    7 the first 20 answers could not be verified, all for the same reason; 130 interrupted.
    """
    from reward_kit.cli_commands.display.best_of_n import ExperimentDisplay

    show_logs(verbose=flags["verbose"])
    display = ExperimentDisplay(quiet=flags["quiet"], as_json=flags["as_json"])
    name_settings(AT_BEST_OF_N.spell)
    experiment = _experiment(flags["config"], given_settings(context, AT_BEST_OF_N))
    if flags["dry_run"]:
        with prints_on_stderr(when=flags["as_json"]):
            plans = experiment.plan()
        display.show_plan(plans)
        return
    display.announce(experiment.experiment)
    names = ("phase", "overwrite", "rescore", "retry_failed", "keep_going", "resume_from_mirror", "detach")
    options = {name: flags[name] for name in names}
    with prints_on_stderr(when=flags["as_json"]):
        result = experiment.run(display.reporter(), **options)
    display.show(result)
    echo_failing(result.run, when=flags["quiet"])
    code = exit_code(result.run.status, answers_made(result.run))
    if code == NOTHING_JUDGED:
        echo_nothing_done("verified", result.run.summary)
    sys.exit(code or echo_not_mirrored(result.run.not_mirrored))


def _experiment(file: Path | None, given: dict[str, Any]) -> BestOfN:
    from reward_kit.cli_commands.config_paths import resolve_paths
    from reward_kit.execution.best_of_n import BestOfN
    from reward_kit.execution.best_of_n.experiment import load_experiment, read_experiment_file

    name = "The experiment" if file is None else f"The experiment {str(file)!r}"
    values: dict[str, Any] = {}
    if file is not None:
        found = nested(AT_BEST_OF_N.settings(read_experiment_file(file), name))
        values = AT_BEST_OF_N.settings(resolve_paths(found, file.parent), name)
    verifiers = values.get("reward.by_split")
    if isinstance(verifiers, dict) and "dataset.split" in given:
        values["reward.by_split"] = _still_asked_for(verifiers, values.get("dataset.split"), given["dataset.split"])
    if isinstance(verifiers, dict) and "reward.by_split" in given:
        given["reward.by_split"] = values["reward.by_split"] | given["reward.by_split"]
    experiment = load_experiment(values | given, name)
    return BestOfN(experiment, config_file=None if file is None else str(file))


def _still_asked_for(verifiers: dict[str, Any], before: Any, now: Any) -> dict[str, Any]:
    """The file's verifiers without those of splits that the command line leaves out."""
    left_out = _listed(before) - _listed(now)
    return {split: who for split, who in verifiers.items() if split not in left_out}


def _listed(splits: Any) -> set[str]:
    names = splits.split(",") if isinstance(splits, str) else splits if isinstance(splits, list) else []
    return {str(name).strip() for name in names}
