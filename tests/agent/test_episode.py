# SPDX-License-Identifier: Apache-2.0
"""Episodes: how they go, how they end, and that one that was cut off anywhere goes on as if nothing had happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from reward_kit.agent import Answer, Episodes, World, tool
from reward_kit.agent.environment import Environment, environment_of
from reward_kit.agent.episode import replayed
from reward_kit.config_models import AgentConfig, Sampling
from reward_kit.errors import ReplayError
from reward_kit.models import Failure, Message, Rollout, Sample
from reward_kit.storage.turn_journal import TurnJournal
from tests.agent.worlds import (
    SAMPLE,
    Account,
    Model,
    Snapshots,
    Walk,
    call,
    calls,
    double,
    essence,
    says,
    settings,
)

SAVING = [
    calls(call("deposit", {"amount": 3})),
    calls(call("balance_now"), call("deposit", {"amount": "4"})),
    calls(call("withdraw", {"amount": 1})),
    calls(call("deposit", {"amount": 1}, "own-id")),
    says("There are 8."),
]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[TurnJournal]:
    with TurnJournal(tmp_path / "episodes.jsonl") as journal:
        yield journal


async def played(
    model: Model, world: Any = Account, config: AgentConfig | None = None, journal: TurnJournal | None = None,
    sample: Sample = SAMPLE,
) -> Rollout:  # fmt: skip
    environment = world if isinstance(world, Environment) else environment_of(world)
    (rollout,) = await Episodes(model, Sampling(), None, environment, config or settings(), journal=journal)(
        sample, [0]
    )
    return rollout


async def test_an_episode_is_its_turns_and_one_step_for_each_of_the_models() -> None:
    rollout = await played(Model(SAVING))
    assert rollout.failure is None
    assert (rollout.ended, rollout.truncated) == ("answered", False)
    assert rollout.facts == {"balance": 8, "history": [3, 4, 1]}
    assert [turn.role for turn in rollout.turns] == (
        ["assistant", "tool", "assistant", "tool", "tool", "assistant", "tool", "assistant", "tool", "assistant"]
    )
    assert rollout.steps is not None
    assert [step.turn for step in rollout.steps] == [0, 2, 5, 7, 9]
    assert [[use.error for use in step.calls] for step in rollout.steps] == [
        [None],
        [None] * 2,
        ["unknown_tool"],
        [None],
        [],
    ]
    assert rollout.usage is not None and rollout.usage.completion_tokens == 15


async def test_a_result_finds_its_call_also_where_the_endpoint_gives_no_ids() -> None:
    rollout = await played(Model(SAVING))
    asked = [each.id for turn in rollout.turns for each in turn.tool_calls or ()]
    assert asked == [turn.tool_call_id for turn in rollout.turns if turn.role == "tool"]
    assert len(set(asked)) == len(asked) and "own-id" in asked


async def test_a_text_game_needs_no_tools_and_gives_rewards_and_states() -> None:
    rollout = await played(Model(lambda *_: says("right")), Walk)
    assert rollout.steps is not None
    assert [step.reward for step in rollout.steps] == [1, 2, 3, 4, 5]
    assert [step.state for step in rollout.steps][1:] == ["at 1", "at 2", "at 3", "at 4"]
    assert (rollout.ended, rollout.turns[0].content) == ("done", "You stand at 0.")


async def test_a_state_is_what_the_world_showed_before_the_action() -> None:
    first = await played(Model(SAVING))
    other = await played(Model([*SAVING[:1], calls(call("deposit", {"amount": 9})), says("12")]))
    assert first.steps is not None and other.steps is not None
    assert [step.state for step in first.steps[:2]] == [step.state for step in other.steps[:2]]
    assert first.steps[2].state != other.steps[2].state


async def test_functions_alone_are_a_world_with_a_state_of_its_own() -> None:
    model = Model([calls(call("double", {"number": 21})), says("42")])
    environment = environment_of(None, [double])
    rollouts = await Episodes(model, Sampling(), None, environment, settings())(SAMPLE, [0, 1])
    assert [rollout.facts for rollout in rollouts] == [{"doubled": 1}] * 2
    assert rollouts[0].turns[1].content == "42"


class Growing(World):
    """A world whose tools change."""

    def __init__(self, sample: Sample) -> None:
        self.is_open = False

    @tool
    async def unlock(self) -> str:
        """Open the door."""
        self.is_open = True
        return "open"

    @tool
    async def enter(self) -> str:
        """Go in."""
        return "in"

    @property
    def tools(self) -> Any:
        return [each for each in super().tools if each.name == "unlock" or self.is_open]


async def test_tools_may_change_during_an_episode() -> None:
    model = Model([calls(call("enter")), calls(call("unlock")), calls(call("enter")), says("done")])
    rollout = await played(model, Growing)
    assert model.tools == [["unlock"]] * 2 + [["unlock", "enter"]] * 2
    assert rollout.steps is not None
    assert [use.error for step in rollout.steps for use in step.calls] == ["unknown_tool", None, None]


# ── how episodes end ─────────────────────────────────────────────────────────────────────────────────────────────────

FOREVER = Model(lambda *_: calls(call("deposit", {"amount": 1})))


@pytest.mark.parametrize(
    ("limits", "ended", "steps"),
    [
        ({"max_turns": 3}, "max_turns", 3),
        ({"max_tool_calls": 4}, "max_tool_calls", 4),
        ({"max_tokens": 7}, "max_tokens", 3),
        ({"max_context_tokens": 13}, "context", 1),
        ({"max_seconds": 1e-9}, "timeout", 0),
        ({"stop_tools": ["deposit"]}, "stopped", 1),
    ],
)
async def test_a_limit_ends_an_episode_that_would_go_on_for_ever(
    limits: dict[str, Any], ended: str, steps: int
) -> None:
    rollout = await played(FOREVER, config=settings(**limits))
    assert rollout.steps is not None
    assert (rollout.ended, len(rollout.steps), rollout.failure) == (ended, steps, None)
    assert rollout.truncated is (ended != "stopped")
    assert rollout.facts == {"balance": steps, "history": [1] * steps}, "it is judged all the same"


async def test_a_word_ends_an_episode() -> None:
    rollout = await played(Model(lambda *_: says("I give UP.")), Walk, settings(stop_pattern="give (?i:up)"))
    assert (rollout.ended, rollout.truncated) == ("stopped", False)


async def test_wrong_calls_in_a_row_end_an_episode_and_a_right_one_between_them_does_not() -> None:
    wrong, right = calls(call("deposit", "{")), calls(call("deposit", {"amount": 1}))
    often = await played(Model(lambda *_: wrong), config=settings(max_bad_calls=3))
    assert (often.ended, often.truncated) == ("bad_calls", True)
    script = [wrong, wrong, right, wrong, wrong, says("enough")]
    assert (await played(Model(script), config=settings(max_bad_calls=3))).ended == "answered"


async def test_a_prompt_that_no_longer_fits_ends_the_episode_and_one_that_never_did_is_a_failure() -> None:
    too_long = Failure(stage="generate", type="ContextLengthError", message="too long")
    cut = await played(Model([SAVING[0], too_long]))
    assert (cut.ended, cut.truncated, cut.failure) == ("context", True, None)
    never = await played(Model([too_long]))
    assert never.failure == too_long and never.ended is None


async def test_an_endpoint_that_fails_is_a_failure_with_all_that_was_said_before() -> None:
    down = Failure(stage="generate", type="ProviderError", message="down", retryable=True)
    rollout = await played(Model([*SAVING[:2], down]))
    assert rollout.failure == down
    assert rollout.steps is not None and len(rollout.steps) == 2


# ── going on ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("world", [Account, Snapshots])
async def test_an_episode_cut_off_after_any_line_goes_on_and_asks_for_nothing_twice(
    tmp_path: Path, world: type[World]
) -> None:
    path = tmp_path / "episodes.jsonl"
    model = Model(SAVING)
    with TurnJournal(path) as journal:
        whole = await played(model, world, journal=journal)
    written = path.read_bytes().splitlines(keepends=True)
    assert len(written) == 1 + 2 * len(SAVING)
    for kept in range(len(written) + 1):
        for torn in (b"", written[kept][:-20] if kept < len(written) else b""):
            path.write_bytes(b"".join(written[:kept]) + torn)
            again = Model(SAVING)
            with TurnJournal(path) as journal:
                assert essence(await played(again, world, journal=journal)) == essence(whole), kept
            assert len(again.asked) == len(SAVING) - kept // 2
            assert path.read_bytes().startswith(b"".join(written[:kept])), "what was on disk is not touched"


async def test_a_damaged_line_costs_what_came_after_it_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    with TurnJournal(path) as journal:
        whole = await played(Model(SAVING), journal=journal)
    written = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*written[:5], written[5].replace(b"withdraw", b"withdrew"), *written[6:]]))
    again = Model(SAVING)
    with TurnJournal(path) as journal:
        assert essence(await played(again, journal=journal)) == essence(whole)
        assert [turn for _, _, turn in again.asked] == [2, 3, 4]
    with TurnJournal(path) as journal:
        found = journal.recording_of("s", 0)
    assert found is not None and len(found.turns) == len(SAVING), "the later lines hold"


async def test_an_episode_whose_opening_is_damaged_begins_again(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    with TurnJournal(path) as journal:
        whole = await played(Model(SAVING), journal=journal)
    opening, *turns = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([opening.replace(b"opening", b"openinG"), *turns]))
    again = Model(SAVING)
    for asked in (len(SAVING), 0):
        with TurnJournal(path) as journal:
            assert essence(await played(again, journal=journal)) == essence(whole)
        assert len(again.asked) == asked
        again = Model(SAVING)


class Restarting(Account):
    """An account that cannot be had again."""

    durability = "restart"


async def test_a_world_that_cannot_be_had_again_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    with TurnJournal(path) as journal:
        whole = await played(Model(SAVING), Restarting, journal=journal)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]))
    again = Model(SAVING)
    with TurnJournal(path) as journal:
        assert essence(await played(again, Restarting, journal=journal)) == essence(whole)
    assert [turn for _, _, turn in again.asked] == [0, 1, 2, 3, 4]


class Clock(Account):
    """An account that claims to be the same again, and tells the number of times it was opened."""

    @tool
    async def deposit(self, amount: int) -> str:
        """Put money in."""
        return f"{amount} in world {type(self).opened}"


async def test_a_world_that_does_something_else_the_second_time_is_a_failure_that_says_where(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    with TurnJournal(path) as journal:
        await played(Model(SAVING), Clock, journal=journal)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]))
    with TurnJournal(path) as journal:
        rollout = await played(Model(SAVING), Clock, journal=journal)
    assert rollout.failure is not None
    assert (rollout.failure.type, rollout.failure.retryable) == ("ReplayError", False)
    assert "in turn 0" in rollout.failure.message and "is recorded" in rollout.failure.message


async def test_a_sample_that_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    with TurnJournal(path) as journal:
        await played(Model(SAVING), journal=journal)
    other = Sample(id="s", messages=[Message(role="user", content="Go elsewhere.")])
    with TurnJournal(path) as journal, pytest.raises(Exception, match="has changed since its episode"):
        await played(Model(SAVING), journal=journal, sample=other)


async def test_a_reward_is_given_a_world_in_which_the_steps_were_played_again() -> None:
    rollout = await played(Model(SAVING))
    async with replayed(environment_of(Account), rollout, settings()) as world:
        assert isinstance(world, Account)
        assert world.facts() == rollout.facts


async def test_a_world_that_went_another_way_is_never_judged() -> None:
    rollout = await played(Model(SAVING))
    forged = rollout.model_copy(
        update={"turns": [*rollout.turns[:1], rollout.turns[1].model_copy(update={"content": "5"}), *rollout.turns[2:]]}
    )
    with pytest.raises(ReplayError, match="in turn 0"):
        async with replayed(environment_of(Account), forged, settings()):
            raise AssertionError("there is no world to judge by")


async def test_worlds_share_nothing_and_all_are_closed() -> None:
    Account.opened = Account.closed = 0
    model = Model(lambda messages, draw: SAVING[0] if len(messages) < 8 else says("enough"))
    play = Episodes(model, Sampling(), None, environment_of(Account), settings())
    rollouts = await asyncio.gather(*(play(SAMPLE, [draw]) for draw in range(50)))
    assert {str(rollout.facts) for (rollout,) in rollouts} == {str(rollouts[0][0].facts)}
    assert (Account.opened, Account.closed) == (50, 50)
    assert play.watch.in_flight == 0


# ── worlds that fail ─────────────────────────────────────────────────────────────────────────────────────────────────


class Frail(Account):
    """Fails where and as often as a test says."""

    fails: str = ""
    times: int = 0
    how: BaseException | None = None

    @classmethod
    async def _maybe(cls, where: str) -> None:
        if cls.fails == where and cls.times:
            cls.times -= 1
            if cls.how is None:
                await asyncio.sleep(60)
            else:
                raise cls.how

    async def start(self) -> Any:
        await self._maybe("start")

    async def answer(self, message: Message) -> Answer:
        await self._maybe("answer")
        return Answer(await self.use_tools(message), done=not message.tool_calls)

    async def facts(self) -> dict[str, Any]:  # type: ignore[override]
        await self._maybe("facts")
        return Account.facts(self)

    async def close(self) -> None:  # type: ignore[override]
        await self._maybe("close")


async def opened(sample: Sample) -> Frail:
    await Frail._maybe("open")
    return Frail(sample)


FAULTS = [ValueError("broken"), SystemExit(3), None]


def waits(how: BaseException | None, seconds: float) -> dict[str, Any]:
    """A short patience with a world that hangs; with others the usual one, since a busy machine is slow, too."""
    return {"world_timeout": seconds} if how is None else {}


@pytest.mark.parametrize("how", FAULTS, ids=["raises", "leaves", "hangs"])
@pytest.mark.parametrize("where", ["open", "start", "answer", "facts", "close"])
async def test_a_world_that_fails_once_is_replaced_and_nothing_is_asked_twice(
    where: str, how: BaseException | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"fails": where, "times": 1, "how": how}.items():
        monkeypatch.setattr(Frail, name, value)
    model = Model(SAVING)
    rollout = await played(model, opened, settings(world_retries=1, **waits(how, 1.0)))
    assert rollout.failure is None
    assert rollout.facts == {"balance": 8, "history": [3, 4, 1]}
    assert len(model.asked) == len(SAVING)


@pytest.mark.parametrize("how", FAULTS, ids=["raises", "leaves", "hangs"])
@pytest.mark.parametrize("where", ["open", "start", "answer", "facts"])
async def test_a_world_that_always_fails_is_a_retryable_failure_of_that_episode(
    where: str, how: BaseException | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"fails": where, "times": 99, "how": how}.items():
        monkeypatch.setattr(Frail, name, value)
    rollout = await played(Model(SAVING), opened, settings(world_retries=2, **waits(how, 0.5)))
    assert rollout.failure is not None
    assert (rollout.failure.type, rollout.failure.retryable) == ("EnvironmentFailure", True)
    assert where in rollout.failure.message
    assert Frail.times == 96


class Wrong(World):
    """Answers with whatever a test says."""

    said: ClassVar[Any] = None
    known: ClassVar[Any] = {}

    def __init__(self, sample: Sample) -> None:
        pass

    def answer(self, message: Message) -> Any:
        return self.said

    def facts(self) -> Any:
        return self.known


@pytest.mark.parametrize(
    ("said", "known", "part"),
    [
        (object(), {}, "answered with a object"),
        ([1, 2], {}, "answered with a list"),
        (Answer(done=True, reward=float("nan")), {}, "not a finite number"),
        (Answer(done=True), {"live": object()}, "JSON"),
        (Answer(done=True), ["a", "list"], "a list"),
        (Answer(done=True), {"much": "x" * (17 << 20)}, "too large"),
    ],
)
async def test_a_world_that_says_something_unusable_is_told_so(
    said: Any, known: Any, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Wrong, "said", said)
    monkeypatch.setattr(Wrong, "known", known)
    rollout = await played(Model([says("hello")]), Wrong, settings(world_retries=0))
    assert rollout.failure is not None
    assert rollout.failure.type == "EnvironmentFailure" and part in rollout.failure.message
    assert not rollout.failure.retryable


async def test_what_opens_no_world_is_told_so() -> None:
    rollout = await played(Model([says("hello")]), lambda sample: "no world")
    assert rollout.failure is not None and "opened a str" in rollout.failure.message


class Blocking(Account):
    """Plain methods that never come back, and one that does."""

    stuck: ClassVar[str] = ""

    def start(self) -> str:
        self._wait("start")
        return "Begin."

    def facts(self) -> dict[str, Any]:
        self._wait("facts")
        return super().facts()

    def _wait(self, where: str) -> None:
        if where == self.stuck:
            time.sleep(3)


@pytest.mark.parametrize("where", ["start", "facts"])
async def test_a_plain_method_that_hangs_holds_up_neither_the_others_nor_the_end(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Blocking, "stuck", where)
    stuck, other = await asyncio.gather(
        played(Model(SAVING), Blocking, settings(world_timeout=1.0, world_retries=0)), played(Model(SAVING))
    )
    assert other.failure is None
    assert stuck.failure is not None and f"{where!r} did not come back" in stuck.failure.message


class Untidy(Snapshots):
    """Gives a snapshot that is none."""

    def snapshot(self) -> Any:
        return {"balance": self.balance}


async def test_a_snapshot_that_is_not_bytes_is_told() -> None:
    rollout = await played(Model(SAVING), Untidy)
    assert rollout.failure is not None and "Return bytes" in rollout.failure.message


@pytest.mark.parametrize("where", ["open", "start", "answer"])
async def test_a_world_that_fails_while_turns_are_played_again_costs_none_of_them(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "episodes.jsonl"
    with TurnJournal(path) as journal:
        whole = await played(Model(SAVING), opened, journal=journal)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:6]))  # three whole turns
    for name, value in {"fails": where, "times": 1, "how": ValueError("broken")}.items():
        monkeypatch.setattr(Frail, name, value)
    model = Model(SAVING)
    with TurnJournal(path) as journal:
        assert essence(await played(model, opened, settings(world_retries=1), journal)) == essence(whole)
    assert [turn for _, _, turn in model.asked] == [3, 4]
