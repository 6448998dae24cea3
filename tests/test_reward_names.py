# SPDX-License-Identifier: Apache-2.0
"""Rewards by name: in the library, in installed packages, and what is said of a name that is neither's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reward_kit.evaluation import evaluate
from reward_kit.reward_call import RewardCall
from reward_kit.reward_function import RewardFunction
from reward_kit.reward_names import library_rewards, plugin_rewards, reward_path


def install(folder: Path, package: str, *names: str) -> None:
    """A package whose entry points name rewards."""
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    points = "".join(f"{name} = {package}:judge\n" for name in names)
    (metadata / "entry_points.txt").write_text(f"[reward_kit.rewards]\n{points}")
    (folder / f"{package}.py").write_text("def judge(messages, **kwargs):\n    return 0.25\n")


@pytest.mark.parametrize("name", ["math_reward", "math"])
def test_the_ending_may_be_left_out(name: str) -> None:
    assert reward_path(name) == "reward_kit.rewards.math:math_reward"


@pytest.mark.parametrize("name", list(library_rewards()))
def test_every_name_of_the_library_leads_to_its_reward(name: str) -> None:
    assert reward_path(name) == library_rewards()[name]
    params = {"parts": ["length_reward"]} if name == "composite_reward" else {}
    assert RewardCall(name, params).name == name


@pytest.mark.parametrize("path", ["a.b:c", "a.b.c", "file.py:c", "/tmp/x.py:c", "..", ""])
def test_a_path_is_left_as_it_is(path: str) -> None:
    assert reward_path(path) == path


def test_a_name_will_do_wherever_a_path_does() -> None:
    answer = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "The answer is 72."}]
    assert RewardFunction(func_path="math")(answer, ground_truth="72").score == 1.0
    assert RewardCall("math").judge({"messages": answer, "ground_truth": "72"}).score == 1.0
    assert RewardCall("math").reward == "reward_kit.rewards.math:math_reward", (
        "a name is settled where it is first used"
    )


def test_a_run_may_name_its_reward(tmp_path: Path) -> None:
    rows = [{"user_query": "?", "assistant_response": "72", "ground_truth_for_eval": "72"}]
    assert evaluate(rows, "math", output_dir=tmp_path / "run").mean_score == 1.0


def test_looking_up_a_name_imports_the_module_it_speaks_of_and_no_other() -> None:
    code = (
        "import sys\nfrom reward_kit.reward_names import reward_path\nreward_path('tag_count')\n"
        "print([name for name in sys.modules if name.startswith('reward_kit.rewards.') and '._' not in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['reward_kit.rewards.tag_count']"


def test_an_unknown_name_is_an_import_error_that_offers_the_nearest() -> None:
    with pytest.raises(ImportError, match=r"no reward of that name \(did you mean 'math_reward'\?\)"):
        reward_path("math_rewrad")
    with pytest.raises(ImportError, match=r"'pkg\.mod:zzzz'"):
        reward_path("zzzz")


def test_packages_name_rewards_by_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "rewards_by_entry_point", "their_reward", "their-other")
    monkeypatch.syspath_prepend(tmp_path)
    assert plugin_rewards() == {
        "their_reward": "rewards_by_entry_point:judge",
        "their-other": "rewards_by_entry_point:judge",
    }
    assert reward_path("their") == reward_path("their-other") == "rewards_by_entry_point:judge"
    assert RewardCall("their").judge({"messages": []}).score == 0.25


def test_the_library_comes_before_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "rewards_by_entry_point", "math_reward")
    monkeypatch.syspath_prepend(tmp_path)
    assert reward_path("math_reward") == "reward_kit.rewards.math:math_reward"


def test_two_packages_with_one_name_are_an_error_that_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "some_rewards", "polite")
    install(tmp_path, "more_rewards", "polite")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=r"'polite': .*(some|more)_rewards:judge.*(some|more)_rewards:judge"):
        reward_path("polite")
