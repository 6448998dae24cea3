// SPDX-License-Identifier: Apache-2.0
// A light touch of colour for code: comments, strings, numbers and the words that most languages share.

export interface Token {
  start: number;
  end: number;
  kind: "comment" | "string" | "number" | "word" | null;
}

const WORDS = new Set(
  ("and as assert async await begin break case catch class const continue def default del do done echo elif else end enum " +
    "esac except export extends fi final finally fn for foreach from func function global if impl implements import in " +
    "include interface is lambda let local match mod module mut namespace new nil none None not null or package pass " +
    "private protected pub public raise return self static struct super switch then this throw trait try type typedef " +
    "typeof undefined union unless until use using var void where while with yield true false True False " +
    "select SELECT FROM WHERE JOIN GROUP ORDER BY INSERT UPDATE DELETE CREATE TABLE AND OR NOT NULL")
    .split(" "),
);
const HASH = new Set(["", "python", "py", "sh", "bash", "shell", "zsh", "console", "ruby", "rb", "yaml", "yml", "toml", "r", "perl", "make", "makefile", "dockerfile"]);
const DASH = new Set(["sql", "lua", "haskell", "hs"]);
const NOT_CODE = new Set(["text", "txt", "plain", "output", "markdown", "md"]);

const STRING = /"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*(?:"|$)|'(?:\\.|[^'\\\n])*(?:'|$)|`(?:\\.|[^`\\])*(?:`|$)/;
const NUMBER = /\b(?:0[xX][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b/;
const NAME = /[A-Za-z_$][\w$]*/;

function expression(language: string): RegExp {
  const comments = ["\\/\\*[\\s\\S]*?(?:\\*\\/|$)"];
  if (HASH.has(language)) comments.push("(?<![\\w$&\\\\])#[^\\n]*");
  if (DASH.has(language)) comments.push("--[^\\n]*");
  if (!HASH.has(language) || language === "") comments.push("(?<!:)\\/\\/[^\\n]*");
  return new RegExp(`(${comments.join("|")})|(${STRING.source})|(${NUMBER.source})|(${NAME.source})`, "g");
}

export function highlight(code: string, language: string): Token[] {
  if (NOT_CODE.has(language) || code.length > 100_000) return [{ start: 0, end: code.length, kind: null }];
  const tokens: Token[] = [];
  let last = 0;
  for (const found of code.matchAll(expression(language))) {
    const kind = found[1] !== undefined ? "comment" : found[2] !== undefined ? "string" : found[3] !== undefined ? "number" : WORDS.has(found[0]) ? "word" : null;
    if (kind === null) continue;
    if (found.index > last) tokens.push({ start: last, end: found.index, kind: null });
    last = found.index + found[0].length;
    tokens.push({ start: found.index, end: last, kind });
  }
  if (last < code.length) tokens.push({ start: last, end: code.length, kind: null });
  return tokens;
}
