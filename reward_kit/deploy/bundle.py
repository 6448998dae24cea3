# SPDX-License-Identifier: Apache-2.0
"""A reward as files that run elsewhere. The same source gives the same bytes.

    project/           the project's files that the reward imports, and those that were named with --include
    requirements.txt   reward-kit at this version, and what the reward requires
    constraints.txt    the versions of all that these lead to
    bundle.json        which rewards, with which params; each file with its digest

Caches, version control and files of credentials stay out. A file that would go in and seems to hold a credential stops
the deployment, by name.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit._version import __version__
from reward_kit.deploy.archive import digest_of
from reward_kit.deploy.bundle_layout import MANIFEST, PROJECT
from reward_kit.deploy.pinned import Pinned, canonical, pin, unmet
from reward_kit.deploy.suspicious import credential_in, is_credential_file, is_litter, is_written_by_us
from reward_kit.errors import DeployError
from reward_kit.redaction import secret_paths
from reward_kit.reward_call import RESOURCES, RewardCall, wants
from reward_kit.reward_names import reward_path
from reward_kit.scoring.extras import extras_of
from reward_kit.utils.project_files import project_of
from reward_kit.utils.project_imports import Imports, follow_imports, import_roots

__all__ = ["Bundle", "BundleSource", "LeftOut", "bundle_of", "make_bundle"]

_FORMAT = 1
_LARGEST = 200 << 20
"""Bytes of a project's files. What is larger is data, which belongs elsewhere."""


@dataclass(frozen=True)
class BundleSource:
    """What is to be bundled."""

    rewards: Mapping[str, str]
    """The rewards by the names they are served under, each a name or an import path, as everywhere."""
    project: Path
    """The folder that the rewards' modules are imported from."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Of the reward, where there is one only."""
    include: Sequence[str] = ()
    """Further files of the project: paths, folders or patterns, from the project's folder."""
    allow: Sequence[str] = ()
    """Files that may go in although they seem to hold a credential."""
    requirements: Sequence[str] = ()
    """Beside those that the reward declares."""


class LeftOut(NamedTuple):
    """A file that was named and does not go in."""

    path: str
    why: str


@dataclass(frozen=True)
class Bundle:
    """The files, and what there is to say of them."""

    files: Mapping[str, bytes]
    rewards: Mapping[str, str]
    """The rewards as they are called inside the bundle's project."""
    params: Mapping[str, Any]
    pinned: Pinned
    import_roots: tuple[str, ...]
    """The folders, from the bundle's root, that Python looks for modules in."""
    left_out: tuple[LeftOut, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The sha256 (hex) of all files."""
        return digest_of(self.files)


def make_bundle(source: BundleSource, *, extras: Sequence[str] = ()) -> Bundle:
    """The bundle of rewards; `extras` are those of reward-kit that they need where they will run, beside their own."""
    project = source.project.resolve()
    _check_params(source)
    with _no_bytecode():
        calls = [_load(reward, source.params) for reward in source.rewards.values()]
    found = [_find_files(reward_path(reward), project) for reward in source.rewards.values()]
    entries = [file for one in found for file in one.entries]
    wider = replace(source, requirements=_requirements(source, calls, found))
    used = {name for call in calls if not call.is_remote for name in extras_of(project_of(call.function))}
    bundle = bundle_of(entries, wider, roots=list(_own_roots(found)), extras=sorted({*extras, *used}))
    rewards = {name: one.reference for name, one in zip(source.rewards, found, strict=True)}
    named = replace(bundle, rewards=rewards, remarks=(*_wishes(calls), *bundle.remarks))
    return replace(named, files=_with_lists(named))


def bundle_of(
    entries: Sequence[Path], source: BundleSource, *, roots: Sequence[Path] = (), extras: Sequence[str] = ()
) -> Bundle:
    """The bundle of a program that begins in these files; `roots` are where its modules are looked for first."""
    project = source.project.resolve()
    imports = follow_imports(entries, import_roots(project, *roots))
    for file, problem in imports.unreadable.items():
        raise DeployError(f"{str(file)!r} is not Python that can be read: {problem}. Correct it.")
    included, left_out = _included(source, project)
    pinned = pin(source.requirements, extras=extras)
    _check_requirements(imports, pinned, project)
    files = {_name_in(path, project): path.read_bytes() for path in sorted({*imports.files, *included})}
    _check_contents(files, source.allow)
    bare = Bundle(
        files=files,
        rewards=source.rewards,
        params=dict(source.params),
        pinned=pinned,
        import_roots=_roots_used(imports, import_roots(project), project),
        left_out=left_out,
        remarks=tuple(_remarks(imports, included, pinned, project)),
    )
    return replace(bare, files=_with_lists(bare))


def _own_roots(found: Sequence[_Found]) -> Iterator[Path]:
    """The folders of rewards that are named by their files: their modules are looked for there first."""
    yield from (entry.parent for one in found if one.is_file for entry in one.entries)


def _roots_used(imports: Imports, roots: Sequence[Path], project: Path) -> tuple[str, ...]:
    used = {_name_in(root, project) for root in roots if any(root in file.parents for file in imports.files)}
    return tuple(sorted({PROJECT, *used}))


def _requirements(source: BundleSource, calls: Sequence[RewardCall], found: Sequence[_Found]) -> list[str]:
    declared = [getattr(call.func, "_reward_function_requirements", None) or () for call in calls]
    packages = [package for one in found for package in one.packages]
    return list(dict.fromkeys([*(line for lines in declared for line in lines), *source.requirements, *packages]))


@contextmanager
def _no_bytecode() -> Iterator[None]:
    """Import somebody's modules without leaving `__pycache__` in their project."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _load(reward: str, params: Mapping[str, Any]) -> RewardCall:
    """The reward, loaded here first: what does not work here will not work there."""
    try:
        call = RewardCall(reward, params)
    except ImportError as error:
        raise DeployError(str(error)) from error
    if missing := call.operators.intersection(call.unfilled(())).difference(RESOURCES):
        raise DeployError(
            f"The reward {call.name!r} needs {min(missing)!r}, which no caller may send. Give it among the params."
        )
    return call


# ── which files ──────────────────────────────────────────────────────────────────────────────────────────────────────


class _Found(NamedTuple):
    reference: str
    entries: Sequence[Path]
    packages: Sequence[str] = ()
    """The installed package that the reward is in, where it is in none of the project's files."""
    is_file: bool = False


def _find_files(path: str, project: Path) -> _Found:
    target, _, attribute = path.rpartition(":")
    if target.endswith(".py") or "/" in target:
        file = Path(target).expanduser().resolve()
        if project not in file.parents:
            raise DeployError(
                f"The reward's file {str(file)!r} is outside of the project {str(project)!r}. Run the command in the "
                "project's folder, or name it with --project."
            )
        return _Found(f"{file.relative_to(project).as_posix()}:{attribute}", [file], is_file=True)
    entries = _module_files(target or path, import_roots(project))
    return _Found(path, entries, () if entries else _package_of(path))


def _module_files(dotted: str, roots: Sequence[Path]) -> list[Path]:
    """The file of as much of the path as is a module of the project."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        for root in roots:
            place = root.joinpath(*parts[:length])
            for file in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
                if file.is_file():
                    return [file]
    return []


def _package_of(path: str) -> list[str]:
    """The requirement of the installed package that a reward comes from; none for our own library."""
    from importlib.metadata import packages_distributions, version

    top = path.partition(":")[0].partition(".")[0]
    if top == "reward_kit":
        return []
    owners = packages_distributions().get(top)
    if not owners:
        raise DeployError(
            f"{path!r} is in none of the project's files and in no installed package. Run the command in the "
            "project's folder, or name the file as 'file.py:reward'."
        )
    return [f"{canonical(owners[0])}=={version(owners[0])}"]


def _included(source: BundleSource, project: Path) -> tuple[set[Path], tuple[LeftOut, ...]]:
    taken: set[Path] = set()
    left: dict[str, str] = {}
    for shape in source.include:
        matches = _matches(shape, project)
        for path in matches:
            name = path.relative_to(project).as_posix()
            if is_litter(name):
                continue
            if is_credential_file(name) and name not in source.allow:
                left[name] = "a file of this name holds credentials"
            elif not path.resolve().is_relative_to(project):
                left[name] = "it leads out of the project"
            elif name != shape and is_written_by_us(path, project):
                left[name] = "a run, its cache or a report wrote it"
            else:
                taken.add(path)
        if [path.relative_to(project).as_posix() for path in matches] == [shape] and shape in left:
            raise DeployError(
                f"{shape!r} stays out of every deployment, because {left[shape]}. Put the values into a secret "
                "(`reward-kit secrets set`) and remove the file from --include."
            )
    return taken, tuple(LeftOut(name, why) for name, why in sorted(left.items()))


def _matches(shape: str, project: Path) -> list[Path]:
    place = Path(shape)
    if place.is_absolute() or ".." in place.parts:
        raise DeployError(f"--include {shape!r} leads out of the project. Name files below {str(project)!r}.")
    whole = project / place
    pattern = f"{shape.rstrip('/')}/**/*" if whole.is_dir() else shape
    found = sorted(path for path in project.glob(pattern) if path.is_file())
    if not found:
        raise DeployError(f"--include {shape!r} names no file of {str(project)!r}. Correct it, or remove the option.")
    return found


def _name_in(path: Path, project: Path) -> str:
    """Where a file of the project, or a folder, is in the bundle."""
    inside = path.relative_to(project).as_posix()
    return PROJECT if inside == "." else f"{PROJECT}/{inside}"


# ── what must hold ───────────────────────────────────────────────────────────────────────────────────────────────────


def _check_params(source: BundleSource) -> None:
    params = source.params
    if params and len(source.rewards) != 1:
        raise DeployError("Params belong to one reward, and several are deployed. Set them in the rewards' code.")
    if places := secret_paths({"params": dict(params)}):
        raise DeployError(
            f"{places[0].removeprefix('params.')!r} among the params seems to be a credential, and params are written "
            "into the bundle. Let the reward read it from an environment variable, and set that variable with "
            "--secret."
        )
    try:
        json.dumps(params)
    except TypeError as error:
        raise DeployError(f"The params cannot be written as JSON: {error}. Use plain values.") from None


def _check_requirements(imports: Imports, pinned: Pinned, project: Path) -> None:
    for one, package in unmet(imports.outside, pinned):
        if one.is_needed:
            raise DeployError(
                f"{one.file.relative_to(project).as_posix()!r} imports {one.module!r} in line {one.line}, which is "
                f"neither in the project nor required. Add it: @reward_function(requirements=[{package!r}]), or "
                f"--requirement {package}."
            )


def _check_contents(files: Mapping[str, bytes], allow: Sequence[str]) -> None:
    inside = {name.removeprefix(f"{PROJECT}/"): content for name, content in files.items()}
    if sum(map(len, inside.values())) > _LARGEST:
        raise DeployError(
            f"The project's files are larger than {_LARGEST >> 20} MB together. Remove data from --include, and let "
            "the reward fetch them when it starts."
        )
    for name, content in sorted(inside.items()):
        line = None if name in allow else credential_in(content)
        if line is not None or (is_credential_file(name) and name not in allow):
            where = f" in line {line}" if line is not None else ", by its name"
            raise DeployError(
                f"{name!r} seems to hold a credential{where}; nothing was deployed. Put it into a secret "
                f"(`reward-kit secrets set`) and give it with --secret, or, if it is none, add --allow-file {name}."
            )


def _wishes(calls: Sequence[RewardCall]) -> Iterator[str]:
    for call in calls:
        if needed := [name for name in RESOURCES if wants(call.func, name)]:
            yield f"{call.name!r} asks for {' and '.join(needed)}, which must be there where it will run."


def _remarks(imports: Imports, included: set[Path], pinned: Pinned, project: Path) -> Iterator[str]:
    if imports.reads_beside and not included:
        names = ", ".join(sorted(path.relative_to(project).as_posix() for path in imports.reads_beside))
        yield f"{names} may read files beside it. Name those with --include."
    for one, package in unmet(imports.outside, pinned):
        where = f"{one.file.relative_to(project).as_posix()}, line {one.line}"
        yield f"{where}, imports {one.module} when it needs it; add --requirement {package} if it will."


# ── the lists ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _with_lists(bundle: Bundle) -> dict[str, bytes]:
    whole = {
        **{name: content for name, content in bundle.files.items() if name != MANIFEST},
        "requirements.txt": _lines(bundle.pinned.requirements),
        "constraints.txt": _lines(bundle.pinned.constraints),
    }
    manifest = {
        "format": _FORMAT,
        "rewards": dict(bundle.rewards),
        "params": dict(bundle.params),
        "reward_kit": __version__,
        "import_roots": list(bundle.import_roots),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(whole.items())},
    }
    return {**whole, MANIFEST: json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"}


def _lines(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
