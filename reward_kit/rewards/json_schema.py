# SPDX-License-Identifier: Apache-2.0
"""JSON answers: is it JSON, does it keep to the schema, and how much of the schema's outline does it have?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reward_kit.answers.bounded_json import json_in, read_json
from reward_kit.answers.reasoning import without_reasoning
from reward_kit.errors import ItemError
from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.reward_call import run_blocking
from reward_kit.rewards._support.schemas import Outline, SchemaProblem, Violation, outline_of, violations
from reward_kit.rewards._support.verdicts import check, no_verdict, reply_of, wrong
from reward_kit.typed_interface import Operator, reward_function

__all__ = ["json_schema_reward", "json_schema_reward_with_llm_judge"]

_WEIGHTS = {"schema": 0.7, "llm": 0.3}
_SHOWN = 10
"""Names and violations that a reason lists."""
_LONGEST_REASON = 1000
"""Characters of a reason: names may be of any length."""


@reward_function
def json_schema_reward(
    messages: list[Message],
    ground_truth: Any = None,
    json_content: Any = None,
    expected_schema: Any = None,
    *,
    all_or_nothing: bool = False,
    validate: bool = True,
    **kwargs: Any,
) -> EvaluateResult:
    """How well the JSON in the last message fits a JSON Schema, from 0.0 to 1.0.

    The score is the Jaccard index of the properties the schema describes and those the document has, by path and type,
    where a property that breaks the schema in any other way (a value outside its `enum`, a number too large) counts as
    one of another type. So 1.0 means: valid, and every property there, optional ones included. With `all_or_nothing`
    the score is 1.0 for a valid document and 0.0 for any other. Without `validate` only the outline counts, and the
    extra is not needed.

    The document is `json_content`, or the JSON in the answer: the whole of it, its last fenced block, or the last
    object in its prose. A ground truth that is an object serves as schema where `expected_schema` is not given.

    Metrics: `schema_similarity`, `schema_valid`; `error` where there is no JSON.
    Needs: extra `schema`.
    Cost: linear in the answer, about 1 ms with a small schema.
    Does not detect: whether the values are true; `format` is not checked. Regular expressions in the schema are run as
    its author wrote them.

    >>> schema = {"properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}}}
    >>> judge = lambda text: json_schema_reward([Message(role="assistant", content=text)], expected_schema=schema).score
    >>> judge('{"name": "Ada", "age": 36}'), judge('{"name": "Ada"}'), judge("Ada is 36.")
    (1.0, 0.5, 0.0)
    >>> round(judge('{"name": "Ada", "age": -1}'), 2)
    0.33
    """
    if json_content is None:
        reply_of(messages, "schema_similarity")
    schema = _schema(expected_schema, ground_truth)
    if schema is None:
        return no_verdict("There is no schema to compare with. Give `expected_schema` as an object or its JSON text.")
    try:
        document = _document(messages, json_content)
    except ValueError as error:
        reason = f"No JSON can be read: {error}."
        return wrong(reason, {"schema_similarity": check(False, reason), "error": check(False, reason)})
    try:
        broken = violations(schema, document) if validate else []
        outline = outline_of(document, schema).broken_at({found.path or "the whole" for found in broken})
    except SchemaProblem as error:
        return no_verdict(f"The schema cannot be used: {error}. Correct it.")
    return _verdict(outline, broken, all_or_nothing=all_or_nothing)


@reward_function(timeout=600)
def json_schema_reward_with_llm_judge(  # noqa: PLR0913, PLR0917 - an inherited signature
    messages: list[Message],
    ground_truth: Any = None,
    json_content: Any = None,
    expected_schema: Any = None,
    expected_behavior: str | None = None,
    openai_api_key: Operator[str | None] = None,
    model: Operator[Any] = "gpt-4o-mini",
    temperature: Operator[float] = 0.0,
    weights: Mapping[str, float] | None = None,
    **kwargs: Any,
) -> EvaluateResult:
    """The schema's score and a judge's, weighted (`schema` 0.7, `llm` 0.3).

    The judge says how well the JSON does what `expected_behavior` describes; without that there is nothing to ask, and
    the schema's score stands alone. `model` is a model's name, or anything `judge_reward` takes as judge. One that is
    only named is asked at `OPENAI_BASE_URL` where that variable is set, with the key in `OPENAI_API_KEY`. If the judge
    gives no verdict, the reward gives none. In a run, prefer `composite_reward` with `json_schema_reward` and
    `judge_reward`, which uses the run's judge.

    Metrics: `schema_similarity`, `schema_score`, `llm_judge`, `llm_score`, `weights`.
    Needs: extra `schema`.
    Cost: one request.
    Does not detect: what the judging model cannot tell.

    >>> reply = Message(role="assistant", content='{"city": "Paris"}')
    >>> mock = {"model_name": "mock", "mock": {"responses": ["VERDICT: 5"]}, "cache": {"enabled": False}}
    >>> schema = {"properties": {"city": {"type": "string"}}}
    >>> told = json_schema_reward_with_llm_judge(
    ...     [reply], expected_schema=schema, expected_behavior="Name a capital.", model=mock)
    >>> round(told.score, 2)
    0.85
    """
    from reward_kit.rewards.judge import grade  # brings a model client along, which nobody else here needs

    by_schema = json_schema_reward(messages, ground_truth, json_content, expected_schema, **kwargs)
    if not by_schema.is_score_valid or not expected_behavior or "error" in by_schema.metrics:
        return by_schema
    document = json.dumps(_document(messages, json_content), ensure_ascii=False, indent=2)
    judge: Any = model
    if isinstance(model, str):
        judge = {"model_name": model, "temperature": temperature, "api_key": openai_api_key}
    rubric = f"Does the JSON do what is expected?\n{expected_behavior}"
    try:
        given = run_blocking(grade(judge, _question(messages), document, rubric=rubric))
    except ItemError as error:
        return no_verdict(str(error), by_schema.metrics)
    return _weighted(by_schema, given.score, given.reply, weights or _WEIGHTS)


def _schema(expected: Any, ground_truth: Any) -> Mapping[str, Any] | None:
    given = expected if expected is not None else ground_truth
    if isinstance(given, str):
        try:
            given = read_json(given)
        except ValueError:
            return None
    return given if isinstance(given, Mapping) else None


def _document(messages: list[Message], json_content: Any) -> Any:
    if json_content is None:
        return json_in(without_reasoning(messages[-1].text).strip())
    return read_json(json_content) if isinstance(json_content, str) else json_content


def _question(messages: list[Message]) -> str:
    return "\n\n".join(f"[{turn.role}]\n{turn.text}" for turn in messages[:-1])


def _verdict(outline: Outline, broken: list[Violation], *, all_or_nothing: bool) -> EvaluateResult:
    similarity = outline.similarity
    parts = {"missing or of another type": outline.missing - outline.extra, "not expected": outline.extra}
    problems = [f"{what}: {', '.join(sorted(names)[:_SHOWN])}" for what, names in parts.items() if names]
    problems += [f"{path or 'the whole'}: {message}" for path, message in broken[:_SHOWN]]
    reason = "; ".join(problems)[:_LONGEST_REASON] or "every property is there, and valid"
    metrics = {
        "schema_similarity": MetricResult(score=similarity, reason=reason, is_score_valid=similarity == 1.0),
        "schema_valid": check(not broken, reason if broken else "no rule of the schema is broken"),
    }
    score = float(not broken) if all_or_nothing else similarity
    return EvaluateResult(score=score, reason=reason, metrics=metrics)


def _weighted(by_schema: EvaluateResult, llm: float, reply: str, weights: Mapping[str, float]) -> EvaluateResult:
    total = weights.get("schema", 0.0) + weights.get("llm", 0.0)
    if total <= 0:
        return no_verdict(f"The weights {dict(weights)!r} add up to 0. Give `schema` or `llm` a weight above 0.")
    share = {name: weights.get(name, 0.0) / total for name in ("schema", "llm")}
    score = share["schema"] * by_schema.score + share["llm"] * llm
    weights_used = f"schema {share['schema']:.2f}, llm {share['llm']:.2f}"
    metrics = {
        **by_schema.metrics,
        "llm_judge": MetricResult(score=llm, reason=reply.strip()[:500], is_score_valid=llm == 1.0),
        "schema_score": MetricResult(score=by_schema.score, reason="the schema's", is_score_valid=by_schema.score == 1),
        "llm_score": MetricResult(score=llm, reason="the judge's", is_score_valid=llm == 1.0),
        "weights": MetricResult(score=1.0, reason=weights_used),
    }
    return EvaluateResult(
        score=score, reason=f"schema {by_schema.score:.2f}, judge {llm:.2f} ({weights_used})", metrics=metrics
    )
