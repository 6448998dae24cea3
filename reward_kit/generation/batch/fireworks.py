# SPDX-License-Identifier: Apache-2.0
"""Fireworks' batch inference: a dataset of requests, a job over it, a dataset of answers.

    POST datasets, datasets/ID:upload → POST batchInferenceJobs → GET batchInferenceJobs/ID …
    → GET datasets/OUTPUT:getDownloadEndpoint → GET the addresses it names

Datasets and jobs have ids that we choose, made from the run and the part: what was made before is found by its id.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reward_kit.errors import EndpointError, ProviderError
from reward_kit.generation.batch.provider import (
    BatchEnd,
    BatchLabel,
    BatchLimits,
    BatchState,
    Found,
    LineShape,
    Sought,
)
from reward_kit.generation.batch.rest import NotThere, Rest

__all__ = ["FireworksBatches", "fireworks_root"]

_EXISTS = 409
_ENDS: dict[str, BatchEnd] = {
    "COMPLETED": "completed", "EXPIRED": "expired", "CANCELLED": "cancelled", "FAILED": "failed",
}  # fmt: skip


def fireworks_root(api_base: str) -> str:
    """Where accounts, with their datasets and jobs, are: from the address of the inference API."""
    parts = urlsplit(api_base)
    return f"{parts.scheme}://{parts.netloc}/v1"


class FireworksBatches:
    """The batch inference jobs of an account."""

    limits = BatchLimits(requests=500_000, size=150_000_000)  # larger files want another way of uploading
    makes_each_once = True

    def __init__(self, rest: Rest, *, account: str, model: str) -> None:
        """Ask by `rest`, whose addresses begin where `fireworks_root` says."""
        self._rest = rest
        self._account = f"accounts/{account}"
        self._jobs, self._datasets = f"/{self._account}/batchInferenceJobs", f"/{self._account}/datasets"
        self._model = model
        self._model_checked = False

    @staticmethod
    def shape(_: str) -> LineShape:
        """How lines of requests are written: the job says what they are, and for which model."""
        return LineShape(b',"body":', names_model=False)

    async def upload(self, path: Path, label: BatchLabel, requests: int) -> str:
        """Make the dataset, unless it is there, and put the file into it."""
        name = _input(label)
        dataset = {"displayName": name, "exampleCount": str(requests), "format": "CHAT", "userUploaded": {}}
        try:
            await self._rest.post(self._datasets, {"datasetId": name, "dataset": dataset})
        except NotThere as error:
            if error.status != _EXISTS:
                raise
            if (await self._rest.get(f"{self._datasets}/{name}")).get("state") == "READY":
                return name
        await self._rest.send_file(f"{self._datasets}/{name}:upload", path, f"{name}.jsonl", {})
        return name

    async def find(self, sought: Sought) -> Found:
        """The job of this label, where there is one."""
        try:
            return Found((_state(await self._rest.get(f"{self._jobs}/{_job(sought.label)}")),))
        except NotThere:
            return Found()

    async def submit(self, file: str, label: BatchLabel) -> BatchState:
        """Have the dataset answered. A job that is there already is the one."""
        await self._check_model()
        job = _job(label)
        body = {
            "displayName": job,
            "model": self._model,
            "inputDatasetId": f"{self._account}/datasets/{file}",
            "outputDatasetId": f"{self._account}/datasets/{job}-out",
        }
        try:
            return _state(await self._rest.post_once(self._jobs, body, {"batchInferenceJobId": job}))
        except NotThere as error:
            if error.status == _EXISTS:
                return await self.state(job)
            raise

    async def state(self, batch: str) -> BatchState:
        """How a job is doing."""
        return _state(await self._rest.get(f"{self._jobs}/{batch.rpartition('/')[2]}"))

    async def fetch(self, state: BatchState, output: str, write: Callable[[bytes], None]) -> None:
        """Read all files of the dataset of answers, the errors' one included, piece by piece."""
        found = await self._rest.get(f"{self._datasets}/{output.rpartition('/')[2]}:getDownloadEndpoint")
        addresses = found.get("filenameToSignedUrls") or {}
        for name in sorted(addresses):
            last = b"\n"

            def passed_on(piece: bytes) -> None:
                nonlocal last
                last = piece[-1:] or last
                write(piece)

            await self._rest.receive(addresses[name], passed_on)
            if last != b"\n":  # the next file's first line must not go on where this one ends
                write(b"\n")

    async def cancel(self, batch: str) -> None:
        """Ask for an end."""
        await self._rest.post(f"{self._jobs}/{batch.rpartition('/')[2]}:cancel", {})

    async def close(self) -> None:
        """Close the connections."""
        await self._rest.close()

    async def _check_model(self) -> None:
        """Refuse a model that has no batch inference: a job for one would wait for ever."""
        if self._model_checked or not self._model.startswith("accounts/"):
            return
        try:
            model = await self._rest.get(f"/{self._model}")
        except (NotThere, ProviderError):
            return
        supported = model.get("batchInferenceSupported", model.get("batch_inference_supported"))
        if supported is False:
            raise EndpointError(
                f"Fireworks has no batch inference for {self._model!r}, and a job for it would wait for ever. Choose "
                "another `generation.model_name`, or leave `generation.transport` out."
            )
        self._model_checked = True


def _input(label: BatchLabel) -> str:
    return f"rk-{label.run[:12]}-{label.part}-in".lower()


def _job(label: BatchLabel) -> str:
    return f"rk-{label.run[:12]}-{label.part}".lower()


def _state(job: dict[str, Any]) -> BatchState:
    name = str(job.get("name") or "").rpartition("/")[2]
    if not name:
        raise ProviderError("The reply names no batch inference job. Try again.")
    progress = job.get("jobProgress") or {}
    answered, failed = _count(progress, "successfullyProcessedRequests"), _count(progress, "failedRequests")
    state = str(job.get("state") or "").removeprefix("JOB_STATE_")
    end = _ENDS.get(state)
    if end == "failed" and answered:
        end = "expired"  # it broke off in the middle: what is there counts, and the rest is asked for again
    message = str((job.get("status") or {}).get("message") or "")
    output = job.get("outputDatasetId")
    return BatchState(
        id=name,
        end=end,
        total=_count(progress, "totalInputRequests"),
        answered=answered,
        failed=failed,
        words=f"{state.lower()}: {message}" if message else state.lower(),
        outputs=(str(output),) if output and end is not None and end != "failed" else (),
    )


def _count(progress: dict[str, Any], name: str) -> int:
    value = progress.get(name)
    return int(value) if isinstance(value, int | str) and str(value).isdigit() else 0
