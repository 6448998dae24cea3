# SPDX-License-Identifier: Apache-2.0
"""Answers that batches gave, on disk: an index over them, and the client that answers from it.

    files of answers ─▶ AnswerIndex: custom id → where its line is ─▶ FetchedAnswers.generate(messages, draws)

Only a compact index is in memory (about 50 bytes per line); a line is read when its draw is asked for.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from reward_kit.config_models import Price, Sampling
from reward_kit.errors import BadRequestError, GenerationError, KeyInAnswerError, ProviderError, RewardKitError
from reward_kit.generation.batch.lines import AnswerLines, RequestLines, custom_id, id_in, is_answered, used_in
from reward_kit.generation.budget import Budget
from reward_kit.generation.cache.responses import RequestKeys, ResponseCache, draw_key
from reward_kit.generation.prices import cost_of
from reward_kit.generation.tokens import most_usage
from reward_kit.generation.usage import counted, used_by
from reward_kit.generation.wire import Prompt
from reward_kit.models import Completion, Failure, Message, Rollout, Usage
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = ["AnswerIndex", "FetchedAnswers", "ids_in"]

_OPEN_AT_ONCE = 32
_READ_AHEAD = 1 << 18
"""Bytes that are read at once where lines are asked for in the order in which they stand."""


class AnswerIndex:
    """Where the line of each custom id is, in one or more files.

    Lines come in any order. Of several lines with one id, the first that holds an answer counts, else the last: errors
    of an earlier attempt are superseded by those of a later one. What they used was paid all the same: they are kept in
    mind, too.
    """

    def __init__(self) -> None:
        """Begin with no file."""
        self._paths: list[Path] = []
        self._batches: list[str] = []
        """The provider's ids of the batches that the files are of."""
        self._places = DigestMap()
        self._files, self._offsets, self._lengths = array("I"), array("Q"), array("I")
        self._answered = bytearray()
        self._superseded: dict[int, list[tuple[int, int, int]]] = {}
        """Where the errors of earlier attempts are, by the number of the id."""
        self._open: dict[int, int] = {}
        self._block, self._block_file, self._block_start = b"", -1, 0
        """What was last read, and where it stands."""
        self.repeated = 0
        """Lines whose id had an answer already: the provider wrote them twice."""
        self.unreadable = 0
        """Lines without an id: cut, or not ours."""

    def __len__(self) -> int:
        """How many custom ids there are."""
        return len(self._places)

    def add(self, path: Path, batch: str = "") -> None:
        """Take account of the lines of a file, which came from a batch."""
        self._paths.append(path)
        self._batches.append(batch)
        file, offset = len(self._paths) - 1, 0
        with path.open("rb", buffering=1 << 20) as lines:
            for line in lines:
                name = id_in(line)
                if name is not None:
                    self._note(name, file, offset, len(line), answered=is_answered(line))
                elif not line.isspace():
                    self.unreadable += 1
                offset += len(line)

    def _note(self, name: bytes, file: int, offset: int, length: int, *, answered: bool) -> None:
        number = len(self._offsets)
        before = self._places.put_first(digest64(name), number)
        if before >= 0:
            if self._answered[before]:
                self.repeated += answered
                return
            if self._files[before] != file:  # else the provider wrote it twice
                place = (self._files[before], self._offsets[before], self._lengths[before])
                self._superseded.setdefault(before, []).append(place)
            self._files[before], self._offsets[before], self._lengths[before] = file, offset, length
            self._answered[before] = answered
            return
        self._files.append(file)
        self._offsets.append(offset)
        self._lengths.append(length)
        self._answered.append(answered)

    def is_answered(self, name: bytes) -> bool:
        """Whether there is a line with an answer, by its looks."""
        place = self._places.get(digest64(name))
        return place >= 0 and bool(self._answered[place])

    def line(self, name: bytes) -> bytes | None:
        """The line of a custom id; None where there is none."""
        place = self._places.get(digest64(name))
        if place < 0:
            return None
        found = self._read(self._files[place], self._offsets[place], self._lengths[place])
        return found if id_in(found) == name else None  # two ids may share a digest

    def superseded(self, name: bytes) -> list[tuple[str, bytes]]:
        """The lines of earlier attempts at a custom id, each of which came to nothing, and the batch of each."""
        places = self._superseded.get(self._places.get(digest64(name)), ())
        return [(self._batches[place[0]], line) for place in places if id_in(line := self._read(*place)) == name]

    def batch(self, name: bytes) -> str:
        """The batch that the line of a custom id came from; empty where there is none."""
        place = self._places.get(digest64(name))
        return "" if place < 0 else self._batches[self._files[place]]

    def close(self) -> None:
        """Let go of the files."""
        while self._open:
            os.close(self._open.popitem()[1])

    def _read(self, file: int, offset: int, length: int) -> bytes:
        """Some bytes of a file. Most providers answer in order: then one call to the disk serves many lines."""
        start = offset - self._block_start
        follows = file == self._block_file and 0 <= start <= len(self._block)
        if not follows or start + length > len(self._block):
            size = max(length, _READ_AHEAD) if follows else length
            self._block = os.pread(self._descriptor(file), size, offset)
            self._block_file, self._block_start, start = file, offset, 0
        return self._block[start : start + length]

    def _descriptor(self, file: int) -> int:
        if file not in self._open:
            while len(self._open) >= _OPEN_AT_ONCE:
                os.close(self._open.pop(next(iter(self._open))))
            self._open[file] = os.open(self._paths[file], os.O_RDONLY | os.O_CLOEXEC)
        return self._open[file]


class _InVain(NamedTuple):
    """A line that is no answer."""

    batch: str
    used: Usage | Literal[False] | None
    """What was used for it: False where nobody knows, None where it is sure to be nothing."""


class FetchedAnswers:
    """A client that answers from what batches gave, and else from the cache, which it fills.

    What no batch answered is a failure that may pass: it is owed again when the run is entered again.
    """

    def __init__(  # noqa: PLR0913 - one parameter a part
        self, model: str, identity: Mapping[str, Any], index: AnswerIndex, requests: RequestLines, answers: AnswerLines,
        *, largest_line: int, cache: ResponseCache | None = None, budget: Budget | None = None,
        price: Price | None = None, before: Callable[[str, int], Rollout | None] = lambda *_: None,
    ) -> None:  # fmt: skip
        """Answer for `model`; what an answer cost at this `price` counts in the `budget`.

        `before` knows what earlier entries of the run made of a draw of a sample.
        """
        self.model = model
        self.identity = identity
        self._index = index
        self._requests = requests
        self._answers = answers
        self._largest_line = largest_line
        self._cache = cache
        self._budget, self._price = budget, price
        self._before = before
        self._keys: RequestKeys | None = None
        self.taken = 0
        """Answers that were handed out of the index."""

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        draws: Sequence[int],
        sampling: Sampling,
        tools: list[dict[str, Any]] | None = None,
        sample_id: str = "",
    ) -> list[Completion | Failure]:
        """One answer or failure for each of `draws`, in their order. Nobody is asked."""
        keys = self._keys
        if keys is None or keys.sampling is not sampling:
            keys = self._keys = RequestKeys(self.identity, sampling)
        request = keys.of(messages, tools, sample_id)
        return [self._answer(messages, draw, sampling, tools, sample_id, request) for draw in draws]

    async def close(self) -> None:
        """Let go of the files."""
        self._index.close()

    def _answer(
        self, messages: Sequence[Message], draw: int, sampling: Sampling, tools: list[dict[str, Any]] | None,
        sample_id: str, request: bytes,
    ) -> Completion | Failure:  # fmt: skip
        name = custom_id(sample_id, draw, request).encode()
        line, batch = self._index.line(name), self._index.batch(name)
        most = partial(most_usage, messages, tools, sampling, 1)
        vain = [_InVain(of, self._answers.used(earlier)) for of, earlier in self._index.superseded(name)]
        failure: GenerationError | None = None
        if line is not None:
            try:
                completion = self._answers.read(line)
            except GenerationError as error:
                failure = error
                holds_key = isinstance(error, KeyInAnswerError)
                vain.append(_InVain(batch, (used_in(line) or False) if holds_key else self._answers.used(line)))
            except RewardKitError as error:  # a key or a quota, at the time: it may pass
                failure = ProviderError(str(error))
            else:
                if completion.usage is None or not completion.usage.completion_tokens:
                    completion = counted(completion, most())
                spent, _ = self._spent(vain, most, sample_id, draw)
                return self._taken(completion, spent, draw, request)
        cache = None if isinstance(failure, KeyInAnswerError) else self._cache
        if cache is not None and (known := cache.get(draw_key(request, draw))) is not None:
            spent, _ = self._spent(vain, most, sample_id, draw)
            self._spend(spent)
            # What was paid in vain is told with the answer, which then is not one that cost nothing.
            paid = {"cached": False, "usage": None, "retried": spent}
            return known.model_copy(update=paid) if spent else known
        if failure is None:
            prompt = Prompt([message.as_request() for message in messages], tools, sampling, sample_id)
            failure = self._why_not_asked(prompt, draw, request)
        spent, batches = self._spent(vain, most, sample_id, draw)
        self._spend(spent)
        return Failure.of(failure, "generate").model_copy(
            update={"spent": spent or None, "paid_batches": batches or None}
        )

    def _spent(
        self, vain: Sequence[_InVain], most: Callable[[], Usage], sample_id: str, draw: int
    ) -> tuple[list[Usage], list[str]]:
        """What was paid in vain and is in no rollout yet, and all batches that will be counted then."""
        before = self._before(sample_id, draw) if vain else None
        counted_already = [] if before is None or before.failure is None else before.failure.paid_batches or []
        new = [one for one in vain if one.used is not None and one.batch not in counted_already]
        spent = [one.used or most() for one in new]
        return spent, [*counted_already, *dict.fromkeys(one.batch for one in new)]

    def _spend(self, spent: Iterable[Usage]) -> None:
        if self._budget is not None and self._price is not None:
            for used in spent:
                self._budget.spend_fetched(cost_of(used, self._price), at_most=bool(used.at_most))

    def _taken(self, completion: Completion, spent: list[Usage], draw: int, request: bytes) -> Completion:
        """The answer, with what was paid in vain before it."""
        self.taken += 1
        if self._cache is not None:
            self._cache.put(draw_key(request, draw), completion, model=self.model)
        whole = completion.model_copy(update={"retried": spent}) if spent else completion
        self._spend(used_by(whole))
        return whole

    def _why_not_asked(self, prompt: Prompt, draw: int, request: bytes) -> GenerationError:
        try:
            [(_, line)] = self._requests.of(prompt, [draw], request)
        except BadRequestError as error:
            return error
        if len(line) > self._largest_line:
            return BadRequestError(
                f"The request has {len(line):,} bytes, and a file of the batch may have {self._largest_line:,}. "
                "Shorten the prompt, or ask for this one with `generation.transport=online`."
            )
        return ProviderError("The provider gave no answer to this request in any batch. Run again to ask for it.")


def ids_in(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """The custom ids of a file of lines, each with its line."""
    with path.open("rb", buffering=1 << 20) as lines:
        for line in lines:
            if (name := id_in(line)) is not None:
                yield name, line
