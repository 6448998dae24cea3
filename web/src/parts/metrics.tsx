// SPDX-License-Identifier: Apache-2.0
// The metrics of one verdict, each with its score and its reason.
import { score } from "../format";
import { Word } from "../text/text";
import type { Metric } from "../wire";

export function MetricLines({ metrics }: { metrics: Metric[] }) {
  if (metrics.length === 0) return null;
  return (
    <dl class="metrics">
      {metrics.map((metric) => (
        <div key={metric.name} class={metric.valid ? undefined : "invalid"}>
          <dt>
            <Word text={metric.name} most={60} />
          </dt>
          <dd class="n">
            {metric.score >= 0 && metric.score <= 1 && <span class="level" style={{ transform: `scaleX(${metric.score})` }} />}
            {score(metric.score)}
          </dd>
          <dd class="why">
            {!metric.valid && <span class="badge">not valid</span>} <Word text={metric.reason} most={600} />
          </dd>
        </div>
      ))}
    </dl>
  );
}
