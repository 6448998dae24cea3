"""The command line. Each command is one module of `cli_commands`, imported only when it is called.

Exit codes: 0 done · 1 the run failed, or nothing could be judged · 2 wrong usage, configuration or data ·
3 stopped early by max_cost, can go on · 130 interrupted, can go on.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NamedTuple

import click

from reward_kit._version import __version__

__all__ = ["cli", "main"]


class _Entry(NamedTuple):
    """Where a command lives, and the line `--help` shows for it, so that help imports nothing."""

    module: str
    name: str
    summary: str


COMMANDS: dict[str, _Entry] = {
    "run": _Entry("run_eval_cmd", "run", "Generate n answers a prompt, judge them, keep everything."),
    "shell": _Entry("shell_cmd", "shell", "Have a model write shell commands, and run them in sandboxes."),
    "best-of-n": _Entry("best_of_n_cmd", "best_of_n", "Draw n candidates a query, verify them, write Parquet."),
    "export": _Entry("export_cmd", "export", "Turn judged answers into training data: SFT, pairs, KTO, GRPO."),
    "inspect": _Entry("inspect_cmd", "inspect", "Say what an experiment found, and how sure it is; compare."),
    "merge": _Entry("merge_cmd", "merge", "Join the results of runs that were spread over machines."),
    "rewards": _Entry("rewards_cmd", "rewards", "See which rewards there are, and try them on an answer."),
    "init": _Entry("init_cmd", "init", "Write a starter folder: reward, config, dataset, README."),
    "sandbox": _Entry("sandbox_cmd", "sandbox", "Serve sandboxes to other processes and machines."),
    "doctor": _Entry("doctor_cmd", "doctor", "Say what works on this machine, and what to install."),
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="reward-kit")
def cli() -> None:
    """Write rewards for language models, and evaluate with them.

    \b
    reward-kit init my_reward      a starter folder that runs as it is
    reward-kit run CONFIG.yaml     generate, judge, summarise; run it again to resume
    reward-kit COMMAND --help      what a command does, with examples
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; the only place that turns an error into an exit code and one sentence."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if sys.platform == "win32":
        sys.exit("Error: reward-kit needs Linux or macOS. On Windows, run it inside WSL.")
    try:
        code = cli.main(args=arguments, prog_name="reward-kit", standalone_mode=False)
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - the last boundary: ours become a sentence, bugs are raised again
        sys.exit(_report(error, verbose="--verbose" in arguments or "-v" in arguments))
    sys.exit(code if isinstance(code, int) else 0)


def _report(error: Exception, *, verbose: bool) -> int:
    """One sentence for an error of ours; anything else is a bug and keeps its traceback."""
    from reward_kit.errors import ConfigError, DatasetError, RewardKitError

    if verbose or not isinstance(error, RewardKitError):
        raise error
    click.echo(f"Error: {error}", err=True)
    return 2 if isinstance(error, ConfigError | DatasetError) else 1


if __name__ == "__main__":
    main()
