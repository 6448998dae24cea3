# SPDX-License-Identifier: Apache-2.0
"""A real training job: `trl grpo` in the background, with a reward of ours by its import path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reward_kit.evaluation import start_rl_job
from reward_kit.integrations.rl_jobs import LocalJob

SETTINGS: dict[str, Any] = {
    "use_cpu": True, "bf16": False, "gradient_checkpointing": False, "report_to": "none", "save_strategy": "no",
    "per_device_train_batch_size": 4, "num_generations": 4, "max_completion_length": 4, "max_steps": 1,
    "logging_steps": 1,
}  # fmt: skip


def test_a_job_trains_with_our_reward(tiny_model: Path, tmp_path: Path) -> None:
    job = start_rl_job(
        tiny_model,
        [{"prompt": f"{n} + {n} = ", "answer": str(2 * n)} for n in range(4)],
        "reward_kit.rewards.math:math_reward",
        output_dir=tmp_path / "job",
        columns={"answer": "ground_truth"},
        **SETTINGS,
    )
    assert job.wait(timeout=110) == "succeeded", job.logs()
    assert "rewards/math_reward/mean" in job.logs()
    assert (tmp_path / "job" / "model.safetensors").exists()
    assert LocalJob(tmp_path / "job").status == "succeeded"
