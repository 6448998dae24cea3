# SPDX-License-Identifier: Apache-2.0
"""Many requests at once, some of which do their worst: the others are answered, and what waits is bounded."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.serving.rewards import equal, worst
from tests.serving.served import PATIENCE, Response, asked, raw, serving


def at_once(calls: list[Callable[[], Response]]) -> list[Response]:
    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result(PATIENCE * 2) for future in [threads.submit(call) for call in calls]]


@pytest.mark.parametrize("bad", ["hang", "exit", "abort", "memory", "rubbish"])
def test_sixty_three_good_ones_are_answered_beside_a_bad_one(bad: str) -> None:
    with serving(worst, reward={"timeout": 3.0, "memory_mb": 300}) as server:
        answers = [*["a"] * 40, bad, *["a"] * 23]
        found = at_once([partial(server.post, "/evaluate", asked(answer, "a")) for answer in answers])

        assert [each.status for each in found] == [200] * 64
        assert [each.json["score"] for each in found] == [None if answer == bad else 1.0 for answer in answers]
        failed = found[40].json
        assert failed["is_score_valid"] is False
        kinds = {"hang": "RewardTimeoutError", "rubbish": "RewardContractError"}
        assert failed["failure"]["type"] == kinds.get(bad, "RewardError")
        assert server.post("/evaluate", asked("a", "a")).json["score"] == 1.0


def test_bad_ones_in_a_batch_cost_themselves() -> None:
    with serving(worst, reward={"timeout": 3.0}) as server:
        answers = [("exit" if n % 16 == 3 else "rubbish" if n % 16 == 7 else "a") for n in range(64)]
        found = server.post("/evaluate/batch", {"items": [asked(answer, "a") for answer in answers]}).json["results"]

    assert [each["score"] for each in found] == [1.0 if answer == "a" else None for answer in answers]


def test_an_asynchronous_reward_that_hangs_costs_itself() -> None:
    with serving(equal, reward={"timeout": 2.0}) as server:
        answers = [*["a"] * 40, "wait 1000", *["a"] * 23]
        found = at_once([partial(server.post, "/evaluate", asked(answer, "a")) for answer in answers])
        batch = server.post("/evaluate/batch", {"items": [asked(answer, "a") for answer in answers]}).json["results"]

    for each in ([response.json for response in found], batch):
        assert [one["score"] for one in each] == [1.0 if answer == "a" else None for answer in answers]
        assert each[40]["failure"]["type"] == "RewardTimeoutError"


class Gate:
    """A reward that lets its callers go when it is told to."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.waiting = 0

    def reward(self) -> Callable[..., Any]:
        async def waits(messages: list[object], **kwargs: object) -> float:
            self.waiting += 1
            while not self.opened.is_set():
                await asyncio.sleep(0.01)
            return 1.0

        return waits

    def wait_for(self, count: int) -> None:
        ends = time.monotonic() + PATIENCE
        while self.waiting < count:
            assert time.monotonic() < ends
            time.sleep(0.01)


def test_what_waits_is_bounded() -> None:
    gate = Gate()
    with serving(gate.reward(), limits={"queue": 4}, reward={"concurrency": 2}) as server:
        with ThreadPoolExecutor(4) as threads:
            first = [threads.submit(server.post, "/evaluate", asked("a")) for _ in range(4)]
            ends = time.monotonic() + PATIENCE
            while server.metric('reward_kit_answers_held{reward="reward"}') < 4:
                assert time.monotonic() < ends
                time.sleep(0.01)
            assert server.get("/ready").status == 503
            assert server.get("/health").status == 200
            refused = server.post("/evaluate", asked("a"))
            batch = server.post("/evaluate/batch", {"items": [asked("a")] * 2})
            assert refused.status == batch.status == 503
            assert int(refused.headers["retry-after"]) >= 1
            gate.opened.set()
            assert [future.result().status for future in first] == [200] * 4
        assert server.get("/ready").status == 200
        assert server.post("/evaluate", asked("a")).status == 200


def test_a_batch_larger_than_the_queue_is_served_where_nothing_waits() -> None:
    with serving(equal, limits={"queue": 4}) as server:
        found = server.post("/evaluate/batch", {"items": [asked("a", "a")] * 50})

    assert len(found.json["results"]) == 50


def test_a_request_that_takes_too_long_is_answered_with_what_there_is() -> None:
    with serving(equal, limits={"request_seconds": 2.0}, reward={"concurrency": 8}) as server:
        items = [asked("a", "a"), asked("wait 30"), asked("b", "b")]
        found = server.post("/evaluate/batch", {"items": items}).json["results"]

    assert [each["score"] for each in found] == [1.0, None, 1.0]
    assert found[1]["failure"] == {"type": "RewardTimeoutError", "retryable": True}


def test_one_caller_may_have_so_many_in_flight(tmp_path: Path) -> None:
    key, other = "key-0123456789abcdef", "another-0123456789"
    file = tmp_path / "keys"
    file.write_text(f"narrow {key} concurrency=2\nwide {other}\n")
    gate = Gate()
    with serving(gate.reward(), access={"api_key_files": [file]}) as server, ThreadPoolExecutor(3) as threads:
        held = [threads.submit(server.post, "/evaluate", asked("a"), {"X-Api-Key": key}) for _ in range(2)]
        gate.wait_for(2)
        assert server.post("/evaluate", asked("a"), {"X-Api-Key": key}).status == 429
        wide = threads.submit(server.post, "/evaluate", asked("a"), {"X-Api-Key": other})
        gate.wait_for(3)
        gate.opened.set()
        assert [future.result().status for future in (*held, wide)] == [200] * 3


def test_requests_in_flight_are_answered_when_the_server_ends() -> None:
    gate = Gate()
    with ThreadPoolExecutor(8) as threads:
        with serving(gate.reward()) as server:
            held = [threads.submit(server.post, "/evaluate", asked("a")) for _ in range(8)]
            gate.wait_for(8)
            threading.Timer(0.5, gate.opened.set).start()
        assert [future.result().status for future in held] == [200] * 8


def test_what_takes_longer_than_the_end_may_is_told() -> None:
    with ThreadPoolExecutor(2) as threads:
        with serving(equal, limits={"drain_seconds": 1.0}) as server:
            held = [threads.submit(server.post, "/evaluate", asked("wait 100")) for _ in range(2)]
            wait_until(lambda: server.metric('reward_kit_answers_held{reward="reward"}') == 2)
        found = [future.result() for future in held]
    assert [each.status in {200, 503} for each in found] == [True, True]
    assert all(each.status == 503 or each.json["is_score_valid"] is False for each in found)


def wait_until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_the_log_has_a_line_for_each_request_and_no_body(tmp_path: Path) -> None:
    log, keys = tmp_path / "logs" / "access.jsonl", tmp_path / "keys"
    secret = "key-secret-0123456789"
    keys.write_text(f"trainer {secret}\n")
    access = {"api_key_files": [keys]}
    with serving(equal, access=access, access_log=str(log)) as server:
        server.post("/evaluate", asked("private words", "a"), {"X-Api-Key": secret, "X-Request-Id": "r-1"})
        server.post("/evaluate", asked("private words"), {"X-Api-Key": "wrong-key-0123456789"})
        server.get(f"/nowhere/{secret}?key={secret}", {"X-Api-Key": secret})
        server.say(raw(b"{private", "/evaluate", "POST", f"authorization: Bearer {secret}"))
        figures = server.app.metrics.text()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["status"], line["caller"]) for line in lines] == [
        (200, "trainer"), (403, "-"), (404, "trainer"), (400, "trainer"),
    ]  # fmt: skip
    assert lines[0] | {"time": 0, "ms": 0, "bytes_in": 0, "bytes_out": 0} == {
        "time": 0, "request_id": "r-1", "caller": "trainer", "client": "127.0.0.1", "method": "POST",
        "path": "/evaluate", "status": 200, "ms": 0, "bytes_in": 0, "bytes_out": 0, "answers": 1, "failures": 0,
    }  # fmt: skip
    for text in (log.read_text(), figures):
        assert secret not in text
        assert "wrong-key" not in text
        assert "private" not in text


def test_a_fault_of_ours_is_told_without_its_inside(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    with serving(equal) as server:
        judging = server.app._judging["reward"]
        monkeypatch.setattr(judging, "judge", lambda asked: 1 / 0)
        found = server.post("/evaluate", asked("a"))
        monkeypatch.undo()
        assert found.status == 500
        assert "ZeroDivisionError" not in found.body.decode()
        assert found.headers["x-request-id"] in caplog.text
        assert server.is_fine()


def test_memory_does_not_grow(tmp_path: Path) -> None:
    """Objects that are left after many requests, of every kind that is refused or served."""
    import gc

    with serving(equal) as server:

        def many() -> int:
            for number in range(150):
                server.post("/evaluate", asked("a", "a"), {"X-Request-Id": str(number)})
                server.get(f"/nowhere/{number}")
                server.post("/evaluate", b"{")
            gc.collect()
            return len(gc.get_objects())

        many()
        first = many()
        assert many() - first < 300


def test_an_extension_is_behind_the_same_gate(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("a key-0123456789abcdef\n")
    extension = Stepping()
    with serving(equal, access={"api_key_files": [keys]}, extensions=[extension], limits={"body_mb": 1.0}) as server:
        assert extension.is_open
        headers = {"X-Api-Key": "key-0123456789abcdef"}
        assert server.post("/step", {"action": 1}).status == 401
        found = server.post("/step", {"action": 1}, headers)
        assert found.json == {"action": 1}
        assert found.headers["x-request-id"]
        assert server.post("/step", b"x" * (2 << 20), headers).status == 413
        assert server.post("/nowhere", {}, headers).status == 404
        assert server.get("/step", headers).status == 405
        assert server.post("/evaluate", asked("a", "a"), headers).status == 200
    assert not extension.is_open


class Stepping:
    """An extension with one route."""

    name = "stepping"
    is_open = False

    def routes(self) -> Any:
        from starlette.requests import Request
        from starlette.responses import JSONResponse
        from starlette.routing import Route

        async def step(request: Request) -> JSONResponse:
            return JSONResponse(await request.json())

        return [Route("/step", step, methods=["POST"])]

    def open(self) -> Any:
        from contextlib import asynccontextmanager

        @asynccontextmanager
        async def opened() -> Any:
            self.is_open = True
            yield
            self.is_open = False

        return opened()


def test_servers_can_be_asked_many_things_at_once() -> None:
    rewards: dict[str, Callable[..., Any]] = {"equal": equal, "worst": worst}
    with serving(rewards) as server:

        def ask(number: int) -> Response:
            name = ("equal", "worst")[number % 2]
            return server.post(f"/rewards/{name}/evaluate", asked(str(number), str(number)))

        found = at_once([partial(ask, number) for number in range(100)])
    assert [each.json["score"] for each in found] == [1.0] * 100


def test_a_reward_that_blocks_the_loop_is_named_in_the_log(caplog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from reward_kit.scoring import defaults

    monkeypatch.setattr(defaults, "LOOP_PATIENCE_SECONDS", 0.2)

    async def blocks(messages: list[object], **kwargs: object) -> float:
        time.sleep(2.0)
        return 1.0

    with serving(blocks) as server:
        assert server.post("/evaluate", asked("a")).json["score"] == 1.0
    assert "'blocks' has blocked everything else" in caplog.text
