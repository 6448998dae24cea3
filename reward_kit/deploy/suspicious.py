# SPDX-License-Identifier: Apache-2.0
"""Files that must not leave this machine: by their name, or by what is written in them."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from reward_kit.redaction import is_secret_name, looks_secret

__all__ = ["credential_in", "is_credential_file", "is_litter"]

_CREDENTIAL_FILES = (
    ".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdbx",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd",
    ".git-credentials", ".dockercfg", "auth.ini", "credentials", "credentials.*", "client_secret*.json",
    "service-account*.json", "service_account*.json", "application_default_credentials.json", "kubeconfig",
    "secrets.yaml", "secrets.yml", "secrets.json", "secrets.toml", "*.tfstate", "*.tfvars", "*.ovpn",
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

_STAND_IN = re.compile(r"^[<$\[{(*]|x{4,}|\.{3}|\b(?:your|example|changeme|placeholder|dummy)\b", re.IGNORECASE)
_STAND_IN_BEARER = re.compile(r"\b(?:Bearer|Basic|Token)\s+[^\s\d]+(?=\s|$)", re.IGNORECASE)
_STAND_IN_LOGIN = re.compile(r"//(?:user(?:name)?|me):(?:pass(?:word)?|secret|\*+)@")
_ASSIGNED = re.compile(
    r"""["']?(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,80})["']?\s*[:=]\s*["']?(?P<value>[^"'\s,;)]{12,})"""
)
_CODE = re.compile(r"[(\[{]|\.\w+\.")
_LARGEST_READ = 4 << 20


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


def credential_in(content: bytes) -> int | None:
    """The first line (from 1) that seems to hold a credential; None where there is none. The value is not told."""
    if b"\0" in content[:8192]:
        return None  # not text
    text = content[:_LARGEST_READ].decode(errors="replace")
    for number, line in enumerate(text.splitlines(), start=1):
        if _is_suspicious(line):
            return number
    return None


def _is_suspicious(line: str) -> bool:
    if looks_secret(_STAND_IN_BEARER.sub("", _STAND_IN_LOGIN.sub("//", line))):
        return True
    return any(
        is_secret_name(found["name"]) and _is_varied(found["value"]) and not _STAND_IN.search(found["value"])
        for found in _ASSIGNED.finditer(line)
    )


def _is_varied(value: str) -> bool:
    """Whether a value has digits as well as letters, as keys have, and no brackets, as code has."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and not _CODE.search(value)
