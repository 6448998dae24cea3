# SPDX-License-Identifier: Apache-2.0
"""What may be a credential, and how it is taken out."""

# ruff: noqa: E501 - tables of cases read best on one line

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit import redaction
from reward_kit.redaction import (
    MASK,
    blot,
    echoes,
    forget_all,
    is_secret_name,
    is_variable_name,
    mask,
    mask_words,
    remember,
    remember_arguments,
    remember_environment,
    remember_settings,
    sent,
    without_secrets,
)

SECRET_NAMES = [
    "api_key", "API_KEY", "apiKey", "x-api-key", "X-Api-Key", "token", "auth_token", "hfToken",
    "private_key", "privateKey", "passwd", "Credentials", "bearer", "Authorization", "proxy-authorization",
    "my_key", "aws_secret_access_key", "openai_api_key_prod", "client_secret", "password",
    "generation.api_key", "cookie",
]  # fmt: skip
OTHER_NAMES = [
    "api_key_env", "max_tokens", "stop_token", "eos_token", "answer_key", "ground_truth_key", "tokens",
    "tokenizer", "keyword", "keys", "monkey", "author", "path_or_name", "model_name", "seed", "auth_method",
    "pass_threshold", "prompt_tokens", "token_count", "bypass", "sort_key",
]  # fmt: skip


def _sent_values() -> set[str]:
    return redaction._known.sent


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_names_of_credentials(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_names_of_other_things(name: str) -> None:
    assert not is_secret_name(name)


@given(st.text(min_size=12, max_size=60).filter(lambda text: text.strip() == text and MASK not in text), st.text())
def test_a_known_credential_is_found_in_every_spelling(secret: str, around: str) -> None:
    forget_all()
    sent(secret)
    raw = secret.encode()
    texts = [secret, quote(secret, safe=""), json.dumps(secret), repr(secret), raw.hex()]
    for text in (f"{around}{text}{around}" for text in texts):
        assert secret not in blot(text)
        assert echoes(text.encode(errors="surrogatepass")) or secret not in _sent_values()
    for before in (b"", b"u:", b"abc"):
        encoded = base64.b64encode(before + raw).decode()
        assert encoded not in blot(f"x{encoded}x")


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-abcdefghijklmnop1234", "fw_3ZabcdefgH", "hf_abcdefghijkl", "ghp_abcdefghijklmnop", "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA1234567890abcdefghijklmnop", "xoxb-1234567890-abc", "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----", "https://u:secretpass@host/x",
        "Authorization: Bearer abcdefgh12345", "api_key=abc12345", '{"password": "xyzzy1234"}', "?token=abc12345&a=1",
    ],
)  # fmt: skip
def test_shapes_are_masked_in_messages(text: str) -> None:
    masked = mask(f"It said: {text} and more")
    assert MASK in masked
    assert masked.startswith("It said: ")
    for secret in ("abcdefgh", "12345", "secretpass", "xyzzy", "MIIEow", "IOSFODNN", "c2lnbmF0"):
        assert secret not in masked or secret not in text


@pytest.mark.parametrize(
    "text",
    [
        "4f0c21aa4f0c21aa4f0c21aa4f0c21aa", "accounts/fireworks/models/llama-v3p1-405b-instruct", "task-ask-sk-y",
        "expected max_tokens=100", "https://host:8000/v1?api-version=2024", "Unexpected token: end", "a@b.c", "risk-averse",
        "123e4567-e89b-12d3-a456-426614174000", "nvidia/Nemotron-Post-Training-Dataset-v1", "the key: it is there",
    ],
)  # fmt: skip
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert mask(text) == text
    assert without_secrets({"params": {"x": text}}) == {"params": {"x": text}}


def test_data_hold_a_credential_only_where_one_was_sent() -> None:
    data = (
        b'{"content": "use sk-proj-abcdefghijklmnop1234, EMPTY, token-abc123, sk-no-key-required, password: hunter2"}'
    )
    for word in ("EMPTY", "none", "password", "hunter", "hunter2", "token-abc123", "sk-no-key-required"):
        sent(word)  # too likely in an answer
    remember("sk-proj-abcdefghijklmnop1234")  # known, and never sent
    assert not echoes(data)
    sent("sk-proj-abcdefghijklmnop1234")
    assert echoes(data)


@given(st.text(alphabet="abcdefghijKLMNOP0123456789-_.+/=", min_size=20, max_size=60), st.data())
def test_a_key_is_found_however_json_escapes_it(key: str, draw: st.DataObject) -> None:
    forget_all()
    sent(key)
    escaped = "".join(f"\\u{ord(c):04x}" if draw.draw(st.booleans()) else c for c in key)
    assert json.loads(f'"{escaped}"') == key
    assert echoes(f'{{"content": "It is {escaped}."}}'.encode()) or key not in _sent_values()


def test_an_environment_holds_places_too() -> None:
    remember_environment({"PWD": "/home/me/work", "MY_TOKEN": "abc123def456", "HTTP_PROXY": "http://u:pr0xy-pass@h:1"})
    assert blot("/home/me/work abc123def456 pr0xy-pass") == f"/home/me/work {MASK} {MASK}"


def test_a_command_line_is_understood() -> None:
    remember_arguments(
        ["shell", "--api-key", "first1", "generation.api_key=second2,third3", "+reward.params={token: fourth4}"]
    )
    assert blot("first1 second2 third3 fourth4") == " ".join([MASK] * 4)
    assert mask_words(["--api-key", "x", "--model", "m"]) == ["--api-key", "…", "--model", "m"]


KEY_FILES = ["key.pem", "server.key", "/etc/ssl/private/key.pem", "certs/tls", "./k.pem", "~/k/tls-2026.key"]
KEYS_OF_TLS = [
    "sk-proj-abcdefghijklmnop1234", "Zx9Kq2Lm8Rt4Vb6Nw1Yc3Pf5", "a/Zx9Kq2Lm8Rt4Vb6Nw1Yc3Pf5.pem", "hunter22hunter",
    "Zx9Kq2/m8Rt4Vb+Nw1Yc3Pf5==", "-----BEGIN PRIVATE KEY-----\nMIIEow", "https://u:passw0rd@host/key.pem",
]  # fmt: skip


@pytest.mark.parametrize("path", KEY_FILES)
def test_the_file_of_a_key_is_no_secret(path: str) -> None:
    words = ["serve", "--tls-key", path, f"--tls-key={path}", f"tls.key={path}"]
    remember_arguments(words)
    remember_settings({"tls": {"key": path, "cert": "c.pem"}})
    remember_settings({"tls": {"key": Path(path)}})
    assert mask(f"{path!r} cannot be read. tls.key: {path}") == f"{path!r} cannot be read. tls.key: {path}"
    assert mask_words(words) == words
    assert without_secrets({"tls": {"key": path}}) == {"tls": {"key": path}}


@pytest.mark.parametrize("key", KEYS_OF_TLS)
def test_a_key_in_the_place_of_its_file_is_a_secret(key: str) -> None:
    assert key not in " ".join(mask_words(["--tls-key", key]))
    assert without_secrets({"tls": {"key": key}}) == {"tls": {}}
    remember_arguments(["--tls-key", key])
    assert key not in mask(f"It is {key} here.")
    forget_all()
    remember_settings({"tls": {"key": key}})
    assert key not in mask(f"It is {key} here.")


@pytest.mark.parametrize("name", ["api_key", "password", "key"])
def test_other_credentials_may_look_like_paths(name: str) -> None:
    remember_settings({name: "/my/pass.word"})
    assert "/my/pass.word" not in blot("It is /my/pass.word here.")
    assert without_secrets({name: "/my/pass.word", "storage_options": {"tls": {"key": "k.pem"}}}) == {
        "storage_options": {"tls": {}}
    }


@pytest.mark.parametrize(
    "name", ["sk-abc", "fw_3ZabcdefgH12", "planted-secret", "my key", "", "ABCDEF0123456789ABCDEF", "é"]
)
def test_a_key_is_not_taken_for_a_variable(name: str) -> None:
    assert not is_variable_name(name)


@pytest.mark.parametrize("name", ["MY_KEY", "OPENAI_API_KEY", "K2"])
def test_a_variable_is(name: str) -> None:
    assert is_variable_name(name)


@pytest.mark.parametrize(
    "text", ["y" * 200_000, "sk-" + "a-" * 100_000, "token=" * 30_000, "a:" * 100_000, "https://" + "u@" * 50_000]
)
def test_long_texts_take_no_long_time(text: str) -> None:
    mask(text)  # a pattern that looks at each character more than a few times would not come to an end here


# ── what is none ─────────────────────────────────────────────────────────────────────────────────────────────────────

MODELS = [
    "gpt-4o-mini-2024-07-18", "deepseek-ai/DeepSeek-R1-0528", "meta-llama/Llama-3.3-70B-Instruct", "o3-mini-high",
    "Qwen/Qwen2.5-Coder-32B-Instruct-AWQ", "accounts/fireworks/models/llama-v3p1-405b-instruct", "claude-3-5-haiku-latest",
    "mistralai/Mixtral-8x22B-Instruct-v0.1", "google/gemma-3n-E4B-it-litert-preview", "hf_transfer-test", "pypi-server-of-our-own", "xai-explanations-large", "sk-learn/tiny",
    "nvidia/Llama-3_1-Nemotron-Ultra-253B-v1", "HuggingFaceTB/SmolLM2-360M-Instruct-Q8_0.gguf",
]  # fmt: skip
COLUMNS = [
    "question", "answer", "ground_truth", "user_query", "tokens", "token_count", "answer_key", "key_points", "keywords",
    "passage", "author", "authority", "session", "signature_style", "code", "hash", "sha256", "secretary", "compass",
    "prompt_tokens", "cookiecutter", "tokenizer", "monkey", "sort_key", "primary_key", "id", "uuid", "level", "subject",
]  # fmt: skip
ORDINARY = st.one_of(
    st.uuids().map(str),
    st.binary(min_size=16, max_size=32).map(bytes.hex),
    st.binary(min_size=20, max_size=20).map(lambda raw: f"sha256:{raw.hex()}"),
    st.integers(0, 10**12).map(lambda number: f"train-{number:012d}"),
    st.tuples(st.sampled_from(["gsm8k", "math", "aime_2024"]), st.integers(0, 10**6)).map(
        lambda two: f"{two[0]}/{two[1]}"
    ),
    st.datetimes().map(lambda moment: moment.isoformat()),
    st.sampled_from(MODELS),
    st.floats(allow_nan=False).map(str),
)


@given(ORDINARY, st.sampled_from(COLUMNS))
def test_ordinary_ids_hashes_models_and_columns_are_kept_as_they_are(value: str, column: str) -> None:
    forget_all()
    for text in (value, f"Sample {value!r} of {column!r} is no row.", f"outputs/{value}/results.jsonl, line 3"):
        assert mask(text) == text
        assert not echoes(text.encode())
    told = {
        "generation": {"model_name": value},
        "dataset": {"column_mapping": {column: value}, "path_or_name": value},
        "reward": {"params": {"reference": value, "ids": [value], column: 1}},
    }
    assert without_secrets(told) == told


@given(ORDINARY, st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_", min_size=12, max_size=40))
def test_a_known_credential_takes_nothing_else_with_it(value: str, secret: str) -> None:
    forget_all()
    remember(secret)
    if secret not in value:
        assert blot(f"Sample {value}") == f"Sample {value}" or secret in f"Sample {value}"
