# SPDX-License-Identifier: Apache-2.0
"""The run directory: the settings of a run, what it made, and who may write there.

config.yaml      the resolved configuration, itself a valid input
manifest.json    versions, git revision, the two digests, one entry per phase
samples.jsonl    what was asked, each sample once; the other files name it
rollouts.jsonl   what was generated   (a journal)
episodes.jsonl   the turns of an agent's episodes that are not finished   (a journal; gone when all are)
batches.jsonl    what became of files of requests, with a batch endpoint   (a journal); the files are in batches/
results.jsonl    what was judged      (a journal)
summary.json     the figures
reviews.jsonl    what people said of verdicts; reviews.jsonl.count, how many lines
.lock            held while a process works here
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self
from uuid import uuid4

import orjson

from reward_kit._version import __version__
from reward_kit.errors import RewardKitError, StorageError
from reward_kit.storage.batch_journal import BATCHES, BatchJournal
from reward_kit.storage.files import Draft
from reward_kit.storage.git_revision import GitRevision
from reward_kit.storage.journal import Journal
from reward_kit.storage.reviews import COUNT_OF_REVIEWS, REVIEWS
from reward_kit.storage.samples import SAMPLES, Samples
from reward_kit.storage.turn_journal import EPISODES
from reward_kit.utils import exact_json
from reward_kit.utils.checksums import CHECK, check_document, check_text, sealed_document, sealed_text
from reward_kit.utils.clock import now

__all__ = [
    "Claim", "RunDirectory", "changed_files", "check_config", "digest_of", "free_place", "held_by", "left_out_of",
    "line_numbers", "other_files", "read_document", "refuse_cut", "remark_on_lines", "set_run_aside", "unfinished",
]  # fmt: skip

ROLLOUTS = "rollouts.jsonl"
RESULTS = "results.jsonl"
CACHE_SCOPE = "cache_scope"
"""A fact of the manifest: the name of the directory in the keys of a cache whose answers are not for others."""
OWN_FILES = (
    SAMPLES, ROLLOUTS, RESULTS, EPISODES, BATCHES, REVIEWS, COUNT_OF_REVIEWS, "config.yaml", "manifest.json",
    "summary.json", ".lock",
)  # fmt: skip
"""The files a run lives on, and what people say of it."""

_log = logging.getLogger(__name__)

_PATIENCE_WITH_GIT = 5.0
"""Seconds that the end of a phase waits for git, where it has not answered by then."""


def digest_of(value: object) -> str:
    """A short digest of plain data, the same in every process and on every machine."""
    canonical = orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str)
    return hashlib.sha256(canonical).hexdigest()[:16]


def read_document(path: Path) -> dict[str, Any] | None:
    """The fields of a manifest or a summary; None where there is none. One that is damaged is an error."""
    try:
        fields = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, orjson.JSONDecodeError) as error:
        raise StorageError(
            f"{str(path)!r} cannot be read ({error}). Restore it, or choose another output directory."
        ) from error
    if not isinstance(fields, dict):
        raise StorageError(f"{str(path)!r} is not a run's. Move it away, or choose another output directory.")
    if check_document(fields) is False:
        raise StorageError(
            f"{str(path)!r} is damaged: it is not what was written there. Restore it, or see what "
            f"`reward-kit doctor {str(path.parent)!r}` says."
        )
    return fields


def held_by(path: Path) -> int | None:
    """How many entries a journal had when its run was last left, by the manifest beside it; None: nobody knows."""
    manifest = read_document(path.parent / "manifest.json") or {}
    held: int | None = (manifest.get("holds") or {}).get(path.name)
    return held


def check_config(path: Path) -> bool | None:
    """Whether a run's config.yaml is as it was written. Beside a manifest with a checksum it has one, too."""
    checked = check_text(path.read_bytes())
    if checked is not None:
        return checked
    try:
        fields = orjson.loads((path.parent / "manifest.json").read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return False if isinstance(fields, dict) and CHECK in fields else None


def unfinished(path: Path) -> str | None:
    """What to say of a run directory, or of a journal in one, that is of a run which was cut short; else None."""
    directory = path if path.is_dir() else path.parent
    phases = (read_document(directory / "manifest.json") or {}).get("phases")
    if not phases or phases[-1].get("status") != "running":
        return None
    return f"The run in {str(directory)!r} was cut short, or still goes on: these are the answers it had judged."


def line_numbers(numbers: Sequence[int], most: int = 8) -> str:
    """`line 7 is`, `lines 7, 9 and 12 are`: the beginning of a sentence about lines."""
    if len(numbers) == 1:
        return f"line {numbers[0]} is"
    named = [str(number) for number in numbers[:most]]
    last = f"{len(numbers) - most} more" if len(numbers) > most else named.pop()
    return f"lines {', '.join(named)} and {last} are"


def refuse_cut(journal: Journal | Samples, advice: str = "") -> None:
    """Stop where a journal holds fewer entries than its run left in it. `advice`: what to do about it."""
    held = held_by(journal.path)
    if held is not None and (found := journal.keys) < held:
        advice = advice or "Restore it, or enter the run again, which makes what is missing."
        raise StorageError(f"{str(journal.path)!r} was cut: it holds {found} of the {held} lines it had. {advice}")


def remark_on_lines(journal: Journal) -> None:
    """Say where a journal has lines that nobody can check, or fewer than it had."""
    if journal.unchecked:
        _log.warning(
            "%r has %d lines that were written before reward-kit had checksums: they are read, but could not be "
            "checked.",
            str(journal.path),
            journal.unchecked,
        )
    if (held := held_by(journal.path)) is not None and (found := journal.keys) < held:
        _log.warning(
            "%r holds %d of the %d lines it had: what is missing is made again.", str(journal.path), found, held
        )


class Claim(NamedTuple):
    """What the rollouts or the results of a run directory depend on."""

    which: Literal["rollouts", "results"]
    digest: str
    settings: Mapping[str, Any]
    """What the digest was made of."""
    advice: str
    """What to do where the directory is bound to something else."""


class RunDirectory:
    """A run directory that this process has entered: nobody else writes to it until it leaves."""

    def __init__(self, path: Path) -> None:
        """Name the directory; nothing is touched until it is entered."""
        self.path = path.absolute()  # a reward may change the working directory
        self.always_on_disk = False
        """Whether the journals that are opened from now on force each batch of lines to the disk."""
        self._samples: Samples | None = None
        self._lock: int | None = None
        self._manifest: dict[str, Any] = {}
        self._revision: GitRevision | None = None

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageError(
                f"Cannot use {str(self.path)!r} as a run directory ({error.strerror}). "
                "Choose another `output.output_dir`."
            ) from error
        self._take_lock(self._lock)
        try:
            self._manifest = self._read_manifest()
        except StorageError:
            self.__exit__()
            raise
        if self.made_by.get("git") is None:
            self._revision = GitRevision()
        return self

    def __exit__(self, *_: object) -> None:
        if self._revision is not None:
            self._revision.close()
            self._revision = None
        try:
            if self._samples is not None:
                self._samples.close()
        finally:
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    @classmethod
    def seen_from_outside(cls, path: Path) -> Self:
        """The directory as it is, to be asked about; it is not entered, and nothing may be written."""
        directory = cls(path)
        directory._manifest = directory._read_manifest()
        return directory

    @property
    def rollouts_path(self) -> Path:
        """The path of `rollouts.jsonl`."""
        return self.path / ROLLOUTS

    @property
    def results_path(self) -> Path:
        """The path of `results.jsonl`."""
        return self.path / RESULTS

    @property
    def episodes_path(self) -> Path:
        """Where the turns of unfinished episodes are."""
        return self.path / EPISODES

    @property
    def batches_path(self) -> Path:
        """Where it is noted what became of files of requests."""
        return self.path / BATCHES

    @property
    def summary_path(self) -> Path:
        """The path of `summary.json`."""
        return self.path / "summary.json"

    @property
    def samples(self) -> Samples:
        """What was asked: one file, which all journals of the directory name."""
        if self._samples is None:
            self._samples = Samples(self.path / SAMPLES, always_on_disk=self.always_on_disk)
        return self._samples

    def rollouts(self, *, owed_again: bool = False) -> Journal:
        """Open the journal of rollouts. `owed_again`: they can be had again for nothing, so damaged ones are owed."""
        return self._journal(self.rollouts_path, owed_again=owed_again)

    def results(self) -> Journal:
        """Open the journal of results; a damaged line is left out, for its rollout can be judged again."""
        return self._journal(self.results_path, owed_again=True)

    def _journal(self, path: Path, *, owed_again: bool) -> Journal:
        return Journal(path, owed_again=owed_again, always_on_disk=self.always_on_disk, samples=self.samples)

    def sizes(self, *others: Path) -> dict[str, list[int]]:
        """The size of each file of lines, and when it was last written to: one that has both still is untouched."""
        paths = (self.path / SAMPLES, self.rollouts_path, self.results_path, *others)
        found = [(path.name, path.stat()) for path in paths if path.exists()]
        return {name: [status.st_size, status.st_mtime_ns] for name, status in found}

    def set_damage_aside(self, *journals: Journal | Samples) -> bool:
        """Take damaged lines out of journals whose entries can be made again; whether there were any.

        The files are kept as they were found.
        """
        damaged = [journal for journal in journals if journal.damaged]
        for journal in damaged:
            numbers = sorted(journal.damaged)
            kept = self._free_name(f"{journal.path.stem}.damaged")
            shutil.copyfile(journal.path, kept)
            journal.compact()
            _log.warning(
                "%r: %s damaged, and made again. The file as it was is kept as %r.",
                str(journal.path), line_numbers(numbers), kept.name,
            )  # fmt: skip
        return bool(damaged)

    def note_lines(self, *journals: Journal | Samples) -> None:
        """Keep how many entries the journals hold by now, where that is known without looking: a killed run cannot
        say it later. Only lines that are on disk count."""
        counts = {journal.path.name: journal.keys_at_hand for journal in journals if not journal.read_only}
        self.note_held({name: count for name, count in counts.items() if count})

    def note_all_lines(self, *journals: Journal | Samples) -> None:
        """The same at the end of a run, in any case. A full disk must not hide what went wrong."""
        with contextlib.suppress(RewardKitError):
            kept = [journal for journal in journals if not journal.read_only and journal.path.exists()]
            self.note_held({journal.path.name: journal.keys for journal in kept})

    def note_held(self, counts: Mapping[str, int]) -> None:
        """Keep how many entries the journals hold, so that one that is cut later is noticed."""
        self.note("holds", {**self._manifest.get("holds", {}), **counts})

    def claim(self, claim: Claim) -> bool:
        """Bind the directory's rollouts or results to a claim. True if they already were.

        When they are bound to another, the error names what changed. As long as nothing of worth was made, nothing is
        bound: a wrong model name, or a wrong column, can be corrected. What was made with it is set aside.
        """
        known = self._bound(claim.which)
        noted = {"digest": claim.digest, "settings": dict(claim.settings)}
        if self.is_bound(claim):
            if known["digest"] != claim.digest:  # an older version noted less
                known.update(noted)
                self.write_manifest()
            return True
        if self.is_claimed(claim.which):
            self.set_worthless_aside(claim.which)
        begun = {"since": len(self.phases)} if self.phases else {}
        self._manifest.setdefault("digests", {})[claim.which] = {**noted, **begun}
        self.write_manifest()
        return False

    def is_bound(self, claim: Claim) -> bool:
        """Whether they are bound to this claim; False while they are free, an error when bound to another."""
        known = self._bound(claim.which)
        if not known:
            return False
        if _is_same(known, claim):
            return True
        if self.is_worthless(claim.which):
            return False
        raise StorageError(_refusal(self.path, claim, known["settings"]))

    def _bound(self, which: str) -> dict[str, Any]:
        bound: dict[str, Any] = self._manifest.get("digests", {}).get(which, {})
        return bound

    def is_claimed(self, which: str) -> bool:
        """Whether they are bound to anything."""
        return which in self._manifest.get("digests", {})

    @staticmethod
    def claims_of(path: Path) -> dict[str, Any]:
        """What the files of another run directory were made with, by its manifest."""
        claims: dict[str, Any] = RunDirectory(path)._read_manifest().get("digests", {})
        return claims

    def set_results_aside(self) -> Path | None:
        """For re-scoring: move the results aside and release their claim; where they are now."""
        known = self._bound("results")
        kept = self._free_name(f"results.{known.get('digest', 'unbound')[:8]}")
        is_there = self.results_path.exists()
        if is_there:
            self.results_path.rename(kept)
        self._manifest.get("digests", {}).pop("results", None)
        self._manifest.get("holds", {}).pop(RESULTS, None)
        self.write_manifest()
        return kept if is_there else None

    def was_cut_off_judging(self, claim: Claim) -> bool:
        """Whether the results are bound to this claim, and no entry since then has judged to its end."""
        known = self._bound("results")
        judging = [entry for entry in self.phases[known.get("since", 0) :] if entry["phase"] != "inference"]
        unfinished = bool(judging) and all(entry["status"] != "finished" for entry in judging)
        return unfinished and _is_same(known, claim)

    @property
    def opened(self) -> dict[str, dict[str, str | None]]:
        """By reward, the files that it opened when the results were judged: their digests, None where it wrote, too."""
        opened: dict[str, dict[str, str | None]] = self._bound("results").get("opened", {})
        return opened

    def note_opened(self, reward: str, files: Mapping[str, str | None]) -> None:
        """Keep which files a reward opened to judge; of one that is known, what it was first. Ours are left out."""
        known = self._bound("results").setdefault("opened", {}).setdefault(reward, {})
        new = {name: digest for name, digest in files.items() if digest is None or name not in known}
        if any(known.get(name, "") != digest for name, digest in new.items()):
            known.update(new)
            self.write_manifest()

    def begin_phase(self, phase: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Note that a phase has begun; the entry returned is completed by `end_phase`."""
        entry: dict[str, Any] = {"phase": phase, "started": now(), "status": "running", **facts}
        self._manifest.setdefault("phases", []).append(entry)
        self.write_manifest()
        return entry

    def end_phase(self, entry: dict[str, Any], status: str, facts: Mapping[str, Any]) -> None:
        """Note in the manifest how a phase ended: its status, when, and these facts."""
        entry.update({"status": status, "finished": now(), **facts})
        if self._revision is not None:
            self._revision.answer(patience=_PATIENCE_WITH_GIT)
        self.write_manifest()

    @property
    def phases(self) -> list[dict[str, Any]]:
        """The phases that were begun here, oldest first."""
        phases: list[dict[str, Any]] = self._manifest.get("phases", [])
        return phases

    def finished_entry(self, phase: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """What is noted of the last entry, where it finished this phase with these facts; empty where it did not."""
        last = self.phases[-1] if self.phases else {}
        same = last.get("phase") == phase and all(last.get(name) == value for name, value in facts.items())
        return last if same and last.get("status") == "finished" else {}

    def note_more(self, name: str, facts: Mapping[str, str]) -> None:
        """Keep facts beside those of the same kind that earlier entries of the run have met."""
        self.note(name, {**(self.noted(name) or {}), **facts})

    @property
    def made_by(self) -> dict[str, Any]:
        """What made the directory: versions, git revision and time; empty before anything did."""
        made_by: dict[str, Any] = self._manifest.get("made_by", {})
        return made_by

    def note(self, name: str, value: Any) -> None:
        """Keep a fact about the run in its manifest."""
        if self._manifest.get(name) != value:
            self._manifest[name] = value
            self.write_manifest()

    def noted(self, name: str) -> Any:
        """A fact that was kept; None where it was not."""
        return self._manifest.get(name)

    def cache_scope(self) -> str:
        """Names this directory in the keys of a cache whose answers are not for others."""
        if self.noted(CACHE_SCOPE) is None:
            self.note(CACHE_SCOPE, uuid4().hex)
        return str(self.noted(CACHE_SCOPE))

    def write_config(self, config: Mapping[str, Any], *, left_out: Sequence[str] = ()) -> None:
        """Write the resolved configuration, and which settings were `left_out` because they hold a credential."""
        import yaml  # here, because only runs need it

        remark = "".join(f"# {path}{_NOT_KEPT}\n" for path in left_out)
        if left_out:
            remark += f"# On the command line: {left_out[0]}=… In a file, by a variable: ${{oc.env:MY_VARIABLE}}\n"
        text = yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True)
        self.write("config.yaml", sealed_text((remark + text).encode()))

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write `summary.json`, with a checksum."""
        self.write("summary.json", sealed_document(dict(summary)))

    def read_summary(self) -> dict[str, Any] | None:
        """The figures of the last time the run was finished, if they can be read: they can be made again."""
        try:
            return read_document(self.summary_path)
        except StorageError:
            return None

    def write_manifest(self) -> None:
        """Write the manifest as it now stands."""
        made_by = self._manifest.setdefault("made_by", _provenance())
        if self._revision is not None:
            made_by["git"] = self._revision.answer()
        self.write("manifest.json", sealed_document(self._manifest))

    def write(self, name: str, content: bytes) -> None:
        """Write a file of the directory atomically."""
        with Draft(self.path / name) as draft:
            draft.write(content)

    def _take_lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            self._lock = None
            if not isinstance(error, BlockingIOError):
                raise StorageError(
                    f"{str(self.path)!r} cannot be locked ({error.strerror}), so two runs could damage each other's "
                    "files. Choose an `output.output_dir` on a local disk, or mount this filesystem with locks."
                ) from error
            raise StorageError(
                f"Another run (process {holder}) is working in {str(self.path)!r}. "
                "Wait for it, or choose another `output.output_dir`."
            ) from error
        with contextlib.suppress(OSError):  # without room nobody learns who holds it
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)

    def _read_manifest(self) -> dict[str, Any]:
        return read_document(self.path / "manifest.json") or {}

    def is_worthless(self, which: str) -> bool:
        """Whether nothing here that a claim on `which` would hold for was paid for or judged."""
        if self.noted("judge_cost") or _any_line(self.results_path, _is_ok):
            return False
        if which == "results":
            return True
        with BatchJournal(self.batches_path, read_only=True) as batches:
            if batches.under_way:
                return False
        return not _holds_something(self.episodes_path) and not _any_line(self.rollouts_path, _is_from_model)

    def set_worthless_aside(self, which: str) -> list[Path]:
        """Move files aside that `is_worthless` speaks of, and release what they were bound to; where they are now."""
        digests = self._manifest.get("digests", {})
        tag = digests.get(which, {}).get("digest", "unbound")[:8]
        moved: list[Path] = []
        for path in (self.results_path,) if which == "results" else (self.rollouts_path, self.results_path):
            digests.pop(path.stem, None)
            self._manifest.get("holds", {}).pop(path.name, None)
            if path.exists() and path.stat().st_size:
                moved.append(path.rename(self._free_name(f"{path.stem}.{tag}")))
        return moved

    def _free_name(self, stem: str) -> Path:
        candidates = (self.path / f"{stem}{suffix}.jsonl" for suffix in ["", *(f".{i}" for i in range(2, 1000))])
        return next(path for path in candidates if not path.exists())


def set_run_aside(path: Path) -> Path | None:
    """Move a whole run directory out of the way: what was paid for is never deleted. Where it is now; None: no run."""
    if not any((path / name).exists() for name in ("manifest.json", ROLLOUTS, RESULTS)):
        return None
    kept = free_place(path)
    with RunDirectory(path):  # nobody is working in it
        path.rename(kept)
    return kept


def free_place(path: Path) -> Path:
    """A name beside a run directory that nothing has."""
    path = path.absolute()
    names = (path.with_name(f"{path.name}.{number}") for number in range(1, 10_000))
    return next(name for name in names if not name.exists())


def _holds_something(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _any_line(path: Path, matches: Callable[[dict[str, Any]], bool]) -> bool:
    """Whether a journal has a line like that. One that cannot be read may have."""
    if not path.exists():
        return False
    try:
        with Journal(path, read_only=True) as journal:
            return any(matches(exact_json.loads(line)) for line in journal.lines())
    except StorageError:
        return True


def _is_ok(line: Mapping[str, Any]) -> bool:
    return line.get("status") == "ok"


def _is_from_model(line: Mapping[str, Any]) -> bool:
    return bool(line.get("cost")) or (_is_ok(line) and line.get("model") is not None)


_LATER = ("reward.files", "reward.values", "reward.extras")
"""What manifests of older versions do not know of a reward. Where it is missing, it is no difference."""


def _is_same(known: Mapping[str, Any], claim: Claim) -> bool:
    """Whether a claim that was noted is this one, as far as the version that made it noted its settings."""
    return known["digest"] in (claim.digest, digest_of(_as_noted(known["settings"], claim.settings)))


def _as_noted(before: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name in before or not name.endswith(_LATER)}


def _refusal(path: Path, claim: Claim, before: Mapping[str, Any]) -> str:
    after, advice = claim.settings, claim.advice
    noted = _as_noted(before, after)
    files = changed_files(before, after)
    others = {name: value for name, value in noted.items() if not (files and name.endswith(_OF_FILES))}
    then = {name: value for name, value in before.items() if not (files and name.endswith(_OF_FILES))}
    changed = _changed(then, others)
    if files and changed == "unknown":
        return other_files(path, files, advice)
    told = ", ".join([*(f"{name!r} has changed" for name in files), changed])
    return f"{str(path)!r} holds {claim.which} made with other settings ({told}). {advice}"


_OF_FILES = ("reward.source", "reward.files")


def other_files(path: Path, files: Sequence[str], advice: str) -> str:
    """What is said where files are no longer what they were when results were made."""
    named = f"{', '.join(map(repr, files[:-1]))} and {files[-1]!r} have" if len(files) > 1 else f"{files[0]!r} has"
    return f"{named} changed since the results in {str(path)!r} were made. {advice}"


def changed_files(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The files of rewards that are others than they were. Of an older version, only the reward's own is known."""
    found: dict[str, None] = {}
    for name in (name for name in after if name.endswith("reward.files")):
        now, then = after[name], before.get(name)
        source = name.replace("reward.files", "reward.source")
        if then is None:
            found |= dict.fromkeys(list(now)[:1] if before.get(source) != after.get(source) else ())
        else:
            found |= dict.fromkeys(file for file in [*now, *then] if now.get(file) != then.get(file))
    return list(found)


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    said = (f"{name}: {_short(then)} then, {_short(now)} now" for name, then, now in _differences(before, after))
    return ", ".join(said) or "unknown"


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, object, object]]:
    """What is not the same, by name: inside a section that both have, only the keys that differ."""
    for name in sorted({*before, *after}):
        then, now = before.get(name), after.get(name)
        if isinstance(then, Mapping) and isinstance(now, Mapping):
            yield from ((f"{name}.{key}", old, new) for key, old, new in _differences(then, now))
        elif then != now:
            yield name, then, now


_NOT_KEPT = " holds a credential and is not kept: give it again."


def left_out_of(text: str) -> list[str]:
    """The settings that a run left out of the config that it wrote."""
    remarks = (line.removeprefix("# ") for line in text.splitlines() if line.endswith(_NOT_KEPT))
    return [remark.removesuffix(_NOT_KEPT) for remark in remarks]


def _short(value: object, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def _provenance() -> dict[str, Any]:
    return {
        "reward_kit": __version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "git": None,
        "created": now(),
    }
