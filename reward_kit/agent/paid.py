# SPDX-License-Identifier: Apache-2.0
"""What was paid for one attempt at an episode, in this entry of a run and in those before.

Each reply is counted when it comes, whatever becomes of its turn: a world that fails, an episode that is begun again in
another one, and a request that came to nothing were paid for all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reward_kit.agent.environment import Answer
from reward_kit.agent.recorded import answer_from, completion_from, is_same_message, message_from
from reward_kit.config_models import Price
from reward_kit.generation.prices import spending
from reward_kit.generation.usage import summed, used_by
from reward_kit.models import Completion, Failure, Message, Rollout, Usage
from reward_kit.storage.turn_journal import Recording

__all__ = ["Paid"]


def _replies_in(turns: Sequence[Message], recorded: Recording) -> int:
    """How many of the recorded replies stand in the turns of a rollout. An episode that began again has others."""
    at = 0 if recorded.opening is None else len(recorded.opening["messages"])
    for told, turn in enumerate(recorded.turns):
        if at >= len(turns) or not is_same_message(turns[at], message_from(turn.reply["message"])):
            return told
        at += 1 + len((turn.answer or {"messages": ()})["messages"])
    return len(recorded.turns)


def _tokens(usage: Usage | None) -> int:
    return 0 if usage is None else usage.prompt_tokens + usage.completion_tokens


class Paid:
    """Running sums of tokens and money. The money is None where a part of it is not known."""

    def __init__(self, price: Price | None) -> None:
        """Nothing was paid yet."""
        self._price = price
        self._used: list[Usage] = []
        self._turns = 0
        """The turns of the model that are counted."""
        self.cost: float | None = 0.0

    @property
    def usage(self) -> Usage | None:
        """The tokens of all replies together."""
        return summed(self._used)

    def count_before(self, failed: Rollout | None, recorded: Recording, shared: int) -> None:
        """What earlier entries paid: as the rollout that `failed` says, and for turns that were recorded since.

        The first `shared` turns are another episode's.
        """
        told = shared
        begun = recorded.opening or {}
        before = Usage.model_validate(begun["paid"]["usage"]) if "paid" in begun else None
        if failed is not None and _tokens(failed.usage) >= _tokens(before):
            told = max(shared, _replies_in(failed.turns, recorded))
            self._used += [] if failed.usage is None else [failed.usage]
            self.cost = failed.cost
        elif before is not None:  # the episode was begun again since
            self._used.append(before)
            self.cost = begun["paid"]["cost"]
        elif begun:
            self.count_answer(answer_from(begun)[0])
        self._turns = told
        for turn in recorded.turns[told:]:
            self.count(completion_from(turn.reply), self._turns)
            if turn.answer is not None:
                self.count_answer(answer_from(turn.answer)[0])

    def as_fields(self) -> dict[str, Any]:
        """What was paid up to now, as the opening of an episode that begins again holds it, where anything was."""
        usage = self.usage
        return {} if usage is None else {"paid": {"usage": usage, "cost": self.cost}}

    def count(self, outcome: Completion | Failure, turn: int) -> None:
        """What the model said in a turn of the episode, or why it said nothing."""
        known, self._turns = turn < self._turns, max(self._turns, turn + isinstance(outcome, Completion))
        if isinstance(outcome, Completion) and outcome.cached:  # paid for before, perhaps by an entry that was killed
            if known:
                return  # it was counted then
            self._used += [] if outcome.usage is None else [outcome.usage]
            return
        used = used_by(outcome)
        self._used += used
        if isinstance(outcome, Completion) and not used and self._price is None:
            self.cost = None  # an answer of which nobody knows what it took
        elif used:
            self._add(spending(used, self._price))

    def count_answer(self, answer: Answer) -> None:
        """What the world answered."""
        self.count_money(answer.cost, at_most=answer.cost_is_at_most)

    def count_money(self, cost: float, *, at_most: bool) -> None:
        """What the world paid."""
        self._add(cost)
        if at_most:
            self._used.append(Usage(at_most=True))

    def _add(self, cost: float | None) -> None:
        self.cost = None if cost is None or self.cost is None else self.cost + cost
