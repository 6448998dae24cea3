# SPDX-License-Identifier: Apache-2.0
"""`reward-kit run`: a Hydra config in, judged answers on disk out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click

from reward_kit.cli_commands.door_options import run_options
from reward_kit.cli_commands.floors import FLOOR, SHARE, Floor, asked_of, check_floors, read_floor, read_share
from reward_kit.cli_commands.options import NamedPath, completed_by
from reward_kit.cli_commands.output import (
    BELOW_FLOOR,
    NOTHING_JUDGED,
    answers_made,
    echo,
    echo_failing,
    echo_not_mirrored,
    echo_nothing_done,
    exit_code,
    name_settings,
    prints_on_stderr,
    same_command,
    show_logs,
)
from reward_kit.doors import AT_RUN
from reward_kit.stores.addresses import under

if TYPE_CHECKING:
    from reward_kit.cli_commands.display.run import Display
    from reward_kit.config_models import PipelineConfig
    from reward_kit.execution.pipeline import EvaluationPipeline
    from reward_kit.execution.result import RunResult

_Configs: TypeAlias = "list[tuple[str, PipelineConfig]]"
_Results: TypeAlias = "list[tuple[str, RunResult]]"

__all__ = ["run"]


@click.command()
@click.option("--config-path", type=NamedPath(path_type=Path), help="Directory of the config. Default: conf.")
@click.option("--config-name", help="Name of the config in that directory, with or without .yaml.")
@run_options(
    "phase", "rescore", "retry_failed", "keep_going", "overwrite", "detach", "resume_from_mirror", "dry_run", "quiet",
    "as_json", "verbose",
)  # fmt: skip
@click.option("-m", "--multirun", is_flag=True, help="Sweep: run once for every combination of a=1,2 b=x,y.")
@click.option(
    "--fail-under", "floors", type=read_floor, metavar=FLOOR, multiple=True,
    help="Exit with 4 unless mean_score, pass@K, metrics.NAME or judged (share of answers) is at least VALUE; with "
    ":low, unless the lower end of its 95 % interval is. Repeatable.",
)  # fmt: skip
@click.option(
    "--allow-unjudged", "allowed", type=read_share, metavar=SHARE,
    help="With --fail-under: the share of answers that may have failed. Default: none.",
)  # fmt: skip
@click.option("--junit", type=NamedPath(path_type=Path, dir_okay=False), help="Also write a JUnit XML report.")
@click.argument("overrides", nargs=-1, shell_complete=completed_by("complete_overrides"))
def run(
    config_path: Path | None, config_name: str | None, overrides: tuple[str, ...], multirun: bool, quiet: bool,
    as_json: bool, **flags: Any,
) -> None:  # fmt: skip
    """Generate n answers per prompt, judge them, and keep everything.

    Run the same command again after any interruption: it goes on where it was, and nothing is paid twice.

    \b
    reward-kit run conf/math.yaml
    reward-kit run --config-path conf --config-name math generation.n=8
    reward-kit run conf/math.yaml generation.model_name=local dataset.max_samples=20
    reward-kit run conf/math.yaml --dry-run
    reward-kit run conf/math.yaml -m generation.temperature=0.2,0.7,1.0
    reward-kit run conf/math.yaml --rescore reward.function_path=stricter.py:evaluate
    reward-kit run conf/math.yaml generation.transport=batch --detach
    reward-kit run conf/math.yaml output.mirror=s3://bucket/runs/one
    reward-kit run conf/math.yaml output.mirror=s3://bucket/runs/one --resume-from-mirror
    reward-kit run conf/math.yaml --fail-under mean_score=0.8:low --allow-unjudged 1% --junit report.xml
    reward-kit run +benchmark=gsm8k generation.model_name=NAME dataset.max_samples=20

    Exit codes: 0 done; 1 failed, or nothing could be judged; 2 wrong config or data; 3 stopped by max_cost;
    4 below a figure of --fail-under, or more answers failed than --allow-unjudged says; 5 done, but not all of it is in
    output.mirror; 6 left with batches under way (--detach); 7 the first 20 answers could not be judged, all for one
    reason; 130 interrupted.
    """
    show_logs(verbose=flags.pop("verbose"))
    name_settings(AT_RUN.spell)
    configs = _configs(config_path, config_name, overrides, multirun=multirun, quiet=quiet)
    gate = _Gate(flags.pop("floors"), flags.pop("allowed"), flags.pop("junit"))
    gate.check(flags["phase"], configs)
    display, dry_run = _display(quiet=quiet, as_json=as_json), flags.pop("dry_run")
    if dry_run:
        with prints_on_stderr(when=as_json):
            plans = [(label, _pipeline(config, **flags).plan()) for label, config in configs]
        display.show_plans(plans)
        return
    results: _Results = []
    try:
        for label, config in configs:
            display.announce(label, config)
            pipeline = _pipeline(config, **flags, reporter=display.reporter())
            with prints_on_stderr(when=as_json):
                result = pipeline.run()
            results.append((label, result))
            if result.status == "interrupted":
                break
    finally:
        if results:  # where a later job of a sweep fails, those before it have their say
            display.show_results(results)
            gate.report(results, configs)
    if _several_models(results) and flags["phase"] != "inference" and not (quiet or as_json):
        from reward_kit.cli_commands.several_models import show_comparison

        show_comparison([result.output_dir for _, result in results])
    for _, result in results:
        echo_failing(result, when=quiet)
    if results[-1][1].status != "finished":
        display.show_resume(same_command())
    code = max(_exit_code(result) for _, result in results)
    if code == NOTHING_JUDGED:
        echo_nothing_done("judged", next(result for _, result in results if _exit_code(result) == code).summary)
    sys.exit(code or gate.exit_code(results) or echo_not_mirrored(*(result.not_mirrored for _, result in results)))


def _configs(
    config_path: Path | None, config_name: str | None, overrides: tuple[str, ...], *, multirun: bool, quiet: bool
) -> list[tuple[str, PipelineConfig]]:
    from reward_kit.cli_commands.benchmark_configs import as_plain_run
    from reward_kit.cli_commands.config_paths import resolve_paths
    from reward_kit.cli_commands.hydra_config import compose_jobs, find_config
    from reward_kit.cli_commands.several_models import for_each_model
    from reward_kit.config_models import load_config
    from reward_kit.inherited_config import remark

    file, rest = find_config(config_path, config_name, overrides)
    jobs = compose_jobs(file, rest, sweep=multirun)
    if (ignored := [key for job in jobs for key in job.ignored]) and not quiet:
        echo(remark(ignored), err=True)
    for path in dict.fromkeys(path for job in jobs for path in job.left_out):
        echo(
            f"The config was written without {path}, a secret. Where it is needed, give it again: {path}=…",
            err=True,
        )
    configs = [
        (label, load_config(resolve_paths(values, file.directory)))
        for job in jobs
        for label, values in for_each_model(job.label, as_plain_run(job.values))
    ]
    return [(label, _in_own_directory(config, label)) for label, config in configs]


def _several_models(results: _Results) -> bool:
    return sum("generation.model_name=" in label for label, _ in results) > 1


def _in_own_directory(config: PipelineConfig, label: str) -> PipelineConfig:
    """Each job of a sweep gets a directory named after what was swept, so that it can be resumed."""
    if not label:
        return config
    directory = Path(config.output.output_dir, label.replace("/", "_"))
    changed: dict[str, Any] = {"output_dir": str(directory)}
    if config.output.mirror is not None:
        changed["mirror"] = under(config.output.mirror, directory.name)
    return config.model_copy(update={"output": config.output.model_copy(update=changed)})


def _pipeline(config: PipelineConfig, **options: Any) -> EvaluationPipeline:
    from reward_kit.execution.pipeline import EvaluationPipeline

    return EvaluationPipeline(config, **options)


def _display(*, quiet: bool, as_json: bool) -> Display:
    from reward_kit.cli_commands.display.run import Display

    return Display(quiet=quiet, as_json=as_json)


def _exit_code(result: RunResult) -> int:
    return exit_code(result.status, answers_made(result))


class _Gate(NamedTuple):
    """What CI asks of a command: figures that must be reached, and a report."""

    floors: tuple[Floor, ...]
    allowed: float | None
    """The share of answers that may have failed, where somebody said so."""
    junit: Path | None

    def check(self, phase: str, configs: _Configs) -> None:
        """Refuse what these runs cannot give, before anything is paid for."""
        if phase == "inference" and (self.floors or self.junit is not None):
            raise click.UsageError(
                "--fail-under and --junit need scores, which --phase inference does not make. Leave them out, or "
                "choose another --phase."
            )
        if self.allowed is not None and not self.floors:
            raise click.UsageError(
                "--allow-unjudged says what --fail-under lets pass. Add a --fail-under, or leave it out."
            )
        for _, config in configs:
            check_floors(self.floors, config)
        if self.junit is not None:
            from reward_kit.cli_commands.junit import check_junit

            check_junit(self.junit, [Path(config.output.output_dir) for _, config in configs])

    def report(self, results: _Results, configs: _Configs) -> None:
        """Write the report, where one is wanted."""
        if self.junit is None:
            return
        from reward_kit.cli_commands.junit import Suite, write_junit

        rewards, asked = {label: config.reward for label, config in configs}, asked_of(self.floors, self.allowed)
        write_junit(
            self.junit,
            [Suite(label or result.output_dir.name, result, rewards[label], asked) for label, result in results],
        )

    def exit_code(self, results: _Results) -> int:
        """Say which figures are too low, also to those who asked for quiet, and how the command ends for it."""
        found = [
            (label, floor.shortfall(result))
            for label, result in results
            for floor in asked_of(self.floors, self.allowed)
        ]
        below = [f"{label}: {why}" if label else why for label, why in found if why is not None]
        for why in below:
            echo(f"Error: {why}", err=True)
        return BELOW_FLOOR if below else 0
