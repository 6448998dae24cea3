// SPDX-License-Identifier: Apache-2.0
// What a human says of a verdict.
import { useEffect, useState } from "preact/hooks";
import { post, runPath } from "../api";
import { when } from "../format";
import { Word } from "../text/text";
import type { Candidate, NewReview, Review } from "../wire";
import { tell } from "./frame";

export const SAYS = ["right", "wrong", "unclear"] as const;
export type Says = (typeof SAYS)[number];
export const KEY_OF: Record<Says, string> = { right: "r", wrong: "w", unclear: "u" };

export async function decide(run: string, review: NewReview): Promise<Review | null> {
  try {
    const made = await post<Review>(runPath(run, "reviews"), review);
    tell(`Marked as ${review.says}.`);
    return made;
  } catch (problem) {
    tell(problem instanceof Error ? problem.message : String(problem));
    return null;
  }
}

interface MarksProps {
  candidate: Candidate;
  note: string;
  setNote: (note: string) => void;
  decide: (says: Says) => void;
  large?: boolean;
}

export function Marks({ candidate, note, setNote, decide, large }: MarksProps) {
  const said = candidate.review;
  const [open, setOpen] = useState(large === true || (said?.note ?? "") !== "");
  useEffect(() => setNote(said?.note ?? ""), [said]);
  return (
    <div class={large ? "marks large" : "marks"} role="group" aria-label={`What do you say of the verdict on candidate ${candidate.index}?`}>
      <span class="label">{candidate.passed === null ? "The score is" : "The verdict is"}</span>
      {SAYS.map((one) => (
        <button key={one} type="button" class={`mark ${one}`} aria-pressed={said?.says === one} onClick={() => decide(one)}>
          {one} <kbd aria-hidden="true">{KEY_OF[one]}</kbd>
        </button>
      ))}
      {!open && (
        <button type="button" class="small" onClick={() => setOpen(true)}>
          Note
        </button>
      )}
      {open && (
        <input
          class="note-box"
          type="text"
          aria-label={`Note on candidate ${candidate.index}`}
          placeholder="Note, kept with the mark"
          maxLength={5000}
          value={note}
          onInput={(event) => setNote(event.currentTarget.value)}
        />
      )}
      {candidate.passed === null && <span class="quiet">No threshold is known, so this says nothing of pass or failure.</span>}
      {said && (
        <span class="quiet">
          <Word text={said.reviewer} most={40} />, {when(said.at)}
        </span>
      )}
    </div>
  );
}
