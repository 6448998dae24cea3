# SPDX-License-Identifier: Apache-2.0
"""A reply that the journal tells of is in the cache: an episode that begins again finds it there, and pays it once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import CacheConfig, PipelineConfig
from reward_kit.execution.agents import open_episodes
from reward_kit.execution.counters import RunCounters
from reward_kit.generation.cache.responses import CachedClient, cached
from reward_kit.generation.stack import ModelStack
from reward_kit.models import Completion, Message
from reward_kit.storage.files import GrowingFile
from reward_kit.storage.turn_journal import TurnJournal
from tests.agent.worlds import Model, settings


async def test_the_cache_is_written_before_the_lines_that_tell_of_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    append = GrowingFile.append

    def noted(self: GrowingFile, block: bytes) -> Any:
        written.append(self.path.name)
        return append(self, block)

    config = PipelineConfig.model_validate({"generation": {"model_name": "mock"}, "reward": {"function_path": "m:f"}})
    agent = settings(durability="restart").model_copy(update={"environment": "tests.agent.test_sent_back:Account"})
    client = Model(lambda *_: Message(role="assistant", content="yes"))
    with (
        TurnJournal(tmp_path / "episodes.jsonl") as journal,
        cached(client, CacheConfig(cache_dir=str(tmp_path), enabled=True)) as layered,
    ):
        async with open_episodes(
            config, agent, ModelStack(client=layered), journal, RunCounters("both"), None, lambda *_: None
        ):  # fmt: skip
            assert isinstance(layered, CachedClient)
            monkeypatch.setattr(GrowingFile, "append", noted)
            journal.put_opening("another", 0, {"messages": []})  # has the journal written at the end of this turn
            layered.cache.put("a" * 64, Completion(message=Message(role="assistant", content="yes")))
            journal.put_reply("s", 0, 0, {"message": {"role": "assistant", "content": "yes"}})
            await asyncio.sleep(0.01)
    assert len(written) == 2 and written[-1] == "episodes.jsonl"
