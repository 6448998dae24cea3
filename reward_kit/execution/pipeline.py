# SPDX-License-Identifier: Apache-2.0
"""`EvaluationPipeline`: the spine. A dataset, a model and a reward in; judged answers on disk and their figures out."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast
from uuid import uuid4

from reward_kit.config_models import (
    EngineConfig,
    PipelineConfig,
    RewardConfig,
    load_config,
    validated,
    without_unused,
)
from reward_kit.datasets import RolloutStream
from reward_kit.datasets.sources import Given
from reward_kit.errors import ConfigError, RewardKitError, StorageError
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.engine import End, Engine, Reporter
from reward_kit.execution.finish import check_copies, finish, interim_summary
from reward_kit.execution.first_rows import looked_at
from reward_kit.execution.mirroring import Mirroring
from reward_kit.execution.money import Money
from reward_kit.execution.owed import Ledger, UnjudgedOnDisk, Work, Workload, open_workload, owe_failures_again
from reward_kit.execution.plan import Plan, make_plan
from reward_kit.execution.result import Phase, RunResult
from reward_kit.execution.run_identity import reading_of, results_settings, rollouts_settings
from reward_kit.execution.run_summary import RunSummary
from reward_kit.execution.vocabulary import RUN, Vocabulary
from reward_kit.generation.budget import Budget
from reward_kit.generation.cache.sharing import within_scope
from reward_kit.generation.client import ModelClient
from reward_kit.generation.stack import ModelStack
from reward_kit.generation.usage import summed, used_by
from reward_kit.inherited_config import remark, take
from reward_kit.models import Completion, Rollout, Usage
from reward_kit.redaction import mask, remember_settings, secret_paths, without_secrets
from reward_kit.scoring.rewards import Reward, Rewards, load_rewards
from reward_kit.storage.at_hand import exists
from reward_kit.storage.batch_journal import BatchJournal
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_index import JournalIndex
from reward_kit.storage.projected_file import ProjectedFile
from reward_kit.storage.run_directory import (
    ROLLOUTS,
    RunDirectory,
    digest_of,
    free_place,
    held_by,
    line_numbers,
    other_files,
    refuse_cut,
    set_run_aside,
)
from reward_kit.storage.samples import SAMPLES, Samples
from reward_kit.storage.turn_journal import TurnJournal
from reward_kit.stores.addresses import beside, is_stored
from reward_kit.stores.fetching import fetch
from reward_kit.stores.reasons import StoreError
from reward_kit.utils.event_loop import run_sync

if TYPE_CHECKING:
    from reward_kit.execution.batches import BatchStage

__all__ = ["EvaluationPipeline"]

_log = logging.getLogger(__name__)

_JUDGE_THE_REST = (
    "Restore it, or generate what is missing: run again without `phase=execution` and `rescore`. "
    "To judge only what is left, say so with `reward-kit doctor {!r} --mend`."
)
_CACHE_SCOPE = "cache_scope"
_OTHER_DIRECTORY = "Choose another place with `output.output_dir=…`"
_OR_RESCORE = "Judge the old rollouts again with `rescore`, or choose another place with `output.output_dir=…`."


class _Claim(NamedTuple):
    """What a part of a run directory depends on, and what to do where it depends on something else."""

    which: Literal["rollouts", "results"]
    digest: str
    settings: dict[str, Any]
    advice: str


class EvaluationPipeline:
    """One run. Run it as often as you like: it only does what is missing.

    result = EvaluationPipeline(config).run()
    """

    def __init__(  # noqa: PLR0913 - each stands in for a part of the config
        self,
        config: PipelineConfig | Mapping[str, Any],
        *,
        phase: Phase = "both",
        rescore: bool = False,
        retry_failed: bool = False,
        keep_going: bool = False,
        overwrite: bool = False,
        resume_from_mirror: bool = False,
        reward: Callable[..., Any] | None = None,
        samples: Iterable[Given] | RolloutStream | None = None,
        rollouts: Collection[Rollout] | None = None,
        client: ModelClient | None = None,
        reporter: Reporter | None = None,
        vocabulary: Vocabulary = RUN,
        engine: EngineConfig | Mapping[str, Any] | str | None = None,
        detach: bool = False,
    ) -> None:
        """Say what to run. `reward`, `samples`, `rollouts` and `client` stand in for what the config would name.

        So does `engine`: `"ray"`, or the settings of the config's section `engine`.

        `overwrite` begins anew where another run is; that one is set aside, not deleted. `resume_from_mirror` goes on
        with the run that `output.mirror` holds. With `detach`, batches are submitted and not waited for: the same run,
        entered again, fetches what is ready. A run whose first answers could not be judged, all for the same reason,
        ends, unless it is told to `keep_going`.
        """
        config = config if isinstance(config, PipelineConfig) else _read(config)
        self.config = config if engine is None else _with_engine(config, engine)
        remember_settings(self.config.model_dump())
        if self.config.generation.models is not None:
            raise ConfigError(
                "`generation.models` is for `reward-kit run`, which makes a run of each. Here, set "
                "`generation.model_name`, and make a run for each model."
            )
        given = rollouts is not None
        self.phase: Phase = "execution" if rescore or given or self.config.rollouts_file else phase
        self._rollouts = rollouts
        self._vocabulary = vocabulary
        self._rescore = rescore
        self._retry_failed = retry_failed
        self._keep_going = keep_going
        self._overwrite = overwrite
        self._mirroring = Mirroring(self.config.output, resume=resume_from_mirror)
        self._fetched: Path | None = None
        self._given_reward = reward
        self._samples = samples
        self._client = client
        self._reporter = reporter
        self._detach = detach
        self._check_transport()

    def run(self) -> RunResult:
        """Run to the end and return the figures. Works in a plain script and inside a notebook's running loop."""
        return run_sync(self.run_async)

    async def run_async(self) -> RunResult:
        """The same, for callers that are asynchronous themselves."""
        check_copies(self.config)
        self._check_agent()
        with self._rollouts_at_hand():
            await self._mirroring.restore()
            self._require_rollouts()
            reward = self._reward()
            workload = self._workload(reward)
            self._check_model(workload)
            if self._overwrite:
                set_run_aside(Path(self.config.output.output_dir))
            with RunDirectory(Path(self.config.output.output_dir)) as directory:
                await self._mirroring.begin()  # first: a mirror that cannot be had leaves nothing behind here
                finished = False
                try:
                    result = await self._run_in(directory, workload, reward)
                    finished = result.status != "interrupted"
                finally:
                    not_mirrored = await self._mirroring.end(finished=finished)
                return replace(result, not_mirrored=not_mirrored)

    async def _run_in(self, directory: RunDirectory, workload: Workload, reward: Rewards | None) -> RunResult:
        """Do what is owed in a directory that is ours, as one phase in its manifest."""
        facts = self._facts(workload)
        self._claim(directory, reward, facts)
        if _holds_former_ids(directory):
            workload.keep_former_ids()
        else:
            directory.note(_IDS, "without the ground truth")
        if (known := self._finished_before(directory, facts)) is not None:
            return known
        whole = workload.needs_model and self._has_every_answer(directory, facts)
        directory.write_config(_as_written(self.config), left_out=_left_out(self.config))
        entry = directory.begin_phase(self.phase, facts)
        try:
            with within_scope(partial(_cache_scope, directory)):
                result = await self._enter(directory, workload, reward, has_every_answer=whole)
        except BaseException as error:
            with contextlib.suppress(RewardKitError):  # a full disk must not hide what went wrong
                directory.end_phase(entry, "failed", {"error": mask(f"{type(error).__name__}: {error}")})
            raise
        ending = {"files": self._sizes(directory), "seconds": result.counters.seconds}
        directory.end_phase(entry, result.status, ending)
        return result

    def plan(self) -> Plan:
        """What running would do and cost, without doing any of it."""
        self._check_agent()
        self._mirroring.refuse_plan()
        with self._rollouts_at_hand():
            return self._plan()

    def _plan(self) -> Plan:
        self._require_rollouts()
        reward = self._reward()
        workload = self._workload(reward)
        place = Path(self.config.output.output_dir)
        directory = RunDirectory.seen_from_outside(place)
        if self._overwrite or self._begins_anew(directory, self._facts(workload)):
            directory = RunDirectory.seen_from_outside(free_place(place))  # as if nothing were there
        if _holds_former_ids(directory):
            workload.keep_former_ids()
        rollouts, results = self._claims(reward)
        anew = self._rescore and results is not None and not self._goes_on(directory, results, reward)
        if not anew:
            anew = _refuse_other_files(directory, reward)
        for claim in (rollouts, None if anew else results):
            if claim is None or directory.is_bound(claim.which, claim.digest, claim.settings, advice=claim.advice):
                continue
            if directory.is_claimed(claim.which):  # by something that is worth nothing, and is set aside
                anew = True
                directory = RunDirectory.seen_from_outside(free_place(place)) if claim is rollouts else directory
        config = _with_output_dir(self.config, directory.path)
        with within_scope(lambda: directory.noted(_CACHE_SCOPE) or ""):
            return make_plan(
                config, workload, reward, self._client,
                retry_failed=self._retry_failed, anew=anew, by_content=self._judges_samples,
            )  # fmt: skip

    async def _enter(
        self, directory: RunDirectory, workload: Workload, reward: Rewards | None, *, has_every_answer: bool
    ) -> RunResult:
        async with contextlib.AsyncExitStack() as open_things:
            directory.always_on_disk = self.config.output.sync == "batch"
            rollouts = open_things.enter_context(self._open_rollouts(directory, workload))
            beside = self._open_projection(open_things, directory, rollouts)
            self._vocabulary.prepare(directory)
            results = open_things.enter_context(directory.results()) if reward is not None else None
            if self._retry_failed:
                _owe_failures_again(rollouts if workload.needs_model else None, results)
            ledger = self._ledger(rollouts, results, reward)
            if has_every_answer and not rollouts.damaged and UnjudgedOnDisk.suits(ledger):
                workload = self._looking(UnjudgedOnDisk(), reward)
            self._see_what_is_missing(directory, rollouts, results)
            lost_samples = _lacks_samples(ledger)
            again = directory.samples if self.phase != "execution" else None  # else nobody has what is damaged
            if _set_damage_aside(directory, rollouts, results, again):
                ledger = self._ledger(rollouts, results, reward)
            ledger.lost_samples = lost_samples
            open_things.callback(_note_held, directory, rollouts, results, directory.samples)
            counters = RunCounters(self.phase, workload.expected(ledger), len(ledger.rollouts), len(ledger.results))
            counters.mirror = self._mirroring.mirror
            serving = await open_things.enter_async_context(contextlib.AsyncExitStack())
            money = self._money(ledger, directory, counters)
            open_things.callback(_settle_quietly, money)
            models, turns, batches = ModelStack(), None, None
            if workload.needs_model and self.config.generation.transport == "batch":
                batches = await serving.enter_async_context(self._open_batches(directory, counters, money.budget))
                if (left := await self._bring(batches, workload, ledger)) is not None:
                    known = cast(RunSummary, interim_summary(self.config, counters))
                    return RunResult(left.status, directory.path, known, counters, left.reason)
                models = batches.models(ledger.known)
            engine = self._engine(directory, counters, money.budget, beside)
            await serving.enter_async_context(engine.opened())
            if workload.needs_model and batches is None:
                turns = self._open_turns(open_things, directory)
                models = await serving.enter_async_context(engine.open_models(self._client, turns, ledger.known))
            held = _Held(directory, rollouts, results, directory.samples)
            keep = [money.keep, held.keep, *([] if turns is None else [turns.sync])]
            works = _with_answers(batches, workload.works(ledger))
            end = await engine.run(
                works, models, rollouts, results, reward,
                blocking=workload.blocking, backlog=ledger.has_backlog, keep=keep,
                keep_going=self._keep_going or _was_judged(directory, ledger),
            )  # fmt: skip
            end = _settled(end, batches, rollouts, results)
            await serving.aclose()  # the client and the cache's index are of no more use
            counters.skipped_rows = workload.skipped
            counters.called_for = ledger.called_for if end.status == "finished" else None
            counters.earlier = models.earlier()
            self._note_what_was_met(directory, workload, models, money.budget)
            if end.status == "interrupted":
                known = cast(RunSummary, interim_summary(self.config, counters))
                return RunResult(end.status, directory.path, known, counters, end.reason)
            money.unfinished = _end_turns(turns, rollouts)
            money.settle()
            summary = finish(
                self.config, directory, rollouts, results, counters, ledger.position_of, self._vocabulary, beside,
                money=money,
            )  # fmt: skip
            return RunResult(end.status, directory.path, cast(RunSummary, summary), counters, end.reason)

    def _workload(self, reward: Rewards | None) -> Workload:
        return self._looking(open_workload(self.config, self.phase, self._samples, self._rollouts), reward)

    def _looking(self, workload: Workload, reward: Rewards | None) -> Workload:
        """The workload, whose first rows are looked at before anything is asked."""
        if reward is not None:
            ahead = not workload.blocking
            workload.look = partial(looked_at, rewards=reward, ahead=ahead, keep_going=self._keep_going)
        return workload

    def _check_agent(self) -> None:
        """Refuse settings of an agent that cannot be right, before there is anything on disk."""
        if self.config.agent is not None and self.phase != "execution":
            from reward_kit.agent.checks import check_agent  # here: most runs have no agent

            check_agent(self.config.agent)

    def _check_model(self, workload: Workload) -> None:
        """Refuse a model that cannot be asked before there is anything on disk.

        A run that is there already may need no model any more, and on a cluster the keys may be where the actors are.
        """
        begun = Path(self.config.output.output_dir, "manifest.json").exists() and not self._overwrite
        here = self.config.engine.name == "local"
        if workload.needs_model and self._client is None and here and not begun:
            from reward_kit.generation.factory import check_model  # here: scoring alone needs no client

            check_model(self.config.generation)

    def _check_transport(self) -> None:
        """Refuse, before anything else, what cannot be had by batches."""
        generation = self.config.generation
        if generation.transport != "batch" or not generation.enabled or self.phase == "execution":
            return
        if self._client is not None:
            raise ConfigError(
                "A client of your own cannot be used with batches. Leave `generation.transport=batch` out, or the "
                "client."
            )
        from reward_kit.generation.batch.choose import batch_model  # here: most runs have no batches

        batch_model(generation)

    def _open_batches(
        self, directory: RunDirectory, counters: RunCounters, budget: Budget | None
    ) -> contextlib.AbstractAsyncContextManager[BatchStage]:
        from reward_kit.execution.batches import open_batches  # here: most runs have no batches

        settings = digest_of(rollouts_settings(self.config))
        return open_batches(self.config, directory, settings, counters, budget, self._mirroring.hold)

    async def _bring(self, batches: BatchStage, workload: Workload, ledger: Ledger) -> End | None:
        """Have the answers of all batches on this disk; how the run ends for now where they are not."""
        watch = None if self._reporter is None else self._reporter.watch
        not_yet = await batches.bring(workload, ledger, detach=self._detach, watch=watch)
        if not_yet is None:
            return None
        return End("interrupted" if not_yet.is_interrupted else "detached", not_yet.reason)

    def _open_turns(self, files: contextlib.AsyncExitStack, directory: RunDirectory) -> TurnJournal | None:
        """See that nothing is paid twice; and the turns of unfinished episodes, for a run with an agent."""
        _refuse_to_pay_twice(directory)
        if self.config.agent is None:
            return None
        self._see_the_environment(directory)
        return files.enter_context(TurnJournal(directory.episodes_path, always_on_disk=directory.always_on_disk))

    def _see_the_environment(self, directory: RunDirectory) -> None:
        """Say where the source of an agent's worlds is not what it was. It may have been mended: nothing is refused.

        Steps that are played again are compared with the record, whatever the source.
        """
        from reward_kit.agent.from_settings import environment_source  # here: most runs have no agent

        if self.config.agent is None:
            return
        source = environment_source(self.config.agent)
        if directory.noted("agent_source") not in (None, source):
            _log.warning(
                "The source of %r has changed since this run was started, so earlier and later episodes may differ. "
                "To start from the beginning, choose another `output.output_dir`.",
                self.config.agent.environment or self.config.agent.tools,
            )  # fmt: skip
        directory.note("agent_source", source)

    def _engine(
        self, directory: RunDirectory, counters: RunCounters, budget: Budget | None, beside: ProjectedFile | None
    ) -> Engine:
        """Where the stages run: on this machine, unless the config says otherwise."""
        parts = (self.config, directory.path, counters, self._reporter, self._vocabulary)
        if self.config.engine.name == "ray":
            from reward_kit.execution.ray_engine.engine import RayEngine  # here: it needs an extra

            return RayEngine(*parts, budget=budget, beside=beside, reward=self._given_reward)
        from reward_kit.execution.local_engine import LocalEngine

        return LocalEngine(*parts, budget=budget, beside=beside)

    def _note_what_was_met(
        self, directory: RunDirectory, workload: Workload, models: ModelStack, budget: Budget
    ) -> None:
        """Keep in the manifest, or say, what only the run itself could find out."""
        if workload.formats:
            directory.note("dataset_format", workload.formats)
        if budget.overspent:
            _log.warning(
                "max_cost=%g was exceeded by %.4g: requests that had been sent already cost more than was estimated "
                "for them.", self.config.max_cost, budget.overspent,
            )  # fmt: skip
        if models.dropped_parameters:
            _note_more(directory, "dropped_parameters", models.dropped_parameters)

    def _money(self, ledger: Ledger, directory: RunDirectory, counters: RunCounters) -> Money:
        """What may still be spent: by this run's rollouts and its judge, in all its entries together."""
        generating = ledger.journal.spent() if self._rollouts_path() is None else 0.0  # others were paid for elsewhere
        by_batches = self.config.generation.transport == "batch"
        return Money(directory, counters, generating, self.config.max_cost, by_batches=by_batches)

    def _reward(self) -> Rewards | None:
        return None if self.phase == "inference" else load_rewards(self.config.reward, self._given_reward)

    def _ledger(self, rollouts: Journal, results: Journal | None, reward: Rewards | None) -> Ledger:
        return Ledger(
            rollouts,
            rollouts.index(),
            results.index() if results is not None else JournalIndex(),
            whole_groups=reward is not None and reward.judge_groups,
            scoring=reward is not None,
            results_journal=results if self._judges_samples else None,
        )

    @property
    def _judges_samples(self) -> bool:
        """Whether what is judged is the samples themselves, and not what a second file has of them."""
        return self._vocabulary.projection is None

    def _rollouts_path(self) -> Path | None:
        if self._rollouts is not None:
            return Path(os.devnull)  # they are the caller's; nothing is to be read or kept here
        if self.config.rollouts_file is None:
            return None
        return self._fetched or Path(self.config.rollouts_file)

    @contextlib.contextmanager
    def _rollouts_at_hand(self) -> Iterator[None]:
        """Have the file of rollouts on this machine for as long as this lasts, where it is in a store."""
        address = self.config.rollouts_file
        if address is None or not is_stored(address):
            yield
            return
        with tempfile.TemporaryDirectory(prefix="reward-kit-") as folder:
            try:
                self._fetched = fetch(address, Path(folder))
                if exists(there := beside(address, SAMPLES)):
                    fetch(there, Path(folder))
            except StoreError as error:
                raise ConfigError(
                    f"Cannot fetch {address!r}: {error}. Correct `rollouts_file`, or check your access rights."
                ) from error
            try:
                yield
            finally:
                self._fetched = None

    def _require_rollouts(self) -> None:
        """Refuse to score what is not there, before a directory is made for it."""
        path = self._rollouts_path() or Path(self.config.output.output_dir) / ROLLOUTS
        if self.phase == "execution" and self._overwrite and self._rollouts_path() is None:
            raise ConfigError(
                "`overwrite` sets all rollouts aside, so there would be none to score. Use `rescore` instead."
            )
        if self.phase == "execution" and not path.exists():
            raise ConfigError(
                f"There are no rollouts to score: {str(path)!r} does not exist. "
                "Generate them first with `phase=inference`, or name a file with `rollouts_file=…`."
            )

    def _open_rollouts(self, directory: RunDirectory, workload: Workload) -> Journal:
        path = self._rollouts_path()
        if path is not None:
            return Journal(path, read_only=True)
        from_the_data = self.phase != "execution" and not workload.needs_model
        return directory.rollouts(owed_again=from_the_data)

    def _projection(self, directory: RunDirectory) -> ProjectedFile | None:
        """The second file of rollouts that this run makes, where it makes any."""
        if self.phase == "execution" or self._vocabulary.projection is None:
            return None
        return self._vocabulary.projection(directory.path)

    def _open_projection(
        self, open_things: contextlib.AsyncExitStack, directory: RunDirectory, rollouts: Journal
    ) -> ProjectedFile | None:
        """The same, holding what the rollouts hold."""
        beside = self._projection(directory)
        if beside is None:
            return None
        open_things.callback(beside.close)
        if (kept := beside.mend(rollouts)) is not None:
            _log.warning(
                "%r was changed by hand. It is written again, and the changed file is kept as %r.",
                str(beside.path),
                kept.name,
            )
        return beside

    def _sizes(self, directory: RunDirectory) -> dict[str, list[int]]:
        """The size of each file of lines, and when it was last written to: one that has both still is untouched."""
        beside = self._projection(directory)
        paths = (
            directory.path / SAMPLES,
            directory.rollouts_path,
            directory.results_path,
            *(() if beside is None else (beside.path,)),
        )
        found = [(path.name, path.stat()) for path in paths if path.exists()]
        return {name: [status.st_size, status.st_mtime_ns] for name, status in found}

    def _see_what_is_missing(self, directory: RunDirectory, rollouts: Journal, results: Journal | None) -> None:
        """Refuse to judge a part as if it were the whole; what can be made again is owed, and said."""
        if self.phase == "execution":
            refuse_cut(rollouts, _JUDGE_THE_REST.format(str(rollouts.path.parent)))
            refuse_cut(rollouts.samples)
            generating = [entry for entry in directory.phases if entry["phase"] != "execution"]
            if rollouts.path == directory.rollouts_path and generating and generating[-1]["status"] != "finished":
                _log.warning("Generation was not finished: only the %d rollouts on disk are scored.", rollouts.keys)
        for journal in (rollouts, results):
            if journal is None:
                continue
            if journal.unchecked:
                _log.warning(
                    "%r has %d lines that were written before reward-kit had checksums: they are read, but could not "
                    "be checked.",
                    str(journal.path), journal.unchecked,
                )  # fmt: skip
            if (held := held_by(journal.path)) is not None and (found := journal.keys) < held:
                _log.warning(
                    "%r holds %d of the %d lines it had: what is missing is made again.", str(journal.path), found, held
                )

    def _claims(self, reward: Rewards | None) -> tuple[_Claim | None, _Claim | None]:
        """What the rollouts and the results that this run makes or uses depend on."""
        rollouts = results = None
        if self.phase != "execution" or self.config.rollouts_file is not None:
            settings = rollouts_settings(self.config, self._rollouts_path())
            rollouts = _Claim("rollouts", digest_of(settings), settings, _OTHER_DIRECTORY)
        if reward is not None:
            settings = results_settings(reward, self.config)
            results = _Claim("results", digest_of(settings), settings, _OR_RESCORE)
        return rollouts, results

    def _claim(self, directory: RunDirectory, reward: Rewards | None, facts: Mapping[str, Any]) -> None:
        """Bind the directory to what its files depend on, or refuse it when they depend on something else."""
        if self._begins_anew(directory, facts):
            directory.set_worthless_aside("rollouts")
        for claim in self._claims(reward):
            if claim is None:
                continue
            if claim.which == "results" and self._rescore and not self._goes_on(directory, claim, reward):
                directory.set_results_aside()
            if claim.which == "results" and _refuse_other_files(directory, reward):
                directory.set_worthless_aside("results")
            directory.claim(claim.which, claim.digest, claim.settings, advice=claim.advice)
        for split, each in _named(reward):
            each.opened.tell(partial(_note_opened, directory, split, each.opened.project.root))

    def _goes_on(self, directory: RunDirectory, claim: _Claim, reward: Rewards | None) -> bool:
        """Whether `rescore` goes on with a judging that was cut off: nothing that it depends on has changed."""
        same = directory.was_cut_off_judging(claim.digest, claim.settings)
        return same and not _other_files(directory, reward)

    def _begins_anew(self, directory: RunDirectory, facts: Mapping[str, Any]) -> bool:
        """Whether the data were changed, or are read in another way, since an attempt that is worth nothing."""
        last = directory.phases[-1] if directory.phases else facts
        other_data = any(last.get(name) != facts[name] for name in ("source", "reading"))
        return self.phase != "execution" and other_data and directory.is_worthless("rollouts")

    def _facts(self, workload: Workload) -> dict[str, Any]:
        """What decides, beside the digests, whether a finished run has anything left to do."""
        return {
            "n": len(self.config.draws),
            "limit": self.config.sample_limit,
            "source": workload.fingerprint,
            "reading": reading_of(self.config.dataset),
            "pass_threshold": _thresholds(self.config.reward),
        }

    def _has_every_answer(self, directory: RunDirectory, facts: Mapping[str, Any]) -> bool:
        """Whether the last entry had every answer this one asks for, of a dataset and rollouts that are untouched.

        Then the dataset need not be read again to see what is owed.
        """
        last = directory.phases[-1] if directory.phases else {}
        same = last.get("phase") == self.phase and all(last.get(name) == value for name, value in facts.items())
        files = last.get("files") or {}
        sizes = self._sizes(directory)
        untouched = last.get("status") == "finished"
        untouched = untouched and all(files.get(name) == sizes.get(name) for name in (ROLLOUTS, SAMPLES))
        if not (same and facts["source"] and untouched and not self._retry_failed and files.get(ROLLOUTS)):
            return False
        summary = directory.read_summary() or {"skipped_rows": 1}
        return not (summary.get("not_asked_for") or summary.get("skipped_rows"))

    def _finished_before(self, directory: RunDirectory, facts: Mapping[str, Any]) -> RunResult | None:
        """The result of a run that is finished, with nothing owed and its files untouched, without reading them."""
        last = directory.phases[-1] if directory.phases else {}
        same = last.get("phase") == self.phase and all(last.get(name) == value for name, value in facts.items())
        untouched = last.get("status") == "finished" and last.get("files") == self._sizes(directory)
        if not (same and facts["source"] and untouched):
            return None
        summary = cast("RunSummary | None", directory.read_summary())
        wanted_copies = self.config.output.results_file or self.config.output.preview_pairs_file
        if summary is None or summary.get("failed") or self._retry_failed or wanted_copies:
            return None
        counters = RunCounters(self.phase, found_rollouts=int(summary.get("records", 0)))
        return RunResult("finished", directory.path, summary, counters)


def _cache_scope(directory: RunDirectory) -> str:
    """Names this directory in the keys of a cache, whose answers are not for others."""
    if directory.noted(_CACHE_SCOPE) is None:
        directory.note(_CACHE_SCOPE, uuid4().hex)
    return str(directory.noted(_CACHE_SCOPE))


def _named(reward: Rewards | None) -> Collection[tuple[str, Reward]]:
    return () if reward is None else reward.named.items()


def _other_files(directory: RunDirectory, reward: Rewards | None) -> list[str]:
    """The files that a reward opened when it judged, and that are no longer what they were."""
    return [
        name
        for split, each in _named(reward)
        for name, digest in directory.opened.get(split, {}).items()
        if digest is not None and each.opened.project.digest(name) != digest
    ]


def _refuse_other_files(directory: RunDirectory, reward: Rewards | None) -> bool:
    """Refuse results that depend on files which have changed since. True where they are worth nothing anyway."""
    files = _other_files(directory, reward)
    if files and not directory.is_worthless("results"):
        raise StorageError(other_files(directory.path, files, _OR_RESCORE))
    return bool(files)


def _note_opened(directory: RunDirectory, split: str, root: Path, told: Mapping[str, str | None]) -> None:
    """Keep what a reward opened, as it was first; what is in the run directory is our own."""
    inside = directory.path.resolve()
    files = {name: digest for name, digest in told.items() if inside not in (root / name).resolve().parents}
    known = directory.opened.get(split, {})
    for name, digest in files.items():
        if digest is not None and known.get(name, digest) not in (digest, None):
            _log.warning(
                "%r has changed while the run judged with it. To judge all answers alike, run again with `rescore`.",
                name,
            )
    if files:
        directory.note_opened(split, files)


_IDS = "ids_are_hashes"
"""A fact of the manifest: what the id of a row is made of that has none of its own."""


def _holds_former_ids(directory: RunDirectory) -> bool:
    """Whether rows without an id were named after all their columns here, as they once were."""
    rollouts = directory.rollouts_path
    return directory.noted(_IDS) is None and rollouts.exists() and rollouts.stat().st_size > 0


def _owe_failures_again(*journals: Journal | None) -> None:
    for journal in journals:
        if journal is not None:
            owe_failures_again(journal)


def _with_answers(batches: BatchStage | None, works: Iterator[Work]) -> Iterator[Work]:
    """The work without draws that batches left owed."""
    return works if batches is None else batches.only_answered(works)


def _was_judged(directory: RunDirectory, ledger: Ledger) -> bool:
    """Whether verdicts of earlier entries show that the rewards work; not where the last one ended for want of any."""
    last = directory.phases[-2] if len(directory.phases) > 1 else {}
    return last.get("status") != "failing" and ledger.has_verdicts


def _settled(end: End, batches: BatchStage | None, rollouts: Journal, results: Journal | None) -> End:
    """How the run ends, once its journals hold what the next entry needs to know."""
    if end.status == "failing":  # the same command judges these again, once what is wrong is mended
        _owe_failures_again(results)
    return end if batches is None else _absorbed(batches, rollouts, end)


def _absorbed(batches: BatchStage, rollouts: Journal, end: End) -> End:
    """Let the files of batches go whose answers are all in the rollouts; how the run ends where some had none."""
    if end.status != "finished":
        return end
    rollouts.sync()  # before the files go that could have made them again
    batches.absorbed()
    return end if batches.why_left is None else End("stopped", batches.why_left)


def _refuse_to_pay_twice(directory: RunDirectory) -> None:
    """Stop where batches are under way whose answers would be asked for a second time, online."""
    with BatchJournal(directory.batches_path, read_only=True) as batches:
        under_way = batches.under_way
    if under_way:
        requests = sum(part.requests for part in under_way)
        raise ConfigError(
            f"Batches of {requests:,} requests of this run are running at the provider, and would be paid for twice. "
            "Fetch them with `generation.transport=batch`, or give them up with `reward-kit batches cancel` and "
            "`batches forget`."
        )


def _settle_quietly(money: Money) -> None:
    with contextlib.suppress(RewardKitError):  # a full disk must not hide what went wrong
        money.settle()


def _note_more(directory: RunDirectory, name: str, facts: Mapping[str, str]) -> None:
    """Keep facts beside those of the same kind that earlier entries of the run have met."""
    directory.note(name, {**(directory.noted(name) or {}), **facts})


class _Held:
    """How many entries the journals hold, kept in the manifest while they grow: a killed run cannot say it later."""

    def __init__(self, directory: RunDirectory, *journals: Journal | Samples | None) -> None:
        self._directory = directory
        self._journals = [journal for journal in journals if journal is not None and not journal.read_only]

    def keep(self) -> None:
        """Put down what it is by now, where that is known without looking. Only lines that are on disk count."""
        counts = {journal.path.name: journal.keys_at_hand for journal in self._journals}
        self._directory.note_held({name: count for name, count in counts.items() if count})


def _read(config: Mapping[str, Any]) -> PipelineConfig:
    """A config from a mapping, also one of OmegaConf's; keys of the older package are taken by our names."""
    taken = take(_plain(config))
    if taken.ignored:
        _log.warning("%s", remark(taken.ignored))
    return load_config(taken.values)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(held) for name, held in value.items()}
    return [*map(_plain, value)] if isinstance(value, Sequence) and not isinstance(value, str | bytes) else value


def _with_engine(config: PipelineConfig, engine: EngineConfig | Mapping[str, Any] | str) -> PipelineConfig:
    given = (
        validated(EngineConfig, engine, "The engine", section="engine")
        if not isinstance(engine, EngineConfig)
        else engine
    )
    return config.model_copy(update={"engine": given})


def _with_output_dir(config: PipelineConfig, path: Path) -> PipelineConfig:
    return config.model_copy(update={"output": config.output.model_copy(update={"output_dir": str(path)})})


def _as_written(config: PipelineConfig) -> dict[str, Any]:
    """The config as plain data, without secrets, so that it can be read back as it is."""
    written: dict[str, Any] = without_secrets(config.model_dump(mode="json", exclude_none=True, exclude=_KEYS))
    return without_unused(written)


_KEYS = {"generation": {"api_key"}, "judge": {"api_key"}}
"""Written as asterisks by pydantic, which nobody could use."""


def _left_out(config: PipelineConfig) -> list[str]:
    """The settings that are not written because they hold a credential."""
    return sorted(set(secret_paths(config.model_dump(exclude_none=True))))


def _thresholds(reward: RewardConfig) -> float | dict[str, float]:
    whole = reward.pass_threshold
    named = {split: part.pass_threshold for split, part in reward.by_split.items()}
    return {"": whole, **named} if named else whole


def _set_damage_aside(directory: RunDirectory, *journals: Journal | Samples | None) -> bool:
    """Take damaged lines out of journals whose entries can be made again, and keep the files as they were."""
    damaged = [journal for journal in journals if journal is not None and journal.damaged]
    for journal in damaged:
        numbers = sorted(journal.damaged)
        kept = directory.keep_damaged(journal)
        journal.compact()
        _log.warning(
            "%r: %s damaged, and made again. The file as it was is kept as %r.",
            str(journal.path), line_numbers(numbers), kept.name,
        )  # fmt: skip
    return bool(damaged)


def _lacks_samples(ledger: Ledger) -> bool:
    """Whether samples are lost that the rollouts name: a run that reads its dataset writes them again."""
    samples = ledger.journal.samples
    held = held_by(samples.path)
    if held is None and not samples.path.exists():  # lines of an older version hold their samples
        return False
    return samples.keys < max(held or 0, ledger.rollouts.samples) or bool(samples.damaged)


def _end_turns(turns: TurnJournal | None, rollouts: Journal) -> Usage | None:
    """Drop the turns of finished episodes. What the replies used in others, of which no rollout tells."""
    if turns is None:
        return None
    index = rollouts.index()
    recordings = turns.unfinished(lambda sample_id, draw: index.status(sample_id, draw) is not None)
    left = [turn for recording in recordings for turn in recording.turns]
    turns.drop(_has_ended(rollouts))
    replies = (Completion.model_validate(turn.reply | {"message": {"role": "assistant"}}) for turn in left)
    return summed(usage for reply in replies for usage in used_by(reply))


def _has_ended(rollouts: Journal) -> Callable[[str, int], bool]:
    """Tells of each episode whether its rollout has all of it; those that are still owed keep their turns."""
    index = rollouts.index()
    return lambda sample_id, draw: index.status(sample_id, draw) == "ok"  # one that failed may be tried again


def _note_held(directory: RunDirectory, *journals: Journal | Samples | None) -> None:
    with contextlib.suppress(RewardKitError):  # a full disk must not hide what went wrong
        kept = [each for each in journals if each is not None and not each.read_only and each.path.exists()]
        directory.note_held({journal.path.name: journal.keys for journal in kept})
