# SPDX-License-Identifier: Apache-2.0
"""A reward as OpenRLHF calls it, from a file or over HTTP. OpenRLHF is not imported.

    write_reward_func("my_rewards:correct", "reward_func.py", failed_score=0.0)      --reward.remote_url reward_func.py

    {"query": [...], "prompts": [...], "labels": [...]}  ─▶  {"rewards": ..., "scores": ..., "extra_logs": {...}}

A query is the whole text that the model read and wrote, special tokens included; what follows the prompt is the answer.
OpenRLHF asks for one query at a time and puts what it gets into a tensor of one: so for one query the rewards are a
number, and for several a list.
"""

from __future__ import annotations

import bisect
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reward_kit.datasets.rows import Written, as_table
from reward_kit.errors import ItemError, RewardError
from reward_kit.integrations.attempts import answered, sample_for
from reward_kit.integrations.shim import write_shim
from reward_kit.integrations.trainer_reward import TrainerReward
from reward_kit.models import Failure, Rollout

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
    earned = judge.judge(attempts_in(request))
    scores = [each.score for each in earned]
    judged = [float(each.error is None) for each in earned]
    rewards: Any = scores[0] if len(scores) == 1 else scores
    return {
        "rewards": rewards,
        "scores": rewards,
        "extra_logs": {"judged": judged[0] if len(judged) == 1 else judged},
    }


def attempts_in(request: Mapping[str, Any], written: Written = as_table) -> list[Rollout | Failure]:
    """One rollout per query, or why there is none. Lists of other lengths are refused."""
    queries, prompts = request["query"], request.get("prompts")
    prompts = [""] * len(queries) if prompts is None else prompts
    labels = request.get("labels")
    labels = [None] * len(queries) if labels is None else labels
    if not len(queries) == len(prompts) == len(labels):
        raise ValueError(
            f"{len(queries)} queries came with {len(prompts)} prompts and {len(labels)} labels; give one for each."
        )
    return [_attempt(*each, written) for each in zip(queries, prompts, labels, strict=True)]


def _attempt(query: str, prompt: str, label: Any, written: Written) -> Rollout | Failure:
    try:
        row = {"prompt": prompt, "ground_truth": label}
        return answered(sample_for(row, prompt, written=written), answer_in(query, prompt))
    except ItemError as error:
        return Failure.of(error, "score")


_LEAST_SUFFIX = 64
"""Characters of a prompt's end that a query must begin with, where its beginning was cut off."""


def answer_in(query: str, prompt: str) -> str:
    """What the model wrote: the query after the prompt, without the tokens that end it.

    A tokenizer may give the prompt back in another form: normalised (NFC), with a blank before it or behind a special
    token, or, where it was too long, without its beginning. A query in which it is not found is a `RewardError`: what
    stands before the answer must never be judged with it.
    """
    text = query if not prompt else _behind(prompt, query)
    if text is None:
        raise RewardError(
            "The prompt is not found in the query, so nobody can say where the answer begins. Send the prompt as the "
            "model read it: decoded from the same tokens, with the chat template applied."
        )
    while True:
        text = text.rstrip()
        ending = next((token for token in END_TOKENS if text.endswith(token)), None)
        if ending is None:
            return text
        text = text[: -len(ending)]


def _behind(prompt: str, query: str) -> str | None:
    """The query after the prompt; None where it does not begin with it."""
    for start in _starts(query):
        if query.startswith(prompt, start):
            return query[start + len(prompt) :]
    wanted, read = unicodedata.normalize("NFC", prompt), unicodedata.normalize("NFC", query)
    for start in _starts(read):
        end = _end_with_blanks(wanted, read, start)
        if end is None and (kept := _cut_prompt(wanted, read[start:])) >= _LEAST_SUFFIX:
            end = start + kept
        if end is not None:
            return query[_place_before(query, end) :]
    return None


def _starts(query: str) -> list[int]:
    """Where the prompt may begin: at once, or behind special tokens and blanks."""
    found = _BEFORE.match(query)
    inside = _PIECE.finditer(found.group()) if found is not None else ()
    return [0, *(piece.end() for piece in inside)]


_PIECE = re.compile(r"<[^<>\s]{1,40}>|\s")
_BEFORE = re.compile(rf"(?:{_PIECE.pattern}){{0,64}}")


def _end_with_blanks(prompt: str, query: str, start: int) -> int | None:
    """Where the prompt ends that begins at `start`, blanks added within it left aside; None where it is not there."""
    place = start
    for character in prompt:
        if query[place : place + 1] != character and query[place : place + 1] == " ":
            place += 1  # some tokenizers write a blank behind a special token
        if query[place : place + 1] != character:
            return None
        place += 1
    return place


def _cut_prompt(prompt: str, query: str) -> int:
    """The length of the longest end of the prompt with which the query begins."""
    pattern = query[: len(prompt)]
    border = [0] * (len(pattern) + 1)  # of each beginning of the pattern: its longest end that it also begins with
    length = 0
    for place in range(1, len(pattern)):
        while length and pattern[place] != pattern[length]:
            length = border[length]
        length += pattern[place] == pattern[length]
        border[place + 1] = length
    length = 0
    for character in prompt:
        while length and (length == len(pattern) or pattern[length] != character):
            length = border[length]
        length += bool(pattern) and pattern[length] == character
    return length


def _place_before(query: str, normalized: int) -> int:
    """Where in a text the first so many characters of its normal form end, with all marks that belong to the last."""
    places = range(len(query) + 1)
    return bisect.bisect_right(
        places, normalized, key=lambda place: len(unicodedata.normalize("NFC", query[:place]))
    ) - 1  # fmt: skip
