# SPDX-License-Identifier: Apache-2.0
"""Files that must not leave this machine: by their name, by who wrote them, or by what is written in them."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from reward_kit.models import READABLE_SCHEMAS
from reward_kit.redaction import is_secret_name, looks_drawn, looks_secret
from reward_kit.storage.new_files import is_run_directory
from reward_kit.storage.run_directory import OWN_FILES

__all__ = ["credential_in", "is_credential_file", "is_litter", "is_written_by_us"]

_CREDENTIAL_FILES = (
    ".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdbx",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd",
    ".git-credentials", ".dockercfg", "auth.ini", "credentials", "credentials.*", "client_secret*.json",
    "service-account*.json", "service_account*.json", "application_default_credentials.json", "kubeconfig",
    "secrets.yaml", "secrets.yml", "secrets.json", "secrets.toml", "*.tfstate", "*.tfvars", "*.ovpn",
    "*[-_]key.json", "*[-_]keys.json", "*credentials*.json", "token", "token.txt", "token.json",
    "*[-_]token.txt", "*[-_]token", "key.txt", "*[-_]key.txt", "*api[-_]keys.txt", "apikey*.txt", "password.txt",
    "passwords.txt", "passwd", "*[-_]password.txt", "secret.txt", "*.secret", ".s3cfg", ".boto", ".vault-token",
    "*.gpg",
)  # fmt: skip
_CREDENTIAL_FOLDERS = frozenset({".aws", ".azure", ".gcloud", ".ssh", ".gnupg", ".kube", ".docker", ".fireworks"})
_LITTER = frozenset(
    {
        ".git", ".hg", ".svn", "__pycache__", ".venv", "venv", ".tox", ".nox", "node_modules", ".mypy_cache",
        ".ruff_cache", ".pytest_cache", ".hypothesis", ".ipynb_checkpoints", ".reward_kit", ".reward_kit_cache",
        ".idea", ".vscode", ".DS_Store", ".import_linter_cache", "site-packages",
    }
)  # fmt: skip
_LITTER_FILES = ("*.pyc", "*.pyo", "*.swp", "*~", ".coverage*")

_STAND_IN = re.compile(
    r"^[<$\[{(*%]|x{4,}|\.{3}|\b(?:your|example|changeme|placeholder|dummy|redacted)\b|_env$|^(?:none|null|true|false)$",
    re.IGNORECASE,
)
_STAND_IN_BEARER = re.compile(r"\b(?:Bearer|Basic|Token)\s+[^\s\d]+(?=\s|$)", re.IGNORECASE)
_STAND_IN_LOGIN = re.compile(r"//(?:(?:user(?:name)?|me):(?:pass(?:word)?|secret|\*+)|[a-z]+:[A-Z_]+)@")
_NAMED = re.compile(
    r"""["']?(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,80})(?:(?<!\Wkey)["']\s*,\s*(?=["'])|["']?\]?\s*"""
    r"""(?::\s*[A-Za-z_][\w.\[\]| ]{0,60}?=(?=\s*[rbuf]{0,2}["'])|:=|=>|[:=]|(?<=\w)>)\s*(?:\(\s*(?=["']))?)"""
)
"""Before a value: `name = `, `"name": `, `environ["name"] = `, `name: str = `, `("name", `, `<name>`."""
_PAIRED = re.compile(r"""auth\s*=\s*\(\s*["'][^"']{0,80}["']\s*,\s*(?=["'])""")
_CALLED = re.compile(r"""(?P<name>[A-Za-z_][A-Za-z0-9_.]{0,80})\(\s*(?=[rbuf]{0,2}["'](?!https?:|(?:[^"'\s/]*/){2}))""")
_VALUE = re.compile(r"""(?P<quote>[rbuf]{0,2}(?:["']{3}|["']))?(?P<value>[^"'\s,;)<]{8,})""")
_TAKES_ONE = re.compile(
    r"(?:login|auth|authenticate|token|key|secret(?:str)?|password|credentials?|client|connect|session|bearer)$|api",
    re.IGNORECASE,
)
"""A function whose first argument may be a key: `login('…')`, `cohere.Client('…')`, `set_api_key('…')`."""
_MAY_HOLD_ONE = re.compile(
    rb"(?i)key|token|secret|pass|pwd|cred|auth|login|bearer|client|connect|session|webhook|hooks|://|-----begin"
    rb"|sk[-_]|hf_|gh[oprsu]_|xox|akia|asia|aiza|eyj|api|sig=|\w\([rbuf]{0,2}[\"']"
)
"""What a line with a credential has in it."""
_CODE = re.compile(r"[(\[{]|\.\w+\.")
_SHORTEST_WORD = 10
_WIDE = {
    "utf-32-le": (b"\xff\xfe\0\0", 4, 0), "utf-32-be": (b"\0\0\xfe\xff", 4, 3),
    "utf-16-le": (b"\xff\xfe", 2, 0), "utf-16-be": (b"\xfe\xff", 2, 1),
}  # fmt: skip
"""Encodings with several bytes per character: what a text may begin with, how many, and which of them has ASCII."""


def is_litter(path: str) -> bool:
    """Whether a file is of no use elsewhere: version control, caches, environments, an editor's files."""
    parts = PurePosixPath(path).parts
    return any(part in _LITTER for part in parts) or any(fnmatchcase(parts[-1], shape) for shape in _LITTER_FILES)


def is_credential_file(path: str) -> bool:
    """Whether a file by this name holds credentials, as `.env`, `id_rsa` and `server.key` do."""
    *folders, name = PurePosixPath(path).parts
    if name.lower().endswith((".example", ".sample", ".template")):
        return False
    return bool(_CREDENTIAL_FOLDERS.intersection(folders)) or any(
        fnmatchcase(name.lower(), shape) for shape in _CREDENTIAL_FILES
    )


def is_written_by_us(path: Path, project: Path) -> bool:
    """Whether a file of the project is what a run wrote, a cache of answers, a table of ours or a report."""
    if path.name in OWN_FILES and is_run_directory(path.parent):
        return True
    folders = [folder for folder in path.parents if folder.is_relative_to(project) and folder != project]
    if any(is_run_directory(folder) or (folder / "responses.jsonl").exists() for folder in folders):
        return True
    if path.suffix.lower() not in _OF_OURS:
        return False
    with path.open("rb") as file:
        head = file.read(_LOOKED_AT)
        file.seek(max(0, path.stat().st_size - _LOOKED_AT))
        return any(mark in part for mark in _MARKS for part in (head, file.read()))


_OF_OURS = frozenset({".parquet", ".pq", ".html", ".htm", ".xml", ".jsonl"})
_MARKS = (
    b"\nreward-kit check:", b'<meta name="generator" content="reward-kit ', b'<testsuites name="reward-kit"',
    *(b'{"schema":%d,"id":"' % schema for schema in READABLE_SCHEMAS),
)  # fmt: skip
_LOOKED_AT = 1 << 20


def credential_in(content: bytes) -> int | None:
    """The first line (from 1) that seems to hold a credential; None where there is none. The value is not told."""
    text = _as_utf_8(content)
    if text is None:
        return None
    lines = _with_literals_joined(text).split(b"\n")
    columns = _columns_of_credentials(lines[0])
    for number, line in enumerate(lines, start=1):
        if _MAY_HOLD_ONE.search(line) and _is_suspicious(line.decode(errors="replace")):
            return number
        if columns and number > 1 and _holds_one_in(columns, line):
            return number
    return None


_LITERALS = re.compile(rb"""(["']) *[+\\]? *(?:\r?(\n)[ \t]+)?\+? *[rbuf]?\1(?=[\w/+=-])([^\n]*)""")
_MOST_LITERALS = 20
"""So many pieces of a text are put together."""


def _with_literals_joined(text: bytes) -> bytes:
    """Text in which literals that stand one after the other, as `"sk-" "abc"`, are one; lines keep their numbers."""
    for _ in range(_MOST_LITERALS):
        text, joined = _LITERALS.subn(rb"\3\2", text)
        if not joined:
            break
    return text


class _Column(NamedTuple):
    """A column of a table whose name is that of a credential."""

    name: str
    place: int
    divider: str


def _columns_of_credentials(head: bytes) -> list[_Column]:
    line = head.decode(errors="replace").strip("\r\ufeff")
    divider = next((one for one in ",;\t|" if one in line), ",")
    names = [name.strip().strip("\"'") for name in line.split(divider)]
    plain = all(_COLUMN.fullmatch(name) for name in names)
    return [
        _Column(name.replace(" ", "_"), at, divider) for at, name in enumerate(names) if plain and is_secret_name(name)
    ]


_COLUMN = re.compile(r"[A-Za-z_][\w .-]{0,80}")


def _holds_one_in(columns: Sequence[_Column], line: bytes) -> bool:
    cells = next(csv.reader([line.decode(errors="replace")], delimiter=columns[0].divider), [])
    held = (f'{column.name} = "{cells[column.place].strip()}"' for column in columns if column.place < len(cells))
    return any(map(_is_suspicious, held))


def _as_utf_8(content: bytes) -> bytes | None:
    """Text, also of files with several bytes per character; None where it is no text."""
    head = content[:8192]
    if b"\0" not in head:
        return content
    for name, (mark, width, own) in _WIDE.items():
        blanks = [head[place::width].count(0) for place in range(width)]
        shared = len(head) // width * _MOSTLY
        in_ascii = all((count < shared) == (place == own) for place, count in enumerate(blanks))
        if content.startswith(mark) or in_ascii:
            return content.decode(name, errors="replace").encode(errors="replace")
    return None


_MOSTLY = 0.6


def _is_suspicious(line: str) -> bool:
    line = line.replace('\\"', '"').replace("\\'", "'")  # code in a notebook, or JSON in a text
    if looks_secret(_STAND_IN_BEARER.sub("", _STAND_IN_LOGIN.sub("//", line))):
        return True
    named = [(found, found["name"]) for found in _NAMED.finditer(line)]
    named += [(found, "key") for found in _CALLED.finditer(line) if _takes_one(line, found)]
    named += [(found, "password") for found in _PAIRED.finditer(line)]
    return any(_is_held(line, found, name) for found, name in named)


def _takes_one(line: str, found: re.Match[str]) -> bool:
    """Whether the first argument of a call may be a key: by the name of what is called, or of a class by its looks."""
    if _TAKES_ONE.search(found["name"]):
        return True
    held = _VALUE.match(line, found.end())
    return found["name"].rpartition(".")[2][0].isupper() and held is not None and looks_drawn(held["value"])


def _is_held(line: str, found: re.Match[str], name: str) -> bool:
    """Whether what stands behind a name, or in a call's brackets, is the value of a credential."""
    held = _VALUE.match(line, found.end())
    if held is None or not is_secret_name(name) or _STAND_IN.search(held["value"]):
        return False
    value = held["value"]
    if _is_varied(value):
        return len(value) >= _SHORTEST_VARIED
    of_words = value.isalpha() or _WORDS.fullmatch(value) is not None
    is_word = held["quote"] is not None and len(value) >= _SHORTEST_WORD and of_words and _is_password(name)
    return is_word and value.lower() != name.lower()


_SHORTEST_VARIED = 12
_WORDS = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+){2,}")
"""A password of words, as `correct-horse-battery`."""


def _is_password(name: str) -> bool:
    """Whether a name is that of a password, which may be a word."""
    return re.search(r"pass(?:word|wd|phrase)?$|pwd$|secret$", name, re.IGNORECASE) is not None


def _is_varied(value: str) -> bool:
    """Whether a value has digits as well as letters, as keys have, and no brackets, as code has."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and not _CODE.search(value)
