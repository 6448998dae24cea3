// SPDX-License-Identifier: Apache-2.0
// Looking at verdicts one after the other and saying whether they are right.
import { useEffect, useState } from "preact/hooks";
import { get, runPath } from "../api";
import { titles, useAnswer } from "../data";
import { count, plural, score, when } from "../format";
import { useKeys } from "../keys";
import { CandidateCard } from "../parts/candidate";
import { Frame, Problem, Waiting } from "../parts/frame";
import { decide, type Says } from "../parts/marks";
import { Message } from "../parts/message";
import { go, param, sampleLink, withParams } from "../place";
import { Text, Word, type Look } from "../text/text";
import type { NextReview, Review, ReviewPage, SamplePage } from "../wire";

type Choice = "random" | "disagreement";

export function ReviewMode({ run }: { run: string }) {
  const title = titles.value[run] ?? "Run";
  const choice: Choice = param("choose") === "disagreement" ? "disagreement" : "random";
  const told = useAnswer<ReviewPage>(runPath(run, "reviews"));
  return (
    <Frame title={`Review of ${title}`} run={{ key: run, title, tab: "review" }} wide>
      <div class="head bar">
        <h1>Review</h1>
        <div class="actions">
          <span class="choice" role="group" aria-label="How verdicts are chosen">
            <a href={withParams({ choose: null })} aria-current={choice === "random" ? "true" : undefined} title="Every verdict is as likely as any other: for an unbiased rate">
              At random
            </a>
            <a href={withParams({ choose: "disagreement" })} aria-current={choice === "disagreement" ? "true" : undefined} title="Where candidates disagree or the score is near the threshold: to find faults">
              By disagreement
            </a>
          </span>
        </div>
      </div>
      <div class="review">
        <Next key={choice} run={run} choice={choice} decided={told.again} />
        <aside aria-label="What was said so far">
          {told.problem && <Problem problem={told.problem} again={told.again} />}
          {told.data && <SoFar run={run} page={told.data} />}
        </aside>
      </div>
    </Frame>
  );
}

function Next({ run, choice, decided }: { run: string; choice: Choice; decided: () => void }) {
  const [next, setNext] = useState<NextReview | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    get<NextReview>(runPath(run, "reviews", "next"), new URLSearchParams({ choose: choice }), stop.signal).then(setNext, (refused: Error) => {
      if (refused.name !== "AbortError") setProblem(refused);
    });
    return () => stop.abort();
  }, [run, choice, round]);
  if (problem) return <Problem problem={problem} />;
  if (!next) return <Waiting what="the next verdict" />;
  if (next.record === null) {
    return (
      <section>
        <p class="note">
          <Word text={next.why || "No verdict is left to look at in this way."} most={600} />
        </p>
      </section>
    );
  }
  const on = (): void => {
    setRound((old) => old + 1);
    decided();
  };
  return <One key={next.ticket ?? `${next.record.id} ${next.record.index}`} run={run} next={next} choice={choice} on={on} />;
}

function One({ run, next, choice, on }: { run: string; next: NextReview; choice: Choice; on: () => void }) {
  const { id, index } = next.record!;
  const { data, problem, again } = useAnswer<SamplePage>(runPath(run, "samples", id));
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const look: Look = param("show") === "raw" ? "raw" : "rendered";
  const candidate = data?.candidates.find((one) => one.index === index);
  const mark = (says: Says): void => {
    if (!candidate || busy) return;
    setBusy(true);
    void decide(run, { id, index, says, note, choice, ticket: next.ticket }).then((made) => {
      setBusy(false);
      if (made) on();
    });
  };
  useKeys({
    r: () => mark("right"),
    w: () => mark("wrong"),
    u: () => mark("unclear"),
    m: () => go(withParams({ show: look === "raw" ? null : "raw" }), "replace"),
  });
  if (problem) return <Problem problem={problem} again={again} />;
  if (!data) return <Waiting what="the sample" />;
  return (
    <section class="one" aria-label="The verdict to look at">
      <p class="facts">
        {next.why !== "" && (
          <>
            <Word text={next.why} most={300} /> ·{" "}
          </>
        )}
        {count(next.left)} left · <a href={sampleLink(run, id, undefined, { c: String(index) })}>all candidates of <Word text={id} most={60} /></a>
      </p>
      <div class="asked">
        {data.prompt.map((part, nth) => (
          <Message key={nth} part={part} look={look} />
        ))}
        {data.ground_truth !== null && (
          <div class="truth">
            <p class="role">ground truth</p>
            <Text text={data.ground_truth} look={look} />
          </div>
        )}
      </div>
      {candidate ? (
        <CandidateCard run={run} id={id} candidate={candidate} truth={data.ground_truth} look={look} chosen={false} choose={() => undefined} note={note} setNote={setNote} decide={mark} large />
      ) : (
        <p class="problem">This candidate is no longer in the run.</p>
      )}
    </section>
  );
}

function SoFar({ run, page }: { run: string; page: ReviewPage }) {
  const [all, setAll] = useState(false);
  const shown = all ? page.reviews : page.reviews.slice(0, 30);
  return (
    <>
      <h2>{plural(page.reviews.length, "review")}</h2>
      {page.figures.length > 0 && (
        <dl class="terminal">
          {page.figures.map(([name, text, meaning], nth) => (
            <div key={nth} title={meaning}>
              <dt>{name}</dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
      )}
      {page.notes.map((note, nth) => (
        <p key={nth} class="note">
          <Word text={note} most={600} />
        </p>
      ))}
      <ul class="reviews">
        {shown.map((review) => (
          <ReviewLine key={`${review.id} ${review.response_index} ${review.reviewer}`} run={run} review={review} />
        ))}
      </ul>
      {page.reviews.length > shown.length && (
        <button type="button" class="small" onClick={() => setAll(true)}>
          Show all
        </button>
      )}
    </>
  );
}

function ReviewLine({ run, review }: { run: string; review: Review }) {
  return (
    <li>
      <span class={`badge says ${review.says}`}>{review.says}</span>{" "}
      <a href={sampleLink(run, review.id, undefined, { c: String(review.response_index) })}>
        <Word text={review.id} most={40} /> #{review.response_index}
      </a>{" "}
      <span class="quiet">
        {score(review.score)} · <Word text={review.reviewer} most={24} />, {when(review.at)}
      </span>
      {review.note !== "" && (
        <span class="said-note">
          <Word text={review.note} most={400} />
        </span>
      )}
    </li>
  );
}
