# SPDX-License-Identifier: Apache-2.0
"""`--junit`: a run as JUnit XML, the form in which CI systems take test reports.

One test case per answer: one that failed is an error, one whose score is below `reward.pass_threshold` a failure. One
more for each `--fail-under`, and for the answers that could not be judged, which fails where the run does not reach it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from reward_kit.cli_commands.floors import Allowance
from reward_kit.errors import ConfigError
from reward_kit.redaction import blot
from reward_kit.storage.files import Draft
from reward_kit.storage.new_files import check_new_file
from reward_kit.storage.run_directory import OWN_FILES
from reward_kit.storage.vocabularies import RUN

if TYPE_CHECKING:
    from reward_kit.cli_commands.floors import Floor
    from reward_kit.config_models import RewardConfig
    from reward_kit.execution.result import RunResult

__all__ = ["Suite", "check_junit", "write_junit"]

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = "reward-kit"
_BEGINNING = f'<testsuites name="{_NAME}"'.encode()
"""Of a report, after the XML declaration."""
_ENOUGH = 200
"""Bytes of a file that hold its beginning, if it is a report."""
_LONGEST = 2000
"""Characters of an answer or a message that are kept; the whole ones are in the results."""


class Suite:
    """One run as a suite of tests."""

    def __init__(self, name: str, result: RunResult, reward: RewardConfig, floors: Sequence[Floor | Allowance]) -> None:
        """Take the run, the reward it was judged with, and what its figures must reach."""
        self._name, self._result, self._reward, self._floors = name, result, reward, floors
        allowances = [floor for floor in floors if isinstance(floor, Allowance) and floor.share]
        self._unjudged = "skipped" if any(each.shortfall(result) is None for each in allowances) else "error"
        """What an answer is that could not be judged: an error, unless so many were allowed."""

    def element(self) -> Element:
        """The suite as an XML element: one test case per answer and per floor, with the counts that JUnit expects."""
        cases = [*map(self._answer, self._result.rows()), *map(self._floor, self._floors)]
        seconds = self._result.counters.seconds
        suite = Element("testsuite", name=_text(self._name), time=f"{seconds:.3f}", tests=str(len(cases)))
        for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            suite.set(attribute, str(sum(case.find(kind) is not None for case in cases)))
        suite.extend(cases)
        return suite

    def _answer(self, row: Mapping[str, Any]) -> Element:
        case = self._case(f"{row['id']}[{row['response_index']}]")
        if row["status"] != "ok":
            failure = row.get("failure") or {}
            element = SubElement(
                case, self._unjudged, type=_text(failure.get("type", "")), message=_text(row.get("error"))
            )
            element.text = _text(row.get("error"))
            return case
        score, least = row[RUN.score], self._reward.for_split(row.get("split")).pass_threshold
        if score < least:
            message = (
                f"score {score:.4g} is below {least:g}: {row.get(RUN.verification_reason) or 'no reason was given'}"
            )
            element = SubElement(case, "failure", type="score", message=_text(message))
            shown = {"question": RUN.query, "expected": RUN.ground_truth, "answer": RUN.response}
            element.text = _text("\n".join(f"{label}: {row.get(column)}" for label, column in shown.items()))
        return case

    def _floor(self, floor: Floor | Allowance) -> Element:
        case = self._case(str(floor))
        if (why := floor.shortfall(self._result)) is not None:
            SubElement(case, "failure", type="figure", message=_text(why))
        return case

    def _case(self, name: str) -> Element:
        return Element("testcase", classname=_text(self._name), name=_text(name))


def check_junit(path: Path, runs: Iterable[Path]) -> None:
    """Refuse a report in the place of a file of these runs, which may begin later, or of one that is no report."""
    check_new_file(path, "--junit", "a JUnit report", _is_report, beside_a_run=True)
    place = path.resolve()
    if place.name.casefold() in OWN_FILES and place.parent in {run.resolve() for run in runs}:
        raise ConfigError(f"{str(path)!r} will be a file of the run itself. Name another file with --junit.")


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        return _BEGINNING in file.read(_ENOUGH)


def write_junit(path: Path, suites: Iterable[Suite]) -> None:
    """Write the suites as one report."""
    report = Element("testsuites", name=_NAME)
    report.extend(suite.element() for suite in suites)
    indent(report)
    with Draft(path, advice="Name another file with --junit.", make_folder=True) as draft:
        draft.write(tostring(report, encoding="utf-8", xml_declaration=True))


def _text(value: object) -> str:
    """Text as it may stand in XML: without credentials, and without characters that XML does not have."""
    text = _NOT_IN_XML.sub("�", blot("" if value is None else str(value)))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
