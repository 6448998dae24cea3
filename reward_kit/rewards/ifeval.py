# SPDX-License-Identifier: Apache-2.0
"""IFEval: does the answer follow instructions that a program can check?

The 25 kinds of instruction of Google's IFEval, with the columns of its data: `instruction_id_list` and `kwargs`. Each
kind is a function below, in the order of the data's names; what it decides is what IFEval's own code decides, except
where the docstring of `ifeval_reward` says otherwise. Nothing is downloaded: sentences and words are parted here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from reward_kit.answers.reasoning import without_reasoning
from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.languages import language_code, words_by_language
from reward_kit.rewards._support.verdicts import check, no_verdict, quoted, reply_of
from reward_kit.typed_interface import RewardContractError, reward_function

__all__ = ["ifeval_reward"]


@reward_function
def ifeval_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    instruction_id_list: Any = None,
    kwargs: Any = None,
    loose: bool = False,
    partial: bool = False,
    **columns: Any,
) -> EvaluateResult:
    """1.0 if the last message follows every instruction of its sample, as IFEval checks them; 0.0 if not.

    The columns are those of IFEval's data: `instruction_id_list` names the instructions (25 kinds, from
    "change_case:english_capital" to "startend:quotation"), and `kwargs` holds the settings of each, in the same order.
    Both may be JSON text, or stand together in the ground truth. With `loose` an instruction is also followed where it
    would be without the first line, the last line or the asterisks of the answer. With `partial` the score is the share
    of the instructions that are followed. The model's reasoning is not part of the answer; an empty answer follows no
    instruction.

    An unknown instruction, or one whose settings are missing, gives no verdict. Two things differ from IFEval's own
    code: languages are told by another detector, and a text without words is in no language; sentences are parted by
    rules written here, which know fewer abbreviations.

    Metrics: `strict` and `loose`, whether all are followed; one named like each instruction; `error`.
    Needs: extra `language`.
    Cost: linear in the answer, about 100 µs per kB; `loose` reads it eight times.
    Does not detect: whether the answer is any good beyond the instructions.

    >>> reply = [{"role": "assistant", "content": "* one\\n* two"}]
    >>> asked = ["punctuation:no_comma", "detectable_format:number_bullet_lists"]
    >>> ifeval_reward(reply, instruction_id_list=asked, kwargs=[{}, {"num_bullets": 2}]).score
    1.0
    >>> ifeval_reward(reply, instruction_id_list=asked, kwargs=[{}, {"num_bullets": 3}], partial=True).score
    0.5
    """
    reply = reply_of(messages)
    try:
        instructions = _instructions(instruction_id_list, kwargs, ground_truth)
        answer = without_reasoning(reply.text)
        strictly = [_followed(one, [answer]) for one in instructions]
        loosely = [_followed(one, _variants(answer)) for one in instructions]
    except _Malformed as error:
        return no_verdict(str(error))
    counted = loosely if loose else strictly
    followed = sum(counted)
    missed = [one.name for one, ok in zip(instructions, counted, strict=True) if not ok]
    reason = f"{followed} of {len(counted)} instructions are followed" + (f"; not {missed[0]}." if missed else ".")
    metrics = {"strict": check(all(strictly), "all of them as written"), "loose": check(all(loosely), "all of them")}
    for one, ok in zip(instructions, counted, strict=True):
        metrics[_free_name(one.name, metrics)] = check(ok, "followed" if ok else "not followed")
    score = followed / len(counted) if partial else float(not missed)
    return EvaluateResult(score=score, reason=reason, metrics=metrics)


# ── the instructions of a sample ─────────────────────────────────────────────────────────────────────────────────────

Settings = Mapping[str, Any]
Check = Callable[[str, Settings], bool]


class _Malformed(ValueError):
    """The sample's instructions cannot be used."""


class _Instruction(NamedTuple):
    name: str
    settings: Settings


def _instructions(names: Any, settings: Any, ground_truth: Any) -> list[_Instruction]:
    if names is None:
        truth = _read(ground_truth)
        if not isinstance(truth, Mapping):
            raise _Malformed("The sample names no instructions. Give the columns 'instruction_id_list' and 'kwargs'.")
        names, settings = truth.get("instruction_id_list"), truth.get("kwargs", settings)
    names, settings = _read(names), _read(settings)
    if not isinstance(names, list | tuple) or not names:
        raise _Malformed(f"'instruction_id_list' is {quoted(names)}. Give a list of instructions' names.")
    if not isinstance(settings, list | tuple) or len(settings) != len(names):
        raise _Malformed(f"'kwargs' is {quoted(settings)}. Give a list with the settings of each instruction.")
    return [_instruction(name, _read(given)) for name, given in zip(names, settings, strict=True)]


def _instruction(name: Any, given: Any) -> _Instruction:
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise _Malformed(f"There is no instruction {quoted(name)}. IFEval has: {', '.join(_KINDS)}.")
    if not isinstance(given, Mapping) and given is not None:
        raise _Malformed(f"The settings of {name!r} are {quoted(given)}. Give an object.")
    settings = {key: value for key, value in (given or {}).items() if value is not None}
    for setting, holds in kind.settings.items():
        if setting not in settings or not holds(settings[setting]):
            raise _Malformed(f"The setting {setting!r} of {name!r} is {quoted(settings.get(setting))}. Correct it.")
    return _Instruction(name, settings)


def _read(value: Any) -> Any:
    """The value, or what it is JSON text of."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _free_name(name: str, taken: Mapping[str, MetricResult]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}#{number}", number + 1
    return free


def _followed(instruction: _Instruction, variants: Sequence[str]) -> bool:
    kind = _KINDS[instruction.name]
    return any(kind.check(text, instruction.settings) for text in variants if text.strip())


def _variants(answer: str) -> list[str]:
    """The answer, without its first line, its last, both; and each of these without asterisks."""
    lines = answer.split("\n")
    cut = [answer, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return [*cut, *(text.replace("*", "") for text in cut)]


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_count(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and value == int(value) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_text, value))


def _is_relation(value: Any) -> bool:
    return value in ("less than", "at least")


def _is_letter(value: Any) -> bool:
    return isinstance(value, str) and len(value.strip()) == 1


def _is_language(value: Any) -> bool:
    try:
        return bool(language_code(value))
    except RewardContractError:
        return False


def _holds(count: int, settings: Settings, bound: str, relation: str) -> bool:
    return bool(count < settings[bound] if settings[relation] == "less than" else count >= settings[bound])


# ── keywords and language ────────────────────────────────────────────────────────────────────────────────────────────


def _keywords_exist(text: str, settings: Settings) -> bool:
    return all(keyword.lower() in text.lower() for keyword in settings["keywords"])


def _keyword_frequency(text: str, settings: Settings) -> bool:
    count = len(re.findall(re.escape(settings["keyword"].strip()), text, re.IGNORECASE))
    return _holds(count, settings, "frequency", "relation")


def _no_forbidden_words(text: str, settings: Settings) -> bool:
    words = settings["forbidden_words"]
    return not any(re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) for word in words)


def _letter_frequency(text: str, settings: Settings) -> bool:
    return _holds(text.lower().count(settings["letter"].strip().lower()), settings, "let_frequency", "let_relation")


def _in_language(text: str, settings: Settings) -> bool:
    return _is_in(text, settings["language"])


def _is_in(text: str, language: str) -> bool:
    code = language_code(language)
    counts = words_by_language(text, code)
    return bool(counts) and counts.most_common(1)[0][0] == code


def _capitals(text: str, settings: Settings) -> bool:
    return text.isupper() and _is_in(text.lower(), "en")


def _lower_case(text: str, settings: Settings) -> bool:
    return text.islower() and _is_in(text, "en")


def _capital_words(text: str, settings: Settings) -> bool:
    count = sum(word.isupper() for word in tokens(text))
    return _holds(count, settings, "capital_frequency", "capital_relation")


# ── length ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _sentences(text: str, settings: Settings) -> bool:
    return _holds(count_sentences(text), settings, "num_sentences", "relation")


def _words(text: str, settings: Settings) -> bool:
    return _holds(len(re.findall(r"\w+", text)), settings, "num_words", "relation")


def _paragraphs(text: str, settings: Settings) -> bool:
    paragraphs = re.split(r"\s?\*\*\*\s?", text)
    if any(not paragraph.strip() for paragraph in paragraphs[1:-1]):
        return False
    at_ends = {0, len(paragraphs) - 1}
    return bool(len(paragraphs) - sum(not paragraphs[end].strip() for end in at_ends) == settings["num_paragraphs"])


def _first_word_of_paragraph(text: str, settings: Settings) -> bool:
    paragraphs = text.split("\n\n")
    number = sum(bool(paragraph.strip()) for paragraph in paragraphs)
    nth = int(settings["nth_paragraph"])
    if not 1 <= nth <= number or not paragraphs[nth - 1].strip():
        return False
    word = paragraphs[nth - 1].split()[0].lstrip("'").lstrip('"')
    first = re.split(r"[.,?!'\"]", word, maxsplit=1)[0].lower()
    return bool(number == settings["num_paragraphs"] and first == settings["first_word"].lower())


# ── content and format ───────────────────────────────────────────────────────────────────────────────────────────────


def _placeholders(text: str, settings: Settings) -> bool:
    count = 0
    for line in text.split("\n"):
        end = -1
        while (start := line.find("[", end + 1)) >= 0 and (end := line.find("]", start + 1)) >= 0:
            count += 1
    return bool(count >= settings["num_placeholders"])


def _postscript(text: str, settings: Settings) -> bool:
    marker = settings["postscript_marker"].strip().lower()
    known = {"p.p.s": r"p\.\s?p\.\s?s", "p.s.": r"p\.\s?s\."}
    return re.search(known.get(marker, re.escape(marker)), text.lower()) is not None


def _bullets(text: str, settings: Settings) -> bool:
    lines = [line.lstrip() for line in text.split("\n")]
    count = sum(line.startswith("-") for line in lines)
    taken = -1
    for number, line in enumerate(lines):
        if number == taken or not line.startswith("*"):
            continue
        if line == "*":  # IFEval's pattern takes the line below for the bullet's text
            taken = number + 1
            count += taken < len(lines)
        else:
            count += line[1] != "*"
    return bool(count == settings["num_bullets"])


def _constrained(text: str, settings: Settings) -> bool:
    return any(f"My answer is {answer}." in text for answer in ("yes", "no", "maybe"))


def _highlights(text: str, settings: Settings) -> bool:
    single = re.findall(r"\*[^\n*]*\*", text)
    double = re.findall(r"\*\*[^\n*]*\*\*", text)
    count = sum(bool(part.strip("*").strip()) for part in (*single, *double))
    return bool(count >= settings["num_highlights"])


def _sections(text: str, settings: Settings) -> bool:
    found = re.findall(rf"{re.escape(settings['section_spliter'].strip())}\s?\d+", text)
    return bool(len(found) >= settings["num_sections"])


def _json(text: str, settings: Settings) -> bool:
    bare = text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        bare = bare.removeprefix(fence)
    try:
        json.loads(bare.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def _title(text: str, settings: Settings) -> bool:
    for line in text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start < end - 2 and line[start:end].lstrip("<").rstrip(">").strip():
            return True
    return False


def _two_responses(text: str, settings: Settings) -> bool:
    parts = [part.strip() for part in text.split("******")]
    if not all(parts[1:-1]):
        return False
    responses = [part for part in parts if part]
    return len(responses) == 2 and responses[0] != responses[1]  # noqa: PLR2004 - two are asked for


def _repeats_prompt(text: str, settings: Settings) -> bool:
    return text.strip().lower().startswith(settings["prompt_to_repeat"].strip().lower())


def _no_comma(text: str, settings: Settings) -> bool:
    return "," not in text


def _end(text: str, settings: Settings) -> bool:
    return text.strip().strip('"').lower().endswith(settings["end_phrase"].strip().lower())


def _quotation(text: str, settings: Settings) -> bool:
    text = text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


class _Kind(NamedTuple):
    check: Check
    settings: Mapping[str, Callable[[Any], bool]] = {}


_KINDS: Final[dict[str, _Kind]] = {
    "change_case:capital_word_frequency": _Kind(
        _capital_words, {"capital_frequency": _is_count, "capital_relation": _is_relation}
    ),
    "change_case:english_capital": _Kind(_capitals),
    "change_case:english_lowercase": _Kind(_lower_case),
    "combination:repeat_prompt": _Kind(_repeats_prompt, {"prompt_to_repeat": _is_text}),
    "combination:two_responses": _Kind(_two_responses),
    "detectable_content:number_placeholders": _Kind(_placeholders, {"num_placeholders": _is_count}),
    "detectable_content:postscript": _Kind(_postscript, {"postscript_marker": _is_text}),
    "detectable_format:constrained_response": _Kind(_constrained),
    "detectable_format:json_format": _Kind(_json),
    "detectable_format:multiple_sections": _Kind(_sections, {"section_spliter": _is_text, "num_sections": _is_count}),
    "detectable_format:number_bullet_lists": _Kind(_bullets, {"num_bullets": _is_count}),
    "detectable_format:number_highlighted_sections": _Kind(_highlights, {"num_highlights": _is_count}),
    "detectable_format:title": _Kind(_title),
    "keywords:existence": _Kind(_keywords_exist, {"keywords": _are_texts}),
    "keywords:forbidden_words": _Kind(_no_forbidden_words, {"forbidden_words": _are_texts}),
    "keywords:frequency": _Kind(
        _keyword_frequency, {"keyword": _is_text, "frequency": _is_count, "relation": _is_relation}
    ),
    "keywords:letter_frequency": _Kind(
        _letter_frequency, {"letter": _is_letter, "let_frequency": _is_count, "let_relation": _is_relation}
    ),
    "language:response_language": _Kind(_in_language, {"language": _is_language}),
    "length_constraints:nth_paragraph_first_word": _Kind(
        _first_word_of_paragraph, {"num_paragraphs": _is_count, "nth_paragraph": _is_count, "first_word": _is_text}
    ),
    "length_constraints:number_paragraphs": _Kind(_paragraphs, {"num_paragraphs": _is_count}),
    "length_constraints:number_sentences": _Kind(_sentences, {"num_sentences": _is_count, "relation": _is_relation}),
    "length_constraints:number_words": _Kind(_words, {"num_words": _is_count, "relation": _is_relation}),
    "punctuation:no_comma": _Kind(_no_comma),
    "startend:end_checker": _Kind(_end, {"end_phrase": _is_text}),
    "startend:quotation": _Kind(_quotation),
}


# ── sentences and words ──────────────────────────────────────────────────────────────────────────────────────────────

_STOP: Final = re.compile(r"(?<![.!?])[.!?]++[\"'”’)\]}*_]*+(?=\s|\Z)")
_NEXT: Final = re.compile(r"\s*(\S?)")
_LAST_WORD: Final = re.compile(r"[^\W_]*\Z")
_LONGEST_WORD: Final = 20
_ABBREVIATIONS: Final = frozenset(
    ["dr", "mr", "mrs", "ms", "prof", "rev", "gen", "sen", "rep", "gov", "capt", "col", "lt", "sgt", "st", "jr", "sr",
     "vs", "etc", "no", "fig", "vol", "al", "inc", "ltd", "co", "corp", "approx", "dept", "est", "jan", "feb", "mar",
     "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "u", "s", "e", "g", "i", "a", "p", "m"]
)  # fmt: skip
_MAY_END: Final = frozenset(["etc", "inc", "ltd", "co", "corp", "jr", "sr", "al", "m", "s"])
"""Abbreviations that often end a sentence: before a capital letter they do."""


def count_sentences(text: str) -> int:
    """How many sentences a text has: a stop ends one, except after an abbreviation or an initial.

    >>> count_sentences("Dr. Smith, e.g., paid $3.50. Really? Yes..."), count_sentences("no stop at all")
    (3, 1)
    """
    count, end = 0, 0
    for stop in _STOP.finditer(text):
        if _ends_sentence(text, stop):
            count, end = count + 1, stop.end()
    return count + bool(text[end:].strip())


def _ends_sentence(text: str, stop: re.Match[str]) -> bool:
    after = _NEXT.match(text, stop.end())
    following = after[1] if after else ""
    marks = stop[0].rstrip("\"'”’)]}*_")
    if not following or "!" in marks or "?" in marks:
        return True
    if len(marks) > 1:  # an ellipsis in the middle of a sentence goes on with a small letter
        return not following.islower()
    before = _LAST_WORD.search(text, max(0, stop.start() - _LONGEST_WORD), stop.start())
    word = before[0].lower() if before else ""
    if word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha()):
        return word in _MAY_END and following.isupper()
    return not (word.isdigit() and following.islower())


_CONTRACTION: Final = re.compile(r"(?i)(?<=\w)(n't|'(?:ll|re|ve|s|m|d))\b")
_TWO_IN_ONE: Final = re.compile(r"(?i)\b(?:(can)(not)|(gim|lem)(me)|(gon|wan)(na)|(got)(ta))\b")
_TOKEN: Final = re.compile(r"\w[^\s,;:@#$%&?!\"“”«»()\[\]{}<>]*|\S")


def tokens(text: str) -> list[str]:
    """The words of a text, with contractions parted as the Penn Treebank does: "DON'T" is "DO" and "N'T"."""
    parted = _TWO_IN_ONE.sub(lambda found: " ".join(part for part in found.groups() if part), text)
    parted = re.sub(r"--+", " -- ", _CONTRACTION.sub(r" \1 ", parted))
    return [found.rstrip(".'") or found for found in _TOKEN.findall(parted)]
