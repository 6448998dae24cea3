# SPDX-License-Identifier: Apache-2.0
"""A frozen lake as a text game: walk from S to G over the ice, and fall into no hole.

S . . .        The model is shown the lake with its own place marked as P, and says left, right, up or down.
. O . O        A step onto a hole (O) ends the episode, and so does reaching G, which brings a reward of 1.
. . . O        A step against the edge stays where it is.
O . . G
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from reward_kit.agent import Answer, World
from reward_kit.models import EvaluateResult, Message, Sample

LAKES = (
    "S... .O.O ...O O..G",
    "S.O. ..O. O... ...G",
    "SO.. .... .OO. ...G",
    "S... OO.. ..O. O..G",
    "S..O ..O. O... .O.G",
    "SOO. .... OO.. ...G",
)
TASK = "Walk to G. O is a hole. Say left, right, up or down."
MOVES = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}


class Lake(World):
    """One walk over one lake."""

    on_the_loop = True  # its methods only count: no need for threads

    def __init__(self, sample: Sample) -> None:
        self.rows: list[str] = sample.columns["lake"].split()
        self.place = (0, 0)

    def start(self) -> Answer:
        return self._shown()

    def answer(self, message: Message) -> Answer:
        move = MOVES.get(message.text.strip().lower())
        if move is None:
            return Answer(
                [Message(role="user", content="Say left, right, up or down.")], reward=0.0, state=self._board()
            )
        row, column = self.place[0] + move[0], self.place[1] + move[1]
        if 0 <= row < len(self.rows) and 0 <= column < len(self.rows[0]):
            self.place = (row, column)
        return self._shown(reward=float(self._below() == "G"), done=self._below() in "GO")

    def facts(self) -> dict[str, Any]:
        return {"reached": self._below() == "G"}

    def _below(self) -> str:
        return self.rows[self.place[0]][self.place[1]]

    def _board(self) -> str:
        """The lake with the walker. It is also the state's name: whoever stands there again is where they were."""
        rows = [list(row) for row in self.rows]
        rows[self.place[0]][self.place[1]] = "P"
        return "\n".join(map("".join, rows))

    def _shown(self, reward: float | None = None, done: bool = False) -> Answer:
        board = self._board()
        return Answer([Message(role="user", content=board)], reward=reward, done=done, state=board)


def reached(facts: dict[str, Any], **kwargs: Any) -> EvaluateResult:
    """1 for an episode that came to the goal."""
    return EvaluateResult(score=float(facts["reached"]))


def samples() -> list[Sample]:
    """One per lake."""
    return [
        Sample(
            id=f"lake-{place}", messages=[Message(role="system", content=TASK)], columns={"lake": lake}, position=place
        )
        for place, lake in enumerate(LAKES)
    ]


def way(rows: Sequence[str], start: tuple[int, int]) -> list[str] | None:
    """A shortest way to the goal, as moves; None where there is none."""
    ways: dict[tuple[int, int], list[str]] = {start: []}
    waiting = deque([start])
    while waiting:
        row, column = waiting.popleft()
        if rows[row][column] == "G":
            return ways[row, column]
        for word, (down, right) in MOVES.items():
            there = (row + down, column + right)
            inside = 0 <= there[0] < len(rows) and 0 <= there[1] < len(rows[0])
            if inside and there not in ways and rows[there[0]][there[1]] != "O":
                ways[there] = [*ways[row, column], word]
                waiting.append(there)
    return None
