# SPDX-License-Identifier: Apache-2.0
"""`reward-kit rewards`: see which rewards there are, what each says of itself, and what it says of an answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reward_kit.cli_commands.options import FiniteNumber, FiniteRange, NamedPath, completed_by
from reward_kit.cli_commands.output import echo, echo_json, in_own_words, name_settings, prints_on_stderr
from reward_kit.doors import Door

if TYPE_CHECKING:
    from reward_kit.cli_commands.reward_trial import Trial
    from reward_kit.rewards.catalogue import RewardEntry
    from reward_kit.scoring.cases import CaseOutcome

__all__ = ["rewards"]

_SUMMARY_WIDTH = 78


@click.group()
def rewards() -> None:
    """List the rewards, and try them on an answer.

    You can write a reward's NAME wherever its import path is allowed, such as `reward.function_path: math` in a config;
    the ending
    `_reward` may be left out. Packages add names by entry points in the group `reward_kit.rewards`.

    \b
    reward-kit rewards list
    reward-kit rewards show math
    reward-kit rewards try math --answer 'So it is \\boxed{72}.' --ground-truth 72
    reward-kit rewards check math cases.jsonl
    """


@rewards.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print the full description of every reward as JSON.")
def list_(as_json: bool) -> None:
    """List every reward with what its score means."""
    from reward_kit.rewards.catalogue import entries, unmet_needs

    found = entries()
    if as_json:
        echo_json(json.dumps([entry._asdict() for entry in found], indent=2, ensure_ascii=False))
        return
    width = max(len(entry.name) for entry in found)
    for entry in found:
        missing = "".join(f" [needs {need}]" for need in unmet_needs(entry))
        echo(f"{entry.name:<{width}}  {_shortened(entry.summary)}{missing}")


def _shortened(text: str) -> str:
    return text if len(text) <= _SUMMARY_WIDTH else text[: _SUMMARY_WIDTH - 1].rsplit(" ", 1)[0] + " …"


@rewards.command()
@click.argument("name", shell_complete=completed_by("complete_rewards"))
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def show(name: str, as_json: bool) -> None:
    """Show what is known about a reward: parameters, metrics, cost, what it does not detect, an example.

    NAME is a reward's name, or the import path of one of your own.
    """
    entry = _described(name)
    if as_json:
        echo_json(json.dumps(entry._asdict(), indent=2, ensure_ascii=False))
    else:
        echo("\n\n".join(part for part in _parts(entry) if part))


def _described(name: str) -> RewardEntry:
    from reward_kit.errors import ConfigError
    from reward_kit.rewards.catalogue import describe

    try:
        return describe(name)
    except ImportError as error:
        raise ConfigError(str(error)) from error


def _parts(entry: RewardEntry) -> list[str]:
    from reward_kit.rewards.catalogue import unmet_needs

    missing = unmet_needs(entry)
    labelled = {
        "Metrics": entry.metrics,
        "Needs": "; ".join(need + " (not here)" * (need in missing) for need in entry.needs),
        "Handed by a run": ", ".join(entry.resources),
        "Set by params alone": ", ".join(entry.operators),
        "Cost": entry.cost,
        "Does not detect": entry.does_not_detect,
    }
    return [
        f"{entry.name}{entry.signature}",
        f"  {entry.path}",
        entry.summary,
        entry.details,
        *(f"{label}: {text}" for label, text in labelled.items() if text),
        entry.example,
    ]


@rewards.command(name="try")
@click.argument("name", shell_complete=completed_by("complete_rewards"))
@click.option(
    "--answer", "answers", multiple=True, help="The answer to judge; - reads it from standard input. Repeatable."
)
@click.option(
    "--ground-truth", help="What the reward compares it with; @FILE reads a file, as JSON if it ends in .json."
)
@click.option("--prompt", help="What the user asked, if the reward needs it.")
@click.option("--messages", "file", type=NamedPath(path_type=Path, dir_okay=False, exists=True),
              help="A conversation as a JSON list of messages; without --answer its last one is judged.")  # fmt: skip
@click.option("-p", "--param", "params", multiple=True, metavar="KEY=VALUE",
              help="A parameter of the reward; the value is read as YAML. Repeatable.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON lines.")
@click.option("-v", "--verbose", is_flag=True, help="Show where an error came from.")
def try_(
    name: str,
    answers: tuple[str, ...],
    ground_truth: str | None,
    prompt: str | None,
    file: Path | None,
    params: tuple[str, ...],
    as_json: bool,
    verbose: bool,
) -> None:
    """Judge an answer, and show the score, every metric, the reason and the time it took.

    NAME is a reward's name, or the import path of one of your own. Several answers are judged one by one. A reward that
    judges in batches gets them together. The command exits with 1 if there is no verdict.

    \b
    reward-kit rewards try math --answer 'The answer is 72.' --ground-truth 72
    reward-kit rewards try length --answer - -p target_length=50 < answer.txt
    reward-kit rewards try tag_count --answer '<think>…</think>' -p required_tags='[think, answer]'
    reward-kit rewards try my_rewards.py:polite --messages conversation.json --json
    """
    from reward_kit.cli_commands.reward_trial import conversations, read_params, read_text, try_reward

    texts = [sys.stdin.read() if answer == "-" else answer for answer in answers]
    with prints_on_stderr(when=as_json):
        trials = try_reward(name, conversations(texts, prompt, file), read_text(ground_truth), read_params(params))
    for trial in trials:
        if as_json:
            echo_json(json.dumps(trial.as_json(), ensure_ascii=False))
        else:
            echo(_trial_text(trial))
    sys.exit(0 if all(trial.is_verdict for trial in trials) else 1)


def _trial_text(trial: Trial) -> str:
    result = trial.result
    score = f"{result.score:g}" if trial.is_verdict else "no verdict"
    lines = [f"score   {score}", f"reason  {result.error or result.reason or '-'}", f"time    {_time(trial.seconds)}"]
    width = max(map(len, result.metrics), default=0)
    for name, metric in result.metrics.items():
        mark = "ok" if metric.is_score_valid else "-"
        lines.append(f"  {mark:>2}  {name:<{width}}  {metric.score:<6.3g} {metric.reason}")
    return "\n".join(lines)


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


@rewards.command()
@click.argument("name", metavar="REWARD", shell_complete=completed_by("complete_rewards"))
@click.argument("cases", type=NamedPath(path_type=Path, dir_okay=False, exists=True))
@click.option("-p", "--param", "params", multiple=True, metavar="KEY=VALUE",
              help="A parameter of the reward; the value is read as YAML. Repeatable.")  # fmt: skip
@click.option("--pass-threshold", "--threshold", "threshold", type=FiniteNumber(), default=1.0, show_default=True,
              metavar="S", help="Score from which an answer passes, for cases without a `threshold`.")  # fmt: skip
@click.option("--timeout", type=FiniteRange(min=0, min_open=True), metavar="SECONDS",
              help="How long one answer may take.  [default: the reward's own, else 60]")  # fmt: skip
@click.option("--all", "show_all", is_flag=True, help="List every case, not only those that went wrong.")
@click.option("--json", "as_json", is_flag=True, help="Print every case with its outcome as JSON lines.")
@click.option("-v", "--verbose", is_flag=True, help="Show where an error came from.")
def check(
    name: str,
    cases: Path,
    params: tuple[str, ...],
    threshold: float,
    timeout: float | None,
    show_all: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Run a reward on test cases, and fail if the verdict on one is wrong.

    REWARD is a reward's name, an import path, or FILE.py:function. CASES has one case per line: a conversation, what it
    is compared with, and whether a person says that it passes. `reward-kit review --export` writes such a file from
    reviews. You can also write it by hand:

    \b
    {"prompt": "Half of one?", "answer": "It is 1/2.", "ground_truth": "0.5", "expect": "pass"}
    {"messages": [{"role": "user", "content": "6 x 12?"}, {"role": "assistant", "content": "71"}],
     "ground_truth": "72", "expect": "fail"}    (in one line)

    A case may also have `columns` (an object: further arguments of the reward, by name), `threshold`, `id`, `note` and
    `split`. The reward runs in worker processes that are killed when they take too long, as in a run. The command exits
    with 1 if the verdict on a case is wrong, or if a case has no verdict.

    \b
    reward-kit rewards check math cases.jsonl
    reward-kit rewards check my_rewards.py:polite cases.jsonl -p strict=true --threshold 0.5
    """
    from reward_kit.cli_commands.reward_trial import read_params
    from reward_kit.config_models import RewardConfig
    from reward_kit.scoring.cases import check_cases, read_cases
    from reward_kit.utils.event_loop import run_sync

    flags = {"--timeout": "reward.timeout", "-p": "reward.params", "--pass-threshold": "reward.pass_threshold"}
    name_settings(Door(flags).spell)
    given = read_cases(cases)
    config = RewardConfig(function_path=name, params=read_params(params), pass_threshold=threshold, timeout=timeout)
    with prints_on_stderr(when=as_json):
        outcomes = run_sync(lambda: check_cases(given, config))
    if as_json:
        for outcome in outcomes:
            echo_json(json.dumps(outcome.as_dict(), ensure_ascii=False))
    else:
        _echo_outcomes(outcomes, show_all=show_all)
    sys.exit(0 if all(outcome.state == "as expected" for outcome in outcomes) else 1)


def _echo_outcomes(outcomes: list[CaseOutcome], *, show_all: bool) -> None:
    shown = [outcome for outcome in outcomes if show_all or outcome.state != "as expected"]
    if shown:
        width = max(len("case"), *(len(outcome.case.name) for outcome in shown))
        echo(f"{'case':<{width}}  {'':<11}  {'expects':<7}  {'score':>6}  reason")
        for outcome in shown:
            score = "–" if outcome.score is None else f"{outcome.score:.3g}"
            told = in_own_words(" ".join((outcome.says or "-").split()))
            note = f"  [{_shortened(outcome.case.note)}]" if outcome.case.note else ""
            echo(f"{outcome.case.name:<{width}}  {outcome.state:<11}  {outcome.case.expect:<7}  {score:>6}  "
                 f"{_shortened(told) if outcome.score is not None else told}{note}")  # fmt: skip
    states = [outcome.state for outcome in outcomes]
    parts = [f"{states.count('as expected'):,} of {len(states):,} cases are as expected"]
    if regressed := states.count("regressed"):
        parts.append(f"{regressed:,} regressed")
    if failed := states.count("failed"):
        parts.append(f"{failed:,} failed")
    if errors := states.count("error"):
        parts.append(f"{errors:,} could not be judged")
    echo(", ".join(parts) + ".")
