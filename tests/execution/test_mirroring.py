# SPDX-License-Identifier: Apache-2.0
"""Runs with a mirror in S3: killed anywhere and resumed elsewhere, with a store that fails, and by every front door."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.cli import main
from reward_kit.errors import ConfigError, StorageError
from reward_kit.execution.best_of_n import BestOfN
from reward_kit.execution.best_of_n.experiment import load_experiment
from reward_kit.execution.parts import mirroring
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.storage.mirror import background
from tests.agent.test_kill_and_resume import TURNS, WORLDS, acts, essence_of
from tests.execution.shell_support import command as shell_line
from tests.execution.shell_support import require_namespaces
from tests.generation.loopback import Loopback, Says
from tests.loopback.endpoint import honest, prompt_of, serving
from tests.loopback.faults import TIMES
from tests.loopback.object_store import SECRET, Fault, ObjectStore, Request, environment, object_store
from tests.loopback.runs import Key, config, judged, keys, lines, questions, results
from tests.loopback.zygote import Zygote

SAMPLES, N, CONCURRENCY = 10, 2, 2
KILLED = -signal.SIGKILL
pytestmark = pytest.mark.timeout(400)  # loading S3's package takes long on a busy machine


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with object_store() as store, environment(store):
        yield store


@pytest.fixture
def s3(server: ObjectStore) -> ObjectStore:
    server.new_bucket()
    return server


def mirrored(home: Path, s3: ObjectStore, run: str = "run", **settings: Any) -> dict[str, Any]:
    return config(
        home, output__output_dir=str(home / run), output__mirror=f"s3://{s3.bucket}/runs/one",
        output__mirror_seconds=0.05, **settings,
    )  # fmt: skip


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if not path.name.startswith(".")}


def command(*words: str, code: int = 0) -> None:
    with pytest.raises(SystemExit) as left:
        main([*words])
    assert (left.value.code or 0) == code


# ── the way it is meant ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_finished_run_lies_in_its_mirror_whole_and_is_restored_as_it_was(s3: ObjectStore, tmp_path: Path) -> None:
    EvaluationPipeline(mirrored(tmp_path, s3)).run()
    here = files(tmp_path / "run")
    assert {key.rpartition("/")[2] for key in s3.keys("runs/one/")} == {*here, "mirror.json", "000001.json"}
    assert {name: s3.get(f"runs/one/{name}") for name in here} == here
    result = EvaluationPipeline(mirrored(tmp_path, s3, "elsewhere"), resume_from_mirror=True).run()
    assert (result.status, result.counters.generated, result.not_mirrored) == ("finished", 0, None)
    assert results(tmp_path, "elsewhere") == results(tmp_path, "run")


def test_a_run_goes_on_elsewhere_and_the_first_directory_is_refused_then(s3: ObjectStore, tmp_path: Path) -> None:
    EvaluationPipeline(mirrored(tmp_path, s3)).run()
    more = mirrored(tmp_path, s3, "elsewhere", generation__n=3)
    result = EvaluationPipeline(more, resume_from_mirror=True).run()
    assert result.counters.generated == 8 and result.not_mirrored is None
    assert s3.get("runs/one/results.jsonl") == (tmp_path / "elsewhere" / "results.jsonl").read_bytes()
    again = EvaluationPipeline(more, resume_from_mirror=True).run()
    assert again.counters.generated == 0, "the same command again goes on in its own directory"
    with pytest.raises(StorageError, match="holds a run that another directory has written last"):
        EvaluationPipeline(mirrored(tmp_path, s3)).run()


def test_nothing_secret_is_in_a_mirror(s3: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-this-is-a-key-0123456789abcdef")
    settings = mirrored(tmp_path, s3, generation__api_key="sk-this-is-a-key-0123456789abcdef")
    settings["reward"]["params"] = {"api_token": "0123456789abcdef0123"}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".env").write_text("KEY=1")
    EvaluationPipeline(settings).run()
    found = b"".join(s3.get(key) for key in s3.keys(""))
    for secret in ("sk-this-is-a-key", "0123456789abcdef0123", SECRET, "KEY=1"):
        assert secret.encode() not in found, secret


def test_a_sweep_mirrors_each_of_its_runs_apart(s3: ObjectStore, tmp_path: Path) -> None:
    import yaml

    (tmp_path / "conf.yaml").write_text(yaml.safe_dump(mirrored(tmp_path, s3)))
    with pytest.raises(SystemExit) as left:
        main(["run", str(tmp_path / "conf.yaml"), "-q", "-m", "generation.temperature=0.1,0.9"])
    assert left.value.code == 0
    found = [key for key in s3.keys("") if key.endswith("/summary.json")]
    assert len(found) == 2 and all("temperature" in key for key in found)


# ── a store that fails ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirroring, "_PATIENCE", 0.5)
    monkeypatch.setattr(background, "_FIRST_WAIT", 0.05)


@pytest.mark.usefixtures("impatient")
def test_a_store_that_breaks_down_does_not_stop_the_run_and_the_end_says_so(
    s3: ObjectStore, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    import yaml

    conf = tmp_path / "conf.yaml"
    conf.write_text(yaml.safe_dump(mirrored(tmp_path, s3)))
    begun = threading.Event()

    def react(request: Request) -> Fault | None:
        if "parts" in request.path or begun.is_set():
            begun.set()
            return Fault(status=503)
        return None

    s3.react = react
    with pytest.raises(SystemExit) as left:
        main(["run", str(conf), "-q"])
    said = capsys.readouterr().err
    assert left.value.code == 5
    assert "Not everything is in the mirror" in said and "run the same command again to copy the rest" in said
    assert len(lines(tmp_path / "run" / "results.jsonl")) == 4, "nothing is lost"
    s3.react = lambda _: None
    with pytest.raises(SystemExit) as left:
        main(["run", str(conf), "-q"])
    assert left.value.code == 0
    assert s3.get("runs/one/results.jsonl") == (tmp_path / "run" / "results.jsonl").read_bytes()


@pytest.mark.parametrize("seed", range(TIMES))
def test_uploads_that_are_cut_off_at_random_still_make_a_whole_mirror(
    s3: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("reward_kit.stores.store._FIRST_WAIT", 0.01)
    monkeypatch.setattr(background, "_FIRST_WAIT", 0.01)
    dice = random.Random(seed)
    faults = [Fault(upload=0.5), Fault(lost_answer=True), Fault(status=503), Fault(download=0.3), Fault(slow=0.05)]
    s3.react = lambda _: dice.choice(faults) if dice.random() < 0.15 else None
    result = EvaluationPipeline(mirrored(tmp_path, s3, rows=questions(30))).run()
    assert result.not_mirrored is None
    result = EvaluationPipeline(mirrored(tmp_path, s3, "elsewhere"), resume_from_mirror=True).run()
    assert results(tmp_path, "elsewhere") == results(tmp_path, "run") and len(results(tmp_path)) == 30


@pytest.mark.parametrize(
    ("mirror", "fault", "said"),
    [
        ("s3://no-such-bucket-here/x", None, "there is no such bucket"),
        ("s3://{bucket}/x", Fault(status=403, code="AccessDenied"), "rights are missing"),
        ("somewhere/else", None, "expected the address of a folder"),
        ("hf://datasets/me/runs", None, "expected the address of a folder"),
    ],
)
def test_a_mirror_that_cannot_be_had_is_told_in_one_sentence_before_anything_is_paid(
    s3: ObjectStore, tmp_path: Path, mirror: str, fault: Fault | None, said: str
) -> None:
    s3.react = lambda _: fault
    settings = mirrored(tmp_path, s3)
    settings["output"]["mirror"] = mirror.format(bucket=s3.bucket)
    with pytest.raises((StorageError, ConfigError), match=said) as caught:
        EvaluationPipeline(settings).run()
    assert "`output.mirror`" in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "run" / "rollouts.jsonl").exists()


def test_resuming_needs_a_mirror_and_something_in_it(s3: ObjectStore, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a mirror to go on from"):
        EvaluationPipeline(config(tmp_path), resume_from_mirror=True)
    with pytest.raises(StorageError, match="There is no mirror at"):
        EvaluationPipeline(mirrored(tmp_path, s3), resume_from_mirror=True).run()


# ── the other front doors ────────────────────────────────────────────────────────────────────────────────────────────


def test_best_of_n_mirrors_its_table_and_goes_on_elsewhere(s3: ObjectStore, tmp_path: Path) -> None:
    rows = [{"id": f"s{i}", "problem": f"What is {i}?", "answer": str(i), "split": "math"} for i in range(4)]
    (tmp_path / "data.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    s3.put("data.jsonl", (tmp_path / "data.jsonl").read_bytes())
    values = {
        "dataset": f"s3://{s3.bucket}/data.jsonl", "splits": "math", "model": "mock", "num_candidates": 2,
        "cache_dir": None, "mirror": f"s3://{s3.bucket}/experiment",
    }  # fmt: skip
    first = BestOfN(load_experiment({**values, "output": str(tmp_path / "a" / "table.parquet")})).run()
    assert first.run.not_mirrored is None and first.run.judged == 8
    assert s3.get("experiment/table.parquet") == (tmp_path / "a" / "table.parquet").read_bytes()
    second = BestOfN(load_experiment({**values, "output": str(tmp_path / "b" / "table.parquet")}))
    result = second.run(resume_from_mirror=True)
    assert result.run.counters.generated == 0
    import pyarrow.parquet as pq

    one, two = (pq.read_table(tmp_path / place / "table.parquet") for place in "ab")
    assert one.equals(two)


def test_inspect_and_export_read_a_mirror_a_folder_a_file_and_write_to_a_store(
    s3: ObjectStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    EvaluationPipeline(mirrored(tmp_path, s3, generation__n=2)).run()
    for name in ("results.jsonl", "config.yaml", "summary.json", "manifest.json"):
        s3.put(f"plain/{name}", (tmp_path / "run" / name).read_bytes())
    figures = []
    for place in (str(tmp_path / "run"), f"s3://{s3.bucket}/runs/one", f"s3://{s3.bucket}/plain",
                  f"s3://{s3.bucket}/plain/results.jsonl"):  # fmt: skip
        command("inspect", place, "--format", "csv")
        figures.append(capsys.readouterr().out.replace("one", "run").replace("plain", "run"))
    assert figures[0] and figures == [figures[0]] * 4
    target = f"s3://{s3.bucket}/kto.jsonl"
    command("export", f"s3://{s3.bucket}/runs/one", "--to", "kto", "-o", target)
    command("export", str(tmp_path / "run"), "--to", "kto", "-o", str(tmp_path / "kto.jsonl"))
    assert s3.get("kto.jsonl") == (tmp_path / "kto.jsonl").read_bytes() != b""
    capsys.readouterr()
    command("export", f"s3://{s3.bucket}/runs/one", "--to", "kto", "-o", target, code=2)
    command("inspect", f"s3://{s3.bucket}/nothing", code=1)
    said = capsys.readouterr().err.splitlines()
    assert "exists. Choose another --output" in said[0] and "there is no such object" in said[1] and len(said) == 2


def test_inspect_reads_a_table_in_a_store(s3: ObjectStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": f"s{i}", "problem": f"What is {i}?", "answer": str(i), "split": "math"} for i in range(4)]
    (tmp_path / "data.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    table = tmp_path / "table.parquet"
    BestOfN(
        load_experiment(
            {"dataset": str(tmp_path / "data.jsonl"), "splits": "math", "model": "mock", "num_candidates": 2,
             "cache_dir": None, "output": str(table)}
        )
    ).run()  # fmt: skip
    s3.put("tables/table.parquet", table.read_bytes())
    figures = []
    for place in (str(table), f"s3://{s3.bucket}/tables/table.parquet"):
        command("inspect", place, "--format", "csv")
        figures.append(capsys.readouterr().out)
    assert figures[0] and figures[0] == figures[1]


def test_shell_commands_are_run_elsewhere_from_a_mirror(s3: ObjectStore, tmp_path: Path) -> None:
    require_namespaces()
    rows = [shell_line(number, None if number else "false") for number in range(3)]
    s3.put("commands.jsonl", b"".join(orjson.dumps(row) + b"\n" for row in rows))
    words = (
        "shell", "--phase", "execution", "--sandbox", "namespaces", "--commands-file",
        f"s3://{s3.bucket}/commands.jsonl", "--mirror", f"s3://{s3.bucket}/shell", "-q",
    )  # fmt: skip
    command(*words, "--output-dir", str(tmp_path / "here"))
    assert s3.get("shell/results.jsonl") == (tmp_path / "here" / "results.jsonl").read_bytes()
    command(*words, "--output-dir", str(tmp_path / "there"), "--resume-from-mirror")
    here, there = (lines(tmp_path / place / "results.jsonl") for place in ("here", "there"))
    assert here == there and [row["overall_success"] for row in there] == [False, True, True]


# ── kill -9 ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Bench:
    """One endpoint, one store and one zygote for all points of a test."""

    endpoint: Loopback
    store: ObjectStore
    processes: Zygote
    home: Path
    pid: int = 0
    kill_at: dict[str, int] = field(default_factory=dict)
    quiet: dict[Key, dict[str, Any]] = field(default_factory=dict)
    asked: int = 0
    says: Callable[[dict[str, Any], int], Says] = honest

    def settings(self, run: str, mirror: str) -> dict[str, Any]:
        return config(
            self.home, self.endpoint.api_base, output__output_dir=str(self.home / run), generation__n=N,
            generation__n_mode="fanout", generation__api_params={"max_concurrent_requests": CONCURRENCY},
            output__mirror=mirror, output__mirror_seconds=0.02,
        )  # fmt: skip

    def enter(self, settings: dict[str, Any], die_at: dict[str, int] | None = None, *, resume: bool = False) -> int:
        self.kill_at = dict(die_at or {})
        self.asked = 0
        self.store.requests.clear()
        self.pid = self.processes.start(config=settings, die_at=die_at or {}, resume_from_mirror=resume)
        status = self.processes.wait()
        self.kill_at = {}
        return status

    def at_endpoint(self, body: dict[str, Any], number: int) -> Says:
        self._count("request")
        threading.Event().wait(0.01)  # so that the mirror has something to do meanwhile
        return self.says(body, number)

    def at_store(self, _: Request) -> None:
        self._count("stored")

    def _count(self, what: str) -> None:
        if what in self.kill_at:
            self.kill_at[what] -= 1
            if self.kill_at[what] == 0:
                os.kill(self.pid, signal.SIGKILL)

    def paid(self) -> Counter[tuple[str, int]]:
        asked = Counter((prompt_of(body), body["seed"]) for body in self.endpoint.requests)
        self.endpoint.requests.clear()
        return asked


@pytest.fixture(scope="module")
def bench(server: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with ExitStack() as stack:
        home = tmp_path_factory.mktemp("kills")
        made: list[Bench] = []

        def react(body: dict[str, Any], number: int) -> Says:
            return made[0].at_endpoint(body, number)

        endpoint = stack.enter_context(serving(react))
        processes = Zygote("s3fs", "reward_kit.storage.mirror.background")
        made.append(Bench(endpoint, server, processes, home))
        config(home, rows=questions(SAMPLES))
        server.new_bucket()
        assert made[0].enter(made[0].settings("quiet", f"s3://{server.bucket}/quiet")) == 0
        made[0].quiet = judged(results(home, "quiet"))
        made[0].paid()
        yield made[0]


def points(seed: int) -> list[dict[str, int]]:
    dice = random.Random(seed)
    found = [{"stored": dice.randint(5, 45)} for _ in range(2 * TIMES)]
    found += [{"request": dice.randint(2, SAMPLES * N)} for _ in range(TIMES)]
    found += [{"bytes": dice.randint(1, 12_000)} for _ in range(TIMES)]
    return found


@pytest.mark.timeout(1200)
def test_a_run_killed_anywhere_goes_on_elsewhere_and_pays_again_only_what_was_not_mirrored(bench: Bench) -> None:
    store = bench.store
    killed = 0
    for number, point in enumerate(points(7)):
        mirror = f"s3://{store.bucket}/point-{number}"
        store.react = bench.at_store
        status = bench.enter(bench.settings(f"first-{number}", mirror), point)
        store.react = lambda _: None
        killed += status == KILLED
        before = bench.paid()
        in_mirror = mirrored_rollouts(store, f"point-{number}")
        resume = f"point-{number}/mirror.json" in store.keys(f"point-{number}/")
        assert bench.enter(bench.settings(f"second-{number}", mirror), resume=resume) == 0, point
        assert judged(results(bench.home, f"second-{number}")) == bench.quiet
        rollouts = keys(lines(bench.home / f"second-{number}" / "rollouts.jsonl"))
        assert rollouts == [(f"s{i}", draw) for i in range(SAMPLES) for draw in range(N)]
        again = before & bench.paid()
        assert again.total() <= max(0, before.total() - in_mirror), (point, "what was mirrored is not paid again")
        for name in ("first", "second"):
            shutil.rmtree(bench.home / f"{name}-{number}", ignore_errors=True)
    assert killed >= 2 * TIMES


def mirrored_rollouts(store: ObjectStore, mirror: str) -> int:
    """How many rollouts somebody who restores the mirror now would find."""
    return len(mirrored_lines(store, mirror, "rollouts.jsonl"))


def mirrored_lines(store: ObjectStore, mirror: str, name: str) -> list[dict[str, Any]]:
    """What somebody who restores the mirror now would find in a file."""
    if f"{mirror}/mirror.json" not in store.keys(mirror):
        return []
    owner = orjson.loads(store.get(f"{mirror}/mirror.json"))
    contents = orjson.loads(store.get(f"{mirror}/mirror/{owner['generation']:06}.json"))
    parts = contents["files"].get(name, {"parts": []})["parts"]
    return [orjson.loads(line) for part in parts for line in store.get(f"{mirror}/{part[3]}").splitlines()]


@pytest.mark.timeout(1200)
def test_an_agents_run_goes_on_elsewhere_in_the_middle_of_its_episodes(bench: Bench) -> None:
    store, dice = bench.store, random.Random(16)

    def settings(run: str, mirror: str) -> dict[str, Any]:
        values = bench.settings(run, mirror)
        values["dataset"]["max_samples"] = 4
        agent = {"environment": f"{WORLDS}:Account", "concurrency": CONCURRENCY}
        return values | {"agent": agent, "reward": {"function_path": f"{WORLDS}:of_the_world"}}

    bench.says = acts
    try:
        assert bench.enter(settings("agent-quiet", f"s3://{store.bucket}/agent-quiet")) == 0
        quiet = essence_of(bench.home / "agent-quiet")
        turns_of(bench)
        for number in range(TIMES):
            mirror = f"agent-{number}"
            point = {"request": dice.randint(10, 4 * N * TURNS - 2)}
            assert bench.enter(settings(f"{mirror}-first", f"s3://{store.bucket}/{mirror}"), point) == KILLED
            before = turns_of(bench)
            known = {(row["id"], row["response_index"], row["turn"])
                     for row in mirrored_lines(store, mirror, "episodes.jsonl") if "reply" in row}  # fmt: skip
            assert bench.enter(settings(f"{mirror}-second", f"s3://{store.bucket}/{mirror}"), resume=True) == 0
            assert essence_of(bench.home / f"{mirror}-second") == quiet
            again = before & turns_of(bench)
            assert again.total() <= before.total() - len(known), (point, "turns in the mirror are not paid again")
    finally:
        bench.says = honest


def turns_of(bench: Bench) -> Counter[tuple[int, int]]:
    """What the endpoint was asked since the last time: seed and turn."""
    bodies = [*bench.endpoint.requests]
    bench.endpoint.requests.clear()
    return Counter((body["seed"], sum(m["role"] == "assistant" for m in body["messages"])) for body in bodies)
