// SPDX-License-Identifier: Apache-2.0
// Characters that act instead of being seen, made to be seen: controls, and marks that turn the direction of a text.
import type { ComponentChildren } from "preact";

/** Colours and movements of terminals. */
export const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\^_])/g;

const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\r(?!\n)/g;
/** So many are explained one by one; of more, only their signs are written. */
const MOST = 400;

const NAMES: Record<number, string> = {
  0x061c: "Arabic letter mark",
  0x200b: "zero-width space",
  0x200e: "left-to-right mark",
  0x200f: "right-to-left mark",
  0x202a: "left-to-right embedding",
  0x202b: "right-to-left embedding",
  0x202c: "end of direction",
  0x202d: "left-to-right override",
  0x202e: "right-to-left override",
  0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate",
  0x2068: "first-strong isolate",
  0x2069: "end of isolate",
  0xfeff: "byte order mark",
};

function sign(character: string): string {
  const code = character.charCodeAt(0);
  return `⟨${code.toString(16).toUpperCase().padStart(code < 0x100 ? 2 : 4, "0")}⟩`;
}

/** The text in one line without anything that acts. */
export function plain(text: string): string {
  return text.replace(ANSI, "").replace(/\s*\r?\n\s*/g, " ⏎ ").replace(HIDDEN, sign);
}

/** The text with a sign for each character that would not be seen. */
export function visible(text: string): ComponentChildren {
  const found = text.match(HIDDEN);
  if (found === null) return text;
  if (found.length > MOST) return text.replace(HIDDEN, sign);
  const parts: ComponentChildren[] = [];
  let last = 0;
  for (const hidden of text.matchAll(HIDDEN)) {
    const code = hidden[0].charCodeAt(0);
    const name = NAMES[code] ?? "control character";
    parts.push(text.slice(last, hidden.index));
    parts.push(
      <span class="hidden-sign" title={`U+${code.toString(16).toUpperCase().padStart(4, "0")} ${name}`}>
        {sign(hidden[0])}
      </span>,
    );
    last = hidden.index + 1;
  }
  parts.push(text.slice(last));
  return parts;
}
