# SPDX-License-Identifier: Apache-2.0
"""`EvaluationPipeline`: the spine. A dataset, a model and a reward in; judged answers on disk and their figures out.

    inputs ─▶ parts checked ─▶ reward, workload ─▶ directory claimed ─▶ journals opened ─▶ stages ─▶ figures

What a run can do and need not (a mirror, batches, an agent) is a part of its own: `parts/` has them, and says when each
has its turn. What the files depend on is in `claims.py`; where the stages run, in `engines.py`.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from reward_kit.config_models import PipelineConfig, without_unused
from reward_kit.errors import ConfigError, RewardKitError
from reward_kit.execution.claims import Claims, holds_former_ids, keep_ids
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.engine import End
from reward_kit.execution.engines import engine_of
from reward_kit.execution.finish import check_copies, finish, interim_summary
from reward_kit.execution.first_rows import looked_at
from reward_kit.execution.money import Money
from reward_kit.execution.options import RunInputs, RunOptions
from reward_kit.execution.owed import Ledger, UnjudgedOnDisk, Workload, open_workload, owe_failures_again
from reward_kit.execution.parts import parts_of
from reward_kit.execution.parts.part import Entry, Part
from reward_kit.execution.plan import Plan, make_plan
from reward_kit.execution.result import RunResult
from reward_kit.execution.run_summary import RunSummary
from reward_kit.generation.cache.sharing import within_scope
from reward_kit.generation.stack import ModelStack
from reward_kit.redaction import mask, remember_settings, secret_paths, without_secrets
from reward_kit.scoring.rewards import load_rewards
from reward_kit.storage.at_hand import exists
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_index import JournalIndex
from reward_kit.storage.projected_file import ProjectedFile
from reward_kit.storage.run_directory import (
    CACHE_SCOPE,
    ROLLOUTS,
    RunDirectory,
    held_by,
    refuse_cut,
    remark_on_lines,
    set_run_aside,
)
from reward_kit.storage.samples import SAMPLES, Samples
from reward_kit.stores.addresses import beside, is_stored
from reward_kit.stores.fetching import fetch
from reward_kit.stores.reasons import StoreError
from reward_kit.utils.event_loop import run_sync

__all__ = ["EvaluationPipeline"]

_log = logging.getLogger(__name__)

_JUDGE_THE_REST = (
    "Restore it, or generate what is missing: run again without `phase=execution` and `rescore`. "
    "To judge only what is left, say so with `reward-kit doctor {!r} --mend`."
)


class EvaluationPipeline:
    """One run. Run it as often as you like: it only does what is missing.

    result = EvaluationPipeline(config).run()
    """

    def __init__(
        self, config: PipelineConfig | Mapping[str, Any], options: RunOptions | None = None, **named: Any
    ) -> None:
        """Say what to run, and how: by `options`, or by their names, as in `EvaluationPipeline(config, rescore=True)`.

        A run whose first answers could not be judged, all for the same reason, ends, unless it is told to `keep_going`.
        """
        if options is not None and named:
            raise TypeError(
                f"Options are given twice: as a value, and {sorted(named)} by name. Put all into the value."
            )
        self._inputs = inputs = RunInputs.of(config, options or RunOptions(**named))
        self.config, self.phase, self._options = inputs.config, inputs.phase, inputs.options
        remember_settings(self.config.model_dump())
        self._parts = parts_of(inputs)

    def run(self) -> RunResult:
        """Run to the end and return the figures. Works in a plain script and inside a notebook's running loop."""
        return run_sync(self.run_async)

    async def run_async(self) -> RunResult:
        """The same, for callers that are asynchronous themselves."""
        check_copies(self.config)
        self._check(planning=False)
        with self._rollouts_at_hand() as others:
            for part in self._parts:
                await part.prepare()
            self._require_rollouts(others)
            run = _Run(self._inputs, self._parts, others)
            run.check_model()
            if self._options.overwrite:
                set_run_aside(self._inputs.path)
            with RunDirectory(self._inputs.path) as directory:
                return await run.do(directory)

    def plan(self) -> Plan:
        """What running would do and cost, without doing any of it."""
        self._check(planning=True)
        with self._rollouts_at_hand() as others:
            self._require_rollouts(others)
            return _Run(self._inputs, self._parts, others).plan()

    def _check(self, *, planning: bool) -> None:
        for part in self._parts:
            part.check(planning=planning)

    @contextlib.contextmanager
    def _rollouts_at_hand(self) -> Iterator[Path | None]:
        """The file of rollouts that are not this run's own; for as long as this lasts, where it is in a store."""
        address = self.config.rollouts_file
        if address is None or not is_stored(address):
            yield self._inputs.others_rollouts(None)
            return
        with tempfile.TemporaryDirectory(prefix="reward-kit-") as folder:
            try:
                fetched = fetch(address, Path(folder))
                if exists(there := beside(address, SAMPLES)):
                    fetch(there, Path(folder))
            except StoreError as error:
                raise ConfigError(
                    f"Cannot fetch {address!r}: {error}. Correct `rollouts_file`, or check your access rights."
                ) from error
            yield self._inputs.others_rollouts(fetched)

    def _require_rollouts(self, others: Path | None) -> None:
        """Refuse to score what is not there, before a directory is made for it."""
        path = others or self._inputs.path / ROLLOUTS
        if self.phase == "execution" and self._options.overwrite and others is None:
            raise ConfigError(
                "`overwrite` sets all rollouts aside, so there would be none to score. Use `rescore` instead."
            )
        if self.phase == "execution" and not path.exists():
            raise ConfigError(
                f"There are no rollouts to score: {str(path)!r} does not exist. "
                "Generate them first with `phase=inference`, or name a file with `rollouts_file=…`."
            )


class _Run:
    """One run of a pipeline, from its loaded reward on."""

    def __init__(self, inputs: RunInputs, parts: list[Part], others_rollouts: Path | None) -> None:
        """Load the reward, and name the work. Nothing is read yet."""
        self._inputs, self._parts, self._others_rollouts = inputs, parts, others_rollouts
        self._config, self._options = inputs.config, inputs.options
        self._phase, self._vocabulary = inputs.phase, inputs.options.vocabulary
        scores = self._phase != "inference"
        self._reward = load_rewards(self._config.reward, self._options.reward) if scores else None
        options = self._options
        self._workload = self._looking(open_workload(self._config, self._phase, options.samples, options.rollouts))
        self._claims = Claims(inputs, self._reward, self._workload, others_rollouts)

    def check_model(self) -> None:
        """Refuse a model that cannot be asked before there is anything on disk.

        A run that is there already may need no model any more, and on a cluster the keys may be where the actors are.
        """
        begun = (self._inputs.path / "manifest.json").exists() and not self._options.overwrite
        here = self._config.engine.name == "local"
        if self._workload.needs_model and self._options.client is None and here and not begun:
            from reward_kit.generation.factory import check_model  # here: scoring alone needs no client

            check_model(self._config.generation)

    def plan(self) -> Plan:
        """The plan of the run."""
        directory, anew = self._claims.for_plan()
        if holds_former_ids(directory):
            self._workload.keep_former_ids()
        output = self._config.output.model_copy(update={"output_dir": str(directory.path)})
        config = self._config.model_copy(update={"output": output})
        with within_scope(lambda: directory.noted(CACHE_SCOPE) or ""):
            return make_plan(
                config, self._workload, self._reward, self._options.client,
                retry_failed=self._options.retry_failed, anew=anew, by_content=self._judges_samples,
            )  # fmt: skip

    async def do(self, directory: RunDirectory) -> RunResult:
        """The run, in a directory that is ours."""
        entered: list[Part] = []
        result: RunResult | None = None
        try:
            for part in self._parts:  # first: a mirror that cannot be had leaves nothing behind here
                await part.enter(directory)
                entered.append(part)
            result = await self._in(directory)
        finally:
            for part in reversed(entered):
                result = await part.leave(result)
        if result is None:
            raise AssertionError("a part leaves with the result that it was given")
        return result

    async def _in(self, directory: RunDirectory) -> RunResult:
        """Do what is owed, as one phase in the manifest."""
        self._claims.bind(directory)
        keep_ids(directory, self._workload)
        sizes = self._sizes(directory)
        if (known := self._claims.finished_before(directory, sizes)) is not None:
            return known
        whole = self._workload.needs_model and self._claims.has_every_answer(directory, sizes)
        directory.write_config(_as_written(self._config), left_out=_left_out(self._config))
        entry = directory.begin_phase(self._phase, self._claims.facts)
        try:
            with within_scope(directory.cache_scope):
                result = await self._enter(directory, has_every_answer=whole)
        except BaseException as error:
            with contextlib.suppress(RewardKitError):  # a full disk must not hide what went wrong
                directory.end_phase(entry, "failed", {"error": mask(f"{type(error).__name__}: {error}")})
            raise
        ending = {"files": self._sizes(directory), "seconds": result.counters.seconds}
        directory.end_phase(entry, result.status, ending)
        return result

    async def _enter(self, directory: RunDirectory, *, has_every_answer: bool) -> RunResult:
        """Open the journals, see what is owed, and have it made."""
        async with contextlib.AsyncExitStack() as files:
            directory.always_on_disk = self._config.output.sync == "batch"
            rollouts = files.enter_context(self._open_rollouts(directory))
            beside = self._open_projection(files, directory, rollouts)
            self._vocabulary.prepare(directory)
            results = files.enter_context(directory.results()) if self._reward is not None else None
            journals = [journal for journal in (rollouts, results) if journal is not None]
            ledger = self._ledger(directory, rollouts, results, has_every_answer=has_every_answer)
            lines: list[Journal | Samples] = [*journals, directory.samples]
            files.callback(directory.note_all_lines, *lines)
            counters = RunCounters(
                self._phase, self._workload.expected(ledger), len(ledger.rollouts), len(ledger.results)
            )
            money = self._money(ledger, directory, counters)
            files.callback(money.settle_quietly)
            connections = await files.enter_async_context(contextlib.AsyncExitStack())
            entry = Entry(
                directory, rollouts, ledger, self._workload, counters, money, files, connections,
                works=self._workload.works(ledger),
                keep=[money.keep, partial(directory.note_lines, *lines)],
            )  # fmt: skip
            end = await self._before(entry) or await self._stages(entry, results, beside)
            if end.status in ("interrupted", "detached"):
                known = cast(RunSummary, interim_summary(self._config, counters))
                return RunResult(end.status, directory.path, known, counters, end.reason)
            money.settle()
            summary = finish(
                self._config, directory, rollouts, results, counters, ledger.position_of, self._vocabulary, beside,
                money=money,
            )  # fmt: skip
            return RunResult(end.status, directory.path, cast(RunSummary, summary), counters, end.reason)

    async def _before(self, entry: Entry) -> End | None:
        """What the parts see to before the stages; how the run ends for now, where it cannot go on to them."""
        for part in self._parts:
            if (end := await part.before(entry)) is not None:
                return end
        return None

    async def _stages(self, entry: Entry, results: Journal | None, beside: ProjectedFile | None) -> End:
        """Generate and score until nothing is owed, and note what only that could find out."""
        workload, ledger, counters = self._workload, entry.ledger, entry.counters
        engine = engine_of(self._inputs, entry.directory.path, counters, entry.money.budget, beside)
        await entry.connections.enter_async_context(engine.opened())
        models = entry.models or ModelStack()
        if workload.needs_model and entry.models is None:
            opening = engine.open_models(self._options.client, entry.turns, ledger.known)
            models = await entry.connections.enter_async_context(opening)
        end = await engine.run(
            entry.works, models, entry.rollouts, results, self._reward,
            blocking=workload.blocking, backlog=ledger.has_backlog, keep=entry.keep,
            keep_going=self._options.keep_going or _was_judged(entry.directory, ledger),
        )  # fmt: skip
        if end.status == "failing" and results is not None:  # the same command judges these again, once that is mended
            owe_failures_again(results)
        if end.status != "interrupted":
            for part in self._parts:
                end = part.after(entry, end)
        await entry.connections.aclose()  # the client and the cache's index are of no more use
        counters.skipped_rows = workload.skipped
        counters.called_for = ledger.called_for if end.status == "finished" else None
        counters.earlier = models.earlier()
        if workload.formats:
            entry.directory.note("dataset_format", workload.formats)
        if models.dropped_parameters:
            entry.directory.note_more("dropped_parameters", models.dropped_parameters)
        entry.money.remark()
        return end

    # ── what is there ────────────────────────────────────────────────────────────────────────────────────────────────

    def _ledger(
        self, directory: RunDirectory, rollouts: Journal, results: Journal | None, *, has_every_answer: bool
    ) -> Ledger:
        """What the journals hold, once what is damaged in them is set aside and what failed is owed again."""
        journals = [journal for journal in (rollouts, results) if journal is not None]
        if self._options.retry_failed:
            for journal in (rollouts if self._workload.needs_model else None, results):
                if journal is not None:
                    owe_failures_again(journal)
        ledger = self._ledger_of(rollouts, results)
        if has_every_answer and not rollouts.damaged and UnjudgedOnDisk.suits(ledger):
            self._workload = self._looking(UnjudgedOnDisk())
        self._see_what_is_missing(directory, rollouts, journals)
        lost_samples = _lacks_samples(ledger)
        again = () if self._phase == "execution" else (directory.samples,)  # else nobody has what is damaged
        if directory.set_damage_aside(*journals, *again):
            ledger = self._ledger_of(rollouts, results)
        ledger.lost_samples = lost_samples
        return ledger

    def _ledger_of(self, rollouts: Journal, results: Journal | None) -> Ledger:
        return Ledger(
            rollouts,
            rollouts.index(),
            results.index() if results is not None else JournalIndex(),
            whole_groups=self._reward is not None and self._reward.judge_groups,
            scoring=self._reward is not None,
            results_journal=results if self._judges_samples else None,
        )

    def _looking(self, workload: Workload) -> Workload:
        """The workload, whose first rows are looked at before anything is asked."""
        if self._reward is not None:
            ahead, keep_going = not workload.blocking, self._options.keep_going
            workload.look = partial(looked_at, rewards=self._reward, ahead=ahead, keep_going=keep_going)
        return workload

    @property
    def _judges_samples(self) -> bool:
        """Whether what is judged is the samples themselves, and not what a second file has of them."""
        return self._vocabulary.projection is None

    def _money(self, ledger: Ledger, directory: RunDirectory, counters: RunCounters) -> Money:
        """What may still be spent: by this run's rollouts and its judge, in all its entries together."""
        generating = ledger.journal.spent() if self._others_rollouts is None else 0.0  # others were paid for elsewhere
        by_batches = self._config.generation.transport == "batch"
        return Money(directory, counters, generating, self._config.max_cost, by_batches=by_batches)

    def _open_rollouts(self, directory: RunDirectory) -> Journal:
        if self._others_rollouts is not None:
            return Journal(self._others_rollouts, read_only=True)
        from_the_data = self._phase != "execution" and not self._workload.needs_model
        return directory.rollouts(owed_again=from_the_data)

    def _projection(self, directory: RunDirectory) -> ProjectedFile | None:
        """The second file of rollouts that this run makes, where it makes any."""
        if self._phase == "execution" or self._vocabulary.projection is None:
            return None
        return self._vocabulary.projection(directory.path)

    def _open_projection(
        self, files: contextlib.AsyncExitStack, directory: RunDirectory, rollouts: Journal
    ) -> ProjectedFile | None:
        """The same, holding what the rollouts hold."""
        beside = self._projection(directory)
        if beside is None:
            return None
        files.callback(beside.close)
        if (kept := beside.mend(rollouts)) is not None:
            _log.warning(
                "%r was changed by hand. It is written again, and the changed file is kept as %r.",
                str(beside.path),
                kept.name,
            )
        return beside

    def _sizes(self, directory: RunDirectory) -> dict[str, list[int]]:
        beside = self._projection(directory)
        return directory.sizes(*(() if beside is None else (beside.path,)))

    def _see_what_is_missing(self, directory: RunDirectory, rollouts: Journal, journals: list[Journal]) -> None:
        """Refuse to judge a part as if it were the whole; what can be made again is owed, and said."""
        if self._phase == "execution":
            refuse_cut(rollouts, _JUDGE_THE_REST.format(str(rollouts.path.parent)))
            refuse_cut(rollouts.samples)
            generating = [entry for entry in directory.phases if entry["phase"] != "execution"]
            if rollouts.path == directory.rollouts_path and generating and generating[-1]["status"] != "finished":
                _log.warning("Generation was not finished: only the %d rollouts on disk are scored.", rollouts.keys)
        for journal in journals:
            remark_on_lines(journal)


def _lacks_samples(ledger: Ledger) -> bool:
    """Whether samples are lost that the rollouts name: a run that reads its dataset writes them again."""
    samples = ledger.journal.samples
    held = held_by(samples.path)
    if held is None and not samples.path.exists():  # lines of an older version hold their samples
        return False
    return samples.keys < max(held or 0, ledger.rollouts.samples) or bool(samples.damaged)


def _was_judged(directory: RunDirectory, ledger: Ledger) -> bool:
    """Whether verdicts of earlier entries show that the rewards work; not where the last one ended for want of any."""
    last = directory.phases[-2] if len(directory.phases) > 1 else {}
    return last.get("status") != "failing" and ledger.has_verdicts


def _as_written(config: PipelineConfig) -> dict[str, Any]:
    """The config as plain data, without secrets, so that it can be read back as it is."""
    written: dict[str, Any] = without_secrets(config.model_dump(mode="json", exclude_none=True, exclude=_KEYS))
    return without_unused(written)


_KEYS = {"generation": {"api_key"}, "judge": {"api_key"}}
"""Written as asterisks by pydantic, which nobody could use."""


def _left_out(config: PipelineConfig) -> list[str]:
    """The settings that are not written because they hold a credential."""
    return sorted(set(secret_paths(config.model_dump(exclude_none=True))))
