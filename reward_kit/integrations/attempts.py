# SPDX-License-Identifier: Apache-2.0
"""A trainer's row and what its model answered, as a rollout: what every adapter has its reward judge.

row {prompt, columns …} + completion ─▶ Sample, by the one reading of rows ─▶ Rollout
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from reward_kit.datasets.interpret import RowReader
from reward_kit.datasets.rows import Written, as_table
from reward_kit.errors import RewardError
from reward_kit.integrations.turns import completion_turns, prompt_turns
from reward_kit.models import Message, Rollout, Sample, split_off_answer
from reward_kit.remote.protocol import can_be_sent
from reward_kit.reward_call import RewardCall
from reward_kit.utils.trusted import text_message, trusted

__all__ = ["answered", "attempt", "attempt_of_turns", "known_to", "sample_for", "skyrl_row"]

_rows = RowReader()
_rollout = trusted(Rollout)
_JUST_TEXT = {"role", "content"}
_PLAIN = (str, int, float, bool, list, dict, type(None))


def attempt(row: Mapping[str, Any], prompt: Any, completion: Any, objects: Mapping[str, Any] | None = None) -> Rollout:
    """One answer of the model to a row, whose prompt is told apart: a text, or a list of messages.

    `objects` are live objects of the trainer, which are no part of the row and reach only a reward that names them.
    """
    return answered(sample_for(row, prompt, objects), completion)


def attempt_of_turns(row: Mapping[str, Any], turns: Sequence[Any], objects: Mapping[str, Any] | None = None) -> Rollout:
    """The same for a whole conversation, its answer last."""
    asked, said = split_off_answer(_messages(turns))
    whole = {**row, "messages": [turn.model_dump(exclude_unset=True) for turn in asked]}
    sample = _rows.sample_as_it_is(whole, asked, as_table)
    sample.columns.update(objects or {})
    return _rollout(sample=sample, response_index=0, turns=said)


def sample_for(
    row: Mapping[str, Any], prompt: Any, objects: Mapping[str, Any] | None = None, written: Written = as_table, *,
    named: bool = True,
) -> Sample:  # fmt: skip
    """What a row asks: see `attempt`. Trainers' rows come from tables, unless `written` says something else.

    `named`: somebody looks at the id of the sample.
    """
    sample = _rows.sample_as_it_is(row, _messages(prompt_turns(prompt)), written, named=named)
    if objects:
        sample.columns.update(objects)
    return sample


def answered(sample: Sample, completion: Any) -> Rollout:
    """The sample with what the model answered: a text, or the turns it added."""
    return _rollout(sample=sample, response_index=0, turns=_messages(completion_turns(completion)))


def _messages(turns: Sequence[Any]) -> list[Message]:
    return [_message(turn) for turn in turns]


def _message(turn: Any) -> Message:
    if type(turn) is dict and turn.keys() == _JUST_TEXT and type(turn["content"]) is type(turn["role"]) is str:
        return text_message(turn["role"], turn["content"])  # as it mostly is
    try:
        return turn if isinstance(turn, Message) else Message.model_validate(turn)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise RewardError(f"{turn!r} is no message: {first['msg']}. Send OpenAI-shaped messages.") from None


def known_to(call: RewardCall, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a trainer gives beside a row: the columns, and the live objects that the reward names.

    What is no plain data cannot be written down or sent, so it reaches only a reward that asks for it by name.
    """
    if call.is_remote:  # a reward elsewhere could do nothing with an object, whoever holds it
        return {name: value for name, value in given.items() if can_be_sent(value)}, {}
    columns = {name: value for name, value in given.items() if isinstance(value, _PLAIN)}
    objects = {name: value for name, value in given.items() if name not in columns and call.wants(name)}
    return columns, objects


def skyrl_row(extras: Mapping[str, Any]) -> dict[str, Any]:
    """A row of SkyRL's, which keeps the ground truth in its `reward_spec`."""
    spec = extras.get("reward_spec")
    truth = {"ground_truth": spec.get("ground_truth")} if isinstance(spec, Mapping) else {}
    return {**{name: value for name, value in extras.items() if name != "reward_spec"}, **truth}
