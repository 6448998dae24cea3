# SPDX-License-Identifier: Apache-2.0
"""The reward library: how right its verdicts are and how fast they come, a table a subject.

    python -m benchmarks.rewards                      pairs and programs written for the benchmarks
    python -m benchmarks.rewards --pairs PAIRS.jsonl  mathematics on labelled pairs: gold, answer, label, sources

Mathematics is measured beside math-verify where that is installed; tool calls beside BFCL's verdicts where
REWARD_KIT_BFCL names a directory of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from benchmarks import rewards_code, rewards_math, rewards_text, rewards_tools
from benchmarks.report import Report, as_text

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Print each table as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", metavar="FILE", help="labelled pairs of answers, JSON lines")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that they work")
    options = parser.parse_args(arguments)
    for report in _reports(options.pairs, options.quick):
        print(as_text(report), flush=True)


def _reports(pairs: str | None, quick: bool) -> Iterator[Report]:
    yield rewards_math.main(quick=quick, path=pairs)
    yield rewards_code.main(quick=quick)
    yield rewards_tools.main(quick=quick)
    yield rewards_text.main(quick=quick)


if __name__ == "__main__":
    main()
