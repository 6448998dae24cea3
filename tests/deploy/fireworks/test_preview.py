# SPDX-License-Identifier: Apache-2.0
"""Previews: judged here by the real code, by Fireworks when asked, and never by nobody."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from reward_kit.deploy.fireworks.evaluator_source import source_of_url
from reward_kit.errors import ConfigError, DatasetError
from reward_kit.evaluation import (
    Evaluator,
    EvaluatorPreviewResult,
    create_evaluation,
    deploy_folder_evaluation,
    huggingface_dataset_to_jsonl,
    preview_evaluation,
    preview_folder_evaluation,
)
from tests.cli_commands.conftest import Call
from tests.cli_commands.conftest import call as call  # noqa: PLC0414 - a fixture
from tests.deploy.fireworks.fake import FakeFireworks
from tests.deploy.fireworks.test_evaluators import judged_elsewhere

SAMPLES = [
    {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "x" * n}], "ground_truth": "x"}
    for n in (1, 5, 10)
]


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    file = tmp_path / "samples.jsonl"
    file.write_text("".join(json.dumps(sample) + "\n" for sample in SAMPLES))
    return file


def metric(place: Path, body: str) -> Path:
    place.mkdir(parents=True)
    (place / "main.py").write_text(f"def evaluate(messages, ground_truth=None, **kwargs):\n    {body}\n")
    return place


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    metric(tmp_path / "metrics" / "length", "return len(messages[-1]['content']) / 10")
    metric(tmp_path / "metrics" / "half", "return {'score': 0.5, 'reason': 'always'}")
    return tmp_path / "metrics"


def test_one_metric_judges_here(folders: Path, samples: Path) -> None:
    result = preview_evaluation([f"length={folders / 'length'}"], sample_file=str(samples))
    assert [one.score for one in result.results] == [0.1, 0.5, 1.0]
    assert all(one.success for one in result.results) and result.total_samples == 3


def test_several_metrics_are_each_told_and_the_score_is_their_mean(folders: Path, samples: Path) -> None:
    result = preview_folder_evaluation(str(folders), str(samples))
    assert [one.score for one in result.results] == pytest.approx([0.3, 0.5, 0.75])
    assert result.results[0].per_metric_evals["length"]["score"] == pytest.approx(0.1)
    assert result.results[0].per_metric_evals["half"]["score"] == 0.5


@pytest.mark.parametrize("body", ["raise ValueError('broken')", "import os; os._exit(3)", "return 'a text'"])
def test_what_cannot_be_judged_has_no_score(tmp_path: Path, samples: Path, body: str) -> None:
    folder = metric(tmp_path / "bad", body)
    result = preview_evaluation([f"bad={folder}"], sample_file=str(samples))
    assert [one.score for one in result.results] == [None] * 3
    assert not any(one.success for one in result.results) and "not judged" in result.results[0].reason


def test_a_metric_among_several_that_fails_leaves_no_score(tmp_path: Path, folders: Path, samples: Path) -> None:
    metric(folders / "bad", "raise ValueError('broken')")
    result = preview_folder_evaluation(str(folders), str(samples))
    assert [one.score for one in result.results] == [None] * 3
    assert "'bad'" in result.results[0].reason


def test_code_judges_here(samples: Path) -> None:
    code = "def evaluate(messages, **kwargs):\n    return 0.25\n"
    result = preview_evaluation(python_code_to_evaluate=code, sample_file=str(samples), max_samples=2)
    assert [one.score for one in result.results] == [0.25, 0.25]


def test_fireworks_judges_only_when_asked_and_its_failure_is_an_error(
    fireworks: FakeFireworks, folders: Path, samples: Path
) -> None:
    evaluator = Evaluator()
    evaluator.load_metric_folder("length", folders / "length")
    evaluator.preview(samples)
    assert fireworks.requests == []
    assert [one.score for one in evaluator.preview(samples, hosted=True).results] == [0.25] * 3
    fireworks.fail("POST", "previewEvaluator", 404)
    with pytest.raises(Exception, match="404"):
        evaluator.preview(samples, hosted=True)


def test_an_evaluator_is_created_from_folders_and_from_an_address(fireworks: FakeFireworks, folders: Path) -> None:
    assert create_evaluation("two", [f"a={folders / 'half'}", f"b={folders / 'length'}"])["state"] == "ACTIVE"
    assert deploy_folder_evaluation("folder", str(folders), "Two of them")["displayName"] == "Two of them"
    assert create_evaluation("far", remote_url="https://rewards.example.com")["state"] == "ACTIVE"
    assert [one["name"] for one in fireworks.things["evaluators/two"].fields["criteria"]] == ["a", "b"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"folder": "x", "remote_url": "https://x.example"},
        {"metric_folders": ["nothing"]},
        {"metric_folders": ["a=/none"]},
    ],
)
def test_what_judges_is_given_once_and_rightly(samples: Path, given: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        preview_evaluation(**given, sample_file=str(samples))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line", ["nonsense", "[]", '{"messages": []}', '{"messages": [{"role": "user"}]}', '{"messages": "x"}']
)
def test_a_sample_that_is_no_conversation_is_named_by_its_line(tmp_path: Path, folders: Path, line: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(json.dumps(SAMPLES[0]) + "\n" + line + "\n")
    with pytest.raises(DatasetError, match="Line 2"):
        preview_evaluation([f"length={folders / 'length'}"], sample_file=str(file))


CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
ASKED = {"role": "user", "content": "1 + 1?"}


@pytest.mark.parametrize(
    ("row", "turn"),
    [
        ({"user_query": "1 + 1?", "assistant_response": "2", "ground_truth": "2"}, {"content": "2"}),
        ({"question": "1 + 1?", "answer": "2", "assistant_response": "2"}, {"content": "2"}),
        ({"messages": [ASKED, {"role": "assistant", "content": None, "tool_calls": [CALL]}], "ground_truth": "2"},
         {"content": None, "tool_calls": [CALL]}),
        ({"messages": [ASKED, {"role": "assistant", "content": [{"type": "text", "text": "2"}]}], "answer": "2"},
         {"content": [{"type": "text", "text": "2"}]}),
    ],
)  # fmt: skip
def test_a_preview_judges_what_a_run_judges(
    fireworks: FakeFireworks, tmp_path: Path, row: dict[str, Any], turn: dict[str, Any]
) -> None:
    file, place = tmp_path / "rows.jsonl", tmp_path / "seen.json"
    file.write_text(json.dumps(row) + "\n")
    seen = "json.dumps([*(turn.model_dump() for turn in messages), ground_truth])"
    folder = metric(tmp_path / "seen", f"import json; open({str(place)!r}, 'w').write({seen}); return 1")
    evaluator = Evaluator()
    evaluator.load_metric_folder("seen", folder)
    assert [one.score for one in evaluator.preview(file).results] == [1.0]
    asked, answer, truth = json.loads(place.read_text())
    assert (asked["content"], truth) == ("1 + 1?", "2")
    assert {name: answer[name] for name in turn} == turn
    assert evaluator.preview(file, hosted=True).results[0].success


def test_rows_of_a_dataset_become_conversations(tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text(
        "".join(json.dumps({"question": f"q{n}", "answer": f"a{n}", "truth": n}) + "\n" for n in range(5))
    )
    file = huggingface_dataset_to_jsonl(
        str(source), output_file=str(tmp_path / "out.jsonl"), max_samples=2, message_key_map={"truth": "ground_truth"},
        response_key="answer", prompt_key="question",
    )  # fmt: skip
    first, second = map(json.loads, Path(file).read_text().splitlines())
    assert first["messages"][1]["content"] == "a0" and second["ground_truth"] == 1
    with pytest.raises(DatasetError, match="prompt_key"):
        huggingface_dataset_to_jsonl(str(source), output_file=str(tmp_path / "none.jsonl"))


# ── a reward that is served ──────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_sent_to_fireworks_for_a_served_reward_asks_it_with_its_key(tmp_path: Path) -> None:
    asked: list[tuple[str, str | None, object]] = []

    class Reward(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, self.headers.get("X-Api-Key"), body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"score": 0.5, "is_score_valid": True, "reason": "", "metrics": {}}).encode())

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Reward)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = tmp_path / "elsewhere"
    place.mkdir()
    try:
        source = source_of_url(f"http://127.0.0.1:{server.server_port}/")
        assert judged_elsewhere(source, place, {"RK_ENDPOINT_API_KEY": "k-1"}) == "0.5"
    finally:
        server.shutdown()
        server.server_close()
    ((path, key, body),) = asked
    assert (path, key) == ("/evaluate", "k-1")
    assert isinstance(body, dict) and set(body) == {"messages", "ground_truth", "tools", "kwargs"}


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_command_prints_a_table(call: Call, folders: Path, samples: Path) -> None:
    said = call("preview", "-m", f"length={folders / 'length'}", "-m", f"half={folders / 'half'}", "-s", samples)
    assert said.code == 0 and "judged on this machine" in said.err
    assert said.out.splitlines()[0].split() == ["sample", "score", "length", "half", "reason"]
    assert "3 of 3 samples judged, mean score 0.517" in said.out


def test_the_command_takes_a_reward_by_name(call: Call, samples: Path) -> None:
    said = call("preview", "exact_match", "-s", samples, "--json")
    assert said.code == 0
    assert [one["score"] for one in json.loads(said.out)["results"]] == [1.0, 0.0, 0.0]


def test_nothing_judged_is_told_by_the_exit_code(call: Call, tmp_path: Path, samples: Path) -> None:
    said = call("preview", "-m", f"bad={metric(tmp_path / 'bad', 'raise ValueError()')}", "-s", samples)
    assert said.code == 1 and "0 of 3 samples judged" in said.out


@pytest.mark.parametrize(
    "arguments", [[], ["math"], ["math", "-m", "a=b", "-s", "{samples}"], ["math", "--hosted", "-s", "{samples}"]]
)
def test_what_is_missing_or_too_much_is_said(call: Call, samples: Path, arguments: list[str]) -> None:
    said = call("preview", *(word.format(samples=samples) for word in arguments))
    assert said.code == 2 and said.sentence


def test_results_can_be_put_together_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    result = EvaluatorPreviewResult()
    result.add_result(0, True, 0.5, {"words": {"score": 0.5}})
    result.display()
    assert "0.500" in capsys.readouterr().out


def test_a_reward_by_its_path_is_previewed_here_and_created_with_its_files(
    fireworks: FakeFireworks, tmp_path: Path, samples: Path
) -> None:
    (tmp_path / "lengths_of_answers.py").write_text("LONG = 5\n")
    code = "from lengths_of_answers import LONG\n\ndef long(messages, least=0, **kwargs):\n"
    (tmp_path / "judges_of_length.py").write_text(
        f"{code}    return float(len(messages[-1]['content']) >= max(LONG, least))\n"
    )
    evaluator = Evaluator()
    evaluator.load_reward(f"{tmp_path / 'judges_of_length.py'}:long", {"least": 6})
    assert [one.score for one in evaluator.preview(samples).results] == [0.0, 0.0, 1.0]
    assert evaluator.create("long-v1")["name"].endswith("/long-v1")
    assert {"project/judges_of_length.py", "project/lengths_of_answers.py"} <= evaluator.source().files.keys()


def test_a_reward_that_judges_groups_is_no_evaluator(tmp_path: Path, samples: Path, fireworks: FakeFireworks) -> None:
    (tmp_path / "groups.py").write_text(
        "def ranked(rollouts_messages, **kwargs):\n    return [1.0] * len(rollouts_messages)\n"
    )
    evaluator = Evaluator()
    evaluator.load_reward(f"{tmp_path / 'groups.py'}:ranked")
    assert evaluator.preview(samples).results[0].score == 1.0, "here it can be looked at"
    with pytest.raises(ConfigError, match=r"one answer at a time, and the reward's mode is 'batch'.*reward-kit run"):
        evaluator.create("ranked-v1")
    assert not fireworks.things
    with pytest.raises(ConfigError, match="'batch'"):
        Evaluator(reward_function_mode="batch")
