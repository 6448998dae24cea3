# SPDX-License-Identifier: Apache-2.0
"""`reward-kit benchmarks`: see which benchmarks can be run by name, and what each asks and how it judges."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from reward_kit.cli_commands.options import completed_by
from reward_kit.cli_commands.output import echo, echo_json

if TYPE_CHECKING:
    from reward_kit.cli_commands.benchmark_configs import Benchmark

__all__ = ["benchmarks"]

_WIDTH = 100


@click.group()
def benchmarks() -> None:
    """See the benchmarks that can be run by name.

    Each is a YAML file with dataset, prompt, reward and notes. Write your own benchmark into conf/benchmark/NAME.yaml.

    \b
    reward-kit benchmarks list
    reward-kit benchmarks show gsm8k
    reward-kit run +benchmark=gsm8k generation.model_name=NAME dataset.max_samples=20
    """


@benchmarks.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print the notes of all benchmarks as JSON.")
def list_(as_json: bool) -> None:
    """List every benchmark with what it asks."""
    from reward_kit.cli_commands.benchmark_configs import benchmark_names, load_benchmark

    found = {name: load_benchmark(name).notes for name in benchmark_names()}
    if as_json:
        shown = [notes.model_dump() for notes in found.values()]
        echo_json(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    width = max(map(len, found))
    for name, notes in found.items():
        echo(f"{name:<{width}}  {textwrap.shorten(notes.about, _WIDTH - width - 2, placeholder=' …')}")


@benchmarks.command()
@click.argument("name", shell_complete=completed_by("complete_benchmarks"))
@click.option("--json", "as_json", is_flag=True, help="Print notes and settings as JSON.")
def show(name: str, as_json: bool) -> None:
    """Show what a benchmark asks, with which prompt, how it judges, and what published figures used.

    NAME is one that `reward-kit benchmarks list` shows.
    """
    from reward_kit.cli_commands.benchmark_configs import load_benchmark

    found = load_benchmark(name)
    if as_json:
        echo_json(json.dumps({"benchmark": found.notes.model_dump(), **found.settings}, indent=2, ensure_ascii=False))
        return
    echo("\n\n".join(_parts(found)))


def _parts(found: Benchmark) -> Iterator[str]:
    notes = found.notes
    yield f"{notes.title} ({notes.name})\n{_wrapped(notes.about)}\n{_wrapped(f'Source: {notes.source}')}"
    dataset = found.settings.get("dataset", {})
    yield _section("Dataset", {key: value for key, value in dataset.items() if key != "prompt_template"})
    if template := dataset.get("prompt_template"):
        yield f"Prompt (published by {notes.prompt}):\n{textwrap.indent(template, '  ')}"
    else:
        yield _wrapped(f"Prompt: {notes.prompt}")
    for name in ("generation", "agent", "judge", "reward", "sandbox"):
        if found.settings.get(name):
            yield _section(name.capitalize(), found.settings[name])
    yield _section("Figures", notes.metrics)
    if notes.needs:
        yield _wrapped(f"Needs: {'; '.join(notes.needs)}")
    yield _wrapped(f"Published figures: {notes.published}")
    yield _wrapped(f"Where this run differs: {notes.differs}")
    yield f"Run it:\n  reward-kit run +benchmark={notes.name} generation.model_name=NAME dataset.max_samples=20"


def _section(title: str, values: Mapping[str, Any]) -> str:
    import yaml

    text = yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True, width=_WIDTH)
    return f"{title}:\n{textwrap.indent(text.rstrip(), '  ')}"


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(" ".join(text.split()), _WIDTH, break_on_hyphens=False))
