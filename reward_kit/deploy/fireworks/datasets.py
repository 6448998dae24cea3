# SPDX-License-Identifier: Apache-2.0
"""Datasets at Fireworks: a JSON-lines file under an id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from reward_kit.deploy.fireworks.api import FireworksAPI, Progress
from reward_kit.deploy.fireworks.polling import states
from reward_kit.deploy.fireworks.replacing import create_or_replace
from reward_kit.deploy.fireworks.uploads import upload
from reward_kit.errors import DatasetError, DeployError

__all__ = ["upload_dataset"]

_READY = "READY"


def upload_dataset(
    api: FireworksAPI,
    dataset_id: str,
    file: Path,
    *,
    display_name: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Bring a JSON-lines file of conversations to Fireworks. One that is there is a `DeployError` without `force`."""
    content = file.read_bytes()
    examples = _checked(file, content)
    name = api.name("datasets", dataset_id)
    body = {
        "datasetId": dataset_id,
        "dataset": {
            "displayName": display_name or dataset_id,
            "exampleCount": str(examples),
            "format": "CHAT",
            "userUploaded": {},
        },
    }
    create_or_replace(
        api,
        f"accounts/{api.account}/datasets",
        name,
        body,
        finished=_READY,
        replace=force,
        exists=f"The dataset {name!r} exists. Choose another id, or replace it with --force.",
    )
    upload(api, name, file.name, content, progress)
    for dataset in states(lambda: api.get(name), timeout=1800.0, what=f"Checking {name!r}"):
        state = str(dataset.get("state", _READY))
        if state == _READY:
            return dataset
        if (reason := (dataset.get("status") or {}).get("message")) and (dataset["status"].get("code") != "OK"):
            raise DeployError(
                f"Fireworks cannot use the dataset {name!r}: {reason}. Correct the file and send it again."
            )
    raise AssertionError("asking does not end")


def _checked(file: Path, content: bytes) -> int:
    """How many rows the file has; each must be a conversation, because Fireworks refuses the file otherwise."""
    count = 0
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise DatasetError(f"Line {number} of {str(file)!r} is not JSON: {error}. Correct the file.") from None
        if not isinstance(row, dict) or not isinstance(row.get("messages"), list):
            raise DatasetError(
                f"Line {number} of {str(file)!r} has no list of 'messages', which a dataset of conversations needs."
            )
        count += 1
    if not count:
        raise DatasetError(f"{str(file)!r} has no rows, so there is nothing to send.")
    return count
