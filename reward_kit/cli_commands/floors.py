# SPDX-License-Identifier: Apache-2.0
"""`--fail-under`: what the figures of a run must reach for the command to succeed, for gates in CI."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from reward_kit.config_models import PipelineConfig
    from reward_kit.execution.result import RunResult
    from reward_kit.execution.run_summary import EstimateFigures

__all__ = ["FLOOR", "SHARE", "Allowance", "Floor", "asked_of", "check_floors", "read_floor", "read_share"]

FLOOR = "NAME=VALUE[:low]"
"""How a floor is written."""
SHARE = "SHARE"
"""How a share is written: 0.05, or 5%."""
_NAME = re.compile(r"mean_score|judged|pass@[1-9][0-9]*|metrics\.\S+")
_KNOWN = "mean_score, pass@K, metrics.NAME, or judged (the share of answers that could be judged)"


class Floor(NamedTuple):
    """The least that a figure of a run may be."""

    figure: str
    least: float
    by_low: bool
    """Whether the lower end of its 95 % interval must reach it, and not only the figure."""

    def __str__(self) -> str:
        return f"--fail-under {self.figure}={self.least:g}{':low' if self.by_low else ''}"

    def shortfall(self, result: RunResult) -> str | None:
        """Why the run does not reach it, in one sentence; None where it does."""
        if self.figure == "judged":
            records = result.summary.get("records", 0)
            return self._below(result.judged / records if records else 0.0, "")
        figures = self._estimate(result)
        if figures is None:
            return f"{self.figure} must be at least {self.least:g}, and this run has none."
        if not self.by_low:
            return self._below(figures["value"], "")
        if figures["low"] is None or not math.isfinite(figures["low"]):
            return f"The interval of {self.figure} must begin at {self.least:g} or above, and one sample has none."
        return self._below(figures["low"], "the lower end of its 95 % interval")

    def _estimate(self, result: RunResult) -> EstimateFigures | None:
        if self.figure == "mean_score":
            return result.summary.get("mean_score")
        if self.figure.startswith("pass@"):
            return result.summary.get("pass_at_k", {}).get(self.figure.removeprefix("pass@"))
        return result.summary.get("metrics", {}).get(self.figure.removeprefix("metrics."))

    def _below(self, found: float, which: str) -> str | None:
        if found >= self.least:
            return None
        seen = f"{which} is {found:.4g}" if which else f"it is {found:.4g}"
        return f"{self.figure} must be at least {self.least:g}, and {seen}."


class Allowance(NamedTuple):
    """The share of answers that may have failed, and so have no part in the figures."""

    share: float

    def __str__(self) -> str:
        return f"--allow-unjudged {self.share:g}"

    def shortfall(self, result: RunResult) -> str | None:
        """Why the run has failed too often, in one sentence; None where it has not."""
        records = result.summary.get("records", 0)
        unjudged = records - result.judged
        if unjudged <= self.share * records:
            return None
        most = f"at most {self.share:.4g} of them may have failed" if self.share else "none may have failed"
        advice = "" if self.share else " Allow some with --allow-unjudged SHARE."
        return f"{unjudged:,} of {records:,} answers could not be judged, and {most}.{advice}"


def asked_of(floors: tuple[Floor, ...], allowed: float | None) -> tuple[Floor | Allowance, ...]:
    """What is asked of a run: its floors, and that no more answers than `allowed` failed.

    Nothing where there are no floors; and a floor for `judged` says itself how many may have failed.
    """
    if allowed is None and (not floors or any(floor.figure == "judged" for floor in floors)):
        return floors
    return (*floors, Allowance(allowed or 0.0))


def read_share(given: str) -> float:
    """The share that a text such as `0.05` or `5%` means."""
    number, percent, rest = given.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = math.nan
    if rest or not 0 <= share <= 1:
        raise click.BadParameter(f"{given!r} is not a share from 0 to 1, such as 0.05 or 5%.")
    return share


def read_floor(given: str) -> Floor:
    """The floor that a text such as `mean_score=0.8:low` means."""
    figure, equals, rest = given.rpartition("=")
    number, _, bound = rest.partition(":")
    try:
        least = float(number)
    except ValueError:
        least = math.nan
    if not equals or not math.isfinite(least) or bound not in {"", "low"} or rest.endswith(":"):
        raise click.BadParameter(f"{given!r} is not {FLOOR}, such as mean_score=0.8 or pass@4=0.9:low.")
    if not _NAME.fullmatch(figure):
        raise click.BadParameter(f"{figure!r} is not a figure of a run. Name {_KNOWN}.")
    if figure == "judged" and bound:
        raise click.BadParameter("'judged' is a count and has no interval. Leave out ':low'.")
    return Floor(figure, least, bound == "low")


def check_floors(floors: tuple[Floor, ...], config: PipelineConfig) -> None:
    """Refuse, before anything is paid for, what a run with this config cannot reach: pass@k with k above n."""
    generation = config.generation
    for floor in floors:
        k = floor.figure.removeprefix("pass@")
        if generation.enabled and k.isdecimal() and int(k) > generation.n:
            raise click.UsageError(
                f"{floor}: {floor.figure} needs {k} answers per prompt, and generation.n is "
                f"{generation.n}. Raise generation.n, or choose a smaller k."
            )
