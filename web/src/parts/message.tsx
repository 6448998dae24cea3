// SPDX-License-Identifier: Apache-2.0
// What somebody said or did: messages with their reasoning and tool calls, and the steps of an episode.
import { score, seconds } from "../format";
import { Code, Text, Word, type Look } from "../text/text";
import { Piece } from "../text/piece";
import type { Part, Span, Step } from "../wire";

/** Three lines of the same length, one after the other: a map or a board, which only a fixed width shows. */
function isLaidOut(text: string): boolean {
  const lines = text.slice(0, 20_000).split("\n");
  return lines.some((line, nth) => line.length > 1 && !line.startsWith("|") && line.length === lines[nth + 1]?.length && line.length === lines[nth + 2]?.length);
}

/** What a tool or an environment says is no Markdown: every character stands where it put it. */
export function Message({ part, look: asked, world = false }: { part: Part; look: Look; world?: boolean }) {
  const look = world || part.role === "tool" || (part.role === "user" && isLaidOut(part.text)) ? "raw" : asked;
  return (
    <div class={`message ${/^(system|user|assistant|tool)$/.test(part.role) ? part.role : "other"}`}>
      <p class="role">
        <Word text={part.role} most={40} />
        {part.name && (
          <span class="quiet">
            {" "}
            <Word text={part.name} most={80} />
          </span>
        )}
      </p>
      <Said part={part} look={look} />
    </div>
  );
}

/** The text of a message, after its reasoning and before its tool calls. */
export function Said({ part, look, spans = [] }: { part: Part; look: Look; spans?: Span[] }) {
  return (
    <>
      {part.reasoning && (
        <details class="reasoning">
          <summary>Reasoning</summary>
          <Text text={part.reasoning} look={look} />
        </details>
      )}
      {part.text !== "" && <Text text={part.text} look={look} spans={spans} />}
      {part.text === "" && part.tool_calls.length === 0 && <p class="quiet">(no text)</p>}
      {part.tool_calls.map((call, nth) => (
        <ToolCall key={nth} name={call["name"] ?? ""} given={call["arguments"] ?? ""} />
      ))}
    </>
  );
}

function ToolCall({ name, given }: { name: string; given: string }) {
  return (
    <div class="tool-call">
      <span class="label">calls</span>{" "}
      <code>
        <Word text={name} most={80} />
      </code>
      <Code piece={Piece.of(laidOut(given).slice(0, 20_000))} language="json" />
    </div>
  );
}

/** Arguments are JSON in one line, mostly: short ones stay so. */
function laidOut(text: string): string {
  if (text.length < 80) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export function Timeline({ steps, look }: { steps: Step[]; look: Look }) {
  return (
    <ol class="timeline" aria-label="Steps">
      {steps.map((step) => (
        <li key={step.number} class={step.error !== null || (step.exit_code ?? 0) !== 0 ? "bad" : undefined}>
          <p class="step">
            <span class="label">step {step.number}</span>
            {step.exit_code !== null && <span class={step.exit_code === 0 ? "code good" : "code bad"}>exit {step.exit_code}</span>}
            {step.reward !== null && <span class="code">reward {score(step.reward)}</span>}
            {step.seconds !== null && <span class="quiet">{seconds(step.seconds)}</span>}
          </p>
          {step.command !== null ? <Command text={step.command} /> : <Said part={step.does} look={look} />}
          {step.output !== null && step.output !== "" && (
            <div class="output">
              <Text text={step.output} look="raw" />
            </div>
          )}
          {step.answers.map((part, nth) => (
            <Message key={nth} part={part} look={look} world />
          ))}
          {step.error !== null && (
            <p class="trouble">
              <Word text={step.error} most={1000} />
            </p>
          )}
        </li>
      ))}
    </ol>
  );
}

function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <Text text={text} look="raw" language="sh" />
    </div>
  );
}
