# SPDX-License-Identifier: Apache-2.0
"""What the page and its server say to each other, as types: the one description that both are made from.

    GET  /api/runs                               Overview
    GET  /api/runs/{key}                         RunPage
    GET  /api/runs/{key}/changes                 events of type Change, as long as the page listens
    GET  /api/runs/{key}/rows?<VIEW>&offset=&limit=[&columns=id,score …]     Rows (without `columns`: all of them)
    GET  /api/runs/{key}/search?<VIEW>           events of type SearchProgress, until `done` is true
         both: server-sent events; one of the type `problem` holds an error and is the last
    GET  /api/runs/{key}/samples/{id}?<VIEW>     SamplePage
    GET  /api/runs/{key}/records/{id}/{index}    the record's lines as they stand in the files: {"result", "rollout"}
    GET  /api/runs/{key}/reviews                 ReviewPage
    POST /api/runs/{key}/reviews                 takes NewReview, answers Review
    GET  /api/runs/{key}/reviews/next?choose=random|disagreement     NextReview
    POST /api/runs/{key}/try                     takes Trial, answers TrialResult; 403 without --allow-run
    GET  /api/compare?runs=a,b[,c …]             ComparePage
    GET  /api/compare/rows?a=&b=&cell=&split=&offset=&limit=         CompareRows
         cell: both, only_a, only_b, neither (of the 2x2 table), differ (scores differ; the default), all

VIEW is the state of a table, the same words in the page's own address, so that every state has a permalink:

    by=sample|record   sort=-score (a column, `-` for descending)   q=text to search for
    where=COLUMN:OP:VALUE, any number of times; OP is one of eq ne lt le gt ge has empty filled
    contested=1        only samples of which some candidates pass and some do not

The terminal's address is `/?token=…`. It is answered with the page and a cookie that the page's own requests then
carry; the page takes the token out of the address bar (`history.replaceState`). A POST must be JSON
(`content-type: application/json`). A sample's id in an address is encoded as one part (`encodeURIComponent`).

The page's own addresses, all answered with `static/index.html`: `/`, `/runs/{key}`, `/runs/{key}/table?<VIEW>`,
`/runs/{key}/sample?id=&<VIEW>`, `/runs/{key}/review`, `/compare?runs=a,b`. Its files are `/static/NAME-HASH.EXT`, whose
names change with their contents: they can be kept for ever.

An error is answered as `{"error": {"code", "message"}}` with its HTTP status, and the message ends with what to do.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

Cell: TypeAlias = str | float | int | bool | None
"""A value of a cell of the table: text is cut to an excerpt there, never on a sample's page."""


class Estimate(TypedDict):
    """A figure with its interval."""

    value: float
    low: float | None
    high: float | None
    confidence: float
    count: int
    """How many samples it rests on."""


class PassAt(TypedDict):
    """pass@k: every k of a run rests on the same samples."""

    k: int
    estimate: Estimate
    bounds: list[float] | None
    """Where answers are missing: pass@k of all samples, if all of these were wrong, and if all were right."""


class RunCard(TypedDict):
    """One run in a line of the overview."""

    key: str
    """Stable for a path: the last part of its address."""
    kind: Literal["run", "best-of-n", "shell"]
    title: str
    path: str
    models: list[str]
    n: int
    samples: int
    records: int
    judged: int
    failed: int
    mean: Estimate | None
    rate: Estimate | None
    """Verified candidates; None where nobody said which scores pass."""
    rate_bounds: list[float] | None
    """Where answers have no verdict: the rate of all, if all of these were wrong, and if all were right."""
    pass_at: list[PassAt]
    cost: float | None
    started_at: str | None
    finished: bool
    """False while a process works there, and for a run that was cut short."""
    live: bool
    """Whether a process works there now."""
    reviews: int
    problem: str | None
    """Why it cannot be shown, where it cannot."""
    reading: float | None
    """How much of a large file was read so far, from 0 to 1; then there are no figures yet: ask again in a second."""


class Overview(TypedDict):
    version: str
    runs: list[RunCard]
    allow_run: bool
    reviewer: str


class Bin(TypedDict):
    low: float
    high: float
    count: int


class MetricLine(TypedDict):
    name: str
    mean: Estimate
    count: int


class SplitLine(TypedDict):
    name: str
    samples: int
    records: int
    mean: Estimate | None
    rate: Estimate | None
    rate_bounds: list[float] | None
    pass_at: list[PassAt]


class RecordPlace(TypedDict):
    id: str
    index: int


class FailureLine(TypedDict):
    kind: str
    """Stage and type, such as `generation: TimeoutError`."""
    count: int
    message: str
    examples: list[RecordPlace]


class QuantileLine(TypedDict):
    """How something is spread over the requests: tokens, latency, cost."""

    name: str
    unit: str
    mean: float
    p50: float
    p90: float
    p99: float
    total: float | None


class ColumnInfo(TypedDict):
    name: str
    """What `sort` and `where` call it. Metrics are `metric.NAME`, dataset columns `data.NAME`."""
    label: str
    type: Literal["number", "text", "boolean"]
    group: Literal["core", "metric", "data"]
    wide: bool
    """Long text: shown as an excerpt, not sorted by."""
    choices: list[str] | None
    """All its values, where it has few."""


class RunPage(TypedDict):
    card: RunCard
    figures: list[list[str]]
    """The terminal's figures as `inspect` prints them: name and text with the interval."""
    notes: list[str]
    histogram: list[Bin]
    threshold: float | None
    curve: list[PassAt]
    choosing: list[dict[str, Any]]
    metrics: list[MetricLine]
    splits: list[SplitLine]
    failures: list[FailureLine]
    spending: list[QuantileLine]
    hardest: list[RecordPlace]
    contested: list[RecordPlace]
    columns: dict[Literal["sample", "record"], list[ColumnInfo]]
    config: str | None
    manifest: dict[str, Any] | None


class Change(TypedDict):
    """What became of a run: sent when it changes, and every few seconds as a sign of life."""

    version: int
    """Larger after every change: figures and rows asked for with an older one are out of date."""
    records: int
    judged: int
    failed: int
    mean: float | None
    expected: int | None
    """How many records there will be, where that is known."""
    live: bool
    gone: bool
    """The directory or file is no longer there."""


class Row(TypedDict):
    id: str
    index: int | None
    """None where a row is a sample."""
    cells: list[Cell]


class Rows(TypedDict):
    version: int
    total: int
    offset: int
    columns: list[str]
    rows: list[Row]


class SearchProgress(TypedDict):
    done: bool
    read: int
    """Records looked at."""
    records: int
    found: int
    hits: list[Row]
    """The new ones since the last event, the first hundred at most; the rest by `rows` with the same `q`."""


class Span(TypedDict):
    """A part of a text that the reward took from it, in characters (UTF-16 units, as the page counts them)."""

    start: int
    end: int
    what: str


class Metric(TypedDict):
    name: str
    score: float
    valid: bool
    reason: str


class Part(TypedDict):
    """A message, or a step of an episode."""

    role: str
    text: str
    reasoning: str | None
    name: str | None
    tool_calls: list[dict[str, str]]
    """Each with `name` and `arguments` (text), and `id`."""


class Step(TypedDict):
    """A step of a trajectory: what was done, what came back, what it was worth."""

    number: int
    does: Part
    answers: list[Part]
    command: str | None
    output: str | None
    exit_code: int | None
    seconds: float | None
    reward: float | None
    error: str | None


class Candidate(TypedDict):
    index: int
    score: float | None
    passed: bool | None
    valid: bool
    failure: str | None
    failure_kind: str | None
    reason: str
    metrics: list[Metric]
    response: Part
    spans: list[Span]
    """In `response.text`."""
    steps: list[Step]
    model: str
    finish_reason: str | None
    latency_ms: float | None
    tokens: int | None
    """Of the request that gave this answer, where they are written down: on the first of its answers."""
    cost: float | None
    request_answers: int | None
    """How many answers that request gave; None where nobody knows."""
    cached: bool
    review: Review | None
    """The last word on it, of whoever looks now."""
    command: str
    """A `reward-kit rewards try …` command that reproduces the verdict, or why there is none."""
    command_note: str
    """Which file the command judges with, or needs, where that is not certain."""


class Neighbours(TypedDict):
    """The samples before and after this one in the table's order; None at its ends."""

    position: int
    total: int
    previous: str | None
    next: str | None
    previous_failure: str | None
    next_failure: str | None


class SamplePage(TypedDict):
    version: int
    id: str
    split: str
    prompt: list[Part]
    tools: list[dict[str, Any]]
    ground_truth: str | None
    columns: dict[str, Any]
    candidates: list[Candidate]
    neighbours: Neighbours


class DifferenceLine(TypedDict):
    figure: str
    split: str
    samples: int
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float | None
    won: int
    lost: int
    tied: int


class ComparePage(TypedDict):
    runs: list[RunCard]
    """As asked for; the first is the baseline of the others."""
    pairings: list[Pairing]


class Pairing(TypedDict):
    a: str
    b: str
    common: int
    only_a: int
    only_b: int
    differences: list[DifferenceLine]
    table: list[list[int]] | None
    """Of the first candidates, or of majority where there are several: [[both pass, only a], [only b, neither]]."""
    table_of: str
    left_out: int
    """Samples with the same id in both that are not the same sample: they are in no figure, and in no list."""
    same_reward: bool
    """False where it is known that different rewards judged: then no run is better than the other."""
    notes: list[str]
    """What is to be known before the figures, the gravest first."""


class CompareRow(TypedDict):
    id: str
    split: str
    query: str
    a: float | None
    b: float | None
    difference: float | None


class CompareRows(TypedDict):
    total: int
    offset: int
    rows: list[CompareRow]


class NewReview(TypedDict):
    id: str
    index: int
    says: Literal["right", "wrong", "unclear"]
    note: str
    choice: Literal["random", "disagreement", "browsing"]
    ticket: str | None
    """What `reviews/next` gave with the record: it knows with what probability it was chosen."""


class Review(TypedDict):
    """One decision, as it stands in `reviews.jsonl`."""

    id: str
    response_index: int
    says: Literal["right", "wrong", "unclear"]
    note: str
    reviewer: str
    at: str
    score: float | None
    passed: bool | None
    reason: str
    results_digest: str
    answer_digest: str
    """Of the answer that was looked at: a review says nothing of another one in its place."""
    chosen: Literal["random", "disagreement", "browsing"]
    probability: float | None
    """Of this draw; None where the reviewer chose."""
    pool: int | None
    """How many records the draw was made from."""
    threshold: float | None
    """From which score on an answer passes, as it was shown beside a graded score."""


class ReviewPage(TypedDict):
    reviews: list[Review]
    """The last word of each reviewer on each record, newest first."""
    figures: list[list[str]]
    """Precision, recall and agreement as `reward-kit review` prints them: name, value with interval, what it means."""
    notes: list[str]
    """What a reader should know before believing a figure."""
    wrong: int
    outdated: int
    """Reviews of verdicts that have changed since."""


class NextReview(TypedDict):
    record: RecordPlace | None
    ticket: str | None
    left: int
    why: str


class Trial(TypedDict):
    id: str
    index: int
    answer: str
    ground_truth: str | None


class TrialResult(TypedDict):
    score: float | None
    passed: bool | None
    reason: str
    metrics: list[Metric]
    failure: str | None
    seconds: float
