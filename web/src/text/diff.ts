// SPDX-License-Identifier: Apache-2.0
// What two texts have in common, word by word: Myers' shortest edit script, given up where texts differ in too much.

export interface Part {
  kind: "same" | "out" | "in";
  text: string;
}

const MOST_EDITS = 1500;

export function diff(before: string, after: string): Part[] {
  const a = split(before);
  const b = split(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const middle = edits(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  return merged([
    { kind: "same", text: a.slice(0, head).join("") },
    ...middle,
    { kind: "same", text: a.slice(a.length - tail).join("") },
  ]);
}

const split = (text: string): string[] => text.match(/\n|[^\S\n]+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

/** The furthest places reached with 0, 1, 2 … edits, then the way back through them. */
function edits(a: string[], b: string[]): Part[] {
  const whole: Part[] = [
    { kind: "out", text: a.join("") },
    { kind: "in", text: b.join("") },
  ];
  if (a.length === 0 || b.length === 0) return whole;
  const most = Math.min(a.length + b.length, MOST_EDITS);
  const reached = new Int32Array(2 * most + 3);
  const middle = most + 1;
  const trace: Int32Array[] = [];
  for (let count = 0; count <= most; count++) {
    trace.push(reached.slice(middle - count - 1, middle + count + 2));
    for (let k = -count; k <= count; k += 2) {
      const down = k === -count || (k !== count && reached[middle + k - 1]! < reached[middle + k + 1]!);
      let x = down ? reached[middle + k + 1]! : reached[middle + k - 1]! + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x++;
        y++;
      }
      reached[middle + k] = x;
      if (x >= a.length && y >= b.length) return back(a, b, trace, count);
    }
  }
  return whole;
}

function back(a: string[], b: string[], trace: Int32Array[], count: number): Part[] {
  const parts: Part[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = count; d > 0; d--) {
    const held = trace[d]!;
    const at = (k: number): number => held[k + d + 1]!;
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const from = down ? k + 1 : k - 1;
    const fromX = at(from);
    const fromY = fromX - from;
    while (x > fromX && y > fromY) {
      parts.push({ kind: "same", text: a[--x]! });
      y--;
    }
    if (down) parts.push({ kind: "in", text: b[--y]! });
    else parts.push({ kind: "out", text: a[--x]! });
  }
  while (x > 0 && y > 0) {
    parts.push({ kind: "same", text: a[--x]! });
    y--;
  }
  return parts.reverse();
}

function merged(parts: Part[]): Part[] {
  const found: Part[] = [];
  for (const part of parts) {
    if (part.text === "") continue;
    const last = found[found.length - 1];
    if (last?.kind === part.kind) last.text += part.text;
    else found.push({ ...part });
  }
  return found;
}

/** The part of both texts that they share, from 0 to 1. */
export function likeness(parts: Part[]): number {
  const sum = (kind: Part["kind"]): number => parts.reduce((n, part) => n + (part.kind === kind ? part.text.length : 0), 0);
  const same = 2 * sum("same");
  const all = same + sum("in") + sum("out");
  return all === 0 ? 1 : same / all;
}
