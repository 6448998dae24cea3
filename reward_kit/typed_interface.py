# SPDX-License-Identifier: Apache-2.0
"""The interface between a reward and its callers: `@reward_function`, which checks what goes in and what comes out.

    a call → dicts become `Message`s → your function → what it returned becomes an `EvaluateResult`

The signature is read once, when the function is decorated; a call costs a few microseconds more than the bare one.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import re
import sys
import typing
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    SupportsFloat,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from pydantic import TypeAdapter, ValidationError

from reward_kit.errors import RewardError
from reward_kit.models import EvaluateResult, Message
from reward_kit.process_resources import ProcessResources, Resource
from reward_kit.utils.trusted import trusted

__all__ = [
    "OPERATORS",
    "BelowFolder",
    "EarlyVerdict",
    "EvaluationMode",
    "Marks",
    "Mode",
    "Operator",
    "Resource",
    "RewardContractError",
    "as_messages",
    "as_result",
    "checked",
    "declares_messages",
    "is_async",
    "marks_of",
    "name_of",
    "resolved_annotation",
    "reward_function",
    "signature_of",
    "takes_number",
]

Mode: TypeAlias = Literal["pointwise", "batch"]
"""Judge one rollout a call, or all rollouts of a sample at once."""
EvaluationMode: TypeAlias = Mode
"""The inherited name of `Mode`."""
Returned: TypeAlias = EvaluateResult | Mapping[str, Any] | SupportsFloat
"""What a pointwise reward may return: a result, a dict that validates as one, or a bare number or bool."""
Verdicts: TypeAlias = Sequence[EvaluateResult | Mapping[str, Any]]
"""What a batch reward may return: one result a rollout."""

_scored = trusted(EvaluateResult)

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
_Async: TypeAlias = Callable[P, Coroutine[Any, Any, R]]
_MESSAGES = TypeAdapter(list[Message])
_ONLY_MESSAGES = {Message}


class _OperatorsAlone(NamedTuple):
    """The mark that `Operator` puts on a type."""


class BelowFolder(NamedTuple):
    """The mark of a path that data may name: `Annotated[str | None, BelowFolder("folder")]`.

    A column or a field of a request may give a relative path; it is taken below the folder that the params name under
    `folder`. Without that param, only the params may give the path.
    """

    folder: str


Operator: TypeAlias = Annotated[T, _OperatorsAlone()]
"""The type of a parameter that only the person who runs the reward may fill, by its `params`.

    def correct(messages, ground_truth, judge: Operator[Callable[..., float] | str | None] = None, **kwargs): ...

So is marked what chooses code, a command, a file or an address on the machine that judges, or a model that is paid for.
No column of a dataset, no field of a request and no fact of the answer ever fills it, whoever the caller is.
"""

OPERATORS: Any = Annotated[Any, _OperatorsAlone()]
"""`Operator[Any]` as a value, for a signature that is put together while the program runs."""


class RewardContractError(RewardError, ValueError):
    """A reward was given, or returned, something that its contract does not allow."""


class EarlyVerdict(Exception):
    """What a reward comes to before its end. Raised anywhere below a reward, its `result` is what the call returns."""

    def __init__(self, result: EvaluateResult) -> None:
        super().__init__(result.reason)
        self.result = result


# ── the decorator ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Options(TypedDict, total=False):
    id: str | None
    requirements: list[str] | None
    resources: Mapping[str, Sequence[Resource]] | None
    concurrency: int | None
    timeout: float | None


class _Pointwise(Protocol):
    @overload
    def __call__(self, func: Callable[P, Coroutine[Any, Any, Returned]], /) -> _Async[P, EvaluateResult]: ...
    @overload
    def __call__(self, func: Callable[P, Returned], /) -> Callable[P, EvaluateResult]: ...


class _Batch(Protocol):
    @overload
    def __call__(self, func: Callable[P, Coroutine[Any, Any, Verdicts]], /) -> _Async[P, list[EvaluateResult]]: ...
    @overload
    def __call__(self, func: Callable[P, Verdicts], /) -> Callable[P, list[EvaluateResult]]: ...


@overload
def reward_function(
    _func: Callable[P, Coroutine[Any, Any, Returned]],
    *,
    mode: Literal["pointwise"] = "pointwise",
    **options: Unpack[_Options],
) -> _Async[P, EvaluateResult]: ...
@overload
def reward_function(
    _func: Callable[P, Returned], *, mode: Literal["pointwise"] = "pointwise", **options: Unpack[_Options]
) -> Callable[P, EvaluateResult]: ...
@overload
def reward_function(
    _func: None = None, *, mode: Literal["pointwise"] = "pointwise", **options: Unpack[_Options]
) -> _Pointwise: ...
@overload
def reward_function(_func: None = None, *, mode: Literal["batch"], **options: Unpack[_Options]) -> _Batch: ...
@overload
def reward_function(
    _func: Callable[..., Any], *, mode: Literal["batch"], **options: Unpack[_Options]
) -> Callable[..., Any]: ...
def reward_function(
    _func: Callable[..., Any] | None = None,
    *,
    mode: Mode = "pointwise",
    id: str | None = None,
    requirements: list[str] | None = None,
    resources: Mapping[str, Sequence[Resource]] | None = None,
    concurrency: int | None = None,
    timeout: float | None = None,
) -> Any:
    """Make a function a reward: `@reward_function`, or `@reward_function(mode="batch", …)`.

    The arguments are passed by name, so the function takes `**kwargs` for those it does not use. `id` is its name where
    it is deployed (by default the name of the function), and `requirements` are the packages that it needs there.
    `resources` map a kind to wrappers that are set up at the first call; the function receives
    `resources={kind: [client, …]}`. `concurrency` and `timeout` (seconds per call) are what the reward asks of a run.
    """
    if mode not in typing.get_args(Mode):
        raise ValueError(f"Unknown mode {mode!r}; use 'pointwise' (one rollout a call) or 'batch' (all of a sample).")

    def decorate(func: Callable[..., Any]) -> Any:
        _require_kwargs(func)
        call: Any = checked(func, mode, resources)
        call._reward_function_id = id or name_of(func)
        call._reward_function_requirements = requirements
        call._reward_function_mode = mode
        call._reward_function_resources = dict(resources or {})
        call._reward_function_concurrency = concurrency
        call._reward_function_timeout = timeout
        return call

    return decorate if _func is None else decorate(_func)


def _require_kwargs(func: Callable[..., Any]) -> None:
    signature = signature_of(func)
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values()):
        raise ValueError(
            f"Reward function {name_of(func)!r} must accept **kwargs, because it is handed every column of its sample "
            f"by name. Add **kwargs to its signature, now {name_of(func)}{signature}."
        )


def checked(
    func: Callable[..., Any], mode: Mode = "pointwise", resources: Mapping[str, Sequence[Resource]] | None = None
) -> Callable[..., Any]:
    """`func` with its arguments coerced and its return validated; asynchronous if `func` is."""
    gate = _Gate(func, mode, resources)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        args = gate.admit(args, kwargs)
        try:
            value = func(*args, **kwargs)
        except EarlyVerdict as early:
            value = early.result
        return gate.release(value, args, kwargs)

    @functools.wraps(func)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        args = gate.admit(args, kwargs)
        try:
            value = await func(*args, **kwargs)
        except EarlyVerdict as early:
            value = early.result
        return gate.release(value, args, kwargs)

    wrapper = call_async if is_async(func) else call
    wrapper.__name__ = name_of(func)
    return wrapper


def is_async(func: Callable[..., Any]) -> bool:
    """Whether calling `func` (a function, a partial, or an object with `__call__`) gives something to await."""
    func = _whole(func)
    return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(type(func).__call__)


def name_of(func: Callable[..., Any]) -> str:
    """What to call `func` in messages: its name, a partial's function's, or an object's class."""
    func = _whole(func)
    return str(getattr(func, "__name__", type(func).__name__))


def signature_of(func: Callable[..., Any]) -> inspect.Signature:
    """The signature of `func`, also where an annotation names something that exists only for type checkers."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(func, annotation_format=Format.FORWARDREF)
    return inspect.signature(func)


def _whole(func: Callable[..., Any]) -> Callable[..., Any]:
    """What a partial is a part of."""
    while isinstance(func, functools.partial):
        func = func.func
    return func


class _Gate:
    """What one reward's calls pass through, worked out from its signature once."""

    def __init__(
        self, func: Callable[..., Any], mode: Mode, resources: Mapping[str, Sequence[Resource]] | None
    ) -> None:
        self._name = name_of(func)
        self._batch = mode == "batch"
        self._rollouts_at = _position(func, "rollouts_messages")
        self._conversions = _conversions(func, mode)
        self._resources = ProcessResources(resources) if resources else None

    def admit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments converted: keywords in place, positional ones as returned."""
        for name, position, convert in self._conversions:
            if name in kwargs:
                kwargs[name] = convert(kwargs[name])
            elif position is not None and position < len(args):
                args = (*args[:position], convert(args[position]), *args[position + 1 :])
        if self._resources is not None and "resources" not in kwargs:
            kwargs["resources"] = self._resources.clients()
        return args

    def release(self, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result, or the list of them, that the function's return stands for."""
        if not self._batch:
            return as_result(value, self._name)
        rollouts = kwargs["rollouts_messages"] if "rollouts_messages" in kwargs else args[self._rollouts_at or 0]
        return _as_results(value, self._name, len(rollouts))


# ── what goes in ─────────────────────────────────────────────────────────────────────────────────────────────────────

_Conversion: TypeAlias = tuple[str, int | None, Callable[[Any], Any]]
"""A parameter's name, where it stands among the positional ones, and what its value passes through."""


def _conversions(func: Callable[..., Any], mode: Mode) -> tuple[_Conversion, ...]:
    hints = _hints(func)
    truth = hints.get("ground_truth")
    wanted: dict[str, Callable[[Any], Any]]
    if mode == "batch":
        wanted = {"rollouts_messages": _rollouts_as_dicts if _wants_dicts(hints, "rollouts_messages") else _rollouts}
    else:
        wanted = {"messages": _as_dicts if _wants_dicts(hints, "messages") else as_messages}
    if _mentions(truth, Message):
        wanted["ground_truth"] = _ground_truth if _only_messages(truth) else _ground_truth_if_messages
    return tuple((name, _position(func, name), convert) for name, convert in wanted.items())


def _position(func: Callable[..., Any], name: str) -> int | None:
    parameters = signature_of(func).parameters
    if name not in parameters or parameters[name].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        return None
    return list(parameters).index(name)


def _hints(func: Callable[..., Any]) -> dict[str, Any]:
    """The annotations, resolved where possible: a name imported only for type checkers stays a string."""
    func = _whole(func)
    target = func if inspect.isroutine(func) else type(func).__call__
    try:
        return typing.get_type_hints(target)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return {name: parameter.annotation for name, parameter in signature_of(target).parameters.items()}


class Marks(NamedTuple):
    """Who may fill a reward's parameters, where that is not everybody."""

    operators: frozenset[str] = frozenset()
    """Parameters that only the params fill: those marked `Operator`, and the folders that a `BelowFolder` names."""
    below: Mapping[str, BelowFolder] = {}
    """Parameters that data may fill with a path below a folder of the operator's."""


def marks_of(func: Callable[..., Any]) -> Marks:
    """The marks in the annotations of a reward's parameters."""
    operators: set[str] = set()
    below: dict[str, BelowFolder] = {}
    for name, parameter in signature_of(func).parameters.items():
        for mark in _marks_in(resolved_annotation(func, parameter)):
            if isinstance(mark, BelowFolder):
                below[name] = mark
            else:
                operators.add(name)
    folders = {mark.folder for mark in below.values()}
    return Marks(frozenset(operators | folders), {n: mark for n, mark in below.items() if n not in operators})


def resolved_annotation(func: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The annotation of one parameter; one that names what only type checkers import stays a string."""
    hint = parameter.annotation
    if isinstance(hint, typing.ForwardRef):
        hint = hint.__forward_arg__
    if not isinstance(hint, str):
        return hint
    known = dict(getattr(_written(func), "__globals__", {}))
    try:
        return eval(hint, known)  # as Python does without the future import
    except (NameError, TypeError, AttributeError, SyntaxError):
        return OPERATORS if _may_be_marked(hint, known) else hint


def _written(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose source has the annotations: what decorators wrap, a partial's, or an object's `__call__`."""
    while (inner := inspect.unwrap(_whole(func))) is not func:
        func = inner
    return func if inspect.isroutine(func) else inspect.unwrap(type(func).__call__)


def _may_be_marked(hint: str, known: Mapping[str, Any]) -> bool:
    """Whether an annotation that cannot be resolved has a mark in what can be; if so, only the params fill it."""
    if _MARK_NAME.search(hint):
        return True
    try:
        return bool(_marks_in(eval(hint, {}, _Known(known))))
    except (NameError, TypeError, AttributeError, SyntaxError):
        return False


class _Known(dict[str, Any]):
    """Names of types, in which one that is not there stands for any type."""

    def __missing__(self, name: str) -> Any:
        return vars(builtins).get(name, _AnyType)


class _Accepting(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __getitem__(cls, _: Any) -> Any:
        return cls


class _AnyType(metaclass=_Accepting):
    """What an unknown name stands for: `Unknown`, `unknown.Type`, `Unknown[int]`."""


def takes_number(func: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    """Whether a parameter is declared to take a number or bool, alone or as one choice of a union."""
    return _is_number(resolved_annotation(func, parameter))


def _is_number(hint: Any) -> bool:
    if isinstance(hint, typing.ForwardRef):
        hint = hint.__forward_arg__
    if isinstance(hint, str):
        return _NUMBER_NAME.search(hint) is not None
    if isinstance(hint, TypeVar):
        return any(map(_is_number, (*hint.__constraints__, hint.__bound__)))
    stands_for = getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)  # NewType; `type X = …`
    if stands_for is not None:
        return _is_number(stands_for)
    origin = typing.get_origin(hint)
    if origin in {typing.Union, UnionType, Annotated}:
        return any(map(_is_number, typing.get_args(hint)))
    if origin is Literal:
        return any(isinstance(choice, int) for choice in typing.get_args(hint))
    return isinstance(hint, type) and origin is None and issubclass(hint, int | float)


_NUMBER_NAME = re.compile(r"(?<!\[)\b(int|float|bool)\b")
_MARK_NAME = re.compile(r"\b(Operator\s*\[|BelowFolder\s*\()")


def _marks_in(hint: Any) -> list[_OperatorsAlone | BelowFolder]:
    """The marks anywhere in a type, such as in one choice of a union."""
    if isinstance(hint, str | typing.ForwardRef):
        text = hint if isinstance(hint, str) else hint.__forward_arg__
        return [_OperatorsAlone()] if _MARK_NAME.search(text) else []
    own = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, _OperatorsAlone | BelowFolder)]
    parts = [*typing.get_args(hint), getattr(hint, "__value__", None)]  # the latter: of `type X = …`
    return [*own, *(mark for part in parts if part is not None and part is not hint for mark in _marks_in(part))]


def _mentions(hint: Any, *kinds: type) -> bool:
    """Whether any of `kinds` occurs anywhere in an annotation."""
    if isinstance(hint, typing.ForwardRef):
        hint = hint.__forward_arg__
    if isinstance(hint, str):
        return any(kind.__name__.lower() in hint.lower() for kind in kinds)
    if isinstance(hint, type) and issubclass(hint, kinds):
        return True
    origin = typing.get_origin(hint)
    inside = [*typing.get_args(hint), *([origin] if isinstance(origin, type) else [])]
    return any(_mentions(part, *kinds) for part in inside)


def _wants_dicts(hints: Mapping[str, Any], name: str) -> bool:
    """Whether a parameter is declared to take turns as plain dicts; undeclared, it gets `Message`s."""
    hint = hints.get(name)
    return _mentions(hint, dict, Mapping) and not _mentions(hint, Message)


def declares_messages(func: Callable[..., Any], name: str) -> bool | None:
    """Whether the parameter `name` is declared to take messages; None where nothing is declared."""
    hint = _hints(func).get(name, inspect.Parameter.empty)
    return None if hint is inspect.Parameter.empty else _mentions(hint, Message)


def _only_messages(hint: Any) -> bool:
    """Whether an annotation leaves no choice but a list of messages (or None)."""
    choices = typing.get_args(hint) if typing.get_origin(hint) in {typing.Union, UnionType} else (hint,)
    return all(choice is NoneType or typing.get_args(choice) == (Message,) for choice in choices)


def _validated(name: str, value: Any) -> list[Message]:
    if type(value) is list and {*map(type, value)} <= _ONLY_MESSAGES:
        return value
    try:
        return _MESSAGES.validate_python(value)
    except ValidationError as error:
        details = "; ".join(f"{_place(detail['loc'])}: {detail['msg']}" for detail in error.errors())
        raise RewardContractError(
            f"Input {name!r} failed Pydantic validation: {details}. Give a list of messages, each with a role."
        ) from None


def _place(location: tuple[int | str, ...]) -> str:
    return f"item {'.'.join(map(str, location))}" if location else "the whole"


def as_messages(value: Any) -> list[Message]:
    """A conversation as messages; what is none is a `RewardContractError` that says where."""
    return _validated("messages", value)


def _ground_truth(value: Any) -> list[Message] | None:
    return None if value is None else _validated("ground_truth", value)


def _ground_truth_if_messages(value: Any) -> Any:
    """Coerce what looks like a conversation; anything else is one of the other things the parameter may be."""
    turns = isinstance(value, list) and value != [] and all(isinstance(item, dict) and "role" in item for item in value)
    return _validated("ground_truth", value) if turns else value


def _rollouts(value: Any) -> list[list[Message]]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise RewardContractError(
            f"Input 'rollouts_messages' failed Pydantic validation: it is {value!r}. Give a list of lists of messages."
        )
    return [_validated(f"rollouts_messages[{index}]", messages) for index, messages in enumerate(value)]


def _as_dicts(value: Any) -> list[dict[str, Any]]:
    pairs = zip(value, as_messages(value), strict=True)
    return [given if isinstance(given, dict) else message.model_dump(exclude_unset=True) for given, message in pairs]


def _rollouts_as_dicts(value: Any) -> list[list[dict[str, Any]]]:
    return [_as_dicts(messages) for messages in _rollouts(value)]


# ── what comes out ───────────────────────────────────────────────────────────────────────────────────────────────────


def as_result(value: object, name: str, mode: Mode = "pointwise") -> EvaluateResult:
    """The result that a reward's return stands for. A score that is not a finite number is no verdict: refused."""
    if isinstance(value, (float, int)):  # before the others: asking them is slow
        return _from_number(value, name, mode)
    if isinstance(value, EvaluateResult):
        result = value
    elif isinstance(value, Mapping):
        result = _from_mapping(value, name, mode)
    elif isinstance(value, SupportsFloat):
        return _from_number(value, name, mode)
    else:
        raise _refused(name, mode, f"a {type(value).__name__}")
    if not math.isfinite(result.score) and result.is_score_valid and result.error is None:
        raise _refused(name, mode, _not_finite(result.score))
    return result


def _not_finite(score: float) -> str:
    return f"the score {score!r}, which is not a finite number"


def _from_mapping(value: Mapping[Any, Any], name: str, mode: Mode) -> EvaluateResult:
    try:
        return EvaluateResult.model_validate(dict(value))
    except ValidationError as error:
        details = "; ".join(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors())
        raise _refused(name, mode, f"a dict that is not a result ({details})") from None


def _from_number(value: SupportsFloat, name: str, mode: Mode) -> EvaluateResult:
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # an array, a tensor with several values
        raise _refused(name, mode, f"a {type(value).__name__} that is not a single number ({error})") from None
    if not math.isfinite(score):
        raise _refused(name, mode, _not_finite(score))
    return _scored(score=score)


def _as_results(value: object, name: str, rollouts: int) -> list[EvaluateResult]:
    if not isinstance(value, (list, tuple)):
        raise _refused(name, "batch", f"a {type(value).__name__}")
    if len(value) != rollouts:
        raise _refused(name, "batch", f"{len(value)} results for {rollouts} rollouts")
    return [as_result(item, name, "batch") for item in value]


def _refused(name: str, mode: Mode, got: str) -> RewardContractError:
    if mode == "batch":
        wanted = "a list with one EvaluateResult, dict that validates as one, or finite number per rollout"
    else:
        wanted = "an EvaluateResult, a dict that validates as one, or a finite number"
    return RewardContractError(f"Reward function {name!r} ({mode} mode) returned {got}. Return {wanted}.")
