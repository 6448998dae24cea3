# SPDX-License-Identifier: Apache-2.0
"""Lambda's Runtime API on this machine: the interface that the real runtime client asks for events.

GET  /2018-06-01/runtime/invocation/next            the next event, or nothing for as long as there is none
POST /2018-06-01/runtime/invocation/ID/response     what the handler returned
POST /2018-06-01/runtime/invocation/ID/error        what it raised
POST /2018-06-01/runtime/init/error                 what importing it raised
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class RuntimeApi:
    """One instance of a function: the packed zip, unpacked, under the real runtime client."""

    def __init__(self, packed: Path, folder: Path, handler: str, variables: dict[str, str]) -> None:
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(folder)
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)  # as Lambda has it: read-only
        self._events: queue.Queue[Any] = queue.Queue()
        self._answers: queue.Queue[Any] = queue.Queue()
        self._number = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self._log = (folder.parent / "runtime.log").open("wb")
        self._process = self._start(folder, handler, variables)

    def _start(self, folder: Path, handler: str, variables: dict[str, str]) -> subprocess.Popen[bytes]:
        """The runtime client comes from Lambda's own image, and so do boto3 and what these need: from this one."""
        site = [path for path in sys.path if path.endswith("site-packages")]
        runtime = (
            "import sys, importlib.util\n"
            f"sys.path[:] = [{str(folder)!r}, *[p for p in sys.path if 'site-packages' not in p], *{site!r}]\n"
            f"sys.argv = ['bootstrap', {handler!r}]\n"
            "sys.path = [p for p in sys.path if p not in ('', '.')]\n"
            "from awslambdaric.__main__ import main\n"
            "main(sys.argv)\n"
        )
        port = self._server.server_address[1]
        environment = {
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{port}", "LAMBDA_TASK_ROOT": str(folder), "_HANDLER": handler,
            "AWS_LAMBDA_FUNCTION_NAME": "f", "AWS_LAMBDA_FUNCTION_VERSION": "1", "HOME": "/tmp",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512", "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1",
            **variables,
        }  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-P", "-S", "-c", runtime], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=self._log, stderr=self._log, start_new_session=True,
        )  # fmt: skip

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                number, event = api._events.get()
                body = json.dumps(event).encode()
                self.send_response(200)
                for name, value in {
                    "Lambda-Runtime-Aws-Request-Id": str(number), "Lambda-Runtime-Deadline-Ms": "99999999999999",
                    "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:x:1:function:f",
                    "Content-Type": "application/json", "Content-Length": str(len(body)),
                }.items():  # fmt: skip
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if not self.headers.get("Content-Length"):
                    body = read_chunks(self.rfile)
                kind = "response" if self.path.endswith("/response") else "error"
                api._answers.put((kind, json.loads(body)))
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def invoke(self, event: dict[str, Any], seconds: float = 100) -> Any:
        """What the function answers."""
        self._number += 1
        self._events.put((self._number, event))
        try:
            kind, answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"no answer; it says: {self.log()}") from None
        assert kind == "response", f"{answer}: {self.log()}"
        return answer

    def log(self) -> str:
        """What the function has printed."""
        return Path(self._log.name).read_text(errors="replace")[-3000:]

    def close(self) -> None:
        """End the instance."""
        import signal

        for _ in range(2):
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                break
        self._process.wait()
        self._server.shutdown()
        self._server.server_close()
        self._log.close()


def read_chunks(stream: Any) -> bytes:
    parts = []
    while size := int(stream.readline().strip() or b"0", 16):
        parts.append(stream.read(size))
        stream.readline()
    return b"".join(parts)


def http_event(path: str, body: Any = None, method: str = "POST", **headers: str) -> dict[str, Any]:
    """What a function URL makes of a request (payload format 2.0)."""
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "host": "x.lambda-url.on.aws", **headers},
        "requestContext": {"http": {"method": method, "path": path, "sourceIp": "192.0.2.1"}, "requestId": "r"},
        "body": body if isinstance(body, str) or body is None else json.dumps(body),
        "isBase64Encoded": False,
    }
