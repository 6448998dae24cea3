// SPDX-License-Identifier: Apache-2.0
// Two texts in one: what left, what came, what stayed.
import { useMemo } from "preact/hooks";
import { percent } from "../format";
import { diff, likeness } from "../text/diff";
import { visible } from "../text/visible";

const MOST = 40_000;

export function Difference({ before, after, names }: { before: string; after: string; names: [string, string] }) {
  const parts = useMemo(() => diff(before.slice(0, MOST), after.slice(0, MOST)), [before, after]);
  const cut = before.length > MOST || after.length > MOST;
  return (
    <div class="difference">
      <p class="quiet">
        <del>only in {names[0]}</del> <ins>only in {names[1]}</ins> · {percent(likeness(parts))} in common
        {cut && " · only the first 40,000 characters of each"}
      </p>
      <div class="text raw" dir="auto">
        <pre class="plain">
          {parts.map((part, nth) =>
            part.kind === "same" ? (
              <span key={nth}>{visible(part.text)}</span>
            ) : part.kind === "out" ? (
              <del key={nth}>{visible(part.text)}</del>
            ) : (
              <ins key={nth}>{visible(part.text)}</ins>
            ),
          )}
        </pre>
      </div>
    </div>
  );
}
