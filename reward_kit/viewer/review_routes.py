# SPDX-License-Identifier: Apache-2.0
"""Reviews on the page: what was said, what to look at next, saying it, and trying an edited answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from reward_kit.errors import RewardKitError, needs_extra
from reward_kit.storage.reviews import Review, last_words, read_reviews, reviews_path
from reward_kit.viewer import wire
from reward_kit.viewer.judged_by import reward_file, reward_of
from reward_kit.viewer.opened import OpenedRun
from reward_kit.viewer.problems import NotAllowed, NotThere, Unreadable, WrongRequest
from reward_kit.viewer.reviewing.choosing import Way, draw_next
from reward_kit.viewer.reviewing.deciding import Chosen, Tickets, make_decision
from reward_kit.viewer.reviewing.figures import review_figures
from reward_kit.viewer.reviewing.records import JudgedRecords
from reward_kit.viewer.reviewing.trial import not_judged, try_again
from reward_kit.viewer.reviewing.wording import figure_lines, remarks
from reward_kit.viewer.viewer import Viewer

if TYPE_CHECKING:
    from reward_kit.viewer.app import ApiRoute, Asked

__all__ = ["ReviewDesk"]

T = TypeVar("T")

_SAYS = ("right", "wrong", "unclear")
_CHOICES = ("random", "disagreement", "browsing")
_SHOWN = 5_000
"""Reviews that the page is sent at most, the newest."""
_TRIALS = 2
"""Trials that run at a time: each starts processes."""


class _Read(NamedTuple):
    """The reviews of a file, and the state of the file that they were read from."""

    size: int
    changed: int
    reviews: list[Review]


class ReviewDesk:
    """Keeps the reviews of all runs that are shown. What is in memory is only what is in the files."""

    def __init__(self, reviewer: str) -> None:
        """Sit down for this reviewer."""
        self.reviewer = reviewer
        self._tickets = Tickets()
        self._lock = threading.Lock()
        self._reviews: dict[Path, _Read] = {}
        self._records: dict[str, tuple[int, JudgedRecords]] = {}
        self._trials = threading.Semaphore(_TRIALS)

    # ── what the pages ask ───────────────────────────────────────────────────────────────────────────────────────────

    def count(self, run: OpenedRun) -> int:
        """How many decisions there are on a run's records: the last word of each reviewer on each."""
        try:
            return len(last_words(self._read(run)))
        except RewardKitError:
            return 0  # the page of reviews says what is wrong with the file

    def of_sample(self, run: OpenedRun, name: str) -> Mapping[int, wire.Review]:
        """This reviewer's last word on each candidate of a sample."""
        try:
            reviews = self._read(run)
        except RewardKitError:
            return {}
        return {
            review.response_index: _as_wire(review)
            for review in reviews
            if review.id == name and review.reviewer == self.reviewer
        }

    def routes(self) -> list[ApiRoute]:
        """The addresses that are answered here."""
        with needs_extra("The viewer", "view"):
            from reward_kit.viewer.app import ApiRoute
        return [
            ApiRoute("GET", "/api/runs/{key}/reviews/next", self._next),
            ApiRoute("GET", "/api/runs/{key}/reviews", self._page),
            ApiRoute("POST", "/api/runs/{key}/reviews", self._decide),
            ApiRoute("POST", "/api/runs/{key}/try", self._try),
        ]

    # ── handlers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _page(self, viewer: Viewer, asked: Asked) -> wire.ReviewPage:
        run = viewer.run(asked.path["key"])
        reviews = self._checked(run)
        found = review_figures(self._now(run), reviews)
        last = sorted(last_words(reviews).values(), key=lambda review: review.at, reverse=True)
        return wire.ReviewPage(
            reviews=[_as_wire(review) for review in last[:_SHOWN]],
            figures=[list(line) for line in figure_lines(found)] if reviews else [],
            notes=list(remarks(found)),
            wrong=len(found.wrong),
            outdated=found.outdated,
        )

    def _next(self, viewer: Viewer, asked: Asked) -> wire.NextReview:
        run, way = viewer.run(asked.path["key"]), asked.parameters.get("choose") or "random"
        if way not in _CHOICES[:2]:
            raise WrongRequest(f"There is no way {way[:40]!r} to choose. Choose `random` or `disagreement`.")
        records, reviews = self._now(run), self._checked(run)
        draw = draw_next(records, reviews, self.reviewer, cast(Way, way))
        if draw is None:
            return wire.NextReview(record=None, ticket=None, left=0, why="You have looked at every judged record.")
        key = records.key(draw.row)
        seen = any(review.key == key and review.reviewer == self.reviewer for review in reviews)
        again = " You marked it before, while browsing: say it again, so that it counts in the rates." if seen else ""
        ticket = self._tickets.issue(run.key, self.reviewer, key, Chosen.by(cast(Way, way), draw))
        place = wire.RecordPlace(id=key[0], index=key[1])
        return wire.NextReview(record=place, ticket=ticket, left=draw.pool, why=draw.why + again)

    def _decide(self, viewer: Viewer, asked: Asked) -> wire.Review:
        run, given = viewer.run(asked.path["key"]), _fields(asked.body)
        key, says, note = _place(given), given.get("says"), given.get("note") or ""
        if says not in _SAYS or not isinstance(note, str):
            raise WrongRequest(f"{str(says)[:40]!r} is not a review. Say `right`, `wrong` or `unclear`, and a note.")
        chosen = Chosen()
        if (ticket := given.get("ticket")) is not None:
            found = self._tickets.read(str(ticket), run.key, self.reviewer, key)
            if found is None:
                raise WrongRequest(
                    "This record was drawn before the viewer was started again. Load the page again: it shows the same "
                    "record, and you can say it then."
                )
            chosen = found
        elif given.get("choice", "browsing") != "browsing":
            raise WrongRequest("A record that was drawn has a ticket. Ask for the next record, and send its ticket.")
        records = self._now(run)
        if records.rows([key]) == [None]:
            raise NotThere(f"There is no answer {key[1]} of {key[0][:200]!r} in this run. Load the page again.")
        return _as_wire(_as_page_problem(lambda: make_decision(records, key, says, note, self.reviewer, chosen)))

    def _try(self, viewer: Viewer, asked: Asked) -> wire.TrialResult:
        run, given = viewer.run(asked.path["key"]), _fields(asked.body)
        if not viewer.allow_run:
            raise NotAllowed(
                "Judging edited answers runs the run's reward on this machine, so it is off. Start the viewer again "
                "with --allow-run."
            )
        key, answer, truth = _place(given), given.get("answer"), given.get("ground_truth")
        if not isinstance(answer, str) or not (truth is None or isinstance(truth, str)):
            raise WrongRequest("There is no answer to judge. Send `answer` and `ground_truth` as texts.")
        config = run.config()
        if config is None:
            raise NotThere(
                "Nothing here says which reward judged these answers. Look at the run directory, which has a "
                "config.yaml."
            )
        records = self._now(run)
        group = _as_page_problem(lambda: records.group(key))
        if not any(rollout.response_index == key[1] for rollout in group):
            raise NotThere(f"There is no answer {key[1]} of {key[0][:200]!r} in this run. Load the page again.")
        split = group[0].sample.split
        reward = reward_of(run.settings(), split)
        file = reward_file(reward, run.found.path, run.manifest())
        if file is None and reward is not None and reward.file is not None:
            return not_judged(
                f"The reward's file {str(reward.file)!r} is neither near the run nor where the viewer was started. "
                "Start the viewer again in the folder from which it is found."
            )
        with self._trials:
            return try_again(config, group, key[1], answer, truth, None if file is None else file.folder)

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _now(self, run: OpenedRun) -> JudgedRecords:
        """The run's records as they are now."""
        snapshot = run.now()
        with self._lock:
            held = self._records.get(run.key)
            if held is None or held[0] != snapshot.version:
                held = snapshot.version, JudgedRecords(run.found.path, answers=snapshot.held())
                self._records[run.key] = held
            return held[1]

    def _checked(self, run: OpenedRun) -> list[Review]:
        return _as_page_problem(lambda: self._read(run))

    def _read(self, run: OpenedRun) -> list[Review]:
        """The reviews of a run, read again where the file has changed."""
        path = reviews_path(run.found.path)
        try:
            state = path.stat()
        except OSError:
            return []
        with self._lock:
            held = self._reviews.get(path)
            if held is None or (held.size, held.changed) != (state.st_size, state.st_mtime_ns):
                held = _Read(state.st_size, state.st_mtime_ns, read_reviews(path))
                self._reviews[path] = held
            return held.reviews


def _as_page_problem(does: Callable[[], T]) -> T:
    """What goes wrong with files is told to the page in its own words."""
    try:
        return does()
    except (NotAllowed, NotThere, Unreadable, WrongRequest):
        raise
    except RewardKitError as error:
        raise Unreadable(str(error)) from error


def _as_wire(review: Review) -> wire.Review:
    return cast(wire.Review, asdict(review))


def _fields(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise WrongRequest("The body is not an object. Send the fields of a review, or of a trial.")
    return body


def _place(given: Mapping[str, Any]) -> tuple[str, int]:
    name, index = given.get("id"), given.get("index")
    if not isinstance(name, str) or not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise WrongRequest("The request does not say which record is meant. Send `id` as text and `index` as a number.")
    return name, index
