# SPDX-License-Identifier: Apache-2.0
"""Objects by import path (`pkg.mod:obj`, `pkg.mod.obj`, `file.py:obj`), and digests of the source that defines them.

A path that does not load is an `ImportError` of one sentence: which path, what failed, what to do. Loading puts the
current directory, or the directory of the file, on `sys.path`: first while the module loads, last afterwards, so that
what it imports later is still found and nothing installed is shadowed.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import pkgutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from reward_kit.errors import ItemError, boundary, message_of
from reward_kit.utils.near_names import did_you_mean
from reward_kit.utils.source_digest import source_digest

__all__ = ["forget", "load_function", "load_object", "loading_within", "source_digest"]

_log = logging.getLogger(__name__)

_FROM_A_FILE = "_reward_kit_file_"
"""What the names of modules that were loaded from a path begin with."""
_loading = threading.RLock()
"""`sys.path` belongs to the whole process: one load at a time."""

_files: dict[Path, tuple[tuple[int, int], ModuleType]] = {}
"""Files loaded so far: resolved path → (size and modification time, module)."""


class _Raised(ItemError):
    """Somebody's module raised while it was imported; the cause is attached."""


class _TooSlow(BaseException):
    """Importing takes too long. No `Exception`, which somebody's module may catch and go on."""


_limit: float | None = 60.0
"""Seconds that a module may take to import; None inside of one that is being imported already."""


@contextmanager
def loading_within(seconds: float | None) -> Iterator[None]:
    """Let each module that is loaded inside take so many seconds to import."""
    global _limit  # noqa: PLW0603 - as `sys.path`, it belongs to the process: one load at a time
    with _loading:
        before, _limit = _limit, seconds
        try:
            yield
        finally:
            _limit = before


@contextmanager
def _in_time(name: str) -> Iterator[None]:
    """Raise `_TooSlow` inside when importing takes too long; again every second, should the module take no notice."""
    seconds = _limit
    if seconds is None:
        yield
        return
    began = time.monotonic()

    def late(*_: object) -> None:
        if time.monotonic() - began < seconds + 1:
            _log.warning("%s is still being imported after %.0f s, and is stopped.", name, seconds)

    is_main = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    with loading_within(None), (_alarms if is_main else _exceptions_from_outside)(seconds, late):
        yield


@contextmanager
def _alarms(seconds: float, late: Callable[[], None]) -> Iterator[None]:
    """In the main thread a signal does it, which ends a system call too. Somebody else's timer is put back."""

    def ring(_: int, frame: FrameType | None) -> None:
        late()
        raise _TooSlow(f"it is in line {frame.f_lineno} of {frame.f_code.co_filename!r}" if frame else "")

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, ring)
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left - (time.monotonic() - began)), interval)


@contextmanager
def _exceptions_from_outside(seconds: float, late: Callable[[], None]) -> Iterator[None]:
    """In another thread it is done between two steps of Python; a system call is waited for."""
    import ctypes  # here, because it is rarely needed and takes 2 ms

    thread, done = threading.get_ident(), threading.Event()

    def watch() -> None:
        patience = seconds
        while not done.wait(patience):
            late()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_TooSlow))
            patience = 1.0

    watcher = threading.Thread(target=watch, name="reward-kit import", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def load_object(path: str) -> Any:
    """The object that `path` names. A file is loaded once, and again only after it changed."""
    target, colon, attributes = path.rpartition(":")
    if colon and (not target or not attributes):
        raise ImportError(f"Cannot load {path!r}: write it as 'pkg.mod:obj', 'pkg.mod.obj' or 'file.py:obj'.")
    if _names_a_file(target if colon else path):
        if not colon:
            raise ImportError(f"Cannot load {path!r}: it names a file but nothing in it. Write {path + ':name'!r}.")
        return _walk(path, _load_file(path, target), attributes.split("."))
    if colon:
        return _walk(path, _import_module(path, target), attributes.split("."))
    return _load_dotted(path)


def load_function(path: str) -> Callable[..., Any]:
    """The callable that `path` names."""
    found = load_object(path)
    if not callable(found):
        raise ImportError(f"Cannot use {path!r} as a function: it is a {type(found).__name__}. Name a callable.")
    return found  # type: ignore[no-any-return]  # `callable` narrows Any to nothing more precise


def forget(files: Iterable[Path]) -> None:
    """Have the modules of these files imported anew when they are asked for again."""
    gone = {str(file) for file in files}
    with _loading:
        named = {name: module.__file__ for name, module in [*sys.modules.items()] if hasattr(module, "__file__")}
        for name in [name for name, file in named.items() if file in gone and name != "__main__"]:
            del sys.modules[name]
        for file in [file for file in _files if str(file) in gone]:
            del _files[file]


# ── modules ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _import_module(path: str, name: str) -> ModuleType:
    module = _import_if_there(path, name)
    if module is None:
        raise ImportError(
            f"Cannot load {path!r}: there is no module {name!r} here or among the installed packages. "
            "Check the spelling, run from the directory that holds it, or name its file as 'file.py:obj'."
        )
    return module


def _load_dotted(path: str) -> Any:
    """`pkg.mod.obj`: as much of the path as can be imported is the module, the rest are attributes."""
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module = _import_if_there(path, ".".join(parts[:length]))
        if module is not None:
            return _walk(path, module, parts[length:])
    if len(parts) == 1:
        raise ImportError(f"Cannot load {path!r}: it names no module. Write 'pkg.mod:{path}' or 'file.py:{path}'.")
    return _import_module(path, parts[0])


def _import_if_there(path: str, name: str) -> ModuleType | None:
    """Import `name`; None when no such module exists. A module that exists and raises is an `ImportError`."""
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    try:
        with _importable(Path.cwd()), boundary(_Raised, f"module {name!r}"), _in_time(f"Module {name!r}"):
            importlib.invalidate_caches()
            return importlib.import_module(name)
    except _Raised as failure:
        cause = failure.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and (name + ".").startswith(cause.name + "."):
            return None
        raise _does_not_import(path, failure) from cause


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _SourceLoader(SourceFileLoader):
    """Compiles the source each time: cached bytecode is keyed by whole seconds and may be stale after a quick edit."""

    def get_code(self, fullname: str) -> CodeType:
        """The module's code, compiled from its source now."""
        return self.source_to_code(self.get_data(self.path), self.path)


def _names_a_file(target: str) -> bool:
    return target.endswith(".py") or "/" in target or "\\" in target


def _load_file(path: str, name: str) -> ModuleType:
    file = Path(name).expanduser().resolve()
    if not file.is_file():
        hint = _near(file.name, _siblings(file))
        raise ImportError(f"Cannot load {path!r}: there is no file {name!r}{hint}. Correct the path.")
    status = file.stat()
    version = (status.st_size, status.st_mtime_ns)
    with _loading:
        known = _files.get(file)
        if known is not None and known[0] == version:
            return known[1]
        module = _execute(path, file)
        _files[file] = (version, module)
        return module


def _execute(path: str, file: Path) -> ModuleType:
    # The name depends on the file alone, so that what it defines can be pickled to another process that loads it too.
    name = f"{_FROM_A_FILE}{hashlib.sha256(str(file).encode()).hexdigest()[:12]}_{file.stem}"
    spec = spec_from_file_location(name, file, loader=_SourceLoader(name, str(file)))
    assert isinstance(spec, ModuleSpec) and spec.loader is not None  # a loader was given
    module = module_from_spec(spec)
    previous = sys.modules.get(name)
    sys.modules[name] = module
    try:
        with _importable(file.parent), boundary(_Raised, repr(str(file))), _in_time(f"The file {str(file)!r}"):
            importlib.invalidate_caches()
            spec.loader.exec_module(module)
    except BaseException as failure:
        _put_back(name, previous)
        if isinstance(failure, _Raised):
            raise _does_not_import(path, failure) from failure.__cause__
        raise
    return module


def _put_back(name: str, previous: ModuleType | None) -> None:
    """Leave no half-made module behind."""
    if previous is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = previous


def _siblings(file: Path) -> list[str]:
    return [entry.name for entry in file.parent.glob("*.py")] if file.parent.is_dir() else []


@contextmanager
def _importable(directory: Path) -> Iterator[None]:
    """Look for modules in `directory` first while inside, and last ever after."""
    entry = str(directory)
    with _loading:
        sys.path.insert(0, entry)
        try:
            yield
        finally:
            with suppress(ValueError):  # the module may have rearranged the path itself
                sys.path.remove(entry)
            if entry not in sys.path:
                sys.path.append(entry)


# ── attributes and messages ──────────────────────────────────────────────────────────────────────────────────────────


def _walk(path: str, module: ModuleType, attributes: list[str]) -> Any:
    found: Any = module
    for name in attributes:
        if not hasattr(found, name) and name in _submodules(found):
            _import_if_there(path, f"{found.__name__}.{name}")
        if not hasattr(found, name):
            owner = _called(found) if isinstance(found, ModuleType) else repr(found)
            hint = _near(name, [*dir(found), *_submodules(found)])
            raise ImportError(f"Cannot load {path!r}: {owner} has no attribute {name!r}{hint}. Correct the name.")
        found = getattr(found, name)
    return found


def _called(module: ModuleType) -> str:
    """A module by the name that a person gave it: one loaded from a path has no other than that of its file."""
    if module.__name__.startswith(_FROM_A_FILE):
        return f"the file {Path(str(module.__file__)).name!r}"
    return f"module {module.__name__!r}"


def _submodules(found: Any) -> list[str]:
    return [module.name for module in pkgutil.iter_modules(found.__path__)] if hasattr(found, "__path__") else []


def _near(name: str, names: Iterable[str]) -> str:
    return did_you_mean(name, names, cutoff=0.5)


def _does_not_import(path: str, failure: _Raised) -> ImportError:
    if isinstance(failure.__cause__, _TooSlow):
        return ImportError(
            f"Cannot load {path!r}: importing it does not end in time ({message_of(failure.__cause__)}). Move its work "
            "into a function, or raise `reward.timeout` if it needs longer."
        )
    return ImportError(f"Cannot load {path!r}: {failure}. Make it import cleanly, e.g. by running it with Python once.")
