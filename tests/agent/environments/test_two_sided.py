# SPDX-License-Identifier: Apache-2.0
"""Conversations with two sides: played, recorded, played again, and judged from the record alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from reward_kit.agent.environment import environment_of
from reward_kit.agent.environments.two_sided import (
    Domain,
    TwoSided,
    recorded_episode,
    two_sided,
    verdict_of,
)
from reward_kit.agent.episode import Episodes
from reward_kit.agent.playback import Playback
from reward_kit.agent.tools import tool
from reward_kit.agent.worker_worlds import in_worker
from reward_kit.config_models import AgentConfig, Sampling
from reward_kit.errors import ConfigError, DatasetError, EnvironmentFailure, ReplayError, RewardError
from reward_kit.models import Failure, Message, Rollout, Sample


@dataclass
class Books:
    lent: dict[str, str] = field(default_factory=dict)
    fines: dict[str, float] = field(default_factory=dict)


class Library:
    """The agent's side: a library."""

    def __init__(self) -> None:
        self.db = Books()

    @tool(reads=True, on_the_loop=True)
    def who_has(self, book: str) -> str | None:
        """Who has a book."""
        return self.db.lent.get(book)

    @tool(on_the_loop=True)
    def lend(self, book: str, reader: str) -> dict[str, str]:
        """Lend a book."""
        if book in self.db.lent:
            raise ValueError(f"{book} is lent")
        self.db.lent[book] = reader
        return dict(self.db.lent)

    def prepare(self, book: str, reader: str) -> None:
        self.db.lent[book] = reader

    def update_db(self, data: dict[str, Any]) -> None:
        self.db.fines.update(data)

    def is_lent(self, book: str) -> bool:
        return book in self.db.lent


@dataclass
class Purse:
    money: int = 10
    fine: float = 0.0


class Reader:
    """The user's side: a reader with a purse."""

    def __init__(self) -> None:
        self.db = Purse()

    @tool(on_the_loop=True)
    def pay(self, amount: int) -> str:
        """Pay."""
        if amount > self.db.money:
            raise ValueError("not enough money")
        self.db.money -= amount
        return f"{self.db.money} left"


def library() -> Domain:
    """The domain: what is due at the library shows in the reader's purse."""
    desk, reader = Library(), Reader()

    def sync() -> None:
        reader.db.fine = sum(desk.db.fines.values())

    return Domain("Lend nothing twice.", desk, reader, sync)


def task(**criteria: Any) -> dict[str, Any]:
    gold = {
        "actions": [
            {
                "action_id": "1",
                "name": "lend",
                "requestor": "assistant",
                "arguments": {"book": "Emma", "reader": "Ann"},
            },
            {"action_id": "2", "name": "pay", "requestor": "user", "arguments": {"amount": 3}},
        ],
        "reward_basis": ["DB"],
    }
    begins = {
        "initialization_data": {"agent_data": {"Ann": 3.0}},
        "initialization_actions": [
            {"env_type": "assistant", "func_name": "prepare", "arguments": {"book": "Dune", "reader": "Bob"}}
        ],
    }
    return {"id": "t", "initial_state": begins, "evaluation_criteria": {**gold, **criteria}}


def agent(name: str | None, text: str | None = None, number: int = 0, **arguments: Any) -> Message:
    if name is None:
        return Message(role="assistant", content=text)
    call = {"id": f"a{number}", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return Message.model_validate({"role": "assistant", "content": text, "tool_calls": [call]})


PAYS = {"role": "user", "content": None, "tool_calls": [{"id": "u1", "name": "pay", "arguments": {"amount": 3}}]}
USER = ("I want Emma.", PAYS, "I paid.", "Thanks. ###STOP###")
AGENT = (
    agent("who_has", number=1, book="Emma"),
    agent(None, "It is here. Please pay 3."),
    agent("lend", number=2, book="Emma", reader="Ann"),
    agent(None, "Emma is yours until the 1,000th day."),
)


def sample(the_task: dict[str, Any] | None = None, user: Sequence[Any] = USER) -> Sample:
    columns = {"task": the_task or task(), "user_turns": list(user)}
    return Sample(id="s", messages=[Message(role="system", content="policy")], columns=columns)


async def play(
    the_sample: Sample | None = None, said: Sequence[Message] | Failure = AGENT, environment: Any = None, **params: Any
) -> Rollout:
    given = the_sample or sample()
    opened = environment or environment_of(TwoSided, (), {"domain": library, **params})
    client = Playback.of([], model="m")
    client._episodes[given.id, 0] = said
    (rollout,) = await Episodes(client, Sampling(), None, opened, AgentConfig())(given, [0])
    await opened.close()
    return Rollout.model_validate_json(rollout.model_dump_json())


def facts(rollout: Rollout) -> dict[str, Any]:
    assert rollout.facts is not None, rollout.failure
    return rollout.facts


async def test_both_sides_call_tools_and_the_agent_sees_its_own() -> None:
    rollout = await play()
    assert [(turn.role, turn.text) for turn in rollout.turns] == [
        ("user", "I want Emma."),
        ("assistant", ""),
        ("tool", "null"),
        ("assistant", "It is here. Please pay 3."),
        ("user", "I paid."),
        ("assistant", ""),
        ("tool", '{"Dune": "Bob", "Emma": "Ann"}'),
        ("assistant", "Emma is yours until the 1,000th day."),
        ("user", "Thanks. ###STOP###"),
    ]
    assert facts(rollout)["termination_reason"] == "user_stop"
    (paid,) = facts(rollout)["user_side"]
    assert (paid["turn"], paid["results"]) == (2, ["7 left"])
    assert verdict_of(rollout, library).score == 1.0


async def test_it_is_the_same_in_a_process_of_its_own() -> None:
    there = await play(environment=in_worker(TwoSided, {"domain": library}))
    here = await play()
    assert (there.turns, there.facts) == (here.turns, here.facts)


async def test_the_state_of_both_sides_counts() -> None:
    nothing_paid = await play(sample(user=("I want Emma.", "I paid.", "Thanks. ###STOP###")))
    result = verdict_of(nothing_paid, library)
    assert (result.score, result.reason) == (0.0, "the database is not as it should be")
    other_book = [*AGENT[:2], agent("lend", number=2, book="Emil", reader="Ann"), AGENT[3]]
    assert verdict_of(await play(said=other_book), library).score == 0.0


@pytest.mark.parametrize(
    ("criteria", "score", "reason"),
    [
        ({"reward_basis": ["COMMUNICATE"], "communicate_info": ["EMMA", "1000th"]}, 1.0, "all that is asked for"),
        ({"reward_basis": ["COMMUNICATE"], "communicate_info": ["dune"]}, 0.0, "the agent never said 'dune'"),
        ({"reward_basis": ["ACTION"]}, 1.0, "all that is asked for"),
        (
            {"reward_basis": ["ACTION"], "actions": [{"name": "lend", "arguments": {"book": "Emil"}}]},
            0.0,
            "lend was not called as it should be",
        ),
        (
            {
                "reward_basis": ["ACTION"],
                "actions": [{"name": "lend", "arguments": {"book": "Emma"}, "compare_args": ["book"]}],
            },
            1.0,
            "all that is asked for",
        ),
        (
            {
                "reward_basis": ["ENV_ASSERTION"],
                "env_assertions": [
                    {"env_type": "assistant", "func_name": "is_lent", "arguments": {"book": "Emma"}},
                    {
                        "env_type": "assistant",
                        "func_name": "is_lent",
                        "arguments": {"book": "Dune"},
                        "assert_value": False,
                    },
                ],
            },
            0.0,
            "is_lent does not hold",
        ),
        (
            {"reward_basis": ["ACTION"], "actions": [{"name": "lend", "arguments": {"book": "Emma", "reader": "Bob"}}]},
            0.0,
            "lend was not called as it should be",
        ),
        ({"reward_basis": ["DB"], "actions": None}, 1.0, "all that is asked for"),
    ],
)
async def test_each_part_of_a_verdict(criteria: dict[str, Any], score: float, reason: str) -> None:
    result = verdict_of(await play(sample(task(**criteria))), library)
    assert (result.score, result.reason) == (score, reason)


async def test_a_part_that_nobody_here_can_judge_is_no_zero() -> None:
    with pytest.raises(RewardError, match="NL_ASSERTION"):
        verdict_of(await play(sample(task(reward_basis=["DB", "NL_ASSERTION"]))), library)
    with pytest.raises(RewardError, match="the endpoint is down"):
        failed = await play(said=Failure(stage="generate", type="ProviderError", message="the endpoint is down"))
        verdict_of(failed, library)


async def test_a_record_that_cannot_have_happened_is_no_verdict() -> None:
    rollout = await play()
    forged = [
        turn.model_copy(update={"content": "{}"}) if turn.tool_call_id == "a2" else turn for turn in rollout.turns
    ]
    with pytest.raises(ReplayError, match="'lend' gave"):
        verdict_of(rollout.model_copy(update={"turns": forged}), library)
    other = json.loads(json.dumps(facts(rollout)).replace("7 left", "8 left"))
    with pytest.raises(ReplayError, match="'pay' gave '7 left'"):
        verdict_of(rollout.model_copy(update={"facts": other}), library)


async def test_the_reward_takes_what_a_run_hands_over() -> None:
    rollout = await play()
    result = two_sided(
        messages=rollout.messages, task=task(), facts=facts(rollout), domain=f"{__file__}:library", user_turns=[]
    )
    assert result.score == 1.0 and result.metrics["DB"].is_score_valid


# ── how it ends ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("most", "ended"), [(5, "max_steps"), (100, "user_stop")])
async def test_messages_and_results_are_steps(most: int, ended: str) -> None:
    # the user speaks (1), a call (2), its result (3), the agent speaks (4), the user calls (5), its result (6)
    rollout = await play(max_steps=most)
    assert facts(rollout)["termination_reason"] == ended
    assert len(facts(rollout)["user_side"]) == 1
    if ended == "max_steps":
        assert rollout.turns[-1].role == "assistant"
        assert verdict_of(rollout, library).reason == "neither side ended the conversation: max_steps"


async def test_errors_are_told_and_counted() -> None:
    wrong = [agent("lend", number=1, book="Dune", reader="Ann"), agent("burn", number=2), agent("who_has", number=3)]
    rollout = await play(said=wrong, max_errors=3)
    assert [turn.text[:24] for turn in rollout.turns if turn.role == "tool"] == [
        "Error: Dune is lent",
        "Error: Tool 'burn' not f",
        "Error: book: Field requi",
    ]
    assert facts(rollout)["termination_reason"] == "too_many_errors"
    assert rollout.steps is not None
    assert [use.error for step in rollout.steps for use in step.calls] == ["exception", "unknown_tool", "exception"]


async def test_an_agent_may_end_it_too() -> None:
    said = [agent(None, "Goodbye. ###DONE###")]
    assert facts(await play(said=said, agent_stop="###DONE###"))["termination_reason"] == "agent_stop"
    assert (await play(said=said)).failure is not None  # nobody stopped, and nothing more is recorded


async def test_an_agent_may_be_alone() -> None:
    lends = agent("lend", number=1, book="Emma", reader="Ann")
    alone = sample(task(reward_basis=["DB"], actions=task()["evaluation_criteria"]["actions"][:1]), user=())
    rollout = await play(alone, [lends, agent(None, "###STOP###")], solo=True)
    assert [turn.role for turn in rollout.turns] == ["assistant", "tool", "assistant"]
    assert facts(rollout)["termination_reason"] == "agent_stop" and verdict_of(rollout, library).score == 1.0
    talks = await play(alone, [lends, agent(None, "Here you are.")], solo=True)
    assert facts(talks)["termination_reason"] == "agent_error" and verdict_of(talks, library).score == 0.0


async def test_broken_arguments_are_an_error_of_that_call() -> None:
    broken = Message.model_validate(
        {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "lend", "arguments": "[1"}}]}
    )
    rollout = await play(said=[broken, *AGENT[1:]])
    assert next(turn for turn in rollout.turns if turn.role == "tool").text.startswith("Error: the arguments cannot be")


async def test_a_user_who_never_speaks_is_a_failure_of_the_world() -> None:
    class Silent:
        def __init__(self, sample: Sample) -> None:
            pass

        def reply(self, conversation: Sequence[Message]) -> dict[str, Any]:
            return {"role": "user", "tool_calls": [{"id": "u", "name": "pay", "arguments": {"amount": 0}}]}

    rollout = await play(user=Silent)
    assert rollout.failure is not None and "said nothing" in rollout.failure.message


async def test_what_is_missing_is_told() -> None:
    with pytest.raises(DatasetError, match="no column `task`"):
        TwoSided(Sample(id="s", messages=[]), domain=library)
    with pytest.raises(ConfigError, match="made by a function"):
        TwoSided(sample(), domain=3)
    assert issubclass(EnvironmentFailure, Exception)


# ── what tau2-bench has recorded ─────────────────────────────────────────────────────────────────────────────────────


def _simulation(rollout: Rollout) -> dict[str, Any]:
    """The rollout as tau2-bench would have written it, with its greeting and its two kinds of callers."""

    def calls(message: Message, side: str) -> list[dict[str, Any]]:
        return [
            {"id": c.id, "name": c.function.name, "arguments": json.loads(c.function.arguments), "requestor": side}
            for c in message.tool_calls or ()
        ]

    messages: list[dict[str, Any]] = [{"role": "assistant", "content": "Hi!", "tool_calls": None, "turn_idx": 0}]
    turns = 0
    for turn in rollout.turns:
        if turn.role == "user":
            for side in facts(rollout)["user_side"]:
                if side["turn"] == turns:
                    made = [{"id": "u1", "name": "pay", "arguments": {"amount": 3}, "requestor": "user"}]
                    messages.append({"role": "user", "content": None, "tool_calls": made})
                    messages += [
                        {"role": "tool", "id": "u1", "content": text, "requestor": "user"} for text in side["results"]
                    ]
        turns += turn.role == "assistant"
        if turn.role == "tool":
            messages.append({"role": "tool", "id": turn.tool_call_id, "content": turn.text, "requestor": "assistant"})
        else:
            made = calls(turn, turn.role)
            messages.append({"role": turn.role, "content": None if made else turn.text, "tool_calls": made or None})
    return {
        "id": "x",
        "task_id": "t",
        "messages": messages,
        "termination_reason": facts(rollout)["termination_reason"],
        "reward_info": {"reward": verdict_of(rollout, library).score},
    }


@pytest.mark.parametrize("criteria", [{}, {"reward_basis": ["COMMUNICATE"], "communicate_info": ["dune"]}])
async def test_a_recorded_simulation_replays(criteria: dict[str, Any]) -> None:
    the_task = task(**criteria)
    simulation = _simulation(await play(sample(the_task)))
    episode = recorded_episode(simulation, the_task, policy="policy", sample_id="r")
    assert [message.role for message in episode.sample.messages] == ["system", "assistant"]
    client = Playback({("r", 0): episode.agent_turns}, turns_in_prompts={"r": 1})
    environment = environment_of(TwoSided, (), {"domain": library})
    (played,) = await Episodes(client, Sampling(), None, environment, AgentConfig())(episode.sample, [0])
    rollout = Rollout.model_validate_json(played.model_dump_json())
    of_agent = [turn.text for turn in rollout.turns if turn.role == "tool"]
    of_user = [text for side in facts(rollout)["user_side"] for text in side["results"]]
    assert sorted(of_agent + of_user) == sorted(episode.tool_results) and len(episode.tool_results) == 3
    assert facts(rollout)["termination_reason"] == episode.termination_reason
    assert verdict_of(rollout, library).score == episode.reward


async def test_a_task_may_begin_in_the_middle_of_a_conversation() -> None:
    begun = [
        {"role": "user", "content": "I want Emma."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "h", "name": "lend", "arguments": {"book": "Emma", "reader": "Ann"}, "requestor": "assistant"}
            ],
        },
        {"role": "tool", "id": "h", "content": "{}", "requestor": "assistant"},
    ]
    the_task = task()
    the_task["initial_state"]["message_history"] = begun
    the_task["evaluation_criteria"]["actions"] = the_task["evaluation_criteria"]["actions"][1:]
    ended = [
        {"role": "assistant", "content": "Please pay 3.", "tool_calls": None},
        PAYS,
        {"role": "tool", "id": "u1", "content": "7 left", "requestor": "user"},
        {"role": "user", "content": "###STOP###", "tool_calls": None},
    ]
    simulation = {"messages": [*begun, *ended], "termination_reason": "user_stop", "reward_info": {"reward": 1.0}}
    episode = recorded_episode(simulation, the_task, sample_id="r")
    client = Playback({("r", 0): episode.agent_turns}, turns_in_prompts={"r": 1})
    environment = environment_of(TwoSided, (), {"domain": library})
    (rollout,) = await Episodes(client, Sampling(), None, environment, AgentConfig())(episode.sample, [0])
    assert [turn.text for turn in rollout.turns] == ["Please pay 3.", "###STOP###"]
    assert verdict_of(rollout, library).score == episode.reward
