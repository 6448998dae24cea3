// SPDX-License-Identifier: Apache-2.0
// One candidate: its verdict and why, its text with what was taken from it, and what can be done with it.
import { useState } from "preact/hooks";
import { runPath } from "../api";
import { server, useAnswer } from "../data";
import { milliseconds, money, plural } from "../format";
import { Text, Word, type Look } from "../text/text";
import type { Candidate } from "../wire";
import { copy, Problem, Waiting } from "./frame";
import { Json } from "./json";
import { Marks, type Says } from "./marks";
import { Said, Timeline } from "./message";
import { MetricLines } from "./metrics";
import { TryAgain } from "./trial";
import { Verdict } from "./verdict";

interface CandidateProps {
  run: string;
  id: string;
  candidate: Candidate;
  truth: string | null;
  look: Look;
  chosen: boolean;
  choose: () => void;
  note: string;
  setNote: (note: string) => void;
  decide: (says: Says) => void;
  /** The address of its difference to another candidate. */
  compared?: { href: string; name: string };
  large?: boolean;
}

export function CandidateCard(props: CandidateProps) {
  const { run, id, candidate, truth, look, chosen, choose, compared } = props;
  const [open, setOpen] = useState<"" | "json" | "try">("");
  const turn = (what: "json" | "try"): void => setOpen((old) => (old === what ? "" : what));
  return (
    <article class={`candidate${chosen ? " chosen" : ""}`} id={`c${candidate.index}`} aria-label={`Candidate ${candidate.index}`} onClick={choose}>
      <header>
        <Verdict passed={candidate.passed} value={candidate.score} failed={candidate.failure !== null} />
        <h3>
          Candidate {candidate.index}
          {candidate.cached && <span class="badge">from the cache</span>}
          {candidate.review && <span class={`badge says ${candidate.review.says}`}>verdict {candidate.review.says}</span>}
        </h3>
      </header>
      {candidate.failure !== null && (
        <p class="trouble">
          {candidate.failure_kind && <strong>{candidate.failure_kind}: </strong>}
          <Word text={candidate.failure} most={3000} />
        </p>
      )}
      {candidate.reason !== "" && (
        <div class="reason">
          <Text text={candidate.reason} look="raw" />
        </div>
      )}
      <MetricLines metrics={candidate.metrics} />
      {candidate.spans.length > 0 && (
        <p class="taken">
          <span>marked in the text:</span>
          {[...new Set(candidate.spans.map((span) => span.what))].map((what) => (
            <mark key={what}>{what}</mark>
          ))}
        </p>
      )}
      <div class="answer">
        {candidate.steps.length > 0 ? (
          <>
            <Timeline steps={candidate.steps} look={look} />
            {candidate.response.text !== "" && <Said part={candidate.response} look={look} spans={candidate.spans} />}
          </>
        ) : (
          <Said part={candidate.response} look={look} spans={candidate.spans} />
        )}
      </div>
      <p class="facts">{facts(candidate).join(" · ")}</p>
      <Marks candidate={candidate} note={props.note} setNote={props.setNote} decide={props.decide} {...(props.large ? { large: true } : {})} />
      <div class="row links">
        <button type="button" class="small" aria-expanded={open === "json"} onClick={() => turn("json")}>
          JSON
        </button>
        <CopyCommand command={candidate.command} note={candidate.command_note} />
        {compared && (
          <a class="button small" href={compared.href}>
            Difference to {compared.name}
          </a>
        )}
        {server.value?.allow_run && (
          <button type="button" class="small" aria-expanded={open === "try"} onClick={() => turn("try")}>
            Try again
          </button>
        )}
      </div>
      {open === "json" && <Record run={run} id={id} index={candidate.index} />}
      {open === "try" && <TryAgain run={run} id={id} candidate={candidate} truth={truth} />}
    </article>
  );
}

function facts(candidate: Candidate): string[] {
  const { tokens, cost, request_answers: answers } = candidate;
  const found = [candidate.model];
  if (tokens !== null && answers === 1) found.push(plural(tokens, "token"));
  if (tokens !== null && answers !== 1) {
    // Not this answer's own length: the request's other answers are in it.
    const spent = [plural(tokens, "token"), ...(cost ? [money(cost)] : [])].join(" and ");
    found.push(`${spent} for ${answers === null ? "the whole request" : `the request's ${answers} answers`}`);
  }
  if (candidate.latency_ms !== null) found.push(milliseconds(candidate.latency_ms));
  if (cost !== null && (answers === 1 || (tokens === null && cost > 0))) found.push(money(cost));
  if (candidate.finish_reason) found.push(`ended by ${candidate.finish_reason}`);
  return found.filter(Boolean);
}

function CopyCommand({ command, note }: { command: string; note: string }) {
  if (command === "") return null;
  const works = command.startsWith("reward-kit ");
  const remark = works ? note : command;
  return (
    <>
      {works && (
        <button type="button" class="small" title={command.slice(0, 2000)} onClick={() => void copy(command)}>
          Copy command
        </button>
      )}
      {remark !== "" && (
        <span class="remark">
          <Word text={remark} most={400} />
        </span>
      )}
    </>
  );
}

function Record({ run, id, index }: { run: string; id: string; index: number }) {
  const { data, problem } = useAnswer<{ result: unknown; rollout: unknown }>(runPath(run, "records", id, index));
  if (problem) return <Problem problem={problem} />;
  if (!data) return <Waiting what="the record" />;
  return (
    <>
      {data.result !== null && data.result !== undefined && <Json value={data.result} />}
      {data.rollout !== null && data.rollout !== undefined && (
        <details>
          <summary>Rollout</summary>
          <Json value={data.rollout} />
        </details>
      )}
    </>
  );
}
