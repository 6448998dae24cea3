// SPDX-License-Identifier: Apache-2.0
// How scores are spread. A bar leads to its records.
import { count, number, plural } from "../format";
import type { Bin } from "../wire";

const HEIGHT = 120;

interface HistogramProps {
  bins: Bin[];
  threshold: number | null;
  href: (bin: Bin, last: boolean) => string;
}

export function Histogram({ bins, threshold, href }: HistogramProps) {
  const first = bins[0];
  const last = bins[bins.length - 1];
  if (!first || !last) return <p class="quiet">No score yet.</p>;
  const most = Math.max(...bins.map((bin) => bin.count), 1);
  const reach = last.high - first.low || 1;
  const x = (value: number): number => (100 * (value - first.low)) / reach;
  return (
    <figure class="chart">
      <svg role="group" aria-label={`Scores of ${plural(bins.reduce((sum, bin) => sum + bin.count, 0), "record")}`} width="100%" height={HEIGHT + 20}>
        <line class="axis" x1="0" x2="100%" y1={HEIGHT + 0.5} y2={HEIGHT + 0.5} />
        {bins.map((bin, nth) => {
          const height = bin.count === 0 ? 0 : Math.max(2, ((HEIGHT - 16) * bin.count) / most);
          const name = `${number(bin.low)} to ${number(bin.high)}: ${plural(bin.count, "record")}`;
          const passes = threshold !== null && bin.low >= threshold - 1e-12;
          // One bar may be all there is: then it is not as wide as the page.
          const wide = bins.length === 1 ? 12 : x(bin.high) - x(bin.low);
          const bar = (
            <>
              <rect class="touch" x={`${x(bin.low)}%`} width={`${wide}%`} y="0" height={HEIGHT} />
              <rect class={threshold === null ? "bar" : passes ? "bar good" : "bar bad"} x={`${x(bin.low) + wide * 0.06}%`} width={`${wide * 0.88}%`} y={HEIGHT - height} height={height} />
              {(bin.count === most || bins.length <= 12) && (
                <text x={`${x(bin.low) + wide / 2}%`} y={HEIGHT - height - 5} text-anchor="middle">
                  {count(bin.count)}
                </text>
              )}
            </>
          );
          return bin.count === 0 ? null : (
            <a key={nth} href={href(bin, nth === bins.length - 1)} aria-label={name}>
              <title>{name}</title>
              {bar}
            </a>
          );
        })}
        {threshold !== null && x(threshold) > 0 && x(threshold) < 100 && (
          <line class="threshold" x1={`${x(threshold)}%`} x2={`${x(threshold)}%`} y1="0" y2={HEIGHT} />
        )}
        <text x="0" y={HEIGHT + 15}>
          {number(first.low)}
        </text>
        <text x="100%" y={HEIGHT + 15} text-anchor="end">
          {number(last.high)}
        </text>
        {threshold !== null && x(threshold) > 0 && x(threshold) < 100 && (
          <text x={`${x(threshold) > 50 ? x(threshold) - 1 : x(threshold) + 1}%`} y="10" text-anchor={x(threshold) > 50 ? "end" : "start"}>
            passes from {number(threshold)}
          </text>
        )}
      </svg>
    </figure>
  );
}
