# SPDX-License-Identifier: Apache-2.0
"""Saying of verdicts whether they are right, by mouse and by keyboard; what was said is there after a reload."""

from __future__ import annotations

import itertools
from pathlib import Path

from tests.browser.look import Look


def test_a_mark_on_a_sample_stays(look: Look, samples: Path) -> None:
    look.go("/runs/{candidates}/sample?id=q004&order=index")
    look.see("#c0")
    look.page.locator("#c0").get_by_role("button", name="Note").click()
    look.page.get_by_label("Note on candidate 0").fill("a note of mine")
    look.page.locator("#c0").get_by_role("button", name="wrong").click()
    look.see("#c0 .says.wrong")
    look.press("ArrowRight", "u")
    look.see("#c1 .says.unclear")
    look.page.reload()
    look.see("#c0 .says.wrong")
    look.see("#c1 .mark.unclear[aria-pressed=true]")
    assert look.page.get_by_label("Note on candidate 0").input_value() == "a note of mine"
    lines = (samples / "candidates.parquet.reviews.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert '"Ada"' in lines[0]


def test_verdicts_are_reviewed_one_after_the_other(look: Look) -> None:
    look.go("/runs/{arithmetic}/review")
    look.see(".one .candidate")
    seen = []
    for key, says in (("r", "right"), ("w", "wrong"), ("u", "unclear")):
        seen.append(look.see(".one .facts a").first.get_attribute("href"))
        look.press(key)
        look.see(".reviews .badge", says)
        look.until("(before) => document.querySelector('.one .facts a')?.getAttribute('href') !== before", seen[-1])
    look.see("aside h2", "3 reviews")
    look.page.reload()
    look.see("aside h2", "3 reviews")
    look.see("aside .terminal")


def test_typing_a_note_marks_nothing(look: Look) -> None:
    look.go("/runs/{lake}/review?choose=disagreement")
    look.see(".one .candidate")
    look.find(".note-box").fill("")
    look.find(".note-box").press_sequentially("wrong or unclear")
    look.see("aside h2", "0 reviews")
    look.page.locator(".one").get_by_role("button", name="right").click()
    look.see("aside h2", "1 review")
    look.see(".said-note", "wrong or unclear")


def test_remarks_stand_below_each_other(look: Look) -> None:
    look.go("/runs/{arithmetic_better}/sample?id=q004&order=index")
    look.page.locator("#c0").get_by_role("button", name="right").click()
    look.see("#c0 .says.right")
    look.go("/runs/{arithmetic_better}/review")
    look.see(".one .candidate")
    look.press("r")
    look.see("aside h2", "2 reviews")
    look.see("aside .note >> nth=1")  # that the reviews are few, and that one of them was not drawn
    boxes = [part.bounding_box() for part in look.find("aside > *").all()]
    edges = [(box["y"], box["y"] + box["height"]) for box in boxes if box is not None]
    assert all(bottom <= top for (_, bottom), (top, _) in itertools.pairwise(edges))
