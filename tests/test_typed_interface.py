# SPDX-License-Identifier: Apache-2.0
"""`@reward_function`: what goes in, what comes out, and what it keeps of the function."""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Dict, List, Optional, TypeAlias, Union  # noqa: UP035 - the spellings users have

import cloudpickle  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.errors import RewardError
from reward_kit.models import EvaluateResult, Message, MetricResult, Rollout
from reward_kit.reward_call import RewardCall
from reward_kit.typed_interface import BelowFolder, EarlyVerdict, Operator, is_async, marks_of, name_of, reward_function
from reward_kit.utils.module_loader import load_function

if TYPE_CHECKING:
    from somewhere_else import Turn  # type: ignore[import-not-found]  # never imported: the hint stays a string

TURNS: Any = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]


@reward_function
def exact(messages: list[Message], ground_truth: str | None = None, **kwargs: Any) -> EvaluateResult:
    """Whether the last turn is the ground truth."""
    return EvaluateResult(score=float(messages[-1].content == ground_truth), reason="compared")


@reward_function(mode="batch")
def longest(rollouts_messages: list[list[Message]], **kwargs: Any) -> list[EvaluateResult]:
    most = max(len(messages[-1].text) for messages in rollouts_messages)
    return [EvaluateResult(score=float(len(messages[-1].text) == most)) for messages in rollouts_messages]


# ── the decorator itself ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_function_without_kwargs_is_refused_by_name() -> None:
    def strict(messages: list[Message]) -> float:
        return 1.0

    with pytest.raises(ValueError, match=r"'strict' must accept \*\*kwargs.*Add \*\*kwargs"):
        reward_function(strict)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="'groupwise'"):
        reward_function(mode="groupwise")  # type: ignore[call-overload]


def test_it_keeps_name_docstring_signature_and_module() -> None:
    assert exact.__name__ == "exact"
    assert exact.__doc__ == "Whether the last turn is the ground truth."
    assert list(inspect.signature(exact).parameters) == ["messages", "ground_truth", "kwargs"]
    assert pickle.loads(pickle.dumps(exact)) is exact


def test_its_settings_are_attributes() -> None:
    @reward_function(id="mine", requirements=["sympy"], concurrency=3, timeout=2.5)
    def reward(messages: list[Message], **kwargs: Any) -> float:
        return 1.0

    function: Any = reward
    assert function._reward_function_id == "mine"
    assert function._reward_function_requirements == ["sympy"]
    assert function._reward_function_mode == "pointwise"
    assert function._reward_function_resources == {}
    assert (function._reward_function_concurrency, function._reward_function_timeout) == (3, 2.5)
    assert vars(exact)["_reward_function_id"] == "exact"
    assert vars(longest)["_reward_function_mode"] == "batch"


def test_methods_callable_objects_and_partials_can_be_rewards() -> None:
    class Judge:
        def __init__(self, word: str) -> None:
            self.word = word

        @reward_function
        def has_word(self, messages: list[Message], **kwargs: Any) -> bool:
            return self.word in messages[-1].text

        def __call__(self, messages: list[Message], **kwargs: Any) -> bool:
            return self.word in messages[-1].text

    assert Judge("4").has_word(TURNS).score == 1.0
    assert Judge("5").has_word(messages=TURNS).score == 0.0
    assert reward_function(Judge("4"))(messages=TURNS).score == 1.0
    named = reward_function(functools.partial(exact, ground_truth="4"))
    assert (named(TURNS).score, named.__name__, name_of(Judge("4"))) == (1.0, "exact", "Judge")


def test_a_reward_defined_in_main_crosses_into_another_process_by_value() -> None:
    code = (
        "import cloudpickle, sys\n"
        "from reward_kit import reward_function\n"
        "@reward_function\n"
        "def always(messages, **kwargs): return 0.5\n"
        "sys.stdout.buffer.write(cloudpickle.dumps(always))\n"
    )
    pickled = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert cloudpickle.loads(pickled)(messages=TURNS).score == 0.5


# ── what goes in ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_dicts_become_messages_by_position_and_by_name() -> None:
    assert exact(TURNS, "4").score == 1.0
    assert exact(messages=TURNS, ground_truth="5").score == 0.0


def test_messages_are_handed_on_as_they_are() -> None:
    seen: list[Any] = []

    @reward_function
    def look(messages, **kwargs):  # type: ignore[no-untyped-def]  # as most people write it
        seen.append(messages)
        return 1.0

    messages = [Message.model_validate(turn) for turn in TURNS]
    call: Any = look
    call(messages)
    call(TURNS)
    assert seen[0] is messages
    assert all(type(message) is Message for message in seen[1])


@pytest.mark.parametrize("bad", [[{"content": "no role"}], [3], "text", None, [{"role": "user", "content": 3.5}]])
def test_a_bad_message_is_refused_before_the_function_runs(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"^Input 'messages' failed Pydantic validation"):
        exact(messages=bad)


def test_the_missing_role_is_named() -> None:
    with pytest.raises(ValueError, match=r"item 1.*: Role is required"):
        exact(messages=[TURNS[0], {"content": "x"}])  # type: ignore[list-item]


def test_a_reward_that_declares_dicts_gets_dicts() -> None:
    @reward_function
    def old_style(messages: List[Dict[str, Any]], **kwargs: Any) -> float:  # noqa: UP006
        return float(messages[-1]["content"] == "4" and messages[-1].get("weight", 1))

    assert old_style(messages=TURNS).score == 1.0
    assert old_style(messages=[Message.model_validate(turn) for turn in TURNS]).score == 1.0  # type: ignore[misc]
    assert old_style(messages=[{**TURNS[1], "weight": 0.0}]).score == 0.0, "fields Message does not know are kept"


def test_a_reward_that_takes_either_gets_messages() -> None:
    @reward_function
    def either(messages: Union[List[Message], List[Dict[str, Any]]], **kwargs: Any) -> bool:  # noqa: UP006, UP007
        return isinstance(messages[0], Message)

    assert either(messages=TURNS).score == 1.0


def test_a_hint_that_cannot_be_resolved_does_no_harm() -> None:
    @reward_function
    def reward(messages: list[Turn], ground_truth: list[Message] | None = None, **kwargs: Any) -> bool:
        return isinstance(messages[0], Message)

    assert reward(messages=TURNS).score == 1.0


def test_names_that_exist_only_for_type_checkers_are_read_as_they_are_written(tmp_path: Path) -> None:
    module = tmp_path / "lazy_hints.py"
    module.write_text(
        "from typing import TYPE_CHECKING, List\n"
        "from reward_kit import reward_function\n"
        "if TYPE_CHECKING:\n"
        "    from reward_kit import Message\n"
        "    from nowhere import Thing\n"
        "@reward_function\n"
        "def reward(messages: 'list[Message]', ground_truth: List['Message'] = None, x: 'Thing' = None, **kwargs):\n"
        "    return messages[-1].content == ground_truth[-1].content\n"
    )
    reward = load_function(f"{module}:reward")
    assert reward(messages=TURNS, ground_truth=TURNS[1:]).score == 1.0


def test_ground_truth_declared_as_messages_is_coerced() -> None:
    @reward_function
    def reward(messages: List[Message], ground_truth: Optional[List[Message]] = None, **kwargs: Any) -> bool:  # noqa: UP006, UP045
        return ground_truth is not None and messages[-1].content == ground_truth[-1].content

    call: Any = reward
    assert call(messages=TURNS, ground_truth=[{"role": "assistant", "content": "4"}]).score == 1.0
    assert call(messages=TURNS).score == 0.0
    assert call(TURNS, None).score == 0.0
    with pytest.raises(ValueError, match=r"^Input 'ground_truth' failed Pydantic validation"):
        call(messages=TURNS, ground_truth=[{"content": "4"}])
    with pytest.raises(ValueError, match=r"^Input 'ground_truth' failed Pydantic validation"):
        call(messages=TURNS, ground_truth="4")


def test_ground_truth_that_may_be_something_else_is_coerced_only_if_it_is_a_conversation() -> None:
    seen: list[Any] = []

    @reward_function
    def reward(
        messages: list[Message], ground_truth: str | list[Message] | list[dict[str, Any]] | None = None, **kwargs: Any
    ) -> float:
        seen.append(ground_truth)
        return 1.0

    for truth in ("4", [{"name": "add", "arguments": {}}], [{"role": "assistant", "content": "4"}], []):
        reward(messages=TURNS, ground_truth=truth)
    assert seen == ["4", [{"name": "add", "arguments": {}}], [Message(role="assistant", content="4")], []]


def test_ground_truth_declared_otherwise_is_left_alone() -> None:
    @reward_function
    def reward(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> bool:
        return isinstance(ground_truth[0], dict)

    assert reward(messages=TURNS, ground_truth=TURNS).score == 1.0


# ── what comes out ───────────────────────────────────────────────────────────────────────────────────────────────────


def returning(value: Any) -> EvaluateResult:
    @reward_function
    def reward(messages: list[Message], **kwargs: Any) -> Any:
        return value

    call: Any = reward
    result = call(messages=TURNS)
    assert isinstance(result, EvaluateResult)
    return result


@given(st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.integers(-(10**9), 10**9))
def test_any_finite_number_is_a_score(value: float) -> None:
    assert returning(value).score == float(value)


def test_things_that_are_single_numbers_are_scores() -> None:
    class Scalar:
        def __float__(self) -> float:
            return 0.25

    assert returning(Scalar()).score == 0.25
    assert returning(Decimal("0.5")).score == 0.5


def test_a_dict_is_validated_as_a_result() -> None:
    result = returning({"score": 1, "metrics": {"m": {"score": 1.0, "reason": "r"}}, "unknown": 1})
    assert result == EvaluateResult(score=1.0, metrics={"m": MetricResult(score=1.0, reason="r")})


@pytest.mark.parametrize("value", [None, "1.0", [1.0], object(), {"reason": "no score"}, {"score": "high"}, b"1"])
def test_anything_else_is_refused_naming_function_and_mode(value: Any) -> None:
    with pytest.raises(ValueError, match=r"'reward' \(pointwise mode\) returned") as caught:
        returning(value)
    assert isinstance(caught.value, RewardError), "in a run it is a failure of that record"


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_no_verdict(score: float) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        returning(score)
    with pytest.raises(ValueError, match="not a finite number"):
        returning(EvaluateResult(score=score))
    assert not returning(EvaluateResult(score=score, is_score_valid=False)).is_score_valid


# ── batch ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_batch_reward_judges_all_rollouts() -> None:
    rollouts: Any = [TURNS, [*TURNS[:1], {"role": "assistant", "content": "four"}]]
    assert [result.score for result in longest(rollouts)] == [0.0, 1.0]
    assert [result.score for result in longest(rollouts_messages=rollouts)] == [0.0, 1.0]


def test_a_batch_reward_may_return_numbers_like_a_pointwise_one() -> None:
    @reward_function(mode="batch")
    def group(rollouts_messages: list[list[Message]], **kwargs: Any) -> Any:
        return [1, 0.25]

    found = group(rollouts_messages=[TURNS, TURNS])  # type: ignore[no-untyped-call]  # it returns Any
    assert [result.score for result in found] == [1.0, 0.25]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.0, "returned a float"),
        ([EvaluateResult(score=1.0)], "1 results for 2 rollouts"),
        ([{"score": 1.0}, "1.0"], "returned a str"),
        ([1.0, math.inf], "not a finite number"),
        ([{"score": 1.0}, {"score": math.nan}], "not a finite number"),
    ],
)
def test_a_batch_reward_must_return_one_result_a_rollout(value: Any, message: str) -> None:
    @reward_function(mode="batch")
    def group(rollouts_messages: list[list[Message]], **kwargs: Any) -> Any:
        return value

    with pytest.raises(ValueError, match=rf"'group' \(batch mode\).*{message}"):
        group(rollouts_messages=[TURNS, TURNS])  # type: ignore[no-untyped-call]  # it returns Any


def test_a_bad_rollout_is_named() -> None:
    with pytest.raises(ValueError, match=r"rollouts_messages\[1\]"):
        longest(rollouts_messages=[TURNS, [{"content": "x"}]])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"^Input 'rollouts_messages' failed Pydantic validation"):
        longest(rollouts_messages="text")  # type: ignore[arg-type]


# ── async ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_async_rewards_are_awaited_and_checked() -> None:
    @reward_function
    async def good(messages: list[Message], **kwargs: Any) -> float:
        return float(messages[-1].content == "4")

    @reward_function
    async def bad(messages: list[Message], **kwargs: Any) -> dict[str, Any]:
        return {"reason": "no score"}

    @reward_function(mode="batch")
    async def group(rollouts_messages: list[list[Message]], **kwargs: Any) -> Sequence[dict[str, Any]]:
        return [{"score": index} for index, _ in enumerate(rollouts_messages)]

    assert is_async(good) and not is_async(exact)
    assert (await good(messages=TURNS)).score == 1.0
    assert [result.score for result in await group([TURNS, TURNS])] == [0.0, 1.0]
    with pytest.raises(ValueError, match="'bad'"):
        await bad(messages=TURNS)


async def test_an_object_with_an_async_call_is_async() -> None:
    class Judge:
        async def __call__(self, messages: list[Message], **kwargs: Any) -> float:
            return 1.0

    reward: Any = reward_function(Judge())
    assert is_async(Judge()) and is_async(functools.partial(Judge()))
    assert (await reward(messages=TURNS)).score == 1.0


# ── resources ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Counter:
    """A resource that counts what is done to it."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def setup(self) -> None:
        self.events.append("setup")

    def cleanup(self) -> None:
        self.events.append("cleanup")

    def get_client(self) -> str:
        return "client"


def test_resources_are_set_up_at_the_first_call_and_handed_over() -> None:
    counter = Counter()

    @reward_function(resources={"llm": [counter]})
    def reward(messages: list[Message], resources: dict[str, list[str]], **kwargs: Any) -> bool:
        return resources == {"llm": ["client"]}

    call: Any = reward
    assert counter.events == []
    assert [call(messages=TURNS).score for _ in range(3)] == [1.0, 1.0, 1.0]
    assert counter.events == ["setup"]
    assert call._reward_function_resources == {"llm": [counter]}
    assert call(messages=TURNS, resources={}).score == 0.0, "a caller may hand over its own"


def test_resources_are_cleaned_up_when_the_process_ends(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "from reward_kit import reward_function\n"
        f"log = Path({str(tmp_path / 'log')!r})\n"
        "class R:\n"
        "    def setup(self): pass\n"
        "    def cleanup(self): log.write_text('cleaned up')\n"
        "    def get_client(self): return 1\n"
        "@reward_function(resources={'r': [R()]})\n"
        "def reward(messages, resources, **kwargs): return resources['r'][0]\n"
        "assert reward(messages=[{'role': 'user'}]).score == 1.0 and not log.exists()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "log").read_text() == "cleaned up"


# ── marks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

Chosen: TypeAlias = Operator[Callable[..., float] | str]


class Kinds:
    Chosen: TypeAlias = Operator[Callable[..., float] | str]


def marked(  # noqa: PLR0913, PLR0917 - one for each way to write a mark
    messages: list[Message],
    plain: str | None = None,
    marked: Operator[str | None] = None,
    alias: Chosen | None = None,
    by_attribute: Optional[Kinds.Chosen] = None,  # noqa: UP045
    quoted: "Operator[Turn] | None" = None,  # noqa: UP037
    inside: Optional["Operator[str]"] = None,  # noqa: UP037, UP045
    with_unknown: Chosen | Turn = "",
    unknown: list[Turn] | None = None,
    unknown_path: Annotated[Turn, BelowFolder("folder")] = None,
    path: Annotated[str | None, BelowFolder("base")] = None,
    optional_path: Annotated[str, BelowFolder("base")] | None = None,
    **kwargs: Any,
) -> float:
    return 1.0


class Judging:
    def __call__(self, messages: list[Message], judge: Operator[str | None] = None, **kwargs: Any) -> float:
        return 1.0


def test_a_mark_is_found_however_it_is_written() -> None:
    operators = {"marked", "alias", "by_attribute", "quoted", "inside", "with_unknown", "unknown_path", "base"}
    for reward in (marked, functools.partial(marked, plain="x"), reward_function(marked)):
        marks = marks_of(reward)
        assert marks.operators == operators
        assert marks.below == {"path": BelowFolder("base"), "optional_path": BelowFolder("base")}


def test_objects_partials_and_wrapped_functions_carry_their_marks() -> None:
    judging: Any = Judging()
    kinds: list[Any] = [judging, functools.partial(judging), reward_function(judging)]
    kinds += [reward_function(functools.partial(judging)), judging.__call__, reward_function(reward_function(judging))]
    for reward in kinds:
        assert marks_of(reward).operators == {"judge"}


def test_marks_survive_without_the_future_import(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from reward_kit import BelowFolder, Operator\nfrom typing import Annotated\n\n\n"
        "def judged(messages, fn: Operator[str] = '', file: Annotated[str, BelowFolder('data')] = '', **kwargs):\n"
        "    return 1.0\n"
    )
    marks = marks_of(load_function(f"{tmp_path}/mine.py:judged"))
    assert marks.operators == {"fn", "data"} and marks.below == {"file": BelowFolder("data")}


def rollout_with(**columns: Any) -> Rollout:
    return Rollout.of_conversation(TURNS, "4", columns)


def test_only_params_fill_what_is_marked() -> None:
    @reward_function
    def told(messages: list[Message], judge: Operator[str | None] = None, **kwargs: Any) -> dict[str, Any]:
        return {"score": 1.0, "reason": f"{judge} {sorted(kwargs.keys() - {'ground_truth'})}"}

    call = RewardCall(told)
    with pytest.raises(RewardError, match=r"data give 'judge'.*'told'"):
        call.arguments_of([rollout_with(judge="theirs")])
    assert call.judge(call.arguments_of([rollout_with(judge=None, level=1)])).reason == "None ['level']"
    assert "judge" not in call.columns_named and call.operators == {"judge"}
    mine = RewardCall(told, {"judge": "mine"})
    assert mine.judge(mine.arguments_of([rollout_with(judge="theirs")])).reason == "mine []"
    assert mine.operators == frozenset() and mine.refused({"judge": "theirs"}) is None


def test_a_required_mark_is_filled_by_nothing_else() -> None:
    def told(messages: list[Message], model: Operator[str]) -> float:
        return 1.0

    call = RewardCall(told)
    rollout = rollout_with(model="theirs").model_copy(update={"model": "under-test"})
    assert call.unfilled(["model"]) == ["model"]
    with pytest.raises(RewardError, match=r"needs 'model', which only its params give.*reward\.params\.model"):
        call.judge(call.arguments_of([rollout]))


# ── paths below a folder ─────────────────────────────────────────────────────────────────────────────────────────────


def opened(messages: list[Message], file: Annotated[str | None, BelowFolder("folder")] = None, **kwargs: Any) -> Any:
    return {"score": 1.0, "reason": file}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a file, a folder, and links that lead out of it and back in."""
    (tmp_path / "secret").write_text("s")
    (tmp_path / "folder-beside").mkdir()
    (tmp_path / "folder-beside" / "a").write_text("s")
    made = tmp_path / "folder"
    (made / "sub").mkdir(parents=True)
    (made / "a").write_text("a")
    (made / "out").symlink_to(tmp_path)
    (made / "passwd").symlink_to("/etc/passwd")
    (made / "back").symlink_to(tmp_path / "folder" / "sub")
    return made


def path_of(value: Any, params: dict[str, Any]) -> Any:
    call = RewardCall(opened, params)
    return call.arguments_of([rollout_with(file=value)])["file"]


@pytest.mark.parametrize("value", ["a", "sub/../a", "./a", "back/../a", "sub", "not/there", "back"])
def test_a_path_below_the_folder_is_taken_below_it(value: str, folder: Path) -> None:
    found = Path(path_of(value, {"folder": str(folder)}))
    assert found.is_absolute() and found == (folder / value).resolve() and folder.resolve() in found.parents


@pytest.mark.parametrize(
    "value",
    [
        "..", ".", "", "../secret", "sub/../../secret", "/etc/passwd", "../folder-beside/a", "out/secret", "passwd",
        "out/folder-beside/a", "a\0", "\0", b"a", 4, True, ["a"], {"a": 1}, "../folder", "~root/../../secret",
    ],
)  # fmt: skip
def test_no_other_path_is(value: Any, folder: Path) -> None:
    with pytest.raises(RewardError, match=r"data give 'file'.*no path below.*`reward\.params\.folder`"):
        path_of(value, {"folder": folder})


@given(st.lists(st.sampled_from(["..", ".", "", "a", "sub", "out", "back", "passwd", "folder", "/", "\0"]), max_size=8))
def test_no_walk_leads_out_of_the_folder(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    top = tmp_path_factory.mktemp("walk") / "folder"
    (top / "sub").mkdir(parents=True)
    (top / "out").symlink_to(top.parent)
    (top / "passwd").symlink_to("/etc/passwd")
    (top / "back").symlink_to("sub")
    try:
        found = path_of("/".join(steps), {"folder": str(top)})
    except RewardError:
        return
    assert top.resolve() in Path(found).resolve().parents


def test_without_the_folder_the_data_name_no_path(folder: Path) -> None:
    with pytest.raises(RewardError, match=r"data give 'file'.*Set `reward\.params\.folder`.*or `reward\.params\.file`"):
        path_of("a", {})
    with pytest.raises(RewardError, match="data give 'folder'"):
        RewardCall(opened).arguments_of([rollout_with(file="a", folder=str(folder))])
    assert path_of(None, {}) is None
    call = RewardCall(opened, {"file": "/etc/hosts"})
    assert call.judge(call.arguments_of([rollout_with(file="../../x")])).reason == "/etc/hosts"


# ── before the end ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_raised_as_a_verdict_anywhere_below_a_reward_is_what_the_call_returns() -> None:
    def read(messages: list[Message]) -> str:
        if not messages[-1].text:
            raise EarlyVerdict(EvaluateResult(score=0.25, reason="nothing to read"))
        return messages[-1].text

    @reward_function
    def judge(messages: list[Message], **kwargs: Any) -> float:
        return float(len(read(messages)))

    @reward_function
    async def judge_async(messages: list[Message], **kwargs: Any) -> float:
        return float(len(read(messages)))

    for text, score in (("", 0.25), ("four", 4.0)):
        turn = [Message(role="assistant", content=text)]
        assert (judge(turn).score, asyncio.run(judge_async(turn)).score) == (score, score)
