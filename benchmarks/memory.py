# SPDX-License-Identifier: Apache-2.0
"""Peak memory of a large run, beside that of one a tenth its size; each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.report import Report, Row
from benchmarks.scene import ROOT, Workshop, mock_server, remote, workshop

__all__ = ["main"]

GOAL = 1.3


def main(*, quick: bool = False) -> Report:
    """Measure both sizes with default settings."""
    small = 200 if quick else 20_000
    large = 10 * small
    with workshop() as shop, mock_server() as api_base:
        peaks = {samples: peak_megabytes(shop, api_base, samples) for samples in (small, large)}
    context = f"{peaks[large]:.0f} MB beside {peaks[small]:.0f} MB"
    row = Row(f"{large:,} samples, of {small:,}", peaks[large] / peaks[small], context, at_most=GOAL)
    return Report("memory", "peak resident memory of a run", [row])


def peak_megabytes(shop: Workshop, api_base: str, samples: int) -> float:
    """The peak of one run."""
    config = shop.config(samples, remote(api_base, 64))
    text = config.model_dump_json(exclude_none=True, exclude={"generation": {"api_key"}})
    command = [sys.executable, "-m", "benchmarks.one_run", str(samples)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT)
    return float(json.loads(done.stdout)["peak_megabytes"])
