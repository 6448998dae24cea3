# SPDX-License-Identifier: Apache-2.0
"""The page's side of the viewer: its types are the server's, its lock file names nobody, a package holds the page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts.generate_wire import SOURCE, TARGET, typescript

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "reward_kit" / "viewer" / "static" / "index.html"


def test_the_page_has_the_types_of_the_server() -> None:
    assert TARGET.read_text(encoding="utf-8") == typescript(SOURCE.read_text(encoding="utf-8")), "run `make web`"


def test_a_type_becomes_its_counterpart() -> None:
    source = '''
class Row(TypedDict):
    """A row."""

    id: str | None
    """Its name."""
    says: Literal["right", "wrong"]
    cells: list[int | float | bool]
    more: dict[Literal["a"], list[Row]]
'''
    assert typescript(source).partition("\n\n")[2] == (
        "/** A row. */\nexport interface Row {\n  /** Its name. */\n  id: string | null;\n"
        '  says: "right" | "wrong";\n  cells: (number | boolean)[];\n  more: Record<"a", Row[]>;\n}\n'
    )


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert packages
    assert [name for name, package in packages.items() if "resolved" in package] == []
    assert [name for name, package in packages.items() if not package["integrity"].startswith("sha512-")] == []
    assert "registry" not in json.dumps(lock)


def test_every_package_of_the_page_is_wanted_in_one_version() -> None:
    wanted = json.loads((ROOT / "web" / "package.json").read_text(encoding="utf-8"))
    versions = {**wanted["dependencies"], **wanted["devDependencies"]}
    assert [f"{name} {version}" for name, version in versions.items() if not version[0].isdigit()] == []


# ── the package ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a build needs of this checkout, without a page that may have been built here."""
    files = ("LICENSE", "NOTICE", "README.md", "pyproject.toml", "scripts/build_hook.py", "reward_kit/_version.py")
    for name in (*files, "reward_kit/__init__.py", "examples/math_example/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    return tmp_path


def build(checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Builds a wheel where there is no node."""
    environment = {**os.environ, "PATH": "", **environment}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "out"]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def test_without_the_page_and_without_node_there_is_no_wheel_and_a_reason(checkout: Path) -> None:
    built = build(checkout)
    assert built.returncode != 0
    assert "The viewer's page has not been built, and node and npm" in built.stderr
    assert "make web" in built.stderr
    assert not list(checkout.glob("out/*.whl"))


def test_a_wheel_without_the_page_is_built_for_who_asks(checkout: Path) -> None:
    assert build(checkout, REWARD_KIT_WITHOUT_PAGE="1").returncode == 0
    assert list(checkout.glob("out/*.whl"))


def test_a_page_that_was_built_is_packed_without_node(checkout: Path) -> None:
    (checkout / ".gitignore").write_bytes((ROOT / ".gitignore").read_bytes())
    static = checkout / "reward_kit" / "viewer" / "static"
    static.mkdir(parents=True)
    (static / "index.html").write_text("<!doctype html>")
    (static / "app-1.js").write_text("1")
    built = build(checkout)
    assert built.returncode == 0, built.stderr
    names = zipfile.ZipFile(next(checkout.glob("out/*.whl"))).namelist()
    assert {"reward_kit/viewer/static/index.html", "reward_kit/viewer/static/app-1.js"} <= set(names)


@pytest.mark.skipif(not PAGE.is_file(), reason="the viewer's page has not been built (make web)")
def test_the_page_asks_nothing_of_anybody_and_has_nothing_inline() -> None:
    html = PAGE.read_text(encoding="utf-8")
    assert "://" not in html
    assert "<style" not in html
    assert "style=" not in html
    assert html.count("<script") == html.count('<script type="module" src="/static/') == 1
