// SPDX-License-Identifier: Apache-2.0
// pass@k for each k, with its interval as a band.
import { score, spoken } from "../format";
import { Population } from "./whisker";
import type { PassAt } from "../wire";

const WIDTH = 420;
const HEIGHT = 150;
const LEFT = 34;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 22;

export function Curve({ points, samples }: { points: PassAt[]; samples: number }) {
  const last = points[points.length - 1];
  const first = points[0];
  if (!first || !last) return <p class="quiet">Nothing says which scores pass.</p>;
  // k doubles from tick to tick: beyond a few, what matters is the order of magnitude.
  const far = Math.log2(last.k / first.k) || 1;
  const x = (k: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * Math.log2(k / first.k)) / far;
  const y = (value: number): number => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value);
  const path = (read: (point: PassAt) => number): string => points.map((point) => `${x(point.k).toFixed(1)},${y(read(point)).toFixed(1)}`).join(" ");
  const upper = path((point) => point.estimate.high ?? point.estimate.value);
  const lower = [...points].reverse().map((point) => `${x(point.k).toFixed(1)},${y(point.estimate.low ?? point.estimate.value).toFixed(1)}`).join(" ");
  const ticks = points.filter((point) => Number.isInteger(Math.log2(point.k)) || point === last || points.length <= 6);
  const name = `pass@k: ${ticks.map((point) => spoken(`pass@${point.k}`, point.estimate)).join("; ")}`;
  return (
    <figure class="chart">
      <svg role="img" aria-label={name} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width="100%">
        {[0, 0.5, 1].map((value) => (
          <g key={value}>
            <line class="axis" x1={LEFT} x2={WIDTH - RIGHT} y1={y(value)} y2={y(value)} />
            <text x={LEFT - 6} y={y(value) + 4} text-anchor="end">
              {value}
            </text>
          </g>
        ))}
        {points.length > 1 && <polygon class="band" points={`${upper} ${lower}`} />}
        {points.length > 1 && <polyline class="line" points={path((point) => point.estimate.value)} />}
        {points.map((point) => (
          <g key={point.k}>
            {points.length === 1 && (
              <line class="reach" x1={x(point.k)} x2={x(point.k)} y1={y(point.estimate.low ?? point.estimate.value)} y2={y(point.estimate.high ?? point.estimate.value)} />
            )}
            <circle class="dot" cx={x(point.k)} cy={y(point.estimate.value)} r={points.length > 24 ? 1.6 : 3}>
              <title>{spoken(`pass@${point.k}`, point.estimate)}</title>
            </circle>
          </g>
        ))}
        {ticks.map((point) => (
          <text key={point.k} x={x(point.k)} y={HEIGHT - 5} text-anchor={point === last && points.length > 1 ? "end" : "middle"}>
            {point.k}
          </text>
        ))}
      </svg>
      <figcaption>
        k, from pass@{first.k} {score(first.estimate.value)}
        {last !== first && ` to pass@${last.k} ${score(last.estimate.value)}`}
        <Population estimate={last.estimate} of={samples} bounds={last.bounds} />
      </figcaption>
    </figure>
  );
}
