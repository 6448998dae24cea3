# SPDX-License-Identifier: Apache-2.0
"""A world of ours in TRL's own loop: GRPOTrainer calls its tools and asks for its verdicts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import Qwen2Config, Qwen2ForCausalLM
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from reward_kit.agent.tools import tools_of_class
from reward_kit.integrations.agent_environments import trl_environment
from tests.training.conftest import ON_A_CPU, make_tokenizer
from tests.training.dial import START, Dial, opened, rows

MOVES = 2

TEMPLATE = (
    "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}"
    "{% for call in m['tool_calls'] or [] %}<call>{{ call['function'] | tojson }}</call>{% endfor %}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant: {% endif %}"
)
WORDS = [
    "user: ", "assistant: ", "tool: ", "Turn the dial to ", "The dial is at ", "too low", "too high", "there", "Done.",
    "left", "right", '<call>{"name": "turn", "arguments": {"way": "', '"}}</call>',
]  # fmt: skip
ANSWERS = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<s>assistant: ",
    "fields": {
        "tool_calls": {
            "open": "<call>", "close": "</call>", "repeats": True, "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close": "</s>", "content": "text"},
    },
}  # fmt: skip
"""How TRL finds the tool calls in what the model wrote."""


class Broken(Dial):
    """A dial that is not there."""

    def start(self) -> str:
        raise OSError("no dial")


def tokenizer_with_tools() -> Any:
    """The tokenizer of the other tests, with a template for tools and tokens for the words of the game."""
    tokenizer = make_tokenizer()
    tokenizer.add_tokens(WORDS)
    tokenizer.chat_template, tokenizer.response_template = TEMPLATE, ANSWERS
    return tokenizer


def small_model(tokenizer: Any) -> Any:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=True, initializer_range=0.1,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    return Qwen2ForCausalLM(config)


def scripted_episode(row: dict[str, Any], chance: random.Random) -> list[dict[str, Any]]:
    """An episode of somebody who turns the right way in 6 of 10 moves, in the very class that TRL steps through."""
    environment = trl_environment(Dial, opened)()
    (asked,) = row["prompt"]
    messages = [{**asked, "content": asked["content"] + environment.reset(**row)}]
    for _ in range(MOVES):
        right_way = (row["answer"] > START) == (chance.random() < 0.6)
        way = "right" if right_way else "left"
        call = {"type": "function", "function": {"name": "turn", "arguments": {"way": way}}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "name": "turn", "content": environment.turn(way=way)})
    return [*messages, {"role": "assistant", "content": "Done."}]


def warmed_up(out: Path, tokenizer: Any) -> Any:
    """A model that makes tool calls, and seldom the right ones."""
    chance = random.Random(0)
    episodes = [{"messages": scripted_episode(row, chance)} for row in rows() * 128]
    config = SFTConfig(
        **ON_A_CPU, output_dir=str(out), per_device_train_batch_size=32, max_steps=100, learning_rate=1e-2,
        lr_scheduler_type="linear",
    )  # fmt: skip
    trainer = SFTTrainer(
        model=small_model(tokenizer), args=config, train_dataset=Dataset.from_list(episodes), processing_class=tokenizer
    )
    trainer.train()
    return trainer.model


def test_grpo_learns_a_game_with_a_tool(tmp_path: Path) -> None:
    tokenizer = tokenizer_with_tools()
    model = warmed_up(tmp_path / "sft", tokenizer)
    config = GRPOConfig(
        **ON_A_CPU, output_dir=str(tmp_path / "grpo"), per_device_train_batch_size=64, num_generations=32,
        max_completion_length=80, max_tool_calling_iterations=MOVES, max_steps=16, learning_rate=3e-3,
        lr_scheduler_type="constant",
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=model, reward_funcs=None, args=config, train_dataset=Dataset.from_list(rows()),
        processing_class=tokenizer, environment_factory=trl_environment(Dial, opened),
    )  # fmt: skip
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "tools/call_frequency" in entry]
    curve = [entry["rewards/DialForTRL/mean"] for entry in logged]
    assert len(curve) == 16
    start, end = sum(curve[:2]) / 2, sum(curve[-4:]) / 4
    assert start < 0.55, curve
    assert end - start >= 0.3, curve
    assert all(entry["tools/call_frequency"] > 1 for entry in logged), "the game is played by calling the tool"
    assert logged[-1]["tools/failure_frequency"] == 0.0


def test_trl_shows_the_schema_that_a_run_shows() -> None:
    (told,) = [tool.spec["function"] for tool in tools_of_class(Dial)]
    shown = get_json_schema(trl_environment(Dial, opened)().turn)["function"]
    assert {name: shown[name] for name in ("name", "description")} == {
        name: told[name] for name in ("name", "description")
    }
    assert shown["parameters"]["properties"] == told["parameters"]["properties"]
    assert shown["parameters"]["required"] == told["parameters"]["required"] == ["way"]


@pytest.mark.parametrize("failing", [True, False])
def test_an_episode_whose_world_failed_is_left_out(failing: bool, tmp_path: Path) -> None:
    environment = trl_environment(Broken if failing else Dial, opened, params={})
    tokenizer = tokenizer_with_tools()
    config = GRPOConfig(
        **ON_A_CPU, output_dir=str(tmp_path), per_device_train_batch_size=4, num_generations=2, max_steps=1,
        max_completion_length=4,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=small_model(tokenizer), reward_funcs=None, args=config, train_dataset=Dataset.from_list(rows()),
        processing_class=tokenizer, environment_factory=environment,
    )  # fmt: skip
    trainer.train()
    assert trainer.state.global_step == 1
    (mean,) = [value for entry in trainer.state.log_history for name, value in entry.items() if "TRL/mean" in name]
    assert mean is None if failing else mean == 0.0, "TRL logs None where no episode was judged"
