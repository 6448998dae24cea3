# SPDX-License-Identifier: Apache-2.0
"""Tests as datasets write them, read into one of three kinds.

    [{"input": …, "expected_output": …}]          values for a function, or standard input and output
    {"inputs": […], "outputs": […], "fn_name"?}   the same (APPS, TACO, LiveCodeBench)
    "def check(candidate): …", ["assert …"]       test programs (HumanEval, MBPP, pytest, unittest)

A ground truth that is none of these is a `GroundTruthError`: nothing can be judged by it.
"""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from reward_kit.rewards._code.compare import OneOf

__all__ = ["CallTests", "GroundTruthError", "ProgramTests", "StdinTests", "Tests", "read_tests"]

_SHOWN = 120
_INPUT_KEYS = ("input", "stdin", "inputs", "args")
_OUTPUT_KEYS = ("expected_output", "output", "expected", "outputs", "stdout")
_PROGRAM_KEYS = ("test", "tests", "test_list", "test_code", "assert_case", "asserts")
_SETUP_KEYS = ("test_setup_code", "test_imports", "setup", "setup_code")
_FUNCTION_KEYS = ("fn_name", "entry_point", "function", "target_function", "func_name")


class GroundTruthError(ValueError):
    """The tests cannot be read; says why, and what they should be."""


@dataclass(frozen=True)
class StdinTests:
    """A program is run, with text for its standard input, and prints."""

    cases: tuple[tuple[str, str], ...]
    """Input and expected output."""


@dataclass(frozen=True)
class CallTests:
    """A function is called, and returns."""

    function: str
    cases: tuple[tuple[tuple[Any, ...], Any], ...]
    """Arguments and expected value."""


@dataclass(frozen=True)
class ProgramTests:
    """Test programs, such as lines of `assert` or functions for pytest, which are run with the answer's code."""

    tests: tuple[str, ...]
    entry_point: str | None = None
    setup: str = ""


Tests: TypeAlias = StdinTests | CallTests | ProgramTests


def read_tests(ground_truth: Any, function: str | None = None) -> Tests:
    """The tests that a ground truth holds, or that its JSON does. With a `function`, cases are calls of it."""
    if isinstance(ground_truth, str):
        ground_truth = _parsed(ground_truth)
    if isinstance(ground_truth, Mapping):
        return _from_mapping(ground_truth, function)
    if isinstance(ground_truth, Sequence) and not isinstance(ground_truth, (str, bytes)) and ground_truth:
        return _from_list(ground_truth, function)
    if isinstance(ground_truth, str) and _is_test_program(ground_truth):
        return ProgramTests((ground_truth,), function)
    raise GroundTruthError(
        f"The tests are {_shown(ground_truth)}. Give a list of {{'input', 'expected_output'}}, its JSON, or test code."
    )


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@functools.lru_cache(maxsize=256)
def _is_test_program(text: str) -> bool:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, (ast.Assert, ast.FunctionDef, ast.ClassDef)) for node in ast.walk(tree))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# ── the shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _from_mapping(given: Mapping[str, Any], function: str | None) -> Tests:
    function = function or _named_function(given)
    if "inputs" in given and "outputs" in given:
        inputs, outputs = given["inputs"], given["outputs"]
        if not isinstance(inputs, list) or not isinstance(outputs, list) or len(inputs) != len(outputs) or not inputs:
            raise GroundTruthError("'inputs' and 'outputs' must be lists of the same length, with at least one test.")
        return _cases(list(zip(inputs, outputs, strict=True)), function, wrapped=True)
    for key in _PROGRAM_KEYS:
        if given.get(key):
            return _from_programs(given, given[key], function)
    if any(key in given for key in _INPUT_KEYS) or any(key in given for key in _OUTPUT_KEYS):
        return _from_list([given], function)
    raise GroundTruthError(
        f"The tests have the keys {sorted(map(str, given))}. Give 'inputs' and 'outputs', or 'test' with 'entry_point'."
    )


def _from_programs(given: Mapping[str, Any], tests: Any, function: str | None) -> Tests:
    if isinstance(tests, list) and tests and isinstance(tests[0], Mapping):
        return _from_list(tests, function)
    sources = [tests] if isinstance(tests, str) else tests
    if not isinstance(sources, list) or not all(isinstance(source, str) and source.strip() for source in sources):
        raise GroundTruthError(f"The tests are {_shown(tests)}. Give test code, or a list of it.")
    setups = [given[key] for key in _SETUP_KEYS if given.get(key)]
    setup = "\n".join("\n".join(part) if isinstance(part, list) else str(part) for part in setups)
    return ProgramTests(tuple(sources), function, setup)


def _from_list(given: Sequence[Any], function: str | None) -> Tests:
    if all(isinstance(each, str) for each in given):
        if not all(map(_is_test_program, given)):
            raise GroundTruthError(f"The tests are {_shown(given)}. Give test code, or 'input' and 'expected_output'.")
        return ProgramTests(tuple(given), function)
    pairs = []
    for number, each in enumerate(given, 1):
        if not isinstance(each, Mapping) or not any(key in each for key in _OUTPUT_KEYS):
            raise GroundTruthError(f"Test {number} is {_shown(each)}. Give it an 'input' and an 'expected_output'.")
        function = function or _named_function(each)
        pairs.append((_first(each, _INPUT_KEYS, ""), _first(each, _OUTPUT_KEYS, "")))
    return _cases(pairs, function, wrapped=False)


def _named_function(given: Mapping[str, Any]) -> str | None:
    metadata = given.get("metadata")
    for place in (given, metadata if isinstance(metadata, Mapping) else {}):
        for key in _FUNCTION_KEYS:
            if place.get(key):
                return str(place[key])
    return None


def _first(given: Mapping[str, Any], keys: Sequence[str], default: Any) -> Any:
    return next((given[key] for key in keys if key in given), default)


def _cases(pairs: list[tuple[Any, Any]], function: str | None, *, wrapped: bool) -> Tests:
    if function is None:
        return StdinTests(tuple((_text(given), _text(expected)) for given, expected in pairs))
    return CallTests(function, tuple(_call(number, *pair, wrapped) for number, pair in enumerate(pairs, 1)))


def _text(value: Any) -> str:
    """Text for a program; what is a list of lines becomes them."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(map(_text, value))
    return json.dumps(value)


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _call(number: int, given: Any, expected: Any, wrapped: bool) -> tuple[tuple[Any, ...], Any]:
    """Arguments and the expected value. Text is one JSON value per line; what is not text is taken as it is."""
    if isinstance(given, str):
        return _arguments(number, given), _expected(expected)
    if isinstance(given, Mapping):
        raise GroundTruthError(f"The input of test {number} is an object. Give a list of arguments, in their order.")
    arguments = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if wrapped and isinstance(expected, list) and len(expected) == 1:
        return arguments, OneOf((expected, expected[0]))  # APPS wraps some values in a list and not others
    return arguments, expected


def _arguments(number: int, text: str) -> tuple[Any, ...]:
    """One argument per line; or, as older data sets write them, several in one: `"abc" 3`, `1, 2`."""
    lines = [line for line in text.strip().split("\n") if line.strip()]
    try:
        return tuple(value for line in lines for value in _values(line))
    except ValueError:
        pass
    try:
        return (_value(text),)
    except ValueError as error:
        raise GroundTruthError(
            f"The input of test {number} is {_shown(text)}. Write one JSON value per line, one line per argument."
        ) from error


def _values(line: str) -> list[Any]:
    """The values in a line, which stand apart by spaces or commas outside of quotes and brackets."""
    try:
        return [_value(part) for part in _parts(line)]
    except ValueError:
        return [_value(line)]


def _parts(line: str) -> list[str]:
    """A line, taken apart where it has spaces or commas at its top level."""
    parts, begin, depth, quote = [], 0, 0, ""
    characters = iter(enumerate(line))
    for place, character in characters:
        if quote:
            if character == "\\":
                next(characters, None)
            elif character == quote:
                quote = ""
        elif character in "\"'":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth == 0 and (character == "," or character.isspace()):
            parts.append(line[begin:place])
            begin = place + 1
    return [part for part in [*parts, line[begin:]] if part]


def _expected(value: Any) -> Any:
    """The value that a text says; text that is not a value stands for itself."""
    if not isinstance(value, str):
        return value
    try:
        return _value(value)
    except ValueError:
        return value


def _value(text: str) -> Any:
    """JSON, or a Python literal."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(str(error)) from error
