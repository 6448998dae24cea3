# SPDX-License-Identifier: Apache-2.0
"""ifeval_reward: the 25 kinds of instruction, strict and loose."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.models import EvaluateResult
from reward_kit.rewards import ifeval
from reward_kit.rewards.ifeval import count_sentences, ifeval_reward, tokens
from tests.rewards.answers import answered

LANGUAGE = {"change_case:english_capital", "change_case:english_lowercase", "language:response_language"}
SPANISH = "Primero sumamos los dos números y luego dividimos la suma entre dos."
ENGLISH = "We add the two numbers first and then divide the sum by two."

CASES: list[tuple[str, dict[str, Any], str, bool]] = [
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "at least"}, "YES and NO", True),
    ("change_case:capital_word_frequency", {"capital_frequency": 3, "capital_relation": "at least"}, "YES and NO", False),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "at least"}, "DON'T", True),
    ("change_case:capital_word_frequency", {"capital_frequency": 1, "capital_relation": "less than"}, "No caps", True),
    ("change_case:english_capital", {}, ENGLISH.upper(), True),
    ("change_case:english_capital", {}, ENGLISH, False),
    ("change_case:english_capital", {}, SPANISH.upper(), False),
    ("change_case:english_lowercase", {}, ENGLISH.lower(), True),
    ("change_case:english_lowercase", {}, ENGLISH, False),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi."}, "say HI. Hi!", True),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi."}, "Hi! Say hi.", False),
    ("combination:two_responses", {}, "one ****** two", True),
    ("combination:two_responses", {}, "one ****** one", False),
    ("combination:two_responses", {}, "one ****** ****** two", False),
    ("combination:two_responses", {}, "******\none ****** two\n******", True),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name] lives in [city]", True),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[[name] lives", False),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\nP. S. More.", True),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Bye.\nP.S. More.", False),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Bye.\nP.P.S more", True),
    ("detectable_format:constrained_response", {}, "Well. My answer is maybe.", True),
    ("detectable_format:constrained_response", {}, "Maybe.", False),
    ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', True),
    ("detectable_format:json_format", {}, "{'a': 1}", False),
    ("detectable_format:json_format", {}, "[" * 100_000, False),
    ("detectable_format:multiple_sections", {"section_spliter": "Section", "num_sections": 2}, "Section 1 a Section 2", True),
    ("detectable_format:multiple_sections", {"section_spliter": "Section", "num_sections": 2}, "Section 1 a Section", False),
    ("detectable_format:number_bullet_lists", {"num_bullets": 3}, "* a\n* b\n - c", True),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n** b\n- c\n- d", False),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* and *b*", True),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* and * *", False),
    ("detectable_format:title", {}, "<<A title>>\nText", True),
    ("detectable_format:title", {}, "<< >>", False),
    ("keywords:existence", {"keywords": ["sun", "moon"]}, "The Sun and the MOON", True),
    ("keywords:existence", {"keywords": ["sun", "moon"]}, "The sun", False),
    ("keywords:forbidden_words", {"forbidden_words": ["art"]}, "A party", True),
    ("keywords:forbidden_words", {"forbidden_words": ["art"]}, "Modern Art!", False),
    ("keywords:frequency", {"keyword": "ha", "frequency": 3, "relation": "at least"}, "Ha ha haha", True),
    ("keywords:frequency", {"keyword": "ha", "frequency": 3, "relation": "less than"}, "Ha ha ha", False),
    ("keywords:letter_frequency", {"letter": "E", "let_frequency": 2, "let_relation": "at least"}, "Eel", True),
    ("keywords:letter_frequency", {"letter": "e", "let_frequency": 2, "let_relation": "less than"}, "Eel", False),
    ("language:response_language", {"language": "es"}, SPANISH, True),
    ("language:response_language", {"language": "es"}, ENGLISH, False),
    ("language:response_language", {"language": "es"}, "12345", False),
    ("length_constraints:nth_paragraph_first_word",
     {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Then"}, "First.\n\n\"then, more", True),
    ("length_constraints:nth_paragraph_first_word",
     {"num_paragraphs": 3, "nth_paragraph": 2, "first_word": "then"}, "First.\n\nthen more", False),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "one\n***\ntwo", True),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\none\n***\ntwo\n***", True),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "one\n***\n***\ntwo", False),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "at least"}, "Dr. No came. He left.", True),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "less than"}, "One. Two.", False),
    ("length_constraints:number_words", {"num_words": 3, "relation": "at least"}, "one two-three", True),
    ("length_constraints:number_words", {"num_words": 3, "relation": "less than"}, "one two three", False),
    ("punctuation:no_comma", {}, "no comma", True),
    ("punctuation:no_comma", {}, "one, two", False),
    ("startend:end_checker", {"end_phrase": "Any questions?"}, 'So. "any questions?"', True),
    ("startend:end_checker", {"end_phrase": "Any questions?"}, "Any questions? No.", False),
    ("startend:quotation", {}, ' "All of it." ', True),
    ("startend:quotation", {}, '"', False),
]  # fmt: skip


def judge(name: str, settings: Any, answer: str, **options: Any) -> EvaluateResult:
    if name in LANGUAGE:
        pytest.importorskip("py3langid", reason="the extra `language` is not installed")
    return ifeval_reward(answered(answer), instruction_id_list=[name], kwargs=[settings], **options)


def test_there_are_25_kinds_and_each_has_a_case_that_passes_and_one_that_does_not() -> None:
    assert len(ifeval._KINDS) == 25
    assert {(name, ok) for name, _, _, ok in CASES} == {(name, ok) for name in ifeval._KINDS for ok in (True, False)}


@pytest.mark.parametrize(("name", "settings", "answer", "followed"), CASES, ids=lambda value: str(value)[:40])
def test_an_instruction_is_checked_as_ifeval_does(name: str, settings: Any, answer: str, followed: bool) -> None:
    result = judge(name, settings, answer)
    assert result.score == float(followed) == result.metrics["strict"].score == result.metrics[name].score
    everything_null = {
        "keywords": None,
        "num_words": None,
        "end_phrase": None,
        **settings,
    }  # as the Parquet files say it
    assert judge(name, everything_null, answer).score == float(followed)


@pytest.mark.parametrize("name", ifeval._KINDS)
@pytest.mark.parametrize("answer", ["", "  \n", "<think>yes, no</think>"])
def test_an_empty_answer_follows_nothing(name: str, answer: str) -> None:
    settings = next(settings for known, settings, _, _ in CASES if known == name)
    assert judge(name, settings, answer).score == 0.0


def test_loose_forgives_a_first_line_a_last_line_and_asterisks() -> None:
    for answer in (
        'Sure, here it is:\n"quoted"',
        '"quoted"\nI hope, this helps!',
        'Sure:\n"quoted"\nBye',
        '**"quoted"**',
    ):
        strict, loose = (judge("startend:quotation", {}, answer, loose=loose) for loose in (False, True))
        assert (strict.score, loose.score) == (0.0, 1.0)
        assert strict.metrics["loose"].score == 1.0 and loose.metrics["strict"].score == 0.0


def test_several_instructions_must_all_be_followed_unless_a_part_counts() -> None:
    columns: dict[str, Any] = {
        "instruction_id_list": ["punctuation:no_comma", "startend:quotation"],
        "kwargs": [{}, {}],
    }
    assert ifeval_reward(answered("no comma"), **columns).score == 0.0
    result = ifeval_reward(answered("no comma"), **columns, partial=True)
    assert result.score == 0.5 and result.metrics["punctuation:no_comma"].score == 1.0
    assert ifeval_reward(answered("no comma"), ground_truth=json.dumps(columns), partial=True).score == 0.5
    texts: dict[str, Any] = {name: json.dumps(value) for name, value in columns.items()}
    assert ifeval_reward(answered('"no comma"'), **texts).score == 1.0


@pytest.mark.parametrize("name", [name for name, kind in ifeval._KINDS.items() if kind.settings])
def test_missing_or_wrong_settings_are_no_verdict(name: str) -> None:
    settings = next(settings for known, settings, _, _ in CASES if known == name)
    for missing in settings:
        assert not judge(name, {**settings, missing: None}, "a").is_score_valid
        assert not judge(name, {**settings, missing: []}, "a").is_score_valid


@pytest.mark.parametrize(
    "columns",
    [{}, {"instruction_id_list": []}, {"instruction_id_list": ["no:such"], "kwargs": [{}]},
     {"instruction_id_list": ["punctuation:no_comma"]}, {"instruction_id_list": ["punctuation:no_comma"], "kwargs": []},
     {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [7]}, {"instruction_id_list": "x", "kwargs": "y"},
     {"ground_truth": "x"}, {"instruction_id_list": [None], "kwargs": [{}]}],
)  # fmt: skip
def test_malformed_instructions_are_no_verdict(columns: dict[str, Any]) -> None:
    assert not ifeval_reward(answered("a"), **columns).is_score_valid


def test_the_columns_reach_it_by_name_in_a_run() -> None:
    from reward_kit.evaluation import evaluate

    row = {
        "user_query": "?",
        "assistant_response": "hi",
        "instruction_id_list": ["punctuation:no_comma"],
        "kwargs": [{}],
    }
    assert evaluate([row], "ifeval").mean_score == 1.0


@pytest.mark.parametrize(
    ("text", "sentences"),
    [("", 0), ("One", 1), ("One. Two. Three.", 3), ("Really?! Yes!", 2), ("It costs $3.50 at example.com today.", 1),
     ("Mr. Smith met Dr. Jones.", 1), ("See e.g. the first one.", 1), ("J. R. Smith wrote it.", 1), ("Well... maybe.", 1),
     ("Well... Maybe.", 2), ('He said "Go." Then he left.', 2), ("1. First. 2. Second.", 4), ("A line\nwithout a stop", 1)],
)  # fmt: skip
def test_sentences_are_counted(text: str, sentences: int) -> None:
    assert count_sentences(text) == sentences


CAPITALS = st.lists(
    st.sampled_from(
        ["DON'T", "I", "NASA", "U.S.A.", "CANNOT", "well-known", "A-B", "IT'S", "a", "Yes,", "(NO)", "3D", "OK!"]
    )
)


@given(CAPITALS.map(" ".join))
def test_capital_words_are_those_of_nltk(text: str) -> None:
    destructive = pytest.importorskip("nltk.tokenize.destructive", reason="nltk is not installed")
    expected = destructive.NLTKWordTokenizer().tokenize(text)
    assert sum(map(str.isupper, tokens(text))) == sum(map(str.isupper, expected))


@pytest.mark.parametrize(
    "piece", ["[", "<<", "*", ".", "\n", " ", "a", "-\n", "*\n", "***", ">>", "p.", "A.", '"', "--"]
)
def test_no_answer_makes_it_slow(piece: str) -> None:
    answer = piece * (200_000 // len(piece)) + "!"
    for name, settings in {name: settings for name, settings, _, _ in CASES if name not in LANGUAGE}.items():
        judge(name, settings, answer)


@given(st.text(max_size=200))
def test_no_answer_stops_it(answer: str) -> None:
    for name, settings, _, _ in CASES:
        if name not in LANGUAGE:
            assert judge(name, settings, answer).score in (0.0, 1.0)
