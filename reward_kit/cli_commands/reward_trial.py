# SPDX-License-Identifier: Apache-2.0
"""What `reward-kit rewards try` does: reads what to judge, calls the reward as a run would, and times it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import TextIOBase
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from reward_kit.config_models import JudgeConfig, SandboxConfig
from reward_kit.datasets.interpret import ROLES
from reward_kit.errors import ConfigError
from reward_kit.models import EvaluateResult, Rollout
from reward_kit.redaction import blot, remember_settings
from reward_kit.reward_call import Arguments, RewardCall
from reward_kit.scoring.resources import open_resources
from reward_kit.utils import exact_json
from reward_kit.utils.event_loop import run_sync
from reward_kit.utils.strict_yaml import load_yaml

__all__ = ["Trial", "conversations", "read_params", "read_text", "try_reward"]

Conversation = Sequence[Mapping[str, Any]]
"""Messages as plain data, the answer last."""


class Trial(NamedTuple):
    """What a reward said of one answer, and how long it took."""

    result: EvaluateResult
    seconds: float
    """Of the call; in batch mode, of the call for all answers."""

    @property
    def is_verdict(self) -> bool:
        """Whether there is a score."""
        return self.result.is_score_valid and self.result.error is None

    def as_json(self) -> dict[str, Any]:
        """The result as plain data. Without a verdict the score is null."""
        plain = self.result.model_dump(mode="json", exclude_none=True)
        return {**plain, "score": plain["score"] if self.is_verdict else None, "seconds": round(self.seconds, 6)}


# ── what to judge ────────────────────────────────────────────────────────────────────────────────────────────────────


def conversations(answers: Sequence[str], prompt: str | None, file: Path | None) -> list[Conversation]:
    """One conversation an answer: what came before it, then the answer. Without answers, the file is one itself."""
    before = _read_messages(file) if file is not None else []
    if prompt is not None:
        before = [*before, {"role": "user", "content": prompt}]
    if not answers and not before:
        raise ConfigError("There is nothing to judge. Give --answer TEXT, --answer - or --messages FILE.")
    if not answers:
        return [before]
    before = before or [{"role": "user", "content": ""}]
    return [[*before, {"role": "assistant", "content": answer}] for answer in answers]


def _read_messages(file: Path) -> list[dict[str, Any]]:
    content = _json(file)
    turns = content.get("messages") if isinstance(content, dict) else content
    if not isinstance(turns, list) or not all(isinstance(turn, dict) and "role" in turn for turn in turns):
        raise ConfigError(
            f"{str(file)!r} holds no conversation. Write a JSON list of messages, each with a role and content."
        )
    for turn in turns:
        if turn["role"] not in ROLES:
            raise ConfigError(f"{str(file)!r} has a turn of the role {turn['role']!r}. Expected: {', '.join(ROLES)}.")
    return turns


def read_text(value: str | None) -> Any:
    """A value of the command line: as it is, or what `@FILE` holds."""
    if value is None or not value.startswith("@"):
        return value
    file = Path(value[1:])
    return _json(file) if file.suffix == ".json" else _content(file)


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the name
        raise ConfigError(f"{str(file)!r} cannot be read: {error}. Name a text file.") from error


def _json(file: Path) -> Any:
    try:
        return json.loads(_content(file))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{str(file)!r} is not JSON: {error}. Correct it.") from error


def read_params(pairs: Sequence[str]) -> dict[str, Any]:
    """`key=value` pairs with their values read as YAML."""
    params: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise ConfigError(f"{pair!r} is not a parameter. Write -p KEY=VALUE, such as -p max_length=100.")
        params[key] = load_yaml(value, f"The value of {key!r}")
    remember_settings({"params": params})
    return params


# ── judging ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def try_reward(
    name_or_path: str, answers: Sequence[Conversation], ground_truth: Any, params: Mapping[str, Any]
) -> list[Trial]:
    """What the reward says of each answer. One that raises is a `RewardError`. What it prints is shown."""
    with redirect_stdout(_Blotting(sys.stdout)), redirect_stderr(_Blotting(sys.stderr)):
        try:
            call = RewardCall(name_or_path, params)
        except ImportError as error:
            raise ConfigError(str(error)) from error
        calls = _calls(call, answers, ground_truth)
        if call.is_async:
            return run_sync(lambda: _try_async(call, calls))
        return [trial for arguments in calls for trial in _timed(time.perf_counter(), call.call(arguments))]


class _Blotting(TextIOBase):
    """A stream that known credentials are taken out of on their way into another."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text without them."""
        self._stream.write(blot(text))
        return len(text)

    def flush(self) -> None:
        """Flush the other stream."""
        self._stream.flush()


def _calls(call: RewardCall, answers: Sequence[Conversation], ground_truth: Any) -> list[Arguments]:
    """What each call is handed: one answer, or all of them together."""
    truth = _number_in(ground_truth) if call.takes_number_truth else ground_truth
    rollouts = [Rollout.of_conversation(messages, truth) for messages in answers]
    groups = [rollouts] if call.mode == "batch" else [[rollout] for rollout in rollouts]
    return [call.arguments_of(group) for group in groups]


def _number_in(truth: Any) -> Any:
    """The number or bool that a text of the command line says; anything else as it is."""
    try:
        said = exact_json.loads(truth) if isinstance(truth, str) else truth
    except exact_json.JSONDecodeError:
        return truth
    return said if isinstance(said, bool | int | float) else truth


async def _try_async(call: RewardCall, calls: Sequence[Arguments]) -> list[Trial]:
    async with open_resources(call, SandboxConfig(), JudgeConfig(), concurrency=1) as resources:
        return [
            trial
            for arguments in calls
            for trial in _timed(time.perf_counter(), await call.call_async(arguments, resources))
        ]


def _timed(start: float, returned: EvaluateResult | list[EvaluateResult]) -> list[Trial]:
    seconds = time.perf_counter() - start
    return [Trial(result, seconds) for result in (returned if isinstance(returned, list) else [returned])]
