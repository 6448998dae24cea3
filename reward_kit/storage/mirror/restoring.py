# SPDX-License-Identifier: Apache-2.0
"""A run directory made again from its mirror, every byte compared with its checksum."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from reward_kit.errors import StorageError
from reward_kit.storage.batch_journal import BATCH_FILES
from reward_kit.storage.files import Draft
from reward_kit.storage.mirror.contents import Contents, MirroredFile
from reward_kit.storage.mirror.ownership import NOTE, Claim, claim, read_contents, read_owner, remembered
from reward_kit.storage.run_directory import RunDirectory
from reward_kit.stores.addresses import under
from reward_kit.stores.reasons import StoreError
from reward_kit.stores.store import Store

__all__ = ["download", "restore", "take"]

_DRAFTS = ".restoring"
"""Where files are put together. As long as it is there, the directory is not restored yet."""
_PIECE = 8 << 20
_OTHER_PLACES = "Choose another `output.mirror`, or go on with what is there: with `resume_from_mirror`, in an empty "


def take(store: Store, mirror: str, directory: Path, every: float) -> Claim:
    """Take the mirror for a run that is begun, or goes on, in its own directory."""
    owner = read_owner(store, mirror)
    if owner is not None and owner.id not in remembered(directory, mirror):
        if read_contents(store, mirror, owner).files:
            raise StorageError(
                f"{mirror!r} holds a run that another directory has written last (on {owner.host}, process "
                f"{owner.pid}). {_OTHER_PLACES}`output.output_dir`."
            )
    elif (directory / _DRAFTS).exists():
        raise StorageError(
            f"{str(directory)!r} was not restored completely. Go on with `resume_from_mirror`, or choose another "
            "`output.output_dir`."
        )
    return claim(store, mirror, directory, every)


def restore(store: Store, mirror: str, directory: Path, every: float) -> Claim:
    """Take the mirror, and make its run directory here, unless it is here already."""
    owner = read_owner(store, mirror)
    if owner is None:
        raise StorageError(
            f"There is no mirror at {mirror!r}. Correct `output.mirror`, or begin without `resume_from_mirror`."
        )
    with RunDirectory(directory):  # nobody is working in it
        if owner.id in remembered(directory, mirror) and not (directory / _DRAFTS).exists():
            return claim(store, mirror, directory, every)
        _refuse_others(directory, mirror, read_contents(store, mirror, owner))
        drafts = directory / _DRAFTS
        shutil.rmtree(drafts, ignore_errors=True)
        drafts.mkdir()
        taken = claim(store, mirror, directory, every)
        download(store, mirror, taken.contents, drafts)
        for path in drafts.iterdir():
            if path.is_dir():  # an earlier attempt may have left it here
                shutil.rmtree(directory / path.name, ignore_errors=True)
            path.replace(directory / path.name)
        drafts.rmdir()
        return taken


def _refuse_others(directory: Path, mirror: str, contents: Contents) -> None:
    """Refuse to put a run where something else is. What an earlier attempt left is ours."""
    allowed = {".lock", NOTE, f"{NOTE}.writing", _DRAFTS}
    if (directory / _DRAFTS).exists():
        allowed |= {name.partition("/")[0] for name in contents.files}
    if others := sorted({path.name for path in directory.iterdir()} - allowed):
        raise StorageError(
            f"{str(directory)!r} is not empty ({others[0]!r} is there), and is not what {mirror!r} holds. Choose an "
            "empty `output.output_dir`, or go on without `resume_from_mirror`."
        )


def download(store: Store, mirror: str, contents: Contents, folder: Path) -> None:
    """Write every mirrored file into `folder`."""
    for name, file in contents.files.items():
        if Path(name).name != name.removeprefix(f"{BATCH_FILES}/"):
            raise StorageError(f"{mirror!r} names a file {name!r}, which is not a file of a run. Use another mirror.")
        try:
            _download(store, mirror, file, folder / name)
        except StoreError as error:
            raise StorageError(
                f"Cannot fetch {name!r} from {mirror!r}: {error}. Nothing was changed there; run the same command "
                "again."
            ) from error


def _download(store: Store, mirror: str, file: MirroredFile, target: Path) -> None:
    with Draft(target, make_folder=True) as copy:
        for part in file.parts:
            digest = hashlib.sha256()
            for start in range(0, part.end - part.start, _PIECE):
                data = store.read(under(mirror, part.name), start, min(start + _PIECE, part.end - part.start))
                digest.update(data)
                copy.write(data)
            if digest.hexdigest() != part.sha256:
                raise StorageError(
                    f"{under(mirror, part.name)!r} is damaged: it is not what was written there. Restore it from an "
                    "older version in the store, or start again with another `output.mirror`."
                )
    os.utime(target, ns=(file.modified_ns, file.modified_ns))
