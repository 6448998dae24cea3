# SPDX-License-Identifier: Apache-2.0
"""Batches: the owed draws of a run as files of requests, submitted, waited for, and fetched, before its stages begin.

    owed draws ─▶ prepare ─▶ upload ─▶ submit ─▶ wait ─▶ fetch ─▶ settle ─┬▶ FetchedAnswers ─▶ the stages, as always
                               ▲                                          │
                               └── a file of what got lost or expired ◀───┘

Every step is noted in `batches.jsonl` before the next is taken; whoever enters the run again goes on from there. When
all answers are on this disk, the generate stage asks for them as it asks a model, and finds each where it lies: cache,
journal, usage and cost are those of an answer online, but for the price.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import logging
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.config_models import PipelineConfig
from reward_kit.errors import (
    BadRequestError,
    EndpointError,
    GenerationError,
    ProviderError,
    RateLimitError,
    RewardKitError,
    StorageError,
)
from reward_kit.execution.counters import BatchWatch, RunCounters
from reward_kit.execution.engine import background, interrupts
from reward_kit.execution.owed import Ledger, Work, Workload
from reward_kit.execution.stages import Stop, run_stage_tasks
from reward_kit.generation.batch.answers import AnswerIndex, FetchedAnswers, ids_in
from reward_kit.generation.batch.choose import BatchModel, batch_model, batch_price, open_provider
from reward_kit.generation.batch.lines import AnswerLines, FileFill, RequestLines, custom_id, is_final, without_keys
from reward_kit.generation.batch.provider import BatchLabel, BatchLimits, BatchProvider, BatchState, Found, Sought
from reward_kit.generation.batch.rest import NotThere
from reward_kit.generation.budget import Budget, known_price
from reward_kit.generation.cache.responses import RequestKeys, ResponseCache, draw_key
from reward_kit.generation.cache.sharing import key_identity
from reward_kit.generation.play import SingleTurn
from reward_kit.generation.prices import cost_of
from reward_kit.generation.stack import ModelStack
from reward_kit.generation.tokens import most_usage
from reward_kit.generation.wire import Prompt, settings_of
from reward_kit.models import Rollout
from reward_kit.redaction import mask
from reward_kit.storage.batch_journal import BatchJournal, Part
from reward_kit.storage.files import Draft
from reward_kit.storage.run_directory import RunDirectory
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = ["BatchStage", "NotYet", "open_batches"]

_log = logging.getLogger(__name__)

_GRACE_SECONDS = 10.0
_AT_A_TIME = 4
"""Files on their way up or down at the same time."""
_FIRST_PAUSE = 2.0
_LONGER_EACH_TIME = 1.5
_LOOKS_IN_VAIN = 20
"""Looks at a batch in a row that may fail before the run gives up; the batch goes on."""
_WORKS_AT_ONCE = 256
_LONGEST_BACKOFF = 60.0
_LOOKS_AFTER = (2.0, 4.0, 8.0, 16.0)
"""The pauses, in seconds, between looks for a batch whose id was never heard: its request may have been heard late, and
the provider's list may be behind."""
_SHOWN_IDS = 5
_ANY_SIZE = BatchLimits(1 << 60, 1 << 60)


class NotYet(NamedTuple):
    """Why a run cannot go on to its stages now."""

    is_interrupted: bool
    """By a person; else it was told not to wait."""
    reason: str


@contextlib.asynccontextmanager
async def open_batches(
    config: PipelineConfig, directory: RunDirectory, settings: str, counters: RunCounters, budget: Budget | None,
    hold: Callable[[], Awaitable[None]],
) -> AsyncIterator[BatchStage]:  # fmt: skip
    """The batches of a run directory; `settings` is the digest of what its rollouts depend on.

    `hold` comes back when what was noted is safe wherever the run is kept, also in its mirror.
    """
    with contextlib.ExitStack() as files:
        journal = files.enter_context(BatchJournal(directory.batches_path))
        cache = None
        if config.generation.cache.enabled is not False:
            cache = files.enter_context(ResponseCache(config.generation.cache.cache_dir))
        stage = BatchStage(config, journal, settings, counters, budget, cache, hold)
        try:
            yield stage
        finally:
            await stage.close()


class BatchStage:
    """What comes before the stages of a run whose answers come by batches."""

    def __init__(
        self, config: PipelineConfig, journal: BatchJournal, settings: str, counters: RunCounters,
        budget: Budget | None, cache: ResponseCache | None, hold: Callable[[], Awaitable[None]],
    ) -> None:  # fmt: skip
        """Take what the run has; nothing is sent yet."""
        self._hold = hold
        self._generation = config.generation
        self._batch = config.generation.batch
        self._journal = journal
        self._settings = settings
        self._counters = counters
        self._watch = BatchWatch()
        self._budget = budget
        self._cache = cache
        self._model: BatchModel = batch_model(config.generation)
        self._identity = key_identity(self._model.client.identity, config.generation.cache)
        self._price = batch_price(config.generation)
        if budget is not None and budget.is_limited:
            known_price(self._model.client.model, self._price, "generation")
        self._sampling = config.generation.sampling()
        self._requests = RequestLines(self._model.client, self._model.shape)
        self._answers = AnswerLines(
            self._model.client, mask(self._model.client.api_base), list(settings_of(self._sampling))
        )
        self._index = AnswerIndex()
        self._indexed: set[str] = set()
        self._left = DigestMap()
        """Custom ids of draws that stay owed when this run ends."""
        self._why_left: str | None = None
        self._set_apart = 0.0
        """What live batches may cost at most."""
        self._few = asyncio.Semaphore(_AT_A_TIME)
        self._seen: dict[str, BatchState] = {}
        self._opened: BatchProvider | None = None

    # ── what the pipeline asks for ───────────────────────────────────────────────────────────────────────────────────

    async def bring(
        self, workload: Workload, ledger: Ledger, *, detach: bool, watch: Callable[[RunCounters], Any] | None
    ) -> NotYet | None:
        """Have every owed draw answered, its answer on this disk. Says so where that is not so yet."""
        stop = Stop(self._counters)
        self._counters.batches = self._watch
        try:
            async with contextlib.AsyncExitStack() as around:
                around.enter_context(interrupts(stop))
                if watch is not None:
                    await around.enter_async_context(background(watch(self._counters)))
                await self._to_the_end(workload, ledger, stop, detach=detach)
        finally:
            self._counters.batches = None
            self._counters.stopping = None
        if stop.error is not None:
            raise stop.error
        if stop.reason is not None:
            return NotYet(True, self._what_goes_on() or stop.reason)
        if any(part.fetched is None for part in self._journal.live):
            return NotYet(False, self._what_goes_on())
        return None

    def models(self, before: Callable[[str, int], Rollout | None]) -> ModelStack:
        """A model that answers from what was fetched; `before` knows what earlier entries made of a draw."""
        self._index_fetched()
        client = self._model.client
        answers = FetchedAnswers(
            client.model, self._identity, self._index, self._requests, self._answers,
            largest_line=self._model.limits.size, cache=self._cache, budget=self._budget, price=self._price,
            before=before,
        )  # fmt: skip
        return ModelStack(SingleTurn(answers, self._sampling, self._price), answers, self._price)

    def only_answered(self, works: Iterator[Work]) -> Iterator[Work]:
        """The work without the draws that stay owed."""
        if not len(self._left):
            return works
        return map(self._without_left, works)

    @property
    def why_left(self) -> str | None:
        """Why some draws were not asked for, or not answered, where that is so."""
        return self._why_left

    def absorbed(self) -> None:
        """Every answer is in the rollouts: note it, and remove the files."""
        for part in self._journal.live:
            self._journal.note("absorbed", part.name)
        self._journal.remove_files()

    async def close(self) -> None:
        """Close the connections and the files."""
        self._index.close()
        if self._opened is not None:
            await self._opened.close()

    # ── the way of all parts ─────────────────────────────────────────────────────────────────────────────────────────

    async def _to_the_end(self, workload: Workload, ledger: Ledger, stop: Stop, *, detach: bool) -> None:
        self._drop_what_is_of_no_use()
        self._see_what_was_fetched()
        try:
            await self._prepare(workload, ledger, stop)
            while not stop.requested.is_set():
                waiting = [part for part in self._journal.live if part.fetched is None]
                self._see_how_many()
                in_doubt = [part for part in waiting if part.is_in_doubt]
                await run_stage_tasks([self._find_again(part) for part in in_doubt], stop, grace=_GRACE_SECONDS)
                if stop.requested.is_set():
                    return
                self._watch.doing = "waiting for batches" if waiting else "looking through answers"
                await run_stage_tasks(
                    [self._carry(part, stop, detach=detach) for part in waiting], stop, grace=_GRACE_SECONDS
                )
                if stop.requested.is_set() or any(part.fetched is None for part in waiting):
                    return
                if not await self._settle():
                    return
        except RewardKitError as error:
            stop.request("error", error)

    def _see_how_many(self) -> None:
        live = [part for part in self._journal.live if not part.settled]
        self._watch.files, self._watch.requests = len(live), sum(part.requests for part in live)
        self._watch.ended = sum(part.fetched is not None for part in live)

    def _what_goes_on(self) -> str:
        under_way = [part for part in self._journal.under_way if part.fetched is None]
        if not under_way:
            return ""
        requests = sum(part.requests for part in under_way)
        batches, them = ("1 batch", "it") if len(under_way) == 1 else (f"{len(under_way)} batches", "them")
        return (
            f"{batches} of {requests:,} requests under way at the provider, and going on there. "
            f"`reward-kit batches cancel {self._journal.path.parent!s}` would end {them}"
        )

    def _drop_what_is_of_no_use(self) -> None:
        """Forget files that were made for other settings and never submitted."""
        if self._journal.run is None:
            self._journal.note("begun", run=uuid.uuid4().hex, endpoint=mask(self._model.client.api_base))
        for part in self._journal.live:
            self._heed_what_was_handed_over(part)
            path = self._journal.requests_path(part.name)
            is_whole = _is_as_noted(path, part.size, part.sha256)
            if not part.submitting and not (is_whole and part.settings == self._settings):
                reason = "made for other settings" if is_whole else "not what was written"
                self._journal.note("dropped", part.name, reason=f"{reason}, and never submitted")
            elif not is_whole:
                raise StorageError(
                    f"{str(path)!r} {'is damaged' if path.exists() else 'is gone'}: it says what the batch "
                    f"{part.batch or part.label!r} was asked. Restore it, or give the batch up with `reward-kit "
                    f"batches forget {self._journal.path.parent!s}`"
                )

    def _heed_what_was_handed_over(self, part: Part) -> bool:
        """Note what the end of the journal, where that was cut off, told of a part: then its batch is looked for."""
        if (told := self._journal.handed_over(part)) is None:
            return False
        _log.warning("%r was cut off. Its batches are looked for at the provider.", str(self._journal.path))
        if told.run != self._journal.run:
            self._journal.note("begun", run=told.run)
        if told.file not in part.files:
            self._journal.note("uploaded", part.name, file=told.file)
        self._journal.note("submitting", part.name, asked=told.asked)
        return True

    def _see_what_was_fetched(self) -> None:
        """Fetch again what is no longer on this disk as it was."""
        for part in self._journal.live:
            for entry in part.fetched or ():
                path = self._journal.folder / entry["name"]
                if not _is_as_noted(path, entry["size"], entry["sha256"]):
                    _log.warning("%r has changed since it was fetched, and is fetched again.", str(path))
                    part.fetched = None
                    break

    # ── prepare ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _prepare(self, workload: Workload, ledger: Ledger, stop: Stop) -> None:
        """Write requests for all owed draws that neither the cache nor a live batch answers."""
        writer = _PartWriter(self._journal, FileFill(self._model.limits), self._settings)
        asking = _Asking(RequestKeys(self._identity, self._sampling), self._covered(), DigestMap())
        works = workload.works(replace(ledger, scoring=False, whole_groups=False))
        try:
            while chunk := await self._next_works(works, blocking=workload.blocking):
                for work in chunk:
                    self._ask_for(work, asking, writer)
                if stop.requested.is_set():
                    return
            writer.finish()
        finally:
            writer.discard()
        if len(self._left):
            self._why_left = (
                f"{len(self._left):,} answers were not asked for: by estimate, with every answer as long as max_tokens "
                f"allows, they could cost more than what is left of `max_cost`. Raise `max_cost`, or run again: what "
                f"the others really cost is then known."
            )

    @staticmethod
    async def _next_works(works: Iterator[Work], *, blocking: bool) -> list[Work]:
        if blocking:
            return await asyncio.to_thread(lambda: list(itertools.islice(works, _WORKS_AT_ONCE)))
        await asyncio.sleep(0)  # others have something to do: progress, and whoever asks to stop
        return list(itertools.islice(works, _WORKS_AT_ONCE))

    def _ask_for(self, work: Work, asking: _Asking, writer: _PartWriter) -> None:
        sample = work.sample
        if not work.draws:
            return
        request = asking.keys.of(sample.messages, sample.tools, sample.id)
        draws = [draw for draw in work.draws if self._is_to_be_asked(sample.id, draw, request, asking)]
        if not draws:
            return
        prompt = Prompt([message.as_request() for message in sample.messages], sample.tools, self._sampling, sample.id)
        try:
            lines = self._requests.of(prompt, draws, request)
        except BadRequestError:
            return  # a failure, when the stage asks for it
        cost = 0.0 if self._budget is None or self._price is None else self._most_cost(work)
        for name, line in lines:
            if not writer.fill.takes(len(line)):
                continue
            if self._budget is not None and cost > self._room():
                self._left.put(digest64(name.encode()), 0)
                continue
            writer.add(line, cost)
            self._set_apart += cost

    def _is_to_be_asked(self, sample_id: str, draw: int, request: bytes, asking: _Asking) -> bool:
        covered = asking.covered
        if len(covered) and digest64(custom_id(sample_id, draw, request).encode()) in covered:
            return False
        if self._cache is None:
            return True
        # Another sample that asks the very same is answered from the cache, once the first one is.
        if asking.once.put_first(digest64(b"%b%d" % (request, draw)), 0) >= 0:
            return False
        return self._cache.get(draw_key(request, draw)) is None

    def _most_cost(self, work: Work) -> float:
        if self._price is None:
            return 0.0
        return cost_of(most_usage(work.sample.messages, work.sample.tools, self._sampling, 1), self._price)

    def _room(self) -> float:
        """What is left of `max_cost` for further requests, live batches counted at the most they may cost."""
        if self._budget is None:
            return float("inf")
        return self._budget.left - self._set_apart

    def _covered(self) -> DigestMap:
        """The custom ids that live batches ask for, or have answered."""
        self._index_fetched()
        covered = DigestMap()
        for part in self._journal.live:
            self._set_apart += part.most_cost
            for name, _ in ids_in(self._journal.requests_path(part.name)):
                if not part.settled or part.fetched is None or self._is_settled(name):
                    covered.put(digest64(name), 0)
        return covered

    # ── one part: upload, submit, wait, fetch ────────────────────────────────────────────────────────────────────────

    @property
    def _provider(self) -> BatchProvider:
        if self._opened is None:
            self._opened = open_provider(self._generation)
        return self._opened

    async def _carry(self, part: Part, stop: Stop, *, detach: bool) -> None:
        while not stop.requested.is_set():
            if part.batch is None:
                async with self._few:
                    await self._submit(part)
            state = await self._wait(part, stop, detach=detach)
            if state is None:
                return
            if state.end != "declined":
                break
            await self._declined(part, state, stop)
        else:
            return
        if state.end == "failed" and not state.outputs:
            self._journal.note("dropped", part.name, reason=state.words)
            raise EndpointError(
                f"The provider refused the batch {state.id!r} ({state.words}). You pay nothing for it. Correct what "
                "the provider names, then run the same command again."
            )
        self._journal.note(
            "ended", part.name, end=state.end, total=state.total, answered=state.answered, failed=state.failed,
            words=state.words,
        )  # fmt: skip
        async with self._few:
            await self._fetch(part, state)
        self._watch.ended += 1

    async def _submit(self, part: Part) -> None:
        """Have the part's batch made, unless it was, and what told of it is lost."""
        if self._heed_what_was_handed_over(part):
            await self._find_again(part)
            if part.batch is not None:
                return
        uploaded_before = part.file is not None
        if part.file is None:
            await self._upload(part)
        try:
            made = await self._submit_once(part)
        except (BadRequestError, NotThere):
            if not uploaded_before:
                raise
            await self._upload(part)  # what was uploaded long ago may be gone there
            made = await self._submit_once(part)
        self._journal.note("submitted", part.name, batch=made.id)

    async def _upload(self, part: Part) -> None:
        path = self._journal.requests_path(part.name)
        file = await self._provider.upload(path, self._label(part), part.requests)
        self._journal.note("uploaded", part.name, file=file)

    def _label(self, part: Part) -> BatchLabel:
        return BatchLabel(str(self._journal.run), part.label)

    async def _submit_once(self, part: Part) -> BatchState:
        """Submit; where nobody knows whether that was heard, look before it is done again."""
        self._journal.note("submitting", part.name)
        await self._hold()
        retries, in_doubt = self._generation.api_params.max_retries, False
        for number in itertools.count():
            try:
                state = await self._provider.submit(str(part.file), self._label(part))
            except (RateLimitError, ProviderError) as error:
                in_doubt = in_doubt or isinstance(error, ProviderError)
                if number >= retries:
                    self._note_refusal(part, error, in_doubt=in_doubt)
                    raise
                _log.debug("A batch could not be submitted: %s", error)
                asked = min(error.retry_after or 0.0, self._generation.api_params.max_retry_after)
                await asyncio.sleep(asked + random.random() * min(_LONGEST_BACKOFF, 0.5 * 2**number))
                if isinstance(error, ProviderError) and (found := await self._find(part)) is not None:
                    return found
            except RewardKitError as error:
                self._note_refusal(part, error, in_doubt=in_doubt)
                raise
            else:
                return await self._first_of(part, state) if in_doubt else state
        raise AssertionError("counting does not end")

    def _note_refusal(self, part: Part, error: RewardKitError, *, in_doubt: bool) -> None:
        """Note that the provider did not take the part, where that is certain: then nobody needs to look for it."""
        if not in_doubt:
            self._journal.note("refused", part.name, reason=str(error))

    # ── a batch whose id was never heard ─────────────────────────────────────────────────────────────────────────────

    async def _find_again(self, part: Part) -> None:
        """Find the batch that an earlier entry asked for, or note that it was never made."""
        found = await self._find(part)
        if found is None:
            self._journal.note("refused", part.name, reason="the provider has no such batch")
        else:
            self._journal.note("submitted", part.name, batch=found.id)

    async def _find(self, part: Part) -> BatchState | None:
        """The batch that the provider made of a part; None where it made none. An error where nobody can know."""
        found = await self._look_for(part)
        if found.ours:
            return await self._only_first(found)
        if found.gap is not None:
            raise self._doubt(part, found.gap)
        alone = not any(other.is_in_doubt for other in self._journal.live if other is not part)
        if len(found.perhaps) == 1 and alone:
            _log.warning(
                "The provider does not say whose the batch %r is. By its time and size it is this run's, so the run "
                "waits for it.", found.perhaps[0].id,
            )  # fmt: skip
            return found.perhaps[0]
        if found.perhaps:
            ids = ", ".join(repr(state.id) for state in found.perhaps[:_SHOWN_IDS])
            raise self._doubt(part, f"by time and size it may be {ids}, and nothing tells which of them are this run's")
        return None

    async def _look_for(self, part: Part) -> Found:
        known = frozenset(batch for one in self._journal.parts.values() for batch in one.batches)
        since = datetime.fromisoformat(part.asked).timestamp() if part.asked else 0.0
        others = frozenset(file for one in self._journal.parts.values() if one is not part for file in one.files)
        sought = Sought(self._label(part), tuple(part.files), part.requests, since, known, others)
        for pause in (0.0,) if self._provider.makes_each_once else (0.0, *_LOOKS_AFTER):
            await asyncio.sleep(pause)
            try:
                found = await self._provider.find(sought)
            except (EndpointError, GenerationError) as error:
                raise self._doubt(part, f"its list of batches was not to be had ({str(error).rstrip('.')})") from error
            if found.ours:
                break
        return found

    async def _only_first(self, found: Found) -> BatchState:
        for other in found.ours[1:]:
            _log.warning("The batch %r was made twice, because a request arrived late. It is cancelled.", other.id)
            await self._provider.cancel(other.id)
        return found.ours[0]

    async def _first_of(self, part: Part, made: BatchState) -> BatchState:
        """The batch that counts, where an earlier request may have been heard as well."""
        with contextlib.suppress(EndpointError, GenerationError):
            if (found := await self._look_for(part)).ours:
                return await self._only_first(found)
        return made

    def _doubt(self, part: Part, reason: str) -> EndpointError:
        decide = f"reward-kit batches decide {str(self._journal.path.parent)!r}"
        return EndpointError(
            f"The provider may have taken the {part.requests:,} requests of {part.name!r}, and does not tell whether "
            f"it did: {reason}. They are not submitted a second time, so that nothing is paid twice. Run the same "
            f"command again to look once more. Or look yourself among the batches that the provider shows for your "
            f"account, and decide: `{decide} --adopt ID` has the run wait for that batch (should it be another one, "
            f"these requests are asked for when it has ended); `{decide} --submit-again` submits them again (should "
            "the provider have taken them, they are paid twice)."
        )

    async def _wait(self, part: Part, stop: Stop, *, detach: bool) -> BatchState | None:
        """How the batch ended; None where it has not, and nobody waits any longer."""
        pause, in_vain = min(_FIRST_PAUSE, self._batch.poll_seconds), 0
        while not stop.requested.is_set():
            try:
                state = await self._provider.state(str(part.batch))
            except (RateLimitError, ProviderError) as error:
                in_vain += 1
                if in_vain >= _LOOKS_IN_VAIN:
                    raise
                _log.debug("No word of batch %s: %s", part.batch, error)
            else:
                in_vain = 0
                self._look(part, state)
                if state.end is not None:
                    return state
            if detach:
                return None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.requested.wait(), pause * (0.75 + random.random() / 2))
            pause = min(self._batch.poll_seconds, pause * _LONGER_EACH_TIME)
        return None

    def _look(self, part: Part, state: BatchState) -> None:
        self._seen[part.name] = state
        known = self._seen.values()
        self._watch.look(sum(one.answered + one.failed for one in known), sum(one.failed for one in known))

    async def _declined(self, part: Part, state: BatchState, stop: Stop) -> None:
        """Submit it again later, when others of ours have ended. Alone, it is too large for the provider."""
        self._journal.note("declined", part.name, reason=state.words)
        others = [one for one in self._journal.under_way if one.fetched is None and one is not part]
        if not others and part.submission >= self._batch.attempts:
            raise EndpointError(
                f"The provider has no room for a batch of {part.requests:,} requests ({state.words}). Try again later, "
                "or make files smaller with batch.max_requests in the config."
            )
        _log.info("The provider has no room for a batch now (%s): it is submitted again later.", state.words)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.requested.wait(), self._batch.poll_seconds * (0.75 + random.random() / 2))

    async def _fetch(self, part: Part, state: BatchState) -> None:
        """Put the answers on this disk. Only what came whole counts, and once it did, it is not fetched again."""
        entries = []
        for number, output in enumerate(state.outputs, start=1):
            path = self._journal.answers_path(part.name, number)
            try:
                entries.append(await self._receive(state, output, path))
            except NotThere as error:
                _log.warning("%s. The answers in %r of batch %r count as lost.", error, output, state.id)
        self._journal.note("fetched", part.name, fetched=entries)

    async def _receive(self, state: BatchState, output: str, path: Path) -> dict[str, Any]:
        retries = self._generation.api_params.max_retries
        for number in itertools.count():
            try:
                with _Spool(path) as spool:
                    await self._provider.fetch(state, output, spool.write)
                    return spool.keep()
            except (RateLimitError, ProviderError) as error:
                if number >= retries:
                    raise
                _log.debug("A file of answers was not received: %s", error)
            await asyncio.sleep(random.random() * min(_LONGEST_BACKOFF, 0.5 * 2**number))
        raise AssertionError("counting does not end")

    # ── settle ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _index_fetched(self) -> None:
        for part in self._journal.live:
            for entry in part.fetched or ():
                if entry["name"] not in self._indexed:
                    self._indexed.add(entry["name"])
                    self._index.add(self._journal.folder / entry["name"], str(part.batch))

    def _is_settled(self, name: bytes) -> bool:
        """Whether a request has its answer, or a refusal that asking again would not change."""
        return self._index.is_answered(name) or self._outcome(name)[0]

    def _outcome(self, name: bytes) -> tuple[bool, RewardKitError | None]:
        """Whether a request is settled by the line that came for it, if any did; and the error that the line holds."""
        line = self._index.line(name)
        if line is None:
            return False, None
        try:
            self._answers.read(line)
        except RewardKitError as error:
            return is_final(error), error
        return True, None

    async def _settle(self) -> bool:
        """See what the batches left open; True where some of it is asked for again, in files that were made for it."""
        self._watch.doing = "looking through answers"
        self._index_fetched()
        again, stopping = False, None
        for part in [part for part in self._journal.live if part.fetched is not None and not part.settled]:
            await asyncio.sleep(0)
            repeat, error = self._settle_part(part)
            again = again or repeat
            stopping = stopping or error
        if stopping is not None:
            raise stopping
        return again

    def _settle_part(self, part: Part) -> tuple[bool, RewardKitError | None]:
        stopping: RewardKitError | None = None
        open_lines = 0
        cancelled = part.end == "cancelled"
        writer = _PartWriter(self._journal, FileFill(_ANY_SIZE), part.settings)  # a part of one that was taken
        share = part.most_cost / max(1, part.requests)
        try:
            for name, line in ids_in(self._journal.requests_path(part.name)):
                if self._index.is_answered(name):
                    continue
                settled, error = self._outcome(name)
                if settled:
                    continue
                open_lines += 1
                if error is not None and not isinstance(error, GenerationError):
                    stopping = stopping or error
                if cancelled:
                    self._left.put(digest64(name), 0)
                elif part.attempt < self._batch.attempts or stopping is not None:
                    writer.add(line, share)
            attempt = part.attempt + (stopping is None)
            repeat = writer.finish_repeat(attempt)
            self._journal.note("settled", part.name, open=open_lines, **({} if repeat is None else {"repeat": repeat}))
        finally:
            writer.discard()
        if cancelled and open_lines:
            self._why_left = (
                f"{open_lines:,} requests of a batch that was cancelled have no answer. Run the same command again to "
                "ask for them"
            )
        return repeat is not None, stopping

    def _without_left(self, work: Work) -> Work:
        if work.draws:
            sample = work.sample
            request = self._keys.of(sample.messages, sample.tools, sample.id)
            names = ((draw, custom_id(sample.id, draw, request).encode()) for draw in work.draws)
            work.draws = [draw for draw, name in names if digest64(name) not in self._left]
        return work

    @property
    def _keys(self) -> RequestKeys:
        return RequestKeys(self._identity, self._sampling)


class _Asking(NamedTuple):
    """What is known while requests are written."""

    keys: RequestKeys
    covered: DigestMap
    """Custom ids that live batches ask for, or have answered."""
    once: DigestMap
    """Requests and draws met so far."""


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _PartWriter:
    """Writes lines of requests into files within the provider's limits, and notes each file that is whole."""

    def __init__(self, journal: BatchJournal, fill: FileFill, settings: str) -> None:
        self.fill = fill
        self._journal = journal
        self._settings = settings
        self._number = len(journal.parts)
        self._draft: Draft | None = None
        self._digest = hashlib.sha256()
        self._requests = self._size = 0
        self._cost = 0.0

    def add(self, line: bytes, cost: float) -> None:
        if self.fill.add(len(line)):
            self.finish()
            self._begin()
        if self._draft is None:
            raise AssertionError("a file was begun")
        self._draft.write(line)
        self._digest.update(line)
        self._requests += 1
        self._size += len(line)
        self._cost += cost

    def finish(self) -> None:
        """Note the file that is being written."""
        if (facts := self._close(1)) is not None:
            self._journal.note("prepared", facts.pop("part"), **facts)

    def finish_repeat(self, attempt: int) -> dict[str, Any] | None:
        """The same for a file that takes up what another left open: what is to be noted, None where it is empty."""
        return self._close(attempt)

    def discard(self) -> None:
        """Throw away what was not finished."""
        if self._draft is not None:
            self._draft.discard()
            self._draft = None

    @property
    def _name(self) -> str:
        return f"{self._number:04d}"

    def _begin(self) -> None:
        self._number += 1
        self._digest, self._requests, self._size, self._cost = hashlib.sha256(), 0, 0, 0.0
        self._draft = Draft(self._journal.requests_path(self._name), make_folder=True)

    def _close(self, attempt: int) -> dict[str, Any] | None:
        draft, self._draft = self._draft, None
        if draft is None:
            return None
        draft.keep()
        return {
            "part": self._name, "requests": self._requests, "size": self._size, "sha256": self._digest.hexdigest(),
            "settings": self._settings, "attempt": attempt, "most_cost": self._cost,
        }  # fmt: skip


class _Spool:
    """A file that comes in pieces, and takes its place only when it is whole. Answers that hold a key stay out."""

    def __init__(self, path: Path) -> None:
        self._draft = Draft(path, make_folder=True)
        self._rest = b""
        self._digest = hashlib.sha256()
        self._size = 0

    def __enter__(self) -> _Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._draft.discard()

    def write(self, piece: bytes) -> None:
        """Take a piece. Whole lines are written: a key must not lie across two pieces."""
        lines, newline, rest = piece.rpartition(b"\n")
        if not newline:
            self._rest += piece
            return
        self._write(self._rest + lines + newline)
        self._rest = rest

    def keep(self) -> dict[str, Any]:
        """Everything came: what is to be noted of it."""
        if self._rest:
            self._write(self._rest + b"\n")
        self._draft.keep()
        return {"name": self._draft.target.name, "size": self._size, "sha256": self._digest.hexdigest()}

    def _write(self, lines: bytes) -> None:
        lines = without_keys(lines)
        self._draft.write(lines)
        self._digest.update(lines)
        self._size += len(lines)


def _is_as_noted(path: Path, size: int, sha256: str) -> bool:
    """Whether a file is there, and is what was written."""
    if not path.exists() or path.stat().st_size != size:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256
