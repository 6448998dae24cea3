# SPDX-License-Identifier: Apache-2.0
"""One process that is asked: whatever a call comes to is told, and nothing of it is left."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from reward_kit.workers.host import Host
from reward_kit.workers.outcomes import Died, Done, Raised, TimedOut

WITHIN = 60.0


def acts() -> Callable[..., Any]:
    said: list[str] = []

    def act(what: str, value: Any = None) -> Any:
        said.append(what)
        match what:
            case "exit":
                os._exit(3)
            case "hang":
                time.sleep(1000)
            case "raise":
                raise ValueError(value)
            case "variable":
                return os.environ.get(value)
        return value, len(said)

    return act


def refuses() -> Callable[..., Any]:
    raise KeyError("nothing to load")


def test_calls_are_answered_in_one_process_in_their_order() -> None:
    with Host(acts, name="test") as host:
        large = "x" * (5 << 20)
        assert host.call("say", large, within=WITHIN) == Done((large, 1))
        raised = host.call("raise", "no", within=WITHIN)
        assert isinstance(raised, Raised) and (raised.type, raised.message) == ("ValueError", "no")
        assert host.call("say", [1], within=WITHIN) == Done(([1], 3))
        assert not host.has_ended()
    assert host.has_ended()


def test_a_process_that_ends_or_hangs_is_told_and_gone() -> None:
    with Host(acts, name="test") as host:
        assert host.call("exit", within=WITHIN) == Died("exited with code 3")
        assert host.has_ended()
    with Host(acts, name="test") as host:
        assert isinstance(host.call("say", within=WITHIN), Done)
        assert host.call("hang", within=0.2) == TimedOut(0.2)
        assert host.has_ended()
        host.close()


def test_a_factory_that_raises_says_why() -> None:
    with Host(refuses, name="test") as host:
        raised = host.call(within=WITHIN)
        assert isinstance(raised, Raised) and raised.type == "KeyError"


def test_it_is_given_variables_and_outlives_the_thread_that_started_it() -> None:
    made: list[Host] = []
    thread = threading.Thread(target=lambda: made.append(Host(acts, name="test", variables={"OF_THE_TEST": "1"})))
    thread.start()
    thread.join()
    with made[0] as host:
        assert host.call("variable", "OF_THE_TEST", within=WITHIN) == Done("1")


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_a_process_that_was_killed_is_told() -> None:
    with Host(acts, name="test") as host:
        assert isinstance(host.call("say", within=WITHIN), Done)
        os.kill(host.pid, 9)
        assert host.call("say", within=WITHIN) == Died("was killed by signal 9 (out of memory?)")
