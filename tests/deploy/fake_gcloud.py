# SPDX-License-Identifier: Apache-2.0
"""A `gcloud` that checks every argument, remembers what it was asked, and keeps what exists in a file.

Its Cloud Build copies the folder that it is given; its Cloud Run starts `reward-kit serve` from that copy, with the
secrets in its environment, and answers with the address. Each entry of `fail` is (how many calls before, a pattern,
what to say): `KILL` instead of words ends who has called, as a kill -9 between two steps would.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NoReturn

WORLD = Path(os.environ["FAKE_GCLOUD"])
ALWAYS = {"--project", "--quiet"}
COMMANDS: dict[str, set[str]] = {
    "artifacts repositories describe": {"--location"},
    "artifacts repositories create": {"--location", "--repository-format"},
    "artifacts docker images describe": set(),
    "artifacts docker images delete": {"--delete-tags"},
    "builds submit": {"--tag"},
    "iam service-accounts describe": set(),
    "iam service-accounts create": {"--display-name"},
    "iam service-accounts delete": set(),
    "secrets describe": set(),
    "secrets create": {"--replication-policy", "--labels"},
    "secrets delete": set(),
    "secrets list": {"--filter", "--format"},
    "secrets versions add": {"--data-file"},
    "secrets versions access": {"--secret"},
    "secrets add-iam-policy-binding": {"--member", "--role"},
    "secrets remove-iam-policy-binding": {"--member", "--role"},
    "run services describe": {"--region", "--format"},
    "run services delete": {"--region"},
    "run services logs read": {"--region", "--limit"},
    "run services add-iam-policy-binding": {"--region", "--member", "--role"},
    "run services remove-iam-policy-binding": {"--region", "--member", "--role"},
    "run deploy": {
        "--image", "--service-account", "--port", "--no-allow-unauthenticated", "--allow-unauthenticated",
        "--min-instances", "--max-instances", "--concurrency", "--cpu", "--memory", "--timeout", "--region",
        "--execution-environment", "--labels", "--set-secrets", "--clear-secrets", "--set-env-vars",
        "--clear-env-vars", "--format",
    },
    "auth print-identity-token": set(),
}  # fmt: skip


def main() -> None:
    argv = sys.argv[1:]
    name = next((name for name in COMMANDS if argv[: len(name.split())] == name.split()), None)
    if name is None:
        stop(2, f"ERROR: (gcloud) Invalid choice: {argv[:2]}")
    rest = argv[len(name.split()) :]
    flags = {part.partition("=")[0]: part.partition("=")[2] for part in rest if part.startswith("--")}
    if unknown := set(flags) - COMMANDS[name] - ALWAYS:
        stop(2, f"ERROR: (gcloud.{name}) unrecognized arguments: {unknown}")
    if name != "auth print-identity-token" and not flags.get("--project"):
        stop(1, "ERROR: The required property [project] is not currently set.")
    names = [part for part in rest if not part.startswith("--")]
    stdin = "" if sys.stdin.isatty() else sys.stdin.read()
    world = json.loads(WORLD.read_text())
    world["calls"].append({"argv": ["gcloud", *argv], "stdin_bytes": len(stdin)})
    refuse_where_told(world, " ".join(argv))
    answer = Google(world).do(name, names, flags, stdin)
    WORLD.write_text(json.dumps(world))
    print(answer)


def refuse_where_told(world: dict[str, Any], line: str) -> None:
    for entry in world["fail"]:
        if re.search(entry["pattern"], line):
            if entry["before"] > 0:
                entry["before"] -= 1
                continue
            world["fail"].remove(entry)
            WORLD.write_text(json.dumps(world))
            if entry["says"] == "KILL":
                os.kill(os.getppid(), signal.SIGKILL)
                os._exit(1)
            stop(1, entry["says"])
    WORLD.write_text(json.dumps(world))


def stop(code: int, words: str) -> NoReturn:
    print(words, file=sys.stderr)
    sys.exit(code)


class Google:
    """What exists."""

    def __init__(self, world: dict[str, Any]) -> None:
        self.things: dict[str, Any] = world["things"]
        self.servers: list[int] = world["servers"]
        self.serves: bool = world["serves"]

    def do(self, command: str, names: list[str], flags: dict[str, str], stdin: str) -> str:  # noqa: PLR0911
        kind, _, verb = command.rpartition(" ")
        if command == "run deploy":
            return self.deploy(names[0], flags)
        if command == "builds submit":
            copy = WORLD.parent / f"image-{time.monotonic_ns()}"
            shutil.copytree(names[0], copy)
            self.things[f"artifacts docker images/{flags['--tag']}"] = str(copy)
            return "built"
        if command == "auth print-identity-token":
            return "an.identity.token"
        if kind == "secrets versions":
            return self.version(verb, names[0], flags, stdin)
        if verb.endswith("iam-policy-binding"):
            self.need(kind, names[0])
            place = f"binding/{kind}/{names[0]}/{flags['--member']}/{flags['--role']}"
            if verb.startswith("add"):
                self.things[place] = True
            elif self.things.pop(place, None) is None:
                stop(1, "ERROR: Policy binding with the specified member and role not found!")
            return "{}"
        if verb == "list":
            return "\n".join(f"projects/1/{place}" for place in self.things if place.startswith("secrets/"))
        if command == "run services logs read":
            return "2026-11-16 10:00:00 POST 200"
        return self.plain(kind, verb, names[0], flags)

    def plain(self, kind: str, verb: str, name: str, flags: dict[str, str]) -> str:
        if kind == "iam service-accounts" and verb == "create":
            name = f"{name}@{flags['--project']}.iam.gserviceaccount.com"
        if verb == "create":
            if f"{kind}/{name}" in self.things:
                stop(1, f"ERROR: ALREADY_EXISTS: {name}")
            self.things[f"{kind}/{name}"] = {}
            return "{}"
        self.need(kind, name)
        if verb == "delete":
            for place in [one for one in self.things if one.endswith(f"{kind}/{name}") or f"/{kind}/{name}/" in one]:
                del self.things[place]
            self.things.pop(f"version/{name}", None)
            return ""
        return json.dumps(self.things[f"{kind}/{name}"])

    def need(self, kind: str, name: str) -> None:
        if f"{kind}/{name}" not in self.things:
            stop(1, f"ERROR: (gcloud.{kind.replace(' ', '.')}) NOT_FOUND: {name} was not found.")

    def version(self, verb: str, name: str, flags: dict[str, str], stdin: str) -> str:
        secret = name if verb == "add" else flags["--secret"]
        self.need("secrets", secret)
        if verb == "add":
            if flags["--data-file"] != "-" or not stdin:
                stop(1, "ERROR: a value must come from standard input")
            self.things[f"version/{secret}"] = stdin
            return "1"
        if f"version/{secret}" not in self.things:
            stop(1, f"ERROR: NOT_FOUND: Secret [{secret}] version [latest] not found")
        return str(self.things[f"version/{secret}"])

    def deploy(self, name: str, flags: dict[str, str]) -> str:
        image = self.things.get(f"artifacts docker images/{flags['--image']}")
        if image is None:
            stop(1, f"ERROR: Image {flags['--image']!r} not found.")
        self.need("iam service-accounts", flags["--service-account"])
        environment = dict(pair.split("=", 1) for pair in pairs(flags.get("--set-env-vars", "")))
        for pair in pairs(flags.get("--set-secrets", "")):
            variable, _, secret = pair.partition("=")
            environment[variable] = self.readable(secret.partition(":")[0], flags["--service-account"])
        port = free_port()
        if self.serves:
            self.servers.append(serve(Path(image), port, environment))
        self.things[f"run services/{name}"] = {"status": {"url": f"http://127.0.0.1:{port}"}, "flags": flags}
        return json.dumps(self.things[f"run services/{name}"])

    def readable(self, secret: str, account: str) -> str:
        granted = f"binding/secrets/{secret}/serviceAccount:{account}/roles/secretmanager.secretAccessor"
        if granted not in self.things:
            stop(1, f"ERROR: Permission denied on secret: {secret} for Revision service account {account}.")
        return str(self.things[f"version/{secret}"])


def pairs(text: str) -> list[str]:
    if text.startswith("^"):
        _, mark, rest = text.split("^", 2)
        return rest.split(mark)
    return text.split(",") if text else []


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def serve(image: Path, port: int, environment: dict[str, str]) -> int:
    dockerfile = (image / "Dockerfile").read_text()
    assert "USER 10001:10001" in dockerfile
    entry = json.loads(next(line for line in dockerfile.splitlines() if line.startswith("ENTRYPOINT"))[11:])
    command = [sys.executable, "-m", "reward_kit", "serve", "--config", str(image / "serve.json")]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    if entry[0] == "python3":  # an MCP server
        command = [sys.executable, *entry[1:-3], "127.0.0.1", "--http", str(port)]
    root = Path(__file__).resolve().parents[2]
    with (image / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=image / "project", stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": f"{root}:{image / 'project'}", **environment}, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            return process.pid
        except urllib.error.HTTPError:  # it answers, and has no such path
            return process.pid
        except OSError:
            time.sleep(0.1)
    stop(1, f"ERROR: Revision is not ready: {(image / 'log.txt').read_text()[-2000:]}")


if __name__ == "__main__":
    main()
