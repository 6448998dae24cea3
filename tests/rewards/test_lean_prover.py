# SPDX-License-Identifier: Apache-2.0
"""Lean: structure is looked at, words earn nothing, and the real check trusts only what it asked for.

Lean itself is not needed: a stand-in plays its part in a real sandbox, and says what Lean says.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.config_models import SandboxConfig
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards._support.lean import declarations, forbidden_word, lean_code, plain
from reward_kit.rewards.lean_prover import (
    deepseek_huggingface_prover_benchmark,
    deepseek_prover_v2_reward,
    lean_proof_reward,
    lean_prover_reward,
)
from reward_kit.sandbox.from_settings import Sandboxes
from reward_kit.sandbox.namespaces.backend import NamespacesBackend
from tests.execution.shell_support import require_namespaces
from tests.growth import growth_of_time

STATEMENT = "theorem add_zero' (n : Nat) : n + 0 = n"
PROOF = f"{STATEMENT} := by\n  simp"
INHERITED = [lean_prover_reward, deepseek_prover_v2_reward]


def saying(text: str) -> list[Message]:
    return [Message(role="assistant", content=text)]


# ── looked at ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("reward", INHERITED)
@pytest.mark.parametrize(
    "answer",
    [
        "",
        "have h := foo; apply bar; intro x; rw [baz]; simp; exact qed. QED ∎",
        "theorem",
        "by simp",
        STATEMENT,
        f"{STATEMENT} := by sorry",
        f"{STATEMENT} := by\n  have h : n = n := by sorry\n  exact h",
        f"{STATEMENT} := by admit",
        "theorem add_zero' (n : Nat) : n = n := by simp",
        f"-- {PROOF}",
        f"/- {PROOF} -/",
        f"<think>```lean\n{PROOF}\n```</think>I cannot.",
    ],
)
def test_what_is_no_proof_scores_nothing(reward: Any, answer: str) -> None:
    result = reward(saying(answer), statement=STATEMENT)
    assert result.score == 0.0 and result.is_score_valid


@pytest.mark.parametrize("reward", INHERITED)
@pytest.mark.parametrize(
    "answer",
    [
        PROOF,
        f"Here:\n```lean4\n{PROOF}\n```",
        f"lemma helper : 1 = 1 := rfl\n\n{PROOF}\n\nend Foo",
        "theorem nonsense (n:Nat) : n+0 = n := by have; apply; exact; simp; rw; calc; induction",
    ],
)
def test_what_may_be_a_proof_gets_no_verdict_from_looking(reward: Any, answer: str) -> None:
    result = reward(saying(answer), statement=STATEMENT)
    assert not result.is_score_valid and "only Lean can tell" in result.reason


def test_the_expected_proof_as_written_is_one() -> None:
    spaced = f"```lean\n{PROOF.replace('  simp', '    simp')}  -- done\n```"
    result = lean_prover_reward(saying(spaced), ground_truth=PROOF, statement=STATEMENT)
    assert result.score == 1.0 and result.metrics["expected_match"].score == 1.0
    other = lean_prover_reward(saying(PROOF), ground_truth=f"{STATEMENT} := rfl", statement=STATEMENT)
    assert not other.is_score_valid
    quoted = lean_prover_reward(saying(f"{PROOF}\n  sorry"), ground_truth=f"{PROOF}\n  sorry", statement=STATEMENT)
    assert quoted.score == 0.0


def test_a_statement_in_words_cannot_be_compared_but_must_be_there() -> None:
    assert not lean_prover_reward(saying(PROOF), statement="zero is neutral").is_score_valid
    assert lean_prover_reward(saying("obvious"), statement="zero is neutral").score == 0.0
    assert not lean_prover_reward(saying(PROOF)).is_score_valid
    assert lean_prover_reward([Message(role="user")], statement=STATEMENT).metrics["error"].score == 0.0


def test_subgoals_are_told_and_earn_nothing() -> None:
    many = f"{STATEMENT} := by\n" + "  have h : n = n := rfl\n" * 9 + "  sorry"
    result = deepseek_prover_v2_reward(saying(many), statement=STATEMENT)
    assert result.score == 0.0 and result.metrics["subgoal_decomposition"].score == 1.0


def test_rows_of_the_benchmark() -> None:
    row = {"dataset_item": {"formal_statement": STATEMENT, "expected_proof": PROOF}}
    assert deepseek_huggingface_prover_benchmark(saying(PROOF), ground_truth=row).score == 1.0
    assert not deepseek_huggingface_prover_benchmark(saying(PROOF), ground_truth={}).is_score_valid
    assert not deepseek_huggingface_prover_benchmark(saying(PROOF), ground_truth=None).is_score_valid
    named = deepseek_huggingface_prover_benchmark(
        saying("theorem t : 1 = 1 := by sorry"), statement="theorem t : 1 = 1"
    )
    assert (named.score, named.is_score_valid) == (0.0, True)


def test_reading() -> None:
    code = "theorem a (f : Nat := 3) : f = f := by\n  rfl\n\nprivate lemma b : x := y\ndef c := 1\nexample : p := q"
    found = {made.name: (made.statement, made.proof) for made in declarations(code)}
    assert found == {"a": ("(f : Nat := 3) : f = f", "by\n  rfl"), "b": (": x", "y"), "": (": p", "q")}
    assert plain('a /- b /- c -/ d -/ e -- f\ng "-- h"').split() == ["a", "e", "g", '"--', 'h"']
    assert lean_code("```\nx\n```\n```lean\ny\n```\n```python\nz\n```") == "y"
    assert forbidden_word("exact Lean.Elab.run_tac x") and forbidden_word("#eval 1") and forbidden_word("sorry")
    assert forbidden_word("exact sorry_free apologise") is None


@given(st.text(alphabet="theorem:= \n-/\"()[]{}abc⟨'"))
def test_any_text_can_be_looked_at(text: str) -> None:
    lean_prover_reward(saying(text), statement=STATEMENT)


@pytest.mark.parametrize(
    "part", ["theorem ", "theorem a\n", "/-", '"', "```lean\n", "(", "@[", " ", "\\", "theorem a : (", "-- ", "⟨"]
)
def test_eight_times_the_text_is_no_more_than_eight_times_the_work(part: str) -> None:
    """With room for noise; a quadratic pass would take 64 times."""

    def judged(size: int) -> None:
        lean_prover_reward(saying("theorem a : " + part * (size // len(part))), statement=STATEMENT)

    assert growth_of_time(judged, 25_000, times=8, at_least=0.002) < 30


# ── checked ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandboxes]:
    require_namespaces()
    backend = NamespacesBackend()
    yield Sandboxes(backend, SandboxConfig(timeout=10))
    await backend.close()


def stand_in(says: str, status: int = 0) -> str:
    """A command in Lean's place: `MARK` in what it says is the name it is asked about."""
    script = (
        f"mark=$(sed -n 's/^#print axioms //p' Proof.lean); printf '%s' {shlex.quote(says)} | sed \"s/MARK/$mark/\""
    )
    return f"sh -c {shlex.quote(f'{script}; exit {status}')} --"


async def check(sandbox: Any, answer: str, lean: str, **options: Any) -> EvaluateResult:
    return await lean_proof_reward(saying(answer), statement=STATEMENT, sandbox=sandbox, lean=lean, **options)


async def test_what_lean_accepts(sandbox: Sandboxes) -> None:
    for says in ("'MARK' does not depend on any axioms", "'MARK' depends on axioms: [propext, Quot.sound]"):
        result = await check(sandbox, PROOF, stand_in(says))
        assert result.score == 1.0 and result.metrics["lean_check"].score == 1.0, says


@pytest.mark.parametrize(
    ("says", "status"),
    [
        ("Proof.lean:5:2: error: unsolved goals", 1),
        ("'MARK' depends on axioms: [sorryAx]", 0),
        ("'MARK' depends on axioms: [propext, cheat]", 0),
        ("'MARK' does not depend on any axioms", 1),
        ("'other' does not depend on any axioms", 0),
        ("", 0),
    ],
)
async def test_what_lean_does_not_accept(sandbox: Sandboxes, says: str, status: int) -> None:
    result = await check(sandbox, PROOF, stand_in(says, status))
    assert result.score == 0.0 and result.is_score_valid


async def test_no_lean_or_no_end_is_no_verdict(sandbox: Sandboxes) -> None:
    assert not (await check(sandbox, PROOF, "no-such-lean")).is_score_valid
    assert not (await check(sandbox, PROOF, "sleep 60;", seconds=0.5)).is_score_valid


@pytest.mark.parametrize(
    "word",
    ["macro \"x\" : tactic => `(tactic| trivial)", "#eval 1", "axiom cheat : False", "run_cmd pure ()",
     "notation \"x\" => 1", "import Lean", "theorem y : True := by run_tac pure ()", "unsafe def f := 1"],
)  # fmt: skip
async def test_what_could_change_the_check_never_reaches_lean(word: str) -> None:
    result = await check(None, f"{word}\n\n{PROOF}", "lean")
    assert result.score == 0.0 and "not allowed" in str(result.reason)


async def test_a_comment_is_what_we_say_it_is(sandbox: Sandboxes) -> None:
    """A quote that only Lean reads as a character must not hide a command from us."""
    hidden = f"def q := '\"'\n#eval 1\ndef r := '\"'\n\n{PROOF}"
    assert (await check(None, hidden, "lean")).score == 0.0
    shown = await check(sandbox, f"lemma helper : 1 = 1 := rfl -- why\n\n{PROOF}", "cat", header="open Nat")
    text = str(shown.reason)
    assert (
        "-- why" not in text
        and "lemma helper" in text
        and text.index("open Nat") < text.index("_goal") < text.index("lemma")
    )
    assert re.search(r"theorem (rk_\w+) : type_of% @\1_goal := @\1_proof\s+#print axioms \1", text)


async def test_a_statement_must_be_lean() -> None:
    nowhere: Any = None
    result = await lean_proof_reward(saying(PROOF), statement="zero is neutral", sandbox=nowhere)
    assert not result.is_score_valid
    silent = await lean_proof_reward([Message(role="user")], statement=STATEMENT, sandbox=nowhere)
    assert silent.score == 0.0 and "error" in silent.metrics
