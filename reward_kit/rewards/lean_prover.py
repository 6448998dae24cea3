# SPDX-License-Identifier: Apache-2.0
"""Lean 4 proofs: looked at for their structure, and checked by Lean where there is one.

`lean_proof_reward` has Lean check the proof, in a sandbox. The inherited rewards look at the text alone: they can say
that something is no proof, or that it is a proof already known, and otherwise give no verdict. Words earn nothing.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

from reward_kit.answers.reasoning import without_reasoning
from reward_kit.models import EvaluateResult, ExecResult, Message, MetricResult
from reward_kit.rewards._support.lean import (
    INCOMPLETE,
    Declaration,
    declarations,
    forbidden_word,
    lean_code,
    plain,
    same_statement,
)
from reward_kit.rewards._support.verdicts import check, no_verdict, reply_of, wrong
from reward_kit.sandbox.contract import Sandbox
from reward_kit.typed_interface import Operator, reward_function

__all__ = [
    "deepseek_huggingface_prover_benchmark",
    "deepseek_prover_v2_reward",
    "lean_proof_reward",
    "lean_prover_reward",
]

_USUAL_AXIOMS = ("propext", "Classical.choice", "Quot.sound")
_NOT_FOUND = 127
_SUBGOAL = re.compile(r"\b(?:have|suffices|obtain|calc|induction|cases|rcases)\b")
_ENOUGH_SUBGOALS = 5
_SHOWN = 500
_UNCHECKED = (
    "Its structure is that of a proof, and only Lean can tell whether it is one. Use lean_proof_reward with a sandbox "
    "that has Lean, or give the expected proof."
)


# ── checked by Lean ──────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function(timeout=900)
async def lean_proof_reward(
    messages: list[Message],
    *,
    statement: str,
    sandbox: Callable[..., AbstractAsyncContextManager[Sandbox]],
    header: str = "",
    lean: Operator[str] = "lean",
    seconds: float = 300.0,
    allowed_axioms: Collection[str] = _USUAL_AXIOMS,
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 if Lean accepts the last message's proof of the statement, 0.0 if it does not.

    `statement` is the theorem in Lean (`theorem name (x : Nat) : x + 0 = x`, with `:= sorry` or without). The answer
    must prove it as it stands, helper lemmas before it allowed. Lean reads the statement before any part of the answer.
    The proof must fit the statement, and may use no axioms except `allowed_axioms`. `header` holds imports and `open`s;
    `lean` is the command (`lake env lean` in a project). If the sandbox has no Lean, or Lean does not finish within
    `seconds`, there is no verdict.

    Metrics: `syntax`, `completeness`, `lean_check`.
    Needs: sandbox; program `lean`.
    Cost: a start of Lean, about a second, and many with Mathlib.
    Does not detect: a statement that does not say what it should. Proofs that run code while they are checked (`macro`,
    `elab`, `run_tac`, `#eval`, `native_decide` …) are refused by a list of words. This list is the only protection
    against a forged check; there is no second kernel.

    >>> import asyncio
    >>> reply = Message(role="assistant", content="theorem t : 1 + 1 = 2 := by sorry")
    >>> asyncio.run(lean_proof_reward([reply], statement="theorem t : 1 + 1 = 2", sandbox=None)).score
    0.0
    """
    reply = reply_of(messages)
    goal = _goal(statement)
    if goal is None:
        return no_verdict(f"The statement {statement!r} is not a theorem of Lean. Write it as `theorem name : …`.")
    attempt = _attempt(reply, goal, forbid_power=True)
    if attempt.problem is not None or attempt.main is None:
        return wrong(f"Not a proof: {attempt.problem}.", attempt.metrics)
    mark = f"rk_{secrets.token_hex(8)}"
    files = {"Proof.lean": _file(header, goal, attempt.code, attempt.main, mark).encode()}
    async with sandbox(files=files) as box:
        done = await box.run(f"{lean} Proof.lean", timeout=seconds)
    return _checked(done, mark, frozenset(allowed_axioms), attempt, lean)


def _file(header: str, goal: Declaration, code: str, main: Declaration, mark: str) -> str:
    """The statement on its own, what the answer puts before its proof, the proof, and that the one proves the other."""
    return "\n\n".join(
        [
            header,
            f"theorem {mark}_goal {goal.statement} := sorry",
            code[: main.start],
            f"theorem {mark}_proof {goal.statement} := {main.proof}",
            f"theorem {mark} : type_of% @{mark}_goal := @{mark}_proof",
            f"#print axioms {mark}\n",
        ]
    )


def _checked(done: ExecResult, mark: str, allowed: frozenset[str], attempt: _Attempt, lean: str) -> EvaluateResult:
    if done.timed_out or done.exit_code is None:
        return no_verdict("Lean did not finish. Raise `seconds` or the sandbox's memory.", attempt.metrics)
    if done.exit_code == _NOT_FOUND:
        command = shlex.split(lean)[:1]
        return no_verdict(f"The sandbox has no {command}. Use an image with Lean, or set `lean`.", attempt.metrics)
    axioms = re.search(rf"'{mark}' (?:does not depend on any axioms|depends on axioms: \[([^\]]*)\])", done.output)
    used = {name.strip() for name in (axioms[1] or "").split(",") if name.strip()} if axioms else set()
    accepted = axioms is not None and done.exit_code == 0 and used <= allowed
    reason = "Lean accepts the proof" if accepted else _refusal(done, used - allowed)
    metrics = {**attempt.metrics, "lean_check": check(accepted, reason)}
    return EvaluateResult(score=float(accepted), reason=reason, metrics=metrics)


def _refusal(done: ExecResult, axioms: set[str]) -> str:
    if axioms:
        return f"it rests on {', '.join(sorted(axioms))}"
    return f"Lean refuses it: {done.output.strip()[:_SHOWN]}"


# ── looked at ────────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function
def lean_prover_reward(
    messages: list[Message], ground_truth: str | None = None, *, statement: str | None = None, **kwargs: Any
) -> EvaluateResult:
    """0.0 if the answer cannot be a proof, 1.0 if it is the expected proof word for word, otherwise no verdict.

    Only the structure is checked: there must be a theorem with a proof, it must be the theorem of the `statement` (if
    that is Lean), and the proof must leave nothing open (`sorry`). `ground_truth` is the expected proof, if one is
    known.

    Metrics: `syntax`, `completeness`, `tactics`, `expected_match`. They describe the text and do not change the score.
    Cost: linear in the answer, tens of microseconds.
    Does not detect: whether a proof is right: `lean_proof_reward` does.

    >>> reply = Message(role="assistant", content="theorem t : 1 = 2 := by simp; apply foo; exact bar; norm_num")
    >>> lean_prover_reward([reply], statement="theorem t : 1 = 2").is_score_valid
    False
    >>> lean_prover_reward([reply], statement="theorem t : 1 = 1").score
    0.0
    """
    return _looked_at(messages, ground_truth, statement)


@reward_function
def deepseek_prover_v2_reward(
    messages: list[Message], ground_truth: str | None = None, *, statement: str | None = None, **kwargs: Any
) -> EvaluateResult:
    """The same as `lean_prover_reward`, with a metric for how far the proof is divided into subgoals.

    Dividing a proof does not change the score; only the metric `subgoal_decomposition` describes it.

    Metrics: `syntax`, `completeness`, `tactics`, `expected_match`, `subgoal_decomposition`.
    Cost: linear in the answer, tens of microseconds.
    Does not detect: whether a proof is right: `lean_proof_reward` does.

    >>> reply = Message(role="assistant", content="theorem t : 1 = 1 := by sorry")
    >>> deepseek_prover_v2_reward([reply], statement="theorem t : 1 = 1").score
    0.0
    """
    result = _looked_at(messages, ground_truth, statement)
    reply = reply_of(messages)
    count = sum(1 for _ in _SUBGOAL.finditer(plain(lean_code(without_reasoning(reply.text)))))
    metric = MetricResult(
        score=min(1.0, count / _ENOUGH_SUBGOALS), reason=f"{count} subgoals", is_score_valid=count >= _ENOUGH_SUBGOALS
    )
    return result.model_copy(update={"metrics": {**result.metrics, "subgoal_decomposition": metric}})


@reward_function
def deepseek_huggingface_prover_benchmark(
    messages: list[Message], ground_truth: Any = None, *, statement: str | None = None, **kwargs: Any
) -> EvaluateResult:
    """The same as `deepseek_prover_v2_reward`, for rows of DeepSeek's ProverBench.

    The ground truth is an object with `statement` (or `formal_statement`) and, where one is known, `expected_proof`; or
    such an object under `dataset_item`. If that object has no statement, `statement` is used; without either there is
    no verdict.

    Metrics: `syntax`, `completeness`, `tactics`, `expected_match`, `subgoal_decomposition`.
    Cost: linear in the answer, tens of microseconds.
    Does not detect: whether a proof is right: `lean_proof_reward` does.

    >>> reply = Message(role="assistant", content="It is obvious: intro, apply, exact, qed.")
    >>> deepseek_huggingface_prover_benchmark([reply], ground_truth={"statement": "theorem t : 1 = 2"}).score
    0.0
    """
    row = ground_truth if isinstance(ground_truth, Mapping) else {}
    item = row.get("dataset_item")
    row = {**(item if isinstance(item, Mapping) else {}), **row}
    statement = row.get("statement") or row.get("formal_statement") or statement
    expected = row.get("expected_proof") or row.get("reference_solution")
    return deepseek_prover_v2_reward(
        messages, ground_truth=expected if isinstance(expected, str) else None, statement=statement
    )


def _looked_at(messages: list[Message], expected: str | None, statement: str | None) -> EvaluateResult:
    reply = reply_of(messages)
    if not isinstance(statement, str) or not statement.strip():
        return no_verdict("There is no statement to prove. Give `statement`.")
    goal = _goal(statement)
    attempt = _attempt(reply, goal, forbid_power=False)
    metrics = dict(attempt.metrics)
    if attempt.problem is not None:
        return wrong(f"Not a proof: {attempt.problem}.", metrics)
    if isinstance(expected, str) and expected.strip():
        same = _without_spaces(lean_code(expected)) == _without_spaces(attempt.code)
        metrics["expected_match"] = check(same, "the expected proof" if same else "another than the expected proof")
        if same and forbidden_word(plain(expected), INCOMPLETE) is None:
            return EvaluateResult(score=1.0, reason="It is the expected proof.", metrics=metrics)
    return no_verdict(_UNCHECKED, metrics)


class _Attempt(NamedTuple):
    """What an answer offers as a proof."""

    code: str
    main: Declaration | None
    problem: str | None
    metrics: dict[str, MetricResult]


def _goal(statement: str) -> Declaration | None:
    """The theorem to prove, if the statement is one in Lean."""
    text = plain(statement)
    found = declarations(text) or declarations(f"{text.rstrip().removesuffix(':=').rstrip()} := sorry")
    return found[-1] if found else None


def _attempt(reply: Message, goal: Declaration | None, *, forbid_power: bool) -> _Attempt:
    code = plain(lean_code(without_reasoning(reply.text)))
    found = declarations(code)
    fitting = [made for made in found if goal is None or same_statement(goal, made)]
    main = fitting[-1] if fitting else None
    left_open = forbidden_word(code, INCOMPLETE)
    problem = None
    if not found:
        problem = "there is no theorem with a proof"
    elif main is None:
        problem = "it does not prove the statement as it stands"
    elif left_open is not None:
        problem = f"{left_open!r} leaves it open"
    elif forbid_power and (word := forbidden_word(code)) is not None:
        problem = f"{word!r} is not allowed in a proof that is to be checked"
    metrics = {
        "syntax": check(main is not None, "it states and proves the theorem" if main else str(problem)),
        "completeness": check(bool(found) and left_open is None, f"open: {left_open}" if left_open else "nothing open"),
        "tactics": check(main is not None and main.proof.startswith("by"), "whether the proof is by tactics"),
    }
    return _Attempt(code, main, problem, metrics)


def _without_spaces(code: str) -> str:
    return re.sub(r"\s++", "", plain(code))
