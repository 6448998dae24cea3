// SPDX-License-Identifier: Apache-2.0
// Whether something passed: by sign, by word and by colour, so that none of them is needed alone.
import { score } from "../format";

export function Verdict({ passed, value, failed }: { passed: boolean | null; value?: number | null; failed?: boolean }) {
  const kind = failed ? "broken" : passed === null ? "none" : passed ? "good" : "bad";
  const word = failed ? "failed" : passed === null ? "not decided" : passed ? "passes" : "does not pass";
  const sign = failed ? "!" : passed === null ? "·" : passed ? "✓" : "✗";
  return (
    <span class={`verdict ${kind}`}>
      <span aria-hidden="true">{sign}</span>
      <span class="said">{word}</span>
      {value !== undefined && value !== null && <span class="value">{score(value)}</span>}
    </span>
  );
}
