# SPDX-License-Identifier: Apache-2.0
"""Messages name settings by their place in a run's config, and each command shows them as it spells them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path

import pytest

import reward_kit
from reward_kit.cli import main
from reward_kit.cli_commands import best_of_n_cmd, shell_cmd
from reward_kit.cli_commands.output import failure_lines, in_own_words, name_settings
from reward_kit.config_models import DatasetConfig, PipelineConfig, RewardConfig, known_paths
from reward_kit.doors import DOORS
from reward_kit.errors import ConfigError, settings_in
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.redaction import mask

SOURCE = Path(reward_kit.__file__).parent
PATHS = set(known_paths(PipelineConfig))
SECTIONS = {path for path in PATHS if any(other.startswith(f"{path}.") for other in PATHS)}
OPTIONS = {"keep_going", "phase", "rescore", "resume_from_mirror", "retry_failed"}
"""What a run is told beside its config."""


def texts(node: ast.AST) -> Iterator[str]:
    """Every text of a module but its docstrings; what an f-string is filled with stands as `x`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in child.values)
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
        else:
            yield from texts(child)


def messages(*, commands: bool = False) -> list[str]:
    """What the program may say, as it stands in its source; also what `commands` say themselves."""
    files = [path for path in SOURCE.rglob("*.py") if commands or "cli_commands" not in path.parts]
    return [text for path in files for text in texts(ast.parse(path.read_text("utf-8"))) if " " in text]


def place(setting: str) -> str | None:
    """The key that a message means: parameters of a reward have names of their own."""
    setting = "reward.params" if setting.startswith("reward.params.") else setting
    return setting if setting in (PATHS - SECTIONS) | OPTIONS else None


NAMED = sorted({key for text in messages() for name in settings_in(text) if (key := place(name)) is not None})


def test_there_are_settings_to_name() -> None:
    assert {"output.output_dir", "generation.api_base", "reward.timeout", "reward.params", "rescore"} <= set(NAMED)


def test_every_setting_in_a_message_is_marked_as_one() -> None:
    written = re.compile(r"(?<![\w`./'\"-])[a-z_]+\.[a-z_.]*[a-z_]")
    unmarked = [text for text in messages() for name in written.findall(text) if name in PATHS]
    assert unmarked == []


def test_no_message_of_ours_is_taken_for_a_credential() -> None:
    said = [text for text in messages(commands=True) if "\n" not in text]
    assert len(said) > 1_000
    assert [text for text in said if mask(text) != text] == []


@pytest.mark.parametrize("before", ["Check the key: ", "token=", "the password: ", "Set api_key = ", "Authorization: "])
def test_the_name_of_any_setting_is_shown_and_any_value_hidden(before: str) -> None:
    for name in sorted(path for path in PATHS if "." in path):
        for told in (f"{before}`{name}`", f"{before}`{name}` names it.", f"{before}`{name}={{a: b}}`."):
            assert mask(told).startswith(f"{before}`{name}"), told
    for value in ("`sk-live-0123456789abcdef`", "`hunter2hunter2`", "hunter2hunter2", "`hunter2.x`y", "'a.b.c d'"):
        assert "hunter2" not in mask(f"{before}{value}") and "sk-live" not in mask(f"{before}{value}")
    assert mask(f"{before}$MY_VARIABLE") == f"{before}$MY_VARIABLE"


@pytest.mark.parametrize("word", ["signature", "key", "auth", "webhook"])
@pytest.mark.parametrize("told", ["`ground_truth: float`", "`answer_column`", "`output.run_name` names it"])
def test_a_name_in_backticks_is_no_credential(word: str, told: str) -> None:
    assert mask(f"Write it into the {word}: {told}") == f"Write it into the {word}: {told}"
    for value in ("`aB3xY9zQ7w`", "`hunter2-hunter2`", "`correct-horse-7`"):
        assert value.strip("`") not in mask(f"Write it into the {word}: {value}")


@pytest.mark.parametrize("word", ["pass", "token", "key", "signature", "login"])
def test_a_flag_is_no_credential(word: str) -> None:
    for told in ("--threshold S counts", "--api-key-env NAME names it", "--output-dir"):
        assert mask(f"Say which {word}: {told}") == f"Say which {word}: {told}"
    assert "hunter2" not in mask(f"Say which {word}: --hunter2-hunter2")


ADVICE = "Choose another `output.output_dir`, set `dataset.on_bad_row=skip`, or `reward.params.tolerance`, see `this`."


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("run", ADVICE),
        (
            "shell",
            "Choose another `--output-dir`, set `--on-bad-row skip`, or `reward.params.tolerance`, see `this`.",
        ),
        ("best-of-n", "Choose another `--output`, set `--on-bad-row skip`, or `reward.params.tolerance`, see `this`."),
        ("regenerate", "Choose another `--output-dir`, set `--on-bad-row skip`, or `--param tolerance`, see `this`."),
    ],
)
def test_a_command_shows_settings_as_it_spells_them(command: str, shown: str) -> None:
    def of_one_command() -> None:
        name_settings(DOORS[command].spell)
        assert in_own_words(ADVICE) == shown
        (line,) = failure_lines({"failures_by_kind": {"RewardError": 2}, "failure_examples": {"RewardError": ADVICE}})
        assert line == f"2 × RewardError, such as: {shown}"

    copy_context().run(of_one_command)


def test_the_words_of_a_command_end_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["shell", "--dry-run", "--dataset", "no-such-file.jsonl"])
    capsys.readouterr()
    assert in_own_words(ADVICE) == ADVICE


def test_an_error_tells_which_settings_it_is_about() -> None:
    with pytest.raises(ConfigError) as caught:
        EvaluationPipeline({"reward": {"function_path": "math"}, "generation": {"model_name": "mock"}}).run()
    assert caught.value.settings == ("dataset.path_or_name",)


# ── the page that puts the commands side by side ─────────────────────────────────────────────────────────────────────


def table(title: str) -> list[list[str]]:
    """The cells of the first table under a heading of docs/commands.md."""
    page = (SOURCE.parent / "docs" / "commands.md").read_text("utf-8")
    part = page[page.index(title) :]
    lines = part[part.index("\n|") :].strip().split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_names_flags_and_keys_that_there_are() -> None:
    shell, best = (
        {flag for p in command.params for flag in p.opts} for command in (shell_cmd.shell, best_of_n_cmd.best_of_n)
    )
    for _, run, by_shell, by_best in table("# The three commands"):
        assert set(re.findall(r"`(--?[\w-]+)`", by_shell)) <= shell
        assert set(re.findall(r"`(--?[\w-]+)`", by_best)) <= best
        keys = {key.split(".")[0] for key in re.findall(r"`([a-z_]+(?:\.\w+)*)`", by_best)}
        assert keys <= {*DOORS["best-of-n"].places} | PATHS
        assert {key for key in re.findall(r"`([a-z_.]+)`", run)} <= PATHS | {"base_url"}


def test_the_page_states_the_defaults() -> None:
    options = {parameter.name: parameter.default for parameter in shell_cmd.shell.params}
    run, best = PipelineConfig(reward=RewardConfig(function_path="m:f")), DOORS["best-of-n"].default_of
    stated = {row[0]: row[1:] for row in table("## Defaults that differ")}
    generation = run.generation
    ports = [run.sandbox.sos_url, f":{options['sos_port']}", run.sandbox.sos_url]
    assert stated == {
        "temperature": [
            f"{value:g}"
            for value in (generation.temperature, options["temperature"], best("generation.temperature"))
        ],
        "most tokens of an answer": [
            str(value) for value in (generation.max_tokens, options["max_tokens"], best("generation.max_tokens"))
        ],
        "answers per prompt": [str(value) for value in (generation.n, options["n"], best("generation.n"))],
        "rows that cannot be used": [
            DatasetConfig(path_or_name="x").on_bad_row, options["on_bad_row"], best("dataset.on_bad_row")
        ],
        "where the files go": [f"`{run.output.output_dir}`", f"`{options['output_dir']}`", "must be given"],
        "port of a sandbox server on this machine": [address.rpartition(":")[2] for address in ports],
    }  # fmt: skip
