"""What is asked for many times in a turn is done once, at its end; without a loop, at once."""

from __future__ import annotations

import asyncio

from reward_kit.utils.end_of_turn import EndOfTurn


def test_without_a_loop_it_is_done_at_once() -> None:
    done: list[int] = []
    action = EndOfTurn(lambda: done.append(1))
    action.ask()
    action.ask()
    assert done == [1, 1]


async def test_in_a_loop_it_is_done_once_a_turn() -> None:
    done: list[int] = []
    action = EndOfTurn(lambda: done.append(1))
    for turn in range(3):
        for _ in range(5):
            action.ask()
        assert len(done) == turn
        await asyncio.sleep(0)
    assert done == [1, 1, 1]


async def test_an_action_may_ask_again() -> None:
    done: list[int] = []

    def act() -> None:
        done.append(1)
        if len(done) < 3:
            action.ask()

    action = EndOfTurn(act)
    action.ask()
    for _ in range(5):
        await asyncio.sleep(0)
    assert done == [1, 1, 1]
