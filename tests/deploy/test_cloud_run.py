# SPDX-License-Identifier: Apache-2.0
"""Cloud Run: with a `gcloud` that pretends about Google and runs the service here, and with the real one's parser."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from reward_kit.deploy.bundle import BundleSource, make_bundle
from reward_kit.deploy.plan import Command
from reward_kit.deploy.settings import DeploySettings
from reward_kit.deploy.state import Deployments
from reward_kit.deploy.target import Place
from reward_kit.deploy.targets.cloud_run import CloudRun
from tests.cli_commands.conftest import Call
from tests.deploy.conftest import World

PLACE = ("--gcp-project", "p", "--gcp-region", "europe-west1")
DEPLOY = ("deploy", "--id", "exact", "--target", "gcp-cloud-run", "--function-ref", "rewards.py:exact", *PLACE)
MADE = {
    "artifacts docker images", "artifacts repositories", "binding", "iam service-accounts", "run services", "secrets",
    "version",
}  # fmt: skip


def kinds(world: World) -> set[str]:
    return {place.partition("/")[0] for place in world.things}


def ask(url: str, **headers: str) -> int:
    body = json.dumps({"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "4"}]}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_a_reward_is_deployed_called_changed_and_deleted(world: World, call: Call, project: Path) -> None:
    world.change(serves=True)
    said = call(*DEPLOY)
    assert said.code == 0, said.err + said.out
    assert "verdict: 1" in said.out
    assert kinds(world) == MADE
    made = Deployments().get("exact")
    assert made.status == "ready" and made.url.startswith("http://127.0.0.1:")
    key = world.things["version/rk-eval-exact-authkey"]
    assert ask(made.url) == 401
    assert ask(made.url, **{"X-Api-Key": "wrong-wrong-wrong-wrong"}) == 403
    assert ask(made.url, **{"X-Api-Key": key}) == 200
    everything = "".join(path.read_text(errors="replace") for path in Path(".reward_kit").rglob("*") if path.is_file())
    assert key not in everything + said.out + said.err + json.dumps(world.calls)

    built = sum("submit" in line for line in map(" ".join, world.calls))
    assert call(*DEPLOY).code == 0  # nothing changed: the image is there, the key stays
    assert sum("submit" in line for line in map(" ".join, world.calls)) == built
    assert world.things["version/rk-eval-exact-authkey"] == key
    assert call(*DEPLOY, "--rotate-key").code == 0
    assert world.things["version/rk-eval-exact-authkey"] != key

    assert "ready" in call("deploy", "status", "exact").out
    assert "POST 200" in call("deploy", "logs", "exact").out
    assert call("deploy", "delete", "exact").code == 0
    assert kinds(world) == {"artifacts repositories"}  # which others may use
    assert "no deployment" in call("deploy", "status", "exact").sentence


def test_iam_binds_whom_it_names_and_another_mode_takes_it_back(world: World, call: Call, project: Path) -> None:
    member = "serviceAccount:trainer@p.iam.gserviceaccount.com"
    world.change(serves=True)
    said = call(*DEPLOY, "--auth-mode", "iam", "--allow-invoker", member)
    assert said.code == 0, said.err
    flags = world.things["run services/rewardeval-exact"]["flags"]
    assert "--no-allow-unauthenticated" in flags and "--clear-secrets" in flags
    assert f"binding/run services/rewardeval-exact/{member}/roles/run.invoker" in world.things
    assert not any(place.startswith("secrets/") for place in world.things)
    assert call(*DEPLOY, "--gcp-auth-mode", "api-key", "--no-verdict").code == 0
    assert not any("run.invoker" in place for place in world.things)


def test_settings_reach_the_service(world: World, call: Call, project: Path) -> None:
    Path("rewardkit.yaml").write_text("gcp_cloud_run: {service_name_template: 'mine-{evaluator_id}'}\n")
    subprocess.run(["gcloud", "secrets", "create", "openai", "--project=p"], check=True, stdin=subprocess.DEVNULL)
    subprocess.run(
        ["gcloud", "secrets", "versions", "add", "openai", "--data-file=-", "--project=p"], check=True, input=b"value"
    )
    said = call(
        *DEPLOY, "--min-instances", "1", "--max-instances", "3", "--concurrency", "8", "--memory", "2Gi", "--env",
        "WORDS=a,b", "--secret", "OPENAI_API_KEY=openai", "--no-verdict",
    )  # fmt: skip
    assert said.code == 0, said.err
    flags = world.things["run services/mine-exact"]["flags"]
    assert (flags["--min-instances"], flags["--max-instances"], flags["--concurrency"]) == ("1", "3", "8")
    assert flags["--set-env-vars"] == "^@^WORDS=a,b"
    assert "OPENAI_API_KEY=openai:latest" in flags["--set-secrets"]
    assert call("deploy", "delete", "exact").code == 0
    assert "secrets/openai" in world.things  # it is not ours
    assert not any(place.startswith("binding/secrets/openai") for place in world.things)


STEPS = [
    "repositories create", "builds submit", "service-accounts create", "secrets create", "versions add",
    "secrets add-iam", "run deploy",
]  # fmt: skip


DENIED, SPENT = "ERROR: PERMISSION_DENIED: you may not", "ERROR: RESOURCE_EXHAUSTED: quota"


@pytest.mark.parametrize(("step", "words"), [(step, (DENIED, SPENT)[n % 2]) for n, step in enumerate(STEPS)])
def test_what_is_refused_says_what_exists_and_goes_on(
    world: World, call: Call, project: Path, step: str, words: str
) -> None:
    world.change(fail=[{"before": 0, "pattern": step, "says": words}])
    said = call(*DEPLOY, "--no-verdict")
    assert said.code == 1
    assert words.rpartition(": ")[2] in said.sentence
    assert "Run the same command again" in said.sentence and "deploy delete exact" in said.sentence
    before = {place: value for place, value in world.things.items() if not place.startswith("run services")}
    if step == "run deploy":
        assert "the secret 'rk-eval-exact-authkey'" in said.sentence
        again = call(*DEPLOY, "--no-verdict")
        assert again.code == 0, again.err
        assert before.items() <= world.things.items()  # nothing was made twice
    assert call("deploy", "delete", "exact").code == 0
    assert kinds(world) <= {"artifacts repositories"}


@pytest.mark.parametrize("at", (0, 5, 9, 13))
def test_killed_at_any_command_it_goes_on(world: World, call: Call, project: Path, at: int) -> None:
    world.change(fail=[{"before": at, "pattern": ".", "says": "KILL"}])
    command = [sys.executable, "-m", "reward_kit", *DEPLOY, "--no-verdict"]
    killed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert killed.returncode in (-9, 0), killed.stderr
    again = call(*DEPLOY, "--no-verdict")
    assert again.code == 0, again.err
    assert kinds(world) == MADE
    assert call("deploy", "delete", "exact").code == 0
    assert kinds(world) == {"artifacts repositories"}


def test_what_somebody_else_made_is_left_alone(world: World, call: Call, project: Path) -> None:
    world.change(things={"secrets/rk-eval-exact-authkey": {}, "version/rk-eval-exact-authkey": "theirs-theirs-theirs"})
    assert "exists already" in call(*DEPLOY).sentence
    assert call("deploy", "delete", "exact").code == 0
    assert world.things["version/rk-eval-exact-authkey"] == "theirs-theirs-theirs"
    assert call(*DEPLOY, "--force", "--no-verdict").code == 0


def test_a_dry_run_does_nothing_and_shows_no_key(world: World, call: Call, project: Path) -> None:
    before = sorted(project.rglob("*"))
    said = call(*DEPLOY, "--dry-run", "--env", "A=1")
    assert said.code == 0
    assert world.calls == []
    assert sorted(project.rglob("*")) == before
    for words in ("gcloud run deploy rewardeval-exact", "gcloud builds submit", "standard input: ***", "FROM ${BASE}",
                  "project/rewards.py", "X-Api-Key: ***"):  # fmt: skip
        assert words in said.out


def test_without_a_project_it_says_so(call: Call, project: Path) -> None:
    arguments = [part for part in DEPLOY if part not in PLACE]
    assert "--gcp-project" in call(*arguments).sentence


# ── the real gcloud's parser ─────────────────────────────────────────────────────────────────────────────────────────


def commands(source: BundleSource, project: Path, **settings: Any) -> list[str]:
    told = {"id": "exact", "target": "gcp-cloud-run", "gcp": {"project": "p", "region": "europe-west1"}, **settings}
    bundle = make_bundle(source, extras=("serve",))
    prepared = CloudRun().prepare(DeploySettings.model_validate(told), bundle, Place(project), dry=True)
    plan = prepared.plan
    actions = [action for step in plan.steps for action in (*step.actions(), *step.remove)]
    found = [action.argv for action in (*actions, *plan.status, *plan.logs) if isinstance(action, Command)]
    return [shlex.join(argv) for argv in dict.fromkeys(found)]


def test_the_real_gcloud_takes_every_command(source: BundleSource, project: Path, tmp_path: Path) -> None:
    if shutil.which("gcloud") is None:
        pytest.skip("program `gcloud` is not here: its parser was not asked")
    gcp = {"project": "p", "region": "europe-west1", "invokers": ["user:a@example.org"]}
    lines = [
        *commands(source, project, environment={"A": "1,2", "B": "3"}, secrets={"X": "y"}),
        *commands(source, project, auth_mode="iam", gcp=gcp),
        *commands(source, project, auth_mode="open"),
        "gcloud auth print-identity-token --quiet",
        "gcloud secrets list --filter=labels.managed-by=reward-kit --format=value\\(name\\) --project=p --quiet",
        "gcloud run deploy x --no-such-flag",  # which shows that it looks
    ]
    file = tmp_path / "commands.json"
    file.write_text(json.dumps([{"command_string": line} for line in dict.fromkeys(lines)]))
    done = subprocess.run(
        ["gcloud", "meta", "lint-gcloud-commands", f"--commands-file={file}"], capture_output=True, text=True,
        check=True, timeout=110, env={"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(tmp_path)},
    )  # fmt: skip
    refused = {one["command_string"]: one["error_message"] for one in json.loads(done.stdout) if not one["success"]}
    assert list(refused) == ["gcloud run deploy x --no-such-flag"], refused
