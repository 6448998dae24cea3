# SPDX-License-Identifier: Apache-2.0
"""BFCL's multi-turn tasks: recorded episodes played through our environment, and judged from their lines.

    python -m benchmarks.bfcl RECORDED.jsonl          in an environment with bfcl-eval (.venv-frameworks has it)

RECORDED.jsonl has a row per episode: `id`, `result` (per turn, per step, the calls) and `verdict`, the checker's own.
Prints how many verdicts and kinds of error agree, and the processor time of judging from disk over that of the
package's checker on the same episodes: reading the lines is counted for us, decoding the calls for both.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from reward_kit.agent.environment import environment_of
from reward_kit.agent.environments.bfcl import CATEGORIES, Bfcl, BfclWorld, recorded_turns, rows, verdict_of
from reward_kit.agent.environments.bfcl_simulators import UndecodableError, decoded
from reward_kit.agent.episode import Episodes
from reward_kit.agent.playback import Playback
from reward_kit.config_models import AgentConfig, Sampling
from reward_kit.models import Rollout, Sample

_COLUMNS = ("user_turns", "initial_config", "involved_classes", "missed_function")


def main() -> None:
    """Play, write, read, judge, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recorded", type=Path)
    parser.add_argument("--in-processes", action="store_true", help="each world in a process of its own, as in a run")
    options = parser.parse_args()
    tasks = {row["id"]: row for category in CATEGORIES for row in rows(category)}
    episodes = [json.loads(line) for line in options.recorded.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rollouts.jsonl"
        played = asyncio.run(_played(episodes, tasks, options.in_processes))
        file.write_text("".join(f"{rollout.model_dump_json()}\n" for rollout in played), encoding="utf-8")
        _judge(file, episodes)  # once before the clock runs: modules are loaded
        began = time.process_time()
        verdicts = _judge(file, episodes)
        ours = time.process_time() - began
    agree = sum(verdict == episode["verdict"] for verdict, episode in zip(verdicts, episodes, strict=True))
    _check(episodes, tasks, "warm")
    began = time.process_time()
    theirs = _check(episodes, tasks, "timed")
    seconds = time.process_time() - began
    same = sum(verdict == episode["verdict"] for verdict, episode in zip(theirs, episodes, strict=True))
    print(f"episodes                       {len(episodes)}")
    print(f"our verdicts that agree        {agree}")
    print(f"the package's that agree       {same}")
    print(f"judging from disk, CPU         {ours:.2f} s")
    print(f"the package's checker, CPU     {seconds:.2f} s")
    print(f"ratio                          {ours / seconds:.2f}")
    print(f"gold answers that are valid    {_gold(tasks)} of {len(tasks)}")


def _sample(row: dict[str, Any], number: int) -> Sample:
    columns = {name: row[name] for name in _COLUMNS}
    return Sample(
        id=row["id"], messages=row["messages"], ground_truth=row["ground_truth"], columns=columns, position=number
    )


async def _played(episodes: list[dict[str, Any]], tasks: dict[str, Any], in_processes: bool) -> list[Rollout]:
    """Every recorded episode, as a draw of its own, played through the engine."""
    said = {(episode["id"], number): recorded_turns(episode["result"]) for number, episode in enumerate(episodes)}
    environment = Bfcl() if in_processes else environment_of(BfclWorld)
    config = AgentConfig(max_turns=10_000, max_bad_calls=None)
    play = Episodes(Playback(said), Sampling(), None, environment, config)
    found: list[Rollout] = []
    for number, episode in enumerate(episodes):
        found += await play(_sample(tasks[episode["id"]], number), [number])
    await environment.close()
    return found


def _judge(file: Path, episodes: list[dict[str, Any]]) -> list[str]:
    with file.open(encoding="utf-8") as lines:
        return [verdict_of(Rollout.model_validate_json(line)).kind for line in lines]


def _check(episodes: list[dict[str, Any]], tasks: dict[str, Any], name: str) -> list[str]:
    """What the package itself says."""
    from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker

    kinds: list[str] = []
    for number, episode in enumerate(episodes):
        row, result = tasks[episode["id"]], episode["result"]
        if not isinstance(result, list):
            kinds.append("multi_turn:inference_error")
        elif len(result) != len(row["ground_truth"]):
            kinds.append("multi_turn:force_terminated")
        else:
            turns = [[step for step in map(_read, turn) if step] for turn in result]
            with contextlib.redirect_stdout(io.StringIO()):
                found = multi_turn_checker(turns, row["ground_truth"], row, "", f"{name}_{number}")
            kinds.append("valid" if found["valid"] else found["error_type"])
    return kinds


def _read(step: Any) -> list[str]:
    try:
        return decoded([pair for call in step for pair in call.items()])
    except (UndecodableError, AttributeError):
        return []


def _gold(tasks: dict[str, Any]) -> int:
    """How many gold answers the package's tasks have that we find valid."""
    from reward_kit.agent.environments.bfcl_simulators import Simulators, check

    valid = 0
    for task_id, row in tasks.items():
        sides = [
            Simulators(
                row["involved_classes"], row["initial_config"], long_context="long_context" in task_id, name=name
            )
            for name in ("model", "gold")
        ]
        turns = [[turn] if turn else [] for turn in row["ground_truth"]]
        valid += check(turns, row["ground_truth"], *sides).verdict.valid
    return valid


if __name__ == "__main__":
    main()
