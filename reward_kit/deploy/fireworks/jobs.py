# SPDX-License-Identifier: Apache-2.0
"""Jobs at Fireworks: reinforcement fine-tuning, and evaluations of a dataset by an evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from reward_kit.deploy.fireworks.api import FireworksAPI, Names, PlatformAPIError, id_of
from reward_kit.deploy.fireworks.polling import states
from reward_kit.errors import ConfigError, DeployError
from reward_kit.integrations.rl_jobs import JobFailedError, JobStatus

__all__ = ["FireworksJob", "JobKind", "evaluation_body", "start_evaluation", "start_training", "training_body"]

JobKind = Literal["rl", "evaluate"]
COLLECTIONS: Mapping[JobKind, str] = {"rl": "reinforcementFineTuningJobs", "evaluate": "evaluationJobs"}
"""What Fireworks calls each kind."""

_EXISTS = 409
_SUCCEEDED = frozenset({"JOB_STATE_COMPLETED", "JOB_STATE_EARLY_STOPPED"})
_CANCELLED = frozenset({"JOB_STATE_CANCELLED", "JOB_STATE_CANCELLING", "JOB_STATE_DELETING"})
_FAILED = frozenset({"JOB_STATE_FAILED", "JOB_STATE_EXPIRED", "JOB_STATE_FAILED_CLEANING_UP"})

_INFERENCE = {
    "max_output_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "n": "responseCandidatesCount",
    "extra_body": "extraBody",
}
_TRAINING = {
    "output_model": "outputModel",
    "epochs": "epochs",
    "learning_rate": "learningRate",
    "lora_rank": "loraRank",
    "max_context_length": "maxContextLength",
    "batch_size": "batchSize",
    "warm_start_from": "warmStartFrom",
}
_LOSS = {"loss_method": "method", "kl_beta": "klBeta"}
_WHOLE = {
    "evaluation_dataset": "evaluationDataset",
    "display_name": "displayName",
    "chunk_size": "chunkSize",
    "max_concurrent_rollouts": "maxConcurrentRollouts",
    "max_concurrent_evaluations": "maxConcurrentEvaluations",
    "node_count": "nodeCount",
    "wandb": "wandbConfig",
}
SETTINGS = (*_INFERENCE, *_TRAINING, *_LOSS, *_WHOLE)
"""The settings of a fine-tuning job, by our names."""
LOSSES = ("GRPO", "DAPO", "GSPO_TOKEN", "DPO", "ORPO")


class FireworksJob:
    """A job that was started, known by its name. `wait`, `logs` and `cancel` work from any machine with the key."""

    def __init__(self, api: FireworksAPI, kind: JobKind, job_id: str) -> None:
        self._api = api
        self.kind: JobKind = kind
        self.name = api.name(COLLECTIONS[kind], job_id)

    @property
    def details(self) -> dict[str, Any]:
        """What Fireworks says of it now."""
        return self._api.get(self.name)

    @property
    def status(self) -> JobStatus:
        """What has become of it."""
        return _status(self.details)

    def logs(self) -> str:
        """What the job printed. A fine-tuning job's trainer keeps its log to itself: that one tells how far it is."""
        if self.kind == "evaluate":
            url = self._api.get(f"{self.name}:getExecutionLogEndpoint").get("executionLogSignedUri")
            return self._api.read_signed(url) if url else ""
        return "\n".join(job_lines(self.details))

    def wait(self, timeout: float | None = None, tell: Callable[[dict[str, Any]], None] | None = None) -> JobStatus:
        """Wait for its end. A job that failed is a `JobFailedError`; one that takes longer, a `TimeoutError`."""
        for details in states(lambda: self.details, timeout=timeout, what=f"The job {self.name!r}"):
            if tell is not None:
                tell(details)
            status = _status(details)
            if status == "failed":
                reason = (details.get("status") or {}).get("message") or details.get("state")
                raise JobFailedError(f"The job {self.name!r} failed: {reason}. Its logs may say more.")
            if status != "running":
                return status
        raise AssertionError("asking does not end")

    def cancel(self) -> None:
        """Stop it; harmless if it has ended. An evaluation cannot be stopped and kept: it is deleted."""
        if self.status != "running":
            return
        if self.kind == "evaluate":
            self._api.delete(self.name)
        else:
            self._api.post(f"{self.name}:cancel", {})


def job_lines(details: Mapping[str, Any]) -> list[str]:
    """The state of a job in a few lines."""
    lines = [f"state: {str(details.get('state', 'unknown')).removeprefix('JOB_STATE_').lower().replace('_', ' ')}"]
    progress = details.get("jobProgress") or {}
    if (percent := progress.get("percent")) is not None:
        lines.append(f"progress: {percent} %")
    if message := (details.get("status") or {}).get("message"):
        lines.append(f"status: {message}")
    if output := (details.get("trainingConfig") or {}).get("outputModel"):
        lines.append(f"output model: {output}")
    if output := details.get("outputDataset"):
        lines.append(f"output dataset: {output}")
    if metrics := details.get("metrics"):
        lines += [f"{name}: {value}" for name, value in metrics.items()]
    return lines


def _status(details: Mapping[str, Any]) -> JobStatus:
    state = details.get("state")
    if state in _SUCCEEDED:
        return "succeeded"
    if state in _CANCELLED:
        return "cancelled"
    return "failed" if state in _FAILED else "running"


# ── start ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def training_body(
    api: Names, *, model: str, dataset: str, evaluator: str, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """A fine-tuning job as Fireworks is asked for it. A setting that it does not know is a `ConfigError`."""
    if unknown := sorted(settings.keys() - set(SETTINGS)):
        raise ConfigError(
            f"A fine-tuning job at Fireworks has no setting {unknown[0]!r}. Known are: {', '.join(SETTINGS)}."
        )
    loss = _renamed(settings, _LOSS)
    if "method" in loss and loss["method"] not in LOSSES:
        raise ConfigError(f"loss_method is {loss['method']!r}; Fireworks has: {', '.join(LOSSES)}.")
    training = _renamed(settings, _TRAINING)
    if "warmStartFrom" not in training:
        training["baseModel"] = model if model.startswith("accounts/") else f"accounts/fireworks/models/{model}"
    if "outputModel" in training:
        training["outputModel"] = api.name("models", str(training["outputModel"]))
    body = {
        "dataset": api.name("datasets", dataset),
        "evaluator": api.name("evaluators", evaluator),
        **_renamed(settings, _WHOLE),
        "trainingConfig": training,
    }
    if "evaluationDataset" in body:
        body["evaluationDataset"] = api.name("datasets", str(body["evaluationDataset"]))
    parts = {"inferenceParameters": _renamed(settings, _INFERENCE), "lossConfig": loss}
    return {**body, **{name: part for name, part in parts.items() if part}}


def start_training(api: FireworksAPI, job_id: str, body: Mapping[str, Any]) -> FireworksJob:
    """Start a fine-tuning job under an id of ours. One that is there is a `DeployError`: nothing is paid twice."""
    query = {"reinforcementFineTuningJobId": job_id}
    return _started(api, "rl", job_id, body, query)


def evaluation_body(
    api: Names,
    job_id: str,
    *,
    evaluator: str,
    dataset: str,
    output_dataset: str,
    display_name: str | None = None,
) -> dict[str, Any]:
    """An evaluation job as Fireworks is asked for it."""
    return {
        "evaluationJobId": job_id,
        "evaluationJob": {
            "evaluator": api.name("evaluators", evaluator),
            "inputDataset": api.name("datasets", dataset),
            "outputDataset": api.name("datasets", output_dataset),
            "displayName": display_name or job_id,
        },
    }


def start_evaluation(api: FireworksAPI, job_id: str, body: Mapping[str, Any]) -> FireworksJob:
    """Start an evaluation job under an id of ours."""
    return _started(api, "evaluate", job_id, body, None)


def _started(
    api: FireworksAPI, kind: JobKind, job_id: str, body: Mapping[str, Any], query: Mapping[str, str] | None
) -> FireworksJob:
    job = FireworksJob(api, kind, job_id)
    try:
        api.create(f"accounts/{api.account}/{COLLECTIONS[kind]}", body, made=job.name, query=query)
    except PlatformAPIError as error:
        if error.status_code != _EXISTS:
            raise
        raise DeployError(
            f"There is a job {id_of(job.name)!r} already, so none was started. Follow it with "
            f"`reward-kit jobs {kind} status {id_of(job.name)}`, or choose another --id."
        ) from None
    return job


def _renamed(settings: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {theirs: settings[ours] for ours, theirs in names.items() if settings.get(ours) is not None}
