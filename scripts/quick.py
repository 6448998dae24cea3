# SPDX-License-Identifier: Apache-2.0
"""Tests what a change touches, nearest first, for about two minutes.

python scripts/quick.py [--since REVISION] [--seconds 120] [--list]

A change is what differs from REVISION: where the branch left main; on main itself the last commit, or what is not
committed yet. Its tests are those that changed, those whose path mirrors a changed module's, and those that import a
changed module: directly first, then through one other module, those first that import least: they say most of it, and
take the shortest time. `make test` runs all.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_WATCHERS = ("tests/test_headers.py", "tests/test_one_meaning.py", "tests/test_fences.py", "tests/test_public_api.py")
"""Tests that read the source: any change may concern them."""
_AT_ONCE = 8
"""Files of tests per start of pytest."""


def main() -> int:
    """Choose the tests and run them; the exit status is pytest's."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--since", help="the revision that the change began at")
    parser.add_argument("--seconds", type=float, default=120, help="begin no further tests after so long")
    parser.add_argument("--workers", default="2", help="test processes at once")
    parser.add_argument("--list", action="store_true", help="only say which files would be run")
    options = parser.parse_args()
    chosen = list(tests_of(changed_since(options.since or _beginning())))
    if options.list:
        print("\n".join(chosen))
        return 0
    return _run(chosen, options.seconds, options.workers)


def changed_since(revision: str) -> list[str]:
    """The files that differ from a revision, those that git does not know yet included."""
    return sorted({*_git("diff", "--name-only", revision), *_git("ls-files", "--others", "--exclude-standard")})


def tests_of(changed: Sequence[str]) -> Iterator[str]:
    """The files of tests that a change concerns, nearest first."""
    near = {name for name in changed if name.startswith("tests/") and _is_test(name)} | set(
        filter(_exists, map(_mirror, changed))
    )
    imports = {path: _imported(path) for path in _git("ls-files", "*.py") if _exists(path)}
    modules = {_module(name) for name in changed if name.endswith(".py")}
    direct = {path for path, names in imports.items() if names & modules}
    through = {_module(path) for path in direct if path.startswith("reward_kit/")}
    distant = {path for path, names in imports.items() if names & through}
    seen: set[str] = set()
    for ring in (near, direct, {*_WATCHERS} if changed else set(), distant):
        tests = [path for path in sorted(ring - seen) if _is_test(path) and _exists(path)]
        seen.update(tests)
        yield from sorted(tests, key=lambda path: len(imports.get(path, ())))


def _run(chosen: Sequence[str], seconds: float, workers: str) -> int:
    if not chosen:
        print("quick: the change concerns no test. `make test` runs all.")
        return 0
    begun = time.monotonic()
    for first in range(0, len(chosen), _AT_ONCE):
        if first and time.monotonic() - begun > seconds:
            print(f"quick: {first} of {len(chosen)} files of tests passed in {seconds:.0f} s; `make test` runs all.")
            return 0
        command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "--dist", "loadgroup"]
        status = subprocess.run([*command, *chosen[first : first + _AT_ONCE]], check=False).returncode
        if status not in (0, 5):  # 5: everything was left out, on this machine
            return status
    print(f"quick: all {len(chosen)} files of tests that the change concerns passed; `make test` runs all.")
    return 0


def _beginning() -> str:
    base = _git("merge-base", "HEAD", "main")
    if base and base != _git("rev-parse", "HEAD"):
        return base[0]
    return "HEAD" if changed_since("HEAD") else "HEAD~1"


def _git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False).stdout.split("\n")[:-1]


def _exists(path: str) -> bool:
    return bool(path) and Path(path).exists()


def _is_test(path: str) -> bool:
    return path.startswith("tests/") and Path(path).name.startswith("test_") and path.endswith(".py")


def _mirror(path: str) -> str:
    """Where the tests of a module are, if they are where its path says."""
    place = Path(path)
    if place.parts[0] != "reward_kit" or place.suffix != ".py":
        return ""
    return str(Path("tests", *place.parts[1:-1], f"test_{place.stem.strip('_')}.py"))


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported(path: str) -> set[str]:
    """The modules that a file imports, wherever in it; `from a import b` may name the module a.b."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


if __name__ == "__main__":
    sys.exit(main())
