// SPDX-License-Identifier: Apache-2.0
// Runs over the same samples: what changed, by how much, whether that is more than chance, and where.
import { useEffect, useState } from "preact/hooks";
import { runPath } from "../api";
import { Figure, Whisker, type Domain } from "../charts/whisker";
import { useAnswer } from "../data";
import { count, interval, number, plural, score, signed } from "../format";
import { Difference } from "../parts/difference";
import { Frame, Problem, Waiting } from "../parts/frame";
import { Verdict } from "../parts/verdict";
import { Message } from "../parts/message";
import { go, param, runLink, sampleLink, withParams } from "../place";
import { Text, Word } from "../text/text";
import { plain } from "../text/visible";
import type { Candidate, ComparePage as Page, CompareRows, DifferenceLine, Pairing, RunCard, SamplePage } from "../wire";

const AT_ONCE = 100;

export function ComparePage({ runs }: { runs: string[] }) {
  const { data, problem, again } = useAnswer<Page>("compare", new URLSearchParams({ runs: runs.join(",") }));
  return (
    <Frame title="Compare" wide>
      <h1>Compare</h1>
      {problem && <Problem problem={problem} again={again} />}
      {!data && !problem && <Waiting what="the runs" />}
      {data && <Whole page={data} />}
    </Frame>
  );
}

const letter = (nth: number): string => String.fromCharCode(65 + nth);

function Whole({ page }: { page: Page }) {
  const shown = page.pairings.find((pairing) => pairing.b === param("b")) ?? page.pairings[0];
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Runs">
      <table class="list">
        <thead>
          <tr>
            <th scope="col"><span class="said">Letter</span></th>
            <th scope="col">Run</th>
            <th scope="col">Model</th>
            <th scope="col" class="n">Mean score</th>
            <th scope="col" class="n">Pass rate</th>
          </tr>
        </thead>
        <tbody>
          {page.runs.map((run, nth) => (
            <tr key={run.key}>
              <td><strong>{letter(nth)}</strong></td>
              <th scope="row">
                <a href={runLink(run.key)}><Word text={run.title} most={80} /></a>
                <span class="path"><Word text={run.path} most={120} /></span>
              </th>
              <td><Word text={run.models.join(", ")} most={60} /></td>
              <td class="n"><Figure estimate={run.mean} of={run.samples} /></td>
              <td class="n"><Figure estimate={run.rate} of={run.samples} bounds={run.rate_bounds} /></td>
            </tr>
          ))}
        </tbody>
      </table>
      </div>
      {page.pairings.length > 1 && (
        <p class="choice" role="group" aria-label="Which runs">
          {page.pairings.map((pairing, nth) => (
            <a key={pairing.b} href={withParams({ b: pairing.b, cell: null, open: null })} aria-current={pairing === shown ? "true" : undefined}>
              A and {letter(nth + 1)}
            </a>
          ))}
        </p>
      )}
      {shown && <Paired page={page} pairing={shown} />}
    </>
  );
}

function Paired({ page, pairing }: { page: Page; pairing: Pairing }) {
  const a = page.runs[0]!;
  const b = page.runs.find((run) => run.key === pairing.b)!;
  const name = letter(page.runs.indexOf(b));
  const whole = pairing.differences.filter((line) => !isPart(line));
  const parts = pairing.differences.filter(isPart);
  return (
    <>
      {pairing.notes.map((note) => (
        <p key={note} class="note">
          <Word text={note} most={1000} />
        </p>
      ))}
      <p class="facts">
        {plural(pairing.common, "sample")} compared
        {pairing.left_out > 0 && ` · ${count(pairing.left_out)} left out: not the same in both`}
        {pairing.only_a > 0 && ` · ${count(pairing.only_a)} only in A`}
        {pairing.only_b > 0 && ` · ${count(pairing.only_b)} only in ${name}`}
      </p>
      {whole.length > 0 && (
        <section aria-labelledby="differences">
          <h2 id="differences">Paired differences</h2>
          <p class="facts">
            These are means over the samples that both runs have, each sample counted once. Those at the top are over all
            judged records of a run, so they may differ a little.
          </p>
          <Differences lines={whole} name={name} title="Paired differences" judgedAlike={pairing.same_reward} />
        </section>
      )}
      {parts.length > 0 && (
        <details class="fold">
          <summary>By split</summary>
          <Differences lines={parts} name={name} title="Paired differences by split" judgedAlike={pairing.same_reward} />
        </details>
      )}
      {pairing.common > 0 && <Flips a={a} b={b} name={name} pairing={pairing} />}
    </>
  );
}

const isPart = (line: DifferenceLine): boolean => line.split !== "" && line.split !== "all";

const FIGURES: Record<string, string> = { score: "mean score", rate: "pass rate", first: "first candidate passes" };

function Differences({ lines, name, title, judgedAlike }: { lines: DifferenceLine[]; name: string; title: string; judgedAlike: boolean }) {
  const far = Math.max(...lines.flatMap((line) => [Math.abs(line.low), Math.abs(line.high), Math.abs(line.difference)]), 0.02);
  const domain: Domain = [-far * 1.08, far * 1.08];
  const tone = (line: DifferenceLine): "good" | "bad" | "quiet" => (!judgedAlike ? "quiet" : line.low > 0 ? "good" : line.high < 0 ? "bad" : "quiet");
  return (
      <div class="scroll" tabIndex={0} role="region" aria-label={title}>
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Figure</th>
              <th scope="col" class="n">Samples</th>
              <th scope="col" class="n">A</th>
              <th scope="col" class="n">{name}</th>
              <th scope="col" class="n">{name} − A</th>
              <th scope="col"><span class="said">Difference drawn</span></th>
              <th scope="col" class="n">p</th>
              <th scope="col" class="n">{name} higher</th>
              <th scope="col" class="n">A higher</th>
              <th scope="col" class="n">equal</th>
            </tr>
          </thead>
          <tbody>
            {lines.map((line, nth) => (
              <tr key={nth}>
                <th scope="row">
                  {FIGURES[line.figure] ?? line.figure}
                  {isPart(line) && <span class="badge"><Word text={line.split} most={40} /></span>}
                </th>
                <td class="n">{count(line.samples)}</td>
                <td class="n">{score(line.a)}</td>
                <td class="n">{score(line.b)}</td>
                <td class="n">
                  <span class="figure">
                    <span class={`tone ${tone(line)}`}>{signed(line.difference)}</span> <span class="between">{interval(line.low, line.high)}</span>
                  </span>
                </td>
                <td class="drawn">
                  <Whisker name={`Difference of ${line.figure} ${line.split}`} estimate={{ value: line.difference, low: line.low, high: line.high, confidence: 0.95, count: line.samples }} domain={domain} zero={0} tone={tone(line)} />
                </td>
                <td class="n">{line.p_value === null ? "–" : line.p_value < 0.001 ? "< 0.001" : line.p_value.toFixed(3)}</td>
                <td class="n">{count(line.won)}</td>
                <td class="n">{count(line.lost)}</td>
                <td class="n">{count(line.tied)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
  );
}

type Cell = "both" | "only_a" | "only_b" | "neither" | "differ" | "all";

/** The 2×2 table, each number of which leads to its samples. */
function Flips({ a, b, name, pairing }: { a: RunCard; b: RunCard; name: string; pairing: Pairing }) {
  const cell = (param("cell") || (pairing.table ? "only_a" : "differ")) as Cell;
  const splits = [...new Set(pairing.differences.map((line) => line.split))].filter((split) => split !== "" && split !== "all");
  const to = (one: Cell): string => withParams({ cell: one, open: null });
  const TITLES: Record<Cell, string> = {
    both: "Both pass",
    only_a: `A passes and ${name} does not`,
    only_b: `${name} passes and A does not`,
    neither: "Neither passes",
    differ: "Scores differ",
    all: "All samples that are compared",
  };
  const square = (one: Cell, value: number) => (
    <td class={cell === one ? "chosen" : undefined}>
      <a href={to(one)} aria-current={cell === one ? "true" : undefined} aria-label={`${TITLES[one]}: ${plural(value, "sample")}`}>
        {count(value)}
      </a>
    </td>
  );
  return (
    <section aria-labelledby="flips">
      <h2 id="flips">Where they differ</h2>
      <div class="flips">
        <div>
          {pairing.table && (
            <table class="square">
              <caption>Samples, by {pairing.table_of}</caption>
              <thead>
                <tr>
                  <td />
                  <th scope="col">{name} passes</th>
                  <th scope="col">{name} does not</th>
                </tr>
              </thead>
              <tbody>
                <tr>
                  <th scope="row">A passes</th>
                  {square("both", pairing.table[0]![0]!)}
                  {square("only_a", pairing.table[0]![1]!)}
                </tr>
                <tr>
                  <th scope="row">A does not</th>
                  {square("only_b", pairing.table[1]![0]!)}
                  {square("neither", pairing.table[1]![1]!)}
                </tr>
              </tbody>
            </table>
          )}
          <p class="choice" role="group" aria-label="Which samples">
            <a href={to("differ")} aria-current={cell === "differ" ? "true" : undefined}>Scores differ</a>
            <a href={to("all")} aria-current={cell === "all" ? "true" : undefined}>All</a>
          </p>
          {splits.length > 1 && (
            <label class="inline">
              Split{" "}
              <select value={param("split")} onChange={(event) => go(withParams({ split: event.currentTarget.value || null, open: null }))}>
                <option value="">all</option>
                {splits.map((split) => (
                  <option key={split} value={split}>{split}</option>
                ))}
              </select>
            </label>
          )}
        </div>
        <FlipList key={`${a.key} ${b.key} ${cell} ${param("split")}`} a={a} b={b} name={name} cell={cell} title={TITLES[cell]} judgedAlike={pairing.same_reward} />
      </div>
    </section>
  );
}

function FlipList({ a, b, name, cell, title, judgedAlike }: { a: RunCard; b: RunCard; name: string; cell: Cell; title: string; judgedAlike: boolean }) {
  const [limit, setLimit] = useState(AT_ONCE);
  const params = new URLSearchParams({ a: a.key, b: b.key, cell, split: param("split"), offset: "0", limit: String(limit) });
  const { data, problem, again } = useAnswer<CompareRows>("compare/rows", params, `${a.key} ${b.key} ${cell}`);
  const open = param("open");
  if (problem) return <Problem problem={problem} again={again} />;
  if (!data) return <Waiting what="the samples" />;
  return (
    <div class="flip-list">
      <h3>
        {title}: {plural(data.total, "sample")}
      </h3>
      {data.total === 0 && <p class="quiet">None.</p>}
      <ul>
        {data.rows.map((row) => (
          <li key={row.id}>
            <a class="flip" href={withParams({ open: open === row.id ? null : row.id })} aria-expanded={open === row.id}>
              <span class="n">
                {score(row.a)} → {score(row.b)}
              </span>
              <span class={`n tone ${!judgedAlike ? "quiet" : (row.difference ?? 0) > 0 ? "good" : (row.difference ?? 0) < 0 ? "bad" : "quiet"}`}>{row.difference === null ? "–" : signed(row.difference)}</span>
              <span class="query">
                <bdi>{plain(row.query)}</bdi>
              </span>
              <span class="quiet">
                <Word text={row.id} most={40} />
              </span>
            </a>
            {open === row.id && <BothAnswers a={a} b={b} name={name} id={row.id} />}
          </li>
        ))}
      </ul>
      {data.rows.length < data.total && (
        <button type="button" onClick={() => setLimit((old) => Math.min(1000, old + AT_ONCE))} disabled={limit >= 1000}>
          {limit >= 1000 ? `${number(data.total)} in all; the first 1,000 are listed` : "Show more"}
        </button>
      )}
    </div>
  );
}

function BothAnswers({ a, b, name, id }: { a: RunCard; b: RunCard; name: string; id: string }) {
  const left = useAnswer<SamplePage>(runPath(a.key, "samples", id));
  const right = useAnswer<SamplePage>(runPath(b.key, "samples", id));
  const [look, setLook] = useState<"rendered" | "diff">("rendered");
  const problem = left.problem ?? right.problem;
  if (problem) return <Problem problem={problem} />;
  if (!left.data || !right.data) return <Waiting what="the answers" />;
  return (
    <div class="panel">
      {left.data.prompt.slice(-1).map((part, nth) => (
        <Message key={nth} part={part} look="rendered" />
      ))}
      {left.data.ground_truth !== null && (
        <div class="truth">
          <p class="role">ground truth</p>
          <Text text={left.data.ground_truth} look="rendered" />
        </div>
      )}
      <p class="choice" role="group" aria-label="How answers are shown">
        <button type="button" aria-pressed={look === "rendered"} onClick={() => setLook("rendered")}>Side by side</button>
        <button type="button" aria-pressed={look === "diff"} onClick={() => setLook("diff")}>Difference</button>
      </p>
      <Answers left={left.data} right={right.data} a={a} b={b} name={name} look={look} />
    </div>
  );
}

function Answers({ left, right, a, b, name, look }: { left: SamplePage; right: SamplePage; a: RunCard; b: RunCard; name: string; look: "rendered" | "diff" }) {
  const [first, setFirst] = useState(0);
  const [second, setSecond] = useState(0);
  const one = left.candidates[first];
  const two = right.candidates[second];
  useEffect(() => {
    setFirst(0);
    setSecond(0);
  }, [left.id]);
  if (!one || !two) return null;
  if (look === "diff") {
    return (
      <>
        <div class="row">
          <Pick page={left} name="A" value={first} set={setFirst} />
          <Pick page={right} name={name} value={second} set={setSecond} />
        </div>
        <Difference before={one.response.text} after={two.response.text} names={["A", name]} />
      </>
    );
  }
  return (
    <div class="side-by-side">
      <Answer run={a} page={left} one={one} name="A" pick={<Pick page={left} name="A" value={first} set={setFirst} />} />
      <Answer run={b} page={right} one={two} name={name} pick={<Pick page={right} name={name} value={second} set={setSecond} />} />
    </div>
  );
}

function Pick({ page, name, value, set }: { page: SamplePage; name: string; value: number; set: (nth: number) => void }) {
  if (page.candidates.length < 2) return null;
  return (
    <label class="inline">
      {name}:{" "}
      <select value={String(value)} onChange={(event) => set(Number(event.currentTarget.value))}>
        {page.candidates.map((one, nth) => (
          <option key={one.index} value={String(nth)}>
            candidate {one.index}, {score(one.score)}
          </option>
        ))}
      </select>
    </label>
  );
}

function Answer({ run, page, one, name, pick }: { run: RunCard; page: SamplePage; one: Candidate; name: string; pick: preact.ComponentChildren }) {
  return (
    <article class="candidate" aria-label={`Answer of ${name}`}>
      <header>
        <Verdict passed={one.passed} value={one.score} failed={one.failure !== null} />
        <h4>
          {name} · <a href={sampleLink(run.key, page.id, undefined, { c: String(one.index) })}><Word text={run.title} most={50} /></a>
        </h4>
        {pick}
      </header>
      {one.failure !== null && <p class="trouble"><Word text={one.failure} most={1000} /></p>}
      {one.reason !== "" && <div class="reason"><Text text={one.reason} look="raw" /></div>}
      <Text text={one.response.text} look="rendered" spans={one.spans} />
    </article>
  );
}
