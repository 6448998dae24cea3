// SPDX-License-Identifier: Apache-2.0
// The table of a run: a row is a sample or a record. What it shows is in the address.
import { useEffect, useRef, useState } from "preact/hooks";
import { runPath } from "../api";
import { useAnswer, useChanges } from "../data";
import { cell, count, isScore, percent, plural } from "../format";
import { useKeys } from "../keys";
import { Frame, Problem, Waiting } from "../parts/frame";
import { useWindow } from "../parts/virtual";
import { go, param, place, sampleLink, withParams } from "../place";
import { plain } from "../text/visible";
import { OPERATORS, readCondition, SIGNS, tableOf, viewOf, writeCondition, type Condition, type Operator } from "../view";
import type { ColumnInfo, Row, RunPage } from "../wire";
import { useRows, type Found } from "./rows";

const ROW = 34;
const HEADER = 32;
type By = "sample" | "record";

const FIRST: Record<By, string[]> = {
  sample: ["id", "query", "ground_truth", "split", "passed", "rate", "score", "failed", "completion_tokens"],
  record: ["id", "index", "response", "ground_truth", "split", "score", "passed", "failure", "reason", "completion_tokens", "latency_ms"],
};

export function Table({ run }: { run: string }) {
  const { data, problem, again } = useAnswer<RunPage>(runPath(run));
  const [version, setVersion] = useState(0);
  const change = useChanges(run, () => setVersion((old) => old + 1));
  const title = data?.card.title ?? "Run";
  return (
    <Frame title={`Table of ${title}`} run={{ key: run, title, tab: "table" }} wide>
      <h1 class="said">Table of {title}</h1>
      {change?.gone && data && <p class="problem">The files of this run are no longer there.</p>}
      {problem && <Problem problem={problem} again={again} />}
      {!data && !problem && <Waiting what="the table" />}
      {data && <Whole run={run} page={data} version={version} live={change?.live ?? data.card.live} />}
    </Frame>
  );
}

function Whole({ run, page, version, live }: { run: string; page: RunPage; version: number; live: boolean }) {
  const query = place.value.query;
  const by: By = query.get("by") === "record" ? "record" : "sample";
  const all = page.columns[by];
  const wanted = query.get("cols")?.split(",") ?? firstColumns(by, all);
  const columns = wanted.flatMap((name) => all.find((column) => column.name === name) ?? []);
  const shown = columns.length > 0 ? columns : all.slice(0, 1);
  const found = useRows(run, String(viewOf(query)), shown.map((column) => column.name), all.map((column) => column.name), version);
  const [draft, setDraft] = useState<Condition | null>(null);
  return (
    <>
      <Toolbar by={by} all={all} shown={shown} found={found} live={live} draft={draft} setDraft={setDraft} />
      {found.problem && <Problem problem={found.problem} again={found.again} />}
      <Grid run={run} by={by} columns={shown} found={found} filter={(column) => setDraft(blank(column))} />
    </>
  );
}

/** The ones that most want to see first, metrics among them. */
function firstColumns(by: By, all: ColumnInfo[]): string[] {
  const metrics = all.filter((column) => column.group === "metric").slice(0, 3);
  return [...FIRST[by], ...metrics.map((column) => column.name)];
}

const blank = (column: ColumnInfo): Condition => ({
  column: column.name,
  operator: column.choices || column.type === "boolean" ? "eq" : column.type === "number" ? "ge" : "has",
  value: column.choices?.[0] ?? (column.type === "boolean" ? "true" : ""),
});

// ── above the table ─────────────────────────────────────────────────────────────────────────────────────────────────

interface ToolbarProps {
  by: By;
  all: ColumnInfo[];
  shown: ColumnInfo[];
  found: Found;
  live: boolean;
  draft: Condition | null;
  setDraft: (draft: Condition | null) => void;
}

function Toolbar({ by, all, shown, found, live, draft, setDraft }: ToolbarProps) {
  const query = place.value.query;
  const conditions = query.getAll("where").map(readCondition).filter((one) => one !== null);
  const contested = query.get("contested") === "1";
  const remove = (nth: number): void => {
    go(withParams({ where: query.getAll("where").filter((_, n) => n !== nth), at: null }));
  };
  return (
    <div class="toolbar">
      <div class="row">
        <div class="choice" role="group" aria-label="What a row is">
          <a href={withParams({ by: null, sort: null, where: null, cols: null, at: null })} aria-current={by === "sample" ? "true" : undefined}>
            Samples
          </a>
          <a href={withParams({ by: "record", sort: null, where: null, cols: null, at: null })} aria-current={by === "record" ? "true" : undefined}>
            Records
          </a>
        </div>
        <SearchBox />
        <button type="button" aria-pressed={contested} class="toggle" onClick={() => go(withParams({ contested: contested ? null : "1", at: null }))} title="Only samples of which some candidates pass and some do not">
          Disagreeing
        </button>
        <button type="button" aria-expanded={draft !== null} onClick={() => setDraft(draft ? null : blank(shown.find((column) => column.name === "score") ?? all[0]!))}>
          Filter
        </button>
        <Chooser by={by} all={all} shown={shown} />
        <span class="total" role="status">
          {found.search && !found.search.done ? "" : found.total === null ? "…" : plural(found.total, by === "sample" ? "sample" : "record")}
          {live && <span class="badge live">running</span>}
        </span>
      </div>
      {(conditions.length > 0 || draft) && (
        <div class="row">
          {conditions.map((one, nth) => (
            <span key={nth} class="chip">
              {all.find((column) => column.name === one.column)?.label ?? one.column} {SIGNS[one.operator]} <bdi>{plain(one.value).slice(0, 60)}</bdi>
              <button type="button" aria-label={`Remove the filter ${one.column} ${SIGNS[one.operator]} ${plain(one.value).slice(0, 60)}`} onClick={() => remove(nth)}>
                ×
              </button>
            </span>
          ))}
          {draft && <FilterForm all={all} draft={draft} setDraft={setDraft} />}
        </div>
      )}
      {found.search && !found.search.done && <Searching found={found} />}
    </div>
  );
}

function SearchBox() {
  const box = useRef<HTMLInputElement>(null);
  const query = param("q");
  useKeys({ "/": () => box.current?.focus() });
  useEffect(() => {
    if (box.current) box.current.value = query;
  }, [query]);
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        go(withParams({ q: box.current?.value.trim() || null, at: null }));
      }}
    >
      <input
        ref={box}
        type="search"
        defaultValue={query}
        placeholder="Search all texts"
        aria-label="Search all texts"
        maxLength={1000}
        onInput={(event) => {
          if (event.currentTarget.value === "" && query !== "") go(withParams({ q: null, at: null }));
        }}
      />
      <button type="submit" class="said">
        Search
      </button>
    </form>
  );
}

function Searching({ found }: { found: Found }) {
  const told = found.search!;
  return (
    <p class="progress" role="status">
      <progress max={told.records || 1} value={told.read} aria-label="Progress of the search" />
      <span>
        {found.cancelled ? "Stopped: " : ""}
        {plural(told.found, "hit")} in {count(told.read)} of {count(told.records)} records
        {told.records > 0 && ` (${percent(told.read / told.records)})`}
      </span>
      {found.cancelled ? (
        <button type="button" onClick={found.again}>
          Search again
        </button>
      ) : (
        <button type="button" onClick={found.cancel}>
          Cancel
        </button>
      )}
    </p>
  );
}

function FilterForm({ all, draft, setDraft }: { all: ColumnInfo[]; draft: Condition; setDraft: (draft: Condition | null) => void }) {
  const column = all.find((one) => one.name === draft.column) ?? all[0]!;
  const operators = OPERATORS.filter((one) => fits(one, column));
  const valued = draft.operator !== "empty" && draft.operator !== "filled";
  const add = (): void => {
    go(withParams({ where: [...place.value.query.getAll("where"), writeCondition(valued ? draft : { ...draft, value: "" })], at: null }));
    setDraft(null);
  };
  const values = column.type === "boolean" ? ["true", "false"] : draft.operator === "has" ? null : column.choices;
  return (
    <form
      class="filter"
      aria-label="New filter"
      onSubmit={(event) => {
        event.preventDefault();
        add();
      }}
    >
      <select aria-label="Column" value={draft.column} onChange={(event) => setDraft(blank(all.find((one) => one.name === event.currentTarget.value)!))}>
        {(["core", "metric", "data"] as const).map((group) => {
          const members = all.filter((one) => one.group === group);
          return members.length === 0 ? null : (
            <optgroup key={group} label={group === "core" ? "Columns" : group === "metric" ? "Metrics" : "Dataset"}>
              {members.map((one) => (
                <option key={one.name} value={one.name}>
                  {one.label}
                </option>
              ))}
            </optgroup>
          );
        })}
      </select>
      <select aria-label="Condition" value={draft.operator} onChange={(event) => setDraft({ ...draft, operator: event.currentTarget.value as Operator })}>
        {operators.map((one) => (
          <option key={one} value={one}>
            {SIGNS[one]}
          </option>
        ))}
      </select>
      {valued &&
        (values ? (
          <select aria-label="Value" value={draft.value} onChange={(event) => setDraft({ ...draft, value: event.currentTarget.value })}>
            {values.map((one) => (
              <option key={one} value={one}>
                {column.type === "boolean" ? (one === "true" ? "yes" : "no") : plain(one).slice(0, 80)}
              </option>
            ))}
          </select>
        ) : (
          <input
            aria-label="Value"
            autofocus
            required={draft.operator !== "eq" && draft.operator !== "ne"}
            type="text"
            inputMode={column.type === "number" ? "decimal" : "text"}
            value={draft.value}
            onInput={(event) => setDraft({ ...draft, value: event.currentTarget.value })}
          />
        ))}
      <button type="submit" class="main">
        Add
      </button>
      <button type="button" onClick={() => setDraft(null)}>
        Cancel
      </button>
    </form>
  );
}

function fits(operator: Operator, column: ColumnInfo): boolean {
  if (operator === "empty" || operator === "filled") return true;
  if (operator === "has") return column.type === "text";
  if (operator === "eq" || operator === "ne") return true;
  return column.type === "number";
}

function Chooser({ by, all, shown }: { by: By; all: ColumnInfo[]; shown: ColumnInfo[] }) {
  const box = useRef<HTMLDetailsElement>(null);
  const names = shown.map((column) => column.name);
  const toggle = (name: string): void => {
    const next = names.includes(name) ? names.filter((one) => one !== name) : [...names, name];
    if (next.length > 0) go(withParams({ cols: next.join(",") }), "replace");
  };
  useEffect(() => {
    const outside = (event: MouseEvent): void => {
      if (box.current?.open && event.target instanceof Node && !box.current.contains(event.target)) box.current.open = false;
    };
    document.addEventListener("click", outside);
    return () => document.removeEventListener("click", outside);
  }, []);
  return (
    <details class="chooser" ref={box}>
      <summary>Columns</summary>
      <fieldset>
        <legend class="said">Columns of the table of {by}s</legend>
        {all.map((column) => (
          <label key={column.name}>
            <input type="checkbox" checked={names.includes(column.name)} onChange={() => toggle(column.name)} /> {column.label}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

// ── the table itself ────────────────────────────────────────────────────────────────────────────────────────────────

/** How wide a column is at least, in rem. It does not depend on what is in it: every row is laid out by itself. */
function measure(column: ColumnInfo): number {
  if (column.name === "ground_truth") return 8;
  if (column.wide) return 14;
  const title = 2.6 + 0.46 * Math.min(column.label.length, 18);
  return Math.max(column.name === "id" ? 7 : 5, title);
}

function width(column: ColumnInfo): string {
  const least = `${measure(column).toFixed(1)}rem`;
  if (column.type === "number" || column.type === "boolean") return least;
  return `minmax(${least}, ${column.name === "ground_truth" ? 1 : column.wide ? 4 : 0.6}fr)`;
}

interface GridProps {
  run: string;
  by: By;
  columns: ColumnInfo[];
  found: Found;
  filter: (column: ColumnInfo) => void;
}

function Grid({ run, by, columns, found, filter }: GridProps) {
  const box = useRef<HTMLDivElement>(null);
  const kept = Number(param("at")) || 0;
  const [chosen, setChosen] = useState(kept);
  const total = found.total ?? 0;
  const sight = useWindow(box, total, ROW, HEADER, kept);
  useEffect(() => found.want(sight.first, sight.last), [sight.first, sight.last]);
  const open = (nth: number): void => {
    const row = found.row(nth);
    if (!row) return;
    go(withParams({ at: String(nth) }), "replace");
    go(sampleLink(run, row.id, tableOf(place.value.query), { ...(row.index === null ? {} : { c: String(row.index) }), at: String(nth) }));
  };
  const move = (by: number): void => {
    const next = Math.max(0, Math.min(total - 1, chosen + by));
    setChosen(next);
    sight.show(next);
  };
  useKeys({
    j: () => move(1),
    ArrowDown: () => move(1),
    k: () => move(-1),
    ArrowUp: () => move(-1),
    PageDown: () => move(20),
    PageUp: () => move(-20),
    Home: () => move(-total),
    End: () => move(total),
    Enter: (event) => {
      const target = event.target instanceof HTMLElement ? event.target : null;
      const control = target?.closest("button, a, summary");
      if (control instanceof HTMLElement) control.click();
      else open(chosen);
    },
  });
  const template = { gridTemplateColumns: columns.map(width).join(" "), minWidth: `${columns.reduce((sum, column) => sum + measure(column), 0).toFixed(1)}rem` };
  const rows: number[] = [];
  for (let nth = sight.first; nth < sight.last; nth++) rows.push(nth);
  return (
    <div class="grid" ref={box} tabIndex={0} role="table" aria-label={`${by}s`} aria-rowcount={total + 1} aria-colcount={columns.length}>
      <div class="header" role="rowgroup">
        <div class="line" role="row" aria-rowindex={1} style={template}>
          {columns.map((column) => (
            <HeaderCell key={column.name} column={column} filter={() => filter(column)} />
          ))}
        </div>
      </div>
      <div class="body" role="rowgroup" style={{ height: `${sight.height}px`, minWidth: template.minWidth }}>
        <div class="moved" role="presentation" style={{ transform: `translateY(${sight.top}px)` }}>
          {rows.map((nth) => (
            <Line key={nth} nth={nth} run={run} row={found.row(nth)} names={found.columns} columns={columns} template={template} chosen={nth === chosen} choose={() => setChosen(nth)} open={() => open(nth)} />
          ))}
        </div>
      </div>
      {found.total === 0 && (!found.search || found.search.done) && <p class="nothing">Nothing matches. Remove a filter or change the search.</p>}
    </div>
  );
}

function HeaderCell({ column, filter }: { column: ColumnInfo; filter: () => void }) {
  const sort = param("sort");
  const state = sort === column.name ? "ascending" : sort === `-${column.name}` ? "descending" : "none";
  // Numbers are mostly wanted from the top, or from the bottom; then in the order of the files again.
  const next = state === "none" ? (column.type === "number" ? `-${column.name}` : column.name) : state === "descending" && column.type === "number" ? column.name : state === "ascending" && column.type !== "number" ? `-${column.name}` : null;
  return (
    <div class={`cell ${column.type}`} role="columnheader" aria-sort={state}>
      {column.wide ? (
        <span>{column.label}</span>
      ) : (
        <button type="button" class="sort" onClick={() => go(withParams({ sort: next, at: null }))} title={`Sort by ${column.label}`}>
          {column.label}
          <span aria-hidden="true" class="arrow">
            {state === "ascending" ? "▲" : state === "descending" ? "▼" : ""}
          </span>
        </button>
      )}
      <button type="button" class="funnel" onClick={filter} aria-label={`Filter by ${column.label}`} title={`Filter by ${column.label}`}>
        <svg viewBox="0 0 12 12" width="10" height="10" aria-hidden="true">
          <path d="M1 2h10L7 6.5V10L5 11V6.5z" />
        </svg>
      </button>
    </div>
  );
}

interface LineProps {
  nth: number;
  run: string;
  row: Row | undefined;
  names: string[];
  columns: ColumnInfo[];
  template: { gridTemplateColumns: string };
  chosen: boolean;
  choose: () => void;
  open: () => void;
}

function Line({ nth, run, row, names, columns, template, chosen, choose, open }: LineProps) {
  const target = row ? sampleLink(run, row.id, tableOf(place.value.query), { ...(row.index === null ? {} : { c: String(row.index) }), at: String(nth) }) : undefined;
  return (
    <div
      class={`line${chosen ? " chosen" : ""}${nth % 2 ? " odd" : ""}`}
      role="row"
      aria-rowindex={nth + 2}
      style={template}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        choose();
        open();
      }}
    >
      {columns.map((column, place) => (
        <div key={column.name} class={`cell ${column.type}${column.wide ? " wide" : ""}`} role="cell">
          {row && <CellText row={row} names={names} column={column} href={place === 0 ? target : undefined} />}
        </div>
      ))}
    </div>
  );
}

function CellText({ row, names, column, href }: { row: Row; names: string[]; column: ColumnInfo; href: string | undefined }) {
  const value = row.cells[names.indexOf(column.name)] ?? null;
  const text = cell(value, column);
  if (href !== undefined) {
    return (
      <a href={href} tabIndex={-1}>
        <bdi>{plain(text) || row.id}</bdi>
      </a>
    );
  }
  if (column.name === "passed" && typeof value === "boolean") {
    return <span class={value ? "verdict good" : "verdict bad"}>{value ? "✓ yes" : "✗ no"}</span>;
  }
  if (typeof value === "number" && isScore(column)) {
    return (
      <>
        {value >= 0 && value <= 1 && <span class="level" style={{ transform: `scaleX(${value})` }} />}
        {text}
      </>
    );
  }
  return <bdi>{plain(text)}</bdi>;
}
