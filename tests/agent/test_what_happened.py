# SPDX-License-Identifier: Apache-2.0
"""Whatever happened by chance in an episode is on disk: an episode cut off anywhere ends as it would have, or says why.

Worlds × users × durability × the line behind which the run ended; and the same for branches and for worlds that a
reward looks at.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from reward_kit.agent import Answer, Episodes, Hidden, World, tool
from reward_kit.agent.branching import Branches
from reward_kit.agent.environment import Environment, environment_of
from reward_kit.agent.environments.two_sided import TwoSided
from reward_kit.agent.episode import replayed
from reward_kit.agent.tools import Tool
from reward_kit.agent.users import ModelUser, ScriptedUser, WithUser
from reward_kit.agent.worker_worlds import in_worker
from reward_kit.config_models import FIRST_BRANCH, BranchingConfig, Sampling
from reward_kit.errors import ReplayError
from reward_kit.models import Failure, Message, Rollout, Sample
from reward_kit.storage.turn_journal import TurnJournal
from tests.agent.environments.test_two_sided import library, task
from tests.agent.worlds import Model, call, calls, essence, says, settings

_chance = random.Random(7)


class Game(World):
    """A game whose opening is drawn by chance; what the model does depends on the opening."""

    shows: ClassVar[str] = "message"

    def __init__(self, sample: Sample) -> None:
        self.secret = _chance.randrange(10**9)
        self.moves: list[int] = []

    def start(self) -> Any:
        text = Message(role="user", content=f"The number is {self.secret}.")
        return Answer([text] if self.shows == "message" else (), state=f"secret {self.secret}")

    @tool
    def move(self, by: int) -> str:
        """Move.

        Args:
            by: how far
        """
        self.moves.append(by)
        return f"{self.secret + sum(self.moves)}"

    def facts(self) -> dict[str, Any]:
        return {"secret": self.secret, "moves": self.moves}

    def snapshot(self) -> bytes:
        return json.dumps([self.secret, self.moves]).encode()

    def restore(self, state: bytes) -> None:
        self.secret, self.moves = json.loads(state)


class Quiet(Game):
    """The same, and only the state tells which opening it was."""

    shows = "nothing"


class Fixed(Game):
    """A game that always begins alike."""

    def __init__(self, sample: Sample) -> None:
        super().__init__(sample)
        self.secret = 5


def moves(messages: Any, draw: int) -> Message:
    turn = sum(message.role == "assistant" for message in messages)
    return calls(call("move", {"by": turn})) if turn < 3 else says(f"Done {messages[-1].text}.")


class Live:
    """A user that never says the same twice, has tools, and counts how often it was asked: a model, as it were."""

    def __init__(self) -> None:
        self.model = Model(self._says)

    def _says(self, messages: Any, draw: int) -> Message:
        turn = sum(message.role == "assistant" for message in messages)
        if turn == 1:
            return calls(call("pay", {"amount": 1}, call_id=f"u{_chance.random()}"))
        return says(f"{_chance.random()}" + (" ###STOP###" if turn > 3 else ""))

    def user(self) -> ModelUser:
        return ModelUser(self.model, Sampling(), None, "You are a reader.", "###STOP###")

    @property
    def asked(self) -> int:
        return len(self.model.asked)


SAMPLE = Sample(id="s", messages=[Message(role="user", content="Go.")], columns={"task": task()})
DESK = Sample(id="s", messages=[Message(role="system", content="policy")], columns={"task": task()})
TURNS = ["And on.", "Once more."]


def game(world: type[World]) -> Callable[[], tuple[Environment, Live | None]]:
    return lambda: (environment_of(world), None)


def game_with(user: str, world: type[World]) -> Callable[[], tuple[Environment, Live | None]]:
    def opened() -> tuple[Environment, Live | None]:
        live = Live() if user == "model" else None
        return WithUser(environment_of(world), live.user() if live else ScriptedUser(TURNS)), live

    return opened


def desk() -> tuple[Environment, Live | None]:
    live = Live()
    return WithUser(environment_of(TwoSided, (), {"domain": library}), live.user()), live


KINDS: dict[str, tuple[Callable[[], tuple[Environment, Live | None]], Sample, str, bool]] = {
    "fixed": (game(Fixed), SAMPLE, "replay", True),
    "fixed, snapshots": (game(Fixed), SAMPLE, "snapshot", True),
    "chance, snapshots": (game(Game), SAMPLE, "snapshot", True),
    "chance in the state, snapshots": (game(Quiet), SAMPLE, "snapshot", True),
    "a script": (game_with("script", Fixed), SAMPLE, "replay", True),
    "a script, snapshots": (game_with("script", Game), SAMPLE, "snapshot", True),
    "a live user": (game_with("model", Fixed), SAMPLE, "replay", True),
    "a live user, snapshots": (game_with("model", Game), SAMPLE, "snapshot", True),
    "two sides": (desk, DESK, "replay", True),
    "chance": (game(Game), SAMPLE, "replay", False),
    "chance in the state": (game(Quiet), SAMPLE, "replay", False),
    "chance, with a user": (game_with("model", Game), SAMPLE, "replay", False),
}
"""How to open it, its sample, its durability, and whether it can be played again at all."""


def agent() -> Model:
    return Model(
        lambda messages, draw: says("Please go on.") if messages[0].text == "policy" else moves(messages, draw)
    )


async def played(
    environment: Environment, model: Model, sample: Sample, durability: str, journal: TurnJournal | None = None,
    *draws: int, branching: Mapping[str, Any] | None = None,
) -> list[Rollout]:  # fmt: skip
    branches = None if branching is None else Branches(BranchingConfig.model_validate(branching), 1)
    play = Episodes(
        model, Sampling(), None, environment, settings(durability=durability), journal=journal, branches=branches
    )
    return await play(sample, draws or [0])


def cuts(path: Path) -> Iterator[tuple[int, bytes]]:
    written = path.read_bytes().splitlines(keepends=True)
    for kept in range(len(written) + 1):
        path.write_bytes(b"".join(written[:kept]))
        yield kept, b"".join(written[:kept])


@pytest.mark.parametrize("kind", KINDS)
async def test_an_episode_cut_off_anywhere_is_the_same_or_says_why(kind: str, tmp_path: Path) -> None:
    opened, sample, durability, can = KINDS[kind]
    path = tmp_path / "episodes.jsonl"
    environment, live = opened()
    quiet = agent()
    with TurnJournal(path) as journal:
        (whole,) = await played(environment, quiet, sample, durability, journal)
    assert whole.failure is None and whole.steps, whole.failure
    words = 0 if live is None else live.asked
    for kept, lines in cuts(path):
        environment, live = opened()
        again = agent()
        with TurnJournal(path) as journal:
            (rollout,) = await played(environment, again, sample, durability, journal)
        if not kept:
            assert rollout.failure is None
            continue  # nothing had happened, so by chance all may be otherwise
        if not can:
            assert rollout.failure is not None and rollout.failure.type == "ReplayError", kept
            assert "at its start" in rollout.failure.message and not again.asked, kept
            continue
        assert rollout.failure is None, rollout.failure
        assert len(again.asked) == len(quiet.asked) - lines.count(b'"reply":'), kept
        if live is None or lines.count(b'"answer":') - lines.count(b'"cut_off":') == len(whole.steps):
            assert essence(rollout) == essence(whole), kept
        if live is not None:
            on_disk = [line for line in lines.splitlines() if b'"reply":' not in line]
            on_disk = [line for line in on_disk if b'"cut_off":' not in line or line is on_disk[-1]]
            words_on_disk = sum(line.count(b'"role":"user"') for line in on_disk) - (sample is SAMPLE)  # its opening
            assert live.asked == words - words_on_disk, kept


async def test_a_user_talks_in_a_world_of_another_process_as_here(tmp_path: Path) -> None:
    path, live = tmp_path / "episodes.jsonl", Live()
    elsewhere = in_worker(TwoSided, {"domain": "tests.agent.environments.test_two_sided:library"})
    environment = WithUser(elsewhere, live.user())
    with TurnJournal(path) as journal:
        (whole,) = await played(environment, agent(), DESK, "replay", journal)
    assert whole.failure is None and whole.ended == "done" and whole.facts is not None, whole.failure
    assert whole.facts["termination_reason"] == "user_stop" and whole.facts["user_side"], "its tools were used there"
    words, written = live.asked, path.read_bytes().splitlines(keepends=True)
    for kept, known in ((3, 2), (4, 3)):  # its first words and its call, or what it said then, too
        path.write_bytes(b"".join(written[:kept]))
        before = live.asked
        with TurnJournal(path) as journal:
            (again,) = await played(environment, agent(), DESK, "replay", journal)
        assert again.failure is None and again.turns[:known] == whole.turns[:known]
        assert live.asked - before == words - known, "the words on disk are not asked for again"
    broken = Model([Failure(stage="generate", type="ProviderError", message="out of order")])
    user = ModelUser(broken, Sampling(), None, "You are a reader.", "###STOP###")
    (failed,) = await played(WithUser(elsewhere, user), agent(), DESK, "replay")
    assert failed.failure is not None and "plays the user failed: out of order" in failed.failure.message
    await elsewhere.close()


def count(state: Hidden[dict[str, Any]]) -> int:
    """Count."""
    state["count"] = state.get("count", 0) + 1
    return int(state["count"])


def odd(state: Hidden[dict[str, Any]]) -> str:
    """Remember what no file can hold."""
    state["odd"] = {1}
    return "odd"


@pytest.mark.parametrize("with_user", [False, True])
async def test_snapshots_hold_what_added_tools_remember(with_user: bool, tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    plain = environment_of(Game, [count, odd])
    environment = WithUser(plain, ScriptedUser(["And on."])) if with_user else plain

    def model(named: str) -> Model:
        return Model(lambda messages, _: calls(call(named)) if messages[-1].role != "tool" else says("So."))

    with TurnJournal(path) as journal:
        (whole,) = await played(environment, model("count"), SAMPLE, "snapshot", journal)
    counted = [turn.text for turn in whole.turns if turn.role == "tool"]
    assert counted == (["1", "2"] if with_user else ["1"])
    for kept, _ in cuts(path):
        with TurnJournal(path) as journal:
            (again,) = await played(environment, model("count"), SAMPLE, "snapshot", journal)
        assert [turn.text for turn in again.turns if turn.role == "tool"] == counted, kept
    with TurnJournal(tmp_path / "other.jsonl") as journal:
        (failed,) = await played(environment, model("odd"), SAMPLE, "snapshot", journal)
    assert failed.failure is not None and "not plain data" in failed.failure.message


def can_be_had_again(kind: str, whole: Rollout) -> bool:
    """Whether a fresh world comes to the same: finished episodes keep no snapshots."""
    return KINDS[kind][3] and (whole.facts or {}).get("secret", 5) == 5


@pytest.mark.parametrize("kind", KINDS)
async def test_a_reward_sees_the_world_of_the_episode_or_none(kind: str) -> None:
    opened, sample, durability, _ = KINDS[kind]
    environment, live = opened()
    (whole,) = await played(environment, agent(), sample, durability)
    stored = Rollout.model_validate_json(whole.model_dump_json())
    asked = live.asked if live else 0
    if can_be_had_again(kind, whole):
        async with replayed(environment, stored, settings(durability=durability)) as world:
            assert await world.all_facts() == whole.facts
    else:
        with pytest.raises(ReplayError, match="at its start"):
            async with replayed(environment, stored, settings(durability=durability)):
                pass
    assert (live.asked if live else 0) == asked, "nobody is asked for what is on disk"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_branch_leaves_the_episode_that_was_played_or_fails(kind: str) -> None:
    opened, sample, durability, _ = KINDS[kind]
    environment, _ = opened()
    whole, branch = await played(
        environment, agent(), sample, durability, None, 0, FIRST_BRANCH, branching={"at": 1, "total": 1}
    )
    if not can_be_had_again(kind, whole):
        assert branch.failure is not None and branch.failure.type == "ReplayError"
        return
    assert branch.failure is None and branch.branch is not None, branch.failure
    turn = (branch.steps or [])[1].turn
    assert branch.turns[:turn] == whole.turns[:turn]


FIELDS = ("text", "parts", "name", "calls", "state", "reward", "tools", "tool names", "facts")
"""Where a world may show, or tell, what it has drawn."""


class Drawn(World):
    """A world that draws a number, and lets it be seen in one field: as it begins, or in its second answer."""

    field: ClassVar[str]
    at: ClassVar[int]
    """0: as it begins; else in which answer."""
    by_draw: ClassVar[bool] = False
    """Whether the number follows from which episode it is."""

    def __init__(self, sample: Sample) -> None:
        self.turn = 0
        self.number: int | None = None

    def _show(self, answer: Answer) -> Answer:
        if self.turn == self.at:
            self.number = (random.Random(self.draw) if self.by_draw else _chance).randrange(10**9)
            at = self.field
            told = [Message(role="user", content=f"{self.number}" if at == "text" else "Look.")]
            if at == "parts":
                told = [Message(role="user", content=[{"type": "text", "text": "Look."}, image(self.number)])]
            elif at == "name":
                told = [Message(role="user", content="Look.", name=f"n{self.number}")]
            elif at == "calls":
                made = calls(call("move", {"by": self.number}, call_id="x"))
                told = [made, Message(role="tool", content="Moved.", tool_call_id="x"), *told]
            elif at in ("tools", "tool names"):
                named = f"look_{self.number}" if at == "tool names" else "look"
                self._tools = [*self.tools, Tool(named, f"See {self.number}.", {"type": "object"}, _nothing)]
            answer.messages = [*answer.messages, *told]
            answer.state = f"s{self.number}" if at == "state" else None
            answer.reward = self.number / 7 if at == "reward" else None
        self.turn += 1
        return answer

    def start(self) -> Answer:
        return self._show(Answer())

    async def answer(self, message: Message) -> Answer:
        return self._show(await self._usual_answer(message))

    @tool
    def move(self, by: int) -> str:
        """Move.

        Args:
            by: how far
        """
        return f"Moved by {by}."

    def facts(self) -> dict[str, Any]:
        return {"number": self.number} if self.field == "facts" else {}


def image(number: int) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{number}"}}


async def _nothing(arguments: dict[str, Any]) -> str:
    return ""


def drawing(field: str, at: int, *, by_draw: bool) -> Environment:
    named = {"field": field, "at": at, "by_draw": by_draw}
    return environment_of(type("Drawn", (Drawn,), named))


async def test_what_a_world_draws_is_the_same_again_or_the_replay_fails(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    for field in FIELDS:
        for at in (0, 2):
            path.unlink(missing_ok=True)
            with TurnJournal(path) as journal:
                (whole,) = await played(drawing(field, at, by_draw=False), agent(), SAMPLE, "replay", journal)
            assert whole.failure is None, whole.failure
            written = path.read_bytes().splitlines(keepends=True)
            is_seen = at * 2 + 1 + (field in ("tools", "tool names"))  # tools are seen as the model is asked
            for kept in range(1, len(written) + 1):
                path.write_bytes(b"".join(written[:kept]))
                with TurnJournal(path) as journal:
                    (again,) = await played(drawing(field, at, by_draw=False), agent(), SAMPLE, "replay", journal)
                fails = kept >= is_seen and field != "facts"  # what nobody has seen may be otherwise
                assert (again.failure is not None) is fails, (field, at, kept, again.failure)
                assert again.failure is None or again.failure.type == "ReplayError"
            stored = Rollout.model_validate_json(whole.model_dump_json(exclude_none=True))
            with pytest.raises(ReplayError, match="recorded"):
                async with replayed(drawing(field, at, by_draw=False), stored, settings()):
                    pass
            _, branch = await played(
                drawing(field, at, by_draw=False), agent(), SAMPLE, "replay", None, 0, FIRST_BRANCH,
                branching={"at": [2], "total": 1},
            )  # fmt: skip
            assert (branch.failure is None) is (field == "facts"), (field, at, branch.failure)


@pytest.mark.parametrize("at", [0, 2])
async def test_what_a_world_draws_by_its_number_is_the_same_in_branches_of_branches(at: int, tmp_path: Path) -> None:
    for field in FIELDS:
        environment, path = drawing(field, at, by_draw=True), tmp_path / f"{field}.jsonl"
        branching = {"at": [2], "total": 2, "depth": 2}
        draws = (0, FIRST_BRANCH, FIRST_BRANCH + 1)
        with TurnJournal(path) as journal:
            made = await played(environment, agent(), SAMPLE, "replay", journal, *draws, branching=branching)
        assert [rollout.branch and rollout.branch.response_index for rollout in made] == [None, 0, FIRST_BRANCH]
        for rollout in made:
            assert rollout.failure is None, (field, rollout.failure)
            stored = Rollout.model_validate_json(rollout.model_dump_json(exclude_none=True))
            async with replayed(environment, stored, settings()) as world:
                assert await world.all_facts() == made[0].facts == rollout.facts, field


@pytest.mark.parametrize("kept", [0, 1, None])
async def test_what_a_user_did_before_a_conversation_that_never_began(kept: int | None, tmp_path: Path) -> None:
    def words(messages: Any, _: int) -> Message:
        turn = sum(message.role == "assistant" for message in messages)
        return says("###STOP###") if turn else calls(call("pay", {"amount": 1}, call_id=f"u{_chance.random()}"))

    def opened() -> tuple[Environment, Model]:
        model = Model(words)
        user = ModelUser(model, Sampling(), None, "You are a reader.", "###STOP###")
        return WithUser(environment_of(TwoSided, (), {"domain": library}), user), model

    path = tmp_path / "episodes.jsonl"
    environment, _ = opened()
    with TurnJournal(path) as journal:
        (whole,) = await played(environment, agent(), DESK, "replay", journal)
    assert whole.failure is None and whole.ended == "done" and not whole.steps, whole.failure
    assert whole.facts is not None and whole.facts["user_side"]
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept]))
    environment, asked = opened()
    with TurnJournal(path) as journal:
        (again,) = await played(environment, agent(), DESK, "replay", journal)
    assert len(asked.asked) == {0: 2, 1: 1, None: 0}[kept]
    stored = Rollout.model_validate_json(again.model_dump_json(exclude_none=True))
    environment, asked = opened()
    async with replayed(environment, stored, settings()) as world:
        assert await world.all_facts() == again.facts
    assert not asked.asked
