# SPDX-License-Identifier: Apache-2.0
"""`reward-kit agent-eval`: tasks of an agent, defined in files, played and judged."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reward_kit.cli_commands.door_options import COMMAND_LINE, door_options, given_settings, run_options, split_words
from reward_kit.cli_commands.options import NamedPath
from reward_kit.cli_commands.output import (
    NOTHING_JUDGED,
    answers_made,
    echo,
    echo_nothing_done,
    exit_code,
    in_own_words,
    name_settings,
    print_json,
    prints_on_stderr,
    same_command,
    show_logs,
)
from reward_kit.doors import AT_AGENT_EVAL

if TYPE_CHECKING:
    from reward_kit.execution.agent_tasks.manager import TaskManager
    from reward_kit.execution.engine import Reporter

__all__ = ["agent_eval"]

_FOR_ALL_TASKS = ("output.output_dir", "agent.concurrency")
"""Settings that are not those of one task alone."""
_LISTS = ("individual_results", "detailed_results", "successful_results", "failed_results")


@click.command("agent-eval")
@click.option(
    "--task-def", required=True, type=NamedPath(path_type=Path), help="A task's YAML or JSON file, or a directory."
)
@click.option("--parallel", is_flag=True, help="Evaluate several tasks at a time.")
@click.option("--filter", "names", multiple=True, metavar="NAME...", help="Only the tasks of these names.")
@door_options(AT_AGENT_EVAL)
@run_options("rescore", "retry_failed", "keep_going", "quiet", "as_json", "verbose", items="episodes")
@click.pass_context
def agent_eval(
    context: click.Context, /, task_def: Path, parallel: bool, names: tuple[str, ...], quiet: bool, as_json: bool,
    verbose: bool, **flags: Any,
) -> None:  # fmt: skip
    """Play the tasks of an agent and judge them.

    Any setting of a run may be given as key=value; it counts before the files of the tasks, for all of them. Run the
    same command again after any interruption: it goes on where it was, and nothing is paid twice.

    \b
    reward-kit agent-eval --task-def task.yaml --model openai/gpt-4.1-mini
    reward-kit agent-eval --task-def tasks/ --parallel --max-concurrency 8 --num-rollouts 4
    reward-kit agent-eval --task-def tasks/ --filter refund cancel
    reward-kit agent-eval --task-def task.yaml generation.temperature=0 agent.max_turns=12

    Exit codes: 0 done; 1 failed, or no episode of a task could be judged; 2 wrong definition;
    7 the first 20 episodes could not be judged, all for the same reason; 130 interrupted.
    """
    from reward_kit.config_models import AgentConfig, OutputConfig, validated

    show_logs(verbose=verbose)
    name_settings(AT_AGENT_EVAL.spell)
    words, more = split_words(flags["words"])
    if more and not names:
        raise click.UsageError(f"Got an unexpected argument {more[0]!r}. Name tasks with --filter.")
    settings = given_settings(context, AT_AGENT_EVAL, words)
    place, most = (settings.pop(place, AT_AGENT_EVAL.default_of(place)) for place in _FOR_ALL_TASKS)
    output_dir = validated(OutputConfig, {"output_dir": place}, COMMAND_LINE, section="output").output_dir
    at_a_time = validated(AgentConfig, {"concurrency": most}, COMMAND_LINE, section="agent").concurrency
    manager = _manager(
        task_def, (*names, *more), output_dir=output_dir, settings=settings,
        **{name: flags[name] for name in ("rescore", "retry_failed", "keep_going")},
    )  # fmt: skip
    manager.report_to(_reporter(quiet=quiet or as_json or (parallel and len(manager.tasks) > 1)))
    with prints_on_stderr(when=as_json):
        figures = asyncio.run(_evaluated(manager, parallel, at_a_time))
    if as_json:
        told = {name: {key: one[key] for key in one if key not in _LISTS} for name, one in figures.items()}
        print_json(told)
    for name, one in figures.items():
        if "score" not in one:
            echo(_line(name, one), err=True)
        elif not (quiet or as_json):
            echo(_line(name, one))
    if not (quiet or as_json):
        echo(f"Files: {output_dir}")
    sys.exit(_exit_code(manager, figures))


def _manager(task_def: Path, names: tuple[str, ...], **options: Any) -> TaskManager:
    from reward_kit.errors import ConfigError
    from reward_kit.execution.agent_tasks.definition import load_task, task_files
    from reward_kit.execution.agent_tasks.manager import TaskManager

    manager = TaskManager(**options)
    for file in task_files(task_def):
        task = load_task(file)
        if task.name in manager.tasks:
            raise ConfigError(f"Two tasks in {str(task_def)!r} are called {task.name!r}. Rename one.")
        manager.register_task(task)
    if not manager.tasks:
        raise ConfigError(f"The directory {str(task_def)!r} has no task definition: no .yaml, .yml or .json file.")
    if missing := [name for name in names if name not in manager.tasks]:
        raise ConfigError(f"There is no task {missing[0]!r}; there are: {', '.join(manager.tasks)}.")
    if names:
        manager.tasks = {name: manager.tasks[name] for name in manager.tasks if name in names}
    return manager


def _reporter(*, quiet: bool) -> Reporter | None:
    """What shows progress; nothing where several runs would write over each other."""
    from reward_kit.cli_commands.display.run import Display

    return Display(quiet=quiet, as_json=False).reporter()


async def _evaluated(manager: TaskManager, parallel: bool, at_a_time: int) -> dict[str, Any]:
    try:
        return await manager.execute_tasks(parallel=parallel, max_concurrency=at_a_time)
    finally:
        await manager.cleanup()


def _line(name: str, figures: dict[str, Any]) -> str:
    if "score" not in figures:
        return f"{name}: {in_own_words(figures['error'])}"
    judged, failed = figures["successful_rollouts"], figures["failed_rollouts"]
    more = f", {failed} failed" if failed else ""
    return f"{name}: mean score {figures['score']:.3f} of {judged} episodes{more}"


def _exit_code(manager: TaskManager, figures: dict[str, Any]) -> int:
    codes = [exit_code(run.status, answers_made(run)) for run in manager.runs.values()]
    if any(run.status != "finished" for run in manager.runs.values()):
        echo(f"To go on: {same_command()}", err=True)
    for name, one in figures.items():
        if "score" not in one and name in manager.runs:
            echo_nothing_done("judged", manager.runs[name].summary)
    unrun = [name for name in figures if name not in manager.runs]
    return max([*codes, *([NOTHING_JUDGED] if unrun or not figures else [])], default=0)
