// SPDX-License-Identifier: Apache-2.0
// Answers of the server as state of the page.
import { signal } from "@preact/signals";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, listen, runPath } from "./api";
import type { Change, Overview } from "./wire";

export interface Loaded<T> {
  data: T | null;
  problem: Error | null;
  loading: boolean;
  /** Asks again; what is there stays until the answer comes. */
  again: () => void;
}

/** What the server answers at this address. While another version of the same thing is awaited, the last one stays;
 * `subject` says what the thing is: with another one, nothing stays. */
export function useAnswer<T>(path: string | null, params: URLSearchParams | null = null, subject = path): Loaded<T> {
  const query = params === null ? "" : String(params);
  const [round, setRound] = useState(0);
  const [state, setState] = useState<{ subject: string | null; data: T | null; problem: Error | null; of: string }>({
    subject: null,
    data: null,
    problem: null,
    of: "",
  });
  const wanted = `${path}?${query}#${round}`;
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    get<T>(path, query, stop.signal).then(
      (data) => setState({ subject, data, problem: null, of: wanted }),
      (problem: Error) => {
        if (problem.name === "AbortError") return;
        setState((old) => ({ subject, data: old.subject === subject ? old.data : null, problem, of: wanted }));
      },
    );
    return () => stop.abort();
  }, [wanted]);
  const again = useCallback(() => setRound((old) => old + 1), []);
  const fits = state.subject === subject;
  return {
    data: fits ? state.data : null,
    problem: fits ? state.problem : null,
    loading: path !== null && state.of !== wanted,
    again,
  };
}

/** Follows a run. Calls `changed` when it has become another one, at most once in `pause` milliseconds. */
export function useChanges(key: string, changed: () => void, pause = 1000): Change | null {
  const [change, setChange] = useState<Change | null>(null);
  const call = useRef(changed);
  call.current = changed;
  useEffect(() => {
    let version: number | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const hear = (event: Change): void => {
      setChange(event);
      const first = version === null;
      const same = version === event.version;
      version = event.version;
      if (first || same || timer !== undefined) return;
      timer = setTimeout(
        () => {
          timer = undefined;
          last = Date.now();
          call.current();
        },
        Math.max(0, last + pause - Date.now()),
      );
    };
    // A page that nobody sees does not listen: browsers have few connections for all pages of a server.
    let stop = (): void => undefined;
    const attend = (): void => {
      stop();
      stop = document.hidden ? () => undefined : listen<Change>(runPath(key, "changes"), undefined, hear);
    };
    attend();
    document.addEventListener("visibilitychange", attend);
    return () => {
      document.removeEventListener("visibilitychange", attend);
      stop();
      clearTimeout(timer);
    };
  }, [key]);
  return change;
}

/** What does not change while the server runs. */
export const server = signal<Pick<Overview, "version" | "allow_run" | "reviewer"> | null>(null);
/** The names of runs, for the headings of pages. */
export const titles = signal<Record<string, string>>({});

export function learn(overview: Overview): void {
  server.value = overview;
  titles.value = Object.fromEntries(overview.runs.map((run) => [run.key, run.title]));
}
