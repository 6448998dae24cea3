# SPDX-License-Identifier: Apache-2.0
"""`start_rl_job(backend="fireworks")`: the data and the reward are brought to Fireworks, and trained with there.

Everything has an id that follows from the job's, and the job's id is on disk before anything is sent. So a call that
was interrupted goes on when it is made again, and starts no second job.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from reward_kit.deploy.fireworks.api import FireworksAPI
from reward_kit.deploy.fireworks.datasets import upload_dataset
from reward_kit.deploy.fireworks.evaluator_source import source_of_reward
from reward_kit.deploy.fireworks.evaluators import create_evaluator
from reward_kit.deploy.fireworks.jobs import LOSSES, FireworksJob, start_training, training_body
from reward_kit.errors import ConfigError
from reward_kit.integrations.rl_jobs import JobRequest
from reward_kit.storage.files import write_whole

__all__ = ["FireworksBackend"]

_METHODS = {"grpo": "GRPO"}
_NOTE = "job.json"


class FireworksBackend:
    """Trains at Fireworks. The dataset is an id there, a file or rows; the reward an evaluator or an import path."""

    def __init__(self, api: FireworksAPI | None = None) -> None:
        self._api = api

    def start(self, request: JobRequest) -> FireworksJob:
        """Bring what is needed to Fireworks and start the job; or find the one that was started from here before."""
        api = self._api or FireworksAPI()
        settings = dict(request.settings)
        settings.setdefault("loss_method", _loss_of(request.method))
        note = request.output_dir / _NOTE
        job_id = str(settings.pop("job_id", None) or _noted(note) or _id_from(request.output_dir))
        body = training_body(api, model=request.model, dataset="d", evaluator="e", settings=settings)  # checked first
        write_whole(note, json.dumps({"backend": "fireworks", "job": job_id}) + "\n")
        job = FireworksJob(api, "rl", job_id)
        if api.find(job.name) is not None:
            return job
        body["dataset"] = self._dataset(api, request, job_id)
        body["evaluator"] = self._evaluator(api, request, job_id)
        return start_training(api, job_id, body)

    def _dataset(self, api: FireworksAPI, request: JobRequest, job_id: str) -> str:
        if isinstance(request.dataset, str) and not Path(request.dataset).is_file():
            return api.name("datasets", request.dataset)
        dataset_id = f"{job_id}-data"
        name = api.name("datasets", dataset_id)
        there = api.find(name)
        if there is None or there.get("state") != "READY":
            with tempfile.TemporaryDirectory(prefix="reward-kit-") as folder:
                upload_dataset(api, dataset_id, _conversations(request, Path(folder)), force=True)
        return name

    def _evaluator(self, api: FireworksAPI, request: JobRequest, job_id: str) -> str:
        if request.reward.startswith("accounts/"):
            return request.reward
        if ":" not in request.reward and "." not in request.reward and "/" not in request.reward:
            found = api.find(api.name("evaluators", request.reward))
            if found is not None:
                return api.name("evaluators", request.reward)
        evaluator_id = f"{job_id}-reward"
        name = api.name("evaluators", evaluator_id)
        there = api.find(name)
        if there is None or there.get("state") != "ACTIVE":
            create_evaluator(api, evaluator_id, source_of_reward(request.reward, request.params), force=True)
        return name


def _loss_of(method: str) -> str:
    if method not in _METHODS:
        raise ConfigError(f"Fireworks cannot train with {method!r}. Use method='grpo', or loss_method={LOSSES!r}.")
    return _METHODS[method]


def _noted(note: Path) -> str | None:
    if not note.exists():
        return None
    found: dict[str, Any] = json.loads(note.read_text(encoding="utf-8"))
    if found.get("backend") != "fireworks":
        raise ConfigError(f"There is a job of another backend in {str(note.parent)!r}. Choose another output_dir.")
    return str(found["job"])


def _id_from(directory: Path) -> str:
    """An id that is made of the directory's name, and of nothing that another directory of that name shares."""
    import secrets

    stem = re.sub(r"[^a-z0-9]+", "-", directory.resolve().name.lower()).strip("-")[:40] or "job"
    return f"{stem if stem[0].isalpha() else 'job-' + stem}-{secrets.token_hex(4)}"


def _conversations(request: JobRequest, folder: Path) -> Path:
    """The rows as Fireworks takes them: each with `messages`, and everything else beside them."""
    rows = request.dataset
    if isinstance(rows, str):
        rows = [json.loads(line) for line in Path(rows).read_text(encoding="utf-8").splitlines() if line.strip()]
    file = folder / "train.jsonl"
    with file.open("w", encoding="utf-8") as out:
        for row in rows:
            given = dict(row)
            prompt = given.pop("prompt", None)
            if "messages" not in given:
                if prompt is None:
                    raise ConfigError("A row of the dataset has neither 'messages' nor a 'prompt'. Give each one.")
                given["messages"] = prompt if isinstance(prompt, list) else [{"role": "user", "content": str(prompt)}]
            for parameter, column in _columns(request).items():
                given.setdefault(parameter, given.get(column))
            out.write(json.dumps(given) + "\n")
    return file


def _columns(request: JobRequest) -> dict[str, str]:
    """Parameters of the reward to columns of the dataset, where they are called otherwise."""
    return {parameter: column for column, parameter in (request.columns or {}).items() if parameter != column}
