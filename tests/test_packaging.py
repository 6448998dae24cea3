# SPDX-License-Identifier: Apache-2.0
"""What is shipped and what holds the repository together: the wheel, the sdist, the pins, the layers."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from reward_kit._version import __version__

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "reward_kit"
PINS = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REWARD_KIT_WITHOUT_PAGE", "1")  # the viewer's page is in it where `make web` has built it
        run(sys.executable, "-m", "hatchling", "build", "-d", str(folder), check=True)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(dist.glob("*.whl")))


def run(*command: str, cwd: Path = ROOT, check: bool = False) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, check=check, capture_output=True, text=True)


def package_files() -> set[str]:
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in files}


def example_files() -> set[str]:
    """The examples, which the wheel has too: `reward-kit examples copy` takes them from it."""
    files = (path for path in (ROOT / "examples").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in files}


def metadata(wheel: zipfile.ZipFile) -> Message:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def canonical(requirement: str) -> str:
    """The name in a requirement line, spelled as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


# ── what is declared ─────────────────────────────────────────────────────────────────────────────────────────────────

COME_WITH_ANOTHER = {"anyio", "botocore", "jsonschema_specifications", "markupsafe", "pydantic_core", "referencing"}
"""Parts of Starlette, of boto3, of jsonschema, of Jinja and of pydantic."""
OTHER_PEOPLES = {
    "IPython", "bfcl_eval", "duckdb", "fastapi", "openenv", "openrlhf", "pandas", "pytest", "skyrl_gym",
    "tinker_cookbook", "verifiers", "verl",
}  # fmt: skip
"""Looked for where somebody has them, and never needed."""


def imported() -> set[str]:
    """The packages that some module of ours imports."""
    nodes = (node for path in PACKAGE.rglob("*.py") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names - {"reward_kit", "annotationlib"}  # the last is Python 3.14's


def test_every_package_that_is_imported_is_declared() -> None:
    project = PROJECT["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    declared = {canonical(line) for line in lines}
    distributions = packages_distributions()
    undeclared = {
        name
        for name in imported() - COME_WITH_ANOTHER - OTHER_PEOPLES
        if declared.isdisjoint(map(canonical, distributions.get(name, [name])))
    }
    assert undeclared == set()


# ── the wheel and the sdist ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert shipped == package_files() | {f"reward_kit/{name}" for name in example_files()}
    assert "reward_kit/py.typed" in shipped
    assert any(re.fullmatch(r"reward_kit/conf/.+\.yaml", name) for name in shipped)


def test_the_wheel_names_its_version_license_and_command(wheel: zipfile.ZipFile) -> None:
    facts = metadata(wheel)
    assert facts["Version"] == __version__
    assert facts["License-Expression"] == "Apache-2.0"
    assert facts.get_all("License-File") == ["LICENSE", "NOTICE"]
    entry_points = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "reward-kit = reward_kit.cli:main" in wheel.read(entry_points).decode()


def test_the_sdist_can_be_built_and_tested_from(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert package_files() <= names
    assert {"LICENSE", "NOTICE", "README.md", "pyproject.toml", "tests/test_packaging.py"} <= names
    assert not [name for name in names if name.startswith((".venv", ".git/", "conf/", "dist/", "outputs/"))]


def test_the_checkout_offers_the_packaged_configs_as_conf() -> None:
    assert (ROOT / "conf").resolve() == PACKAGE / "conf"


# ── the pins ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("file", PINS, ids=lambda path: path.name)
def test_every_pin_is_exact_and_hashed_and_says_nothing_of_the_machine_that_made_it(file: Path) -> None:
    text = file.read_text()
    requirements = re.sub(r"\\\n", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    assert requirements
    for requirement in requirements:
        assert re.match(r"[\w.-]+==[^\s;]+( ; .+?)?( +--hash=sha256:[0-9a-f]{64})+$", requirement), requirement
    assert "://" not in text
    assert not re.search(r"\s/\w", text)


def test_every_dependency_is_pinned() -> None:
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *(line for name in extras if name != "all" for line in extras[name])]
    declared += [line for group in groups.values() for line in group if isinstance(line, str)]
    pinned = {canonical(line) for file in PINS for line in file.read_text().splitlines() if "==" in line}
    # Its builds share a version and differ in hashes and dependencies: scripts/setup-train.sh pins the version.
    assert {canonical(line) for line in declared} - {"torch"} <= pinned
    assert "torch" not in pinned


def test_the_extra_all_is_all_extras_but_those_that_are_heavy() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    assert everything == f"reward-kit[{','.join(sorted(extras.keys() - {'all', 'litellm', 'train'}))}]"


# ── the layers ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_module_must_be_given_its_row(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(PACKAGE, tmp_path / "reward_kit", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "reward_kit" / "attic.py").touch()
    result = run(str(Path(sys.executable).with_name("lint-imports")), "--no-cache", cwd=tmp_path)
    assert result.returncode == 1
    assert "attic" in result.stdout
