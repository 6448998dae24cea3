# SPDX-License-Identifier: Apache-2.0
"""What goes into a bundle, what stays out, what stops it; and that the same source gives the same bytes."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit._version import __version__
from reward_kit.cli_commands.junit import write_junit
from reward_kit.deploy.archive import digest_of, zip_of
from reward_kit.deploy.bundle import BundleSource, make_bundle
from reward_kit.deploy.pinned import pin
from reward_kit.deploy.suspicious import credential_in, is_credential_file, is_litter
from reward_kit.errors import DeployError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.utils.project_imports import follow_imports, import_roots
from tests.loopback.runs import config, questions

AWS_KEY = "AKIA" + "IOSFODNN7EXAMPLE"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"


def names(source: BundleSource) -> set[str]:
    return {name.removeprefix("project/") for name in make_bundle(source).files if name.startswith("project/")}


# ── which files ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_the_reward_imports_goes_in_and_nothing_else(source: BundleSource) -> None:
    bundle = make_bundle(source, extras=("serve",))
    assert names(source) == {"rewards.py", "helper.py", "parts/__init__.py", "parts/weights.py"}
    assert bundle.pinned.requirements == (f"reward-kit[serve]=={__version__}",)
    assert any(line.startswith("pydantic==") for line in bundle.pinned.constraints)
    assert not any("reward-kit" in line for line in bundle.pinned.constraints)
    manifest = json.loads(bundle.files["bundle.json"])
    assert manifest["rewards"] == {"exact": "rewards.py:exact"}
    assert set(manifest["files"]) == set(bundle.files) - {"bundle.json"}


def test_a_reward_of_the_library_needs_no_file(project: Path) -> None:
    bundle = make_bundle(BundleSource({"math": "math"}, project))
    assert not any(name.startswith("project/") for name in bundle.files)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import a", {"a.py"}),
        ("import pkg.deep.leaf", {"pkg/__init__.py", "pkg/deep/leaf.py"}),
        ("from pkg.deep import leaf as l", {"pkg/__init__.py", "pkg/deep/leaf.py"}),
        ("from pkg import *", {"pkg/__init__.py"}),
        ("def f():\n    from pkg.deep.leaf import x", {"pkg/__init__.py", "pkg/deep/leaf.py"}),
        ("import importlib; importlib.import_module('a')", {"a.py"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a", set()),
        ("import json, os.path", set()),
        ("import srconly", {"src/srconly.py"}),
        ("import round_a", {"round_a.py", "round_b.py"}),
    ],
)
def test_imports_are_followed(tmp_path: Path, line: str, found: set[str]) -> None:
    files = {
        "a.py": "", "pkg/__init__.py": "", "pkg/deep/leaf.py": "x = 1", "src/srconly.py": "",
        "round_a.py": "import round_b", "round_b.py": "import round_a", "main.py": line,
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    seen = follow_imports([tmp_path / "main.py"], import_roots(tmp_path))
    assert {path.relative_to(tmp_path).as_posix() for path in seen.files} == {"main.py", *found}
    assert seen.outside == []


def test_relative_imports_and_packages_without_init(tmp_path: Path) -> None:
    for name, text in {
        "p/q/one.py": "from .. import two\nfrom .three import x",
        "p/two.py": "",
        "p/q/three.py": "x=1",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    seen = follow_imports([tmp_path / "p/q/one.py"], import_roots(tmp_path))
    assert {path.name for path in seen.files} == {"one.py", "two.py", "three.py"}


def test_an_import_that_nothing_brings_along_stops(project: Path, source: BundleSource) -> None:
    (project / "helper.py").write_text("import hypothesis\ndef is_same(a, b): return 1.0\n")
    with pytest.raises(DeployError, match=r"'helper.py' imports 'hypothesis' in line 1.*--requirement hypothesis"):
        make_bundle(source)
    bundle = make_bundle(replace(source, requirements=["hypothesis"]))
    assert any(line.startswith("hypothesis==") for line in bundle.pinned.constraints)
    (project / "helper.py").write_text("def is_same(a, b):\n    import hypothesis\n    return 1.0\n")
    assert any("imports hypothesis when it needs it" in remark for remark in make_bundle(source).remarks)


def test_requirements_of_the_decorator_are_taken(project: Path, source: BundleSource) -> None:
    text = (project / "rewards.py").read_text().replace("@reward_function", "@reward_function(requirements=['numpy'])")
    (project / "rewards.py").write_text(text)
    assert "numpy" in make_bundle(source).pinned.requirements


@pytest.mark.parametrize("line", ["-r other.txt", "--index-url x", "git+https://x/y", "pkg @ https://host/p.whl"])
def test_a_requirement_that_is_no_package_is_refused(line: str) -> None:
    with pytest.raises(DeployError, match="names no package of an index"):
        pin([line])


# ── what must not go in ──────────────────────────────────────────────────────────────────────────────────────────────

PLANTED = {
    f'KEY = "{AWS_KEY}"': 1,
    f'x = 1\naws_secret_access_key = "{AWS_SECRET}"': 2,
    'client = C(api_key="sk-proj-abcdefghijkl0123456789")': 1,
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE": 1,
    'URL = "postgres://bob:s3cr3tpass@db.internal/x"': 1,
    '{"auth_token": "b7Gk29fQpLm4XzT8vNw3"}': 1,
    "password: Tr0ub4dor&3xyzzy": 1,
    'h = {"Authorization": "Bearer abcdef0123456789abcdef"}': 1,
}
DRAWN = "b7Gk29fQpLm4XzT8vNw3"
KINDS = {
    "constructor": f'client = Together(api_key="{DRAWN}")',
    "constructor of a name": f"llm = ChatMistral(model='m', api_key='{DRAWN}', temperature=0)",
    "first argument": f'co = cohere.Client("{DRAWN}")', "login": f"login('{DRAWN}')",
    "setter": f'wandb.login(key="{DRAWN}")', "call with a call before": f'x = f(g(a="b")); openai.api_key = "{DRAWN}"',
    "hex": 'API_TOKEN = "4f0c21aa4f0c21aa4f0c21aa4f0c21aa"', "dict": f"config = {{'secret_key': '{DRAWN}'}}",
    "notebook": json.dumps({"cells": [{"source": [f'client = Together(api_key="{DRAWN}")\n']}]}),
    "login in a notebook": json.dumps({"cells": [{"source": [f"login('{DRAWN}')"]}]}, indent=1),
    "json in a text": json.dumps({"body": json.dumps({"password": DRAWN})}),
    "password without digits": 'PASSWORD = "correcthorsebattery"', "keyword": 'connect(password="correcthorsebattery")',
    "environment": f"DB_PASS={DRAWN}", "glued": f"PGPASSWORD={DRAWN}", "yaml": f"  api_key: {DRAWN}",
    "header": f"-H 'X-Api-Key: {DRAWN}'", "bearer": f'headers["Authorization"] = "Bearer {DRAWN}"',
    "connection string": f"Server=db;Uid=sa;Password={DRAWN};", "storage": f"AccountName=x;AccountKey={DRAWN}==;",
    "database": f"postgresql+asyncpg://u:{DRAWN}@db/x", "database with a slash": f"mysql://u:a/{DRAWN}@db/x",
    "slack": "https://hooks.slack.com/services/T000/B000/b7Gk29fQpLm4XzT8vNw3",
    "discord": f"https://discord.com/api/webhooks/123456/{DRAWN}", "signed": f"https://h/x?sv=1&sig={DRAWN}",
    "pem": "-----BEGIN OPENSSH PRIVATE KEY-----", "jwt": "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    "known prefix": "x = ['ghp_abcdefghijklmnop1234']", "aws": f"aws_session_token = {DRAWN}",
    "subscript": f"os.environ['TOGETHER_KEY'] = '{DRAWN}'", "default": f"os.environ.setdefault('MY_TOKEN', '{DRAWN}')",
    "field": f"    api_key: str = '{DRAWN}'", "constant": f'TOKEN: Final[str] = "{DRAWN}"',
    "pair": f"auth=('bob', '{DRAWN}')",
    "in an expression": f"if (token := '{DRAWN}'):", "three marks": f'api_key = """{DRAWN}"""',
    "typed": f"SecretStr('{DRAWN}')",
    "class that nobody knows": f"box = llms.Foo('{DRAWN}', 3)",
    "literals one after the other": f'api_key = "{DRAWN[:6]}" "{DRAWN[6:]}"',
    "literals on two lines": f'api_key = ("{DRAWN[:6]}"\n           "{DRAWN[6:]}")',
    "literals that are added": f"api_key = '{DRAWN[:9]}' + '{DRAWN[9:]}'",
    "xml": f"<password>{DRAWN}</password>", "password of words": "password = 'correct-horse-battery'",
}  # fmt: skip
HARMLESS = [
    'client = Together(api_key=os.environ["TOGETHER_API_KEY"])', "login(username, password_of(user_12345))",
    'api("v1/chat/completions2")', 'password: str = ""', 'def login(password="password", user="x"): ...',
    'token = tokenizer("hello world 123456789")', 'session("https://host/path/12345678")',
    'api_key = os.environ["OPENAI_API_KEY"]', 'TOKEN = "<your token here 12>"', "stop_token = 'abc123abc123abc1'",
    'answer_key = "abcdefghijklm12"', 'url = "https://user:password@host"', 'password = getpass("for user 1: ")',
    "api_key=settings.api_key1.get()", 'setdefault("key", "question_2024_id")', "<key>name</key>",
    'token: str | None = None', 'password: str = field(default_factory=make_password12)',
    'auth = ("basic", "digest")', 'get("token", "unknown")',
    "max_tokens = 123456789012345",
    "sha = 'a94a8fe5ccb19ba61c4c0873d391e987982fbbd3'", "Path('data/Train-2024-v2/rows.jsonl')",
    "Message('The answer is 42, said Bob2')", "api_key,question\nTogetherKey,what", "text = 'a' + 'b'\ncall('c', 'd')",
]  # fmt: skip


@pytest.mark.parametrize(("text", "line"), PLANTED.items(), ids=range(len(PLANTED)))
def test_a_credential_in_a_source_file_stops_by_name_and_line(
    project: Path, source: BundleSource, text: str, line: int
) -> None:
    assert credential_in(text.encode()) == line
    (project / "helper.py").write_text(f'"""\n{text}\n"""\ndef is_same(a, b): return 1.0\n')
    with pytest.raises(DeployError, match=rf"'helper.py' seems to hold a credential in line {line + 1}") as stopped:
        make_bundle(source)
    for secret in (AWS_KEY, AWS_SECRET, "s3cr3tpass", "b7Gk29fQpLm4XzT8vNw3"):
        assert secret not in str(stopped.value)
    assert "project/helper.py" in make_bundle(replace(source, allow=["helper.py"])).files


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_credential_is_seen_in_every_encoding(kind: str) -> None:
    for encoding in ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"):
        assert credential_in(("x = 1\n" * 20 + KINDS[kind] + "\n").encode(encoding)) is not None, encoding


@pytest.mark.parametrize("divider", [",", ";", "\t"])
def test_a_column_of_credentials_is_seen(divider: str) -> None:
    table = [["user", "api_key", "note"], ["bob", "", "x"], ["eve", DRAWN, "a, b"]]
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        text = io.StringIO()
        csv.writer(text, delimiter=divider, quoting=quoting).writerows(table)
        assert credential_in(text.getvalue().encode()) == 3
        assert credential_in(text.getvalue().replace(DRAWN, "none").encode()) is None


def test_a_credential_far_behind_in_a_large_file_is_seen() -> None:
    assert credential_in(b"0.25,0.5,1\n" * 450_000 + KINDS["constructor"].encode()) == 450_001


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_credential_does_not_stop(text: str) -> None:
    assert credential_in(text.encode()) is None


def test_our_own_source_would_pass() -> None:
    """A reward's source is like ours: it talks of keys and tokens and holds none."""
    root = Path(__file__).resolve().parents[2] / "reward_kit"
    found = [path.name for path in root.rglob("*.py") if credential_in(path.read_bytes()) is not None]
    assert found == ["redaction.py"]  # which says what keys look like


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env.local",
        "prod.env",
        "a/id_rsa",
        "server.KEY",
        ".aws/config",
        "x/service-account-1.json",
        "gcp-key.json",
        "token.txt",
        "hf_token",
        "openai_key.txt",
        ".vault-token",
    ],
)
def test_files_of_credentials_are_known_by_name(name: str) -> None:
    assert is_credential_file(name)
    for other in ("env.py", ".env.example", "api_keys.py", "tokens.txt", "tokenizer.json", "keys.py", "monkey.json"):
        assert not is_credential_file(other)


def test_what_a_run_wrote_stays_out_wherever_it_is(project: Path, source: BundleSource) -> None:
    before = names(replace(source, include=["."]))
    for name in ("runs/one", "runs/two"):
        EvaluationPipeline(config(project, rows=questions(2), output__output_dir=str(project / name))).run()
    (project / "kept.jsonl").write_bytes((project / "runs/one/results.jsonl").read_bytes())
    write_junit(project / "junit.xml", [])
    assert names(replace(source, include=["."])) == before | {"dataset.jsonl"}


def test_included_folders_leave_out_litter_and_credentials(project: Path, source: BundleSource) -> None:
    for name in ("data/a.txt", "data/.env", "data/__pycache__/x.pyc", "data/.git/config", "data/tls.pem"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("text")
    bundle = make_bundle(replace(source, include=["data"]))
    assert {name for name in bundle.files if name.startswith("project/data")} == {"project/data/a.txt"}
    assert [left.path for left in bundle.left_out] == ["data/.env", "data/tls.pem"]
    assert is_litter(".git/HEAD") and is_litter("a/__pycache__/b.pyc") and not is_litter("git/a.py")
    with pytest.raises(DeployError, match=r"'\.env' stays out of every deployment"):
        make_bundle(replace(source, include=[".env"]))
    for wrong in ("../x", "/etc/passwd", "none/*"):
        with pytest.raises(DeployError, match="--include"):
            make_bundle(replace(source, include=[wrong]))


def test_what_a_run_wrote_is_left_out_of_an_included_folder(project: Path, source: BundleSource) -> None:
    run = project / "outputs" / "first"
    for name in (
        "outputs/first/rollouts.jsonl", "outputs/first/deep/notes.txt", "my_cache/v1/responses.jsonl",
        "outputs/first/results.jsonl", "my_cache/v1/index.bin", "data/kept.txt", "outputs/own.txt",
    ):  # fmt: skip
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("text")
    (project / "best.parquet").write_bytes(b"PAR1\nreward-kit check:12345678:12345678\nPAR1")
    (project / "other.parquet").write_bytes(b"PAR1 PAR1")
    (project / "report.html").write_text('<!doctype html><meta name="generator" content="reward-kit 1">')

    files = make_bundle(replace(source, include=["."])).files
    assert {"project/data/kept.txt", "project/outputs/own.txt", "project/other.parquet"} < set(files)
    left = {left.path for left in make_bundle(replace(source, include=["."])).left_out}
    assert {"best.parquet", "report.html", "my_cache/v1/responses.jsonl", "my_cache/v1/index.bin"} < left
    assert not [name for name in files if name.startswith(("project/outputs/first", "project/my_cache"))]
    named = make_bundle(replace(source, include=["outputs/first/results.jsonl"])).files
    assert "project/outputs/first/results.jsonl" in named, "whoever names the file wants it"
    assert run.is_dir()


def test_a_link_out_of_the_project_stays_out(project: Path, source: BundleSource, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("text")
    (project / "data").mkdir()
    (project / "data/link.txt").symlink_to(tmp_path / "outside.txt")
    assert [left.why for left in make_bundle(replace(source, include=["data/*"])).left_out] == [
        "it leads out of the project"
    ]


def test_a_credential_among_the_params_stops(source: BundleSource) -> None:
    with pytest.raises(DeployError, match="'api_key' among the params seems to be a credential"):
        make_bundle(replace(source, params={"api_key": "abcdefgh12345678"}))


def test_what_only_params_fill_must_be_among_them(project: Path) -> None:
    (project / "marked.py").write_text(
        "from reward_kit import Operator\n\n\ndef judged(messages, model: Operator[str], **kwargs):\n    return 1.0\n"
    )
    source = BundleSource({"judged": "marked.py:judged"}, project)
    with pytest.raises(DeployError, match="'judged' needs 'model', which no caller may send"):
        make_bundle(source)
    assert make_bundle(replace(source, params={"model": "m"})).params == {"model": "m"}


def test_a_reward_that_does_not_load_stops(project: Path) -> None:
    with pytest.raises(DeployError, match=r"no attribute 'exactt'.*did you mean 'exact'"):
        make_bundle(BundleSource({"x": "rewards.py:exactt"}, project))
    with pytest.raises(DeployError, match="outside of the project"):
        make_bundle(BundleSource({"x": str(project / "rewards.py") + ":exact"}, project / "parts"))


# ── the same bytes ───────────────────────────────────────────────────────────────────────────────────────────────────

BYTES = """
import sys, hashlib
from pathlib import Path
from reward_kit.deploy.archive import zip_of
from reward_kit.deploy.bundle import BundleSource, make_bundle
bundle = make_bundle(BundleSource({"exact": "rewards.py:exact"}, Path("."), {"bonus": 0.5}), extras=("serve",))
print(bundle.digest, hashlib.sha256(zip_of(bundle.files)).hexdigest())
"""


def test_the_same_source_gives_the_same_bytes_elsewhere_and_later(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "another place"
    shutil.copytree(project, elsewhere)
    for path in elsewhere.rglob("*"):
        os.utime(path, (0, time.time() + 10_000))
        path.chmod(0o700)
    root = str(Path(__file__).resolve().parents[2])
    said = [
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(BYTES)], cwd=folder, check=True, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": seed, "TZ": zone},
        ).stdout
        for folder, seed, zone in [(project, "1", "UTC"), (elsewhere, "2", "Asia/Tokyo")]
    ]  # fmt: skip
    assert said[0] == said[1]
    (elsewhere / "helper.py").write_text("def is_same(a, b): return 0.0\n")
    assert not any(path.name == "__pycache__" for path in project.rglob("*"))


NAMES = st.text("abc/._-", min_size=1, max_size=12)


@given(st.dictionaries(NAMES, st.binary(max_size=50), max_size=6))
def test_archives_depend_on_names_and_contents_only(files: dict[str, bytes]) -> None:
    turned = dict(reversed(files.items()))
    assert zip_of(files) == zip_of(turned)
    assert digest_of(files) == digest_of(turned)
    if files:
        changed = {**files, next(iter(files)): b"other" + next(iter(files.values()))}
        assert digest_of(changed) != digest_of(files)
