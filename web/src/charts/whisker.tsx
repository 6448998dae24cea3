// SPDX-License-Identifier: Apache-2.0
// A figure with its interval on a line: the interval is what the eye compares.
import { count, plural, score, spoken } from "../format";
import type { Estimate } from "../wire";

export type Domain = [low: number, high: number];
export const UNIT: Domain = [0, 1];

/** A domain that holds all estimates; 0 to 1 where they fit into it. */
export function domainOf(estimates: (Estimate | null)[]): Domain {
  const values = estimates.flatMap((one) => (one ? [one.value, one.low ?? one.value, one.high ?? one.value] : []));
  const low = Math.min(0, ...values);
  const high = Math.max(1, ...values);
  return [low, high];
}

const place = (value: number, [low, high]: Domain): string =>
  `${Math.max(0, Math.min(100, (100 * (value - low)) / (high - low || 1))).toFixed(2)}%`;

interface WhiskerProps {
  name: string;
  estimate: Estimate;
  domain?: Domain;
  /** Where a line marks what the others are compared with. */
  zero?: number;
  tone?: "accent" | "good" | "bad" | "quiet";
}

export function Whisker({ name, estimate, domain = UNIT, zero, tone = "accent" }: WhiskerProps) {
  const { value, low, high } = estimate;
  return (
    <svg class={`whisker ${tone}`} role="img" aria-label={spoken(name, estimate)} width="100%" height="16">
      <title>{spoken(name, estimate)}</title>
      <line class="axis" x1="0" x2="100%" y1="8" y2="8" />
      {zero !== undefined && <line class="zero" x1={place(zero, domain)} x2={place(zero, domain)} y1="0" y2="16" />}
      {low !== null && high !== null && (
        <>
          <line class="reach" x1={place(low, domain)} x2={place(high, domain)} y1="8" y2="8" />
          <line class="reach" x1={place(low, domain)} x2={place(low, domain)} y1="4.5" y2="11.5" />
          <line class="reach" x1={place(high, domain)} x2={place(high, domain)} y1="4.5" y2="11.5" />
        </>
      )}
      <circle cx={place(value, domain)} cy="8" r="3.5" />
    </svg>
  );
}

interface FigureProps {
  estimate: Estimate | null;
  /** How many samples there are: where the figure rests on fewer, it says on how many. */
  of?: number | undefined;
  /** What it would be of all of them, if all that is missing were wrong, and if all were right. */
  bounds?: number[] | null | undefined;
}

/** The value and its interval as text. */
export function Figure({ estimate, of, bounds }: FigureProps) {
  if (!estimate) return <span class="quiet">–</span>;
  return (
    <span class="figure">
      {score(estimate.value)}
      {estimate.low !== null && estimate.high !== null && (
        <span class="between">
          {" "}
          {score(estimate.low)} … {score(estimate.high)}
        </span>
      )}
      <Population estimate={estimate} of={of} bounds={bounds} />
    </span>
  );
}

/** On how many samples a figure rests, and what it would be of all. Nothing where it rests on all of them. */
export function Population({ estimate, of, bounds }: FigureProps) {
  if (!estimate || of === undefined || (estimate.count === of && !bounds)) return null;
  return (
    <span class="population" title="Of all: if every missing answer were wrong, and if every one were right">
      {estimate.count !== of && `of ${count(estimate.count)} of ${plural(of, "sample")}`}
      {estimate.count !== of && bounds && "; "}
      {bounds && `of all ${score(bounds[0]!)} to ${score(bounds[1]!)}`}
    </span>
  );
}
