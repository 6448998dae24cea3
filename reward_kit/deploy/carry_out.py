# SPDX-License-Identifier: Apache-2.0
"""Doing what a plan says, one step at a time, so that it can be stopped anywhere and go on from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from reward_kit.deploy.plan import Action, Plan, Step, UnknownFactError, fact_at, filled
from reward_kit.deploy.state import Deployment, Deployments, StepState
from reward_kit.errors import DeployError, RewardKitError

__all__ = ["Hands", "MakeHands", "MissingThing", "Run", "carry_out", "take_away"]

Tell = Callable[[str], None]


class MissingThing(DeployError):
    """What was asked about is not there."""


class Hands(Protocol):
    """Whoever does actions of certain kinds."""

    def do(self, action: Action, secrets: Mapping[str, str]) -> Any:
        """Do it, and return the answer. `MissingThing` where something is not there, else a `DeployError`."""


MakeHands = Callable[[Mapping[str, bytes], Tell], Hands]
"""Makes hands, given the bytes of what requests name as `$file`, and whom to tell."""


class Run(NamedTuple):
    """Who carries a plan out, and where it is noted."""

    kept: Deployments
    hands: Hands
    secrets: Mapping[str, str]
    tell: Tell
    take_over: bool = False
    """Whether things may be changed that are there and that this deployment did not make."""


def carry_out(plan: Plan, deployment: Deployment, run: Run) -> Deployment:
    """Do every step that is not done yet. Where one fails, the error says what exists and how to go on."""
    goes_on = deployment.status == "deploying"
    deployment.status = "deploying"
    deployment.inspect, deployment.logs = list(plan.status), list(plan.logs)
    deployment.auth, deployment.key = plan.auth, plan.key
    for step in plan.steps:
        known = deployment.step(step.name)
        # A process may have ended since: what replaces itself is made anew.
        is_done = known is not None and known.state == "done" and known.digest == step.digest()
        if goes_on and is_done and not step.replaces:
            run.tell(f"  done before: {step.title}")
            continue
        try:
            _do_step(step, deployment, run)
        except RewardKitError as error:
            raise DeployError(_stopped(step, deployment, error)) from error
    deployment.url = _text(plan.url, deployment.facts)
    _take_away_others(plan, deployment, run)
    deployment.status = "ready"
    run.kept.write(deployment)
    return deployment


def _do_step(step: Step, deployment: Deployment, run: Run) -> None:
    facts = deployment.facts
    known = deployment.step(step.name)
    is_there, answer = _look(step, facts, run)
    _check_ours(step, known, run, is_there=is_there)
    actions = step.change if is_there else step.make
    # Before anything is made, so that a kill in the middle leaves nothing that nobody knows of.
    state = StepState(
        name=step.name,
        title=step.title,
        state="begun",
        digest=step.digest(),
        facts=known.facts if known is not None else {},
        remove=_removal(step, {**facts, **_own(step, known)}),
    )
    _part_with_old(step, known, state, deployment, run)
    deployment.note(state)
    run.kept.write(deployment)
    run.tell(f"  {'found' if is_there and not actions else 'change' if is_there else 'make'}: {step.title}")
    answers = [answer, *(run.hands.do(filled(action, facts, run.secrets), run.secrets) for action in actions)]
    state.facts = {**state.facts, **_facts_in(step, answers)}
    state.remove = _removal(step, {**facts, **_own(step, state)})
    state.state = "done"
    run.kept.write(deployment)


def _part_with_old(step: Step, known: StepState | None, state: StepState, deployment: Deployment, run: Run) -> None:
    """What the step made before and will not be the same thing: gone first where it is in the way, else in the end."""
    if known is None or not known.remove:
        return
    if step.replaces:
        if problem := _remove(known.remove, run.hands):
            raise DeployError(f"What was there before cannot be removed: {problem}")
    elif known.remove != state.remove:
        old = f"{known.name}@{known.digest[:12]}"
        deployment.note(known.model_copy(update={"name": old, "facts": {}}))


def _check_ours(step: Step, known: StepState | None, run: Run, *, is_there: bool) -> None:
    if not is_there and step.absent:
        raise DeployError(step.absent)
    if is_there and known is None and step.remove and not run.take_over:
        raise DeployError(
            f"{step.title} exists already, and this folder knows of no deployment that made it. Choose another --id, "
            "or add --force to change it, and to remove it with the deployment"
        )


def _look(step: Step, facts: Mapping[str, str], run: Run) -> tuple[bool, Any]:
    if step.look is None:
        return False, None
    try:
        return True, run.hands.do(filled(step.look, facts, run.secrets), run.secrets)
    except MissingThing:
        return False, None


def _facts_in(step: Step, answers: Sequence[Any]) -> dict[str, str]:
    """What the step was to find out, from the last answer that tells it."""
    found: dict[str, str] = {}
    for name, places in step.facts.items():
        told = [value for answer in answers if (value := fact_at(answer, places)) is not None]
        if not told:
            raise DeployError(f"The target did not report {name!r}. Run the command again")
        found[name] = told[-1]
    return found


def _own(step: Step, known: StepState | None) -> dict[str, str]:
    return {} if known is None else {f"{step.name}.{name}": value for name, value in known.facts.items()}


def _removal(step: Step, facts: Mapping[str, str]) -> list[Action]:
    """What takes the step's thing away, as far as it can be said: some is known only when the step is done."""
    said: list[Action] = []
    for action in step.remove:
        with suppress(UnknownFactError):
            said.append(filled(action, facts))
    return said


def _take_away_others(plan: Plan, deployment: Deployment, run: Run) -> None:
    """Remove what an earlier plan of this deployment made and this one has no longer, such as a public permission."""
    order = {step.name: number for number, step in enumerate(plan.steps)}
    for step in reversed([step for step in deployment.steps if step.name not in order]):
        if problem := _remove(step.remove, run.hands):
            raise DeployError(f"{step.title} is not needed any more and cannot be removed: {problem}")
        if step.remove:
            run.tell(f"  removed: {step.title}")
        deployment.steps.remove(step)
    deployment.steps.sort(key=lambda step: order[step.name])


def _text(text: str, facts: Mapping[str, str]) -> str:
    for name, value in facts.items():
        text = text.replace(f"${{{name}}}", value)
    return text


def _stopped(step: Step, deployment: Deployment, error: Exception) -> str:
    made = [known.title for known in deployment.steps if known.state == "done" and known.remove]
    begun = [known.title for known in deployment.steps if known.state == "begun" and known.remove]
    exists = f"What exists: {', '.join(made)}." if made else "Nothing was made that lasts."
    if begun:
        exists += f" May exist: {', '.join(begun)}."
    return (
        f"It stopped at {step.title}: {str(error).rstrip('. ')}. {exists} Run the same command again to go on, or take "
        f"everything away with: reward-kit deploy delete {deployment.id}"
    )


def take_away(deployment: Deployment, kept: Deployments, hands: Hands, tell: Tell) -> list[str]:
    """Remove what the deployment made, the last first. Returns what could not be removed, and why."""
    deployment.status = "deleting"
    kept.write(deployment)
    failed: list[str] = []
    for step in reversed(list(deployment.steps)):
        problem = _remove(step.remove, hands)
        if problem is not None:
            failed.append(f"{step.title}: {problem}")
            continue
        if step.remove:
            tell(f"  removed: {step.title}")
        deployment.steps.remove(step)
        kept.write(deployment)
    if not failed:
        kept.forget(deployment.id)
    return failed


def _remove(actions: Sequence[Action], hands: Hands) -> str | None:
    for action in actions:
        try:
            hands.do(action, {})
        except MissingThing:
            continue  # gone already
        except RewardKitError as error:
            return str(error)
    return None
