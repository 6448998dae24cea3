# SPDX-License-Identifier: Apache-2.0
"""What has one place in the package is done nowhere else, found by reading the source.

Who needs one of these things uses the place that is named here. A further file needs a reason beside its name.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import reward_kit

PACKAGE = Path(reward_kit.__file__).parent


def _grows(node: ast.AST) -> bool:
    """`os.O_APPEND`, or a file opened with the mode `a`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "O_APPEND"
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", getattr(node.func, "id", "")) != "open":
        return False
    values = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
    return any(
        isinstance(value, ast.Constant) and str(value.value) in {"a", "ab", "a+", "ab+", "at"} for value in values
    )


def _is_replaced(node: ast.AST) -> bool:
    """`draft.replace(target)`, or the same by `os`. Texts and dates are replaced with other arguments."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if isinstance(node.func.value, ast.Name) and node.func.value.id == "os":
        return node.func.attr in {"replace", "rename", "renames"}
    return node.func.attr in {"replace", "rename"} and len(node.args) == 1 and not node.keywords


FENCES: dict[str, tuple[Callable[[ast.AST], bool], dict[str, str]]] = {
    "a file that grows": (
        _grows,
        {
            "storage/files.py": "the place",
            "generation/cache/entries.py": "many processes append to one cache, and it is pruned under them",
            "serving/access_log.py": "a log that others rotate; a line that is lost there is no loss",
            "generation/mock_server.py": "a log for people",
            "workers/process.py": "what a worker prints",
            "execution/ray_engine/engine.py": "what rewards print on other machines",
            "agent/mcp/vector/policy.py": "a recording in the older package's format",
            "integrations/rl_jobs.py": "a lock",
            "utils/opened_files.py": "asks how somebody else opened a file",
        },
    ),
    "a file that is replaced": (
        _is_replaced,
        {
            "storage/files.py": "the place",
            "storage/health.py": "sets a damaged file aside",
            "storage/projected_file.py": "sets a file that a person changed aside",
            "storage/run_directory.py": "sets earlier results aside",
            "storage/mirror/restoring.py": "moves what was downloaded to where it belongs",
            "viewer/index_cache.py": "several viewers make one index at a time, each its own draft",
            "sandbox/linux/remove_tree.py": "a folder",
            "sandbox/namespaces/rootfs.py": "a folder",
            "sandbox/namespaces/trusted.py": "takes the place of a program inside the sandbox",
        },
    ),
}


def _found(marks: Callable[[ast.AST], bool]) -> Iterator[str]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if any(map(marks, ast.walk(ast.parse(path.read_text(encoding="utf-8"))))):
            yield path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("what", FENCES)
def test_it_is_done_where_it_is_named_and_nowhere_else(what: str) -> None:
    marks, named = FENCES[what]
    assert set(_found(marks)) == set(named)
