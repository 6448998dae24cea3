"""The shell of a sandbox: the loop that a persistent bash runs, and the messages it understands.

    backend ──▶ 250:  nonce ␀ (input command ␀ nonce ␀)*          input is the number of the descriptor to read from
    shell   ──▶ 251:  (nonce status directory ␀)*                 once at the start, then after every command

A command is evaluated in the shell itself, so what it does there lasts. None of these descriptors is open in what it
starts, and the nonce that ends it is read only after it has ended: nothing that is printed can be taken for an end or a
status. What a command does to its standard descriptors is undone after it.

bash keeps a descriptor that is redirected for a while aside, from 10 upwards and closed to children. The loop here runs
with 249 to 254 redirected, and uses them there: as 10 to 15. So nothing has to be closed for each command.

On signal 62 the shell gives up its command: `continue` leaves whatever loops the command is in and returns to the loop
here. Out of a function there is no such way, so there the shell ends itself.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["DRIVER", "NO_INPUT", "PLACES", "STDIN", "Report", "message", "parse_reports"]

PLACES: Final = (0, 1, 2, 249, 250, 251, 252, 253, 254)
"""Where a session's descriptors come: three that go nowhere, no input, messages, reports, input, output, errors."""
NO_INPUT: Final = 10
"""Always at its end."""
STDIN: Final = 13
"""What a command is given to read."""

# All on one line: bash counts the lines of a command from the line of its `eval`.
DRIVER: Final = """
__rk_set() { return "$1"; };
__rk_s=0;
shopt -s execfail;
trap '[[ ${__rk_b-} ]] && { [[ ${FUNCNAME-} ]] && kill -KILL $$; continue 99; }' 62;
{ while
__rk_b= __rk_o=${REPLY-};
builtin read -r -d '' -u 11 &&
builtin printf '%s %s %s\\0' "$REPLY" "$__rk_s" "$PWD" >&12 &&
builtin read -r -d '' -u 11;
do
__rk_c=${REPLY:2} __rk_i=${REPLY::2} REPLY=$__rk_o __rk_p=$__rk_s __rk_s=143 __rk_b=1;
for __rk_1 in 1; do
__rk_set "$__rk_p";
eval "$__rk_c" <&"$__rk_i" >&14 2>&15;
done;
__rk_s=$?;
done; } 249<&- 250<&- 251>&- 252<&- 253>&- 254>&-
""".strip().replace("\n", " ")
"""What a session's bash runs. A command's `break` and `continue` end at the loop of one turn around it."""


class Report(NamedTuple):
    """What the shell said after a command."""

    nonce: bytes
    status: int
    directory: str


def message(command: bytes, place: int, nonce: bytes) -> bytes:
    """What is sent to have a command run. It holds no NUL."""
    return b"%d%b\0%b\0" % (place, command, nonce)


def parse_reports(data: bytearray) -> list[Report]:
    """Take the complete reports out of `data`. What is no report, because a command found the way, is passed over."""
    reports = []
    while (end := data.find(0)) >= 0:
        parts = bytes(data[:end]).split(b" ", 2)
        del data[: end + 1]
        if len(parts) == 3 and parts[1].isdigit():  # noqa: PLR2004
            reports.append(Report(parts[0], int(parts[1]), parts[2].decode(errors="surrogateescape")))
    return reports
