# SPDX-License-Identifier: Apache-2.0
"""The command line. Each command is one module of `cli_commands`, imported only when it is called.

Exit codes: 0 done · 1 the run failed, or nothing could be judged · 2 wrong usage, configuration or data ·
3 stopped early by max_cost, can go on · 4 figures below --fail-under · 5 not all in the mirror ·
6 batches under way (--detach), can go on · 7 the first answers failed alike, can go on ·
130 interrupted, can go on.
"""

from __future__ import annotations

import os
import sys
import traceback
from contextvars import copy_context
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import click

from reward_kit._version import __version__
from reward_kit.cli_commands.dotenv import read_dotenv
from reward_kit.cli_commands.garbage import collect_rarely
from reward_kit.cli_commands.options import check_arguments
from reward_kit.redaction import remember_arguments, remember_environment

__all__ = ["cli", "main"]


class _Entry(NamedTuple):
    """Where a command lives, and the line `--help` shows for it, so that help imports nothing."""

    module: str
    name: str
    summary: str


COMMANDS: dict[str, _Entry] = {
    "run": _Entry("run_eval_cmd", "run", "Generate n answers per prompt, judge them, keep everything."),
    "shell": _Entry("shell_cmd", "shell", "Let a model write shell commands, and run them in sandboxes."),
    "best-of-n": _Entry("best_of_n_cmd", "best_of_n", "Draw n candidates per query, verify them, write Parquet."),
    "agent-eval": _Entry("agent_eval_cmd", "agent_eval", "Let an agent do tasks from files, and judge the result."),
    "regenerate": _Entry("regenerate_cmd", "regenerate", "Let a model answer stored prompts again, and compare."),
    "export": _Entry("export_cmd", "export", "Turn judged answers into training data: SFT, pairs, KTO, GRPO."),
    "inspect": _Entry("inspect_cmd", "inspect", "Show the figures of runs, with intervals, and compare runs."),
    "view": _Entry("view_cmd", "view", "Show runs, answers and verdicts in the browser."),
    "report": _Entry("report_cmd", "report", "Write runs into one HTML file that you can send."),
    "review": _Entry("review_cmd", "review", "Review verdicts, and see how often people agree with them."),
    "trajectory": _Entry("trajectory_cmd", "trajectory", "Print an agent's episode, step by step."),
    "merge": _Entry("merge_cmd", "merge", "Join the results of runs that were spread over machines."),
    "serve": _Entry("serve_cmd", "serve", "Serve rewards over HTTP, to trainers and others."),
    "deploy": _Entry("deploy_cmd", "deploy", "Deploy a reward, so that others can call it."),
    "deploy-mcp": _Entry(
        "deploy_mcp_cmd", "deploy_mcp", "Deploy an MCP server, such as an agent's world, to Cloud Run."
    ),
    "secrets": _Entry("secrets_cmd", "secrets", "Keep secret values that deployed rewards need."),
    "rewards": _Entry("rewards_cmd", "rewards", "List the rewards, and try them on an answer."),
    "preview": _Entry("preview_cmd", "preview", "Judge a few samples with a reward, and print the verdicts."),
    "jobs": _Entry("jobs_cmd", "jobs", "Train and evaluate at Fireworks; follow the jobs."),
    "benchmarks": _Entry("benchmarks_cmd", "benchmarks", "See the benchmarks that can be run by name."),
    "datasets": _Entry("datasets_cmd", "datasets", "See the rows of a dataset as a run will see them."),
    "prices": _Entry("prices_cmd", "prices", "List the models whose price is known."),
    "init": _Entry("init_cmd", "init", "Write a starter folder: reward, config, dataset, README."),
    "examples": _Entry("examples_cmd", "examples", "List the example folders, and copy one to try it."),
    "batches": _Entry("batches_cmd", "batches", "See a run's batches at the provider, or end them."),
    "sandbox": _Entry("sandbox_cmd", "sandbox", "Serve sandboxes to other processes and machines."),
    "mock": _Entry("mock_cmd", "mock", "Serve scripted answers and faults like a model's endpoint."),
    "doctor": _Entry("doctor_cmd", "doctor", "Say what works on this machine, and what to install."),
    "completion": _Entry("completion_cmd", "completion", "Let the Tab key complete files, keys and rewards."),
    "cache": _Entry("cache_cmd", "cache", "Look at the response cache, or make it smaller."),
}
"""Every command, in the order `--help` lists them."""


class _LazyGroup(click.Group):
    """A group that imports a command's module when the command is called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = vars(import_module(f"reward_kit.cli_commands.{entry.module}"))[entry.name]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"{error.message}{hint}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="reward-kit")
@click.option("-v", "--verbose", is_flag=True, help="The same as --verbose after the command.")
@click.pass_context
def cli(ctx: click.Context, verbose: bool) -> None:
    """Write rewards for language models, and evaluate with them.

    \b
    reward-kit init my_reward      write a starter folder that you can run at once
    reward-kit run CONFIG.yaml     generate, judge, summarise; run it again to resume
    reward-kit COMMAND --help      show what a command does, with examples

    A file .env in the current directory is read. Variables that the environment has already are not changed.
    """
    if verbose:
        ctx.default_map = {name: {"verbose": True} for name in COMMANDS}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. What a command says of itself is forgotten at its end: a process may run several."""
    copy_context().run(_run, arguments)


def _run(arguments: list[str] | None) -> None:
    """Run one command; the only place that turns an error into an exit code and one sentence."""
    collect_rarely()
    _open_standard_streams()
    arguments = sys.argv[1:] if arguments is None else arguments
    if "_REWARD_KIT_COMPLETE" not in os.environ:
        read_dotenv()
    remember_environment()
    remember_arguments(arguments)
    if sys.platform == "win32":
        sys.exit("Error: reward-kit needs Linux or macOS. On Windows, run it inside WSL.")
    if "_REWARD_KIT_COMPLETE" in os.environ:  # somebody pressed Tab
        from reward_kit.cli_commands.completion import register_shells

        register_shells()
    try:
        check_arguments(arguments)
        code = cli.main(args=arguments, prog_name="reward-kit", standalone_mode=False)
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except click.ClickException as error:
        sys.exit(_report_usage(error))
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted. Run the same command again to go on.", err=True)
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - the last boundary: everything becomes a sentence
        sys.exit(_report(error, verbose="--verbose" in arguments or "-v" in arguments))
    sys.exit(code if isinstance(code, int) else 0)


def _open_standard_streams() -> None:
    """Put nothing in the place of standard streams that were closed: a socket in their place ends the event loop."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if vars(sys)[name] is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115


def _report_usage(error: click.ClickException) -> int:
    """What click found wrong with the command line, where help is, and the exit code of click."""
    from reward_kit.cli_commands.output import echo, echo_error

    if isinstance(error, click.UsageError) and error.ctx is not None:
        echo(error.ctx.get_usage(), err=True)
    echo_error(f"{error.format_message()}{_see_help(error)}")
    return error.exit_code


def _see_help(error: click.ClickException) -> str:
    """The end of an error's sentence: which command shows what to write. Empty where the error names it itself."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None or context.command.get_help_option(context) is None or "--help" in error.format_message():
        return ""
    stop = "" if error.format_message().endswith((".", "!", "?")) else "."
    return f"{stop} See `{context.command_path} {context.help_option_names[-1]}`."


def _report(error: Exception, *, verbose: bool) -> int:
    """One sentence, and the traceback where it was asked for. An error that is not of ours is a bug, and says so."""
    from reward_kit.cli_commands.output import FAILING, echo, echo_error, shown
    from reward_kit.errors import ConfigError, DatasetError, RewardKitError, SameFailureError
    from reward_kit.redaction import mask

    if verbose:
        echo("\n".join(map(shown, mask("".join(traceback.format_exception(error))).splitlines())), err=True)
    if type(error).__name__ == "ValidationError":  # pydantic's, by its name: help must not import it
        from reward_kit.config_models import as_config_error

        error = as_config_error(error)
    if isinstance(error, RewardKitError):
        echo_error(str(error))
        if isinstance(error, SameFailureError):
            return FAILING
        return 2 if isinstance(error, ConfigError | DatasetError) else 1
    if isinstance(error, OSError):  # a full disk, a name too long, a folder taken away: nobody's bug
        place = "" if error.filename is None else f" {str(error.filename)[:200]!r}"
        echo_error(
            f"The system reports{place}: {error.strerror or error}. Solve this problem, or name another file or folder."
        )
        return 1
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" in {Path(last[0].filename).name}, line {last[0].lineno}" if last else ""
    advice = "report it with the traceback above" if verbose else "add --verbose to see where, and report it"
    echo_error(
        f"This is a bug in reward-kit, not a mistake of yours: {type(error).__name__}{where}: {error}. Please {advice}."
    )
    return 1


if __name__ == "__main__":
    main()
