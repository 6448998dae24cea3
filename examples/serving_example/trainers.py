# SPDX-License-Identifier: Apache-2.0
"""What trainers' HTTP clients send to a reward, and what they take from the reply; one function each.

A real trainer is told the address in its config and needs none of this. Here they are written out, so that the example
runs without them: see the tests for the trainers' own code against the same server.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen


class NotJudged(Exception):
    """The server could not say; a trainer would ask again, and then leave the sample out."""


def post(url: str, body: Any) -> Any:
    """The JSON that the server answers with."""
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urlopen(request, timeout=60) as reply:
            return json.load(reply)
    except HTTPError as error:
        with error:
            raise NotJudged(f"{error.code}: {json.load(error)['detail']}") from None


def openrlhf(server: str, question: str, answer: str, label: str) -> float:
    """`--reward.remote_url SERVER/openrlhf`: the whole text with its special tokens."""
    query = f"<|user|>{question}<|assistant|>{answer}<|im_end|>"
    body = {"query": [query], "prompts": [f"<|user|>{question}<|assistant|>"], "labels": [label]}
    return float(post(f"{server}/openrlhf", body)["rewards"])


def slime(server: str, question: str, answer: str, label: str) -> float:
    """`--rm-type remote_rm --rm-url SERVER/slime`."""
    return float(post(f"{server}/slime", {"prompt": question, "response": answer, "label": label}))


def nemo_gym(server: str, question: str, answer: str, label: str) -> float:
    """A resources server of NeMo-Gym: the response is an object of OpenAI's Responses API."""
    row = {"responses_create_params": {"input": [{"role": "user", "content": question}]}, "ground_truth": label}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer}]}
    post(f"{server}/seed_session", row)
    return float(post(f"{server}/verify", {**row, "response": {"output": [said]}})["reward"])


TRAINERS = {"OpenRLHF": openrlhf, "slime": slime, "NeMo-Gym": nemo_gym}
