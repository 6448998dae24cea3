// SPDX-License-Identifier: Apache-2.0
// What reads texts, without a browser: Markdown, differences, colours of code. Run by `npm test`.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const made = mkdtempSync(join(tmpdir(), "reward-kit-texts-"));
after(() => rmSync(made, { recursive: true }));

async function load(name) {
  const outfile = join(made, `${name}.mjs`);
  await build({ entryPoints: [join(here, "..", "src", "text", `${name}.ts`)], outfile, bundle: true, format: "esm", logLevel: "error" });
  return import(pathToFileURL(outfile).href);
}

const { diff, likeness } = await load("diff");
const { highlight } = await load("highlight");
const { Piece } = await load("piece");
const { markdown } = await load("markdown");

/** The same numbers each time. */
function dice(seed) {
  let state = seed;
  return (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % most;
  };
}

const read = (text) => markdown(Piece.of(text));
const texts = (node) => (Array.isArray(node) ? node.map(texts).join("") : node.piece ? node.piece.text : texts(node.children ?? node.items ?? node.rows ?? []));

test("a difference holds both texts", () => {
  for (let seed = 1; seed < 300; seed++) {
    const draw = dice(seed);
    const words = () => Array.from({ length: draw(30) }, () => ["a", "b", " ", "\n", "cat", ", ", "é"][draw(7)]).join("");
    const [before, later] = [words(), words()];
    const parts = diff(before, later);
    const without = (kind) => parts.filter((part) => part.kind !== kind).map((part) => part.text).join("");
    assert.equal(without("in"), before);
    assert.equal(without("out"), later);
  }
});

test("a difference is small where texts are alike", () => {
  const parts = diff("The answer is 41 apples.", "The answer is 42 apples.");
  assert.deepEqual(parts.map((part) => part.kind), ["same", "out", "in", "same"]);
  assert.ok(likeness(parts) > 0.9);
  assert.equal(likeness(diff("", "")), 1);
});

test("two texts with nothing in common do not hang", { timeout: 100_000 }, () => {
  const draw = dice(7);
  const many = (letter) => Array.from({ length: 20_000 }, () => letter + draw(100_000)).join(" ");
  assert.ok(diff(many("a"), many("b")).length > 0);
});

test("blocks are told apart", () => {
  const kinds = read("# Title\n\nText\n- one\n- two\n\n> said\n\n```py\nx = 1\n```\n\n|a|b|\n|-|-|\n|1|2|\n\n$$\nx^2\n$$\n\n---\n").map((block) => block.kind);
  assert.deepEqual(kinds, ["heading", "paragraph", "list", "quote", "code", "table", "math", "rule"]);
});

test("inside a paragraph", () => {
  const [{ children }] = read("**bold** *soft* `code` $x^2$ \\(y\\) [text](where) ![alt](picture) \\boxed{7} ~~gone~~");
  const kinds = children.filter((node) => node.kind !== "text").map((node) => node.kind);
  assert.deepEqual(kinds, ["strong", "em", "code", "math", "math", "link", "link", "math", "del"]);
});

test("prices are no formula, names with underscores are not soft, HTML is text", () => {
  for (const text of ["It costs $5 or $7.", "snake_case_name and other_name_here", "<b>bold</b> <script>alert(1)</script>", "2 * 3 * 4"]) {
    const [{ children }] = read(text);
    assert.deepEqual([...new Set(children.map((node) => node.kind))], ["text"], text);
    assert.equal(texts(children), text);
  }
});

test("an item that is not the first keeps its number, and a list goes on after an empty line", () => {
  const [list, ...rest] = read("3. three\n\n4. four\n   still four");
  assert.equal(list.start, 3);
  assert.equal(list.items.length, 2);
  assert.equal(rest.length, 0);
});

test("pieces know where they stood", () => {
  const source = "> - the answer is **42**";
  const [quote] = read(source);
  const bold = quote.children[0].items[0][0].children.find((node) => node.kind === "strong");
  const { piece } = bold.children[0];
  assert.equal(source.slice(piece.start, piece.end), "42");
});

test("Markdown that means nothing is read", () => {
  for (let seed = 1; seed < 400; seed++) {
    const draw = dice(seed);
    const text = Array.from({ length: 60 }, () => ["a", " ", "\n", "*", "_", "`", "$", "[", "](", ")", "\\", "|", "-", "#", ">", "1. ", "```", "{", "}"][draw(19)]).join("");
    assert.doesNotThrow(() => read(text), text);
  }
});

test("hostile Markdown does not hang", { timeout: 100_000 }, () => {
  for (const part of ["*", "**a", "_a ", "[", "[a](", "`", "$", "$a ", "> ", "- ", "\\(", "|", "|a\n|-", "```", "~~", "1. ", "\\boxed{", "![", "#", "\\begin{align}\n"]) {
    assert.ok(read(part.repeat(20_000 / part.length)).length > 0);
  }
});

test("colours of code cover it whole", () => {
  const code = "def f(x):  # comment\n    return 'text' + 1.5e3  // x\n";
  const tokens = highlight(code, "python");
  assert.equal(tokens.map((token) => code.slice(token.start, token.end)).join(""), code);
  assert.deepEqual([...new Set(tokens.map((token) => token.kind).filter(Boolean))], ["word", "comment", "string", "number"]);
});
