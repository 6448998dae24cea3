# SPDX-License-Identifier: Apache-2.0
"""What the Tab key offers, as a real bash asks for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from reward_kit.config_models import PipelineConfig
from tests.cli_commands.conftest import Call

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash here")

# `compopt` works only while bash completes; here it is noted that it was called.
ASK = """
compopt() { local IFS=" "; echo "option $*"; }
source script.sh
COMP_LINE="$1" COMP_POINT=${#COMP_LINE} COMPREPLY=()
_reward_kit_completion "$2" >noted.txt 2>errors.txt
cat noted.txt
printf 'reply %s\\n' "${COMPREPLY[@]}"
"""


class Offered(NamedTuple):
    values: list[str]
    options: set[str]


@pytest.fixture
def home(tmp_path: Path, call: Call) -> Path:
    program = tmp_path / "bin" / "reward-kit"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m reward_kit \"$@\"\n")
    program.chmod(0o755)
    (tmp_path / "script.sh").write_text(call("completion", "bash").out)
    (tmp_path / "conf").mkdir()
    for name in ("conf/math.yaml", "mine.yaml", "rows.jsonl", "rewards.py"):
        (tmp_path / name).touch()
    return tmp_path


def offered(home: Path, line: str) -> Offered:
    """What bash puts in the place of the word it completes, which begins after the last space, = or :."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    asked = ["bash", "--norc", "-c", ASK, "bash", line, str(home / "bin" / "reward-kit")]
    done = subprocess.run(asked, cwd=home, env=environment, capture_output=True, text=True, check=True, timeout=100)
    assert (home / "errors.txt").read_text() == ""
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    values = [value for kind, _, value in lines if kind == "reply" and value]
    return Offered(values, {value for kind, _, value in lines if kind == "option"})


def test_commands_and_options_are_offered(home: Path) -> None:
    assert offered(home, "reward-kit do").values == ["doctor"]
    assert "--fail-under" in offered(home, "reward-kit run --fa").values


def test_config_files_and_folders_are_offered_until_one_is_named(home: Path) -> None:
    assert offered(home, "reward-kit run mi").values == ["mine.yaml"]
    assert offered(home, "reward-kit run con") == Offered(["conf/"], {"-o nospace"})
    assert offered(home, "reward-kit run conf/").values == ["conf/math.yaml"]
    assert "rows.jsonl" not in offered(home, "reward-kit run ").values
    assert offered(home, "reward-kit run mine.yaml mi").values == []


def test_keys_are_offered_a_section_at_a_time(home: Path) -> None:
    assert offered(home, "reward-kit run mine.yaml gen") == Offered(["generation."], {"-o nospace"})
    assert offered(home, "reward-kit run mine.yaml generation.model_") == Offered(
        ["generation.model_name="], {"-o nospace"}
    )
    assert offered(home, "reward-kit run mine.yaml generation.api_params.max_re").values == [
        "generation.api_params.max_retries=",
        "generation.api_params.max_reply_mb=",
        "generation.api_params.max_retry_after=",
    ]
    assert "++max_cost=" in offered(home, "reward-kit run mine.yaml ++max").values
    assert offered(home, "reward-kit run mine.yaml nothing.at.all").values == []


def test_every_key_of_a_config_can_be_reached(home: Path) -> None:
    top = offered(home, "reward-kit run mine.yaml ").values
    assert {name.rstrip(".=") for name in top} == set(PipelineConfig.model_fields)


def test_values_are_offered_behind_the_equals_sign(home: Path) -> None:
    """Bash takes the part behind = for the word, so that alone is offered."""
    assert offered(home, "reward-kit run mine.yaml sandbox.backend=name").values == ["namespaces"]
    assert offered(home, "reward-kit run mine.yaml generation.enabled=").values == ["true", "false"]
    assert offered(home, "reward-kit run mine.yaml generation.model_name=m").values == ["mock", "mistral/"]
    assert "anthropic/" in offered(home, "reward-kit run mine.yaml judge.model_name=").values
    assert offered(home, "reward-kit shell --model op").values == ["openai/", "openrouter/"]
    assert offered(home, "reward-kit run mine.yaml dataset.path_or_name=ro").values == ["rows.jsonl"]
    assert offered(home, "reward-kit run mine.yaml reward.function_path=math_r").values == ["math_reward"]
    assert offered(home, "reward-kit run mine.yaml reward.function_path=rewards.").values == ["rewards.py"]


def test_benchmarks_are_offered_where_no_config_is_named(home: Path) -> None:
    assert offered(home, "reward-kit run +bench").values == ["+benchmark="]
    assert offered(home, "reward-kit run +benchmark=gsm").values == ["gsm8k"]
    assert offered(home, "reward-kit benchmarks show gsm").values == ["gsm8k"]
    assert "benchmark=" not in offered(home, "reward-kit run mine.yaml ").values


def test_templates_and_examples_are_offered(home: Path) -> None:
    assert offered(home, "reward-kit init mine --template co").values == ["code", "composite"]
    assert offered(home, "reward-kit examples copy math").values == ["math_example"]


def test_rewards_and_files_of_other_commands_are_offered(home: Path) -> None:
    assert "math_reward" in offered(home, "reward-kit rewards show math").values
    assert offered(home, "reward-kit best-of-n --dataset ro").values == ["rows.jsonl"]
    assert offered(home, "reward-kit inspect ").options == {"-o default"}, "bash completes files itself"


def test_the_scripts_of_all_shells_are_printed(call: Call) -> None:
    for shell in ("bash", "zsh", "fish"):
        said = call("completion", shell)
        assert said.code == 0 and "_REWARD_KIT_COMPLETE" in said.out
    assert "-S ''" in call("completion", "zsh").out and "COMP_LINE" in call("completion", "bash").out


def test_nothing_of_it_is_loaded_where_nobody_presses_tab(tmp_path: Path) -> None:
    code = "import sys; sys.argv = ['reward-kit', 'run', '--help']\ntry:\n    from reward_kit.cli import main; main()\n"
    code += (
        "except SystemExit:\n    print('shell_completion' in str(sorted(sys.modules)), 'cli_commands.completion' in "
    )
    code += "str(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})  # fmt: skip
    assert done.stdout.splitlines()[-1].endswith("False")
