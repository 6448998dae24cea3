# SPDX-License-Identifier: Apache-2.0
"""A sample's page: every candidate beside the others, how texts are shown, and what the keyboard does."""

from __future__ import annotations

import json
import re

from tests.browser.look import Look


def test_candidates_stand_side_by_side_best_first(look: Look) -> None:
    look.go("/runs/{arithmetic}/sample?id=q002")
    look.see(".candidate")
    scores = [float(text) for text in look.find(".candidate .verdict .value").all_inner_texts()]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    look.page.get_by_role("link", name="By index").click()
    look.until("() => document.querySelector('.candidate h3').textContent.includes('Candidate 0')")
    assert "order=index" in look.page.url


def test_markdown_code_and_mathematics_are_rendered_and_raw_on_request(look: Look) -> None:
    look.go("/runs/{arithmetic}/sample?id=q000&order=index")
    look.see(".candidate .formula math")
    look.see(".candidate table.of-text th", "step")
    look.see(".candidate pre.code", "print(")
    assert look.find(".candidate details.reasoning").count() == 1
    look.press("m")
    look.see("#c1 pre.plain", "| step | value |")
    assert look.find(".candidate math").count() == 0
    assert "show=raw" in look.page.url


def test_two_candidates_are_compared_word_by_word(look: Look) -> None:
    look.go("/runs/{arithmetic}/sample?id=q002&order=index")
    look.see(".candidate")
    look.page.locator("#c3").get_by_role("link", name="Difference to").click()
    look.see(".difference ins")
    look.see(".difference del")
    assert re.search(r"diff=\d%2C3|diff=\d,3", look.page.url)


def test_the_record_is_shown_as_json(look: Look) -> None:
    look.go("/runs/{arithmetic}/sample?id=q002&order=index")
    look.see("#c0")
    look.page.locator("#c0").get_by_role("button", name="JSON").click()
    text = look.see("#c0 > .text pre.code").first.inner_text()
    assert json.loads(text)["id"] == "q002"


def test_the_command_that_reproduces_the_verdict_is_copied(look: Look) -> None:
    look.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    look.go("/runs/{arithmetic}/sample?id=q002&order=index")
    look.see("#c1")
    look.page.locator("#c1").get_by_role("button", name="Copy command").click()
    look.see(".notice", "Copied")
    assert look.page.evaluate("() => navigator.clipboard.readText()").startswith("reward-kit rewards try ")


def test_what_was_extracted_is_marked_in_the_answer(look: Look) -> None:
    look.go("/runs/{arithmetic}/sample?id=q002&order=index&show=raw")
    look.see("#c3 .answer mark")
    assert re.fullmatch(r"(\\boxed\{)?-?\d+\}?", look.find("#c3 .answer mark").first.inner_text().strip())


def test_the_keyboard_goes_from_sample_to_sample_and_failure_to_failure(look: Look) -> None:
    look.go("/runs/{arithmetic}/sample?id=q000")
    look.see("h1", "q000")
    look.press("j")
    look.see("h1", "q001")
    look.see(".position", "2 of 120")
    look.press("k")
    look.see("h1", "q000")
    look.press("k")
    look.see(".notice", "first sample")
    look.press("n")
    look.until("() => !document.querySelector('h1').textContent.includes('q000')")
    assert look.find(".strip .bad, .strip .broken").count() > 0


def test_the_keyboard_chooses_a_candidate(look: Look) -> None:
    look.go("/runs/{arithmetic}/sample?id=q002&order=index")
    look.see(".candidate.chosen#c0")
    look.press("ArrowRight", "ArrowRight")
    look.see(".candidate.chosen#c2")
    assert "c=2" in look.page.url
    look.page.reload()
    look.see(".candidate.chosen#c2")


def test_steps_of_an_episode_are_a_timeline(look: Look) -> None:
    look.go("/runs/{lake}/sample?id=lake-4x4-0")
    look.see(".timeline > li")
    assert look.find(".candidate").first.locator(".timeline > li").count() > 1


def test_shell_commands_have_their_output_and_exit_code(look: Look) -> None:
    look.go("/runs/{shell}/table")
    look.see(".grid .body .line a")
    look.find(".grid .body .line").first.click()
    look.see(".timeline .command")
    look.see(".timeline .step", "exit")


def test_an_edited_answer_is_judged_again(look: Look) -> None:
    look.go("/runs/{arithmetic}/sample?id=q002&order=index")
    look.see("#c3")
    look.page.locator("#c3").get_by_role("button", name="Try again").click()
    look.page.locator("#c3").get_by_label("Answer").fill("The answer is \\boxed{88}.")
    look.page.locator("#c3").get_by_role("button", name="Judge this").click()
    look.see("#c3 .result .verdict.good", "1.000")


def test_an_address_with_a_place_and_no_name_shows_the_sample_there(look: Look) -> None:
    look.go("/runs/{arithmetic}/sample?at=5")
    look.see("h1", "q005")
    look.see(".position", "6 of 120")
    for address in ("sample?at=99999", "sample?at=-1", "sample"):
        look.go(f"/runs/{{arithmetic}}/{address}")
        look.see(".problem", "There is no such sample")


def test_tokens_of_a_request_are_not_told_as_one_answer_s(look: Look) -> None:
    look.go("/runs/{arithmetic}/sample?id=q002&order=index")
    look.see("#c0 .facts", "tokens for the request's 4 answers")
    assert "token" not in look.find("#c1 .facts").inner_text()


def test_what_an_environment_says_keeps_its_layout(look: Look) -> None:
    look.go("/runs/{lake}/sample?id=lake-4x4-0")
    look.see(".timeline .message pre.plain", "S...")
    look.see(".asked .message.user pre.plain", "P...")
    look.see(".asked .message.system p", "Walk to G")
