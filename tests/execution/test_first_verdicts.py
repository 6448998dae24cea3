# SPDX-License-Identifier: Apache-2.0
"""A run whose first answers cannot be judged, all for the same reason, ends early, and goes on once that is mended."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reward_kit.cli import main
from reward_kit.config_models import RewardConfig
from reward_kit.errors import SameFailureError
from reward_kit.evaluating import evaluate
from reward_kit.execution.first_verdicts import FirstVerdicts
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.split_rewards import unverified
from reward_kit.models import EvaluateResult, Failure, Message, Record, Rollout, Sample
from reward_kit.scoring.rewards import Rewards, load_rewards
from tests.loopback.endpoint import honest, serving

ROWS = [{"question": f"{n}?", "ground_truth": str(n)} for n in range(60)]


def broken(response: str, ground_truth: str) -> float:
    raise KeyError(f"row {ground_truth} of {len(response)} characters has no key {response!r}")


def no_verdict(response: str, ground_truth: str) -> EvaluateResult:
    return EvaluateResult(score=0.0, is_score_valid=False, reason=f"no verifier answered to {ground_truth}")


async def broken_on_the_loop(response: str, ground_truth: str) -> float:
    raise RuntimeError(f"no connection for {ground_truth}")


def broken_group(rollouts_messages: list[list[Message]], ground_truth: str) -> list[float]:
    raise ValueError(f"group {ground_truth}")


def right_once(response: str, ground_truth: str) -> float:
    if ground_truth != "3":
        raise KeyError(ground_truth)
    return 1.0


def broken_in_two_ways(response: str, ground_truth: str) -> float:
    raise (KeyError if int(ground_truth) % 2 else ValueError)(ground_truth)


def fine(response: str, ground_truth: str) -> float:
    return 1.0


def record(number: int, failure: Failure | None, made: Failure | None = None, split: str | None = None) -> Record:
    sample = Sample(id=str(number), messages=[Message(role="user", content="?")], position=number, split=split)
    turns = [] if made else [Message(role="assistant", content="4")]
    rollout = Rollout(sample=sample, response_index=0, turns=turns, failure=made)
    return Record(rollout=rollout, failure=failure or made, result=None if failure or made else EvaluateResult(score=1))


def failure(message: str, kind: str = "RewardError") -> Failure:
    return Failure(stage="score", type=kind, message=message)


def rewards(*splits: str, others: Callable[..., Any] = fine) -> Rewards:
    one = [load_rewards(RewardConfig(function_path="given"), each).others for each in (others, *[fine] * len(splits))]
    return Rewards(one[0], dict(zip(splits, one[1:], strict=True)))


def heard(records: list[Record], judging: Rewards | None = None) -> list[str]:
    said: list[str] = []
    first = FirstVerdicts(said.append, judging or rewards())
    for each in records:
        first.see(each)
    return said


@pytest.mark.parametrize(
    "message",
    [
        "it broke", "no file '/tmp/a{0}/b.py'", "{0} is not in range", "row {0}: got {0}.5, expected -{0}e3",
        'no "key{0}" there', "object at 0x7f{0}a", "HTTP 503 after {0}s", "it's gone: 'a{0}'",
    ],
)  # fmt: skip
def test_messages_that_differ_in_values_only_are_alike(message: str) -> None:
    (said,) = heard([record(n, failure(message.format(n))) for n in range(25)])
    assert message.format(19) in said and "`keep_going`" in said


def test_nineteen_are_not_enough_and_one_that_differs_ends_it() -> None:
    alike = [record(n, failure("it broke")) for n in range(60)]
    assert heard(alike[:19]) == []
    assert heard(alike[:20]) != []
    assert heard([*alike[:19], record(19, None), *alike[20:]]) == []
    assert heard([*alike[:19], record(19, failure("it is gone")), *alike[20:]]) == []
    assert heard([*alike[:19], record(19, failure("it broke", "RewardTimeoutError")), *alike[20:]]) == []


def test_answers_that_could_not_be_had_are_no_verdicts() -> None:
    made = Failure(stage="generate", type="ProviderError", message="it broke")
    lost = [record(n, None, made) for n in range(60)]
    assert heard(lost) == []
    assert heard([*lost[:5], *(record(n, failure("it broke")) for n in range(20))]) != []


def test_where_no_verdict_is_expected_none_is_missed() -> None:
    assert heard([record(n, failure("no verifier")) for n in range(60)], rewards("hard", others=unverified)) == []


def test_each_reward_of_a_split_is_looked_at_by_itself() -> None:
    judged = [record(n, None, split="easy") for n in range(30)]
    failed = [record(n, failure("it broke"), split="hard") for n in range(30, 60)]
    mixed = [each for pair in zip(judged, failed, strict=True) for each in pair]
    assert len(heard(mixed, rewards("easy", "hard"))) == 1
    assert heard(mixed) == []


@pytest.mark.parametrize("reward", [broken, no_verdict, broken_on_the_loop, broken_group])
def test_a_broken_reward_ends_the_evaluation_and_what_there_is_is_kept(
    reward: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(SameFailureError, match=r"The first 20 answers could not be judged, all for the same") as ended:
        evaluate(ROWS, reward, model="mock", output_dir=tmp_path)
    result: Any = ended.value.result
    assert result.status == "failing" and result.judged == 0 and result.failed >= 20
    again = evaluate(ROWS, fine, model="mock", output_dir=tmp_path)
    assert (again.status, again.judged, again.failed) == ("finished", 60, 0)
    assert again.counters.generated == 60 - result.counters.generated


@pytest.mark.parametrize("reward", [right_once, broken_in_two_ways])
def test_a_reward_that_fails_on_some_answers_or_in_several_ways_goes_on(
    reward: Callable[..., Any], tmp_path: Path
) -> None:
    rows = ROWS[3:] if reward is right_once else ROWS
    result = evaluate(rows, reward, model="mock", output_dir=tmp_path, reward_settings={"workers": 1})
    assert (result.status, result.failed) == ("finished", len(rows) - (reward is right_once))


def test_fewer_than_twenty_and_keep_going_go_on() -> None:
    assert evaluate(ROWS[:19], broken, model="mock").failed == 19
    assert evaluate(ROWS, broken, model="mock", keep_going=True).failed == 60


def test_what_was_judged_before_is_a_sign_that_the_reward_works(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (tmp_path / "by_state.py").write_text(
        "import pathlib\n\ndef judge(response):\n"
        f"    assert not pathlib.Path({str(state)!r}).exists()\n    return 1.0\n"
    )
    reward = f"{tmp_path / 'by_state.py'}:judge"

    def run(n: int) -> Any:
        return evaluate(ROWS, reward, model="mock", output_dir=tmp_path / "o", n=n)

    state.touch()
    with pytest.raises(SameFailureError):
        run(1)
    with pytest.raises(SameFailureError):  # not mended: it is seen again
        run(1)
    state.unlink()
    assert run(1).judged == 60  # the same call: what had failed is judged again
    state.touch()
    assert (run(2).status, run(2).failed) == ("finished", 60)


def test_a_model_is_not_asked_for_the_rest(tmp_path: Path) -> None:
    with serving(honest) as server:
        with pytest.raises(SameFailureError):
            evaluate(
                ROWS * 20, broken, model="m", api_base=server.api_base, output_dir=tmp_path,
                api_params={"max_concurrent_requests": 4},
            )  # fmt: skip
        assert 20 <= len(server.requests) < 1200


@pytest.mark.parametrize("flags", [[], ["--quiet"]])
def test_the_command_has_an_exit_code_and_a_sentence_for_it(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reward.py").write_text("def judge(response):\n    raise KeyError(response)\n")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "run.yaml").write_text(
        "dataset: {path_or_name: rows.jsonl}\ngeneration: {model_name: mock}\n"
        "reward: {function_path: reward.py:judge}\n"
        "output: {output_dir: out}\n"
    )

    def run(*more: str) -> int:
        with pytest.raises(SystemExit) as leave:
            main(["run", "run.yaml", *flags, *more])
        return int(leave.value.code or 0)

    assert run() == 7
    said = capfd.readouterr()
    assert "The first 20 answers could not be judged" in said.out + said.err
    assert "--keep-going" in said.out + said.err
    (tmp_path / "reward.py").write_text("def judge(response):\n    return 1.0\n")
    sys.modules.pop("reward", None)
    assert run() == 0
    (tmp_path / "reward.py").write_text("def judge(response):\n    raise KeyError(response)\n")
    sys.modules.pop("reward", None)
    assert run("output.output_dir=other", "--keep-going") == 1


def test_by_the_pipeline_the_status_says_it(tmp_path: Path) -> None:
    config = {
        "generation": {"model_name": "mock"}, "reward": {"function_path": "x"}, "output": {"output_dir": str(tmp_path)}
    }  # fmt: skip
    result = EvaluationPipeline(config, reward=broken, samples=ROWS).run()
    assert result.status == "failing" and "all for the same reason" in (result.reason or "")
