# SPDX-License-Identifier: Apache-2.0
"""A mirror is at every moment a run directory that some moment had, whatever fails and whoever is killed."""

from __future__ import annotations

import random
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import StorageError
from reward_kit.storage.mirror import copying
from reward_kit.storage.mirror.contents import Contents, contents_at, owner_at
from reward_kit.storage.mirror.copying import Copier
from reward_kit.storage.mirror.ownership import Claim, MirrorTakenError, claim, read_contents, read_owner
from reward_kit.storage.mirror.restoring import download, restore, take
from reward_kit.stores.reasons import StoreError
from reward_kit.stores.store import Store

JOURNALS = ("results.jsonl", "rollouts.jsonl", "episodes.jsonl")


class Breaking(Store):
    """A store that refuses, or ends the writer, at a chosen request: before it is done, or after."""

    def __init__(self, address: str) -> None:
        super().__init__(address, attempts=1)
        self.left = 1 << 30
        self.after = False

    def _ask(self, action: Any) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise StoreError("cut off", transient=True)
        done = super()._ask(action)
        if self.left == 0:
            raise StoreError("the answer was lost", transient=True)
        return done


@pytest.fixture
def mirror() -> str:
    return f"memory://{uuid.uuid4().hex}/run"


def held(mirror: str, place: Path) -> dict[str, bytes]:
    """What somebody who restores the mirror now would find."""
    store = Store(mirror)
    owner = read_owner(store, mirror)
    if owner is None:
        return {}
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    download(store, mirror, read_contents(store, mirror, owner), place)
    return {path.name: path.read_bytes() for path in place.iterdir()}


def here(directory: Path) -> dict[str, bytes]:
    names = ("results.jsonl", "rollouts.jsonl", "episodes.jsonl", "manifest.json", "config.yaml", "summary.json")
    return {name: (directory / name).read_bytes() for name in names if (directory / name).exists()}


class Life:
    """A run directory to which things happen, and every state that it had."""

    def __init__(self, directory: Path, dice: random.Random) -> None:
        self.directory, self.dice = directory, dice
        directory.mkdir(exist_ok=True)
        self.states: list[dict[str, bytes]] = [here(directory)]

    def happen(self) -> None:
        happening = self.dice.choice([self.append, self.append, self.append, self.rewrite, self.document, self.drop])
        happening()
        self.states.append(here(self.directory))

    def append(self) -> None:
        with (self.directory / self.dice.choice(JOURNALS)).open("ab") as file:
            for _ in range(self.dice.randint(1, 4)):
                file.write(self.dice.randbytes(self.dice.randint(1, 60)).hex().encode() + b"\n")

    def rewrite(self) -> None:
        """As `compact` does: another file takes the place of the journal."""
        path = self.directory / self.dice.choice(JOURNALS)
        if path.exists():
            lines = path.read_bytes().splitlines(keepends=True)
            self.dice.shuffle(lines)
            draft = path.with_name(f"{path.name}.compacting")
            draft.write_bytes(b"".join(lines[: self.dice.randint(0, len(lines))]))
            draft.replace(path)

    def document(self) -> None:
        name = self.dice.choice(["manifest.json", "config.yaml", "summary.json"])
        (self.directory / name).write_bytes(self.dice.randbytes(20).hex().encode())

    def drop(self) -> None:
        (self.directory / "episodes.jsonl").unlink(missing_ok=True)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_fails_the_mirror_holds_what_the_directory_once_held(
    seed: int, mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "PART_BYTES", 200)
    monkeypatch.setattr(copying, "TOGETHER", 3)
    dice = random.Random(seed)
    life = Life(tmp_path / "run", dice)
    store = Breaking(mirror)
    copier: Copier | None = None
    for _ in range(25):
        life.happen()
        store.left, store.after = dice.randint(1, 25), dice.random() < 0.5
        try:
            if copier is None or dice.random() < 0.2:  # the process was killed, and another one goes on
                copier = Copier(take(store, mirror, life.directory, 0.01), life.directory)
            copier.publish() if dice.random() < 0.2 else copier.copy_new()
        except StoreError:
            pass
        found = held(mirror, tmp_path / "restored")
        assert all(content in {state.get(name) for state in life.states} for name, content in found.items()), (
            "a mirrored file is one that there was, and none of it is missing"
        )
    store.left = 1 << 30
    copier = Copier(take(store, mirror, life.directory, 0.01), life.directory)
    copier.copy_new()
    assert held(mirror, tmp_path / "restored") == here(life.directory)
    copier.publish()
    found = held(mirror, tmp_path / "restored")
    assert found == {name: data for name, data in here(life.directory).items() if data}
    plain = Store(mirror)
    assert {name: plain.read_whole(f"{mirror}/{name}") for name in found} == found, "whole, under their own names"
    assert not [facts for folder in plain.inside(f"{mirror}/mirror/parts") for facts in plain.inside(folder.address)]


def test_half_a_line_is_not_mirrored_and_long_lines_are(mirror: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(copying, "PART_BYTES", 100)
    (tmp_path / "run").mkdir()
    journal = tmp_path / "run" / "rollouts.jsonl"
    whole = b"a" * 1000 + b"\n" + b"b\n"
    journal.write_bytes(whole + b"half")
    copier = Copier(take(Store(mirror), mirror, tmp_path / "run", 1), tmp_path / "run")
    copier.copy_new()
    assert held(mirror, tmp_path / "restored") == {"rollouts.jsonl": whole}


def test_many_small_parts_are_put_together(mirror: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    taken = take(Store(mirror), mirror, tmp_path / "run", 1)
    copier = Copier(taken, tmp_path / "run")
    for number in range(300):
        with (tmp_path / "run" / "rollouts.jsonl").open("a") as file:
            file.write(f"line {number}\n")
        copier.copy_new()
    assert len(taken.contents.files["rollouts.jsonl"].parts) <= 2 * copying.TOGETHER
    assert held(mirror, tmp_path / "restored") == here(tmp_path / "run")
    parts = f"{mirror}/mirror/parts/rollouts.jsonl"
    assert len(Store(mirror).inside(parts)) == len(taken.contents.files["rollouts.jsonl"].parts)


def test_only_files_of_a_run_are_copied(mirror: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for name in (".env", "id_rsa", "notes.txt", "rollouts.jsonl", "results.0123abcd.jsonl", "pairs.jsonl"):
        (tmp_path / "run" / name).write_text("content\n")
    taken = take(Store(mirror), mirror, tmp_path / "run", 1)
    Copier(taken, tmp_path / "run", also=["pairs.jsonl"]).publish()
    assert set(taken.contents.files) == {"rollouts.jsonl", "results.0123abcd.jsonl", "pairs.jsonl"}


# ── who writes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def filled(mirror: str, directory: Path, every: float = 0.05) -> Claim:
    directory.mkdir(exist_ok=True)
    (directory / "rollouts.jsonl").write_text("a line\n")
    taken = take(Store(mirror), mirror, directory, every)
    Copier(taken, directory).copy_new()
    return taken


def elsewhere(taken: Claim) -> None:
    """As if it had been taken on another machine, where nobody here can see whether its process lives."""
    taken.owner.machine = "another"
    taken.beat()


def test_a_mirror_whose_writer_is_alive_is_refused(mirror: str, tmp_path: Path) -> None:
    first = filled(mirror, tmp_path / "first", every=0.4)
    elsewhere(first)
    import threading

    stop = threading.Event()

    def alive() -> None:
        while not stop.wait(0.1):
            first.beat()

    thread = threading.Thread(target=alive)
    thread.start()
    try:
        with pytest.raises(MirrorTakenError, match=r"is writing to .*Wait until it has ended, or choose another"):
            restore(Store(mirror), mirror, tmp_path / "second", 1)
    finally:
        stop.set()
        thread.join()


def test_one_who_is_gone_is_succeeded_and_notices_when_he_comes_back(mirror: str, tmp_path: Path) -> None:
    first = filled(mirror, tmp_path / "first")
    elsewhere(first)
    second = restore(Store(mirror), mirror, tmp_path / "second", 1)
    assert second.owner.generation == first.owner.generation + 1
    assert (tmp_path / "second" / "rollouts.jsonl").read_text() == "a line\n"
    (tmp_path / "first" / "rollouts.jsonl").write_text("a line\nanother\n")
    Copier(first, tmp_path / "first").copy_new()  # too late: nobody reads that list any more
    with pytest.raises(MirrorTakenError, match="has taken over"):
        first.beat()
    assert held(mirror, tmp_path / "restored") == {"rollouts.jsonl": b"a line\n"}


def test_of_two_who_want_it_at_once_one_gets_it(mirror: str, tmp_path: Path) -> None:
    store = Store(mirror)
    store.write(
        contents_at(mirror, 1), Contents(1, "the other").written(), only_new=True
    )  # the other was quicker by a moment

    class Late(Store):
        def inside(self, folder: str) -> list[Any]:
            return []  # looked before the other wrote

    with pytest.raises(MirrorTakenError, match="has just taken"):
        claim(Late(mirror), mirror, tmp_path / "run", 1)
    assert claim(store, mirror, tmp_path / "run", 1).owner.generation == 2, "who ended before he said so is passed over"


def test_another_directory_does_not_overwrite_what_a_mirror_holds(mirror: str, tmp_path: Path) -> None:
    filled(mirror, tmp_path / "first").release()
    with pytest.raises(StorageError, match="holds a run that another directory has written last"):
        take(Store(mirror), mirror, tmp_path / "second", 1)
    take(Store(mirror), mirror, tmp_path / "first", 1)


# ── restoring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_directory_with_other_things_in_it_is_refused(mirror: str, tmp_path: Path) -> None:
    filled(mirror, tmp_path / "first").release()
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "thesis.tex").write_text("…")
    with pytest.raises(StorageError, match=r"is not empty \('thesis.tex' is there\).*Choose an empty"):
        restore(Store(mirror), mirror, tmp_path / "second", 1)
    assert read_owner(Store(mirror), mirror).released  # type: ignore[union-attr]


def test_restoring_that_was_cut_off_is_done_again(mirror: str, tmp_path: Path) -> None:
    filled(mirror, tmp_path / "first").release()
    for cut in range(1, 12):
        store = Breaking(mirror)
        store.left = cut
        with pytest.raises(StorageError):
            restore(store, mirror, tmp_path / f"cut-{cut}", 0.01)
            raise StorageError("it was not cut off any more")
        restore(Store(mirror), mirror, tmp_path / f"cut-{cut}", 0.01).release()
        assert here(tmp_path / f"cut-{cut}") == {"rollouts.jsonl": b"a line\n"}


def test_damage_is_noticed(mirror: str, tmp_path: Path) -> None:
    taken = filled(mirror, tmp_path / "first")
    taken.release()
    store = Store(mirror)
    part = taken.contents.files["rollouts.jsonl"].parts[0]
    store.write(f"{mirror}/{part.name}", b"A line\n")
    with pytest.raises(StorageError, match="is damaged: it is not what was written there"):
        restore(store, mirror, tmp_path / "second", 1)
    assert not (tmp_path / "second" / "rollouts.jsonl").exists()
    store.write(owner_at(mirror), b'{"format": 1}')
    with pytest.raises(StorageError, match="not what a mirror's writer wrote"):
        restore(store, mirror, tmp_path / "third", 1)


def test_a_mirror_that_is_not_there_cannot_be_resumed(mirror: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="There is no mirror at"):
        restore(Store(mirror), mirror, tmp_path / "run", 1)
