// SPDX-License-Identifier: Apache-2.0
// What is around every page: its heading, the way back, help, and what went wrong.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Refusal } from "../api";
import { server } from "../data";
import { useKeys } from "../keys";
import { reviewLink, runLink, tableLink } from "../place";
import { Word } from "../text/text";
import { nextTheme, theme } from "../theme";

const help = signal(false);
/** What happened, for people and for screen readers: shown for some seconds. */
export const notice = signal("");
let timer: ReturnType<typeof setTimeout> | undefined;

export function tell(text: string): void {
  notice.value = text;
  clearTimeout(timer);
  timer = setTimeout(() => (notice.value = ""), 4000);
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    tell("Copied.");
  } catch {
    tell("The browser did not let the page copy. Select the text and copy it by hand.");
  }
}

export type Tab = "run" | "table" | "sample" | "review";

interface FrameProps {
  title: string;
  /** The run whose pages can be gone to. */
  run?: { key: string; title: string; tab: Tab };
  wide?: boolean;
  children: ComponentChildren;
}

export function Frame({ title, run, wide, children }: FrameProps) {
  useEffect(() => {
    document.title = `${title} · reward-kit`;
  }, [title]);
  useKeys({ "?": () => (help.value = true) });
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="/">
          <Sign /> reward-kit
        </a>
        {run && (
          <>
            <span class="of" title={run.title}>
              <a href={runLink(run.key)}>
                <Word text={run.title} most={60} />
              </a>
            </span>
            <nav aria-label="Pages of the run">
              <a href={runLink(run.key)} aria-current={run.tab === "run" ? "page" : undefined}>
                Summary
              </a>
              <a href={tableLink(run.key)} aria-current={run.tab === "table" || run.tab === "sample" ? "page" : undefined}>
                Table
              </a>
              <a href={reviewLink(run.key)} aria-current={run.tab === "review" ? "page" : undefined}>
                Review
              </a>
            </nav>
          </>
        )}
        <span class="tools">
          <button type="button" onClick={nextTheme} aria-label={`Colours: ${theme.value}. Change`} title={`Colours: ${theme.value}`}>
            {theme.value === "system" ? "◐" : theme.value === "light" ? "○" : "●"}
          </button>
          <button type="button" onClick={() => (help.value = true)} aria-label="Keys and help" title="Keys and help (?)">
            ?
          </button>
        </span>
      </header>
      <main id="main" tabIndex={-1} class={wide ? "wide" : undefined}>
        {children}
      </main>
      <div class="notice" role="status" aria-live="polite">
        {notice.value}
      </div>
      <Help />
    </>
  );
}

function Sign() {
  return (
    <svg class="sign" viewBox="0 0 32 32" width="18" height="18" aria-hidden="true">
      <path d="M3 16h26M3 10v12M29 10v12" />
      <circle cx="18" cy="16" r="5.5" />
    </svg>
  );
}

const KEYS: [string, string][] = [
  ["j  ↓", "next sample, or next row of the table"],
  ["k  ↑", "previous sample, or previous row"],
  ["n", "next sample with a failed or wrong candidate"],
  ["p", "previous such sample"],
  ["← →", "choose a candidate"],
  ["r", "mark the verdict on the chosen candidate as right"],
  ["w", "mark it as wrong"],
  ["u", "mark it as unclear"],
  ["m", "rendered or raw text"],
  ["/", "search in the table"],
  ["Enter", "open the chosen row"],
  ["Esc", "back to the table"],
  ["?", "this help"],
];

function Help() {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (help.value) box.current?.showModal();
    else box.current?.close();
  }, [help.value]);
  return (
    <dialog ref={box} aria-labelledby="help-title" onClose={() => (help.value = false)}>
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              {key.split("  ").map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p class="quiet">
        The address of the page holds everything that you chose: copy it to show somebody the same.
        {server.value && ` reward-kit ${server.value.version}.`}
      </p>
      <form method="dialog">
        <button class="main">Close</button>
      </form>
    </dialog>
  );
}

export function Problem({ problem, again }: { problem: Error; again?: () => void }) {
  return (
    <div class="problem" role="alert">
      <p>
        <Word text={problem.message} most={2000} />
      </p>
      {again && !(problem instanceof Refusal && problem.status === 404) && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Waiting({ what }: { what: string }) {
  return (
    <p class="waiting" role="status">
      Reading {what} …
    </p>
  );
}
