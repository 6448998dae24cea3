# SPDX-License-Identifier: Apache-2.0
"""Bad inputs by the hundred: each ends as one sentence and an exit code, never as a traceback, a hang or a success.

    flags × bad values · config keys × bad values · files × damages

`REWARD_KIT_FUZZ=SEED:COUNT` tries so many others.
"""

# ruff: noqa: E501 - tables of cases read best on one line

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli_commands.conftest import Call, Said, start
from tests.loopback.faults import TIMES, some

pytest.importorskip("pyarrow")

REWARD = "from reward_kit import reward_function\n@reward_function\ndef judge(messages, **kwargs):\n    return {'score': 1.0}\n"
RUN: dict[str, Any] = {
    "dataset": {"path_or_name": "data.jsonl"},
    "generation": {"model_name": "mock", "cache": {"enabled": False}},
    "reward": {"function_path": "reward.py:judge"},
    "output": {"output_dir": "out"},
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "reward.py").write_text(REWARD)
    (tmp_path / "data.jsonl").write_text('{"id": "1", "user_query": "hello", "ground_truth": "1"}\n')
    (tmp_path / "tasks.jsonl").write_text('{"task": "t", "setup_commands": [], "success_condition": "true"}\n')
    (tmp_path / "answers.jsonl").write_text(
        '{"id": "1", "user_query": "?", "assistant_response": "1", "ground_truth": 1}\n'
    )
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(RUN))
    (tmp_path / "a_file").write_text("text")
    return tmp_path


def refused(said: Said) -> None:
    """One sentence, of ours, and a code."""
    assert said.code not in {0, 130}, said
    assert "Traceback" not in said.err
    sentence = said.sentence
    assert "This is a bug in reward-kit" not in sentence, said.err
    assert len(sentence) > len("Error: It.")
    assert sentence.isprintable(), sentence


# ── flags ────────────────────────────────────────────────────────────────────────────────────────────────────────────

NUMBERS = ("", " ", "nan", "inf", "-inf", "-1", "1e999", "true", "ten", "0x10", "--", "\u0661x", "1,5")
COUNTS = (*NUMBERS, "0", "1.5", "9" * 30)
NAMES = ("", "   ", "a\0b", "/dev/null/x", "x" * 5000, "\udcff/none")
SHELL = ("shell", "--model", "mock", "--dataset", "tasks.jsonl", "--phase", "inference", "--output-dir", "sh")
BEST = (
    "best-of-n", "--dataset", "data.jsonl", "--splits", "math", "--model", "mock", "-n", "1", "-o", "b.parquet",
    "--cache-dir", "cache",
)  # fmt: skip
AGAIN = ("regenerate", "answers.jsonl", "--reward", "math", "--model", "mock", "-o", "again")
FLAGS: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    *(((*SHELL, flag), COUNTS) for flag in ("--max-samples", "-n", "--max-tokens", "--concurrency", "--sos-port")),
    *(((*SHELL, flag), NUMBERS) for flag in ("--temperature", "--timeout")),
    ((*SHELL, "--timeout"), ("0", "-0.0")),
    ((*SHELL, "--sos-port"), ("65536", "70000", "-3")),
    ((*SHELL, "--model", "m", "--base-url"), ("http://[::1/v1", "ftp://x", "http://", "http://h:99999/v1", "http://h:x", "nonsense")),
    ((*SHELL, "--dataset"), NAMES),
    ((*SHELL, "--output-dir"), ("", " ", "a_file", "/proc/none", "a\0b")),
    (("shell", "--phase", "execution", "--commands-file"), ("none.jsonl", "", "a_file", "out", ".")),
    (("shell", "--phase", "execution", "--commands-file", "tasks.jsonl", "--shard"), ("", "0/2", "3/2", "x", "-1/2", "1/0")),
    *(((*BEST, flag), COUNTS) for flag in ("--max-queries", "-n", "--max-tokens", "--concurrency")),
    *(((*BEST, flag), NUMBERS) for flag in ("--temperature", "--top-p", "--max-cost", "--timeout")),
    ((*BEST, "--seed"), ("9" * 30, "x", "1.5", "", "nan")),
    ((*BEST, "--extra-body"), ("", "{", "[]", "1", "null", "[" * 2000, '{"a":' * 2000)),
    ((*BEST, "--verifier"), ("", "=", "math=", "=math", "math=none.py:f", "math=a\0b", "other=math")),
    ((*BEST, "--prices"), ("none.yaml", "a_file", "", "reward.py")),
    ((*BEST, "--config"), ("none.yaml", "a_file", "", ".", "data.jsonl/x")),
    ((*BEST, "-o"), ("", " ", "x.csv", "/dev/null/x.parquet", "\udcff.parquet")),
    ((*BEST, "--base-url"), ("http://[::1/v1", "http://h:99999", "x", "")),
    ((*BEST, "--splits"), ("", ",", "math,math", "banana")),
    (("export", "none", "--to", "sft", "-o"), ("x.jsonl", "", "x.txt")),
    (("export", "a_file", "--to", "sft", "-o"), ("x.jsonl",)),
    (("export", ".", "--to", "grpo", "-o", "x.jsonl", "--min-pass-rate"), ("nan", "2", "-1", "x")),
    (("inspect",), ("none", "a_file", "", ".", "a\0b", "reward.py")),
    (("inspect", "a_file", "--votes"), ("x", "-1", "", "9" * 5000, "1.5")),
    (("inspect", "a_file", "--value"), NUMBERS),
    (("merge", "-o", "merged"), ("none", "a_file", "", ".")),
    (("merge", ".", "-o"), ("", "a_file")),
    (("regenerate", "--reward", "math", "--model", "mock", "-o", "again"), ("none", "a_file", "", ".", "data.jsonl", "a\0b")),
    *(((*AGAIN, flag), COUNTS) for flag in ("-n", "--max-tokens")),
    *(((*AGAIN, flag), NUMBERS) for flag in ("--temperature", "--max-cost")),
    ((*AGAIN, "-p"), ("", "=", "x", "x=[")),
    ((*AGAIN, "-o"), ("", "a_file", "a\0b")),
    ((*AGAIN, "--reward"), ("", "none", "none.py:f", "a\0b")),
    (("cache", "info", "--cache-dir"), ("a_file", "", "a_file/x")),
    (("cache", "prune", "--older-than"), ("x", "-1d", "1", "9" * 40 + "d", "9" * 6000 + "d", "1y")),
    (("cache", "prune", "--max-size"), ("x", "-1", "1.5G", "9" * 40, "1X")),
    (("rewards", "show"), ("none", "", "none.py:f", "a\0b", "reward.py", "reward.py:", ":", "...")),
    (("rewards", "try", "math", "--answer", "x", "-p"), ("", "=", "x", "x=[", "x=&a [*a]", "1=2", "x=" + "[" * 5000)),
    (("rewards", "try", "math", "--messages"), ("none", "a_file", "", ".", "data.jsonl")),
    (("rewards", "try", "math", "--answer", "x", "--ground-truth"), ("@none", "@", "@a_file/x", "@.")),
    (("sandbox", "serve", "--port"), ("65536", "-1", "x", "nan")),
    (("sandbox", "serve", "--max-sandboxes"), ("0", "-1", "x")),
    (("sandbox", "serve", "--timeout"), ("0", "nan", "-1", "inf")),
    (("sandbox", "serve", "--memory-mb"), ("0", "-1", "nan")),
    (("sandbox", "serve", "--backend"), ("banana", "")),
    (("init",), ("", " ", "a_file", "/proc/none", "a_file/x", "a\0b")),
    (("run",), ("", "none.yaml", "none", ".yaml", "a\0b.yaml", "x" * 5000 + ".yaml")),
    (("run", "--config-path", "none", "--config-name"), ("x", "", "../run")),
    (("run", "run.yaml"), ("=", "generation", "generation.n", "generation.n=", "+", "~dataset.x", "a=${", "a=${b:", "[=]",
                           "generation.n=1,2", "x=" + "y" * 100_000, "x=" + "[" * 500, "generation=none", "a b=c",
                           "hydra.x=1", "generation.n=${oc.env:NONE}", "generation.n=${n}", "@a=b", "'=1", "a='")),
    (("doctor",), ("--none",)),
    ((), ("none", "--none", "rnu", "")),
]  # fmt: skip


@pytest.mark.parametrize(("command", "values"), FLAGS, ids=lambda part: " ".join(part)[-60:].replace("\0", "NUL"))
def test_flags(home: Path, call: Call, command: tuple[str, ...], values: tuple[str, ...]) -> None:
    for value in some(values, 4, command):
        refused(call(*command, value))


# ── configs ──────────────────────────────────────────────────────────────────────────────────────────────────────────

DEEP: Any = 1
for _ in range(90):
    DEEP = [DEEP]
WRONG_ANYWHERE: tuple[Any, ...] = (DEEP, {"unknown": 1}, "a\0b", "\ud800", [[]], float("nan"), 10**30)
NUMBER_KEYS = (
    "generation.n", "generation.max_tokens", "generation.api_params.max_concurrent_requests", "reward.workers",
    "generation.api_params.timeout", "generation.api_params.max_retries", "generation.api_params.rate_limit_qps",
    "reward.timeout", "reward.concurrency", "reward.memory_mb", "sandbox.timeout", "sandbox.memory_mb", "max_cost",
    "dataset.max_samples", "evaluation_params.limit_samples", "generation.price.input", "generation.temperature",
    "generation.top_p", "generation.mock.latency_ms",
)  # fmt: skip
TEXT_KEYS = (
    "dataset.path_or_name", "reward.function_path", "output.output_dir", "generation.cache.cache_dir", "sandbox.sos_url",
    "generation.api_base", "generation.model_name", "sandbox.backend", "dataset.source_type", "judge.api_base",
    "rollouts_file", "dataset.id_column", "generation.api_key_env",
)  # fmt: skip


def with_value(path: str, value: Any) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(json.dumps(RUN))
    *above, last = path.split(".")
    part = whole
    for name in above:
        part = part.setdefault(name, {})
    part[last] = value
    return whole


def written(told: Any) -> str:
    return json.dumps(told)  # JSON is YAML, and `NaN` is what a person may write


@pytest.mark.parametrize("key", NUMBER_KEYS)
def test_numbers_of_a_config(home: Path, call: Call, key: str) -> None:
    for value in some((True, False, -1, "ten", "", float("inf"), "nan", *WRONG_ANYWHERE), 4, key):
        text = written(with_value(key, value)).replace("Infinity", ".inf").replace("NaN", ".nan")
        (home / "run.yaml").write_text(text)
        refused(call("run", "run.yaml"))


@pytest.mark.parametrize("key", TEXT_KEYS)
def test_texts_of_a_config(home: Path, call: Call, key: str) -> None:
    for value in some((" ", "\t\n", 5, True, *WRONG_ANYWHERE), 4, key):
        text = written(with_value(key, value)).replace("NaN", ".nan")
        (home / "run.yaml").write_text(text)
        refused(call("run", "run.yaml"))


ALIASES = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
FILES: dict[str, bytes] = {
    "aliases": ALIASES.encode(),
    "alias of itself": b"a: &a [*a]",
    "defaults: 5": b"defaults: 5\nreward: {function_path: math}",
    "defaults of nothing": b"defaults: [none]",
    "includes itself": b"defaults: [run]",
    "includes itself as a group": b"defaults:\n  - ../run",
    "a list": b"[1, 2]",
    "a text": b"text",
    "nothing": b"",
    "a number": b"5",
    "not UTF-8": b"\xff\xfe\x00a",
    "deep": b"a: " + b"[" * 5000,
    "deep and whole": b"a: " + b"[" * 2000 + b"]" * 2000,
    "a tab": b"a:\n\t- b",
    "twice": b"reward: {function_path: math}\nreward: {function_path: length}",
    "a tag": b"a: !!python/object/apply:os.system [ls]",
    "interpolation": b"reward: ${nothing}",
    "interpolation of itself": b"reward: ${reward}",
    "missing": b"reward: ???",
    "number keys": b"1: 2\n3: 4",
    "null keys": b"null: 1\nreward: {function_path: math}",
    "a date": b"reward: 2020-01-01",
    "colon": b"a: b: c",
    "NUL": b"a: b\0c",
    "control": b"a: \x1b[31m",
    "role": b"reward: {function_path: math}\nrole: banana",
}


@pytest.mark.parametrize("name", FILES)
def test_config_and_experiment_files(home: Path, call: Call, name: str) -> None:
    (home / "run.yaml").write_bytes(FILES[name])
    refused(call("run", "run.yaml"))
    refused(call("best-of-n", "--config", "run.yaml"))
    refused(call(*BEST, "--prices", "run.yaml"))


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

ROWS: dict[str, bytes] = {
    "deep": b'{"user_query": "x", "c": ' + b"[" * 500 + b"]" * 500 + b"}",
    "very deep": b'{"user_query": "x", "c": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "endless": b'{"user_query": ' + b'{"a":' * 50_000,
    "not JSON": b"nonsense",
    "a list": b"[]",
    "a number": b"5",
    "not UTF-8": b'{"user_query": "\xff"}',
    "surrogate": b'{"id": "\\ud800", "user_query": 5}',
    "no prompt": b'{"id": "1"}',
    "a number as prompt": b'{"user_query": 5}',
    "empty prompt": b'{"user_query": ""}',
    "role": b'{"messages": [{"role": "banana", "content": "x"}]}',
    "no role": b'{"messages": [{"content": "x"}]}',
    "messages as number": b'{"messages": 5}',
    "tools": b'{"user_query": "x", "tools": 5}',
    "an object as id": b'{"id": {}, "user_query": "x"}',
    "NaN": b'{"user_query": NaN}',
    "nothing": b"",
    "cut": b'{"user_query": "x',
}


@pytest.mark.parametrize("name", ROWS)
def test_rows(home: Path, call: Call, name: str) -> None:
    (home / "data.jsonl").write_bytes(ROWS[name] + b"\n")
    (home / "tasks.jsonl").write_bytes(ROWS[name] + b"\n")
    refused(call("run", "run.yaml"))
    refused(call(*SHELL))
    refused(call("shell", "--phase", "execution", "--commands-file", "tasks.jsonl", "--output-dir", "sh2"))
    refused(call(*BEST, "--on-bad-row", "error"))
    refused(call("rewards", "try", "math", "--messages", "data.jsonl"))


@pytest.mark.parametrize("column", ["task", "setup_commands", "success_condition"])
def test_a_task_with_a_NUL_is_broken_and_no_fault_of_the_model(home: Path, call: Call, column: str) -> None:
    task = {"task": "t", "setup_commands": [], "success_condition": "true", "generated_command": "true", "task_id": "1"}
    task[column] = ["a\0b"] if column == "setup_commands" else "a\0b"
    (home / "tasks.jsonl").write_text(json.dumps(task) + "\n")
    refused(call(*SHELL))
    refused(call("shell", "--phase", "execution", "--commands-file", "tasks.jsonl", "--sandbox", "none"))


# ── our own files ────────────────────────────────────────────────────────────────────────────────────────────────────


def damages(text: bytes, seed: int, count: int) -> Iterator[bytes]:
    """The same lines, each time with one thing wrong that no reader can take for right."""
    chance = random.Random(seed)
    lines = text.splitlines(keepends=True)
    for _ in range(count):
        place = chance.randrange(len(lines))
        line = lines[place]
        row = json.loads(line)
        key = chance.choice([*row])
        odd: Any = chance.choice([None, [], {}, "x", -5, 1e300, [[[]]], {"a": {}}, True])
        foreign = chance.choice([b"5\n", b"[]\n", b"null\n", b'"x"\n', b"{}\n", b"\xff\xfe\n", b"{" * 3000 + b"\n"])
        cut = line[: chance.randrange(1, len(line) - 1)] + b"\n"
        changed = chance.choice([json.dumps({**row, key: odd}).encode() + b"\n", foreign, cut])
        yield b"".join([*lines[:place], changed, *lines[place + 1 :]])


@pytest.mark.parametrize("seed", range(TIMES))
def test_damaged_files_of_our_own_are_never_a_traceback(home: Path, call: Call, seed: int) -> None:
    assert call("run", "run.yaml", "generation.n=3").code == 0
    whole = {name: (home / "out" / name).read_bytes() for name in ("results.jsonl", "manifest.json", "summary.json")}
    chance = random.Random(seed)
    for number, damaged in enumerate(damages(whole["results.jsonl"], seed, 8)):
        for name, content in whole.items():
            (home / "out" / name).write_bytes(content)
        target = home / "out" / chance.choice([*whole])
        target.write_bytes(damaged)
        for command in (
            ["inspect", "out"], ["inspect", "out", "--query", "1"], ["inspect", "out/results.jsonl", "--format", "csv"],
            ["export", "out", "--to", "kto", "-o", f"{number}.jsonl", "--overwrite"], ["merge", "out", "-o", f"m{number}"],
            ["run", "run.yaml", "generation.n=3"], ["run", "run.yaml", "--phase", "execution"],
        ):  # fmt: skip
            said = call(*command)
            assert "Traceback" not in said.err
            assert "This is a bug in reward-kit" not in said.err, (target.name, command, said.err)
            if said.code:
                assert said.sentence
    shutil.rmtree(home / "out")


# ── others ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_some_in_processes_of_their_own(home: Path) -> None:
    (home / "run.yaml").write_bytes(FILES["aliases"])
    for arguments in (["run", "run.yaml"], ["inspect", "a_file"], ["shell", "--timeout", "nan"], ["init", ""]):
        process = start(home, *arguments)
        out, err = process.communicate(timeout=120)
        refused(Said(process.returncode, out, err))


ODD_TEXT = ("", " ", "nan", "-1", "9" * 40, "\x1b[2J", "\udcff", "\u202ex", "a/b/c", "..", "true", "null", "[", "{", "'", "=", "%s", "$(x)",
            "http://[", "x" * 3000, "0", "1e400", "ß", "🙂", "\n", "C:\\", "~", "*", "?", "--", "-", "@x", "&a", "!!x")  # fmt: skip


def test_fuzz(home: Path, call: Call) -> None:
    seed, _, count = os.environ.get("REWARD_KIT_FUZZ", "1:40").partition(":")
    chance = random.Random(int(seed))
    for _ in range(int(count)):
        command, values = chance.choice(FLAGS)
        given = [*command, chance.choice([*values, *ODD_TEXT]).replace("\0", "")]
        if chance.random() < 0.3:
            given.insert(chance.randrange(len(given)), chance.choice(ODD_TEXT))
        if "serve" in given:  # one that is right would serve for ever
            given.remove("serve")
        said = call(*given)
        assert "Traceback" not in said.err
        assert "This is a bug in reward-kit" not in said.err, (given, said.err)
        if said.code not in {0, 130}:
            assert (said.out + said.err).strip(), given
