# SPDX-License-Identifier: Apache-2.0
"""Statistics of best-of-N experiments: how often, how sure, what another candidate is worth, which of two is better.

    from reward_kit.analysis import analyse, compare

    report = analyse("experiments/results/baseline_run.parquet")
    print(report.overall.rate, report.optimal.n)

Every function takes a path (Parquet, a run directory, a results.jsonl), a pandas or polars DataFrame, an Arrow table,
or the `JudgedAnswers` that `load` returned.
"""

from reward_kit.errors import MissingExtraError

try:
    import numpy as _numpy
    import pyarrow as _pyarrow
except ImportError as missing:
    raise MissingExtraError("Analysing experiments", "analysis") from missing
else:
    del _numpy, _pyarrow

from reward_kit.analysis.coverage import Coverage, coverage
from reward_kit.analysis.figures import RunFigures, VotePoint, run_figures
from reward_kit.analysis.hardest import QueryLine, contested_queries, hardest_queries
from reward_kit.analysis.judged_answers import JudgedAnswers
from reward_kit.analysis.loading import load
from reward_kit.analysis.optimal_n import OptimalN, Step, optimal_n
from reward_kit.analysis.pass_curve import CurvePoint, pass_curve
from reward_kit.analysis.present.formats import as_csv, as_json, as_markdown
from reward_kit.analysis.present.pictures import plot
from reward_kit.analysis.rates import CandidateRate, candidate_rates, verification_rates
from reward_kit.analysis.report import Report, analyse
from reward_kit.analysis.run_comparison import Difference, Flip, Pairing, RunComparison, SideBySide, compare
from reward_kit.analysis.scores import Bin, ScoreSpread
from reward_kit.analysis.spending import Quantiles, spending
from reward_kit.analysis.voting import majority_rate

__all__ = [
    "Bin",
    "CandidateRate",
    "Coverage",
    "CurvePoint",
    "Difference",
    "Flip",
    "JudgedAnswers",
    "OptimalN",
    "Pairing",
    "Quantiles",
    "QueryLine",
    "Report",
    "RunComparison",
    "RunFigures",
    "ScoreSpread",
    "SideBySide",
    "Step",
    "VotePoint",
    "analyse",
    "as_csv",
    "as_json",
    "as_markdown",
    "candidate_rates",
    "compare",
    "contested_queries",
    "coverage",
    "hardest_queries",
    "load",
    "majority_rate",
    "optimal_n",
    "pass_curve",
    "plot",
    "run_figures",
    "spending",
    "verification_rates",
]
