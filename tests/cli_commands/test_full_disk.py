# SPDX-License-Identifier: Apache-2.0
"""A disk that is full half way through each file that a command writes: one sentence, and no half a file.

Each command is called once with room, which says what files it writes and how long they are. Then it is called where no
file can grow beyond a part of the longest. What was there before stays as it was; what is new is whole or not there.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli_commands.conftest import write_config
from tests.loopback.runs import config, write_rows
from tests.loopback.zygote import Ended, Zygote

pytestmark = pytest.mark.timeout(400)


class Writer(NamedTuple):
    """A command that writes."""

    words: str
    also: str = ""
    """A command that is called before it."""


WRITERS: dict[str, Writer] = {
    "run": Writer("run conf.yaml output.output_dir=new"),
    "run, again": Writer("run conf.yaml generation.n=3"),
    "run, --rescore": Writer("run conf.yaml --rescore reward.pass_threshold=0.7"),
    "run, --junit": Writer("run conf.yaml --junit reports/new.xml"),
    "run, --junit again": Writer("run conf.yaml --junit report.xml", also="run conf.yaml --junit report.xml"),
    "run, a mirror": Writer("run conf.yaml output.output_dir=new output.mirror=kept://{home}/mirrored"),
    "run, from a mirror": Writer(
        "run conf.yaml output.output_dir=later output.mirror=kept://{home}/mirrored --resume-from-mirror",
        also="run conf.yaml output.output_dir=new output.mirror=kept://{home}/mirrored",
    ),
    "inspect, svg": Writer("inspect run --plot curves.svg --by id", also="inspect run --plot curves.svg"),
    "inspect, html": Writer("inspect run --plot curves.html"),
    "inspect, png": Writer("inspect run --plot curves.png"),
    "report": Writer("report run -o report.html"),
    "export": Writer("export run --to preference -o made/rows.jsonl"),
    "export, Parquet": Writer("export run --to sft -o rows.parquet"),
    "merge": Writer("merge run -o whole"),
    "regenerate": Writer("regenerate run --model mock -o again"),
    "best-of-n": Writer("best-of-n -c best.yaml"),
    "shell": Writer("shell --model mock --dataset tasks.jsonl -o shell"),
    "review": Writer("review run --record s1#0 --says wrong", also="review run --record s0#0 --says right"),
    "review, --export": Writer(
        "review run --export cases.jsonl",
        also="review run --record s0#0 --says wrong",
    ),
    "init": Writer("init starter"),
    "examples": Writer("examples copy math_example"),
    "cache": Writer("cache prune --cache-dir cache --max-size 2KB"),
    "doctor": Writer("doctor torn --mend"),
}  # fmt: skip


@pytest.fixture(scope="module")
def processes() -> Zygote:
    return Zygote(
        "tests.loopback.local_store", "reward_kit.cli_commands.run_eval_cmd", "reward_kit.cli_commands.inspect_cmd"
    )


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, processes: Zygote) -> Path:
    """A folder in which much was written already."""
    home = tmp_path_factory.mktemp("begun")
    rows = [{"id": f"s{n}", "user_query": f"What is {n} + {4 - n}?", "ground_truth": "4"} for n in range(12)]
    mock = {"responses": ["The answer is 4.", "The answer is 5.", "The answer is 6."]}
    values = config(home, rows=rows, generation__model_name="mock", generation__n=2, generation__mock=mock)
    del values["generation"]["api_base"]
    values["reward"] = {"function_path": "math"}
    values["dataset"]["path_or_name"] = "dataset.jsonl"
    values["generation"]["cache"] = {"enabled": True, "cache_dir": "cache"}
    values["output"] = {"output_dir": "run"}
    write_config(home, values, "conf.yaml")
    best = {
        "model": "mock",
        "dataset": "dataset.jsonl",
        "splits": "math",
        "num_candidates": 2,
        "output": "best.parquet",
    }
    write_config(home, best, "best.yaml")
    task = {"task": "Make a file f.", "setup_commands": [], "success_condition": "test -e f"}
    write_rows(home / "tasks.jsonl", [{"id": f"t{n}", **task} for n in range(3)])
    ended = processes.command(home, "run", "conf.yaml")
    assert ended.code == 0, ended.said
    shutil.copytree(home / "run", home / "torn")
    whole = (home / "torn" / "results.jsonl").read_bytes()
    (home / "torn" / "results.jsonl").write_bytes(whole.replace(b'"id":"s1"', b'"id":"sX"', 1))
    return home


def files(home: Path) -> dict[str, bytes]:
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in home.rglob("*") if path.is_file() and path.name != ".lock" and "__pycache__" not in path.parts
    }  # fmt: skip


def words(command: str, home: Path) -> list[str]:
    return command.format(home=home).split()


def fresh(begun: Path, home: Path, writer: Writer, processes: Zygote) -> None:
    """The folder, as it is before the command."""
    shutil.copytree(begun, home)
    if writer.also:
        assert processes.command(home, *words(writer.also, home)).code == 0


def check_complaint(home: Path, ended: Ended) -> None:
    """One sentence, which names a file and ends with what to do."""
    assert ended.code > 0, ended.said
    complaint = [line for line in ended.said.splitlines() if line.startswith("Error: ")]
    assert len(complaint) == 1, ended.said
    assert "Traceback" not in ended.said
    assert "bug in reward-kit" not in ended.said
    named = re.findall(r"'([^']+)'", complaint[0])
    assert any((home / path).resolve().is_relative_to(home) for path in named), complaint
    assert re.search(r"(?:Choose|Name|Make|make|Solve|check|Restore) .*\.", complaint[0]), complaint


GROWING = re.compile(r"(?:rollouts|results|reviews|episodes|commands|batches)\.jsonl$|^cache/|\.log$")
"""Files that grow by whole lines, and keep those that they have."""


@pytest.mark.parametrize("name", WRITERS)
def test_no_room_is_one_sentence_and_no_half_a_file(tmp_path: Path, begun: Path, processes: Zygote, name: str) -> None:
    writer = WRITERS[name]
    fresh(begun, tmp_path / "roomy", writer, processes)
    before = files(tmp_path / "roomy")
    ended = processes.command(tmp_path / "roomy", *words(writer.words, tmp_path / "roomy"))
    assert ended.code == 0, ended.said
    after = files(tmp_path / "roomy")
    written = {path: content for path, content in after.items() if before.get(path) != content}
    longest = max(map(len, written.values()))
    assert longest > 1
    for number, room in enumerate((0, longest // 2)):
        home = tmp_path / str(number)
        fresh(begun, home, writer, processes)
        before = files(home)
        ended = processes.command(home, *words(writer.words, home), room=room)
        check_complaint(home, ended)
        left = files(home)
        for path, content in left.items():
            assert not path.endswith((".writing", ".lines")), (room, path)
            if GROWING.search(path):
                assert not content or content.endswith(b"\n"), (room, path)
            else:
                assert content in before.values() or len(content) <= room, (room, path)
        for path, content in before.items():  # earlier results are set aside under another name
            assert path in left or content in left.values() or path.startswith("mirrored/"), (room, path)
    ended = processes.command(home, *words(writer.words, home))
    assert ended.code == 0, ended.said


@pytest.mark.parametrize("name", WRITERS)
def test_without_the_permission_it_is_one_sentence_and_nothing_changes(
    tmp_path: Path, begun: Path, processes: Zygote, name: str
) -> None:
    """As an ordinary user without a home, in a folder that is only to be read."""
    home = tmp_path / "home"
    fresh(begun, home, WRITERS[name], processes)
    before = files(home)
    for path in (home, *home.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        check_complaint(home, processes.command(home, *words(WRITERS[name].words, home), powers=False))
    finally:
        for path in (home, *home.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert files(home) == before
