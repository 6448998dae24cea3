# SPDX-License-Identifier: Apache-2.0
"""`reward-kit trajectory`: one episode of an agent, step by step, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reward_kit.cli_commands.options import NamedPath, reading_own_files
from reward_kit.cli_commands.output import echo
from reward_kit.errors import DatasetError

if TYPE_CHECKING:
    from reward_kit.cli_commands.display.trajectory import Judged
    from reward_kit.models import Rollout

__all__ = ["trajectory"]


@click.command()
@click.argument("run", type=NamedPath(path_type=Path), metavar="RUN")
@click.argument("sample_id", required=False, metavar="[SAMPLE]")
@click.option("--episode", "draw", type=click.IntRange(min=0), metavar="K", help="Which episode of the sample.")
@click.option(
    "--chars", type=click.IntRange(min=20), default=400, show_default=True, help="Characters of each message."
)
@click.option("--json", "as_json", is_flag=True, help="The steps as JSON lines, one per step.")
def trajectory(run: Path, sample_id: str | None, draw: int | None, chars: int, as_json: bool) -> None:
    """Print an agent's episode step by step: what the agent saw, said and called, and the reward of each step.

    RUN is a run directory, or its rollouts.jsonl. Without SAMPLE, all episodes are listed.

    \b
    reward-kit trajectory outputs/my_agent
    reward-kit trajectory outputs/my_agent task-7 --episode 2
    """
    from reward_kit.cli_commands.display.trajectory import episode_json, episode_lines, overview_line

    with reading_own_files(run):
        episodes, judged = _episodes(run), _judged(run)
    if sample_id is None:
        lines: Iterable[str] = (overview_line(each, judged.get(_key(each))) for each in episodes)
    else:
        chosen = [(each, judged.get(_key(each))) for each in _chosen(episodes, run, sample_id, draw)]
        shown = (episode_json(*each) if as_json else episode_lines(*each, chars) for each in chosen)
        lines = chain.from_iterable(shown)
    for line in lines:
        echo(line)


def _key(rollout: Rollout) -> tuple[str, int]:
    return rollout.sample.id, rollout.response_index


def _chosen(episodes: list[Rollout], run: Path, sample_id: str, draw: int | None) -> list[Rollout]:
    found = [each for each in episodes if each.sample.id == sample_id]
    if not found:
        raise DatasetError(f"{str(run)!r} has no episode of a sample {sample_id!r}. Leave it out to see all of them.")
    chosen = [each for each in found if draw is None or each.response_index == draw]
    if not chosen:
        there = ", ".join(str(each.response_index) for each in found)
        raise DatasetError(f"{str(run)!r} has no episode {draw} of sample {sample_id!r}. There are: {there}.")
    return chosen


def _episodes(run: Path) -> list[Rollout]:
    from reward_kit.storage.journal import Journal
    from reward_kit.storage.run_directory import ROLLOUTS
    from reward_kit.storage.tables import rollout_from_line

    path = run / ROLLOUTS if run.is_dir() else run
    with Journal(path, read_only=True) as journal:
        found = [rollout_from_line(line, journal.samples) for line in journal.in_order()]
    episodes = [rollout for rollout in found if rollout.steps is not None]
    if not episodes:
        raise DatasetError(
            f"{str(path)!r} holds no episode that has ended"
            + (": its model was asked once for each answer." if found else " yet. Run the same command again to go on.")
        )
    return episodes


def _judged(run: Path) -> dict[tuple[str, int], Judged]:
    """What the reward said of the episodes, by sample and episode; nothing where there are no results yet."""
    from reward_kit.cli_commands.display.trajectory import Judged
    from reward_kit.storage.journal import Journal
    from reward_kit.storage.run_directory import RESULTS
    from reward_kit.storage.vocabularies import RUN

    path = (run if run.is_dir() else run.parent) / RESULTS
    if not path.exists():
        return {}
    with Journal(path, read_only=True) as journal:
        return {
            (row["id"], row["response_index"]): Judged(
                row.get(RUN.score), row.get(RUN.verification_reason), row.get("error"),
                {output["step_index"]: output["base_reward"] for output in row.get("step_outputs") or ()},
            )
            for row in journal.rows()
        }  # fmt: skip
