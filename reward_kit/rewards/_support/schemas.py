# SPDX-License-Identifier: Apache-2.0
"""JSON Schema: whether a value is valid, by the `jsonschema` library, and how much of a schema's outline it has.

Nothing is fetched: a `$ref` that leaves the schema is an error of the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from reward_kit.errors import needs_extra
from reward_kit.rewards._tool_calls.values import value_key

__all__ = ["Outline", "SchemaProblem", "Violation", "outline_of", "violations"]

_MOST = 1000
"""Violations that are looked at."""
_SHOWN = 160
"""Characters of the library's message that are kept: it quotes the value."""
_REFERENCES = 32
"""References that are followed from one place."""


class SchemaProblem(ValueError):
    """The schema itself cannot be used."""


class Violation(NamedTuple):
    """One way in which a value breaks its schema."""

    path: str
    """Where, as in `items[].price`; empty for the whole."""
    message: str


def violations(schema: Mapping[str, Any] | bool, value: Any) -> list[Violation]:
    """What is wrong with `value`; nothing, if it is valid. A `SchemaProblem` where the schema is none."""
    with needs_extra("JSON Schema validation", "schema"):
        import jsonschema
        from jsonschema_specifications import REGISTRY
        from referencing.exceptions import Unresolvable
    kind = _linear(jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator))
    try:
        kind.check_schema(schema)
        found = islice(kind(schema, registry=REGISTRY).iter_errors(value), _MOST)
        return [Violation(_path(error.absolute_path), error.message[:_SHOWN]) for error in found]
    except jsonschema.SchemaError as error:
        raise SchemaProblem(f"it is not a valid JSON Schema: {error.message[:_SHOWN]}") from None
    except Unresolvable as error:
        raise SchemaProblem(f"it refers to something outside itself: {str(error)[:_SHOWN]}") from None
    except RecursionError:
        raise SchemaProblem("it refers to itself without end") from None


def _linear(kind: Any) -> Any:
    """The validator with `uniqueItems` in linear time: the library compares each item with each other."""
    from jsonschema import ValidationError
    from jsonschema.validators import extend

    def unique_items(_: Any, wanted: Any, items: Any, __: Any) -> Iterator[ValidationError]:
        if wanted is True and isinstance(items, list) and len({value_key(i, "exact") for i in items}) < len(items):
            yield ValidationError("it has an item twice")

    return extend(kind, {"uniqueItems": unique_items})  # type: ignore[no-untyped-call]  # the stubs leave it out


def _path(places: Any) -> str:
    text = "".join("[]" if isinstance(place, int) else f".{place}" for place in places)
    return text.removeprefix(".")


# ── the outline ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Outline(NamedTuple):
    """Which properties (by path) of a schema a value has."""

    matching: frozenset[str]
    missing: frozenset[str]
    """Expected and not there, or of another type."""
    extra: frozenset[str]
    """There and not expected, or of another type."""

    def broken_at(self, paths: set[str]) -> Outline:
        """The same, where properties that break the schema count as properties of another type."""
        broken = frozenset(paths)
        return Outline(self.matching - broken, self.missing | (self.matching & broken), self.extra | broken)

    @property
    def similarity(self) -> float:
        """The Jaccard index: properties in common, of all there are on either side."""
        union = len(self.matching) + len(self.missing) + len(self.extra)
        return len(self.matching) / union if union else 1.0


def outline_of(value: Any, schema: Mapping[str, Any]) -> Outline:
    """Compare a value's properties with those that a schema describes; linear in the value."""
    walk = _Walk(schema)
    walk.visit(value, schema, "")
    matching = walk.matching - walk.wrong - walk.missing
    return Outline(frozenset(matching), frozenset(walk.missing | walk.wrong), frozenset(walk.extra | walk.wrong))


class _Walk:
    """Goes through a value and its schema side by side."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self.matching: set[str] = set()
        self.missing: set[str] = set()
        self.extra: set[str] = set()
        self.wrong: set[str] = set()

    def visit(self, value: Any, schema: Any, path: str) -> None:
        schema = _resolved(schema, self._root)
        properties, items = schema.get("properties"), schema.get("items")
        if isinstance(properties, Mapping) and properties:
            self._object(value if isinstance(value, Mapping) else {}, properties, path)
            if not isinstance(value, Mapping) and not path:
                self.wrong.add("the whole")
        elif isinstance(items, Mapping) and isinstance(value, list):
            for item in value:
                self._property(item, items, f"{path}[]")

    def _object(self, value: Mapping[str, Any], properties: Mapping[str, Any], path: str) -> None:
        for name, schema in properties.items():
            inner = f"{path}.{name}" if path else str(name)
            if name in value:
                self._property(value[name], schema, inner)
            else:
                self.missing.add(inner)
        self.extra.update(f"{path}.{name}" if path else name for name in value if name not in properties)

    def _property(self, value: Any, schema: Any, path: str) -> None:
        if _has_type(value, _resolved(schema, self._root)):
            self.matching.add(path)
            self.visit(value, schema, path)
        else:
            self.wrong.add(path)


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema, with references inside the document followed; what cannot be is a schema that says nothing."""
    for _ in range(_REFERENCES):
        if not isinstance(schema, Mapping):
            return {}
        target = schema.get("$ref")
        if not isinstance(target, str) or not target.startswith("#"):
            return schema
        schema = root
        for step in target.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            schema = schema.get(name) if isinstance(schema, Mapping) else None
    return {}


def _has_type(value: Any, schema: Mapping[str, Any]) -> bool:
    declared = schema.get("type", "any")
    wanted = {declared} if isinstance(declared, str) else set(declared) if isinstance(declared, list) else {"any"}
    return "any" in wanted or not wanted.isdisjoint(_types_of(value))


def _types_of(value: Any) -> set[str]:
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return {"integer", "number"}
    kinds: list[tuple[type, str]] = [(float, "number"), (str, "string"), (list, "array"), (Mapping, "object")]
    return {name for kind, name in kinds if isinstance(value, kind)} or {"null"}
