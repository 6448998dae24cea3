# SPDX-License-Identifier: Apache-2.0
"""Fireworks' REST API on loopback: it keeps what it is given, checks every request, and fails where a test says so.

A request that the documentation does not allow (path, method, header, field, order) is answered with 400 and noted in
`faults`, so that a test fails even where the client under test would swallow the refusal.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import re
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

KEY = "fw_test_0123456789abcdef"
ACCOUNT = "acme"

Schema = Mapping[str, Any]
"""Field → its type, a nested schema, or a tuple of allowed values. A name that ends in `!` is required."""

_CRITERION: Schema = {
    "type!": ("CODE_SNIPPETS",),
    "name!": str,
    "description": str,
    "codeSnippets!": {"language!": ("python",), "fileContents!": dict, "entryFile!": str, "entryFunc!": str},
}
EVALUATOR: Schema = {
    "evaluatorId!": str,
    "evaluator!": {
        "displayName": str, "description": str, "entryPoint!": str, "requirements": str, "commitHash": str,
        "defaultDataset": str, "source": dict, "criteria": [_CRITERION],
    },
}  # fmt: skip
PREVIEW: Schema = {
    "evaluator!": {
        "displayName": str, "description": str, "multiMetrics!": bool, "criteria!": [_CRITERION], "requirements": str,
        "rollupSettings": {"skipRollup": bool},
    },
    "sampleData!": [str],
    "maxSamples!": int,
}  # fmt: skip
DATASET: Schema = {
    "datasetId!": str,
    "dataset!": {
        "displayName": str, "exampleCount!": str, "format!": ("CHAT", "COMPLETION", "RL"), "userUploaded": dict,
        "evalProtocol": dict,
    },
}  # fmt: skip
EVALUATION_JOB: Schema = {
    "evaluationJobId!": str,
    "evaluationJob!": {"evaluator!": str, "inputDataset!": str, "outputDataset!": str, "displayName": str},
}
TRAINING_JOB: Schema = {
    "dataset!": str, "evaluator!": str, "evaluationDataset": str, "displayName": str, "chunkSize": int,
    "maxConcurrentRollouts": int, "maxConcurrentEvaluations": int, "nodeCount": int, "wandbConfig": dict,
    "inferenceParameters": {
        "maxOutputTokens": int, "temperature": float, "topP": float, "topK": int, "responseCandidatesCount": int,
        "extraBody": str,
    },
    "trainingConfig!": {
        "baseModel": str, "warmStartFrom": str, "outputModel": str, "epochs": int, "learningRate": float,
        "loraRank": int, "maxContextLength": int, "batchSize": int,
    },
    "lossConfig": {"method": ("GRPO", "DAPO", "GSPO_TOKEN", "DPO", "ORPO"), "klBeta": float},
}  # fmt: skip
SECRET: Schema = {"name!": str, "keyName!": str, "value!": str}
UPLOAD: Schema = {"filenameToSize!": dict}


def problem(value: Any, schema: Any, place: str = "body") -> str | None:  # noqa: PLR0911 - one for each kind
    """What is wrong with a value; None where it is as documented."""
    if isinstance(schema, tuple):
        return None if value in schema else f"{place} is {value!r}, not one of {schema}"
    if isinstance(schema, list):
        if not isinstance(value, list):
            return f"{place} is no list"
        return next((told for one in value if (told := problem(one, schema[0], f"{place}[]"))), None)
    if isinstance(schema, type):
        kinds = (int, float) if schema is float else (schema,)
        is_bool = isinstance(value, bool) and schema is not bool
        return None if isinstance(value, kinds) and not is_bool else f"{place} is {type(value).__name__}"
    if not isinstance(value, dict):
        return f"{place} is no object"
    fields = {name.rstrip("!"): held for name, held in schema.items()}
    missing = [name.rstrip("!") for name in schema if name.endswith("!") and name.rstrip("!") not in value]
    if missing:
        return f"{place} lacks {missing}"
    if unknown := sorted(value.keys() - fields.keys()):
        return f"{place} has unknown fields {unknown}"
    return next(
        (told for name, held in value.items() if (told := problem(held, fields[name], f"{place}.{name}"))), None
    )


@dataclass
class Thing:
    """Something that was created."""

    fields: dict[str, Any]
    uploads: dict[str, bytes] = field(default_factory=dict)
    expected: dict[str, int] = field(default_factory=dict)
    asked: int = 0


class FakeFireworks:
    """The service. `fail(method, pattern)` answers the next matching request otherwise."""

    def __init__(self) -> None:
        self.things: dict[str, Thing] = {}
        self.secrets: dict[str, dict[str, str]] = {}
        self.requests: list[tuple[str, str]] = []
        self.faults: list[str] = []
        self.build_state = "ACTIVE"
        self.build_log = "Collecting reward-kit\nERROR: no such package\n"
        self.job_states = ["JOB_STATE_CREATING", "JOB_STATE_RUNNING", "JOB_STATE_COMPLETED"]
        self.url = ""
        self._failures: list[tuple[str, str, Callable[[], web.StreamResponse | None], bool]] = []

    def fail(self, method: str, pattern: str, status: int = 503, *, after: bool = False, **headers: str) -> None:
        """Answer the next request of that kind with a status; `after` it was carried out, as a lost answer would be."""
        name = {key.replace("_", "-"): value for key, value in headers.items()}
        self._failures.append(
            (
                method,
                pattern,
                lambda: web.json_response({"error": {"message": "told to"}}, status=status, headers=name),
                after,
            )
        )

    def lose(self, method: str, pattern: str, *, after: bool = False) -> None:
        """Cut the connection of the next request of that kind."""
        self._failures.append((method, pattern, lambda: None, after))

    # -- requests

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        self.requests.append((request.method, path))
        planned = next((one for one in self._failures if one[0] == request.method and re.search(one[1], path)), None)
        if planned is not None:
            self._failures.remove(planned)
            if planned[3]:
                await self._answer(request)
            answer = planned[2]()
            if answer is None:
                assert request.transport is not None
                request.transport.close()
                return web.Response()
            return answer
        return await self._answer(request)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._route(request)
        except _Refused as refused:
            if refused.status == 400:
                self.faults.append(f"{request.method} {request.path}: {refused}")
            return web.json_response(
                {"error": {"code": refused.status, "message": str(refused)}}, status=refused.status
            )

    async def _route(self, request: web.Request) -> web.StreamResponse:
        path, method = request.path, request.method
        if path.startswith("/signed/"):
            return await self._signed(request)
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            raise _Refused(401, "The API key is not valid")
        if path == "/verifyApiKey":
            return web.Response(headers={"x-fireworks-account-id": ACCOUNT})
        prefix = f"/v1/accounts/{ACCOUNT}/"
        if not path.startswith(prefix):
            raise _Refused(404, "no such path")
        rest = path.removeprefix(prefix)
        body = await _body(request)
        if method == "GET":
            return web.json_response(self._get(rest, request))
        if method == "DELETE":
            return web.json_response(self._delete(rest))
        if method == "PATCH" and rest.startswith("secrets/"):
            return web.json_response(self._patch_secret(rest, body))
        if method != "POST":
            raise _Refused(405, "no such method")
        return web.json_response(self._post(rest, body, request))

    def _get(self, rest: str, request: web.Request) -> dict[str, Any]:
        name, _, verb = rest.partition(":")
        if verb == "getBuildLogEndpoint":
            self._thing(name)
            return {"buildLogSignedUri": f"{self.url}/signed/log/{name}?sig=build"}
        if verb == "getExecutionLogEndpoint":
            self._thing(name)
            return {"executionLogSignedUri": f"{self.url}/signed/log/{name}?sig=run"}
        if rest == "secrets":
            names = sorted(self.secrets)
            start = int(request.query.get("pageToken", "0"))
            page: dict[str, Any] = {
                "secrets": [{"name": n, "keyName": self.secrets[n]["keyName"]} for n in names[start : start + 1]]
            }
            return page | ({"nextPageToken": str(start + 1)} if start + 1 < len(names) else {})
        if rest.startswith("secrets/"):
            full = f"accounts/{ACCOUNT}/{rest}"
            if full not in self.secrets:
                raise _Refused(404, "no such secret")
            return {"name": full, "keyName": self.secrets[full]["keyName"]}
        thing = self._thing(rest)
        self._advance(rest, thing)
        return {"name": f"accounts/{ACCOUNT}/{rest}", **thing.fields}

    def _advance(self, rest: str, thing: Thing) -> None:
        """Time goes by: each question finds a build or a job a little further."""
        thing.asked += 1
        kind = rest.partition("/")[0]
        if kind == "evaluators" and thing.fields["state"] == "BUILDING" and thing.asked > 1:
            thing.fields["state"] = self.build_state
            if self.build_state != "ACTIVE":
                thing.fields["status"] = {"code": "INTERNAL", "message": "the build ended with 1"}
        if kind.endswith("Jobs") and thing.fields["state"] in self.job_states:
            here = self.job_states.index(thing.fields["state"])
            thing.fields["state"] = self.job_states[min(here + 1, len(self.job_states) - 1)]
            if thing.fields["state"] == "JOB_STATE_FAILED":
                thing.fields["status"] = {"code": "INTERNAL", "message": "out of quota"}

    def _delete(self, rest: str) -> dict[str, Any]:
        if rest.startswith("secrets/"):
            if self.secrets.pop(f"accounts/{ACCOUNT}/{rest}", None) is None:
                raise _Refused(404, "no such secret")
            return {}
        self._thing(rest)
        del self.things[rest]
        return {}

    def _patch_secret(self, rest: str, body: Any) -> dict[str, Any]:
        full = f"accounts/{ACCOUNT}/{rest}"
        self._check(body, {"keyName!": str, "value!": str})
        if full not in self.secrets:
            raise _Refused(404, "no such secret")
        self.secrets[full] = {"keyName": body["keyName"], "value": body["value"]}
        return {}

    def _post(self, rest: str, body: Any, request: web.Request) -> dict[str, Any]:
        name, _, verb = rest.partition(":")
        if (made := self._makers().get(rest)) is not None:
            schema, make = made
            self._check(body, schema)
            return make(body, request)
        match verb:
            case "getUploadEndpoint":
                return self._upload_endpoint(name, body)
            case "validateUpload":
                return self._validate(name)
            case "cancel":
                self._thing(name).fields["state"] = "JOB_STATE_CANCELLED"
                return {}
        raise _Refused(404, f"no such path: {rest}")

    def _makers(self) -> dict[str, tuple[Schema, Callable[[Any, web.Request], dict[str, Any]]]]:
        return {
            "evaluatorsV2": (EVALUATOR, self._make_evaluator),
            "evaluators:previewEvaluator": (PREVIEW, self._preview),
            "datasets": (DATASET, self._make_dataset),
            "evaluationJobs": (EVALUATION_JOB, self._make_evaluation),
            "reinforcementFineTuningJobs": (TRAINING_JOB, self._make_training),
            "secrets": (SECRET, self._make_secret),
        }

    def _make_evaluator(self, body: Any, _: web.Request) -> dict[str, Any]:
        if "::" not in body["evaluator"]["entryPoint"]:
            raise _Refused(400, "entryPoint is FILE::FUNCTION")
        return self._create(f"evaluators/{body['evaluatorId']}", {**body["evaluator"], "state": "CREATING"})

    def _preview(self, body: Any, _: web.Request) -> dict[str, Any]:
        results = [{"success": True, "score": 0.25, "perMetricEvals": {"words": 0.25}} for _ in body["sampleData"]]
        return {"results": results, "totalSamples": len(results), "totalRuntimeMs": 7}

    def _make_dataset(self, body: Any, _: web.Request) -> dict[str, Any]:
        return self._create(f"datasets/{body['datasetId']}", {**body["dataset"], "state": "UPLOADING"})

    def _make_evaluation(self, body: Any, _: web.Request) -> dict[str, Any]:
        job = body["evaluationJob"]
        self._known(job["evaluator"], "ACTIVE")
        self._known(job["inputDataset"], "READY")
        return self._create(f"evaluationJobs/{body['evaluationJobId']}", {**job, "state": self.job_states[0]})

    def _make_training(self, body: Any, request: web.Request) -> dict[str, Any]:
        self._known(body["evaluator"], "ACTIVE")
        self._known(body["dataset"], "READY")
        job = request.query["reinforcementFineTuningJobId"]
        return self._create(f"reinforcementFineTuningJobs/{job}", {**body, "state": self.job_states[0]})

    def _make_secret(self, body: Any, _: web.Request) -> dict[str, Any]:
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", body["keyName"]):
            raise _Refused(400, "keyName is UPPER_SNAKE")
        if body["name"] in self.secrets:
            raise _Refused(409, "exists")
        self.secrets[body["name"]] = {"keyName": body["keyName"], "value": body["value"]}
        return {"name": body["name"]}

    def _create(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        if name in self.things:
            raise _Refused(409, f"{name} exists")
        self.things[name] = Thing(fields)
        return {"name": f"accounts/{ACCOUNT}/{name}", **fields}

    def _upload_endpoint(self, name: str, body: Any) -> dict[str, Any]:
        self._check(body, UPLOAD)
        thing = self._thing(name)
        for filename, size in body["filenameToSize"].items():
            if not isinstance(size, str) or not size.isdigit():
                raise _Refused(400, "a size is a text of digits")
            thing.expected[filename] = int(size)
        return {
            "filenameToSignedUrls": {
                filename: f"{self.url}/signed/put/{name}/{filename}?sig=abc" for filename in body["filenameToSize"]
            }
        }

    def _validate(self, name: str) -> dict[str, Any]:
        thing = self._thing(name)
        if not thing.expected or any(filename not in thing.uploads for filename in thing.expected):
            raise _Refused(400, "validateUpload before the upload")
        if name.startswith("evaluators/"):
            self._check_archive(thing)
        thing.fields["state"] = "BUILDING" if name.startswith("evaluators/") else "READY"
        thing.asked = 0
        return {}

    def _check_archive(self, thing: Thing) -> None:
        files = unpacked(next(iter(thing.uploads.values())))
        entry = thing.fields["entryPoint"].partition("::")[0]
        if entry not in files or "requirements.txt" not in files:
            raise _Refused(400, f"the archive lacks {entry} or requirements.txt: {sorted(files)}")

    async def _signed(self, request: web.Request) -> web.StreamResponse:
        if "Authorization" in request.headers:
            self.faults.append(f"{request.path}: the key was sent to a signed address")
        if "sig" not in request.query:
            raise _Refused(403, "no signature")
        parts = request.path.split("/")
        if parts[2] == "log":
            return web.Response(text=self.build_log)
        name, filename = "/".join(parts[3:-1]), parts[-1]
        thing = self._thing(name)
        content = await request.read()
        span = f"{len(content)},{len(content)}"
        if request.method != "PUT" or request.headers.get("X-Goog-Content-Length-Range") != span:
            raise _Refused(400, "PUT with X-Goog-Content-Length-Range: N,N")
        if request.headers.get("Content-Type") != "application/octet-stream" or request.content_length is None:
            raise _Refused(400, "the type is application/octet-stream, and the length is told")
        if thing.expected.get(filename) != len(content):
            raise _Refused(400, "not the size that was announced")
        thing.uploads[filename] = content
        return web.Response()

    def _check(self, body: Any, schema: Schema) -> None:
        if (told := problem(body, schema)) is not None:
            raise _Refused(400, told)

    def _thing(self, name: str) -> Thing:
        if name not in self.things:
            raise _Refused(404, f"no {name}")
        return self.things[name]

    def _known(self, name: str, state: str) -> None:
        thing = self.things.get(name.removeprefix(f"accounts/{ACCOUNT}/"))
        if thing is None or thing.fields["state"] != state:
            raise _Refused(400, f"{name} is not {state}")


class _Refused(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


async def _body(request: web.Request) -> Any:
    if request.method not in ("POST", "PATCH"):
        return None
    if request.headers.get("Content-Type") != "application/json":
        raise _Refused(400, "Content-Type is application/json")
    try:
        return json.loads(await request.read())
    except ValueError:
        raise _Refused(400, "the body is no JSON") from None


def unpacked(archive: bytes) -> dict[str, bytes]:
    """The files in a tar.gz."""
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(archive))) as files:
        return {one.name: files.extractfile(one).read() for one in files if one.isfile()}  # type: ignore[union-attr]


@contextmanager
def fake_fireworks() -> Iterator[FakeFireworks]:
    """Serve until the block ends. Faults found in requests fail the test that made them."""
    fake = FakeFireworks()
    started = threading.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{rest:.*}", fake.handle)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        fake.url = f"http://127.0.0.1:{port}"
        started.set()
        try:
            await leave.wait()
        finally:
            await runner.cleanup()

    leave = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), name="fake fireworks", daemon=True)
    thread.start()
    assert started.wait(30)
    try:
        yield fake
    finally:
        loop.call_soon_threadsafe(leave.set)
        thread.join(30)
        loop.close()
    assert not fake.faults, fake.faults
