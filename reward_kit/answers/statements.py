# SPDX-License-Identifier: Apache-2.0
r"""What a sentence states: the one value that it comes to, and not the other numbers in it.

    "So the maximum is 5, attained at x = 2."   5          what a subordinate clause mentions is no statement
    "x = 5 is not a solution."                  nothing    nor is what is denied
    "See equation (5)."                         nothing    nor is the number of an equation, a step, a page
    "It leaves at 3:45 PM."                     3:45 PM    a time, a ratio, a date, a pair is one token

Among the numbers that are left, the one that a verb or an equals sign leads to counts before others, and the last
before those in front of it. Every pattern is linear in the text: repetitions are possessive or bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from reward_kit.answers.vocabulary import DENIALS_ABROAD, DISOWNING, LINKING, OPERATIONS, REFUTING, SAYING, SUPPOSITIONS

__all__ = [
    "FORMULA",
    "Statement",
    "inside",
    "is_aside",
    "is_denied",
    "is_setting",
    "sentences",
    "statement_in",
    "statement_in_masked",
    "values_in",
    "without_references",
]

LONGEST_SENTENCE: Final = 2_000
"""Of a longer sentence, the end is read."""

FORMULA: Final = (
    r"\$\$[^$]{1,2000}\$\$|\$(?<!(?<!\\)\\\$)(?![\s$])[^$\n\\]{0,2000}+(?:\\[^\n][^$\n\\]{0,2000}+){0,200}+(?<!\s)\$(?!\d)|\$\s[^$\n]{1,2000}\s\$(?!\s?\d)"
    r"|\\\((?:(?!\\\)).){1,1000}\\\)|\\\[(?:(?!\\\]).){1,1000}\\\]"
)
_NUMERAL: Final = r"(?:(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++)(?:\.\d++)?+|\.\d++)(?:[eE][-+]?\d++)?+"
_SIGNED: Final = rf"(?:(?<![\w)}}])[-−+]\s?)?(?:\\?[$€£¥]\s?)?[-−]?{_NUMERAL}"
_GROUP: Final = r"\{[^{}]{1,40}\}"
_ATOM: Final = (
    rf"(?:{_SIGNED}|[-−]?\\[dt]?frac\s?{_GROUP}\s?{_GROUP}|[-−]?(?:\\sqrt(?:\[\d\])?\s?{_GROUP}|√\s?(?:\d++|\([^()]{{1,40}}\)"
    r"|(?:π|\w\b))|sqrt\s?\([^()]{1,40}\)|\\?(?<![A-Za-z])pi(?![A-Za-z])|π|∞|[¼½¾⅓⅔])|\([^()]{1,40}\)(?=\s?[/*^]))"
    r"(?:\^\{[^{}]{1,20}\}|\^\(?[-−]?\w++\)?|[²³⁰-⁹]++|!(?!\w|[\s*_\"”)]*\Z|[*_\"”)]*(?:\n|\s+[A-Z]))|\s?\\?%|\s?°(?:\s?[CF](?!\w))?)?"
)
_JOINT: Final = (
    r"(?:\s?(?:[*/×·⋅÷+]|\\(?:cdot|times))\s?|\s?[-−–]\s?(?=[\d\\√π(])|\s?(?=π|√|\\?pi(?![A-Za-z])|\\sqrt|sqrt\b|\\frac|[¼½¾⅓⅔])"
    r"|\s(?=\d++/\d))"
)
_RUN: Final = rf"{_ATOM}(?:{_JOINT}{_ATOM}){{0,12}}+"
_MONTH: Final = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_ITEM: Final = r"[-−]?[\w.√π/\\^*+-]{1,24}"
_TIME_UNIT: Final = (
    r"(?:hours?|hrs?|h|minutes?|mins?|seconds?|days?|weeks?|months?|years?|feet"
    r"|foot|ft|inch(?:es)?|pounds?|ounces?|dollars?|cents?)"
)
_TURNED: Final = "|".join(
    words.removeprefix("_ ").replace(" ", r"\s")
    for words, meant in OPERATIONS.items()
    if words.startswith("_ ") and meant.startswith("-_")
)
"""What turns the sign of the value before it: "below zero"."""
_TOKEN: Final = re.compile(
    r"(?=[\d$\\(\[{.+\-−€£¥√π∞¼½¾⅓⅔]|\b[jfmasondvp])"  # nothing else begins a token: a check that costs little
    rf"(?:(?P<formula>{FORMULA})"
    r"|(?<![\w.:])(?P<clock>\d{1,2}:\d{2}(?::\d{2})?(?:\s?(?:[ap]\.\s?m\.|[ap]m\b))?(?![\d:])|\d{1,2}\s?(?:[ap]\.m\.|[ap]m\b))"
    r"|(?<![\w.:])(?P<ratio>\d++(?:\.\d++)?(?:\s?:\s?\d++(?:\.\d++)?)++)"
    rf"|(?<!\w)(?P<date>{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?(?:,\s?\d{{4}})?(?!\d)"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{_MONTH}(?![a-z])(?:,?\s?\d{{4}})?|\d{{4}}-\d{{2}}-\d{{2}}(?!\d))"
    r"|(?<![\w.])(?P<version>v?\d++(?:\.\d++){2,})"
    rf"|(?P<tuple>\(\s?{_ITEM}(?:\s?,\s?{_ITEM}){{1,8}}\s?[)\]]|\[\s?{_ITEM}(?:\s?,\s?{_ITEM}){{1,8}}\s?[)\]]"
    rf"|\\?\{{\s?{_ITEM}(?:\s?,\s?{_ITEM}){{1,8}}\s?\\?\}})"
    rf"|(?<![\w.])(?P<mixed>{_NUMERAL}\s?{_TIME_UNIT}(?:,?\s(?:and\s)?{_NUMERAL}\s?{_TIME_UNIT}){{1,2}})"
    rf"|(?<![\w.])(?P<run>{_RUN})(?P<large>\s(?:million|billion|trillion|thousand|percent|{_TURNED})\b)?"
    r"(?P<letter>(?<!°)(?![ghlmsL](?![A-Za-z]))[A-Za-z](?:\^\w++|²|³)?(?![A-Za-z]))?)",
    re.IGNORECASE,
)
_REFERENCE: Final = re.compile(
    r"(?=[\[(#\\]|\b[\da-z]|^)(?:\b(?:equations?|eqs?\.?|eqns?\.?|steps?|figures?|figs?\.?|cases?|problems?|questions?|exercises?|theorems?|lemmas?"
    r"|corollar(?:y|ies)|propositions?|definitions?|sections?|chapters?|tables?|examples?|parts?|methods?|formulas?|rules?"
    r"|propert(?:y|ies)|conditions?|constraints?|statements?|hints?|notes?|appendix|footnotes?|attempts?|approach|"
    r"versions?|lines?|inequalit(?:y|ies)|pages?|volumes?|lessons?|units?(?=\s\d)|"
    r"solutions?(?=\s\d)|scenarios?|claims?|axioms?|(?:no|nos|p|pp)\.(?=\s?\d))\s?#?(?:number\s)?"
    r"\(?\d{1,3}[a-z]?(?:\.\d{1,3}){0,3}\)?(?:(?:,\s?|\s?[-–]\s?|,?\sand\s|\sor\s)\(?\d{1,3}(?:\.\d{1,3})?\)?(?!\w))*+"
    r"(?!\s?(?:[=+*/^<>≤≥]|\\[a-z]|%|\d))"
    r"|(?<=[\w.),]\s)(?<!\bis\s)(?<!are\s)\[\d{1,3}\](?!\s?[=,])"
    r"|\b\d{1,3}(?:\.\d++)?\s?%\s(?:sure|certain|confident|confidence)\b|\(\d{1,2}\s(?:points?|marks?|pts?)\)"
    r"|(?<=^)\s{0,4}(?:\d{1,2}[.)]|\(\d{1,2}\))\s(?=\S)|\\tag\s?\{[^{}]{1,10}\}|#\d{1,4}\b(?=\s[a-z])"
    r"|\b(?:mod(?:ulo)?|base)\s\d++|\bbetween\s[$\\(]{0,2}[-−]?[\d.,]{1,15}[$\\)]{0,2}\s(?:\w+\s)?and\s[$\\(]{0,2}[-−]?[\d.,]{0,14}\d[$\\)]{0,2}"
    r"|\b\d{1,2}\s(?:steps|cases|approaches|unknowns|equations|methods|things|parts)\b(?!\s(?:of\s(?!th)|are\sneeded))"
    r"|\b(?:the\s|this\s)?(?:first|second|third|last|next)\s\d{1,2}\b"
    r"|\bto\s(?:the\snearest\s)?\d{1,2}\s(?:decimals?|significant|sig|places?|digits?|d\.?p)\b)",
    re.IGNORECASE,
)
"""Numbers that name a thing and count nothing."""
_SUBORDINATE: Final = re.compile(
    r"(?=[(,]|\b[a-z])(?:\b(?:when(?:ever)?|where|since|because|if|given|assuming|provided|supposing|although|though|unless|whereas|while"
    r"|(?:is\s|are\s|was\s)?(?:attained|achieved|reached|obtained|taken|realized|realised)\s(?:at|when|for|by|only|if)"
    r"|(?:which\s)?(?:occurs?|occurring|happens?|happening)\s(?:at|when|for|in)"
    r"|using|recall(?:ing)?|substituting|plugging|considering"
    r"|dividing|multiplying|adding|subtracting|despite|regardless|as\sopposed\sto|compared\s(?:to|with)|even\sthough"
    r"|which\sis\s(?=[^,]{1,20}\b(?:more|less|fewer|greater|smaller|larger|times|than)\b)|unlike|having|such\s(?:as|that)|for\swhich|satisfying|for\s(?:example|instance)|instead\sof|rather\sthan|versus)\b"
    r"|\b(?:for|at|with|by|from)\s(?=[$\\(]{0,2}[a-z](?:_\w|\^\w|[²³])?\s?[=<>≤≥])|\be\.g\.|(?:^|,\s)as\s(?!a\sresult|such|an?\sanswer|long)|\((?!\s?[-\d])|\((?=\d[^,()]{0,30}[A-Za-z]{3}))",
    re.IGNORECASE,
)
_CLAUSE_END: Final = re.compile(r"[,;](?=\s)|\)|\s[–—-]\s|—|\b(?:so|then|therefore|thus|hence)\b", re.IGNORECASE)
_REFUTING: Final = "(?:" + "|".join(re.escape(words).replace(r"\ ", r"\s") for words in REFUTING) + ")"
_WORDS_BETWEEN: Final = (
    r"(?:\s+(?:(?!only|like)\w{2,}ly|really|ever|even|at\sall|in\sfact|be|equal|to|the|answer|a|an|any|value|solution|root|is|as|of|have|been|simply|just|exactly|candidate|possible|"
    r"extraneous|spurious|negative|invalid|out|for|that|it|number|result|option|choice|say|think|assume|claim|conclude|write|accept|take|call|like|choose|pick)){0,5}"
)
_DENIED_BEFORE: Final = re.compile(
    rf"(?:\bnot|n't|n’t|\bnever|\breject(?:s|ed|ing)?|\bdiscard(?:s|ed|ing)?|\bdisregard(?:s|ed|ing)?|\bexclud\w{{1,4}}"
    rf"|\brul(?:e|ed|es|ing)\sout|\bexcept|\bother\sthan|\bneither|\bnor|\bignor\w{{1,4}}|\bcannot|\bno\slonger|\beliminat\w{{1,4}}"
    rf"|\bextraneous|\bspurious|\binvalid|\bwrong|\bincorrect|\btempting|\bmistaken(?:ly)?|\berroneous(?:ly)?|\binstead\sof|\brather\sthan"
    rf"|\bthrow(?:s|ing)?\s(?:out|away)|\bnaive(?:ly)?|\binitially|\boriginally|\bpreviously|\bat\sfirst|\bformerly"
    rf"|\bused\sto|\brefus(?:e|es|ed|ing)){_WORDS_BETWEEN}"
    r"\s*(?:[A-Za-z]\w{0,2}\s?=\s?)?[\s$\\(*_:\"“{}]{0,6}\Z",
    re.IGNORECASE,
)
_SUPPOSED_BEFORE: Final = re.compile(
    r"\b(?:if|unless|whether|suppos(?:e|ed|es|ing)|assum(?:e|es|ing)|although|though|(?:false|untrue|(?:not|n['’]t)\strue)\sthat"
    r"|(?:thought|believed|supposed|claimed|said|assumed)\sto\sbe)"
    r"\s{0,2}(?:that\s)?(?:(?:it|[a-z]\w{0,2}(?:\(\w\))?|(?:the|our)\s\w+)\s?(?:=|is|was|were)\s?)?[$\\(*_\"“]{0,4}\Z",
    re.IGNORECASE,
)
"""What stands before a value that a sentence supposes, or says that others suppose."""
_CONTRARY_BEFORE: Final = re.compile(
    r"(?:\bwould(?:\snot|n['’]t)?\shave\s(?:been|equal+ed|come\sto)"
    r"|\b(?:if\b[^.;:!?]{1,70}\b(?:were|had)|had|were)\b[^.;:!?]{0,70}\bwould\s(?:be|equal|become|come\sto)"
    rf"|\bif\s(?:(?:\w+\s){{0,3}}(?:{'|'.join(sorted(SUPPOSITIONS))})\b|(?:it|this|that)\s(?:was|were)\s(?:true|right|correct|so)\b)"
    r"[^.;:!?]{1,50}\bwould\s(?:be|equal|become|come\sto|give|make|yield|get|have|find|obtain|need|follow))"
    r"(?:\s(?:equal\sto|exactly|just))?\s*[$\\(*_\"“]{0,4}\Z",
    re.IGNORECASE,
)
"""What stands before a value that would hold if something else did, which does not."""
_LETTERS_BEFORE: Final = re.compile(
    r"(?<![\w'’(\[])(?:[(\[]?[A-J][)\]]?(?:,\s(?:and\s|or\s|nor\s)?|\s(?:and|or|nor)\s))+[(\[]?\Z"
)
_JOINED_BEFORE: Final = re.compile(r"\b(?:and|or|nor)\s[(\[]?\Z")
_LETTERS_AFTER: Final = re.compile(r"[)\]]?(?:,\s(?:and\s|or\s|nor\s)?|\s(?:and|or|nor)\s)[(\[]?[A-J]\b")
_LETTER_IN_BRACKETS: Final = 3
_SHARES: Final = re.compile(r"\s?,\s?\$[^$\n]{1,200}\$|,?\s(?:or|nor)\s\S{1,200}", re.IGNORECASE)
"""What shares the fate of the value before it: a further formula of a list, or the other of two."""
_OTHER_VERB_BEFORE: Final = re.compile(
    rf"\b(?:answer|result|solution)\s(?!(?:{'|'.join(sorted(LINKING))})\b)[a-z]{{2,}}s\s(?:[a-z]+\s){{0,3}}[$\\(*_\"“]{{0,4}}\Z",
    re.IGNORECASE,
)
"""A verb between "the answer" and a value that is not known to lead from one to the other: "falls short of"."""
_TAKEN_BACK: Final = re.compile(
    r"\bbut\s(?:this|that|it|which)\s(?:is|was|turns\sout\sto\sbe|would\sbe)\s(?:\w+\s)?(?:wrong|incorrect|false|mistaken|a\smistake"
    r"|not\s(?:right|correct|true|the\scase))\b",
    re.IGNORECASE,
)
"""What stands before it in a sentence is not what the sentence states."""
_DENIED_AFTER: Final = re.compile(
    r"[\s$*_)}\\\"”]{0,6}(?:[a-z]+\s){0,2}?(?:(?:(?:is|are|was|were|as|being|seems?|looks?|would\sbe)\s+(?:\w+\s){0,2}?"
    r"(?:(?:not|never)\s(?:(?:really|actually|even|quite|in\sfact)\s)?(?:a|an|the|valid|possible|allowed|correct|right|acceptable|permitted|within|prime|our|what|true|"
    r"in\sthe\s(?:domain|range|interval|set)|an?\sinteger|positive|enough|admissible|solutions?|feasible|it)\b"
    r"|extraneous|spurious|invalid|impossible|wrong|incorrect|inadmissible|rejected|discarded|excluded|too\s\w+|ruled\sout|outside))"
    r"|(?:is|are|was|were)n['’]t\s(?:a|an|the|valid|possible|allowed|correct|right|acceptable|it|our|in)\b"
    r"|(?:does|do|did|will|would)(?:n['’]t|\snot)\s(?:work|satisfy|hold|count|fit|solve|make|belong|lie|meet|check)"
    r"|fails?\s(?:to|the|because|since|as|when)|(?:cannot|can['’]t|can\snot)\s(?:be|work|hold)"
    r"|(?:must|can|should|has\sto|have\sto)\sbe\s(?:rejected|discarded|excluded|ignored|ruled|thrown|eliminated))",
    re.IGNORECASE,
)
_DENIES_ABROAD: Final = re.compile(
    "|".join(rf"(?<!\w){re.escape(words)}(?!\w)" if words[-1] <= "ӿ" else words for words in DENIALS_ABROAD),
    re.IGNORECASE,
)
_CUES_ABROAD: Final = tuple(words.lower() for words in DENIALS_ABROAD)
_CUES_IN_ASCII: Final = tuple(filter(str.isascii, _CUES_ABROAD))
_CUES: Final = DISOWNING
"""Without one of these nothing is disowned."""
_CLAUSE_STARTS: Final = re.compile(
    r"[.;:!?—]\s|(?<![A-J)]),\s(?!(?:including|even|like|such)\b)|(?<=[A-J)]),\s(?!\(?[A-J]\)?(?:,|\s(?:and|or|nor)\b)|(?:and|or|nor)\s|\Z)|(?:(?<=\band\s[A-J])|(?<=\bor\s[A-J])|(?<=\bnor\s[A-J])),\s\Z"
    r"|\b(?<!anything\s)(?<!everything\s)(?<!nothing\s)(?<!all\s)(?<!one\s)(?<!them\s)(?<!these\s)(?<!those\s)but\b"
    r"|\b(?:so|then|therefore|thus|hence|leaves|leaving|because|since|which|while|whereas"
    r"|and\s(?:so|the|it|thus|therefore|we|this|that))\b",
    re.IGNORECASE,
)
_DISOWNS: Final = re.compile(
    r"(?:\b(?:not|never|cannot|nobody|no\sone|hardly)|n['’]t)\s(?:\w+\s){0,2}?"
    r"(?:think|believe|say|said|claim|choose|pick|select|accept|agree|expect|suppose|answer|go\swith|recommend|conclude|true\sthat|mean"
    r"|the\scase\sthat|possible\s(?:that|for)|likely|correct\sthat)\b"
    r"|(?:\b(?:not|never|cannot|hardly)|n['’]t)\s(?!(?:\w+\s){0,2}?(?:hard|difficult|surprising|only|just|doubt|deny|denied|disputed?|questioned"
    r"|forget|escape|coincidence|accident)\b)(?:(?!we\b|i\b|it\b|they\b|he\b|she\b|you\b|so\b)\w+\s){1,6}?that\s(?:the|it|this|[a-z]\b)"
    r"|\bno\s(?!doubt|question|time|wonder|surprise|coincidence|accident|denying|mistake|contradiction|dispute)\w+\s(?:\w+\s){0,3}?(?:that\s(?:the|it|this|[a-z]\b)"
    r"|(?:to|for)\s(?:choose|pick|select|choosing|say|answer|accept|believe|think|assume|conclude)\b)"
    r"|\b(?:common|usual|typical|careless|easy|frequent)\s(?:\w+\s)?(?:mistake|error)\b"
    r"|(?<!not\s)(?<!n['’]t\s)(?<!cannot\s)(?<!one\s)(?<!be\s)\b(?:refus(?:e|es|ed|ing)|den(?:y|ies|ied|ying)|disput(?:e|es|ed|ing)|disprov(?:e|es|ed|ing)|refut(?:e|es|ed|ing)"
    r"|disagree(?:s|d|ing)?|contest(?:s|ed|ing)?)\b"
    r"|(?<!\bno\s)(?<!not\s)(?<!n['’]t\s)(?<!without\s)(?<!beyond\s)\bdoubt(?:s|ed|ful)?\b(?!\sthat\sit\sis\snot)|\bunlikely\b|\bimpossible\s(?:that|for)\b|\bno\sway\b|\buntrue\b|\bfalse\s(?:that|to)\b"
    r"|\b(?:wrong|incorrect|mistake|mistaken)\s(?:to|that|if|answer|option|choice|one|claim|assumption)\b|\b(?:far|different|apart|aside)\sfrom\b"
    r"|\b(?:anything|everything|all|any\sone|any\soption)\s(?:of\s)?(?:\w+\s)?but\b|\bany(?:thing)?\s(?:\w+\s){0,2}(?:except|other\sthan)\b"
    r"|\bexcept(?:ing|\sfor)?\b|\bexclud(?:e|es|ed|ing)\b|\bother\sthan\b(?<!none\sother\sthan)(?<!no\sother\sthan)|\brather\sthan\b|\binstead\sof\b"
    r"|\breject(?:s|ed|ing)?\b|\brul(?:e|es|ed|ing)\sout\b|\beliminat(?:e|es|ed|ing)\b|\bdiscard(?:s|ed|ing)?\b|\bdismiss(?:es|ed|ing)?\b"
    r"|\b(?:some|many|most|other|every(?:one|body)|people|students)\s(?:\w+\s)?(?:say|think|believe|choose|claim|pick|answer|guess)s?\b"
    r"|\b(?:under|in|by|on|at)\sno\s\w+\s(?:is|are|was|can|could|does|do|did|will|would|should)\b"
    rf"|(?<!\bi\s)(?<!\bwe\s)(?<!\byou\s)\b(?:would|might|may)\s(?:\w+ly\s)?(?:{'|'.join(sorted(SAYING))})\b"
    rf"|\b(?:whoever|(?:anyone|anybody|those|people|students)\swho)\s(?:\w+\s)?(?:{'|'.join(sorted(SAYING))})s?\b"
    r"|\bwho\swould\b|\bneither\b|\bnor\b|\bnone\sof\b|\b(?:wrong|incorrect|false|only\swrong)\s(?:one|answer|option|choice)\s(?:is|was)\b"
    r"|\bthe\s(?:incorrect|wrong|false)\s(?:\w+\s)?(?:is|was)\b",
    re.IGNORECASE,
)
"""What denies or doubts whatever comes behind it in the same clause."""
_REFUTED_AFTER: Final = re.compile(
    r"[\s$*_)}\\\"”.]{0,6}(?:"
    r"\?(?!\W{0,3}(?:yes|indeed|correct|right|exactly|sure)\b)"
    rf"|(?:is|was|looks?|seems?|sounds?|appears?|would\sbe)\s(?:\w+\s){{0,2}}{_REFUTING}\b"
    rf"|(?:[:(]|\s[–—-]\s)\s?(?!out\b){_REFUTING}\b"
    rf"|,?\s?which\s(?:i\s(?:think|believe|know)\s)?(?:is|was|seems?|looks?|sounds?|must\sbe|would\sbe)\s(?!not\b)(?:\w+\s)?{_REFUTING}\b(?!\sto\b)"
    r"|,?\s?(?:but|yet|and|though|although|however),?\s(?:i|we|this|that|it|he|she|they)\s(?:\w+\s){0,3}?(?:disagree|doubt)\b"
    rf"|,?\s?(?:but|yet|and|though|although|however),?\s(?:this|that|it|he|she|they|all|most|every(?:one|body))\s(?:is|was|are|were|seems?)\s(?!not\b)(?:\w+\s)?{_REFUTING}\b(?!\sto\b)"
    r"|(?:is|was|looks?|seems?|sounds?|appears?)\s(?:\w+\s){1,3}?,?\s?but\s(?:\w+\s){0,3}?(?:not|wrong|incorrect|false|isn['’]t)\b"
    r"|(?:is|was|looks?|seems?|sounds?|appears?)\s(?:\w+\s){0,2}\w+,\sbut\s(?:it\s|that\s|this\s)?(?:is\s|was\s)?(?:not|wrong|incorrect|false|isn['’]t|wasn['’]t)\b"
    r"|(?:is|was)\s(?:not|never)\b(?!\s(?:only|just|surprising))|(?:is|was)n['’]t\b"
    r"|(?:cannot|can['’]t|could\snot|couldn['’]t|must\snot|mustn['’]t|should\snot|shouldn['’]t)\s(?:be|hold|work|stand)\b"
    r"|(?:does|did|would|will)(?:\snot|n['’]t)\s(?!matter|depend|change)\w+"
    r"|(?:is|was|looks?|seems?)\s(?:\w+\s)?(?:tempting|a\s(?:trap|distractor))\b|(?:fails|contradicts|violates|fail)\b"
    r"|would\s(?:\w+\s){1,5}?(?:if|had|unless)\b"
    r"|[^.;!?]{0,40}(?<!\bno\s)(?<!without\s)(?<!without\sa\s)(?<!without\sany\s)\b(?:contradiction|absurdity)\b"
    r"|(?:was|were)\smy\s(?:first|initial|original)\b|,?\s?but\s(?:that|this|it)\s(?:is|was)\s(?:not|wrong|incorrect|false)\b"
    r")",
    re.IGNORECASE,
)
"""What takes back the value before it."""
_CUES_BEHIND: Final = (
    *(words if words != "out" else " out" for words in REFUTING),
    "not", "n't", "n’t", "never", "?", "\uff1f", "tempting", "trap", "distractor", "fail", "contradict", "violate",
    "my first", "my initial", "my original", "disagree", "doubt", "extraneous", "spurious", "too ", "outside",
    "ignored", "thrown", "would", "absurdity",
)  # fmt: skip
_BOUNDED: Final = re.compile(
    r"\b(?:is|are|was|were|be|lies|lie|stays?)\s+(?:\w+ly\s+|always\s+|never\s+)?(?:at\s(?:least|most)|(?:no\s)?(?:less|more|greater|fewer|"
    r"larger|smaller|bigger|higher|lower)\sthan(?:\sor\sequal\sto)?|under|over|above|below|up\sto|within|outside|divisible\sby|"
    r"an?\s(?:multiple|factor|divisor)\sof|congruent\sto|close\sto|near)\s*[$\\(]{0,3}\Z"
    r"|\b(?:exceeds?|surpass(?:es)?)\s*[$\\(]{0,3}\Z|[<>≤≥≠]\s?[$\\(]{0,3}\Z|\\(?:leq?|geq?|neq?|lt|gt)\s?\Z",
    re.IGNORECASE,
)
_BOUNDS: Final = (
    "least", "most", "than", "to", "under", "over", "above", "below", "within", "outside", "by", "of", "near",
    "exceed", "exceeds", "surpass", "surpasses", "<", ">", "≤", "≥", "≠", "le", "leq", "ge", "geq", "ne", "neq",
    "lt", "gt",
)  # fmt: skip
"""What a bound before a value ends in."""
_LED_TO: Final = re.compile(
    r"(?:\b(?:is|are|was|were|be|equals?|makes?|making|gives?|giving|leaves?|leaving|gets?|got|yields?|totals?|totaling|becomes?|"
    r"remains?|obtains?|finds?|concludes?|costs?|comes?\s(?:out\s)?to|amounts?\sto|reduces\sto|rounds?(?:\sup|\sdown|\soff)?\sto|simplifies\sto|evaluates\sto)|[=≈:→⇒]|'s|’s)\s*"
    r"(?:(?:therefore|thus|then|exactly|only|just|about|approximately|roughly|around|equal\sto|a\stotal\sof|also|now|still|simply|"
    r"actually|clearly|indeed|really|precisely|nearly|that)\s+){0,3}(?:[A-Za-z]\w{0,2}\s?=\s?)?[*_`\"“'(]{0,4}\Z",
    re.IGNORECASE,
)
_COMPUTED: Final = re.compile(r"[\w)%°]\s?[=≈]\s?[*_`]{0,3}\Z")
"""What comes after it is the outcome of a computation: "a total of 9 + 6 = 15 liters of the 24"."""
_IS_COMPUTED: Final = re.compile(r"\s?(?:[a-z]+\s?){0,3}=", re.IGNORECASE)
"""What comes before it is a step of one."""
_LEADS: Final = re.compile(
    r"[\s*_$)`]{0,4}(?:[a-z]+\s){0,2}(?:is|are|was|must\sbe)\s(?:the|our|my|your|thus|therefore|indeed)\b"
    r"(?!\s(?:given|number\sof\s(?:steps|cases)))",
    re.IGNORECASE,
)
_BESIDES: Final = re.compile(
    r"\b(?:in|within|after|during|per|each|every|among|amongst|of\swhich(?:\sare|\sis|\swere)?|out\sof|with|at|from|on|before|by|since|than|until|till|"
    r"under|over|through|across|throughout)\s+(?:(?:the|a|an|her|his|their|all|these|those|last|first|next|another|about|only|page|day|"
    r"year|week|age|line|row)\s+){0,2}[$\\(]{0,2}\Z",
    re.IGNORECASE,
)
_OF_THEM: Final = re.compile(
    r"\s?(?:[a-z]+\s){0,2}of\s+(?:the\s|her\s|his\s|their\s|those\s|these\s|all\s){0,2}[$\\(]{0,2}", re.IGNORECASE
)
"""Between "15 liters" and "of the 24"."""
_COMPARES: Final = re.compile(
    r"\s*(?:\w+\s)?(?:more|less|fewer|greater|smaller|larger|older|younger|times)\b", re.IGNORECASE
)
_GOES_ON: Final = re.compile(
    r"[,;:]\s|\b(?:and|so|then|thus|hence|which|giving|making|or|but|therefore|leaving)\b", re.IGNORECASE
)
_ALTERNATIVE: Final = re.compile(
    r"[\s$*_)]{0,4}(?:[a-z]{1,12}\s){0,2},?\s?(?:\(\s?)?(?:or|maybe|perhaps|possibly|and/or)\s(?:else\s|maybe\s|perhaps\s|possibly\s|rather\s)?"
    r"(?:[a-zA-Z]\w{0,3}\s?=\s?)?\Z|\s+",
    re.IGNORECASE,
)
_NOTHING: Final = re.compile(
    r"\b(?:no\s(?:real\s|integer\s|valid\s|such\s|possible\s|positive\s|whole\s|rational\s)?(?:solutions?|answer|roots?|integers?|numbers?|values?)"
    r"|does\snot\sexist|doesn['’]t\sexist|cannot\sbe\sdetermined|can['’]t\sbe\sdetermined|not\senough\sinformation|"
    r"insufficient\sinformation|infinitely\smany(?:\ssolutions)?|undefined|impossible\sto\s(?:determine|say|tell))\b"
    r"(?!\s(?:other|except|besides|but|for|when|if|of|less|more|greater|smaller|larger|between|until|below|above|is\s(?:left|needed)))",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(
    r"[\s*_>(#-]{0,6}(?:check(?:ing|s)?\b|verif(?:y|ying|ication)\b|(?:to|let['’]?s|let\sus|let\sme|we\s(?:can\s)?|i\s)\s?(?:double[\s-])?(?:check|verify|confirm)"
    r"|double[\s-]check|sanity\scheck|proof\b|indeed\b|note\b|notes\b|remark|hint|p\.?s\.|for\s(?:reference|comparison|example|instance)|"
    r"alternatively|e\.g\.|i\.e\.|hope\b|i\shope|let\sme\sknow|feel\sfree|source|recall|remember|by\sthe\sway|incidentally|"
    r"if\syou|(?:this|that|which)\s(?:matches|agrees|is\sconsistent|makes\ssense|checks)|as\sa\s(?:check|sanity)|compare|in\sgeneral|"
    r"on\sthe\sother\shand|common\s(?:mistake|error)|(?:many|some)\s(?:students|people)|(?:a|one)\scommon|one\smight|you\smight|it\sis\stempting|it\smay\sseem|"
    r"difficulty|time\s(?:taken|spent)|confidence|this\stook|i\s(?:used|spent|took)|the\s(?:other|wrong|incorrect)\s|similar(?:ly)?\b|key\s(?:idea|fact))",
    re.IGNORECASE,
)
_SETTING: Final = re.compile(
    r"[\s*_>(#-]{0,6}(?:\d{1,2}[.)]\s)?(?:see\b|refer\b|cf\b|given\b(?![^,]{1,80},)|we\s(?:are|were)\s(?:given|told|asked)|we\sknow\b|let\b(?!['’]s\ssay)|suppose|assume|consider"
    r"|the\s(?:question|problem|task|exercise)\s(?:asks|says|states|is|gives|wants|tells)|we\s(?:need|want|have|wish|must|should|will|could|can)\s(?:to\s|now\s|then\s|next\s){0,2}"
    r"(?:find|solve|compute|calculate|determine|divide|multiply|add|subtract|use|apply|consider|show|prove|count|start|look|check|try|split)"
    r"|i\s(?:need|want|will|would(?!\s(?:say|answer|conclude|guess|go)\b)|should|must|am\sgoing)\s|i['’]ll\s|next\b,?\s(?:we|i|divide|multiply|add|subtract)|first,?\s(?:we|i|let|divide|multiply|add|subtract)"
    r"|step\s\d|this\s(?:is|was)\s(?:problem|question|exercise)|i\s(?:solved|did|tried|worked|considered)\b|(?:question|problem|given|data)\s?\d{0,3}\s?:|there\sare\s\d{1,2}\ssteps|(?:find|solve|compute|calculate|determine|evaluate|simplify|divide|multiply|subtract|add)\s|options?\b|choices?\b|the\soptions|possible\s)",
    re.IGNORECASE,
)
_COMES_TO: Final = re.compile(
    r"[\d)%]\s?=\s?[-−$\\\d]|\b(?:which|to|and)\s(?:gives?|produces?|yields?|gets?|obtain|leaves?|makes?|equals?|is)\b"
    r"|\b(?:giving|yielding|producing|resulting)\b|\bso\b|\btherefore\b",
    re.IGNORECASE,
)
"""A sentence that begins with what is to be done, and comes to an outcome all the same."""
_BREAK: Final = re.compile(r"(?<=[.!?。])[*_)\"”]{0,3}\s+(?=\S)|(?<=。)|\n+")
_ABBREVIATION: Final = re.compile(
    r"\b(?:eqs?|eqns?|figs?|no|nos|pp?|vs|approx|e\.g|i\.e|cf|ca|mr|mrs|ms|dr|st|sec|ch|vol|a\.m|p\.m|[A-Z])\.\Z",
    re.IGNORECASE,
)
_REACH: Final = 50
"""Characters before a value in which a bound may stand."""
_LONGEST_CONTEXT: Final = 90
"""Characters before a value that may deny it."""
_NEAR: Final = 50
"""Characters before a value in which a verb leads to it."""
_BEFORE: Final = (
    (
        ("not", "n't", "n’t", "never", "nor", "neither", "reject", "discard", "disregard", "exclud", "eliminat",
         "ignor", "rul", "except", "other than", "no longer", "extraneous", "spurious", "invalid", "wrong", "incorrect",
         "throw", "tempting", "mistaken", "erroneous", "instead of", "rather than", "naive", "at first",
         "initially", "originally", "previously", "formerly", "used to", "refus"),
        _DENIED_BEFORE,
    ),
    (
        ("<", ">", "≤", "≥", "≠", "\\le", "\\ge", "\\ne", "\\lt", "\\gt", "least", "most", "than", "under", "over",
         "exceed", "surpass", "above", "below", "up to", "within", "outside", "divisible by", "multiple of",
         "factor of", "divisor of", "congruent", "close", "near"),
        _BOUNDED,
    ),
    (("if", "unless", "whether", "suppos", "assum", "though", "true that", "false that", "to be"), _SUPPOSED_BEFORE),
    (("would",), _CONTRARY_BEFORE),
    (("answer", "result", "solution"), _OTHER_VERB_BEFORE),
)  # fmt: skip
"""Patterns for what stands before a value that is denied, and the words without which each cannot match."""


class Statement(NamedTuple):
    """A value that a sentence states."""

    text: str
    start: int
    """Where it begins in the sentence."""
    end: int
    direct: bool = False
    """Whether a verb or an equals sign leads to it, and nothing comes after."""


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence of a text begins and ends; a line ends one."""
    start = 0
    for found in _BREAK.finditer(text):
        if "\n" not in found[0] and _ABBREVIATION.search(text, max(start, found.start() - 8), found.start()):
            continue
        if found.start() > start:
            yield start, found.start()
        start = found.end()
    if start < len(text):
        yield start, len(text)


def is_aside(sentence: str) -> bool:
    """Whether a sentence only checks or remarks something, where others state it."""
    return _ASIDE.match(sentence) is not None


def is_setting(sentence: str) -> bool:
    """Whether a sentence says what is given, what is asked or what comes next, and so no answer."""
    return _SETTING.match(sentence) is not None and _COMES_TO.search(sentence) is None


def all_stated(text: str) -> bool:
    """Whether a text is one statement in all its parts: a formula, some words, or values side by side."""
    if len(text) > LONGEST_SENTENCE or without_references(text) != text or is_setting(text) or is_aside(text):
        return False
    if len(list(sentences(text))) > 1:
        return False
    values = values_in(text)
    if len(_not_denied(text, values)) < len(values) or text.rstrip().endswith("?"):
        return False
    if not re.search(r"[A-Za-z]{3}", re.sub(r"\\[A-Za-z]+", " ", text)):
        return True
    one = len(values) == 1 and text[values[0].start] not in "$\\"
    return not one and not _subordinate(text) and not _NOTHING.search(text)


def without_references(text: str) -> str:
    """`text` with the numbers of equations, steps and pages blanked out; as long as before."""
    return _REFERENCE.sub(lambda found: " " * len(found[0]), text)


def values_in(text: str) -> list[Statement]:
    """Every value in a text, with the tokens of a time, a date or a formula together."""
    found = []
    for token in _TOKEN.finditer(text):
        inner = inside(token[0]) if token["formula"] else token[0].strip()
        if any(map(str.isalnum, inner)) or set("π√∞½¼¾⅓⅔") & set(inner):
            found.append(Statement(inner, token.start(), token.end()))
    return found


def statement_in(sentence: str) -> Statement | None:
    """What a sentence states; `None` where it states nothing, asks, or leaves it open."""
    return statement_in_masked(without_references(sentence[-LONGEST_SENTENCE:]))


def statement_in_masked(masked: str) -> Statement | None:
    """What a sentence `without_references` states."""
    if masked.rstrip(' *_)"”').endswith(("?", "\uff1f")):
        return None
    back = _TAKEN_BACK.search(masked)
    begin = back.end() if back is not None else 0
    values = [value for value in values_in(masked) if value.start >= begin]
    kept = _not_denied(masked, values)
    asides = _subordinate(masked)
    if len(kept) < len(values):  # "It cannot be 36, since 36 is even" denies both
        denied = {value.text for value in values if value not in kept}
        kept = [value for value in kept if value.text not in denied or not _is_within(value, asides)]
    ranked = [(_rank(masked, value, kept, asides), value) for value in kept]
    nothing = _NOTHING.search(masked)
    if nothing is not None and not any(rank < 1 and value.start > nothing.end() for rank, value in ranked):
        return Statement(nothing[0], nothing.start(), nothing.end(), direct=True)
    if not ranked:
        return None
    best = min(rank for rank, _ in ranked)
    chosen = [value for rank, value in ranked if rank == best][-1]
    return _with_alternatives(masked, kept, chosen)._replace(direct=best < 0)


def inside(formula: str) -> str:
    """A formula without its dollar signs or brackets."""
    width = 1 if formula.startswith("$") and not formula.startswith("$$") else 2
    return formula[width:-width].strip()


def _before(text: str, value: Statement) -> str:
    return text[max(0, value.start - _LONGEST_CONTEXT) : value.start]


def is_denied(text: str, start: int, end: int) -> bool:
    """Whether a text says that what stands from `start` to `end` is not the case, or only a bound."""
    before = text[max(0, start - _LONGEST_CONTEXT) : start]
    if (first := _first_of_list(before, text, start, end)) is not None:
        return is_denied(text, first, first + 1)
    return _denies(text, before, end, _denials_in(before + text[end : end + _LONGEST_CONTEXT]))


def _first_of_list(before: str, text: str, start: int, end: int) -> int | None:
    """Where the list of letters begins that a letter is in the middle or at the end of; `None` where there is none."""
    short = end - start <= _LETTER_IN_BRACKETS and not text[start].isdigit()
    listed = _LETTERS_BEFORE.search(before) if short else None
    if listed is None or not (_JOINED_BEFORE.search(before) or _LETTERS_AFTER.match(text, end)):
        return None
    at = start - len(before) + listed.start()
    return at + (text[at] in "([")


class _Denials(NamedTuple):
    """What may deny a value in a text, by the words that occur there."""

    before: list[re.Pattern[str]]
    disowns: list[re.Pattern[str]]
    behind: bool
    """Whether something behind a value may take it back."""


def _denials_in(text: str) -> _Denials:
    lower = text.lower()
    before = [pattern for cues, pattern in _BEFORE if _has_any(lower, cues)]
    disowns = [_DISOWNS] if _has_any(lower, _CUES) else []
    if _has_any(lower, _CUES_IN_ASCII if lower.isascii() else _CUES_ABROAD):
        disowns.append(_DENIES_ABROAD)
    return _Denials(before, disowns, _has_any(lower, _CUES_BEHIND))


def _has_any(text: str, cues: Sequence[str]) -> bool:
    for cue in cues:  # noqa: SIM110 - twice as fast as any()
        if cue in text:
            return True
    return False


def _denies(text: str, before: str, end: int, denials: _Denials) -> bool:
    """Whether a text denies a value that ends at `end`: right before it, in the clause that leads to it, or behind."""
    if denials.behind and (_DENIED_AFTER.match(text, end) or _REFUTED_AFTER.match(text, end)):
        return True
    if not denials.before and not denials.disowns:
        return False
    for pattern in denials.before:
        if pattern is _BOUNDED and not before.rstrip(" \t\n$\\(").lower().endswith(_BOUNDS):
            continue
        if pattern.search(before, max(0, len(before) - _REACH) if pattern in (_BOUNDED, _OTHER_VERB_BEFORE) else 0):
            return True
    return any(_is_disowned(before, pattern) for pattern in denials.disowns)


def _is_disowned(before: str, pattern: re.Pattern[str]) -> bool:
    """Whether the clause that leads to a value denies it as a whole: "I do not think that the answer is"."""
    if pattern is _DISOWNS and not _has_any(before.lower(), _CUES):
        return False
    if pattern.search(before) is None:
        return False
    starts = [found.end() for found in _CLAUSE_STARTS.finditer(before)]
    return pattern is _DENIES_ABROAD or pattern.search(before, starts[-1] if starts else 0) is not None


def _not_denied(text: str, values: list[Statement]) -> list[Statement]:
    """The values in a sentence that it does not deny."""
    denials = _denials_in(text)
    kept: list[Statement] = []
    denied: Statement | None = None
    for value in values:
        shares = denied is not None and _SHARES.fullmatch(text, denied.end, value.end) is not None
        if shares or _denies(text, _before(text, value), value.end, denials):
            denied = value
        else:
            denied = None
            kept.append(value)
    return kept


def _leads(text: str, value: Statement) -> bool:
    """Whether a verb or an equals sign leads to a value, or from it to what it is."""
    near = text[max(0, value.start - _NEAR) : value.start]
    return _LED_TO.search(near) is not None or _LEADS.match(text, value.end) is not None


def _subordinate(text: str) -> list[tuple[int, int]]:
    """Where the subordinate clauses and the brackets of a sentence are."""
    found: list[tuple[int, int]] = []
    for clause in _SUBORDINATE.finditer(text):
        if found and clause.start() < found[-1][1]:
            continue
        end = _CLAUSE_END.search(text, clause.end())
        found.append((clause.start(), end.start() if end is not None else len(text)))
    return found


def _rank(  # noqa: PLR0911 - one line per rank
    text: str, value: Statement, values: list[Statement], asides: list[tuple[int, int]]
) -> int:
    """How far a value is from what the sentence states: -1 for its statement, more for what it only mentions."""
    if _is_within(value, asides):
        return 3
    if _only_a_name(value):
        return 2
    if _IS_COMPUTED.match(text, value.end):
        return 2
    before = _before(text, value)
    if _COMPUTED.search(before):
        return -1 if _GOES_ON.search(text, value.end) is None else 0
    if _BESIDES.search(before) or _COMPARES.match(text, value.end):
        return 1
    if any(_OF_THEM.fullmatch(text, other.end, value.start) for other in values if other.end <= value.start):
        return 1
    goes_on = _GOES_ON.search(text, value.end)
    return 0 if goes_on is not None or not _leads(text, value) else -1


def _is_within(value: Statement, clauses: list[tuple[int, int]]) -> bool:
    return any(start <= value.start < end for start, end in clauses)


def _only_a_name(value: Statement) -> bool:
    """Whether a formula is only the name of something: `$x$`, `$f(x)$`, `$ABC$`."""
    return (
        re.fullmatch(r"\\?(?!pi\b)[A-Za-z]{1,6}(?:_\w|_\{\w+\}|')?(?:\([a-z](?:,\s?[a-z])?\))?", value.text) is not None
    )


def _with_alternatives(text: str, values: list[Statement], chosen: Statement) -> Statement:
    """What is stated, with what else is offered beside it: "5 or 6" is not 6."""
    first = last = values.index(chosen)
    while first and _ALTERNATIVE.fullmatch(text, values[first - 1].end, values[first].start):
        first -= 1
    while last + 1 < len(values) and _ALTERNATIVE.fullmatch(text, values[last].end, values[last + 1].start):
        last += 1
    if first == last:
        return chosen
    return Statement(
        " or ".join(value.text for value in values[first : last + 1]), values[first].start, values[last].end
    )
