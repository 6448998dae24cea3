# SPDX-License-Identifier: Apache-2.0
"""The last resort: asked in a process of its own, which is bounded, replaced when lost, and gone in the end."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from reward_kit.mathematics import math_verify
from reward_kit.mathematics.equivalence import equivalent

needs_math_verify = pytest.mark.skipif(
    sys.platform != "linux" or importlib.util.find_spec("math_verify") is None,
    reason="needs Linux and the extra `math`",
)
INTEGRAL = r"\int_0^1 \frac{\sin(x^x)}{e^x+\ln(x+2)} dx"


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    math_verify.close()


def process_id() -> int:
    process = math_verify._helpers.get().host
    assert process is not None
    return process.pid


@needs_math_verify
def test_what_only_math_verify_understands_is_judged() -> None:
    assert equivalent(r"\frac{1}{2}", r"\int_0^1 x dx") is True
    assert equivalent(r"\frac{1}{3}", r"\int_0^1 x dx") is not True
    assert equivalent(r"\int_0^1 x dx", r"\int_0^1 y dy") is not False


@needs_math_verify
def test_a_question_without_an_end_costs_itself_and_no_worker() -> None:
    assert math_verify.ask("1", "1") is True
    worker = process_id()
    assert math_verify.ask("1", INTEGRAL) is None
    assert math_verify.ask("1", "9^{9^{9}}") is not True
    assert math_verify.ask("2", "1+1") is True
    assert process_id() == worker


@needs_math_verify
def test_a_process_that_was_killed_is_replaced() -> None:
    assert math_verify.ask("1", "1") is True
    worker = process_id()
    os.kill(worker, 9)
    assert math_verify.ask("1", "1") is True
    assert process_id() != worker


@needs_math_verify
def test_a_fork_and_a_daemonic_process_ask_for_themselves(tmp_path: Path) -> None:
    # In a process of its own: a fork of this one could wait for ever for a lock that a thread of another test held.
    program = tmp_path / "program.py"
    program.write_text(
        dedent("""
            import multiprocessing

            from reward_kit.mathematics import math_verify

            if __name__ == "__main__":
                said = [math_verify.ask("1", "1")]
                # A pool's processes are daemonic: they may have no children by multiprocessing.
                for kind in ("fork", "spawn"):
                    with multiprocessing.get_context(kind).Pool(1) as pool:
                        said.append(pool.apply(math_verify.ask, ("2", "2")))
                said.append(math_verify.ask("3", "3"))
                print(said)
        """)
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout == "[True, True, True, True]\n"


@needs_math_verify
def test_the_process_ends_with_its_parent(tmp_path: Path) -> None:
    program = (
        "from reward_kit.mathematics import math_verify\n"
        "assert math_verify.ask('1', '1')\n"
        "print(math_verify._helpers.get().host.pid)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not Path(f"/proc/{int(done.stdout)}").exists()


def test_without_math_verify_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", none)
    assert math_verify.ask("1", "1") is None
    assert equivalent(r"\frac{5}{2}", r"\int_0^1 5x dx") is None
    assert equivalent(r"\frac{5}{2}", "2.5") is True


@pytest.mark.parametrize(
    "text",
    [
        "the answer is 5",
        "1, 2",
        r"\forall x > 0, x^2",
        "(1",
        "1" * 2000,
        "9^{9^{9}}",
        "no formula",
        "> 0",
        "5 6",
        r"x \text{ if } y",
    ],
)
def test_statements_lists_and_fragments_are_not_asked_about(text: str) -> None:
    assert not math_verify.worth_asking(text, r"\int_0^1 x dx")
    assert not math_verify.worth_asking(r"\int_0^1 x dx", text)


def test_one_formula_is_worth_asking_about() -> None:
    assert math_verify.worth_asking("1", r"\int_0^1 x dx") and math_verify.worth_asking(r"\sum_{k=1}^{n} k", "2n")
    assert not math_verify.worth_asking("1", "x + 1")
