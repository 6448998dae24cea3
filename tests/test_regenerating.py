# SPDX-License-Identifier: Apache-2.0
"""New answers to stored prompts, compared with the old ones in pairs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import AnswersFailedError, AuthError, ConfigError, DatasetError, StorageError
from reward_kit.evaluation import evaluate, regenerate
from reward_kit.execution.result import RunResult
from reward_kit.regenerating import reward_of

pytest.importorskip("pyarrow")

RULES: dict[str, Any] = {
    "mock": {"rules": [{"pattern": r"(\d+) \+ 0", "response": [r"It is \1.", "It is 99."]}]},
    "cache": {"enabled": False},
}


def conversation(number: int, said: str) -> dict[str, Any]:
    asked = {"role": "user", "content": f"What is {number} + 0?"}
    return {
        "id": f"q{number}",
        "messages": [asked, {"role": "assistant", "content": said}],
        "ground_truth": str(number),
        "level": "easy",
    }


def test_old_and_new_answers_are_paired_by_prompt() -> None:
    stored = [conversation(number, said) for number in range(1, 21) for said in ("It is 98.", "It is 97.")]
    found = regenerate(stored, "math", model="mock", generation=RULES)
    assert (found.old.mean_score, found.new.mean_score) == (0.0, 1.0)
    (pairing,) = found.comparison.pairings
    assert (pairing.common, pairing.only_baseline, pairing.only_other) == (20, 0, 0)
    assert pairing.gained == 20
    assert "new is better than old" in found.conclusion, found.conclusion
    assert len(list(found.old.rows())) == 40 and len(list(found.new.rows())) == 20


def test_the_columns_of_stored_rows_reach_the_reward_on_both_sides(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(conversation(number, "It is 1.")) + "\n" for number in (1, 2)))

    def easy(response: str, ground_truth: str, level: str, **kwargs: Any) -> float:
        return float(level == "easy" and ground_truth in response)

    found = regenerate(file, easy, model="mock", n=2, output_dir=tmp_path / "out", generation=RULES)
    assert (found.old.mean_score, found.new.mean_score) == (0.5, 0.5)
    assert found.old.output_dir == tmp_path / "out" / "old" and found.new.output_dir == tmp_path / "out" / "new"


def test_whoever_stops_the_judging_of_old_answers_pays_for_no_new_ones(tmp_path: Path) -> None:
    async def stops(response: str, **kwargs: Any) -> float:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.1)
        return 1.0

    with pytest.raises(KeyboardInterrupt):
        regenerate([conversation(1, "It is 1.")], stops, model="mock", output_dir=tmp_path, generation=RULES)
    assert (tmp_path / "old").is_dir() and not (tmp_path / "new").exists()


def a_run(directory: Path, fail_every: int) -> RunResult:
    rows = [{"id": f"q{n}", "user_query": f"What is {n} + 0?", "ground_truth": str(n)} for n in (1, 2, 3)]
    failing = {"mock": {"responses": ["It is 98."], "fail_every": fail_every}, "cache": {"enabled": False}}
    return evaluate(
        rows, "math", model="mock", output_dir=directory, generation={**failing, "api_params": {"max_retries": 0}}
    )


def test_a_runs_answers_are_stored_answers(tmp_path: Path) -> None:
    assert a_run(tmp_path, fail_every=3).failed == 1
    found = regenerate(tmp_path, "math", model="mock", generation=RULES)
    assert found.old.judged == 2 == found.new.judged, "an answer that was never had is no stored answer"
    assert found.comparison.pairings[0].gained == 2


def test_without_answers_there_is_nothing_to_compare(tmp_path: Path) -> None:
    assert a_run(tmp_path, fail_every=1).failed == 3
    with pytest.raises(DatasetError, match="no stored answers"):
        regenerate(tmp_path, "math", model="mock")


# ── figures of what was asked for, and of nothing else ───────────────────────────────────────────────────────────────

EIGHT = [conversation(number, said) for number in range(1, 9) for said in ("It is 98.", "It is 97.")]


@pytest.mark.parametrize(("stored", "n"), [(EIGHT[:2], 2), (EIGHT[::2], 2), (EIGHT, 1)])
def test_answers_that_are_not_asked_for_now_are_never_in_the_figures(
    tmp_path: Path, stored: list[dict[str, Any]], n: int
) -> None:
    regenerate(EIGHT, "math", model="mock", n=2, output_dir=tmp_path, generation=RULES)
    before = (tmp_path / "new" / "summary.json").read_bytes()
    with pytest.raises(StorageError, match=r"not asked for now.*`output.output_dir`") as caught:
        regenerate(stored, "math", model="mock", n=n, output_dir=tmp_path, generation=RULES)
    assert "`generation.n`" in str(caught.value)
    assert (tmp_path / "new" / "summary.json").read_bytes() == before


def test_more_stored_answers_and_more_new_ones_go_on_in_the_same_place(tmp_path: Path) -> None:
    regenerate(EIGHT[:2], "math", model="mock", output_dir=tmp_path, generation=RULES)
    found = regenerate(EIGHT, "math", model="mock", n=2, output_dir=tmp_path, generation=RULES)
    assert (found.old.judged, found.new.judged) == (16, 16)
    assert found.new.counters.generated == 15, "one answer was there"


# ── nothing is paid for in vain ──────────────────────────────────────────────────────────────────────────────────────


def test_the_models_key_is_looked_for_before_anything_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    judged: list[str] = []

    def counted(response: str, **kwargs: Any) -> float:
        judged.append(response)
        return 1.0

    endpoint: dict[str, Any] = {"api_base": "https://models.example.com/v1", "api_key_env": "NO_SUCH_KEY"}
    with pytest.raises(AuthError, match="NO_SUCH_KEY"):
        regenerate(EIGHT, counted, model="gpt", output_dir=tmp_path / "out", **endpoint)
    assert judged == [] and not (tmp_path / "out").exists()


def test_where_no_old_answer_can_be_judged_the_model_is_not_asked(tmp_path: Path) -> None:
    def broken(response: str, **kwargs: Any) -> float:
        raise ValueError("no scale is set")

    with pytest.raises(AnswersFailedError, match=r"None of the 16 stored answers.*no scale is set.*`retry_failed`"):
        regenerate(EIGHT, broken, model="mock", output_dir=tmp_path, generation=RULES)
    assert not (tmp_path / "new").exists()


def test_a_call_that_judged_nothing_blocks_no_later_one(tmp_path: Path) -> None:
    scale = tmp_path / "scale"

    def scaled(response: str, **kwargs: Any) -> float:
        return float(scale.read_text())

    settings: dict[str, Any] = {"model": "mock", "output_dir": tmp_path / "out", "generation": RULES}
    with pytest.raises(AnswersFailedError):
        regenerate(EIGHT, scaled, **settings)
    scale.write_text("1")
    other = [conversation(number, "It is 5.") for number in (3, 4, 5)]
    found = regenerate(other, scaled, **settings)
    assert (found.old.judged, found.new.judged) == (3, 3)


def test_failures_are_tried_again_where_that_is_asked_for(tmp_path: Path) -> None:
    mended = tmp_path / "mended"

    def on_the_whole(response: str, **kwargs: Any) -> float:
        if "98" in response and not mended.exists():
            raise ValueError("cannot be read")
        return 1.0

    settings: dict[str, Any] = {"model": "mock", "output_dir": tmp_path / "out", "generation": RULES}
    assert regenerate(EIGHT, on_the_whole, **settings).old.failed == 8
    mended.touch()
    assert regenerate(EIGHT, on_the_whole, **settings).old.failed == 8
    assert regenerate(EIGHT, on_the_whole, **settings, retry_failed=True).old.failed == 0


def test_both_sides_are_judged_again_by_another_reward(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"model": "mock", "output_dir": tmp_path, "generation": RULES}
    regenerate(EIGHT, "math", **settings)
    with pytest.raises(StorageError, match="`rescore`"):
        regenerate(EIGHT, lambda response: 1.0, **settings)
    found = regenerate(EIGHT, lambda response: 1.0, **settings, rescore=True)
    assert (found.old.mean_score, found.new.mean_score) == (1.0, 1.0)
    assert (found.old.judged, found.new.judged) == (16, 8)


# ── the directory of a run ───────────────────────────────────────────────────────────────────────────────────────────

LAKE = "examples.agent_frozen_lake.lake"


def test_an_agents_episodes_are_refused(tmp_path: Path) -> None:
    evaluate(
        [{"id": "lake", "user_query": "Walk to G.", "lake": "S.G ... .O."}], f"{LAKE}:reached", model="mock",
        mock={"responses": ["right", "right"]}, agent={"environment": f"{LAKE}:Lake", "max_turns": 4},
        output_dir=tmp_path / "run",
    )  # fmt: skip
    (tmp_path / "elsewhere").mkdir()
    for name in ("rollouts.jsonl", "samples.jsonl"):
        (tmp_path / "elsewhere" / name).write_bytes((tmp_path / "run" / name).read_bytes())
    rows = [{**conversation(1, "It is 1."), "steps": [{"turn": 0}], "ended": "done"}]
    for stored in (rows, tmp_path / "run", tmp_path / "elsewhere", tmp_path / "run" / "results.jsonl"):
        with pytest.raises(DatasetError, match=r"an agent's episodes.*`reward-kit run`.*`reward-kit inspect"):
            regenerate(stored, lambda response: 1.0, model="mock", output_dir=tmp_path / "out", generation=RULES)
    assert not (tmp_path / "out").exists()


def near(response: str, ground_truth: str, at_most: float = 0.0, **kwargs: Any) -> float:
    return float(abs(float(response.removeprefix("It is ")) - float(ground_truth)) <= at_most)


def test_the_reward_of_a_stored_run_judges_with_its_settings(tmp_path: Path) -> None:
    rows = [{"id": f"q{n}", "user_query": f"What is {n} + 0?", "ground_truth": str(n)} for n in (1, 2, 3)]
    guesses = {"mock": {"responses": ["It is 2.4"]}, "cache": {"enabled": False}}
    run = evaluate(
        rows, near, model="mock", params={"at_most": 0.5}, reward_settings={"pass_threshold": 0.25},
        output_dir=tmp_path / "run", generation=guesses,
    )  # fmt: skip
    found = regenerate(tmp_path / "run", model="mock", generation=guesses)
    assert found.old.mean_score == found.new.mean_score == run.mean_score == pytest.approx(1 / 3)
    assert found.new.summary["pass_threshold"] == 0.25
    assert reward_of(tmp_path / "run") == f"{__name__}:near" and reward_of(tmp_path) is None
    other = regenerate(tmp_path / "run", params={"at_most": 2}, model="mock", generation=guesses)
    assert other.old.mean_score == other.new.mean_score == 1.0


def test_rows_name_no_reward() -> None:
    with pytest.raises(ConfigError, match=r"`reward\.function_path`"):
        regenerate(EIGHT, model="mock", generation=RULES)


@pytest.mark.parametrize("stored", ["run", "run/rollouts.jsonl", "run/../run"])
def test_a_stored_run_is_not_written_into(tmp_path: Path, stored: str) -> None:
    a_run(tmp_path / "run", fail_every=100)
    before = sorted(path.name for path in (tmp_path / "run").iterdir())
    with pytest.raises(ConfigError, match="holds the stored run itself"):
        regenerate(tmp_path / stored, "math", model="mock", output_dir=tmp_path / "run", generation=RULES)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == before


@pytest.mark.parametrize("side", ["old", "new"])
def test_a_side_that_is_the_stored_run_is_not_written_into(tmp_path: Path, side: str) -> None:
    a_run(tmp_path / side, fail_every=100)
    with pytest.raises(ConfigError, match="holds the stored run itself"):
        regenerate(tmp_path / side, "math", model="mock", output_dir=tmp_path, generation=RULES)
