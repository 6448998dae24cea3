# SPDX-License-Identifier: Apache-2.0
"""Installs the wheel as users do, with each extra alone, and tries there what people try first. Prints what worked.

    python scripts/smoke.py                      build the wheel, then try every environment
    python scripts/smoke.py --wheel X.whl        try this wheel
    python scripts/smoke.py --only base serve    these environments only

Each environment is fresh and away from the checkout: `base` without extras, one for each extra but `train`, and `all`.
In each, every command prints its help, every starter of `reward-kit init` runs by the command that `init` prints, and
the commands that the extra is for are run. Versions are those of requirements/; two environments go at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
UV = Path(sys.executable).parent / "uv"
LANES = 2
LIMIT_S = 120
NOT_TRIED = {"train", "all"}
"""torch takes gigabytes (`make test-train` tries it), and `all` is named where it belongs: in the end."""

HELP = """
import click
from reward_kit.cli import COMMANDS, cli
def walk(command, words):
    context = click.Context(command, info_name=words[-1])
    assert command.get_help(context).strip(), words
    yield words
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        yield from walk(command.get_command(context, name), [*words, name])
print(sum(1 for _ in walk(cli, ["reward-kit"])))
"""
WORKS = """
import sys
from reward_kit.cli_commands.extras import look_for_extras
for found in look_for_extras():
    if found.name in sys.argv[1:] and not found.works:
        raise SystemExit(f"{found.name}: {found.detail}. {found.advice}")
"""
TEMPLATES = """
import click
from reward_kit.cli import cli
command = cli.get_command(click.Context(cli), "init")
for option in command.params:
    if option.name == "template" and isinstance(option.type, click.Choice):
        print(*option.type.choices, sep="\\n")
"""


class Trial(NamedTuple):
    """Something that is tried, and how it went."""

    what: str
    fault: str
    seconds: float


@dataclass
class Place:
    """A fresh environment and a directory to work in."""

    name: str
    folder: Path
    wheel: Path
    constraints: Path
    trials: list[Trial] = field(default_factory=list)

    def try_it(self, what: str, action: Callable[[], object]) -> bool:
        """Do something, and keep how it went."""
        begun, fault = time.monotonic(), ""
        try:
            action()
        except (AssertionError, OSError, subprocess.TimeoutExpired, ValueError) as error:
            fault = str(error) or type(error).__name__
        self.trials.append(Trial(what, fault, time.monotonic() - begun))
        return not fault

    def install(self) -> None:
        """A new environment with the wheel, and the extra where there is one."""
        extra = "" if self.name == "base" else f"[{self.name}]"
        ran([UV, "venv", "--quiet", "--python", sys.executable, self.folder / "env"], self.folder)
        ran(
            [UV, "pip", "install", "--quiet", "--python", self.folder / "env", "--constraint", self.constraints,
             f"reward-kit{extra} @ {self.wheel.as_uri()}"],
            self.folder,
        )  # fmt: skip

    def python(self, program: str, *arguments: str) -> str:
        """What a program prints in this environment."""
        return ran([self.folder / "env" / "bin" / "python", "-I", "-c", program, *arguments], self.folder)

    def type(self, line: str, directory: str = ".", exit_code: int = 0) -> str:
        """What a line of the shell prints, with this environment's commands first."""
        return ran(["bash", "-euo", "pipefail", "-c", line], self.folder / directory, self.environment, exit_code)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a user who has activated it, and knows nothing of the checkout."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        return {**kept, "PATH": f"{self.folder / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}


def ran(
    command: list[str | Path], directory: Path, environment: dict[str, str] | None = None, exit_code: int = 0
) -> str:
    """What a command printed; an error with the end of it where it ended otherwise than expected."""
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    said = f"{done.stdout}\n{done.stderr}".strip()
    assert done.returncode == exit_code, (
        f"{' '.join(map(str, command[-1:]))} → exit code {done.returncode}: {said[-600:]}"
    )
    return said


# ── what is tried ────────────────────────────────────────────────────────────────────────────────────────────────────

RUN = "reward-kit run run.yaml"
MAIN = {
    "run": f"{RUN} --dry-run && {RUN} && {RUN} generation.n=8 && {RUN} generation.n=8 --rescore",
    "run, two phases": f"{RUN} output.output_dir=o2 --phase inference && {RUN} output.output_dir=o2 --phase execution",
    "export": "reward-kit export outputs/first_run --to sft -o sft.jsonl && test -s sft.jsonl",
    "rewards": "reward-kit rewards list && reward-kit rewards show math && "
    "reward-kit rewards try math --answer 'So it is 72.' --ground-truth 72",
    "preview": "reward-kit preview math -s samples.jsonl",
    "datasets": "reward-kit datasets show run.yaml && reward-kit datasets formats",
    "prices": "reward-kit prices gpt-4o",
    "doctor": "reward-kit doctor",
    "completion": "reward-kit completion bash && reward-kit completion zsh && reward-kit completion fish",
    "cache": "reward-kit cache info && reward-kit cache prune --older-than 30d",
    "shell": "reward-kit shell --model mock --dataset tasks.jsonl --phase inference -o commands",
}
"""Commands that need no extra, tried in the starter's folder after its first run."""
TASK = {"task": "Create the file 'a'.", "setup_commands": [], "success_condition": "test -f a"}
SAMPLE = {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "7"}], "ground_truth": "7"}
BEST_OF_N = (
    "reward-kit best-of-n --dataset dataset.jsonl --splits math --model mock -n 2 --verifier math=reward.py:evaluate "
    "-o best.parquet"
)
OWN = {
    "base": "{ reward-kit inspect outputs/first_run || true; } 2>&1 | grep -F 'reward-kit[analysis]'",
    "analysis": "reward-kit inspect outputs/first_run --plot curve.svg",
    "hf": "reward-kit export outputs/first_run --to kto -o kto.jsonl && "
    "python -c \"import datasets; datasets.load_dataset('json', data_files='kto.jsonl', split='train')\"",
    "language": "reward-kit rewards try language_consistency --answer 'The cat is on the table.' -p target_language=en",
    "math": r"reward-kit rewards try math --answer '\boxed{\int_0^1 x\,dx}' --ground-truth '\frac12'",
    "parquet": f"reward-kit export outputs/first_run --to preference -o pairs.parquet && {BEST_OF_N}",
    "regex": "reward-kit rewards try regex --answer abc -p pattern='a.c'",
    "schema": 'reward-kit rewards try json_schema --answer \'{"a": 1}\' --ground-truth \'{"type": "object"}\'',
    "text": "reward-kit rewards try bleu --answer 'a cat on the mat' --ground-truth 'a cat on the mat'",
    "all": f"reward-kit inspect outputs/first_run --plot curve.png && {BEST_OF_N} && reward-kit inspect best.parquet",
}
"""What an extra is for, where that can be tried without a network. The others are imported."""
SERVED = {
    "base": ("reward-kit mock serve", "/models", ""),
    "serve": ("reward-kit serve math --port 0 --workers 1", "/health", ""),
    "view": ("reward-kit view outputs --no-open", "", 'src="/static/app-'),
}
"""A server's command, the path that it is asked for, and what its answer holds: the viewer's page is in the wheel."""


def try_environment(place: Place) -> Place:
    """Everything for one environment."""
    place.folder.mkdir(parents=True)
    if place.try_it("install", place.install):
        place.try_it("every --help", lambda: place.python(HELP))
        names = [] if place.name == "base" else [place.name]
        place.try_it("imports", lambda: place.python(WORKS, *names))
        _try_starters(place)
        if place.name in OWN:
            place.try_it("its own command", lambda: place.type(OWN[place.name], "starter"))
        if place.name in SERVED:
            place.try_it("its own server", lambda: _serve(place, *SERVED[place.name]))
    shutil.rmtree(place.folder)
    return place


def _try_starters(place: Place) -> None:
    """The starter in every environment; the templates and the main commands where nothing and where all is there."""
    if not place.try_it("init, run", lambda: _start(place, "starter", "")) or place.name not in ("base", "all"):
        return
    for file, row in {"samples.jsonl": SAMPLE, "tasks.jsonl": TASK}.items():
        (place.folder / "starter" / file).write_text(json.dumps(row) + "\n")
    for name, line in MAIN.items():
        place.try_it(name, lambda line=line: place.type(line, "starter"))  # type: ignore[misc]
    for template in place.python(TEMPLATES).split():
        place.try_it(
            f"init --template {template}",
            lambda template=template: _start(place, f"my_{template}", f"--template {template}"),  # type: ignore[misc]
        )


def _start(place: Place, folder: str, options: str) -> None:
    """Write a starter and do what `init` says next."""
    said = place.type(f"reward-kit init {folder} {options}")
    advised = re.search(r"^ *(cd .+)$", said, re.MULTILINE)
    assert advised, f"init does not say what to do next: {said}"
    place.type(advised[1])


def _serve(place: Place, line: str, path: str, holds: str = "") -> None:
    """Start a server, ask it once, and end it."""
    with subprocess.Popen(
        line.split(), cwd=place.folder / "starter", env=place.environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        try:
            said: list[str] = []
            address = next(_addresses(server.stdout, said), None)
            assert address, f"{line}: no address was printed: {''.join(said)[-600:]}"
            with urllib.request.urlopen(address.rstrip("/") + path, timeout=30) as answer:
                assert answer.status == 200
                assert holds in answer.read().decode(), f"{line}: the answer does not hold {holds!r}"
        finally:
            server.terminate()
            server.stdout.read()


def _addresses(lines: Iterable[str], said: list[str]) -> Iterator[str]:
    for line in lines:
        said.append(line)
        if found := re.search(r"http://\S+", line):
            yield found[0].rstrip(".,")


# ── all of it ────────────────────────────────────────────────────────────────────────────────────────────────────────


def main() -> None:
    """Build, try, print; exit 1 when something did not work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    given = parser.parse_args()
    begun = time.monotonic()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    names = given.only or ["base", *sorted(set(extras) - NOT_TRIED), "all"]
    with tempfile.TemporaryDirectory(prefix="reward-kit-smoke-") as scratch:
        wheel = given.wheel.resolve() if given.wheel else built(Path(scratch) / "dist")
        places = [Place(name, Path(scratch) / name, wheel, constraints(name, Path(scratch))) for name in names]
        with ThreadPoolExecutor(LANES) as lanes:
            tried = list(lanes.map(try_environment, places))
    print(table(tried))
    faults = [f"{place.name}, {trial.what}: {trial.fault}" for place in tried for trial in place.trials if trial.fault]
    print(f"smoke: {wheel.name}, {len(tried)} environments, {time.monotonic() - begun:.0f} s", *faults, sep="\n  ")
    if faults:
        raise SystemExit(1)


def built(folder: Path) -> Path:
    """The wheel of this checkout."""
    ran([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT], ROOT)
    return next(folder.glob("*.whl"))


def constraints(name: str, scratch: Path) -> Path:
    """The file of versions for an environment: those that an extra has of its own, or else those of development."""
    own = ROOT / "requirements" / f"{name}.txt"
    source = own if own.exists() else ROOT / "requirements" / "dev.txt"
    made = scratch / f"constraints-{source.stem}.txt"
    made.write_text(pins(source.read_text(encoding="utf-8")), encoding="utf-8")
    return made


def pins(requirements: str) -> str:
    """Hashed requirements as constraints: a line for each package, without hashes."""
    lines = [line.rstrip(" \\") for line in requirements.splitlines() if re.match(r"[\w.-]+==", line)]
    return "\n".join(lines) + "\n"


def table(tried: list[Place]) -> str:
    """A line for each environment: what worked, what did not, and how long it took."""
    rows = []
    for place in tried:
        worked = [trial.what for trial in place.trials if not trial.fault]
        failed = [trial.what for trial in place.trials if trial.fault]
        seconds = sum(trial.seconds for trial in place.trials)
        verdict = f"FAILED: {', '.join(failed)}" if failed else "ok"
        rows.append((place.name, f"{len(worked)}/{len(place.trials)}", f"{seconds:.0f} s", verdict, ", ".join(worked)))
    heads = ("environment", "worked", "time", "verdict", "what worked")
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(4)]
    lines = [heads, *rows]
    return "\n".join(
        "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[4]]) for row in lines
    )


if __name__ == "__main__":
    main()
