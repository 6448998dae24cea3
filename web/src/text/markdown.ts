// SPDX-License-Identifier: Apache-2.0
// Markdown as models write it, read into a tree. HTML in it stays text. Every step looks at a character a bounded
// number of times, so that no text takes long.
import { Piece } from "./piece";

export type Inline =
  | { kind: "text" | "code"; piece: Piece }
  | { kind: "math"; piece: Piece; display: boolean }
  | { kind: "strong" | "em" | "del"; children: Inline[] }
  | { kind: "link"; children: Inline[]; target: Piece; image: boolean };

export type Block =
  | { kind: "paragraph"; children: Inline[] }
  | { kind: "heading"; level: number; children: Inline[] }
  | { kind: "code"; language: string; piece: Piece }
  | { kind: "math"; piece: Piece }
  | { kind: "quote"; children: Block[] }
  | { kind: "list"; start: number | null; items: Block[][] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

const DEEPEST = 8;

export function markdown(source: Piece): Block[] {
  return blocks(source.lines(), 0);
}

// ── blocks ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^(\s*)([-*+•]|\d{1,9}[.)])(\s+|$)/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const MATH_BLOCK = /^\s*(\$\$|\\\[|\\begin\{(align|aligned|equation|gather|cases|array|pmatrix|bmatrix|matrix)\*?\})/;

type Reader = (lines: Piece[], at: number, depth: number) => { block: Block; next: number } | null;

function blocks(lines: Piece[], depth: number): Block[] {
  const found: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    if (lines[at]!.text.trim() === "") {
      at++;
      continue;
    }
    const read = READERS.reduce<ReturnType<Reader>>((seen, reader) => seen ?? reader(lines, at, depth), null);
    if (read) {
      found.push(read.block);
      at = read.next;
      continue;
    }
    const start = at++;
    while (at < lines.length && !interrupts(lines, at)) at++;
    found.push({ kind: "paragraph", children: inline(Piece.join(lines.slice(start, at)).trim(), depth) });
  }
  return found;
}

function interrupts(lines: Piece[], at: number): boolean {
  const text = lines[at]!.text;
  return (
    text.trim() === "" ||
    FENCE.test(text) ||
    HEADING.test(text) ||
    RULE.test(text) ||
    QUOTE.test(text) ||
    ITEM.test(text) ||
    MATH_BLOCK.test(text) ||
    isTable(lines, at)
  );
}

const isTable = (lines: Piece[], at: number): boolean =>
  lines[at]!.text.includes("|") && at + 1 < lines.length && lines[at + 1]!.text.includes("-") && DIVIDER.test(lines[at + 1]!.text);

const fence: Reader = (lines, at) => {
  const opened = FENCE.exec(lines[at]!.text);
  if (!opened) return null;
  const closing = new RegExp(`^\\s*${opened[1]![0]}{${opened[1]!.length},}\\s*$`);
  let end = at + 1;
  while (end < lines.length && !closing.test(lines[end]!.text)) end++;
  const piece = Piece.join(lines.slice(at + 1, end));
  return { block: { kind: "code", language: opened[2]!.toLowerCase(), piece }, next: end + 1 };
};

const heading: Reader = (lines, at, depth) => {
  const found = HEADING.exec(lines[at]!.text);
  if (!found) return null;
  const start = lines[at]!.text.indexOf(found[2]!, lines[at]!.text.indexOf(found[1]!) + found[1]!.length);
  const children = inline(lines[at]!.slice(start, start + found[2]!.length), depth);
  return { block: { kind: "heading", level: found[1]!.length, children }, next: at + 1 };
};

const rule: Reader = (lines, at) => (RULE.test(lines[at]!.text) ? { block: { kind: "rule" }, next: at + 1 } : null);

const quote: Reader = (lines, at, depth) => {
  if (depth >= DEEPEST || !QUOTE.test(lines[at]!.text)) return null;
  const inside: Piece[] = [];
  let next = at;
  for (; next < lines.length && lines[next]!.text.trim() !== ""; next++) {
    const marked = QUOTE.exec(lines[next]!.text);
    inside.push(lines[next]!.slice(marked ? marked[0].length : 0));
  }
  return { block: { kind: "quote", children: blocks(inside, depth + 1) }, next };
};

const indentOf = (text: string): number => text.length - text.trimStart().length;

const list: Reader = (lines, at, depth) => {
  const first = ITEM.exec(lines[at]!.text);
  if (depth >= DEEPEST || !first) return null;
  const ordered = /\d/.test(first[2]!);
  const outer = first[1]!.length;
  const items: Block[][] = [];
  let next = at;
  while (next < lines.length) {
    const marked = ITEM.exec(lines[next]!.text);
    if (!marked || marked[1]!.length > outer + 1 || marked[1]!.length < outer || /\d/.test(marked[2]!) !== ordered) break;
    const indent = marked[0].length;
    const inside = [lines[next]!.slice(indent)];
    next++;
    while (next < lines.length) {
      const text = lines[next]!.text;
      if (text.trim() === "") {
        const after = lines[next + 1]?.text ?? "";
        if (after.trim() === "" || indentOf(after) <= outer) break;
      } else if (indentOf(text) <= outer && (ITEM.test(text) || interrupts(lines, next))) break;
      inside.push(lines[next]!.slice(Math.min(indent, indentOf(text))));
      next++;
    }
    items.push(blocks(inside, depth + 1));
    // A list goes on after one empty line.
    if (next + 1 < lines.length && lines[next]!.text.trim() === "") {
      const marked = ITEM.exec(lines[next + 1]!.text);
      if (marked && marked[1]!.length === outer && /\d/.test(marked[2]!) === ordered) next++;
    }
  }
  return { block: { kind: "list", start: ordered ? Number.parseInt(first[2]!, 10) : null, items }, next };
};

const table: Reader = (lines, at, depth) => {
  if (!isTable(lines, at)) return null;
  const head = cells(lines[at]!, depth);
  const rows: Inline[][][] = [];
  let next = at + 2;
  for (; next < lines.length && lines[next]!.text.includes("|"); next++) {
    rows.push(cells(lines[next]!, depth).slice(0, head.length));
  }
  return { block: { kind: "table", head, rows }, next };
};

function cells(line: Piece, depth: number): Inline[][] {
  const trimmed = line.trim();
  const found: Inline[][] = [];
  let start = trimmed.text.startsWith("|") ? 1 : 0;
  for (let place = start; place <= trimmed.length; place++) {
    if (trimmed.text[place] === "\\") place++;
    else if (place === trimmed.length || trimmed.text[place] === "|") {
      if (place < trimmed.length || start < place) found.push(inline(trimmed.slice(start, place).trim(), depth));
      start = place + 1;
    }
  }
  return found;
}

const mathBlock: Reader = (lines, at) => {
  const opened = MATH_BLOCK.exec(lines[at]!.text);
  if (!opened) return null;
  const opening = opened[1]!;
  const closing = opening === "$$" ? "$$" : opening === "\\[" ? "\\]" : opening.replace("begin", "end");
  const begins = opened[0].length;
  for (let end = at; end < lines.length && end < at + 200; end++) {
    const place = lines[end]!.text.indexOf(closing, end === at ? begins : 0);
    if (place < 0) continue;
    if (lines[end]!.text.slice(place + closing.length).trim() !== "") return null;
    const whole = Piece.join(lines.slice(at, end + 1));
    const before = whole.text.indexOf(opening);
    const after = whole.text.lastIndexOf(closing);
    const environment = opening.startsWith("\\begin");
    const piece = environment ? whole.slice(before, after + closing.length) : whole.slice(before + opening.length, after);
    return { block: { kind: "math", piece }, next: end + 1 };
  }
  return null;
};

const READERS: Reader[] = [fence, mathBlock, heading, rule, quote, list, table];

// ── inside a block ──────────────────────────────────────────────────────────────────────────────────────────────────

const PAIRS: [string, "strong" | "em" | "del"][] = [
  ["**", "strong"],
  ["__", "strong"],
  ["~~", "del"],
  ["*", "em"],
  ["_", "em"],
];

interface Found {
  node: Inline;
  next: number;
}

/** Where the closing mark stands; a mark that was looked for in vain is not looked for again. */
class Seeker {
  private readonly vain = new Map<string, number>();
  constructor(private readonly text: string) {}

  next(mark: string, from: number): number {
    if ((this.vain.get(mark) ?? Infinity) <= from) return -1;
    const place = this.text.indexOf(mark, from);
    if (place < 0) this.vain.set(mark, from);
    return place;
  }
}

export function inline(source: Piece, depth = 0): Inline[] {
  const found: Inline[] = [];
  const seek = new Seeker(source.text);
  let start = 0;
  let at = 0;
  const flush = (end: number): void => {
    if (end > start) found.push({ kind: "text", piece: source.slice(start, end) });
  };
  while (at < source.length) {
    const read = SPECIAL.test(source.text[at]!) ? special(source, at, depth, seek) : null;
    if (read) {
      flush(at);
      found.push(read.node);
      at = start = read.next;
    } else at++;
  }
  flush(source.length);
  return found;
}

const SPECIAL = /[\\`$*_~![]/;

function special(source: Piece, at: number, depth: number, seek: Seeker): Found | null {
  const text = source.text;
  switch (text[at]) {
    case "\\":
      return escaped(source, at, seek);
    case "`":
      return codeSpan(source, at, seek);
    case "$":
      return dollars(source, at, seek);
    case "!":
      return text[at + 1] === "[" ? linked(source, at, depth, seek) : null;
    case "[":
      return linked(source, at, depth, seek);
    default:
      return depth < DEEPEST ? paired(source, at, depth, seek) : null;
  }
}

function escaped(source: Piece, at: number, seek: Seeker): Found | null {
  const after = source.text[at + 1] ?? "";
  if (after === "(" || after === "[") {
    const end = seek.next(after === "(" ? "\\)" : "\\]", at + 2);
    if (end > 0) return { node: { kind: "math", piece: source.slice(at + 2, end), display: after === "[" }, next: end + 2 };
  }
  if (source.text.startsWith("\\boxed{", at)) {
    const end = closed(source.text, at + 6);
    if (end > at + 7) return { node: { kind: "math", piece: source.slice(at, end + 1), display: false }, next: end + 1 };
  }
  // Before a letter a backslash is TeX outside of formulas, which is better read whole.
  if (!/[!-/:-@[-`{-~]/.test(after)) return null;
  return { node: { kind: "text", piece: source.slice(at + 1, at + 2) }, next: at + 2 };
}

/** Where the brace that is opened at `at` is closed. */
function closed(text: string, at: number): number {
  let depth = 0;
  for (let place = at; place < text.length && place < at + 500; place++) {
    if (text[place] === "\\") place++;
    else if (text[place] === "{") depth++;
    else if (text[place] === "}" && --depth === 0) return place;
  }
  return -1;
}

function codeSpan(source: Piece, at: number, seek: Seeker): Found | null {
  let length = 1;
  while (source.text[at + length] === "`") length++;
  const end = seek.next("`".repeat(length), at + length);
  if (end < 0 || source.text[end + length] === "`") return { node: { kind: "text", piece: source.slice(at, at + length) }, next: at + length };
  return { node: { kind: "code", piece: source.slice(at + length, end) }, next: end + length };
}

function dollars(source: Piece, at: number, seek: Seeker): Found | null {
  const text = source.text;
  if (text.startsWith("$$", at)) {
    const end = seek.next("$$", at + 2);
    return end < 0 ? null : { node: { kind: "math", piece: source.slice(at + 2, end), display: true }, next: end + 2 };
  }
  if (/\s/.test(text[at + 1] ?? " ")) return null;
  for (let end = seek.next("$", at + 1); end > 0 && end - at < 2000; end = seek.next("$", end + 1)) {
    if (text[end - 1] === "\\") continue;
    // Two prices in a sentence are no formula.
    if (/\s/.test(text[end - 1]!) || /\d/.test(text[end + 1] ?? "")) return null;
    return { node: { kind: "math", piece: source.slice(at + 1, end), display: false }, next: end + 1 };
  }
  return null;
}

function paired(source: Piece, at: number, depth: number, seek: Seeker): Found | null {
  const text = source.text;
  for (const [mark, kind] of PAIRS) {
    if (!text.startsWith(mark, at)) continue;
    const begin = at + mark.length;
    if (/\s/.test(text[begin] ?? " ")) continue;
    const word = mark[0] === "_";
    if (word && /\w/.test(text[at - 1] ?? " ")) continue;
    let end = seek.next(mark, begin + 1);
    while (end > 0 && mark.length === 1 && text[end + 1] === mark && text[end - 1] !== mark) end = seek.next(mark, end + 2);
    if (end < 0 || /\s/.test(text[end - 1]!) || (word && /\w/.test(text[end + mark.length] ?? " "))) continue;
    return { node: { kind, children: inline(source.slice(begin, end), depth + 1) }, next: end + mark.length };
  }
  return null;
}

function linked(source: Piece, at: number, depth: number, seek: Seeker): Found | null {
  const image = source.text[at] === "!";
  const begin = at + (image ? 2 : 1);
  const middle = seek.next("](", begin);
  if (middle < 0 || middle - begin > 1000) return null;
  const end = seek.next(")", middle + 2);
  if (end < 0 || end - middle > 4000 || source.text.slice(begin, middle).includes("[")) return null;
  const children = depth < DEEPEST ? inline(source.slice(begin, middle), depth + 1) : [];
  return { node: { kind: "link", children, target: source.slice(middle + 2, end), image }, next: end + 1 };
}
