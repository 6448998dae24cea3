# SPDX-License-Identifier: Apache-2.0
"""Messages name settings by their place in a run's config, and each command shows them as it spells them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from contextvars import copy_context
from pathlib import Path

import click
import pytest

import reward_kit
from reward_kit.cli import main
from reward_kit.cli_commands import best_of_n_cmd, regenerate_cmd, run_eval_cmd, shell_cmd
from reward_kit.cli_commands.output import failure_lines, in_own_words, name_settings
from reward_kit.config_models import DatasetConfig, PipelineConfig, RewardConfig, known_paths
from reward_kit.errors import ConfigError, settings_in
from reward_kit.execution.best_of_n.experiment import ALSO_CALLED, ExperimentConfig
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.redaction import mask

SOURCE = Path(reward_kit.__file__).parent
PATHS = set(known_paths(PipelineConfig))
SECTIONS = {path for path in PATHS if any(other.startswith(f"{path}.") for other in PATHS)}
OPTIONS = {"keep_going", "phase", "rescore", "resume_from_mirror", "retry_failed"}
"""What a run is told beside its config."""
OF_AGENTS = {path for path in PATHS if path.startswith("agent.")}
OF_REWARDS = {path for path in PATHS if path.startswith("reward.remote.")} | {"reward.function_path"}
"""`shell` judges by what its tasks say, and has no reward to choose."""
OF_PROMPTS = {path for path in PATHS if path.startswith(("dataset.choices.", "dataset.few_shot."))}
"""Only `run` puts prompts together from options and examples."""
OF_LIMITS = {"generation.api_params.rate_limit_qps"}
OF_RUN_ONLY = {
    "shell": OF_AGENTS | OF_LIMITS | OF_REWARDS | OF_PROMPTS | {
        "dataset.column_mapping", "dataset.format", "dataset.preprocess", "dataset.prompt_template",
        "dataset.source_type", "dataset.storage_options", "output.storage_options",
        "generation.enabled", "generation.extra_body", "generation.mock.function_path", "generation.mock.rules",
        "generation.models", "generation.n_mode", "judge.api", "judge.api_base", "judge.model_name", "reward.isolate",
        "reward.invalid", "reward.params", "reward.pass_threshold",
    },
    "best-of-n": OF_AGENTS | OF_LIMITS | OF_PROMPTS | {
        "dataset.source_type", "generation.enabled", "generation.mock.rules", "generation.models",
        "generation.n_mode", "rollouts_file",
    },
}  # fmt: skip
"""Settings that messages name and that a command does not have."""


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


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize(
    ("command", "module"), [(shell_cmd.shell, shell_cmd), (best_of_n_cmd.best_of_n, best_of_n_cmd)]
)
def test_every_command_has_its_own_word_for_a_setting_that_a_message_names(
    command: click.Command, module: object, name: str
) -> None:
    own: Mapping[str, str] = vars(module)["SETTINGS"]
    places = [name, *(name.rpartition(".")[0],), name.partition(".")[0]]
    has_word = any(where in own for where in places) or any(key.startswith(f"{name}=") for key in own)
    assert has_word != (name in OF_RUN_ONLY[command.name or ""])


@pytest.mark.parametrize(
    ("command", "module"),
    [
        (shell_cmd.shell, shell_cmd),
        (best_of_n_cmd.best_of_n, best_of_n_cmd),
        (regenerate_cmd.regenerate, regenerate_cmd),
    ],
)
def test_every_word_is_a_flag_or_a_key_and_stands_for_a_setting(command: click.Command, module: object) -> None:
    own: Mapping[str, str] = vars(module)["SETTINGS"]
    flags = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    arguments = {str(parameter.name).upper() for parameter in command.params if isinstance(parameter, click.Argument)}
    for setting, word in own.items():
        assert setting.partition("=")[0] in PATHS | OPTIONS
        if word in arguments:
            continue
        known = (
            word.split()[0] in flags
            if word.startswith("-")
            else re.split("[.:]", word)[0] in ExperimentConfig.model_fields
        )
        assert known, word


ADVICE = "Choose another `output.output_dir`, set `dataset.on_bad_row=skip`, or `reward.params.tolerance`, see `this`."


@pytest.mark.parametrize(
    ("module", "shown"),
    [
        (run_eval_cmd, ADVICE),
        (
            shell_cmd,
            "Choose another `--output-dir`, set `--on-bad-row skip`, or `reward.params.tolerance` of `reward-kit run`, "
            "see `this`.",
        ),
        (
            best_of_n_cmd,
            "Choose another `--output`, set `--on-bad-row skip`, or `verifiers.SPLIT.params.tolerance`, see `this`.",
        ),
        (
            regenerate_cmd,
            "Choose another `--output-dir`, set `--on-bad-row skip`, or `--param tolerance`, see `this`.",
        ),
    ],
)
def test_a_command_shows_settings_as_it_spells_them(module: object, shown: str) -> None:
    def of_one_command() -> None:
        name_settings(vars(module).get("SETTINGS", {}), takes_config=module is run_eval_cmd)
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
        assert keys <= set(ExperimentConfig.model_fields) | set(ALSO_CALLED)
        assert {key for key in re.findall(r"`([a-z_.]+)`", run)} <= PATHS | {"base_url"}


def test_the_page_states_the_defaults() -> None:
    options = {parameter.name: parameter.default for parameter in shell_cmd.shell.params}
    run, best = PipelineConfig(reward=RewardConfig(function_path="m:f")), ExperimentConfig()
    stated = {row[0]: row[1:] for row in table("## Defaults that differ")}
    generation = run.generation
    ports = [run.sandbox.sos_url, f":{options['sos_port']}", run.sandbox.sos_url]
    assert stated == {
        "temperature": [f"{value:g}" for value in (generation.temperature, options["temperature"], best.temperature)],
        "most tokens of an answer": [
            str(value) for value in (generation.max_tokens, options["max_tokens"], best.max_tokens)
        ],
        "answers per prompt": [str(value) for value in (generation.n, options["n"], best.num_candidates)],
        "rows that cannot be used": [
            DatasetConfig(path_or_name="x").on_bad_row, options["on_bad_row"], best.on_bad_row
        ],
        "where the files go": [f"`{run.output.output_dir}`", f"`{options['output_dir']}`", "must be given"],
        "port of a sandbox server on this machine": [address.rpartition(":")[2] for address in ports],
    }  # fmt: skip
