# SPDX-License-Identifier: Apache-2.0
"""`reward-kit jobs`: trainings and evaluations at Fireworks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from reward_kit.cli_commands.output import echo, print_json

if TYPE_CHECKING:
    from reward_kit.deploy.fireworks.api import Names, Unasked
    from reward_kit.deploy.fireworks.jobs import FireworksJob

__all__ = ["jobs"]

Kind = Literal["rl", "evaluate"]


@click.group()
def jobs() -> None:
    """Start and follow jobs at Fireworks: reinforcement fine-tuning (`rl`), and evaluations (`evaluate`).

    The key is FIREWORKS_API_KEY; the account follows from it. You choose the id of a job. If you start the same id
    twice, there is still only one job.

    \b
    reward-kit jobs rl start --id math-1 --model qwen3-8b --dataset prompts --evaluator math-v1 --epochs 1
    reward-kit jobs rl wait math-1
    reward-kit jobs evaluate start --id check-1 --evaluator math-v1 --dataset answers --output-dataset verdicts
    """


@jobs.group()
def rl() -> None:
    """Reinforcement fine-tuning with an evaluator as the reward."""


@jobs.group()
def evaluate() -> None:
    """Evaluations of a dataset by an evaluator."""


_verbose = click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
_wait = click.option("--wait", is_flag=True, help="Wait until the job has ended.")
_dry_run = click.option("--dry-run", is_flag=True, help="Print the request and send nothing.")


@rl.command(name="start")
@click.option("--id", "job_id", required=True, help="The job's id: small letters, digits and hyphens.")
@click.option("--model", required=True, help="The base model, such as qwen3-8b, or its full name.")
@click.option("--dataset", required=True, help="A dataset at Fireworks, by its id.")
@click.option("--evaluator", required=True, help="An evaluator at Fireworks, by its id.")
@click.option("--evaluation-dataset", help="Another dataset, to evaluate on.")
@click.option("--output-model", help="The id of the model that comes out.")
@click.option("--display-name", help="A name for people.")
@click.option("--epochs", type=click.IntRange(min=1), help="How often the data are seen.")
@click.option(
    "--learning-rate",
    type=click.FloatRange(min=0, min_open=True),
    help="The learning rate, such as 1e-5.",
)
@click.option("--lora-rank", type=click.IntRange(min=0), help="The rank of the LoRA adapter.")
@click.option("--batch-size", type=click.IntRange(min=1), help="Tokens in one step.")
@click.option(
    "--max-context-length", type=click.IntRange(min=1), help="The most tokens of a prompt and its answer together."
)
@click.option("--n", type=click.IntRange(min=1), help="Answers per prompt.")
@click.option("--temperature", type=click.FloatRange(min=0), help="The sampling temperature of the answers.")
@click.option(
    "--top-p", type=click.FloatRange(0, 1), help="Sample among the tokens that hold this share of the probability."
)
@click.option("--top-k", type=click.IntRange(min=0), help="Sample among this many of the likeliest tokens.")
@click.option("--max-output-tokens", type=click.IntRange(min=1), help="The most tokens of one answer.")
@click.option("--loss", "loss_method", type=click.Choice(["GRPO", "DAPO", "GSPO_TOKEN"]), help="The loss.")
@click.option(
    "--kl-beta", type=click.FloatRange(min=0), help="The weight of the penalty for moving away from the base model."
)
@_wait
@_dry_run
@_verbose
def start_rl(
    job_id: str, model: str, dataset: str, evaluator: str, wait: bool, dry_run: bool, verbose: bool, **settings: Any
) -> None:
    """Start a training. Its data and its evaluator are at Fireworks already.

    \b
    reward-kit export outputs/run --to fireworks -o prompts.jsonl --upload prompts
    reward-kit deploy --target fireworks --id math-v1 --function-ref my_rewards:correct
    reward-kit jobs rl start --id math-1 --model qwen3-8b --dataset prompts --evaluator math-v1
    """
    from reward_kit.deploy.fireworks.api import FireworksAPI, Unasked
    from reward_kit.deploy.fireworks.jobs import start_training, training_body

    given = {name: value for name, value in settings.items() if value is not None}
    if dry_run:
        unasked = Unasked()
        body = training_body(unasked, model=model, dataset=dataset, evaluator=evaluator, settings=given)
        _show_request(unasked, "reinforcementFineTuningJobs", job_id, body)
        return
    api = FireworksAPI()
    body = training_body(api, model=model, dataset=dataset, evaluator=evaluator, settings=given)
    _begun(start_training(api, job_id, body), "rl", job_id, wait=wait)


@evaluate.command(name="start")
@click.option("--id", "job_id", required=True, help="The job's id: small letters, digits and hyphens.")
@click.option("--evaluator", required=True, help="An evaluator at Fireworks, by its id.")
@click.option("--dataset", required=True, help="The dataset to judge, by its id.")
@click.option("--output-dataset", required=True, help="The id of the dataset that the verdicts go to.")
@click.option("--display-name", help="A name for people.")
@_wait
@_dry_run
@_verbose
def start_evaluate(
    job_id: str,
    evaluator: str,
    dataset: str,
    output_dataset: str,
    display_name: str | None,
    wait: bool,
    dry_run: bool,
    verbose: bool,
) -> None:
    """Start an evaluation."""
    from reward_kit.deploy.fireworks.api import FireworksAPI, Unasked
    from reward_kit.deploy.fireworks.jobs import evaluation_body, start_evaluation

    def asked(names: Names) -> dict[str, Any]:
        return evaluation_body(
            names,
            job_id,
            evaluator=evaluator,
            dataset=dataset,
            output_dataset=output_dataset,
            display_name=display_name,
        )

    if dry_run:
        unasked = Unasked()
        _show_request(unasked, "evaluationJobs", job_id, asked(unasked))
        return
    api = FireworksAPI()
    body = asked(api)
    _begun(start_evaluation(api, job_id, body), "evaluate", job_id, wait=wait)


def _show_request(api: Unasked, collection: str, job_id: str, body: dict[str, Any]) -> None:
    echo(f"POST {api.base}/v1/accounts/{api.account}/{collection}  (id {job_id})", err=True)
    print_json(body)


def _begun(job: FireworksJob, kind: Kind, job_id: str, *, wait: bool) -> None:
    echo(f"started {job.name}", err=True)
    if wait:
        _follow(job, None)
    else:
        echo(f"follow it with: reward-kit jobs {kind} wait {job_id}", err=True)


def _follow(job: FireworksJob, timeout: float | None) -> None:
    from reward_kit.deploy.fireworks.jobs import job_lines

    seen: list[str] = []

    def tell(details: dict[str, Any]) -> None:
        lines = job_lines(details)
        if lines != seen:
            seen[:] = lines
            echo(" · ".join(lines), err=True)

    echo(job.wait(timeout, tell))


def _add_following(group: click.Group, kind: Kind) -> None:
    """The commands that both kinds of jobs have."""

    def job(job_id: str) -> FireworksJob:
        from reward_kit.deploy.fireworks.api import FireworksAPI
        from reward_kit.deploy.fireworks.jobs import FireworksJob

        return FireworksJob(FireworksAPI(), kind, job_id)

    @group.command(name="status")
    @click.argument("job_id")
    @click.option("--json", "as_json", is_flag=True, help="Print everything that Fireworks says.")
    @_verbose
    def status(job_id: str, as_json: bool, verbose: bool) -> None:
        """Show the state of a job."""
        from reward_kit.deploy.fireworks.jobs import job_lines

        details = job(job_id).details
        if as_json:
            print_json(details)
        else:
            echo("\n".join(job_lines(details)))

    @group.command(name="logs")
    @click.argument("job_id")
    @_verbose
    def logs(job_id: str, verbose: bool) -> None:
        """Print what a job printed. For a training, Fireworks reports only its state and progress."""
        echo(job(job_id).logs())

    @group.command(name="cancel")
    @click.argument("job_id")
    @_verbose
    def cancel(job_id: str, verbose: bool) -> None:
        """Stop a job. An evaluation is deleted: Fireworks cannot stop one and keep it."""
        job(job_id).cancel()

    @group.command(name="wait")
    @click.argument("job_id")
    @click.option("--timeout", type=click.FloatRange(min=0), help="The most seconds to wait.")
    @_verbose
    def wait(job_id: str, timeout: float | None, verbose: bool) -> None:
        """Wait until a job has ended. If it failed, the command exits with 1."""
        _follow(job(job_id), timeout)


_add_following(rl, "rl")
_add_following(evaluate, "evaluate")
