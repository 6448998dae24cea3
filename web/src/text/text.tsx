// SPDX-License-Identifier: Apache-2.0
// Texts of models and datasets. Whatever they hold is shown and never acts: no HTML, no links, no images.
import { Fragment, type ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { size } from "../format";
import type { Span } from "../wire";
import { highlight } from "./highlight";
import { markdown, type Block, type Inline } from "./markdown";
import { Tex } from "./math";
import { Piece } from "./piece";
import { ANSI, visible } from "./visible";

/** So many characters are shown at once; the rest on request. */
const SHOWN = 20_000;
/** Longer texts are not rendered, only shown. */
const RENDERED = 200_000;
const CHUNK = 20_000;

export type Look = "rendered" | "raw";

interface TextProps {
  text: string;
  look: Look;
  spans?: Span[];
  /** Of code: its language. */
  language?: string;
}

export function Text({ text, look, spans = [], language }: TextProps) {
  const [all, setAll] = useState(false);
  const cut = !all && text.length > SHOWN;
  const shown = cut ? text.slice(0, SHOWN) : text;
  return (
    <div class={`text ${look}`} dir="auto">
      <Shown text={shown} look={look} spans={spans} language={language} />
      {cut && (
        <p class="cut">
          Cut here: the first {size(SHOWN)} of {size(text.length)}.{" "}
          <button type="button" onClick={() => setAll(true)}>
            Show all
          </button>
        </p>
      )}
    </div>
  );
}

function Shown({ text, look, spans, language }: { text: string; look: Look; spans: Span[]; language: string | undefined }) {
  const marks = useMemo(() => [...spans].sort((a, b) => a.start - b.start), [spans]);
  if (text.length > RENDERED) return <Chunks text={text} />;
  if (language !== undefined) return <Code piece={Piece.of(text)} language={language} marks={marks} />;
  if (look === "raw") return <pre class="plain">{marked(Piece.of(text), marks)}</pre>;
  return <Rendered text={text} marks={marks} />;
}

function Rendered({ text, marks }: { text: string; marks: Span[] }) {
  const tree = useMemo(() => markdown(Piece.of(text).without(ANSI)), [text]);
  return <>{tree.map((block, nth) => drawBlock(block, marks, nth))}</>;
}

/** A long text in parts, of which the browser lays out those in sight. */
function Chunks({ text }: { text: string }) {
  const parts = useMemo(() => {
    const found: string[] = [];
    for (let start = 0; start < text.length; start += CHUNK) found.push(text.slice(start, start + CHUNK));
    return found;
  }, [text]);
  return (
    <>
      {parts.map((part, nth) => (
        <pre key={nth} class="plain chunk">
          {visible(part)}
        </pre>
      ))}
    </>
  );
}

/** The piece, with what was taken from it marked. */
function marked(piece: Piece, marks: Span[]): ComponentChildren {
  const found = marks.filter((mark) => mark.start < piece.end && mark.end > piece.start);
  if (found.length === 0) return visible(piece.text);
  const parts: ComponentChildren[] = [];
  let at = 0;
  for (const mark of found) {
    let start = at;
    while (start < piece.length && piece.from(start) < mark.start) start++;
    let end = start;
    while (end < piece.length && piece.from(end) < mark.end) end++;
    if (end <= start) continue;
    parts.push(visible(piece.slice(at, start).text));
    parts.push(
      <mark key={start} title={mark.what}>
        {visible(piece.slice(start, end).text)}
      </mark>,
    );
    at = end;
  }
  parts.push(visible(piece.slice(at).text));
  return parts;
}

const markOf = (piece: Piece, marks: Span[]): string | undefined =>
  marks.find((mark) => mark.start < piece.end && mark.end > piece.start)?.what;

export function Code({ piece, language, marks = [] }: { piece: Piece; language: string; marks?: Span[] }) {
  const tokens = useMemo(() => highlight(piece.text, language), [piece.text, language]);
  return (
    <pre class="code" tabIndex={0} aria-label={language === "" ? "code" : `code: ${language}`}>
      {tokens.map((token, nth) => {
        const inside = marked(piece.slice(token.start, token.end), marks);
        return token.kind === null ? (
          <Fragment key={nth}>{inside}</Fragment>
        ) : (
          <span key={nth} class={`code-${token.kind}`}>
            {inside}
          </span>
        );
      })}
    </pre>
  );
}

function drawBlock(block: Block, marks: Span[], key: number): ComponentChildren {
  switch (block.kind) {
    case "paragraph":
      return (
        <p key={key} dir="auto">
          {drawInlines(block.children, marks)}
        </p>
      );
    case "heading":
      // Headings of an answer are no headings of the page.
      return (
        <p key={key} dir="auto" class={`heading level-${block.level}`}>
          {drawInlines(block.children, marks)}
        </p>
      );
    case "code":
      return <Code key={key} piece={block.piece} language={block.language} marks={marks} />;
    case "math":
      return (
        <div key={key} class="formula">
          <Tex source={block.piece.text} display mark={markOf(block.piece, marks)} />
        </div>
      );
    case "quote":
      return <blockquote key={key}>{block.children.map((child, nth) => drawBlock(child, marks, nth))}</blockquote>;
    case "list": {
      const items = block.items.map((item, nth) => <li key={nth}>{item.map((child, n) => drawBlock(child, marks, n))}</li>);
      return block.start === null ? (
        <ul key={key}>{items}</ul>
      ) : (
        <ol key={key} start={block.start}>
          {items}
        </ol>
      );
    }
    case "table":
      return (
        <div key={key} class="scroll" tabIndex={0}>
          <table class="of-text">
            <thead>
              <tr>{block.head.map((cell, nth) => <th key={nth}>{drawInlines(cell, marks)}</th>)}</tr>
            </thead>
            <tbody>
              {block.rows.map((row, nth) => (
                <tr key={nth}>{row.map((cell, n) => <td key={n}>{drawInlines(cell, marks)}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr key={key} />;
  }
}

function drawInlines(nodes: Inline[], marks: Span[]): ComponentChildren {
  return nodes.map((node, key) => {
    switch (node.kind) {
      case "text":
        return <Fragment key={key}>{marked(node.piece, marks)}</Fragment>;
      case "code":
        return <code key={key}>{marked(node.piece, marks)}</code>;
      case "math":
        return <Tex key={key} source={node.piece.text} display={node.display} mark={markOf(node.piece, marks)} />;
      case "strong":
        return <strong key={key}>{drawInlines(node.children, marks)}</strong>;
      case "em":
        return <em key={key}>{drawInlines(node.children, marks)}</em>;
      case "del":
        return <del key={key}>{drawInlines(node.children, marks)}</del>;
      case "link":
        // Nothing is fetched and nothing can be followed by mistake: the target is there to be read.
        return (
          <span key={key} class="of-link">
            {node.image && <span class="what">image </span>}
            {drawInlines(node.children, marks)}
            <bdi class="target"> ({marked(node.target, marks)})</bdi>
          </span>
        );
    }
  });
}

/** A short text in one place: an id, a name, a message. It keeps its direction to itself. */
export function Word({ text, most = 300 }: { text: string; most?: number }) {
  const cut = text.length > most;
  return (
    <bdi title={cut ? text.slice(0, 2000) : undefined}>
      {visible(cut ? text.slice(0, most) : text)}
      {cut && "…"}
    </bdi>
  );
}
