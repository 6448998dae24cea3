# SPDX-License-Identifier: Apache-2.0
"""OpenAI's files and batches, which many providers copy.

    POST /files (purpose=batch) → POST /batches → GET /batches/ID … → GET /files/OUTPUT/content, /files/ERRORS/content

A batch whose id was never heard is found again in the list of batches: by the file that it answers, or by the run and
the part that it carries as metadata, with whatever the provider left of these or added. Where it tells neither, what is
left is when it was made, and how large it is.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

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
from reward_kit.http.transport import CHAT_ROUTE
from reward_kit.redaction import mask

__all__ = ["OpenAIBatches"]

_VERSION = "/v1"
"""What stands before the route in a line, whatever the address is."""
_CONFLICT = 409
_MOST_PAGES = 500
_ON_A_PAGE = 100
_CLOCKS_DIFFER = 300.0
"""Seconds by which the time of a batch may lie before that of its request, the difference of the clocks apart."""
_SHOWN_IDS = 5
_NO_ROOM = frozenset({"token_limit_exceeded", "request_limit_exceeded", "batch_limit_exceeded"})
_ENDS: dict[str, BatchEnd] = {
    "completed": "completed", "expired": "expired", "cancelled": "cancelled", "canceled": "cancelled",
    "failed": "failed",
}  # fmt: skip


class OpenAIBatches:
    """The batches of an endpoint that speaks OpenAI's API."""

    limits = BatchLimits(requests=50_000, size=200_000_000)
    makes_each_once = False

    def __init__(self, rest: Rest, *, window: str, route: str = CHAT_ROUTE) -> None:
        """Ask by `rest`; the provider may take as long as `window` says. Lines are requests to `route`."""
        self._endpoint = _VERSION + route
        self._rest = rest
        self._window = window

    @staticmethod
    def shape(route: str) -> LineShape:
        """How lines of requests to `route` are written."""
        return LineShape(b',"method":"POST","url":"%b","body":' % (_VERSION + route).encode(), names_model=True)

    async def upload(self, path: Path, label: BatchLabel, requests: int) -> str:
        """Hand a file of requests over; its id."""
        name = f"reward-kit-{label.run[:8]}-{label.part}.jsonl"
        try:
            return _id(await self._rest.send_file("/files", path, name, {"purpose": "batch"}))
        except NotThere as error:
            raise self._no_batches(error) from None

    async def find(self, sought: Sought) -> Found:
        """Look through the list of batches."""
        found: dict[str, list[BatchState]] = {"ours": [], "perhaps": [], "of another file": [], "another's": []}
        batches, gap = await self._listed()
        for batch in batches.values():
            found[_whose(batch, sought, self._rest.clock_ahead)].append(_state(batch))
        if sought.known and not sought.known & batches.keys():
            gap = gap or "it lists none of this run's other batches"
        if found["of another file"] and not _keeps_marks(batches, sought):
            ids = ", ".join(repr(state.id) for state in found["of another file"][:_SHOWN_IDS])
            gap = gap or f"by time and size it may be {ids}, which names a file that this run does not know"
        ours = sorted(found["ours"], key=lambda state: state.created)
        return Found(tuple(ours), tuple(found["perhaps"]), gap)

    async def _listed(self) -> tuple[dict[str, dict[str, Any]], str | None]:
        """All batches by id, and why they may not be all."""
        batches: dict[str, dict[str, Any]] = {}
        query = {"limit": str(_ON_A_PAGE)}
        for _ in range(_MOST_PAGES):
            page = await self._rest.get("/batches", query)
            here = page.get("data")
            if not isinstance(here, list):
                return batches, "its list of batches cannot be read"
            new = {str(batch["id"]): batch for batch in here if isinstance(batch, dict) and batch.get("id")}
            more = page.get("has_more", len(here) >= _ON_A_PAGE)
            if not more or not here:
                return batches | new, None
            if new.keys() <= batches.keys():
                return batches, "its list of batches begins again instead of going on"
            batches |= new
            query = {"limit": str(_ON_A_PAGE), "after": str(page.get("last_id") or [*new][-1])}
        return batches, f"its list of batches has more than {_MOST_PAGES:,} pages"

    async def submit(self, file: str, label: BatchLabel) -> BatchState:
        """Have the file answered."""
        body = {
            "input_file_id": file,
            "endpoint": self._endpoint,
            "completion_window": self._window,
            "metadata": _metadata(label),
        }
        try:
            return _state(await self._rest.post_once("/batches", body, key=f"{label.run}-{label.part}"))
        except NotThere as error:
            if error.status == _CONFLICT:  # it has heard of this key before, and nobody knows what became of that
                raise ProviderError(str(error)) from None
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
            if error.status != _CONFLICT:  # it has ended already
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


def _keeps_marks(batches: dict[str, dict[str, Any]], sought: Sought) -> bool:
    """Whether another batch of this run still has a mark of it, so that one without any is not of this run."""
    if any(batch.get("input_file_id") in sought.other_files for batch in batches.values()):
        return True
    known = (batches[name].get("metadata") for name in sought.known & batches.keys())
    return any(isinstance(one, dict) and one.get("reward_kit_run") == sought.label.run for one in known)


def _whose(
    batch: dict[str, Any], sought: Sought, clock_ahead: float
) -> Literal["ours", "perhaps", "of another file", "another's"]:
    """Whose a batch is, by what the provider kept of what it was told."""
    if batch.get("id") in sought.known or batch.get("input_file_id") in sought.other_files:
        return "another's"
    metadata = batch.get("metadata")
    said = metadata if isinstance(metadata, dict) else {}
    wanted = _metadata(sought.label)
    same = {name: said[name] == value for name, value in wanted.items() if said.get(name) is not None}
    run, part = same.get("reward_kit_run"), same.get("reward_kit_part")
    file = batch.get("input_file_id")
    if (run is not False and file in sought.files) or (run and part):
        return "ours"
    if False in same.values() or not _may_be(_state(batch), sought, clock_ahead):
        return "another's"
    return "of another file" if isinstance(file, str) and file and not run else "perhaps"


def _may_be(batch: BatchState, sought: Sought, clock_ahead: float) -> bool:
    """Whether a batch's time and size speak against it; what is not known does not."""
    too_old = 0 < batch.created < sought.since + clock_ahead - _CLOCKS_DIFFER
    return not too_old and batch.total in {0, sought.requests}


def _id(reply: dict[str, Any]) -> str:
    found = reply.get("id")
    if not isinstance(found, str) or not found:
        raise ProviderError("The endpoint's reply names no id. Try again.")
    return found


def _state(batch: dict[str, Any]) -> BatchState:
    status = str(batch.get("status"))
    counts = batch.get("request_counts")
    counts = counts if isinstance(counts, dict) else {}
    errors = (batch.get("errors") or {}).get("data") or [] if isinstance(batch.get("errors"), dict) else []
    end = _ENDS.get(status)
    if end == "failed" and any(error.get("code") in _NO_ROOM for error in errors):
        end = "declined"
    words = mask("; ".join(str(error.get("message") or error.get("code")) for error in errors[:3]))
    outputs = (batch.get("output_file_id"), batch.get("error_file_id"))
    return BatchState(
        id=_id(batch),
        end=end,
        total=_count(counts.get("total")),
        answered=_count(counts.get("completed")),
        failed=_count(counts.get("failed")),
        words=f"{status}: {words}" if words else status,
        outputs=tuple(output for output in outputs if isinstance(output, str) and output),
        created=_time(batch.get("created_at")),
    )


def _count(value: object) -> int:
    """A number of requests; 0 where it says nothing."""
    return int(value) if str(value).isdecimal() else 0  # type: ignore[call-overload]


def _time(value: object) -> float:
    """A time in Unix seconds, which some providers write as a text; 0 where it says nothing."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except (ValueError, OverflowError):
        return 0.0
