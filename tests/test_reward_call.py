# SPDX-License-Identifier: Apache-2.0
"""Calling by name: where each argument comes from, what becomes of failures, and the plain data workers see."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, Optional, TypeVar, Union

import pytest

from reward_kit.errors import ConfigError, RewardError
from reward_kit.models import EvaluateResult, Message, Rollout, Sample
from reward_kit.redaction import blot, echoes, forget_all, looks_secret, secret_values
from reward_kit.reward_call import (
    NOT_COLUMNS,
    RESERVED,
    RewardCall,
    concurrency_of,
    mode_of,
    run_blocking,
    timeout_of,
    verdict_or_raise,
    wants,
)
from reward_kit.typed_interface import BelowFolder, Operator, reward_function

SAMPLE = Sample(
    id="s1",
    messages=[Message(role="user", content="2+2?")],
    ground_truth="4",
    split="test",
    columns={"level": "easy", "tolerance": 0.5},
)
ROLLOUT = Rollout(
    sample=SAMPLE, response_index=2, turns=[Message(role="assistant", content="4")], model="m", finish_reason="stop"
)
OTHER = ROLLOUT.model_copy(update={"response_index": 3, "turns": [Message(role="assistant", content="five")]})


@reward_function
def seen(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> EvaluateResult:
    """Judges nothing, and says what it was given."""
    return EvaluateResult(score=1.0, reason=repr(sorted(kwargs.items())))


@reward_function(mode="batch", timeout=3, concurrency=2)
def ranked(rollouts_messages: list[list[Message]], ground_truth: str = "", **kwargs: Any) -> list[EvaluateResult]:
    return [EvaluateResult(score=float(messages[-1].content == ground_truth)) for messages in rollouts_messages]


def exact(response: str, ground_truth: str) -> bool:
    """A plain function: no decorator, no **kwargs."""
    return response == ground_truth


def test_a_reward_with_kwargs_is_handed_every_column_by_name() -> None:
    call = RewardCall(seen)
    assert call.arguments_of([ROLLOUT], plain=True) == {
        "messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}],
        "ground_truth": "4",
        "level": "easy",
        "tolerance": 0.5,
    }


def test_a_param_comes_before_a_column_of_the_same_name() -> None:
    call = RewardCall(seen, {"tolerance": 0.1, "strict": True})
    reason = call.judge(call.arguments_of([ROLLOUT])).reason
    assert reason == "[('level', 'easy'), ('strict', True), ('tolerance', 0.1)]"


def test_a_plain_function_gets_only_what_it_names() -> None:
    call = RewardCall(exact)
    assert call.arguments_of([ROLLOUT], plain=True) == {"response": "4", "ground_truth": "4"}
    assert (call.judge(call.arguments_of([ROLLOUT])).score, call.judge(call.arguments_of([OTHER])).score) == (1.0, 0.0)


def test_facts_about_the_rollout_are_given_to_a_reward_that_names_them() -> None:
    def reward(sample_id: str, response_index: int, split: str, model: str, finish_reason: str, tools: Any) -> bool:
        assert tools is None
        return (sample_id, response_index, split, model, finish_reason) == ("s1", 2, "test", "m", "stop")

    call = RewardCall(reward)
    assert call.judge(call.arguments_of([ROLLOUT])).score == 1.0


def with_columns(**columns: Any) -> Rollout:
    return ROLLOUT.model_copy(update={"sample": SAMPLE.model_copy(update={"columns": columns})})


def test_a_resource_comes_before_a_column() -> None:
    def reward(sandbox: str) -> bool:
        return sandbox == "resource"

    call = RewardCall(reward)
    arguments = call.arguments_of([with_columns(sandbox="column")])
    assert call.wants("sandbox") and not call.wants("judge")
    assert call.judge(arguments, {"sandbox": "resource", "judge": "unasked"}).score == 1.0


@pytest.mark.parametrize("mode", ["pointwise", "batch"])
@pytest.mark.parametrize("takes_any", [False, True])
@pytest.mark.parametrize("name", sorted(NOT_COLUMNS))
def test_what_the_rollout_is_never_comes_from_a_column(name: str, mode: str, takes_any: bool) -> None:
    subject = "rollouts_messages" if mode == "batch" else "messages"
    names = dict.fromkeys([subject, "ground_truth", "columns", name])
    source = f"lambda {', '.join(f'{each}=None' for each in names)}{', **others' if takes_any else ''}: None"
    call = RewardCall(eval(source))
    rollout = with_columns(**{name: "from the data"})
    handed = call.arguments_of([rollout])
    assert handed.pop("columns") == {name: "from the data"}, "where a reward may read it"
    assert "from the data" not in repr(
        {each: value for each, value in handed.items() if not each.startswith("rollout")}
    )
    if name not in RESERVED:
        chosen = RewardCall(eval(source), {name: "from the operator"})
        assert chosen._with(chosen.arguments_of([rollout]), None)[name] == "from the operator"


def test_a_column_that_has_the_name_of_a_fact_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    call = RewardCall(seen)
    for _ in range(3):
        call.arguments_of([with_columns(response="the data's")])
    assert [record.getMessage() for record in caplog.records] == [
        "The data have a column 'response'. A reward's 'response' is what the rollout says, so 'seen' reads the column "
        "as `columns['response']`."
    ]


# ── the ground truth ─────────────────────────────────────────────────────────────────────────────────────────────────


def truth_handed(function: Any, truth: Any, text: str | None = None) -> Any:
    sample = SAMPLE.model_copy(update={"ground_truth": truth, "ground_truth_text": text})
    return RewardCall(function).arguments_of([ROLLOUT.model_copy(update={"sample": sample})])["ground_truth"]


@pytest.mark.parametrize(
    ("truth", "text", "handed"),
    [
        (4, None, "4"), (4.5, None, "4.5"), (True, None, "True"), (True, "true", "true"), (4.5, "4.50", "4.50"),
        (4.0, "4", "4"), ("4", None, "4"), (None, None, None), ([4], None, [4]), ({"n": 4}, None, {"n": 4}),
        (2**70, None, str(2**70)),
    ],
)  # fmt: skip
def test_a_number_as_ground_truth_is_text_unless_its_annotation_asks_for_a_number(
    truth: Any, text: str | None, handed: Any
) -> None:
    def unannotated(ground_truth): ...  # type: ignore[no-untyped-def]
    def as_text(ground_truth: str) -> None: ...
    def maybe(ground_truth: str | None) -> None: ...
    def anything(ground_truth: Any) -> None: ...
    def number(ground_truth: float) -> None: ...
    def either(ground_truth: str | int | None = None) -> None: ...
    def marked(ground_truth: Annotated[bool, "so"]) -> None: ...

    for function in (unannotated, as_text, maybe, anything, lambda **anything: None):
        assert truth_handed(function, truth, text) == handed
        assert type(truth_handed(function, truth, text)) is type(handed)
    for function in (number, either, marked):
        assert truth_handed(function, truth, text) is truth or truth_handed(function, truth, text) == truth


Grade = NewType("Grade", int)
Either = TypeVar("Either", int, str)
Word = TypeVar("Word", bound=str)
_NUMBERS: list[Any] = [int, float, bool, Grade, Either, "int", "float | None", Literal[1, 2], Annotated[Grade, "so"]]
_OTHERS: list[Any] = [str, Any, None, object, list[int], dict[str, float], tuple[int, ...], Word, "str", "list[int]",
                      Literal["a"], type[int], NewType("Name", str)]  # fmt: skip
_AROUND: list[Any] = [
    lambda hint: hint, lambda hint: Optional[hint],  # noqa: UP045 - as people write it
    lambda hint: Union[str, hint],  # noqa: UP007
    lambda hint: Annotated[hint, "so"], lambda hint: Optional[Union[list[int], hint]],  # noqa: UP007, UP045
]  # fmt: skip


@pytest.mark.parametrize("around", _AROUND)
def test_what_asks_for_a_number_is_known_however_it_is_written(around: Any) -> None:
    for hints, is_number in ((_NUMBERS, True), (_OTHERS, False)):
        for hint in hints:

            def judges(response: str, ground_truth: Any = None) -> float:
                return 1.0

            judges.__annotations__["ground_truth"] = around(hint)
            assert RewardCall(judges).takes_number_truth is is_number, around(hint)


def test_a_number_for_a_reward_without_annotation_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    def unannotated(response, ground_truth): ...  # type: ignore[no-untyped-def]

    call = RewardCall(unannotated)
    sample = SAMPLE.model_copy(update={"ground_truth": 4})
    for _ in range(3):
        call.arguments_of([ROLLOUT.model_copy(update={"sample": sample})])
    (said,) = caplog.records
    assert "is the number 4, and 'unannotated' is handed it as the text '4'" in said.getMessage()


# ── the operator's ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_the_params_fill_what_is_marked_as_the_operators() -> None:
    def reward(messages: list[Message], check: Operator[str | None] = None, **kwargs: Any) -> float:
        return float(check == "mine")

    call, chosen = RewardCall(reward), RewardCall(reward, {"check": "mine"})
    hostile = with_columns(check="os:system")
    with pytest.raises(
        RewardError, match=r"give 'check', which reward 'reward' takes from its operator.*params\.check"
    ):
        call.arguments_of([hostile])
    assert call.judge(call.arguments_of([with_columns(check=None)])).score == 0.0, "nothing is nothing"
    assert chosen.judge(chosen.arguments_of([hostile])).score == 1.0, "the params have the last word"
    assert "check" not in call.columns_named


def test_a_key_that_only_the_operator_gives_is_kept_out_of_what_is_shown() -> None:
    def asks(messages: list[Message], api_key: Operator[str], token: str = "") -> float:
        return 1.0

    RewardCall(asks, {"api_key": "mine-7f3c9a11", "token": "<answer-begins>"})
    assert "mine-7f3c9a11" not in blot("401: mine-7f3c9a11 is not known")
    assert blot("it says <answer-begins>") == "it says <answer-begins>", "no mark says that this is a key"


VALUES = [
    "pineapple-1", "</think>", "open sesame please", "zq7PlantedKey4711xAbC9", "sk-proj-Zq7PlantedKey4711xAbC9", "the",
    "https://h.example/a?token=Zq7PlantedKey4711", "postgres://bob:Zq7PlantedKey@h/d", "answer",
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", ["token", "api_key", "phrase", "client"])
def test_what_settings_hide_of_the_operators_params_fails_an_answer_and_nothing_else(name: str, value: str) -> None:
    def judges(response: str, token: Operator[Any] = None, api_key: Operator[Any] = None, phrase: Operator[Any] = None,
               client: Operator[Any] = None) -> float:  # fmt: skip
        return 1.0

    given: Any = {"headers": {"authorization": value}} if name == "client" else value
    forget_all()
    RewardCall(judges, {name: given})
    hidden, is_told = secret_values({name: given}), echoes(f"It is {value}.".encode())
    assert is_told in {bool(hidden), False}, "a word that an answer holds by chance is none"
    assert is_told or not any(map(looks_secret, hidden))
    forget_all()


def test_a_fact_does_not_fill_the_operators_parameter_of_the_same_name() -> None:
    def judged_by(messages: list[Message], model: Operator[str] = "judge") -> float:
        return float(model == "judge")

    call = RewardCall(judged_by)
    assert call.judge(call.arguments_of([ROLLOUT])).score == 1.0


def test_what_the_operator_must_give_is_asked_of_the_operator() -> None:
    def reward(messages: list[Message], check: Operator[str]) -> float:
        return 1.0

    call = RewardCall(reward)
    assert call.unfilled({"check"}) == ["check"]
    with pytest.raises(RewardError, match=r"'check', which only its params give\. Set `reward\.params\.check`"):
        call.arguments_of([ROLLOUT])


def test_a_path_of_the_data_stays_below_the_operators_folder(tmp_path: Path) -> None:
    def reward(response: str, file: Annotated[str | None, BelowFolder("folder")] = None, folder: str = "") -> float:
        return 1.0

    inside = tmp_path / "data"
    inside.mkdir()
    (inside / "out").symlink_to(tmp_path)
    free = RewardCall(reward)
    with pytest.raises(RewardError, match=r"Set `reward\.params\.folder`"):
        free.arguments_of([with_columns(file="a.txt")])
    assert RewardCall(reward, {"file": "/etc/hosts"}).arguments_of([with_columns(file="a.txt")]) == {"response": "4"}
    call = RewardCall(reward, {"folder": str(inside)})
    assert call.arguments_of([with_columns(file="sub/a.txt")])["file"] == str(inside.resolve() / "sub" / "a.txt")
    for outside in ("../a.txt", "/etc/hosts", "out/a.txt", "a\0b", 7, "", ".", "sub/../../a.txt"):
        with pytest.raises(RewardError, match="is no path below"):
            call.arguments_of([with_columns(file=outside)])


def test_resources_are_not_pushed_upon_a_reward_that_takes_anything() -> None:
    call = RewardCall(seen)
    reason = call.judge(call.arguments_of([ROLLOUT]), {"sandbox": object()}).reason
    assert reason is not None and "sandbox" not in reason


def test_a_column_cannot_stand_in_for_the_messages_or_the_decorators_resources() -> None:
    class Client:
        def setup(self) -> None: ...
        def cleanup(self) -> None: ...
        def get_client(self) -> str:
            return "client"

    @reward_function(resources={"llm": [Client()]})
    def reward(messages: list[Message], resources: Any, **kwargs: Any) -> bool:
        return bool(resources == {"llm": ["client"]} and messages[0].content == "2+2?")

    hostile = SAMPLE.model_copy(update={"columns": {"resources": 1, "messages": 2, "ground_truth": 3}})
    call = RewardCall(reward)
    assert call.judge(call.arguments_of([ROLLOUT.model_copy(update={"sample": hostile})])).score == 1.0


def test_a_parameter_that_nothing_fills_is_named_with_what_there_is() -> None:
    def reward(messages: list[Message], rubric: str) -> float:
        return 1.0

    call = RewardCall(reward)
    with pytest.raises(RewardError, match=r"'reward' needs 'rubric'.*level.*reward\.params\.rubric"):
        call.judge(call.arguments_of([ROLLOUT]))


def test_impossible_params_are_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="'ground_truth', which comes from each rollout"):
        RewardCall(seen, {"ground_truth": "4"})
    with pytest.raises(ConfigError, match="'exact' has no parameter 'tolerence'"):
        RewardCall(exact, {"tolerence": 1})
    with pytest.raises(ConfigError, match="'messages' by position only"):
        RewardCall(lambda messages, /: 1.0)


def test_what_a_reward_raises_is_attributed_to_it() -> None:
    def reward(messages: list[Message]) -> float:
        raise KeyError("boom")

    def gives_up(messages: list[Message]) -> float:
        raise SystemExit(3)

    for function in (reward, gives_up):
        call = RewardCall(function)
        with pytest.raises(RewardError, match=f"'{function.__name__}' raised"):
            call.judge(call.arguments_of([ROLLOUT]))


def test_a_result_that_is_no_verdict_is_an_error_and_never_a_zero() -> None:
    for result in (
        EvaluateResult(score=0.0, is_score_valid=False, reason="judge was down"),
        EvaluateResult(score=1.0, error="judge was down"),
    ):
        with pytest.raises(RewardError, match="gave no verdict: judge was down"):
            verdict_or_raise(result, "'r'")
    good = EvaluateResult(score=0.0)
    assert verdict_or_raise(good) is good


@pytest.mark.parametrize(
    "said",
    [
        Message(role="assistant", content="4"),
        Message(role="assistant", content=[{"type": "text", "text": "4"}]),
        Message(role="assistant", tool_calls=[{"function": {"name": "f"}}]),
    ],
)
def test_a_reward_called_here_may_change_whatever_it_is_handed(said: Message) -> None:
    sample = SAMPLE.model_copy(update={"ground_truth": ["4"], "columns": {"level": {"is": ["easy"]}}})
    rollout = ROLLOUT.model_copy(update={"sample": sample, "turns": [said]})
    before = rollout.model_copy(deep=True)
    call = RewardCall(seen)
    own, crossing = call.arguments_of([rollout]), call.arguments_of([rollout], plain=True)
    given: Any = own["messages"]
    assert [message.model_dump(exclude_unset=True) for message in given] == crossing["messages"]
    for message in given:
        if isinstance(message.content, list):
            message.content[0]["text"] = "mine"
        if message.tool_calls:
            message.tool_calls[0].function.name = "mine"
        message.role, message.name = "mine", "mine"
    given.clear()
    own["ground_truth"].append("mine")
    own["level"]["is"].append("mine")
    assert rollout == before
    assert [turn.model_fields_set for turn in rollout.turns] == [turn.model_fields_set for turn in before.turns]


def test_a_batch_reward_sees_all_rollouts_of_the_sample() -> None:
    call = RewardCall(ranked)
    payload = call.arguments_of([ROLLOUT, OTHER])
    assert [result.score for result in call.judge_group(payload)] == [1.0, 0.0]

    def named(rollouts_messages: Any, responses: list[str], response_index: list[int]) -> list[dict[str, Any]]:
        return [
            {"score": float(len(text)), "reason": str(i)} for text, i in zip(responses, response_index, strict=True)
        ]

    plain = RewardCall(named)
    results = plain.judge_group(plain.arguments_of([ROLLOUT, OTHER]))
    assert [(result.score, result.reason) for result in results] == [(1.0, "2"), (4.0, "3")]


async def test_async_rewards_from_either_side() -> None:
    async def reward(response: str, ground_truth: str) -> bool:
        await asyncio.sleep(0)
        return response == ground_truth

    @reward_function(mode="batch")
    async def group(rollouts_messages: list[list[Message]], **kwargs: Any) -> list[dict[str, Any]]:
        return [{"score": 1.0} for _ in rollouts_messages]

    call, grouped = RewardCall(reward), RewardCall(group)
    assert call.is_async
    assert (await call.judge_async(call.arguments_of([ROLLOUT]))).score == 1.0
    assert call.judge(call.arguments_of([ROLLOUT])).score == 1.0, "also where a loop is running"
    assert len(await grouped.judge_group_async(grouped.arguments_of([ROLLOUT, OTHER]))) == 2
    assert (await RewardCall(exact).judge_async(RewardCall(exact).arguments_of([ROLLOUT]))).score == 1.0
    with pytest.raises(ZeroDivisionError):
        run_blocking(_fails())


async def _fails() -> None:
    raise ZeroDivisionError


def test_what_a_reward_says_of_itself() -> None:
    assert (mode_of(seen), mode_of(ranked), mode_of(exact)) == ("pointwise", "batch", "pointwise")
    assert mode_of(lambda rollouts_messages: []) == "batch"
    assert (timeout_of(ranked), concurrency_of(ranked), timeout_of(exact), concurrency_of(seen)) == (3, 2, None, None)
    assert wants(exact, "response")
    assert not wants(seen, "sandbox") and not wants(seen, "kwargs")


def test_calls_pickle() -> None:
    call = pickle.loads(pickle.dumps(RewardCall(exact)))
    assert call.judge(call.arguments_of([ROLLOUT])).score == 1.0
