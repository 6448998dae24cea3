# SPDX-License-Identifier: Apache-2.0
"""verl's `compute_score`, asked for over HTTP.

    POST /verl   {"data_source", "solution_str", "ground_truth", "extra_info"}  →  {"score", metrics …}

verl itself calls a function in a file: `reward_kit.integrations.verl.write_compute_score` writes one that calls a
served reward, in batches and with retries. This route is for files of one's own that post what they are given. It has
no word for "not judged": the reply is a 5xx then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reward_kit.integrations.turns import prompt_turns
from reward_kit.models import EvaluateResult
from reward_kit.serving.dialect import (
    BadRequest,
    Dialect,
    Exchange,
    Incoming,
    Route,
    object_in,
    rollout_in,
)
from reward_kit.serving.dialects.numbers import metrics_of, results_or_failed

__all__ = ["VERL"]


def _read(incoming: Incoming) -> Exchange:
    body = object_in(incoming.json, "solution_str")
    if not isinstance(body["solution_str"], str):
        raise BadRequest("The field 'solution_str' is not a text. Send what the model answered.")
    extra = body.get("extra_info") or {}
    if not isinstance(extra, dict):
        raise BadRequest("The field 'extra_info' is not an object. Send an object, or leave it out.")
    prompt: Any = extra.get("prompt") or []
    turns = prompt_turns(prompt) if isinstance(prompt, str | list) else []
    row = {**extra, **{name: value for name, value in body.items() if name not in {"solution_str", "extra_info"}}}
    turns = [*turns, {"role": "assistant", "content": body["solution_str"]}]
    return Exchange([rollout_in(incoming, row, turns, "extra_info.prompt", asks="prompt" in row)], _reply)


@results_or_failed
def _reply(results: Sequence[EvaluateResult]) -> dict[str, Any]:
    return {**metrics_of(results[0]), "score": results[0].score}


VERL = Dialect(
    "verl",
    "verl's compute_score.",
    [
        Route(
            "/verl", _read, "Judge one solution.",
            request_schema={
                "type": "object", "required": ["solution_str"],
                "properties": {
                    "data_source": {"type": "string"}, "solution_str": {"type": "string"}, "ground_truth": {},
                    "extra_info": {"type": ["object", "null"]},
                },
            },
            response_schema={"type": "object", "required": ["score"], "properties": {"score": {"type": "number"}}},
        )
    ],
    one_answer=True,
)  # fmt: skip
