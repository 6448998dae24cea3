"""The curves as a picture: PNG or SVG by matplotlib, HTML by ourselves, without anything from the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reward_kit.analysis.present.html_plot import html_page
from reward_kit.analysis.report import Report
from reward_kit.errors import ConfigError, MissingExtraError
from reward_kit.statistics import Estimate

__all__ = ["COLOURS", "plot"]

COLOURS = ("#3b6fb6", "#d1662f", "#3f8f5b", "#8a5aa8", "#b8912b", "#5f6b7a")
"""One colour an experiment, told apart also by people who see fewer of them."""


def plot(reports: Report | Sequence[Report], path: str | Path) -> None:
    """Draw the curves of one or several reports into a .png, .svg or .html file."""
    several = [reports] if isinstance(reports, Report) else list(reports)
    target = Path(path)
    writer = _WRITERS.get(target.suffix.casefold())
    if writer is None:
        raise ConfigError(f"Cannot draw {str(target)!r}. Name a file that ends in {', '.join(_WRITERS)}.")
    if not any(report.curve for report in several):
        raise ConfigError("Nothing was judged, so there is no curve to draw. Inspect the failures first.")
    try:
        writer(several, target)
    except OSError as error:
        raise ConfigError(f"Cannot write {str(target)!r}: {error.strerror}. Name another file.") from error


def _write_html(reports: Sequence[Report], target: Path) -> None:
    target.write_text(html_page(reports, COLOURS), encoding="utf-8")


def _write_picture(reports: Sequence[Report], target: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("Drawing a picture (a .html file needs nothing)", "plot") from error
    figure = Figure(figsize=(9.6, 4.2) if len(reports) == 1 else (10.4, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    for report, colour in zip(reports, _colours(len(reports)), strict=True):
        _draw_curve(left, report, colour, alone=len(reports) == 1)
        _draw_gains(right, report, colour)
    _label(left, right, reports)
    kind = target.suffix[1:].casefold()
    undated = {"Date": None} if kind == "svg" else None  # the same figures give the same file
    figure.savefig(target, dpi=160, format=kind, metadata=undated)


def _colours(count: int) -> list[str]:
    return [COLOURS[number % len(COLOURS)] for number in range(count)]


def _draw_curve(axes: Any, report: Report, colour: str, *, alone: bool) -> None:
    label = "at least one of k (pass@k)" if alone else report.name
    _line(axes, [point.k for point in report.curve], [point.pass_at_k for point in report.curve], colour, label)
    if not alone:
        return
    ways = {"majority of k": ("majority", COLOURS[1]), "best-scored of k": ("best_by_score", COLOURS[2])}
    for name, (way, other) in ways.items():
        found = [(point.k, point.majority if way == "majority" else point.best_by_score) for point in report.choosing]
        known = [(k, estimate) for k, estimate in found if estimate is not None]
        if known:
            _line(axes, [k for k, _ in known], [estimate for _, estimate in known], other, name)
    _line(
        axes, [point.k for point in report.curve], [point.pass_hat_k for point in report.curve], COLOURS[5], "each of k"
    )
    if report.optimal is not None and len(report.curve) > 1:
        at_least = "" if report.optimal.reached else "≥ "
        axes.axvline(report.optimal.n, color="#999999", linewidth=1, linestyle=":")
        axes.annotate(
            f"optimal N {at_least}{report.optimal.n}", (report.optimal.n, 1), xycoords=("data", "axes fraction"),
            xytext=(-4, -4), textcoords="offset points", ha="right", va="top", rotation=90, color="#666666", fontsize=8,
        )  # fmt: skip


def _line(axes: Any, ks: Sequence[int], estimates: Sequence[Estimate], colour: str, label: str) -> None:
    axes.plot(ks, [100 * one.value for one in estimates], color=colour, marker="o", markersize=4, label=label)
    lows, highs = [100 * one.low for one in estimates], [100 * one.high for one in estimates]
    axes.fill_between(ks, lows, highs, color=colour, alpha=0.15, linewidth=0)


def _draw_gains(axes: Any, report: Report, colour: str) -> None:
    points = [point for point in report.curve if point.since]
    if not points:
        return
    per = [1 / (point.k - point.since) for point in points]
    values = [100 * point.gain.value * share for point, share in zip(points, per, strict=True)]
    below = [100 * (point.gain.value - point.gain.low) * share for point, share in zip(points, per, strict=True)]
    above = [100 * (point.gain.high - point.gain.value) * share for point, share in zip(points, per, strict=True)]
    ks = [point.k for point in points]
    axes.errorbar(ks, values, yerr=[below, above], color=colour, marker="o", markersize=4, capsize=2, linewidth=1.2)
    if len(ks) == 1:  # alone, it would be given an axis of hundredths
        axes.set_xlim(ks[0] - 0.5, ks[0] + 0.5)
    if report.optimal is not None:
        axes.axhline(100 * report.optimal.bar, color=colour, linewidth=1, linestyle=":")


def _label(left: Any, right: Any, reports: Sequence[Report]) -> None:
    left.set_title(reports[0].name if len(reports) == 1 else "pass@k", fontsize=10)
    right.set_title("what one candidate more adds", fontsize=10)
    left.set_ylabel("queries, %")
    right.set_ylabel("points of pass@k; dotted: what it must bring", fontsize=8)
    for axes in (left, right):
        axes.set_xlabel("candidates a query (k)")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.get_major_locator().set_params(integer=True)
    right.set_ylim(bottom=0)
    left.legend(frameon=False, fontsize=8, loc="best")


_WRITERS: dict[str, Callable[[Sequence[Report], Path], None]] = {
    ".png": _write_picture,
    ".svg": _write_picture,
    ".html": _write_html,
}
