# SPDX-License-Identifier: Apache-2.0
"""One run in a process of its own: the config as JSON on standard input, what it took as JSON on standard output."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from benchmarks.scene import timed_run
from reward_kit.config_models import load_config

__all__ = ["main", "peak_bytes"]


def main() -> None:
    """Run the config, and expect as many records as the argument says."""
    seconds = timed_run(load_config(json.load(sys.stdin)), int(sys.argv[1]))
    print(json.dumps({"seconds": seconds, "peak_megabytes": peak_bytes() / 1e6}))


def peak_bytes() -> int:
    """The most memory this process had resident."""
    # Linux first: there `ru_maxrss` may tell of the process that started this one.
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
