# SPDX-License-Identifier: Apache-2.0
"""A provider of batches on this machine, as OpenAI and Fireworks document theirs, that can fail at every step.

Every request is checked as strictly as the documentation allows; what is wrong with one is kept in `complaints`, which
a test expects to be empty. Lines are answered as `tests.loopback.endpoint.honest` answers online, so that a run by
batches and one online come to the same.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from tests.generation.responses_endpoint import response, said
from tests.loopback.endpoint import prompt_of, text_for

KEY = "sk-test-batches-0123456789abcdef"
ENDPOINT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
ACCOUNT = "me"
FAULT = web.RequestKey("fault", str)
"""What goes wrong with a request."""

Fate = Callable[[dict[str, Any], int], Any]
"""What becomes of a request's body, at its first, second … time: "answer", "lose", "twice", "expire", or the status and
the error of a refusal."""


@dataclass
class Batch:
    id: str
    input: str
    metadata: dict[str, str]
    lines: list[dict[str, Any]]
    made: float
    polls: int = 0
    end: str = "completed"
    reason: str = ""
    cancelled: bool = False
    output: str | None = None
    errors: str | None = None


@dataclass
class Provider:
    """The state of the provider, and how it behaves."""

    endpoint: str = ENDPOINT
    """What its lines are requests to."""
    fate: Fate = lambda body, times: "answer"
    """Of each line."""
    reply: Callable[[dict[str, Any]], Any] = lambda body: completion(body)  # noqa: PLW0108 - it is defined below
    """What is answered to a line, as the body of a 200."""
    end: Callable[[int], str] = lambda number: "completed"
    """Of the first, second … batch: completed, expired, failed, declined."""
    faults: dict[str, list[str]] = field(default_factory=dict)
    """By step (upload, create, list, state, content), what goes wrong at its next calls: before, after, 429, 500, cut,
    hang; "" for nothing."""
    chance: Callable[[str], str] = lambda step: ""
    """What goes wrong where `faults` says nothing."""
    polls: int = 1
    """Looks at a batch before it has ended."""
    page: int = 100
    most_lines: int = 50_000
    most_bytes: int = 200_000_000
    seed: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, Batch] = field(default_factory=dict)
    datasets: dict[str, dict[str, Any]] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    answered: Counter[tuple[str, Any]] = field(default_factory=Counter)
    """Prompts and seeds of lines that were answered, and would have been paid for."""
    asked: Counter[tuple[str, Any]] = field(default_factory=Counter)
    """The same of all lines of batches that were made."""
    online: list[dict[str, Any]] = field(default_factory=list)
    on_step: Callable[[str], None] = lambda step: None
    """Told of each step before it is answered, and of one that makes something (`create done`) after it was done."""
    tells: Callable[[dict[str, Any]], dict[str, Any]] = lambda batch: batch
    """What it keeps of a batch that it is asked about, and adds to it."""
    lists_late: float = 0.0
    """Seconds until a batch is in the list."""
    base: str = ""

    # -- faults

    async def _fault(self, request: web.Request, step: str, moment: str) -> web.Response | None:
        """Go wrong, where it is time to."""
        if moment == "before":
            self.on_step(step)
            queue = self.faults.get(step, [])
            request[FAULT] = queue.pop(0) if queue else self.chance(step)
        else:
            self.on_step(f"{step} done")
        fault = request[FAULT]
        if fault == moment:
            request.transport.close()  # type: ignore[union-attr]
            raise asyncio.CancelledError
        if moment == "before" and fault == "hang":
            await asyncio.sleep(3600)
        if moment == "before" and fault.isdigit():
            return _error(int(fault), "try again", headers={"Retry-After": "0"} if fault == "429" else {})
        if moment == "after" and fault == "500 after":
            return _error(500, "it was heard all the same")
        return None

    def _authorised(self, request: web.Request) -> web.Response | None:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return _error(401, "no such key")
        return None

    def _complain(self, what: str) -> web.Response:
        self.complaints.append(what)
        return _error(400, what)

    # -- OpenAI

    async def upload(self, request: web.Request) -> web.Response:
        if refused := self._authorised(request) or await self._fault(request, "upload", "before"):
            return refused
        if not request.content_type.startswith("multipart/form-data"):
            return self._complain(f"upload as {request.content_type}")
        form = await request.post()
        content = form.get("file")
        if form.get("purpose") != "batch" or not isinstance(content, web.FileField):
            return self._complain(f"upload with the fields {sorted(form)}")
        with content.file as file:
            data = file.read()
        if problem := self._problem(data):
            return self._complain(problem)
        name = f"file-{len(self.files)}"
        self.files[name] = data
        return await self._fault(request, "upload", "after") or web.json_response(
            {"id": name, "object": "file", "bytes": len(data), "purpose": "batch", "filename": content.filename}
        )

    def _problem(self, data: bytes, *, openai: bool = True) -> str | None:  # noqa: PLR0911 - one for each rule
        """What the documentation has against a file of requests."""
        if len(data) > self.most_bytes:
            return f"a file of {len(data)} bytes"
        if not data.endswith(b"\n"):
            return "a file whose last line is not whole"
        lines = [orjson.loads(line) for line in data.splitlines()]
        if not 0 < len(lines) <= self.most_lines:
            return f"a file of {len(lines)} lines"
        keys = {"custom_id", "method", "url", "body"} if openai else {"custom_id", "body"}
        ids = Counter(line.get("custom_id") for line in lines)
        if most := [name for name, count in ids.items() if count > 1 or not isinstance(name, str) or len(name) > 64]:
            return f"custom ids {most[:3]}"
        for line in lines:
            body = line.get("body")
            if set(line) != keys or not isinstance(body, dict) or not isinstance(_turns(body), list):
                return f"a line {line}"
            if openai and (line["method"] != "POST" or line["url"] != self.endpoint or "model" not in body):
                return f"a line {line}"
            if "n" in body or "stream" in body or ("model" in body) != openai:
                return f"a body {body}"
        if openai and len({line["body"]["model"] for line in lines}) != 1:
            return "several models in a file"
        return None

    async def create(self, request: web.Request) -> web.Response:
        if refused := self._authorised(request) or await self._fault(request, "create", "before"):
            return refused
        given = await request.json()
        metadata = given.get("metadata") or {}
        if set(given) - {"input_file_id", "endpoint", "completion_window", "metadata"}:
            return self._complain(f"a batch with {sorted(given)}")
        if given.get("endpoint") != self.endpoint or given.get("completion_window") != "24h":
            return self._complain(f"a batch {given}")
        if not all(isinstance(value, str) and len(value) <= 512 for value in metadata.values()) or len(metadata) > 16:
            return self._complain(f"metadata {metadata}")
        if given.get("input_file_id") not in self.files:
            return _error(400, f"No such file {given.get('input_file_id')!r}", code="invalid_request_error")
        batch = self._make(f"batch_{len(self.batches)}", given["input_file_id"], metadata)
        return await self._fault(request, "create", "after") or web.json_response(self._as_openai(batch))

    def _make(self, name: str, file: str, metadata: dict[str, str]) -> Batch:
        lines = [orjson.loads(line) for line in self.files[file].splitlines()]
        batch = Batch(name, file, metadata, lines, made=time.time())
        batch.end = self.end(len(self.batches))
        if batch.end not in {"failed", "declined"}:
            self.asked.update((prompt_of(line["body"]), line["body"].get("seed")) for line in lines)
        self.batches[name] = batch
        return batch

    def _as_openai(self, batch: Batch) -> dict[str, Any]:
        over = batch.output is not None or batch.errors is not None or batch.polls >= self.polls
        status = ("validating", "in_progress", "finalizing")[min(batch.polls, 2)]
        errors = None
        if batch.cancelled:
            status = "cancelled"
        elif over:
            status = "failed" if batch.end == "declined" else batch.end
        if over and batch.end in {"failed", "declined"}:
            code = "token_limit_exceeded" if batch.end == "declined" else "invalid_json_line"
            errors = {"object": "list", "data": [{"code": code, "message": "that will not do", "line": None}]}
        ended = status in {"completed", "expired", "cancelled"}
        if ended:
            self._answer(batch)
        return self.tells({
            "id": batch.id, "object": "batch", "endpoint": self.endpoint, "errors": errors,
            "input_file_id": batch.input, "completion_window": "24h", "status": status,
            "created_at": batch.made, "metadata": batch.metadata,
            "output_file_id": batch.output if ended else None, "error_file_id": batch.errors if ended else None,
            "request_counts": {"total": len(batch.lines), "completed": 0, "failed": 0},
        })  # fmt: skip

    async def listing(self, request: web.Request) -> web.Response:
        if refused := self._authorised(request) or await self._fault(request, "list", "before"):
            return refused
        listed = [name for name, batch in self.batches.items() if batch.made + self.lists_late <= time.time()]
        names = sorted(listed, key=lambda name: self.batches[name].made, reverse=True)
        after = request.query.get("after")
        start = names.index(after) + 1 if after else 0
        page = names[start : start + min(self.page, int(request.query.get("limit", "20")))]
        more = start + len(page) < len(names)
        data = [self._as_openai(self.batches[name]) for name in page]
        return web.json_response(
            {"object": "list", "data": data, "has_more": more, "last_id": page[-1] if page else None}
        )

    async def state(self, request: web.Request) -> web.Response:
        if refused := self._authorised(request) or await self._fault(request, "state", "before"):
            return refused
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return _error(404, "no such batch")
        batch.polls += 1
        return web.json_response(self._as_openai(batch))

    async def cancel(self, request: web.Request) -> web.Response:
        if refused := self._authorised(request):
            return refused
        batch = self.batches[request.match_info["id"]]
        if batch.output is not None:
            return _error(409, "it has ended")
        batch.cancelled = True
        return web.json_response(self._as_openai(batch))

    async def content(self, request: web.Request) -> web.StreamResponse:
        if refused := self._authorised(request) or await self._fault(request, "content", "before"):
            return refused
        data = self.files.get(request.match_info["id"])
        if data is None:
            return _error(404, "no such file")
        return await self._sent(request, data)

    async def _sent(self, request: web.Request, data: bytes) -> web.StreamResponse:
        if request[FAULT] != "cut":
            return web.Response(body=data)
        response = web.StreamResponse(headers={"Content-Length": str(len(data))})
        await response.prepare(request)
        await response.write(data[: len(data) // 2])
        request.transport.close()  # type: ignore[union-attr]
        return response

    # -- answers

    def _answer(self, batch: Batch) -> None:
        """Deal with the lines, once, in an order of the provider's own."""
        if batch.output is not None:
            return
        chance = random.Random(f"{self.seed}|{batch.id}")
        lines = list(batch.lines)
        chance.shuffle(lines)
        good, bad = [], []
        for number, line in enumerate(lines):
            body = line["body"]
            key = (prompt_of(body), body.get("seed"))
            times = self.answered[key] + 1
            fate = self.fate(body, times)
            half_done = (batch.end == "expired" or batch.cancelled) and number >= len(lines) // 2
            if half_done or fate == "expire":
                code = "batch_cancelled" if batch.cancelled else "batch_expired"
                error = {"code": code, "message": "This request could not be executed in time."}
                bad.append({"id": f"r{number}", "custom_id": line["custom_id"], "response": None, "error": error})
            elif isinstance(fate, tuple):
                status, error = fate
                response = {"status_code": status, "request_id": "q", "body": {"error": error}}
                bad.append({"id": f"r{number}", "custom_id": line["custom_id"], "response": response, "error": None})
            elif fate != "lose":
                response = {"status_code": 200, "request_id": "q", "body": self.reply(body)}
                entry = {"id": f"r{number}", "custom_id": line["custom_id"], "response": response, "error": None}
                good += [entry] * (2 if fate == "twice" else 1)
            self.answered[key] += fate in ("answer", "twice") and not half_done
        batch.output, batch.errors = f"{batch.id}-output", f"{batch.id}-errors"
        self.files[batch.output] = b"".join(orjson.dumps(line) + b"\n" for line in good)
        self.files[batch.errors] = b"".join(orjson.dumps(line) + b"\n" for line in bad)

    async def chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.online.append(body)
        return web.json_response(completion(body))

    # -- Fireworks

    async def make_dataset(self, request: web.Request) -> web.Response:
        if refused := self._authorised(request) or await self._fault(request, "upload", "before"):
            return refused
        given = await request.json()
        name, dataset = given.get("datasetId"), given.get("dataset")
        if not name or not isinstance(dataset, dict) or not str(dataset.get("exampleCount")).isdigit():
            return self._complain(f"a dataset {given}")
        if name in self.datasets:
            return _error(409, "it exists")
        self.datasets[name] = {"name": f"accounts/{ACCOUNT}/datasets/{name}", "state": "UPLOADING", **dataset}
        return web.json_response(self.datasets[name])

    async def fill_dataset(self, request: web.Request) -> web.Response:
        if refused := self._authorised(request) or await self._fault(request, "fill", "before"):
            return refused
        name = request.match_info["id"]
        content = (await request.post()).get("file")
        if name not in self.datasets or not isinstance(content, web.FileField):
            return self._complain(f"an upload to {name}")
        with content.file as file:
            data = file.read()
        if problem := self._problem(data, openai=False):
            return self._complain(problem)
        if data.count(b"\n") != int(self.datasets[name]["exampleCount"]):
            return self._complain("a dataset of another size")
        self.files[name] = data
        self.datasets[name]["state"] = "READY"
        return await self._fault(request, "fill", "after") or web.json_response({})

    async def dataset(self, request: web.Request) -> web.Response:
        known = self.datasets.get(request.match_info["id"])
        return _error(404, "no such dataset") if known is None else web.json_response(known)

    async def make_job(self, request: web.Request) -> web.Response:
        if refused := self._authorised(request) or await self._fault(request, "create", "before"):
            return refused
        given, name = await request.json(), request.query.get("batchInferenceJobId", "")
        dataset = str(given.get("inputDatasetId")).rpartition("/")[2]
        if set(given) != {"displayName", "model", "inputDatasetId", "outputDatasetId"} or not name:
            return self._complain(f"a job {given}")
        if not given["model"].startswith("accounts/") or name != name.lower() or len(name) > 63:
            return self._complain(f"a job {name} {given}")
        if name in self.batches:
            return _error(409, "it exists")
        if self.datasets.get(dataset, {}).get("state") != "READY":
            return self._complain(f"a job over {dataset}")
        batch = self._make(name, dataset, {"output": given["outputDatasetId"]})
        return await self._fault(request, "create", "after") or web.json_response(self._as_fireworks(batch))

    def _as_fireworks(self, batch: Batch) -> dict[str, Any]:
        over = batch.polls >= self.polls
        state = "CANCELLED" if batch.cancelled else batch.end.upper() if over else "RUNNING"
        if over or batch.cancelled:
            self._answer(batch)
        return {
            "name": f"accounts/{ACCOUNT}/batchInferenceJobs/{batch.id}", "state": f"JOB_STATE_{state}",
            "outputDatasetId": batch.metadata["output"],
            "jobProgress": {"totalInputRequests": len(batch.lines), "successfullyProcessedRequests": 0},
        }  # fmt: skip

    async def job(self, request: web.Request) -> web.Response:
        if refused := self._authorised(request) or await self._fault(request, "state", "before"):
            return refused
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return _error(404, "no such job")
        batch.polls += 1
        return web.json_response(self._as_fireworks(batch))

    async def download(self, request: web.Request) -> web.Response:
        if refused := self._authorised(request):
            return refused
        wanted = request.match_info["id"]
        batch = next(one for one in self.batches.values() if one.metadata["output"].endswith(f"/{wanted}"))
        names = {"BIJOutputSet.jsonl": batch.output, "error-data.jsonl": batch.errors}
        return web.json_response(
            {"filenameToSignedUrls": {name: f"{self.base}/signed/{file}" for name, file in names.items()}}
        )

    async def signed(self, request: web.Request) -> web.StreamResponse:
        if "Authorization" in request.headers:
            return self._complain("the key, sent to a signed address")
        if refused := await self._fault(request, "content", "before"):
            return refused
        # Fireworks tells the completion without a status around it; a last line may lack its end.
        lines = []
        for line in map(orjson.loads, self.files[request.match_info["id"]].splitlines()):
            response = line["response"]
            whole = response is not None and response["status_code"] == 200
            lines.append(orjson.dumps({**line, "response": response["body"] if whole else response}))
        return await self._sent(request, b"\n".join(lines))

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 30)
        jobs, sets = f"/v1/accounts/{ACCOUNT}/batchInferenceJobs", f"/v1/accounts/{ACCOUNT}/datasets"
        app.add_routes([
            web.post("/v1/files", self.upload), web.get("/v1/files/{id}/content", self.content),
            web.post("/v1/batches", self.create), web.get("/v1/batches", self.listing),
            web.get("/v1/batches/{id}", self.state), web.post("/v1/batches/{id}/cancel", self.cancel),
            web.post(ENDPOINT, self.chat), web.post(RESPONSES, self.chat), web.get("/signed/{id}", self.signed),
            web.post(sets, self.make_dataset), web.post(sets + "/{id}:upload", self.fill_dataset),
            web.get(sets + "/{id}:getDownloadEndpoint", self.download), web.get(sets + "/{id}", self.dataset),
            web.post(jobs, self.make_job), web.get(jobs + "/{id}", self.job),
        ])  # fmt: skip
        return app


def _turns(body: dict[str, Any]) -> Any:
    return body.get("messages", body.get("input"))


def completion(body: dict[str, Any]) -> dict[str, Any]:
    """What the honest model answers to a body, as a reply."""
    if "input" in body:
        reply: dict[str, Any] = response(said(text_for(body)), output_tokens=20).body
        return reply
    choices = [
        {"index": i, "message": {"role": "assistant", "content": text_for(body, i)}, "finish_reason": "stop"}
        for i in range(body.get("n", 1))
    ]
    usage = {"prompt_tokens": 10, "completion_tokens": 20 * len(choices)}
    return {"id": "c", "object": "chat.completion", "model": body.get("model", "m"), "choices": choices, "usage": usage}


def _error(status: int, message: str, *, code: str = "", headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"error": {"message": message, "code": code}}, status=status, headers=headers)


@contextmanager
def serving(provider: Provider) -> Iterator[str]:
    """Serve in a thread until the block ends; the address of the API."""
    ready: list[Any] = []
    started = threading.Event()

    async def serve() -> None:
        runner = web.AppRunner(provider.app(), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        leave = asyncio.Event()
        provider.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.append((asyncio.get_running_loop(), leave))
        started.set()
        await leave.wait()
        await runner.cleanup()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield f"{provider.base}/v1"
    finally:
        loop, leave = ready[0]
        loop.call_soon_threadsafe(leave.set)
        thread.join(10)
