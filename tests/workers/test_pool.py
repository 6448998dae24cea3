# SPDX-License-Identifier: Apache-2.0
"""Calls in worker processes: what comes back, in what order, and that a bad call costs itself only."""

from __future__ import annotations

import asyncio
import functools
import os
import random
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from reward_kit.errors import ConfigError
from reward_kit.workers import Died, Done, Outcome, Raised, TimedOut, WorkerPool
from tests.loopback.faults import some
from tests.workers.processes import obedient


def make_pool(*, size: int = 2, timeout: float = 20.0, **options: Any) -> WorkerPool:
    return WorkerPool(obedient(), size=size, timeout=timeout, **options)


async def all_outcomes(pool: WorkerPool, calls: list[tuple[Any, ...]]) -> list[Outcome]:
    return await asyncio.gather(*[pool.submit(call, {}) for call in calls])


# ── what comes back ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_outcomes_belong_to_their_calls() -> None:
    async with make_pool() as pool:
        outcomes = await all_outcomes(pool, [("n", number) for number in range(3000)])
    assert outcomes == [Done(("n", number)) for number in range(3000)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process give way")
async def test_a_worker_that_is_woken_does_not_interrupt_the_pool() -> None:
    async with WorkerPool(lambda: os.sched_getscheduler, size=1, timeout=20) as pool:
        assert await pool.call(0) == Done(os.SCHED_BATCH)


async def test_keyword_arguments_arrive() -> None:
    async with WorkerPool(lambda: dict, size=1, timeout=20) as pool:
        assert await pool.call(score=1.0, reason="ok") == Done({"score": 1.0, "reason": "ok"})


async def test_large_arguments_and_results_arrive() -> None:
    text = "x" * 5_000_000
    async with make_pool() as pool:
        assert await all_outcomes(pool, [("n", text)] * 4) == [Done(("n", text))] * 4


@pytest.mark.parametrize(
    "error", [ValueError("bad"), SystemExit(2), KeyboardInterrupt("stop"), GeneratorExit("gone"), StopIteration("end")]
)
async def test_anything_raised_is_an_outcome(error: BaseException) -> None:
    async with make_pool(size=1) as pool:
        outcome = await pool.call("throw", error)
        assert isinstance(outcome, Raised)
        assert (outcome.type, outcome.message) == (type(error).__name__, str(error))
        assert "in throw" in outcome.traceback
        assert "child.py" not in outcome.traceback
        assert await pool.call("next") == Done("next")


async def test_endless_recursion_is_an_outcome() -> None:
    async with make_pool(size=1) as pool:
        outcome = await pool.call("deepen")
        assert isinstance(outcome, Raised)
        assert outcome.type == "RecursionError"
        assert await pool.call("next") == Done("next")


async def test_arguments_that_cannot_travel_are_an_outcome() -> None:
    async with make_pool(size=1) as pool:
        outcome = await pool.call(threading.Lock())
        assert isinstance(outcome, Raised)
        assert "arguments cannot be pickled" in outcome.message


async def test_a_result_that_cannot_travel_is_an_outcome() -> None:
    async with WorkerPool(lambda: lambda: (number for number in range(3)), size=1, timeout=20) as pool:
        outcome = await pool.call()
        assert isinstance(outcome, Raised)
        assert "its result, a 'generator', cannot be pickled" in outcome.message


async def test_a_result_that_cannot_be_read_here_is_an_outcome(tmp_path: Path) -> None:
    (tmp_path / "only_over_there.py").write_text("class Result: pass\n")

    def factory() -> Callable[[], object]:
        sys.path.append(str(tmp_path))
        import only_over_there  # type: ignore[import-not-found]

        return only_over_there.Result  # type: ignore[no-any-return]

    async with WorkerPool(factory, size=1, timeout=20) as pool:
        outcome = await pool.call()
    assert isinstance(outcome, Raised)
    assert (outcome.type, "unpickled here" in outcome.message) == ("ModuleNotFoundError", True)


def test_classes_and_functions_of_a_script_travel_both_ways(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import asyncio, dataclasses
        from reward_kit.workers import WorkerPool

        @dataclasses.dataclass
        class Point:
            x: int

        def double(point, by=lambda value: value):
            return Point(by(point.x) * 2)

        async def main():
            async with WorkerPool(lambda: double, size=1, timeout=20) as pool:
                outcome = await pool.call(Point(4), by=lambda value: value + 1)
                print(outcome, isinstance(outcome.value, Point))
                print(await pool.call(Point(1)))

        if __name__ == "__main__":
            asyncio.run(main())
        """)
    )
    command, env = [sys.executable, str(script)], {"PYTHONPATH": "."}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.stdout == "Done(value=Point(x=10)) True\nDone(value=Point(x=2))\n", done.stderr


async def test_a_worker_has_this_process_s_path_and_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rewards_of_a_pool.py").write_text(
        "import os\ndef load(extra):\n    return lambda x: (x + extra, os.getcwd())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    import rewards_of_a_pool  # type: ignore[import-not-found]

    async with WorkerPool(functools.partial(rewards_of_a_pool.load, 5), size=1, timeout=20) as pool:
        assert await pool.call(1) == Done((6, str(tmp_path)))


# ── a bad call costs itself only ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("hang", [("hang_in_c",), ("spin",), ("sleep", 600), ("ignore_signals",)])
async def test_a_call_that_hangs_is_killed_and_the_others_are_done(hang: tuple[Any, ...]) -> None:
    calls = [("n", number) for number in range(40)]
    async with make_pool(timeout=0.5) as pool:
        outcomes = await all_outcomes(pool, [*calls[:20], hang, *calls[20:]])
    assert outcomes.pop(20) == TimedOut(0.5)
    assert outcomes == [Done(call) for call in calls]


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (("exit", 3), "exited with code 3"),
        (("exit", 0), "exited with code 0"),
        (("crash",), "was killed by signal 11 (Segmentation fault)"),
        (("closerange", 3, 4096), "closed its connection to the pool"),
        (("write_everywhere", b"\xff" * 100), "wrote into its connection to the pool"),
        (("write_everywhere", b"hello"), "wrote into its connection to the pool"),
    ],
)
async def test_a_call_under_which_the_process_ends_says_how(end: tuple[Any, ...], reason: str) -> None:
    calls = [("n", number) for number in range(40)]
    async with make_pool() as pool:
        outcomes = await all_outcomes(pool, [*calls[:20], end, *calls[20:]])
    assert outcomes.pop(20) == Died(reason)
    assert outcomes == [Done(call) for call in calls]


@pytest.mark.parametrize("later", [("exit_later", 0.1), ("alarm_later", 0.1)])
async def test_what_a_call_leaves_behind_costs_no_other_call(later: tuple[Any, ...]) -> None:
    calls = [("log", os.devnull, str(number), 0.01) for number in range(40)]
    async with make_pool(size=1) as pool:
        outcomes = await all_outcomes(pool, [*calls[:5], later, *calls[5:]])
    outcomes.pop(5)
    assert outcomes == [Done(call[2]) for call in calls]


async def test_calls_that_another_took_out_of_the_connection_are_done_by_another_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reward_kit.workers.pool._SILENCE_SECONDS", 0.5)
    calls = [("log", os.devnull, str(number), 0.002) for number in range(200)]
    async with make_pool(size=1, timeout=0.5) as pool:
        outcomes = await all_outcomes(pool, [*calls[:5], ("read_everywhere",), *calls[5:]])
    outcomes.pop(5)
    assert outcomes == [Done(call[2]) for call in calls]


def deeds() -> dict[str, str]:
    """Programs that leave a worker unable to answer as it should: its tools replaced, or its connection used."""
    sockets = "import os, stat\nfds = [n for n in range(3, 4096) if _is_socket(n)]\n"
    sockets = (
        "import os, stat, struct\n"
        "def _is_socket(n):\n"
        "    try:\n        return stat.S_ISSOCK(os.fstat(n).st_mode)\n"
        "    except OSError:\n        return False\n"
    ) + sockets.replace("import os, stat\n", "")
    tools = ["pickle.dumps", "pickle.loads", "os.read", "os.write", "os._exit", "os.fstat", "time.monotonic_ns"]
    tools += ["struct.pack", "struct.unpack_from", "select.poll", "gc.freeze", "traceback.format_exception"]
    tools += ["cloudpickle.dumps"]
    tools += [f"builtins.{name}" for name in ("len", "sum", "min", "map", "bytes", "memoryview", "isinstance", "str")]
    instead = ["lambda *a, **k: b''", "lambda *a, **k: 0", "lambda *a, **k: 1 / 0", "None"]
    found = {
        f"{tool} = {value}": f"import {tool.split('.')[0]}\n{tool} = {value}" for tool in tools for value in instead
    }
    header = "struct.pack('<8sQQQ', b'\\0rk-pool', {length}, {count}, 0)"
    for length in (0, 8, 9, 1000, 1 << 26, 1 << 40, (1 << 64) - 1):
        for count in (0, 1, 2, 1 << 20, (1 << 64) - 1):
            frame = header.format(length=length, count=count)
            found[f"frame {length} {count}"] = f"{sockets}for n in fds: os.write(n, {frame})"
    answer = "pickle.dumps((True, 'forged'))"
    forged = (
        f"import pickle\nblob = {answer}\n{sockets}frame = struct.pack('<8sQQQ', b'\\0rk-pool', 8 + len(blob), 1, 0)"
    )
    found["an answer"] = f"{forged} + struct.pack('<Q', len(blob)) + blob\nfor n in fds: os.write(n, frame)"
    for limit in ("NOFILE", "AS", "DATA", "FSIZE", "STACK", "NPROC", "MEMLOCK"):
        found[f"no {limit}"] = f"import resource; resource.setrlimit(resource.RLIMIT_{limit}, (0, 0))"
    found["no recursion"] = "import sys; sys.setrecursionlimit(sys.getrecursionlimit() // 50 + 20)"
    found["no modules"] = "import sys; sys.modules.clear()"
    found["a trace"] = "import sys; sys.settrace(lambda *a: 1 / 0); sys.setprofile(lambda *a: 1 / 0)"
    found["a fork that goes on"] = "import os; os.fork(); os.fork()"
    found["half a header"] = sockets + "for n in fds: os.write(n, b'\\0rk-pool123')"
    found["an empty answer"] = sockets + f"for n in fds: os.write(n, {header.format(length=8, count=1)} + bytes(8))"
    endless = f"    for n in fds: os.write(n, {header.format(length=1 << 20, count=1)} * 100)"
    found["endless frames"] = f"{sockets}while True:\n{endless}"
    found["endless bytes"] = f"{sockets}while True:\n    for n in fds: os.write(n, bytes(65536))"
    found["everything closed"] = "import os; os.closerange(0, 65536)"
    found["everything closed, and others there"] = (
        "import os; os.closerange(3, 65536); [os.open('/dev/null', os.O_RDWR) for _ in range(300)]"
    )
    found["another in its place"] = sockets + "for n in fds: os.dup2(os.open('/dev/null', os.O_RDWR), n)"
    found["shut down"] = sockets + "import socket\nfor n in fds: socket.socket(fileno=os.dup(n)).shutdown(2)"
    return found


@pytest.mark.parametrize("deed", some(sorted(deeds()), 24, "deeds"))
async def test_a_call_that_spoils_its_worker_costs_itself_only(deed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward_kit.workers.pool._SILENCE_SECONDS", 0.5)

    def factory() -> Callable[[str], str]:
        def act(what: str) -> str:
            if not what.isdigit():
                exec(what, {})
            return what

        return act

    calls = [str(number) for number in range(40)]
    async with WorkerPool(factory, size=2, timeout=2.0) as pool:
        asked = [pool.submit((call,), {}) for call in [*calls[:20], deeds()[deed], *calls[20:]]]
        outcomes = await asyncio.wait_for(asyncio.gather(*asked), 100)
    outcomes.pop(20)  # what it comes to is its own matter; that it comes to something is not
    assert outcomes == [Done(call) for call in calls]


@pytest.mark.parametrize("reading", ["time.sleep, (100,)", "int, ('x',)", "sys.exit, (9,)", "os._exit, (9,)"])
async def test_an_answer_that_cannot_be_read_costs_its_call_only(reading: str) -> None:
    """It is read once where it was made, within the time of its call."""

    def factory() -> Callable[[str], Any]:
        import os
        import sys
        import time

        class Odd:
            def __reduce__(self) -> Any:
                return eval(reading, {"os": os, "sys": sys, "time": time})

        return lambda what: [Odd()] if what == "odd" else what

    calls = [*map(str, range(6)), "odd", *map(str, range(6, 12))]
    async with WorkerPool(factory, size=2, timeout=2.0) as pool:
        outcomes = await asyncio.wait_for(asyncio.gather(*(pool.submit((call,), {}) for call in calls)), 60)
    assert not isinstance(outcomes.pop(6), Done)
    assert outcomes == [Done(call) for call in calls if call != "odd"]


async def test_a_process_killed_from_outside_is_replaced() -> None:
    def factory() -> Callable[[], None]:
        import os

        return lambda: os.kill(os.getpid(), 9)

    async with WorkerPool(factory, size=1, timeout=20) as pool:
        assert await pool.call() == Died("was killed by signal 9 (out of memory?)")
        assert await pool.call() == Died("was killed by signal 9 (out of memory?)")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds what a process allocates")
async def test_a_call_that_exhausts_memory_raises_and_leaves_a_usable_pool() -> None:
    async with make_pool(size=1, memory_mb=256) as pool:
        for _ in range(2):
            outcome = await pool.call("exhaust")
            assert isinstance(outcome, Raised)
            assert outcome.type == "MemoryError"
            assert await pool.call("allocate", 100) == Done(100 << 20)  # nothing of the hoard is left


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds what a process allocates")
async def test_arguments_that_no_worker_has_room_for_cost_their_call_only(tmp_path: Path) -> None:
    async with make_pool(size=1, memory_mb=64, log_path=tmp_path / "log") as pool:
        huge, small = await all_outcomes(pool, [("n", b"x" * 100_000_000), ("n", 1)])
    assert huge == Died("exited with code 1")
    assert small == Done(("n", 1))


async def test_finished_calls_are_not_run_again_when_a_later_one_is_killed(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    lines = [str(number) for number in range(60)]
    calls: list[tuple[Any, ...]] = [("log", log, line, 0.005) for line in lines]
    async with make_pool(timeout=0.5) as pool:
        await all_outcomes(pool, [*calls[:20], ("hang_in_c",), *calls[20:40], ("exit", 1), *calls[40:]])
    assert sorted(Path(log).read_text().split(), key=int) == lines


async def test_of_many_calls_that_came_together_half_are_answered_before_the_rest_is_done(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    lines = [str(number) for number in range(63)]
    async with make_pool(size=1, timeout=0.5) as pool:
        await all_outcomes(pool, [("n", number) for number in range(3000)])  # so quick that all go at once
        outcomes = await all_outcomes(pool, [*(("log", log, line, 0.0) for line in lines), ("hang_in_c",)])
    assert outcomes == [*map(Done, lines), TimedOut(0.5)]
    written = Path(log).read_text().split()
    assert [written.count(line) for line in lines[:32]] == [1] * 32, "what was answered is not run again"


async def test_calls_queued_behind_a_long_one_are_done_by_another_worker(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with make_pool() as pool:
        await all_outcomes(pool, [("n", number) for number in range(3000)])  # now calls are known to be short
        first, *others = [pool.submit(call, {}) for call in [("wait_for", str(gate)), *[("n", 1)] * 300]]
        assert await asyncio.gather(*others) == [Done(("n", 1))] * 300
        assert not first.done()
        gate.touch()
        assert await first == Done("waited")


async def test_a_worker_with_nothing_to_do_takes_over_what_another_has_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reward_kit.workers.pool._STUCK_SECONDS", 1e9)  # not because another is stuck
    log, came = str(tmp_path / "log"), tmp_path / "came"
    came.mkdir()
    lines = [str(number) for number in range(40)]
    async with make_pool() as pool:
        await all_outcomes(pool, [("n", number) for number in range(3000)])  # now half of the next goes to each worker
        # Many, so that also a worker that has to wait long for a processor comes while the other is at work.
        done = asyncio.gather(*[pool.call("pid_among", str(came), 2) for _ in range(1000)])
        await asyncio.gather(all_outcomes(pool, [("n", 1)] * 1000), done)
        assert len({outcome.value for outcome in done.result() if isinstance(outcome, Done)}) == 2
        await all_outcomes(pool, [*[("log", log, line, 0.003) for line in lines], *[("n", 1)] * 40])
    assert sorted(Path(log).read_text().split(), key=int) == lines  # nothing was done twice


HOSTILE: list[tuple[tuple[Any, ...], Outcome]] = [
    (("hang_in_c",), TimedOut(1.0)),
    (("sleep", 600), TimedOut(1.0)),
    (("exit", 5), Died("exited with code 5")),
    (("crash",), Died("was killed by signal 11 (Segmentation fault)")),
]


@pytest.mark.parametrize("seed", [1, 2])
async def test_among_thousands_of_mixed_calls_each_gets_its_own_outcome(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    calls: list[tuple[tuple[Any, ...], Outcome | None]] = [
        (("n", number), Done(("n", number))) for number in range(5000)
    ]
    calls += [(("sleep", chance.random() / 100), Done(None)) for _ in range(60)]
    calls += [(("throw", ValueError(str(number))), None) for number in range(100)]
    calls += [*HOSTILE, *HOSTILE[2:], *HOSTILE[2:]]
    chance.shuffle(calls)
    async with make_pool(timeout=1.0, memory_mb=2048, log_path=tmp_path / "log") as pool:
        outcomes = await all_outcomes(pool, [call for call, _ in calls])
    for (call, wanted), outcome in zip(calls, outcomes, strict=True):
        if wanted is None:
            assert isinstance(outcome, Raised)
            assert outcome.message == str(call[1])
        else:
            assert outcome == wanted


# ── starting and closing ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_factory_that_raises_is_a_config_error_that_names_the_reason() -> None:
    def factory() -> Callable[[], None]:
        import no_such_module_anywhere  # type: ignore[import-not-found]

        return no_such_module_anywhere.reward  # type: ignore[no-any-return]

    pool = WorkerPool(factory, size=2, timeout=20, name="my:reward")
    with pytest.raises(
        ConfigError, match=r"my:reward could not be loaded.*No module named 'no_such_module_anywhere'"
    ) as told:
        await pool.start()
    assert "import no_such_module_anywhere" in "".join(told.value.__notes__)


async def test_a_factory_under_which_the_process_ends_is_a_config_error(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def factory() -> Callable[[], None]:
        import os

        print("starting")
        os._exit(7)

    with pytest.raises(ConfigError, match="exited with code 7"):
        await WorkerPool(factory, size=2, timeout=20, log_path=log).start()
    assert log.read_text() == "starting\n" * 3


async def test_a_factory_that_hangs_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def factory() -> Callable[[], None]:
        import time

        time.sleep(600)
        return lambda: None

    monkeypatch.setattr("reward_kit.workers.pool._STARTUP_SECONDS", 0.3)
    with pytest.raises(ConfigError, match="to load"):
        await WorkerPool(factory, size=1, timeout=20).start()


async def test_a_factory_that_cannot_travel_is_a_config_error() -> None:
    lock = threading.Lock()
    with pytest.raises(ConfigError, match="cannot be sent to a worker"):
        await WorkerPool(lambda: lambda: lock, size=1, timeout=20).start()


async def test_when_replacements_cannot_start_every_call_says_so(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    def factory() -> Callable[[int], int]:
        import os

        if flag.exists():
            raise RuntimeError("the licence has expired")
        flag.touch()
        return lambda number: os._exit(1) if number == 0 else number

    async with WorkerPool(factory, size=1, timeout=20) as pool:
        outcomes = await asyncio.gather(*[pool.call(number) for number in range(5)], return_exceptions=True)
        assert outcomes[0] == Died("exited with code 1")
        assert all(isinstance(outcome, ConfigError) and "licence" in str(outcome) for outcome in outcomes[1:])
        with pytest.raises(ConfigError, match="licence"):
            await pool.submit((1,), {})


async def test_a_pool_goes_on_with_the_workers_that_could_start(tmp_path: Path) -> None:
    def factory() -> Callable[[int], int]:
        (tmp_path / "taken").touch(exist_ok=False)
        import time

        def slow(number: int) -> int:
            time.sleep(0.01)
            return number

        return slow

    async with WorkerPool(factory, size=2, timeout=20) as pool:
        assert await asyncio.gather(*[pool.call(number) for number in range(60)]) == [Done(n) for n in range(60)]


async def test_a_pool_that_is_not_open_refuses_calls() -> None:
    pool = make_pool()
    with pytest.raises(RuntimeError, match="not started"):
        await pool.submit((), {})
    async with pool:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        await pool.call()


@pytest.mark.parametrize(("size", "timeout"), [(0, 1.0), (1, 0.0), (1, float("nan"))])
def test_senseless_bounds_are_refused(size: int, timeout: float) -> None:
    with pytest.raises(ConfigError, match="above zero"):
        make_pool(size=size, timeout=timeout)


async def test_closing_cancels_what_has_no_outcome() -> None:
    async with make_pool(size=1) as pool:
        futures = [pool.submit(("sleep", 600), {}) for _ in range(3)]
        await asyncio.sleep(0.05)
    assert all(future.cancelled() for future in futures)


async def test_a_cancelled_call_is_not_begun(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    async with make_pool(size=1) as pool:
        dropped = pool.submit(("log", log, "dropped", 0), {})
        kept = pool.submit(("log", log, "kept", 0), {})
        dropped.cancel()
        assert await kept == Done("kept")
    assert Path(log).read_text() == "kept\n"


def test_a_pool_works_on_uvloop_in_any_thread() -> None:
    outcomes: list[Outcome] = []

    async def main() -> None:
        async with make_pool(timeout=0.5) as pool:
            outcomes.extend(await all_outcomes(pool, [("n", 1), ("spin",), ("exit", 4), *[("n", 2)] * 500]))

    thread = threading.Thread(target=lambda: uvloop.run(main()))
    thread.start()
    thread.join()
    assert outcomes == [Done(("n", 1)), TimedOut(0.5), Died("exited with code 4"), *[Done(("n", 2))] * 500]
