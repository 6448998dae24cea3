# SPDX-License-Identifier: Apache-2.0
"""Scripts for a reward of your own, with a command line each. A script is then a line or two:

    # fireworks_preview.py
    preview_script("reward.py:evaluate", "answers.jsonl")

    preview_script       what the reward says of stored answers; --create makes it an evaluator at Fireworks
    regenerate_script    a model answers stored prompts again; old and new answers are compared prompt by prompt
    grpo_script          training by TRL's GRPO; --dry-run is one step without a model
    answering_options    the options of a script that has a model answer: --model, --n and --output
    errors_in_a_sentence what goes wrong in a script of yours is said in a sentence, as by the scripts above

The options come from the command line (`argv` gives others). What goes wrong is said in a sentence, and ends the script
with 1. Paths are used as they are given: a script that may be called from anywhere begins them with its own folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_kit.errors import RewardKitError, Setting, with_settings_named

if TYPE_CHECKING:
    from reward_kit.config_models import DatasetConfig

__all__ = ["answering_options", "errors_in_a_sentence", "grpo_script", "preview_script", "regenerate_script"]

_OPTIONS = {"generation.model_name": "--model", "generation.n": "--n", "output.output_dir": "--output"}
_PREVIEW = """Show what the reward says of stored answers, then create it as an evaluator at Fireworks.

  python %(prog)s                  judge the first stored answers on this machine; needs no key
  python %(prog)s --create my-id   then create the evaluator `my-id` (needs FIREWORKS_API_KEY)
"""
_REGENERATE = """Let a model answer stored prompts again, and compare the new answers with the old ones.

Both are judged by the same reward, and compared prompt by prompt. Calling the script again asks for nothing twice.

  python %(prog)s                                     a mock model answers; needs no key
  python %(prog)s --model fireworks/qwen3-8b --n 8    a model at Fireworks (needs FIREWORKS_API_KEY)
"""
_GRPO = """Train a model with the reward, by TRL's GRPO.

  python %(prog)s --dry-run                                   one step without a model
  python %(prog)s --model Qwen/Qwen3-0.6B --steps 100         needs pip install 'reward-kit[train]'

GRPO compares the answers to a prompt with each other. With --dry-run, stored answers take the place of the model's: you
see the reward of each, and how many prompts would teach something. Where all answers have the same reward, none does.
"""


def preview_script(
    reward: str,
    answers: str | Path,
    *,
    samples: int = 5,
    params: Mapping[str, Any] | None = None,
    argv: Sequence[str] | None = None,
) -> None:
    """Print what the reward says of the first `samples` stored answers; with `--create ID`, make it an evaluator.

    `reward` is a name of the library or an import path, such as `reward.py:evaluate`; `params` are given to every call.
    `answers` is a file of JSON lines, each a conversation (`messages`) that ends with an answer.
    """
    parser = _parser(_PREVIEW)
    parser.add_argument("--create", metavar="ID", help="create the evaluator at Fireworks under this id")
    parser.add_argument("--hosted", action="store_true", help="have Fireworks' older preview service judge instead")
    options = parser.parse_args(argv)
    with errors_in_a_sentence():
        from reward_kit.evaluators import Evaluator

        evaluator = Evaluator()
        evaluator.load_reward(reward, params)
        evaluator.preview(answers, max_samples=samples, hosted=options.hosted).display()
        if options.create:
            print(f"Created: {evaluator.create(options.create)['name']}")


def regenerate_script(
    reward: Callable[..., Any] | str,
    answers: str | Path,
    *,
    mock: str,
    output: str | Path,
    n: int = 1,
    argv: Sequence[str] | None = None,
    **settings: Any,
) -> None:
    """Let a model answer the stored prompts again, and print how its answers compare with the stored ones.

    `answers` is a file of stored answers, or the directory of a run. `mock` is the import path of a function
    `answer(messages, draw)`, which answers where no `--model` is given. `n` and `output` are the defaults of the
    options of these names. All other keywords are those of `regenerate`, such as `params`, `max_tokens` or `judge`.
    """
    parser = answering_options(_REGENERATE, n=n, output=output)
    options = parser.parse_args(argv)
    with errors_in_a_sentence():
        from reward_kit.regenerating import regenerate

        found = regenerate(
            answers, reward, model=options.model, n=options.n, output_dir=options.output,
            mock={"function_path": mock}, **settings,
        )  # fmt: skip
        print("\n".join(found.lines()))


def grpo_script(
    reward: Callable[..., Any] | str,
    dataset: str | Path | DatasetConfig,
    answers: str | Path,
    *,
    output: str | Path,
    tokens: int = 512,
    system_prompt: str | None = None,
    params: Mapping[str, Any] | None = None,
    argv: Sequence[str] | None = None,
) -> None:
    """Train a model on the dataset's prompts with the reward; with `--dry-run`, rehearse a step on stored answers.

    `answers` is a file of stored answers, such as `preview_script` takes. `tokens` and `output` are the defaults of the
    options of these names. `params` are given to every call of the reward.
    """
    parser = _parser(_GRPO)
    parser.add_argument("--dry-run", action="store_true", help="judge stored answers as one step; needs no model")
    parser.add_argument("--model", help="a model's folder, or its name at Hugging Face")
    parser.add_argument("--steps", type=int, default=100, help="optimizer steps (%(default)s)")
    parser.add_argument("--generations", type=int, default=8, help="completions per prompt (%(default)s)")
    parser.add_argument("--tokens", type=int, default=tokens, help="tokens that a completion may have (%(default)s)")
    parser.add_argument(
        "--output", type=Path, default=Path(output), help="where the trained model is written (%(default)s)"
    )
    options = parser.parse_args(argv)
    if options.model is None and not options.dry_run:
        parser.error("which model shall be trained? Give --model, or --dry-run to see what it would learn from.")
    with errors_in_a_sentence():
        from reward_kit.integrations.grpo import train_grpo
        from reward_kit.integrations.rehearsal import rehearse, training_prompts

        if options.dry_run:
            print("\n".join(rehearse(answers, reward, params).lines()))
            return
        trained = train_grpo(
            options.model, training_prompts(dataset, system_prompt=system_prompt), reward, params=params,
            output_dir=options.output, max_steps=options.steps, num_generations=options.generations,
            max_completion_length=options.tokens,
        )  # fmt: skip
        print("\n".join(trained.lines()))


def answering_options(about: str | None, *, n: int = 1, output: str | Path | None = None) -> argparse.ArgumentParser:
    """A parser with the options `--model`, `--n` and `--output`, for a script in which a model answers.

    `about` is what `--help` says first; a script gives its docstring. Add options of your own, then parse:

        options = answering_options(__doc__, n=4).parse_args()
        result = evaluate("dataset.jsonl", my_reward, model=options.model, n=options.n, output_dir=options.output)
    """
    parser = _parser(about)
    parser.add_argument(
        "--model", default="mock", help="who answers; mock: a function in the place of a model (default)"
    )
    parser.add_argument("--n", type=int, default=n, help="answers per prompt (%(default)s)")
    where = "a directory to keep everything in; run again to go on" + ("" if output is None else " (%(default)s)")
    parser.add_argument("--output", type=Path, default=None if output is None else Path(output), help=where)
    return parser


def _parser(about: str | None) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)


@contextmanager
def errors_in_a_sentence() -> Iterator[None]:
    """Say what went wrong in a sentence, without a traceback, and end the script with 1.

    It is for errors of this package: they tell a person what to do, and where they were raised would only hide that.
    Put it before the function that a script calls, or around a few lines of it:

        @errors_in_a_sentence()
        def main() -> None: ...
    """
    try:
        yield
    except RewardKitError as error:
        print(f"{Path(sys.argv[0]).name}: error: {with_settings_named(str(error), _as_option)}", file=sys.stderr)
        raise SystemExit(1) from None


def _as_option(setting: Setting) -> str:
    """A setting of a run that an error names, as it is given to these scripts."""
    name = _OPTIONS.get(setting.place)
    return str(setting) if name is None else f"`{name}`" if setting.value is None else f"`{name} {setting.value}`"
