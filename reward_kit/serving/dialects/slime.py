# SPDX-License-Identifier: Apache-2.0
"""slime's remote reward (`--rm-type remote_rm --rm-url http://host:8000/slime`), and miles', which took it over.

    POST /slime           {"prompt", "response", "label"}  →  a number
    POST /slime/metrics   the same                         →  {"score", "reason", metrics …}, for `--reward-key score`

It has no word for "not judged": the reply is a 5xx then, which slime tries again nine times, and then ends the rollout.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_kit.integrations.turns import prompt_turns
from reward_kit.models import EvaluateResult, Rollout
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

__all__ = ["SLIME"]


def _asked(incoming: Incoming) -> list[Rollout]:
    body = object_in(incoming.json, "prompt", "response")
    if not isinstance(body["response"], str):
        raise BadRequest("The field 'response' is not a text. Send what the model answered.")
    prompt = body["prompt"]
    if not isinstance(prompt, str | list) or not prompt:
        raise BadRequest("The field 'prompt' is neither a text nor a list of messages. Send what the model was asked.")
    turns = [*prompt_turns(prompt), {"role": "assistant", "content": body["response"]}]
    row = {name: value for name, value in body.items() if name != "response"}
    return [rollout_in(incoming, row, turns, "prompt", asks=True)]


def _read(incoming: Incoming) -> Exchange:
    return Exchange(_asked(incoming), _number)


def _read_for_metrics(incoming: Incoming) -> Exchange:
    return Exchange(_asked(incoming), _metrics)


@results_or_failed
def _number(results: Sequence[EvaluateResult]) -> float:
    return results[0].score


@results_or_failed
def _metrics(results: Sequence[EvaluateResult]) -> dict[str, object]:
    return {**metrics_of(results[0]), "score": results[0].score, "reason": results[0].reason}


_REQUEST = {
    "type": "object",
    "required": ["prompt", "response"],
    "properties": {"prompt": {"type": ["string", "array"]}, "response": {"type": "string"}, "label": {}},
}

SLIME = Dialect(
    "slime",
    "slime's remote reward, and that of miles.",
    [
        Route(
            "/slime", _read, "Judge one answer.", request_schema=_REQUEST, response_schema={"type": "number"},
        ),
        Route(
            "/slime/metrics", _read_for_metrics, "Judge one answer, and tell its metrics.", request_schema=_REQUEST,
            response_schema={"type": "object", "required": ["score"], "properties": {"score": {"type": "number"}}},
        ),
    ],
    one_answer=True,
)  # fmt: skip
