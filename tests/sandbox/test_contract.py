# SPDX-License-Identifier: Apache-2.0
"""The contract every sandbox keeps, whatever makes it. Each test runs over every backend that works here."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator

import pytest

from reward_kit.errors import SandboxError
from reward_kit.sandbox.contract import Limits, Sandbox, SandboxBackend, SandboxSpec
from tests.sandbox.every_backend import ISOLATING, NAMES, TELLING_SIGNALS, measures_of, opened
from tests.sandbox.waiting import enough_to_begin


@pytest.fixture(params=NAMES)
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[SandboxBackend]:
    async with opened(request.param) as backend:
        yield backend


@pytest.fixture
async def sandbox(backend: SandboxBackend) -> AsyncIterator[Sandbox]:
    async with await backend.open(SandboxSpec()) as sandbox:
        yield sandbox


@pytest.fixture(params=ISOLATING)
async def isolating(request: pytest.FixtureRequest) -> AsyncIterator[SandboxBackend]:
    async with opened(request.param) as backend:
        yield backend


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_command_says_what_it_did(sandbox: Sandbox) -> None:
    done = await sandbox.run("echo out; echo err >&2; exit_with() { return 3; }; exit_with")
    assert (done.exit_code, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert sorted(done.output.splitlines()) == ["err", "out"]
    assert not (done.ok or done.timed_out or done.truncated or done.exited or done.oom_killed)
    assert done.wall_seconds > 0


async def test_output_is_merged_as_it_is_written(sandbox: Sandbox) -> None:
    done = await sandbox.run("for i in 1 2 3; do echo $i; sleep 0.1; echo e$i >&2; sleep 0.1; done")
    assert done.output == "1\ne1\n2\ne2\n3\ne3\n"


async def test_a_standalone_command_says_what_it_did(sandbox: Sandbox) -> None:
    done = await sandbox.run_standalone("echo out; echo err >&2; exit 3")
    assert (done.exit_code, done.stdout, done.stderr, done.exited) == (3, "out\n", "err\n", False)


async def test_a_signal_is_told_from_an_exit_code(backend: SandboxBackend, sandbox: Sandbox) -> None:
    ended = await sandbox.run_standalone("kill -TERM $$")
    exited = await sandbox.run_standalone("exit 143")
    assert (ended.signal, ended.exit_code) == ((15, None) if backend.name in TELLING_SIGNALS else (None, 143))
    assert (exited.signal, exited.exit_code) == (None, 143)
    assert not (ended.ok or exited.ok)


async def test_what_is_measured_is_plausible(backend: SandboxBackend, sandbox: Sandbox) -> None:
    measures = measures_of(backend.name)
    done = await sandbox.run("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
    assert (done.cpu_seconds is not None, done.peak_memory_bytes is not None) == measures
    assert not measures.cpu or 0 < (done.cpu_seconds or 0) < 10
    assert not measures.peak or (done.peak_memory_bytes or 0) > 100_000


async def test_a_missing_program_is_a_value(sandbox: Sandbox) -> None:
    done = await sandbox.run("no-such-program")
    assert done.exit_code == 127
    assert "no-such-program" in done.stderr


async def test_a_syntax_error_is_a_value_and_the_shell_goes_on(sandbox: Sandbox) -> None:
    assert not (await sandbox.run("if then")).ok
    assert not (await sandbox.run("echo 'not closed")).ok
    assert (await sandbox.run("echo fine")).output == "fine\n"


# ── the persistent shell ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_shell_keeps_directory_variables_functions_and_status(sandbox: Sandbox) -> None:
    await sandbox.run("mkdir -p deep/er && cd deep/er; x=5; export y=6; declare -A m=([k]=v); f() { echo f$x; }")
    done = await sandbox.run('basename "$PWD"; f; echo $y ${m[k]}')
    assert done.output == "er\nf5\n6 v\n"
    assert (await sandbox.run("false")).exit_code == 1
    assert (await sandbox.run("echo $?")).output == "1\n"


async def test_many_lines_quotes_and_comments_are_one_command(sandbox: Sandbox) -> None:
    done = await sandbox.run(
        "# say it\nfor i in 1 2\ndo\n  echo \"it's $i\" # so\ndone\ncat <<'END'\n$x `y` \\z\nEND\n"
    )
    assert done.output == "it's 1\nit's 2\n$x `y` \\z\n"
    assert (await sandbox.run("# nothing")).exit_code == 0
    assert (await sandbox.run("")).exit_code == 0


async def test_what_a_command_does_to_its_descriptors_is_undone(sandbox: Sandbox) -> None:
    await sandbox.run("exec >/dev/null 2>&1 </dev/null")
    assert (await sandbox.run("echo heard")).output == "heard\n"
    await sandbox.run("exec 1>&- 2>&- 0<&-")
    assert (await sandbox.run("echo heard")).output == "heard\n"


async def test_an_exit_is_noticed_and_the_rest_of_the_sandbox_goes_on(sandbox: Sandbox) -> None:
    await sandbox.run("mkdir -p here && cd here")
    done = await sandbox.run("echo before; exit 7; echo after")
    assert (done.exited, done.exit_code, done.output) == (True, 7, "before\n")
    with pytest.raises(SandboxError, match="exited") as refused:
        await sandbox.run("true")
    assert not refused.value.retryable
    assert (await sandbox.run_standalone('basename "$PWD"')).output == "here\n"


async def test_a_shell_that_becomes_another_program_has_exited(sandbox: Sandbox) -> None:
    done = await sandbox.run("exec true")
    assert (done.exited, done.exit_code) == (True, 0)


async def test_a_long_command_arrives_whole(sandbox: Sandbox) -> None:
    text = "x" * 300_000
    assert (await sandbox.run(f"v={text}; echo ${{#v}}")).output == "300000\n"
    assert (await sandbox.run_standalone(f"v={text}; echo ${{#v}}")).output == "300000\n"


async def test_commands_asked_for_at_once_run_one_after_the_other(sandbox: Sandbox) -> None:
    await sandbox.run("n=0")
    await asyncio.gather(*(sandbox.run("m=$n; sleep 0.01; n=$((m+1))") for _ in range(5)))
    assert (await sandbox.run("echo $n")).output == "5\n"


# ── standalone ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_standalone_command_knows_nothing_of_the_shell_but_its_directory(sandbox: Sandbox) -> None:
    await sandbox.run(
        "mkdir -p there && cd there; x=1; export y=2; test() { return 0; }; export -f test; alias ls=true"
    )
    await sandbox.run("export BASH_ENV=$PWD/env; echo 'exit 0' > env; export PATH=/nowhere")
    done = await sandbox.run_standalone('basename "$PWD"; echo "[$x$y]"; test 1 = 2')
    assert (done.output, done.exit_code) == ("there\n[]\n", 1)


async def test_a_standalone_command_changes_nothing_in_the_shell(sandbox: Sandbox) -> None:
    await sandbox.run_standalone("cd /; x=1; echo kept > ~/kept")
    assert (await sandbox.run('echo "[$x]"; cat ~/kept')).output == "[]\nkept\n"


# ── input ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("data", [b"", b"two\nlines", bytes(range(256)) * 1000])
async def test_input_arrives_byte_by_byte(sandbox: Sandbox, data: bytes) -> None:
    total = str(len(data))
    assert (await sandbox.run("wc -c", stdin=data)).output.strip() == total
    assert (await sandbox.run_standalone("wc -c", stdin=data)).output.strip() == total


async def test_without_input_there_is_none(sandbox: Sandbox) -> None:
    assert (await sandbox.run("cat; read x || echo none")).output == "none\n"
    await sandbox.run("cat", stdin=b"secret")
    assert (await sandbox.run("cat")).output == ""
    assert (await sandbox.run_standalone("cat")).output == ""


# ── output ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_too_much_output_keeps_its_beginning_and_its_end(backend: SandboxBackend) -> None:
    async with await backend.open(SandboxSpec(limits=Limits(output_bytes=2000))) as sandbox:
        done = await sandbox.run("echo begin; seq 100000; echo end")
        assert done.truncated
        assert done.stdout.startswith("begin\n1\n")
        assert done.stdout.endswith("100000\nend\n")
        assert len(done.stdout) < 5000
        assert not (await sandbox.run("echo short")).truncated


async def test_strange_bytes_are_kept_or_replaced(sandbox: Sandbox) -> None:
    done = await sandbox.run(r"printf 'a\000b\033[31mc\377\xfe\n'; printf 'é\n'")
    assert done.stdout.startswith("a")
    assert "b\x1b[31mc" in done.stdout
    assert done.stdout.endswith("é\n")
    assert (await sandbox.run("echo next")).output == "next\n"


async def test_a_background_job_does_not_hold_a_command_up(sandbox: Sandbox) -> None:
    done = await sandbox.run("sleep 60 & echo started", timeout=20)
    assert (done.output, done.timed_out) == ("started\n", False)
    done = await sandbox.run_standalone("sleep 60 & echo started", timeout=20)
    assert (done.output, done.timed_out) == ("started\n", False)
    assert (await sandbox.run("echo next")).output == "next\n"


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "command", ["$nap; echo seen", "while :; do :; done", "cat <($nap) | cat; echo seen", "($nap); echo seen"]
)
async def test_a_command_past_its_time_is_ended_with_all_it_started(sandbox: Sandbox, command: str) -> None:
    nap = f"sleep {random.randint(1000, 10**9)}"
    done = await sandbox.run(f"nap='{nap}'; echo begun; {command}", timeout=await enough_to_begin(sandbox))
    assert done.timed_out
    assert done.exit_code is None
    assert done.stdout == "begun\n"
    look = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null"
    assert nap not in [line.strip() for line in (await sandbox.run_standalone(look)).stdout.splitlines()]
    if not done.exited:
        assert (await sandbox.run("echo alive")).output == "alive\n"


async def test_a_standalone_command_past_its_time_is_ended(sandbox: Sandbox) -> None:
    done = await sandbox.run_standalone("echo begun; sleep 600; echo seen", timeout=await enough_to_begin(sandbox))
    assert (done.timed_out, done.exit_code, done.stdout) == (True, None, "begun\n")
    assert (await sandbox.run("echo alive")).output == "alive\n"


async def test_the_limits_time_holds_where_a_call_names_none(backend: SandboxBackend) -> None:
    async with await backend.open(SandboxSpec(limits=Limits(timeout=0.5))) as sandbox:
        assert (await sandbox.run("sleep 60")).timed_out
        assert (await sandbox.run_standalone("sleep 60")).timed_out


@pytest.mark.parametrize("standalone", [False, True])
async def test_a_call_that_is_given_up_does_not_keep_the_sandbox_from_closing(
    backend: SandboxBackend, standalone: bool
) -> None:
    sandbox = await backend.open(SandboxSpec())
    call = sandbox.run_standalone if standalone else sandbox.run
    task = asyncio.create_task(call("sleep 60"))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(60):
        await sandbox.close()


# ── opening ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_setup_runs_in_the_sandboxs_own_shell(backend: SandboxBackend) -> None:
    spec = SandboxSpec(setup=("mkdir -p made", "cd made", "x=1", "echo hi > file"))
    async with await backend.open(spec) as sandbox:
        assert (await sandbox.run('basename "$PWD"; cat file; echo $x')).output == "made\nhi\n1\n"
        assert (await sandbox.run_standalone("cat file")).output == "hi\n"


async def test_a_setup_that_fails_is_an_error_that_says_which(backend: SandboxBackend) -> None:
    with pytest.raises(SandboxError, match="no-such-thing") as failed:
        await backend.open(SandboxSpec(setup=("true", "no-such-thing", "touch after")))
    assert not failed.value.retryable


async def test_a_setup_joined_by_semicolons_goes_on(backend: SandboxBackend) -> None:
    spec = SandboxSpec(setup=("false", "no-such-thing", "echo here > after"), setup_join=";")
    async with await backend.open(spec) as sandbox:
        assert (await sandbox.run("cat after")).output == "here\n"


async def test_files_environment_and_directory_are_as_asked(backend: SandboxBackend) -> None:
    async with await backend.open(SandboxSpec()) as sandbox:
        home = (await sandbox.run("pwd")).output.strip()
    spec = SandboxSpec(
        files={"a/b.bin": bytes(range(256)), "run.sh": b"echo $GREETING"},
        environment={"GREETING": "it's me"},
        setup=("bash run.sh > said",),
        workdir=None if home.startswith("/tmp") else f"{home}/in/here",
    )
    async with await backend.open(spec) as sandbox:
        assert await sandbox.read("a/b.bin") == bytes(range(256))
        assert await sandbox.read("said") == b"it's me\n"
        assert (await sandbox.run_standalone("echo $GREETING")).output == "it's me\n"


async def test_nothing_of_the_hosts_environment_is_seen(
    backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-host")
    async with await backend.open(SandboxSpec()) as sandbox:
        for call in (sandbox.run, sandbox.run_standalone):
            assert "sk-secret-of-the-host" not in (await call("env; set; cat /proc/self/environ")).output


async def test_two_sandboxes_share_nothing(isolating: SandboxBackend) -> None:
    async with await isolating.open(SandboxSpec()) as one, await isolating.open(SandboxSpec()) as other:
        await one.run("echo mine > ~/f; echo mine > /tmp/f; echo mine > /usr/f; x=1")
        assert (await other.run('cat ~/f /tmp/f /usr/f; echo "[$x]"')).stdout == "[]\n"


async def test_many_are_open_at_once(backend: SandboxBackend) -> None:
    async def one(number: int) -> str:
        async with await backend.open(SandboxSpec(setup=(f"n={number}",))) as sandbox:
            return (await sandbox.run("echo $n")).output.strip()

    assert await asyncio.gather(*map(one, range(8))) == [str(number) for number in range(8)]


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [0, 1, 100_000, 3_000_000])
async def test_files_come_back_as_they_were_written(sandbox: Sandbox, size: int) -> None:
    content = os.urandom(size)
    await sandbox.write("some dir/it's.bin", content)
    assert await sandbox.read("some dir/it's.bin") == content
    assert (await sandbox.run('cat "some dir/it\'s.bin" | wc -c')).output.strip() == str(size)


async def test_a_file_is_replaced_whole(sandbox: Sandbox) -> None:
    await sandbox.write("f", b"a longer text")
    await sandbox.write("f", b"short")
    assert await sandbox.read("f") == b"short"


async def test_what_is_no_file_is_an_error_of_the_operating_system(sandbox: Sandbox) -> None:
    with pytest.raises(FileNotFoundError):
        await sandbox.read("missing")
    await sandbox.run("mkdir d; mkfifo p")
    with pytest.raises(IsADirectoryError):
        await sandbox.read("d")
    for call in (sandbox.read("p"), sandbox.write("p", b"x"), sandbox.write("d", b"x")):
        with pytest.raises(OSError):
            async with asyncio.timeout(60):
                await call


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_too_much_memory_is_told(isolating: SandboxBackend) -> None:
    async with await isolating.open(SandboxSpec(limits=Limits(memory_mb=64))) as sandbox:
        done = await sandbox.run_standalone("x=$(head -c 200M /dev/zero | tr '\\0' x); echo ${#x}")
        assert not done.ok
        assert done.oom_killed
        assert (await sandbox.run_standalone("echo fine")).output == "fine\n"


async def test_a_file_has_its_largest_size(backend: SandboxBackend) -> None:
    async with await backend.open(SandboxSpec(limits=Limits(file_size_mb=1))) as sandbox:
        assert not (await sandbox.run_standalone("head -c 3M /dev/zero > big")).ok
        assert int((await sandbox.run_standalone("stat -c %s big")).output) <= 1 << 20


# ── closing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_closed_sandbox_refuses_everything_and_may_be_closed_again(backend: SandboxBackend) -> None:
    sandbox = await backend.open(SandboxSpec())
    await sandbox.close()
    await sandbox.close()
    with pytest.raises(SandboxError):
        await sandbox.run("true")
    with pytest.raises(SandboxError):
        await sandbox.run_standalone("true")
    with pytest.raises(SandboxError):
        await sandbox.read("/etc/passwd")


async def test_a_backend_that_closes_closes_its_sandboxes_and_can_be_used_again(backend: SandboxBackend) -> None:
    sandbox = await backend.open(SandboxSpec())
    await sandbox.run("sleep 62 &")
    await backend.close()
    with pytest.raises(SandboxError):
        await sandbox.run("true")


async def test_the_self_test_says_what_it_found(backend: SandboxBackend) -> None:
    probe = await backend.probe()
    assert probe.works
    assert probe.detail
