# SPDX-License-Identifier: Apache-2.0
"""The pages over the sample runs: where each is, and what is there when it is shown."""

from __future__ import annotations

from typing import NamedTuple


class There(NamedTuple):
    path: str
    there: str


PAGES = {
    "overview": There("/", "table.runs tbody tr"),
    "run": There("/runs/{arithmetic}", ".chart .bar"),
    "table": There("/runs/{arithmetic}/table", ".grid .body .line a"),
    "records": There("/runs/{arithmetic}/table?by=record&where=score:lt:0.9&sort=-score", ".grid .body .line a"),
    "sample": There("/runs/{arithmetic}/sample?id=q000", ".formula math"),
    "difference": There("/runs/{arithmetic}/sample?id=q000&diff=0,1&show=raw", ".difference"),
    "shell": There("/runs/{shell}/table", ".grid .body .line a"),
    "episodes": There("/runs/{lake}/sample?id=lake-4x4-0", ".candidate"),
    "compare": There("/compare?runs={arithmetic},{arithmetic_better}&cell=only_b", ".flip"),
    "review": There("/runs/{arithmetic}/review", ".candidate"),
}
