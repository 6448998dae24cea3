# SPDX-License-Identifier: Apache-2.0
"""Answers in words: yes and no, names, choices, and a number that a sentence states."""

from __future__ import annotations

import re
from typing import Final

from reward_kit.answers.final_answer import last_match
from reward_kit.answers.vocabulary import DECORATION, OF, REFUTING
from reward_kit.mathematics.numbers import in_digits
from reward_kit.mathematics.text import TEXT_CLOSE, TEXT_OPEN, plain
from reward_kit.mathematics.tokens import Unreadable, tokenise
from reward_kit.mathematics.units import is_known, names_something, same_nouns, singular

__all__ = [
    "choice",
    "choices",
    "conclusion",
    "is_prose",
    "option",
    "same_sentence",
    "same_words",
    "stated_number",
    "subject",
    "wordy",
    "written",
]

_CHOICE: Final = re.compile(
    r"(?:(?:(?!not\b|no\b|never\b)[A-Za-z]{1,12}[\s,]{1,2}){0,6}(?:answer|option|choice)\s*(?:is|:)?\s*|故?选|答案[是为:：]?\s*)?"
    r"(?:\(\s*([A-J])\s*\)|([A-J])(?=\s*[.):]|\s*$))\s*[.):]?\s*(.*)",
    re.DOTALL | re.IGNORECASE,
)
_OTHER_CHOICE: Final = re.compile(r"\W{0,4}(?:(?i:or|and|maybe|possibly|perhaps)\b|\(?[A-J]\)?(?![\w']))")
"""What goes on like this offers more than one choice."""
_REFUTED: Final = re.compile(
    rf"\W{{0,4}}(?:{'|'.join(map(re.escape, REFUTING))})\b|.*\?\W*\Z", re.IGNORECASE | re.DOTALL
)
"""What follows a letter like this takes it back, or asks."""
_GOES_ON: Final = re.compile(r"[\^_*/+=<>!(|]|-\s|\\(?:cdot|times|le|ge|leq|geq|ne|neq|approx|cup|cap|in)\b")
"""What goes on like this is a formula: (a)^2, (b) + 1."""
_VERDICTS: Final = frozenset({"yes", "no", "true", "false"})
_FIRST: Final = re.compile(
    rf"[\s{TEXT_OPEN}]*([A-Za-z]+)\s?[{TEXT_CLOSE}]?[,.:;](?![^.]*\b(?:yes|no|true|false|but|however|or)\b)",
    re.IGNORECASE,
)
"""A verdict with its reason behind it."""
_CHOICE_LETTERS: Final = frozenset("ABCDEFGH")
_CHOICES: Final = re.compile(r"[A-H]{2,6}|\(?[A-H][).]?(?:(?:\s?[,;&]\s?|\s+)(?:and\s+)?\(?[A-H][).]?){1,7}")
_NOT_WRITTEN: Final = frozenset({"{", "}", "cdot", "*", "times"})
_BETWEEN: Final = re.compile(r"\s*[,;&]\s*(?:and\s+)?|\s+and\s+", re.IGNORECASE)
_NOT_LETTERS: Final = re.compile(r"[\W_]+")
_ARTICLES: Final = frozenset({"the", "a", "an", "is", "are", "it", "its", "so", "to", "of"})
_SUBJECTS: Final = frozenset(
    "series sequence integral function limit graph matrix solution solutions they this that triangle statement system "
    "lines relation".split()
)
"""What an answer in words may be about; the question says so too."""
_LEADING: Final = frozenset({"on", "at", "by", "in"})
_FORMS: Final = {
    **dict.fromkeys(("converges", "converge", "converging"), "convergent"),
    **dict.fromkeys(("diverges", "diverge", "diverging"), "divergent"),
    "counterclockwise": "anticlockwise",
}
"""Words that say the same, and the one that stands for them."""
_PLACES: Final = {
    name: str(place)
    for place, names in enumerate(("first i 1st 1", "second ii 2nd 2", "third iii 3rd 3", "fourth iv 4th 4"), start=1)
    for name in names.split()
}
_NUMBER: Final = re.compile(
    r"(?<![A-Za-z\d.])-?(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++)(?:\.\d++)?+(?:/\d++)?+(?:%|(?![A-Za-z]))"
    r"|(?<!\d)-?\.\d++(?![A-Za-z])"
)
_SIGNS: Final = re.compile(
    r"#\s*[-+]\s*(?:$|[.,])|[\\^=<>{}\[\]()_|*/+]|\d\s*[a-zA-Z](?![a-zA-Z])|(?<![a-zA-Z'])[b-hj-zB-HJ-Z](?![a-zA-Z'])"
)
_DOUBT: Final = re.compile(
    r"\b(?:not|cannot|can't|isn't|no|never|unable|impossible|error|incorrect|wrong|unknown|undefined|least|most|more|"
    r"less|than|between|or|either|neither|about|over|under|almost|nearly|up to|exceed\w*|greater|larger|smaller|fewer|"
    r"mod)\b|Traceback|Error|\?",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[A-Za-z]{3,}")
_WORDS: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_MEASURED_FROM: Final = re.compile(
    r"\b(?:from|by|with|on|for|into|within|(?<!equal\s)(?<!comes\s)(?<!amounts\s)(?<!simplifies\s)to)\s+(?:the\s+)?\\?\$?\s*#",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
_MADE_OF: Final = re.compile(r"([A-Za-z]+)\s+of\s+(?:the\s+)?\\?\$?\s*#")
_JOINED: Final = re.compile(
    r"#[^#]{0,60}\band\s+(?:an?|another|one|some)\b|\ban?\s[^#]{1,60}\band\s+\\?\$?\s?#", re.IGNORECASE
)
"""The value, and something besides."""
_COMMAND: Final = re.compile(r"\\[A-Za-z]+|\b(?:sqrt|sin|cos|tan|log|exp)\b")
_TALK: Final = 3
_LONGEST_FORMULA: Final = 1_000
_LONGEST_SENTENCE: Final = 200
_LONGEST_REMARK: Final = 600
_LONGEST_CONCLUSION: Final = 12
_SAYS: Final = re.compile(
    r"\b(?:is|are|equals|be|was)(?:\s+equal\s+to)?\s*:?\s+|=\s*(?![^=]*\b(?:is|are)\b)", re.IGNORECASE
)


def written(text: str) -> str:
    """`text` for a comparison of writing: its tokens, without braces and multiplication signs."""
    bare = plain(text)
    try:
        tokens = [token.text for token in tokenise(bare)]
    except Unreadable:
        return re.sub(r"[\s{}]", "", bare)
    return " ".join(token for token in tokens if token not in _NOT_WRITTEN)


def is_prose(text: str) -> bool:
    """Whether `text` is words, without a digit or a sign of mathematics."""
    bare = plain(text).replace(TEXT_OPEN, " ").replace(TEXT_CLOSE, " ").strip("(){}[] ")
    letters = sum(map(str.isalpha, bare))
    return letters > 1 and not re.search(r"[\d\\^=<>_+*/|]", bare)


def wordy(text: str) -> bool:
    """Whether `text` is mostly talk, code or an error message rather than a formula."""
    return len(text) > _LONGEST_FORMULA or len(_WORD.findall(_COMMAND.sub(" ", text))) >= _TALK


def same_words(gold: str, answer: str) -> bool:
    """Whether two answers in words are the same, but for case, punctuation and articles."""
    right, given = _bag(gold), _bag(answer)
    if ("?" in gold) != ("?" in answer):
        return False
    for words, text in ((right, answer), (given, gold)):
        if len(words) == 1 and words[0] in _VERDICTS and (first := _FIRST.match(plain(text))) is not None:
            return first[1].casefold() == words[0]  # "Yes, it converges." says yes
    if _same_bag(right, given):
        return True
    several, others = _listed(gold), _listed(answer)
    return len(several) > 1 and several == others


def _same_bag(right: list[str], given: list[str]) -> bool:
    """Whether two answers have the same words; one may name its subject, as in "the series converges"."""
    if not right or not given:
        return False
    if right == given or "".join(right) == "".join(given):  # north-east, northeast
        return True
    subjects, others = (frozenset(words) & _SUBJECTS for words in (right, given))
    core, other_core = ([word for word in words if word not in _SUBJECTS] for words in (right, given))
    return bool(core) and core == other_core and same_nouns(subjects, others)


def _listed(text: str) -> list[list[str]]:
    """The items of a list in words, sorted: "red, blue" and "blue and red" have the same."""
    bare = plain(text).replace(TEXT_OPEN, " ").replace(TEXT_CLOSE, " ")
    return sorted(found for part in _BETWEEN.split(bare) if (found := _bag(part)))


def _bag(text: str) -> list[str]:
    bare = plain(text).replace(TEXT_OPEN, " ").replace(TEXT_CLOSE, " ").casefold()
    words = [_FORMS.get(word, word) for word in _NOT_LETTERS.split(bare) if word]
    if len(words) > 1 and words[0] in _LEADING:
        del words[0]
    if len(words) == 2 and "quadrant" in words:  # the second quadrant, quadrant II
        words = sorted(_PLACES.get(word, word) for word in words)
    return [word for word in words if word not in _ARTICLES] or words


def choice(text: str) -> tuple[str, str] | None:
    """The letter of a choice and the text beside it: `(B) 3x` is ("B", "3x")."""
    found = _lettered(text)
    return None if found is None else (found[0].upper(), found[1])


def option(text: str) -> str:
    """The text beside the letter of a choice; empty where there is none. A small letter may count parts: `(a) 3`."""
    found = _lettered(text)
    return found[1] if found is not None and found[0].isupper() else ""


def _lettered(text: str) -> tuple[str, str] | None:
    bare = plain(text).replace(TEXT_OPEN, "").replace(TEXT_CLOSE, "").strip().strip("{}*").strip()
    match = _CHOICE.fullmatch(bare)
    if match is None or any(pattern.match(match[3]) for pattern in (_OTHER_CHOICE, _GOES_ON, _REFUTED)):
        return None
    beside = match[3].strip()
    return match[1] or match[2], beside + "}" * (beside.count("{") - beside.count("}"))


def choices(text: str) -> frozenset[str] | None:
    """The letters of an answer that names several choices: `A, C`, `(A) and (C)`, `AC`; `None` if it does not."""
    bare = plain(text).replace(TEXT_OPEN, "").replace(TEXT_CLOSE, "").strip(" {}*")
    if not _CHOICES.fullmatch(bare):
        return None
    letters = [letter for letter in bare.replace("and", "") if letter in _CHOICE_LETTERS]
    return frozenset(letters) if len(set(letters)) == len(letters) else None


def stated_number(text: str) -> str | None:
    """The only number in a sentence, where the sentence states it and nothing else: "The angle is 90 degrees."."""
    bare = plain(text).replace(TEXT_OPEN, " ").replace(TEXT_CLOSE, " ")
    if len(bare) > _LONGEST_SENTENCE:
        return None
    if not any(map(str.isdigit, bare)):
        bare = in_digits(bare)
    found = _NUMBER.findall(bare)
    rest = _NUMBER.sub(" # ", bare, count=1)
    if len(found) != 1 or _SIGNS.search(rest) or not _all_known(rest):
        return None
    return str(found[0])


def _all_known(sentence: str) -> bool:
    """Whether each word around a number is known to leave it as it is; `#` stands for the number."""
    if "?" in sentence or _JOINED.search(sentence) or any(not is_known(word) for word in _WORDS.findall(sentence)):
        return False
    made = _MADE_OF.search(sentence)
    return (made is None or singular(made[1]) not in OF) and _MEASURED_FROM.search(sentence) is None


def _may_conclude(before: str) -> bool:
    """Whether what comes before a conclusion names what it is about, or is a computation."""
    words = _WORDS.findall(_COMMAND.sub(" ", _SENTENCE.split(before)[-1]))
    words = [word for word in words if len(word) > 2]
    if words:
        return names_something(words)
    return not before.strip() or any(map(str.isdigit, before))


def same_sentence(gold: str, answer: str) -> bool:
    """Whether two sentences around a number say the same of it: one may say more, but not something else."""
    return same_nouns(_nouns(gold), _nouns(answer))


def _nouns(text: str) -> frozenset[str]:
    bare = plain(text).replace(TEXT_OPEN, " ").replace(TEXT_CLOSE, " ")
    nouns = (singular(word) for word in re.findall(r"[A-Za-z]+", bare))
    return frozenset(noun for noun in nouns if noun not in DECORATION and noun not in _ARTICLES)


def conclusion(text: str) -> str | None:
    """What the last sentence of a text says something *is*: "… is `y = -5x - 3`."."""
    if len(text) > _LONGEST_REMARK or _DOUBT.search(text):
        return None
    last = last_match(_SAYS, text)
    if last is None or not _may_conclude(text[: last.start()]):
        return None
    conclusion = text[last.end() :].strip().rstrip(".").strip()
    return conclusion if conclusion and len(conclusion.split()) <= _LONGEST_CONCLUSION else None


def subject(text: str) -> str:
    """What the first sentence of a text says something of: `R = 1` in "R = 1 is necessary and sufficient"."""
    bare = plain(text).replace(TEXT_OPEN, " ").replace(TEXT_CLOSE, " ")
    said = _SAYS.search(bare)
    return "" if said is None else bare[: said.start()]
