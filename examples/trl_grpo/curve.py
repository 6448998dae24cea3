# SPDX-License-Identifier: Apache-2.0
"""A learning curve as a picture: SVG text, made of nothing but the numbers."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["draw"]

WIDTH, HEIGHT, MARGIN = 720, 360, 48
SMOOTHED_OVER = 5


def draw(values: Sequence[float], title: str) -> str:
    """The values, between 0 and 1, as points, and their running mean as a line."""
    across = (WIDTH - 2 * MARGIN) / max(1, len(values) - 1)
    up = HEIGHT - 2 * MARGIN

    def place(index: int, value: float) -> str:
        return f"{MARGIN + index * across:.1f},{HEIGHT - MARGIN - value * up:.1f}"

    means = [_mean(values[max(0, at - SMOOTHED_OVER + 1) : at + 1]) for at in range(len(values))]
    line = " ".join(place(index, value) for index, value in enumerate(means))
    points = "".join(
        '<circle cx="{}" cy="{}" r="2.2"/>'.format(*place(index, value).split(","))
        for index, value in enumerate(values)
    )
    grid = "".join(_grid_line(level / 4, up) for level in range(5))
    last = len(values)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13" role="img"><title>{title}</title><rect width="100%" height="100%" fill="white"/>'
        f'<text x="{MARGIN}" y="28" font-size="15">{title}</text>{grid}'
        f'<g fill="#9db8d9">{points}</g><polyline points="{line}" fill="none" stroke="#1f4e8c" stroke-width="2.5"/>'
        f'<text x="{MARGIN}" y="{HEIGHT - 18}">1</text>'
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 18}" text-anchor="end">{last}</text></svg>\n'
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _grid_line(level: float, up: int) -> str:
    y = HEIGHT - MARGIN - level * up
    return (
        f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        f'<text x="{MARGIN - 8}" y="{y + 4:.1f}" text-anchor="end">{level:g}</text>'
    )
