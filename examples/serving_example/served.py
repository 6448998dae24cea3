# SPDX-License-Identifier: Apache-2.0
"""Serve the reward while a command runs: `python served.py COMMAND…`. The command finds the address in REWARD_SERVER.

python served.py reward-kit run --config-path conf --config-name offline
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

REWARD = f"{Path(__file__).resolve().parent / 'reward.py'}:right_number"


@contextlib.contextmanager
def served() -> Iterator[str]:
    """The address of a server of the reward: the one in REWARD_SERVER, else one on a free port of this machine."""
    if "REWARD_SERVER" in os.environ:
        yield os.environ["REWARD_SERVER"]
        return
    options = ["--port", "0", "--workers", "1", "--access-log", "none"]
    command = [sys.executable, "-m", "reward_kit.cli", "serve", REWARD, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            lines = (re.search(r"https?://[^\s,]+", line) for line in server.stdout)
            yield next(found[0] for found in lines if found).rstrip(".")
        finally:
            server.terminate()


def main() -> int:
    """Run the command, and end as it ends."""
    if len(sys.argv) == 1:
        sys.exit("Say which command shall run: python served.py COMMAND…")
    with served() as address:
        return subprocess.call(sys.argv[1:], env={**os.environ, "REWARD_SERVER": address})


if __name__ == "__main__":
    sys.exit(main())
