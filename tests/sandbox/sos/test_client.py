# SPDX-License-Identifier: Apache-2.0
"""The backend `sos` keeps the contract, makes up for what the original server lacks, and fails as it should."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from aiohttp import web

from reward_kit.errors import AuthError, SandboxError
from reward_kit.sandbox.contract import Limits, Sandbox, SandboxBackend, SandboxSpec
from reward_kit.sandbox.sos import client as sos_client
from reward_kit.sandbox.sos import original as sos_original
from reward_kit.sandbox.sos.client import SosBackend
from reward_kit.sandbox.sos.protocol import DEFAULT_IMAGE
from reward_kit.sandbox.sos.server import serving
from tests.sandbox.sos.servers import TOKEN, Counting, namespaces, original, served, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

Dialect = str
BOTH = pytest.mark.parametrize("dialect", ["ours", "original"])


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def real() -> AsyncIterator[SandboxBackend]:
    async with namespaces() as backend:
        yield backend


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def urls(real: SandboxBackend) -> AsyncIterator[dict[Dialect, str]]:
    async with served(Counting(real), max_sandboxes=100) as caller, original(caller) as old:
        yield {"ours": caller.url, "original": old}


@asynccontextmanager
async def client(url: str, **options: object) -> AsyncIterator[SosBackend]:
    backend = SosBackend(url, token=TOKEN, **options)  # type: ignore[arg-type]
    async with closed_after(backend):
        yield backend


@asynccontextmanager
async def closed_after(backend: SosBackend) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await backend.close()


@asynccontextmanager
async def opened(url: str, spec: SandboxSpec | None = None) -> AsyncIterator[Sandbox]:
    async with client(url, image="any") as backend, await backend.open(spec or SandboxSpec()) as sandbox:
        yield sandbox


async def test_where_no_image_is_named_the_original_is_asked_for_the_documented_one_and_ours_for_its_own(
    real: SandboxBackend,
) -> None:
    """A server of ours has a default, and here serves no image by name; the original has none."""
    async with served(real, images={}) as ours, client(ours.url) as backend:
        assert (await backend.probe()).works
        async with client(ours.url, image=DEFAULT_IMAGE) as naming:
            assert "is not served here" in (await naming.probe()).detail
    documented = "deathbyknowledge/shellm-sandbox:latest"
    async with served(real, images={documented: ""}) as behind, original(behind) as url, client(url) as backend:
        assert (await backend.probe()).works


# ── the contract, in both dialects ───────────────────────────────────────────────────────────────────────────────────


@BOTH
async def test_it_works_when_it_works(urls: dict[Dialect, str], dialect: Dialect) -> None:
    async with client(urls[dialect], image="any") as backend:
        assert (await backend.probe()).works


@BOTH
async def test_what_the_setup_does_to_the_shell_lasts(urls: dict[Dialect, str], dialect: Dialect) -> None:
    spec = SandboxSpec(
        setup=("mkdir 'a b'", "cd 'a b'", "export LEFT=behind", "greet() { echo hello; }", "cat ../given > taken"),
        files={"given": b"from outside\n"},
        environment={"SAID": "it's $HOME\n!"},
        workdir="/srv/place",
    )
    async with opened(urls[dialect], spec) as sandbox:
        said = await sandbox.run('pwd; echo $LEFT; greet; cat taken; printf %s "$SAID"')
        assert said.output.rstrip() == "/srv/place/a b\nbehind\nhello\nfrom outside\nit's $HOME\n!"


@BOTH
async def test_a_standalone_command_runs_where_the_shell_is_and_knows_nothing_else_of_it(
    urls: dict[Dialect, str], dialect: Dialect
) -> None:
    async with opened(urls[dialect]) as sandbox:
        await sandbox.run("mkdir -p /tmp/deep; cd /tmp/deep; X=1; test() { return 0; }; pwd() { echo /; }; cd() { :; }")
        alone = await sandbox.run_standalone("pwd; echo [$X]; test -e nothing")
        assert (alone.output, alone.exit_code) == ("/tmp/deep\n[]\n", 1)


@BOTH
async def test_the_last_status_is_kept_between_commands(urls: dict[Dialect, str], dialect: Dialect) -> None:
    async with opened(urls[dialect]) as sandbox:
        assert (await sandbox.run("(exit 42)")).exit_code == 42
        assert (await sandbox.run("echo $?")).output.strip() == "42"


@BOTH
async def test_a_setup_that_fails_is_no_answer_of_a_model(urls: dict[Dialect, str], dialect: Dialect) -> None:
    async with client(urls[dialect], image="any") as backend:
        with pytest.raises(SandboxError, match="/nowhere") as failure:
            await backend.open(SandboxSpec(setup=("ls /nowhere", "touch never")))
        assert not failure.value.retryable
        async with await backend.open(SandboxSpec(setup=("ls /nowhere", "echo on > on"), setup_join=";")) as sandbox:
            assert (await sandbox.run("cat on")).output.strip() == "on"


@BOTH
async def test_input_is_read_and_otherwise_empty(urls: dict[Dialect, str], dialect: Dialect) -> None:
    async with opened(urls[dialect]) as sandbox:
        for run in (sandbox.run, sandbox.run_standalone):
            assert (await run("od -An -tx1", stdin=b"a\0\xff\n")).output.split() == ["61", "00", "ff", "0a"]
            assert (await run("cat")).output == ""


@BOTH
async def test_a_standalone_command_over_its_time_is_ended(urls: dict[Dialect, str], dialect: Dialect) -> None:
    async with opened(urls[dialect]) as sandbox:
        late = await sandbox.run_standalone("sleep 60", timeout=0.5)
        assert late.timed_out and late.exit_code is None
        assert (await sandbox.run("echo on")).output.strip() == "on"
        quick = await sandbox.run_standalone("exit 124", timeout=30)
        assert (quick.exit_code, quick.timed_out) == (124, False)


@BOTH
async def test_exit_is_noticed(urls: dict[Dialect, str], dialect: Dialect) -> None:
    async with opened(urls[dialect]) as sandbox:
        assert (await sandbox.run("echo bye; exit 3")).exited
        with pytest.raises(SandboxError):
            await sandbox.run("true")
        assert (await sandbox.run_standalone("echo still")).output == "still\n"


@pytest.mark.parametrize("size", [0, 1, 48 << 10, 384 << 10, 1_000_000])
@BOTH
async def test_files_come_back_as_they_went(urls: dict[Dialect, str], dialect: Dialect, size: int) -> None:
    content = bytes(i * 31 % 251 for i in range(size))
    async with opened(urls[dialect], SandboxSpec(workdir="/srv/w")) as sandbox:
        await sandbox.run("cd /")
        await sandbox.write("it's a/new \\ file", content)
        assert await sandbox.read("/srv/w/it's a/new \\ file") == content
        await sandbox.write("it's a/new \\ file", b"less")
        assert await sandbox.read("it's a/new \\ file") == b"less"


async def test_a_small_output_limit_does_not_cut_files(urls: dict[Dialect, str]) -> None:
    async with opened(urls["ours"], SandboxSpec(limits=Limits(output_bytes=1000))) as sandbox:
        await sandbox.write("/tmp/f", b"x" * 5000)
        assert await sandbox.read("/tmp/f") == b"x" * 5000


@BOTH
async def test_what_is_no_file_is_an_os_error(urls: dict[Dialect, str], dialect: Dialect) -> None:
    async with opened(urls[dialect]) as sandbox:
        with pytest.raises(FileNotFoundError):
            await sandbox.read("/nothing")
        with pytest.raises(IsADirectoryError):
            await sandbox.read("/tmp")
        with pytest.raises(IsADirectoryError):
            await sandbox.write("/tmp", b"")
        await sandbox.run("mkfifo /tmp/pipe")
        with pytest.raises(OSError) as refused:
            await sandbox.read("/tmp/pipe")
        assert refused.value.errno == errno.EINVAL


async def test_a_server_of_ours_tells_all_it_knows(urls: dict[Dialect, str]) -> None:
    async with opened(urls["ours"], SandboxSpec(limits=Limits(output_bytes=100, memory_mb=64))) as sandbox:
        both = await sandbox.run("echo out; echo err >&2")
        assert (both.stdout, both.stderr) == ("out\n", "err\n")
        assert (await sandbox.run("seq 1000")).truncated
        assert (await sandbox.run("exit 9")).exit_code == 9
        killed = await sandbox.run_standalone("kill -9 $$")
        assert (killed.exit_code, killed.signal) == (None, 9)
        big = await sandbox.run_standalone("head -c 300M /dev/zero | tail | wc -c")
        assert big.oom_killed and big.wall_seconds > 0


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def scripted(**answers: Answer) -> AsyncIterator[str]:
    """A server that creates, starts and stops as it should, except where `answers` say otherwise."""

    async def answer(request: web.Request) -> web.StreamResponse:
        kind = request.path.rpartition("/")[2]
        if kind in answers:
            return await answers[kind](request)
        return web.json_response({"id": "one", "contract": True}) if kind == "sandboxes" else web.Response()

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def says(status: int, text: str = "") -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text)

    return answer


async def hangs(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60)
    return web.Response()


async def breaks_off(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


@pytest.mark.parametrize("status", [404, 500, 502, 503, 504])
@pytest.mark.parametrize("step", ["sandboxes", "start", "exec"])
async def test_a_server_in_trouble_is_worth_another_try(step: str, status: int) -> None:
    async with scripted(**{step: says(status, "trouble")}) as url:
        with pytest.raises(SandboxError, match=f"{status}.*trouble") as failure:
            async with opened(url) as sandbox:
                await sandbox.run("true")
        assert failure.value.retryable


@pytest.mark.parametrize("misbehave", [breaks_off, says(200, "<html>"), says(200, "{}")])
async def test_an_answer_that_is_none_is_worth_another_try(misbehave: Answer) -> None:
    async with scripted(exec=misbehave) as url, opened(url) as sandbox:
        with pytest.raises(SandboxError) as failure:
            await sandbox.run("true")
        assert failure.value.retryable


async def test_a_server_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sos_client, "_CALL_SECONDS", 0.2)
    monkeypatch.setattr(sos_client, "_GRACE_SECONDS", 0.2)
    async with scripted(exec=hangs, stop=hangs) as url, opened(url) as sandbox:
        with pytest.raises(SandboxError, match="did not answer") as failure:
            await sandbox.run("true", timeout=0.1)
        assert failure.value.retryable
    async with scripted(start=hangs) as url, client(url, start_timeout=0.2) as backend:
        with pytest.raises(SandboxError, match="did not answer"):
            await backend.open(SandboxSpec())


async def test_a_server_that_is_not_there_is_named() -> None:
    async with client("http://127.0.0.1:9") as backend:
        with pytest.raises(SandboxError, match="reward-kit sandbox serve") as failure:
            await backend.open(SandboxSpec())
        assert failure.value.retryable
        assert not (await backend.probe()).works


async def test_a_server_that_was_restarted_has_forgotten_the_sandbox(real: SandboxBackend) -> None:
    async with serving(Counting(real), token=TOKEN, port=0) as url:
        backend = SosBackend(url, token=TOKEN)
        sandbox = await backend.open(SandboxSpec())
    async with serving(Counting(real), token=TOKEN, port=int(url.rpartition(":")[2])), closed_after(backend):
        with pytest.raises(SandboxError, match="404") as failure:
            await sandbox.run("true")
        assert failure.value.retryable
        assert (await (await backend.open(SandboxSpec())).run("echo new")).output == "new\n"


async def test_a_refused_token_stops_the_run(urls: dict[Dialect, str]) -> None:
    backend = SosBackend(urls["ours"], token="wrong")
    with pytest.raises(AuthError, match="REWARD_KIT_SANDBOX_TOKEN"):
        await backend.open(SandboxSpec())
    await backend.close()


async def test_the_token_is_found_in_the_environment(urls: dict[Dialect, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWARD_KIT_SANDBOX_TOKEN", TOKEN)
    backend = SosBackend(urls["ours"])
    assert (await backend.probe()).works
    await backend.close()


async def test_an_answer_after_the_originals_two_seconds_is_not_believed(
    urls: dict[Dialect, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(urls["original"]) as sandbox:
        monkeypatch.setattr(sos_original, "_SESSION_SECONDS", 0.2)
        with pytest.raises(SandboxError, match="mixes up") as failure:
            await sandbox.run("sleep 0.4; echo whose")
        assert failure.value.retryable


async def test_a_cancelled_opening_leaves_nothing_on_the_server(real: SandboxBackend) -> None:
    counting = Counting(real)
    async with served(counting) as caller, client(caller.url, image="any") as backend:
        opening = asyncio.create_task(backend.open(SandboxSpec(setup=("sleep 60",))))
        await asyncio.sleep(0.3)
        opening.cancel()
        await asyncio.wait([opening])
        await until(lambda: not counting.open_now)
        async with asyncio.timeout(60):
            while await caller.get("/sandboxes"):
                await asyncio.sleep(0.02)


async def test_closing_the_backend_stops_what_is_open(real: SandboxBackend) -> None:
    counting = Counting(real)
    async with served(counting) as caller:
        async with client(caller.url) as backend:
            for _ in range(3):
                await backend.open(SandboxSpec())
            assert len(counting.open_now) == 3
        assert not counting.open_now
        assert await caller.get("/sandboxes") == []


async def test_a_closed_sandbox_takes_no_command(urls: dict[Dialect, str]) -> None:
    async with opened(urls["ours"]) as sandbox:
        await sandbox.close()
        await sandbox.close()
        with pytest.raises(SandboxError, match="closed"):
            await sandbox.run("true")
