# SPDX-License-Identifier: Apache-2.0
"""S3 on this machine: moto's server over real HTTP, and a proxy in front of it that can fail in every way."""

from __future__ import annotations

import http.client
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ACCESS_KEY, SECRET = "AKIAIOSFODNN7TESTING", "a-secret-that-must-not-be-found-9f8e7d6c5b4a"


@dataclass(frozen=True)
class Fault:
    """What happens to one request."""

    status: int | None = None
    """Answer with this, and do not ask the store."""
    code: str = "ServiceUnavailable"
    """What S3 would call it."""
    upload: float | None = None
    """Hang up after this share of the request's body, before the store has seen any of it."""
    lost_answer: bool = False
    """Let the store do it, and hang up instead of answering."""
    download: float | None = None
    """Hang up after this share of the answer's body."""
    slow: float = 0.0
    """Seconds before anything happens."""


@dataclass(frozen=True)
class Request:
    """A request as the proxy sees it."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]


React = Callable[[Request], Fault | None]


@dataclass
class ObjectStore:
    """The server behind the proxy, and a bucket of it."""

    endpoint: str
    direct: str
    bucket: str = ""
    requests: list[Request] = field(default_factory=list)
    react: React = lambda _: None

    @property
    def environment(self) -> dict[str, str]:
        """What programs need to find it, as they would find S3."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_MAX_ATTEMPTS": "1",  # so that our own retries are what is tried
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def new_bucket(self) -> str:
        """Make a bucket for one test; its address."""
        self.bucket = f"bucket-{uuid.uuid4().hex[:12]}"
        self.client.create_bucket(Bucket=self.bucket)
        self.requests.clear()
        self.react = lambda _: None
        return f"s3://{self.bucket}"

    @property
    def client(self) -> Any:
        """boto3's own client, past the proxy."""
        import boto3

        return boto3.client(
            "s3", endpoint_url=self.direct, aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )  # fmt: skip

    def put(self, key: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.bucket, Key=key, Body=data)

    def get(self, key: str) -> bytes:
        data: bytes = self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return data

    def keys(self, prefix: str = "") -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Serve until the block ends."""
    from moto.server import ThreadedMotoServer

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    direct = f"http://127.0.0.1:{port}"
    try:
        with _proxy(port) as (proxy_port, made):
            made.append(ObjectStore(f"http://127.0.0.1:{proxy_port}", direct))
            yield made[0]
    finally:
        server.stop()


@contextmanager
def environment(store: ObjectStore) -> Iterator[None]:
    """This process finds the store, as well as those it starts."""
    before = dict(os.environ)
    os.environ.update(store.environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _proxy(upstream: int) -> Iterator[tuple[int, list[ObjectStore]]]:  # noqa: C901 - a server in one piece
    made: list[ObjectStore] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def _any(self) -> None:
            store = made[0]
            with lock:
                request = Request(len(store.requests) + 1, self.command, self.path, dict(self.headers))
                store.requests.append(request)
            fault = store.react(request) or Fault()
            if fault.slow:
                threading.Event().wait(fault.slow)
            body = self._body(fault.upload)
            if body is None:
                self._hang_up()
                return
            if fault.status is not None:
                self._refuse(fault)
                return
            self._pass_on(body, fault)

        def _body(self, share: float | None) -> bytes | None:
            length = int(self.headers.get("Content-Length") or 0)
            if share is not None and length:
                self.rfile.read(int(length * share))
                return None
            return self.rfile.read(length)

        def _hang_up(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def _refuse(self, fault: Fault) -> None:
            text = f"<Error><Code>{fault.code}</Code><Message>as the test wants it</Message></Error>".encode()
            self.send_response(fault.status or 503)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        def _pass_on(self, body: bytes, fault: Fault) -> None:
            there = http.client.HTTPConnection("127.0.0.1", upstream, timeout=60)
            try:
                there.request(self.command, self.path, body, dict(self.headers))
                answer = there.getresponse()
                content = answer.read()
                if fault.lost_answer:
                    self._hang_up()
                    return
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(name, value)
                told = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
                self.send_header("Content-Length", told or "0")
                self.end_headers()
                if fault.download is not None and content:
                    self.wfile.write(content[: int(len(content) * fault.download)])
                    self.wfile.flush()
                    self._hang_up()
                    return
                self.wfile.write(content)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            finally:
                there.close()

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _any

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that was killed is no error of the server."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="proxy", daemon=True)
    thread.start()
    try:
        yield server.server_address[1], made
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
