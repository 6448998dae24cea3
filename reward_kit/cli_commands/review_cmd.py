# SPDX-License-Identifier: Apache-2.0
"""`reward-kit review`: what people said of a run's verdicts, in figures; and saying it, without a browser."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import click

from reward_kit.cli_commands.options import FiniteNumber, NamedPath, reading_own_files
from reward_kit.cli_commands.output import Line, echo, echo_lines, print_json

if TYPE_CHECKING:
    from reward_kit.storage.reviews import Review, Says
    from reward_kit.viewer.reviewing.choosing import Way
    from reward_kit.viewer.reviewing.figures import ReviewedRecord, ReviewFigures
    from reward_kit.viewer.reviewing.records import JudgedRecords

__all__ = ["review"]

_SHOWN = 20
_LONGEST = 100


class _Saying(TypedDict):
    """What somebody says, and of which record."""

    way: Way | None
    record: str | None
    ticket: str | None
    says: Says | None
    note: str
    reviewer: str | None


@click.command()
@click.argument("path", type=NamedPath(path_type=Path, exists=True))
@click.option("--export", "cases", type=NamedPath(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the reviews as test cases for `reward-kit rewards check`. An earlier export is replaced; no "
                  "other file is.")  # fmt: skip
@click.option("--only", type=click.Choice(["all", "wrong"]), default="all", show_default=True,
              help="Which reviews become cases: all clear ones, or only the wrong verdicts.")  # fmt: skip
@click.option("--draw", "way", type=click.Choice(["random", "disagreement"]),
              help="Show the next record to review. random: any record. disagreement: records with a sign of doubt "
                  "are more likely.")  # fmt: skip
@click.option("--record", metavar="ID#INDEX", help="Show this record: a sample's id, and which of its answers.")
@click.option("--ticket", help="The text that --draw printed for that record. With it, the review counts in the rates.")
@click.option("--says", type=click.Choice(["right", "wrong", "unclear"]),
              help="Your review: whether the verdict on that record is right. It is saved.")  # fmt: skip
@click.option("--note", default="", help="Why, in a sentence.")
@click.option("--reviewer", help="Who reviews.  [default: $REWARD_KIT_REVIEWER, else your user name]")
@click.option("--pass-threshold", "--threshold", "threshold", type=FiniteNumber(), metavar="S",
              help="Score from which an answer passes.  [default: what the run or the file says]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
def review(
    path: Path,
    cases: Path | None,
    only: Literal["all", "wrong"],
    threshold: float | None,
    as_json: bool,
    verbose: bool,
    **saying: Unpack[_Saying],
) -> None:
    """Say how far people agree with the verdicts of a run, and which verdicts are wrong.

    PATH is a run directory, its results.jsonl, or a Parquet file of `best-of-n`. Reviews are kept beside it, in
    reviews.jsonl (FILE.parquet.reviews.jsonl); they are made on the page of `reward-kit view`, or here. Nothing else is
    changed.

    Rates are computed from records that were chosen at random. Each record is weighted by the probability with which it
    was chosen. Records that a reviewer picked are listed, but they are not part of any rate. Intervals are of 95 %.

    \b
    reward-kit review outputs/my_run                     # precision, recall, agreement; wrong verdicts
    reward-kit review outputs/my_run --draw random       # show a record, and the command to review it
    reward-kit review outputs/my_run --record 'q17#0' --says wrong --note '1/2 is 0.5'
    reward-kit review outputs/my_run --export cases.jsonl
    reward-kit rewards check my_reward.py:evaluate cases.jsonl
    """
    from reward_kit.storage.reviews import read_reviews, reviews_path
    from reward_kit.viewer.reviewing.records import JudgedRecords

    _check_pairs(saying, cases)
    with reading_own_files(path):
        records = JudgedRecords(path, pass_threshold=threshold)
        reviews = read_reviews(reviews_path(path))
        if saying["way"]:
            _draw(records, reviews, saying["way"], saying["reviewer"], threshold, as_json=as_json)
            return
        if saying["record"]:
            _say(records, saying, as_json=as_json)
            return
        if cases is not None:
            _export(records, reviews, cases, only)
            if not as_json:
                return
        _show(records, reviews, as_json=as_json)


def _check_pairs(saying: _Saying, cases: Path | None) -> None:
    """Refuse options that do not go together, rather than leave one of them out."""
    way, record, says = saying["way"], saying["record"], saying["says"]
    if way and says:
        raise click.UsageError(
            "--draw shows a record that you have not seen, and --says needs one that you have. Give --draw alone, look "
            "at the record, then use the command that is printed below it."
        )
    if way and record:
        raise click.UsageError("Give --draw or --record, not both.")
    if says and not record:
        raise click.UsageError("--says needs a record: give --record ID#INDEX, or let --draw random show you one.")
    if cases is not None and (way or record):
        raise click.UsageError(f"--export cannot be given with {'--draw' if way else '--record'}. Give one of them.")
    for option, given in (("--note", saying["note"]), ("--ticket", saying["ticket"])):
        if given and not says:
            raise click.UsageError(f"{option} is part of a review. Add --record and --says, or leave it out.")
    if saying["reviewer"] and not (way or says):
        raise click.UsageError(
            "--reviewer names the person who draws a record or reviews it. Add --draw or --says, or leave it out."
        )
    source = click.get_current_context().get_parameter_source("only")
    if cases is None and source is not click.core.ParameterSource.DEFAULT:
        raise click.UsageError("--only says which reviews are exported. Add --export FILE, or leave it out.")


def _export(records: JudgedRecords, reviews: list[Review], target: Path, only: Literal["all", "wrong"]) -> None:
    from reward_kit.viewer.reviewing.export import export_cases

    found = export_cases(records, reviews, target, only)
    echo(f"{_counted(found.cases, 'case')} → {target}", err=True)
    if found.disputed:
        echo(f"Left out: {_counted(found.disputed, 'record')} that reviewers disagree on.", err=True)
    if found.not_usable:
        echo(f"Left out: {_counted(found.not_usable, 'review')} of answers that no longer exist.", err=True)
    if found.of_scores:
        echo(f"Left out: {_counted(found.of_scores, 'record')} whose score was reviewed without a threshold beside it: "
             "that says nothing of pass or failure. Review them again with --threshold S.", err=True)  # fmt: skip


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# ── one record ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _draw(
    records: JudgedRecords, reviews: list[Review], way: Way, reviewer: str | None, threshold: float | None, *,
    as_json: bool,
) -> None:  # fmt: skip
    """Show the next record, and how to say something of it."""
    from reward_kit.viewer.reviewing.choosing import draw_next
    from reward_kit.viewer.reviewing.deciding import Chosen, open_ticket

    draw = draw_next(records, reviews, _who(reviewer), way)
    if draw is None:
        echo("Every judged record was drawn and looked at. `reward-kit review` has the figures.")
        return
    key = records.key(draw.row)
    ticket = open_ticket(records, _who(reviewer), key, Chosen.by(way, draw))
    words = ["review", str(records.path), "--record", f"{key[0]}#{key[1]}", "--ticket", ticket]
    words += [] if reviewer is None else ["--reviewer", reviewer]
    words += [] if threshold is None else ["--threshold", str(threshold)]
    shown = _record(records, key, draw.why) | {"ticket": ticket}
    print_json(shown) if as_json else _echo_record(shown, shlex.join(["reward-kit", *words]))


def _say(records: JudgedRecords, saying: _Saying, *, as_json: bool) -> None:
    """Show a record that is named; where something is said of it, keep that."""
    from reward_kit.viewer.reviewing.deciding import Chosen, make_decision, read_open_ticket

    record, says, ticket = saying["record"] or "", saying["says"], saying["ticket"]
    key = _key(record)
    if says is None:
        shown = _record(records, key, "")
        again = shlex.join(["reward-kit", "review", str(records.path), "--record", record])
        print_json(shown) if as_json else _echo_record(shown, again)
        return
    reviewer = _who(saying["reviewer"])
    chosen = Chosen() if ticket is None else read_open_ticket(ticket, records, reviewer, key)
    if chosen is None:
        raise click.BadParameter(
            f"The ticket does not belong to {record!r}, to {reviewer!r}, or to the results as they are now. Give "
            "--draw again, and use the command that is printed below the record.", param_hint="--ticket",
        )  # fmt: skip
    made = make_decision(records, key, says, saying["note"], reviewer, chosen)
    if as_json:
        from dataclasses import asdict

        print_json(asdict(made))
    else:
        echo(f"{made.id}#{made.response_index}: {says}, says {made.reviewer}.", err=True)


def _who(reviewer: str | None) -> str:
    from reward_kit.viewer.reviewing.deciding import default_reviewer

    return (reviewer or "").strip() or default_reviewer()


def _key(record: str) -> tuple[str, int]:
    name, mark, index = record.rpartition("#")
    if not mark or not index.isdecimal():
        raise click.BadParameter(f"{record!r} is not a record. Write ID#INDEX, such as 'q17#0'.", param_hint="--record")
    return name, int(index)


def _record(records: JudgedRecords, key: tuple[str, int], why: str) -> dict[str, Any]:
    from reward_kit.errors import DatasetError

    (row,) = records.rows([key])
    rollout = records.rollouts([key]).get(key)
    if row is None or rollout is None:
        raise DatasetError(f"There is no answer {key[1]} of {key[0]!r} in {str(records.path)!r}. Name another record.")
    (verdict,) = records.verdicts([row])
    return {
        "id": key[0], "response_index": key[1], "why": why,
        "messages": [message.model_dump(exclude_none=True) for message in rollout.messages],
        "ground_truth": rollout.sample.ground_truth, "score": verdict.score, "passed": verdict.passed,
        "reason": verdict.reason, "threshold": records.threshold_shown(row),
    }  # fmt: skip


def _echo_record(shown: dict[str, Any], command: str) -> None:
    echo(f"{shown['id']}#{shown['response_index']}" + (f"  {shown['why']}" if shown["why"] else ""))
    for message in shown["messages"]:
        content = message.get("content")
        echo(f"\n[{message['role']}]\n{content if isinstance(content, str) else content or ''}")
    if shown["ground_truth"] is not None:
        echo(f"\n[right answer]\n{shown['ground_truth']}")
    verdict = {True: "passes", False: "fails", None: "has no pass or failure"}[shown["passed"]]
    limit = "" if shown["threshold"] is None else f" (it passes from {shown['threshold']:g} on)"
    echo(f"\n[verdict] {verdict}, score {shown['score']}{limit}: {shown['reason']}")
    if shown["passed"] is None:
        echo(
            "Give --threshold S to review whether the answer passes: a review of a score alone is in no rate of passes."
        )
    echo(
        "\nIs that verdict right? This command saves your review. Write wrong or unclear instead of right, if it is "
        f"so:\n{command} --says right"
    )


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _show(records: JudgedRecords, reviews: list[Review], *, as_json: bool) -> None:
    from reward_kit.analysis.present.formats import finite
    from reward_kit.viewer.reviewing.figures import review_figures

    found = review_figures(records, reviews)
    if as_json:
        print_json(finite(found.as_dict()))
        return
    if not reviews:
        echo(f"{records.answers.name}: nobody has reviewed anything yet. `reward-kit view` shows the records; "
             "`--draw random` shows one here.")  # fmt: skip
        return
    _echo_figures(records.answers.name, found)


def _echo_figures(name: str, found: ReviewFigures) -> None:
    from reward_kit.viewer.reviewing.wording import figure_lines, remarks

    reviewers = _counted(len(found.reviewers), "reviewer")
    echo(f"{name}: {_counted(found.records, 'record')} of {found.population:,} looked at by {reviewers}")
    echo(", ".join(f"{number:,} {says}" for says, number in found.said.items()) + "; chosen "
         + ", ".join(f"{number:,} {'at random' if how == 'random' else 'by ' + how}"
                     for how, number in found.chosen.items() if number))  # fmt: skip
    echo()
    lines = figure_lines(found)
    width = max(len(value) for _, value, _ in lines)
    echo_lines([Line(name, value.ljust(width), note) for name, value, note in lines])
    if found.wrong:
        echo(f"\nWrong verdicts ({len(found.wrong):,})")
        for one in found.wrong[:_SHOWN]:
            echo(_wrong_line(one))
        if len(found.wrong) > _SHOWN:
            echo(f"{len(found.wrong) - _SHOWN:,} more are in --json.")
    for remark in remarks(found):
        echo(f"\n{remark}")


def _wrong_line(one: ReviewedRecord) -> str:
    said, now = one.review, one.now
    verdict = {True: "passes, should fail", False: "fails, should pass", None: f"score {now.score}"}[now.passed]
    note = f": {said.note}" if said.note else ""
    text = " ".join(f"{said.id}#{said.response_index}  {verdict} ({said.reviewer}){note}".split("\n"))
    return f"  {text[:_LONGEST]}…" if len(text) > _LONGEST else f"  {text}"
