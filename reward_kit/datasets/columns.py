# SPDX-License-Identifier: Apache-2.0
"""What one dataset config does to a row before it is interpreted: rename columns, preprocess, render the user turn.

row → column_mapping → preprocess → choices → prompt_template (with few-shot rows) → row, rows, or nothing
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets.choices import lettered
from reward_kit.datasets.rows import BadRow, BadRows, Columns, Row, plain
from reward_kit.errors import ConfigError, boundary
from reward_kit.utils.module_loader import load_function

if TYPE_CHECKING:
    from jinja2 import Template

_log = logging.getLogger(__name__)

__all__ = ["CONTENT", "USER_TURN", "Columns", "Reshaper", "nearest_columns"]

USER_TURN = "\0user turn"
"""The column that holds a rendered template until the row is interpreted. No dataset can have a column of that name."""

CONTENT = "\0content"
"""The column that holds the hash of a row as its source has it, where the row was changed before it is interpreted."""

_ROLES = frozenset({"id", "user_query", "prompt", "messages", "ground_truth", "ground_truth_for_eval"})
"""Names that give a column a part to play. Its old name stays beside it, for a reward that names it."""

_SINGLE_BRACES = re.compile(r"(?<![\w\\{])\{ ?([A-Za-z_]\w*) ?\}(?!\})")
_OTHER_LANGUAGES = re.compile(
    r"(?<![\w\\{])\{ ?([A-Za-z_]\w*) ?[!:.\[][^{}]*\}(?!\})|%\(([A-Za-z_]\w*)\)[a-z]|(?<![\w\\$])\$([A-Za-z_]\w*)"
)
"""`{question!r:>9}`, `%(question)s`, `$question`."""

_HIDDEN = (USER_TURN, CONTENT)

_Step = Callable[[Columns], Iterable[Columns]]

ShownBefore = Callable[[Columns], list[Columns] | None]
"""The few-shot rows of a row; None where it is one of them itself, and so no question."""


class Reshaper:
    """The steps of one config, made ready once: import paths are loaded and the template is compiled here."""

    def __init__(self, config: DatasetConfig, few_shot: ShownBefore | None = None) -> None:
        steps: list[_Step] = []
        if config.column_mapping:
            steps.append(_renaming(config.column_mapping))
        steps += [_preprocessing(path) for path in config.preprocess]
        if config.choices is not None:
            settings = config.choices
            steps.append(lambda columns: (lettered(columns, settings, _lookup),))
        if config.prompt_template is not None:
            steps.append(_rendering(config.prompt_template, few_shot))
        self._steps = steps

    def reshape(self, rows: Iterable[Row], bad: BadRows) -> Iterable[Row]:
        """The rows after every step; those that a step cannot take are reported to `bad`."""
        return self._reshaped(rows, bad) if self._steps else rows

    def _reshaped(self, rows: Iterable[Row], bad: BadRows) -> Iterator[Row]:
        for row in rows:
            try:
                results = self._through_all([row.columns])
            except BadRow as problem:
                bad.report(row.origin, row.number, str(problem))
                continue
            for columns in results:
                yield row._replace(columns=columns)

    def _through_all(self, rows: list[Columns]) -> list[Columns]:
        for step in self._steps:
            rows = [result for columns in rows for result in step(columns)]
        return rows


def nearest_columns(name: str, columns: Mapping[str, Any]) -> str:
    """The columns nearest to a missing one, or all of them, in words."""
    names = [column for column in columns if column not in _HIDDEN]
    nearest = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if nearest:
        return f"did you mean {' or '.join(map(repr, nearest))}?"
    return f"its columns are {', '.join(map(repr, names))}" if names else "it has no columns"


def _renaming(mapping: Mapping[str, str]) -> _Step:
    def rename(columns: Columns) -> Iterable[Columns]:
        found = {new: _lookup(columns, old, "column_mapping") for new, old in mapping.items()}
        taken = {old for new, old in mapping.items() if new not in _ROLES}
        kept = {name: value for name, value in columns.items() if name not in taken}
        return ({**kept, **found},)

    return rename


def _lookup(columns: Columns, name: str, setting: str) -> Any:
    """The column called `name`, or what its dots reach inside one; `setting` is who names it."""
    if name in columns:
        return columns[name]
    value: Any = columns
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            hint = nearest_columns(part, value) if isinstance(value, Mapping) else f"{part!r} would be inside {value!r}"
            raise BadRow(f"there is no column {name!r}, which `dataset.{setting}` names ({hint})")
        value = value[part]
    return value


def _preprocessing(path: str) -> _Step:
    try:
        function = load_function(path)
    except ImportError as error:
        raise ConfigError(f"`dataset.preprocess`: {error}") from error
    name = f"preprocess {path!r}"

    def preprocess(columns: Columns) -> Iterable[Columns]:
        with boundary(BadRow, name):
            result = function(columns)
        if result is None:
            return ()
        results = result if isinstance(result, list) else [result]
        for item in results:
            if not isinstance(item, Mapping):
                raise BadRow(f"{name} returned a {type(item).__name__}; expected a dict, a list of dicts, or None")
        return [plain(item) for item in results]

    return preprocess


def _rendering(source: str, few_shot: ShownBefore | None) -> _Step:
    template, unseen = _compile(source), [source]

    def render(columns: Columns) -> Iterable[Columns]:
        from jinja2 import UndefinedError

        if unseen:
            _see_to_placeholders(unseen.pop(), _with_user_turn(columns))
        before = () if few_shot is None else few_shot(columns)
        if before is None:
            return ()
        shown = {} if few_shot is None else {"few_shot": [_with_user_turn(row) for row in before]}
        try:
            with boundary(BadRow, "`dataset.prompt_template`"):
                # A derived dataset's template finds under `user_query` what the template of its base has made.
                text = template.render(_with_user_turn(columns) | shown)
        except BadRow as problem:
            if isinstance(problem.__cause__, UndefinedError):
                names = ", ".join(repr(name) for name in columns if name not in _HIDDEN)
                raise BadRow(
                    f"`dataset.prompt_template`: {problem.__cause__} (the row's columns are {names})"
                ) from None
            raise
        return ({**columns, USER_TURN: text},)

    return render


def _see_to_placeholders(source: str, columns: Columns) -> None:
    """Refuse a template that would ask every row the same; warn of one that has a column's name in single braces.

    Jinja leaves single braces as they are. `\\boxed{answer}` is none.
    """
    names = [*dict.fromkeys(_SINGLE_BRACES.findall(source))]
    known = [name for name in names if name in columns]
    if "{{" in source or "{%" in source:
        if known:
            _log.warning(
                "`dataset.prompt_template` has {%s} in single braces, which is sent as it is. For the column's value, "
                "write {{ %s }}.", known[0], known[0],
            )  # fmt: skip
        return
    others = [name for found in _OTHER_LANGUAGES.findall(source) if (name := "".join(found)) in columns]
    if not names and not others:
        _log.warning("`dataset.prompt_template` names no column, so every row is asked the same text.")
        return
    line, meant = source, {*(known or ([] if others else names)), *others}
    for pattern in (_SINGLE_BRACES, _OTHER_LANGUAGES):
        line = pattern.sub(lambda found: _in_jinja(found, meant), line)
    hint = "" if known or others else f" {names[0]!r} is no column: {nearest_columns(names[0], columns)}."
    what = f"{{{names[0]}}} in single braces" if names else f"{others[0]!r} as another language would"
    raise ConfigError(
        f"`dataset.prompt_template` names {what}, so every row would be asked the same text. "
        f"Templates are Jinja, with two braces: write {line!r}.{hint}"
    )


def _in_jinja(found: re.Match[str], names: Collection[str]) -> str:
    name = next(filter(None, found.groups()))
    return f"{{{{ {name} }}}}" if name in names else found.group()


def _with_user_turn(columns: Columns) -> Columns:
    return {**columns, "user_query": columns[USER_TURN]} if USER_TURN in columns else columns


def _compile(source: str) -> Template:
    from jinja2 import StrictUndefined, TemplateSyntaxError
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    try:
        return environment.from_string(source)
    except TemplateSyntaxError as error:
        raise ConfigError(f"`dataset.prompt_template` is not a Jinja template: {error}. Correct it.") from error
