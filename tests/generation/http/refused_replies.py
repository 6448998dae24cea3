# SPDX-License-Identifier: Apache-2.0
"""What providers answer in the place of an answer: recorded bodies by preset, where each is from, and what follows.

The words are the provider's own, as somebody recorded them; names of accounts and keys are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import orjson

__all__ = ["REPLIES", "Consequence", "Recorded"]

Consequence = Literal["wait", "stop: key", "stop", "length", "filtered", "answer", "again", "item"]
"""Waited for; the run stops, over the key or over something else; the prompt is too long, or its content is not taken;
what the model wrote is the answer; asked again a few times; this prompt fails."""


class Recorded(NamedTuple):
    """A reply that is no answer."""

    preset: str
    status: int
    body: Any
    consequence: Consequence
    source: str
    """A thread, as owner/repository#number, or a page; and its date."""
    wait: float | None = None
    """Seconds that the body asks to wait."""
    headers: Mapping[str, str] = {}


def error(message: str, kind: str | None = None, code: Any = None, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


def anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def google(code: int, message: str, status: str, *details: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"error": {"code": code, "message": message, "status": status, "details": [*details]}}]


QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this error, "
    "head to: https://ai.google.dev/gemini-api/docs/rate-limits."
)
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "22s"}
HELP = {"@type": "type.googleapis.com/google.rpc.Help", "links": []}
PER_DAY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "250"}],
}
KEY_INVALID = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
TEAM_EMPTY = (
    "Your team has either used all available credits or reached its monthly spending limit. To continue making API "
    "requests, please purchase more credits or raise your spending limit."
)
MOONSHOT = error(
    "Your account is suspended due to insufficient balance, please recharge your account or check your plan and "
    "billing details", "exceeded_current_quota_error",
)  # fmt: skip
OPENAI_LARGE = (
    "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 30601. The input or output tokens "
    "must be reduced in order to run successfully."
)
GROQ_RATE = (
    "Rate limit reached for model `llama-3.1-8b-instant` service tier `on_demand` on tokens per minute (TPM): Limit "
    "6000, Used 5034, Requested 1443. Please try again in 4.77s. Need more tokens? Upgrade to Dev Tier today at "
    "https://console.groq.com/settings/billing"
)
GROQ_LARGE = (
    "Request too large for model `llama-3.1-8b-instant` service tier on_demand on tokens per minute (TPM): Limit 6000, "
    "Requested 12328, please reduce your message size and try again."
)
AZURE_FILTER = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify "
    "your prompt and retry."
)

NO_ROOM = (
    "Could not finish the message because max_tokens or model output limit was reached. Please try again with higher "
    "max_tokens."
)
DECOMMISSIONED = (
    "The model `llama-3.3-70b-specdec` has been decommissioned and is no longer supported. Please refer to "
    "https://console.groq.com/docs/deprecations for a recommendation on which model to use instead."
)
RESTRICTED = "Organization has been restricted. Please reach out to support if you believe this was in error."
NOT_SERVERLESS = (
    "Unable to access non-serverless model MiniMaxAI/MiniMax-M2.5. Please visit "
    "https://api.together.ai/models/MiniMaxAI/MiniMax-M2.5 to create and start a new dedicated endpoint for the model."
)
DEPLETED = (
    "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project "
    "and billing."
)
NO_CALL = (
    "1 validation error for list[function-wrap[__log_extra_fields__()]]\n  Invalid JSON: EOF while parsing an object "
    "at line 1508 column 3 [type=json_invalid, input_value='[  \\t\\t\\n\\t\\t{\\n...\\n\\t\\t\\t', input_type=str]"
)

OPENROUTER = "openrouter.ai/docs/api/reference/errors-and-debugging, 2026"
BLOCKED = {
    "error": {
        "code": 403,
        "message": "Request blocked: prompt injection patterns detected",
        "metadata": {"patterns": ["ignore all previous instructions"]},
    }
}
NO_PARSER = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
PICOBOT = "louisho5/picobot#6, 2026-02-12"
REASONER = "deepseek-reasoner does not support Function Calling"
XAI_TOOLS = (
    "Invalid request content: The model does not support tool use or function calling but tools or tool_choice have "
    "been specified on the request."
)
ADK = "google/adk-python#952, 2025-05-27"
GEMMA = "Function calling is not enabled for models/gemma-3-12b-it"


def typed(status: int, kind: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": "Provider returned error", "metadata": {"error_type": kind}}}


REPLIES = [
    # OpenAI
    Recorded(
        "openai",
        429,
        error(
            "Rate limit reached for gpt-4o on requests per min. Limit: 3 / min. Please try again in 20s.",
            "requests",
            "rate_limit_exceeded",
        ),
        "wait",
        "TomFrankly/pipedream-notion-voice-notes#21, 2023-09-30",
        20.0,
    ),
    Recorded(
        "openai", 429, error(OPENAI_LARGE, "tokens", "rate_limit_exceeded"), "length", "DrShushen/climb#13, 2024-11-24"
    ),
    Recorded(
        "openai",
        429,
        error(
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        ),
        "stop",
        "platform.openai.com/docs/guides/error-codes, 2025",
    ),
    Recorded(
        "openai",
        401,
        error("Incorrect API key provided: sk-***.", "invalid_request_error", "invalid_api_key"),
        "stop: key",
        "platform.openai.com/docs/guides/error-codes, 2025",
    ),
    Recorded(
        "openai",
        400,
        error(
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy. "
            "Please try again with a different prompt.",
            "invalid_request_error",
            "invalid_prompt",
        ),
        "filtered",
        "BeehiveInnovations/pal-mcp-server#178, 2025-07-05",
    ),
    Recorded(
        "openai",
        400,
        error(
            "This model's maximum context length is 4097 tokens. However, your messages resulted in "
            "6988 tokens. Please reduce the length of the messages.",
            "invalid_request_error",
            "context_length_exceeded",
        ),
        "length",
        "rahul2002m/ChatPDF#6, 2024-01-16",
    ),
    Recorded("openai", 400, error(NO_ROOM, "invalid_request_error"), "answer", "spiceai/spiceai#7126, 2025-09-12"),
    # Anthropic
    Recorded(
        "anthropic",
        400,
        anthropic("invalid_request_error", "This organization has been disabled."),
        "stop",
        "anthropics/claude-code#19028, 2026-01-18",
    ),
    Recorded(
        "anthropic",
        400,
        anthropic(
            "invalid_request_error",
            "You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.",
        ),
        "stop",
        "anthropics/claude-code#38035, 2026-03-24",
    ),
    Recorded(
        "anthropic",
        429,
        anthropic("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
        "wait",
        "anthropics/claude-code#55789, 2026-05-03",
        headers={"Retry-After": "7"},
    ),
    Recorded(
        "anthropic",
        429,
        anthropic("rate_limit_error", "Extra usage is required for long context requests."),
        "length",
        "anthropics/claude-code#44863, 2026-04-07",
    ),
    Recorded(
        "anthropic",
        400,
        anthropic("invalid_request_error", "Output blocked by content filtering policy"),
        "filtered",
        "anthropics/claude-code#58367, 2026-05-12",
    ),
    Recorded(
        "anthropic",
        400,
        anthropic(
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic "
            "API. Please go to Plans & Billing to upgrade or purchase credits.",
        ),
        "stop",
        "docs.anthropic.com/en/api/errors, 2025",
    ),
    Recorded(
        "anthropic",
        400,
        anthropic(
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: "
            "199000 + 8000 > 200000, decrease input length or `max_tokens` and try again",
        ),
        "length",
        "docs.anthropic.com/en/api/errors, 2025",
    ),
    Recorded(
        "anthropic", 529, anthropic("overloaded_error", "Overloaded"), "again", "docs.anthropic.com/en/api/errors, 2025"
    ),
    # Gemini, Vertex
    Recorded(
        "gemini",
        429,
        google(429, QUOTA, "RESOURCE_EXHAUSTED", PER_DAY, HELP, RETRY),
        "wait",
        "oppl.ai/llms/gemini_complex_1/JE00B3XR4V72.json, 2025",
        22.0,
    ),
    Recorded(
        "gemini",
        429,
        google(429, QUOTA + "\nPlease retry in 10.689924287s.", "RESOURCE_EXHAUSTED", HELP),
        "wait",
        "a recorded page of 2025, through ai.google.dev/gemini-api/docs/rate-limits",
        10.689924287,
    ),
    Recorded(
        "gemini",
        429,
        google(429, QUOTA, "RESOURCE_EXHAUSTED", HELP),
        "stop",
        "gke-labs/gemini-for-kubernetes-development#1215, 2026-07-23",
    ),
    Recorded(
        "gemini",
        429,
        google(429, "Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED"),
        "wait",
        "google-gemini/gemini-cli#1906, 2025-06-26",
    ),
    Recorded(
        "vertex",
        429,
        google(
            429,
            "Resource exhausted. Please try again later. Please refer to https://cloud.google."
            "com/vertex-ai/generative-ai/docs/error-code-429 for more details.",
            "RESOURCE_EXHAUSTED",
        ),
        "wait",
        "google-gemini/gemini-cli#14831, 2025-12-09",
    ),
    Recorded(
        "gemini",
        400,
        google(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", KEY_INVALID),
        "stop: key",
        "cequence-io/openai-scala-client#109, 2026-03-05",
    ),
    Recorded(
        "gemini",
        400,
        google(400, "API key expired. Please renew the API key.", "INVALID_ARGUMENT", KEY_INVALID),
        "stop: key",
        "ai.google.dev/gemini-api/docs/troubleshooting, 2025",
    ),
    # xAI
    Recorded(
        "xai",
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "Incorrect API key provided: sk***gA. You can obtain an API key from https://console.x.ai.",
        },
        "stop: key",
        "openai/codex#1352, 2025-06-19",
    ),
    Recorded(
        "xai",
        429,
        {"code": "Some resource has been exhausted", "error": TEAM_EMPTY},
        "stop",
        "continuedev/continue#10373, 2026-02-09",
    ),
    Recorded(
        "xai", 403, {"code": "permission-denied", "error": TEAM_EMPTY}, "stop", "Anantys-oss/koan#2412, 2026-07-16"
    ),
    Recorded(
        "xai",
        403,
        {
            "code": "The caller does not have permission to execute the specified operation",
            "error": "Content violates usage guidelines. Model: grok-4-0709, Failed check: SAFETY_CHECK_TYPE_BIO",
        },
        "filtered",
        "UKGovernmentBEIS/inspect_ai#2267, 2025-08-12",
    ),
    # Groq
    Recorded(
        "groq", 429, error(GROQ_RATE, "tokens", "rate_limit_exceeded"), "wait", "elizaOS/eliza#4040, 2025-03-22", 4.77
    ),
    Recorded(
        "groq",
        429,
        error(
            "Rate limit reached for model `llama-3.3-70b-versatile` on tokens per day (TPD): Limit "
            "100000, Used 97050, Requested 3619. Please try again in 9m38.016s.",
            "tokens",
            "rate_limit_exceeded",
        ),
        "wait",
        "continuedev/continue#10920, 2026-02-28",
        578.016,
    ),
    Recorded(
        "groq",
        413,
        error(GROQ_LARGE, "tokens", "rate_limit_exceeded"),
        "length",
        "HunorLaczko/ha-groq-cloud-api#27, 2026-05-16",
    ),
    Recorded(
        "groq",
        498,
        error("Flex tier capacity exceeded", "capacity_exceeded"),
        "wait",
        "console.groq.com/docs/errors, 2025",
    ),
    Recorded(
        "groq",
        400,
        error(
            "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
            "invalid_request_error",
            "tool_use_failed",
            failed_generation="<function=add>",
        ),
        "answer",
        "groq/groq-typescript#28, 2024-05-12",
    ),
    Recorded(
        "groq",
        400,
        error(
            "tool call validation failed: parameters for tool HassTurnOff did not match schema: "
            "errors: [`/domain`: expected array, but got string]",
            "invalid_request_error",
            "tool_use_failed",
        ),
        "answer",
        "HunorLaczko/ha-groq-cloud-api#20, 2026-02-05",
    ),
    # DeepSeek, Moonshot
    Recorded(
        "deepseek",
        400,
        error("Content Exists Risk", "invalid_request_error", "invalid_request_error"),
        "filtered",
        "666ghj/BettaFish#691, 2026-06-12",
    ),
    Recorded(
        "deepseek",
        402,
        error("Insufficient Balance", "unknown_error", "invalid_request_error"),
        "stop",
        "api-docs.deepseek.com/quick_start/error_codes, 2025",
    ),
    Recorded(
        "openrouter",
        429,
        {
            "error": {
                "message": "Provider returned error",
                "code": 429,
                "metadata": {"raw": orjson.dumps(MOONSHOT).decode()},
            }
        },
        "stop",
        "anomalyco/opencode#24462, 2026-04-26",
    ),
    # Fireworks, Together
    Recorded(
        "fireworks",
        412,
        error(
            "Account is suspended, possibly due to reaching the monthly spending limit or failure "
            "to pay past invoices.",
            "error",
            "PRECONDITION_FAILED",
        ),
        "stop",
        "pollinations/pollinations#12136, 2026-07-01",
    ),
    Recorded(
        "together",
        402,
        error(
            "Credit limit exceeded. Please navigate to https://api.together.xyz/settings/billing "
            "to add credit or upgrade your plan.",
            "credit_limit",
        ),
        "stop",
        "expectedparrot/edsl#2098, 2025-07-16",
    ),
    # Mistral
    Recorded(
        "mistral",
        429,
        {
            "object": "error",
            "message": "Rate limit exceeded",
            "type": "rate_limited",
            "param": None,
            "code": "1300",
            "raw_status_code": 429,
        },
        "wait",
        "raycast/extensions#31107, 2026-09-14",
    ),
    Recorded(
        "mistral", 429, {"message": "Requests rate limit exceeded"}, "wait", "pydantic/pydantic-ai#1885, 2025-06-02"
    ),
    Recorded(
        "mistral",
        429,
        {
            "object": "error",
            "message": "Service tier capacity exceeded for this model.",
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        },
        "wait",
        "continuedev/continue#6185, 2025-06-18",
    ),
    # OpenRouter
    Recorded(
        "openrouter",
        402,
        error(
            "This request requires more credits, or fewer max_tokens. You requested up to 65536 "
            "tokens, but can only afford 5000.",
            None,
            402,
        ),
        "stop",
        "can1357/oh-my-pi#9569, 2026",
    ),
    Recorded(
        "openrouter",
        403,
        {
            "error": {
                "code": 403,
                "message": "Your input was flagged",
                "metadata": {"reasons": ["violence"], "flagged_input": "…", "provider_name": "OpenAI"},
            }
        },
        "filtered",
        "openrouter.ai/docs/api-reference/errors, 2025",
    ),
    Recorded("openrouter", 403, BLOCKED, "filtered", OPENROUTER),
    Recorded("openrouter", 400, typed(400, "content_policy_violation"), "filtered", OPENROUTER),
    Recorded("openrouter", 403, typed(403, "content_policy_violation"), "filtered", OPENROUTER),
    Recorded("openrouter", 400, typed(400, "refusal"), "answer", OPENROUTER),
    Recorded("openrouter", 403, typed(403, "refusal"), "answer", OPENROUTER),
    Recorded("openrouter", 400, typed(400, "max_tokens_exceeded"), "answer", OPENROUTER),
    Recorded("openrouter", 400, typed(400, "context_length_exceeded"), "length", OPENROUTER),
    Recorded("openrouter", 400, typed(400, "token_limit_exceeded"), "length", OPENROUTER),
    Recorded("openrouter", 400, typed(400, "string_too_long"), "length", OPENROUTER),
    Recorded("openrouter", 400, typed(400, "invalid_prompt"), "item", OPENROUTER),
    Recorded("openrouter", 403, typed(403, "permission_denied"), "stop: key", OPENROUTER),
    # Azure
    Recorded(
        "azure",
        429,
        error(
            "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version "
            "2024-05-01-preview have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry "
            "after 86400 seconds.",
            None,
            "429",
        ),
        "wait",
        "alex-wolf-ps/dbchatprov2#2, 2024-07-16",
        86400.0,
    ),
    Recorded(
        "azure",
        400,
        error(AZURE_FILTER, None, "content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}),
        "filtered",
        "compl-ai/compl-ai#20, 2025-02-27",
    ),
    # Bedrock
    Recorded(
        "bedrock",
        429,
        {"message": "Too many tokens, please wait before trying again."},
        "wait",
        "aws-samples/amazon-bedrock-client-for-mac#99, 2025-05-12",
    ),
    Recorded(
        "bedrock",
        429,
        error("Too many requests, please wait before trying again.", "ThrottlingException"),
        "wait",
        "lobehub/lobehub#3994, 2024-09-17",
    ),
    # more of what no prompt can mend
    Recorded(
        "gemini",
        400,
        google(400, "User location is not supported for the API use.", "FAILED_PRECONDITION"),
        "stop",
        "google-gemini/gemini-cli#24641, 2026-04-03",
    ),
    Recorded("gemini", 429, google(429, DEPLETED, "RESOURCE_EXHAUSTED"), "stop", "dyad-sh/dyad#3626, 2026-06-10"),
    Recorded(
        "groq",
        400,
        error(DECOMMISSIONED, "invalid_request_error", "model_decommissioned"),
        "stop",
        "ItzCrazyKns/Vane#771, 2025-05-17",
    ),
    Recorded(
        "groq",
        400,
        error(RESTRICTED, "invalid_request_error", "organization_restricted"),
        "stop",
        "songquanpeng/one-api#1764, 2024-08-24",
    ),
    Recorded("together", 400, error(NOT_SERVERLESS), "stop", "earendil-works/pi#5506, 2026-06-08"),
    # servers of one's own
    Recorded(
        "vllm", 400, error(NO_CALL, "BadRequestError", 400), "answer", "kubernetes-sigs/inference-perf#695, 2026-08-04"
    ),
    Recorded(
        "vllm",
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 131072 tokens. However, "
            "you requested 156632 tokens (152536 in the messages, 4096 in the completion). Please reduce the length of "
            "the messages or completion.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        "length",
        "meta-llama/llama-verifications#58, 2025-08-26",
    ),
    Recorded(
        "vllm",
        400,
        {
            "object": "error",
            "message": "max_tokens must be at least 1, got -186.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        "length",
        "vllm-project/vllm#4667, 2024-05-07",
    ),
    Recorded(
        "vllm",
        500,
        {"error": {"code": 500, "message": "Failed to parse input at pos 12: </tool_call>", "type": "server_error"}},
        "answer",
        "ggml-org/llama.cpp#20761, 2026-03",
    ),
    Recorded(
        "ollama",
        500,
        {"error": "error parsing tool call: raw='ls -R\n', err=invalid character 'l' looking for beginning of value"},
        "answer",
        "continuedev/continue#10221, 2026-02-05",
    ),
    # what cannot call tools at all
    Recorded("vllm", 400, error(NO_PARSER, "BadRequestError", 400), "stop", "swiss-ai/model-launch#213, 2026-08-27"),
    Recorded("ollama", 400, error("registry.ollama.ai/library/gemma3:4b does not support tools"), "stop", PICOBOT),
    Recorded("groq", 400, error("`tools` is not supported with this model"), "stop", "agno-agi/agno#137, 2024-03-05"),
    Recorded("deepseek", 400, error(REASONER), "stop", "dnakov/anon-kode#10, 2025-03-05"),
    Recorded("xai", 400, {"code": "Client specified an invalid argument", "error": XAI_TOOLS}, "stop", ADK),
    Recorded(
        "mistral",
        400,
        {"object": "Error", "message": "Function calling is not enabled for this model", "code": 3051},
        "stop",
        "a public test, of voxtral-mini-2507, 2025",
    ),
    Recorded("gemini", 400, google(400, GEMMA, "INVALID_ARGUMENT"), "stop", "agno-agi/agno#3505, 2025"),
    Recorded(
        "openrouter",
        400,
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "raw": orjson.dumps(
                        {"error": {"code": 400, "message": "Function calling is not enabled for this model."}}
                    ).decode()
                },
            }
        },
        "stop",
        "a public test, 2026",
    ),
]
