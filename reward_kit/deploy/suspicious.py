# SPDX-License-Identifier: Apache-2.0
"""Files that must not leave this machine: by their name, by who wrote them, or by what is written in them."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from reward_kit.redaction import is_secret_name, looks_secret
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
    r"""(?::\s*[A-Za-z_][\w.\[\]| ]{0,60}?=(?=\s*[rbuf]{0,2}["'])|:=|=>|[:=]|(?<=\w)>)\s*)"""
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
    rb"|sk[-_]|hf_|gh[oprsu]_|xox|akia|asia|aiza|eyj|api|sig="
)
"""What a line with a credential has in it."""
_CODE = re.compile(r"[(\[{]|\.\w+\.")
_SHORTEST_WORD = 10
_UTF_16 = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


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


_OF_OURS = frozenset({".parquet", ".pq", ".html", ".htm"})
_MARKS = (b"\nreward-kit check:", b'<meta name="generator" content="reward-kit ')
_LOOKED_AT = 1 << 20


def credential_in(content: bytes) -> int | None:
    """The first line (from 1) that seems to hold a credential; None where there is none. The value is not told."""
    text = _as_utf_8(content)
    if text is None:
        return None
    for number, line in enumerate(text.split(b"\n"), start=1):
        if _MAY_HOLD_ONE.search(line) and _is_suspicious(line.decode(errors="replace")):
            return number
    return None


def _as_utf_8(content: bytes) -> bytes | None:
    """Text, also of files in UTF-16; None where it is no text."""
    head = content[:8192]
    if b"\0" not in head:
        return content
    named = next((name for mark, name in _UTF_16 if content.startswith(mark)), None)
    blanks = head[1::2].count(0), head[::2].count(0)
    name = named or ("utf-16-le" if blanks[0] > blanks[1] else "utf-16-be")
    if named is None and max(blanks) < len(head) // 2 * 0.6:
        return None
    return content.decode(name, errors="replace").encode(errors="replace")


def _is_suspicious(line: str) -> bool:
    line = line.replace('\\"', '"').replace("\\'", "'")  # code in a notebook, or JSON in a text
    if looks_secret(_STAND_IN_BEARER.sub("", _STAND_IN_LOGIN.sub("//", line))):
        return True
    named = [(found, found["name"]) for found in _NAMED.finditer(line)]
    named += [(found, "key") for found in _CALLED.finditer(line) if _TAKES_ONE.search(found["name"])]
    named += [(found, "password") for found in _PAIRED.finditer(line)]
    return any(_is_held(line, found, name) for found, name in named)


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
