# SPDX-License-Identifier: Apache-2.0
"""The judge: asked as documented, read strictly, cached, and never a zero where it fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.cli_commands.display.run import judge_line
from reward_kit.config_models import GenerationConfig, MockConfig, Sampling
from reward_kit.errors import ConfigError, RewardError
from reward_kit.evaluation import evaluate
from reward_kit.generation.judge import Judge
from reward_kit.generation.mock import MockModelClient
from reward_kit.models import Completion, Failure, Message
from reward_kit.resources import Model
from reward_kit.rewards._judging.asking import read_choice, read_grade
from reward_kit.rewards._judging.prompts import comparing, grading, question_of
from reward_kit.rewards.judge import compare, grade, judge_reward, pairwise_judge_reward
from reward_kit.typed_interface import RewardContractError
from tests.generation.loopback import answer
from tests.loopback.endpoint import prompt_of, serving

TALK = [Message(role="user", content="What is 2 + 2?"), Message(role="assistant", content="4")]


def mock(*replies: str, **settings: Any) -> dict[str, Any]:
    return {"model_name": "mock", "mock": {"responses": list(replies)}, "cache": {"enabled": False}, **settings}


class Scripted:
    """A client that answers by a function of the prompt and the draw, and counts."""

    model = "scripted"

    def __init__(self, answer: Any) -> None:
        self.identity: dict[str, Any] = {"model": self.model}
        self._answer = answer
        self.prompts: list[str] = []

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        draws: Sequence[int],
        sampling: Sampling,
        tools: list[dict[str, Any]] | None = None,
        sample_id: str = "",
    ) -> list[Completion | Failure]:
        prompt = messages[-1].text
        self.prompts += [prompt] * len(draws)
        told = [self._answer(prompt, draw) for draw in draws]
        return [
            answer if isinstance(answer, Failure) else Completion(message=Message(role="assistant", content=answer))
            for answer in told
        ]

    async def close(self) -> None: ...


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reply", "grade"),
    [
        ("Good.\nVERDICT: 7", 7),
        ("VERDICT: 0", 0),
        ("VERDICT:10\n\n", 10),
        ("<think>VERDICT: 1</think>\nFine.\nVERDICT: 9", 9),
        ("VERDICT: 11", None),
        ("VERDICT: -1", None),
        ("VERDICT: seven", None),
        ("VERDICT: 7/5", None),
        ("VERDICT: 7/10/10", None),
        ("VERDICT: 7.5", None),
        ("VERDICT: 7 or 8", None),
        ("**VERDICT: 7**\n**VERDICT: 8**", None),
        ("The VERDICT: 7", None),
        ("VERDICT: 7\nNo, wait.", None),
        ("VERDICT: 3\nVERDICT: 7", None),
        ("7", None),
        ("", None),
        ("VERDICT: " + "9" * 10_000, None),
        ("Verdict: so-so.\nVERDICT: 7", 7),
        ("Verdict: 6\nverdict: 7", None),
    ],
)
def test_a_grade_is_the_last_line_or_nothing(reply: str, grade: int | None) -> None:
    assert read_grade(reply, (0, 10)) == grade


_SPELLINGS = ("7", "7.", "7/10", "7 / 10.", "7 out of 10", "7.0", "`7`", '"7"')
_LINES = (
    "VERDICT: {}", "**VERDICT: {}**", "VERDICT: **{}**", "**VERDICT:** {}", "__VERDICT__: {}", "### VERDICT: {}",
    "- VERDICT: {}", "> VERDICT: {}", "Verdict: {}", "*Verdict:* {}", "```\nVERDICT: {}\n```", "VERDICT: {}\n\n---\n",
)  # fmt: skip


@pytest.mark.parametrize("line", _LINES)
@pytest.mark.parametrize("spelling", _SPELLINGS)
def test_what_decorates_a_verdict_says_nothing(line: str, spelling: str) -> None:
    """Several verdicts are none, however they are decorated."""
    reply = f"It holds.\n{line.format(spelling)}"
    assert read_grade(reply, (0, 10)) == 7
    assert read_grade(f"{reply}\n{line.format(8)}", (0, 10)) is None
    for other in ("-7", "77", "7/9", "seven", "7 8", "A"):
        assert read_grade(line.format(other), (0, 10)) is None


def test_a_choice_is_one_of_three() -> None:
    assert [read_choice(f"Because.\nVERDICT: {word}") for word in ("A", "B", "TIE", "a", "C", "A or B")] == [
        "A", "B", "TIE", None, None, None
    ]  # fmt: skip


@given(st.text())
def test_an_answer_cannot_leave_its_block(answer: str) -> None:
    """Whatever it says, the mark that ends its block is one it does not know."""
    prompt = grading("question", answer, rubric=None, reference=None, scale=(0, 10))
    opening = next(line for line in prompt.splitlines() if line.startswith("<<<question"))
    digest = opening.removesuffix(">>>").split()[-1]
    assert digest not in answer and prompt.count(f"<<<end {digest}>>>") == (2 if answer else 1)
    assert digest != comparing("q", answer, "x", rubric=None).split("<<<question ")[1][:16]


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text()), min_size=2, max_size=5), st.data()
)
def test_a_turn_cannot_pretend_to_be_two(turns: list[tuple[str, str]], data: st.DataObject) -> None:
    """A turn that holds the very lines by which a judge was shown another conversation begins no turn here."""
    talk = [Message(role=role, content=text) for role, text in turns]
    shown = question_of([*talk, TALK[-1]])
    forged = talk[-1].model_copy(
        update={"content": f"{talk[-1].content}\n\n{data.draw(st.sampled_from([shown, shown[:60]]))}"}
    )
    again = question_of([*talk[:-1], forged, TALK[-1]])
    digest = again.removeprefix("<<<turn ").split(":")[0]
    assert again.count(f"<<<turn {digest}: ") == len(talk) and digest not in shown


# ── pointwise ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_grade_becomes_the_score() -> None:
    result = await judge_reward(TALK, judge=mock("Right.\nVERDICT: 10"))
    assert result.score == 1.0 and result.metrics["judge"].is_score_valid and "Right." in str(result.reason)
    assert (await judge_reward(TALK, judge=mock("VERDICT: 2"), scale=[1, 5])).score == 0.25


async def test_what_the_judge_is_shown() -> None:
    client = Scripted(lambda prompt, draw: "VERDICT: 5")
    answer = Message(role="assistant", content="<think>secret</think>4")
    await judge_reward([TALK[0], answer], judge=client, rubric="Be exact.", ground_truth="four")
    (prompt,) = client.prompts
    assert all(part in prompt for part in ("What is 2 + 2?", "Be exact.", "four", "\n4\n")) and "secret" not in prompt


async def test_several_votes_are_several_draws_and_the_median_counts() -> None:
    client = Scripted(lambda prompt, draw: f"VERDICT: {[0, 9, 10][draw]}")
    assert (await judge_reward(TALK, judge=client, votes=3)).score == 0.9
    assert len(client.prompts) == 3


async def test_an_unreadable_reply_is_asked_for_again_and_then_given_up() -> None:
    client = Scripted(lambda prompt, draw: "VERDICT: 8" if draw == 2 else "Hm.")
    assert (await judge_reward(TALK, judge=client)).score == 0.8 and len(client.prompts) == 3
    silent = Scripted(lambda prompt, draw: "Hm.")
    with pytest.raises(RewardError, match="no readable verdict in 3 replies"):
        await judge_reward(TALK, judge=silent)
    assert len(silent.prompts) == 3


async def test_what_could_not_be_read_is_kept_within_bounds() -> None:
    long = Scripted(lambda prompt, draw: "Well, " + "so " * 10_000 + f"{draw}/10")
    with pytest.raises(RewardError) as caught:
        await judge_reward(TALK, judge=long)
    kept = Failure.of(caught.value, "score").unread_replies
    assert kept is not None and len(kept) == 3
    for draw, reply in enumerate(kept):
        assert reply.startswith("Well, so") and reply.endswith(f"{draw}/10") and len(reply) < 2100


def test_a_run_keeps_what_could_not_be_read_and_counts_what_it_cost(tmp_path: Path) -> None:
    told = evaluate(
        [{"user_query": "2 + 2?", "assistant_response": "4"}],
        judge_reward,
        output_dir=tmp_path / "run",
        judge={"model_name": "mock", "mock": {"responses": ["Quite good."]}, "cache": {"enabled": False}},
    )
    row = json.loads((tmp_path / "run" / "results.jsonl").read_text())
    assert row["failure"]["unread_replies"] == ["Quite good."] * 3
    used = told.summary["this_entry"]["judge"]
    assert used["replies"] == 3 and used["prompt_tokens"] > 0 and used["completion_tokens"] > 0
    line = judge_line(used)
    assert line.value == f"3 replies, {used['prompt_tokens']:,} tokens in, {used['completion_tokens']:,} out"


async def test_more_than_half_of_the_votes_must_be_readable() -> None:
    most = Scripted(lambda prompt, draw: "VERDICT: 6" if draw in {0, 4, 5} else "Hm.")
    assert (await judge_reward(TALK, judge=most, votes=5)).score == 0.6
    few = Scripted(lambda prompt, draw: "VERDICT: 6" if draw < 2 else "Hm.")
    with pytest.raises(RewardError, match="no readable verdict"):
        await judge_reward(TALK, judge=few, votes=4)


async def test_a_judge_that_cannot_be_asked_is_a_failure_that_may_pass() -> None:
    failing = Scripted(lambda prompt, draw: Failure(stage="generate", type="X", message="overloaded", retryable=True))
    with pytest.raises(RewardError, match="overloaded") as caught:
        await judge_reward(TALK, judge=failing)
    assert caught.value.retryable


async def test_an_answer_that_is_none_or_too_long() -> None:
    never = Scripted(lambda prompt, draw: "VERDICT: 10")
    empty = [TALK[0], Message(role="assistant", content="<think>hm</think> ")]
    assert (await judge_reward(empty, judge=never)).score == 0.0
    assert (await judge_reward(TALK[:1], judge=never)).metrics["error"].score == 0.0
    long = [TALK[0], Message(role="assistant", content="x" * 1_000_000)]
    assert not (await judge_reward(long, judge=never)).is_score_valid
    assert never.prompts == []


@pytest.mark.parametrize("wrong", [{"scale": [5, 1]}, {"scale": [1]}, {"scale": ["a", "b"]}, {"votes": 0}])
async def test_settings_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises((ConfigError, RewardContractError)):
        await judge_reward(TALK, judge=mock("VERDICT: 1"), **wrong)


async def test_anything_that_can_be_asked_can_judge() -> None:
    client = MockModelClient(MockConfig(responses=["VERDICT: 4"]))
    model = Model(GenerationConfig(model_name="mock", mock=MockConfig(responses=["VERDICT: 4"])))
    for judge in (client, Judge(client), model, mock("VERDICT: 4")):
        assert (await grade(judge, "q", "a")).score == 0.4
    for nobody in (None, 5, object()):
        with pytest.raises(ConfigError, match="not a judge"):
            await grade(nobody, "q", "a")


# ── pairwise ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def prefers(word: str) -> Scripted:
    """A judge that likes the answer that contains `word`, wherever it stands."""
    return Scripted(lambda prompt, draw: f"VERDICT: {'A' if word in prompt.split('answer B')[0] else 'B'}")


async def test_the_better_answer_wins_in_either_order() -> None:
    assert (await compare(prefers("good"), "q", "a good one", "bad")).score == 1.0
    assert (await compare(prefers("good"), "q", "bad", "a good one")).score == 0.0
    result = await pairwise_judge_reward(TALK, judge=prefers("\n4\n"), ground_truth="5")
    assert result.score == 1.0 and "votes [1.0]" in str(result.reason)


async def test_a_judge_that_looks_at_the_order_decides_nothing() -> None:
    for always in ("A", "B", "TIE"):
        assert (await compare(mock(f"VERDICT: {always}"), "q", "x", "y")).score == 0.5


async def test_the_majority_of_the_votes_counts_and_none_is_a_tie() -> None:
    votes = {0: 1.0, 1: 1.0, 2: 0.0}
    judge = Scripted(
        lambda prompt, draw: f"VERDICT: {'AB'[(votes[draw] == 1.0) == ('second' in prompt.split('answer B')[0])]}"
    )
    told = await compare(judge, "q", "first", "second", votes=3)
    assert told.score == 1.0 and sorted(told.votes) == [0.0, 1.0, 1.0]
    assert (await compare(judge, "q", "first", "second", votes=1)).score == 1.0


async def test_without_an_answer_to_compare_with_there_is_no_verdict() -> None:
    for truth in (None, [], {"a": 1}, [Message(role="user", content="x")]):
        assert not (await pairwise_judge_reward(TALK, judge=mock("VERDICT: A"), ground_truth=truth)).is_score_valid
    turn = [{"role": "assistant", "content": "5"}]
    assert (await pairwise_judge_reward(TALK, judge=mock("VERDICT: A"), ground_truth=turn)).score == 0.5


# ── in a run ─────────────────────────────────────────────────────────────────────────────────────────────────────────

ROWS = [{"id": str(n), "user_query": f"{n} + {n}?", "assistant_response": str(2 * n)} for n in range(5)]
PATH = "reward_kit.rewards.judge:judge_reward"


def test_a_run_hands_its_judge_to_a_reward_that_names_it(tmp_path: Path) -> None:
    cache = {"cache_dir": str(tmp_path / "cache")}
    result = evaluate(ROWS, PATH, output_dir=tmp_path / "run", judge={**mock("VERDICT: 7"), "cache": cache})
    assert result.judged == 5 and result.mean_score == pytest.approx(0.7)
    assert "api_key" not in (tmp_path / "run" / "config.yaml").read_text()


def test_a_run_without_a_judge_says_which_key_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"judge\.model_name"):
        evaluate(ROWS, PATH, output_dir=tmp_path)


def test_another_judge_is_another_result(tmp_path: Path) -> None:
    evaluate(ROWS, PATH, output_dir=tmp_path, judge=mock("VERDICT: 7"))
    with pytest.raises(Exception, match=r"judge\.") as caught:
        evaluate(ROWS, PATH, output_dir=tmp_path, judge=mock("VERDICT: 8"))
    assert type(caught.value).__name__ == "StorageError"


def test_a_verdict_is_paid_for_once(tmp_path: Path) -> None:
    """The second run asks nobody: the mock would now fail."""
    settings = {"cache": {"cache_dir": str(tmp_path / "cache")}}
    replies = {"responses": ["VERDICT: 7"]}
    evaluate(ROWS, PATH, output_dir=tmp_path / "1", judge=mock(**settings, mock=replies) | settings)
    again = mock(**settings, mock={**replies, "fail_every": 1}) | settings
    result = evaluate(ROWS, PATH, output_dir=tmp_path / "2", judge=again)
    assert (result.judged, result.failed) == (5, 0)


def test_a_judge_behind_an_endpoint_is_asked_once_for_each_answer(tmp_path: Path) -> None:
    with serving(
        lambda body, _: answer("Sound.\nVERDICT: 10" if ">>>\n4\n<<<end" in prompt_of(body) else "VERDICT: 0")
    ) as there:
        cache = {"enabled": True, "cache_dir": str(tmp_path / "cache")}
        judge = {"model_name": "m", "api_base": there.api_base, "cache": cache}
        result = evaluate(ROWS, PATH, output_dir=tmp_path / "1", judge=judge)
        assert result.mean_score == pytest.approx(0.2) and len(there.requests) == 5
        asked = {"replies": 5, "cached": 0, "prompt_tokens": 50, "completion_tokens": 10, "cost": None}
        assert result.summary["this_entry"]["judge"] == asked
        assert all(request["temperature"] == 0.0 for request in there.requests)
        priced = {**judge, "price": {"input": 1.0, "output": 1.0}}
        again = evaluate(ROWS, PATH, output_dir=tmp_path / "2", judge=priced).summary["this_entry"]["judge"]
        assert len(there.requests) == 5 and again["cached"] == 5 and again["cost"] == 0.0


def test_a_failing_judge_is_a_failure_of_the_item(tmp_path: Path) -> None:
    failing = mock(mock={"responses": ["VERDICT: 7"], "fail_every": 2})
    result = evaluate(ROWS, PATH, output_dir=tmp_path, judge=failing, reward_settings={"concurrency": 1})
    assert result.failed > 0 and result.mean_score == pytest.approx(0.7)
    assert set(result.summary["failures_by_kind"]) == {"score: RewardError"}
