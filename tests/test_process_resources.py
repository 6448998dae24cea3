# SPDX-License-Identifier: Apache-2.0
"""Resources of a process: set up once, or not at all."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from reward_kit.process_resources import ProcessResources


class Service:
    def __init__(self, name: str, log: list[str], fails: int = 0, *, stubborn: bool = False) -> None:
        self.name, self.log, self.fails, self.stubborn = name, log, fails, stubborn

    def setup(self) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError(f"{self.name} is down")
        self.log.append(f"+{self.name}")

    def cleanup(self) -> None:
        self.log.append(f"-{self.name}")
        if self.stubborn:
            raise OSError("cleaning up fails too")

    def get_client(self) -> str:
        return self.name


def test_a_failed_set_up_is_undone_in_reverse_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    log: list[str] = []
    stubborn = Service("b", log, stubborn=True)
    resources = ProcessResources({"a": [Service("a", log), stubborn], "c": [Service("c", log, fails=1)]})
    with pytest.raises(OSError, match="c is down"):
        resources.clients()
    assert log == ["+a", "+b", "-b", "-a"]
    assert len(caplog.records) == 1, "a failing cleanup is logged and keeps no other from its own"
    assert resources.clients() == {"a": ["a", "b"], "c": ["c"]}
    assert log[4:] == ["+a", "+b", "+c"]
    stubborn.stubborn = False


def test_threads_that_come_at_once_share_one_set_up() -> None:
    log: list[str] = []
    resources = ProcessResources({"a": [Service("a", log)]})
    start = threading.Barrier(8)

    def use() -> dict[str, list[str]]:
        start.wait()
        return resources.clients()

    with ThreadPoolExecutor(8) as pool:
        answers = [future.result() for future in [pool.submit(use) for _ in range(8)]]
    assert answers == [{"a": ["a"]}] * 8
    assert log == ["+a"]


def test_a_pickled_copy_sets_up_its_own() -> None:
    resources = ProcessResources({"a": [Service("a", [])]})
    resources.clients()
    copy = pickle.loads(pickle.dumps(resources))
    assert copy.clients() == {"a": ["a"]}
