"""Telling a line of shell from a line of English, without running anything."""

from __future__ import annotations

import re

__all__ = ["reads_like_a_command", "reads_like_prose"]

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
    """.split()  # noqa: SIM905 - a word a line would take five pages
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
