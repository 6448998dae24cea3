# SPDX-License-Identifier: Apache-2.0
"""Which runs share cached answers: never those of a server of one's own, whose model may be another one tomorrow."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.config_models import CacheConfig, load_config
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import Phase, RunResult
from reward_kit.execution.summary import about_earlier
from reward_kit.generation.cache.sharing import asks_who_answers, is_own_address, key_identity
from tests.generation.loopback import Loopback, Reaction, answer
from tests.loopback.endpoint import honest, serving
from tests.loopback.runs import config, lines


def run(told: dict[str, Any], phase: Phase = "inference", **options: Any) -> RunResult:
    """A run that only generates, which is what is looked at here."""
    return EvaluationPipeline(told, phase=phase, **options).run()


def step(number: int) -> Any:
    """A checkpoint that was trained for so many steps, under the name that all of them have."""
    return lambda body, _: answer(f"step {number}")


def settings(home: Path, endpoint: Loopback, out: str, enabled: bool | None = None, **more: Any) -> dict[str, Any]:
    cache: dict[str, Any] = {"cache_dir": str(home / "cache")} | ({} if enabled is None else {"enabled": enabled})
    base = f"http://127.0.0.1:{endpoint.port}/v1"
    return config(home, base, generation__cache=cache, output__output_dir=str(home / out), **more)


def responses(home: Path, out: str) -> set[str]:
    return {line["turns"][-1]["content"] for line in lines(home / out / "rollouts.jsonl")}


def test_a_new_checkpoint_under_the_old_name_is_asked(tmp_path: Path) -> None:
    with serving(step(100)) as endpoint:
        run(settings(tmp_path, endpoint, "a"))
        assert len(endpoint.requests) == 4
        endpoint.react = step(200)
        planned = EvaluationPipeline(settings(tmp_path, endpoint, "b")).plan()
        assert (planned.cached, planned.requests) == (0, 4)
        result = run(settings(tmp_path, endpoint, "b"))
        assert len(endpoint.requests) == 8 and result.counters.cached == 0
        assert responses(tmp_path, "b") == {"step 200"} and responses(tmp_path, "a") == {"step 100"}
        assert endpoint.listed == 0


def test_a_directory_that_was_deleted_is_a_new_one(tmp_path: Path) -> None:
    with serving(step(100)) as endpoint:
        run(settings(tmp_path, endpoint, "a"))
        endpoint.react = step(200)
        run(settings(tmp_path, endpoint, "a"), overwrite=True)
        assert responses(tmp_path, "a") == {"step 200"}


def test_what_a_killed_run_had_paid_for_is_there_when_it_goes_on(tmp_path: Path) -> None:
    """The answers are in the cache, and its rollouts are gone: as if it was killed between the two."""
    with serving(honest) as endpoint:
        told = settings(tmp_path, endpoint, "a")
        run(told)
        (tmp_path / "a" / "rollouts.jsonl").write_bytes(b"")
        manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
        scope = manifest["cache_scope"]
        result = run(told)
        assert len(endpoint.requests) == 4 and result.counters.cached == 4
        assert json.loads((tmp_path / "a" / "manifest.json").read_text())["cache_scope"] == scope


def test_where_it_is_written_answers_are_shared_as_long_as_the_server_tells_no_other_model(tmp_path: Path) -> None:
    with serving(step(100)) as endpoint:
        endpoint.models = [{"id": "other"}, {"id": "m", "root": "/ckpt/100", "created": 1}]
        run(settings(tmp_path, endpoint, "a", enabled=True))
        endpoint.models[1]["created"] = 2
        planned = EvaluationPipeline(settings(tmp_path, endpoint, "b", enabled=True)).plan()
        assert (planned.cached, planned.requests) == (4, 0)
        run(settings(tmp_path, endpoint, "b", enabled=True))
        assert len(endpoint.requests) == 4, "the same root: the same model"
        endpoint.models[1]["root"] = "/ckpt/200"
        endpoint.react = step(200)
        run(settings(tmp_path, endpoint, "c", enabled=True))
        assert len(endpoint.requests) == 8 and responses(tmp_path, "c") == {"step 200"}
        assert endpoint.listed == 4, "once a run"


@pytest.mark.parametrize("models", [None, [], [{"id": "m"}], [7], {"no": "list"}])
def test_a_server_that_tells_nothing_of_its_model_is_taken_by_its_name(tmp_path: Path, models: Any) -> None:
    with serving(step(100)) as endpoint:
        endpoint.models = models
        for out in ("a", "b"):
            run(settings(tmp_path, endpoint, out, enabled=True))
        assert len(endpoint.requests) == 4


def _other(told: Any) -> Any:
    return {name: _other(value) for name, value in told.items()} if isinstance(told, dict) else "another"


@pytest.mark.parametrize(
    "entry",
    [
        {"digest": "1"}, {"meta": {"size": 1}}, {"sha256": "1"}, {"model_digest": "1"}, {"details": {"digest": "1"}},
        {"details": {"files": {"sha256": "1"}}}, {"meta": {"of": {"size": 1}}},
    ],
)  # fmt: skip
def test_what_servers_call_a_digest_is_in_the_key(tmp_path: Path, entry: dict[str, Any]) -> None:
    with serving(step(100)) as endpoint:
        for number, told in enumerate([entry, _other(entry)]):
            endpoint.models = [{"id": "m", **told}]
            run(settings(tmp_path, endpoint, f"run{number}", enabled=True))
        assert len(endpoint.requests) == 8


def test_the_judge_of_another_directory_is_asked_again(tmp_path: Path) -> None:
    def judged(body: dict[str, Any], _: int) -> Reaction:
        return answer("VERDICT: 4")

    with serving(judged) as endpoint:
        judge = {"model_name": "j", "api_base": endpoint.api_base, "cache": {"cache_dir": str(tmp_path / "cache")}}
        for out in ("a", "b"):
            told = settings(tmp_path, endpoint, out, judge=judge)
            told["generation"] = {"model_name": "mock", "mock": {"responses": ["x"]}}
            told["reward"] = {"function_path": "judge_reward"}
            run(told, phase="both")
        assert len({body["messages"][-1]["content"] for body in endpoint.requests}) * 2 == len(endpoint.requests)


# ── what is said ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_that_answers_from_the_cache_says_so_with_the_answers_age(tmp_path: Path) -> None:
    with serving(step(100)) as endpoint:
        first = run(settings(tmp_path, endpoint, "a", enabled=True))
        assert "earlier" not in first.summary["this_entry"]
        file = tmp_path / "cache" / "v1" / "responses.jsonl"
        entries = [orjson.loads(line) for line in file.read_bytes().splitlines()]
        _made_days_ago(file, entries, 3)
        second = run(settings(tmp_path, endpoint, "b", enabled=True))
    told = about_earlier(second.summary["this_entry"]["earlier"])
    pattern = r"4 answers came from the cache; they are 3 days old \(made \d{4}-\d\d-\d\d\)\. Use `generation\."
    assert re.match(pattern, told), told


def _made_days_ago(file: Path, entries: list[dict[str, Any]], days: int) -> None:
    """The same entries, made earlier, as a time before checksums wrote them."""
    kept = [{name: entry[name] for name in entry if name != "check"} for entry in entries]
    for entry in kept:
        entry["created"] -= days * 86400 + 60
    file.write_bytes(b"".join(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE) for entry in kept))


# ── which addresses ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost", True), ("LOCALHOST", True), ("127.0.0.1", True), ("127.8.9.1", True), ("[::1]", True),
        ("10.1.2.3", True), ("172.16.0.9", True), ("192.168.0.2", True), ("169.254.1.1", True), ("[fe80::1]", True),
        ("[fd00::1]", True), ("0.0.0.0", True), ("gpu-box", True), ("gpu.local", True), ("a.b.internal", True),
        ("vllm.team.svc.cluster.local", True), ("100.64.1.1", True),
        ("8.8.8.8", False), ("api.openai.com", False), ("172.32.0.1", False), ("local.example.com", False),
        ("[2606:4700::1]", False),
    ],
)  # fmt: skip
def test_addresses_of_ones_own(host: str, own: bool) -> None:
    endpoint = f"http://{host}:8000/v1"
    assert is_own_address(endpoint) is own
    identity = {"endpoint": endpoint, "model": "m"}
    assert ("scope" in key_identity(identity, CacheConfig())) is own
    assert key_identity(identity, CacheConfig(enabled=True)) == identity
    assert asks_who_answers(identity, CacheConfig(enabled=True)) is own
    assert not asks_who_answers(identity, CacheConfig())


def test_what_is_no_address_is_what_it_says() -> None:
    for identity in ({"model": "mock"}, {"digest": "1"}, {"endpoint": ""}):
        assert key_identity(identity, CacheConfig()) == identity


def test_a_config_that_was_written_by_a_run_says_no_more_than_the_one_it_was_given(tmp_path: Path) -> None:
    run(config(tmp_path, generation__cache={"cache_dir": str(tmp_path / "cache")}))
    text = (tmp_path / "run" / "config.yaml").read_text()
    assert "cache_dir" in text and "enabled: null" not in text
    assert load_config({"reward": {"function_path": "x"}}).generation.cache.enabled is None


@pytest.mark.parametrize("place", ["", "meta", "details"])
def test_when_a_server_was_started_is_not_in_the_key(tmp_path: Path, place: str) -> None:
    with serving(step(100)) as endpoint:
        for created in (1, 2):
            told = {"created": created, "permission": [{"id": f"p{created}", "created": created}]}
            endpoint.models = [{"id": "m", "root": "/ckpt/100", **({place: told} if place == "details" else {}),
                                **({"meta": {"size": 1, "created": created}} if place == "meta" else {}),
                                **(told if not place else {})}]  # fmt: skip
            run(settings(tmp_path, endpoint, f"run{created}", enabled=True))
        assert len(endpoint.requests) == 4
