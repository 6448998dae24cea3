// SPDX-License-Identifier: Apache-2.0
// TeX to MathML. The translator comes in a file of its own, when the first formula does; it makes nodes, not text that
// is parsed, and what it makes is checked against a list of what a formula may hold.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

type Translator = (source: string, into: HTMLElement, options: object) => void;

const translator = signal<Translator | null>(null);
let asked = false;

function ask(): void {
  if (asked) return;
  asked = true;
  void import("temml").then((module) => {
    translator.value = (module.default as { render: Translator }).render;
  });
}

const LONGEST = 5000;
const MATHML = "http://www.w3.org/1998/Math/MathML";
const ATTRIBUTES = new Set(
  ("accent accentunder align class columnalign columnlines columnspacing columnspan depth dir display displaystyle fence form height " +
    "largeop linebreak linethickness lspace mathbackground mathcolor mathsize mathvariant maxsize minsize movablelimits notation rowalign " +
    "rowlines rowspacing rowspan rspace scriptlevel separator stretchy symmetric voffset width").split(" "),
);
const made = new Map<string, Node | null>();

function formula(source: string, display: boolean): Node | null {
  const key = `${display}${source}`;
  const known = made.get(key);
  if (known !== undefined) return known;
  let node: Node | null = null;
  const render = translator.peek();
  try {
    const into = document.createElement("span");
    render?.(source, into, { displayMode: display, trust: false, throwOnError: true, maxExpand: 200, maxSize: [50, 50], wrap: "none" });
    const math = into.firstElementChild;
    if (math && allowed(math)) node = math;
  } catch {
    // Half a formula, or none at all: the page shows its source.
  }
  if (made.size > 2000) made.clear();
  made.set(key, node);
  return node;
}

function allowed(root: Element): boolean {
  for (const element of [root, ...root.querySelectorAll("*")]) {
    if (element.namespaceURI !== MATHML || element.localName === "annotation-xml") return false;
    for (const { name } of [...element.attributes]) if (!ATTRIBUTES.has(name) && name !== "style") element.removeAttribute(name);
  }
  return true;
}

export function Tex({ source, display, mark }: { source: string; display: boolean; mark?: string | undefined }) {
  const place = useRef<HTMLSpanElement>(null);
  const ready = translator.value !== null && source.length <= LONGEST;
  const node = ready ? formula(source, display) : null;
  useEffect(ask, []);
  useEffect(() => {
    place.current?.replaceChildren(...(node ? [node.cloneNode(true)] : []));
  }, [node]);
  const name = `tex${display ? " display" : ""}${mark ? " marked" : ""}`;
  // The key keeps nodes that are put in here apart from those that the page manages.
  return node ? (
    <span key="math" ref={place} class={name} title={mark} />
  ) : (
    <code key="source" class={name} title={mark}>
      {display ? `\\[${source}\\]` : `$${source}$`}
    </code>
  );
}
