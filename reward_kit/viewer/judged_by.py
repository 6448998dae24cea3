# SPDX-License-Identifier: Apache-2.0
"""Which reward judged an answer, and the command that has it judge the answer again. Nothing is loaded or run here."""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.answers.reasoning import split_reasoning
from reward_kit.storage.vocabularies import RUN
from reward_kit.viewer.lines import Told

__all__ = ["JudgedBy", "judged_by", "try_command"]

_MOST = 100_000
"""Characters of a command that a shell takes."""
_LEVELS = 4
"""Directories above a run in which its reward's file is looked for."""


class JudgedBy(NamedTuple):
    """A reward, as a run's config names it."""

    path: str
    params: Mapping[str, Any]

    @property
    def file(self) -> Path | None:
        """The file that it stands in, as the config names it; None for one that is imported."""
        name = self.path.partition(":")[0]
        return Path(name) if name.endswith(".py") else None


def judged_by(config: Mapping[str, Any] | None, told: Told, split: str | None) -> JudgedBy | None:
    """The reward that judged this line: by the run's config, or by the verifier that a table's row names."""
    verifier = told.line.get("verifier") or told.line.get("verifier_name")
    if isinstance(verifier, str) and verifier:
        from reward_kit.rewards.verifiers import VERIFIERS  # here, because settings take long to load

        known = VERIFIERS.get(verifier)
        return JudgedBy(verifier, {}) if known is None else JudgedBy(known.function_path, known.params)
    reward = (config or {}).get("reward")
    if not isinstance(reward, Mapping):
        return None
    parts = reward.get("by_split")
    chosen = parts.get(split) if isinstance(parts, Mapping) and split is not None else None
    held = chosen if isinstance(chosen, Mapping) else reward
    path, params = held.get("function_path"), held.get("params")
    if not isinstance(path, str) or not path:
        return None
    return JudgedBy(path, params if isinstance(params, Mapping) else {})


def try_command(reward: JudgedBy | None, told: Told, beside: Path) -> str:
    """A command that has the reward judge this answer again, or why there is none.

    `beside`: the run, above which the reward's file is looked for.
    """
    refusal = _why_none(reward, told)
    if reward is None or refusal:
        return f"There is none{refusal}"
    words = ["reward-kit", "rewards", "try", _named(reward, beside), *_conversation(told)]
    if told.ground_truth is not None:
        words += ["--ground-truth", _plain(told.ground_truth)]
    for name, value in {**_columns(reward, told, beside), **reward.params}.items():
        words += ["-p", shlex.quote(f"{name}={json.dumps(value, ensure_ascii=False)}")]
    command = " ".join(words)
    if len(command) > _MOST or "\x00" in command:
        return "There is none: the answer is too long for a command line, or has a NUL in it. The record is as JSON."
    return command


def _why_none(reward: JudgedBy | None, told: Told) -> str:
    """Why no command would judge the same again; empty where one does."""
    reasons = {
        " for shell tasks: `reward-kit shell --phase execution` runs the commands again.": "trajectory" in told.line,
        " for an agent's episodes: their reward looks at the steps. `reward-kit run … --rescore` judges them again.": (
            bool(told.line.get("steps"))
        ),
        ": neither the run's config nor the record says which reward judged it.": reward is None,
        ": its reward is served elsewhere, at an address.": reward is not None and "://" in reward.path,
        ": there is no answer that could be judged.": not (told.response or told.turns or told.tool_calls),
        ": the ground truth is no plain text. Save it as a .json file, and give it as --ground-truth @FILE.": (
            told.ground_truth is not None and not isinstance(told.ground_truth, str | int | float)
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _plain(ground_truth: Any) -> str:
    """The ground truth as the shell takes it; one that begins like the name of a file is handed over as a file."""
    text = str(ground_truth)
    return f"@<(printf %s {shlex.quote(text)})" if text.startswith("@") else shlex.quote(text)


def _named(reward: JudgedBy, beside: Path) -> str:
    """The reward's path; its file where it is now, if it is not where the config says."""
    found = _file(reward, beside)
    if found is None or reward.file is None:
        return shlex.quote(reward.path)
    return shlex.quote(f"{found}:{reward.path.partition(':')[2]}")


def _file(reward: JudgedBy, beside: Path) -> Path | None:
    if reward.file is None:
        return None
    if reward.file.is_absolute() or reward.file.is_file():
        return reward.file
    above = [beside, *beside.parents][: _LEVELS + 1]
    return next((folder / reward.file for folder in above if (folder / reward.file).is_file()), None)


def _conversation(told: Told) -> list[str]:
    """What is judged, as options: the whole conversation where there is more than a question and an answer."""
    whole = _messages(told)
    plain = [{"role": "user"}, {"role": "assistant"}]
    fits = [{"role": turn.get("role")} for turn in whole] == plain and all(
        set(turn) <= {"role", "content"} and isinstance(turn.get("content"), str) for turn in whole
    )
    if fits and whole[1]["content"] not in ("", "-"):
        asked, answer = (shlex.quote(turn["content"]) for turn in whole)
        return [f"--answer={answer}", f"--prompt={asked}"]
    return ["--messages", f"<(printf %s {shlex.quote(json.dumps(whole, ensure_ascii=False))})"]


def _messages(told: Told) -> Sequence[Mapping[str, Any]]:
    """The conversation as the reward was given it."""
    if RUN.query in told.line and isinstance(told.line.get("messages"), list):
        found: list[Mapping[str, Any]] = told.line["messages"]
        return found
    answer: dict[str, Any] = {"role": "assistant", "content": told.response}
    if told.tool_calls:
        answer["tool_calls"] = list(told.tool_calls)
    if told.reasoning and not split_reasoning(told.response)[0]:
        answer["reasoning_content"] = told.reasoning
    return [*told.prompt, answer]


def _columns(reward: JudgedBy, told: Told, beside: Path) -> dict[str, Any]:
    """The dataset's columns that the reward takes by name, as far as its file, which is only read, says so."""
    names = _parameters(reward, beside)
    return {name: value for name, value in told.columns.items() if name in names and name not in reward.params}


def _parameters(reward: JudgedBy, beside: Path) -> set[str]:
    found = _file(reward, beside)
    if found is None:
        return _parameters_of_library(reward)
    try:
        tree = ast.parse(found.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return set()
    return _parameters_in(tree, reward.path.partition(":")[2])


def _parameters_of_library(reward: JudgedBy) -> set[str]:
    module, _, name = reward.path.partition(":")
    if not module.startswith("reward_kit.rewards."):
        return set()
    source = Path(__file__).parents[1] / Path(*module.split(".")[1:]).with_suffix(".py")
    try:
        return _parameters_in(ast.parse(source.read_text(encoding="utf-8")), name)
    except (OSError, SyntaxError):
        return set()


def _parameters_in(tree: ast.Module, name: str) -> set[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            return {argument.arg for argument in arguments} - {"messages", "ground_truth"}
    return set()
