# SPDX-License-Identifier: Apache-2.0
"""The system-call filter, carried out call by call as the kernel would, against the list it is made of."""

from __future__ import annotations

import errno
import struct

import pytest

from reward_kit.sandbox.linux import seccomp
from reward_kit.sandbox.linux.seccomp import compile_filter

ALLOWED = 0x7FFF_0000
MACHINES = {"x86_64": (0, 0xC000_003E), "aarch64": (1, 0xC000_00B7)}


def answer(program: bytes, number: int, *arguments: int, architecture: int) -> int:
    """What the filter says of a system call: 0 where it is allowed, else the error number."""
    given = struct.pack("=iIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    instructions = list(struct.iter_unpack("=HBBI", program))
    place = value = 0
    while True:
        code, if_so, if_not, operand = instructions[place]
        place += 1
        if code == 0x20:
            (value,) = struct.unpack_from("=I", given, operand)
        elif code == 0x06:
            return 0 if operand == ALLOWED else operand & 0xFFFF
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
            place += if_so if holds else if_not


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("for_programs", [False, True])
def test_every_call_is_answered_as_listed(machine: str, *, for_programs: bool) -> None:
    column, architecture = MACHINES[machine]
    program = compile_filter(machine, for_programs=for_programs)
    assert program is not None
    names = seccomp._REFUSED | (seccomp._REFUSED_TO_PROGRAMS if for_programs else {})
    refused = {pair[column] for pair in names.values()}
    for number in range(471):
        expected = errno.EPERM if number in refused else errno.ENOSYS if number in (435, 451) else 0
        family = [1] if number == seccomp._SOCKET[column] else []
        assert answer(program, number, *family, architecture=architecture) == expected, number
    for number in (471, 1000, 0x4000_0000, 0x4000_0027, 0xFFFF_FFFF - (1 << 32)):
        assert answer(program, number, architecture=architecture) == errno.ENOSYS, number


def test_calls_are_judged_by_what_they_are_given(machine: str) -> None:
    column, architecture = MACHINES[machine]
    program = compile_filter(machine)
    assert program is not None

    def told(pair: tuple[int, int], *arguments: int) -> int:
        return answer(program, pair[column], *arguments, architecture=architecture)

    assert told(seccomp._CLONE, 0x11) == told(seccomp._CLONE, 0x0100_0000) == 0
    for flag in (0x80, 0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000):
        assert told(seccomp._CLONE, 0x11 | flag) == errno.EPERM
    assert {family for family in range(64) if told(seccomp._SOCKET, family) == 0} == {1, 2, 10, 16}
    assert told(seccomp._SOCKET, 16, 3, 9) == errno.EPROTONOSUPPORT
    assert {protocol for protocol in range(32) if told(seccomp._SOCKET, 16, 3, protocol) == 0} == {*range(32)} - {9}
    assert told(seccomp._SOCKET, 1, 1, 9) == 0
    assert told(seccomp._PREADV2, 0, 0, 1, 0, 0, 0x1) == 0
    assert told(seccomp._PREADV2, 0, 0, 1, 0, 0, 0x8) == told(seccomp._PREADV2, 0, 0, 1, 0, 0, 0x9) == errno.EOPNOTSUPP
    assert told(seccomp._IOCTL, 0, 0x5401) == 0
    assert told(seccomp._IOCTL, 0, 0x5412) == told(seccomp._IOCTL, 0, 0x541C) == errno.EPERM
    assert told(seccomp._PERSONALITY, 0xFFFF_FFFF) == 0
    assert told(seccomp._PERSONALITY, 0x4_0000) == errno.EPERM


def test_another_architecture_has_no_calls_at_all(machine: str) -> None:
    program = compile_filter(machine)
    assert program is not None
    assert all(answer(program, number, architecture=0x4000_0003) == errno.ENOSYS for number in range(471))


def test_a_machine_it_is_not_written_for_has_none() -> None:
    assert compile_filter("riscv64") is None
