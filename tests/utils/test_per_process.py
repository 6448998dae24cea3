# SPDX-License-Identifier: Apache-2.0
"""One value per process: across threads, real forks, and the end of the process."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from textwrap import dedent

import pytest

from reward_kit.utils.per_process import PerProcess


class Thing:
    def __init__(self) -> None:
        self.maker = os.getpid()


def in_a_child(work: Callable[[], str]) -> str:
    """What `work` says in a forked child; the child ends without any of the parent's exit handlers."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # one that waits for ever ends, and says nothing
        said = "the child failed"
        try:
            said = work()
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as heard:
        return heard.read()


def run_python(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout


def test_threads_that_come_at_once_get_the_same() -> None:
    made: list[Thing] = []

    def make() -> Thing:
        made.append(Thing())
        return made[-1]

    things = PerProcess(make)
    start = threading.Barrier(8)

    def get() -> Thing:
        start.wait()
        return things.get()

    with ThreadPoolExecutor(8) as pool:
        got = {future.result() for future in [pool.submit(get) for _ in range(8)]}
    assert (len(got), len(made)) == (1, 1)


def test_a_making_that_fails_is_tried_again() -> None:
    failures = [OSError("not yet")]

    def make() -> Thing:
        if failures:
            raise failures.pop()
        return Thing()

    things = PerProcess(make)
    with pytest.raises(OSError, match="not yet"):
        things.get()
    assert things.get() is things.get()


def test_closing_closes_once_and_the_next_is_another() -> None:
    closed: list[Thing] = []
    things = PerProcess(Thing, closed.append)
    things.close()
    assert closed == []
    first = things.get()
    things.close()
    things.close()
    assert closed == [first]
    assert things.get() is not first


def test_a_child_makes_its_own_and_abandons_the_parents_without_closing_it() -> None:
    events: list[str] = []
    things = PerProcess(Thing, lambda _: events.append("closed"), lambda _: events.append("abandoned"))
    theirs = things.get()

    def child() -> str:
        mine = things.get()
        gc.collect()
        things.close()
        return f"{mine.maker == os.getpid()} {mine is theirs} {events}"

    assert in_a_child(child) == "True False ['abandoned', 'closed']"
    assert events == []
    assert things.get() is theirs


def test_a_child_forked_while_another_thread_is_making_does_not_wait_for_it() -> None:
    making, go_on = threading.Event(), threading.Event()
    parent = os.getpid()

    def make() -> Thing:
        if os.getpid() == parent:
            making.set()
            go_on.wait()
        return Thing()

    things = PerProcess(make)
    thread = threading.Thread(target=things.get)
    thread.start()
    making.wait()
    try:
        assert in_a_child(lambda: str(things.get().maker == os.getpid())) == "True"
    finally:
        go_on.set()
        thread.join()


def test_when_nobody_holds_it_any_more_it_is_closed() -> None:
    closed: list[Thing] = []
    things = PerProcess(Thing, closed.append)
    value = things.get()
    del things
    gc.collect()
    assert closed == [value]


def test_at_the_end_of_a_process_the_last_made_is_closed_first_and_before_what_making_it_loaded() -> None:
    said = run_python("""
        import atexit
        from reward_kit.utils.per_process import PerProcess
        def make():
            atexit.register(print, "the library ends")
            return "first"
        first, second = PerProcess(make, print), PerProcess(lambda: "second", print)
        first.get(); second.get()
    """)
    assert said.split("\n")[:-1] == ["second", "first", "the library ends"]


def test_at_the_end_a_forked_child_closes_its_own_only() -> None:
    said = run_python("""
        import os, sys
        from reward_kit.utils.per_process import PerProcess
        things = PerProcess(os.getpid, lambda owner: print("closed", owner == os.getpid(), flush=True))
        things.get()
        if os.fork() == 0:
            sys.exit()
        os.wait()
        if os.fork() == 0:
            things.get()
            sys.exit()
        os.wait()
        print("parent", flush=True)
    """)
    assert said.split("\n")[:-1] == ["closed True", "parent", "closed True"]


def test_what_needs_thread_pools_to_close_has_them() -> None:
    program = """
        from concurrent.futures import ThreadPoolExecutor
        from reward_kit.utils.per_process import PerProcess
        def close(pool):
            print(pool.submit(str, "still working").result(), flush=True)
        pools = PerProcess(ThreadPoolExecutor, close, close_before_threads=True)
        pools.get()
    """
    assert run_python(program) == "still working\n"
