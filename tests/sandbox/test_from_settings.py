# SPDX-License-Identifier: Apache-2.0
"""Sandboxes as a resource of rewards: asked for by name, fresh, bounded, and never a zero when they break."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import ConfigError, SandboxError, SandboxUnavailableError
from reward_kit.evaluation import evaluate
from reward_kit.models import ExecResult, Message
from reward_kit.sandbox import from_settings as sandboxes
from reward_kit.sandbox.contract import Probe, SandboxSpec
from reward_kit.typed_interface import reward_function
from tests.execution.shell_support import require_namespaces

ROWS = [{"id": str(number), "user_query": "?", "assistant_response": f"echo {number}"} for number in range(20)]


async def prints_its_number(response: str, sample_id: str, sandbox: Any) -> bool:
    async with sandbox(setup=["mkdir d", "cd d"], files={"/root/given": b"x"}) as box:
        done = await box.run(f"test ! -e seen && touch seen && cat /root/given && {response}")
    return bool(done.output == f"x{sample_id}\n")


async def breaks(response: str, sandbox: Any) -> bool:
    async with sandbox() as box:
        return bool((await box.run(response)).ok)


@reward_function(concurrency=1)
async def breaks_one_by_one(messages: list[Message], sandbox: Any, **_: Any) -> float:
    return float(await breaks(messages[-1].text, sandbox))


class FaultyBox:
    """A sandbox whose commands do as they are told by the test."""

    def __init__(self, run: Callable[[str], ExecResult]) -> None:
        self._run = run

    async def run(self, command: str, **_: Any) -> ExecResult:
        return self._run(command)

    run_standalone = run

    async def close(self) -> None: ...

    async def __aenter__(self) -> FaultyBox:
        return self

    async def __aexit__(self, *_: object) -> None: ...


class FaultyBackend:
    """A backend that fails as it is told to. It opens the one sandbox that a run begins with."""

    name = "faulty"

    def __init__(self, fault: Callable[[int], Exception | None]) -> None:
        self._fault = fault
        self.opened = -1
        self.closed = False

    async def probe(self) -> Probe:
        return Probe(True, "for tests")

    async def open(self, spec: SandboxSpec) -> FaultyBox:
        self.opened += 1
        fault = self._fault(self.opened) if self.opened else None
        if fault is not None:
            raise fault
        return FaultyBox(lambda _: ExecResult(exit_code=0))

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], Exception | None]], FaultyBackend]:
    def install(fault: Callable[[int], Exception | None]) -> FaultyBackend:
        backend = FaultyBackend(fault)

        async def choose(_: Any) -> FaultyBackend:
            return backend

        monkeypatch.setattr(sandboxes, "choose_backend", choose)
        return backend

    return install


def test_a_reward_that_names_it_gets_a_fresh_one_each_time(tmp_path: Path) -> None:
    require_namespaces()
    result = evaluate(ROWS[:6], prints_its_number, output_dir=tmp_path, sandbox={"backend": "namespaces"})
    assert result.mean_score == 1.0 and result.judged == 6


def test_a_synchronous_reward_cannot_have_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="async def"):
        evaluate(ROWS, lambda response, sandbox: True, output_dir=tmp_path)


def test_a_broken_sandbox_is_a_failure_that_is_owed_again(tmp_path: Path, faulty: Any) -> None:
    backend = faulty(lambda number: SandboxError("the disk fell off", retryable=True) if number % 4 == 0 else None)
    result = evaluate(ROWS, breaks, output_dir=tmp_path)
    assert (result.judged, result.failed, result.mean_score) == (15, 5, 1.0)
    assert result.summary["failures_by_kind"] == {"score: SandboxError": 5} and backend.closed
    faulty(lambda number: None)
    assert evaluate(ROWS, breaks, output_dir=tmp_path).judged == 20


def test_when_the_first_all_break_the_run_stops_and_says_why(tmp_path: Path, faulty: Any) -> None:
    backend = faulty(lambda number: SandboxError("no space left", retryable=True))
    with pytest.raises(SandboxUnavailableError, match=r"first 8 .*no space left.*run the same command again"):
        evaluate(ROWS, breaks_one_by_one, output_dir=tmp_path)
    assert backend.opened == 8 and backend.closed
    faulty(lambda number: None)
    assert evaluate(ROWS, breaks_one_by_one, output_dir=tmp_path).judged == 20


def test_setups_that_are_wrong_do_not_stop_the_run(tmp_path: Path, faulty: Any) -> None:
    faulty(lambda number: SandboxError("setup failed", retryable=False))
    result = evaluate(ROWS, breaks, output_dir=tmp_path, keep_going=True)
    assert (result.judged, result.failed) == (0, 20)


def test_one_that_worked_shows_that_the_machinery_does(tmp_path: Path, faulty: Any) -> None:
    faulty(lambda number: SandboxError("flaky", retryable=True) if number > 1 else None)
    result = evaluate(ROWS, breaks_one_by_one, output_dir=tmp_path)
    assert (result.judged, result.failed) == (1, 19)


def test_an_image_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    require_namespaces()
    settings = {"backend": "namespaces", "image": str(tmp_path / "nowhere")}
    with pytest.raises(SandboxUnavailableError, match="nowhere"):
        evaluate(ROWS, breaks, output_dir=tmp_path / "run", sandbox=settings)
    assert not (tmp_path / "run" / "results.jsonl").read_bytes()


def test_results_are_bound_to_the_image_they_were_made_in(tmp_path: Path, faulty: Any) -> None:
    faulty(lambda number: None)
    evaluate(ROWS[:2], breaks, output_dir=tmp_path, sandbox={"setup_join": ";"})
    with pytest.raises(Exception, match=r"sandbox.setup_join: ';' then, '&&' now"):
        evaluate(ROWS[:2], breaks, output_dir=tmp_path)
