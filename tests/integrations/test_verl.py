# SPDX-License-Identifier: Apache-2.0
"""verl's `compute_score`, from the file that verl loads, called as its reward managers do: by keyword, one by one."""

from __future__ import annotations

import asyncio
import inspect
import math
from pathlib import Path

import pytest

from reward_kit.errors import ConfigError, RewardError
from reward_kit.integrations.verl import compute_score_for, write_compute_score
from reward_kit.utils.module_loader import load_function
from tests.integrations import trainer_rewards

HERE = "tests.integrations.trainer_rewards"


async def test_the_file_holds_a_function_as_verl_wants_it(tmp_path: Path) -> None:
    file = write_compute_score(
        f"{HERE}:exact",
        tmp_path / "shims" / "compute_score.py",
        failed_score=-1.0,
        metrics=["length", "none"],
        workers=1,
    )
    compute_score = load_function(f"{file}:compute_score")
    assert inspect.iscoroutinefunction(compute_score), "verl looks, and calls anything else in a thread"
    scores = await asyncio.gather(
        *(
            compute_score(
                data_source="sums", solution_str=text, ground_truth="4", extra_info={"num_turns": 1, "bonus": 1}
            )
            for text in ("4", "5")
        )
    )
    assert [(score["score"], score["length"], score["judged"]) for score in scores] == [
        (2.0, 0.1, 1.0),
        (1.0, 0.1, 1.0),
    ]
    assert math.isnan(scores[0]["none"]), "verl wants the same names of every sample"


async def test_a_failure_earns_what_was_said_and_is_counted() -> None:
    compute_score = compute_score_for(trainer_rewards.perilous, failed_score=-1.0, workers=0)
    assert await compute_score("d", "raise", None) == {"score": -1.0, "judged": 0.0}
    assert await compute_score("d", "fine", None, {}) == {"score": 1.0, "judged": 1.0}
    strict = compute_score_for(trainer_rewards.perilous, failed_score=None, workers=0)
    with pytest.raises(RewardError, match="failed_score"):
        await strict("d", "raise", None)


async def test_the_prompt_is_what_was_asked() -> None:
    compute_score = compute_score_for(trainer_rewards.last_turns, failed_score=0.0, workers=0)
    asked = {"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}
    assert (await compute_score("d", "a", None, asked))["score"] == 3.0
    assert (await compute_score("d", "a", None, {"prompt": "u"}))["score"] == 2.0
    assert (await compute_score("d", "a", None))["score"] == 1.0


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'best'.*pointwise"):
        compute_score_for(trainer_rewards.best, failed_score=0.0)
    with pytest.raises(ConfigError, match="cannot be written"):
        write_compute_score(f"{HERE}:exact", tmp_path / "f.py", failed_score=0.0, params={"x": object()})
