# SPDX-License-Identifier: Apache-2.0
"""Runs pytest as CI does: where few tests fail, they are run again alone, and those that then pass are named.

python scripts/again.py 5 -n 2 tests     up to five failures are tried again; what follows the number is for pytest

Exit status 0 when everything passed at last, else that of the first run. The table of unsteady tests is printed, and
added to the file that the variable UNSTEADY names, so that who runs more after it can print it last.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

_TESTS_FAILED = 1
"""pytest's exit status when tests failed, and nothing worse happened."""
_MESSAGE_CHARACTERS = 300


class _Results(NamedTuple):
    """What one run of pytest says of its tests, by their names."""

    status: int
    passed: frozenset[str]
    failed: dict[str, str]
    """With the message of the failure."""


def main(most: int, arguments: list[str]) -> int:
    """Run the tests, and those that fail a second time where they are at most so many; the exit status."""
    with tempfile.TemporaryDirectory() as place:
        first = _run([*arguments], Path(place))
        if first.status != _TESTS_FAILED or not 0 < len(first.failed) <= most:
            return first.status
        print(f"\nAgain, alone, in one process: what failed ({len(first.failed)}).", flush=True)
        second = _run([*arguments, "-n", "0", "--last-failed", "--last-failed-no-failures", "none"], Path(place))
    if second.status or not first.failed.keys() <= second.passed:
        return first.status
    _tell(first.failed)
    return 0


def _run(arguments: list[str], place: Path) -> _Results:
    """One run of pytest, which keeps in `place` what it remembers for the next."""
    report = place / "report.xml"
    # Only this older form of the report says which file a test is in.
    options = ["-o", f"cache_dir={place / 'cache'}", "-o", "junit_family=xunit1", f"--junitxml={report}"]
    status = subprocess.run([sys.executable, "-m", "pytest", *arguments, *options], check=False).returncode
    passed: set[str] = set()
    failed: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        name = f"{case.get('file', case.get('classname'))}::{case.get('name')}"
        wrong = [*case.iter("failure"), *case.iter("error")]
        if wrong:
            failed.setdefault(name, " ".join((wrong[0].get("message") or "").split())[:_MESSAGE_CHARACTERS])
        elif case.find("skipped") is None:
            passed.add(name)
    report.unlink(missing_ok=True)
    return _Results(status, frozenset(passed - failed.keys()), failed)


def _tell(failed: dict[str, str]) -> None:
    """Say which tests are unsteady, where nobody overlooks it."""
    lines = ["", " unsteady: failed once, passed alone ".center(120, "=")]
    lines += [f"{name}\n    {message}" for name, message in failed.items()]
    lines += ["An unsteady test is a fault, of the program or of the test. Mend it; do not run it again.", "=" * 120]
    table = "\n".join(lines) + "\n"
    print(table, flush=True)
    if kept := os.environ.get("UNSTEADY"):
        with open(kept, "a", encoding="utf-8") as file:
            file.write(table)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
