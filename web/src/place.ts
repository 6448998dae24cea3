// SPDX-License-Identifier: Apache-2.0
// Where the page is. Its address holds its whole state, so that every state can be sent to somebody.
import { signal } from "@preact/signals";

export interface Place {
  path: string;
  query: URLSearchParams;
}

function read(): Place {
  const query = new URLSearchParams(location.search);
  if (query.has("token")) {
    // The cookie has it now; nobody should send it along with a link.
    query.delete("token");
    history.replaceState(history.state, "", location.pathname + question(query));
  }
  return { path: location.pathname, query };
}

export const place = signal<Place>(read());

function question(query: URLSearchParams): string {
  const text = String(query);
  return text === "" ? "" : `?${text}`;
}

export function link(path: string, query?: URLSearchParams | Record<string, string>): string {
  return path + question(query instanceof URLSearchParams ? query : new URLSearchParams(query ?? {}));
}

export function go(to: string, how: "push" | "replace" = "push"): void {
  const from = place.value.path;
  if (how === "push") history.pushState(null, "", to);
  else history.replaceState(history.state, "", to);
  place.value = read();
  if (place.value.path !== from) window.scrollTo(0, 0);
}

/** The same page with some of its parameters changed; null removes one. */
export function withParams(changes: Record<string, string | string[] | null>): string {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const one of value === null ? [] : [value].flat()) query.append(name, one);
  }
  return link(place.value.path, query);
}

export function param(name: string): string {
  return place.value.query.get(name) ?? "";
}

window.addEventListener("popstate", () => {
  place.value = read();
});

// Links of the page change the page without loading it anew.
document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target.closest("a") : null;
  const href = target?.getAttribute("href");
  if (!target || !href?.startsWith("/") || href.startsWith("//") || target.hasAttribute("download")) return;
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (href.startsWith("/api/")) return;
  event.preventDefault();
  go(href);
});

// ── the pages' addresses ────────────────────────────────────────────────────────────────────────────────────────────

export const runLink = (key: string): string => `/runs/${encodeURIComponent(key)}`;
export const tableLink = (key: string, view?: URLSearchParams | Record<string, string>): string =>
  link(`${runLink(key)}/table`, view);
export const reviewLink = (key: string): string => `${runLink(key)}/review`;
export const compareLink = (keys: string[]): string => `/compare?runs=${keys.map(encodeURIComponent).join(",")}`;

/** A sample's page; `view` is the table that it was opened from, in whose order its neighbours are. */
export function sampleLink(key: string, id: string, view?: URLSearchParams, more: Record<string, string> = {}): string {
  const query = new URLSearchParams(view ?? "");
  for (const name of ["id", "c", "diff"]) query.delete(name);
  query.set("id", id);
  for (const [name, value] of Object.entries(more)) query.set(name, value);
  return link(`${runLink(key)}/sample`, query);
}
