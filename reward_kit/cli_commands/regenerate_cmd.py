# SPDX-License-Identifier: Apache-2.0
"""`reward-kit regenerate`: a model answers stored prompts again; old and new answers are judged and compared."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reward_kit.cli_commands.door_options import door_options, given_settings, run_options
from reward_kit.cli_commands.options import NamedPath
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
from reward_kit.doors import AT_REGENERATE

if TYPE_CHECKING:
    from reward_kit.regenerating import Regenerated

__all__ = ["regenerate"]


@click.command()
@click.argument("stored", type=NamedPath(path_type=Path, exists=True))
@door_options(AT_REGENERATE)
@run_options("rescore", "retry_failed", "keep_going", "quiet", "as_json", "verbose")
@click.pass_context
def regenerate(context: click.Context, /, stored: Path, **flags: Any) -> None:
    """Let a model answer stored prompts again, and see whether its answers are better than the stored ones.

    STORED is the directory of a run, or a file with answers: conversations that end with the assistant's turn, or
    prompts with an `assistant_response`. Old and new answers are judged by the same reward and compared prompt by
    prompt, so that hard prompts weigh the same on both sides. Run the same command again after any interruption: it
    goes on where it was, and nothing is paid twice. Raise -n to pay only for the answers that are new. A smaller -n, or
    other stored answers, need another output directory. Without --reward, the reward of the stored run judges. Any
    setting of a run may be given as key=value, which counts before a flag.

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
    from reward_kit.evaluating import as_keywords
    from reward_kit.regenerating import regenerate as answer_again
    from reward_kit.regenerating import reward_of

    show_logs(verbose=flags["verbose"])
    name_settings(AT_REGENERATE.spell)
    display = Display(quiet=flags["quiet"], as_json=flags["as_json"])
    keywords = as_keywords(given_settings(context, AT_REGENERATE))
    if keywords.get("reward") is None and not flags["quiet"] and (known := reward_of(stored)) is not None:
        echo(f"Both sides are judged by {known}, the reward of the stored run.", err=True)
    again = {name: flags[name] for name in ("rescore", "retry_failed", "keep_going")}
    with prints_on_stderr(when=flags["as_json"]):
        found = answer_again(stored, progress=display.reporter() or False, **again, **keywords)
    _show(found, quiet=flags["quiet"], as_json=flags["as_json"])
    if found.new.status != "finished":
        display.show_resume(same_command())
    code = exit_code(found.new.status, min(found.old.judged, found.new.judged))
    if code == NOTHING_JUDGED:
        side = found.old if not found.old.judged else found.new
        echo_nothing_done("judged", side.summary)
    sys.exit(code)


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
