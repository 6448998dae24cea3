# SPDX-License-Identifier: Apache-2.0
"""Which reward judged an answer, and the command that has it judge the answer again. Nothing is loaded or run here."""

from __future__ import annotations

import ast
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.answers.reasoning import split_reasoning
from reward_kit.storage.judged import JudgedAnswer
from reward_kit.storage.vocabularies import RUN

__all__ = ["JudgedBy", "RewardFile", "judged_by", "reward_file", "reward_of", "try_command"]

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


class RewardFile(NamedTuple):
    """The file of a reward whose config names it by a path from the folder that the run was started in."""

    folder: Path
    """From which the config's path leads to it."""
    path: Path
    is_as_judged: bool
    """Whether it is, byte for byte, the file that the run's manifest tells of."""


def reward_file(reward: JudgedBy | None, beside: Path, manifest: Mapping[str, Any] | None) -> RewardFile | None:
    """Where the reward's file is now; None for one that is imported, or whose file is not found.

    It is looked for above the run (`beside`), because a run lies below the folder that it was started in, and then
    where this process was started. A file that the manifest tells of comes before others of its name.
    """
    if reward is None or reward.file is None:
        return None
    digests = json.dumps((manifest or {}).get("digests") or {}, default=str)
    above = [] if reward.file.is_absolute() else [beside, *beside.parents][: _LEVELS + 1]
    found = [
        RewardFile(
            folder, folder / reward.file, _digest(folder / reward.file, reward.path.partition(":")[2]) in digests
        )
        for folder in (*above, Path.cwd())
        if (folder / reward.file).is_file()
    ]
    return min(found, key=lambda one: not one.is_as_judged, default=None)


def _digest(file: Path, name: str) -> str:
    """As `source_digest` makes it of a plain function, without loading it."""
    digest = hashlib.sha256()
    try:
        for part in (name.encode(), file.read_bytes()):
            digest.update(len(part).to_bytes(8, "big") + part)
    except OSError:
        return "unreadable"
    return digest.hexdigest()


def judged_by(config: Mapping[str, Any] | None, entry: JudgedAnswer, split: str | None) -> JudgedBy | None:
    """The reward that judged this line: by the run's config, or by the verifier that a table's row names."""
    verifier = entry.row.get("verifier") or entry.row.get("verifier_name")
    if isinstance(verifier, str) and verifier:
        from reward_kit.rewards.verifiers import VERIFIERS  # here, because settings take long to load

        known = VERIFIERS.get(verifier)
        return JudgedBy(verifier, {}) if known is None else JudgedBy(known.function_path, known.params)
    return reward_of(config, split)


def reward_of(config: Mapping[str, Any] | None, split: str | None) -> JudgedBy | None:
    """The reward that a run's config names for the samples of a split."""
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


def try_command(reward: JudgedBy | None, entry: JudgedAnswer, file: RewardFile | None) -> tuple[str, str]:
    """A command that has the reward judge this answer again, or why there is none; and what to know of its file.

    `file`: the reward's, where it is found. The command names it in full, so that it works in every folder.
    """
    refusal = _why_none(reward, entry)
    if reward is None or refusal:
        return f"No command{refusal}", ""
    words = ["reward-kit", "rewards", "try", _named(reward, file), *_conversation(entry)]
    if entry.ground_truth is not None:
        words += ["--ground-truth", _plain(entry.ground_truth)]
    for name, value in {**_columns(reward, entry, file), **reward.params}.items():
        words += ["-p", shlex.quote(f"{name}={json.dumps(value, ensure_ascii=False)}")]
    command = " ".join(words)
    if len(command) > _MOST or "\x00" in command:
        return "No command: the answer is too long for a command line, or has a NUL in it.", ""
    return command, _note(reward, file)


def _why_none(reward: JudgedBy | None, entry: JudgedAnswer) -> str:
    """Why no command would judge the same again; empty where one does."""
    reasons = {
        " for shell tasks: reward-kit shell --phase execution runs them again.": "trajectory" in entry.row,
        " for episodes: reward-kit run … --rescore judges them again.": bool(entry.row.get("steps")),
        ": neither the run's config nor the record says which reward judged it.": reward is None,
        ": its reward is served elsewhere, at an address.": reward is not None and "://" in reward.path,
        ": there is no answer that could be judged.": not (entry.response or entry.turns or entry.tool_calls),
        ": the ground truth is not plain text. Save it as a .json file, and give it as --ground-truth @FILE.": (
            entry.ground_truth is not None and not isinstance(entry.ground_truth, str | int | float)
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _plain(ground_truth: Any) -> str:
    """The ground truth as the shell takes it; one that begins like the name of a file is handed over as a file."""
    text = str(ground_truth)
    return f"@<(printf %s {shlex.quote(text)})" if text.startswith("@") else shlex.quote(text)


def _named(reward: JudgedBy, file: RewardFile | None) -> str:
    """The reward's path; its file where it is now."""
    return shlex.quote(reward.path if file is None else f"{file.path}:{reward.path.partition(':')[2]}")


def _note(reward: JudgedBy, file: RewardFile | None) -> str:
    if reward.file is None or (file is not None and file.is_as_judged):
        return ""
    if file is not None:
        return f"The command judges with {file.path} as that file is now."
    if reward.file.is_absolute():
        return f"The command needs {reward.file}, which is not there."
    return f"Run the command in the folder from which {reward.file} is found: it is not near the run."


def _conversation(entry: JudgedAnswer) -> list[str]:
    """What is judged, as options: the whole conversation where there is more than a question and an answer."""
    whole = _messages(entry)
    plain = [{"role": "user"}, {"role": "assistant"}]
    fits = [{"role": turn.get("role")} for turn in whole] == plain and all(
        set(turn) <= {"role", "content"} and isinstance(turn.get("content"), str) for turn in whole
    )
    if fits and whole[1]["content"] not in ("", "-"):
        asked, answer = (shlex.quote(turn["content"]) for turn in whole)
        return [f"--answer={answer}", f"--prompt={asked}"]
    return ["--messages", f"<(printf %s {shlex.quote(json.dumps(whole, ensure_ascii=False))})"]


def _messages(entry: JudgedAnswer) -> Sequence[Mapping[str, Any]]:
    """The conversation as the reward was given it."""
    if RUN.query in entry.row and isinstance(entry.row.get("messages"), list):
        found: list[Mapping[str, Any]] = entry.row["messages"]
        return found
    answer: dict[str, Any] = {"role": "assistant", "content": entry.response}
    if entry.tool_calls:
        answer["tool_calls"] = list(entry.tool_calls)
    if entry.reasoning and not split_reasoning(entry.response)[0]:
        answer["reasoning_content"] = entry.reasoning
    return [*entry.prompt, answer]


def _columns(reward: JudgedBy, entry: JudgedAnswer, file: RewardFile | None) -> dict[str, Any]:
    """The dataset's columns that the reward takes by name, as far as its file, which is only read, says so."""
    names = _parameters(reward, file)
    return {name: value for name, value in entry.columns.items() if name in names and name not in reward.params}


def _parameters(reward: JudgedBy, file: RewardFile | None) -> set[str]:
    if file is None:
        return _parameters_of_library(reward)
    try:
        tree = ast.parse(file.path.read_text(encoding="utf-8"))
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
