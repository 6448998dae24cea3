# SPDX-License-Identifier: Apache-2.0
"""The settings of a run: `PipelineConfig` and its parts.

Frozen, and strict: an unknown key is refused with the nearest known one named. The comment string under each field is
its documentation; `docs/reference/config.md` is generated from these.
"""

# Annotations are evaluated as the module is read, as in `reward_kit.models`: it starts sooner.

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self, TypeVar, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import to_jsonable_python
from pydantic_core.core_schema import ValidationInfo

from reward_kit.errors import ConfigError
from reward_kit.redaction import (
    NOT_A_VARIABLE,
    is_variable_name,
    mask,
    masked_paths,
    remember,
    remember_settings,
    url_holds_login,
)
from reward_kit.sandbox_backends import AUTO, BackendChoice

__all__ = [
    "AgentConfig",
    "ApiParamsConfig",
    "BatchConfig",
    "BranchingConfig",
    "CacheConfig",
    "ChoicesConfig",
    "DatasetConfig",
    "EngineConfig",
    "EvaluationParamsConfig",
    "FewShotConfig",
    "GenerateActorsConfig",
    "GenerationConfig",
    "JudgeApi",
    "JudgeConfig",
    "LongPrompts",
    "MockConfig",
    "MockRule",
    "ModelConfig",
    "OutputConfig",
    "PipelineConfig",
    "Price",
    "RemoteRewardConfig",
    "RewardConfig",
    "Sampling",
    "SandboxConfig",
    "SandboxTool",
    "ScoreActorsConfig",
    "StrictPart",
    "TokensAsked",
    "UserConfig",
    "WritingApi",
    "by_main_names",
    "dataset_without_unused",
    "known_paths",
    "load_config",
    "reward_without_unused",
    "validated",
    "without_unused",
]

Model = TypeVar("Model", bound=BaseModel)


_MAY_BE_BLANK = frozenset({"system_prompt", "prompt_template", "pattern", "response", "notes"})
"""Texts for a model or a person. Every other text is a name, a path or an address, and a blank one is a mistake."""
_ADDRESSES = frozenset({"api_base", "base_url", "sos_url"})
_MAY_BE_ADDRESSES = frozenset(
    {"path_or_name", "dataset", "data_files", "rollouts_file", "output_dir", "output", "image", "mirror"}
)
_DEEPEST_VALUE = 64
"""Levels of lists and mappings in one value; deeper ones are an accident or an attack."""
_LARGEST = 2**63 - 1
_LAST_PORT = 65_535


class StrictPart(BaseModel):
    """A frozen part of a configuration that refuses keys it does not know, and values that only look like values.

    One rule for every field: `true` is no number, a number is finite and fits 64 bits, text can be written to a file, a
    name is not blank, an address is one and holds no login.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False,
        hide_input_in_errors=True,
    )  # fmt: skip

    @field_validator("*", mode="before")
    @classmethod
    def _strict(cls, value: object, info: ValidationInfo) -> object:
        name = info.field_name or ""
        _check_plain(value)
        if isinstance(value, bool) and _is_number(cls.model_fields[name].annotation):
            raise ValueError("a number is expected, not true or false")
        if isinstance(value, str):
            _check_text(name, value)
        elif name in _MAY_BE_ADDRESSES and url_holds_login(repr(value)):
            raise ValueError(_LOGIN_IN_ADDRESS)
        return value


_LOGIN_IN_ADDRESS = (
    "it holds a login (user:password@), which would be written to a file. Remove it, and put the key into an "
    "environment variable, such as the one that api_key_env names"
)


def _check_text(name: str, value: str) -> None:
    if not value.strip() and name not in _MAY_BE_BLANK and value != "":
        raise ValueError("it is blank; give a name, or leave the key out")
    if not value and name in {"output_dir", "cache_dir", "path_or_name", "function_path", "mirror"}:
        raise ValueError("it is empty; give a name, or leave the key out")
    if name in _ADDRESSES | _MAY_BE_ADDRESSES and url_holds_login(value):
        remember_settings({name: value})
        raise ValueError(_LOGIN_IN_ADDRESS)
    if name in _ADDRESSES:
        check_address(value)
    if name == "api_key_env" and not is_variable_name(value):
        remember(value)
        raise ValueError(NOT_A_VARIABLE.rstrip("."))
    if name == "function_path" and value.startswith(("http://", "https://")):
        if url_holds_login(value):
            remember_settings({name: value})
            raise ValueError(_LOGIN_IN_ADDRESS)
        check_address(value)


def check_address(value: str) -> None:
    """Refuse what is not the address of a server."""
    try:
        parts = urlsplit(value)
        port, host = parts.port, parts.hostname
    except ValueError:  # `http://[::1/v1`, a port that is no number or over 65535
        raise ValueError(_NO_ADDRESS) from None
    if parts.scheme not in {"http", "https"} or not host or port == 0:
        raise ValueError(_NO_ADDRESS)
    if any(character.isspace() or not character.isprintable() for character in value):
        raise ValueError(_NO_ADDRESS)


_NO_ADDRESS = f"it is not an address; give one such as 'http://localhost:8000/v1', with a port from 1 to {_LAST_PORT}"


def _check_plain(value: object, depth: int = 0) -> None:
    """Refuse what cannot be written down as it is: half a character, a NUL, a number beyond 64 bits, endless depth."""
    if depth > _DEEPEST_VALUE:
        raise ValueError(f"it is more than {_DEEPEST_VALUE} levels deep; make it flatter")
    if isinstance(value, str):
        _check_characters(value)
    elif isinstance(value, int) and not -_LARGEST <= value <= _LARGEST:
        raise ValueError("the number does not fit 64 bits; give a smaller one")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a finite number is expected, not .nan or .inf")
    elif isinstance(value, Mapping):
        for item in (*value.keys(), *value.values()):
            _check_plain(item, depth + 1)
    elif isinstance(value, list | tuple | set):
        for item in value:
            _check_plain(item, depth + 1)


def _check_characters(text: str) -> None:
    if "\0" in text:
        raise ValueError("it holds a NUL character; remove it")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("it is not valid text (half of a surrogate pair, or bytes that are not UTF-8); correct it")


def by_main_names(given: Mapping[str, Any], also_called: Mapping[str, str]) -> dict[str, Any]:
    """A part as it was given, with each key by its main name; `also_called` has another name, then the main one."""
    if both := [name for name in given if also_called.get(name, name) != name and also_called[name] in given]:
        raise ValueError(f"{both[0]!r} and {also_called[both[0]]!r} are two names of one key; give one of them")
    return {also_called.get(name, name): value for name, value in given.items()}


def _is_number(annotation: object) -> bool:
    kinds = {annotation, *get_args(annotation)}
    return bool(kinds & {int, float}) and bool not in kinds


class _Part(StrictPart):
    """A part of a run's configuration."""


DatasetFormat = Literal[
    "auto", "standard", "gsm8k", "math", "humaneval", "mbpp", "apps", "livecodebench", "bfcl", "nemotron", "sharegpt",
    "prompt_completion", "instruction_output", "question_answer",
]  # fmt: skip
"""Shapes of rows. `auto` recognises them by their columns."""


class ChoicesConfig(_Part):
    """The options of a multiple-choice question: where they are, which is right, and in which order they are shown."""

    options: str | list[str]
    """The column that holds the list of options, or several columns that hold one option each. A dotted name reaches
    into nested objects. The options become the column `choices`, and are lettered A, B, C … in their order."""
    right: str
    """The column that says which option is right: by its text, its letter, its number from 0, or a list with 1 for each
    right option and 0 for each other. The letter (several: a list of letters) becomes the ground truth."""
    shuffle_seed: int | None = None
    """Mix the options of each row. A row is mixed in the same way in every run with the same seed. Left out: as they
    are."""


class FewShotConfig(_Part):
    """Rows with their answers that are shown before each question. The template has them as the list `few_shot`."""

    count: int = Field(ge=0, le=1_000)
    """How many rows are shown."""
    path_or_name: str | None = None
    """Where the rows come from: a file or a Hugging Face dataset. Left out: the dataset itself."""
    config_name: str | None = None
    """The configuration (subset) of a Hugging Face dataset. Left out: that of the dataset."""
    split: str | None = None
    """The split the rows are taken from. Left out: the dataset's own. A row that is shown is not judged."""
    same: str | None = None
    """A column: only rows with the same value there as the question are shown, such as those of its subject."""
    seed: int = 0
    """Rows are drawn at random: the same ones in every run with the same seed."""
    first: bool = False
    """Take the first rows, in their order, and draw none at random."""
    pool: int = Field(default=10_000, ge=1)
    """How many rows are read, at most, to draw from."""


class DatasetConfig(_Part):
    """Where the samples come from, and how a row becomes one."""

    source_type: Literal["jsonl", "csv", "parquet", "huggingface", "python"] | None = None
    """How to read the source. By default the file's suffix decides; `pkg.mod:function` is Python; any other name
    without a suffix is a Hugging Face dataset."""
    path_or_name: str | None = None
    """A file, a glob of files (plain, .gz or .zst), an address such as `s3://bucket/part-*.jsonl`, the name of a
    Hugging Face dataset, or the import path of a function that returns rows."""
    base_dataset: "DatasetConfig | None" = None
    """Another dataset to start from. Its own settings are applied to its rows first, then the settings here."""
    split: str | None = None
    """The split to load, of Hugging Face or by the names of a folder's files; and the label of every sample."""
    config_name: str | None = None
    """The configuration (subset) of a Hugging Face dataset; or the argument of a function that returns rows."""
    revision: str | None = None
    """The version of a Hugging Face dataset: a branch, a tag or a commit. Left out, the newest one."""
    data_files: dict[str, Any] | str | list[str] | None = None
    """Passed to Hugging Face `load_dataset`."""
    storage_options: dict[str, Any] = Field(default_factory=dict)
    """For data in an object store: options of its fsspec filesystem, such as `endpoint_url` or `anon`. Put credentials
    into the store's own environment variables instead; credentials given here are never written to a file."""
    streaming: bool = True
    """Stream a Hugging Face dataset instead of downloading it first. Files are always streamed."""
    max_samples: int | None = Field(default=None, ge=0)
    """Take at most this many samples, the first ones. `evaluation_params.limit_samples` is its inherited name."""
    format: DatasetFormat = "auto"
    """The shape of the rows. `auto` decides by the columns; `standard` knows only reward-kit's own column names."""
    column_mapping: dict[str, str] = Field(default_factory=dict)
    """New column name: old column name. A dotted old name reaches into nested objects."""
    preprocess: list[str] = Field(default_factory=list)
    """Import paths of functions that take a row (a dict) and return a row, a list of rows, or None to drop it."""
    choices: ChoicesConfig | None = None
    """For multiple-choice questions: where the options are, and in which order they are shown."""
    few_shot: FewShotConfig | None = None
    """Rows with their answers, shown before each question by `prompt_template`."""
    system_prompt: str | None = None
    """The system prompt of every sample whose row has none. It is used instead of the `system_prompt` of the run."""
    prompt_template: str | None = None
    """A Jinja template over the row's columns that makes the user turn, e.g. "Solve: {{ question }}"."""
    id_column: str = "id"
    """The column that names a row. A row without one gets the hash of its columns but the ground truth."""
    response_column: str = "assistant_response"
    """With generation disabled: the column that holds the answer."""
    on_bad_row: Literal["error", "skip"] = "error"
    """Stop at a row that cannot be read, naming file, line and reason; or skip it and count it."""

    @model_validator(mode="after")
    def _has_a_source(self) -> Self:
        if self.path_or_name is None and self.base_dataset is None:
            raise ValueError("a dataset needs `path_or_name` (a file or a Hugging Face name) or a `base_dataset`")
        if self.few_shot is not None and "few_shot" not in (self.prompt_template or ""):
            raise ValueError(
                "`few_shot` rows are shown by a `prompt_template`, which has to name them: "
                "{% for row in few_shot %} … {% endfor %}"
            )
        return self


class ApiParamsConfig(_Part):
    """Concurrency, rate limits, retries and time-outs."""

    max_retries: int = Field(default=5, ge=0, le=1_000)
    """Further attempts after a failure that may pass (5xx, a lost connection, a broken answer). Waiting for an endpoint
    that is busy (429, or 503 with `Retry-After`) is not counted: see `max_wait`."""
    max_wait: float = Field(default=900.0, ge=0)
    """The longest time, in seconds, that requests wait for a busy endpoint while it answers none of them."""
    max_concurrent_requests: int = Field(default=64, ge=1, le=100_000)
    """The most requests at a time. Fewer are sent while the endpoint reports that it is overloaded."""
    rate_limit_qps: float | None = Field(default=None, gt=0)
    """The most requests per second."""
    rate_limit_tpm: float | None = Field(default=None, gt=0)
    """The most tokens (prompt and answer, estimated) per minute."""
    timeout: float = Field(default=300.0, gt=0)
    """Seconds one request may take."""
    max_reply_mb: float = Field(default=64.0, gt=0, le=4096)
    """The most megabytes of one answer, unpacked. A larger answer is a failure, and is not asked for again."""
    max_retry_after: float = Field(default=120.0, ge=0)
    """The longest wait, in seconds, that an endpoint's `Retry-After` may ask for. If it asks for more, it is asked
    again after this time."""


class CacheConfig(_Part):
    """The response cache: an answer that was paid for is never paid for again."""

    enabled: bool | None = None
    """False: do not use the cache, and ask again for answers that it already holds. True: share answers with all runs
    that use its directory. Left out: share them too, but those of a model on this machine or in a private network
    only within one output directory, because another model may answer under the same name tomorrow."""
    cache_dir: str = ".reward_kit_cache"
    """The directory of the cache. Several runs may use it at the same time."""

    @field_validator("cache_dir", mode="before")
    @classmethod
    def _is_not_a_switch(cls, value: object) -> object:
        if value is None:
            default = cls.model_fields["cache_dir"].default
            raise ValueError(
                "to go without a cache, set `cache.enabled` of the same section to false. For the default directory "
                f"({default!r}, where the command runs), leave `cache_dir` out"
            )
        return value


class LongPrompts(_Part):
    """What a provider takes for requests with long prompts: all of such a request costs more."""

    above: int = Field(ge=1)
    """Requests whose prompts have more tokens than this."""
    input: float = Field(ge=1)
    """By how much the prices of prompt tokens are multiplied."""
    output: float = Field(ge=1)
    """By how much the price of the answer's tokens is multiplied."""


class Price(_Part):
    """The price of a million tokens."""

    input: float = Field(ge=0)
    """For prompt tokens."""
    output: float = Field(ge=0)
    """For the answer's tokens."""
    cached_input: float | None = Field(default=None, ge=0)
    """For prompt tokens the provider had cached; `input` when left out."""
    cache_write: float | None = Field(default=None, ge=0)
    """For prompt tokens the provider puts into its cache; `input` when left out."""
    long_prompts: LongPrompts | None = None
    """How much dearer requests with long prompts are, where they are."""


class MockRule(_Part):
    """Answer with `response` when `pattern` (a regular expression) is found in the last user turn."""

    pattern: str
    """A regular expression."""
    response: str | list[str]
    """One answer, or several that the draws get in turn. `\\1` and `\\g<name>` stand for what the pattern captured."""


class MockConfig(_Part):
    """What the built-in `mock` model says. Deterministic: the same prompt and draw give the same answer."""

    responses: list[str] | None = None
    """Scripted answers: draw i of a sample gets responses[i % len]."""
    rules: list[MockRule] = Field(default_factory=list)
    """Rules that are tried first, in order."""
    script: str | None = None
    """The path of a script for `reward-kit mock serve`. Its answers are used when no rule matches; its faults are not
    used."""
    function_path: str | None = None
    """Import path of `f(messages, draw) -> str | Message`; used when no rule matches."""
    latency_ms: float = Field(default=0.0, ge=0)
    """How long each answer takes, in milliseconds."""
    fail_every: int | None = Field(default=None, ge=1)
    """Every k-th call fails with an error that can be retried, to try out failures."""


TokensAsked = Literal["ids", "ids+logprobs"]
"""What is wanted to be known of the tokens of each answer."""


class Sampling(_Part):
    """The sampling settings that are sent to the endpoint."""

    temperature: float | None = Field(default=None, ge=0)
    """The sampling temperature. None: the endpoint's default."""
    max_tokens: int | None = Field(default=None, ge=1)
    """The most tokens of one answer."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Draw from the likeliest tokens that together have this probability."""
    top_k: int | None = None
    """Draw from this many of the likeliest tokens."""
    min_p: float | None = Field(default=None, ge=0, le=1)
    """Draw from tokens that are at least this fraction as likely as the likeliest token."""
    reasoning_effort: str | None = None
    """For models that reason first: how much. The endpoint defines the words (`low`, `medium`, `high` …)."""
    stop: list[str] | None = None
    """Texts that end an answer. The answer stops before the first of them."""
    seed: int | None = None
    """The seed of the run. Each draw of each sample gets its own seed, derived from this one."""
    tokens: TokensAsked | None = None
    """Ask for the ids of each answer's tokens (`ids`), or also for their log-probabilities (`ids+logprobs`), in the
    provider's words; an answer without them ends the run. vLLM, SGLang and Together tell them."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request body, sent as they are."""

    def given(self) -> dict[str, Any]:
        """The settings that were made, without those left to the endpoint."""
        return {name: value for name, value in self.__dict__.items() if value is not None and value != {}}


class ModelConfig(Sampling):
    """Which model is asked, and how it is called."""

    model_name: str | None = None
    """A provider and its model (`anthropic/NAME`); a model that `api_base` knows; `mock`; or `local` /
    `local:FILE.gguf` for a model inside this process."""
    max_tokens: int | None = Field(default=1024, ge=1)
    """The most tokens of one answer."""
    api_base: str | None = None
    """An OpenAI-compatible endpoint: `http://localhost:8000/v1`. Default: the endpoint of the provider in `model_name`;
    Fireworks for `accounts/…`; otherwise OpenAI. Also called `base_url`."""
    api_key: SecretStr | None = None
    """The key itself. Better put it into an environment variable. It is never written to a file or a log."""
    api_key_env: str | None = None
    """The environment variable that holds the key."""
    n_mode: Literal["auto", "native", "fanout"] = "auto"
    """Ask for n answers in one request (`native`), in n requests (`fanout`), or find out which works (`auto`)."""
    api_params: ApiParamsConfig = ApiParamsConfig()
    """Concurrency, rate limits, retries and time-outs."""
    cache: CacheConfig = CacheConfig()
    """The cache of answers that were paid for."""
    mock: MockConfig = MockConfig()
    """What the model called `mock` says."""
    price: Price | None = None
    """The model's price, if the built-in table does not have it."""

    @model_validator(mode="before")
    @classmethod
    def _main_names(cls, given: object) -> object:
        return by_main_names(given, {"base_url": "api_base"}) if isinstance(given, Mapping) else given

    def sampling(self) -> Sampling:
        """The part of this that is sent to the endpoint."""
        return Sampling(**{name: self.__dict__[name] for name in Sampling.model_fields})


class BatchConfig(_Part):
    """How a batch endpoint is used, where `transport` is `batch`."""

    provider: Literal["auto", "openai", "fireworks"] = "auto"
    """Whose API: OpenAI's files and batches, which many others copy, or Fireworks' batch inference. `auto`: Fireworks
    where the endpoint is theirs, else OpenAI's."""
    discount: float = Field(default=0.5, ge=0, le=1)
    """The discount from the online price: 0.5 is half."""
    max_requests: int | None = Field(default=None, ge=1)
    """The most requests of one file. Default: what the provider takes (OpenAI 50,000)."""
    max_file_mb: float | None = Field(default=None, gt=0)
    """The most megabytes of one file. Default: what the provider takes (OpenAI 200)."""
    completion_window: str = "24h"
    """How long the provider may take. OpenAI knows `24h` only."""
    attempts: int = Field(default=3, ge=1, le=100)
    """How often a request may be put into a batch. A request that expires, gets lost or fails for a temporary reason is
    put into another batch; after this many it is a failure."""
    poll_seconds: float = Field(default=60.0, gt=0)
    """The longest pause, in seconds, between two checks of a batch. The first checks come sooner."""
    account: str | None = None
    """The Fireworks account. Default: `FIREWORKS_ACCOUNT_ID`, else the one in `~/.fireworks/auth.ini`."""


WritingApi = Literal["chat", "responses", "messages", "gemini"]
"""How a model that writes is asked: OpenAI's chat completions or Responses, Anthropic's Messages, Google's own API."""


class GenerationConfig(ModelConfig):
    """Which model answers, how many times, and how it is called."""

    api: WritingApi | None = None
    """By which API the model is asked: OpenAI's chat completions (`chat`) or Responses (`responses`), Anthropic's
    Messages (`messages`), Google's own (`gemini`). Default: what the provider has; `chat` where `api_base` is set."""

    models: list[str | dict[str, Any]] | None = None
    """Several models, instead of `model_name`. Each has its own run in a directory of its own, and they are compared at
    the end. An entry is a name, or settings of this section with a name (`{model_name: NAME, temperature: 0.2}`). Only
    for `reward-kit run`."""
    enabled: bool = True
    """False: score answers that are already in the data."""
    n: int = Field(default=1, ge=1, le=1_000_000)
    """Answers per sample. If you raise it later, you pay only for the new answers."""
    temperature: float | None = Field(default=0.7, ge=0)
    """The sampling temperature. None: the endpoint's default."""
    transport: Literal["online", "batch"] = "online"
    """`online`: a request for each answer, now. `batch`: files of requests, answered within a day at half the price."""
    batch: BatchConfig = BatchConfig()
    """How a batch endpoint is used."""

    @model_validator(mode="after")
    def _batched_one_by_one(self) -> Self:
        if self.transport == "batch" and self.n_mode == "native":
            raise ValueError("a batch has a line for each answer, so `n_mode=native` has no effect there; leave it out")
        if self.transport == "batch" and self.tokens is not None:
            raise ValueError("batches tell no tokens; leave `tokens` out, or `transport=batch`")
        return self


JudgeApi = Literal["chat", "responses", "messages", "gemini", "embeddings", "pooling", "classify", "score"]
"""How a model that judges is asked."""


class JudgeConfig(ModelConfig):
    """The model that is asked for verdicts by rewards with a parameter `judge`."""

    api: JudgeApi = "chat"
    """`chat`, `responses`, `messages` or `gemini` for models that write (`chat`: a provider's model is asked by the API
    that it has for it); `embeddings`; `pooling`, `classify` or `score` for reward models behind vLLM."""
    temperature: float | None = Field(default=0.0, ge=0)
    """The sampling temperature. None: the endpoint's default."""


class RemoteRewardConfig(_Part):
    """How a served reward is called: which credentials are sent, and how long it is tried."""

    sign_in: Literal["key", "google", "aws", "none"] = "key"
    """`key`: an API key, if one is known for the host (see `api_key_env`). `google`: an ID token, from google-auth
    or the metadata server. `aws`: requests are signed with SigV4, by botocore. `none`: nothing is sent."""
    api_key_env: str | None = None
    """The environment variable that holds the endpoint's key. Default: the key in the section of
    `~/.fireworks/auth.ini` that has the host's name; for Fireworks, the Fireworks key. With `google` or `aws` the key
    is sent as well, as `X-Api-Key`."""
    audience: str | None = None
    """The audience of the ID token (`google`). Default: the address without its path."""
    aws_region: str | None = None
    """The region that requests are signed for. Default: the one in the address, else that of the AWS settings."""
    aws_service: str | None = None
    """The service that requests are signed for. Default: by the address, `lambda` or `execute-api`."""
    client_cert_file: str | None = None
    """A client certificate (PEM), if the server asks for one."""
    client_key_file: str | None = None
    """The private key of the client certificate (PEM), if it is not in the same file."""
    ca_file: str | None = None
    """The certificate authority (PEM) of the server's certificate, if it is a private one."""
    timeout: float = Field(default=300.0, gt=0)
    """Seconds one request may take."""
    max_retries: int = Field(default=5, ge=0, le=1_000)
    """Further attempts after a failure that may pass: 5xx, a broken answer. Waiting for a server that is busy is not
    counted: see `max_wait`."""
    max_wait: float = Field(default=900.0, ge=0)
    """The longest time, in seconds, that requests wait for a busy server while it answers none of them."""
    max_outage: float = Field(default=60.0, ge=0)
    """The longest time, in seconds, without any answer, for example while the server restarts. After that the run
    stops."""
    max_retry_after: float = Field(default=120.0, ge=0)
    """The longest wait, in seconds, that the server's `Retry-After` may ask for."""
    max_concurrent_requests: int = Field(default=64, ge=1, le=100_000)
    """The most requests at a time. Fewer are sent while the server reports that it is overloaded."""
    batch_size: int = Field(default=64, ge=1, le=10_000)
    """The most answers in one request, if the server accepts several. 1: one answer per request."""
    max_reply_mb: float = Field(default=64.0, gt=0, le=4096)
    """The most megabytes of one reply, unpacked."""

    @model_validator(mode="after")
    def _a_key_has_a_certificate(self) -> Self:
        if self.client_key_file is not None and self.client_cert_file is None:
            raise ValueError("a `client_key_file` needs the `client_cert_file` that it belongs to")
        return self


class RewardConfig(_Part):
    """Which reward judges, its parameters, and its limits."""

    function_path: str
    """`pkg.mod:fn`, `pkg.mod.fn`, `file.py:fn`, a name that `reward-kit rewards list` shows, such as `math`, or the
    address of a reward that is served somewhere: `https://…/evaluate`."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Handed to the reward by name."""
    remote: RemoteRewardConfig = RemoteRewardConfig()
    """How a served reward is called."""
    timeout: float | None = Field(default=None, gt=0)
    """Seconds one call may take before it is killed and recorded as failed. Default: the reward's own, else 60."""
    workers: int | None = Field(default=None, ge=1, le=10_000)
    """Processes that run a synchronous reward. Default: the reward's own `concurrency`, else one per core."""
    concurrency: int | None = Field(default=None, ge=1)
    """Calls of an asynchronous reward at a time. Default: the reward's own, else 256."""
    memory_mb: int | None = Field(default=4096, ge=64)
    """Memory one worker process may allocate. None: unlimited."""
    isolate: bool = False
    """Run an asynchronous reward in worker processes, too, as synchronous rewards are. Use it for a reward that could
    disturb the run. Such a reward cannot use a sandbox or a judge."""
    invalid: Literal["failure", "score"] = "failure"
    """How to treat a result with `is_score_valid=False`. `failure`: there is no verdict. `score`: the score counts,
    unless the result names an error (in `error`, or as a metric `error`)."""
    pass_threshold: float = 1.0
    """A score of at least this counts as passed, for pass@k."""
    by_split: "dict[str, RewardConfig]" = Field(default_factory=dict)
    """Other rewards for some splits: the name of the split, then the same keys as in this section."""

    @model_validator(mode="after")
    def _splits_are_not_split(self) -> Self:
        if nested := [split for split, reward in self.by_split.items() if reward.by_split]:
            raise ValueError(f"the reward of split {nested[0]!r} cannot have a by_split of its own")
        return self

    def for_split(self, split: str | None) -> "RewardConfig":
        """The reward that judges the samples of `split`."""
        return self if split is None else self.by_split.get(split, self)


class SandboxConfig(_Part):
    """Where rewards run commands and code: those that name `sandbox` or `isolated_python`."""

    backend: BackendChoice = AUTO
    """The kind of sandbox. `auto`: the first kind that passes a test on this machine. `none`: no isolation at all."""
    image: str | None = None
    """A container image (docker, podman, sos), or the directory of a root filesystem (namespaces)."""
    sos_url: str = "http://127.0.0.1:3000"
    """The address of the SoS server, for the backend `sos`."""
    setup_join: Literal["&&", ";"] = "&&"
    """`&&`: a setup command that fails ends the setup, and the item fails. `;`: the others still run."""
    timeout: float = Field(default=30.0, gt=0)
    """Seconds one command may take. Code rewards have a limit of their own."""
    memory_mb: int = Field(default=512, ge=16)
    """Memory of all processes of a sandbox together. Code rewards have a limit of their own."""
    network: bool = False
    """Whether commands may use the network."""
    snapshots: bool = True
    """Run a slow setup once, and reuse its result for all tasks with the same setup (namespaces only)."""


FIRST_BRANCH = 1_000_000
"""The number of an agent's first branch: the largest n, so that raising n moves no branch."""

SandboxTool = Literal["bash", "python", "read_file", "write_file"]
"""Tools that a sandbox offers to an agent."""


class UserConfig(ModelConfig):
    """A simulated user, who goes on talking after the agent has answered: a script, or a model that plays the user."""

    script: str | list[str] | None = None
    """What the user says, turn by turn; or the name of the column that holds such a list."""
    prompt: str | None = None
    """The instructions for the model that plays the user: a Jinja template over the sample's columns."""
    last_words: str = "###STOP###"
    """A reply of the user that contains this text ends the conversation."""
    temperature: float | None = Field(default=0.0, ge=0)
    """The sampling temperature. None: the endpoint's default."""

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.script is None) == (self.model_name is None):
            raise ValueError("a user has a `script`, or a `model_name` and a `prompt`; give one of the two")
        if self.model_name is not None and self.prompt is None:
            raise ValueError("a model that plays the user needs a `prompt` that says whom it plays")
        return self


class BranchingConfig(_Part):
    """Further episodes that begin in the middle of finished ones. The steps that they share are not paid again."""

    total: int = Field(ge=1, le=100_000)
    """Episodes per sample beyond `generation.n`."""
    at: int | list[int] | str = 1
    """Where branches begin: a number k for every k-th step, a list of steps, or the import path of a function
    `f(rollout) -> list[int]`. A branch begins before the named step."""
    width: int | None = Field(default=None, ge=1)
    """How many branches begin at one step. By default they are spread over all steps that `at` names."""
    depth: int = Field(default=1, ge=1, le=100)
    """How often a branch may branch again."""

    @field_validator("at")
    @classmethod
    def _some_step(cls, at: int | list[int] | str) -> int | list[int] | str:
        if (isinstance(at, int) and at < 1) or (isinstance(at, list) and (not at or min(at) < 1)):
            raise ValueError(
                "a branch can begin at step 1 or later, because the first step is step 0; give such a step"
            )
        return at


class AgentConfig(_Part):
    """A model that acts, turn by turn, in a world: which world, and how long."""

    environment: str | None = None
    """Import path of a class of worlds, an `Environment`, or a function that takes a sample and returns a world."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Handed to the environment by name."""
    tools: list[str] = Field(default_factory=list)
    """Import paths of functions that the model may call. Without an environment, the model has only these tools."""
    sandbox_tools: list[SandboxTool] = Field(default_factory=list)
    """Tools of a fresh sandbox for each episode, made as the `sandbox` settings say. The columns `setup` (commands) and
    `files` (path: text) of a sample prepare it."""
    capture: list[str] = Field(default_factory=list)
    """Files of that sandbox that are kept at the end. Rewards read them as the fact `files`."""
    user: UserConfig | None = None
    """A simulated user, who goes on talking after the model has answered."""
    branching: BranchingConfig | None = None
    """Further episodes that begin in the middle of finished ones."""
    durability: Literal["replay", "snapshot", "restart"] | None = None
    """How a world is restored after a crash. `replay`: the recorded steps are played again. `snapshot`: a snapshot is
    restored. `restart`: the episode begins again. Default: what the world says, mostly `replay`."""
    max_turns: int = Field(default=30, ge=1, le=100_000)
    """The most turns of the model."""
    max_tool_calls: int | None = Field(default=None, ge=1)
    """The most tool calls of an episode."""
    max_bad_calls: int | None = Field(default=5, ge=1)
    """The most calls in a row that are wrong: no such tool, broken JSON, wrong arguments."""
    max_tokens: int | None = Field(default=None, ge=1)
    """The most tokens of all answers of an episode together. (`generation.max_tokens` is for each answer.)"""
    max_context_tokens: int | None = Field(default=None, ge=1)
    """The most tokens of one request, prompt and answer together."""
    max_seconds: float | None = Field(default=None, gt=0)
    """The most seconds of an episode. A request or a tool call that has begun is not cut off."""
    max_cost: float | None = Field(default=None, gt=0)
    """The most money that one episode may cost. Answers from the cache are counted at their full price. The run's own
    limit is `max_cost`."""
    stop_pattern: str | None = None
    """A regular expression. An answer that contains a match ends the episode."""
    stop_tools: list[str] = Field(default_factory=list)
    """Tools that end the episode when they are called, such as `submit`."""
    calls_in_text: bool = False
    """Read tool calls from the text of an answer. For models and servers that do not return them separately."""
    concurrency: int = Field(default=256, ge=1, le=1_000_000)
    """Episodes at a time. Requests at a time have their own limit, `generation.api_params.max_concurrent_requests`."""
    world_timeout: float = Field(default=300.0, gt=0)
    """The most seconds for opening a world, and for each of its answers, including its tools."""
    world_retries: int = Field(default=1, ge=0, le=100)
    """How often an episode may go on in a fresh world after its world failed. After that it is recorded as failed."""
    approve: str | None = None
    """Import path of a function that is called before each tool call. `f(name, arguments)` returns None to allow the
    call, or a text that says why not."""

    @model_validator(mode="after")
    def _captured_from_somewhere(self) -> Self:
        if self.capture and not self.sandbox_tools:
            raise ValueError("`capture` keeps files of the sandbox, and there is none; set `sandbox_tools`")
        return self

    @field_validator("stop_pattern")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise ValueError(f"it is not a valid regular expression ({error})") from None
        return pattern


class _ActorsConfig(_Part):
    """The actors of one stage on a Ray cluster."""

    num_cpus: float = Field(default=1.0, ge=0, le=10_000)
    """How many CPU cores of its node each actor takes, as Ray counts them."""
    resources: dict[str, float] = Field(default_factory=dict)
    """Further Ray resources that each actor takes, by the names that the nodes were started with: `{sandbox: 1}`."""


class GenerateActorsConfig(_ActorsConfig):
    """The actors that ask the model, and play an agent's episodes."""

    actors: int = Field(default=1, ge=1, le=10_000)
    """How many there are."""
    concurrency: int | None = Field(default=None, ge=1, le=100_000)
    """The most samples that each actor works on at a time. Default: its share of
    `generation.api_params.max_concurrent_requests` (with an agent, of `agent.concurrency`). The limits on requests hold
    for all actors together."""


class ScoreActorsConfig(_ActorsConfig):
    """The actors that judge."""

    actors: int = Field(default=1, ge=1, le=10_000)
    """How many there are. Each runs a synchronous reward in `reward.workers` processes; by default one for each core
    that it takes."""


class EngineConfig(_Part):
    """Where the stages run: on this machine, or on a Ray cluster. The files of the run are the same."""

    name: Literal["local", "ray"] = "local"
    """`local`, or `ray`. The section may also be this name alone: `engine: ray`."""
    address: str | None = None
    """The address of a Ray cluster: `auto`, `HOST:PORT` or `ray://HOST:PORT`. Default: the cluster of this process
    (`RAY_ADDRESS`, `ray job submit`), otherwise a local Ray that ends with the run."""
    working_dir: str | None = None
    """The directory of code that is copied to the actors of a cluster. Default: the current directory, unless the job
    or a local Ray has it already."""
    env: list[str] = Field(default_factory=list)
    """Names of environment variables that the actors get from this process, in addition to the keys of the run's
    models."""
    generate: GenerateActorsConfig = GenerateActorsConfig()
    """The actors that generate."""
    score: ScoreActorsConfig = ScoreActorsConfig()
    """The actors that score."""

    @model_validator(mode="before")
    @classmethod
    def _by_name_alone(cls, given: object) -> object:
        return {"name": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _address_of_a_cluster(self) -> Self:
        if self.address is not None and "name" not in self.model_fields_set:
            raise ValueError("`address` is for a Ray cluster, but no engine is named; add engine=ray")
        return self

    @field_validator("env")
    @classmethod
    def _names_of_variables(cls, names: list[str]) -> list[str]:
        if not all(is_variable_name(name) for name in names):
            raise ValueError("give names of environment variables, not their values")
        return names


class EvaluationParamsConfig(_Part):
    """Limits on how much is evaluated."""

    limit_samples: int | None = Field(default=None, ge=0)
    """The older name of `dataset.max_samples`. If both are given, the smaller one is used."""


class OutputConfig(_Part):
    """Where the run's files go."""

    output_dir: str = "outputs/run"
    """The run directory. The same command again resumes the run in it."""
    results_file: str | None = None
    """The path of a further copy of the results, outside the run directory."""
    preview_pairs_file: str | None = None
    """Also write `{messages, ground_truth, id}` lines: the conversations that were judged."""
    mirror: str | None = None
    """An address such as `s3://bucket/runs/one`: the files of the run are copied there while it goes on, so that
    another machine can continue the run (`--resume-from-mirror`)."""
    mirror_seconds: float = Field(default=10.0, gt=0, le=3600)
    """How many seconds pass between two copies to the mirror."""
    storage_options: dict[str, Any] = Field(default_factory=dict)
    """Options of the fsspec filesystem of the mirror's store. They are never written to a file."""
    sync: Literal["close", "batch"] = "close"
    """When the run's files are forced to the disk: when they are closed, so that a loss of power may cost the last
    answers (a killed process costs none); or after each batch of answers, before anything else is done with them."""


class PipelineConfig(_Part):
    """All settings of a run."""

    dataset: DatasetConfig | None = None
    """Where the questions come from."""
    generation: GenerationConfig = GenerationConfig()
    """Which model answers, and how many times."""
    reward: RewardConfig
    """The reward that judges the answers."""
    sandbox: SandboxConfig = SandboxConfig()
    """Where rewards run commands and code."""
    judge: JudgeConfig = JudgeConfig()
    """The model that judges, for rewards that ask one."""
    agent: AgentConfig | None = None
    """For agents: the world that the model acts in. Without this section, the model is asked once for each answer."""
    engine: EngineConfig = EngineConfig()
    """Where the run works: on this machine, or on a Ray cluster."""
    system_prompt: str | None = None
    """The system prompt of every sample to which neither its row nor the `dataset` gives one."""
    evaluation_params: EvaluationParamsConfig = EvaluationParamsConfig()
    """How much is evaluated."""
    output: OutputConfig = OutputConfig()
    """Where the files go."""
    rollouts_file: str | None = None
    """Score the rollouts in this file, without a dataset or a model."""
    max_cost: float | None = Field(default=None, ge=0)
    """Stop before the run and its judge have cost more than this. The run can be resumed."""

    @model_validator(mode="after")
    def _agents_are_online(self) -> Self:
        if self.agent is not None and self.generation.enabled and self.generation.transport == "batch":
            raise ValueError(
                "an `agent` waits for each answer before it goes on, and a batch takes up to a day for one: leave "
                "`generation.transport=batch` out"
            )
        return self

    @property
    def draws(self) -> Sequence[int]:
        """The answers per sample by number: 0 to n - 1, and from a number that n never reaches, an agent's branches."""
        branching = None if self.agent is None else self.agent.branching
        if branching is None:
            return range(self.generation.n)
        return [*range(self.generation.n), *range(FIRST_BRANCH, FIRST_BRANCH + branching.total)]

    @property
    def sample_limit(self) -> int | None:
        """The smaller of the two limits that were set, if any was."""
        limits = [self.evaluation_params.limit_samples, self.dataset.max_samples if self.dataset else None]
        return min((limit for limit in limits if limit is not None), default=None)


_DEEPEST = 4
"""How deep keys are looked for when an unknown one is explained."""


def load_config(raw: Mapping[str, Any]) -> PipelineConfig:
    """Validate a plain mapping; problems become one `ConfigError` that names each key and what to do."""
    return validated(PipelineConfig, raw)


def validated(
    model: type[Model],
    raw: object,
    name: str = "The configuration",
    *,
    section: str = "",
    spell: Callable[[str], str] = repr,
) -> Model:
    """The same for any model; `name` is what a message calls it, `section` where it stands in a run's config.

    `spell` says what a message calls a key whose value is wrong, by its path in the model.
    """
    try:
        remember_settings(raw)  # before anything can be said about them
        _refuse_masked(raw, section)
        return model.model_validate(dict(raw) if isinstance(raw, Mapping) else raw)
    except ValidationError as error:
        spelled = (lambda path: f"`{section}.{path}`") if section else spell
        raise ConfigError(mask(f"{name} has {_explain(error, model, spelled)}")) from None
    except RecursionError:
        raise ConfigError(f"{name} is nested too deep to be read. Make it flatter.") from None


def _refuse_masked(raw: object, section: str) -> None:
    """Send nobody the stars that stand where a credential was hidden."""
    for path in masked_paths(raw):
        place = f"{section}.{path}" if section else path
        raise ConfigError(
            f"`{place}` is '***', which stands where a credential was hidden. Give the credential itself again, best "
            "by a variable: ${oc.env:MY_VARIABLE}."
        )


def as_config_error(error: Exception) -> Exception:
    """A value that pydantic refused somewhere, in our words; any other error as it is."""
    if not isinstance(error, ValidationError):
        return error
    return ConfigError(mask(f"A value given has {_explain(error, PipelineConfig, repr)}"))


def _explain(error: ValidationError, model: type[BaseModel], spell: Callable[[str], str]) -> str:
    problems = [
        _problem(detail["type"], detail["loc"], detail["msg"], detail.get("input"), model, spell)
        for detail in error.errors()
    ]
    return ("a problem: " if len(problems) == 1 else "problems: ") + " And: ".join(problems)


def _problem(
    kind: str,
    location: tuple[int | str, ...],
    message: str,
    given: object,
    model: type[BaseModel],
    spell: Callable[[str], str],
) -> str:
    path = ".".join(map(str, location))
    if kind == "extra_forbidden":
        return f"unknown key {path!r}; {_nearest(path, model)}"
    if kind == "missing":
        return f"{path!r} is missing; set it in the config or as {path}=… on the command line."
    if location[-1:] == ("api_key",):
        return f"{path!r} is not a text. Better set `generation.api_key_env` to the variable that holds the key."
    reason = message.removeprefix("Value error, ")
    place = spell(path)
    if reason.rstrip(".") in (_LOGIN_IN_ADDRESS, NOT_A_VARIABLE.rstrip(".")):
        return f"{place}: {reason}."
    return f"{place} is {_shown(given)}: {reason[0].lower()}{reason[1:]}." if path else f"{reason}."


def _shown(given: object) -> str:
    """A wrong value in a message: shortened, since a wrong value may be a whole file."""
    try:
        text = repr(given)
    except (RecursionError, ValueError):  # ValueError: an integer of more digits than Python writes
        return f"a {type(given).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


_LONGEST_SHOWN = 120


def _nearest(path: str, model: type[BaseModel]) -> str:
    """What an unknown key may have meant: a key of the same part by its name, else any key by its whole path."""
    known = known_paths(model)
    parent, _, name = path.rpartition(".")
    siblings = {other.rpartition(".")[2]: other for other in known if other.rpartition(".")[0] == parent}
    words = [siblings[other] for other in siblings if name in other.split("_")]
    alike = [other for other in siblings if other.startswith(name[:3])] or list(siblings)
    close = words or [siblings[match] for match in difflib.get_close_matches(name, alike, n=1, cutoff=0.5)]
    close = close or difflib.get_close_matches(path, known, n=1, cutoff=0.75)
    return f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(sorted(siblings))}."


_RARE: Mapping[str, tuple[str, ...]] = {
    "": ("engine",),
    "dataset": ("revision", "storage_options", "choices", "few_shot"),
    "generation": ("transport", "batch"),
    "reward": ("remote",),
    "output": ("mirror_seconds", "storage_options", "sync"),
}
"""Settings that few runs have, by their section."""


def without_unused(written: dict[str, Any]) -> dict[str, Any]:
    """A config as plain data, without what few runs have and this one leaves as it is."""
    kept = _without_defaults(written, PipelineConfig, _RARE[""])
    for name, model in (("generation", GenerationConfig), ("output", OutputConfig)):
        if isinstance(kept.get(name), dict):
            kept[name] = _without_defaults(kept[name], model, _RARE[name])
    if isinstance(kept.get("dataset"), dict):
        kept["dataset"] = dataset_without_unused(kept["dataset"])
    if isinstance(kept.get("reward"), dict):
        kept["reward"] = reward_without_unused(kept["reward"])
    return kept


def dataset_without_unused(written: dict[str, Any]) -> dict[str, Any]:
    """The same for a dataset's settings alone."""
    return _without_defaults(written, DatasetConfig, _RARE["dataset"])


def reward_without_unused(written: dict[str, Any]) -> dict[str, Any]:
    """The same for a reward's settings alone, and for those of its splits."""
    kept = _without_defaults(written, RewardConfig, _RARE["reward"])
    if "by_split" in kept:
        kept["by_split"] = {split: reward_without_unused(part) for split, part in kept["by_split"].items()}
    return kept


def _without_defaults(written: Mapping[str, Any], model: type[BaseModel], names: tuple[str, ...]) -> dict[str, Any]:
    defaults = {
        name: to_jsonable_python(model.model_fields[name].get_default(call_default_factory=True)) for name in names
    }
    return {
        name: value for name, value in written.items()
        if name not in defaults or _without_none(value) != _without_none(defaults[name])
    }  # fmt: skip


def _without_none(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _without_none(held) for name, held in value.items() if held is not None}


def known_paths(model: type[BaseModel], prefix: str = "", depth: int = 0) -> list[str]:
    """Every key of a config by its dotted path, sections included."""
    paths: list[str] = []
    for name, field in model.model_fields.items():
        paths.append(prefix + name)
        for part in _parts_of(field.annotation):
            if depth < _DEEPEST:  # a dataset may be derived from a dataset, and so on
                paths.extend(known_paths(part, f"{prefix}{name}.", depth + 1))
    return paths


def _parts_of(annotation: object) -> Iterable[type[BaseModel]]:
    candidates = [annotation, *getattr(annotation, "__args__", ())]
    return [part for part in candidates if isinstance(part, type) and issubclass(part, BaseModel)]
