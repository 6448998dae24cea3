# SPDX-License-Identifier: Apache-2.0
"""Configs in the shape that the older package's examples have, run with the mock model and without an edit.

`project/` is the folder of such a user: configs, groups of datasets, data, and rewards written for the older package.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
import yaml

from reward_kit.cli_commands.hydra_config import ConfigFile, compose_jobs
from reward_kit.config_models import load_config
from reward_kit.inherited_config import KEYS
from reward_kit.testing import MockServer
from tests.cli_commands.conftest import Call, call
from tests.execution.shell_support import require_namespaces
from tests.loopback.runs import lines

__all__ = ["call"]

PROJECT = Path(__file__).with_name("project")
MOCK = ("generation.model_name=mock", "generation.mock.function_path=scripted_model.py:answer")


class Expected(NamedTuple):
    scores: list[float | None]
    """In the order of the data; None: no verdict."""
    needs_sandbox: bool = False


RUNS = {
    "math": Expected([1.0, 1.0, 0.0]),
    "math_formatting": Expected([1.0, 1.0, None, 1.0]),
    "math_format_length": Expected([1.0, 1.0, 2 / 3, 1.0]),
    "apps_coding": Expected([1.0, 0.5], needs_sandbox=True),
    "tool_calling": Expected([1.0, 0.0]),
    "tool_calling_generated": Expected([1.0, 1.0]),
    "n_variants": Expected([1.0, 0.0, 1.0, 0.0] * 2),
    "word_count": Expected([0.25, 1.0]),
    "json_judge": Expected([0.7 + 0.3 * 0.5] * 2),
    "derived_math": Expected([1.0, 1.0]),
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder, as the current one."""
    shutil.copytree(PROJECT, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))  # which the configs' search path is made of
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("old_") or name.endswith("_scripted_model")]:
        del sys.modules[name]


def run_directory(project: Path) -> Path:
    """Where the only run is; the configs name it by the time."""
    (found,) = project.glob("outputs/**/summary.json")
    return found.parent


def test_each_config_of_the_folder_is_expected_to_do_something() -> None:
    assert sorted(path.stem for path in PROJECT.glob("conf/*.yaml")) == sorted(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_a_config_runs_without_an_edit(name: str, project: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = RUNS[name]
    if expected.needs_sandbox:
        require_namespaces()
    with MockServer({"rules": [{"pattern": ".", "response": "VERDICT: 5"}]}) as judge:
        monkeypatch.setenv("OPENAI_BASE_URL", judge.url)
        said = call("run", "--config-path", "conf", "--config-name", name, "reward.workers=1", *MOCK)
    assert said.code == 0, said.err
    rows = lines(run_directory(project) / "results.jsonl")
    assert [row["evaluation_score"] for row in rows] == pytest.approx(expected.scores)
    assert (name == "json_judge") == bool(judge.requests), "the judge that OPENAI_BASE_URL names is asked"


def test_what_is_left_out_is_named_in_one_remark(project: Path, call: Call) -> None:
    said = call("run", "--config-path", "conf", "--config-name", "word_count", *MOCK)
    (remark,) = [line for line in said.err.splitlines() if line.startswith("Left out")]
    assert remark == (
        "Left out, because nothing depends on them: `description`, `dataset._target_`, `dataset.description`. "
        "You can delete them."
    )
    assert "Left out" not in call("run", "--config-path", "conf", "--config-name", "word_count", "-q", *MOCK).err


def test_hydras_run_directory_is_the_runs(project: Path, call: Call) -> None:
    assert call("run", "--config-path", "conf", "--config-name", "word_count", *MOCK).code == 0
    place = run_directory(project)
    assert place.parent.parent == project / "outputs" / "word_count"
    assert len(lines(place / "word_count_results.jsonl")) == 2, "`output_file` is a file in it"


@pytest.mark.parametrize(
    ("overrides", "place"),
    [
        ([], "outputs/word_count/"),
        (["hydra.run.dir=elsewhere"], "elsewhere"),
        (["output.output_dir=mine"], "mine"),
        (["output.output_dir=mine", "hydra.run.dir=elsewhere"], "mine"),
    ],
)
def test_who_decides_where_the_run_is(project: Path, overrides: list[str], place: str) -> None:
    (job,) = compose_jobs(ConfigFile(project / "conf", "word_count.yaml"), overrides, sweep=False)
    assert job.values["output"]["output_dir"].removeprefix("./").startswith(place)


def test_hydras_sweep_directory_holds_the_runs_of_a_sweep(project: Path) -> None:
    jobs = compose_jobs(ConfigFile(project / "conf", "math.yaml"), ["generation.n=1,2"], sweep=True)
    (place,) = {job.values["output"]["output_dir"] for job in jobs}
    assert place.startswith("./multirun/math/")


def test_hydras_own_directory_is_nobodys_wish(tmp_path: Path) -> None:
    (tmp_path / "plain.yaml").write_text("reward: {function_path: math}\n")
    (plain,) = compose_jobs(ConfigFile(tmp_path, "plain.yaml"), [], sweep=False)
    assert "output" not in plain.values
    told = {"hydra": {"run": {"dir": "outputs/${now:%Y-%m-%d}/${now:%H-%M-%S}"}}, "reward": {"function_path": "math"}}
    (tmp_path / "told.yaml").write_text(yaml.safe_dump(told))
    (same,) = compose_jobs(ConfigFile(tmp_path, "told.yaml"), [], sweep=False)
    assert same.values["output"]["output_dir"].startswith("outputs/2"), "the same words, and somebody wrote them"


def test_a_named_dataset_takes_the_place_of_one_that_is_written_in_the_file(project: Path) -> None:
    config = ConfigFile(project / "conf", "math_formatting.yaml")
    (job,) = compose_jobs(config, ["dataset=apps_prompts", "dataset.max_samples=1"], sweep=False)
    dataset = job.values["dataset"]
    assert (dataset["path_or_name"], dataset["max_samples"], dataset["column_mapping"]) == ("data/apps.jsonl", 1, {})
    (packaged,) = compose_jobs(config, ["dataset=gsm8k"], sweep=False)
    assert packaged.values["dataset"]["path_or_name"] == "openai/gsm8k"
    assert packaged.values["dataset"]["column_mapping"] == {}, "nothing is left of the one in the file"


def test_a_users_own_dataset_comes_before_one_of_the_package(project: Path) -> None:
    (project / "conf" / "dataset" / "gsm8k.yaml").write_text("path_or_name: mine.jsonl\n")
    (project / "other").mkdir()
    shutil.move(project / "conf" / "math.yaml", project / "other" / "math.yaml")
    (job,) = compose_jobs(ConfigFile(project / "other", "math.yaml"), ["dataset=gsm8k"], sweep=False)
    assert job.values["dataset"]["path_or_name"] == "mine.jsonl"


def test_the_bases_of_datasets_come_with_the_package(project: Path, call: Call) -> None:
    """The older package had them in its repository only, and who has no copy of them needs none."""
    for name in ("base_dataset", "base_derived_dataset"):
        (project / "conf" / "dataset" / f"{name}.yaml").unlink()
    config = ConfigFile(project / "conf", "derived_math.yaml")
    (job,) = compose_jobs(config, [], sweep=False)
    dataset = load_config(job.values).dataset
    assert dataset is not None and dataset.base_dataset is not None
    assert (dataset.max_samples, dataset.base_dataset.split) == (2, "train")
    assert call("run", "--config-path", "conf", "--config-name", "derived_math", "reward.workers=1", *MOCK).code == 0
    assert [row["evaluation_score"] for row in lines(run_directory(project) / "results.jsonl")] == [1.0, 1.0]


def test_the_examples_have_every_key_of_the_table(project: Path) -> None:
    """So that each line of the table in docs/migrating.md is run by the tests above."""

    def paths(part: Any, prefix: str = "") -> Iterator[str]:
        if isinstance(part, dict):
            for name, value in part.items():
                yield f"{prefix}{name}"
                yield from paths(value, f"{prefix}{name}.")

    found: set[str] = set()
    for file in (project / "conf").glob("*.yaml"):
        found |= set(paths(yaml.safe_load(file.read_text())))
    for file in (project / "conf" / "dataset").glob("*.yaml"):
        found |= {f"dataset.{path}" for path in paths(yaml.safe_load(file.read_text()))}
    assert [key.path for key in KEYS if key.path not in found] == ["hydra_output_dir"], "which the program itself set"


def test_the_config_that_a_run_writes_has_our_names_only(project: Path, call: Call) -> None:
    assert call("run", "--config-path", "conf", "--config-name", "n_variants", *MOCK).code == 0
    written = yaml.safe_load((run_directory(project) / "config.yaml").read_text())
    assert not {"seed", "verbose", "logging_params"} & written.keys()
    assert (written["generation"]["seed"], written["generation"]["max_tokens"]) == (42, 512)
    assert orjson.loads((run_directory(project) / "summary.json").read_bytes())["judged"] == 8
