# SPDX-License-Identifier: Apache-2.0
"""OpenAI's files and batches, which many providers copy.

    POST /files (purpose=batch) → POST /batches → GET /batches/ID … → GET /files/OUTPUT/content, /files/ERRORS/content

A batch carries the run and the part it belongs to as metadata, and is found by these in the list of batches.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from reward_kit.errors import EndpointError, ProviderError
from reward_kit.generation.batch.provider import BatchEnd, BatchLabel, BatchLimits, BatchState, LineShape
from reward_kit.generation.batch.rest import NotThere, Rest

__all__ = ["OpenAIBatches"]

_ENDPOINT = "/v1/chat/completions"
_MOST_PAGES = 500
_NO_ROOM = frozenset({"token_limit_exceeded", "request_limit_exceeded", "batch_limit_exceeded"})
_ENDS: dict[str, BatchEnd] = {
    "completed": "completed", "expired": "expired", "cancelled": "cancelled", "canceled": "cancelled",
    "failed": "failed",
}  # fmt: skip


class OpenAIBatches:
    """The batches of an endpoint that speaks OpenAI's API."""

    limits = BatchLimits(requests=50_000, size=200_000_000)
    shape = LineShape(b',"method":"POST","url":"%b","body":' % _ENDPOINT.encode(), names_model=True)

    def __init__(self, rest: Rest, *, window: str) -> None:
        """Ask by `rest`; the provider may take as long as `window` says."""
        self._rest = rest
        self._window = window

    async def upload(self, path: Path, label: BatchLabel, requests: int) -> str:
        """Hand a file of requests over; its id."""
        name = f"reward-kit-{label.run[:8]}-{label.part}.jsonl"
        try:
            return _id(await self._rest.send_file("/files", path, name, {"purpose": "batch"}))
        except NotThere as error:
            raise self._no_batches(error) from None

    async def find(self, label: BatchLabel) -> list[BatchState]:
        """The batches whose metadata say that they are of this run and part, the oldest first."""
        found, query = [], {"limit": "100"}
        for _ in range(_MOST_PAGES):
            page = await self._rest.get("/batches", query)
            batches = page.get("data") or []
            found += [_state(batch) for batch in batches if (batch.get("metadata") or {}) == _metadata(label)]
            if not page.get("has_more") or not batches:
                break
            query = {"limit": "100", "after": str(page.get("last_id") or batches[-1]["id"])}
        return sorted(found, key=lambda state: state.created)

    async def submit(self, file: str, label: BatchLabel) -> BatchState:
        """Have the file answered."""
        body = {
            "input_file_id": file,
            "endpoint": _ENDPOINT,
            "completion_window": self._window,
            "metadata": _metadata(label),
        }
        try:
            return _state(await self._rest.post_once("/batches", body, key=f"{label.run}-{label.part}"))
        except NotThere as error:
            raise self._no_batches(error) from None

    async def state(self, batch: str) -> BatchState:
        """How a batch is doing."""
        try:
            return _state(await self._rest.get(f"/batches/{batch}"))
        except NotThere as error:
            raise EndpointError(
                f"{error}. The batch {batch!r} is not known there. Check that the key belongs to the account that "
                "submitted it. If the batch is lost, give it up with `reward-kit batches forget DIR`; the next run "
                "asks for its answers again."
            ) from None

    async def fetch(self, state: BatchState, output: str, write: Callable[[bytes], None]) -> None:
        """Read one of the outputs, piece by piece."""
        await self._rest.receive(f"/files/{output}/content", write)

    async def cancel(self, batch: str) -> None:
        """Ask for an end."""
        try:
            await self._rest.post(f"/batches/{batch}/cancel", {})
        except NotThere as error:
            if error.status != 409:  # 409: it has ended already
                raise

    async def close(self) -> None:
        """Close the connections."""
        await self._rest.close()

    def _no_batches(self, error: NotThere) -> EndpointError:
        return EndpointError(
            f"{error}. That endpoint does not have OpenAI's interface for files and batches. Leave "
            "`generation.transport` out, or correct `generation.api_base`."
        )


def _metadata(label: BatchLabel) -> dict[str, str]:
    return {"reward_kit_run": label.run, "reward_kit_part": label.part}


def _id(reply: dict[str, Any]) -> str:
    found = reply.get("id")
    if not isinstance(found, str) or not found:
        raise ProviderError("The endpoint's reply names no id. Try again.")
    return found


def _state(batch: dict[str, Any]) -> BatchState:
    status = str(batch.get("status"))
    counts = batch.get("request_counts") or {}
    errors = (batch.get("errors") or {}).get("data") or [] if isinstance(batch.get("errors"), dict) else []
    end = _ENDS.get(status)
    if end == "failed" and any(error.get("code") in _NO_ROOM for error in errors):
        end = "declined"
    words = "; ".join(str(error.get("message") or error.get("code")) for error in errors[:3])
    outputs = (batch.get("output_file_id"), batch.get("error_file_id"))
    return BatchState(
        id=_id(batch),
        end=end,
        total=int(counts.get("total") or 0),
        answered=int(counts.get("completed") or 0),
        failed=int(counts.get("failed") or 0),
        words=f"{status}: {words}" if words else status,
        outputs=tuple(output for output in outputs if isinstance(output, str) and output),
        created=float(batch.get("created_at") or 0),
    )
