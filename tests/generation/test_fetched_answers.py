# SPDX-License-Identifier: Apache-2.0
"""What batches gave, taken as answers: whatever was paid is told once, wherever the answer comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.config_models import GenerationConfig, Price, Sampling
from reward_kit.generation.batch.answers import AnswerIndex, FetchedAnswers
from reward_kit.generation.batch.choose import batch_model
from reward_kit.generation.batch.lines import AnswerLines, RequestLines, custom_id
from reward_kit.generation.budget import Budget
from reward_kit.generation.cache.responses import RequestKeys, ResponseCache, draw_key
from reward_kit.generation.play import SingleTurn
from reward_kit.generation.usage import used_by
from reward_kit.models import Completion, Message, Sample

CONFIG = GenerationConfig(model_name="m", api_base="http://127.0.0.1:1/v1", api_key="k", transport="batch")
QUESTION = [Message(role="user", content="Is it?")]
PRICE = Price(input=1.0, output=2.0)
USED = {"prompt_tokens": 10, "completion_tokens": 20}
FAILED = {"error": {"message": "overloaded", "code": 500}, "usage": USED}


@pytest.mark.parametrize("failures", [0, 1, 2])
async def test_a_line_that_was_paid_in_vain_is_told_with_an_answer_from_the_cache(
    tmp_path: Path, failures: int
) -> None:
    model, sampling, identity = batch_model(CONFIG), Sampling(), {"endpoint": "e", "model": "m"}
    request = RequestKeys(identity, sampling).of(QUESTION, None, "s")
    name, index = custom_id("s", 0, request), AnswerIndex()
    for number in range(failures):
        line = {"custom_id": name, "response": {"status_code": 500, "body": FAILED}, "error": None}
        (tmp_path / f"{number}.jsonl").write_bytes(orjson.dumps(line) + b"\n")
        index.add(tmp_path / f"{number}.jsonl", f"batch_{number}")
    budget = Budget(1.0, 0.0)
    with ResponseCache(str(tmp_path / "cache")) as cache:
        answer = Message(role="assistant", content="yes")
        cache.put(draw_key(request, 0), Completion(message=answer, finish_reason="stop"), model="m")
        client = FetchedAnswers(
            "m", identity, index, RequestLines(model.client, model.shape), AnswerLines(model.client, "e", ()),
            largest_line=1 << 20, cache=cache, budget=budget, price=PRICE,
        )  # fmt: skip
        (got,) = await client.generate(QUESTION, draws=[0], sampling=sampling, sample_id="s")
        play: Any = SingleTurn(client, sampling, PRICE)
        (rollout,) = await play(Sample(id="s", messages=QUESTION), [0])
        await client.close()
    assert isinstance(got, Completion) and got.text == "yes" and got.cached is (failures == 0)
    assert len(used_by(got)) == failures
    assert rollout.cost == pytest.approx(failures * (10 * 1.0 + 20 * 2.0) / 1e6)
    assert budget.spent == pytest.approx(2 * rollout.cost)  # it was asked for twice
