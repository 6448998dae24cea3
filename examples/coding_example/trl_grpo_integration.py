# SPDX-License-Identifier: Apache-2.0
"""Train a model with this reward, by TRL's GRPO.

python trl_grpo_integration.py --dry-run        one step without a model: stored answers are its completions
python trl_grpo_integration.py --model Qwen/Qwen3-0.6B --steps 100     needs pip install 'reward-kit[train]'
"""

import argparse
from pathlib import Path

from reward_kit.integrations.rehearsal import rehearse, training_prompts
from reward_kit.integrations.trl import create_trl_adapter

HERE = Path(__file__).resolve().parent
REWARD = f"{HERE / 'reward.py'}:evaluate"


def train(options: argparse.Namespace) -> None:
    """Train, and print the mean reward of the first and the last step."""
    import torch
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    rows = training_prompts(HERE / "dataset.jsonl")
    config = GRPOConfig(
        output_dir=str(options.output),
        max_steps=options.steps,
        num_generations=options.generations,
        per_device_train_batch_size=2 * options.generations,
        max_completion_length=options.tokens,
        use_cpu=not torch.cuda.is_available(),
        bf16=torch.cuda.is_available(),
        logging_steps=1,
        save_strategy="no",
        report_to=[],
    )
    adapter = create_trl_adapter(REWARD)
    trainer = GRPOTrainer(
        model=options.model, reward_funcs=[adapter], args=config, train_dataset=Dataset.from_list(rows)
    )
    trainer.train()
    rewards = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
    print(f"mean reward: {rewards[0]:.3f} in the first step, {rewards[-1]:.3f} in the last of {len(rewards)}")
    print(f"{adapter.failures} completions could not be judged")


def main() -> None:
    """Rehearse a step, or train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="judge stored answers as one step; needs no model")
    parser.add_argument("--model", help="a model's folder, or its name at Hugging Face")
    parser.add_argument("--steps", type=int, default=100, help="optimizer steps (%(default)s)")
    parser.add_argument("--generations", type=int, default=8, help="completions per prompt (%(default)s)")
    parser.add_argument("--tokens", type=int, default=512, help="tokens that a completion may have (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("outputs/coding_grpo"), help="(%(default)s)")
    options = parser.parse_args()
    if options.dry_run:
        print("\n".join(rehearse(HERE / "answers.jsonl", REWARD).lines()))
    elif options.model is None:
        parser.error("which model shall be trained? Give --model, or --dry-run to see what it would learn from.")
    else:
        train(options)


if __name__ == "__main__":
    main()
