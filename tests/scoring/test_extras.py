# SPDX-License-Identifier: Apache-2.0
"""The extras that rewards use are in the table, in a bundle's requirements and in a reward's identity."""

from __future__ import annotations

import re
from importlib.metadata import requires, version
from pathlib import Path

import pytest

import reward_kit
from reward_kit.config_models import RewardConfig
from reward_kit.deploy.bundle import BundleSource, make_bundle
from reward_kit.deploy.wheels import Platform, Wanted
from reward_kit.scoring.extras import EXTRAS, USED_BY, versions_of
from reward_kit.scoring.rewards import Reward
from reward_kit.utils.project_files import Project

PACKAGE = Path(reward_kit.__file__).parent
JUDGING = ("rewards/", "mathematics/", "answers/")
SITE = re.compile(r'(?:MissingExtraError|needs_extra)\([^)]*"(\w+)"\)|find_spec\("(math)_verify"\)')


def uses() -> dict[str, set[str]]:
    """By a module of rewards, the extras that it needs, itself or through what it imports of what judges."""
    sites: dict[str, set[str]] = {}
    leads: dict[str, set[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).as_posix()
        if name.startswith(JUDGING):
            sites[name] = {a or b for a, b in SITE.findall(file.read_text())}
            leads[name] = _direct(file)
    return {name: _behind(name, sites, leads) for name in sites if re.fullmatch(r"rewards/[a-z]\w+\.py", name)}


def _direct(file: Path) -> set[str]:
    """What a module imports of what judges."""
    text = file.read_text()
    named = re.findall(r"^\s*(?:from|import) reward_kit\.((?:rewards|mathematics|answers)[\w.]*)", text, re.MULTILINE)
    names = re.findall(r"^\s*from reward_kit\.((?:rewards|mathematics|answers)[\w.]*) import \(?([^)\n]*)", text, re.M)
    named += [f"{module}.{name.strip()}" for module, several in names for name in several.split(",")]
    places = [f"{each.replace('.', '/')}{end}" for each in named for end in (".py", "/__init__.py")]
    return {place for place in places if (PACKAGE / place).is_file() and place != "rewards/__init__.py"}


def _behind(name: str, sites: dict[str, set[str]], leads: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            waiting += leads[each]
    return {extra for each in seen for extra in sites[each]}


def test_the_table_is_what_following_the_imports_finds() -> None:
    found = {f"reward_kit.{name[:-3].replace('/', '.')}": extras for name, extras in uses().items() if extras}
    table = {module: {extra} for module, extra in USED_BY.items() if module != "reward_kit.mathematics"}
    assert table == found


def test_the_packages_are_those_that_the_extras_install() -> None:
    for name, extra in EXTRAS.items():
        declared = [line for line in requires("reward-kit") or () if re.search(rf"extra == ['\"]{name}['\"]", line)]
        assert {re.split(r"[^\w.-]", line)[0] for line in declared} == set(extra.packages)


@pytest.mark.parametrize(("reward", "extra"), [("math", "math"), ("bleu", "text"), ("regex", "regex")])
def test_a_bundle_requires_the_extras_that_its_reward_uses(tmp_path: Path, reward: str, extra: str) -> None:
    bundle = make_bundle(BundleSource(rewards={"r": reward}, project=tmp_path), extras=("serve",))
    assert bundle.pinned.requirements[0].startswith(f"reward-kit[{','.join(sorted(('serve', extra)))}]==")
    names = {line.partition("==")[0] for line in bundle.pinned.constraints}
    assert names.issuperset(EXTRAS[extra].packages)
    wanted = Wanted(bundle.pinned.requirements, bundle.pinned.constraints, Platform("x86_64", "3.12", 34), None)
    others = {re.split(r"[^\w.-]", line)[0] for line in wanted.lists()["others.txt"]}
    assert others.issuperset(EXTRAS[extra].packages)


USING = {
    "from reward_kit.rewards.math import math_reward as one": "math",
    "from reward_kit.rewards import math_reward as one": "math",
    "import reward_kit.rewards.overlap as one": "text",
    "from reward_kit.rewards import overlap as one": "text",
    "import reward_kit": None,
    "import reward_kit; two = reward_kit.rewards.math_reward": "math",
    "import reward_kit as kit; two = kit.answers_match": "math",
    "import reward_kit.rewards as one; two = lambda: one.math_reward": "math",
    "import reward_kit.rewards.overlap; two = reward_kit.rewards.overlap.__doc__": "text",
    "from reward_kit import rewards as one; two = one.overlap": "text",
    "from reward_kit import rewards as one; two = getattr(one, 'accuracy_reward')": "math",
    "from reward_kit import rewards as one; three = one; two = lambda: three.math_reward": "math",
    "from reward_kit import reward_function; two = 'reward_kit.rewards.json_schema:json_schema_reward'": "schema",
    "from reward_kit import rewards as one; import math; two = one.format_reward, math.pi": None,
}


@pytest.mark.parametrize("line", USING)
@pytest.mark.parametrize("deep", [False, True])
def test_a_reward_of_ones_own_uses_what_its_modules_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, deep: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    stem = f"rw_{sorted(USING).index(line)}_{deep}"
    (tmp_path / f"{stem}.py").write_text(f"import {stem}_helper\ndef judge(messages, **kw):\n    return 1.0\n")
    body = f"def f():\n    {line}\n" if deep else line
    (tmp_path / f"{stem}_helper.py").write_text(body)
    reward = Reward(RewardConfig(function_path=f"{stem}.py:judge"))
    extra = USING[line]
    packages = EXTRAS[extra].packages if extra else ()
    assert reward.identity["reward.extras"] == {package: version(package) for package in packages}
    bundle = make_bundle(BundleSource(rewards={"r": f"{stem}.py:judge"}, project=tmp_path))
    assert bundle.pinned.requirements[0].partition("==")[0] == (f"reward-kit[{extra}]" if extra else "reward-kit")


def test_a_composite_uses_what_its_parts_use() -> None:
    parts = {"a": {"reward": "math"}, "b": {"reward": "format_reward"}}
    reward = Reward(RewardConfig(function_path="composite", params={"parts": parts}))
    assert list(reward.identity["reward.extras"]) == ["math-verify"]


def test_a_package_that_is_missing_is_another_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(Path.cwd(), {}, frozenset({"reward_kit.rewards.math"}))
    assert versions_of(project) == {"math-verify": version("math-verify")}
    monkeypatch.setitem(EXTRAS, "math", EXTRAS["math"]._replace(packages=("no-such-package",)))
    assert versions_of(project) == {"no-such-package": None}
