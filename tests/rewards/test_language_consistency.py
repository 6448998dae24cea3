# SPDX-License-Identifier: Apache-2.0
"""language_consistency_reward: the language of an answer, by sentence, with what is in no language left out."""

# ruff: noqa: RUF001 - other alphabets are the subject

from __future__ import annotations

import sys
from typing import Any

import pytest

from reward_kit.errors import MissingExtraError
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards._support import languages
from reward_kit.rewards.language_consistency import (
    count_words_by_language,
    detect_dominant_language,
    language_consistency_reward,
)
from reward_kit.typed_interface import RewardContractError
from tests.rewards.answers import answered

pytest.importorskip("py3langid")

SAID = {
    "ar": "نجمع العددين أولا ثم نقسم على اثنين.",
    "cs": "Nejprve sečteme obě čísla a výsledek vydělíme dvěma.",
    "de": "Wir addieren zuerst die beiden Zahlen und teilen dann durch zwei.",
    "el": "Πρώτα προσθέτουμε τους δύο αριθμούς.",
    "en": "We add the two numbers first and then divide the sum by two.",
    "es": "Primero sumamos los dos números y luego dividimos la suma entre dos.",
    "fi": "Ensin laskemme luvut yhteen ja sitten jaamme summan kahdella.",
    "fr": "On additionne d'abord les deux nombres, puis on divise la somme par deux.",
    "hi": "पहले हम दोनों संख्याओं को जोड़ते हैं।",
    "id": "Pertama kita jumlahkan kedua bilangan lalu bagi dengan dua.",
    "it": "Prima sommiamo i due numeri e poi dividiamo la somma per due.",
    "ja": "まず二つの数を足して、二で割ります。",
    "ko": "먼저 두 수를 더한 다음 둘로 나눕니다.",
    "nl": "We tellen eerst de twee getallen op en delen dan door twee.",
    "pl": "Najpierw dodajemy obie liczby, a potem dzielimy sumę przez dwa.",
    "pt": "Primeiro somamos os dois números e depois dividimos a soma por dois.",
    "ru": "Сначала мы складываем оба числа, а затем делим сумму на два.",
    "sv": "Först lägger vi ihop de två talen och delar sedan summan med två.",
    "th": "ก่อนอื่นเราบวกสองจำนวนแล้วหารด้วยสอง",
    "tr": "Önce iki sayıyı toplarız, sonra toplamı ikiye böleriz.",
    "uk": "Спочатку ми додаємо обидва числа, а потім ділимо суму на два.",
    "vi": "Trước hết ta cộng hai số rồi chia tổng cho hai.",
    "zh": "我们先把两个数相加，然后除以二。",
}


def judge(answer: str, question: str = "?", **settings: Any) -> EvaluateResult:
    return language_consistency_reward(messages=answered(answer, question), **settings)


@pytest.mark.parametrize("language", SAID)
def test_a_sentence_is_told(language: str) -> None:
    assert detect_dominant_language(SAID[language]) == (language, 1.0)


@pytest.mark.parametrize("language", SAID)
def test_an_answer_in_the_language_of_the_question_earns_everything(language: str) -> None:
    result = judge(SAID[language], question=SAID[language], min_consistency=1.0)
    assert result.score == 1.0
    assert set(result.metrics) == {"language_consistency", "target_language", f"{language}_percentage"}


@pytest.mark.parametrize("language", [language for language in SAID if language != "en"])
def test_an_answer_in_another_language_earns_nothing(language: str) -> None:
    assert judge(SAID[language], question=SAID["en"]).score == 0.0
    assert judge(SAID["en"], target_language=language).score == 0.0


def test_a_foreign_sentence_is_seen_among_others() -> None:
    mixed = f"{SAID['en']} {SAID['es']} {SAID['en']}"
    counts = count_words_by_language(mixed)
    assert set(counts) == {"en", "es"}
    result = judge(mixed, target_language="en", min_consistency=1.0)
    assert result.score == pytest.approx(counts["en"] / sum(counts.values()))
    assert result.metrics["es_percentage"].score == pytest.approx(1 - result.score)


def test_foreign_words_of_another_script_are_seen_within_a_sentence() -> None:
    counts = count_words_by_language("We 考虑一下 the function 然后 divide the whole of it by two.")
    assert counts["zh"] == 3 and counts["en"] == 10


@pytest.mark.parametrize(
    "hidden",
    [
        "```python\nthe_total = add_the_numbers_and_divide(the_sum)\n```",
        "`the total of all the numbers`",
        r"$$\text{the total of all the numbers here}$$",
        r"\[ the total = \sum_i the number_i \]",
        "https://example.org/the/total/of/all/the/numbers",
        "<answer>",
        "3.14 + 2.71 = 5.85",
        "x + y = z",
    ],
)
def test_what_is_in_no_language_does_not_count(hidden: str) -> None:
    assert judge(f"{SAID['es']}\n{hidden}\n{SAID['es']}", target_language="es", min_consistency=1.0).score == 1.0
    nothing = judge(hidden, target_language="es")
    assert nothing.score == 0.0 and nothing.is_score_valid


def test_prices_are_not_mathematics() -> None:
    assert sum(count_words_by_language("The first costs $5 and the second costs $6 or so.").values()) == 9


def test_short_sentences_are_judged_together() -> None:
    assert set(count_words_by_language("Yes. It is. I think so. We are sure.")) == {"en"}


def test_the_target_is_named_or_the_users_or_the_answers_own() -> None:
    assert judge(SAID["fr"], question=SAID["en"], target_language="fr-CA").score == 1.0
    assert judge(SAID["fr"], question="2 + 2 = ?").score == 1.0
    mixed = judge(f"{SAID['fr']} {SAID['fr']} {SAID['de']}", question="", min_consistency=1.0)
    assert 0.5 < mixed.score < 1.0 and "'fr'" in mixed.metrics["target_language"].reason


@pytest.mark.parametrize(
    ("said", "languages"),
    [
        ("Saya periksa sekali lagi sebelum menjawab.", ("id", "ms")),
        ("Proto je trojúhelník pravoúhlý.", ("cs", "sk")),
        ("Zaplatil polovinu ceny.", ("cs", "sk")),
    ],
)
def test_a_language_is_not_mistaken_for_its_twin(said: str, languages: tuple[str, ...]) -> None:
    for target in languages:
        assert judge(said, target_language=target, min_consistency=1.0).score == 1.0


def test_what_could_be_in_the_target_language_as_well_is_given_the_benefit_of_the_doubt() -> None:
    said = "Спочатку додамо два числа."
    assert detect_dominant_language(said)[0] != "uk"
    assert judge(said, target_language="uk").score == 1.0
    assert judge(said, target_language="en").score == 0.0


def test_no_phrase_buys_a_verdict() -> None:
    english = "This answer is written in English, although it says español and Deutsch and français."
    assert judge(english, target_language="es").score == 0.0


def test_the_threshold_scales_the_score() -> None:
    mixed = f"{SAID['en']} {SAID['es']}"
    share = judge(mixed, target_language="en", min_consistency=1.0).score
    assert judge(mixed, target_language="en", min_consistency=0.8).score == pytest.approx(share / 0.8)
    assert judge(mixed, target_language="en", min_consistency=0.1).score == 1.0


@pytest.mark.parametrize(
    "settings",
    [{"target_language": "klingon"}, {"min_consistency": 0}, {"min_consistency": 1.1}, {"auto_detect": False}],
)
def test_a_wrong_parameter_is_named(settings: dict[str, Any]) -> None:
    with pytest.raises(RewardContractError, match=next(iter(settings))):
        judge("Hello there.", **settings)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for cached in (languages._detector, languages._all_languages, languages._known):
        cached.cache_clear()
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(MissingExtraError, match=r"reward-kit\[language\]"):
        judge("Hello there.")


def test_the_prompt_may_ask_for_another_language_than_its_own() -> None:
    assert judge(SAID["es"], "Write a response in Spanish.").score == 1.0
    assert judge(SAID["en"], "Write a response in Spanish.").score == 0.0
    assert judge(SAID["en"], "Translate this from Spanish to English: hola").score == 1.0
    assert judge(SAID["en"], "Give me a Spanish recipe for soup, please.").score == 1.0
    assert judge(SAID["fr"], "Write a response in Spanish.", target_language="fr").score == 1.0


def test_the_last_message_that_asks_for_a_language_counts() -> None:
    system = Message(role="system", content="Always answer in German.")
    plain, asking = (
        Message(role="user", content=f"What is the mean of two?{more}") for more in ("", " Answer in French.")
    )
    answer = Message(role="assistant", content=SAID["de"])
    assert language_consistency_reward(messages=[system, plain, answer]).score == 1.0
    assert language_consistency_reward(messages=[system, asking, answer]).score == 0.0
