# SPDX-License-Identifier: Apache-2.0
"""`reward-kit view` as people start it, for as long as a test looks."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, NamedTuple


class Served(NamedTuple):
    """A server that runs."""

    address: str
    """With the token, as the terminal prints it."""
    keys: dict[str, str]
    """Of the runs, by their titles."""

    @property
    def base(self) -> str:
        """The address without the token."""
        return self.address.partition("/?")[0]


@contextmanager
def serve(folder: Path, *options: str, where: Path | None = None) -> Iterator[Served]:
    """A server over what is in the folder, started in the directory `where`."""
    command = [sys.executable, "-m", "reward_kit", "view", str(folder), "--no-open", *options]
    process = subprocess.Popen(command, cwd=where, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"http://\S+", line):
                yield Served(found[0], _keys(found[0]))
                break
        else:
            raise AssertionError(f"the server did not start: {''.join(said)}")
    finally:
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        process.wait(30)
        process.stderr.close()


def _keys(address: str) -> dict[str, str]:
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with opener.open(address, timeout=60) as page:
        page.read()
    with opener.open(f"{address.partition('/?')[0]}/api/runs", timeout=60) as answer:
        told: dict[str, Any] = json.load(answer)
    return {run["title"]: run["key"] for run in told["runs"]}
