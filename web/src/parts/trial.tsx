// SPDX-License-Identifier: Apache-2.0
// An answer or a ground truth, changed by hand and judged by the run's own reward.
import { useState } from "preact/hooks";
import { post, runPath } from "../api";
import { score, seconds } from "../format";
import { Word } from "../text/text";
import type { Candidate, TrialResult } from "../wire";
import { Problem } from "./frame";
import { MetricLines } from "./metrics";
import { Verdict } from "./verdict";

export function TryAgain({ run, id, candidate, truth }: { run: string; id: string; candidate: Candidate; truth: string | null }) {
  const [answer, setAnswer] = useState(candidate.response.text);
  const [given, setGiven] = useState(truth);
  const [result, setResult] = useState<TrialResult | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const judge = (): void => {
    setBusy(true);
    setProblem(null);
    post<TrialResult>(runPath(run, "try"), { id, index: candidate.index, answer, ground_truth: given })
      .then(setResult, (refused: Error) => {
        setResult(null);
        setProblem(refused);
      })
      .finally(() => setBusy(false));
  };
  return (
    <form
      class="trial"
      onSubmit={(event) => {
        event.preventDefault();
        judge();
      }}
    >
      <label>
        Answer
        <textarea rows={6} dir="auto" value={answer} onInput={(event) => setAnswer(event.currentTarget.value)} />
      </label>
      {given !== null && (
        <label>
          Ground truth
          <textarea rows={2} dir="auto" value={given} onInput={(event) => setGiven(event.currentTarget.value)} />
        </label>
      )}
      <p class="row">
        <button type="submit" class="main" disabled={busy}>
          {busy ? "Judging …" : "Judge this"}
        </button>
        <button
          type="button"
          onClick={() => {
            setAnswer(candidate.response.text);
            setGiven(truth);
            setResult(null);
          }}
        >
          As it was
        </button>
      </p>
      {problem && <Problem problem={problem} />}
      {result && (
        <div class="result" role="status">
          <p>
            <Verdict passed={result.passed} value={result.score} failed={result.failure !== null} />{" "}
            <span class="quiet">
              was {score(candidate.score)}; judged in {seconds(result.seconds)}
            </span>
          </p>
          <p>
            <Word text={result.failure ?? result.reason} most={2000} />
          </p>
          <MetricLines metrics={result.metrics} />
        </div>
      )}
    </form>
  );
}
