# SPDX-License-Identifier: Apache-2.0
"""Preparing and absorbing batches, beside orjson reading and writing the same lines; and whether memory stays flat.

The provider is in this process and answers from a file; what it spends on that is not counted. What is counted is a
whole run of the phase `inference`: reading the dataset, writing the requests, taking the answers in, finding the line
of each draw, the cache, and the journal of rollouts.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import orjson

from benchmarks.report import Report, Row
from benchmarks.scene import ROOT, Workshop, interleaved, run_shown, workshop
from reward_kit.config_models import PipelineConfig
from reward_kit.execution import batches
from reward_kit.generation.batch.provider import BatchLabel, BatchState

__all__ = ["main"]

ROUNDS = 3
ANSWER = "Six times seven is forty-two, as one sees by adding six seven times. The answer is 42. " * 12


class InProcess:
    """A provider that answers every line at once, and keeps count of the processor time that this takes."""

    def __init__(self, folder: Path) -> None:
        """Keep the answers in `folder`."""
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self.seconds = 0.0

    async def upload(self, path: Path, label: BatchLabel, requests: int) -> str:
        """Answer the file."""
        start = time.process_time()
        name = str(self._folder / label.part)
        body = orjson.dumps(_answer())
        with path.open("rb") as lines, Path(name).open("wb") as answers:
            for line in lines:
                answers.write(
                    b'{"id":"r","custom_id":%b,"response":{"status_code":200,"request_id":"q","body":%b},"error":null}\n'
                    % (line[len(b'{"custom_id":') : line.index(b',"method"')], body)
                )
        self.seconds += time.process_time() - start
        return name

    async def find(self, label: BatchLabel) -> list[BatchState]:
        """There is never one that was not noted."""
        return []

    async def submit(self, file: str, label: BatchLabel) -> BatchState:
        """Take the file."""
        return BatchState(file, "completed", outputs=(file,))

    async def state(self, batch: str) -> BatchState:
        """It has ended."""
        return BatchState(batch, "completed", outputs=(batch,))

    async def fetch(self, state: BatchState, output: str, write: Callable[[bytes], None]) -> None:
        """The file, in the pieces that a connection gives."""
        with Path(output).open("rb") as file:
            while piece := file.read(1 << 16):
                write(piece)

    async def cancel(self, batch: str) -> None:
        """Nobody does."""

    async def close(self) -> None:
        """Nothing is open."""


def _answer() -> dict[str, object]:
    message = {"role": "assistant", "content": ANSWER, "refusal": None}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "benchmark",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 120, "completion_tokens": 240, "total_tokens": 360},
    }  # fmt: skip


def main(*, quick: bool = False) -> Report:
    """Measure the processor time at one size, and the memory at two."""
    requests, rounds = (500, 1) if quick else (100_000, ROUNDS)
    with workshop() as shop:
        _run(shop, 200)
        rows = [_time(shop, requests, rounds)]
        small, large = (_peak(shop, size) for size in (requests // 10, requests))
    rows.append(
        Row("peak memory at ten times the requests", large / small, f"{small:.0f} and {large:.0f} MB", at_most=1.3)
    )
    return Report("batch", f"preparing and absorbing {requests:,} requests by batches", rows)


def _time(shop: Workshop, requests: int, rounds: int) -> Row:
    spent, files = [], {}

    def ours() -> float:
        start = time.process_time()
        provider, found = _run(shop, requests)
        spent.append(time.process_time() - start - provider.seconds)
        files.update(found)
        return spent[-1]

    times = interleaved({"ours": ours, "lines": lambda: _lines(files, shop.fresh("lines"))}, rounds)
    mine, lines = min(spent) / requests * 1e6, times["lines"].processor / requests * 1e6
    context = f"{mine:.1f} µs of processor time per request beside {lines:.1f} µs"
    return Row("of orjson reading and writing its lines", mine / lines, context, at_most=6.0)


def _run(shop: Workshop, requests: int) -> tuple[InProcess, dict[str, Path]]:
    """One run; the provider it asked, and the files whose lines went through it."""
    folder = shop.fresh("provider")
    config = _config(shop, requests)
    provider = InProcess(folder)
    kept = Path(config.output.output_dir)
    seen: dict[str, Path] = {}

    def keep(stage: batches.BatchStage) -> None:
        start = time.process_time()
        for path in (kept / "batches").glob("*.requests.jsonl"):
            seen[path.name] = path.rename(folder / path.name)
        provider.seconds += time.process_time() - start
        absorbed(stage)

    absorbed = batches.BatchStage.absorbed
    with patch.object(batches, "open_provider", lambda _: provider), patch.object(batches.BatchStage, "absorbed", keep):
        result = run_shown(config, phase="inference")
    assert result.summary["rollouts"] == requests, result
    answers = {path.name: path for path in folder.iterdir() if ".requests." not in path.name}
    cache = {f"cache {path.name}": path for path in Path(config.generation.cache.cache_dir).rglob("*.jsonl")}
    return provider, {"rows": shop.prompts(requests), "rollouts": kept / "rollouts.jsonl", **seen, **answers, **cache}


def _config(shop: Workshop, requests: int) -> PipelineConfig:
    model = {"model_name": "benchmark", "api_base": "http://127.0.0.1:9/v1", "transport": "batch"}
    return shop.config(requests, model, cache=shop.fresh("cache"))


def _lines(files: dict[str, Path], folder: Path) -> float:
    """Seconds to read every line of these files as JSON, and to write it again."""
    start = time.perf_counter()
    folder.mkdir()
    for number, path in enumerate(files.values()):
        with path.open("rb") as source, (folder / str(number)).open("wb") as target:
            for line in source:
                target.write(orjson.dumps(orjson.loads(line), option=orjson.OPT_APPEND_NEWLINE))
    return time.perf_counter() - start


def _peak(shop: Workshop, requests: int) -> float:
    """The most memory, in MB, of a process of its own that does one run."""
    code = (
        "import resource, sys; from pathlib import Path; from benchmarks import batch; "
        "from benchmarks.scene import workshop\n"
        "with workshop() as shop: batch._run(shop, int(sys.argv[1]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, str(requests)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return float(shown.stdout.split()[-1])


if __name__ == "__main__":
    from benchmarks.report import as_text

    print(as_text(main(quick="--quick" in sys.argv)))
