# SPDX-License-Identifier: Apache-2.0
"""`local-serve` as a person uses it, and what the command line says of mistakes."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config import CONFIG_FILE_NAME, find_config_file, load_config
from reward_kit.deploy.first_call import call_first, verdict_line
from reward_kit.deploy.machine import command_of
from reward_kit.deploy.plan import FirstCall, Start
from reward_kit.deploy.state import Deployments
from reward_kit.errors import ConfigError, DeployError
from reward_kit.packaging import generate_dockerfile_content
from tests.cli_commands.conftest import Call
from tests.deploy.conftest import World


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def nothing_left(call: Call, project: Path) -> Iterator[None]:
    yield
    for one in Deployments(project / ".reward_kit" / "deployments").ids():
        facts = Deployments(project / ".reward_kit" / "deployments").get(one).facts
        if "serve.json" in command_of(int(facts.get("server.pid", 0))):
            os.killpg(int(facts["server.pid"]), signal.SIGKILL)


def test_a_server_goes_on_by_itself_and_is_ended(nothing_left: None, call: Call, project: Path) -> None:
    deploy = ("deploy", "--id", "here", "--target", "local-serve", "--function-ref", "rewards.py:exact")
    said = call(*deploy, "--local-port", str(free_port()))
    assert said.code == 0, said.err + said.out
    assert "verdict: 1" in said.out
    made = Deployments().get("here")
    key = Path(".reward_kit/deployments/here/api-key").read_text().strip()
    assert key not in said.out + Path(".reward_kit/deployments/here.json").read_text()
    (project / "rewards.py").write_text("raise SystemExit\n")  # the server has files of its own
    body = {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "4"}], "ground_truth": "4"}
    request = urllib.request.Request(made.url, json.dumps(body).encode(), {"X-Api-Key": key})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.loads(answer.read())["score"] == 1.0
    assert "here" in call("deploy", "status").out
    assert "reward_kit serve" in json.loads(call("deploy", "status", "here", "--json").out)["now"]
    assert "/evaluate" in call("deploy", "logs", "here").out
    pid = int(made.facts["server.pid"])
    (project / "rewards.py").write_text((Path(".reward_kit/deployments/here/files/project/rewards.py")).read_text())
    again = call(*deploy, "--local-port", made.url.rpartition(":")[2].partition("/")[0])
    assert again.code == 0, again.err  # on the same port: the old one is ended first
    assert "serve.json" not in command_of(pid)
    pid = int(Deployments().get("here").facts["server.pid"])
    assert "serve.json" in command_of(pid)
    assert call("deploy", "delete", "here").code == 0
    assert "serve.json" not in command_of(pid)
    assert not Path(".reward_kit/deployments/here").exists()


def test_a_port_in_use_is_said_and_whoever_has_it_is_shown_no_key(
    nothing_left: None, call: Call, project: Path
) -> None:
    asked: list[dict[str, str]] = []

    class Stranger(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(dict(self.headers))
            self.send_error(403)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        deploy = ("deploy", "--id", "here", "--target", "local-serve", "--function-ref", "rewards.py:exact",
                  "--local-port", str(port))  # fmt: skip
        said = call(*deploy)
        server.shutdown()
    assert said.code != 0 and "already in use" in said.sentence and "--local-port" in said.sentence
    assert asked == []
    again = call(*deploy)  # the same command goes on, now that the port is free
    assert again.code == 0, again.err
    assert "verdict: 1" in again.out
    assert call("deploy", "delete", "here").code == 0


def test_a_server_that_died_before_its_first_verdict_is_started_again(
    nothing_left: None, call: Call, project: Path
) -> None:
    deploy = ("deploy", "--id", "here", "--target", "local-serve", "--function-ref", "rewards.py:exact",
              "--local-port", str(free_port()))  # fmt: skip
    assert call(*deploy).code == 0
    kept = Deployments()
    made = kept.get("here")
    os.killpg(int(made.facts["server.pid"]), signal.SIGKILL)
    made.status = "deploying"  # as if the command had been killed before the verdict
    kept.write(made)
    said = call(*deploy)
    assert said.code == 0, said.err
    assert "done before: the files" in said.out and "make: the server" in said.out
    assert call("deploy", "delete", "here").code == 0


def test_another_process_of_the_same_number_is_not_ended(call: Call, project: Path) -> None:
    from reward_kit.deploy.carry_out import MissingThing
    from reward_kit.deploy.machine import MachineHands
    from reward_kit.deploy.plan import Stop

    hands = MachineHands({}, lambda _: None)
    (project / "pid").write_text(str(os.getpid()))
    stop = Stop(pid_file="pid", marker="1000.25")
    with pytest.raises(MissingThing):
        hands.do(stop, {})
    facts = hands.do(Start(argv=("sleep", "1000.25"), folder=".", log="log.txt", pid_file="pid"), {})
    while not (project / "pid").exists() or (project / "pid").read_text().strip() != facts["pid"]:
        time.sleep(0.01)
    while "1000.25" not in command_of(int(facts["pid"])):
        time.sleep(0.01)
    hands.do(stop, {})
    assert command_of(int(facts["pid"])) == ""


@pytest.mark.parametrize(("is_own", "stops"), [(False, False), (True, True)])
def test_a_reward_that_cannot_judge_our_sample_is_said_and_one_that_cannot_judge_yours_stops(
    is_own: bool, stops: bool
) -> None:
    class Cannot(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps({"score": None, "is_score_valid": False, "error": "it needs a column"}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Cannot)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/evaluate"
        action = FirstCall(url=url, auth="open", sample={}, is_own=is_own)
        if stops:
            with pytest.raises(DeployError, match="could not judge the sample: it needs a column"):
                call_first(action, None, lambda _: "")
        else:
            said = verdict_line(call_first(action, None, lambda _: ""))
            assert "it needs a column" in said and "--sample" in said and "verdict: 0" not in said
    finally:
        server.shutdown()
        server.server_close()


def test_a_folder_that_deployed_nothing_says_so(call: Call) -> None:
    assert call("deploy", "status").out == "Nothing was deployed from this folder.\n"


def test_nobody_there_is_said_after_patience() -> None:
    with pytest.raises(DeployError, match="cannot be reached"):
        call_first(FirstCall(url=f"http://127.0.0.1:{free_port()}/", auth="open", sample={}, patience=0), None, str)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--function-ref", "math"], "--id"),
        (["--id", "x"], "--function-ref"),
        (["--id", "x", "--function-ref", "math", "-m", "a=b"], "--function-ref"),
        (["--id", "X!", "--target", "docker", "--function-ref", "math"], "cannot be used"),
        (["--id", "x", "--target", "docker", "--function-ref", "no.such:thing"], "no module"),
        (["--id", "x", "--target", "docker", "--function-ref", "math", "--runtime", "py3"], "--runtime"),
        (["--id", "x", "--target", "docker", "--function-ref", "math", "--memory", "much"], "--memory"),
        (["--id", "x", "--target", "docker", "--function-ref", "math", "--remote-url", "https://x"], "fireworks"),
        (["--id", "x", "--target", "docker", "--function-ref", "math", "--env", "API_KEY=abc"], "--secret API_KEY"),
        (
            ["--id", "x", "--target", "docker", "--function-ref", "math", "--env", "A=${b.c}"],
            "read as the name of a variable",
        ),
        (["--id", "x", "--target", "docker", "--function-ref", "math", "--auth-mode", "iam"], "api-key"),
        (["--id", "x", "--target", "docker", "--function-ref", "math", "-p", "token=abcdefgh1234"], "credential"),
    ],
)
def test_a_mistake_is_said_in_a_sentence(call: Call, project: Path, arguments: list[str], words: str) -> None:
    said = call("deploy", *arguments)
    assert said.code != 0 and words in said.sentence
    assert not Path(".reward_kit").exists()


@pytest.mark.parametrize("dry_run", [["--dry-run"], []], ids=["plan", "deploy"])
def test_a_wrong_id_is_said_before_anything_is_packed(call: Call, project: Path, dry_run: list[str]) -> None:
    said = call("deploy", "--id", "Bad Id!", "--target", "local-serve", "--function-ref", "missing.py:none", *dry_run)
    assert said.code == 1 and "The id 'Bad Id!' cannot be used. Use small letters" in said.sentence
    assert said.out == ""


def test_folders_of_metrics_are_served_by_name(call: Call, project: Path) -> None:
    for name in ("one", "two"):
        (project / name).mkdir()
        (project / name / "main.py").write_text("def evaluate(messages, **kwargs):\n    return 1.0\n")
    said = call("deploy", "--id", "m", "--target", "docker", "-m", "one=one", "two=two", "--dry-run")
    assert said.code == 0, said.err
    assert "project/one/main.py" in said.out and "project/two/main.py" in said.out


def test_rewardkit_yaml_says_what_commands_need_not(call: Call, project: Path) -> None:
    Path(CONFIG_FILE_NAME).write_text(
        "default_deployment_target: gcp-cloud-run\n"
        "gcp_cloud_run: {project_id: p, region: r, secrets: {OPENAI_API_KEY: openai}, default_auth_mode: iam}\n"
    )
    said = call("deploy", "--id", "x", "--function-ref", "math", "--dry-run")
    assert "--no-allow-unauthenticated" in said.out and "OPENAI_API_KEY=openai:latest" in said.out
    (project / "below").mkdir()
    assert find_config_file("below") == str(project / CONFIG_FILE_NAME)
    Path(CONFIG_FILE_NAME).write_text("gcp_cloud_run: {projekt: p}\n")
    with pytest.raises(ConfigError, match="projekt"):
        load_config()
    Path(CONFIG_FILE_NAME).write_text("gcp_cloud_run: {default_auth_mode: mtls-client-auth}\n")
    assert (
        "load balancer" in call("deploy", "--id", "x", "--target", "gcp-cloud-run", "--function-ref", "math").sentence
    )


def test_an_mcp_server_is_planned_for_cloud_run(call: Call, project: Path, world: World) -> None:
    (project / "game.py").write_text("import helper\nclass Game: ...\n")
    where = ("--gcp-project", "p", "--gcp-region", "r")
    said = call(
        "deploy-mcp", "--id", "g", "--environment", "game.py:Game", *where, "--env-vars", "A=1", "B=2", "--dry-run"
    )
    assert said.code == 0, said.err
    for words in ("project/game.py", "project/helper.py", '"reward_kit.agent.mcp.server", "game.py:Game"',
                  "--port=8000",
                  "reward-kit-mcp-servers", "A=1,B=2", "--no-allow-unauthenticated", "tools/list"):  # fmt: skip
        assert words in said.out, words
    (project / "Dockerfile.mine").write_text("FROM scratch\n")
    own = call("deploy-mcp", "--id", "g", "--dockerfile", "Dockerfile.mine", *where, "--dry-run")
    assert own.code == 0 and "left out: .env" in own.out and "| FROM scratch" in own.out
    assert world.calls == []
    made = call("deploy-mcp", "--id", "g", "--mcp-server-module", "game", *where, "--no-check")
    assert made.code == 0, made.err
    assert "run services/mcp-g" in world.things
    assert call("deploy", "delete", "g").code == 0
    assert "one of --mcp-server-module" in call("deploy-mcp", "--id", "g", *where).sentence


GAME = """
from reward_kit.agent.environment import World
from reward_kit.agent.tools import tool
import helper

class Game(World):
    def __init__(self, sample):
        self.sample = sample

    @tool
    def guess(self, number: int) -> str:
        '''Guess a number.'''
        return str(helper.is_same(number, 7))
"""


def test_an_mcp_server_is_deployed_and_says_its_tools(call: Call, project: Path, world: World) -> None:
    (project / "game.py").write_text(GAME)
    world.change(serves=True)
    where = ("--gcp-project", "p", "--gcp-region", "r")
    said = call("deploy-mcp", "--id", "g", "--environment", "game.py:Game", *where)
    assert said.code == 0, said.err + said.out
    assert "guess" in said.out.partition("tools: ")[2]
    assert call("deploy", "delete", "g").code == 0


def test_the_inherited_dockerfile_and_tools(world: World, project: Path) -> None:
    from reward_kit import gcp_tools

    text = generate_dockerfile_content("rewards.exact", inline_requirements_content="numpy\n# no\n", service_port=9000)
    assert text is not None and '"numpy"' in text and "USER 10001" in text and '"9000"' in text
    assert generate_dockerfile_content("nothing") is None
    assert gcp_tools.ensure_artifact_registry_repo_exists("p", "r", "repo")
    assert gcp_tools.ensure_artifact_registry_repo_exists("p", "r", "repo")
    assert not gcp_tools.build_and_push_docker_image("r/i:1", text, str(project), "p")  # .env is in it
    (project / ".env").unlink()
    assert gcp_tools.build_and_push_docker_image("r/i:1", text, str(project), "p")
    assert not (project / "Dockerfile").exists()
    assert gcp_tools.ensure_gcp_secret("p", "s", "value-of-the-secret", dry_run=True) is not None
    assert "value-of-the-secret" not in json.dumps(world.calls)


def test_a_long_command_line_is_read_whole_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    told = Path("/proc/self/cmdline")
    if not told.exists():
        pytest.skip("this system has no /proc")
    words = told.read_bytes().decode().strip("\0").split("\0")
    assert words[-1] in command_of(os.getpid())
