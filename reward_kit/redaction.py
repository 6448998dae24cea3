# SPDX-License-Identifier: Apache-2.0
"""Keeping credentials out of everything that is written or shown. The one place that knows what may be one.

    settings   what is a credential by its name, its shape or the flag before it is left out whole: `without_secrets`
    messages   lose what is known to be one (`remember`), and what is one by its name or its shape: `mask`
    reasons    of verdicts lose what is known and can only be a key: `blot_keys`
    data       are never edited. What holds a credential that was `sent` is told by `echoes`, and is a failed item

Data are prompts, answers, tool results, scores and facts: in them the name of a setting says nothing, and a word that
somebody calls a token is a word.
"""

from __future__ import annotations

import base64
import contextlib
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
    "blot_keys",
    "echoes",
    "forget_all",
    "is_secret_name",
    "is_variable_name",
    "looks_drawn",
    "looks_secret",
    "mask",
    "mask_words",
    "masked_paths",
    "remember",
    "remember_arguments",
    "remember_environment",
    "remember_settings",
    "secret_paths",
    "secret_values",
    "sent",
    "url_holds_login",
    "without_secrets",
]

MASK = "***"
"""What stands where a credential was."""

# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_ALWAYS = frozenset(
    """
    apikey apikeys apitoken authorization authtoken bearer cookie cookies credential credentials creds dsn
    jsessionid jwt passcode passkey passphrase passwd password passwords passwrd phpsessid psw pswd pwd secret
    secrets secretkey accesskey accesstoken privatekey sessionid userpass contrasena contraseña kennwort passwort
    senha пароль 密码 密碼 パスワード 비밀번호
    """.split()  # noqa: SIM905 - one word per line would be a page
)
"""A name with one of these words in it holds a credential."""
_GLUED = re.compile(
    r"(?:password|passwd|passphrase)$|(?:api|secret|access|account|app|deploy|licen[cs]e|master|signing)key$"
    r"|^(?:api|app|client|consumer|shared)secret$|^(?:bot|csrf|gh|git|hf|id|oauth|refresh|web)token$"
    r"|^(?:admin|db|ftp|http|imap|key|ldap|mail|mongo|my|mysql|pg|proxy|redis|root|smtp|sql|ssh|store|sudo)pass$"
)
"""Words that are written as one, as in `PGPASSWORD`."""
_PAIRS = frozenset(
    {
        ("api", "key"), ("api", "keys"), ("access", "key"), ("private", "key"), ("secret", "key"), ("signing", "key"),
        ("auth", "key"), ("account", "key"), ("encryption", "key"), ("connection", "string"), ("shared", "key"),
        ("ssh", "key"), ("service", "account"), ("client", "key"), ("subscription", "key"), ("auth", "header"),
        ("access", "code"), ("auth", "code"), ("mfa", "code"), ("pin", "code"), ("unlock", "code"), ("de", "passe"),
        ("master", "key"), ("hmac", "key"), ("consumer", "key"), ("deploy", "key"), ("functions", "key"),
        ("access", "id"), ("seed", "phrase"), ("recovery", "phrase"), ("recovery", "code"), ("recovery", "codes"),
        ("backup", "codes"), ("wpa", "psk"), ("wifi", "psk"), ("card", "pin"), ("sim", "pin"),
    }
)  # fmt: skip
_MAY_HOLD_ONE = frozenset(
    {
        "token",
        "key",
        "auth",
        "authz",
        "cred",
        "hmac",
        "pat",
        "pass",
        "pw",
        "login",
        "signature",
        "sig",
        "otp",
        "totp",
        "webhook",
    }
)
"""A name that ends so holds a credential where the value may be one: `close_token` may be `</think>`."""
_NAMES_MAY_STAND_IN = frozenset({"key", "auth", "pat", "signature", "sig", "webhook"})
"""Of those, the names whose values are often a plain name: `key: answer`, `auth: oauth`."""
_IF_DRAWN = frozenset({"pepper", "pin", "psk", "salt", "session", "sid"})
"""A name that ends so holds a credential where the value looks drawn at random: `session: morning-2024` is a name."""
_OF_TEXT = frozenset(
    """
    stop eos bos pad unk sep cls mask special image end start think first last next new max min num begin eot eom
    delimiter separator per prompt completion answer input output total reasoning cached generated open close
    """.split()  # noqa: SIM905 - one word per line would be a page
)
"""`stop_token` and its like are tokens of a text."""
_OF_DATA = frozenset(
    """
    answer truth column sort json prompt response primary foreign cache dict field message messages input output
    target label question query text group id row result score metric map lookup index name data dataset item order
    partition feature value config reference solution choice choices option tool split function method type
    """.split()  # noqa: SIM905 - one word per line would be a page
)
"""`answer_key` and its like name a column or a place in data."""
_OF_PASSING = frozenset(
    """
    all any backward band by first forward high if last low max min must n next no num on one per second single tests
    third to two when
    """.split()  # noqa: SIM905 - one word per line would be a page
)
"""`first_pass` and its like are about passing."""
_ABOUT_ONE = frozenset(
    """
    env envs envvar variable var file files path name column field url_env length type kind policy format hint count
    limit word words number required enabled strength threshold rate budget rule rules pattern prompt question prefix
    suffix position index class model style version algorithm method provider ttl expiry timeout size scope
    """.split()  # noqa: SIM905 - one word per line would be a page
)
"""A name that ends so tells something about a credential, such as `api_key_env` and `password_length`."""
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
_WORDS = re.compile(r"[A-Z]+(?=[A-Z][^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|[A-Z]+|[0-9]+")


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name may hold a credential, in any case and with any marks between its words."""
    words = _words_of(name)
    if not words or words[-1] in _ABOUT_ONE:
        return False
    return _is_firm(words) or _may_hold_one(words)


def _words_of(name: str) -> list[str]:
    words = [word.lower() for word in _WORDS.findall(name.rpartition(".")[2] if "." in name else name)]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] == "value"):  # `TOKEN_2`, `token_value`
        words.pop()
    return words


def _is_firm(words: list[str]) -> bool:
    """Whether any value under such a name is a credential."""
    if "".join(words) in _ALWAYS or not _ALWAYS.isdisjoint(words) or any(map(_GLUED.search, words)):
        return True
    return any(pair in _PAIRS for pair in pairwise(words))


def _may_hold_one(words: list[str]) -> bool:
    before, last = words[-2] if len(words) > 1 else "", words[-1]
    if last == "tokens":
        return before in {"access", "auth", "api", "bearer", "refresh"}
    if last in _IF_DRAWN:
        return True
    if last not in _MAY_HOLD_ONE:
        return "webhook" in words
    if last in {"key", "auth", "pat", "signature"}:
        return before not in _OF_DATA and (last != "auth" or before != "no")
    return before not in (_OF_PASSING if last == "pass" else _OF_TEXT)


def _fits(name: str, value: str) -> bool:
    """Whether a value under the name of a credential may be one, and no text, name or path."""
    if _takes_a_path(name) and _is_path(value):
        return False
    words = _words_of(name)
    if _is_firm(words) or looks_secret(value):
        return True
    value = value.strip()
    if words[-1] in _IF_DRAWN:
        return looks_drawn(value) or (words[-1] == "pin" and _DIGITS_OF_A_PIN.fullmatch(value) is not None)
    if len(value) < _SHORTEST or not _OF_A_KEY.fullmatch(value) or _is_reference(value):
        return False
    of_a_variable = name.isupper() and len(words) > 1  # `COHERE_KEY`
    names_may_stand = words and words[-1] in _NAMES_MAY_STAND_IN and not of_a_variable
    return not (names_may_stand and _PLAIN_NAME.fullmatch(value))


_DIGITS_OF_A_PIN = re.compile(r"[0-9]{4,12}")
_OF_A_KEY = re.compile(r"(?=.*[A-Za-z0-9])[^\s<>{}\[\]()|]+")
_PLAIN_NAME = re.compile(r"(?:[A-Z]|[A-Z]?[a-z]+)(?:[_.-][a-z]+)*[0-9]?")
_KEY_FILES = frozenset({("tls", "key"), ("ssl", "key")})
"""A setting whose name ends so (`--tls-key`, `tls.key`) takes the path of a file with a key."""


def _takes_a_path(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    return tuple(words[-2:]) in _KEY_FILES


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_KEY_SHAPES = re.compile(
    r"""
    PuTTY-User-Key-File-[0-9]:[\s\S]*
    | -----BEGIN\ [A-Z0-9 ]*PRIVATE\ KEY(?:\ BLOCK)?-----[\s\S]*?
      (?:-----END\ [A-Z0-9 ]*PRIVATE\ KEY(?:\ BLOCK)?-----|\Z)
    | (?<![A-Za-z0-9_-]) (?:
        (?:sk|pk|rk)[-_](?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{12,}   # OpenAI, Anthropic, Stripe and many that follow them
      | (?:fw|hf|gsk)_(?:[A-Za-z0-9]{12,}|(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{8,})   # `hf_transfer` is none
      | (?:csk|xai|pplx|nvapi|pypi|tvly|xapp|PMAK)-(?=[a-z_-]*[A-Z0-9])[A-Za-z0-9_-]{12,}
      | r8_[A-Za-z0-9]{12,} | tgp_v1_[A-Za-z0-9_-]{8,} | e2b_[a-f0-9]{12,} | dapi[a-f0-9]{32}
      | gh[oprsu]_[A-Za-z0-9]{12,} | github_pat_[A-Za-z0-9_]{12,} | glpat-[A-Za-z0-9_-]{12,} | npm_[A-Za-z0-9]{20,}
      | (?:dckr_pat|shpat|lin_api|lsv2_[a-z]{2}|pcsk|jina|api_org|whsec|sbp|figd|ntn)_
        (?=[a-z_]*[A-Z0-9])[A-Za-z0-9_-]{16,}
      | (?:AKIA|ASIA)[A-Z0-9]{12,} | AIza[A-Za-z0-9_-]{20,} | ya29\.[A-Za-z0-9_-]{12,} | xox[abeoprs]-[A-Za-z0-9-]{8,}
      | dop_v1_[a-f0-9]{12,} | SG\.[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,} | hvs\.[A-Za-z0-9_-]{16,}
      | AGE-SECRET-KEY-[A-Z0-9]{16,} | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?
    )
    """,
    re.VERBOSE,
)
_LOGIN = re.compile(
    r"(?P<scheme>(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}:)?//(?P<login>[^/?#\s'\"<>]{0,1000})@", re.ASCII
)
_TOLD_LOGIN = re.compile(
    r"\b(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|oracle|clickhouse|snowflake|ldaps?|smtps?|s?ftp)"
    r"(?:\+[a-z0-9]+)?://[^\s:/@'\"<>]{0,200}:(?P<password>[^\s'\"<>]{1,500})@"
    r"|\bmachine\s+\S+\s+login\s+\S+\s+password\s+(?P<netrc>\S+)"
    r"|\b(?i:password|passphrase|secret|token|api[ -]key)\s+is\s+['\"]?"
    r"(?P<told>(?=\S*[0-9])(?=\S*[A-Za-z])[^\s'\"<>]{8,})"
    r"|(?:^|\s)(?:-u|--user|--proxy-user)[\s=]\s{0,3}['\"]?[^\s:'\"]{1,100}:(?P<flagged>[^\s'\"]{1,200})"
    r"|\b[a-z][a-z0-9+.-]{1,30}://[^\s:/@'\"<>\[\]]{1,200}:(?![0-9]*[/?#]|[${])(?=[^\s@'\"<>]{0,200}/)(?P<slashed>[^\s@'\"<>]{1,200})@(?=[\w.-])"
    r"|(?<![\w.:/@-])[A-Za-z0-9*][\w.-]{0,100}:(?:[0-9]{4,5}|\*):[A-Za-z_*][\w*-]{0,60}:[A-Za-z_*][\w.*-]{0,60}"
    r":(?P<pgpass>(?=\S*[0-9])(?=\S*[A-Za-z])[^\s:'\"]{6,200})(?=[\s'\"]|$)"
    r"|(?<![\w.+/@-])[\w.+-]{1,100}:(?P<bare>[^\s:/@'\"<>]{4,200})@(?:tcp\(|[\w.-]{1,200}:[0-9]{2,5}\b)"
)
"""Logins of databases, whose passwords may hold a slash, those of commands, of .netrc and of .pgpass, those told in a
sentence, those with a slash where the port would stand, and those without a scheme: `bob:x@proxy:8080`."""
_OF_A_COMMAND = re.compile(
    r"(?<![\w.-])(?:"
    r"(?:mysql\w*|mariadb(?:-\w+)?|7z[arz]?|rar)\s(?:[^\n|;&]{0,200}?\s)??-p(?P<glued>[^\s'\"]{4,200})"
    r"|(?:sshpass|mongosh?|mongodump|(?:docker|podman|helm|registry|az|oras|skopeo|crane)\s+login)"
    r"\s(?:[^\n|;&]{0,200}?\s)??-p\s{0,3}['\"]?(?P<p>[^\s'\"]{4,200})"
    r"|(?:zip|unzip|sqlcmd|mosquitto_\w+)\s(?:[^\n|;&]{0,200}?\s)??-P\s{0,3}['\"]?(?P<P>[^\s'\"]{4,200})"
    r"|redis-cli\s(?:[^\n|;&]{0,200}?\s)??-a\s{1,3}['\"]?(?P<a>[^\s'\"]{4,200})"
    r"|ldap\w+\s(?:[^\n|;&]{0,200}?\s)??-w\s{1,3}['\"]?(?P<w>[^\s'\"]{4,200})"
    r"|curl\s(?:[^\n|;&]{0,200}?\s)??-u[^\s:'\"]{1,100}:(?P<u>[^\s'\"]{4,200}))"
)
"""Passwords behind the short flags of programs that take one there. `mysql -p` without one asks."""
_WEBHOOK = re.compile(
    r"https?://(?:[a-z0-9.-]*\.)?(?:hooks?\.[a-z0-9.-]+/|webhook\.[a-z0-9.-]+/|[a-z0-9.-]+"
    r"/(?:[\w.-]{1,40}/){0,6}(?:web)?hooks?/|api\.telegram\.org/bot|hc-ping\.com/"
    r"|[a-z0-9.-]+/(?:[\w.-]{1,40}/){0,6}(?:pings?|heartbeats?|integrations?)/(?=[\w-]{12})(?=[\w-]*[0-9])|maker\.ifttt\.com/trigger/|webhook\.office\.com/webhook)"
    r"(?P<path>[^\s'\"<>?#]{8,})",
    re.IGNORECASE,
)
"""Addresses that let in whoever knows them; the part behind the host's name is the credential."""
_BEARER = re.compile(
    r"\b((?i:Bearer|Basic|Token))(\s+)(?!\*\*\*)(?=\S*[0-9=]|\S*[a-z][A-Z]|\S{20})[A-Za-z0-9._~+/=-]{8,}"
)
_ASSIGNED = re.compile(
    r"(?<![A-Za-z0-9_.-])(?P<flag>--?|(?<=config\sset\s)(?://[^\s:]{1,200}/:)?|(?<=configure\sset\s))?_?(?P<name>[A-Za-z][A-Za-z0-9_.-]{0,80})(?:\\{0,3}['\"])?"
    r"(?:\s{0,3}(?P<equals>=>|[=:])|(?<=\w)>|(?(flag)(?=\s)(?!\s+-)|(?!)))\s{0,3}"
)
_VALUE = re.compile(
    r"\\{0,3}'[^'\n]*'|\\{0,3}\"[^\"\n]*\"|(?!//)[^\s,&;?'\"{}\[\]()](?:[^\s,&;'\"\\]*[^\s,&;?'\"\\{}\[\]().])?"
)
_SETTING = re.compile(r"`[a-z_]+(?:\.\w+)+[`=]")
"""A setting that a message names, by its place and between backticks, perhaps with a value: it is none itself."""
_RANDOM = re.compile(r"[A-Za-z0-9+/=_-]{24,}")
_CHANGES = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
_CHANGES_IN_TEN = 3
"""Of ten characters drawn at random so many are followed by one of another kind; of `CamelCaseWords` fewer."""


def looks_secret(text: str) -> bool:
    """Whether the text holds what has the shape of a credential: a known prefix, a login in a URL, a PEM block."""
    if _KEY_SHAPES.search(text) or _BEARER.search(text) or _TOLD_LOGIN.search(text) or _WEBHOOK.search(text):
        return True
    if any(True for _ in _of_commands(text)):
        return True
    return url_holds_login(text) or _query_secrets(text) != []


def _is_random(text: str) -> bool:
    """Whether a whole value looks drawn at random, as keys are. A hash in hex has one case only and is none."""
    return _RANDOM.fullmatch(text) is not None and _is_mixed(text)


def _is_mixed(text: str) -> bool:
    kinds = (str.islower, str.isupper, str.isdigit)
    if not all(any(map(kind, text)) for kind in kinds):
        return False
    return 10 * len(_CHANGES.findall(text)) >= _CHANGES_IN_TEN * len(text)


def looks_drawn(text: str) -> bool:
    """Whether a value looks drawn at random, which may be as short as a password is: where that is likely."""
    return _DRAWN.fullmatch(text) is not None and _is_mixed(text)


_DRAWN = re.compile(r"[A-Za-z0-9+/=_-]{12,}")


_PATH = re.compile(r"(?:[^\s/\\]*[/\\])+[^\s/\\]+|[^\s/\\]+\.[A-Za-z0-9]{1,8}")
"""Names of folders, or a file name with a suffix."""


def _is_path(text: str) -> bool:
    """Whether a value is a path, and no key that was put in its place by mistake."""
    if not _PATH.fullmatch(text) or looks_secret(text):
        return False
    return not any(map(_is_random, (text, *re.split(r"[/\\.]", text))))


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
    return any(match["login"] not in _NO_LOGINS for match in _LOGIN.finditer(text))


_NO_LOGINS = frozenset({"", MASK, "git", "hg"})
"""What stands before the `@` of an address and lets nobody in; `ssh://git@host` is everybody's."""


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
_OF_PLACEHOLDERS = frozenset(
    """
    a abc any anything api apikey bearer change changeme default dummy empty example fake foo bar for goes here insert
    is key keys litellm llm lm local localhost me mock my n needed no none not null ollama openai pass password
    placeholder put replace required secret server sk studio test testing the this token unused user vllm with without
    x your
    """.split()  # noqa: SIM905 - one word per line would be a page
)
_COUNTED = "01234567890123456789"


def _is_placeholder(value: str) -> bool:
    """Whether a value is made of the words of placeholders only: `EMPTY`, `sk-no-key-required`, `token-abc123`."""
    words = re.findall(r"[a-z]+|[0-9]+", value.lower())
    return all(
        word in _OF_PLACEHOLDERS or word in _COUNTED or set(word) <= {"x"} or set(word) <= {"0"} for word in words
    )


class _Known:
    """The values that are credentials in this process, in every spelling that may come up."""

    def __init__(self) -> None:
        self.values: set[str] = set()
        self.texts: tuple[str, ...] = ()
        """To take out of messages; the longest first."""
        self.keys: tuple[str, ...] = ()
        """Of those texts, the ones that nobody writes by chance: to take out of what a reward says to people."""
        self.sent: set[str] = set()
        """Those of the values that went out with a request, and that no answer holds by chance."""
        self.plain: tuple[bytes, ...] = ()
        """The spellings of those that were sent."""
        self.encoded: tuple[bytes, ...] = ()
        """The same in base64 and hex."""
        self.run = b""
        """So many characters as the shortest of the encoded ones has."""

    def add(self, value: str) -> None:
        if value not in self.values:
            self.values.add(value)
            spelled = {*_spellings(value), *_encodings(value)}
            self.texts = tuple(sorted({*self.texts, *spelled}, key=len, reverse=True))
            if _is_unmistakable(value):
                self.keys = tuple(sorted({*self.keys, *spelled}, key=len, reverse=True))

    def send(self, value: str) -> None:
        if value in self.sent:
            return
        self.sent.add(value)
        encoded = _as_bytes(_encodings(value))
        self.plain += tuple(_as_bytes(_spellings(value)))
        self.encoded += tuple(encoded)
        self.run = min(self.run or _RUN * 10_000, *(_RUN * len(text) for text in encoded))

    def is_in(self, data: bytes) -> bool:
        """Whether one that was sent is in the data.

        Base64 and hex are looked for only where something stands without a break for long enough.
        """
        if any(spelled in data for spelled in self.plain):
            return True
        return self.run in data.translate(_RUNS) and any(spelled in data for spelled in self.encoded)


_RUN = b"x"
_RUNS = bytes(_RUN[0] if chr(code) in f"{ascii_letters}{digits}+/-_" else 32 for code in range(256))
"""Turns every character of base64 and hex into the same one, and all others into a blank."""


def _as_bytes(texts: Iterable[str]) -> set[bytes]:
    return {text.encode(errors="surrogatepass") for text in texts}


_known = _Known()


_SCHEME = re.compile(r"(?:bearer|basic|token|apikey) +", re.IGNORECASE)


def remember(value: str | None) -> None:
    """Take note of a credential: from now on it is blotted out of every message."""
    value = "" if value is None else value.strip()
    if len(value) >= _SHORTEST and value.lower() not in _PLACEHOLDERS and not value.startswith(("${", MASK)):
        _known.add(value)
        if alone := _SCHEME.match(value):  # an endpoint that echoes a header may leave out how it began
            remember(value[alone.end() :])


def sent(value: str | None) -> None:
    """Take note of a credential that goes out with requests: an answer that holds it is a failure.

    Placeholders, and words that an answer may hold by chance, are none.
    """
    remember(value)
    value = "" if value is None else value.strip()
    if alone := _SCHEME.match(value):
        sent(value[alone.end() :])
    if value in _known.values and _is_unlikely_by_chance(value) and not _is_placeholder(value):
        _known.send(value)


def echoes(data: bytes) -> bool:
    """Whether data hold a credential that was sent, in any spelling. Costs next to nothing where they do not."""
    if not _known.sent:
        return False
    if _known.is_in(data):
        return True
    return b"\\u00" in data and _known.is_in(_ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), data))


_ESCAPED = re.compile(rb"\\{1,4}u00([2-7][0-9a-fA-F])")
"""A character that JSON would not have needed to escape."""


def forget_all() -> None:
    """Forget every credential; for tests, which are many runs in one process."""
    global _known  # noqa: PLW0603 - one table a process is the point
    _known = _Known()


def _is_unlikely_by_chance(value: str) -> bool:
    return len(value) >= (_SHORTEST_WORD_IN_DATA if value.isalpha() else _SHORTEST_IN_DATA)


def _is_unmistakable(value: str) -> bool:
    """Whether a value can only be a key: nobody uses it as a word, a tag or a name."""
    drawn = len(value) >= _SHORTEST_KEY and value.isascii() and _OF_A_KEY.fullmatch(value)
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return bool(_KEY_SHAPES.fullmatch(value)) or (bool(drawn) and mixed and not _is_path(value))


_SHORTEST_KEY = 16


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
        named = is_secret_name(name) and _fits(name, value)
        if named and len(value) >= _SHORTEST_IN_DATA and not value.startswith(("/", "~", ".")):
            remember(value)  # PWD and SSH_KEY name places
        _remember_all(_shaped_values(value))


def remember_settings(settings: Any) -> None:
    """Take note of every credential in plain settings, so that no message about them shows one."""
    _remember_all(secret_values(settings))


def secret_values(settings: Any) -> list[str]:
    """The credentials in plain settings."""
    return [value for found in _secrets_in(settings) for value in found.values]


def remember_arguments(arguments: Iterable[str]) -> None:
    """Take note of what a command line holds: `--api-key X`, `generation.api_key=X`, a login in a URL."""
    named = ""
    for argument in arguments:
        if named and not argument.startswith("--") and _fits(named, argument):
            remember(argument)
        flag, equals, value = argument.lstrip("+-~").partition("=")
        named = flag if argument.startswith("-") and not equals and is_secret_name(flag) else ""
        if equals and is_secret_name(flag.rpartition(".")[2] or flag):
            _remember_all(part for part in _override_values(value) if _fits(flag, part))
        _remember_all(assigned.value for assigned in _assignments(value if equals else argument))
        _remember_all(_shaped_values(argument))


def _override_values(value: str) -> list[str]:
    """What a sweep or a quoted override names: `a,b`, `'a'`, `choice(a,b)`."""
    inner = re.sub(r"^(?:choice|shuffle|sort)\((.*)\)$", r"\1", value, flags=re.DOTALL)
    parts = [part.strip().strip("'\"") for part in inner.split(",")]
    return [value.strip().strip("'\""), *parts]


def _remember_all(values: Iterable[str]) -> None:
    for value in values:
        remember(value)


def _shaped_values(text: str) -> list[str]:
    """The credentials in a text, by their shape."""
    found = [match[0] for match in _KEY_SHAPES.finditer(text)]
    found += [match[0].split(None, 1)[1] for match in _BEARER.finditer(text)]
    found += [part for match in _WEBHOOK.finditer(text) for part in (match["path"], match["path"].rpartition("/")[2])]
    found += _query_secrets(text)
    for match in (match for match in _LOGIN.finditer(text) if match["login"] not in _NO_LOGINS):
        user, colon, password = match["login"].partition(":")
        found += [match["login"], unquote(password), password] if colon else [user]
    for match in (*_TOLD_LOGIN.finditer(text), *_of_commands(text)):
        password = match[str(match.lastgroup)]
        found += [password, unquote(password)]
    return [value for value in found if value and value != MASK]


def _of_commands(text: str) -> Iterator[re.Match[str]]:
    for match in _OF_A_COMMAND.finditer(text):
        if not _is_harmless(match[str(match.lastgroup)], firm=True):
            yield match


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def blot(text: str) -> str:
    """A message without the credentials that are known."""
    return _without_any(_known.texts, text)


def blot_keys(text: str) -> str:
    """What a reward says to people, without those that can only be keys. A word that it was given stays."""
    return _without_any(_known.keys, text)


def _without_any(texts: Iterable[str], text: str) -> str:
    for spelled in texts:
        if spelled in text:
            text = text.replace(spelled, MASK)
    return text


def mask(text: str) -> str:
    """A message without what is known to be a credential, or is one by its name or its shape."""
    text = _without_parts(blot(text))
    text = _KEY_SHAPES.sub(MASK, text)
    text = _WEBHOOK.sub(_hidden_group("path"), text)
    text = _TOLD_LOGIN.sub(lambda match: str(_hidden_group(str(match.lastgroup))(match)), text)
    text = _OF_A_COMMAND.sub(_masked_of_a_command, text)
    text = _LOGIN.sub(_masked_login, text)
    text = _BEARER.sub(rf"\1\2{MASK}", text)
    found = [one for one in _assignments(text) if not one.may_be_none]
    return _without(text, found, MASK)


def _hidden_group(name: str) -> Any:
    def hide(match: re.Match[str]) -> str:
        start, end = match.start(name) - match.start(), match.end(name) - match.start()
        return match[0][:start] + MASK + match[0][end:]

    return hide


def _masked_of_a_command(match: re.Match[str]) -> str:
    harmless = _is_harmless(match[str(match.lastgroup)], firm=True)
    return match[0] if harmless else str(_hidden_group(str(match.lastgroup))(match))


_PART = 12
"""Characters of a key that was sent, of which a server quotes some, that are too many to be shown."""


def _without_parts(text: str) -> str:
    for value in _known.sent:
        start, end = 0, _PART
        while len(value) >= 2 * _PART and end <= len(value):
            if value[start:end] not in text:
                start, end = start + 1, end + 1
                continue
            while end < len(value) and value[start : end + 1] in text:
                end += 1
            text = text.replace(value[start:end], MASK)
            start, end = end, end + _PART
    return text


def _masked_login(match: re.Match[str]) -> str:
    shown_as_it_is = _PLACEHOLDERS.issuperset(match["login"].lower().split(":"))  # `user:password@host` of our advice
    return match[0] if match["login"] in _NO_LOGINS or shown_as_it_is else f"{match['scheme'] or ''}//{MASK}@"


class _Assigned(NamedTuple):
    """A value in a text that stands behind the name of a credential, as in `token=x` or `"token": "x"`."""

    start: int
    end: int
    value: str
    may_be_none: bool
    """Whether it may be a word of a sentence, or what people write where no credential is needed."""


def _assignments(text: str) -> Iterator[_Assigned]:
    end = 0
    for match in _ASSIGNED.finditer(text):
        if match.start() < end or not is_secret_name(match["name"]):
            continue
        is_compared = _COMPARED.search(text, max(0, match.start() - len("having ")), match.end())
        if is_compared and not _is_firm(_words_of(match["name"])):
            continue
        if found := _VALUE.match(text, match.end()):
            if _SETTING.match(text, found.start()):
                continue
            end = found.end()
            value = found[0].lstrip("\\").strip("'\"`").rstrip("\\:")
            if _fits(match["name"], value):
                firm = _is_firm(_words_of(match["name"]))
                # "unexpected token: end", "KEY=VALUE", "--key client.key"
                bare = match["equals"] in (":", None) or match["name"].lower() == "key"
                is_word = found[0].isalpha() or ("://" in found[0] and not firm)
                is_word = is_word or _NAMED.fullmatch(value) is not None or (match["name"] == "key" and _is_path(value))
                harmless = _is_harmless(value, firm=firm)
                yield _Assigned(found.start(), end, value, (bare and is_word) or harmless)


_COMPARED = re.compile(r"\b(?:and|having|on|or|set|where)\s+(?:\w+_)?key\s*=\s*$", re.IGNORECASE)
"""`WHERE key = 'a1b2c3'` names a column. A password that is compared, or `api_key`, is one."""


def _is_reference(value: str) -> bool:
    return value.startswith(("$", "{", "<", "%", "…", MASK)) or _FLAG.fullmatch(value) is not None


_NAMED = re.compile(r"(?:\w+=)?[A-Z]+(?:_[A-Z]+)*")
"""What `--secret` of a command takes: a variable, perhaps with the name of a stored secret."""
_FLAG = re.compile(r"--[a-z]+(?:-[a-z]+)*")
"""What a message names, and no value."""


def _is_harmless(value: str, *, firm: bool) -> bool:
    number = value.isdigit() and not (firm and int(value) >= _LEAST_SECRET_NUMBER)
    known = value.lower() in _PLACEHOLDERS or number or _is_reference(value)
    return known or len(value) < _SHORTEST


def _without(text: str, found: Iterable[_Assigned], instead: str) -> str:
    pieces, end = [], 0
    for one in found:
        pieces += [text[end : one.start], instead]
        end = one.end
    return "".join([*pieces, text[end:]])


def mask_words(words: Iterable[str]) -> list[str]:
    """The words of a command line, such as may be shown again: also without what follows `--api-key`."""
    return ["…" if hidden else mask(_without(word, _assignments(word), "…")) for word, hidden in _behind_flags(words)]


def _behind_flags(words: Iterable[Any]) -> Iterator[tuple[Any, bool]]:
    """Each word of a command, and whether the flag before it says that it is a credential."""
    words = list(words)
    line = " ".join(word for word in words if isinstance(word, str))
    given = {match[str(match.lastgroup)] for match in _of_commands(line)}
    named, before = "", None
    for word in words:
        in_short = isinstance(word, str) and (word in given or re.sub(r"^-[A-Za-z](?:[^:]*:)?", "", word) in given)
        is_login = (named in _LOGIN_FLAGS and isinstance(word, str) and ":" in word) or (
            isinstance(word, str) and before in _SCHEMES and bool(_BEARER.fullmatch(f"{before} {word}"))
        )
        yield (
            word,
            in_short
            or is_login
            or (bool(named) and isinstance(word, str) and is_secret_name(named) and _fits(named, word)),
        )
        is_name = isinstance(word, str) and (word.startswith("-") or before == "set") and "=" not in word
        before = word if isinstance(word, str) else None
        named = word.lstrip("-") if is_name else ""


_LOGIN_FLAGS = frozenset({"u", "user", "proxy-user"})
"""Flags that take `user:password`, as curl's do."""
_SCHEMES = frozenset({"Bearer", "Basic", "Token"})


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
_PROSE = frozenset({"system_prompt", "prompt_template", "responses", "response", "pattern", "stop"})
"""Settings that are text for a model, and are kept as they are: what they show is no setting."""


class _Place(NamedTuple):
    """Where in the settings a value stands."""

    secret: bool = False
    """Under the name of a credential."""
    free: bool = False
    """Where the structure is not ours."""
    prose: bool = False
    name: str = ""
    """Of the setting, or of the section; of a part of a credential, the name that says so."""
    header: bool = False
    """Among headers, whose names say little."""
    listed: bool = False
    """In a list: a list of two that stands here may be a name and its value."""

    def under(self, name: object, held: object) -> _Place:
        text = str(name)
        free = self.free or text.rpartition(".")[2] in _FREE
        is_section = isinstance(held, Mapping | list)
        if self.secret:
            secret = text.lower() not in _HARMLESS_OPTIONS
            return _Place(secret, free, False, self.name if secret else text)
        if _HEADERS.search(text) and is_section:
            return _Place(secret=not isinstance(held, Mapping), free=free, name=text, header=True)
        header = self.header and text.lower() not in _HARMLESS_HEADERS
        secret = text == _STORAGE_OPTIONS or is_secret_name(text) or header
        full = f"{self.name}.{text}" if _takes_a_path(f"{self.name} {text}") else text
        return _Place(secret, free, not free and text in _PROSE, full, header)

    def holds(self, text: str) -> bool:
        """Whether a text that stands here is a credential because it stands here."""
        if not self.secret or not text.strip() or text.startswith("${"):
            return False
        if self.header and not is_secret_name(self.name):
            return not _HARMLESS_VALUE.fullmatch(text) or looks_secret(text)
        return self.name == _STORAGE_OPTIONS or _fits(self.name, text)


_HARMLESS_VALUE = re.compile(r"[a-z]+(?:[ _-][a-z]+)*|[A-Za-z ]{1,24}|[0-9.-]{1,10}|https?://[^\s]+", re.ASCII)
"""What a header of any name may be told: a plain word, a number or date, an address."""


def _kept(value: Any, place: _Place) -> Any:
    if isinstance(value, Mapping):
        kept = {name: _kept(held, at) for name, held, at in _held(value, place) if not _is_key(name)}
        return {name: held for name, held in kept.items() if held is not _GONE}
    if isinstance(value, list | tuple):
        items = [_kept(item, at) for item, at in _items(value, place)]
        return _GONE if any(item is _GONE for item in items) else items
    if not _is_secret_value(value, place):
        return value
    if place.secret or place.free or not isinstance(value, str):
        return _GONE
    return _without_secret_query(value)


def _is_key(name: object) -> bool:
    """Whether the name itself is a credential, as in `{sk-…: alice}`."""
    return isinstance(name, str) and (looks_secret(name) or _is_random(name))


def _held(settings: Mapping[Any, Any], place: _Place) -> Iterator[tuple[Any, Any, _Place]]:
    """What settings hold, with its place. In `{name: DB_PASS, value: x}` the value's is that of the name."""
    named = next((settings[name] for name in ("name", "key", "variable") if isinstance(settings.get(name), str)), None)
    for name, held in settings.items():
        yield name, held, place.under(named if name == "value" and named is not None else name, held)


def _items(items: list[Any] | tuple[Any, ...], place: _Place) -> Iterator[tuple[Any, _Place]]:
    """The items of a list, each with its place; behind the flag of a credential it is that of a credential.

    So it is in a list of pairs, `[[DB_PASS, x]]`.
    """
    name, value = items if place.listed and len(items) == len(("name", "value")) else (None, None)
    is_pair = isinstance(name, str) and isinstance(value, str) and not place.secret
    for item, hidden in _behind_flags(items):
        at = place._replace(listed=True)
        if is_pair and item is value:
            at = place.under(name, value)
        elif hidden and not place.secret:
            at = at._replace(secret=True, name="password")
        yield item, at


def _without_secret_query(address: str) -> Any:
    """An address of ours without the credentials in its query, so that it still says whom to ask."""
    try:
        parts = urlsplit(address)
        kept = [(name, value) for name, value in parse_qsl(parts.query) if not (is_secret_name(name) or _signs(name))]
        shown = urlunsplit(parts._replace(query=urlencode(kept), fragment=""))
    except ValueError:
        return _GONE
    return shown if parts.netloc and not _is_secret_value(shown, _Place()) else _GONE


def masked_paths(settings: Any, path: str = "") -> list[str]:
    """Where `***` stands in the place of a credential: such settings were copied from what was shown."""
    if isinstance(settings, Mapping):
        at = {name: f"{path}.{name}" if path else str(name) for name in settings}
        stars = [at[n] for n, held in settings.items() if _is_masked(held) and is_secret_name(str(n))]
        return stars + [each for name, held in settings.items() for each in masked_paths(held, at[name])]
    if isinstance(settings, list | tuple):
        return [each for held in settings for each in masked_paths(held, path)]
    return [path] if isinstance(settings, str) and _MASKED.search(settings) else []


def _is_masked(value: object) -> bool:
    return isinstance(value, str) and value.strip().strip("*") == "" and len(value.strip()) >= len(MASK)


_MASKED = re.compile(r"//\*{3,}@|[?&;]\w+=\*{3,}(?:[&;]|$)|^(?:Bearer|Basic|Token)\s\*{3,}$")


def _secrets_in(value: Any, place: _Place = _Place(), path: str = "") -> Iterator[_Found]:  # noqa: B008 - a tuple
    if isinstance(value, Mapping):
        for name, held, at_name in _held(value, place):
            at = f"{path}.{name}" if path else str(name)
            if _is_key(name):
                yield _Found(mask(path) or MASK, [str(name)])
            yield from _secrets_in(held, at_name, at)
    elif isinstance(value, list | tuple):
        for item, at_item in _items(value, place):
            yield from _secrets_in(item, at_item, path)
    elif _is_secret_value(value, place):
        text = _plain(value)
        whole = place.holds(text) or (place.free and _is_random(text))
        yield _Found(path, [text, *_bearer_value(text)] if whole else _values_in(text))


def _bearer_value(text: str) -> list[str]:
    """What follows the scheme of a header's value: `Bearer X`."""
    scheme, blank, value = text.partition(" ")
    user, colon, password = text.partition(":")
    login = [password] if colon and not blank and user else []
    return [value] if blank and scheme.isalpha() else [*login, *_values_in(text)]


def _values_in(text: str) -> list[str]:
    """The credentials in a setting's text, by their shape and by the names before them. JSON is more settings."""
    found = _shaped_values(text) + [one.value for one in _assignments(text) if not one.may_be_none]
    if text.lstrip().startswith(("{", "[")):
        with contextlib.suppress(ValueError, RecursionError):
            found += secret_values(json.loads(text))
    return found


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
    return (
        place.holds(text)
        or (place.free and _is_random(text))
        or _values_in(text) != []
        or any(known in text for known in _known.values if _is_unlikely_by_chance(known) and not _is_placeholder(known))
    )
