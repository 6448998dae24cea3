# SPDX-License-Identifier: Apache-2.0
"""`reward-kit regenerate`: a model answers stored prompts again; old and new answers are judged and compared."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reward_kit.cli_commands.options import MOST, FiniteRange, NamedPath, completed_by
from reward_kit.cli_commands.output import (
    NOTHING_JUDGED,
    echo,
    echo_nothing_done,
    exit_code,
    failure_lines,
    name_settings,
    print_json,
    prints_on_stderr,
    remarks,
    same_command,
    show_logs,
)

if TYPE_CHECKING:
    from reward_kit.regenerating import Regenerated

__all__ = ["SETTINGS", "regenerate"]

SETTINGS = {
    "dataset.on_bad_row": "--on-bad-row",
    "dataset.path_or_name": "STORED",
    "generation.api_base": "--base-url",
    "generation.api_key_env": "--api-key-env",
    "generation.max_tokens": "--max-tokens",
    "generation.mock.function_path": "--mock",
    "generation.model_name": "--model",
    "generation.n": "-n",
    "generation.temperature": "--temperature",
    "judge.api_base": "--judge-base-url",
    "judge.api_key_env": "--judge-api-key-env",
    "judge.model_name": "--judge-model",
    "max_cost": "--max-cost",
    "output.output_dir": "--output-dir",
    "rescore": "--rescore",
    "keep_going": "--keep-going",
    "retry_failed": "--retry-failed",
    "reward.function_path": "--reward",
    "reward.params": "--param",
}
"""The flag or argument of each setting that a message may name."""

_GENERATION = ("api_base", "api_key_env", "max_tokens", "temperature")
_JUDGE = {"judge_model": "model_name", "judge_base_url": "api_base", "judge_api_key_env": "api_key_env"}


@click.command()
@click.argument("stored", type=NamedPath(path_type=Path, exists=True))
@click.option(
    "-r", "--reward", shell_complete=completed_by("complete_rewards"),
    help="What judges both sides: a reward's name, or its import path, such as my_rewards.py:correct. Default: the "
    "reward of the stored run, with its settings.",
)  # fmt: skip
@click.option(
    "-p", "--param", "params", multiple=True, metavar="KEY=VALUE",
    help="A parameter of the reward; the value is read as YAML. Repeatable.",
)  # fmt: skip
@click.option(
    "--model", required=True, shell_complete=completed_by("complete_models"),
    help="PROVIDER/NAME (fireworks/NAME); a model the endpoint knows; `local`; or `mock` for answers without a model.",
)  # fmt: skip
@click.option("--base-url", "--api-base", "api_base", help="An OpenAI-compatible endpoint.")
@click.option("--api-key-env", help="The environment variable that holds the endpoint's key.")
@click.option(
    "-n", "n", type=click.IntRange(1, 1_000_000), default=1, show_default=True, help="New answers per prompt."
)
@click.option("--temperature", type=FiniteRange(min=0), help="How freely tokens are drawn.")
@click.option("--max-tokens", type=click.IntRange(1, MOST), help="Of one answer.")
@click.option("--mock", help="For the model `mock`: the path of a function (messages, draw).")
@click.option("--judge-model", help="The model that the reward asks for verdicts, where it asks one.")
@click.option("--judge-base-url", "--judge-api-base", help="The endpoint of that model.")
@click.option("--judge-api-key-env", help="The environment variable that holds the key of that endpoint.")
@click.option("--max-cost", type=FiniteRange(min=0), help="Stop, resumably, before the new answers cost more.")
@click.option(
    "-o", "--output-dir", type=NamedPath(path_type=Path, file_okay=False), required=True,
    help="Where both sides are kept, as the runs `old` and `new`. The same directory again goes on there.",
)  # fmt: skip
@click.option(
    "--on-bad-row", type=click.Choice(["error", "skip"]), default="error", show_default=True,
    help="error: stop at a row of STORED that holds no answer. skip: leave it out.",
)  # fmt: skip
@click.option("--retry-failed", is_flag=True, help="Retry all failed items, permanent failures included.")
@click.option("--keep-going", is_flag=True, help="Go on where the first 20 answers all fail to be judged in one way.")
@click.option("--rescore", is_flag=True, help="Judge what is in the output directory with another reward.")
@click.option("-q", "--quiet", is_flag=True, help="No progress; the comparison alone.")
@click.option("--json", "as_json", is_flag=True, help="Print both summaries and the comparison as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens, and show tracebacks.")
def regenerate(stored: Path, **flags: Any) -> None:
    """Let a model answer stored prompts again, and see whether its answers are better than the stored ones.

    STORED is the directory of a run, or a file with answers: conversations that end with the assistant's turn, or
    prompts with an `assistant_response`. Old and new answers are judged by the same reward and compared prompt by
    prompt, so that hard prompts weigh the same on both sides. Run the same command again after any interruption: it
    goes on where it was, and nothing is paid twice. Raise -n to pay only for the answers that are new. A smaller -n, or
    other stored answers, need another output directory. Without --reward, the reward of the stored run judges.

    An agent's episodes cannot be answered again: run both models with `reward-kit run`, and compare with
    `reward-kit inspect`.

    \b
    reward-kit regenerate answers.jsonl --reward math --model fireworks/qwen3-8b -n 4 -o outputs/again
    reward-kit regenerate outputs/my_run --model gpt-6-luna -o outputs/luna
    reward-kit regenerate answers.jsonl --reward judge -p rubric='Is it polite?' --judge-model gpt-6-luna \\
        --model NAME --base-url http://localhost:8000/v1 -o outputs/polite
    reward-kit inspect outputs/again/old outputs/again/new

    Exit codes: 0 done; 1 failed, or one side has nothing that could be judged; 2 wrong usage or data; 3 stopped by
    --max-cost; 7 the first 20 answers could not be judged, all for the same reason; 130 interrupted.
    """
    from reward_kit.cli_commands.display.run import Display
    from reward_kit.cli_commands.reward_trial import read_params
    from reward_kit.regenerating import regenerate as answer_again
    from reward_kit.regenerating import reward_of

    show_logs(verbose=flags["verbose"])
    name_settings(SETTINGS)
    display = Display(quiet=flags["quiet"], as_json=flags["as_json"])
    if flags["reward"] is None and not flags["quiet"] and (known := reward_of(stored)) is not None:
        echo(f"Both sides are judged by {known}, the reward of the stored run.", err=True)
    with prints_on_stderr(when=flags["as_json"]):
        found = answer_again(
            stored, flags["reward"], model=flags["model"], n=flags["n"], params=read_params(flags["params"]),
            dataset={"on_bad_row": flags["on_bad_row"]}, output_dir=flags["output_dir"], rescore=flags["rescore"],
            retry_failed=flags["retry_failed"], keep_going=flags["keep_going"],
            progress=display.reporter() or False, **_settings(flags),
        )  # fmt: skip
    _show(found, quiet=flags["quiet"], as_json=flags["as_json"])
    if found.new.status != "finished":
        display.show_resume(same_command())
    code = exit_code(found.new.status, min(found.old.judged, found.new.judged))
    if code == NOTHING_JUDGED:
        side = found.old if not found.old.judged else found.new
        echo_nothing_done("judged", side.summary)
    sys.exit(code)


def _settings(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags that were given, as `evaluate` takes them."""
    settings = {name: flags[name] for name in (*_GENERATION, "max_cost") if flags[name] is not None}
    if flags["mock"] is not None:
        settings["mock"] = {"function_path": flags["mock"]}
    if judge := {key: flags[flag] for flag, key in _JUDGE.items() if flags[flag] is not None}:
        settings["judge"] = judge
    return settings


def _show(found: Regenerated, *, quiet: bool, as_json: bool) -> None:
    if as_json:
        from reward_kit.analysis import as_json as comparison_as_json

        old, new = ({"status": run.status, **run.summary} for run in (found.old, found.new))
        del old["n"]  # of answers that are drawn; prompts may have any number of stored ones
        print_json(
            {
                "old": old,
                "new": new,
                "comparison": json.loads(comparison_as_json(found.comparison)),
                "conclusion": found.conclusion,
            }
        )
        return
    echo("\n".join(found.lines()))
    if not quiet:
        for summary in (found.old.summary, found.new.summary):
            for line in (*failure_lines(summary), *remarks(summary)):
                echo(f"  {line}", err=True)
        if found.was_complete:
            echo("  Already complete; nothing to do.", err=True)
        echo(f"  See every answer: reward-kit inspect {found.old.output_dir} {found.new.output_dir}", err=True)
