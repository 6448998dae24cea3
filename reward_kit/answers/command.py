# SPDX-License-Identifier: Apache-2.0
"""The command in a model's answer: from JSON, a fenced block, a tag or plain text, with reasoning removed.

    answer → without reasoning → JSON → <command> → fenced block → inline code → lines that read like a command → None

The first that yields a command wins. Text that only talks about a command yields none: prose is never run.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from reward_kit.answers.reasoning import without_reasoning

__all__ = ["extract_command", "reads_like_a_command", "reads_like_prose"]

_LONGEST = 1 << 16
"""What is looked at of an answer, from its end: no command is longer."""
_MOST_LINES = 200
"""Lines that a command in plain text may have."""
_TRIES = 64
"""Places where JSON may begin that are looked at, from the end: work stays in proportion to the answer."""

_SPECIAL_TOKEN = re.compile(r"<\|[^<>|\s]{1,40}\|>")

_COMMAND_KEYS = ("command", "cmd", "shell_command", "bash_command", "bash", "shell")
_KEY = re.compile(rf"""(["'])({"|".join(_COMMAND_KEYS)}|commands)\1\s*:\s*(["'])""", re.IGNORECASE)
_ENDINGS = {quote: re.compile(rf"(?<!\\){quote}(?=\s{{0,99}}(?:\}}|,\s{{0,99}}[\"'}}]))") for quote in "\"'"}
"""The closing quote of a string: the first one that the object goes on or ends after."""
_TAG = re.compile(r"<(command|cmd|bash|shell|answer|code)>", re.IGNORECASE)
_FENCE = re.compile(
    r"^[ \t]*(?P<mark>`{3,9}|~{3,9})[ \t]*(?P<label>[\w+#.-]*)[^\n`]*\n"
    r"(?P<code>.*?)(?:^[ \t]*(?P=mark)`*[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_ONE_LINE_FENCE = re.compile(r"(?<!`)```(?!`)(?:(?P<label>bash|sh|shell|zsh|console)[ \t]+)?(?P<code>[^`\n]+)```")
_SHELLS = frozenset(
    {"bash", "sh", "shell", "zsh", "ksh", "dash", "console", "terminal", "shell-session", "shellscript"}
)
_INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)(?P<code>[^\n]+?)(?<!`)\1(?!`)")
_PROMPT = re.compile(r"^[ \t]*(?:\$|%|\u276f|(?:\([\w.-]+\)[ \t]*)?[\w.-]+@[\w.-]+:?[^\s$#]*[ \t]?[$#])[ \t]+(?=\S)")
_CONTINUED = re.compile(r"^[ \t]*>[ \t]?")
_LABEL = re.compile(
    r"^[\s*_#>-]*(?:the[ \t]+)?(?:final[ \t]+)?(?:answer|(?:(?:bash|shell)[ \t]+)?command|bash|shell|solution)[*_]*"
    r"[ \t]*:[*_]*[ \t]*",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"[\[<{]?\s*(?:your|the|insert|put)?[ _]?(?:shell[ _])?command[ _]?(?:goes)?[ _]?(?:here)?\s*[\]>}]?|\.{2,}|…"
)


def extract_command(answer: str) -> str | None:
    """The command that `answer` gives, or None where it gives none."""
    whole = _from_whole_json(answer)  # before anything is removed: a command may mention a tag
    if whole is not None:
        return whole
    text = _SPECIAL_TOKEN.sub("", without_reasoning(answer)[-_LONGEST:]).strip()
    ways = (_from_json, _from_tags, _from_fences, _from_inline_code, _from_lines)
    found = (candidate for way in ways for candidate in way(text))
    return next((command for command in map(_clean, found) if command is not None), None)


def _clean(command: str) -> str | None:
    command = command.replace("\r\n", "\n").replace("\0", "").strip()
    if not command or _PLACEHOLDER.fullmatch(command.lower()):
        return None
    lines = command.splitlines()
    return None if all(not line.strip() or line.lstrip().startswith("#") for line in lines) else command


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _from_whole_json(answer: str) -> str | None:
    try:
        value = json.loads(answer, strict=False)
    except (ValueError, RecursionError):
        return None
    command = _command_in(value)
    return None if command is None else _clean(command)


def _from_json(text: str) -> Iterator[str]:
    """Commands in JSON objects, the last first: what comes before is a draft, or the form that was asked for."""
    found = [*_decoded(text)]
    if not found:
        found = [*_mended(text)]
    return reversed(found)


def _decoded(text: str) -> Iterator[str]:
    decoder = json.JSONDecoder(strict=False)
    end = 0
    for start in [match.start() for match in re.finditer(r"\{", text)][-_TRIES:]:
        if start < end:
            continue  # inside the one before
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        command = _command_in(value)
        if command is not None:
            yield command


def _command_in(value: Any) -> str | None:
    """The command an object holds under one of its usual names, also one level down (`{"arguments": {…}}`)."""
    if not isinstance(value, dict):
        return None
    for key in _COMMAND_KEYS:
        command = _as_command(value.get(key))
        if command is not None:
            return command
    several = value.get("commands")
    if isinstance(several, list) and several and all(isinstance(item, str) for item in several):
        return "\n".join(several)
    inner = (_command_in(_parsed(value.get(key))) for key in ("arguments", "parameters", "input", "answer"))
    return next((command for command in inner if command is not None), None)


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, strict=False)
    except ValueError:
        return None


def _as_command(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        return None
    shell, *rest = value
    if shell.rpartition("/")[2] in _SHELLS and len(rest) == 2 and re.fullmatch(r"-\w*c", rest[0]):  # noqa: PLR2004
        return str(rest[1])
    several = any(" " in item for item in value)
    return "\n".join(value) if several else shlex.join(value)


def _mended(text: str) -> Iterator[str]:
    """Commands in what is nearly JSON: wrong escapes, quotes that were not escaped, Python's quotes."""
    for match in [*_KEY.finditer(text)][-_TRIES:]:
        quote = match[3]
        end = _ENDINGS[quote].search(text, match.end())
        if end is not None:
            yield _unescaped(text[match.end() : end.start()], quote)


def _unescaped(body: str, quote: str) -> str:
    if quote == "'":
        try:
            return str(ast.literal_eval(f"'{body}'"))
        except (SyntaxError, ValueError):
            return body
    valid = re.sub(r'\\(?!["\\/bfnrtu])', r"\\\\", body)
    try:
        return str(json.loads(f'"{valid}"', strict=False))
    except ValueError:
        pass
    try:
        return str(json.loads('"{}"'.format(re.sub(r'(?<!\\)"', r"\"", valid)), strict=False))
    except ValueError:
        return body


# ── tags and fences ──────────────────────────────────────────────────────────────────────────────────────────────────


def _from_tags(text: str) -> Iterator[str]:
    for match in [*_TAG.finditer(text)][: -_TRIES - 1 : -1]:
        name = match[1].lower()
        inside, closed, _ = text[match.end() :].partition(f"</{match[1]}>")
        if not closed:
            continue
        nested = [*_from_fences(inside), *_from_inline_code(inside)]
        yield from nested
        if not nested and (name not in {"answer", "code"} or reads_like_a_command(_unprompted(inside.strip()))):
            yield _unprompted(inside)


def _from_fences(text: str) -> Iterator[str]:
    """Fenced blocks: those called shell, then those called nothing. Further blocks are alternatives or output."""
    blocks = [(match["label"].lower(), match["code"]) for match in _FENCE.finditer(text)]
    if not blocks:
        blocks = [((match["label"] or "").lower(), match["code"]) for match in _ONE_LINE_FENCE.finditer(text)]
    yield from (_unprompted(code) for label, code in blocks if label in _SHELLS)
    yield from (_unprompted(code) for label, code in blocks if not label and not reads_like_prose(code))


def _unprompted(code: str) -> str:
    """A block without its prompts. Where there are prompts, lines without one are what the commands printed."""
    lines = code.strip("\n").splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    if not _PROMPT.match(first):
        return code
    kept: list[str] = []
    going_on = False
    for line in lines:
        prompt = _PROMPT.match(line)
        if prompt:
            kept.append(line[prompt.end() :])
        elif going_on:
            kept.append(_CONTINUED.sub("", line))
        else:
            continue
        going_on = kept[-1].rstrip().endswith(("\\", "|", "&&", "||", "do", "then", "{"))
    return "\n".join(kept)


# ── plain text ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _from_inline_code(text: str) -> Iterator[str]:
    """Inline code that reads like a command, the longest first: shorter ones name a tool or a file."""
    if _PROMPT.match(text) or (reads_like_a_command(text) and "\n" not in text and not text.startswith("`")):
        return iter(())  # backticks of the shell itself
    spans = [_unprompted(match["code"].strip()) for match in _INLINE.finditer(text)]
    only = len(spans) == 1 and spans[0] == text.strip("` \n")
    return iter(sorted((s for s in spans if only or _is_whole_command(s)), key=len, reverse=True))


def _is_whole_command(span: str) -> bool:
    return reads_like_a_command(span) and (" " in span or span in {"ls", "pwd", "whoami", "date", "env", "history"})


def _from_lines(text: str) -> Iterator[str]:
    """The first stretch of lines that reads like a command, with prose before and after left out."""
    lines = [_LABEL.sub("", line) for line in text.splitlines()]
    if any(_PROMPT.match(line) for line in lines):
        yield _unprompted("\n".join(lines))
        return
    for start, line in enumerate(lines):
        if reads_like_a_command(line.strip()):
            yield "\n".join(_stretch(lines[start : start + _MOST_LINES])).strip()
            return


def _stretch(lines: Iterable[str]) -> Iterator[str]:
    """Lines up to a blank one or to prose, unless a here-document, a loop or a quote is still open."""
    so_far: list[str] = []
    for line in lines:
        if so_far and not _is_open("\n".join(so_far)) and (not line.strip() or reads_like_prose(line)):
            return
        so_far.append(line)
        yield line


def _is_open(script: str) -> bool:
    last = script.rstrip().rpartition("\n")[2]
    if last.endswith(("\\", "|", "&&", "||")):
        return True
    if document := re.search(r"<<-?\s*(['\"]?)(\w+)\1", script):
        return not re.search(rf"^\s*{re.escape(document[2])}\s*$", script, re.MULTILINE)
    words = re.findall(r"(?:^|[;\n&|]\s*|\b(?:do|then|else)\s+)\s*(for|while|until|if|case|done|fi|esac)\b", script)
    opened = sum(word in {"for", "while", "until", "if", "case"} for word in words)
    if opened > len(words) - opened:
        return True
    return script.count("'") % 2 == 1 or script.count('"') % 2 == 1


# ── commands and prose ───────────────────────────────────────────────────────────────────────────────────────────────


_TOOLS = frozenset(
    """
    alias apt apt-get awk base64 basename bash bc brew bunzip2 bzip2 cal cargo cat cd chgrp chmod chown cksum clear cmp
    column comm cp crontab csplit curl cut date dd declare df diff dig dirname dmesg docker dos2unix du echo ed egrep
    env eval exec exit expand expr export fallocate false fgrep file find fmt fold free gawk gcc getent getfacl git go
    gpg grep groupadd groups gunzip gzip head hexdump hostname hostnamectl iconv id ifconfig install ip jobs join
    journalctl jq kill killall kubectl last less ln local locate logger ls lsblk lscpu lsof ls make man md5sum mkdir
    mkfifo mknod mktemp mount mv nano nc netstat nice nl node nohup npm nproc numfmt od openssl parallel passwd paste
    patch perl pgrep php ping pip pip3 pkill pr printenv printf ps pushd popd pwd python python3 read readlink realpath
    rename rev rm rmdir rsync ruby scp sed seq service set setfacl sh sha1sum sha256sum sha512sum shasum shift shred
    shuf sleep sort source split ss ssh stat strings stty su sudo sum sync systemctl tac tail tar tee test time timeout
    touch tr trap tree true truncate tsort type ulimit umask umount unalias uname unexpand uniq unix2dos unlink unset
    unxz unzip uptime useradd userdel usermod vi vim wait watch wc wget which whoami xargs xxd xz yes yum zcat zgrep
    zip zsh
    """.split()  # noqa: SIM905 - one word per line would take five pages
)
"""What a command usually begins with."""

_STARTS = ("[ ", "[[ ", "(", "{ ", "! ", "for ", "while ", "until ", "if ", "case ", "./", "/", "~/", ": >", "> ", "#!")
_ASSIGNMENTS = re.compile(r"^(?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|\$\([^)]*\)|\S*)\s*;?\s*)+")
_OPERATED = re.compile(r"(?:^|\s)-{1,2}[A-Za-z]|[|<>$]|&&|\|\|")
_FIRST_WORD = re.compile(r"[a-z0-9_][\w.+-]*")
_SHELLISH = re.compile(r"(?:^|\s)-{1,2}[A-Za-z]|[|<>$*]|&&|\|\||(?:^|\s)\.{0,2}/\S|(?:^|\s)~/")
_WORD = re.compile(r"[(\"'“\u2018]?[A-Za-z]+(?:[’'-][A-Za-z]+)*[,;.!?:)\"'”’]*")
_SENTENCE_ENDS = (".", "!", "?", ":", "…")
_FEW = 4
"""Fewer words than this make no sentence."""
_MOSTLY = 0.75


def reads_like_prose(text: str) -> bool:
    """Whether the text, or its first line, is a sentence rather than a command."""
    line = text.strip().partition("\n")[0]
    words = line.split()
    if len(words) < _FEW:
        return line.endswith((":", "!", "?")) and line[:1].isupper()
    plain = sum(_WORD.fullmatch(word) is not None for word in words) / len(words)
    capital = line[0].isupper() and words[0].rstrip(",.:;!?’'").isalpha()
    if capital and (plain >= _MOSTLY or line.endswith(_SENTENCE_ENDS)):
        return True
    return plain == 1.0 and (line.endswith(_SENTENCE_ENDS) or words[0] not in _TOOLS)


def reads_like_a_command(text: str) -> bool:
    """Whether the first line of the text begins as a command does, and the text is no sentence."""
    line = text.strip().partition("\n")[0]
    if not line or reads_like_prose(line):
        return False
    rest = _ASSIGNMENTS.sub("", line)
    if not rest or line.startswith(_STARTS):
        return bool(rest != line or not line.startswith(("(", "/")) or _SHELLISH.search(line))
    first = rest.split()[0].rstrip(";")
    if first in _TOOLS:
        return True
    return bool(_FIRST_WORD.fullmatch(first) and _OPERATED.search(rest[len(first) :]) and not line.endswith("."))
