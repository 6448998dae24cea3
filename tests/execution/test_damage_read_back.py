# SPDX-License-Identifier: Apache-2.0
"""Damage to the files of a run that is not over, to reviews, tables and mirrors: noticed, or made again the same."""

from __future__ import annotations

import hashlib
import random
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reward_kit.analysis.loading import load
from reward_kit.errors import DatasetError, RewardKitError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.storage.candidates import read_queries
from reward_kit.storage.mirror.copying import Copier
from reward_kit.storage.mirror.restoring import restore, take
from reward_kit.storage.reviews import append_review, read_reviews
from reward_kit.storage.turn_journal import TurnJournal
from reward_kit.stores.store import Store
from tests.agent.worlds import call
from tests.analysis.experiments import write_run
from tests.execution.test_batches import by_batches
from tests.generation.loopback import Says, answer
from tests.loopback.batches import KEY, Provider
from tests.loopback.batches import serving as providing
from tests.loopback.damages import BYTES, LINES, cut
from tests.loopback.endpoint import serving
from tests.loopback.experiments import experiment
from tests.loopback.faults import TIMES
from tests.loopback.runs import config, judged, questions, results
from tests.storage.test_reviews import REVIEW
from tests.viewer.browser import browsing

DAMAGES = 4 * TIMES
"""Of each file."""

Damage = Callable[[bytes, random.Random], bytes]


def damaged(
    original: bytes, about: str, damages: tuple[Damage, ...], count: int = DAMAGES
) -> Iterator[tuple[str, bytes]]:
    """Other contents in the place of a file's, and what was done to it."""
    for seed in range(max(count, DAMAGES)):
        dice = random.Random(f"{about} {seed}")
        damage = dice.choice(damages)
        if (content := damage(original, dice)) != original:
            yield f"seed {seed}: {damage.__name__} of {about}", content


# ── episodes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WORLDS = Path(__file__).parents[1] / "agent" / "worlds.py"
TURNS = 4


def acts(body: dict[str, Any], _: int) -> Says:
    """A model that puts in some money each turn, another sum for each seed, and then says that it is done."""
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    if turn >= TURNS - 1:
        return answer("It is done.")
    amount = hashlib.sha256(f"{body['seed']}|{turn}".encode()).digest()[0]
    message = {"role": "assistant", "content": None, "tool_calls": [call("deposit", {"amount": amount}, f"c{turn}")]}
    return Says(200, {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})


@pytest.mark.parametrize("world", ["Account", "Snapshots"])
def test_turns_of_episodes_that_are_not_over(tmp_path: Path, world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def play() -> dict[Any, Any]:
        values = config(
            tmp_path, endpoint.api_base, rows=questions(3), agent={"environment": f"{WORLDS}:{world}"}, generation__n=2,
            reward__function_path=f"{WORLDS}:of_the_world",
        )  # fmt: skip
        EvaluationPipeline(values).run()
        rows = results(tmp_path)
        told = ("messages", "steps", "ended", "facts", "evaluation_score", "error")
        for row in rows.values():
            for step in row["steps"]:
                for name in ("latency_ms", "cached", "cost"):
                    step.pop(name, None)
                for use in step["calls"]:
                    use.pop("seconds", None)
        return {key: {name: row.get(name) for name in told} for key, row in rows.items()}

    run = tmp_path / "run"
    with serving(acts) as endpoint:
        with monkeypatch.context() as patch:
            patch.setattr(TurnJournal, "drop", lambda self, is_finished: self.flush())
            expected = play()
        for path in run.iterdir():
            if path.name not in {"episodes.jsonl", "config.yaml"}:
                path.unlink() if path.is_file() else shutil.rmtree(path)
        shutil.copytree(run, tmp_path / "left")
        original = (tmp_path / "left" / "episodes.jsonl").read_bytes()
        asked = len(endpoint.requests)
        assert play() == expected
        assert len(endpoint.requests) == asked, "all of it was on the disk"
        for said, content in damaged(original, "episodes.jsonl", (*BYTES, *LINES)):
            shutil.rmtree(run)
            shutil.copytree(tmp_path / "left", run)
            (run / "episodes.jsonl").write_bytes(content)
            assert play() == expected, said


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name",
    [
        "batches.jsonl",
        "batches/0001.requests.jsonl",
        "batches/0001.answers-1.jsonl",
        "batches/0002.requests.jsonl",
        "batches/0002.handed-over.json",
    ],
)
@pytest.mark.parametrize("keeps", [True, False])
def test_batches_that_are_under_way(tmp_path: Path, name: str, keeps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one is fetched, the second is still going on."""
    monkeypatch.setenv("BATCH_KEY", KEY)
    monkeypatch.setattr("reward_kit.execution.batches._LOOKS_AFTER", (0.0,))

    def forgets(batch: dict[str, Any]) -> dict[str, Any]:
        return {**batch, "metadata": None}

    provider = Provider(polls=1, end=lambda number: "completed", tells=dict if keeps else forgets)
    settings: dict[str, Any] = {"generation__batch": {"max_requests": 6, "poll_seconds": 0.01}, "count": 4}
    run = tmp_path / "run"
    with providing(provider) as base:
        by_batches(tmp_path, base, **settings).run()
        expected = judged(results(tmp_path))
        shutil.rmtree(run)
        provider.batches.clear()
        provider.answered.clear()
        second = run / "batches" / "0002.handed-over.json"
        is_slow = True

        def told(batch: dict[str, Any]) -> dict[str, Any]:
            slow = is_slow and second.exists() and batch["input_file_id"] in second.read_text("utf-8")
            shown = {**batch, "status": "in_progress", "output_file_id": None} if slow else batch
            return shown if keeps else forgets(shown)

        provider.tells = told
        while not (run / "batches" / "0001.answers-1.jsonl").exists():
            assert by_batches(tmp_path, base, detach=True, **settings).run().status == "detached"
        is_slow = False
        shutil.copytree(run, tmp_path / "left")
        made = dict(provider.batches)
        original = (run / name).read_bytes()
        for said, content in damaged(original, name, (*BYTES, *LINES)):
            shutil.rmtree(run)
            shutil.copytree(tmp_path / "left", run)
            (run / name).write_bytes(content)
            try:
                by_batches(tmp_path, base, **settings).run()
            except RewardKitError as error:
                assert Path(name).name in str(error) or "0001" in str(error) or "0002" in str(error), f"{said}: {error}"
            else:
                assert judged(results(tmp_path)) == expected, said
            assert set(provider.batches) == set(made), f"{said}: a batch was made twice"


# ── reviews ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_reviews(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "reviews.jsonl"
    for number in range(6):
        append_review(path, replace(REVIEW, id=f"q{number}", note=f"note {number}"))
    expected = read_reviews(path)
    assert caplog.records == []
    original = path.read_bytes()
    for said, content in damaged(original, "reviews.jsonl", (*BYTES, *LINES), 100):
        path.write_bytes(content)
        caplog.clear()
        try:
            found = read_reviews(path)
        except RewardKitError as error:
            assert path.name in str(error)
        else:
            assert found == expected or "is not as it was written" in caplog.text, said
    for left in range(6):
        path.write_bytes(b"".join(original.splitlines(keepends=True)[:left]))
        caplog.clear()
        assert read_reviews(path) == expected[:left]
        assert f"it has {left} of 6 lines" in caplog.text
    append_review(path, expected[5])
    caplog.clear()
    assert read_reviews(path) == [*expected[:5], expected[5]]
    assert "where line 6 should be is what was written as line 7" in caplog.text, "once lost is not forgotten"


def test_the_count_of_reviews(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "reviews.jsonl"
    for number in range(12):
        append_review(path, replace(REVIEW, id=f"q{number}"))
    expected = read_reviews(path)
    count = tmp_path / "reviews.jsonl.count"
    for said, content in damaged(count.read_bytes(), "the count of reviews", BYTES, 100):
        count.write_bytes(content)
        caplog.clear()
        assert read_reviews(path) == expected
        assert "'reviews.jsonl.count' beside it is damaged" in caplog.text, said
    append_review(path, expected[0])
    count_again = count.read_bytes()
    caplog.clear()
    assert len(read_reviews(path)) == 13
    assert caplog.records == []
    count.unlink()
    assert len(read_reviews(path)) == 13
    assert caplog.records == [], "an earlier version kept no count"
    append_review(path, expected[0])
    assert count.read_bytes() != count_again


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tables_of_experiments(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from reward_kit.execution.best_of_n import BestOfN
    from reward_kit.execution.best_of_n.experiment import load_experiment

    values = experiment(tmp_path)
    BestOfN(load_experiment(values), config_file="a.yaml").run()
    path = Path(values["output"])

    def figures() -> Any:
        found = load(path)
        texts = found.texts.take(["response"], found.source_rows)["response"]
        return [*map(repr, zip(texts, *found.figures.to_pydict().values(), strict=True))], found.metadata

    def answers() -> Any:
        return [repr(query) for query in read_queries(path, threshold=None)]

    def pages() -> Any:
        """Each row and sample as the viewer shows it."""
        with browsing(path) as browser:
            said = [
                browser.ask(f"/api/runs/{browser.keys[0]}{rest}") for rest in ("/rows?by=record", "/samples/math-1")
            ]
        problems = [reply.error for reply in said if reply.status >= 400]
        if problems:
            raise DatasetError(f"{path.name}: {problems}")
        return [[reply.json[name] for name in ("rows", "candidates") if name in reply.json] for reply in said]

    original = path.read_bytes()
    for read in (figures, answers, pages):
        path.write_bytes(original)
        expected = read()
        for said, content in damaged(original, path.name, (*BYTES, cut), 100):
            path.write_bytes(content)
            try:
                found = read()
            except RewardKitError as error:
                assert path.name in str(error), f"{said}: {error}"
            else:
                assert found == expected, f"{said}, then {read.__name__}"


def test_indexes_of_the_viewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward_kit.viewer.opened._LARGE", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = write_run(tmp_path / "run", {f"q{number}": [1.0, 0.0] for number in range(5)})

    def shown() -> Any:
        with browsing(run) as browser:
            return browser.run("/rows", by="record")["rows"], browser.run()["card"]

    expected = shown()
    (index,) = (tmp_path / "cache").rglob("*.parquet")
    for said, content in damaged(index.read_bytes(), "index", (*BYTES, cut), 150):
        index.write_bytes(content)
        assert shown() == expected, said


# ── mirrors ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def objects(store: Store, folder: str) -> list[str]:
    """The addresses of all that is below one."""
    return [address for facts in store.inside(folder) for address in objects(store, facts.address) or [facts.address]]


@pytest.mark.parametrize("published", [False, True])
def test_mirrors(tmp_path: Path, published: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward_kit.storage.mirror.copying.PART_BYTES", 3000)
    EvaluationPipeline(config(tmp_path, rows=questions(5), generation__n=2)).run()
    run, mirror = tmp_path / "run", f"memory://{uuid.uuid4().hex}/run"
    store = Store(mirror, attempts=1)
    taken = take(store, mirror, run, 0.01)
    copier = Copier(taken, run)
    copier.publish() if published else copier.copy_new()
    taken.release()

    def restored() -> dict[str, bytes]:
        place = tmp_path / "elsewhere"
        shutil.rmtree(place, ignore_errors=True)
        restore(store, mirror, place, 0.01).release()
        return {
            path.name: (place / path.name).read_bytes()
            for path in run.iterdir()
            if path.name not in {".lock", ".mirror.json"}
        }

    kept = {address: store.read_whole(address) for address in objects(store, mirror)}
    expected = restored()
    assert len(expected) >= 5
    for address, original in kept.items():
        for said, content in damaged(original, address, (*BYTES, cut)):
            store.delete([other for other in objects(store, mirror) if other not in kept])
            for other, data in kept.items():
                store.write(other, data)
            store.write(address, content)
            try:
                found = restored()
            except RewardKitError as error:
                assert mirror.rpartition("/")[0] in str(error), f"{said}: {error}"
            else:
                assert found == expected, said
