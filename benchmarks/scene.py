# SPDX-License-Identifier: Apache-2.0
"""The scene that the benchmarks share: prompts in a file, a mock endpoint in its own process, the config of a run."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import orjson

from reward_kit.cli_commands.display.run import Display
from reward_kit.cli_commands.garbage import collect_rarely
from reward_kit.config_models import PipelineConfig, load_config
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult

__all__ = [
    "ROOT",
    "Timed",
    "Workshop",
    "interleaved",
    "mock_server",
    "remote",
    "rows",
    "run_shown",
    "timed_run",
    "workshop",
]

ROOT = Path(__file__).resolve().parent.parent
"""The repository: where a process must start to find the benchmarks."""

REWARD = "benchmarks.own_rewards:contains_answer"
"""A trivial asynchronous reward."""


class Timed(NamedTuple):
    """What repetitions of one thing took, in seconds."""

    best: float
    """The repetition that other programs disturbed least."""
    median: float
    processor: float
    """The least processor time of this process; where it is the one that computes, steadier than the clock."""


def interleaved(kinds: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Timed]:
    """Measure every kind once a round, so that a noisy moment falls on all of them alike."""
    times: dict[str, list[float]] = {name: [] for name in kinds}
    processor = dict.fromkeys(kinds, math.inf)
    for _ in range(rounds):
        for name, measure in kinds.items():
            gc.collect()
            start = time.process_time()
            times[name].append(measure())
            processor[name] = min(processor[name], time.process_time() - start)
    return {name: Timed(min(each), statistics.median(each), processor[name]) for name, each in times.items()}


@contextlib.contextmanager
def mock_server(*, latency_ms: float = 0.0) -> Iterator[str]:
    """The mock endpoint, in its own process; gives its `api_base`."""
    command = [sys.executable, "-m", "benchmarks.mock_server", "--latency-ms", str(latency_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}/v1"
        finally:
            process.terminate()


@contextlib.contextmanager
def workshop() -> Iterator[Workshop]:
    """A directory for one benchmark, removed in the end."""
    with tempfile.TemporaryDirectory(prefix="reward-kit-benchmark-") as directory:
        yield Workshop(Path(directory))


class Workshop:
    """Makes datasets, directories nobody has used, and configs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._made = 0

    def fresh(self, name: str) -> Path:
        """A path that does not exist yet."""
        self._made += 1
        return self.directory / f"{name}-{self._made}"

    def prompts(self, count: int) -> Path:
        """A dataset of `count` different prompts."""
        path = self.directory / f"prompts-{count}.jsonl"
        if not path.exists():
            with path.open("wb") as file:
                file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows(count))
        return path

    def config(
        self, prompts: int, generation: Mapping[str, Any], *, cache: Path | None = None, reward: str = REWARD
    ) -> PipelineConfig:
        """A run over so many prompts into a directory nobody has used; without `cache`, so is its cache."""
        return load_config(
            {
                "dataset": {"path_or_name": str(self.prompts(prompts))},
                "generation": {"cache": {"cache_dir": str(cache or self.fresh("cache"))}, **generation},
                "reward": {"function_path": reward},
                "output": {"output_dir": str(self.fresh("run"))},
            }
        )


def rows(count: int) -> Iterator[dict[str, str]]:
    """The rows of a dataset."""
    for number in range(count):
        question = f"A shop sells {number} pens at 3 coins each and {number % 7} books at 11. How much is that in all?"
        yield {"id": f"sample-{number}", "user_query": question, "ground_truth_for_eval": "42"}


def remote(api_base: str, concurrency: int, **settings: Any) -> dict[str, Any]:
    """The generation settings that ask the mock endpoint."""
    limits = {"max_concurrent_requests": concurrency}
    return {"model_name": "mock-model", "api_base": api_base, "api_params": limits, **settings}


class _PretendedTerminal(io.StringIO):
    """Takes what is drawn for a person, so that progress costs what it costs at a terminal."""

    def isatty(self) -> bool:
        return True


def run_shown(config: PipelineConfig, **options: Any) -> RunResult:
    """Run as `reward-kit run` does at a terminal: with live progress."""
    with contextlib.redirect_stderr(_PretendedTerminal()):
        reporter = Display(quiet=False, as_json=False).reporter()
        pipeline = EvaluationPipeline(config, reporter=reporter, **options)
        with _as_in_a_command():
            return pipeline.run()


@contextlib.contextmanager
def _as_in_a_command() -> Iterator[None]:
    """Collect garbage as rarely as a command does, but only inside the block: the baselines run in this process too."""
    thresholds = gc.get_threshold()
    with patch("atexit.register"):
        collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def timed_run(config: PipelineConfig, records: int, **options: Any) -> float:
    """The seconds a whole run takes; it must end well, with so many records."""
    start = time.perf_counter()
    result = run_shown(config, **options)
    seconds = time.perf_counter() - start
    if (result.status, result.judged, result.failed) != ("finished", records, 0):
        raise RuntimeError(f"the run ended {result.status} with {result.judged} judged and {result.failed} failed")
    return seconds
