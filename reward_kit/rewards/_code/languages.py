# SPDX-License-Identifier: Apache-2.0
"""Code under its tests in any sandbox that runs commands: JavaScript, C and C++.

    write the program ─▶ (compile) ─▶ one command a test: its input in, its output or its returned value out

A compiler works in a sandbox of its own, by its own limits: those of a program are for the program. What is expected
stays here. A returned value comes back as text after a mark that is new for each test; whoever writes the mark gives an
answer, and it is his own. Each test may take so much processor time, and more by the clock, for the machine may be
busy.
"""

from __future__ import annotations

import functools
import json
import re
import secrets
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.rewards._code.cases import CallTests, GroundTruthError, StdinTests, Tests
from reward_kit.rewards._code.compare import same_value
from reward_kit.rewards._code.python import MOST_LOST, NOT_RUN, Options
from reward_kit.rewards._code.results import CaseResult, of_run, shown
from reward_kit.sandbox.contract import Limits
from reward_kit.sandbox.python.by_commands import CommandSandbox, longest_by_the_clock, run_within

__all__ = [
    "LANGUAGES",
    "Language",
    "compiler_limits",
    "judge_in",
    "language_of",
    "program_limits",
    "run_in",
    "with_usual_includes",
]

_COMPILE_SECONDS, _COMPILE_MB = 60.0, 1536
_COMPILE_BY_THE_CLOCK = 90.0
_PROGRAM_MB = 64
"""The largest program that a compiler may write. A source of 60 bytes can ask for gigabytes, which would have to be
carried to where the program runs."""
_BUILT = "main"


class Language(NamedTuple):
    """How programs of a language are run."""

    file: str
    run: str
    """The command that runs the program."""
    tool: str
    """What must be installed."""
    compile: str = ""
    """The command that makes the program `main` of it."""
    driver: str = ""
    """A program that calls a function of the code: it is given the mark, the function and, on its input, arguments."""
    memory_mb: int = 0
    """What its own runtime needs, beside the program."""
    beside: Mapping[str, str] = {}
    """Files that the command which runs the program needs."""
    usual: str = ""
    """What stands before a source that includes nothing."""


_JAVASCRIPT_DRIVER = """
const fs = require('fs'), vm = require('vm');
const [mark, name] = process.argv.slice(2);
const given = JSON.parse(fs.readFileSync(0, 'utf8'));
const log = process.stderr;
console.log = (...each) => log.write(each.join(' ') + '\\n');
Object.assign(globalThis, { require, module, exports: module.exports });
const simple = /^[\\w$]+$/.test(name);
const found_there = () => simple ? vm.runInThisContext(`typeof ${name} === 'undefined' ? undefined : ${name}`) : name;
const before = simple ? found_there() : undefined;
vm.runInThisContext(fs.readFileSync('main.js', 'utf8'), { filename: 'main.js' });
let place = name;
if (found_there() === before)
  place = typeof module.exports === 'function' ? 'module.exports'
    : name in module.exports ? `module.exports.${name}` : `new Solution().${name}`;
const found = vm.runInThisContext(`(...given) => (${place})(...given)`);
const plain = (_, each) => {
  if (typeof each === 'function' || typeof each === 'symbol') throw new TypeError(`a ${typeof each} is not plain data`);
  if (typeof each === 'bigint' || (typeof each === 'number' && !Number.isFinite(each))) return { [mark]: `${each}` };
  if (each instanceof Set || (ArrayBuffer.isView(each) && !(each instanceof DataView))) return [...each];
  return each instanceof Map ? Object.fromEntries(each) : each;
};
Promise.resolve(found(...given)).then(value => {
  fs.writeSync(1, '\\n' + mark + '=' + JSON.stringify(value === undefined ? null : value, plain));
});
"""

_JAVASCRIPT_PRELUDE = """
const fs = require('fs');
let lines = null, next = 0;
const readline = () => {
  if (lines === null) {
    lines = fs.readFileSync(0, 'utf8').split(/\\r?\\n/);
    if (lines[lines.length - 1] === '') lines.pop();
  }
  return next < lines.length ? lines[next++] : null;
};
const write = text => fs.writeSync(1, String(text));
for (const [name, value] of Object.entries({ readline, write, print: (...each) => console.log(...each) }))
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
"""
"""What a JavaScript shell has and node has not: contest programs read with `readline()` and write with `print`."""

_USUAL_C = "".join(f"#include <{name}.h>\n" for name in ("stdio", "stdlib", "string", "stdint", "stdbool", "math"))
_USUAL_CPP = "#include <bits/stdc++.h>\nusing namespace std;\n"
_INCLUDES = re.compile(r"^[ \t]*(?:#[ \t]*include|import)\b", re.MULTILINE)

_CPP = " || ".join(f"g++ -O2 -std=gnu++{year} -o main main.cpp" for year in (20, 17))
"""By the newer standard, and what only the older one takes by that."""

LANGUAGES = {
    "javascript": Language(
        "main.js",
        "node --require ./prelude.js main.js",
        "node",
        driver="driver.js",
        memory_mb=512,
        beside={"prelude.js": _JAVASCRIPT_PRELUDE},
    ),
    "cpp": Language("main.cpp", "./main", "g++", compile=_CPP, memory_mb=64, usual=_USUAL_CPP),
    "c": Language("main.c", "./main", "gcc", compile="gcc -O2 -std=gnu17 -o main main.c -lm", usual=_USUAL_C),
}
"""What is run by commands, by name."""


def language_of(name: str) -> str:
    """The name under which a language is known here."""
    known = {"js": "javascript", "node": "javascript", "py": "python", "python3": "python", "c++": "cpp"}
    found = known.get(name.lower(), name.lower())
    if found not in ("python", *LANGUAGES):
        raise GroundTruthError(f"Code in {name!r} cannot be run. Choose one of {', '.join(('python', *LANGUAGES))}.")
    return found


def with_usual_includes(code: str, language: str) -> str:
    """A program that includes nothing, with what programs of its language usually include; others as they are."""
    return _with_usual(LANGUAGES[language_of(language)], code)


def _with_usual(language: Language, code: str) -> str:
    return language.usual + code if language.usual and not _INCLUDES.search(code) else code


async def judge_in(
    place: CommandSandbox, workshop: CommandSandbox, language: str, code: str, tests: Tests, options: Options
) -> list[CaseResult]:
    """One result a test, in order; fewer where the first failure was the last. It is compiled in `workshop`."""
    program = _Program(place, LANGUAGES[language], options)
    failure = await program.prepare(code, workshop)
    match tests:
        case StdinTests(cases):
            return await _each(cases, failure, options, program.case)
        case CallTests(function, cases) if program.language.driver:
            return await _each(cases, failure, options, lambda case: program.call(function, *case))
    raise GroundTruthError(f"Code in {language!r} can only be tested by its output here. Give inputs and outputs.")


async def _each(
    cases: tuple[Any, ...], failure: CaseResult | None, options: Options, judge: Callable[[Any], Awaitable[CaseResult]]
) -> list[CaseResult]:
    if failure is not None:
        return [failure] * (1 if options.stop_early else len(cases))
    found: list[CaseResult] = []
    for case in cases:
        found.append(await judge(case))
        if options.stop_early and not found[-1].passed:
            break
        if sum(result.status == "timed_out" for result in found) * longest_by_the_clock(options.timeout) >= MOST_LOST:
            return found + [NOT_RUN] * (len(cases) - len(found))
    return found


async def run_in(
    place: CommandSandbox, workshop: CommandSandbox, language: str, code: str, stdin: str, options: Options
) -> ExecResult:
    """Run a program. A program that does not compile is one that fails."""
    program = _Program(place, LANGUAGES[language], options)
    failure = await program.prepare(code, workshop)
    if failure is not None:
        return ExecResult(exit_code=1, stderr=failure.detail, output=failure.detail)
    return await program.run(stdin.encode())


class _Program:
    def __init__(self, place: CommandSandbox, language: Language, options: Options) -> None:
        self._place = place
        self.language = language
        self._options = options

    async def prepare(self, code: str, workshop: CommandSandbox) -> CaseResult | None:
        """Have the program ready; what is wrong with it, where it does not compile."""
        there = await workshop.run_standalone(f"command -v {self.language.tool}", timeout=_COMPILE_SECONDS)
        if not there.ok:
            raise SandboxError(
                f"The sandbox has no {self.language.tool!r}. Install it there, or use an image that has it.",
                retryable=False,
            )
        code = _with_usual(self.language, code)
        await workshop.write(self.language.file, code.encode(errors="replace"))
        for name, content in self.language.beside.items():
            await workshop.write(name, content.encode())
        if not self.language.compile:
            return None
        done = await workshop.run_standalone(_compiling(self.language.compile), timeout=_COMPILE_BY_THE_CLOCK)
        if done.timed_out and (done.cpu_seconds or 0.0) < _COMPILE_SECONDS:
            raise SandboxError("The machine is too busy: the compiler did not finish in time. Try again.")
        if not done.ok:
            return CaseResult("raised", f"does not compile: {shown(done.output.strip())}")
        if workshop is not self._place:
            await self._move(workshop)
        return None

    async def _move(self, workshop: CommandSandbox) -> None:
        """Have the compiled program where it runs."""
        await self._place.write(_BUILT, await workshop.read(_BUILT))
        await self._place.run_standalone(f"chmod +x {_BUILT}")

    async def case(self, case: tuple[str, str]) -> CaseResult:
        """One test by input and output."""
        given, expected = case
        result = await self.run(given.encode(errors="surrogatepass"))
        return of_run(result, result.ok and self._options.right(given, expected, result.stdout))

    async def call(self, function: str, arguments: tuple[Any, ...], expected: Any) -> CaseResult:
        """One test by arguments and value."""
        mark = secrets.token_hex(16)
        driver = self.language.driver
        await self._place.write(driver, _JAVASCRIPT_DRIVER.encode())
        command = f"exec node {driver} {mark} {shlex.quote(function)}"
        result = await run_within(self._place, command, self._options.timeout, _as_json(list(arguments)).encode())
        answered, _, text = result.stdout.rpartition(f"{mark}=")
        if not result.ok or not answered:
            return of_run(result, False)
        try:
            value = json.loads(text, object_hook=functools.partial(_big, mark))
        except (ValueError, RecursionError):
            return CaseResult("died", "what it answered cannot be read")
        right = same_value(expected, value, self._options.comparison.tolerance)
        return CaseResult("passed" if right else "wrong", f"returned {shown(value)}")

    async def run(self, stdin: bytes) -> ExecResult:
        """Run the program within its processor time."""
        return await run_within(self._place, f"exec {self.language.run}", self._options.timeout, stdin)


def _compiling(command: str) -> str:
    """A compiler at work, with only files to read: what includes a pipe of its own would wait for it for ever."""
    return f"({command}) </dev/null >compiler.log 2>&1; status=$?; head -c 20000 compiler.log; exit $status"


def _as_json(arguments: list[Any]) -> str:
    try:
        return json.dumps(arguments)
    except (TypeError, ValueError) as error:
        raise GroundTruthError(f"The arguments of a test cannot be handed over: {error}. Give JSON values.") from error


def _big(mark: str, answered: dict[str, Any]) -> Any:
    """An object of an answer; one that stands for a whole number of any size, or for no finite one, is that."""
    digits = answered.get(mark)
    if len(answered) != 1 or not isinstance(digits, str):
        return answered
    return int(digits) if digits.lstrip("-").isdecimal() else float(digits)


def compiler_limits(language: str) -> Limits | None:
    """What a compiler may use; None for a language that has none."""
    if not LANGUAGES[language].compile:
        return None
    return Limits(
        memory_mb=_COMPILE_MB,
        timeout=_COMPILE_BY_THE_CLOCK,
        cpu_seconds=_COMPILE_SECONDS,
        file_size_mb=_PROGRAM_MB,
        disk_mb=4 * _PROGRAM_MB,
    )


def program_limits(language: str, options: Options) -> Limits:
    """What a program may use, and what the language itself needs."""
    return replace(options.limits, memory_mb=options.memory_mb + LANGUAGES[language].memory_mb)
