# SPDX-License-Identifier: Apache-2.0
"""Turns as they are recorded, and whether a world that plays them again does the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from reward_kit.agent.environment import Answer
from reward_kit.agent.transcript import digest_of
from reward_kit.models import Completion, Message, Rollout, Step, Tokens, ToolUse
from reward_kit.storage.row_json import json_text
from reward_kit.storage.turn_journal import RecordedTurn, Recording

__all__ = [
    "answer_fields",
    "answer_from",
    "completion_from",
    "difference",
    "is_same_message",
    "is_whole",
    "message_from",
    "messages_from",
    "other_facts",
    "other_tools",
    "recording_of_rollout",
    "reply_fields",
    "with_whole_prompts",
]

_REPLY = ("finish_reason", "usage", "retried", "latency_ms", "cached", "model", "tokens")


def reply_fields(completion: Completion) -> dict[str, Any]:
    """What the model said, as the journal holds it."""
    fields = {name: held for name in _REPLY if (held := getattr(completion, name)) is not None}
    return {"message": _plain(completion.message), **fields}


def completion_from(fields: Mapping[str, Any]) -> Completion:
    """What the model said, from the journal."""
    return Completion.model_validate({**fields, "message": message_from(fields["message"])})


def answer_fields(answer: Answer, uses: Sequence[ToolUse]) -> dict[str, Any]:
    """What came back from the world, as the journal holds it."""
    messages = [_plain(message) for message in answer.messages]
    return {
        "messages": messages, "reward": answer.reward, "done": answer.done, "state": answer.state, "calls": list(uses),
        **({"cost": answer.cost} if answer.cost else {}),
        **({"cost_is_at_most": True} if answer.cost_is_at_most else {}),
        **({} if answer.noted is None else {"noted": answer.noted}),
    }  # fmt: skip


def answer_from(fields: Mapping[str, Any]) -> tuple[Answer, list[ToolUse]]:
    """What came back from the world, and how its tools did, from the journal."""
    uses = [use if isinstance(use, ToolUse) else ToolUse.model_validate(use) for use in fields["calls"]]
    answer = Answer(
        messages_from(fields), fields.get("reward"), bool(fields["done"]), fields.get("state"),
        fields.get("cost", 0.0), fields.get("cost_is_at_most", False), fields.get("noted"),
    )  # fmt: skip
    return answer, uses


def is_whole(fields: Mapping[str, Any] | None) -> TypeGuard[Mapping[str, Any]]:
    """Whether the journal holds what came back from the world, and not only what it noted before it was cut off."""
    return fields is not None and not fields.get("cut_off")


def messages_from(fields: Mapping[str, Any]) -> list[Message]:
    """The messages that came back from the world."""
    return [message_from(message) for message in fields["messages"]]


def recording_of_rollout(rollout: Rollout, steps: int | None = None) -> Recording:
    """A finished episode, or the first `steps` of it, as it was recorded while it was played."""
    played = rollout.steps or []
    shown = rollout.turns[: played[0].turn] if played else rollout.turns
    opening: dict[str, Any] = {"messages": [_plain(message) for message in shown], "done": None, "calls": []}
    if rollout.opening is not None:  # else nothing was told beside messages, or, in an older file, it is not known
        opening |= {"state": None, "reward": None, **rollout.opening}
    following = () if steps is None else played[steps : steps + 1]
    tools = [step.tools for step in (*played[:steps], *following) if step.tools is not None]
    return Recording(opening, _turns_of(rollout, played, steps), tools[-1] if following and tools else None)


def _turns_of(rollout: Rollout, played: Sequence[Step], steps: int | None) -> list[RecordedTurn]:
    tokens = [*with_whole_prompts(step.tokens for step in played)]
    found: list[RecordedTurn] = []
    for number, step in enumerate(played[:steps]):
        following = played[number + 1] if number + 1 < len(played) else None
        shown = rollout.turns[step.turn + 1 : None if following is None else following.turn]
        reply = {
            "message": _plain(rollout.turns[step.turn]), "finish_reason": step.finish_reason, "usage": step.usage,
            "latency_ms": step.latency_ms or 0.0, "cached": True, "model": rollout.model, "tokens": tokens[number],
            "tools": step.tools,
        }  # fmt: skip
        answer = {
            "messages": [_plain(message) for message in shown],
            "reward": step.reward,
            "done": False if following is not None else _was_done(rollout),
            "calls": step.calls,
            "noted": step.noted,
            **({} if following is None else {"state": following.state}),
        }
        found.append(RecordedTurn(reply, answer))
    return found


def with_whole_prompts(steps: Iterable[Tokens | None]) -> Iterator[Tokens | None]:
    """The tokens of an episode's steps, each with all of its prompt, as the endpoint told them."""
    known: list[int] = []
    for tokens in steps:
        if tokens is None or tokens.prompt_ids is None:
            yield tokens
            continue
        prompt = tokens.prompt_ids if tokens.whole_prompt else [*known, *tokens.prompt_ids]
        known = [*prompt, *(tokens.ids or ())]
        yield tokens.model_copy(update={"prompt_ids": prompt, "whole_prompt": None})


def _was_done(rollout: Rollout) -> bool | None:
    """Whether the world ended the episode; None where that cannot be told from how it ended."""
    return None if rollout.ended == "stopped" else rollout.ended in {"done", "answered"}


def difference(answer: Answer, recorded: Mapping[str, Any], before: Sequence[Message]) -> str | None:
    """How an answer differs from the recorded one, whose messages are `before`; None where it does not."""
    for new, old in zip(answer.messages, before, strict=False):
        if not is_same_message(new, old):
            return _contrast(new, old)
    if len(answer.messages) != len(before):
        return f"{len(answer.messages)} messages came back, and {len(before)} are recorded"
    if "state" in recorded and recorded["state"] not in (answer.state, answer.state or digest_of(answer.messages)):
        return f"the state was {answer.state!r}, and {recorded['state']!r} is recorded"
    if "reward" in recorded and answer.reward != recorded["reward"]:
        return f"the reward was {answer.reward}, and {recorded['reward']} is recorded"
    if recorded["done"] is not None and answer.done != recorded["done"]:
        return f"the episode {'ended' if answer.done else 'went on'} here, and it is recorded otherwise"
    return None


def other_tools(offered: Sequence[Mapping[str, Any]], recorded: Sequence[Mapping[str, Any]]) -> str | None:
    """How the tools that are offered differ from those that were; None where they do not."""
    if _same(offered, recorded):
        return None
    new, old = ({tool["function"]["name"]: tool for tool in tools} for tools in (offered, recorded))
    if [*new] != [*old]:
        return f"the tools are {', '.join(new) or 'none'}, and {', '.join(old) or 'none'} are recorded"
    name = next(name for name in new if not _same(new[name], old[name]))
    return f"of the tool {name!r}, {_parting(_text(new[name]), _text(old[name]))}"


def other_facts(facts: Mapping[str, Any], recorded: Mapping[str, Any]) -> str | None:
    """Which of the recorded facts a world tells otherwise; None where it tells them all alike."""
    for name, old in recorded.items():
        if name not in facts:
            return f"the fact {name!r} is not told, and is recorded"
        if not _same(facts[name], old):
            return f"of the fact {name!r}, {_parting(_text(facts[name]), _text(old))}"
    return None


def _shown(message: Message) -> dict[str, Any]:
    """A message as a model is shown it. Files do not tell no content from an empty one."""
    request = message.as_request()
    return request | {"content": request["content"] or ""}


def is_same_message(new: Message, old: Message) -> bool:
    """Whether a model is shown the same by both."""
    return _same(_shown(new), _shown(old))


def _same(new: Any, old: Any) -> bool:
    """Whether two things are the same where they are written down."""
    return bool(new == old) or _text(new) == _text(old)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def _contrast(new: Message, old: Message) -> str:
    """How two messages differ."""
    if new.role != old.role or new.tool_call_id != old.tool_call_id:
        return f"a message of {new.role!r} came back, and one of {old.role!r} is recorded"
    if new.text != old.text:
        return _parting(new.text, old.text)
    one, other = _shown(new), _shown(old)
    name = next(name for name in one | other if not _same(one.get(name), other.get(name)))
    return f"of a message's {name}, {_parting(_text(one.get(name)), _text(other.get(name)))}"


def _parting(new: str, old: str, around: int = 60) -> str:
    """Where two texts part, and how."""
    pairs = zip(new, old, strict=False)
    at = next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(new), len(old)))
    start = max(0, at - around // 2)
    return f"{new[start : start + around]!r} came back, and {old[start : start + around]!r} is recorded"


def message_from(fields: Mapping[str, Any]) -> Message:
    """A message of which only what there is was written down."""
    return Message.model_validate(fields if "content" in fields else {**fields, "content": None})


def _plain(message: Message) -> dict[str, Any]:
    return {name: held for name, held in message.__dict__.items() if held is not None}
