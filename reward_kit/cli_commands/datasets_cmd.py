# SPDX-License-Identifier: Apache-2.0
"""`reward-kit datasets`: see rows as a run will see them, and which shapes of rows are known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reward_kit.cli_commands.options import MOST, key_value_pairs
from reward_kit.cli_commands.output import echo, echo_json

if TYPE_CHECKING:
    from reward_kit.config_models import DatasetConfig
    from reward_kit.models import Sample

__all__ = ["datasets"]

_LONGEST = 600
"""Characters of one text that are shown; `--full` shows all."""


@click.group()
def datasets() -> None:
    """See the rows of a dataset as a run will see them.

    \b
    reward-kit datasets show questions.csv
    reward-kit datasets show questions.csv --column-mapping user_query=frage
    reward-kit datasets show conf/math.yaml
    reward-kit datasets show gsm8k
    reward-kit datasets formats
    """


@datasets.command()
@click.argument("path")
@click.argument("overrides", nargs=-1)
@click.option("-n", "--rows", default=3, show_default=True, type=click.IntRange(1, MOST), help="How many samples.")
@click.option("--format", "row_format", help="The shape of the rows; by default the columns decide.")
@click.option(
    "--column-mapping", multiple=True, metavar="NEW=OLD",
    help="A column's new name and its old one, e.g. user_query=question. May be given again.",
)  # fmt: skip
@click.option("--prompt-template", help="A Jinja template over the columns that makes the user turn.")
@click.option("--split", help="The split to load.")
@click.option("--config-name", help="The configuration (subset) of a Hugging Face dataset.")
@click.option("--full", is_flag=True, help="Show texts whole.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per sample.")
def show(  # noqa: PLR0913, PLR0917 - one parameter per option
    path: str, overrides: tuple[str, ...], rows: int, row_format: str | None, column_mapping: tuple[str, ...],
    prompt_template: str | None, split: str | None, config_name: str | None, full: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show the first samples: id, what is asked, the ground truth, and the columns a reward may name.

    PATH is a file, a Hugging Face name, or the YAML config of a run, which OVERRIDES may change as in `reward-kit run`.
    It may also be a name from `reward-kit benchmarks list`. If a Hugging Face dataset has the same name, the benchmark
    is shown.
    """
    mapping = key_value_pairs(column_mapping, "--column-mapping", "NEW=OLD, such as user_query=question")
    given = {
        "format": row_format, "column_mapping": mapping, "prompt_template": prompt_template,
        "split": split, "config_name": config_name,
    }  # fmt: skip
    settings = {name: value for name, value in given.items() if value}
    if Path(path).suffix in (".yaml", ".yml"):
        config, system_prompt = _of_run((path, *overrides), settings)
    elif (benchmark := _benchmark(path)) is not None:
        config, system_prompt = _of_run((f"+benchmark={benchmark}", *overrides), settings)
    elif overrides:
        raise click.UsageError(
            f"{overrides[0]!r} is an override, which only a YAML config or a benchmark takes. Use the options."
        )
    else:
        config, system_prompt = _of_file(path, settings), None
    _print(config, system_prompt, rows, whole=full, as_json=as_json)


@datasets.command()
def formats() -> None:
    """List the shapes of rows that are recognised, and what each means. A config names one with `dataset.format`."""
    from reward_kit.datasets.shapes import known_shapes

    shapes = known_shapes()
    width = max(len(shape.name) for shape in shapes)
    for shape in shapes:
        echo(f"{shape.name:<{width}}  {shape.says}")


def _of_file(path: str, settings: dict[str, Any]) -> DatasetConfig:
    from reward_kit.config_models import DatasetConfig, validated

    return validated(DatasetConfig, {"path_or_name": path, **settings}, "The dataset")


def _benchmark(path: str) -> str | None:
    """The benchmark that is named, as here (`gsm8k`) or as in a run (`+benchmark=gsm8k`); a file goes before it."""
    from reward_kit.cli_commands.benchmark_configs import benchmark_names

    key, equals, name = path.partition("=")
    if equals and key.lstrip("+") == "benchmark":
        return name
    return path if path in benchmark_names() and not Path(path).exists() else None


def _of_run(named: tuple[str, ...], settings: dict[str, Any]) -> tuple[DatasetConfig, str | None]:
    """The dataset of a run, which is `named` as `reward-kit run` takes it: its config or benchmark, then overrides."""
    from reward_kit.cli_commands.config_paths import resolve_paths
    from reward_kit.cli_commands.hydra_config import compose_jobs, find_config
    from reward_kit.config_models import DatasetConfig, validated
    from reward_kit.errors import ConfigError

    file, rest = find_config(None, None, named)
    (job,) = compose_jobs(file, rest, sweep=False)
    values = resolve_paths(job.values, file.directory)
    if not values.get("dataset"):
        raise ConfigError(f"{named[0]!r} configures no dataset. Set dataset.path_or_name in it.")
    dataset = validated(DatasetConfig, {**values["dataset"], **settings}, "The dataset")
    return dataset, values.get("system_prompt")


def _print(config: DatasetConfig, system_prompt: str | None, count: int, *, whole: bool, as_json: bool) -> None:
    from itertools import islice

    from reward_kit.datasets import load_samples

    stream = load_samples(config, system_prompt=system_prompt)
    samples = list(islice(stream, count))
    if as_json:
        for sample in samples:
            echo_json(sample.model_dump_json(exclude_none=True))
        return
    for name, meaning in stream.formats.items():
        echo(f"Format {name}: {meaning}.")
    if not stream.formats:
        echo("Format standard: our own column names.")
    for sample in samples:
        echo()
        echo("\n".join(_lines(sample, None if whole else _LONGEST)))


def _lines(sample: Sample, longest: int | None) -> list[str]:
    turns = [f"  {message.role}: {_short(message.text, longest)}" for message in sample.messages]
    fields = {
        "ground truth": "there is none" if sample.ground_truth is None else sample.ground_truth,
        "split": sample.split,
        "tools": [tool.get("function", tool).get("name") for tool in sample.tools or []] or None,
    }
    facts = [f"  {name}: {_short(value, longest)}" for name, value in fields.items() if value is not None]
    columns = [f"  column {name}: {_short(value, longest)}" for name, value in sample.columns.items()]
    return [f"{sample.id}", *turns, *facts, *columns]


def _short(value: object, longest: int | None) -> str:
    text = value if isinstance(value, str) else repr(value)
    shown = text if longest is None or len(text) <= longest else f"{text[:longest]} … ({len(text):,} characters)"
    return shown.replace("\n", "\n    ")
