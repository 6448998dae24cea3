# SPDX-License-Identifier: Apache-2.0
"""The API reference: one page for each public module, written from signatures and docstrings.

Public is what a module's `__all__` names. Docstrings are Markdown, so they are taken as they are; examples with a
prompt (`>>>`) become blocks of their own. Sphinx' autodoc reads another markup, and would import the package with
everything that its extras need.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator
from types import ModuleType

MODULES = {
    "reward_kit": "What most programs need. Each name is imported from `reward_kit` itself.",
    "reward_kit.models": "The values that move through a run, in the order they flow.",
    "reward_kit.errors": "Every exception that the package raises on purpose.",
    "reward_kit.agent": "Worlds, tools and episodes for models that act.",
    "reward_kit.sandbox": "Places in which commands and code of a model run.",
    "reward_kit.testing": "A server that answers as models do, for tests of your own.",
    "reward_kit.statistics": "Estimators and intervals, as plain functions of numbers.",
    "reward_kit.reward_scripts": "Scripts for a reward of your own: preview, comparison, training.",
    "reward_kit.integrations.trl": "For TRL's trainers.",
    "reward_kit.integrations.grpo": "A training by TRL's GRPO in one call.",
    "reward_kit.integrations.verl": "For verl.",
    "reward_kit.integrations.openrlhf": "For OpenRLHF.",
    "reward_kit.integrations.verifiers": "For verifiers.",
}
ELSEWHERE = {"reward_kit": "PipelineConfig"}
"""Names that have a page of their own: the whole configuration."""
WIDTH = 100
PROMPT = re.compile(r"^(?: *>>> .*\n)(?: *\S.*\n?)*", re.MULTILINE)


def api_pages() -> dict[str, str]:
    """Each public module's page, by the module's name, and `index`."""
    pages = {name: _page(importlib.import_module(name), intro) for name, intro in MODULES.items()}
    rows = "".join(f"| [`{name}`]({name}.md) | {intro} |\n" for name, intro in MODULES.items())
    index = (
        "# Python API\n\nMade from the docstrings of the public names: what a module lists in `__all__`. Names that "
        "are not here may change without notice.\nThe rewards of the library have a page of their own: "
        "[rewards](../../rewards.md).\n\n| module | for |\n|---|---|\n" + rows
    )
    return {"index": index, **pages}


def _page(module: ModuleType, intro: str) -> str:
    names = [name for name in module.__all__ if not name.startswith("__")]
    entries = "".join(entry for name in names for entry in _entry(module, name))
    return f"# {module.__name__}\n\n{intro}\n\n{entries}"


def _entry(module: ModuleType, name: str) -> Iterator[str]:
    value = getattr(module, name)
    yield f"## {name}\n\n"
    if ELSEWHERE.get(module.__name__) == name:
        yield "The settings of a run. [Configuration](../config.md) describes every key.\n\n"
        return
    if inspect.isclass(value):
        bases = ", ".join(dict.fromkeys(f"`{base.__name__}`" for base in _public_bases(value)))
        yield f"*class*{f', a kind of {bases}' if bases else ''}\n\n"
        yield _text(value.__doc__)
        yield from _members(value)
    elif callable(value):
        yield _call(name, value) + _text(inspect.getdoc(value))
    else:
        yield f"*value*: `{type(value).__name__}`\n\n"


def _public_bases(kind: type) -> Iterator[type]:
    """What a class is a kind of; in the place of a private base, that base's own."""
    for base in kind.__bases__:
        if base.__name__.startswith("_"):
            yield from _public_bases(base)
        elif base is not object:
            yield base


def _members(kind: type) -> Iterator[str]:
    """The fields with the strings under them, and the public methods and properties that the class itself defines."""
    fields = _fields(kind)
    if fields:
        yield "| field | type | meaning |\n|---|---|---|\n"
        yield from (f"| `{name}` | {_cell(f'`{of}`')} | {_cell(meaning)} |\n" for name, (of, meaning) in fields.items())
        yield "\n"
    for name, member in vars(kind).items():
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if name.startswith("_") or name in fields:
            continue
        if isinstance(function, property) and function.__doc__:
            yield f"### {kind.__name__}.{name}\n\n*property*\n\n" + _text(function.__doc__)
        elif inspect.isfunction(function) and function.__doc__:
            yield f"### {kind.__name__}.{name}\n\n" + _call(name, function) + _text(function.__doc__)


def _fields(kind: type) -> dict[str, tuple[str, str]]:
    """What the class's body annotates: type and meaning as the source has them."""
    try:
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError, SyntaxError):
        return {}
    if not isinstance(body, ast.ClassDef):
        return {}
    found = {}
    for field, after in itertools.zip_longest(body.body, body.body[1:]):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        name = field.target.id
        if name.startswith("_") or name == "model_config":
            continue
        text = after.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
        found[name] = (ast.unparse(field.annotation), str(text.value) if text is not None else "")
    return found


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _call(name: str, function: object) -> str:
    try:
        signature = str(inspect.signature(function))  # type: ignore[arg-type]  # callable, as its users asked
    except (TypeError, ValueError):
        signature = "(…)"
    # Addresses of objects differ from build to build, and quotes around a type say nothing to a reader.
    signature = re.sub(r" at 0x[0-9a-f]+", "", signature).replace("'", "")
    call = textwrap.fill(name + signature, WIDTH, subsequent_indent="    ", break_on_hyphens=False)
    return f"```text\n{call}\n```\n\n"


def _text(docstring: str | None) -> str:
    """A docstring as Markdown: examples with a prompt become blocks."""
    text = inspect.cleandoc(docstring or "")
    text = PROMPT.sub(lambda found: f"```pycon\n{textwrap.dedent(found[0]).strip()}\n```\n", text + "\n")
    return text.strip() + "\n\n" if text.strip() else ""
