# SPDX-License-Identifier: Apache-2.0
"""A model trained with a reward, by TRL's GRPO. Needs the extra `train`; importing this module does not.

    rows = training_prompts("dataset.jsonl")
    found = train_grpo("Qwen/Qwen3-0.6B", rows, "my_rewards.py:correct", output_dir="outputs/train", max_steps=100)
    print("\\n".join(found.lines()))

    rows ─┬─▶ prompts ──▶ TRL: completions ─┐
          └─▶ ground truth, columns ────────┴─▶ the reward ─▶ advantages ─▶ a better model, in `output_dir`

`rehearsal.py` shows what such a training would learn from, without a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reward_kit.errors import MissingExtraError
from reward_kit.integrations.trl import TRLAdapter, create_trl_adapter

__all__ = ["TrainedModel", "train_grpo"]

_PLACE = "row"
"""The column that says which row a prompt belongs to."""
_GENERATIONS = 8


@dataclass(frozen=True)
class TrainedModel:
    """What a training gave."""

    output_dir: Path
    """Where the model and its tokenizer are."""
    rewards: list[float | None]
    """The mean reward of each step; None where nothing of it could be judged."""
    failures: int
    """Completions that could not be judged."""

    def lines(self) -> list[str]:
        """In words: how the reward went, and where the model is."""
        first, last = map(_shown, (self.rewards[0], self.rewards[-1]))
        return [
            f"mean reward: {first} in the first step, {last} in the last of {len(self.rewards)}",
            f"{self.failures} completions could not be judged",
            f"the model is in {self.output_dir}",
        ]


def train_grpo(
    model: Any,
    rows: Sequence[Mapping[str, Any]],
    reward: Callable[..., Any] | str,
    *,
    output_dir: str | Path,
    params: Mapping[str, Any] | None = None,
    **settings: Any,
) -> TrainedModel:
    """Train a model with a reward, write it to `output_dir`, and say how the reward went.

    `model` is a folder, a name at Hugging Face, or a model that is loaded. Each row has a `prompt`, and whatever else
    the reward takes, such as a `ground_truth`: `training_prompts` makes them from a dataset. `reward` is a function,
    its import path, or what `create_trl_adapter` returns, where it needs a time limit or other settings of its own. The
    `params` are given to every call of the reward. All other keywords are settings of TRL's `GRPOConfig`, such as
    `max_steps`, `num_generations`, `max_completion_length` or `learning_rate`.
    """
    if find_spec("trl") is None:
        raise MissingExtraError("Training a model", "train")
    import torch
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    adapter = reward if isinstance(reward, TRLAdapter) else create_trl_adapter(reward, None, params)
    on_gpu = torch.cuda.is_available()
    defaults = {
        "per_device_train_batch_size": 2 * settings.get("num_generations", _GENERATIONS),
        "num_generations": _GENERATIONS,
        "use_cpu": not on_gpu,
        "bf16": on_gpu,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
    }
    trainer = GRPOTrainer(
        model=str(model) if isinstance(model, Path) else model,
        reward_funcs=[_with_whole_rows(adapter, rows)],
        args=GRPOConfig(output_dir=str(output_dir), **{**defaults, **settings}),
        train_dataset=Dataset.from_list([{"prompt": row["prompt"], _PLACE: place} for place, row in enumerate(rows)]),
    )
    try:
        trainer.train()
    finally:
        adapter.close()
    trainer.save_model(str(output_dir))
    rewards = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
    return TrainedModel(Path(output_dir), rewards, adapter.failures)


def _shown(reward: float | None) -> str:
    return "nothing judged" if reward is None else f"{reward:.3f}"


def _with_whole_rows(adapter: TRLAdapter, rows: Sequence[Mapping[str, Any]]) -> Callable[..., list[float | None]]:
    """The adapter, given each row's values as they are.

    A table of Arrow would change them: all values of a column have one type there, so that a list of calls with
    different arguments comes back with every argument in every call.
    """
    names = dict.fromkeys(name for row in rows for name in row if name != "prompt")

    def judged(prompts: Any, completions: Any, **given: Any) -> list[float | None]:
        places = given.pop(_PLACE)
        columns = {name: [rows[place].get(name) for place in places] for name in names}
        return adapter(prompts=prompts, completions=completions, **{**given, **columns})

    judged.__name__ = adapter.__name__
    return judged
