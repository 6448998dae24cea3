# SPDX-License-Identifier: Apache-2.0
"""Which language a prompt asks the answer to be in: "Write it in Spanish", "translate … to French", "auf Deutsch".

    sentence ─▶ "in LANGUAGE", "to LANGUAGE", "use LANGUAGE", "a LANGUAGE translation" ─▶ is it asked for, or spoken of?

A language is asked for where the sentence asks for something to be said and names the language at its own place. It is
only spoken of in "a Spanish recipe", "in Spanish cuisine", "a book written in Spanish", "from Spanish to English" (the
first), "not in Spanish" and "how do you say this in Spanish?". Names are read in English and in the language itself.
"""

# ruff: noqa: RUF001, E501 - other alphabets are the subject, and a language is one line of a table

from __future__ import annotations

import re
from typing import Final

from reward_kit.rewards._support.prose import outside_code

__all__ = ["requested_language"]

_NAMES: Final = """
af Afrikaans | sq Albanian shqip | am Amharic አማርኛ | ar Arabic العربية عربي | hy Armenian հայերեն | az Azerbaijani
| eu Basque euskara | bn Bengali Bangla বাংলা | bs Bosnian bosanski | bg Bulgarian български | my Burmese
| ca Catalan català | zh Chinese Mandarin 中文 汉语 漢語 普通话 | hr Croatian hrvatski | cs Czech čeština
| da Danish dansk | nl Dutch Nederlands | en English anglais inglés inglese Englisch inglês английский 英文 英语 英語 영어
| et Estonian eesti | fi Finnish suomi | fr French français francés francese Französisch francês французский 法语 フランス語
| gl Galician galego | ka Georgian ქართული | de German Deutsch allemand alemán tedesco alemão немецкий 德语 ドイツ語
| el Greek ελληνικά | gu Gujarati ગુજરાતી | he Hebrew עברית | hi Hindi हिंदी हिन्दी | hu Hungarian magyar
| is Icelandic íslenska | id Indonesian | ga Irish Gaeilge | it Italian italiano italien Italienisch итальянский
| ja Japanese 日本語 日语 japonais japonés | kn Kannada ಕನ್ನಡ | kk Kazakh | km Khmer ខ្មែរ | ko Korean 한국어 韩语 | lo Lao ລາວ
| la Latin | lv Latvian | lt Lithuanian lietuvių | mk Macedonian македонски | ms Malay | ml Malayalam മലയാളം
| mr Marathi मराठी | mn Mongolian | ne Nepali नेपाली | no Norwegian norsk | fa Persian Farsi فارسی | pl Polish polski
| pt Portuguese português portugués portugais | pa Punjabi ਪੰਜਾਬੀ | ro Romanian română
| ru Russian русский russe ruso Russisch 俄语 ロシア語 | sr Serbian српски srpski | si Sinhala | sk Slovak slovenčina
| sl Slovenian Slovene | es Spanish español castellano espagnol Spanisch spagnolo espanhol испанский 西班牙语 スペイン語
| sw Swahili Kiswahili | sv Swedish svenska | tl Tagalog Filipino | ta Tamil தமிழ் | te Telugu తెలుగు | th Thai ภาษาไทย ไทย
| tr Turkish Türkçe | uk Ukrainian українська | ur Urdu اردو | uz Uzbek | vi Vietnamese | cy Welsh | xh Xhosa
| yo Yoruba | zu Zulu
"""
_CODES: Final = {
    name.casefold(): code
    for entry in _NAMES.split("|")
    for code, *names in [entry.split()]
    for name in names
}  # fmt: skip

_ADVERBS: Final = {
    "es": r"en (?:español|castellano|espagnol)|in spagnolo|em espanhol|auf Spanisch|на испанском|по-испански|用西班牙[语文]",
    "fr": r"en (?:français|francés)|in francese|em francês|auf Französisch|на французском|по-французски|用法[语文]|フランス語で",
    "de": r"auf Deutsch|en (?:allemand|alemán)|in tedesco|em alemão|на немецком|по-немецки|用德[语文]|ドイツ語で",
    "it": r"in italiano|en (?:italien|italiano)|em italiano|auf Italienisch|на итальянском|по-итальянски",
    "pt": r"em português|en (?:portugués|portugais)|in portoghese|auf Portugiesisch",
    "nl": r"in het Nederlands", "da": r"på dansk", "sv": r"på svenska", "no": r"på norsk", "fi": r"suomeksi",
    "pl": r"po polsku|w języku polskim", "cs": r"česky|v češtině", "sk": r"po slovensky|v slovenčine", "hu": r"magyarul",
    "ro": r"în (?:limba )?română", "tr": r"Türkçe (?:olarak|yaz|cevap|yanıt)\w*", "el": r"στα ελληνικά", "bg": r"на български",
    "ru": r"на русском|по-русски|en (?:russe|ruso)|auf Russisch|用俄[语文]|ロシア語で", "uk": r"українською",
    "he": r"בעברית", "ar": r"بالعربية|باللغة العربية|بالعربي", "fa": r"به (?:زبان )?فارسی", "ur": r"اردو میں",
    "hi": r"(?:हिंदी|हिन्दी) में", "mr": r"मराठीत", "bn": r"বাংলায়", "th": r"เป็นภาษาไทย|ภาษาไทย",
    "vi": r"bằng tiếng Việt", "id": r"dalam bahasa Indonesia", "ms": r"dalam bahasa Melayu",
    "zh": r"(?:[用以]|使用)(?:简体|繁體|繁体)?(?:中文|汉语|漢語|普通话)|中国語で", "ja": r"日本語で|用日[语文]", "ko": r"한국어로|한글로|用韩[语文]",
    "en": r"en (?:anglais|inglés)|in inglese|em inglês|auf Englisch|на английском|по-английски|(?:[用以]|使用)英[文语語]|英語で|영어로|po angielsku|på engelska|in het Engels",
}  # fmt: skip
"""How a language is asked for in a prompt that is not English, by the language that is asked for."""

_LANGUAGE: Final = "(?P<language>" + "|".join(sorted(map(re.escape, _CODES), key=len, reverse=True)) + ")"
_WORD_END: Final = r"(?![\w’'-])"
_PLACED: Final = re.compile(
    r"\b(?P<how>in|into|to|using|use|speak|with)\s+(?P<only>(?:only|just|purely|fluent|proper|simple|plain|correct|either|both)\s+)?"
    rf"(?:the\s+)?[\"'“*_]?{_LANGUAGE}{_WORD_END}(?P<after>[\"'”*_]?\s*(?P<next>[\w-]+)?)",
    re.IGNORECASE,
)
_ANOTHER: Final = re.compile(rf"\s*(?:,|/|&|and\b|or\b|,\s*and\b)\s*(?:in\s+)?{_LANGUAGE}{_WORD_END}", re.IGNORECASE)
_NOMINAL: Final = re.compile(
    rf"\b{_LANGUAGE}{_WORD_END}\s+(?P<noun>translation|version|answer|response|reply|output|only)\b"
    rf"|\blanguage\s*(?:is|:|=|must be|should be)\s*{_LANGUAGE.replace('language', 'named')}{_WORD_END}",
    re.IGNORECASE,
)
_ADVERB: Final = re.compile("|".join(f"(?P<{code}>{forms})" for code, forms in _ADVERBS.items()), re.IGNORECASE)

_ASKS: Final = re.compile(
    r"\b(?:write|rewrite|answer|respond|reply|responses?|replies|say|tell|give|explain|describe|speak|talk|translate|"
    r"compose|summari[sz]e|paraphrase|rephrase|draft|provide|produce|generate|create|make|output|present|list|name|"
    r"express|state|convert|render|put|use|using|discuss|continue|finish|complete|show|teach|help|solve|prove|think|"
    r"reason|communicate|converse|chat|want|need|would like|prefer|please|come up|(?:must|should|shall|has to|have to|"
    r"needs? to|will|to) be|only|entire(?:ly)?|language)\b",
    re.IGNORECASE,
)
_TRANSLATES: Final = re.compile(r"\b(?:translat\w+|convert|render|rewrite|switch|change|turn|put)\b", re.IGNORECASE)
_DENIED: Final = re.compile(
    r"(?:\bnot|n['’]t|\bnever|\bwithout|\binstead of|\brather than|\bother than|\bavoid|\bno)\b(?:\s+[\w’']+){0,3}\s*$",
    re.IGNORECASE,
)
_DESCRIBES: Final = re.compile(
    r"(?<!be )(?<!is )(?<!response )(?<!answer )\b(?:written|published|spoken|speaks?|speaking|spoke|said|sung|taught|called|"
    r"known|read|reads|printed|recorded|fluent|native|lessons?|class(?:es)?|courses?|gender|grammar|verbs?|nouns?|words?|"
    r"pronouns?|adjectives?|tenses?|articles|accents?|pronunciation|vocabulary|idioms?|phrases?|means?|conjugations?|"
    r"escrit[oa]s?|écrite?s?|scritt[oaie]|geschrieben\w*)\s*$",
    re.IGNORECASE,
)
_ABOUT_WORDS: Final = re.compile(
    r"\bhow (?:do|does|would|can|could|should) (?:you|i|we|one|people) (?:say|write|spell|call|pronounce)\b|\bhow to say\b"
    r"|\bwhat(?:'s|’s| is| does| are)\b[^?]*\b(?:word|mean|called|term)\b|¿?cómo se (?:dice|escribe)|comment (?:dit|écrit)-on"
    r"|wie sagt man|come si (?:dice|scrive)|como se (?:diz|escreve)|как сказать|怎么说|怎麼說|何と言|어떻게 말",
    re.IGNORECASE,
)
_FOLLOWING: Final = (
    "language only please and or but with without about for that which to using on of from as so because when if while "
    "no not then instead explaining describing how what why where who whether is are the a an this these my your his "
    "her their our by at in under over between like here first now regardless throughout entirely exclusively including "
    "consisting titled called named it i you we he she they be must should rather through after before during until "
    "translation text tongue mode"
)
_GOES_ON: Final = frozenset(_FOLLOWING.split())
"""Words that may come after a language that is asked for. Another one makes it an adjective: "in Spanish cuisine"."""
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|[。！？\n]+")
_QUOTED: Final = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»")
_FEW_WORDS: Final = 3
_LONGEST: Final = 20_000
"""Characters of a prompt that are read at each end."""


def requested_language(prompt: str) -> str | None:
    """The code of the language that `prompt` asks for; None where it asks for none, or for several.

    >>> requested_language("Write a response in Spanish."), requested_language("Translate this from Spanish to English.")
    ('es', 'en')
    >>> requested_language("Give me a Spanish recipe."), requested_language("Réponds en français.")
    (None, 'fr')
    """
    if len(prompt) > 2 * _LONGEST:
        prompt = f"{prompt[:_LONGEST]}\n{prompt[-_LONGEST:]}"
    prose = _QUOTED.sub(_without_long_quote, outside_code(prompt))
    found = {code for sentence in _SENTENCE.split(prose) for code in _requested(sentence)}
    return found.pop() if len(found) == 1 else None


def _without_long_quote(quote: re.Match[str]) -> str:
    """What is quoted is material; a quoted word or two may be the language's name."""
    return quote[0] if len(quote[0].split()) <= _FEW_WORDS else " "


def _requested(sentence: str) -> set[str]:
    if _ABOUT_WORDS.search(sentence):
        return set()
    found = {str(adverb.lastgroup) for adverb in _ADVERB.finditer(sentence) if _is_free(sentence[: adverb.start()])}
    if not _ASKS.search(sentence):
        return found
    for placed in _PLACED.finditer(sentence):
        if _is_asked_for(sentence, placed):
            found.add(_CODES[placed["language"].casefold()])
            another = _ANOTHER.match(sentence, placed.end("language"))
            found |= {_CODES[another["language"].casefold()]} if another else set()
    for nominal in _NOMINAL.finditer(sentence):
        if not _DENIED.search(sentence[: nominal.start()]):
            found.add(_CODES[(nominal["language"] or nominal["named"]).casefold()])
    return found


def _is_asked_for(sentence: str, placed: re.Match[str]) -> bool:
    before = sentence[: placed.start()]
    how = placed["how"].casefold()
    if how == "to" and not _TRANSLATES.search(before):
        return False
    if how == "with" and not placed["only"]:
        return False
    following = placed["next"]
    return (following is None or following.casefold() in _GOES_ON) and _is_free(before)


def _is_free(before: str) -> bool:
    """Whether what stands before a language neither denies it nor makes it a description."""
    return not _DENIED.search(before) and not _DESCRIBES.search(before)
