// SPDX-License-Identifier: Apache-2.0
// The rows of a table: pages of them as they come into sight, and a search that shows what it has found so far.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, listen, runPath } from "../api";
import type { Row, Rows, SearchProgress } from "../wire";

const PAGE = 100;

export interface Found {
  /** Null until the first answer. */
  total: number | null;
  columns: string[];
  row: (nth: number) => Row | undefined;
  /** Says which rows are in sight. */
  want: (first: number, last: number) => void;
  problem: Error | null;
  search: SearchProgress | null;
  cancel: () => void;
  cancelled: boolean;
  again: () => void;
}

/** `view` is what is asked for, without what the page adds; `all` names the columns of the hits of a search; `version`
 * counts the changes of the run. */
export function useRows(run: string, view: string, columns: string[], all: string[], version: number): Found {
  const searched = new URLSearchParams(view).get("q") ?? "";
  const [search, setSearch] = useState<{ of: string; told: SearchProgress; hits: Row[]; cancelled: boolean } | null>(null);
  const [, redraw] = useState(0);
  const [round, setRound] = useState(0);
  const [sight, setSight] = useState({ first: 0, last: 50 });
  const pages = useRef(new Map<number, { rows: Row[]; of: string }>());
  const state = useRef<{ total: number | null; columns: string[]; problem: Error | null; of: string }>({ total: null, columns: [], problem: null, of: "" });
  const asked = `${view}&columns=${columns.map(encodeURIComponent).join(",")}`;
  const stop = useRef<() => void>(() => undefined);

  // Another view is another table: nothing of the last one stays. A new version of the same one replaces row by row.
  if (state.current.of !== asked) {
    state.current = { total: null, columns: [], problem: null, of: asked };
    pages.current = new Map();
  }

  useEffect(() => {
    if (searched === "") {
      setSearch(null);
      return;
    }
    const hits: Row[] = [];
    let last: SearchProgress = { done: false, read: 0, records: 0, found: 0, hits: [] };
    setSearch({ of: asked, told: last, hits, cancelled: false });
    const close = listen<SearchProgress>(
      runPath(run, "search"),
      asked,
      (event) => {
        hits.push(...event.hits);
        last = event;
        setSearch({ of: asked, told: event, hits: [...hits], cancelled: false });
        if (event.done) close();
      },
      (problem) => {
        state.current = { ...state.current, problem };
        setSearch({ of: asked, told: last, hits: [...hits], cancelled: true });
      },
    );
    stop.current = () => {
      close();
      setSearch({ of: asked, told: last, hits: [...hits], cancelled: true });
    };
    return close;
  }, [run, asked, round]);

  const searching = searched !== "" && (search === null || search.of !== asked || !search.told.done);
  const stamp = `${asked}#${version}.${round}`;
  const from = Math.max(0, Math.floor(sight.first / PAGE));
  const to = Math.max(from, Math.floor(Math.max(sight.first, sight.last - 1) / PAGE));

  useEffect(() => {
    if (searching) return;
    const leave = new AbortController();
    // A page that is only passed by is not asked for.
    const timer = setTimeout(
      () => {
        for (let page = from; page <= to; page++) {
          if (pages.current.get(page)?.of === stamp) continue;
          const params = new URLSearchParams(asked);
          params.set("offset", String(page * PAGE));
          params.set("limit", String(PAGE));
          get<Rows>(runPath(run, "rows"), params, leave.signal).then(
            (answer) => {
              pages.current.set(page, { rows: answer.rows, of: stamp });
              state.current = { total: answer.total, columns: answer.columns, problem: null, of: asked };
              redraw((old) => old + 1);
            },
            (problem: Error) => {
              if (problem.name === "AbortError") return;
              state.current = { ...state.current, problem };
              redraw((old) => old + 1);
            },
          );
        }
      },
      state.current.total === null ? 0 : 40,
    );
    return () => {
      clearTimeout(timer);
      leave.abort();
    };
  }, [run, stamp, from, to, searching]);

  return useMemo(() => {
    const hits = searching && search?.of === asked ? search.hits : null;
    return {
      total: searching ? (hits?.length ?? 0) : state.current.total,
      columns: searching ? all : state.current.columns,
      row: (nth: number) => (hits ? hits[nth] : pages.current.get(Math.floor(nth / PAGE))?.rows[nth % PAGE]),
      want: (first: number, last: number) => setSight((old) => (old.first === first && old.last === last ? old : { first, last })),
      problem: state.current.problem,
      search: search?.of === asked ? search.told : null,
      cancel: () => stop.current(),
      cancelled: search?.of === asked && search.cancelled,
      again: () => setRound((old) => old + 1),
    };
  }, [searching, search, asked, state.current, pages.current]);
}
