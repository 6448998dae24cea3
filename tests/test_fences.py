# SPDX-License-Identifier: Apache-2.0
"""What has one place in the package is done nowhere else, found by reading the source.

Who needs one of these things uses the place that is named here. A further file needs a reason beside its name.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

import reward_kit
from reward_kit.storage.vocabularies import BEST_OF_N, RUN

PACKAGE = Path(reward_kit.__file__).parent
_COLUMNS = {
    RUN.score, RUN.score_is_valid, RUN.verification_reason, RUN.metrics, BEST_OF_N.is_verified, BEST_OF_N.generated_at,
    "model", "usage", "finish_reason", "latency_ms", "cached", "cost", "error", "failure",
}  # fmt: skip
"""What lines of results have and rows of a dataset do not."""
_MANY = 4
"""So many of them in one literal are a list of columns."""


def _name(node: ast.AST) -> str:
    """What is called, or inherited from: `web.run_app`, `open`; of anything but names, the last of them."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return f"{owner}.{name}"
        case ast.Attribute(attr=name):
            return f".{name}"
        case ast.Subscript(value=value):
            return _name(value)
    return ""


def _calls(*names: str) -> Callable[[ast.AST], bool]:
    """Calls by way of a module, and imports of what would be called."""

    def marks(node: ast.AST) -> bool:
        match node:
            case ast.Call(func=func):
                return _name(func) in names
            case ast.ImportFrom(module=str(module), names=imported):
                return any(f"{module.rpartition('.')[2]}.{each.name}" in names for each in imported)
        return False

    return marks


def _imports(*modules: str) -> Callable[[ast.AST], bool]:
    """Imports of a module or of something in it."""

    def marks(node: ast.AST) -> bool:
        match node:
            case ast.Import(names=imported):
                found = [each.name for each in imported]
            case ast.ImportFrom(module=str(module), names=imported, level=0):
                found = [module, *(f"{module}.{each.name}" for each in imported)]
            case _:
                return False
        return any(name == one or name.startswith(f"{one}.") for name in found for one in modules)

    return marks


def _grows(node: ast.AST) -> bool:
    """`os.O_APPEND`, or a file opened with a mode that has an `a`."""
    if isinstance(node, ast.Attribute | ast.Name):
        return _name(node).endswith("O_APPEND")
    return any("a" in mode for mode in _modes(node))


def _is_written_in_place(node: ast.AST) -> bool:
    """A file opened with a mode that has a `w` or an `x`, or what `pathlib` has for that."""
    if isinstance(node, ast.Call) and _name(node.func).rpartition(".")[2] in {"write_text", "write_bytes"}:
        return True
    return any({*mode} & {*"wx"} for mode in _modes(node))


def _modes(node: ast.AST) -> list[str]:
    """The mode in which a file is opened, where one is; of several texts, all that may be one."""
    if not isinstance(node, ast.Call) or _name(node.func).rpartition(".")[2] not in {"open", "fdopen"}:
        return []
    behind_the_path = 1 if isinstance(node.func, ast.Name) else 0
    values = [*node.args[behind_the_path:], *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
    modes = [value.value for value in values if isinstance(value, ast.Constant)]
    return [mode for mode in modes if isinstance(mode, str) and {*mode} <= {*"awxbt+"}]


def _is_replaced(node: ast.AST) -> bool:
    """`draft.replace(target)`, or the same by `os` or `shutil`. Texts and dates are replaced with other arguments."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if _name(node.func) in {"os.replace", "os.rename", "os.renames", "shutil.move"}:
        return True
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "target")]
    return node.func.attr in {"replace", "rename"} and len(given) == 1 == len(node.args) + len(node.keywords)


def _lists_columns(node: ast.AST) -> bool:
    """A literal that names several columns of results."""
    match node:
        case ast.Tuple(elts=named) | ast.List(elts=named) | ast.Set(elts=named):
            values = [*named]
        case ast.Dict(keys=keys):
            values = [key for key in keys if key is not None]
        case _:
            return False
    return len({value.value for value in values if isinstance(value, ast.Constant)} & _COLUMNS) >= _MANY


_PARSERS = {"exact_json.loads", "orjson.loads", "json.loads"}
_OF_LINES = {"refuse_other_columns", "verdict_of", "vocabulary_of"}
"""What tells the columns of one front door's results from another's."""


def _decodes_a_line(node: ast.AST) -> bool:
    """JSON that is parsed for each line of a file."""
    match node:
        case ast.Call(func=ast.Name(id="map"), args=[ast.Attribute() as parser, *_]):
            return _name(parser) in _PARSERS
        case ast.Call(func=func, args=[ast.Name(id="line" | "raw"), *_]):
            return _name(func) in _PARSERS
        case ast.Call(func=func, args=[ast.Call(func=ast.Attribute(attr="readline" | "line_at")), *_]):
            return _name(func) in _PARSERS
    return False


def _reads_answers(node: ast.AST) -> bool:
    """A table of answers that is opened, by Arrow or by DuckDB, or a line whose columns are looked at."""
    match node:
        case ast.Constant(value=str(text)):
            return "read_parquet(" in text
        case ast.ImportFrom(module="reward_kit.storage.vocabularies", names=imported):
            return any(each.name in _OF_LINES for each in imported)
    return _calls("pq.ParquetFile", "parquet.ParquetFile")(node)


def _is_settings(node: ast.AST) -> bool:
    """A class of settings, by its name or by what it inherits from."""
    if not isinstance(node, ast.ClassDef):
        return False
    bases = {_name(base).rpartition(".")[2] for base in node.bases}
    is_model = bool(bases & {"_Part", "StrictPart", "BaseSettings", "ModelConfig", "Sampling"})
    return is_model or node.name.endswith(("Settings", "Config", "Configuration"))


class Fence(NamedTuple):
    """What is done in some files only."""

    marks: Callable[[ast.AST], bool]
    """Whether a piece of source does it."""
    named: Mapping[str, str]
    """The files that may, and why; a folder ends with a stroke."""
    breaches: list[str]
    """Lines of source that do it."""


FENCES = {
    "a file that grows": Fence(
        _grows,
        {
            "storage/files.py": "the place",
            "serving/access_log.py": "a log that others rotate; a line that is lost there is no loss",
            "generation/mock_server.py": "a log for people",
            "workers/process.py": "what a worker prints",
            "execution/ray_engine/engine.py": "what rewards print on other machines",
            "agent/mcp/vector/policy.py": "a recording in the older package's format",
            "integrations/rl_jobs.py": "a lock",
            "utils/opened_files.py": "asks how somebody else opened a file",
        },
        [
            "os.open(path, os.O_WRONLY | os.O_APPEND)",
            "open(path, 'a')",
            "path.open(mode='ab+')",
            "open(path, '+at')",
            "f(O_APPEND)",
        ],
    ),
    "a file that is written in place": Fence(
        _is_written_in_place,
        {
            "storage/files.py": "the place: a draft",
            "storage/training_files.py": "lines beside a draft, which are removed",
            "sandbox/": "files of a sandbox, and of the kernel",
            "rewards/_support/sql_runner.py": "the answer of a process of ours",
            "stores/fetching.py": "a copy in a folder that is removed, or that nobody reads half",
            "agent/resources/filesystem_resource.py": "a world's own archive",
            "agent/resources/sql_connection.py": "a world's own database",
            "agent/resources/directory.py": "a mark in a folder of the world",
            "agent/resources/file_tree.py": "in memory",
            "deploy/archive.py": "files to build from, made anew each time",
            "deploy/state.py": "a lock",
            "deploy/machine.py": "what a program that is left running prints",
            "deploy/wheels.py": "a folder that is removed",
            "deploy/fireworks/evaluators.py": "in memory",
            "deploy/fireworks/rl_backend.py": "a folder that is removed",
            "evaluators.py": "a folder that is removed",
            "viewer/access.py": "a folder that is removed",
            "agent/mcp/server.py": "a stream of the process",
            "agent/mcp/gym_server.py": "a stream of the process",
        },
        ["path.write_text(text)", "Path(name).write_bytes(data)", "open(path, 'w')", "path.open(mode='xb')"],
    ),
    "a file that is replaced": Fence(
        _is_replaced,
        {
            "storage/files.py": "the place",
            "storage/health.py": "sets a damaged file aside",
            "storage/projected_file.py": "sets a file that a person changed aside",
            "storage/run_directory.py": "sets earlier results aside",
            "storage/mirror/restoring.py": "moves what was downloaded to where it belongs",
            "viewer/index_cache.py": "several viewers make one index at a time, each its own draft",
            "sandbox/linux/remove_tree.py": "a folder",
            "sandbox/namespaces/rootfs.py": "a folder",
            "sandbox/namespaces/trusted.py": "takes the place of a program inside the sandbox",
        },
        ["draft.replace(path)", "self._draft.rename(target=path)", "os.replace(one, two)", "shutil.move(one, two)"],
    ),
    "an HTTP client": Fence(
        lambda node: (
            _calls("aiohttp.ClientSession", "aiohttp.TCPConnector", "aiohttp.request")(node)
            or _imports("urllib.request", "http.client", "httpx", "requests", "urllib3", "websockets")(node)
        ),
        {
            "http/exchange.py": "the place",
            "http/raw_exchange.py": "the place, where a client asks one address often",
            "http/proxies.py": "asks the system for its proxies",
        },
        [
            "aiohttp.ClientSession()",
            "from aiohttp import TCPConnector",
            "import urllib.request",
            "from urllib import request",
            "import httpx",
            "from requests import get",
            "import http.client as plain",
        ],
    ),
    "a process host": Fence(
        _calls(
            "subprocess.Popen",
            "asyncio.create_subprocess_exec",
            "asyncio.create_subprocess_shell",
            "os.fork",
            "os.forkpty",
            "os.posix_spawn",
            "os.posix_spawnp",
            "multiprocessing.Process",
            "multiprocessing.Pool",
            "futures.ProcessPoolExecutor",
        ),
        {
            "workers/process.py": "the place: whatever of ours runs in another process",
            "workers/forks.py": "the other side of it, where each question or world gets a copy",
            "sandbox/": "its processes live in namespaces, or must be ended with all that they started",
            "workers/programs.py": "the place for programs of somebody else, such as an MCP server",
            "deploy/machine.py": "commands that a plan names",
            "integrations/rl_jobs.py": "a job that goes on without us",
            "storage/git_revision.py": "git, asked while the run begins",
        },
        [
            "subprocess.Popen(command)",
            "from subprocess import Popen",
            "await asyncio.create_subprocess_exec(program)",
            "os.fork()",
            "from multiprocessing import Process",
            "from concurrent.futures import ProcessPoolExecutor",
        ],
    ),
    "a server": Fence(
        lambda node: (
            _calls(
                "uvicorn.Config",
                "uvicorn.Server",
                "uvicorn.run",
                "web.run_app",
                "web.AppRunner",
                "web.ServerRunner",
                "asyncio.start_server",
                "asyncio.start_unix_server",
                "server.HTTPServer",
                "server.ThreadingHTTPServer",
                "socketserver.TCPServer",
            )(node)
            or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "listen")
        ),
        {
            "http/server.py": "the place",
        },
        [
            "uvicorn.Config(app)",
            "uvicorn.run(app)",
            "web.run_app(app)",
            "await asyncio.start_server(serve)",
            "sock.listen(5)",
            "from http.server import ThreadingHTTPServer",
        ],
    ),
    "a list of columns": Fence(
        _lists_columns,
        {
            "storage/vocabularies.py": "the place: what every front door calls things",
            "storage/tables.py": "the columns of a line, from a record",
            "storage/line_writer.py": "the same line, from pieces",
            "storage/best_of_n_tables.py": "the Parquet file of best-of-n",
            "storage/shell_tables.py": "the lines of the shell",
            "agent/recorded.py": "what a model said in a turn, before there is a line",
            "viewer/columns.py": "what the columns are called on the page",
            "utils/batch_transformation.py": "lines in the older package's format",
        },
        [
            "('model', 'usage', 'finish_reason', 'latency_ms')",
            "{'error': 1, 'failure': 2, 'model': 3, 'cost': 4}",
            "['cached', 'model', 'error', 'usage', 'of mine']",
        ],
    ),
    "a judged answer that is read": Fence(
        _reads_answers,
        {
            "storage/judged.py": "the place",
            "analysis/loading.py": "the figures of many answers, as arrays",
            "analysis/texts.py": "single rows, by their places",
            "viewer/store.py": "a search through the texts of a table, by DuckDB",
            "viewer/sources.py": "which front door made a run, by its first line",
            "datasets/sources.py": "rows of a dataset",
            "storage/large_parts.py": "what lines name of their samples",
        },
        [
            "from reward_kit.storage.vocabularies import RUN, verdict_of",
            "from pyarrow.parquet import ParquetFile",
            "pq.ParquetFile(path)",
            "query.run(f'SELECT row FROM read_parquet(?)')",
        ],
    ),
    "a line of JSON that is decoded": Fence(
        _decodes_a_line,
        {
            "storage/judged.py": "the place, for judged answers",
            "storage/journal.py": "the place, for whoever wants all fields of a run's lines",
            "storage/journal_lines.py": "whether a line without a checksum is whole",
            "storage/tables.py": "whether such a line is a rollout",
            "viewer/sample_page.py": "a rollout as it stands in its file",
            "storage/run_directory.py": "whether there is anything worth keeping",
            "storage/best_of_n_tables.py": "lines of best-of-n that become a table: a sample is parsed once",
            "storage/training_files.py": "its own lines, which become a table",
            "storage/batch_journal.py": "its own lines",
            "storage/turn_journal.py": "its own lines",
            "storage/reviews.py": "its own lines",
            "generation/cache/entries.py": "entries of the cache",
            "execution/shell/": "lines of commands, which people write, too",
            "scoring/cases.py": "cases, which people write",
            "datasets/sources.py": "rows of a dataset",
            "generation/mock_script.py": "what the mock model says",
            "agent/environments/bfcl.py": "tasks of somebody else",
            "agent/mcp/vector/playback.py": "a recording in the older package's format",
            "deploy/fireworks/": "what is sent to Fireworks",
            "sandbox/python/inside/by_command.py": "requests to a process",
            "utils/exact_json.py": "the parser",
        },
        [
            "exact_json.loads(line)",
            "map(exact_json.loads, journal.in_order())",
            "[orjson.loads(line) for line in file]",
            "exact_json.loads(journal.line_at(offset))",
            "json.loads(file.readline())",
        ],
    ),
    "a class of settings": Fence(
        _is_settings,
        {
            "config_models.py": "the place: all that a run can be told",
            "execution/best_of_n/experiment.py": "the settings of best-of-n, which become those of a run",
            "cli_commands/benchmark_configs.py": "what a benchmark says of itself beside them",
            "generation/mock_script.py": "what the mock model says",
            "rewards/composite.py": "the parts of a reward, in its params",
            "agent/mcp/settings.py": "an MCP server, in the params of a world",
            "agent/resources/http_rollout_protocol.py": "the same of the older package",
            "agent/step_credit.py": "values of `agent.credit`, once they are checked",
            "agent/tools.py": "what the author of a tool says beside the function",
            "serving/settings.py": "all that a server can be told",
            "serving/world_settings.py": "the part of it about worlds",
            "deploy/settings.py": "all that a deployment can be told",
            "config.py": "the older package's file `rewardkit.yaml`",
            "models.py": "a server of an agent task in the older package's format",
        },
        [
            "class RetrySettings: ...",
            "class Retries(StrictPart): ...",
            "class Other(config_models._Part): ...",
            "class RetryConfig(BaseModel): ...",
        ],
    ),
}


@pytest.fixture(scope="module")
def package() -> dict[str, list[ast.AST]]:
    """All that each file of the package says."""
    return {
        path.relative_to(PACKAGE).as_posix(): [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        for path in PACKAGE.rglob("*.py")
    }


@pytest.mark.parametrize("what", FENCES)
def test_it_is_done_where_it_is_named_and_nowhere_else(what: str, package: Mapping[str, list[ast.AST]]) -> None:
    fence = FENCES[what]
    found = {name for name, source in package.items() if any(map(fence.marks, source))}
    folders = tuple(name for name in fence.named if name.endswith("/"))
    assert {name for name in found if not name.startswith(folders)} == {*fence.named} - {*folders}
    assert all(any(name.startswith(folder) for name in found) for folder in folders)


@pytest.mark.parametrize(
    ("what", "source"), [(what, line) for what, fence in FENCES.items() for line in fence.breaches]
)
def test_who_does_it_elsewhere_is_found(what: str, source: str) -> None:
    assert any(map(FENCES[what].marks, ast.walk(ast.parse(source))))
    others = [name for name, fence in FENCES.items() if any(map(fence.marks, ast.walk(ast.parse(source))))]
    assert others == [what]


@pytest.mark.parametrize(
    "source",
    [
        "open(path, 'rb')", "text.replace('a', 'b')", "moment.replace(tzinfo=None)",
        "import aiohttp", "from urllib.parse import quote", "subprocess.run(command)", "import multiprocessing",
        "('id', 'name', 'of', 'mine')", "{'model': 1, 'usage': 2}", "class Settled(Value): ...",
    ],
)  # fmt: skip
def test_what_is_something_else_is_let_through(source: str) -> None:
    assert not any(fence.marks(node) for fence in FENCES.values() for node in ast.walk(ast.parse(source)))
