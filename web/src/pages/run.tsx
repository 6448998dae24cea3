// SPDX-License-Identifier: Apache-2.0
// One run: its figures with their intervals, how scores are spread, what failed, what it cost, how it was made.
import type { ComponentChildren } from "preact";
import { runPath } from "../api";
import { Curve } from "../charts/curve";
import { Histogram } from "../charts/histogram";
import { domainOf, Figure, Population, Whisker } from "../charts/whisker";
import { useAnswer, useChanges } from "../data";
import { count, money, number, plural, quantity, score, when } from "../format";
import { copy, Frame, Problem, Waiting } from "../parts/frame";
import { Json } from "../parts/json";
import { reviewLink, sampleLink, tableLink } from "../place";
import { Text, Word } from "../text/text";
import type { Change, Estimate, RecordPlace, RunCard, RunPage } from "../wire";

export function RunSummary({ run }: { run: string }) {
  const { data, problem, again } = useAnswer<RunPage>(runPath(run));
  const change = useChanges(run, again);
  const title = data?.card.title ?? "Run";
  return (
    <Frame title={title} run={{ key: run, title, tab: "run" }}>
      {change?.gone && data && <p class="problem">The files of this run are no longer there. What you see is the last that was read.</p>}
      {problem && <Problem problem={problem} again={again} />}
      {!data && !problem && <Waiting what="the run" />}
      {data && <Summary run={run} page={data} change={change} />}
    </Frame>
  );
}

function Summary({ run, page, change }: { run: string; page: RunPage; change: Change | null }) {
  const { card } = page;
  return (
    <>
      <Heading card={card} />
      {card.problem !== null && <p class="problem">{card.problem}</p>}
      {(card.live || change?.live) && <Progress card={card} change={change} />}
      {page.notes.map((note) => (
        <p key={note} class="note">
          <Word text={note} most={600} />
        </p>
      ))}
      {card.records > 0 && <Figures run={run} page={page} />}
      <Made page={page} />
    </>
  );
}

function Figures({ run, page }: { run: string; page: RunPage }) {
  return (
    <>
      <KeyFigures page={page} />
      <div class="halves">
        <section aria-labelledby="spread">
          <h2 id="spread">Scores</h2>
          <Histogram
            bins={page.histogram}
            threshold={page.threshold}
            href={(bin, last) =>
              tableLink(run, new URLSearchParams([["by", "record"], ["where", `score:ge:${bin.low}`], ["where", `score:${last || bin.low === bin.high ? "le" : "lt"}:${bin.high}`]]))
            }
          />
        </section>
        {page.curve.length > 0 && (
          <section aria-labelledby="curve">
            <h2 id="curve">pass@k</h2>
            <Curve points={page.curve} samples={page.card.samples} />
          </section>
        )}
      </div>
      <Splits run={run} page={page} />
      <Metrics page={page} />
      <Choosing page={page} />
      <Failures run={run} page={page} />
      <div class="halves">
        <Places run={run} title="Hardest samples" places={page.hardest} />
        <Places run={run} title="Most contested samples" places={page.contested} all={{ contested: "1" }} />
      </div>
      <Spending page={page} />
    </>
  );
}

function Heading({ card }: { card: RunCard }) {
  return (
    <div class="head">
      <div>
        <h1>
          <Word text={card.title} />
          {card.live && <span class="badge live">running</span>}
          {!card.live && !card.finished && <span class="badge">not finished</span>}
        </h1>
        <p class="facts">
          {card.models.length > 0 && (
            <>
              <Word text={card.models.join(", ")} /> ·{" "}
            </>
          )}
          {card.samples > 0 ? `${plural(card.samples, "sample")} × ${card.n}` : "nothing yet"} · {when(card.started_at)} ·{" "}
          <span class="mono">
            <Word text={card.path} />
          </span>
        </p>
      </div>
      <div class="actions">
        <a class="button" href={tableLink(card.key)}>
          Open the table
        </a>
        <a class="button" href={reviewLink(card.key)}>
          Review verdicts{card.reviews > 0 && ` (${count(card.reviews)})`}
        </a>
      </div>
    </div>
  );
}

function Progress({ card, change }: { card: RunCard; change: Change | null }) {
  const records = change?.records ?? card.records;
  const expected = change?.expected ?? null;
  return (
    <p class="progress" role="status">
      <progress max={expected ?? undefined} value={expected === null ? undefined : records} aria-label="Progress of the run" />
      <span>
        {count(records)}
        {expected !== null && ` of ${count(expected)}`} records · {count(change?.judged ?? card.judged)} judged · {count(change?.failed ?? card.failed)} failed
        {change?.mean !== null && change?.mean !== undefined && ` · mean score ${score(change.mean)}`}
      </span>
    </p>
  );
}

/** The figures that come first, drawn; then all that the terminal prints, word for word. */
function KeyFigures({ page }: { page: RunPage }) {
  const { card } = page;
  const last = card.pass_at[card.pass_at.length - 1];
  const drawn: [string, Estimate, number[] | null][] = [];
  if (card.mean) drawn.push(["Mean score", card.mean, null]);
  if (card.rate) drawn.push(["Pass rate", card.rate, card.rate_bounds]);
  if (last && last.k > 1) drawn.push([`pass@${last.k}`, last.estimate, last.bounds]);
  const domain = domainOf(drawn.map(([, estimate]) => estimate));
  return (
    <section aria-label="Figures">
      <div class="figures">
        {drawn.map(([name, estimate, bounds]) => (
          <div key={name} class="big">
            <span class="label">{name}</span>
            <span class="number">{score(estimate.value)}</span>
            <Whisker name={name} estimate={estimate} domain={domain} />
            <span class="between">
              {estimate.low !== null && estimate.high !== null && `${score(estimate.low)} … ${score(estimate.high)}, ${Math.round(100 * estimate.confidence)} %`}
            </span>
            <Population estimate={estimate} of={card.samples} bounds={bounds} />
          </div>
        ))}
        <div class="big">
          <span class="label">Judged</span>
          <span class="number">{count(card.judged)}</span>
          <span class="between">of {plural(card.records, "record")}</span>
        </div>
        <div class="big">
          <span class="label">Failed</span>
          <span class={card.failed > 0 ? "number trouble" : "number"}>{count(card.failed)}</span>
          <span class="between">{card.cost !== null && `cost ${money(card.cost)}`}</span>
        </div>
      </div>
      {page.figures.length > 0 && (
        <details>
          <summary>All figures as the terminal prints them</summary>
          <dl class="terminal">
            {page.figures.map(([name, text], nth) => (
              <div key={nth}>
                <dt>{name}</dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </section>
  );
}

function Splits({ run, page }: { run: string; page: RunPage }) {
  if (page.splits.length < 2) return null;
  const domain = domainOf(page.splits.flatMap((split) => [split.mean]));
  const ks = [...new Set(page.splits.flatMap((split) => split.pass_at.map((point) => point.k)))].filter((k) => k > 1).sort((a, b) => a - b);
  return (
    <Section title="By split" id="splits">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Split</th>
            <th scope="col" class="n">Samples</th>
            <th scope="col" class="n">Mean score</th>
            <th scope="col"><span class="said">Mean score drawn</span></th>
            <th scope="col" class="n">Pass rate</th>
            {ks.map((k) => (
              <th key={k} scope="col" class="n">pass@{k}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {page.splits.map((split) => (
            <tr key={split.name}>
              <th scope="row">
                <a href={tableLink(run, { where: `split:eq:${split.name}` })}>
                  <Word text={split.name || "(none)"} most={60} />
                </a>
              </th>
              <td class="n">{count(split.samples)}</td>
              <td class="n"><Figure estimate={split.mean} of={split.samples} /></td>
              <td class="drawn">{split.mean && <Whisker name={`Mean score of ${split.name}`} estimate={split.mean} domain={domain} />}</td>
              <td class="n"><Figure estimate={split.rate} of={split.samples} bounds={split.rate_bounds} /></td>
              {ks.map((k) => {
                const point = split.pass_at.find((one) => one.k === k);
                return <td key={k} class="n"><Figure estimate={point?.estimate ?? null} of={split.samples} bounds={point?.bounds} /></td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

function Metrics({ page }: { page: RunPage }) {
  if (page.metrics.length === 0) return null;
  const domain = domainOf(page.metrics.map((metric) => metric.mean));
  return (
    <Section title="Metrics" id="metrics">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Metric</th>
            <th scope="col" class="n">Mean</th>
            <th scope="col"><span class="said">Mean drawn</span></th>
            <th scope="col" class="n">Records</th>
          </tr>
        </thead>
        <tbody>
          {page.metrics.map((metric) => (
            <tr key={metric.name}>
              <th scope="row"><Word text={metric.name} most={60} /></th>
              <td class="n"><Figure estimate={metric.mean} of={page.card.samples} /></td>
              <td class="drawn"><Whisker name={metric.name} estimate={metric.mean} domain={domain} /></td>
              <td class="n">{count(metric.count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

/** Ways to choose one of n: what each gains. Their figures are estimates where they have a value. */
function Choosing({ page }: { page: RunPage }) {
  const rows = page.choosing;
  if (rows.length === 0) return null;
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return (
    <Section title="Choosing one of k" id="choosing">
      <table class="list">
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name} scope="col" class="n">{name.replaceAll("_", " ")}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, nth) => (
            <tr key={nth}>
              {names.map((name) => (
                <td key={name} class="n">
                  <Any value={row[name]} of={page.card.samples} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

function Any({ value, of }: { value: unknown; of: number }) {
  if (typeof value === "number") return <>{number(value)}</>;
  if (value && typeof value === "object" && "value" in value) return <Figure estimate={value as Estimate} of={of} />;
  return <Word text={value === null || value === undefined ? "–" : String(value)} most={60} />;
}

function Failures({ run, page }: { run: string; page: RunPage }) {
  if (page.failures.length === 0) return null;
  return (
    <Section title="Failures" id="failures">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Kind</th>
            <th scope="col" class="n">Records</th>
            <th scope="col">First message, and examples</th>
          </tr>
        </thead>
        <tbody>
          {page.failures.map((failure) => (
            <tr key={failure.kind}>
              <th scope="row">
                <a href={tableLink(run, { by: "record", where: `failure:eq:${failure.kind}` })}>
                  <Word text={failure.kind} most={120} />
                </a>
              </th>
              <td class="n">{count(failure.count)}</td>
              <td>
                <span class="message">
                  <Word text={failure.message} most={300} />
                </span>
                <span class="examples">
                  {failure.examples.map((one) => (
                    <a key={`${one.id} ${one.index}`} href={sampleLink(run, one.id, undefined, { c: String(one.index) })}>
                      <Word text={one.id} most={40} /> #{one.index}
                    </a>
                  ))}
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

function Places({ run, title, places, all }: { run: string; title: string; places: RecordPlace[]; all?: Record<string, string> }) {
  if (places.length === 0) return null;
  return (
    <section>
      <h2>
        {title}
        {all && (
          <a class="more" href={tableLink(run, all)}>
            all of them
          </a>
        )}
      </h2>
      <p class="examples">
        {places.map((one) => (
          <a key={one.id} href={sampleLink(run, one.id, new URLSearchParams(all ?? {}))}>
            <Word text={one.id} most={40} />
          </a>
        ))}
      </p>
    </section>
  );
}

const SPENT: Record<string, string> = {
  latency_ms: "Latency",
  prompt_tokens: "Prompt tokens",
  completion_tokens: "Answer tokens",
  cost: "Cost",
  length: "Length",
};

function Spending({ page }: { page: RunPage }) {
  if (page.spending.length === 0) return null;
  return (
    <Section title="Tokens, time and cost of a request" id="spending">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">What</th>
            {["mean", "p50", "p90", "p99", "total"].map((name) => (
              <th key={name} scope="col" class="n">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {page.spending.map((line) => (
            <tr key={line.name}>
              <th scope="row">{SPENT[line.name] ?? line.name}</th>
              {[line.mean, line.p50, line.p90, line.p99, line.total].map((value, nth) => (
                <td key={nth} class="n">{value === null ? "–" : quantity(value, line.unit)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

function Made({ page }: { page: RunPage }) {
  const { config, manifest } = page;
  if (config === null && manifest === null) return null;
  return (
    <section aria-labelledby="made">
      <h2 id="made">How it was made</h2>
      {config !== null && (
        <details>
          <summary>Config</summary>
          <button type="button" class="small" onClick={() => void copy(config)}>
            Copy
          </button>
          <Text text={config} look="raw" language="yaml" />
        </details>
      )}
      {manifest !== null && (
        <details>
          <summary>Manifest</summary>
          <Json value={manifest} />
        </details>
      )}
    </section>
  );
}

function Section({ title, id, children }: { title: string; id: string; children: ComponentChildren }) {
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={title}>
        {children}
      </div>
    </section>
  );
}
