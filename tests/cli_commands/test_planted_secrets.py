# SPDX-License-Identifier: Apache-2.0
"""Credentials planted wherever a person could put one: no artefact of any command shows any of them."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import pytest
import yaml

from tests.cli_commands.conftest import Call, Said

pytest.importorskip("pyarrow")

KEY = "planted+key/4711==x"
"""Of an unusual shape, so that only knowing it helps."""
PLANTED = "pl4nted-Secret-0815"

REWARD = """
import os
from reward_kit import reward_function

@reward_function
def judge(messages, ground_truth=None, token="", **kwargs):
    if "raise" in messages[0].content:
        raise ValueError(f"refused: token {token}")
    return {"score": 1.0, "reason": f"asked with {token}", "metrics": {}}
"""


class _Echo(BaseHTTPRequestHandler):
    """An endpoint that tells everybody the key it was given."""

    mode: ClassVar[str] = "answer"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        sent = self.headers.get("Authorization", "")
        key = sent.removeprefix("Bearer ")
        echo = f"{sent} {key} {base64.b64encode(f'u:{key}'.encode()).decode()} {quote(key, safe='')} {self.path}"
        message: dict[str, Any] = {"role": "assistant", "content": echo}
        status, headers = 200, {"X-Echo": echo, "Content-Type": "application/json"}
        body: dict[str, Any] = {"choices": [{"message": message, "finish_reason": "stop"}]}
        if self.mode == "choice":
            body = {"choices": [{"message": message, "error": {"message": echo}}]}
        elif self.mode == "quiet":
            status, headers = 200, {"Content-Type": "application/json"}
            body = {"choices": [{"message": {"role": "assistant", "content": "four"}, "finish_reason": "stop"}]}
        elif self.mode == "redirect":
            status, headers["Location"] = 302, f"http://elsewhere/?api_key={key}"
        elif self.mode.isdigit():
            status, body = int(self.mode), {"error": {"message": f"bad key: {echo}"}}
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def settings(api_base: str | None = None, **parts: Any) -> dict[str, Any]:
    """A run of one question; `parts` are put into its sections."""
    model: dict[str, Any] = {"model_name": "mock"}
    if api_base is not None:
        model = {"model_name": "m", "api_base": api_base, "api_params": {"max_retries": 0, "max_wait": 0}}
    whole: dict[str, Any] = {
        "dataset": {"path_or_name": "data.jsonl"},
        "generation": {**model, "cache": {"cache_dir": "cache"}},
        "reward": {"function_path": "reward.py:judge"},
        "output": {"output_dir": "out"},
    }
    for name, part in parts.items():
        whole[name] = {**whole.get(name, {}), **part} if isinstance(part, dict) else part
    return whole


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "reward.py").write_text(REWARD)
    rows = [{"id": "1", "user_query": "hello"}, {"id": "2", "user_query": "please raise"}]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def spellings(secret: str) -> set[bytes]:
    raw = secret.encode()
    spelled = {raw, base64.b64encode(raw).rstrip(b"=")[:-1], quote(secret, safe="").encode()}
    return spelled | {base64.b64encode(b"u:" + raw).rstrip(b"=")[4:-1], raw.hex().encode()}


def leaks(home: Path, said: Said, *secrets: str) -> list[str]:
    """Where a secret stands in clear: files and their names, but for what the person wrote, and what was printed."""
    ours = {"run.yaml", "reward.py", "data.jsonl", "experiment.yaml"}
    found = []
    for secret in secrets or (KEY, PLANTED):
        for spelled in spellings(secret):
            for stream in ("out", "err"):
                if spelled in getattr(said, stream).encode(errors="surrogateescape"):
                    found.append(stream)
            for path in home.rglob("*"):
                if spelled in str(path).encode():
                    found.append(f"name of {path}")
                if path.is_file() and path.name not in ours and path.suffix != ".pyc" and spelled in path.read_bytes():
                    found.append(str(path.relative_to(home)))
    return found


NAMES = (
    "token", "Authorization", "x-api-key", "X-Api-Key", "private_key", "passwd", "Credentials", "bearer", "auth_token",
    "hfToken", "service_key", "API_KEY", "client_secret", "password", "db_password_prod", "cookie", "accessKey",
)  # fmt: skip


@pytest.mark.parametrize("place", ["params", "nested", "list", "extra_body", "judge"])
def test_settings_under_the_usual_names_are_not_written(home: Path, call: Call, place: str) -> None:
    named = {name: f"{name[:4]}{PLANTED}" for name in NAMES}
    told = {
        "params": settings(reward={"params": named}),
        "nested": settings(reward={"params": {"deep": {"er": {**named, "kept": 1}}}}),
        "list": settings(reward={"params": {"parts": [{"a": 1, name: [value]} for name, value in named.items()]}}),
        "extra_body": settings(generation={"extra_body": {"a": named}}),
        "judge": settings(judge={"model_name": "mock", "extra_body": named}),
    }[place]
    (home / "run.yaml").write_text(yaml.safe_dump(told))
    said = call("run", "run.yaml", "--verbose")
    assert said.code == 0, said.err
    assert not leaks(home, said)
    assert "holds a credential and is not kept" in (home / "out" / "config.yaml").read_text()
    again = call("run", "out/config.yaml", "output.output_dir=out")  # what was written is a valid input, and resumes
    assert again.code == 0, again.err


@pytest.mark.parametrize(
    "told",
    [
        {"generation": {"api_base": f"http://user:{PLANTED}@127.0.0.1:1/v1", "model_name": "m"}},
        {"generation": {"api_base": f"http://{PLANTED}@127.0.0.1:1/v1", "model_name": "m"}},
        {"judge": {"api_base": f"https://user:{PLANTED}@host/v1"}},
        {"sandbox": {"sos_url": f"http://user:{PLANTED}@127.0.0.1:3000"}},
        {"dataset": {"path_or_name": f"https://user:{PLANTED}@host/data.jsonl"}},
        {"dataset": {"path_or_name": "d", "data_files": [f"https://user:{PLANTED}@host/data.jsonl"]}},
        {"rollouts_file": f"s3://user:{PLANTED}@host/rollouts.jsonl"},
        {"output": {"output_dir": f"s3://user:{PLANTED}@host/out"}},
        {"generation": {"api_key_env": PLANTED}},
        {"generation": {"api_key_env": "sk-" + PLANTED}},
        {"judge": {"api_key_env": "fw_3Z" + PLANTED.replace("-", "")}},
        {"generation": {"api_key": [PLANTED]}},
        {"generation": {"apikey": PLANTED}},
        {"reward": {"tokken": PLANTED, "token": PLANTED}},
    ],
)
def test_what_cannot_be_kept_safe_is_refused_before_anything_is_written(
    home: Path, call: Call, told: dict[str, Any]
) -> None:
    (home / "run.yaml").write_text(yaml.safe_dump(settings(**told)))
    for flags in ([], ["--verbose"], ["--dry-run"]):
        said = call("run", "run.yaml", *flags)
        assert said.code == 2
        assert not leaks(home, said)
        assert not (home / "out").exists()


@pytest.mark.parametrize("mode", ["answer", "choice", "redirect", "400", "401", "403", "404", "407", "429", "500"])
def test_an_endpoint_that_echoes_the_key_puts_it_nowhere(
    home: Path, call: Call, endpoint: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Echo, "mode", mode)
    monkeypatch.setenv("MY_KEY", KEY)
    told = settings(f"{endpoint}?subscription-key={PLANTED}", generation={"api_key_env": "MY_KEY"})
    (home / "run.yaml").write_text(yaml.safe_dump(told))
    said = call("run", "run.yaml", "--verbose")
    assert not leaks(home, said)
    if mode != "answer":
        return
    assert said.code == 1
    assert "holds a key that was sent" in said.err
    for command in (
        ["inspect", "out"], ["inspect", "out", "--query", "1"], ["inspect", "out", "--format", "json"],
        ["export", "out", "--to", "sft", "-o", "sft.jsonl"], ["export", "out", "--to", "kto", "-o", "kto.parquet"],
        ["merge", "out", "-o", "merged"], ["cache", "info", "--cache-dir", "cache"], ["run", "run.yaml"],
        ["run", "run.yaml", "--rescore", f"reward.params.token={PLANTED}"],
        ["regenerate", "out", "-r", "reward.py:judge", "-p", f"token={PLANTED}", "--model", "m", "--api-key-env",
         "MY_KEY", "--base-url", f"{endpoint}?subscription-key={PLANTED}", "-o", "again", "--verbose"],
    ):  # fmt: skip
        assert not leaks(home, call(*command))


def test_a_reward_that_tells_its_token_tells_nobody(home: Path, call: Call) -> None:
    (home / "run.yaml").write_text(yaml.safe_dump(settings(reward={"params": {"token": PLANTED}})))
    said = call("run", "run.yaml", "--verbose", "--json")
    assert said.code == 0
    assert not leaks(home, said)
    tried = call("rewards", "try", "reward.py:judge", "--prompt", "raise", "--answer", "x", "-p", f"token={PLANTED}")
    assert tried.code == 1
    assert not leaks(home, tried)


def test_sweep_directories_are_not_named_after_keys(home: Path, call: Call) -> None:
    (home / "run.yaml").write_text(yaml.safe_dump(settings()))
    said = call("run", "run.yaml", "-m", f"generation.api_key={PLANTED},{KEY[:7]}-another-1", "generation.n=1,2")
    assert said.code == 0, said.err
    assert not leaks(home, said, PLANTED, f"{KEY[:7]}-another-1")
    assert len(list((home / "out").iterdir())) == 4
    said = call("run", "run.yaml", "-m", f"reward.params.token={PLANTED},{KEY[:7]}-another-1")
    assert not leaks(home, said, PLANTED, f"{KEY[:7]}-another-1")


def test_flags_of_the_other_commands(home: Path, call: Call, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Echo, "mode", "answer")
    tasks = {"task": "say hi", "setup_commands": [], "success_condition": "true"}
    (home / "data.jsonl").write_text(json.dumps(tasks) + "\n")
    shell = ["shell", "--dataset", "data.jsonl", "--model", "m", "--phase", "inference", "--output-dir", "sh", "-v"]
    assert not leaks(home, call(*shell, "--base-url", endpoint, "--api-key", KEY))
    assert not leaks(home, call(*shell, "--base-url", f"http://u:{PLANTED}@127.0.0.1:1/v1"))
    (home / "data.jsonl").write_text(json.dumps({"id": "1", "user_query": "x", "ground_truth": "x"}) + "\n")
    monkeypatch.setenv("MY_KEY", KEY)
    best = ["best-of-n", "--dataset", "data.jsonl", "--splits", "math", "--model", "m", "-n", "2", "-o", "b.parquet"]
    best += ["--base-url", endpoint, "--api-key-env", "MY_KEY", "--cache-dir", "cache", "-v"]
    said = call(*best, "--extra-body", json.dumps({"auth": {"token": PLANTED}}), "--notes", f"with {KEY}")
    assert (home / "b.parquet").exists(), said.err
    assert not leaks(home, said)
    assert not leaks(home, call("inspect", "b.parquet"))
    assert not leaks(home, call("best-of-n", "--dataset", f"https://u:{PLANTED}@h/d.jsonl", "--splits", "math"))
    assert not leaks(home, call("best-of-n", "--base-url", f"https://u:{PLANTED}@h", "--api-key-env", PLANTED))
    assert not leaks(home, call("best-of-n", "--api-key-env", f"sk-{PLANTED}"))


def test_the_environment_is_shown_by_nobody(home: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_TOKEN", PLANTED)
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:{KEY}@proxy:1")
    (home / "reward.py").write_text(
        "import os\nfrom reward_kit import reward_function\n"
        "@reward_function\ndef judge(messages, **kwargs):\n    raise ValueError(str(dict(os.environ)))\n"
    )
    (home / "run.yaml").write_text(yaml.safe_dump(settings()))
    said = call("run", "run.yaml", "--verbose")
    assert not leaks(home, said, PLANTED)


def test_ordinary_settings_are_kept_whole(home: Path, call: Call) -> None:
    params = {
        "answer_key": "final", "stop_token": "</s>", "max_tokens": 12, "id": "4f0c21aa4f0c21aa4f0c21aa4f0c21aa",
        "model": "accounts/fireworks/models/llama-v3p1-405b-instruct", "column": "MetaMathQA40kCorrectedVersion",
        "uuid": "123e4567-e89b-12d3-a456-426614174000", "url": "https://host/path?version=3#part", "monkey": "banana",
    }  # fmt: skip
    body = {"logit_bias": {"50256": -100}, "chat_template_kwargs": {"enable_thinking": False}}
    told = settings(reward={"params": params}, generation={"extra_body": body}, system_prompt="Say `token: x`.")
    (home / "run.yaml").write_text(yaml.safe_dump(told))
    assert call("run", "run.yaml").code == 0
    written = yaml.safe_load((home / "out" / "config.yaml").read_text())
    assert written["reward"]["params"] == params
    assert written["generation"]["extra_body"] == body
    assert written["system_prompt"] == "Say `token: x`."


PRINTING = """
from reward_kit import reward_function

@reward_function
def judge(messages, token="", **kwargs):
    print("judging with", token)
    return {"score": 1.0, "reason": "said"}
"""


def test_what_a_reward_prints_is_kept_and_shown_without_its_token(home: Path, call: Call) -> None:
    (home / "reward.py").write_text(PRINTING)
    (home / "run.yaml").write_text(yaml.safe_dump(settings(reward={"params": {"token": PLANTED}})))
    assert leaks(home, call("run", "run.yaml")) == []
    assert (home / "out" / "reward_output.log").read_text() == "judging with ***\n" * 2
    said = call("rewards", "try", "reward.py:judge", "--answer", "x", "-p", f"token={PLANTED}")
    assert "judging with ***" in said.out
    assert leaks(home, said) == []


def test_a_key_is_on_no_command_line_of_a_worker(
    home: Path, call: Call, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Echo, "mode", "quiet")
    (home / "reward.py").write_text(
        "from pathlib import Path\n\ndef judge(messages, token, **kwargs):\n"
        "    return {'score': 1.0, 'reason': Path('/proc/self/cmdline').read_text().replace(chr(0), ' ')}\n"
    )
    told = settings(endpoint, reward={"params": {"token": PLANTED}})
    told["generation"] |= {"api_key": KEY}
    (home / "run.yaml").write_text(yaml.safe_dump(told))
    said = call("run", "run.yaml", "--json")
    judged = [
        json.loads(line)["evaluation_reason"] for line in (home / "out" / "results.jsonl").read_text().splitlines()
    ]
    assert [("child.py" in line, "***" in line) for line in judged] == [(True, False)] * 2, "it shows no key, blotted"
    assert leaks(home, said) == []


def test_the_login_of_a_proxy_is_shown_by_nobody(home: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://bob:{quote(KEY, safe='')}@127.0.0.1:1")
    (home / "run.yaml").write_text(yaml.safe_dump(settings("http://example.invalid/v1")))
    for command in (("run", "run.yaml", "-v"), ("doctor",)):
        assert leaks(home, call(*command)) == []


def test_commands_on_this_machine_do_not_see_the_keys(home: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", PLANTED)
    task = {"task_id": "t", "task": "x", "setup_commands": [], "success_condition": "true", "generated_command": "env"}
    (home / "run.yaml").write_text(json.dumps(task) + "\n")
    (home / "run.yaml").rename(home / "data.jsonl")
    said = call(
        "shell", "--phase", "execution", "--commands-file", "data.jsonl", "--output-dir", "sh", "--sandbox", "none"
    )
    assert said.code == 0
    assert leaks(home, said) == []


def test_the_token_of_a_data_set_is_not_shown(home: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", PLANTED)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    said = call(
        "best-of-n", "--dataset", f"nobody/{PLANTED}", "--splits", "train", "--verifier", "train=math", "--model",
        "mock", "-n", "1", "-o", "b.parquet", "--cache-dir", "c", "-v",
    )  # fmt: skip
    assert said.code != 0
    assert leaks(home, said) == []
