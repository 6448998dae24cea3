# SPDX-License-Identifier: Apache-2.0
"""The adapter for TRL, called as TRL's trainers call a reward. What they do with it is in tests/training."""

from __future__ import annotations

import asyncio
import inspect
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_kit.errors import ConfigError, RewardError, RewardKitError
from reward_kit.integrations.trl import AsyncTRLAdapter, TRLAdapter, create_trl_adapter
from reward_kit.models import EvaluateResult, Message
from reward_kit.typed_interface import reward_function
from tests.integrations import trainer_rewards

HERE = "tests.integrations.trainer_rewards"


@reward_function
def mapped(messages: list[Message], expected: str, bonus: float = 0.0, **kwargs: Any) -> EvaluateResult:
    assert not kwargs.keys() - {"ground_truth"}, "only what is mapped is handed over"
    return EvaluateResult(score=float(messages[-1].text == expected) + bonus, reason=messages[0].text)


@pytest.fixture(scope="module")
def perilous() -> Iterator[TRLAdapter]:
    """One pool of workers for all that can go wrong."""
    adapter = create_trl_adapter(f"{HERE}:perilous", workers=2)
    yield adapter
    adapter.close()


# ── what reaches the reward ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("workers", [0, 1])
def test_mapped_columns_and_static_keywords_reach_the_reward(workers: int) -> None:
    adapter = create_trl_adapter(mapped, {"answer": "expected"}, {"bonus": 0.5}, workers=workers)
    scores = adapter(
        prompts=["q1", [{"role": "user", "content": "q2"}]],
        completions=["a", [{"role": "assistant", "content": "x"}]],
        completion_ids=[[1], [2]],
        answer=["a", "b"],
        other=[1, 2],
        trainer_state=object(),
    )
    assert scores == [1.5, 0.5]
    assert adapter.__name__ == "mapped"


def test_without_a_map_every_column_goes_by_its_own_name() -> None:
    adapter = create_trl_adapter(trainer_rewards.exact, workers=0)
    assert adapter(["q", "q"], ["a", "b"], ground_truth=["a", "a"], bonus=[0.5, 0.0]) == [1.5, 0.0]
    assert adapter(["q"], ["a"], solution=["a"]) == [1.0]


def test_a_solution_in_a_list_of_its_own_is_unwrapped() -> None:
    adapter = create_trl_adapter(trainer_rewards.exact, workers=0)
    assert adapter(["q", "q"], ["a", "b"], solution=[["a"], ["a"]]) == [1.0, 0.0]
    mapped_column = create_trl_adapter(trainer_rewards.exact, {"solution": "ground_truth"}, workers=0)
    assert mapped_column(["q", "q"], ["a", "b"], solution=[["a"], ["a"]]) == [1.0, 0.0]


@pytest.mark.parametrize("kept", [["a", "b"], [], [1], [{"name": "f", "arguments": {}}], [["a"]], {"a": "b"}])
def test_any_other_list_reaches_the_reward_as_it_is(kept: Any) -> None:
    def same(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> float:
        return float(ground_truth == kept)

    assert create_trl_adapter(same, workers=0)(["q"], ["a"], ground_truth=[kept]) == [1.0]
    assert create_trl_adapter(same, workers=0)(["q"], ["a"], solution=[kept]) == [1.0]


def test_two_columns_that_may_be_the_truth_stop_the_training_at_the_first_step() -> None:
    adapter = create_trl_adapter(trainer_rewards.exact, workers=0)
    with pytest.raises(ConfigError, match=r"'answer' or 'solution'.*dataset_to_reward_kwargs_map"):
        adapter(["q"], ["a"], solution=["2 + 2 = 4"], answer=["4"])
    assert adapter(["q"], ["4"], solution=["4"], answer=["4"]) == [1.0], "they say the same"
    assert create_trl_adapter(trainer_rewards.exact, {"answer": "ground_truth"}, workers=0)(
        ["q"], ["4"], solution=["2 + 2 = 4"], answer=["4"]
    ) == [1.0]


def test_message_functions_make_the_turns() -> None:
    adapter = create_trl_adapter(
        mapped, {"answer": "expected"}, None, lambda row: row["question"], lambda text: text.strip(), workers=0
    )
    assert adapter([{"question": "q"}], ["  a "], answer=["a"]) == [1.0]


def test_what_one_completion_uses_up_another_still_has() -> None:
    hints = ["one", "two"]
    for workers in (0, 1):
        adapter = create_trl_adapter(trainer_rewards.spender, workers=workers)
        for _ in range(2):  # the second time they travel in one chunk
            assert adapter(["q"] * 4, ["a"] * 4, hints=[hints] * 4) == [2.0] * 4
    assert hints == ["one", "two"]


def test_a_reward_that_speaks_to_the_trainer_is_judged_in_its_process() -> None:
    told: list[tuple[str, float]] = []
    adapter = create_trl_adapter(trainer_rewards.watcher)
    scores = adapter(
        ["q"] * 2, ["a"] * 2, trainer_state={"step": 7}, log_metric=lambda name, value: told.append((name, value))
    )
    assert scores == [7.0, 7.0]
    assert told == [("seen", 1.0), ("seen", 1.0), ("watcher/failed", 0.0)]
    assert create_trl_adapter(trainer_rewards.process)(["q"], ["a"]) != [float(os.getpid())]


# ── groups ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_batch_reward_judges_the_completions_of_a_prompt_together() -> None:
    reasons: list[Any] = []
    adapter = create_trl_adapter(trainer_rewards.best, {"answer": "ground_truth"}, workers=1)
    scores = adapter(
        ["p", "r", "p", "p", "r"],
        ["a", "bb", "ccc", "dd", "e"],
        answer=["1", "2", "1", "1", "2"],
        log_extra=lambda name, values: reasons.extend(values),
    )
    assert scores == [0.0, 1.0, 1.0, 0.0, 0.0]
    assert reasons == ["1: a ccc dd", "2: bb e", "1: a ccc dd", "1: a ccc dd", "2: bb e"]


def test_a_group_that_fails_fails_alone_and_a_group_may_be_unsure_of_some() -> None:
    adapter = create_trl_adapter(trainer_rewards.best, workers=0)
    assert adapter(["p", "p", "r", "r"], ["boom", "a", "unsure", "b"]) == [None, None, None, 0.0]


# ── what comes out ───────────────────────────────────────────────────────────────────────────────────────────────────

FAILING = ["raise", "hang", "regex", "exit", "none", "nan", "infinity", "unsure"]


@pytest.mark.parametrize("bad", FAILING)
def test_a_bad_completion_costs_itself_only(bad: str, perilous: TRLAdapter) -> None:
    perilous(["q"] * 8, ["fine"] * 8)  # so that they are known to be quick, and go in chunks
    before = perilous.failures
    assert perilous(["q"] * 5, ["fine", bad, "fine", "fine", "fine"]) == [1.0, None, 1.0, 1.0, 1.0]
    assert perilous.failures == before + 1


@pytest.mark.parametrize("bad", ["raise", "none", "nan", "infinity", "unsure"])
def test_the_same_in_the_trainers_process(bad: str) -> None:
    adapter = create_trl_adapter(trainer_rewards.perilous, workers=0)
    assert adapter(["q"] * 2, ["fine", bad]) == [1.0, None]


def test_a_policy_says_what_failures_become(caplog: pytest.LogCaptureFixture) -> None:
    zero = create_trl_adapter(trainer_rewards.perilous, workers=0, on_error="zero")
    assert zero(["q"] * 2, ["raise", "fine"]) == [0.0, 1.0]
    assert "is given 0.0" in caplog.text
    stop = create_trl_adapter(trainer_rewards.perilous, workers=0, on_error="raise")
    with pytest.raises(RewardError, match=r"as told.*1 of 2"):
        stop(["q"] * 2, ["raise", "fine"])
    with pytest.raises(ConfigError, match="'ignore'"):
        create_trl_adapter(trainer_rewards.perilous, on_error="ignore")


def test_a_step_in_which_nothing_was_judged_is_always_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    adapter = create_trl_adapter(trainer_rewards.perilous, workers=0)
    for _ in range(3):
        assert adapter(["q"] * 2, ["raise"] * 2) == [None, None]
    assert caplog.text.count("judged none of 2 completions") == 3
    assert caplog.text.count("only counted") == 1


def test_reasons_and_metrics_are_logged() -> None:
    extra: dict[str, Any] = {}
    metrics: dict[str, float] = {}
    adapter = create_trl_adapter(trainer_rewards.exact, name="right", workers=0)
    adapter(["q"] * 2, ["a", [1]], ground_truth=["a", "a"], log_extra=extra.__setitem__, log_metric=metrics.__setitem__)
    assert metrics == {"right/failed": 0.5, "right/length": 0.1}
    first, second = extra["right/reason"]
    assert first == "'a' for 'a'"
    assert "Role is required" in second or "valid" in second


def test_what_is_wrong_with_the_whole_training_is_raised(perilous: TRLAdapter) -> None:
    with pytest.raises(RewardKitError, match=r"reward-kit\[math\]"):
        perilous(["q"], ["extra"])
    unsendable = create_trl_adapter(_holding_a_lock())
    with pytest.raises(ConfigError, match="cannot be sent to a worker"):
        unsendable(["q"], ["a"])


def _holding_a_lock() -> Any:
    lock = threading.Lock()

    def reward(messages: list[Message], **kwargs: Any) -> float:
        return float(lock.locked())

    return reward


# ── bad input ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_lists_that_do_not_fit_together_are_refused() -> None:
    adapter = create_trl_adapter(trainer_rewards.exact, workers=0)
    with pytest.raises(ValueError, match="2 prompts came with 1 completions"):
        adapter(["a", "b"], ["c"])
    with pytest.raises(ValueError, match="'ground_truth' has 1 values for 2 prompts"):
        adapter(["a", "b"], ["c", "d"], ground_truth=["c"])
    assert adapter([], []) == []


def test_a_column_that_is_not_there_stops_the_training() -> None:
    adapter = create_trl_adapter(mapped, {"answer": "expected"})
    with pytest.raises(ConfigError, match=r"no column 'answer'; there are \['solution'\]"):
        adapter(["q"], ["a"], solution=["a"])
    with pytest.raises(ConfigError, match="'mapped' needs 'expected'"):
        create_trl_adapter(mapped)(["q"], ["a"], solution=["a"])


CALL = {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]}


@pytest.mark.parametrize(
    ("completion", "score", "reason"),
    [
        ("", 2.0, "assistant '' []"),
        ([{"role": "assistant", "content": ""}], 2.0, "assistant '' []"),
        ({"role": "assistant", "content": "one"}, 2.0, "assistant 'one' []"),
        ([CALL, {"role": "tool", "name": "f", "content": "2"}], 3.0, "tool '2' ['{\"x\": 1}']"),
        ([CALL], 2.0, "assistant '' ['{\"x\": 1}']"),
        ([], None, "empty list"),
        (None, None, "None"),
        (7, None, "7"),
        ([{"content": "no role"}], None, "Role is required"),
        (["just text"], None, "valid dictionary"),
    ],
)
def test_every_shape_of_completion_has_an_outcome(completion: Any, score: float | None, reason: str) -> None:
    reasons: list[Any] = []
    adapter = create_trl_adapter(trainer_rewards.last_turns, workers=0)
    scores = adapter(["q", "q"], [completion, "ok"], log_extra=lambda name, values: reasons.extend(values))
    assert scores == [score, 2.0]
    assert reason in reasons[0]


# ── forms ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_both_forms_of_both_kinds_of_reward() -> None:
    for reward in (trainer_rewards.exact, trainer_rewards.exact_async):
        adapter = create_trl_adapter(reward, workers=1)
        assert not inspect.iscoroutinefunction(adapter.__call__)
        assert inspect.iscoroutinefunction(adapter.async_.__call__)
        assert adapter(["q"] * 2, ["a", "b"], solution=["a"] * 2) == [1.0, 0.0]
        assert await adapter.async_(["q"] * 2, ["a", "b"], solution=["a"] * 2) == [1.0, 0.0]
        assert (type(adapter.sync), type(adapter.async_.async_)) == (TRLAdapter, AsyncTRLAdapter)
        assert adapter.async_.sync.__name__ == adapter.__name__
        adapter.close()


async def test_async_forms_of_several_rewards_are_awaited_together() -> None:
    adapters = [create_trl_adapter(trainer_rewards.process, workers=1, name=f"p{n}").async_ for n in range(2)]
    first, second = await asyncio.gather(*(adapter(["q"], ["a"]) for adapter in adapters))
    assert first != second


def test_it_pickles_with_and_without_workers_at_work() -> None:
    adapter = create_trl_adapter(f"{HERE}:exact", {"answer": "ground_truth"}, name="right", workers=1, timeout=9)
    assert adapter(["q"], ["a"], answer=["a"]) == [1.0]
    for form in (adapter, adapter.async_):
        copy = pickle.loads(pickle.dumps(form))
        assert (type(copy), copy.__name__) == (type(form), "right")
        assert copy.sync(["q"], ["a"], answer=["a"]) == [1.0]


def test_threads_may_share_it() -> None:
    adapter = create_trl_adapter(trainer_rewards.exact, workers=2)
    results: list[Any] = []
    threads = [
        threading.Thread(
            target=lambda n=n: results.append((n, adapter(["q"] * 50, [str(n)] * 50, solution=["3"] * 50)))
        )
        for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(n, [float(n == 3)] * 50) for n in range(6)]


@settings(max_examples=30)
@given(st.lists(st.text(max_size=5), max_size=20), st.sampled_from([0, 2]))
def test_scores_stand_in_the_order_of_their_completions(texts: list[str], workers: int) -> None:
    adapter = ADAPTERS[workers]
    truths = [text[::-1] for text in texts]
    assert adapter(["q"] * len(texts), texts, ground_truth=truths) == [
        float(text == truth) for text, truth in zip(texts, truths, strict=True)
    ]


ADAPTERS = {workers: create_trl_adapter(trainer_rewards.exact, workers=workers) for workers in (0, 2)}


def test_neither_torch_nor_trl_is_imported() -> None:
    code = "import sys, reward_kit.integrations.trl; sys.exit(bool({'torch', 'trl', 'aiohttp'} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_not_valid_is_none_or_its_score(workers: int, caplog: pytest.LogCaptureFixture) -> None:
    asked: dict[str, Any] = {"prompts": ["?", "?"], "completions": ["4", "5"], "ground_truth": ["4", "4"]}
    plain = create_trl_adapter(f"{HERE}:wrong_is_invalid", workers=workers)
    scored = create_trl_adapter(f"{HERE}:wrong_is_invalid", workers=workers, on_invalid="score")
    try:
        assert plain(**asked) == [1.0, None] and "on_invalid='score'" in caplog.text
        assert scored(**asked) == [1.0, 0.0] and scored.failures == 0
        if not workers:
            assert pickle.loads(pickle.dumps(scored))(**asked) == [1.0, 0.0]
    finally:
        plain.close()
        scored.close()


def test_an_unknown_reading_of_what_is_not_valid_is_refused() -> None:
    with pytest.raises(ConfigError, match="on_invalid 'zero'"):
        create_trl_adapter(trainer_rewards.exact, on_invalid="zero")


@pytest.mark.parametrize("workers", [0, 1])
def test_the_first_failure_is_logged_with_its_traceback(workers: int, caplog: pytest.LogCaptureFixture) -> None:
    adapter = create_trl_adapter(f"{HERE}:best", workers=workers)
    try:
        assert adapter(prompts=["?"], completions=["boom"], ground_truth=[1]) == [None]
    finally:
        adapter.close()
    assert 'raise ValueError("no group with a boom")' in caplog.text


def prompted(response: str, prompt: str) -> float:
    return float(response == prompt)


def test_a_prompt_that_is_a_text_is_a_column_of_its_own_name() -> None:
    assert create_trl_adapter(prompted, workers=0)(["a", "b"], ["a", "c"]) == [1.0, 0.0]
