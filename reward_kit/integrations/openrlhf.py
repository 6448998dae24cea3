# SPDX-License-Identifier: Apache-2.0
"""A reward as OpenRLHF calls it, from a file or over HTTP. OpenRLHF is not imported.

    write_reward_func("my_rewards:correct", "reward_func.py", failed_score=0.0)      --reward.remote_url reward_func.py

    {"query": [...], "prompts": [...], "labels": [...]}  ─▶  {"rewards": ..., "scores": ..., "extra_logs": {...}}

A query is the whole text that the model read and wrote, special tokens included; what follows the prompt is the answer.
OpenRLHF asks for one query at a time and puts what it gets into a tensor of one: so for one query the rewards are a
number, and for several a list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reward_kit.integrations.shim import write_shim
from reward_kit.integrations.trainer_reward import TrainerReward
from reward_kit.reward_call import Payload

__all__ = ["answer_in", "reward_func_for", "write_reward_func"]

END_TOKENS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "</s>",
    "<eos>",
    "<end_of_turn>",
)
"""What models end an answer with; taken from its end, however many there are."""


def reward_func_for(
    reward: Callable[..., Any] | str,
    *,
    failed_score: float | None,
    params: Mapping[str, Any] | None = None,
    **options: Any,
) -> Callable[..., dict[str, Any]]:
    """The `reward_func(queries, prompts, labels)` that asks a pointwise reward; a label is the ground truth."""
    judge = TrainerReward(reward, failed_score=failed_score, params=params, **options)

    def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **_: Any) -> dict[str, Any]:
        return answer(judge, {"query": queries, "prompts": prompts, "labels": labels})

    return reward_func


def write_reward_func(reward: str, file: str | Path, *, failed_score: float | None, **options: Any) -> Path:
    """Write the file that `--reward.remote_url` names."""
    return write_shim(
        file,
        f"OpenRLHF's reward_func for {reward}",
        "reward_kit.integrations.openrlhf:reward_func_for",
        "reward_func",
        [reward],
        {"failed_score": failed_score, **options},
    )


def answer(judge: TrainerReward, request: Mapping[str, Any]) -> dict[str, Any]:
    """The response to one request, as plain data: what the file form and an HTTP route both return."""
    earned = judge.judge(payloads_of(judge, request))
    scores = [each.score for each in earned]
    judged = [float(each.error is None) for each in earned]
    rewards: Any = scores[0] if len(scores) == 1 else scores
    return {
        "rewards": rewards,
        "scores": rewards,
        "extra_logs": {"judged": judged[0] if len(judged) == 1 else judged},
    }


def payloads_of(judge: TrainerReward, request: Mapping[str, Any]) -> list[Payload]:
    """One payload per query. Lists of other lengths are refused."""
    queries, prompts = request["query"], request.get("prompts")
    prompts = [""] * len(queries) if prompts is None else prompts
    labels = request.get("labels")
    labels = [None] * len(queries) if labels is None else labels
    if not len(queries) == len(prompts) == len(labels):
        raise ValueError(
            f"{len(queries)} queries came with {len(prompts)} prompts and {len(labels)} labels; give one for each."
        )
    return [
        judge.payload(
            [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer_in(query, prompt)}], label, {}
        )
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]


def answer_in(query: str, prompt: str) -> str:
    """What the model wrote: the query after the prompt, without the tokens that end it."""
    at = query.find(prompt)
    text = query[at + len(prompt) :] if prompt and at >= 0 else query
    while True:
        text = text.rstrip()
        ending = next((token for token in END_TOKENS if text.endswith(token)), None)
        if ending is None:
            return text
        text = text[: -len(ending)]
