# SPDX-License-Identifier: Apache-2.0
"""Having the run's own reward judge an edited answer.

    the page ──▶ here ──▶ a process of its own, which lives for this trial ──▶ the usual worker or sandbox ──▶ verdict

A process for each trial, because the reward may have been mended since the last one: its source is read anew each time,
and nothing of it is ever imported into the server.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from reward_kit.answers.reasoning import split_reasoning
from reward_kit.datasets.rows import as_written, text_of
from reward_kit.models import Message, Rollout, Sample
from reward_kit.redaction import mask
from reward_kit.storage.judged import as_text
from reward_kit.utils import exact_json
from reward_kit.viewer import wire
from reward_kit.viewer.reviewing.trial_process import judge_of_trials
from reward_kit.workers.host import Host
from reward_kit.workers.outcomes import Died, Done, Raised, TimedOut

__all__ = ["edited", "not_judged", "try_again"]

_PATIENCE = 30.0
"""Seconds beside the reward's own limit: for starting processes, and for ending them."""
_LONGEST = 600.0
"""Seconds after which a trial is ended, whatever its reward may take in a run."""
_OUTPUT = 2_000


def edited(group: Sequence[Rollout], index: int, answer: str, ground_truth: str | None) -> list[Rollout]:
    """The rollouts of a sample, one of them with another answer, all with another ground truth."""
    sample = _with_truth(group[0].sample, ground_truth)
    return [
        rollout.model_copy(
            update={
                "sample": sample,
                "turns": _turns(rollout.turns, answer) if rollout.response_index == index else rollout.turns,
            }
        )
        for rollout in group
    ]


def _with_truth(asked: Sample, given: str | None) -> Sample:
    """The sample with the truth that the page sent, which shows data as JSON; one that nobody edited stays as it is."""
    held, truth, texts = asked.ground_truth, given, exact_json.Texts()
    if (given or "") == as_text(held):
        return asked
    if given is not None and not isinstance(held, str):
        with contextlib.suppress(ValueError):  # it is no JSON, and so a text
            (truth,), texts = exact_json.loads_with_texts(b"[%b]" % given.encode("utf-8", "surrogatepass"))
    text = text_of(truth, as_written(texts))
    return asked.model_copy(update={"ground_truth": truth, "ground_truth_text": text})


def _turns(turns: Sequence[Message], answer: str) -> list[Message]:
    """The turns with the last answer replaced; as they are where the text is the one that the page shows."""
    if not turns or turns[-1].role != "assistant":
        return [*turns, Message(role="assistant", content=answer)]
    last = turns[-1]
    if answer in (last.text, split_reasoning(last.text)[1], split_reasoning(last.text)[1].strip()):
        return list(turns)
    return [*turns[:-1], last.model_copy(update={"content": answer})]


def try_again(
    config: str, group: Sequence[Rollout], index: int, answer: str, truth: str | None, folder: Path | None = None
) -> wire.TrialResult:
    """The verdict of the reward that `config` (a run's config.yaml) names. What goes wrong is told, and is no score.

    `folder`: from which the config's paths lead to the files that they name; None: from where the server was started.
    """
    start = time.perf_counter()
    rollouts = edited(group, index, answer, truth)
    place = os.getcwd() if folder is None else str(folder)
    with (
        tempfile.TemporaryFile() as printed,
        Host(judge_of_trials, name="trial", path=[place, *sys.path], cwd=place, output=printed.fileno()) as host,
    ):
        outcome = host.call(config, rollouts, index, within=_LONGEST + _PATIENCE)
        seconds = time.perf_counter() - start
        match outcome:
            case Done(value=found):
                return cast(wire.TrialResult, {**found, "seconds": seconds})
            case TimedOut():
                return not_judged(f"The trial took longer than {_LONGEST:g} s and was ended.", seconds)
            case Died(reason=why):
                printed.seek(0)
                why += f". {printed.read().decode('utf-8', 'replace').strip()[-_OUTPUT:]}"
            case Raised(type=kind, message=message):
                why = f"raised {kind}: {mask(message)}"
    return not_judged(f"The process of the trial {why}", seconds)


def not_judged(failure: str, seconds: float = 0.0) -> wire.TrialResult:
    """What a trial without a verdict tells."""
    return wire.TrialResult(score=None, passed=None, reason="", metrics=[], failure=failure, seconds=seconds)
