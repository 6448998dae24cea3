// SPDX-License-Identifier: Apache-2.0
// One sample: what was asked, and all that was answered, side by side.
import { useEffect, useMemo, useState } from "preact/hooks";
import { runPath } from "../api";
import { titles, useAnswer, useChanges } from "../data";
import { count, plural, score } from "../format";
import { useKeys } from "../keys";
import { CandidateCard } from "../parts/candidate";
import { Difference } from "../parts/difference";
import { Frame, Problem, tell, Waiting } from "../parts/frame";
import { Json } from "../parts/json";
import { decide, type Says } from "../parts/marks";
import { Message } from "../parts/message";
import { go, param, place, sampleLink, tableLink, withParams } from "../place";
import { Text, Word, type Look } from "../text/text";
import { tableOf, viewOf } from "../view";
import type { Candidate, Neighbours, Rows, SamplePage } from "../wire";

const AT_ONCE = 12;

export function Sample({ run, id }: { run: string; id: string }) {
  return id === "" ? <ByPlace run={run} /> : <Named run={run} id={id} />;
}

/** An address that says where a sample stands in the table's order, and not which it is. */
function ByPlace({ run }: { run: string }) {
  const title = titles.value[run] ?? "Run";
  const at = param("at");
  const asked = /^\d{1,9}$/.test(at);
  const rows = new URLSearchParams(viewOf(place.value.query));
  for (const [name, value] of [["columns", "id"], ["offset", at], ["limit", "1"]] as const) rows.set(name, value);
  const { data, problem, again } = useAnswer<Rows>(asked ? runPath(run, "rows") : null, rows);
  const row = data?.rows[0];
  useEffect(() => {
    if (!row) return;
    go(sampleLink(run, row.id, place.value.query, row.index === null ? {} : { c: String(row.index) }), "replace");
  }, [row]);
  return (
    <Frame title={`Sample of ${title}`} run={{ key: run, title, tab: "sample" }} wide>
      {problem && <Problem problem={problem} again={again} />}
      {asked && !problem && (!data || row) && <Waiting what="the sample" />}
      {(!asked || (data && !row)) && (
        <p class="problem">
          There is no such sample{data && `: the table has ${plural(data.total, "row")}`}. <a href={tableLink(run, viewOf(place.value.query))}>Choose one in the table</a>
        </p>
      )}
    </Frame>
  );
}

function Named({ run, id }: { run: string; id: string }) {
  const view = viewOf(place.value.query);
  const path = runPath(run, "samples", id);
  const { data, problem, loading, again } = useAnswer<SamplePage>(path, view, `${run} ${id}`);
  const [last, setLast] = useState<SamplePage | null>(null);
  useChanges(run, again, 2000);
  useEffect(() => {
    if (data) setLast(data);
  }, [data]);
  const title = titles.value[run] ?? "Run";
  // The sample before stays until the next is there: no flicker between two of them.
  const shown = data ?? (problem ? null : last);
  return (
    <Frame title={`${id} of ${title}`} run={{ key: run, title, tab: "sample" }} wide>
      {problem && <Problem problem={problem} again={again} />}
      {!shown && !problem && <Waiting what="the sample" />}
      {shown && (
        <div class={loading && shown.id !== id ? "stack stale" : "stack"} aria-busy={loading}>
          <Whole key={shown.id} run={run} page={shown} again={again} />
        </div>
      )}
    </Frame>
  );
}

function Whole({ run, page, again }: { run: string; page: SamplePage; again: () => void }) {
  const look: Look = param("show") === "raw" ? "raw" : "rendered";
  const byIndex = param("order") === "index";
  const candidates = useMemo(() => (byIndex ? [...page.candidates] : bestFirst(page.candidates)), [page, byIndex]);
  const [more, setMore] = useState(AT_ONCE);
  const [notes, setNotes] = useState<Record<number, string>>({});
  const asked = param("c");
  const chosen = candidates.find((one) => String(one.index) === asked) ?? candidates[0];
  const place = chosen ? candidates.indexOf(chosen) : 0;
  const choose = (one: Candidate | undefined, sight = false): void => {
    if (!one) return;
    if (String(one.index) !== param("c")) go(withParams({ c: String(one.index) }), "replace");
    if (sight) {
      setMore((old) => Math.max(old, candidates.indexOf(one) + 1));
      requestAnimationFrame(() => document.getElementById(`c${one.index}`)?.scrollIntoView({ block: "nearest", inline: "nearest" }));
    }
  };
  const mark = (one: Candidate, says: Says): void => {
    const note = notes[one.index] ?? one.review?.note ?? "";
    void decide(run, { id: page.id, index: one.index, says, note, choice: "browsing", ticket: null }).then((made) => made && again());
  };
  useSampleKeys(run, page.neighbours, {
    left: () => choose(candidates[Math.max(0, place - 1)], true),
    right: () => choose(candidates[Math.min(candidates.length - 1, place + 1)], true),
    mark: (says) => chosen && mark(chosen, says),
    look: () => go(withParams({ show: look === "raw" ? null : "raw" }), "replace"),
  });
  useEffect(() => {
    if (asked !== "" && candidates.length > 1) choose(chosen, true);
  }, []);
  const differing = param("diff").split(",").map((index) => page.candidates.find((one) => String(one.index) === index));
  return (
    <>
      <Bar run={run} page={page} look={look} byIndex={byIndex} />
      <div class="sample">
        <section class="asked" aria-label="What was asked">
          {page.prompt.map((part, nth) => (
            <Message key={nth} part={part} look={look} />
          ))}
          {page.ground_truth !== null && (
            <div class="truth">
              <p class="role">ground truth</p>
              <Text text={page.ground_truth} look={look} />
            </div>
          )}
          {page.tools.length > 0 && (
            <details>
              <summary>{plural(page.tools.length, "tool")}</summary>
              <Json value={page.tools} />
            </details>
          )}
          {Object.keys(page.columns).length > 0 && (
            <details>
              <summary>Columns of the dataset</summary>
              <Json value={page.columns} />
            </details>
          )}
        </section>
        <section class={candidates.length === 4 || candidates.length === 2 ? "answers n4" : "answers"} aria-label="Candidates">
          {candidates.length > 1 && <Strip candidates={candidates} chosen={chosen} choose={(one) => choose(one, true)} />}
          {differing[0] && differing[1] && (
            <div class="panel">
              <div class="head">
                <h2>
                  Candidate {differing[0].index} and candidate {differing[1].index}
                </h2>
                <a class="button small" href={withParams({ diff: null })}>
                  Close
                </a>
              </div>
              <Difference before={differing[0].response.text} after={differing[1].response.text} names={[`candidate ${differing[0].index}`, `candidate ${differing[1].index}`]} />
            </div>
          )}
          <div class="side-by-side">
            {candidates.slice(0, more).map((one) => {
              const other = chosen && chosen !== one ? chosen : candidates.find((two) => two !== one);
              return (
                <CandidateCard
                  key={one.index}
                  run={run}
                  id={page.id}
                  candidate={one}
                  truth={page.ground_truth}
                  look={look}
                  chosen={one === chosen && candidates.length > 1}
                  choose={() => choose(one)}
                  note={notes[one.index] ?? one.review?.note ?? ""}
                  setNote={(note) => setNotes((old) => ({ ...old, [one.index]: note }))}
                  decide={(says) => mark(one, says)}
                  {...(other ? { compared: { href: withParams({ diff: `${other.index},${one.index}` }), name: `candidate ${other.index}` } } : {})}
                />
              );
            })}
          </div>
          {candidates.length > more && (
            <p>
              <button type="button" onClick={() => setMore((old) => old + 4 * AT_ONCE)}>
                Show more of the {count(candidates.length)} candidates
              </button>
            </p>
          )}
        </section>
      </div>
    </>
  );
}

function bestFirst(candidates: Candidate[]): Candidate[] {
  const rank = (one: Candidate): number => (one.failure !== null || one.score === null ? -Infinity : one.score);
  return [...candidates].sort((a, b) => rank(b) - rank(a) || a.index - b.index);
}

interface Acts {
  left: () => void;
  right: () => void;
  mark: (says: Says) => void;
  look: () => void;
}

function useSampleKeys(run: string, near: Neighbours, acts: Acts): void {
  const to = (id: string | null, none: string): void => {
    if (id === null) tell(none);
    else go(neighbour(run, id));
  };
  const next = (): void => to(near.next, "This is the last sample.");
  const previous = (): void => to(near.previous, "This is the first sample.");
  useKeys({
    j: next,
    k: previous,
    n: () => to(near.next_failure, "No sample after this one has a failure."),
    p: () => to(near.previous_failure, "No sample before this one has a failure."),
    ArrowLeft: acts.left,
    ArrowRight: acts.right,
    r: () => acts.mark("right"),
    w: () => acts.mark("wrong"),
    u: () => acts.mark("unclear"),
    m: acts.look,
    Escape: () => go(tableLink(run, tableOf(place.value.query))),
  });
}

/** Another sample in the same order, looked at in the same way. */
function neighbour(run: string, id: string): string {
  const query = new URLSearchParams(place.value.query);
  query.delete("at");
  return sampleLink(run, id, query);
}

function Bar({ run, page, look, byIndex }: { run: string; page: SamplePage; look: Look; byIndex: boolean }) {
  const near = page.neighbours;
  const inOrder = near.total > 0 && (near.previous !== null || near.next !== null || near.total === 1);
  return (
    <div class="head bar">
      <h1>
        <span class="label">sample</span> <Word text={page.id} most={120} />
        {page.split !== "" && (
          <span class="badge">
            <Word text={page.split} most={40} />
          </span>
        )}
      </h1>
      <div class="actions">
        <span class="choice" role="group" aria-label="How texts are shown">
          <a href={withParams({ show: null })} aria-current={look === "rendered" ? "true" : undefined}>
            Rendered
          </a>
          <a href={withParams({ show: "raw" })} aria-current={look === "raw" ? "true" : undefined}>
            Raw
          </a>
        </span>
        {page.candidates.length > 1 && (
          <span class="choice" role="group" aria-label="Order of the candidates">
            <a href={withParams({ order: null })} aria-current={byIndex ? undefined : "true"}>
              Best first
            </a>
            <a href={withParams({ order: "index" })} aria-current={byIndex ? "true" : undefined}>
              By index
            </a>
          </span>
        )}
        <nav class="near" aria-label="Neighbours">
          <Step id={near.previous_failure} run={run} name="Previous failure (p)" sign="⇤" />
          <Step id={near.previous} run={run} name="Previous sample (k)" sign="←" />
          <a class="position" href={tableLink(run, tableOf(place.value.query))} title="Back to the table (Esc)">
            {inOrder ? `${count(near.position + 1)} of ${count(near.total)}` : "table"}
          </a>
          <Step id={near.next} run={run} name="Next sample (j)" sign="→" />
          <Step id={near.next_failure} run={run} name="Next failure (n)" sign="⇥" />
        </nav>
      </div>
    </div>
  );
}

function Step({ id, run, name, sign }: { id: string | null; run: string; name: string; sign: string }) {
  return id === null ? (
    <span class="button off" aria-hidden="true">
      {sign}
    </span>
  ) : (
    <a class="button" href={neighbour(run, id)} aria-label={name} title={name}>
      {sign}
    </a>
  );
}

/** All candidates at a glance. */
function Strip({ candidates, chosen, choose }: { candidates: Candidate[]; chosen: Candidate | undefined; choose: (one: Candidate) => void }) {
  return (
    <div class="strip" role="group" aria-label="All candidates">
      {candidates.map((one) => {
        const kind = one.failure !== null ? "broken" : one.passed === null ? "none" : one.passed ? "good" : "bad";
        const word = one.failure !== null ? "failed" : one.passed === null ? "" : one.passed ? "passes" : "does not pass";
        return (
          <button
            key={one.index}
            type="button"
            class={kind}
            aria-pressed={one === chosen}
            aria-label={`Candidate ${one.index}, ${word} ${score(one.score)}`}
            title={`Candidate ${one.index}: ${word} ${score(one.score)}`}
            onClick={() => choose(one)}
          >
            <span aria-hidden="true">{one.failure !== null ? "!" : one.passed === null ? "·" : one.passed ? "✓" : "✗"}</span> {one.index}
          </button>
        );
      })}
    </div>
  );
}
