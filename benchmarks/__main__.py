# SPDX-License-Identifier: Apache-2.0
"""The benchmarks: what the product costs, each figure beside its baseline in the same run.

    python -m benchmarks                   all of them, some minutes
    python -m benchmarks cold cached       only these
    python -m benchmarks --quick           small, to see that they work
    python -m benchmarks --markdown        the table of docs/performance.md

Read the ratios; the absolute numbers are this machine's. With --quick, neither means anything.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from benchmarks import (
    adapters,
    agent_forks,
    agents,
    analysis,
    batch,
    best_of_n,
    cached,
    cold,
    coverage,
    latency,
    memory,
    ray,
    resume,
    rewards_code,
    rewards_math,
    rewards_text,
    rewards_tools,
    sandbox,
    serving,
    startup,
    sync_reward,
    variants,
    viewer,
    zygote,
)
from benchmarks.report import Report, as_markdown, as_text

__all__ = ["BENCHMARKS", "main"]

BENCHMARKS: dict[str, Callable[..., Report]] = {
    "cold": cold.main,
    "variants": variants.main,
    "cached": cached.main,
    "resume": resume.main,
    "latency": latency.main,
    "memory": memory.main,
    "sync_reward": sync_reward.main,
    "startup": startup.main,
    "rewards_text": rewards_text.main,
    "rewards_tools": rewards_tools.main,
    "sandbox": sandbox.main,
    "zygote": zygote.main,
    "analysis": analysis.main,
    "coverage": coverage.main,
    "rewards_math": rewards_math.main,
    "rewards_code": rewards_code.main,
    "best_of_n": best_of_n.main,
    "batch": batch.main,
    "adapters": adapters.main,
    "agent_forks": agent_forks.main,
    "agents": agents.main,
    "ray": ray.main,
    "serving": serving.main,
    "viewer": viewer.main,
}
"""Every benchmark of the product as a whole, by name. `cached` and `variants` only compare: they have no goals."""


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmarks that were asked for, and print each one's table as soon as it is there."""
    options = _options(arguments)
    reports = []
    for name in options.names or BENCHMARKS:
        start = time.perf_counter()
        report = BENCHMARKS[name](quick=options.quick)
        reports.append(report)
        if not options.markdown:
            print(as_text(report), flush=True)
        print(f"({name} took {time.perf_counter() - start:.0f} s)", file=sys.stderr)
    if options.markdown:
        print(as_markdown(reports))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("benchmarks", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--markdown", action="store_true", help="print one Markdown table in the end")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}")
    return options


if __name__ == "__main__":
    main()
