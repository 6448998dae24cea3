// SPDX-License-Identifier: Apache-2.0
// Every run that was found, in a line each; two or more can be compared.
import { useEffect, useState } from "preact/hooks";
import { domainOf, Figure, Whisker, type Domain } from "../charts/whisker";
import { learn, useAnswer } from "../data";
import { count, money, percent, plural, when } from "../format";
import { Frame, Problem, Waiting } from "../parts/frame";
import { compareLink, go, param, reviewLink, runLink, withParams } from "../place";
import { Word } from "../text/text";
import type { Overview, RunCard } from "../wire";

export function OverviewPage() {
  const { data, problem, again } = useAnswer<Overview>("runs");
  useEffect(() => {
    if (data) learn(data);
  }, [data]);
  const live = data?.runs.some((run) => run.live) ?? false;
  const reading = data?.runs.some((run) => run.reading !== null) ?? false;
  useEffect(() => {
    if (!live && !reading) return;
    const timer = setInterval(again, reading ? 1000 : 3000);
    return () => clearInterval(timer);
  }, [live, reading]);
  return (
    <Frame title="Runs" wide>
      {problem && <Problem problem={problem} again={again} />}
      {!data && !problem && <Waiting what="the runs" />}
      {data && <Runs runs={data.runs} />}
    </Frame>
  );
}

/** The folder that all paths begin with; none where there is one path. */
function sharedFolder(paths: string[]): string {
  const [first = "", ...rest] = paths;
  if (rest.length === 0) return "";
  let folder = first.slice(0, first.lastIndexOf("/") + 1);
  while (folder !== "" && !rest.every((path) => path.startsWith(folder))) {
    folder = folder.slice(0, folder.lastIndexOf("/", folder.length - 2) + 1);
  }
  return folder;
}

type Order = "given" | "title" | "mean" | "rate" | "started_at" | "failed";

function value(run: RunCard, order: Order): number | string {
  if (order === "mean" || order === "rate") return -(run[order]?.value ?? -Infinity);
  if (order === "started_at") return run.started_at === null ? 1 : -new Date(run.started_at).getTime();
  if (order === "failed") return -run.failed;
  return order === "title" ? run.title : 0;
}

function Runs({ runs }: { runs: RunCard[] }) {
  const [chosen, setChosen] = useState<string[]>([]);
  const order = (param("sort") || "given") as Order;
  const sorted = [...runs].sort((a, b) => {
    const [x, y] = [value(a, order), value(b, order)];
    return x < y ? -1 : x > y ? 1 : 0;
  });
  const domain = domainOf(runs.flatMap((run) => [run.mean, run.rate]));
  const above = sharedFolder(runs.map((run) => run.path));
  const toggle = (key: string): void =>
    setChosen((old) => (old.includes(key) ? old.filter((one) => one !== key) : [...old, key]));
  return (
    <>
      <div class="head">
        <div>
          <h1>{plural(runs.length, "run")}</h1>
          {above !== "" && (
            <p class="facts mono">
              <Word text={above} />
            </p>
          )}
        </div>
        <div class="actions">
          <label class="inline">
            Order{" "}
            <select value={order} onChange={(event) => go(withParams({ sort: event.currentTarget.value === "given" ? null : event.currentTarget.value }))}>
              <option value="given">as found</option>
              <option value="title">name</option>
              <option value="mean">mean score</option>
              <option value="rate">pass rate</option>
              <option value="failed">failures</option>
              <option value="started_at">newest</option>
            </select>
          </label>
          <button type="button" class="main" disabled={chosen.length < 2} onClick={() => go(compareLink(chosen))}>
            Compare {chosen.length >= 2 ? chosen.length : ""} runs
          </button>
        </div>
      </div>
      {runs.length === 0 ? (
        <p>Nothing was found under the paths that were given. Start `reward-kit view` with the directory of a run.</p>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Runs">
          <table class="list runs">
            <thead>
              <tr>
                <th scope="col">
                  <span class="said">Compare</span>
                </th>
                <th scope="col">Run</th>
                <th scope="col">Model</th>
                <th scope="col" class="n">
                  Samples × n
                </th>
                <th scope="col" colSpan={2} class="on-wide">
                  Mean score
                </th>
                <th scope="col">Pass rate</th>
                <th scope="col">pass@k</th>
                <th scope="col" class="n">
                  Failed
                </th>
                <th scope="col" class="n">
                  Cost
                </th>
                <th scope="col">Started</th>
              </tr>
            </thead>
            <tbody>
              {sorted.map((run) => (
                <Line key={run.key} run={run} path={run.path.slice(above.length)} domain={domain} chosen={chosen.includes(run.key)} toggle={() => toggle(run.key)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function Line({ run, path, domain, chosen, toggle }: { run: RunCard; path: string; domain: Domain; chosen: boolean; toggle: () => void }) {
  const last = run.pass_at[run.pass_at.length - 1];
  return (
    <tr class={chosen ? "chosen" : undefined}>
      <td>
        <input type="checkbox" checked={chosen} onChange={toggle} disabled={run.problem !== null} aria-label={`Compare ${run.title}`} />
      </td>
      <th scope="row">
        <a class="name" href={runLink(run.key)}>
          <Word text={run.title} most={80} />
        </a>
        {run.live && <span class="badge live">running</span>}
        {run.reading !== null && <span class="badge">reading, {percent(run.reading)}</span>}
        {!run.live && !run.finished && run.reading === null && run.problem === null && <span class="badge">not finished</span>}
        {run.kind !== "run" && <span class="badge">{run.kind}</span>}
        {run.mean && (
          <span class="on-small">
            <span class="quiet">mean</span> <Figure estimate={run.mean} />
          </span>
        )}
        {path !== run.title && (
          <span class="path" title={run.path}>
            <Word text={path} most={160} />
          </span>
        )}
        {run.problem !== null && (
          <span class="trouble">
            <Word text={run.problem} most={400} />
          </span>
        )}
      </th>
      <td>
        <Word text={run.models.join(", ")} most={60} />
      </td>
      <td class="n">
        {run.samples > 0 ? `${count(run.samples)} × ${run.n}` : <span class="quiet">{run.problem === null && run.reading === null ? "nothing yet" : "–"}</span>}
      </td>
      <td class="n on-wide">
        <Figure estimate={run.mean} of={run.samples} />
      </td>
      <td class="drawn on-wide">{run.mean && <Whisker name="Mean score" estimate={run.mean} domain={domain} />}</td>
      <td class="n left">
        <Figure estimate={run.rate} of={run.samples} bounds={run.rate_bounds} />
      </td>
      <td class="n left">
        {last && last.k > 1 ? (
          <>
            <span class="quiet">pass@{last.k}</span> <Figure estimate={last.estimate} of={run.samples} bounds={last.bounds} />
          </>
        ) : (
          <span class="quiet">–</span>
        )}
      </td>
      <td class={run.failed > 0 ? "n trouble" : "n"}>{count(run.failed)}</td>
      <td class="n">{money(run.cost)}</td>
      <td class="n left">
        {when(run.started_at)}
        {run.reviews > 0 && (
          <a class="path" href={reviewLink(run.key)}>
            {plural(run.reviews, "review")}
          </a>
        )}
      </td>
    </tr>
  );
}
