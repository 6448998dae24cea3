# SPDX-License-Identifier: Apache-2.0
"""`reward-kit preview`: what a reward says of a few samples, before anything is deployed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from reward_kit.cli_commands.door_options import door_options, given_settings, split_words
from reward_kit.cli_commands.output import NOTHING_JUDGED, echo, name_settings, print_json
from reward_kit.doors import AT_PREVIEW

__all__ = ["huggingface_options", "preview"]

_SAMPLES = ("dataset.path_or_name", "dataset.max_samples")


def huggingface_options(command: Any) -> Any:
    """The flags that name a Hugging Face dataset and its columns."""
    for option in reversed(
        [
            click.option("--huggingface-dataset", "--hf", metavar="NAME", help="Samples from a Hugging Face dataset."),
            click.option("--huggingface-split", default="train", show_default=True, help="Its split."),
            click.option(
                "--huggingface-prompt-key", default="prompt", show_default=True, help="Its column of prompts."
            ),
            click.option(
                "--huggingface-response-key", default="response", show_default=True, help="Its column of answers."
            ),
            click.option(
                "--huggingface-key-map", metavar="JSON", help='Further columns to keep, as {"theirs": "ours"}.'
            ),
        ]
    ):
        command = option(command)
    return command


def key_map(text: str | None) -> dict[str, str] | None:
    """The columns to keep, from their JSON."""
    from reward_kit.errors import ConfigError

    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--huggingface-key-map is not JSON: {error}.") from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found.values()):
        raise ConfigError('--huggingface-key-map is a JSON object of names, such as \'{"answer": "ground_truth"}\'.')
    return found


@click.command()
@click.option(
    "-m", "--metrics-folders", multiple=True, metavar="NAME=PATH",
    help="A folder whose main.py has a function `evaluate`. Repeatable: the score is then the mean.",
)  # fmt: skip
@door_options(AT_PREVIEW, before="[REWARD]")
@huggingface_options
@click.option("--remote-url", metavar="URL", help="Judge by a reward that is served: asks URL/evaluate.")
@click.option(
    "--hosted", is_flag=True, help="Use the older preview service of Fireworks to judge, instead of this machine."
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
@click.pass_context
def preview(
    context: click.Context, /, metrics_folders: tuple[str, ...], remote_url: str | None, hosted: bool, as_json: bool,
    verbose: bool, **flags: Any,
) -> int:  # fmt: skip
    """Judge a few samples with a reward on this machine, with the real code, and print the verdicts.

    REWARD is a reward's name or import path; or give folders of metrics, or the address of a served reward. If a sample
    cannot be judged, it has no score, and the reason is shown. Settings of how a run judges may be given as key=value.

    \b
    reward-kit preview math -s samples.jsonl
    reward-kit preview my_rewards.py:slow -s samples.jsonl reward.timeout=300 reward.params.strict=true
    reward-kit preview -m words=metrics/words -m form=metrics/form -s samples.jsonl
    reward-kit preview my_rewards.py:correct --hf openai/gsm8k --huggingface-prompt-key question \\
        --huggingface-response-key answer
    reward-kit preview --remote-url http://127.0.0.1:8000 -s samples.jsonl
    """
    import tempfile

    from reward_kit.errors import ConfigError
    from reward_kit.evaluating import as_keywords
    from reward_kit.evaluators import (
        huggingface_dataset_to_jsonl,
        preview_evaluation,
        preview_reward,
        read_samples,
    )

    name_settings(AT_PREVIEW.spell)
    words, others = split_words(flags["words"])
    if len(others) > 1:
        raise click.UsageError(f"Got an unexpected argument {others[1]!r}. A setting is given as KEY=VALUE.", context)
    settings = given_settings(context, AT_PREVIEW, words)
    samples, most = (settings.pop(place, AT_PREVIEW.default_of(place)) for place in _SAMPLES)
    keywords = as_keywords(settings)
    named = keywords.pop("reward", None)
    reward = others[0] if others else named
    dataset = flags["huggingface_dataset"]
    if (samples is None) == (dataset is None):
        raise ConfigError("Give the samples: --samples FILE, or --huggingface-dataset NAME.")
    if [reward is not None, bool(metrics_folders), remote_url is not None].count(True) != 1:
        raise ConfigError("Say what judges, with one of: a REWARD, --metrics-folders, --remote-url.")
    if hosted and (reward is not None or keywords):
        raise ConfigError(
            "--hosted needs --metrics-folders or --remote-url, and takes no settings: Fireworks is sent a folder."
        )
    with tempfile.TemporaryDirectory(prefix="reward-kit-") as scratch:
        file = samples or huggingface_dataset_to_jsonl(
            str(dataset), flags["huggingface_split"], str(Path(scratch) / "samples.jsonl"), most,
            key_map(flags["huggingface_key_map"]), flags["huggingface_response_key"], flags["huggingface_prompt_key"],
        )  # fmt: skip
        if reward is not None:
            result = preview_reward(reward, read_samples(Path(file), most), **keywords)
        else:
            result = preview_evaluation(
                list(metrics_folders) or None, sample_file=str(file), max_samples=most, remote_url=remote_url,
                hosted=hosted, **keywords,
            )  # fmt: skip
    judged = sum(one.score is not None for one in result.results)
    if as_json:
        print_json({"results": [vars(one) for one in result.results], "total_samples": result.total_samples})
    else:
        echo("judged by Fireworks" if hosted else "judged on this machine", err=True)
        echo("\n".join(result.lines()))
    return 0 if judged else NOTHING_JUDGED
