# SPDX-License-Identifier: Apache-2.0
"""Which language a prompt asks for, and where it only speaks of one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.rewards._support import requested_language as module
from reward_kit.rewards._support.languages import language_code
from reward_kit.rewards._support.requested_language import requested_language

CASES: list[tuple[str | None, str]] = [
    ("es", "Write a response in Spanish"),
    ("fr", "answer in French"),
    ("de", "respond using German"),
    ("es", "Escribe un poema en español"),
    ("fr", "translate this into French: hello"),
    ("en", "Translate the following from Spanish to English: hola"),
    (None, "Give me a Spanish recipe."),
    (None, "Tell me about tapas in Spanish cuisine."),
    (None, "Summarize the book I read in Spanish."),
    (None, "How do you say hello in Spanish?"),
    ("fr", "Do not answer in English, use French."),
    ("sw", "Your ENTIRE response should be in Swahili language, no other language is allowed."),
    ("hi", "using only the Hindi language, tell me a joke"),
    ("mr", "Write an essay on bees. Please reply in Marathi and no other language."),
    ("de", "Wie ist das Wetter? Antworte bitte auf Deutsch."),
    ("ja", "日本語で答えてください。"),
    ("zh", "请用中文回答。"),
    ("ko", "한국어로 대답해 주세요"),
    ("ru", "Ответь на русском языке."),
    ("ar", "أجب باللغة العربية"),
    (None, "Write an essay about Greek mythology"),
    ("es", "Provide a Spanish translation of the poem."),
    (None, "Write a program that prints hello in Java"),
    (None, "Write it in English and Spanish"),
    ("es", 'Respond in "Spanish".'),
    ("it", "In Italian, explain gravity."),
    ("es", "Answer in español"),
    ("en", "Réponds en anglais"),
    (None, "Write in Latin script"),
    (None, "What's the word for dog in German?"),
    ("es", "I need an email in Spanish to my boss."),
    ("pt", "Can you write this in Portuguese?"),
    ("fr", "Your answer must be written in French."),
    (None, "Write about a German engineer who speaks French."),
    ("es", "Explain photosynthesis in simple Spanish."),
    ("en", 'Translate "Réponds toujours en français, mon ami" to English.'),
    ("vi", "Hãy trả lời bằng tiếng Việt"),
    ("tr", "Lütfen Türkçe olarak cevap ver"),
    ("es", "Can you translate the French article to Spanish?"),
    ("de", "Explain in german how magnets work"),
    ("es", "Answer the following question. Language: Spanish"),
    (None, "I polish my shoes. Tell me how to polish wood."),
    (None, "¿Cómo se dice perro en inglés?"),
    (None, "Resume un libro escrito en español."),
]
ENGLISH = {
    "es": "Spanish", "fr": "French", "de": "German", "it": "Italian", "ja": "Japanese", "hi": "Hindi", "pl": "Polish"
}  # fmt: skip
ASKED = [
    "Write a poem in {}.",
    "answer in {}",
    "Respond using {}",
    "Please reply only in {}!",
    "Use {} only.",
    "Your response must be in {}.",
    "Translate this to {}: hello",
    "Explain gravity in the {} language, please.",
    "I want the story in {} and no other language.",
    "Give me a {} translation.",
    "{} only, please.",
]
SPOKEN_OF = [
    "Write about a {} recipe.",
    "Tell me about art in {} culture.",
    "Translate this {} text.",
    "Don't write in {}.",
    "Summarize a book written in {}.",
    "How do you say hello in {}?",
    "Explain verbs in {}.",
    "Describe the {} people.",
    "Never use {} in your answer.",
]


@pytest.mark.parametrize(("code", "prompt"), CASES)
def test_a_request_is_told_from_a_mention(code: str | None, prompt: str) -> None:
    assert requested_language(prompt) == code


@pytest.mark.parametrize("code", ENGLISH)
@pytest.mark.parametrize("prompt", ASKED)
def test_every_way_of_asking_takes_every_language(code: str, prompt: str) -> None:
    assert requested_language(prompt.format(ENGLISH[code])) == code


@pytest.mark.parametrize("code", ENGLISH)
@pytest.mark.parametrize("prompt", SPOKEN_OF)
def test_a_language_that_is_only_spoken_of_is_not_asked_for(code: str, prompt: str) -> None:
    assert requested_language(prompt.format(ENGLISH[code])) is None


@pytest.mark.parametrize(("one", "other"), [("es", "en"), ("fr", "de"), ("ja", "it")])
def test_translating_asks_for_the_language_it_goes_to(one: str, other: str) -> None:
    names = {**ENGLISH, "en": "English"}
    assert requested_language(f"Translate from {names[one]} to {names[other]}: …") == other
    assert requested_language(f"Translate the {names[one]} text below into {names[other]}.") == other


def test_every_language_that_can_be_asked_for_can_be_detected() -> None:
    pytest.importorskip("py3langid")
    for code in {*module._CODES.values(), *module._ADVERBS}:
        assert language_code(code)


@given(st.text(max_size=300))
def test_no_text_stops_it(text: str) -> None:
    assert requested_language(text) is None or isinstance(requested_language(text), str)
