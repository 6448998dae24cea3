# SPDX-License-Identifier: Apache-2.0
"""OpenRLHF's remote reward (`--reward.remote_url http://host:8000/openrlhf`).

    POST /openrlhf   {"query": [...], "prompts": [...], "labels": [...]}  →  {"rewards", "scores", "extra_logs"}

A query is the whole text that the model read and wrote, special tokens included; what follows the prompt is the answer.
For one query, which is what OpenRLHF sends, the rewards are a number, and for several a list. It has no word for "not
judged": the reply is a 5xx then, which it tries again four times, and in the end leaves that sample without a reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reward_kit.integrations.openrlhf import attempts_in
from reward_kit.serving.dialect import BadRequest, Dialect, Exchange, Incoming, Route, object_in
from reward_kit.serving.dialects.numbers import metrics_of, results_or_failed

__all__ = ["OPENRLHF"]


def _read(incoming: Incoming) -> Exchange:
    body = object_in(incoming.json, "query")
    queries = _texts(body["query"], "query")
    prompts = _texts(body.get("prompts") or [""] * len(queries), "prompts")
    labels = body.get("labels")
    labels = [None] * len(queries) if labels is None else labels
    if not isinstance(labels, list) or not len(queries) == len(prompts) == len(labels):
        raise BadRequest(
            "The lists 'query', 'prompts' and 'labels' have different lengths. Send one entry of each per query."
        )
    asked = attempts_in({"query": queries, "prompts": prompts, "labels": labels}, incoming.written)
    return Exchange(asked, _reply)


def _texts(value: Any, field: str) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise BadRequest(f"The field {field!r} is not a list of texts. Send one text per query.")
    return value


@results_or_failed
def _reply(results: Sequence[Any]) -> Any:
    scores = [result.score for result in results]
    rewards: Any = scores[0] if len(scores) == 1 else scores
    logs = [metrics_of(result) for result in results]
    shared = [name for name in logs[0] if all(name in each for each in logs)]
    extra = {name: logs[0][name] if len(logs) == 1 else [each[name] for each in logs] for name in shared}
    return {"rewards": rewards, "scores": rewards, "extra_logs": extra}


_LIST = {"type": "array", "items": {"type": "string"}}

OPENRLHF = Dialect(
    "openrlhf",
    "OpenRLHF's remote reward.",
    [
        Route(
            "/openrlhf", _read, "Judge the texts that OpenRLHF sampled.",
            request_schema={
                "type": "object", "required": ["query"],
                "properties": {"query": _LIST, "prompts": _LIST, "labels": {"type": "array"}},
            },
            response_schema={
                "type": "object", "required": ["rewards", "scores"],
                "properties": {"rewards": {}, "scores": {}, "extra_logs": {"type": "object"}},
            },
        )
    ],
    one_answer=True,
)  # fmt: skip
