# SPDX-License-Identifier: Apache-2.0
"""The files for KubeRay hold only fields that the operator's published types (ray-operator/apis/ray/v1) know."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from reward_kit.cli_commands.hydra_config import ConfigFile, compose_jobs
from reward_kit.config_models import load_config

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ray_cluster"

CLUSTER = {"headGroupSpec", "workerGroupSpecs", "rayVersion", "enableInTreeAutoscaling", "autoscalerOptions", "suspend"}
HEAD = {"serviceType", "headService", "enableIngress", "rayStartParams", "template"}
WORKER = {
    "groupName", "replicas", "minReplicas", "maxReplicas", "numOfHosts", "rayStartParams", "template", "scaleStrategy",
}  # fmt: skip
JOB = {
    "activeDeadlineSeconds", "backoffLimit", "rayClusterSpec", "submitterPodTemplate", "metadata", "clusterSelector",
    "submitterConfig", "entrypoint", "runtimeEnvYAML", "jobId", "submissionMode", "entrypointResources",
    "entrypointNumCpus", "entrypointNumGpus", "ttlSecondsAfterFinished", "shutdownAfterJobFinishes", "suspend",
}  # fmt: skip
MODES = {"K8sJobMode", "HTTPMode", "InteractiveMode"}


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLE / name).read_text()))


def test_the_cluster_has_only_known_fields() -> None:
    claim, cluster = documents("cluster.yaml")
    assert (claim["kind"], cluster["apiVersion"], cluster["kind"]) == (
        "PersistentVolumeClaim", "ray.io/v1", "RayCluster"
    )  # fmt: skip
    spec = cluster["spec"]
    assert spec.keys() <= CLUSTER
    assert spec["headGroupSpec"].keys() <= HEAD
    for group in spec["workerGroupSpecs"]:
        assert group.keys() <= WORKER
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        json.loads(shlex.split(group["rayStartParams"]["resources"])[0])
    head = spec["headGroupSpec"]["template"]["spec"]
    (mount,) = head["containers"][0]["volumeMounts"]
    assert {volume["name"] for volume in head["volumes"]} == {mount["name"]}
    assert head["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]


def test_the_job_has_only_known_fields_and_its_command_is_one_of_ours() -> None:
    (job,) = documents("job.yaml")
    (_, cluster) = documents("cluster.yaml")
    spec = job["spec"]
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert spec.keys() <= JOB and spec["submissionMode"] in MODES
    assert spec["clusterSelector"]["ray.io/cluster"] == cluster["metadata"]["name"]
    assert yaml.safe_load(spec["runtimeEnvYAML"]).keys() <= {"env_vars", "pip", "working_dir", "py_modules"}
    program, verb, file, *overrides = shlex.split(spec["entrypoint"])
    assert (program, verb) == ("reward-kit", "run")
    (copied,) = re.findall(r"^COPY \. (\S+)$", (EXAMPLE / "Dockerfile").read_text(), re.M)
    conf = EXAMPLE / Path(file).relative_to(copied)
    (composed,) = compose_jobs(ConfigFile(conf.parent, conf.name), overrides, sweep=False)
    engine = load_config(composed.values).engine
    assert engine.name == "ray" and engine.address is None
    named = {name for part in (engine.generate, engine.score) for name in part.resources}
    groups = [group["rayStartParams"]["resources"] for group in cluster["spec"]["workerGroupSpecs"]]
    assert named == {name for group in groups for name in json.loads(shlex.split(group)[0])}


@pytest.mark.parametrize("name", ["cluster.yaml", "job.yaml", "Dockerfile"])
def test_versions_are_the_ones_that_are_pinned(name: str) -> None:
    pinned = re.search(r"^ray==(\S+)", (EXAMPLE.parents[1] / "requirements" / "dev.txt").read_text(), re.M)
    for found in re.findall(r"(?:rayVersion: \"|rayproject/ray:)(\d+\.\d+\.\d+)", (EXAMPLE / name).read_text()):
        assert pinned is not None and found == pinned[1]
