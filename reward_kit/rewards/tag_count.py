# SPDX-License-Identifier: Apache-2.0
"""Tags: does the answer use the tags that were asked for, opened and closed?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.parameters import listed, number
from reward_kit.rewards._support.prose import outside_code
from reward_kit.rewards._support.verdicts import check, reply_of
from reward_kit.typed_interface import RewardContractError, reward_function

__all__ = ["tag_count_reward"]

_NAME = re.compile(r"[A-Za-z_][\w.:-]*")


@reward_function
def tag_count_reward(
    messages: list[Message],
    *,
    required_tags: Sequence[str],
    score_per_tag: float = 0.25,
    require_balanced: bool = True,
    **kwargs: Any,
) -> EvaluateResult:
    """`score_per_tag` for each required tag that the answer uses, 1.0 at most.

    `required_tags` are names without brackets, as written (case counts); attributes are allowed. A tag counts once,
    however often it is used. With `require_balanced` each opening must be closed after it and nothing closed before it
    is opened; a tag that is not takes `score_per_tag` away again, down to 0.0. Tags in fenced blocks and inline code
    are shown, not used, and do not count.

    Metrics: `tag_<name>` for each tag; `overall`.
    Cost: linear in the answer, about 20 µs per kB.
    Does not detect: what stands between the tags; tags that overlap one another; the order of different tags.

    >>> answer = [{"role": "assistant", "content": "<think>2 + 2</think> <answer>4</answer>"}]
    >>> tag_count_reward(messages=answer, required_tags=["think", "answer"], score_per_tag=0.5).score
    1.0
    >>> tag_count_reward(messages=answer, required_tags=["think", "source"], score_per_tag=0.5).score
    0.5
    """
    reply = reply_of(messages, "overall")
    tags = _checked(required_tags)
    number("score_per_tag", score_per_tag, above=0.0, at_most=1.0)
    uses = _uses(outside_code(reply.text), tags)
    metrics = {f"tag_{tag}": _judged(tag, uses[tag], require_balanced) for tag in tags}
    passed = [tag for tag in tags if metrics[f"tag_{tag}"].is_score_valid]
    broken = [tag for tag in tags if require_balanced and uses[tag].unbalanced]
    score = max(0.0, min(1.0, len(passed) * score_per_tag) - len(broken) * score_per_tag)
    reason = f"{len(passed)} of {len(tags)} required tags are there" + f", {len(broken)} unbalanced" * bool(broken)
    everything = len(passed) == len(tags)
    metrics["overall"] = MetricResult(score=score, reason=reason, is_score_valid=everything)
    return EvaluateResult(score=score, reason=reason, metrics=metrics)


class _Use(NamedTuple):
    """How the answer uses one tag."""

    opened: int
    closed: int
    unbalanced: bool


def _checked(tags: object) -> list[str]:
    names = list(dict.fromkeys(listed("required_tags", tags, "names, such as ['think', 'answer']")))
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise RewardContractError(f"Parameter 'required_tags' holds {name!r}; give names without brackets.")
    return names


def _uses(text: str, tags: list[str]) -> dict[str, _Use]:
    longest_first = "|".join(re.escape(tag) for tag in sorted(tags, key=len, reverse=True))
    opened: Counter[str] = Counter()
    closed: Counter[str] = Counter()
    too_early = set()
    for tag in re.finditer(rf"<(?P<end>/?)(?P<name>{longest_first})(?:\s[^<>]*+)?>", text):
        name = tag["name"]
        if not tag["end"]:
            opened[name] += 1
        else:
            closed[name] += 1
            if closed[name] > opened[name]:
                too_early.add(name)
    return {tag: _Use(opened[tag], closed[tag], opened[tag] != closed[tag] or tag in too_early) for tag in tags}


def _judged(tag: str, use: _Use, require_balanced: bool) -> MetricResult:
    used = bool(use.opened and use.closed) if require_balanced else bool(use.opened or use.closed)
    reason = f"<{tag}> is opened {use.opened} × and closed {use.closed} ×"
    if use.unbalanced and use.opened == use.closed:
        reason += ", once before it is opened"
    return check(used and not (require_balanced and use.unbalanced), reason)
