# SPDX-License-Identifier: Apache-2.0
"""Worlds with two sides: an agent that serves, a user who asks, tools for both, and a database that is the verdict.

    domain ── what tau2-bench calls an environment: policy text, tools of the agent, tools of the user, a database
    user ──── somebody who replies: a list of turns, a class of yours, or a model (`agent.user`)

    agent speaks ──▶ calls? the domain replies                         ──▶ the agent goes on
                 └─▶ text?  the user replies: calls? the domain replies ──▶ the user goes on
                                              text?                      ──▶ the agent goes on; a stop word: the end

The classes of tau2-bench fit as they are; `Domain` makes the same of objects whose methods are marked with `@tool`. The
verdict follows from the rollout: the calls of both sides are made again in a fresh domain, the calls of the reference
answer in another one, and the two databases are compared; beside that, what was to be said, done, and found to hold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict as dataclass_fields
from dataclasses import dataclass, field, is_dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from reward_kit.agent.environment import Answer, World, finished
from reward_kit.agent.recorded import message_from
from reward_kit.agent.tools import Tool, tools_of
from reward_kit.agent.users import Acted, ScriptedUser, User, as_message, call_from
from reward_kit.errors import ConfigError, DatasetError, EnvironmentFailure, ReplayError, RewardError
from reward_kit.models import (
    ChatCompletionMessageToolCall,
    EvaluateResult,
    Message,
    MetricResult,
    Rollout,
    Sample,
    ToolUse,
)
from reward_kit.typed_interface import Operator, reward_function
from reward_kit.utils.module_loader import load_function

__all__ = [
    "Domain",
    "RecordedEpisode",
    "TwoSided",
    "judged",
    "recorded_episode",
    "two_sided",
    "verdict_of",
]

Side: TypeAlias = Literal["assistant", "user"]
STOP_WORDS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
"""What a user says to end the conversation."""
_ENDED_WELL = frozenset({"user_stop", "agent_stop"})
_MOST_USER_CALLS = 50
"""Messages with calls that a user may send, one after the other, before it speaks."""


# ── a domain ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Domain:
    """A domain made of two objects: methods marked with `@tool` are tools, the attribute `db` is the database.

    A tool marked `reads` changes nothing. `sync` is called after each call, where one side's doings show on the other.
    """

    policy: str
    tools: Any
    user_tools: Any = None
    sync: Callable[[], None] | None = None

    def get_policy(self) -> str:
        """What the agent must keep to."""
        return self.policy

    def get_tools(self) -> list[Tool]:
        """The agent's tools."""
        return tools_of(self.tools)

    def get_user_tools(self) -> list[Tool]:
        """The user's tools."""
        return [] if self.user_tools is None else tools_of(self.user_tools)

    def is_mutating_tool(self, tool_name: str) -> bool:
        """Whether a call may change the database."""
        return not any(tool.reads for tool in (*self.get_tools(), *self.get_user_tools()) if tool.name == tool_name)

    def make_tool_call(self, tool_name: str, requestor: Side = "assistant", **arguments: Any) -> Any:
        """What a tool returns."""
        holder, offered = (self.tools, self.get_tools()) if requestor == "assistant" else (
            self.user_tools, self.get_user_tools()
        )  # fmt: skip
        found = next((tool for tool in offered if tool.name == tool_name), None)
        if found is None:
            raise ValueError(f"Tool '{tool_name}' not found.")
        checked = arguments if found.check is None else found.check(arguments)
        return getattr(holder, tool_name)(**checked)

    def get_response(self, message: Any) -> Any:
        """The reply to a call, be it a result or an error."""
        try:
            content, error = self.make_tool_call(message.name, message.requestor, **message.arguments), False
            self.sync_tools()
        except Exception as raised:  # noqa: BLE001 - a named boundary: what a tool raises is told to whoever called it
            content, error = f"Error: {raised}", True
        return SimpleNamespace(id=message.id, content=_as_text(content), requestor=message.requestor, error=error)

    def run_env_function_call(self, call: Any) -> Any:
        """Call any method of either side, such as one that prepares a task or looks whether something holds."""
        if str(call.func_name).startswith("_"):
            raise ValueError(f"Method {call.func_name!r} is not for a task to call.")
        result = getattr(self.tools if call.env_type == "assistant" else self.user_tools, call.func_name)(
            **call.arguments
        )
        self.sync_tools()
        return result

    def set_state(self, initialization_data: Any, initialization_actions: Any, message_history: Sequence[Any]) -> None:
        """Prepare a task: each side's data is handed to its `update_db`, then the actions are run."""
        for holder, data in ((self.tools, "agent_data"), (self.user_tools, "user_data")):
            if (update := getattr(initialization_data, data, None)) is not None:
                holder.update_db(update)
        for action in initialization_actions or ():
            self.run_env_function_call(action)
        self.sync_tools()

    def sync_tools(self) -> None:
        """Let one side's doings show on the other."""
        if self.sync is not None:
            self.sync()

    def get_db_hash(self) -> str | None:
        """A digest of the agent's database."""
        return _digest(getattr(self.tools, "db", None))

    def get_user_db_hash(self) -> str | None:
        """A digest of the user's database."""
        return _digest(getattr(self.user_tools, "db", None))


def _digest(db: Any) -> str | None:
    if db is None:
        return None
    return hashlib.sha256(json.dumps(_plain(db), sort_keys=True, default=str).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return dataclass_fields(value) if is_dataclass(value) and not isinstance(value, type) else value


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(_plain(value), default=lambda each: _plain(each) if _plain(each) is not each else str(each))


# ── the world ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class _UserSide:
    """What the user did out of the agent's sight, before speaking."""

    turn: int
    """How many turns the agent had had."""
    calls: list[ChatCompletionMessageToolCall]
    results: list[str]

    def fields(self) -> dict[str, Any]:
        return {"turn": self.turn, "calls": [call.model_dump() for call in self.calls], "results": self.results}

    def recorded(self) -> list[tuple[ChatCompletionMessageToolCall, Side, str | None]]:
        """Each call with its result."""
        return [(call, "user", result) for call, result in zip(self.calls, self.results, strict=True)]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> _UserSide:
        return cls(fields["turn"], [call_from(call) for call in fields["calls"]], list(fields["results"]))


class TwoSided(World):
    """One conversation. The sample's column `task` has the fields of a task of tau2-bench.

    `domain` makes a domain; `user` makes a user from the sample, an object whose `reply` is handed the conversation.
    Both are functions or import paths. Without `user`, the model of `agent.user` talks and uses the user's tools, and
    without that the turns in the sample's column `user_turns` are said. What a user has said is on disk and not asked
    again; a user with a state of its own has a method `repeat`, which is handed such a turn instead.

    An episode ends as one of tau2-bench does: `user_stop`,
    `agent_stop`, `max_steps` or `too_many_errors`; a message, and the results of its calls, is a step.
    """

    def __init__(
        self, sample: Sample, *, domain: Any, user: Any = None, max_steps: int = 200, max_errors: int = 10,
        agent_stop: str = "###STOP###", solo: bool = False,
    ) -> None:  # fmt: skip
        """Prepare the domain as the task says. A text of the agent that has `agent_stop` in it ends the episode.

        With `solo` there is no user: the agent makes calls until it stops, and any other text is `agent_error`.
        """
        self._task = _task_of(sample)
        self._domain = _prepared(_loaded(domain)(), self._task)
        self._sample = sample
        self._own_user = None if user is None else _loaded(user)(sample)
        self._user: User = ScriptedUser(sample.columns.get("user_turns") or ())
        self._spoken = [message for message in sample.messages if message.role != "system"]
        self._limits, self._agent_stop, self._solo = (max_steps, max_errors), agent_stop, solo
        self.needs_question = not solo
        self._steps = self._errors = self._turns = 0
        self._user_side: list[_UserSide] = []
        self._ended: str | None = None
        self._tools = [self._tool(offered) for offered in self._domain.get_tools()]

    def take_user(self, user: User) -> bool:
        """Have the model of `agent.user` talk, where no other user is named."""
        if not self._solo:
            self._user = user
        return True

    async def start(self) -> Answer:
        """The user speaks first, unless the task begins in the middle of a conversation."""
        if self._solo or (self._spoken and self._spoken[-1].role in {"user", "tool"}):
            return Answer()
        return await self._user_replies()

    async def answer(self, message: Message) -> Answer:
        """The results of the agent's calls, or what the user says to its text."""
        self._turns += 1
        self._steps += 1
        self._spoken.append(message)
        if message.tool_calls:
            shown = self._results(message.tool_calls, "assistant")
            self._spoken += shown
            self._steps += 1
            self._ended = self._limit()
            return Answer(shown, done=self._ended is not None)
        otherwise = "agent_error" if self._solo else None
        self._ended = self._limit() or ("agent_stop" if self._agent_stop in message.text else otherwise)
        self._domain.sync_tools()
        return Answer(done=True) if self._ended else await self._user_replies()

    def facts(self) -> dict[str, Any]:
        """How the conversation ended, what the user did out of sight, and digests of the databases."""
        return {
            "termination_reason": self._ended,
            "user_side": [each.fields() for each in self._user_side],
            "database": self._domain.get_db_hash(),
            "user_database": self._domain.get_user_db_hash(),
        }

    # -- both sides

    async def _user_replies(self) -> Answer:
        """What the user says in the end; what the user did before is noted, for nobody else sees it."""
        noted: list[dict[str, Any]] = []
        paid = Answer()
        on_record = self._on_record()
        for _ in range(_MOST_USER_CALLS):
            known = next(on_record, None)
            reply, cost, at_most = await self._reply() if known is None else Acted(self._repeated(known))
            paid.cost, paid.cost_is_at_most = paid.cost + cost, paid.cost_is_at_most or at_most
            self._spoken.append(reply)
            self._steps += 1
            if reply.tool_calls or reply.sent_back is not None:
                noted.append(reply.model_dump(exclude_none=True))
            if reply.tool_calls and known is None:
                await self.runner.note(noted, paid.cost, cost_is_at_most=paid.cost_is_at_most)
            if not reply.tool_calls:
                is_stop = any(word in reply.text for word in STOP_WORDS)
                self._ended = self._limit() or ("user_stop" if is_stop else None)
                said = [Message(role="user", content=reply.text)]
                return replace(paid, messages=said, done=self._ended is not None, noted=noted or None)
            results = self._results(reply.tool_calls, "user")
            self._spoken += results
            self._steps += 1
            self._user_side.append(_UserSide(self._turns, reply.tool_calls, [result.text for result in results]))
            if (ended := self._limit()) is not None:
                self._ended = ended
                return replace(paid, done=True, noted=noted)
        raise EnvironmentFailure(f"The user sent {_MOST_USER_CALLS} messages with calls and said nothing.")

    async def _reply(self) -> Acted:
        """What the user does next."""
        if self.runner.is_played_again:
            raise ReplayError("The user goes on here, and the record has no word of it. Play the episode anew.")
        if self._own_user is not None:
            return Acted(as_message(await finished(self._own_user.reply(self._spoken))))
        tools = [_spec_of(offered) for offered in self._domain.get_user_tools()]
        return await self._user.act(self._sample, self._as_the_user_sees_it(), self.runner.draw, tools)

    def _as_the_user_sees_it(self) -> list[Message]:
        """What both sides said to each other, and the user's own calls with their results; not the agent's calls."""
        seen: list[Message] = []
        is_users = False
        for message in self._spoken:
            is_users = message.role == "user" or (message.role == "tool" and is_users)
            if is_users or (message.role == "assistant" and not message.tool_calls):
                seen.append(message)
        return seen

    def _on_record(self) -> Iterator[Message]:
        """What the user did in this turn when it was played before, to its end or until it was cut off."""
        yield from map(message_from, self.runner.noted or ())
        yield from (message for message in self.runner.played_again if message.role == "user")

    def _repeated(self, reply: Message) -> Message:
        if (repeat := getattr(self._own_user, "repeat", None)) is not None:
            repeat(reply)
        return reply

    def _results(self, calls: Sequence[ChatCompletionMessageToolCall], side: Side) -> list[Message]:
        shown = []
        for call in calls:
            content, is_error = _response(self._domain, call, side)
            self._errors += is_error
            if side == "assistant":
                self.runner.uses.append(ToolUse(id=call.id, name=call.function.name, error=self._kind(call, is_error)))
            shown.append(Message(role="tool", content=content, tool_call_id=call.id, name=call.function.name))
        self._domain.sync_tools()
        return shown

    def _kind(self, call: ChatCompletionMessageToolCall, is_error: bool) -> str | None:
        if is_error and all(tool.name != call.function.name for tool in self.tools):
            return "unknown_tool"
        return "exception" if is_error else None

    def _limit(self) -> str | None:
        most_steps, most_errors = self._limits
        if self._errors >= most_errors:
            return "too_many_errors"
        return "max_steps" if self._steps >= most_steps else None

    def _tool(self, offered: Any) -> Tool:
        if isinstance(offered, Tool):
            return offered
        spec = offered.openai_schema
        described = spec["function"]

        async def call(arguments: dict[str, Any]) -> Any:
            return self._domain.make_tool_call(described["name"], "assistant", **arguments)

        return Tool(described["name"], described.get("description", ""), described["parameters"], call, spec=spec)


def _spec_of(offered: Any) -> dict[str, Any]:
    """A tool as a model is offered it."""
    spec: dict[str, Any] = offered.spec if isinstance(offered, Tool) else offered.openai_schema
    return spec


def _task_of(sample: Sample) -> dict[str, Any]:
    task = sample.columns.get("task")
    if not isinstance(task, dict):
        raise DatasetError(f"Sample {sample.id!r} has no column `task` with the fields of a task. Add it.")
    return task


def _loaded(named: Any) -> Callable[..., Any]:
    if isinstance(named, str):
        return load_function(named)
    if not callable(named):
        raise ConfigError(f"A domain or a user is made by a function, and this is {named!r}. Name one by its path.")
    return named  # type: ignore[no-any-return]  # `callable` narrows Any to nothing more precise


def _prepared(domain: Any, task: Mapping[str, Any]) -> Any:
    """The domain as the task finds it: its data, its first actions, and the calls of a conversation that had begun."""
    begins = task.get("initial_state") or {}
    data, actions = begins.get("initialization_data"), begins.get("initialization_actions")
    domain.set_state(
        initialization_data=None
        if data is None
        else SimpleNamespace(**{"agent_data": None, "user_data": None, **data}),
        initialization_actions=None if actions is None else [SimpleNamespace(**action) for action in actions],
        message_history=[],
    )
    for message in begins.get("message_history") or ():
        for call in message.get("tool_calls") or ():
            _response(domain, call_from(call), call.get("requestor", message["role"]))
    domain.sync_tools()
    return domain


def _response(domain: Any, call: ChatCompletionMessageToolCall, side: Side) -> tuple[str, bool]:
    """What a call gave, and whether that is an error."""
    try:
        arguments = json.loads(call.function.arguments or "{}")
        if not isinstance(arguments, dict):
            raise ValueError("they are not a JSON object")
    except (ValueError, RecursionError) as error:
        return f"Error: the arguments cannot be read: {error}", True
    reply = domain.get_response(
        SimpleNamespace(id=call.id, name=call.function.name, arguments=arguments, requestor=side)
    )
    return reply.content, bool(reply.error)


# ── the verdict ──────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function
def two_sided(
    messages: list[Message], task: dict[str, Any], facts: dict[str, Any], domain: Operator[str], **_: Any
) -> EvaluateResult:
    """Whether a conversation came to what its task asks for: 1 or 0, and a metric for each part that counts.

    `domain` is the import path of the function that makes a domain. The calls of both sides are made again in a fresh
    one; results that differ from the recorded ones are no verdict but a failure that says where.
    """
    return judged(messages, task, facts, _loaded(domain))


def verdict_of(rollout: Rollout, domain: Callable[[], Any] | str) -> EvaluateResult:
    """The verdict on a rollout as it is on disk."""
    if rollout.failure is not None:
        raise RewardError(f"The episode failed, so there is nothing to judge: {rollout.failure.message}")
    return judged(rollout.messages, _task_of(rollout.sample), rollout.facts or {}, _loaded(domain))


def judged(
    messages: Sequence[Message], task: Mapping[str, Any], facts: Mapping[str, Any], domain: Callable[[], Any]
) -> EvaluateResult:
    """The same for a reward of your own, which knows what makes its domain."""
    ended = facts.get("termination_reason")
    if ended not in _ENDED_WELL:
        return EvaluateResult(score=0.0, reason=f"neither side ended the conversation: {ended or 'it was cut off'}")
    criteria = task.get("evaluation_criteria")
    if criteria is None:
        return EvaluateResult(score=1.0, reason="nothing is asked for")
    basis = [str(part) for part in criteria.get("reward_basis") or ("DB", "COMMUNICATE")]
    if unknown := set(basis) - _PARTS.keys():
        raise RewardError(
            f"The task is judged by {sorted(unknown)}, which this reward does not know. Use another reward for this "
            "task."
        )
    episode = _Played(messages, task, criteria, [_UserSide.of(each) for each in facts.get("user_side", ())], domain)
    metrics = {part: _PARTS[part](episode) for part in basis}
    score = float(all(metric.score == 1.0 for metric in metrics.values()))
    wrong = [metric.reason for metric in metrics.values() if metric.score < 1.0]
    return EvaluateResult(score=score, reason="; ".join(wrong) or "all that is asked for", metrics=metrics)


@dataclass
class _Played:
    """An episode as it is judged. The domain is played again when a part of the verdict asks for it."""

    messages: Sequence[Message]
    task: Mapping[str, Any]
    criteria: Mapping[str, Any]
    user_side: Sequence[_UserSide]
    make_domain: Callable[[], Any]
    _domain: Any = field(default=None, init=False)

    @property
    def domain(self) -> Any:
        """A fresh domain in which the calls of both sides have been made again."""
        if self._domain is None:
            self._domain = _prepared(self.make_domain(), self.task)
            for call, side, recorded in self._recorded():
                self._repeat(call, side, recorded)
            self._domain.sync_tools()
        return self._domain

    def calls(self) -> list[tuple[ChatCompletionMessageToolCall, Side]]:
        """The calls of both sides in their order, those that the task began with included."""
        begun = (self.task.get("initial_state") or {}).get("message_history") or ()
        before = [(call_from(call), message["role"]) for message in begun for call in message.get("tool_calls") or ()]
        return [*before, *((call, side) for call, side, _ in self._recorded())]

    def _recorded(self) -> list[tuple[ChatCompletionMessageToolCall, Side, str | None]]:
        """The calls of both sides in their order, each with its recorded result."""
        turns = -_turns_before(self.messages, self.task)
        found = self._of_user(0)
        waiting: list[ChatCompletionMessageToolCall] = []
        for message in self.messages:
            if message.role == "assistant":
                turns += 1
                waiting = [*(message.tool_calls or ())] if turns > 0 else []
                found += self._of_user(turns) if turns > 0 and not waiting else []
            elif message.role == "tool" and waiting:
                found.append((waiting.pop(0), "assistant", message.text))
        return found

    def _of_user(self, turns: int) -> list[tuple[ChatCompletionMessageToolCall, Side, str | None]]:
        """What the user did after so many turns of the agent."""
        sides = [side for side in self.user_side if side.turn == turns]
        return [pair for side in sides for pair in side.recorded()]

    def _repeat(self, call: ChatCompletionMessageToolCall, side: Side, recorded: str | None) -> None:
        name = call.function.name
        if not _may_change(self._domain, name):
            return
        content, _ = _response(self._domain, call, side)
        if recorded is not None and content != recorded and _parsed(content) != _parsed(recorded):
            raise ReplayError(
                f"The call {name!r} gave {content[:200]!r} when it was made again, and the record has "
                f"{recorded[:200]!r}. Judge with the domain that the episode was played in."
            )


def _turns_before(messages: Sequence[Message], task: Mapping[str, Any]) -> int:
    """Assistant turns that the agent did not say: the greeting, or the conversation that the task begins with."""
    first = next((place for place, message in enumerate(messages) if message.role == "user"), 0)
    begun = (task.get("initial_state") or {}).get("message_history")
    if begun:
        return sum(message["role"] == "assistant" for message in begun)
    return sum(message.role == "assistant" for message in messages[:first])


def _may_change(domain: Any, name: str) -> bool:
    asked = getattr(domain, "is_mutating_tool", None)
    return True if asked is None else bool(asked(name))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _database(episode: _Played) -> MetricResult:
    """Whether both databases are as the reference answer leaves them."""
    actions = episode.criteria.get("actions")
    if actions is None and episode.criteria.get("env_assertions") is None:
        return _metric(True, "no state is asked for")
    gold = _prepared(episode.make_domain(), episode.task)
    for action in actions or ():
        try:
            gold.make_tool_call(
                tool_name=action["name"], requestor=action.get("requestor", "assistant"), **action["arguments"]
            )
        except Exception:  # noqa: BLE001 - a named boundary: a reference answer may look for what is not there
            continue
    same = (gold.get_db_hash(), gold.get_user_db_hash()) == (
        episode.domain.get_db_hash(), episode.domain.get_user_db_hash()
    )  # fmt: skip
    return _metric(same, "the database is not as it should be")


def _assertions(episode: _Played) -> MetricResult:
    """Whether everything holds that must hold in the end."""
    for assertion in episode.criteria.get("env_assertions") or ():
        held = episode.domain.run_env_function_call(SimpleNamespace(**assertion))
        if held != assertion.get("assert_value", True):
            return _metric(False, assertion.get("message") or f"{assertion['func_name']} does not hold")
    return _metric(True, "")


def _actions(episode: _Played) -> MetricResult:
    """Whether each call of the reference answer was made."""
    made = [(call.function.name, _parsed(call.function.arguments or "{}")) for call, _ in episode.calls()]
    for action in episode.criteria.get("actions") or ():
        if not any(_is_call(action, name, arguments) for name, arguments in made):
            return _metric(False, f"{action['name']} was not called as it should be")
    return _metric(True, "")


def _is_call(action: Mapping[str, Any], name: str, arguments: Any) -> bool:
    if action["name"] != name or not isinstance(arguments, dict):
        return False
    compared = action.get("compare_args")
    keys = set(arguments if compared is None else compared)
    given, wanted = (
        {key: _unpacked(value) for key, value in each.items() if key in keys}
        for each in (arguments, action["arguments"])
    )
    return given == wanted


def _unpacked(value: Any) -> Any:
    """A value in which texts that are JSON objects or lists are what they say, however they are spaced."""
    if isinstance(value, str):
        parsed = _parsed(value) if value.strip().startswith(("{", "[")) else value
        return value if parsed is value else _unpacked(parsed)
    if isinstance(value, dict):
        return {key: _unpacked(inner) for key, inner in value.items()}
    return [_unpacked(inner) for inner in value] if isinstance(value, list) else value


def _communicated(episode: _Played) -> MetricResult:
    """Whether the agent said what it was to say."""
    said = [m.text.lower().replace(",", "") for m in episode.messages if m.role == "assistant" and m.text.strip()]
    for information in episode.criteria.get("communicate_info") or ():
        if not any(information.lower() in text for text in said):
            return _metric(False, f"the agent never said {information!r}")
    return _metric(True, "")


def _metric(is_met: bool, otherwise: str) -> MetricResult:
    return MetricResult(score=float(is_met), reason="as it should be" if is_met else otherwise, is_score_valid=is_met)


_PARTS: dict[str, Callable[[_Played], MetricResult]] = {
    "DB": _database,
    "ENV_ASSERTION": _assertions,
    "ACTION": _actions,
    "COMMUNICATE": _communicated,
}


# ── what others have recorded ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class RecordedEpisode:
    """A recorded simulation, taken apart: the sample to play, what the agent said, and what came of it."""

    sample: Sample
    agent_turns: list[Message]
    tool_results: list[str]
    """The text of every tool message, of both sides, in their order."""
    termination_reason: str
    reward: float | None


def recorded_episode(
    simulation: Mapping[str, Any], task: Mapping[str, Any], *, policy: str = "", sample_id: str | None = None
) -> RecordedEpisode:
    """A simulation as tau2-bench writes it into its results, with its task. The user's turns become the sample's."""
    messages: list[Mapping[str, Any]] = list(simulation["messages"])
    begun = len((task.get("initial_state") or {}).get("message_history") or ())
    before = begun or sum(1 for _ in _greeting(messages))
    prompt = [Message(role="system", content=policy)] if policy else []
    user_turns = [message for message in messages[before:] if message["role"] == "user"]
    sample = Sample(
        id=sample_id or str(task["id"]),
        messages=[*prompt, *(_spoken(message) for message in messages[:before])],
        columns={"task": dict(task), "user_turns": user_turns},
    )
    return RecordedEpisode(
        sample=sample,
        agent_turns=[as_message(message) for message in messages[before:] if message["role"] == "assistant"],
        tool_results=[str(message["content"]) for message in messages[before:] if message["role"] == "tool"],
        termination_reason=str(simulation["termination_reason"]),
        reward=(simulation.get("reward_info") or {}).get("reward"),
    )


def _greeting(messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """What the agent says before it is asked anything, which no model has written."""
    return messages[:1] if messages and messages[0]["role"] == "assistant" and not messages[0].get("tool_calls") else []


def _spoken(given: Mapping[str, Any]) -> Message:
    if given["role"] == "tool":
        return Message(role="tool", content=given["content"], tool_call_id=given["id"])
    return as_message(given)
