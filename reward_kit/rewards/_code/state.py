# SPDX-License-Identifier: Apache-2.0
"""Whether code may keep something from one test to the next, as read from its source.

Each test is judged as if nothing had run before it. Where the source shows that nothing can be kept, tests share a
process, for a fork for each of them would cost several times what they do. Wherever it does not show that, they do not.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import TypeAlias

__all__ = ["may_keep_state"]

_STATELESS = frozenset(
    """
    __future__ abc bisect cmath collections copy dataclasses datetime enum fractions functools heapq itertools json math
    numbers numpy operator random re string sys textwrap time typing
    """.split()  # noqa: SIM905 - one word per line would be a page
)
"""Modules in which code can change nothing but by what is looked for here."""
_REACHING = frozenset(
    """
    attrgetter breakpoint compile delattr dump eval exec fromfile getattr globals help load locals memmap methodcaller
    open save savetxt savez savez_compressed seed set_printoptions set_state setattr setbufsize seterr seterrcall
    setstate tofile vars
    """.split()  # noqa: SIM905 - one word per line would be a page
)
"""Names by which something that lasts can be reached unseen, or be set."""
_OF_SYS = frozenset({"exit", "maxsize", "setrecursionlimit", "stdin", "stdout", "stderr"})
_OF_STREAMS = frozenset({"buffer", "flush", "read", "readline", "readlines", "write", "writelines"})
_DUNDERS = frozenset({"__name__", "__init__"})
_PLAIN_DECORATORS = frozenset({"staticmethod", "classmethod", "property", "dataclass", "total_ordering"})
_MAKING_CONSTANTS = frozenset({"float", "int", "namedtuple", "tuple", "frozenset"})
_LOOKING = frozenset(
    "all any dict enumerate len list max min range reversed set sorted sum tuple zip".split()  # noqa: SIM905 - shorter
)
_LOOKING_METHODS = frozenset({"count", "get", "index", "items", "join", "keys", "values"})
_LONGEST = 50_000
"""Characters of a source that is looked at: to look at more would cost more than it saves."""
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@functools.lru_cache(maxsize=256)
def may_keep_state(code: str, *, program: bool) -> bool:
    """Whether a test could find what an earlier one left. A `program` begins anew each time, with all that it makes."""
    if len(code) > _LONGEST:
        return True
    try:
        tree = ast.parse(code)
        source = _Source(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    if any(map(source.reaches_out, source.nodes)) or source.hands_modules_about():
        return True
    return not program and (any(map(source.lasts, _of_module(tree.body))) or source.keeps())


class _Source:
    """A source, with the names that it gives a meaning to where it is loaded."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes = list(ast.walk(tree))
        imports = [each for each in self.nodes if isinstance(each, (ast.Import, ast.ImportFrom))]
        self.imported = {alias.asname or alias.name.partition(".")[0] for each in imports for alias in each.names}
        defined = [each for each in _of_module(tree.body) if isinstance(each, (*_FUNCTIONS[:2], ast.ClassDef))]
        self.defined = {each.name for each in defined}
        self.tables = self._tables(tree)

    def _tables(self, tree: ast.Module) -> set[str]:
        """Names of lists, sets and dicts of constants that the code only reads."""
        found: set[str] = set()
        for each in tree.body:
            match each:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_table(value):
                    found.add(name)
        read: set[int] = set()
        for node in self.nodes:
            read |= {id(each) for each in _read_in(node)}
        changed = {
            each.id for each in self.nodes
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and id(each) not in read
        }  # fmt: skip
        return found - changed

    def lasts(self, node: ast.stmt) -> bool:
        """Whether a statement of a module may make something that its functions can change."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) if name in self.tables:
                return False
        return _lasts(node)

    def reaches_out(self, node: ast.AST) -> bool:  # noqa: PLR0911 - one per kind
        """Whether a part of the source may leave something in the interpreter, or outside of it."""
        match node:
            case ast.Import(names=names):
                return not all(each.name in (*_STATELESS, "collections.abc") for each in names)
            case ast.ImportFrom(module=module, names=names):
                known = module in (*_STATELESS - {"sys"}, "collections.abc")
                return not known or not _REACHING.isdisjoint(each.name for each in names)
            case ast.Name(id=name):
                return _is_reaching(name)
            case ast.Attribute(value=ast.Name(id="sys"), attr=name, ctx=context):
                return name not in _OF_SYS or not isinstance(context, ast.Load)
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys")), attr=name):
                return name not in _OF_STREAMS
            case ast.Attribute(value=value, attr=name, ctx=context):
                stored = not isinstance(context, ast.Load) and isinstance(value, ast.Name)
                return _is_reaching(name) or (stored and isinstance(value, ast.Name) and value.id in self.imported)
        return False

    def hands_modules_about(self) -> bool:
        """Whether a module is used as a value, and not only for what is in it."""
        modules = {
            alias.asname or alias.name for each in self.nodes if isinstance(each, ast.Import) for alias in each.names
        }
        used = [each for each in self.nodes if isinstance(each, ast.Name) and each.id in modules]
        asked = [each for each in self.nodes if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name)]
        return len(used) > sum(each.value.id in modules for each in asked if isinstance(each.value, ast.Name))

    def keeps(self) -> bool:
        """Whether a function may change what lasts: names of the module, its own defaults, classes and functions."""
        functions = [node for node in self.nodes if isinstance(node, _FUNCTIONS)]
        if any(map(_has_changing_defaults, functions)):
            return True
        within = [node for each in functions for node in ast.walk(each)]
        if any(isinstance(node, ast.Global) for node in within):
            return True
        if any(isinstance(node, ast.Attribute) and node.attr == "setrecursionlimit" for node in within):
            return True
        roots = [_root(node) for node in within if _is_stored_in(node)]
        if not all(isinstance(root, ast.Name) and root.id not in self.defined | {"cls"} for root in roots):
            return True
        others = any(isinstance(root, ast.Name) and root.id != "self" for root in roots)
        return others and self._hands_classes_about()

    def _hands_classes_about(self) -> bool:
        """Whether a class or function of the code is used as a value, so that it may go by other names."""
        called = {id(node.func) for node in self.nodes if isinstance(node, ast.Call)}
        hints = [_hints(node) for node in self.nodes]
        hinted = {id(each) for hint in hints for part in hint for each in ast.walk(part)}
        used = [node for node in self.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        return any(node.id == "type" or (node.id in self.defined and id(node) not in called | hinted) for node in used)


def _is_table(value: ast.expr) -> bool:
    """Whether a value is a list, a set or a dict of constants."""
    match value:
        case ast.List(elts=items) | ast.Set(elts=items):
            return all(map(_is_constant, items))
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and _is_constant(key) for key in keys) and all(map(_is_constant, values))
    return False


def _read_in(node: ast.AST) -> list[ast.expr]:
    """The parts of an expression or a statement that it does nothing with but look at what they hold."""
    match node:
        case ast.Subscript(value=value, ctx=ast.Load()):
            return [value]
        case ast.Compare(left=left, comparators=comparators):
            return [left, *comparators]
        case ast.For(iter=value) | ast.comprehension(iter=value):
            return [value]
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _LOOKING:
            return arguments
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _LOOKING_METHODS:
            return [value]
    return []


def _is_reaching(name: str) -> bool:
    return name in _REACHING or (name.startswith("__") and name not in _DUNDERS)


def _hints(node: ast.AST) -> list[ast.expr]:
    """Where a name says only what kind of value there is."""
    match node:
        case ast.arg(annotation=ast.expr() as hint) | ast.AnnAssign(annotation=hint):
            return [hint]
        case ast.FunctionDef(returns=ast.expr() as hint) | ast.AsyncFunctionDef(returns=ast.expr() as hint):
            return [hint]
    return []


def _of_module(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that are run as the code is loaded, those of its classes too; not of a guarded main program."""
    for node in body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'":
            continue
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _of_module(node.body)


def _lasts(node: ast.stmt) -> bool:  # noqa: PLR0911 - one per kind
    """Whether a statement of a module may make something that its functions can change."""
    match node:
        case ast.FunctionDef(decorator_list=decorators) | ast.AsyncFunctionDef(decorator_list=decorators):
            return not all(ast.unparse(each) in _PLAIN_DECORATORS for each in decorators)
        case ast.ClassDef(decorator_list=decorators, keywords=[], bases=bases):
            plain = all(ast.unparse(each) in _PLAIN_DECORATORS for each in decorators)
            return not (plain and all(isinstance(base, ast.Name) for base in bases))
        case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
            return False
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="sys"), attr="setrecursionlimit"))):
            return False
        case ast.Assign(targets=targets, value=value):
            return not (all(isinstance(each, ast.Name) for each in targets) and _is_constant(value))
        case ast.AnnAssign(target=ast.Name(), value=made):
            return made is not None and not _is_constant(made)
    return True


def _is_constant(value: ast.expr) -> bool:
    """Whether a value is one that nothing can change."""
    match value:
        case ast.Constant() | ast.Lambda():
            return True
        case ast.Tuple(elts=parts) | ast.Call(func=ast.Name(id=("tuple" | "frozenset")), args=parts, keywords=[]):
            return all(map(_is_constant, parts))
        case ast.UnaryOp(operand=operand):
            return _is_constant(operand)
        case ast.BinOp(left=left, right=right):
            return _is_constant(left) and _is_constant(right)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return name in _MAKING_CONSTANTS and all(map(_is_text, arguments))
    return False


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) or (isinstance(value, ast.List) and all(map(_is_text, value.elts)))


def _has_changing_defaults(function: _Function) -> bool:
    arguments = function.args
    return not all(map(_is_constant, [*arguments.defaults, *filter(None, arguments.kw_defaults)]))


def _is_stored_in(node: ast.AST) -> bool:
    """Whether something is put into another thing: `x.a = …`, `x[i] += …`, `del x[i]`."""
    return isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)


def _root(node: ast.AST) -> ast.AST:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node
