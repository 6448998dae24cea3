// SPDX-License-Identifier: Apache-2.0
// Made by scripts/generate_wire.py from reward_kit/viewer/wire.py. Do not edit: `make web` makes it anew.

/** A value of a cell of the table: text is cut to an excerpt there, never on a sample's page. */
export type Cell = string | number | boolean | null;

/** A figure with its interval. */
export interface Estimate {
  value: number;
  low: number | null;
  high: number | null;
  confidence: number;
  /** How many samples it rests on. */
  count: number;
}

/** pass@k: every k of a run rests on the same samples. */
export interface PassAt {
  k: number;
  estimate: Estimate;
  /** Where answers are missing: pass@k of all samples, if all of these were wrong, and if all were right. */
  bounds: number[] | null;
}

/** One run in a line of the overview. */
export interface RunCard {
  /** Stable for a path: the last part of its address. */
  key: string;
  kind: "run" | "best-of-n" | "shell";
  title: string;
  path: string;
  models: string[];
  n: number;
  samples: number;
  records: number;
  judged: number;
  failed: number;
  mean: Estimate | null;
  /** Verified candidates; None where nobody said which scores pass. */
  rate: Estimate | null;
  /** Where answers have no verdict: the rate of all, if all of these were wrong, and if all were right. */
  rate_bounds: number[] | null;
  pass_at: PassAt[];
  cost: number | null;
  started_at: string | null;
  /** False while a process works there, and for a run that was cut short. */
  finished: boolean;
  /** Whether a process works there now. */
  live: boolean;
  reviews: number;
  /** Why it cannot be shown, where it cannot. */
  problem: string | null;
  /** How much of a large file was read so far, from 0 to 1; then there are no figures yet: ask again in a second. */
  reading: number | null;
}

export interface Overview {
  version: string;
  runs: RunCard[];
  allow_run: boolean;
  reviewer: string;
}

export interface Bin {
  low: number;
  high: number;
  count: number;
}

export interface MetricLine {
  name: string;
  mean: Estimate;
  count: number;
}

export interface SplitLine {
  name: string;
  samples: number;
  records: number;
  mean: Estimate | null;
  rate: Estimate | null;
  rate_bounds: number[] | null;
  pass_at: PassAt[];
}

export interface RecordPlace {
  id: string;
  index: number;
}

export interface FailureLine {
  /** Stage and type, such as `generation: TimeoutError`. */
  kind: string;
  count: number;
  message: string;
  examples: RecordPlace[];
}

/** How something is spread over the requests: tokens, latency, cost. */
export interface QuantileLine {
  name: string;
  unit: string;
  mean: number;
  p50: number;
  p90: number;
  p99: number;
  total: number | null;
}

export interface ColumnInfo {
  /** What `sort` and `where` call it. Metrics are `metric.NAME`, dataset columns `data.NAME`. */
  name: string;
  label: string;
  type: "number" | "text" | "boolean";
  group: "core" | "metric" | "data";
  /** Long text: shown as an excerpt, not sorted by. */
  wide: boolean;
  /** All its values, where it has few. */
  choices: string[] | null;
}

export interface RunPage {
  card: RunCard;
  /** The terminal's figures as `inspect` prints them: name and text with the interval. */
  figures: string[][];
  notes: string[];
  histogram: Bin[];
  threshold: number | null;
  curve: PassAt[];
  choosing: Record<string, unknown>[];
  metrics: MetricLine[];
  splits: SplitLine[];
  failures: FailureLine[];
  spending: QuantileLine[];
  hardest: RecordPlace[];
  contested: RecordPlace[];
  columns: Record<"sample" | "record", ColumnInfo[]>;
  config: string | null;
  manifest: Record<string, unknown> | null;
}

/** What became of a run: sent when it changes, and every few seconds as a sign of life. */
export interface Change {
  /** Larger after every change: figures and rows asked for with an older one are out of date. */
  version: number;
  records: number;
  judged: number;
  failed: number;
  mean: number | null;
  /** How many records there will be, where that is known. */
  expected: number | null;
  live: boolean;
  /** The directory or file is no longer there. */
  gone: boolean;
}

export interface Row {
  id: string;
  /** None where a row is a sample. */
  index: number | null;
  cells: Cell[];
}

export interface Rows {
  version: number;
  total: number;
  offset: number;
  columns: string[];
  rows: Row[];
}

export interface SearchProgress {
  done: boolean;
  /** Records looked at. */
  read: number;
  records: number;
  found: number;
  /** The new ones since the last event, the first hundred at most; the rest by `rows` with the same `q`. */
  hits: Row[];
}

/** A part of a text that the reward took from it, in characters (UTF-16 units, as the page counts them). */
export interface Span {
  start: number;
  end: number;
  what: string;
}

export interface Metric {
  name: string;
  score: number;
  valid: boolean;
  reason: string;
}

/** A message, or a step of an episode. */
export interface Part {
  role: string;
  text: string;
  reasoning: string | null;
  name: string | null;
  /** Each with `name` and `arguments` (text), and `id`. */
  tool_calls: Record<string, string>[];
}

/** A step of a trajectory: what was done, what came back, what it was worth. */
export interface Step {
  number: number;
  does: Part;
  answers: Part[];
  command: string | null;
  output: string | null;
  exit_code: number | null;
  seconds: number | null;
  reward: number | null;
  error: string | null;
}

export interface Candidate {
  index: number;
  score: number | null;
  passed: boolean | null;
  valid: boolean;
  failure: string | null;
  failure_kind: string | null;
  reason: string;
  metrics: Metric[];
  response: Part;
  /** In `response.text`. */
  spans: Span[];
  steps: Step[];
  model: string;
  finish_reason: string | null;
  latency_ms: number | null;
  /** Of the request that gave this answer, where they are written down: on the first of its answers. */
  tokens: number | null;
  cost: number | null;
  /** How many answers that request gave; None where nobody knows. */
  request_answers: number | null;
  cached: boolean;
  /** The last word on it, of whoever looks now. */
  review: Review | null;
  /** A `reward-kit rewards try …` command that reproduces the verdict, or why there is none. */
  command: string;
  /** Which file the command judges with, or needs, where that is not certain. */
  command_note: string;
}

/** The samples before and after this one in the table's order; None at its ends. */
export interface Neighbours {
  position: number;
  total: number;
  previous: string | null;
  next: string | null;
  previous_failure: string | null;
  next_failure: string | null;
}

export interface SamplePage {
  version: number;
  id: string;
  split: string;
  prompt: Part[];
  tools: Record<string, unknown>[];
  ground_truth: string | null;
  columns: Record<string, unknown>;
  candidates: Candidate[];
  neighbours: Neighbours;
}

export interface DifferenceLine {
  figure: string;
  split: string;
  samples: number;
  a: number;
  b: number;
  difference: number;
  low: number;
  high: number;
  p_value: number | null;
  won: number;
  lost: number;
  tied: number;
}

export interface ComparePage {
  /** As asked for; the first is the baseline of the others. */
  runs: RunCard[];
  pairings: Pairing[];
}

export interface Pairing {
  a: string;
  b: string;
  common: number;
  only_a: number;
  only_b: number;
  differences: DifferenceLine[];
  /** Of the first candidates, or of majority where there are several: [[both pass, only a], [only b, neither]]. */
  table: number[][] | null;
  table_of: string;
  /** Samples with the same id in both that are not the same sample: they are in no figure, and in no list. */
  left_out: number;
  /** False where it is known that different rewards judged: then no run is better than the other. */
  same_reward: boolean;
  /** What is to be known before the figures, the gravest first. */
  notes: string[];
}

export interface CompareRow {
  id: string;
  split: string;
  query: string;
  a: number | null;
  b: number | null;
  difference: number | null;
}

export interface CompareRows {
  total: number;
  offset: number;
  rows: CompareRow[];
}

export interface NewReview {
  id: string;
  index: number;
  says: "right" | "wrong" | "unclear";
  note: string;
  choice: "random" | "disagreement" | "browsing";
  /** What `reviews/next` gave with the record: it knows with what probability it was chosen. */
  ticket: string | null;
}

/** One decision, as it stands in `reviews.jsonl`. */
export interface Review {
  id: string;
  response_index: number;
  says: "right" | "wrong" | "unclear";
  note: string;
  reviewer: string;
  at: string;
  score: number | null;
  passed: boolean | null;
  reason: string;
  results_digest: string;
  /** Of the answer that was looked at: a review says nothing of another one in its place. */
  answer_digest: string;
  chosen: "random" | "disagreement" | "browsing";
  /** Of this draw; None where the reviewer chose. */
  probability: number | null;
  /** How many records the draw was made from. */
  pool: number | null;
  /** From which score on an answer passes, as it was shown beside a graded score. */
  threshold: number | null;
}

export interface ReviewPage {
  /** The last word of each reviewer on each record, newest first. */
  reviews: Review[];
  /** Precision, recall and agreement as `reward-kit review` prints them: name, value with interval, what it means. */
  figures: string[][];
  /** What a reader should know before believing a figure. */
  notes: string[];
  wrong: number;
  /** Reviews of verdicts that have changed since. */
  outdated: number;
}

export interface NextReview {
  record: RecordPlace | null;
  ticket: string | null;
  left: number;
  why: string;
}

export interface Trial {
  id: string;
  index: number;
  answer: string;
  ground_truth: string | null;
}

export interface TrialResult {
  score: number | null;
  passed: boolean | null;
  reason: string;
  metrics: Metric[];
  failure: string | null;
  seconds: number;
}
