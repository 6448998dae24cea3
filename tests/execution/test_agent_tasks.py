# SPDX-License-Identifier: Apache-2.0
"""Agent tasks as runs: definitions, samples, the inherited figures and files; nothing is paid twice."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from reward_kit.agent.task_manager import TaskManager
from reward_kit.datasets.interpret import sample_of
from reward_kit.errors import ConfigError, DatasetError
from reward_kit.execution.agent_tasks.definition import config_of, directory_name, load_task, samples_of, task_files
from reward_kit.execution.agent_tasks.trajectory import aggregate
from tests.datasets.row_shapes import Case, cases

PLAYER = """
import json
from pathlib import Path
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message

ASKED = Path(__file__).with_name("asked.txt")

def act(messages, draw):
    with ASKED.open("a") as file:
        file.write(f"{draw}\\n")
    if messages[-1].role == "tool":
        return Message(role="assistant", content=f"draw {draw}")
    call = FunctionCall(name="update_state", arguments=json.dumps({"updates": {"n": draw}}))
    return Message(role="assistant", content="", tool_calls=[ChatCompletionMessageToolCall(id="1", function=call)])

def judged(messages, state, **kwargs):
    n = state["resource"].get_state()["n"]
    if n == 2:
        raise OSError("no verdict")
    return {"score": n / 10, "reason": "r", "metrics": {"m": {"score": n / 10, "reason": "x"}}}
"""

TASK = """
name: counting
resource_type: PythonStateResource
base_resource_config: {initial_state: {n: -1}}
reward_function_path: player.py:judged
initial_user_prompt: Count.
num_rollouts: 4
generation: {mock: {function_path: "player.py:act"}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "player.py").write_text(PLAYER)
    (tmp_path / "counting.yaml").write_text(TASK)
    return tmp_path


def asked(folder: Path) -> int:
    return len((folder / "asked.txt").read_text().splitlines())


async def test_a_task_is_a_run_whose_figures_and_file_are_the_inherited_ones(folder: Path) -> None:
    manager = TaskManager(output_dir=folder / "runs", model="mock")
    manager.register_task(load_task(folder / "counting.yaml"))
    figures = (await manager.execute_tasks())["counting"]
    assert figures["individual_scores"] == [0.0, 0.1, 0.3]
    assert (figures["num_rollouts"], figures["successful_rollouts"], figures["failed_rollouts"]) == (4, 3, 1)
    assert figures["score"] == figures["avg_score"] == figures["average_score"] == pytest.approx(0.4 / 3)
    assert (figures["min_score"], figures["max_score"], figures["success_rate"]) == (0.0, 0.3, 0.75)
    assert figures["aggregated_metrics"]["m"]["individual_scores"] == [0.0, 0.1, 0.3]
    assert "error" not in figures and "no verdict" in figures["failed_results"][0]["error"]
    (file,) = (folder / "runs" / "counting" / "evaluation_logs").glob("trajectory_counting_*.jsonl")
    summary, *individual = [json.loads(line) for line in file.read_text().splitlines()]
    assert summary["type"] == "summary" and summary["score"] == figures["score"]
    assert [one["rollout_index"] for one in individual] == [0, 1, 2, 3]
    assert {one["type"] for one in individual} == {"individual_result"}
    assert individual[3]["reward_function_inputs"]["state"]["final_state"] == {"n": 3}
    assert individual[2]["reward_function_inputs"]["messages"][-1]["content"] == "draw 2"
    assert not list(folder.glob("runs/counting/*.partial"))


async def test_evaluating_again_pays_only_for_what_is_new(folder: Path) -> None:
    async def evaluated(rollouts: int) -> Any:
        manager = TaskManager(output_dir=folder / "runs", model="mock")
        manager.register_tasks_from_directory(str(folder))
        return (await manager.execute_tasks(num_rollouts_override=rollouts))["counting"]

    await evaluated(2)
    assert asked(folder) == 4
    assert (await evaluated(2))["individual_scores"] == [0.0, 0.1]
    assert asked(folder) == 4
    assert (await evaluated(4))["num_rollouts"] == 4
    assert asked(folder) == 8


async def test_tasks_run_side_by_side_where_that_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most, now = 0, 0

    async def evaluated(self: TaskManager, *settings: Any) -> dict[str, Any]:
        nonlocal most, now
        now += 1
        most = max(most, now)
        for _ in range(5):
            await asyncio.sleep(0)
        now -= 1
        return {}

    monkeypatch.setattr(TaskManager, "_evaluated", evaluated)
    manager = TaskManager()
    task = load_task(folder / "counting.yaml")
    for number in range(6):
        manager.register_task(f"task {number}", task)
    await manager.execute_tasks()
    assert most == 1
    assert set(await manager.execute_tasks(parallel=True, max_concurrency=4)) == set(manager.tasks)
    assert most == 4
    assert list(await manager.execute_tasks(["task 3", "missing"])) == ["task 3"]


async def test_without_a_directory_nothing_is_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    (folder / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "tmp"))
    manager = TaskManager(model="mock")
    manager.register_task(load_task(folder / "counting.yaml"))
    assert (await manager.execute_tasks(num_rollouts_override=1))["counting"]["score"] == 0.0
    assert list((folder / "tmp").iterdir()) == []
    monkeypatch.setenv("MODEL_AGENT", "mock")
    done = await manager.execute_task("counting")
    assert done is not None and done["evaluation_result"].score == 0.0
    assert await manager.execute_task("missing") is None
    await manager.cleanup()
    assert manager.orchestrators == {}


async def test_a_task_that_fails_altogether_has_an_error_and_no_score(folder: Path) -> None:
    manager = TaskManager(output_dir=folder / "runs", model="mock")
    broken = load_task(folder / "counting.yaml").model_copy(update={"base_resource_config": {"initial_state": 3}})
    manager.register_task(broken)
    figures = (await manager.execute_tasks(num_rollouts_override=1))["counting"]
    assert "initial_state" in figures["error"] and "score" not in figures
    assert aggregate([])["error"]


def test_rows_of_a_dataset_are_samples_of_their_own(folder: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "user_query": "One?", "ground_truth": "1", "seed": 3},
        {"messages": [{"role": "user", "content": "Two?"}]},
        {"seed": 4},
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = TASK + "dataset_path: rows.jsonl\nnum_rollouts_per_sample: 5\n"
    (folder / "counting.yaml").write_text(text)
    task = load_task(folder / "counting.yaml")
    samples = samples_of(task)
    assert [(sample.id, sample.messages[-1].text) for sample in samples] == [
        ("a", "One?"), ("counting-1", "Two?"), ("counting-2", "Count."),
    ]  # fmt: skip
    assert samples[0].ground_truth == "1" and samples[0].columns == {"seed": 3}
    assert config_of(task, folder, model="mock").generation.n == 5


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(case=cases())
def test_a_row_of_a_task_means_what_it_means_elsewhere(folder: Path, case: Case) -> None:
    (folder / "rows.jsonl").write_text(json.dumps(case.row))
    task = load_task(folder / "counting.yaml").model_copy(update={"dataset_path": str(folder / "rows.jsonl")})
    if case.unclear:
        with pytest.raises(DatasetError, match="unclear what"):
            samples_of(task)
        return
    (sample,) = samples_of(task)
    assert (sample.messages[-1].text, repr(sample.ground_truth)) == (case.asked, repr(case.truth))
    assert sample.columns == sample_of(case.row).columns


def test_settings_of_the_task_reach_the_run(folder: Path) -> None:
    text = TASK + "termination_regex: STOP\nagent: {max_turns: 7}\nresource_type: http_rollout\n"
    (folder / "http.yaml").write_text(text.replace("resource_type: PythonStateResource\n", ""))
    config = config_of(load_task(folder / "http.yaml"), folder / "out", model="openai/m", rollouts=2, concurrency=9)
    assert config.agent is not None
    assert (config.agent.stop_pattern, config.agent.max_turns, config.agent.concurrency) == ("STOP", 7, 9)
    assert config.agent.durability == "restart"  # an episode on a server cannot be gone on with
    assert (config.generation.model_name, config.generation.n) == ("openai/m", 2)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n", "not a mapping"),
        ("name: x\n", "'resource_type'"),
        ("name: [", "not YAML"),
        (TASK + "termination_regex: '('\n", "regular expression"),
        (TASK + "num_rollouts: 0\n", "given twice"),
        (TASK.replace("num_rollouts: 4", "num_rollouts: 0"), "'num_rollouts'"),
    ],
)
def test_a_wrong_definition_is_named(folder: Path, text: str, problem: str) -> None:
    (folder / "wrong.yaml").write_text(text)
    with pytest.raises(ConfigError, match=problem):
        load_task(folder / "wrong.yaml")
    manager = TaskManager()
    assert manager.register_tasks_from_directory(str(folder)) == ["counting"]
    assert manager.register_tasks_from_directory(str(folder / "missing")) == []


def test_names_and_places() -> None:
    assert directory_name("a/b c: 1") == "a_b_c_1"
    with pytest.raises(ConfigError, match="no task definition"):
        task_files(Path("missing"))
    with pytest.raises(ValueError, match="definition"):
        TaskManager().register_task("name only")
    silent = TASK.replace("initial_user_prompt: Count.\n", "")
    import yaml

    from reward_kit.models import TaskDefinitionModel

    with pytest.raises(ConfigError, match="no text for the model"):
        samples_of(TaskDefinitionModel.model_validate(yaml.safe_load(silent)))


SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    at = {}

    def reply(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply({"status": "ok"})

    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/start_episode":
            key = str(len(self.at))
            self.at[key] = given["seed"]
            self.reply({"episode_id": key, "observation": {"message": f"at {given['seed']}"}})
        elif self.path == "/step":
            self.at[given["episode_id"]] += given["action"]
            at = self.at[given["episode_id"]]
            self.reply({"observation": {"at": at}, "is_done": at >= 3})
        else:
            self.reply({"message": "ended"})

    def log_message(self, *_):
        pass

HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

WALKER = """
import json
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message

def act(messages, draw):
    turn = sum(message.role == "assistant" for message in messages)
    function = FunctionCall(name="step", arguments=json.dumps({"action": "up"}))
    call = ChatCompletionMessageToolCall(id=str(turn), function=function)
    return Message(role="assistant", content="", tool_calls=[call])

def judged(messages, state, **kwargs):
    steps = len(state["successful_func_calls"][0])
    return {"score": steps, "reason": messages[1]["content"]}
"""


async def test_a_task_on_a_server_of_its_own_is_played_from_rows_with_seeds(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "walker.py").write_text(WALKER)
    (tmp_path / "rows.jsonl").write_text('{"id": "near", "seed": 2}\n{"id": "far", "seed": 0}\n')
    command = f"{sys.executable} {tmp_path / 'server.py'} {{port}}"
    (tmp_path / "walk.yaml").write_text(
        json.dumps({
            "name": "walk",
            "resource_type": "http_rollout",
            "base_resource_config": {"base_url": "http://replaced", "action_map": {"up": 1}, "prompt": "Go to 3."},
            "resource_server": {"start_command": command, "health_check_url": "http://127.0.0.1:{port}/health"},
            "reward_function_path": "walker.py:judged",
            "dataset_path": "rows.jsonl",
            "num_rollouts_per_sample": 2,
            "generation": {"mock": {"function_path": "walker.py:act"}},
        })
    )  # fmt: skip
    manager = TaskManager(output_dir=tmp_path / "runs", model="mock")
    manager.register_tasks_from_directory(str(tmp_path))
    figures = (await manager.execute_tasks())["walk"]
    found = {(one["sample_id"], one["rollout_index"]): one for one in figures["individual_results"]}
    assert {key: one["score"] for key, one in found.items()} == {
        ("near", 0): 1.0, ("near", 1): 1.0, ("far", 0): 3.0, ("far", 1): 3.0,
    }  # fmt: skip
    assert found["far", 0]["ended"] == "done"
    assert found["near", 0]["reason"] == "Go to 3.\n\nat 2"
