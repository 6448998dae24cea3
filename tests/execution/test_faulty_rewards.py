# SPDX-License-Identifier: Apache-2.0
"""A reward that raises, hangs, dies or returns rubbish costs that record only, and never becomes a zero."""

from __future__ import annotations

import os
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import AuthError, ConfigError, RewardError, RewardKitError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.models import Message
from tests.loopback.runs import config, results

EVERYWHERE = {
    "raise": "ZeroDivisionError",
    "hang": "did not return within",
    "nothing": "returned a NoneType",
    "words": "returned a str",
    "nan": "nan",
    "infinite": "inf",
    "invalid": "I cannot tell",
    "error": "the judge was out",
    "object": "",
    "many": "returned",
    "unprintable": "its __str__ raised Unprintable",
    "generator": "GeneratorExit",
    "interrupt": "KeyboardInterrupt",
    "deep": "RecursionError",
}
ONLY_IN_A_PROCESS = {
    "giant": "",
    "exit": "exited with code 7",
    "quit": "SystemExit",
    "memory": "MemoryError",
}
CANCELLED = {"cancel": "ancelled", "cancel all": "ancelled", "cancel itself": "ancelled"}
ONLY_ON_THE_LOOP = {"quit": "SystemExit", "cancel in passing": "cancelled", **CANCELLED}
ONLY_IN_A_BATCH = {
    "raise": "",
    "hang": "did not return within",
    "nothing": "",
    "words": "",
    "many": "9 results for 2",
    "object": "",
}


def rows(faults: dict[str, str]) -> list[dict[str, Any]]:
    """Rows that provoke each fault, with harmless ones between them."""
    mixed = [name for fault in faults for name in (f"<{fault}>", f"fine {fault}")]
    return [{"id": name, "user_query": f"Please {name}"} for name in mixed]


def check(home: Path, faults: dict[str, str], n: int = 1) -> None:
    found = results(home)
    assert len(found) == 2 * len(faults) * n
    for (name, _), row in found.items():
        if name.startswith("fine"):
            assert row["error"] is None
            assert row["evaluation_score"] is not None
            continue
        assert row["evaluation_score"] is None, f"{name} has a score"
        assert row["is_score_valid"] is False
        assert row["failure"]["stage"] == "score"
        assert faults[name.strip("<>")] in row["error"], name


def run(home: Path, reward: str, faults: dict[str, str], **settings: Any) -> None:
    told = config(
        home,
        rows=rows(faults),
        reward=reward,
        reward__timeout=1.0,
        reward__workers=2,
        reward__memory_mb=1024,
        **settings,
    )
    result = EvaluationPipeline(told).run()
    n = told["generation"].get("n", 1)
    assert (result.judged, result.failed) == (len(faults) * n, len(faults) * n)
    check(home, faults, n)


def test_in_a_worker_process(tmp_path: Path) -> None:
    run(tmp_path, "faulty", EVERYWHERE | ONLY_IN_A_PROCESS)


def test_on_the_loop(tmp_path: Path) -> None:
    run(tmp_path, "faulty_async", EVERYWHERE | ONLY_ON_THE_LOOP)


def test_an_asynchronous_reward_in_a_worker_process(tmp_path: Path) -> None:
    run(tmp_path, "faulty_async", EVERYWHERE | ONLY_IN_A_PROCESS | CANCELLED, reward__isolate=True)


ALL_BUT_THIS_TASK = """
import asyncio

async def f(messages, **kwargs):
    if "<" in messages[0].text:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
    await asyncio.gather(*[asyncio.create_task(asyncio.sleep(0.001)) for _ in range(3)])
    return 1.0
"""


@pytest.mark.parametrize("isolate", [False, True])
def test_a_reward_that_cancels_all_other_tasks_costs_nobody_anything(tmp_path: Path, isolate: bool) -> None:
    (tmp_path / "reaper.py").write_text(ALL_BUT_THIS_TASK)
    told = config(
        tmp_path, rows=rows({str(number): "" for number in range(20)}),
        reward__function_path=f"{tmp_path / 'reaper.py'}:f", reward__isolate=isolate, reward__timeout=20.0,
    )  # fmt: skip
    assert EvaluationPipeline(told).run().judged == 40


STOPS = """
import asyncio, contextlib, threading

def from_a_thread(stop):
    thread = threading.Thread(target=stop)
    thread.start()
    thread.join()

async def ends(loop):
    loop.stop()

async def f(messages, **kwargs):
    loop = asyncio.get_running_loop()
    how = messages[0].text
    if "<at once>" in how:
        loop.stop()
    elif "<soon>" in how:
        loop.call_soon(loop.stop)
    elif "<later>" in how:
        loop.call_later(0.01, loop.stop)
    elif "<by a task>" in how:
        loop.create_task(ends(loop))
    elif "<unheard>" in how:
        with contextlib.suppress(RuntimeError):
            loop.stop()
    elif "<closed>" in how:
        loop.close()
    elif "<by its class>" in how:
        type(loop).stop(loop)
    elif "<a thread>" in how:
        from_a_thread(loop.stop)
    elif "<a thread of a thread>" in how:
        from_a_thread(lambda: from_a_thread(loop.stop))
    elif "<a thread, heard>" in how:
        from_a_thread(lambda: loop.call_soon_threadsafe(loop.stop))
    elif "<a timer>" in how:
        threading.Timer(0.01, loop.stop).start()
    elif "<a pool>" in how:
        await loop.run_in_executor(None, loop.stop)
    elif "<its generators>" in how:
        await loop.shutdown_asyncgens()
    elif "<its threads>" in how:
        await loop.shutdown_default_executor()
    await asyncio.to_thread(len, "the threads of the loop are there")
    await asyncio.sleep(0.05)
    return 1.0
"""


@pytest.mark.parametrize("isolate", [False, True])
def test_a_reward_that_ends_the_loop_fails_and_nobody_else(tmp_path: Path, isolate: bool) -> None:
    (tmp_path / "ender.py").write_text(STOPS)
    names = (
        "at once",
        "soon",
        "later",
        "by a task",
        "unheard",
        "closed",
        "its generators",
        "its threads",
        "by its class",
        "a thread",
        "a thread of a thread",
        "a thread, heard",
        "a timer",
        "a pool",
    )
    told = config(
        tmp_path, rows=rows(dict.fromkeys(names, "")), reward__function_path=f"{tmp_path / 'ender.py'}:f",
        reward__isolate=isolate, reward__timeout=20.0,
    )  # fmt: skip
    result = EvaluationPipeline(told).run()
    assert (result.status, result.judged, result.failed) == ("finished", len(names), len(names))
    check(tmp_path, dict.fromkeys(names, "event loop"))


def test_a_reward_that_needs_a_sandbox_cannot_be_isolated(tmp_path: Path) -> None:
    told = config(tmp_path, reward__function_path="reward_kit.rewards.shell:shell_reward", reward__isolate=True)
    with pytest.raises(ConfigError, match="where it has no sandbox"):
        EvaluationPipeline(told).run()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os\nos._exit(0)\n", r"calls os\._exit\(0\) while it is imported"),
        ("while True:\n    pass\n", r"importing it does not end in time \(it is in line 1 of .*bad\.py'\)"),
        ("import time\ntime.sleep(1e6)\n", "importing it does not end in time"),
        ("while True:\n    try:\n        {}[0]\n    except Exception:\n        pass\n", "does not end in time"),
    ],
)
@pytest.mark.parametrize("in_a_thread", [False, True])
def test_a_reward_that_is_never_imported_is_told_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str, in_a_thread: bool
) -> None:
    if in_a_thread:
        if "sleep" in code:
            pytest.skip("nothing ends a system call of another thread")
        said = said.split(r" \(it is", maxsplit=1)[0]
    monkeypatch.setattr("reward_kit.scoring.defaults.LOADING_SECONDS", 0.5)
    (tmp_path / "bad.py").write_text(f"{code}\ndef f(messages, **kwargs):\n    return 1.0\n")
    told = config(tmp_path, reward__function_path=f"{tmp_path / 'bad.py'}:f", reward__timeout=1.0)
    with pytest.raises(ConfigError, match=said), ThreadPoolExecutor(1) as threads:
        if in_a_thread:
            threads.submit(EvaluationPipeline(told).run).result()
        EvaluationPipeline(told).run()


@pytest.mark.parametrize(
    ("code", "starting", "said"),
    [
        ("while True:\n    pass\n", 60.0, "importing it does not end in time"),
        ("import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True:\n    pass\n", 2.0, "s to load"),
        ("os._exit(0)\n", 60.0, "exited with code 0, before it could run anything"),
    ],
)
def test_a_reward_that_is_never_imported_in_a_worker_is_told_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, starting: float, said: str
) -> None:
    monkeypatch.setattr("reward_kit.scoring.defaults.LOADING_SECONDS", 0.5)
    monkeypatch.setattr("reward_kit.scoring.defaults.STARTING_SECONDS", starting)
    monkeypatch.setenv("HERE", str(os.getpid()))
    elsewhere = textwrap.indent(code, "    ")
    (tmp_path / "bad.py").write_text(
        f"import os\nif os.environ['HERE'] != str(os.getpid()):\n{elsewhere}\n"
        "def f(messages, **kwargs):\n    return 1.0\n"
    )
    told = config(tmp_path, reward__function_path=f"{tmp_path / 'bad.py'}:f", reward__timeout=1.0)
    with pytest.raises(ConfigError, match=said):
        EvaluationPipeline(told).run()


def test_a_reward_may_change_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "wander.py").write_text(
        "import os\n\n"
        f"async def f(messages, **kwargs):\n    os.chdir({str(tmp_path / 'elsewhere')!r})\n    return 1.0\n"
    )
    monkeypatch.chdir(tmp_path)
    cache = {"enabled": True, "cache_dir": "cache"}
    told = config(
        tmp_path, reward__function_path=f"{tmp_path / 'wander.py'}:f", output__output_dir="run", generation__cache=cache
    )
    assert EvaluationPipeline(told).run().judged == 4
    assert len(results(tmp_path)) == 4
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("reward", ["faulty_batch", "faulty_batch_async"])
def test_a_faulty_call_costs_its_group_only(tmp_path: Path, reward: str) -> None:
    faults = ONLY_IN_A_BATCH | (ONLY_IN_A_PROCESS if reward == "faulty_batch" else {})
    run(tmp_path, reward, faults, generation__n=2)


def test_one_member_of_a_group_may_be_without_a_verdict(tmp_path: Path) -> None:
    told = config(tmp_path, rows=[{"id": "a", "user_query": "<one>"}], reward="faulty_batch", generation__n=3)
    EvaluationPipeline(told).run()
    rows = results(tmp_path)
    assert rows["a", 0]["evaluation_score"] is None
    assert "only this one" in rows["a", 0]["error"]
    assert [rows["a", draw]["error"] for draw in (1, 2)] == [None, None]


def test_a_reward_that_changes_what_it_is_handed_changes_nothing_for_others(tmp_path: Path) -> None:
    row = {"id": "a", "user_query": "q", "ground_truth_for_eval": {"value": 1}, "notes": ["n"]}
    EvaluationPipeline(config(tmp_path, rows=[row], reward="greedy", generation__n=3)).run()
    rows = results(tmp_path)
    assert [row["evaluation_reason"] for row in rows.values()] == ["1 n"] * 3
    assert all(row["ground_truth_for_eval"] == {"value": 1} for row in rows.values())
    assert all(row["columns"] == {"notes": ["n"]} for row in rows.values())


@pytest.mark.parametrize("fault", ["surrogate", "steps"])
@pytest.mark.parametrize("reward", ["faulty", "faulty_async"])
def test_a_result_that_json_cannot_hold_does_not_end_the_run(tmp_path: Path, reward: str, fault: str) -> None:
    told = config(tmp_path, rows=rows({fault: ""}), reward=reward)
    assert EvaluationPipeline(told).run().status == "finished"
    assert results(tmp_path)[f"fine {fault}", 0]["error"] is None
    assert results(tmp_path)[f"<{fault}>", 0]["evaluation_score"] in (1.0, None)


def test_failures_are_not_owed_again_unless_asked_for(tmp_path: Path) -> None:
    told = config(tmp_path, rows=rows({"raise": ""}), reward="faulty")
    assert EvaluationPipeline(told).run().counters.scored == 2
    assert EvaluationPipeline(told).run().counters.scored == 0
    again = EvaluationPipeline(told, retry_failed=True).run()
    assert (again.counters.generated, again.counters.scored) == (0, 1)
    assert len(results(tmp_path)) == 2


def test_a_failure_in_a_worker_that_may_mend_is_owed_again(tmp_path: Path) -> None:
    mended = tmp_path / "mended"

    def moody(messages: list[Message], place: str, **kwargs: Any) -> float:
        if not Path(place).exists():
            raise RewardError("the service is away", retryable=True)
        return 1.0

    told = config(tmp_path, reward__params={"place": str(mended)})
    assert EvaluationPipeline(told, reward=moody).run().summary["failures_by_kind"] == {"score: RewardError": 4}
    mended.touch()
    assert EvaluationPipeline(told, reward=moody).run().judged == 4


def test_a_reward_that_cannot_work_at_all_ends_the_run_from_a_worker_too(tmp_path: Path) -> None:
    def keyless(messages: list[Message], **kwargs: Any) -> float:
        raise AuthError("Set MY_KEY.")

    with pytest.raises(RewardKitError, match=r"Set MY_KEY\."):
        EvaluationPipeline(config(tmp_path), reward=keyless).run()


def test_a_reward_that_cannot_be_loaded_in_a_worker_is_one_sentence(tmp_path: Path) -> None:
    reward = tmp_path / "late.py"
    reward.write_text(
        "import os\nif os.environ.get('HERE') != str(os.getpid()):\n    raise RuntimeError('not in this process')\n"
        "def f(messages, **kwargs):\n    return 1.0\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HERE", str(os.getpid()))
        with pytest.raises(ConfigError, match="not in this process"):
            EvaluationPipeline(config(tmp_path, reward__function_path=f"{reward}:f")).run()
