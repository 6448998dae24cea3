# SPDX-License-Identifier: Apache-2.0
"""The tokens of an answer as endpoints tell them: their ids and log-probabilities, read into one form.

    endpoint                         ids                                      log-probabilities
    OpenAI and most others           -                                        logprobs.content[].logprob
    vLLM, SGLang since July 2026     choices[].token_ids, prompt_token_ids    the same
    vLLM, return_tokens_as_token_ids logprobs.content[].token "token_id:7"    the same
    SGLang, return_meta_info         meta_info.output_token_logprobs: [log-probability, id, text]
    NeMo Gym's model servers         message.generation_token_ids, prompt_token_ids, generation_log_probs
    Together                         logprobs.token_ids                       logprobs.token_logprobs

What is not as expected is left out: an answer is worth keeping without its tokens. Where `generation.tokens` asks for
them, an answer that comes without them ends the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from reward_kit.config_models import TokensAsked
from reward_kit.errors import EndpointError
from reward_kit.models import Completion, Failure, Tokens

__all__ = ["asking_for", "check_told", "tokens_of"]

_AS_TEXT = "token_id:"


def asking_for(asked: TokensAsked | None, ids: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The fields of a request that ask for what is wanted; `ids` are those that ask this endpoint for ids."""
    if asked is None:
        return {}
    return {**({"logprobs": True} if asked == "ids+logprobs" else {}), **(ids or {})}


def check_told(answers: Iterable[Completion | Failure], asked: TokensAsked | None, endpoint: str) -> None:
    """End the run where an answer came without the tokens that `generation.tokens` asks for."""
    if asked is None:
        return
    for answer in answers:
        if isinstance(answer, Failure):
            continue
        tokens = answer.tokens or Tokens()
        missing = [name for name, told in (("ids", tokens.ids), ("logprobs", tokens.logprobs)) if told is None]
        if "ids" in missing or (missing and asked == "ids+logprobs"):
            raise EndpointError(
                f"`generation.tokens` asks for {asked}, and {endpoint} answered without {' and '.join(missing)}, or "
                "with different numbers of them. Leave `generation.tokens` out, or ask a server that tells them (vLLM, "
                "SGLang)."
            )


def tokens_of(choice: Mapping[str, Any], reply: Mapping[str, Any]) -> Tokens | None:
    """The tokens of a choice of a chat completion; None where nothing is told of them."""
    logprobs, ids = choice.get("logprobs"), choice.get("token_ids")
    if logprobs is None and ids is None and not _is_elsewhere(choice):
        return None
    message, meta = choice.get("message"), choice.get("meta_info")
    message = message if isinstance(message, dict) else {}
    logprobs = logprobs if isinstance(logprobs, dict) else {}
    try:
        content, by_sglang = logprobs.get("content"), meta.get("output_token_logprobs") if meta else None
        told = [
            (ids, None if not content else [entry["logprob"] for entry in content]),
            (_ids_in(content), None),
            (_column(by_sglang, 1), _column(by_sglang, 0)),
            (message.get("generation_token_ids"), message.get("generation_log_probs")),
            (logprobs.get("token_ids"), logprobs.get("token_logprobs")),
        ]
        places = (choice, reply, message)
        prompt = next(
            (place["prompt_token_ids"] for place in places if place.get("prompt_token_ids") is not None), None
        )
        made = Tokens(
            prompt_ids=prompt, ids=_first(each for each, _ in told), logprobs=_first(each for _, each in told)
        )
    except (KeyError, TypeError, AttributeError, IndexError, ValidationError):
        return None
    if made.ids is not None and made.logprobs is not None and len(made.ids) != len(made.logprobs):
        return None  # one of them is not the answer's
    return made


def _is_elsewhere(choice: Mapping[str, Any]) -> bool:
    message = choice.get("message")
    return "meta_info" in choice or (isinstance(message, dict) and "generation_token_ids" in message)


def _first(found: Iterable[Any]) -> Any:
    return next((each for each in found if each is not None), None)


def _ids_in(content: Sequence[Mapping[str, Any]] | None) -> list[int] | None:
    """The ids that stand in the place of the tokens' texts."""
    texts = [entry.get("token") for entry in content or ()]
    ids = [text.removeprefix(_AS_TEXT) for text in texts if isinstance(text, str) and text.startswith(_AS_TEXT)]
    return [int(each) for each in ids] if ids and len(ids) == len(texts) and all(map(str.isdecimal, ids)) else None


def _column(rows: Sequence[Sequence[Any]] | None, place: int) -> list[Any] | None:
    return None if rows is None else [row[place] for row in rows]
