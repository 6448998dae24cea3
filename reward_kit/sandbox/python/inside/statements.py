# SPDX-License-Identifier: Apache-2.0
"""What a test compares a call of the code with reads what the call was given as it was before the statement.

    assert solve(xs) == reference(xs)     the code cannot pass by changing `xs`, in whatever way that is written

`Ordering` rewrites a test program: where several expressions are worked out together (a comparison, a difference, the
arguments of a call, the parts of a tuple), each of them reports to `Statement`. That takes back what the code has
changed while an expression is worked out that does not call the code, and brings it again afterwards.
Standard library only.
"""

from __future__ import annotations

import ast
import builtins
import copy
import sys
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from reward_kit.sandbox.python.plain import changeable, encode

__all__ = ["Ordering", "Statement"]

_BEGIN, _OPEN, _DONE = "__reward_kit_begin__", "__reward_kit_open__", "__reward_kit_done__"
_ALL, _APPLY = "__reward_kit_all__", "__reward_kit_apply__"
_READING_METHODS = frozenset(
    """
    bit_count bit_length copy count difference endswith find get index intersection isdisjoint issubset issuperset items
    join keys lower max mean min prod replace rfind rindex shape split startswith strip sum title tolist union upper
    values
    """.split()  # noqa: SIM905 - one word per line would be a page
)
"""Methods of plain values, by which no code is called."""

_LOOKING = frozenset({"dict", "frozenset", "len", "list", "repr", "set", "str", "tuple"})
"""What only shows what its argument holds."""


# ── as the program runs ──────────────────────────────────────────────────────────────────────────────────────────────


class _Part(NamedTuple):
    value: Any
    is_reference: bool
    """Whether it is worked out beside a call of the code, and without one."""
    is_called: bool
    """Whether the code was called for it."""


class _Opened(NamedTuple):
    parts: list[_Part]
    """What was worked out before it."""
    is_name: bool
    """Whether it only names something: that is what has become of it."""
    called: int
    """How often the code had been called."""
    taken_back: bool


class Statement:
    """What the code has changed of the test's own things since the test's present statement began."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.called = 0
        """How often the code was called."""
        self._begun: list[tuple[FrameType, dict[int, tuple[Any, Any]]]] = []
        """The statements that are being run, one in another; and by each, what changed things held before it."""
        self._after: list[tuple[Any, Any]] | None = None

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """What a rewritten program calls."""
        return {_BEGIN: self._begin, _OPEN: self._open, _DONE: self._done, _ALL: self._all, _APPLY: self._apply}

    def changes(self, thing: Any) -> None:
        """Note what something holds, before it is changed as the code has changed it."""
        for _, before in self._begun:
            before.setdefault(id(thing), (thing, _held(thing)))

    def bring_again(self) -> None:
        """Let everything be as the code has changed it."""
        if self._after is not None:
            for thing, held in self._after:
                _hold(thing, held)
            self._after = None

    def _begin(self) -> None:
        here = sys._getframe(1)
        self._leave(here)
        if self._begun and self._begun[-1][0] is here:
            self._begun.pop()
        self._begun.append((here, {}))

    def _leave(self, here: FrameType) -> None:
        """Forget the statements that are over."""
        if self._begun and self._begun[-1][0] is not here:
            running = set()
            frame: FrameType | None = here
            while frame is not None:
                running.add(id(frame))
                frame = frame.f_back
            while self._begun and id(self._begun[-1][0]) not in running:
                self._begun.pop()

    def _take_back(self) -> bool:
        """Let everything be as it was before the statement; False where it is."""
        before = list(self._begun[-1][1].values()) if self._begun else []
        if self._after is not None or not before:
            return False
        self._after = [(thing, _held(thing)) for thing, _ in before]
        for thing, held in before:
            _hold(thing, held)
        return True

    def _open(self, parts: list[_Part], may_be_reference: bool, is_name: bool) -> _Opened:
        """An expression begins, of those that are worked out together; of the others, one may call the code."""
        self._leave(sys._getframe(1))
        is_reference = not is_name and (may_be_reference or any(part.is_called for part in parts))
        return _Opened(parts, is_name, self.called, is_reference and self._take_back())

    def _done(self, opened: _Opened, value: Any) -> list[_Part]:
        """Its value, with those before it."""
        if opened.taken_back:
            self.bring_again()
        is_called = self.called > opened.called
        return [*opened.parts, _Part(value, not (opened.is_name or is_called), is_called)]

    def _all(self, parts: list[_Part]) -> list[Any]:
        """All values; those for which the code was not called as they were before the statement."""
        given = [part.value for part in parts if part.is_called]
        if not given or not self._take_back():
            return [part.value for part in parts]
        try:
            return [
                _kept(part.value) if part.is_reference and not _is_one_of(part.value, given) else part.value
                for part in parts
            ]
        finally:
            self.bring_again()

    def _apply(self, function: Callable[..., Any], names: Sequence[str], parts: list[_Part]) -> Any:
        """Call a function, the last arguments by these names."""
        values = self._all(parts)
        first = len(values) - len(names)
        return function(*values[:first], **dict(zip(names, values[first:], strict=True)))


def _is_one_of(value: Any, others: list[Any]) -> bool:
    return any(value is each for each in others)


def _kept(value: Any) -> Any:
    """A copy of plain data that can be changed."""
    try:
        encode(value)
    except TypeError:
        return value
    return copy.deepcopy(value) if changeable(value) else value


def _held(thing: Any) -> Any:
    """What something holds."""
    if isinstance(thing, (list, deque)):
        return list(thing)
    if isinstance(thing, (dict, set, bytearray)):
        return thing.copy()
    return thing.copy() if type(thing).__module__ == "numpy" else dict(vars(thing))


def _hold(thing: Any, held: Any) -> None:
    """Have something hold this again."""
    if isinstance(thing, (list, bytearray)):
        thing[:] = held
    elif isinstance(thing, deque):
        thing.clear()
        thing.extend(held)
    elif type(thing).__module__ == "numpy":
        thing[...] = held
    else:
        inner = thing if isinstance(thing, (dict, set)) else vars(thing)
        inner.clear()
        inner.update(held)


# ── the program ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Ordering(ast.NodeTransformer):
    """Makes a program report which expressions it works out together, and where a statement begins."""

    def __init__(self, own: set[str]) -> None:
        """Of the functions that the program defines itself, or imports from elsewhere than the code."""
        self._own = own
        self._made = 0

    def visit(self, node: ast.AST) -> Any:
        """A statement with something to report begins with that."""
        before = self._made
        found = super().visit(node)
        if isinstance(node, ast.stmt) and self._made > before:
            return [ast.copy_location(ast.Expr(_called(_BEGIN)), node), found]
        return found

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Comparisons, but for identity."""
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops) or not _is_reported(operands):
            return node
        names = [f"_{number}" for number in range(len(operands))]
        values = _loaded(names)
        compared = ast.Compare(values[0], node.ops, values[1:])
        return ast.copy_location(ast.Call(_function(names, compared), [self._all(operands)], []), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """A difference of two, as in `abs(solve(xs) - reference(xs)) < 1e-6`."""
        self.generic_visit(node)
        if not _is_reported([node.left, node.right]):
            return node
        left, right = _loaded(["a", "b"])
        made = _function(["a", "b"], ast.BinOp(left, node.op, right))
        return ast.copy_location(ast.Call(made, [self._all([node.left, node.right])], []), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """The arguments of a call."""
        self.generic_visit(node)
        operands = [*node.args, *(keyword.value for keyword in node.keywords)]
        if not _is_reported(operands) or any(isinstance(each, ast.Starred) for each in node.args):
            return node
        names = [keyword.arg for keyword in node.keywords]
        if None in names:
            return node
        if not names:
            node.args = [self._all(operands)]
            return node
        given = ast.Tuple([ast.Constant(name) for name in names], ast.Load())
        return ast.copy_location(_called(_APPLY, node.func, given, self._parts(operands)), node)

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        """Several values: `got, expected = solve(xs), reference(xs)`."""
        self.generic_visit(node)
        return self._several(node)

    def visit_List(self, node: ast.List) -> ast.expr:
        """A list of values."""
        self.generic_visit(node)
        return self._several(node)

    def _several(self, node: ast.Tuple | ast.List) -> ast.expr:
        starred = any(isinstance(each, ast.Starred) for each in node.elts)
        if starred or not isinstance(node.ctx, ast.Load) or sum(map(_calls, node.elts)) < 2:  # noqa: PLR2004 - several
            return node
        node.elts = [self._all(node.elts, names={id(each) for each in node.elts if not _works_out(each)})]
        return node

    def _all(self, operands: list[ast.expr], names: Collection[int] = ()) -> ast.Starred:
        return ast.Starred(_called(_ALL, self._parts(operands, names)), ast.Load())

    def _parts(self, operands: list[ast.expr], names: Collection[int] = ()) -> ast.expr:
        """The operands, each with its report."""
        self._made += 1
        calling = [self._may_call_code(each) for each in operands]
        parts: ast.expr = ast.List([], ast.Load())
        for number, operand in enumerate(operands):
            beside = any(calling[:number] + calling[number + 1 :])
            opened = _called(_OPEN, parts, ast.Constant(beside), ast.Constant(id(operand) in names))
            parts = _called(_DONE, opened, operand)
        return parts

    def _may_call_code(self, node: ast.AST) -> bool:
        calls = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
        return not all(map(self._is_known, calls))

    def _is_known(self, function: ast.expr) -> bool:
        """Whether a function is not the code's, by how it is called."""
        match function:
            case ast.Name(id=name):
                return name in self._own or hasattr(builtins, name) or name.startswith("__reward_kit")
            case ast.Attribute(value=ast.Name(id=module)) if module in self._own:
                return True
            case ast.Attribute(attr=name):
                return name in _READING_METHODS
        return isinstance(function, ast.Lambda)


def _is_reported(operands: list[ast.expr]) -> bool:
    """Whether one calls something, and another one is no constant."""
    changing = [each for each in operands if not _is_constant(each)]
    return len(changing) > 1 and any(map(_calls, changing))


def _is_constant(node: ast.expr) -> bool:
    return not any(isinstance(each, (ast.Name, ast.Call, ast.Await)) for each in ast.walk(node))


def _calls(node: ast.expr) -> bool:
    return any(isinstance(each, ast.Call) for each in ast.walk(node))


def _works_out(node: ast.expr) -> bool:
    """Whether it gives more than what something holds, as a name alone and `list(xs)` do."""
    calls = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    return not all(isinstance(each, ast.Name) and each.id in _LOOKING for each in calls)


def _called(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _loaded(names: list[str]) -> list[ast.expr]:
    return [ast.Name(name, ast.Load()) for name in names]


def _function(names: list[str], body: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, []), body)
