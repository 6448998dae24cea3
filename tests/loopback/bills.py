# SPDX-License-Identifier: Apache-2.0
"""An endpoint that keeps its own bill: every kind of reply and fault, each with what a provider takes for it.

A prompt names its kind: `kind=NAME`. What was billed is kept by prompt, so that a record can be held to its own bill.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.generation.loopback import Misbehave, Reaction, Says
from tests.loopback.endpoint import prompt_of, text_for

__all__ = ["ALWAYS", "EXACT", "FAULTS", "KINDS", "LIMITLESS", "PRICE", "Biller", "Kind", "kind_of"]

PRICE = {"input": 2.0, "output": 10.0, "cached_input": 0.5, "cache_write": 3.0}
"""For a million tokens."""
THOUGHT = 1_900
LATE = 1.5
"""Seconds after which a late reply comes. Clients wait for less."""


@dataclass
class Used:
    """What a reply takes, however little of it is told."""

    prompt: int
    answer: int
    cached: int = 0
    written: int = 0
    money: float | None = None
    """What is taken in the place of what the tokens cost."""

    @property
    def cost(self) -> float:
        if self.money is not None:
            return self.money
        plain = self.prompt - self.cached - self.written
        tokens = plain * PRICE["input"] + self.cached * PRICE["cached_input"] + self.written * PRICE["cache_write"]
        return (tokens + self.answer * PRICE["output"]) / 1e6

    def told(self, **more: Any) -> dict[str, Any]:
        total = self.prompt + self.answer
        return {"prompt_tokens": self.prompt, "completion_tokens": self.answer, "total_tokens": total, **more}


NOTHING = Used(0, 0)
Make = Callable[[dict[str, Any], Used], tuple[Reaction, Used]]


@dataclass(frozen=True)
class Kind:
    """A kind of reply."""

    make: Make
    is_told: bool = True
    """Whether the reply says what it used, or surely used nothing."""
    is_bounded: bool = True
    """Whether max_tokens bounds what it uses."""
    once: bool = False
    """A fault that passes: the same prompt is answered the next time."""


def answered(texts: list[Any], usage: Any, *, finish: str = "stop", **message: Any) -> Says:
    choices = [
        {"message": {"role": "assistant", "content": text, **message}, "finish_reason": finish} for text in texts
    ]
    return Says(200, {"model": "m", "choices": choices} | ({} if usage is ... else {"usage": usage}))


def texts(body: dict[str, Any]) -> list[Any]:
    return [text_for(body, choice) for choice in range(body.get("n", 1))]


# ── replies that are answers ─────────────────────────────────────────────────────────────────────────────────────────


def telling(tell: Callable[[Used], Any]) -> Make:
    """An ordinary answer whose `usage` is what `tell` makes of the true one."""
    return lambda body, used: (answered(texts(body), tell(used)), used)


def using(change: Callable[[Used], Used], tell: Callable[[Used], Any] = Used.told) -> Make:
    def make(body: dict[str, Any], used: Used) -> tuple[Reaction, Used]:
        whole = change(used)
        return answered(texts(body), tell(whole)), whole

    return make


def saying(content: Any, finish: str, usage: Any = None, **message: Any) -> Make:
    def make(body: dict[str, Any], used: Used) -> tuple[Reaction, Used]:
        told = used.told() if usage is None else usage
        return answered([content] * body.get("n", 1), told, finish=finish, **message), used

    return make


def thinking(used: Used) -> Used:
    return Used(used.prompt, used.answer + THOUGHT)


def as_xai(used: Used) -> dict[str, Any]:
    total = used.prompt + used.answer
    details = {"reasoning_tokens": THOUGHT}
    return {"prompt_tokens": used.prompt, "completion_tokens": used.answer - THOUGHT, "total_tokens": total,
            "completion_tokens_details": details}  # fmt: skip


def without_total(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name != "total_tokens"}


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}

ANSWERS = {
    "plain": Kind(telling(Used.told)),
    "plain_without_total": Kind(telling(lambda used: without_total(used.told()))),
    "cut_off": Kind(saying("cut", "length")),
    "empty": Kind(saying("", "stop")),
    "tool_call": Kind(saying(None, "tool_calls", tool_calls=[CALL])),
    "refusal": Kind(saying(None, "stop", refusal="I will not.")),
    "thought_within": Kind(telling(lambda used: used.told(completion_tokens_details={"reasoning_tokens": 3}))),
    "thought_beside_xai": Kind(using(thinking, as_xai), is_bounded=False),
    "thought_beside_no_total": Kind(using(thinking, lambda used: without_total(as_xai(used))), is_bounded=False),
    "thought_in_total_gemini": Kind(
        using(thinking, lambda used: used.told() | {"completion_tokens": used.answer - THOUGHT}), is_bounded=False
    ),
    "answer_in_total_only": Kind(
        telling(lambda used: {"prompt_tokens": used.prompt, "total_tokens": used.prompt + used.answer})
    ),
    "cost_told": Kind(
        using(lambda used: Used(used.prompt, used.answer, money=0.7 * used.cost),
              lambda used: used.told(cost=used.cost, is_byok=False))
    ),
    "cost_told_own_key": Kind(
        using(lambda used: Used(used.prompt, used.answer, money=used.cost),
              lambda used: used.told(cost=0.05 * used.cost, is_byok=True,
                                     cost_details={"upstream_inference_cost": 0.95 * used.cost}))
    ),
    "cached_openai": Kind(
        using(lambda used: Used(used.prompt, used.answer, cached=used.prompt // 2),
              lambda used: used.told(prompt_tokens_details={"cached_tokens": used.cached}))
    ),
    "cached_deepseek": Kind(
        using(lambda used: Used(used.prompt, used.answer, cached=used.prompt // 2),
              lambda used: used.told(prompt_cache_hit_tokens=used.cached,
                                     prompt_cache_miss_tokens=used.prompt - used.cached))
    ),
    "cached_moonshot": Kind(
        using(lambda used: Used(used.prompt, used.answer, cached=used.prompt // 2),
              lambda used: used.told(cached_tokens=used.cached))
    ),
    "cache_written": Kind(
        using(lambda used: Used(used.prompt, used.answer, cached=1, written=used.prompt // 2),
              lambda used: used.told(prompt_tokens_details={"cached_tokens": 1, "cache_write_tokens": used.written}))
    ),
    "usage_left_out": Kind(telling(lambda used: ...), is_told=False),
    "usage_null": Kind(telling(lambda used: None), is_told=False),
    "usage_zero": Kind(telling(lambda used: Used(0, 0).told()), is_told=False),
    "usage_answer_zero": Kind(
        telling(lambda used: {"prompt_tokens": used.prompt, "completion_tokens": 0}), is_told=False
    ),
    "usage_prompt_only": Kind(telling(lambda used: {"prompt_tokens": used.prompt}), is_told=False),
    "usage_total_only": Kind(telling(lambda used: {"total_tokens": used.prompt + used.answer}), is_told=False),
    "usage_as_texts": Kind(
        telling(lambda used: {name: str(count) for name, count in used.told().items()}), is_told=False
    ),
    "usage_a_list": Kind(telling(lambda used: [used.prompt, used.answer]), is_told=False),
    "usage_negative": Kind(
        telling(lambda used: {"prompt_tokens": -1, "completion_tokens": used.answer}), is_told=False
    ),
    "usage_empty": Kind(telling(lambda used: {}), is_told=False),
}  # fmt: skip


# ── replies that are none ────────────────────────────────────────────────────────────────────────────────────────────


def complaining(
    status: int, *, takes: bool = False, tells: bool = False, headers: dict[str, str] | None = None
) -> Make:
    def make(body: dict[str, Any], used: Used) -> tuple[Reaction, Used]:
        told = {"usage": used.told()} if tells else {}
        return Says(status, {"error": {"message": "no"}, **told}, headers or {}), used if takes else NOTHING

    return make


def giving(body_of: Callable[[Used], Any], status: int = 200, headers: dict[str, str] | None = None) -> Make:
    return lambda body, used: (Says(status, body_of(used), headers or {}), used)


def breaking(first: bytes) -> Make:
    """The connection ends after these bytes, and the work was done."""

    async def break_off(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        await writer.drain()
        writer.close()

    return lambda body, used: (break_off, used)


def late(body: dict[str, Any], used: Used) -> tuple[Misbehave, Used]:
    said = answered(texts(body), used.told())

    async def wait(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(LATE)
        writer.write(said.encoded())
        await writer.drain()

    return wait, used


HALF = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"choices": [{"mess'
SOON = {"retry-after-ms": "1"}

FAULTS = {
    "null_content": Kind(saying(None, "stop")),
    "null_content_untold": Kind(saying(None, "stop", usage=...), is_told=False),
    "filtered": Kind(saying(None, "content_filter")),
    "all_thought": Kind(saying(None, "length")),
    "error_in_choice": Kind(saying("half", "error")),
    "malformed_call": Kind(saying(None, "tool_calls", tool_calls=[{"function": 7}])),
    "no_choices": Kind(giving(lambda used: {"choices": [], "usage": used.told()})),
    "no_choices_untold": Kind(giving(lambda used: {"choices": []}), is_told=False),
    "choice_without_message": Kind(giving(lambda used: {"choices": [{}], "usage": used.told()})),
    "error_in_200": Kind(giving(lambda used: {"error": {"code": 502, "message": "upstream"}}), is_told=False),
    "error_in_200_told": Kind(giving(lambda used: {"error": {"message": "upstream"}, "usage": used.told()})),
    "no_json": Kind(giving(lambda used: b"<html>hello</html>"), is_told=False),
    "a_json_list": Kind(giving(lambda used: b"[1, 2]"), is_told=False),
    "gzip_rubbish": Kind(giving(lambda used: b"not gzip", headers={"Content-Encoding": "gzip"}), is_told=False),
    "status_201": Kind(giving(lambda used: {"id": 1}, status=201), is_told=False),
    "status_500": Kind(complaining(500, takes=True), is_told=False),
    "status_500_told": Kind(complaining(500, takes=True, tells=True)),
    "status_502": Kind(complaining(502, takes=True), is_told=False),
    "status_504": Kind(complaining(504, takes=True), is_told=False),
    "status_408": Kind(complaining(408, takes=True), is_told=False),
    "cut_before_reply": Kind(breaking(b""), is_told=False),
    "cut_in_head": Kind(breaking(b"HTTP/1.1 200 OK\r\nContent-Ty"), is_told=False),
    "cut_in_body": Kind(breaking(HALF), is_told=False),
    "no_http": Kind(breaking(b"what?\r\n\r\n"), is_told=False),
    "late": Kind(late, is_told=False),
}
REFUSALS = {
    "status_400": Kind(complaining(400)),
    "status_422": Kind(complaining(422)),
    "status_429": Kind(complaining(429, headers=SOON), once=True),
    "status_503": Kind(complaining(503, headers=SOON), once=True),
    "status_529": Kind(complaining(529, headers=SOON), once=True),
}
NOT_TAKEN = {"message": {"content": "ha"}, "finish_reason": "error", "error": {"code": 403, "message": "flagged"}}
UNSERVED = {
    "no_room_left": Kind(
        giving(lambda used: {"error": {"message": "Could not finish the message because max_tokens or model output "
                                       "limit was reached."}}, status=400), is_told=False
    ),
    "call_unread": Kind(
        giving(lambda used: {"error": {"message": "no", "code": "tool_use_failed", "failed_generation": "<f"}},
               status=400), is_told=False
    ),
    "cut_off_alone": Kind(giving(lambda used: {"choices": [{"finish_reason": "length"}], "usage": used.told()})),
    "error_in_choice_403": Kind(giving(lambda used: {"choices": [NOT_TAKEN], "usage": used.told()})),
    "error_in_choice_403_untold": Kind(giving(lambda used: {"choices": [NOT_TAKEN]}), is_told=False),
    "refusal_as_error": Kind(
        giving(lambda used: {"error": {"message": "No.", "metadata": {"error_type": "refusal"}}}, status=400),
        is_told=False,
    ),
    "filtered_alone": Kind(giving(lambda used: {"choices": [{"finish_reason": "SAFETY"}], "usage": used.told()})),
}  # fmt: skip
"""Answers, and one that was withheld, which are told of in an error or by a reason alone."""
PASSING = {f"{name}_once": Kind(kind.make, kind.is_told, once=True) for name, kind in FAULTS.items()}

KINDS: dict[str, Kind] = {**ANSWERS, **FAULTS, **REFUSALS, **UNSERVED, **PASSING}
EXACT = [name for name, kind in KINDS.items() if kind.is_told]
LIMITLESS = [name for name, kind in KINDS.items() if not kind.is_bounded]
ALWAYS = [name for name, kind in KINDS.items() if not kind.once]


def kind_of(prompt: str) -> str:
    found = re.search(r"kind=(\w+)", prompt)
    return found[1] if found else "plain"


@dataclass
class Biller:
    """Reacts as its kinds do, and writes the bill."""

    by_prompt: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    requests: int = 0
    tokens: int = 0
    _tried: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, body: dict[str, Any], _: int) -> Reaction:
        prompt = prompt_of(body)
        with self._lock:
            self.requests += 1
            asked = f"{prompt}|{body.get('seed')}"
            self._tried[asked] += 1
            kind = KINDS[kind_of(prompt)]
            if kind.once and self._tried[asked] > 1:
                kind = KINDS["plain"]
            reaction, used = kind.make(body, self.true_use(body))
            self.by_prompt[prompt] += used.cost
            self.tokens += used.prompt + used.answer
            return reaction

    @property
    def bill(self) -> float:
        return sum(self.by_prompt.values())

    def true_use(self, body: dict[str, Any]) -> Used:
        """A template around each turn, a token for every two bytes; answers as long as they may be."""
        sizes = [len(str(turn.get("content") or "").encode()) for turn in body["messages"]]
        prompt = 12 + sum(5 + size // 2 for size in sizes) + (200 if body.get("tools") else 0)
        most = body.get("max_tokens") or body.get("max_completion_tokens") or 40
        return Used(prompt, int(most) * body.get("n", 1))
