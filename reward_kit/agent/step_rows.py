# SPDX-License-Identifier: Apache-2.0
"""Episodes as training data with credit: a row per step, or a row per episode.

| shape | one row |
|---|---|
| `steps` | what the model saw (`prompt`), what it said (`completion`), and the credit of that step |
| `episodes` | the whole conversation (`prompt`, `completion`), and the credit of each of its steps (`steps`) |
| the log | the credit of a step alone, without messages: what a training loop writes down of each batch |

Rows of draws that said the same are all kept, because each was drawn: dropping one would change what is learnt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from reward_kit.agent.recorded import with_whole_prompts
from reward_kit.agent.step_credit import CreditSettings, StepCredit, aligned_rewards, step_credits
from reward_kit.models import Tokens
from reward_kit.storage.judged import Turns
from reward_kit.storage.judged_episodes import JudgedEpisode

__all__ = ["episode_rows", "log_rows"]

Row = dict[str, Any]


def episode_rows(
    samples: Iterable[Sequence[JudgedEpisode]],
    shape: Literal["steps", "episodes"],
    settings: CreditSettings,
    counts: Counter[str],
    *,
    splits: frozenset[str] = frozenset(),
    with_tokens: bool = False,
) -> Iterator[Row]:
    """The rows. `counts` is filled with what was read, what became of it, and which rewards found no step.

    `splits`: only these, where some are named. With `with_tokens`, every step has its token ids and log-probabilities,
    as the endpoint told them.
    """
    rows_of = _step_rows if shape == "steps" else _episode_row
    for episodes in samples:
        if splits and episodes[0].split not in splits:
            continue
        counts["samples"] += 1
        counts["episodes"] += len(episodes)
        credits = step_credits(episodes, settings)
        counts["not judged"] += credits.count(None)
        for episode, credit in zip(episodes, credits, strict=True):
            if credit is None:
                continue
            counts["steps"] += len(credit)
            counts["truncated"] += bool(episode.truncated)
            _count_misfits(episode, counts)
            for row in rows_of(episode, credit, with_tokens):
                counts["rows"] += 1
                yield row


def _count_misfits(episode: JudgedEpisode, counts: Counter[str]) -> None:
    aligned = aligned_rewards(episode)
    if aligned is not None:
        counts["rewards for steps that do not exist"] += len(aligned.foreign)
        counts["steps with several rewards, of which the first counts"] += len(aligned.double)
        counts["steps without a reward"] += len(aligned.missing)


def log_rows(episodes: Sequence[JudgedEpisode], settings: CreditSettings) -> Iterator[Row]:
    """The credit of every step of one sample's episodes, as rows without messages."""
    for episode, credit in zip(episodes, step_credits(episodes, settings), strict=True):
        for step in credit or ():
            yield _whose(episode) | step._asdict()


def _step_rows(episode: JudgedEpisode, credit: Sequence[StepCredit], with_tokens: bool) -> Iterator[Row]:
    offered = None
    tokens = _whole_tokens(episode) if with_tokens else [None] * len(credit)
    for step, own, whole in zip(episode.steps, credit, tokens, strict=True):
        offered = offered if step.tools is None else step.tools
        yield {
            "prompt": [*episode.prompt, *_as_sent(episode.turns[: step.turn])],
            "completion": [_shared(episode.turns[step.turn])],
            **({} if offered is None else {"tools": offered}),
            **_whose(episode),
            **own._asdict(),
            **({"tokens": whole} if with_tokens else {}),
        }


def _whole_tokens(episode: JudgedEpisode) -> list[dict[str, Any] | None]:
    """The tokens of each step with all of its prompt: a row stands alone."""
    told = (None if step.tokens is None else Tokens.model_validate(step.tokens) for step in episode.steps)
    return [None if each is None else each.model_dump(exclude_none=True) for each in with_whole_prompts(told)]


def _episode_row(episode: JudgedEpisode, credit: Sequence[StepCredit], with_tokens: bool) -> Iterator[Row]:
    steps = [own._asdict() for own in credit]
    steps = [
        row | ({} if step.tools is None else {"tools": step.tools})
        for row, step in zip(steps, episode.steps, strict=True)
    ]
    if with_tokens:
        steps = [row | {"tokens": step.tokens} for row, step in zip(steps, episode.steps, strict=True)]
    yield {"prompt": episode.prompt, "completion": [*map(_shared, episode.turns)], **_whose(episode), "steps": steps}


def _whose(episode: JudgedEpisode) -> Row:
    return {
        "query_id": episode.query_id,
        "split": episode.split,
        "response_index": episode.response_index,
        "num_steps": len(episode.steps),
        "score": episode.score,
        "ended": episode.ended,
        "truncated": episode.truncated,
    }


def _as_sent(turns: Turns) -> Turns:
    """Turns as the model saw them: what it thought before an earlier answer is there where that was sent back to it."""
    return [_shared(turn, () if turn.get("sent_back") else ("reasoning_content",)) for turn in turns]


def _shared(turn: dict[str, Any], but: Sequence[str] = ()) -> dict[str, Any]:
    """A turn without what is only for the endpoint, and `but` for some fields."""
    return {name: held for name, held in turn.items() if name != "sent_back" and name not in but}
