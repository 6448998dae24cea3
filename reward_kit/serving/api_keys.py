# SPDX-License-Identifier: Apache-2.0
"""API keys: several at a time, each with an id, read again when their source changes.

    # id        key, or sha256:HEX of it     options
    trainer-a   5f3c9f0e…                    rate=200 concurrency=64
    old         sha256:9b1d…                 expires=2026-12-01

A line with a single word is a key; its id is made of its digest. Only digests are kept, and what a caller sends is
compared by its digest with all of them, each in constant time: how long that takes says nothing about any key.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from reward_kit.errors import ConfigError
from reward_kit.redaction import remember
from reward_kit.serving.callers import Caller

__all__ = ["ApiKey", "ApiKeys", "FileOfKeys", "KeySource", "OneKey", "TextOfKeys", "parse_keys"]

_log = logging.getLogger(__name__)

_REREAD_SECONDS = 1.0
"""How often a source is asked whether its keys have changed."""
_SHORTEST = 16
"""Characters of a key; of shorter ones it is said that they can be guessed."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
_DIGEST = re.compile(r"sha256:([0-9a-fA-F]{64})")
_MOST_BYTES = 1 << 20


class ApiKey(NamedTuple):
    """One key, as it is kept."""

    caller: Caller
    digest: bytes
    """SHA-256 of the key."""
    expires: float | None = None
    """Seconds since 1970."""


class KeySource(Protocol):
    """Where keys come from. `changed` is asked every second or so, from the event loop, so it must be quick."""

    name: str
    """For messages."""

    def changed(self) -> bool:
        """Whether reading it again may give other keys."""
        ...

    def read(self) -> str:
        """The keys, a line each. What goes wrong is an `OSError`."""
        ...


class TextOfKeys:
    """Keys from an environment variable, which cannot change while the server runs."""

    def __init__(self, variable: str, environment: Mapping[str, str] | None = None) -> None:
        variables = os.environ if environment is None else environment
        self.name = variable
        self._text = variables.get(variable, "")
        if not self._text.strip():
            raise ConfigError(f"The variable {variable} holds no API key. Set it, or name another one.")

    def changed(self) -> bool:
        """Never."""
        return False

    def read(self) -> str:
        """What the variable held."""
        return self._text


class OneKey:
    """The inherited variable, which holds one key, whatever characters it has."""

    def __init__(self, variable: str, value: str) -> None:
        remember(value.strip())
        self.name = variable
        self._line = f"{variable} sha256:{hashlib.sha256(value.strip().encode()).hexdigest()}"

    def changed(self) -> bool:
        """Never."""
        return False

    def read(self) -> str:
        """The key as a line."""
        return self._line


class FileOfKeys:
    """Keys from a file, also one that a platform mounts and swaps."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        self._seen: tuple[int, int, int] | None = None

    def changed(self) -> bool:
        """Whether the file is another one, or was written to."""
        return self._state() != self._seen

    def read(self) -> str:
        """What the file holds."""
        self._seen = self._state()
        with self._path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ConfigError(f"{self.name!r} is larger than {_MOST_BYTES >> 20} MB. Keep only keys in it.")
        return data.decode(errors="surrogateescape")  # a line that is not UTF-8 is no key, and the others are

    def _state(self) -> tuple[int, int, int] | None:
        try:
            state = self._path.stat()
        except OSError:
            return None
        return state.st_ino, state.st_mtime_ns, state.st_size


class ApiKeys:
    """The keys of a server. Which of them a caller has is found by `caller_of`.

    A source that cannot be read, such as a file that is away for a moment, leaves the keys as they were. Of one that
    can be read, a key that is no longer there counts no longer, whatever the other lines say: those that are no keys
    are passed over, and the log names them.
    """

    def __init__(self, sources: Sequence[KeySource], clock: Callable[[], float] = time.time) -> None:
        """Read all sources; a `ConfigError` where that fails."""
        self._sources = list(sources)
        self._clock = clock
        self._by_source: list[list[ApiKey]] = []
        for source in self._sources:
            try:
                self._by_source.append(parse_keys(source.read(), source.name))
            except OSError as error:
                raise ConfigError(f"The API keys in {source.name!r} cannot be read: {error}. Correct this.") from error
        self._looked = time.monotonic()
        self._gather()

    @property
    def ids(self) -> list[str]:
        """Of all keys."""
        return [key.caller.id for key in self._keys]

    def _gather(self) -> None:
        self._keys = [key for keys in self._by_source for key in keys]

    def caller_of(self, presented: bytes) -> Caller | None:
        """Whose key this is; None where it is nobody's, or has expired."""
        self._look_again()
        digest = hashlib.sha256(presented).digest()
        found: ApiKey | None = None
        for key in self._keys:  # all of them, whichever it is
            if hmac.compare_digest(key.digest, digest):
                found = key
        if found is None or (found.expires is not None and found.expires <= self._clock()):
            return None
        return found.caller

    def _look_again(self) -> None:
        now = time.monotonic()
        if now - self._looked < _REREAD_SECONDS:
            return
        self._looked = now
        for number, source in enumerate(self._sources):
            if source.changed():
                self._read_again(number, source)

    def _read_again(self, number: int, source: KeySource) -> None:
        try:
            keys = parse_keys(source.read(), source.name, _pass_over)
        except OSError as error:
            _log.warning(
                "The API keys in %r stay as they were, for the new ones cannot be read: %s", source.name, error
            )
            return
        except ConfigError as error:
            _log.error("Nobody is let in by the API keys in %r any more: %s", source.name, error)
            keys = []
        self._by_source[number] = keys
        self._gather()
        _log.info(
            "The API keys in %r were read again: %s.", source.name, ", ".join(k.caller.id for k in keys) or "none"
        )


def _refuse(error: ConfigError) -> None:
    raise error


def _pass_over(error: ConfigError) -> None:
    _log.warning("%s Until then nobody is let in by it.", error)


def parse_keys(text: str, name: str, on_bad_line: Callable[[ConfigError], None] = _refuse) -> list[ApiKey]:
    """The keys in a text, a line each; `name` is where it comes from, for messages, which never quote a line."""
    keys: dict[str, ApiKey] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"Line {number} of {name!r}"
        try:
            key = _parse(line.split(), where)
            if key.caller.id in keys:
                raise ConfigError(f"{where} has the id {key.caller.id!r} again. Give each key an id of its own.")
            keys[key.caller.id] = key
        except ConfigError as error:
            on_bad_line(error)
    return [*keys.values()]


def _parse(words: list[str], where: str) -> ApiKey:
    named = len(words) > 1 and not _is_option(words[1])
    secret, options = (words[1], words[2:]) if named else (words[0], words[1:])
    if not secret.isprintable():
        raise ConfigError(f"{where} is not text. Write it as UTF-8.")
    if not named and len(secret) < _SHORTEST:
        raise ConfigError(
            f"{where} has one word, which is an id without a key, or a key of less than {_SHORTEST} characters, which "
            "can be guessed. Write an id, a blank, and the key."
        )
    digest = _digest_of(secret, where)
    identity = words[0] if named else f"key-{digest.hex()[:8]}"
    if not _ID.fullmatch(identity):
        raise ConfigError(f"{where} does not begin with an id. Use up to 64 letters, digits, '_', '-', '.' and '@'.")
    return _with_options(identity, digest, options, where)


_OPTIONS = frozenset({"expires", "rate", "concurrency"})


def _is_option(word: str) -> bool:
    """Whether a word is an option, and no key: those in base64 end with `=`."""
    name, equals, value = word.partition("=")
    return bool(equals) and name in _OPTIONS and value.strip("=") != ""


def _digest_of(secret: str, where: str) -> bytes:
    if match := _DIGEST.fullmatch(secret):
        return bytes.fromhex(match[1])
    remember(secret)
    if len(secret) < _SHORTEST:
        _log.warning(
            "%s holds a key of less than %d characters, which can be guessed. Use a longer one.", where, _SHORTEST
        )
    return hashlib.sha256(secret.encode()).digest()


def _with_options(identity: str, digest: bytes, options: Sequence[str], where: str) -> ApiKey:
    given = dict(option.partition("=")[::2] for option in options)
    expected = f"{where} has an option that cannot be read. Use expires=2026-12-01, rate=100 or concurrency=8."
    if given.keys() - _OPTIONS:
        raise ConfigError(expected)
    try:
        rate = float(given["rate"]) if "rate" in given else None
        concurrency = int(given["concurrency"]) if "concurrency" in given else None
        expires = _time(given["expires"]) if "expires" in given else None
    except ValueError:
        raise ConfigError(expected) from None
    if (rate is not None and not 0 < rate < float("inf")) or (concurrency is not None and concurrency < 1):
        raise ConfigError(expected)
    return ApiKey(Caller(identity, rate, concurrency), digest, expires)


def _time(text: str) -> float:
    """A day, or a time with or without a zone; without one, it is UTC."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
