# SPDX-License-Identifier: Apache-2.0
"""Keeping credentials out of everything that is written or shown. The one place that knows what may be one.

    known     a value that was given or used as a credential: `remember` it, and `blot` takes it out of any text
    named     a setting called token, api_key, password …: `without_secrets` leaves it out of what is written down
    shaped    text that looks like a key (`sk-…`, a JWT, a PEM block, `user:pass@`): `mask` takes it out of messages

Data (prompts, answers, verdicts) lose only what is *known*: guessing there would be a corruption in silence. Settings,
messages and logs lose what is named or shaped as well.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from string import ascii_letters, digits
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlencode, urlsplit, urlunsplit

__all__ = [
    "MASK",
    "NOT_A_VARIABLE",
    "blot",
    "blot_bytes",
    "forget_all",
    "is_clean",
    "is_secret_name",
    "is_variable_name",
    "looks_secret",
    "mask",
    "mask_words",
    "remember",
    "remember_arguments",
    "remember_environment",
    "remember_settings",
    "secret_paths",
    "url_holds_login",
    "without_secrets",
]

MASK = "***"
"""What stands where a credential was."""

# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_ALWAYS = frozenset(
    """
    apikey apikeys apitoken authorization authtoken bearer cookie cookies credential credentials creds dsn jwt
    passcode passphrase passwd password passwords pwd secret secrets secretkey accesskey accesstoken privatekey
    sessionid userpass
    """.split()  # noqa: SIM905 - one word per line would be a page
)
"""A name with one of these words in it holds a credential."""
_PAIRS = frozenset(
    {
        ("api", "key"), ("api", "keys"), ("access", "key"), ("private", "key"), ("secret", "key"), ("signing", "key"),
        ("auth", "key"), ("account", "key"), ("encryption", "key"), ("connection", "string"), ("shared", "key"),
        ("ssh", "key"), ("service", "account"), ("client", "key"), ("subscription", "key"), ("auth", "header"),
    }
)  # fmt: skip
_OF_TEXT = frozenset(
    """
    stop eos bos pad unk sep cls mask special image end start think first last next new max min num begin eot eom
    delimiter separator per prompt completion answer input output total reasoning cached generated
    """.split()  # noqa: SIM905 - one word per line would be a page
)
"""`stop_token` and its like are tokens of a text."""
_OF_DATA = frozenset(
    """
    answer truth column sort json prompt response primary foreign cache dict field message messages input output
    target label question query text group id row result score metric map lookup index name data dataset item order
    partition feature value config reference solution choice choices option tool split
    """.split()  # noqa: SIM905 - one word per line would be a page
)
"""`answer_key` and its like name a column or a place in data."""
_ONLY_WHERE = frozenset(
    {"env", "envs", "envvar", "variable", "var", "file", "files", "path", "name", "column", "field", "url_env"}
)
"""A name that ends so says where a credential is, such as `api_key_env`."""
_HEADERS = re.compile(r"(?:^|[_-])headers?$", re.IGNORECASE)
_HARMLESS_HEADERS = frozenset(
    {"accept", "accept-encoding", "accept-language", "cache-control", "content-type", "user-agent", "x-title"}
)
_STORAGE_OPTIONS = "storage_options"
_HARMLESS_OPTIONS = frozenset(
    {"anon", "endpoint", "endpoint_url", "profile", "project", "region_name", "use_ssl", "requester_pays",
     "version_aware", "client_kwargs", "config_kwargs", "default_block_size", "default_location"}
)  # fmt: skip
"""Of what an object store is told, the settings that may be written down; any other may be a credential."""
_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a credential, in any case and with any marks between its words."""
    words = [word.lower() for word in _WORDS.findall(name.rpartition(".")[2] if "." in name else name)]
    if not words or words[-1] in _ONLY_WHERE:
        return False
    if "".join(words) in _ALWAYS or not _ALWAYS.isdisjoint(words):
        return True
    if any(pair in _PAIRS for pair in pairwise(words)):
        return True
    before = words[-2] if len(words) > 1 else ""
    if words[-1] == "token" or (words[-1] == "tokens" and before in {"access", "auth", "api", "bearer", "refresh"}):
        return before not in _OF_TEXT
    return words[-1] in {"key", "auth", "pat"} and before not in _OF_DATA and (words[-1] != "auth" or before != "no")


_KEY_FILES = frozenset({("tls", "key"), ("ssl", "key")})
"""A setting whose name ends so (`--tls-key`, `tls.key`) takes the path of a file with a key."""


def _takes_a_path(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    return tuple(words[-2:]) in _KEY_FILES


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_KEY_SHAPES = re.compile(
    r"""
    -----BEGIN\ [A-Z0-9 ]*PRIVATE\ KEY-----[\s\S]*?(?:-----END\ [A-Z0-9 ]*PRIVATE\ KEY-----|\Z)
    | (?<![A-Za-z0-9_-]) (?:
        (?:sk|pk|rk)[-_](?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{12,}   # OpenAI, Anthropic, Stripe and many that follow them
      | (?:fw|hf|gsk)_(?:[A-Za-z0-9]{12,}|(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{8,})   # `hf_transfer` is none
      | (?:csk|xai|pplx|nvapi|pypi)-(?=[a-z_-]*[A-Z0-9])[A-Za-z0-9_-]{12,}
      | r8_[A-Za-z0-9]{12,} | tgp_v1_[A-Za-z0-9_-]{8,} | e2b_[a-f0-9]{12,}
      | gh[oprsu]_[A-Za-z0-9]{12,} | github_pat_[A-Za-z0-9_]{12,} | glpat-[A-Za-z0-9_-]{12,} | npm_[A-Za-z0-9]{20,}
      | (?:AKIA|ASIA)[A-Z0-9]{12,} | AIza[A-Za-z0-9_-]{20,} | ya29\.[A-Za-z0-9_-]{12,} | xox[abeoprs]-[A-Za-z0-9-]{8,}
      | dop_v1_[a-f0-9]{12,} | SG\.[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,}
      | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?
    )
    """,
    re.VERBOSE,
)
_LOGIN = re.compile(
    r"(?P<scheme>(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}:)?//(?P<login>[^/?#\s'\"<>]{0,1000})@", re.ASCII
)
_BEARER = re.compile(r"\b(Bearer|Basic|Token)(\s+)(?!\*\*\*)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_ASSIGNED = re.compile(
    r"(?<![A-Za-z0-9_.-])-{0,2}(?P<name>[A-Za-z][A-Za-z0-9_.-]{0,80})['\"]?\s{0,3}(?P<equals>[=:])\s{0,3}"
)
_VALUE = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|(?!//)[^\s,&;?'\"{}\[\]()]+")
_RANDOM = re.compile(r"[A-Za-z0-9+/=]{24,}")
_CHANGES = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
_CHANGES_IN_TEN = 3
"""Of ten characters drawn at random so many are followed by one of another kind; of `CamelCaseWords` fewer."""


def looks_secret(text: str) -> bool:
    """Whether the text holds what has the shape of a credential: a known prefix, a login in a URL, a PEM block."""
    return bool(_KEY_SHAPES.search(text) or _BEARER.search(text)) or url_holds_login(text) or _query_secrets(text) != []


def _is_random(text: str) -> bool:
    """Whether a whole value looks drawn at random, as keys are. A hash in hex has one case only and is none."""
    kinds = (str.islower, str.isupper, str.isdigit)
    if not _RANDOM.fullmatch(text) or not all(any(map(kind, text)) for kind in kinds):
        return False
    return 10 * len(_CHANGES.findall(text)) >= _CHANGES_IN_TEN * len(text)


_PATH = re.compile(r"(?:[^\s/\\]*[/\\])+[^\s/\\]+|[^\s/\\]+\.[A-Za-z0-9]{1,8}")
"""Names of folders, or a file name with a suffix."""


def _is_path(text: str) -> bool:
    """Whether a value is a path, and no key that was put in its place by mistake."""
    if not _PATH.fullmatch(text) or looks_secret(text):
        return False
    return not any(map(_is_random, (text, *re.split(r"[/\\.]", text))))


def _is_place(name: str, value: str) -> bool:
    """Whether a value under the name of a credential only says in which file it is."""
    return _takes_a_path(name) and _is_path(value)


NOT_A_VARIABLE = (
    "api_key_env is not the name of an environment variable. It is not shown, as it may be a key. "
    "Put the key into a variable, and its name, such as MY_API_KEY, into api_key_env."
)


def is_variable_name(name: str) -> bool:
    """Whether `name` may be an environment variable's, and not a key that was put in its place by mistake."""
    if not name.isascii() or not name.isidentifier() or looks_secret(name):
        return False
    return name in os.environ or (name.isupper() and len(name) <= _LONGEST_VARIABLE and not _is_code(name))


_LONGEST_VARIABLE = 64
_FEW_DIGITS = 6


def _is_code(name: str) -> bool:
    return sum(map(str.isdigit, name)) > _FEW_DIGITS


def url_holds_login(text: str) -> bool:
    """Whether a URL in the text names a user or a password (`https://user:pass@host`)."""
    return any(match["login"] not in ("", MASK) for match in _LOGIN.finditer(text))


def _query_secrets(text: str) -> list[str]:
    """The values of a URL's query, or fragment, that are credentials by their name."""
    if "://" not in text or not ("?" in text or "#" in text):
        return []
    try:
        parts = urlsplit(text)
        pairs = [*parse_qsl(parts.query), *parse_qsl(parts.fragment)]
    except ValueError:  # not an address; what reads it as one says so
        pairs = [(name, value) for name, _, value in (part.partition("=") for part in re.split(r"[?&#]", text)[1:])]
    return [value for name, value in pairs if value and value != MASK and (is_secret_name(name) or _signs(name))]


def _signs(name: str) -> bool:
    return name.lower() in _SIGNATURES


_SIGNATURES = frozenset("sig signature x-amz-signature x-goog-signature x-amz-credential code sas".split())  # noqa: SIM905
"""Parameters of a URL that let whoever has it in."""


# ── values that are known ────────────────────────────────────────────────────────────────────────────────────────────

_SHORTEST = 4
_SHORTEST_IN_DATA = 8
_SHORTEST_WORD_IN_DATA = 12
_PLACEHOLDERS = frozenset(
    """
    empty none null dummy test token key local mock placeholder changeme secret password example xxxx true false
    no-key not-needed unused anything your-key your_key your-api-key bearer basic user admin root
    """.split()  # noqa: SIM905 - one word per line would be a page
)
"""What people put where a key is asked for and none is needed: no credential, and a word of many answers."""


class _Known:
    """The values that are credentials in this process, in every spelling that may come up."""

    def __init__(self) -> None:
        self.values: set[str] = set()
        self.texts: tuple[str, ...] = ()
        """To take out of messages and settings; the longest first."""
        self.in_data: set[str] = set()
        """Those of the values to take out of data, too: no answer holds them by chance."""
        self.data: tuple[bytes, ...] = ()
        """Their spellings; the longest first."""
        self.plain: tuple[bytes, ...] = ()
        """Those of the spellings that are not base64 or hex."""
        self.run = b""
        """So many characters as the shortest of the others has."""

    def add(self, value: str, *, used: bool) -> None:
        wanted = used and _is_unlikely_by_chance(value)
        if value in self.values and (not wanted or value in self.in_data):
            return
        self.values.add(value)
        self.texts = tuple(sorted({*self.texts, *_spellings(value), *_encodings(value)}, key=len, reverse=True))
        if wanted:
            self.in_data.add(value)
            plain, encoded = _as_bytes(_spellings(value)), _as_bytes(_encodings(value))
            self.plain += tuple(plain)
            self.data = tuple(sorted({*self.data, *plain, *encoded}, key=len, reverse=True))
            self.run = min(self.run or _RUN * 10_000, *(_RUN * len(text) for text in encoded))

    def may_be_in(self, data: bytes) -> bool:
        """Whether one of them may be in the data: surely so where it is, and seldom where it is not.

        Base64 and hex are looked for only where something stands without a break for long enough.
        """
        for spelled in self.plain:
            if spelled in data:
                return True
        return bool(self.run) and self.run in data.translate(_RUNS)


_RUN = b"x"
_RUNS = bytes(_RUN[0] if chr(code) in f"{ascii_letters}{digits}+/-_" else 32 for code in range(256))
"""Turns every character of base64 and hex into the same one, and all others into a blank."""


def _as_bytes(texts: Iterable[str]) -> set[bytes]:
    return {text.encode(errors="surrogatepass") for text in texts}


_known = _Known()


def remember(value: str | None, *, used: bool = True) -> None:
    """Take note of a credential: from now on it is blotted out of all that is written or shown.

    With `used` (it was given to this process to be used) also out of data, unless it is a word that may be there by
    chance.
    """
    if value is None:
        return
    value = value.strip()
    if len(value) >= _SHORTEST and value.lower() not in _PLACEHOLDERS and not value.startswith(("${", MASK)):
        _known.add(value, used=used)


def forget_all() -> None:
    """Forget every credential; for tests, which are many runs in one process."""
    global _known  # noqa: PLW0603 - one table a process is the point
    _known = _Known()


def _is_unlikely_by_chance(value: str) -> bool:
    return len(value) >= (_SHORTEST_WORD_IN_DATA if value.isalpha() else _SHORTEST_IN_DATA)


def _spellings(value: str) -> set[str]:
    """The value as it is, and as it stands in URLs, JSON and Python's repr."""
    in_json = json.dumps(value)[1:-1]
    return {
        value, quote(value, safe=""), quote(value), quote_plus(value), repr(value)[1:-1],
        in_json, in_json.replace("/", "\\/"), json.dumps(value, ensure_ascii=False)[1:-1],
    }  # fmt: skip


def _encodings(value: str) -> set[str]:
    """The value in hex and in base64; of a short one none, for they may be there by chance."""
    raw = value.encode(errors="surrogatepass")
    if len(raw) < _SHORTEST_IN_DATA:
        return set()
    return {raw.hex(), raw.hex().upper(), *(core for shift in range(3) for core in _base64_cores(raw, shift))}


def _base64_cores(raw: bytes, shift: int) -> Iterable[str]:
    """What is in the base64 of any text that holds `raw`, where it begins `shift` bytes into a group of three."""
    encoded = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
    start = (0, 2, 3)[shift]
    whole = (len(raw) + shift) % 3 == 0
    core = encoded[start:] if whole else encoded[start:-1]
    return {core, core.replace("+", "-").replace("/", "_")}


def remember_environment(variables: Mapping[str, str] | None = None) -> None:
    """Take note of what the environment holds under the name of a credential, and of the logins in its URLs."""
    for name, value in (os.environ if variables is None else variables).items():
        if is_secret_name(name) and len(value) >= _SHORTEST_IN_DATA and not value.startswith(("/", "~", ".")):
            remember(value, used=False)  # PWD and SSH_KEY name places
        _remember_in_text(value, used=False)


def remember_settings(settings: Any) -> None:
    """Take note of every credential in plain settings, so that no message about them shows one."""
    for found in _secrets_in(settings):
        for value in found.values:
            remember(value)


def remember_arguments(arguments: Iterable[str]) -> None:
    """Take note of what a command line holds: `--api-key X`, `generation.api_key=X`, a login in a URL."""
    named = ""
    for argument in arguments:
        if named and not argument.startswith("--") and not _is_place(named, argument):
            remember(argument)
        flag, equals, value = argument.lstrip("+-~").partition("=")
        named = flag if argument.startswith("-") and not equals and is_secret_name(flag) else ""
        if equals and is_secret_name(flag.rpartition(".")[2] or flag):
            for part in _override_values(value):
                if not _is_place(flag, part):
                    remember(part)
        for assigned in _assignments(value if equals else argument):
            remember(assigned.value)
        _remember_in_text(argument, used=True)


def _override_values(value: str) -> list[str]:
    """What a sweep or a quoted override names: `a,b`, `'a'`, `choice(a,b)`."""
    inner = re.sub(r"^(?:choice|shuffle|sort)\((.*)\)$", r"\1", value, flags=re.DOTALL)
    parts = [part.strip().strip("'\"") for part in inner.split(",")]
    return [value.strip().strip("'\""), *parts]


def _remember_in_text(text: str, *, used: bool) -> None:
    for value in _shaped_values(text):
        remember(value, used=used)


def _shaped_values(text: str) -> list[str]:
    """The credentials in a text, by their shape."""
    found = [match[0] for match in _KEY_SHAPES.finditer(text)]
    found += [match[0].split(None, 1)[1] for match in _BEARER.finditer(text)]
    found += _query_secrets(text)
    for match in _LOGIN.finditer(text):
        user, colon, password = match["login"].partition(":")
        found += [match["login"], unquote(password), password] if colon else [user]
    return [value for value in found if value and value != MASK]


# ── taking them out ──────────────────────────────────────────────────────────────────────────────────────────────────


def blot(text: str) -> str:
    """The text without the credentials that are known."""
    for spelled in _known.texts:
        if spelled in text:
            text = text.replace(spelled, MASK)
    return text


def is_clean(data: bytes) -> bool:
    """Whether `blot_bytes` would leave the data as they are; False also where that is not known at a glance."""
    return not _known.data or not _known.may_be_in(data)


def blot_bytes(data: bytes) -> bytes:
    """Data without the credentials that are known. Costs next to nothing where there are none in it."""
    if is_clean(data):
        return data
    for spelled in _known.data:
        if spelled in data:
            data = data.replace(spelled, MASK.encode())
    return data


def mask(text: str) -> str:
    """A message without what is known to be a credential, or is one by its name or its shape."""
    text = blot(text)
    text = _KEY_SHAPES.sub(MASK, text)
    text = _LOGIN.sub(lambda match: f"{match['scheme'] or ''}//{MASK}@" if match["login"] else match[0], text)
    text = _BEARER.sub(rf"\1\2{MASK}", text)
    found = [one for one in _assignments(text) if not (one.may_be_prose or _is_harmless(one.value))]
    return _without(text, found, MASK)


class _Assigned(NamedTuple):
    """A value in a text that stands behind the name of a credential, as in `token=x` or `"token": "x"`."""

    start: int
    end: int
    value: str
    may_be_prose: bool


def _assignments(text: str) -> Iterator[_Assigned]:
    end = 0
    for match in _ASSIGNED.finditer(text):
        if match.start() < end or not is_secret_name(match["name"]):
            continue
        if value := _VALUE.match(text, match.end()):
            end = value.end()
            if _is_place(match["name"], value[0].strip("'\"")):
                continue
            bare = match["equals"] == ":" or match["name"].lower() == "key"  # "unexpected token: end", "KEY=VALUE"
            yield _Assigned(value.start(), value.end(), value[0].strip("'\""), bare and value[0].isalpha())


def _is_harmless(value: str) -> bool:
    known = value.lower() in _PLACEHOLDERS or value.isdigit() or value.startswith(("${", "…", MASK))
    return known or len(value) < _SHORTEST


def _without(text: str, found: Iterable[_Assigned], instead: str) -> str:
    pieces, end = [], 0
    for one in found:
        pieces += [text[end : one.start], instead]
        end = one.end
    return "".join([*pieces, text[end:]])


def mask_words(words: Iterable[str]) -> list[str]:
    """The words of a command line, such as may be shown again: also without what follows `--api-key`."""
    masked: list[str] = []
    named = ""
    for word in words:
        hidden = named and not _is_place(named, word)
        masked.append("…" if hidden else mask(_without(word, _assignments(word), "…")))
        flag = word.lstrip("-") if word.startswith("-") and "=" not in word else ""
        named = flag if is_secret_name(flag) else ""
    return masked


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Found(NamedTuple):
    """A setting that holds a credential."""

    path: str
    values: list[str]


def without_secrets(settings: Any) -> Any:
    """Plain settings without those that hold a credential, by name or by shape: what may be written down.

    A setting is left out whole, so that nobody takes what is left of it for a value. Of our own addresses only the
    credential in the query is left out.
    """
    return _kept(settings, _Place())


def secret_paths(settings: Any) -> list[str]:
    """Where `without_secrets` leaves something out, such as `reward.params.token`."""
    return [found.path for found in _secrets_in(settings)]


_GONE: Any = object()
_FREE = frozenset({"params", "extra_body", "data_files"})
"""Settings whose structure is not ours: what looks drawn at random in them is taken for a key."""
_PROSE = frozenset({"system_prompt", "prompt_template", "responses", "response", "pattern", "stop", "notes"})
"""Settings that are text for a model or a person, and are kept as they are: what they show is no setting."""


class _Place(NamedTuple):
    """Where in the settings a value stands."""

    secret: bool = False
    """Under the name of a credential."""
    free: bool = False
    """Where the structure is not ours."""
    prose: bool = False
    name: str = ""
    """Of the setting, or of the section."""
    path: bool = False
    """The name of a credential, which takes the path of its file."""

    def under(self, name: object, held: object) -> _Place:
        text = str(name)
        free = self.free or text in _FREE
        path = not self.secret and _takes_a_path(f"{self.name} {text}")
        return _Place(_holds(text, held, secret=self.secret), free, not free and text in _PROSE, text, path)


def _kept(value: Any, place: _Place) -> Any:
    if isinstance(value, Mapping):
        kept = {name: _kept(held, place.under(name, held)) for name, held in value.items()}
        return {name: held for name, held in kept.items() if held is not _GONE}
    if isinstance(value, list | tuple):
        items = [_kept(item, place) for item in value]
        return _GONE if any(item is _GONE for item in items) else items
    if not _is_secret_value(value, place):
        return value
    if place.secret or place.free or not isinstance(value, str):
        return _GONE
    return _without_secret_query(value)


def _without_secret_query(address: str) -> Any:
    """An address of ours without the credentials in its query, so that it still says whom to ask."""
    try:
        parts = urlsplit(address)
        kept = [(name, value) for name, value in parse_qsl(parts.query) if not (is_secret_name(name) or _signs(name))]
        shown = urlunsplit(parts._replace(query=urlencode(kept), fragment=""))
    except ValueError:
        return _GONE
    return shown if parts.scheme and not looks_secret(shown) else _GONE


def _secrets_in(value: Any, place: _Place = _Place(), path: str = "") -> Iterator[_Found]:  # noqa: B008 - a tuple
    if isinstance(value, Mapping):
        for name, held in value.items():
            yield from _secrets_in(held, place.under(name, held), f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets_in(item, place, path)
    elif _is_secret_value(value, place):
        text = _plain(value)
        whole = place.secret or (place.free and _is_random(text))
        yield _Found(path, [text] if whole else _shaped_values(text))


def _holds(name: str, held: object, *, secret: bool) -> bool:
    """Whether what stands under `name` is a credential: by its name, that of a part above it, or as a header."""
    if secret:
        return name.lower() not in _HARMLESS_HEADERS | _HARMLESS_OPTIONS
    return (
        name == _STORAGE_OPTIONS
        or is_secret_name(name)
        or (bool(_HEADERS.search(name)) and isinstance(held, Mapping | list))
    )


def _plain(value: Any) -> str:
    reveal = getattr(value, "get_secret_value", None)  # pydantic's SecretStr, without importing pydantic
    return str(reveal() if reveal is not None else value)


_LEAST_SECRET_NUMBER = 10_000


def _is_secret_value(value: Any, place: _Place) -> bool:
    if value is None or isinstance(value, bool | float) or place.prose:
        return False
    if isinstance(value, int):
        return place.secret and abs(value) >= _LEAST_SECRET_NUMBER
    text = _plain(value)
    if place.secret and not (place.path and _is_path(text)):
        return bool(text.strip()) and not text.startswith("${")
    return (
        looks_secret(text)
        or (place.free and _is_random(text))
        or (len(text) >= _SHORTEST_IN_DATA and blot(text) != text)
    )
