# SPDX-License-Identifier: Apache-2.0
"""The values that move, in the order they flow.

    dataset row → Sample → (× n draws) → Completion → Rollout → EvaluateResult → Record

Values are frozen once made: a stage takes one and returns another. What people author (`Message`, the results) ignores
unknown fields and stays mutable, as users of the public package expect.
"""

# Annotations are evaluated as the module is read, and not by pydantic from text (`from __future__ import annotations`):
# that takes a tenth of what a command needs to start.

import re
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from reward_kit.errors import ItemError, RewardError
from reward_kit.redaction import mask

__all__ = [
    "Branch",
    "ChatCompletionMessageToolCall",
    "Completion",
    "Ended",
    "EvaluateResult",
    "EvaluationCriteriaModel",
    "ExecResult",
    "Failure",
    "FunctionCall",
    "Message",
    "MetricResult",
    "Record",
    "ResourceServerConfig",
    "Rollout",
    "Sample",
    "SentBack",
    "Step",
    "StepOutput",
    "TaskDefinitionModel",
    "Tokens",
    "ToolUse",
    "Usage",
    "Verdict",
    "answer_begins",
    "split_off_answer",
]

SYSTEM_ROLES = ("system", "developer")
"""Who speaks for the one that asks, before the conversation."""
SCHEMA_VERSION = 3
"""The version every line of a run's files names: since 2, each carries a checksum; since 3, samples are in a file of
their own."""
READABLE_SCHEMAS = (1, 2, 3)
"""The versions that are read; lines of others are not."""


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class FunctionCall(BaseModel):
    """The function a tool call names, with its arguments as the JSON text the model wrote."""

    name: str
    arguments: str = ""


class ChatCompletionMessageToolCall(BaseModel):
    """One tool call, OpenAI-shaped."""

    id: str = ""
    function: FunctionCall
    type: Literal["function"] = "function"


class _RoleIsRequired:
    """Says so in the words users know, at no cost where there is one: only a missing role is looked at in Python."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.custom_error_schema(
            handler(source), "role_required", custom_error_message="Role is required"
        )


class _ReadLikeADict(BaseModel):
    """A model whose fields can also be read as a dict's entries: `[]`, `in`, `.get`, `.keys()`, iteration …"""

    def __getitem__(self, key: str) -> Any:
        if key not in type(self).model_fields:
            raise KeyError(key)
        return self.__dict__[key]

    def __contains__(self, key: object) -> bool:
        return key in type(self).model_fields

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]  # iterates over names, as a dict does
        return iter(type(self).model_fields)

    def _fields(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in type(self).model_fields}

    def get(self, key: str, default: Any = None) -> Any:
        """The field called `key`, or `default`."""
        return self.__dict__[key] if key in type(self).model_fields else default

    def keys(self) -> KeysView[str]:
        """The field names."""
        return self._fields().keys()

    def values(self) -> ValuesView[Any]:
        """The field values; nested results stay objects."""
        return self._fields().values()

    def items(self) -> ItemsView[str, Any]:
        """Pairs of field name and value."""
        return self._fields().items()


class SentBack(BaseModel):
    """What else an endpoint said in a turn, and wants back with later ones: signatures of the model's thoughts, say."""

    model_config = ConfigDict(frozen=True)

    by: str
    """Which model said it, at which endpoint. Nobody else is sent it."""
    thoughts: list[str] = Field(default_factory=list)
    """The names under which `reasoning_content` came."""
    fields: dict[str, Any] = Field(default_factory=dict)
    """What is left, at the places where it was."""


class Message(_ReadLikeADict):
    """One turn of a conversation, OpenAI-shaped. Its fields can be read as a dict's: `message["content"]`."""

    role: Annotated[str, _RoleIsRequired] = Field(default=None, validate_default=True)
    content: str | list[dict[str, Any]] | None = ""
    """Text, or a list of content parts; `None` when the turn is only tool calls."""
    name: str | None = None
    tool_call_id: str | None = None
    tool_calls: list[ChatCompletionMessageToolCall] | None = None
    function_call: FunctionCall | None = None
    reasoning_content: str | None = None
    """What the model thought before it answered, where the endpoint tells it apart."""
    sent_back: SentBack | None = None
    """What the endpoint said beside all this. It is sent that with later turns, and other endpoints are not."""

    @property
    def text(self) -> str:
        """The content as plain text: text parts joined, other parts left out."""
        if isinstance(self.content, str):
            return self.content
        texts = (part.get("text") for part in self.content or [] if part.get("type") == "text")
        return "".join(str(text) for text in texts if text is not None)

    def content_for(self, to: str | None) -> str | list[dict[str, Any]] | None:
        """The content as `to` is sent it: what an endpoint said in parts of other kinds than text is for it alone."""
        kept, content = self.sent_back, self.content
        if kept is None or kept.by == to or not isinstance(content, list):
            return content
        return [{"type": "text", "text": part["text"]} for part in content if is_text(part) and part["text"]] or ""

    def as_request(self, to: str | None = None) -> dict[str, Any]:
        """The turn as an endpoint wants it: no empty optional fields. Who said it itself, `to`, has it as it came."""
        if self.__pydantic_fields_set__ == _OF_A_TEXT:
            return {"role": self.role, "content": self.content}
        body: dict[str, Any] = {"role": self.role, "content": self.content_for(to)}
        if self.name is not None:
            body["name"] = self.name
        if self.tool_call_id is not None:
            body["tool_call_id"] = self.tool_call_id
        if self.tool_calls is not None:
            body["tool_calls"] = [call.model_dump() for call in self.tool_calls]
        if self.function_call is not None:
            body["function_call"] = self.function_call.model_dump()
        kept = self.sent_back
        if kept is None or kept.by != to or self.role != "assistant":
            return body
        whole: dict[str, Any] = _completed(body | dict.fromkeys(kept.thoughts, self.reasoning_content), kept.fields)
        return whole


_OF_A_TEXT = frozenset({"role", "content"})
"""What was given of a turn that is text and nothing else, as most are."""


def set_fields(value: BaseModel) -> dict[str, Any]:
    """The fields that hold something, without the cost of a full dump: nested models are left to the JSON writer."""
    fields = value.__dict__
    if value.__pydantic_fields_set__ == _OF_A_TEXT and fields["content"] is not None:
        return {"role": fields["role"], "content": fields["content"]}
    return {name: held for name, held in fields.items() if held is not None}


def is_text(part: Mapping[str, Any]) -> bool:
    """Whether a part of a content is text."""
    return part.get("type") == "text" and isinstance(part.get("text"), str)


def _completed(known: Any, more: Any) -> Any:
    """What is known, with what is more, at the places where that was."""
    if isinstance(known, dict) and isinstance(more, dict):
        return known | {name: _completed(known[name], held) if name in known else held for name, held in more.items()}
    if isinstance(known, list) and isinstance(more, list):
        rest = more + [None] * (len(known) - len(more))
        return [_completed(one, held) for one, held in zip(known, rest, strict=False)]
    return known


# ── what a reward returns ────────────────────────────────────────────────────────────────────────────────────────────


class MetricResult(_ReadLikeADict):
    """One named check inside a result."""

    score: float = Field(ge=0.0, le=1.0)
    reason: str
    is_score_valid: bool = True
    """In the library's own metrics: whether that check passed."""


class StepOutput(BaseModel):
    """The reward of one step of an episode."""

    step_index: int | str
    base_reward: float
    metrics: dict[str, Any] = Field(default_factory=dict)
    reason: str | None = None


class EvaluateResult(_ReadLikeADict):
    """The verdict of a reward on one rollout: a score, a reason and metrics."""

    score: float
    """Unbounded: ranges such as [-1, 1] are fine."""
    is_score_valid: bool = True
    """False means "no verdict": a failure in a run, `None` in a trainer, never a zero."""
    reason: str | None = None
    metrics: dict[str, MetricResult] = Field(default_factory=dict)
    step_outputs: list[StepOutput] | None = None
    error: str | None = None
    """Set means "no verdict", as `is_score_valid=False` does."""


# ── the spine ────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Value(BaseModel):
    """A frozen value of the spine."""

    model_config = ConfigDict(frozen=True)


Stage = Literal["generate", "score"]
"""Where a failure arose."""


class Usage(_Value):
    """Tokens of one request, or of several together."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int | None = None
    cached_prompt_tokens: int | None = None
    """Those of the prompt that the provider had in its cache."""
    cache_write_tokens: int | None = None
    """Those of the prompt that the provider put into its cache, where it tells."""
    cost: float | None = None
    """The money that the provider says it took, where it says so."""
    at_most: bool | None = None
    """True where nobody told what a reply used: it is in here with the most that it may have used."""


class Failure(_Value):
    """An error as data. A record holds a result or a failure, never both."""

    stage: Stage
    type: str
    """The exception's class name, such as `RateLimitError`."""
    message: str
    retryable: bool = False
    """Whether trying again may help: such an item is tried again when the run is resumed."""
    traceback: str | None = None
    """Where a reward raised: file, line and code. Written only where there is one."""
    unread_replies: list[str] | None = None
    """What a judge replied, where no verdict could be read from it; shortened. Written only where there is any."""
    invalid_score: float | None = None
    """The score of a result that said of itself that it is not valid, and named no error. Never written."""
    invalid_result: EvaluateResult | None = None
    """The result that said of itself that it is no verdict, for callers elsewhere. Never written."""
    spent: list[Usage] | None = None
    """What the replies used that it was made of. Never written: the rollout has it."""
    paid_batches: list[str] | None = None
    """The batches whose replies are counted in the rollout's usage, so that none is counted again. Written only where
    there are any."""

    @model_serializer(mode="wrap")
    def _only_what_there_is(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = whole(self)
        fields.pop("invalid_score", None)
        fields.pop("invalid_result", None)
        fields.pop("spent", None)
        return {name: held for name, held in fields.items() if held is not None}

    @classmethod
    def of(cls, error: ItemError, stage: Stage) -> Self:
        """The error as data."""
        more: dict[str, Any] = {}
        if error.raised is not None and stage == "score":
            from reward_kit.raised_where import raised_where  # here: most runs never need it

            more["traceback"] = mask(raised_where(error.raised))
        if isinstance(error, RewardError):
            more["invalid_score"] = error.invalid_score
            more["invalid_result"] = error.invalid_result
            more["unread_replies"] = [mask(reply) for reply in error.unread_replies] or None
        kind, message = type(error).__name__, mask(str(error))
        return cls(stage=stage, type=kind, message=message, retryable=error.retryable, **more)


class Sample(_Value):
    """What is asked, and what a right answer looks like."""

    id: str
    messages: list[Message]
    ground_truth: Any = None
    ground_truth_text: str | None = None
    """How the file writes a number or bool, where Python would write it otherwise: `4.50`, `true`, `4` for a 4.0 that
    a table cannot tell from it. Written only where there is one."""
    split: str | None = None
    columns: dict[str, Any] = Field(default_factory=dict)
    """Every other dataset column, handed to the reward by name."""
    tools: list[dict[str, Any]] | None = None
    """Tools offered to the model, OpenAI-shaped."""
    position: int = 0
    """Where the row stands in its dataset. Orders the output; not part of the identity."""


class Tokens(_Value):
    """The tokens of one answer, where the endpoint tells them: trainers then need not tokenize the text again."""

    prompt_ids: list[int] | None = None
    """The tokens of the prompt that earlier steps of the rollout do not hold already."""
    ids: list[int] | None = None
    logprobs: list[float] | None = None
    whole_prompt: bool | None = None
    """True where `prompt_ids` is all of the prompt, although steps came before: it does not go on from their tokens."""


class Completion(_Value):
    """What a client returned for one draw."""

    message: Message
    finish_reason: str | None = None
    usage: Usage | None = None
    """The whole request's tokens, on the first draw of the request; `None` on the draws that shared it."""
    retried: list[Usage] | None = None
    """What replies used that came before it and were no answer."""
    latency_ms: float = 0.0
    cached: bool = False
    model: str | None = None
    """The model the endpoint says it used, where it differs from the one asked for."""
    tokens: Tokens | None = None
    """The answer's tokens, where they were asked for and the endpoint tells them."""

    @property
    def text(self) -> str:
        """What the model said, as plain text."""
        return self.message.text


Ended = Literal[
    "done", "answered", "stopped", "max_turns", "max_tool_calls", "bad_calls", "max_tokens", "context", "timeout",
    "money",
]  # fmt: skip
"""How an episode ended: the world said so, the model answered without a call, a stop word or tool; or by a limit."""


class ToolUse(_Value):
    """One tool call of a step, and how it went. What it returned is in the turns."""

    id: str
    name: str
    error: str | None = None
    """The kind of error the model was told of: `unknown_tool`, `bad_json`, `schema`, `timeout`, `exception` …"""
    seconds: float | None = None


class Step(_Value):
    """One action of an agent: an assistant turn, what the world made of it, and what it was worth."""

    turn: int
    """Where the assistant turn stands among the rollout's turns."""
    reward: float | None = None
    """What the world gave for the action, where it gives rewards."""
    state: str | None = None
    """A digest of what the world showed before the action. Steps with the same one began in the same state."""
    calls: list[ToolUse] = Field(default_factory=list)
    usage: Usage | None = None
    cost: float | None = None
    latency_ms: float | None = None
    finish_reason: str | None = None
    cached: bool = False
    tokens: Tokens | None = None
    tools: list[dict[str, Any]] | None = None
    """The tools that were offered, where they are others than in the step before."""
    noted: Any = None
    """What the world noted of its answer beside what it showed, so that the episode can be played again."""


class Branch(_Value):
    """Where an episode left another one: it shares the steps before `step` with the rollout `response_index`."""

    response_index: int
    step: int
    draw: int | None = None
    """Which episode its world began as, where that one was a branch itself."""

    @property
    def world_draw(self) -> int:
        """Which episode its world began as."""
        return self.response_index if self.draw is None else self.draw


class Rollout(_Value):
    """One attempt at a sample. It carries its sample whole, so scoring needs no dataset."""

    sample: Sample
    response_index: int
    turns: list[Message] = Field(default_factory=list)
    """What the attempt added to the sample's messages: one assistant turn, or all turns of an episode."""
    model: str | None = None
    sampling: dict[str, Any] = Field(default_factory=dict)
    finish_reason: str | None = None
    usage: Usage | None = None
    cost: float | None = None
    """Money spent on this attempt, where the price is known; 0 when it came from the cache."""
    latency_ms: float | None = None
    cached: bool = False
    generated_at: str | None = None
    """When the answer came: UTC, ISO 8601."""
    tokens: Tokens | None = None
    """The answer's tokens, with log-probabilities where they were asked for. Those of an episode are in its steps."""
    failure: Failure | None = None
    steps: list[Step] | None = None
    """An agent's actions, one for each of its assistant turns; None where the model was asked once."""
    ended: Ended | None = None
    """How the episode ended."""
    truncated: bool | None = None
    """Whether a limit cut the episode off. It is judged all the same."""
    facts: dict[str, Any] | None = None
    """What the world said of itself in the end, for rewards to read."""
    branch: Branch | None = None
    """The episode that this one branched off, where it did."""
    opening: dict[str, Any] | None = None
    """As the world opened the conversation: the `state` that it named, the `reward` that it gave, what it `noted`."""

    @property
    def world_draw(self) -> int:
        """Which episode its world began as: this one, or the one that the first of its branches left."""
        return self.response_index if self.branch is None else self.branch.world_draw

    @property
    def messages(self) -> list[Message]:
        """The whole conversation: what was asked, then what the attempt added."""
        return [*self.sample.messages, *self.turns]

    @property
    def text(self) -> str:
        """The answer as plain text: what the assistant said last, where the conversation ends with it."""
        turns = self.turns or self.sample.messages
        return turns[-1].text if turns and turns[-1].role == "assistant" else ""

    @classmethod
    def of_conversation(
        cls, messages: Sequence[Message | Mapping[str, Any]], ground_truth: Any = None,
        columns: Mapping[str, Any] | None = None, sample_id: str = "",
    ) -> Self:  # fmt: skip
        """A whole conversation, its answer last, as one attempt: what comes behind the last user turn was answered."""
        whole = [each if isinstance(each, Message) else Message.model_validate(each) for each in messages]
        asked, answered = split_off_answer(whole)
        sample = Sample(id=sample_id, messages=asked, ground_truth=ground_truth, columns=dict(columns or {}))
        return cls(sample=sample, response_index=0, turns=answered)


def split_off_answer(messages: list[Message]) -> tuple[list[Message], list[Message]]:
    """What was asked, up to the last user turn, and what was answered to it."""
    begin = answer_begins([turn.role for turn in messages])
    return messages[:begin], messages[begin:]


def answer_begins(roles: Sequence[str | None]) -> int:
    """Where among turns of these roles the answer begins: behind the last user, and behind who speaks for the system.

    Where nobody asked, only what stands at the beginning for the system is no answer.
    """
    begin = len(roles) - roles[::-1].index("user") if "user" in roles else 0
    while begin < len(roles) and roles[begin] in SYSTEM_ROLES:
        begin += 1
    return begin


class ExecResult(_Value):
    """What a command did in a sandbox. A sandbox that fails itself raises `SandboxError` instead."""

    exit_code: int | None
    """None when the command was ended by a signal or by its time limit."""
    signal: int | None = None
    """The signal that ended it, where one did."""
    output: str = ""
    """Standard output and standard error in the order they were written."""
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    oom_killed: bool = False
    """Ended because it exceeded its memory."""
    truncated: bool = False
    """More was printed than is kept: the beginning and the end are."""
    exited: bool = False
    """The command ended the sandbox's shell: further commands in it are refused."""
    wall_seconds: float = 0.0
    cpu_seconds: float | None = None
    peak_memory_bytes: int | None = None
    distrusted: str | None = None
    """The program or library that a check needed and that had been changed: whatever came of it proves nothing."""

    @property
    def ok(self) -> bool:
        """Whether the command ended by itself, with exit code 0."""
        return self.exit_code == 0 and self.distrusted is None


Verdict = EvaluateResult | Failure
"""What scoring says of a rollout: a result, or the failure that stands in its place."""


class Record(_Value):
    """A judged rollout: a result, or the failure that kept it from being judged."""

    rollout: Rollout
    result: EvaluateResult | None = None
    failure: Failure | None = None

    @model_validator(mode="after")
    def _result_or_failure(self) -> Self:
        if (self.result is None) == (self.failure is None):
            raise ValueError("a record holds a result or a failure, and exactly one of them")
        return self

    @classmethod
    def of(cls, rollout: Rollout, verdict: Verdict) -> Self:
        """The rollout with what was said of it."""
        if isinstance(verdict, Failure):
            return cls(rollout=rollout, failure=verdict)
        return cls(rollout=rollout, result=verdict)

    @property
    def verdict(self) -> Verdict:
        """The one of the two that it holds."""
        return cast(Verdict, self.failure if self.result is None else self.result)


# ── agent tasks (inherited names) ────────────────────────────────────────────────────────────────────────────────────


class EvaluationCriteriaModel(BaseModel):
    """How an agent task's final state is judged."""

    final_state_query: str | None = None
    expected_query_result_transform: str | None = None
    ground_truth_function_calls: list[list[str]] | None = None
    ground_truth_comparable_state: dict[str, Any] | None = None


class ResourceServerConfig(BaseModel):
    """A server an agent task needs; `{port}` in either field is replaced by a free port."""

    start_command: str
    health_check_url: str


class TaskDefinitionModel(BaseModel):
    """One agent task, as its YAML file says it."""

    model_config = ConfigDict(extra="allow")

    name: str
    description: str | None = None
    resource_type: str
    base_resource_config: dict[str, Any] = Field(default_factory=dict)
    tools_module_path: str | None = None
    reward_function_path: str
    goal_description: str | None = None
    evaluation_criteria: EvaluationCriteriaModel | None = None
    initial_user_prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    poc_max_turns: int = Field(default=3, ge=1)
    resource_server: ResourceServerConfig | None = None
    num_rollouts: int = Field(default=1, ge=1)
    dataset_path: str | None = None
    num_rollouts_per_sample: int = Field(default=1, ge=1)
    termination_regex: str | None = None
    """An answer of the model in which this regular expression is found ends the episode."""

    @field_validator("termination_regex")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise ValueError(f"it is not a valid regular expression ({error})") from None
        return pattern
