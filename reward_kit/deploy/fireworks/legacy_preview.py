# SPDX-License-Identifier: Apache-2.0
"""Fireworks' older preview service, which judges a few samples there. It is asked only by those who want it.

Where it fails, that is an error: no score is made up in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from reward_kit.deploy.fireworks.api import FireworksAPI
from reward_kit.deploy.fireworks.evaluators import EvaluatorSource, criterion

__all__ = ["hosted_preview"]


def hosted_preview(api: FireworksAPI, source: EvaluatorSource, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What Fireworks says of the samples: `totalSamples`, `totalRuntimeMs` and `results`."""
    body = {
        "evaluator": {
            "displayName": "preview",
            "description": "",
            "multiMetrics": True,
            "criteria": [criterion(one, source.files) for one in source.criteria],
            "requirements": "\n".join(source.requirements),
            "rollupSettings": {"skipRollup": True},
        },
        "sampleData": [orjson.dumps(sample).decode() for sample in samples],
        "maxSamples": len(samples),
    }
    return api.post(f"accounts/{api.account}/evaluators:previewEvaluator", body)
