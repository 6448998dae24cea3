"""The pass@k curve drawn with characters, for a terminal.

82 %┤                      ●
    │              ●       │
    │      ●       │
57 %┤●─
    └──────────────────────────
     1      2       3       4    candidates
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_kit.analysis.pass_curve import CurvePoint

__all__ = ["draw_curve"]

_MARGIN = 7
"""Room for the labels of the scale, and its line."""
_LEAST = 3
"""Fewer points are no curve."""


def draw_curve(curve: Sequence[CurvePoint], *, width: int = 72, height: int = 10) -> str:
    """Draw pass@k with its intervals; an empty text where there are too few points to see a curve."""
    if len(curve) < _LEAST:
        return ""
    low, high = min(point.pass_at_k.low for point in curve), max(point.pass_at_k.high for point in curve)
    span = max(high - low, 1e-9)
    grid = [[" "] * (width - _MARGIN) for _ in range(height)]
    columns = _columns(curve, width - _MARGIN)

    def line(value: float) -> int:
        return height - 1 - round((value - low) / span * (height - 1))

    for point, column in zip(curve, columns, strict=True):
        for row in range(line(point.pass_at_k.high), line(point.pass_at_k.low) + 1):
            grid[row][column] = "│"
        grid[line(point.pass_at_k.value)][column] = "●"
    labels = {0: high, height // 2: low + span * (height - 1 - height // 2) / (height - 1), height - 1: low}
    drawn = [
        f"{_label(labels.get(row))}{'┤' if row in labels else '│'}{''.join(cells)}" for row, cells in enumerate(grid)
    ]
    scale = " " * (_MARGIN - 1) + "└" + "─" * (width - _MARGIN)
    return "\n".join(text.rstrip() for text in [*drawn, scale, _axis(curve, columns, width)])


def _columns(curve: Sequence[CurvePoint], room: int) -> list[int]:
    """Where each k stands: at its distance, so that a curve that flattens is seen to."""
    first, last = curve[0].k, curve[-1].k
    return [1 + round((point.k - first) / (last - first) * (room - 4)) for point in curve]


def _label(share: float | None) -> str:
    return " " * (_MARGIN - 1) if share is None else f"{100 * share:4.1f} %"[: _MARGIN - 1].rjust(_MARGIN - 1)


def _axis(curve: Sequence[CurvePoint], columns: Sequence[int], width: int) -> str:
    """The ks under their points, as many as have room; the last always has."""
    cells = [" "] * width
    free_until = width
    for point, column in reversed(list(zip(curve, columns, strict=True))):
        text, at = str(point.k), _MARGIN + column
        if at + len(text) < free_until:
            cells[at : at + len(text)] = text
            free_until = at
    cells[: _MARGIN - 1] = list("     k")
    return "".join(cells[:width])
