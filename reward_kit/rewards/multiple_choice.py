# SPDX-License-Identifier: Apache-2.0
"""Multiple-choice questions: the answer chooses an option, or several, by their labels or by their texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from reward_kit.answers.final_answer import last_match, reconsidered_at, spoken_end, stated_answer
from reward_kit.answers.statements import is_denied
from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.prose import ALONE_AFTER, ALONE_BEFORE
from reward_kit.rewards._support.references import as_text
from reward_kit.rewards._support.verdicts import check, no_verdict_if_unreadable, quoted, reply_of
from reward_kit.typed_interface import Operator, reward_function

__all__ = ["multiple_answers_reward", "multiple_choice_reward"]

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OPTION_LINE: Final = re.compile(
    r"^[ \t]*(?:[-*][ \t]+)?[(\[*_]{0,3}(?P<label>[A-Za-z]|\d{1,2})[)\].:*_]{1,4}[ \t]+(?P<text>\S[^\n]*)$",
    re.MULTILINE,
)
_SAYS: Final = re.compile(
    r"\b(?:answer|choice|option|solution|response)\b[\s*_:]{0,4}(?:is|was|would be|must be|should be|:)?"
    r"[\s*_:$\"'“]{0,6}"
    r"|\b(?:choose|pick|select|go with|chose)\b[\s*_:\"'“]{0,4}",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(r"[\s*_$\"'“(\[{]{0,6}(?:(?:option|choice|letter|number)\b[\s*_:]{0,3})?", re.IGNORECASE)
_TEX: Final = re.compile(r"\\(?:text|textbf|mathbf|mathrm|mbox|boxed)\s{0,2}(?=\{)")
_OR: Final = re.compile(r"[\s,;*_$)}\].:]{0,6}(?:\b(?:or|and)\b|/|&|,)[\s*_$({\[]{0,6}", re.IGNORECASE)
_ARTICLE: Final = re.compile(r"\s+(?!(?:or|and|is|was|because|since|as|for)\b)[a-z]")
_WORDS: Final = re.compile(r"[^\W_]+(?:[.,]\d+)*|[^\w\s]", re.UNICODE)
_FEWEST: Final = 2
_MOST_OPTIONS: Final = 100


class _Option(NamedTuple):
    label: str
    text: str | None
    """None where only labels are known, and where an earlier option has the same text."""
    same_as: str | None = None
    """The label of that earlier option."""


@reward_function
def multiple_choice_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    choices: Any = None,
    ends_at: Operator[str | None] = None,
    **kwargs: Any,
) -> EvaluateResult:
    r"""1.0 if the last message chooses the option of the ground truth, 0.0 if not.

    `choices`, a column of the dataset, are the options: a list of texts (labelled A, B, C …), `{label: text}`, or
    `{"label": [...], "text": [...]}`. Left out, they are read from the lines of the prompt ("A) …", "2. …"); a prompt
    without any has the options A to Z, without texts. The ground truth is an option's label, its text, or, with
    `choices` in a list, its index from 0. The answer chooses by label or by text: in what it marks (`<answer>`,
    `\boxed`, `####`), else after the last "the answer is", else by the only option that it names. An answer that names
    several options makes no choice. Options with the same text are one option with several labels: each label counts.
    There is no verdict if the ground truth is not an option, or if options differ only in case or punctuation.
    `ends_at` is a regular expression: what follows the first line in which it is found is not read, as graders have it
    that take the first answer.

    Metrics: `choice`, `found_choice` (whether the answer chooses at all); `error`.
    Cost: linear in the answer and in the number of options, about 50 µs.
    Does not detect: whether the reasoning supports the choice; that one of four is a fair guess.

    >>> reply = [{"role": "assistant", "content": "Because of the tides, the answer is the moon."}]
    >>> multiple_choice_reward(reply, ground_truth="B", choices=["the sun", "the moon", "Mars"]).score
    1.0
    >>> reply = [{"role": "assistant", "content": "It is (A) or (B)."}]
    >>> multiple_choice_reward(reply, ground_truth=1, choices=["the sun", "the moon", "Mars"]).score
    0.0
    """
    reply = reply_of(messages, ends_at=ends_at)
    with no_verdict_if_unreadable():
        options = _options(choices, messages)
        right = _right(ground_truth, options, indexed=isinstance(choices, list | tuple))
    labels = _chosen(reply.text, options)
    chosen = _meant(labels, options)
    found = {"found_choice": check(len(chosen) == 1, f"it chooses {', '.join(labels) or 'nothing'}")}
    if len(chosen) != 1:
        reason = f"The answer names several options: {', '.join(labels)}." if labels else "The answer chooses nothing."
    else:
        expected = " or ".join(option.label for option in options if right in (option.label, option.same_as))
        reason = f"Expected {expected}, the choice is {', '.join(labels)}."
    matched = chosen == {right}
    return EvaluateResult(score=float(matched), reason=reason, metrics={**found, "choice": check(matched, reason)})


@reward_function
def multiple_answers_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    choices: Any = None,
    ends_at: Operator[str | None] = None,
    **kwargs: Any,
) -> EvaluateResult:
    r"""The share of the options chosen by the last message that are right, where several are.

    `choices` are the options, as for `multiple_choice_reward`. The ground truth is a list of labels, texts or indices,
    or one of them. The answer names its choice in what it marks (`<answer>`, `\boxed`, `####`), else after the last
    "answer:", else anywhere. An answer that chooses nothing gets 0.0. If each chosen option is taken as equally
    probable, the score is TruthfulQA's MC2: the probability of the right options together. `ends_at` is as for
    `multiple_choice_reward`.

    Metrics: `precision` (the score), `recall` (the share of the right options that are chosen), `all_right` (exactly
    the right ones are chosen), `found_choice`; `error`.
    Cost: linear in the answer and in the number of options, about 50 µs.
    Does not detect: an answer that chooses only what it is surest of: that is in `recall`.

    >>> reply = [{"role": "assistant", "content": "Whales are no fish.\nAnswer: A, C"}]
    >>> result = multiple_answers_reward(reply, ground_truth=["A", "B"], choices=["trout", "eel", "whale"])
    >>> result.score, result.metrics["recall"].score
    (0.5, 0.5)
    """
    reply = reply_of(messages, ends_at=ends_at)
    with no_verdict_if_unreadable():
        options = _options(choices, messages)
        truths = ground_truth if isinstance(ground_truth, list | tuple) else [ground_truth]
        right = {_right(truth, options, indexed=isinstance(choices, list | tuple)) for truth in truths}
        if not right:
            raise ValueError("The ground truth is empty. Give the labels of the right options.")
    chosen = _meant(_chosen(reply.text, options), options)
    precision = len(chosen & right) / len(chosen) if chosen else 0.0
    recall = len(chosen & right) / len(right)
    reason = f"Expected {', '.join(sorted(right))}; chosen is {', '.join(sorted(chosen)) or 'nothing'}."
    metrics = {
        "found_choice": check(bool(chosen), reason),
        "precision": MetricResult(score=precision, reason=reason, is_score_valid=precision == 1.0),
        "recall": MetricResult(score=recall, reason=reason, is_score_valid=recall == 1.0),
        "all_right": check(chosen == right, reason),
    }
    return EvaluateResult(score=precision, reason=reason, metrics=metrics)


# ── the options ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _options(choices: Any, messages: Sequence[Message]) -> list[_Option]:
    options = _in_prompt(messages) if choices is None else _given(choices)
    labels = [option.label.casefold() for option in options]
    own = _with_own_texts(options)
    texts = [_plain(option.text) for option in own if option.text is not None]
    few = sum(option.same_as is None for option in own) < _FEWEST
    if len(set(labels)) != len(labels) or len(set(texts)) != len(texts) or few or len(options) > _MOST_OPTIONS:
        raise ValueError(
            f"The choices are {quoted(choices if choices is not None else texts)}. "
            "Give two or more that differ, as a list of texts or {label: text}."
        )
    return own


def _with_own_texts(options: Sequence[_Option]) -> list[_Option]:
    """The options, where one whose text an earlier option has refers to that one."""
    firsts: dict[str, str] = {}
    own: list[_Option] = []
    for option in options:
        first = option.label if option.text is None else firsts.setdefault(option.text.strip(), option.label)
        own.append(option if first == option.label else _Option(option.label, None, first))
    return own


def _meant(labels: Sequence[str], options: Sequence[_Option]) -> set[str]:
    """The options that labels stand for; of those with the same text, the first."""
    first = {option.label: option.same_as or option.label for option in options}
    return {first[label] for label in labels}


def _given(choices: Any) -> list[_Option]:
    if isinstance(choices, Mapping) and {"label", "text"} <= choices.keys():
        pairs = list(zip(choices["label"], choices["text"], strict=True))
    elif isinstance(choices, Mapping):
        pairs = list(choices.items())
    elif isinstance(choices, list | tuple) and len(choices) <= len(_LETTERS):
        pairs = list(zip(_LETTERS, choices, strict=False))
    else:
        pairs = []
    options = [_Option(str(label).strip(), as_text(text) or "") for label, text in pairs]
    if not options or any(not option.label or not option.text for option in options):
        raise ValueError(f"The choices are {quoted(choices)}. Give a list of texts, or {{label: text}}.")
    return [option._replace(text=_without_label(option)) for option in options]


def _without_label(option: _Option) -> str:
    """The option's text; many datasets write the label before it: "A) Paris"."""
    text = option.text or ""
    labelled = re.match(rf"[(\[]?{re.escape(option.label)}[)\].:]\s+(?=\S)", text, re.IGNORECASE)
    return text[labelled.end() :] if labelled else text


def _in_prompt(messages: Sequence[Message]) -> list[_Option]:
    """The options that the last user turn lists: labels that go up from A, a or 1."""
    turns = [message.text for message in messages[:-1] if message.role == "user"]
    options: list[_Option] = []
    for line in _OPTION_LINE.finditer(turns[-1] if turns else ""):
        if line["label"].upper() == (options and _next(options[-1].label)):
            options.append(_Option(line["label"].upper(), line["text"].strip()))
        elif line["label"].upper() in ("A", "1"):
            options = [_Option(line["label"].upper(), line["text"].strip())]
    return options if len(options) > 1 else [_Option(letter, None) for letter in _LETTERS]


def _next(label: str) -> str:
    return str(int(label) + 1) if label.isdigit() else chr(ord(label) + 1)


def _right(ground_truth: Any, options: Sequence[_Option], *, indexed: bool) -> str:
    """The label of the right option; of those with the same text, the first."""
    truths = ground_truth if isinstance(ground_truth, list | tuple) else [ground_truth]
    labels = [_true_label(as_text(truth), options, indexed=indexed) for truth in truths]
    right = _meant([label for label in labels if label is not None], options)
    if None in labels or len(right) != 1:
        raise ValueError(
            f"The ground truth {quoted(ground_truth)} is none of the options "
            f"{quoted([option.label for option in options])}. Give an option's label, its text or its index."
        )
    return right.pop()


def _true_label(truth: str | None, options: Sequence[_Option], *, indexed: bool) -> str | None:
    if truth is None:
        return None
    if indexed and re.fullmatch(r"\d+", truth) and int(truth) < len(options) and not _by_text(truth, options):
        return options[int(truth)].label
    bare = truth.strip("()[]{}.: \t")
    if found := next((option.label for option in options if option.label.casefold() == bare.casefold()), None):
        return found
    if found := _by_text(truth, options):
        return found
    chosen = _chosen(truth, options)  # "The answer is (B).", "B. Paris"
    return chosen[0] if len(_meant(chosen, options)) == 1 else None


def _by_text(text: str, options: Sequence[_Option]) -> str | None:
    plain = _plain(text)
    return next((o.label for o in options if o.text is not None and plain and _plain(o.text) == plain), None)


def _plain(text: str | None) -> str:
    words = _WORDS.findall(unicodedata.normalize("NFKC", text or "").casefold())
    return " ".join(words).strip(" .,;:!?\"'")


# ── the choice ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _chosen(text: str, options: Sequence[_Option]) -> list[str]:
    """The labels that the answering part of a text names: one if it chooses, several if it does not."""
    stated = stated_answer(text)
    if stated is not None and stated.source in ("tag", "boxed", "hashes"):
        return _named(stated.text, options)
    spoken = _TEX.sub("", spoken_end(text)).strip()
    says = last_match(_SAYS, spoken)
    begin = says.end() if says is not None else 0
    taken_back = reconsidered_at(spoken[begin:])
    if taken_back is not None and (instead := _named(spoken[begin + taken_back :], options)):
        return instead
    if says is not None:
        line = spoken[: spoken.find("\n", begin)] if "\n" in spoken[begin:] else spoken
        after = _first(line[begin:], options)
        lead = _LEAD.match(line, begin)
        start = lead.end() if lead else begin
        if after and not is_denied(line, start, (_at(line, start, options) or ("", start))[1]):
            return after
    return _named(spoken, options)


def _first(text: str, options: Sequence[_Option]) -> list[str]:
    """The option right at the beginning, and those joined to it by "or", "and" or a comma."""
    found: list[str] = []
    position = 0
    while True:
        lead = _LEAD.match(text, position)
        match = _at(text, lead.end() if lead else position, options)
        if match is None:
            return found
        label, position = match
        found += [label] if label not in found else []
        another = _OR.match(text, position)
        if another is None:
            return found
        position = another.end()


def _at(text: str, start: int, options: Sequence[_Option]) -> tuple[str, int] | None:
    """The option that stands at `start`, by the longest of its texts or by its label, and where it ends."""
    rest = text[start:]
    by_text = [o for o in options if o.text and rest.casefold().startswith(o.text.casefold().rstrip(" ."))]
    for option in sorted(by_text, key=lambda option: -len(option.text or "")):
        end = start + len((option.text or "").rstrip(" ."))
        if not text[end : end + 1].isalnum():
            return option.label, end
    for option in sorted(options, key=lambda option: -len(option.label)):
        end = start + len(option.label)
        bare = rest.casefold().startswith(option.label.casefold()) and not re.match(r"[\w'’-]|[.,]\d", text[end:])
        if bare and not (option.label in "AI" and _ARTICLE.match(text, end)) and _is_written(text, start, option):
            return option.label, end
    return None


def _is_written(text: str, start: int, option: _Option) -> bool:
    """A label in another case than the option's is one only in brackets or before a point: "(b)", "b.", or alone."""
    end = start + len(option.label)
    if text[start:end] == option.label:
        return True
    return text[end : end + 1] in {")", ".", "]", ":", "}", "*", "", "$", "\n"}


def _named(text: str, options: Sequence[_Option]) -> list[str]:
    """Every option that a text names and does not deny. A text that is nothing but a label names it in either case."""
    bare = _TEX.sub("", text).strip()
    if exact := _by_text(bare.strip("{}$"), options):
        return [exact]
    label = bare.strip("(){}[]$.:*_ \t").casefold()
    if same := [option.label for option in options if option.label.casefold() == label]:
        return same
    by_label = [(option.label, list(_places(bare, option))) for option in options]
    if any(places for _, places in by_label):
        return [label for label, places in by_label if any(not is_denied(bare, *place) for place in places)]
    plain = f" {_plain(bare)} "
    inside = [o for o in options if o.text and f" {_plain(o.text)} " in plain]
    # "New York City" also holds "New York": the longer text is the one that is meant.
    named = [o for o in inside if not any(o is not p and _plain(o.text) in _plain(p.text) for p in inside)]
    return [option.label for option in named if not _text_denied(bare, option)]


def _text_denied(text: str, option: _Option) -> bool:
    """Whether a text denies an option wherever it gives its text."""
    found = [match.span() for match in re.finditer(re.escape(option.text or ""), text, re.IGNORECASE)]
    return bool(found) and all(is_denied(text, *place) for place in found)


def _places(text: str, option: _Option) -> Iterator[tuple[int, int]]:
    """Where a text names an option by its label."""
    label = re.escape(option.label)
    either = re.escape(option.label.lower())
    brackets = rf"[(\[{{]\s{{0,2}}(?:{label}|{either})\s{{0,2}}[)\]}}]|{ALONE_BEFORE}{label}[.:)](?!\w)"
    bracketed = [match.span() for match in re.finditer(brackets, text)]
    yield from ((start, end - (text[end - 1] in ".:")) for start, end in bracketed)
    if option.label.isdigit():  # a bare number in prose may be any number
        return
    taken = {place for span in bracketed for place in range(*span)}
    for match in re.finditer(rf"{ALONE_BEFORE}{label}{ALONE_AFTER}", text):
        if match.start() in taken:
            continue
        if not (option.label in "AI" and _ARTICLE.match(text, match.end())):
            yield match.span()
