# SPDX-License-Identifier: Apache-2.0
"""Episodes: a model acts in a world, turn by turn, until the world, the model or a limit ends it.

    open a world ──▶ what it shows ══▶ on disk ──▶ the model speaks ══▶ on disk ──▶ the world answers ══▶ on disk ──▶ …

An episode that was interrupted goes on where it stood: it is played again in a fresh world, without asking the model or
a user, and what the world shows at its start and answers must be what it showed and answered before. Going on after a
crash, trying again with a fresh world, branching off an old episode and opening a world for a reward are this one
operation.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reward_kit.agent.branching import Branches, Leaving
from reward_kit.agent.calls import Approval
from reward_kit.agent.calls_in_text import with_calls_in_text, with_unread_call
from reward_kit.agent.environment import Answer, Durability, Environment, World
from reward_kit.agent.open_world import (
    as_answer,
    ask_world,
    attached_states,
    facts_of,
    open_world,
    restore_attached,
)
from reward_kit.agent.paid import Paid
from reward_kit.agent.recorded import (
    answer_fields,
    answer_from,
    completion_from,
    difference,
    is_whole,
    messages_from,
    other_facts,
    other_tools,
    recording_of_rollout,
    reply_fields,
)
from reward_kit.agent.tools import Tool
from reward_kit.agent.transcript import Limits, Transcript, was_cut_off
from reward_kit.agent.watch import EpisodeWatch
from reward_kit.config_models import AgentConfig, Price, Sampling
from reward_kit.datasets import content_digest
from reward_kit.errors import EnvironmentFailure, ItemError, ReplayError, StorageError
from reward_kit.generation.client import ModelClient
from reward_kit.models import SYSTEM_ROLES, Branch, Completion, Ended, Failure, Message, Rollout, Sample
from reward_kit.redaction import without_secrets
from reward_kit.storage.turn_journal import RecordedTurn, Recording, Turns
from reward_kit.utils.clock import now_to_the_millisecond

__all__ = ["Episodes", "replayed"]


@dataclass(frozen=True, slots=True)
class _Setting:
    """What all episodes of a run have in common."""

    environment: Environment
    config: AgentConfig
    limits: Limits
    price: Price | None = None
    client: ModelClient | None = None
    """None where the model is not to be asked any more."""
    sampling: Sampling = field(default_factory=Sampling)
    journal: Turns | None = None
    approve: Approval | None = None
    watch: EpisodeWatch = field(default_factory=EpisodeWatch)


class Episodes:
    """The play of an agent: each draw of a sample is an episode in a world of its own."""

    def __init__(  # noqa: PLR0913 - what a run is made of, each by its name
        self,
        client: ModelClient,
        sampling: Sampling,
        price: Price | None,
        environment: Environment,
        config: AgentConfig,
        *,
        journal: Turns | None = None,
        approve: Approval | None = None,
        branches: Branches | None = None,
        known: Callable[[str, int], Rollout | None] = lambda *_: None,
    ) -> None:
        """Have `client` act in worlds of `environment`; turns are kept in `journal`, and found there again.

        `branches` leave episodes that were just played, or that are `known` from an earlier entry of the run.
        """
        limits, watch = Limits(config), EpisodeWatch()
        self._setting = _Setting(environment, config, limits, price, client, sampling, journal, approve, watch)
        self._branches, self._known = branches, known
        self.watch = watch

    async def __call__(self, sample: Sample, draws: Sequence[int]) -> list[Rollout]:
        """One rollout per draw, in the order of `draws`."""
        if self._branches is None:
            return await self._play_all(sample, dict.fromkeys(draws))
        return await self._play_levels(sample, draws, self._branches)

    async def _play_levels(self, sample: Sample, draws: Sequence[int], branches: Branches) -> list[Rollout]:
        """Play the draws that are played from the start, then those that leave them, level by level."""
        made: dict[int, Rollout] = {}
        parents: list[Rollout] = []
        for number, level in enumerate(branches.levels()):
            owed = [draw for draw in level if draw in draws]
            leaving = branches.leaving(parents, level) if number and owed else dict.fromkeys(level)
            played = await self._play_all(sample, {draw: leaving[draw] for draw in owed})
            made |= {rollout.response_index: rollout for rollout in played}
            known = (made.get(draw) or self._known(sample.id, draw) for draw in level)
            parents = [rollout for rollout in known if rollout is not None]
        return [made[draw] for draw in draws]

    async def _play_all(self, sample: Sample, draws: Mapping[int, Leaving | None]) -> list[Rollout]:
        if len(draws) == 1:
            return [await self._play(sample, *each) for each in draws.items()]
        episodes = (self._play(sample, draw, leaving) for draw, leaving in draws.items())
        played = await asyncio.gather(*episodes, return_exceptions=True)
        for each in played:
            if isinstance(each, BaseException):
                raise each  # the turns of the others are on disk: entering the run again has them for nothing
        return [each for each in played if isinstance(each, Rollout)]

    async def _play(self, sample: Sample, draw: int, leaving: Leaving | None) -> Rollout:
        setting = self._setting
        recorded = self._on_disk(sample, draw) or Recording(None, [])
        paid, shared, branch = Paid(setting.price), 0, None
        if leaving is None:
            paid.count_before(self._known(sample.id, draw), recorded, 0)
        if leaving is None and recorded.opening is None:
            recorded = Recording(None, [])  # its line is damaged: whether the turns follow from another cannot be told
        elif leaving is not None:
            parent, shared = leaving
            before = recording_of_rollout(parent, shared)
            following = recorded.turns
            recorded = Recording(before.opening, [*before.turns, *following], None if following else before.offered)
            began_as = None if parent.branch is None else parent.world_draw
            branch = Branch(response_index=parent.response_index, step=shared, draw=began_as)
            paid.count_before(self._known(sample.id, draw), recorded, shared)
        self.watch.in_flight += 1
        try:
            attempts = setting.config.world_retries + 1
            while True:
                attempts -= 1
                episode = _Episode(setting, sample, draw, recorded, shared, branch, paid)
                try:
                    return await episode.run()
                except ItemError as failure:
                    if isinstance(failure, EnvironmentFailure):
                        paid.count_money(failure.cost, at_most=failure.cost_is_at_most)
                    recorded = episode.on_disk
                    if not (attempts and failure.retryable and isinstance(failure, EnvironmentFailure)):
                        return episode.failed(Failure.of(failure, "generate"))
        finally:
            self.watch.in_flight -= 1

    def _on_disk(self, sample: Sample, draw: int) -> Recording | None:
        """An episode that was interrupted, where there is one."""
        journal = self._setting.journal
        found = None if journal is None else journal.recording_of(sample.id, draw)
        begun = {} if found is None else found.opening or found.turns[0].reply
        if begun.get("sample") not in (None, content_digest(sample)):
            raise StorageError(
                f"Sample {sample.id!r} has changed since its episode was started: its prompt, ground truth or columns "
                "are different. Restore the dataset, or choose another `output.output_dir`."
            )
        return found


class _Episode:
    """One attempt at an episode, in one world."""

    def __init__(
        self, setting: _Setting, sample: Sample, draw: int, recorded: Recording, shared: int,
        branch: Branch | None, paid: Paid | None = None,
    ) -> None:  # fmt: skip
        """`recorded` is what to begin with; its first `shared` turns are another episode's. `paid`: before this."""
        self._setting, self._sample, self._draw = setting, sample, draw
        self._given = self._recorded = recorded
        self._shared, self._branch = shared, branch
        self._transcript = Transcript(sample, setting.price)
        self._paid = paid or Paid(setting.price)
        self._durability: Durability = "replay"
        self._tools: list[dict[str, Any]] = []
        self.so_far: list[RecordedTurn] = []
        """The turns that this attempt has made or played again."""
        self._opening: dict[str, Any] | None = None
        self._cut_off: Mapping[str, Any] = {}
        """What is on disk of the present turn of the world, where that was cut off before."""
        self._counted = 0.0
        """What of the cost of the present turn is counted already."""

    async def run(self) -> Rollout:
        """Play to the end."""
        setting, transcript = self._setting, self._transcript
        draw = self._draw if self._branch is None else self._branch.world_draw
        opening = open_world(setting.environment, self._sample, setting.config, setting.approve, draw=draw)
        async with opening as world:
            ended = await self.begin(world)
            while ended is None and (ended := setting.limits.reached(transcript)) is None:
                outcome = await self._ask(world)
                if isinstance(outcome, Completion):
                    await self._keep_reply(outcome)
                    ended = await self._answered(world, outcome)
                elif outcome.type == "ContextLengthError" and transcript.steps:
                    ended = "context"
                else:
                    return self.failed(outcome)
            facts = await facts_of(world, setting.config)
        return self._rollout(ended, facts)

    # -- beginning, or going on

    async def begin(self, world: World) -> Ended | None:
        """Open the conversation, and play the recorded turns again; how the episode ended, where it had."""
        self._durability = self._setting.config.durability or world.durability
        if self._durability == "restart" and not self._shared:
            self._recorded = Recording(None, [])
        restored, ended = await self._opened(world)
        for turn in self._recorded.turns:
            if ended is not None:
                raise self._differs("the episode was over before")
            completion = completion_from(turn.reply)
            self._transcript.reply(completion, turn.reply.get("tools"))
            self._transcript.seconds_before += completion.latency_ms / 1000 + (turn.answer or {}).get("seconds", 0.0)
            self.so_far.append(turn)
            if restored and is_whole(turn.answer):
                ended = self._take(completion.message, turn.answer)
                continue
            await self._compare_tools(world, self._transcript.tools)
            ended = await self._answered(world, completion, turn.answer)
        await self._compare_tools(world, self._recorded.offered)
        if self.so_far:
            self._transcript.began = time.monotonic()  # what went before counts as it was, not as it was played again
        return ended

    async def _opened(self, world: World) -> tuple[bool, Ended | None]:
        """Have the world begin. Whether a snapshot put it where it was, and how the episode ended, where it had."""
        config, runner, known = self._setting.config, world.runner, self._recorded.opening
        runner.conversation, runner.draw = self._transcript.conversation, self._draw
        before = self._begin_turn(world, known)
        opening = as_answer(await ask_world(config, "start", world.start))
        state = self._last_snapshot()
        if state is not None:
            await ask_world(config, "restore", world.restore, base64.b64decode(state["snapshot"]))
            restore_attached(world, state.get("attached"))
        if before is None or known is None:
            opening = self._paid_for(opening)
            await self._keep_opening(world, opening)
        else:
            how = None if state is not None else difference(opening, known, before)
            if how is not None:
                raise self._differs(how)
            self._opening, opening = known, replace(answer_from(known)[0], done=opening.done)
        self._transcript.open(opening)
        conversation = self._transcript.conversation
        asked = any(message.role not in SYSTEM_ROLES for message in conversation)
        if not (opening.done or asked or (conversation and not world.needs_question)):
            raise EnvironmentFailure(
                f"Sample {self._sample.id!r} asks nothing, and the world opened the conversation with nothing. Give "
                "the row a question, or return messages from `start`.",
                retryable=False,
            )
        return state is not None, "done" if opening.done else None

    def _last_snapshot(self) -> Mapping[str, Any] | None:
        """The last state of the world that is on disk, where it can be put there without playing its turns again."""
        if self._durability != "snapshot":
            return None
        answered = [turn.answer for turn in self._recorded.turns if is_whole(turn.answer)]
        last = answered[-1] if answered else self._recorded.opening
        return None if last is None or "snapshot" not in last else last

    async def _keep_opening(self, world: World, opening: Answer) -> None:
        """Have on disk what the world began with, before anything is asked of it."""
        fields, journal = answer_fields(opening, ()), self._setting.journal
        if journal is None or self._shared:
            self._opening = fields
            return
        state = await self._snapshot_of(world)
        self._opening = fields | self._paid.as_fields()
        journal.put_opening(
            self._sample.id, self._draw, {**self._opening, **state, "sample": content_digest(self._sample)}
        )
        if opening.messages or opening.noted is not None or state:
            await journal.on_disk()

    async def _snapshot_of(self, world: World) -> dict[str, Any]:
        """The state of the world, as the journal holds it, where it is to be put there again."""
        if self._durability != "snapshot":
            return {}
        state = await ask_world(self._setting.config, "snapshot", world.snapshot)
        if not isinstance(state, bytes):
            raise EnvironmentFailure(
                f"The world's 'snapshot' gave a {type(state).__name__}. Return bytes.", retryable=False
            )
        return {"snapshot": base64.b64encode(state).decode(), **attached_states(world)}

    def _take(self, message: Message, recorded: Mapping[str, Any]) -> Ended | None:
        """Go on as if the world had just given the recorded answer."""
        answer, uses = answer_from(recorded)
        self._transcript.answer(answer, uses)
        return self._setting.limits.end_of(message, answer)

    # -- one turn

    async def _ask(self, world: World) -> Completion | Failure:
        setting = self._setting
        if setting.client is None:
            raise AssertionError("there is nobody to ask")
        offered = await self._offered(world)
        self._tools = _specs(offered)
        (outcome,) = await setting.client.generate(
            self._transcript.conversation,
            draws=(self._draw,),
            sampling=setting.sampling,
            tools=self._tools or self._sample.tools,
            sample_id=self._sample.id,
        )
        self._paid.count(outcome, len(self._transcript.steps))
        if isinstance(outcome, Failure):
            return outcome
        turn, message = len(self._transcript.steps), outcome.message
        if setting.config.calls_in_text and offered and not message.tool_calls:
            message = with_calls_in_text(message, offered)
        if outcome.finish_reason == "malformed_call" and offered and not message.tool_calls:
            message = with_unread_call(message)
        message = _with_call_ids(message, turn)
        return outcome if message is outcome.message else outcome.model_copy(update={"message": message})

    async def _keep_reply(self, completion: Completion) -> None:
        """Have what was paid for on disk before anything is done with it."""
        fields = reply_fields(completion)
        if self._shared and len(self.so_far) == self._shared:  # its opening is the other episode's
            fields["sample"] = content_digest(self._sample)
        if self._tools != self._transcript.tools:
            fields["tools"] = self._tools
        self._transcript.reply(completion, fields.get("tools"))
        self.so_far.append(RecordedTurn(fields, None))
        journal = self._setting.journal
        if journal is not None:
            journal.put_reply(self._sample.id, self._draw, self._number, fields)
            await journal.on_disk()

    async def _answered(
        self, world: World, completion: Completion, recorded: Mapping[str, Any] | None = None
    ) -> Ended | None:
        """Have the world answer what the model said; where the answer is `recorded`, it must be the same."""
        setting, runner = self._setting, world.runner
        before = self._begin_turn(world, recorded)
        asked = time.monotonic()
        answer = self._paid_for(as_answer(await ask_world(setting.config, "answer", world.answer, completion.message)))
        setting.watch.turns += 1
        setting.watch.tool_calls += len(runner.uses)
        setting.watch.tool_errors += sum(use.error is not None for use in runner.uses)
        if before is not None and recorded is not None:
            if (how := difference(answer, recorded, before)) is not None:
                raise self._differs(how)
            return self._take(completion.message, {**recorded, "done": answer.done})
        self._transcript.answer(answer, runner.uses)
        await self._keep_answer(world, answer, time.monotonic() - asked)
        return setting.limits.end_of(completion.message, answer)

    def _begin_turn(self, world: World, recorded: Mapping[str, Any] | None) -> list[Message] | None:
        """Tell the world's runner what is on disk of its turn; the messages that must come back, where it is whole."""
        before = messages_from(recorded) if is_whole(recorded) else None
        self._cut_off, self._counted = (recorded or {}) if before is None else {}, 0.0
        world.runner.begin_turn(before, None if recorded is None else recorded.get("noted"))
        world.runner.keep = None if before is not None else self._keep_note
        return before

    def _paid_for(self, answer: Answer) -> Answer:
        """The answer with the cost of all its turn; what is not counted yet is."""
        self._paid.count_money(answer.cost - self._counted, at_most=answer.cost_is_at_most)
        before = self._cut_off
        cost, at_most = before.get("cost", 0.0), before.get("cost_is_at_most", False)
        return replace(answer, cost=answer.cost + cost, cost_is_at_most=answer.cost_is_at_most or at_most)

    async def _keep_note(self, noted: Any, cost: float, at_most: bool) -> None:
        """Have on disk what happened in a turn of the world that is not over."""
        self._paid.count_money(cost - self._counted, at_most=at_most)
        self._counted = cost
        before = self._cut_off
        so_far = Answer(
            noted=noted, cost=cost + before.get("cost", 0.0),
            cost_is_at_most=at_most or before.get("cost_is_at_most", False),
        )  # fmt: skip
        fields = answer_fields(so_far, ()) | {"cut_off": True}
        journal = self._setting.journal
        if self.so_far:
            self.so_far[-1] = self.so_far[-1]._replace(answer=fields)
            if journal is not None:
                journal.put_answer(self._sample.id, self._draw, self._number, fields)
        else:
            self._opening = fields | self._paid.as_fields()
            if journal is not None:
                journal.put_opening(
                    self._sample.id, self._draw, {**self._opening, "sample": content_digest(self._sample)}
                )
        if journal is not None:
            await journal.on_disk()

    async def _keep_answer(self, world: World, answer: Answer, seconds: float) -> None:
        fields = (
            answer_fields(answer, world.runner.uses) | {"seconds": round(seconds, 3)} | await self._snapshot_of(world)
        )
        self.so_far[-1] = self.so_far[-1]._replace(answer=fields)
        journal = self._setting.journal
        if journal is not None:
            journal.put_answer(self._sample.id, self._draw, self._number, fields)
            await journal.on_disk()

    @property
    def _number(self) -> int:
        """The number of the present turn in the journal, which does not repeat the turns of another episode."""
        return len(self.so_far) - 1 - self._shared

    @property
    def on_disk(self) -> Recording:
        """The episode as far as it came, in this attempt or in those before.

        A world that failed while turns were played again has not reached the last of them.
        """
        if self._opening is None:  # this attempt has written nothing
            return self._given
        own = Recording(self._opening, self.so_far)
        return max(self._recorded, own, key=lambda each: len(each.turns))

    async def _offered(self, world: World) -> Sequence[Tool]:
        """The tools of the world as they are now."""
        if world.has_tools_at_hand:
            return world.offered
        offered: Sequence[Tool] = await ask_world(self._setting.config, "tools", world.all_tools)
        return offered

    async def _compare_tools(self, world: World, recorded: Sequence[Mapping[str, Any]] | None) -> None:
        """Raise where the world does not offer the tools that are recorded, where any are."""
        if recorded and (how := other_tools(_specs(await self._offered(world)), recorded)) is not None:
            raise self._differs(how)

    def compare_facts(self, facts: Mapping[str, Any], recorded: Mapping[str, Any]) -> None:
        """Raise where the world does not tell in the end what is recorded of it."""
        if (how := other_facts(facts, recorded)) is not None:
            raise self._differs(how, "at its end")

    def _differs(self, how: str, where: str | None = None) -> ReplayError:
        where = where or (f"in turn {len(self.so_far) - 1}" if self.so_far else "at its start")
        return ReplayError(
            f"Episode {self._draw} of sample {self._sample.id!r} gave other results when it was played again, {where}: "
            f"{how}. Make the world give the same results for the same calls, or set "
            "`agent.durability=restart`; then run again with `retry_failed`."
        )

    # -- the end

    def _rollout(self, ended: Ended | None, facts: dict[str, Any]) -> Rollout:
        transcript, setting = self._transcript, self._setting
        last = transcript.steps[-1].finish_reason if transcript.steps else None
        return Rollout(
            sample=self._sample,
            response_index=self._draw,
            turns=transcript.turns,
            model=transcript.model or (setting.client.model if setting.client is not None else None),
            sampling=without_secrets(setting.sampling.given()),
            finish_reason=last,
            usage=self._paid.usage,
            cost=self._paid.cost,
            latency_ms=sum(step.latency_ms or 0.0 for step in transcript.steps),
            cached=bool(transcript.steps) and all(step.cached for step in transcript.steps),
            generated_at=now_to_the_millisecond(),
            steps=transcript.steps,
            ended=ended,
            truncated=was_cut_off(ended, transcript),
            opening=transcript.opening,
            facts=facts,
            branch=self._branch,
        )

    def failed(self, failure: Failure) -> Rollout:
        """The episode as far as it came, with what ended it."""
        opening, turns, _ = self.on_disk
        if len(turns) > len(self.so_far):
            self._transcript = Transcript(self._sample, self._setting.price)
            if is_whole(opening):
                self._transcript.open(answer_from(opening)[0])
            for turn in turns:
                self._transcript.reply(completion_from(turn.reply), turn.reply.get("tools"))
                if is_whole(turn.answer):
                    self._transcript.answer(*answer_from(turn.answer))
        whole = self._rollout(None, {})
        return whole.model_copy(update={"failure": failure, "facts": None, "truncated": None})


@contextlib.asynccontextmanager
async def replayed(environment: Environment, rollout: Rollout, config: AgentConfig) -> AsyncIterator[World]:
    """A fresh world in which all steps of a rollout have been played again, for a reward to look at.

    Where the world does or tells something else than is recorded, a `ReplayError`: there is nothing to judge then.
    """
    setting = _Setting(environment, config, Limits(config))
    recorded = recording_of_rollout(rollout)
    async with open_world(environment, rollout.sample, config, draw=rollout.world_draw) as world:
        episode = _Episode(setting, rollout.sample, rollout.response_index, recorded, len(recorded.turns), None)
        await episode.begin(world)
        if rollout.facts is not None:
            episode.compare_facts(await facts_of(world, config), rollout.facts)
        yield world


def _specs(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Tools as a model is offered them."""
    return [tool.spec for tool in tools]


def _with_call_ids(message: Message, turn: int) -> Message:
    """The message with an id on each call: some endpoints give none, and results must find their call."""
    calls = message.tool_calls
    if not calls or (len(calls) == 1 and calls[0].id) or len({call.id for call in calls if call.id}) == len(calls):
        return message
    named = [call.model_copy(update={"id": f"call_{turn}_{place}"}) for place, call in enumerate(calls)]
    return message.model_copy(update={"tool_calls": named})
