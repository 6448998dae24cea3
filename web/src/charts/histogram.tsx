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
  // Scores of a few kinds, such as 0 and 1, have no width: their bars stand at even distances.
  const kinds = bins.some((bin) => bin.high === bin.low);
  const place = 100 / bins.length;
  const reach = last.high - first.low || 1;
  const x = (value: number): number => (100 * (value - first.low)) / reach;
  const left = (bin: Bin, nth: number): number => (kinds ? (nth + 0.5) * place - width(bin) / 2 : x(bin.low));
  const width = (bin: Bin): number => (kinds ? Math.min(14, place) : x(bin.high) - x(bin.low));
  const line = threshold !== null && !kinds && x(threshold) > 0 && x(threshold) < 100 ? threshold : null;
  return (
    <figure class="chart">
      <svg role="group" aria-label={`Scores of ${plural(bins.reduce((sum, bin) => sum + bin.count, 0), "record")}`} width="100%" height={HEIGHT + 20}>
        <line class="axis" x1="0" x2="100%" y1={HEIGHT + 0.5} y2={HEIGHT + 0.5} />
        {bins.map((bin, nth) => {
          const height = bin.count === 0 ? 0 : Math.max(2, ((HEIGHT - 16) * bin.count) / most);
          const name = `${bin.low === bin.high ? number(bin.low) : `${number(bin.low)} to ${number(bin.high)}`}: ${plural(bin.count, "record")}`;
          const passes = threshold !== null && bin.low >= threshold - 1e-12;
          const [start, wide] = [left(bin, nth), width(bin)];
          const bar = (
            <>
              <rect class="touch" x={`${start}%`} width={`${wide}%`} y="0" height={HEIGHT} />
              <rect class={threshold === null ? "bar" : passes ? "bar good" : "bar bad"} x={`${start + wide * 0.06}%`} width={`${wide * 0.88}%`} y={HEIGHT - height} height={height} />
              {(bin.count === most || bins.length <= 12) && (
                <text x={`${start + wide / 2}%`} y={HEIGHT - height - 5} text-anchor="middle" aria-hidden="true">
                  {count(bin.count)}
                </text>
              )}
            </>
          );
          return bin.count === 0 ? null : (
            <a key={nth} href={href(bin, nth === bins.length - 1)}>
              <title>{name}</title>
              {bar}
            </a>
          );
        })}
        {line !== null && <line class="threshold" x1={`${x(line)}%`} x2={`${x(line)}%`} y1="0" y2={HEIGHT} />}
        {kinds ? (
          bins.map((bin, nth) => (
            <text key={bin.low} x={`${left(bin, nth) + width(bin) / 2}%`} y={HEIGHT + 15} text-anchor="middle">
              {number(bin.low)}
            </text>
          ))
        ) : (
          <>
            <text x="0" y={HEIGHT + 15}>
              {number(first.low)}
            </text>
            <text x="100%" y={HEIGHT + 15} text-anchor="end">
              {number(last.high)}
            </text>
          </>
        )}
        {line !== null && (
          <text x={`${x(line) > 50 ? x(line) - 1 : x(line) + 1}%`} y="10" text-anchor={x(line) > 50 ? "end" : "start"}>
            passes from {number(line)}
          </text>
        )}
      </svg>
    </figure>
  );
}
