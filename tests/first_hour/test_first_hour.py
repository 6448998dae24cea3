# SPDX-License-Identifier: Apache-2.0
"""Sixteen tasks of a user's first hour, done as docs/recipes.md says, and what each of them promised.

A test follows a section literally (its files, its commands, its Python) in an empty directory, then looks at what came
of it, and at the mistakes that people make on the way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.doc_pages import ROOT, Reader, headings
from tests.generation.loopback import Loopback, Says, answer
from tests.loopback.endpoint import React, prompt_of, serving

PAGE = ROOT / "docs" / "recipes.md"
TASKS = (
    "Score a CSV with a function of your own",
    "GSM8K: eight answers per question, then sixteen",
    "Best of n: how many candidates are worth it",
    "Compare two temperatures",
    "Find out why an answer failed, and judge again",
    "HumanEval, and code in general",
    "Judge tool calls",
    "Let a model judge",
    "Shell tasks, generated here and executed there",
    "Training data, pandas and Hugging Face",
    "Train with TRL on the reward that scored the run",
    "Judge all answers to a question together",
    "Build the question from several columns",
    "Try several settings",
    "Know the price, and set a limit",
    "A key or a package is missing",
)


class Serve(Protocol):
    def __call__(self, react: React) -> Loopback: ...


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(PAGE, tmp_path)


@pytest.fixture
def serve(reader: Reader) -> Iterator[Serve]:
    """Put an endpoint that reacts so where the page asks a model."""
    with ExitStack() as stack:

        def start(react: React) -> Loopback:
            endpoint = stack.enter_context(serving(react))
            reader.endpoint = endpoint.api_base
            return endpoint

        yield start


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def summary(directory: Path) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
    return held


def test_every_section_of_the_page_is_a_task_here() -> None:
    assert tuple(headings(PAGE)) == TASKS


# ── own data ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_csv_is_scored_with_a_function(reader: Reader) -> None:
    reader.follow(TASKS[0])
    results = lines(reader.directory / "outputs/answers/results.jsonl")
    assert [row["evaluation_score"] for row in results] == [1.0, 0.0, 1.0, 0.0], "an empty cell is an empty answer"
    assert "mean score 0.500" in " ".join(reader.heard("reward-kit run").out.split()), "the table is what > log keeps"
    shown = reader.heard("reward-kit inspect").text
    assert "sums 2 2 2 50.0" in shown and "places 2 2 2 50.0" in shown
    assert "0.5 Interval(low=" in reader.heard("import pandas").out

    config = reader.directory / "run.yaml"
    right = config.read_text()
    moved = right.replace("outputs/answers", "outputs/again")
    config.write_text(moved.replace("user_query: question", "user_query: frage"))
    refused = reader.type("reward-kit run run.yaml", exit_code=2)
    assert "'frage'" in refused.text and "question" in refused.text, "the message names the columns that are there"
    config.write_text(moved)
    reader.type("reward-kit run run.yaml")  # a failed first try does not lock the directory

    with (reader.directory / "answers.csv").open("a") as file:
        file.write("What is 2 + 2?,4,5,sums\n")
    reader.type("reward-kit run run.yaml output.output_dir=outputs/twice")
    assert summary(reader.directory / "outputs/twice")["samples"] == 5, "two rows that ask the same stay two"


def gsm8k(body: dict[str, Any], _: int) -> Says:
    """Right about apples, and about eggs every second time; cents are never finished."""
    n = body.get("n", 1)
    if "cents" in prompt_of(body):
        said = answer(*["50 cents minus"] * n)
        for choice in said.body["choices"]:
            choice["finish_reason"] = "length"
        return said
    right = "apples" in prompt_of(body)
    return answer(*[r"\boxed{7}" if right else rf"So \boxed{{{72 - index % 2}}}" for index in range(n)])


def test_more_answers_are_paid_once_and_an_experiment_shares_them(reader: Reader, serve: Serve) -> None:
    endpoint = serve(gsm8k)
    reader.follow(TASKS[1])
    assert sum(body.get("n", 1) for body in endpoint.requests) == 3 * 16, "eight, then eight more"
    ran = reader.heard("reward-kit run run.yaml generation.n=16")
    assert "judged 48 of 48" in ran.text and "cut off 16 (33 %)" in ran.text and "mean score 0.500" in ran.text
    assert "#### in 'answer' is the ground truth" in reader.heard("reward-kit run run.yaml --dry-run").text

    asked = len(endpoint.requests)
    reader.follow(TASKS[2])
    assert len(endpoint.requests) == asked + 3, "a model on this machine may be another one by now"
    assert "math 3 48 50.0 %" in " ".join(reader.heard("reward-kit best-of-n").out.split())
    first = reader.heard("reward-kit inspect results/gsm8k.parquet").out.splitlines()[:3]
    assert first[0] == "gsm8k.parquet" and first[1].startswith("50.0 % (95 % interval"), "the conclusion comes first"
    assert "<svg" in (reader.directory / "curve.html").read_text(encoding="utf-8")
    compared = reader.heard("reward-kit inspect outputs/gsm8k").text
    assert "No difference was seen" in compared and "on 3 common queries" in compared, "rows have one id at both doors"

    doors = [
        json.loads(reader.type(f"reward-kit inspect {door} --format json").out)
        for door in ("outputs/gsm8k", "results/gsm8k.parquet")
    ]
    majorities = [door["overall"]["majority"]["value"] for door in doors]
    assert majorities[0] == majorities[1], "one rule of majority, whichever file it is read from"
    refused = reader.type("reward-kit inspect results/gsm8k.parquet --plot curve.pdf", exit_code=2)
    assert refused.out == "" and ".pdf" in refused.err, "refused before anything is printed"


def test_columns_are_built_into_a_question(reader: Reader) -> None:
    reader.follow(TASKS[12])
    planned = reader.heard("reward-kit run run.yaml --dry-run").out
    assert "Read this: Oslo is the capital of Norway.\n\nAnswer in one word. What is the capital of Norway?" in planned
    assert summary(reader.directory / "outputs/reading")["mean_score"]["value"] == 1.0

    config = reader.directory / "run.yaml"
    config.write_text(config.read_text().replace("{{ passage }}", "{{ pasage }}"))
    typo = reader.type("reward-kit run run.yaml --dry-run output.output_dir=outputs/typo", exit_code=2)
    assert "'pasage'" in typo.text and "passage" in typo.text.replace("pasage", "")


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def sentences(body: dict[str, Any], _: int) -> Says:
    """Eight words when cool; when warm, more the higher the number in the prompt is."""
    number = int(prompt_of(body).rstrip(".").split()[-1])
    words = 8 if body["temperature"] < 0.5 else 9 + number % 4
    return answer(*[" ".join(["word"] * words)] * body.get("n", 1))


def test_two_runs_of_graded_scores_are_compared_in_words(reader: Reader, serve: Serve) -> None:
    serve(sentences)
    reader.follow(TASKS[3])
    said = reader.heard("reward-kit inspect outputs/cool outputs/warm")
    first = " ".join(said.out.split("\n\n")[0].split())
    assert first.startswith("warm is worse than cool: mean score 0.750 against 1.000, −0.250 (95 % interval")
    assert "on 40 common queries" in first
    told = json.loads(reader.type("reward-kit inspect outputs/cool outputs/warm --format json").out)
    (difference,) = [one for one in told["pairings"][0]["differences"] if one["figure"] == "score"]
    assert (difference["p"] < 0.05) == (difference["high"] < 0), "interval and p are of one test"


def test_a_failure_is_explained_and_judged_again(reader: Reader) -> None:
    reader.follow(TASKS[4])
    shown = reader.heard("reward-kit inspect outputs/days --query").text
    assert "0 of 2 verified" in shown and "It is 21." in shown and "Right answer: 21" in shown
    assert "4 tokens for #0 to #1" in shown, "what a request used is not taken for one answer's"

    rescored = reader.heard("reward-kit run run.yaml --rescore")
    assert 'File "rewards.py", line 6, in last_word' in rescored.out and "judged 3 of 4" in rescored.text
    (failed,) = [row for row in lines(reader.directory / "outputs/days/results.jsonl") if row.get("failure")]
    assert failed["evaluation_score"] is None and "line 6, in last_word" in failed["failure"]["traceback"]

    code = reader.directory / "rewards.py"
    code.write_text(code.read_text().replace("response.split()[-1]", "(response.split() or [''])[-1]"))
    again = reader.type("reward-kit run run.yaml --rescore reward.function_path=rewards.py:last_word")
    assert "judged 4 of 4" in again.text and "mean score 0.500" in again.text


def sums(body: dict[str, Any], _: int) -> Says:
    """Sure of itself when cool."""
    right = "4" if "2 + 2" in prompt_of(body) else "6"
    n = body.get("n", 1)
    return answer(*[right if index / n >= body["temperature"] - 0.2 else "5" for index in range(n)])


def test_a_sweep_ends_in_one_table(reader: Reader, serve: Serve) -> None:
    serve(sums)
    reader.follow(TASKS[13])
    table = " ".join(reader.heard("reward-kit run run.yaml --multirun").out.split())
    for temperature, mean in (("0.2", "1.000"), ("0.7", "0.500"), ("1.0", "0.000")):
        assert f"temperature={temperature} 8 of 8 0 0 {mean}" in table
    assert table.count("judged") == 1, "one table, and no other"
    compared = reader.heard("reward-kit inspect outputs/sweep").text
    assert (
        "generation.temperature=1.0 or generation.temperature=0.2 is better: verified 0.0 % against 100.0 %" in compared
    )
    assert "Each against generation.temperature=0.2" in compared


def test_a_run_stops_before_its_limit_is_passed(reader: Reader, serve: Serve) -> None:
    endpoint = serve(lambda body, _: answer(*["Oslo"] * body.get("n", 1), prompt_tokens=600, completion_tokens=80))
    reader.follow(TASKS[14])
    assert "gpt-4o-mini" in reader.heard("reward-kit prices").out
    planned = reader.heard("reward-kit run run.yaml --dry-run").text
    bound = float(planned.split("cost up to ")[1].split()[0])
    paid = (600 * 2.0 + 80 * 8.0) / 1e6
    stopped = next(said for said in reader.said if said.command == "reward-kit run run.yaml")
    spent = float(stopped.text.split(" cost ")[1].split()[0])
    assert spent == pytest.approx(paid * round(spent / paid), abs=5e-5) and 0 < spent <= 0.008 < bound
    assert "ended early" in stopped.out and "Raise `max_cost`" in stopped.text
    done = summary(reader.directory / "outputs/priced")
    assert len(endpoint.requests) == 4 and done["cost"] == pytest.approx(4 * paid) and done["cost"] <= bound
    reader.type("rm -r .reward_kit_cache")
    keyless = reader.type("reward-kit run run.yaml --dry-run generation.price=null output.output_dir=outputs/unpriced")
    assert "price" in keyless.text and "max_cost" in keyless.text, "a plan says that the limit could not be kept"


def test_a_missing_key_is_one_sentence_and_set_right_by_itself(reader: Reader, serve: Serve) -> None:
    endpoint = serve(lambda body, _: answer("4"))
    reader.follow(TASKS[15])
    refused = next(said for said in reader.said if said.command == "reward-kit run run.yaml")
    assert "'MY_KEY'" in refused.err and "Traceback" not in refused.text
    assert "judged 1 of 1" in reader.heard("reward-kit run run.yaml").text, "no --retry-failed is needed"
    assert "Bearer the-key-of-my-endpoint" in endpoint.heads[0]
    files = [path for path in reader.directory.rglob("*") if path.is_file()]
    assert len(files) > 5 and not [path for path in files if b"the-key-of-my-endpoint" in path.read_bytes()]


# ── rewards ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_completions_of_code_are_judged_with_their_prompt(reader: Reader) -> None:
    reader.follow(TASKS[5])
    results = lines(reader.directory / "outputs/humaneval/results.jsonl")
    scores = {(row["columns"]["task_id"], row["response_index"]): row["evaluation_score"] for row in results}
    assert scores == {("add/0", 0): 1.0, ("add/0", 1): 0.0, ("double/1", 0): 1.0, ("double/1", 1): 1.0}


def calls(body: dict[str, Any], _: int) -> Says:
    """Forgets how many days Rome was asked for."""
    arguments = {"city": "Oslo", "days": 2} if "Oslo" in prompt_of(body) else {"city": "Rome"}
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": json.dumps(arguments)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    usage = {"prompt_tokens": 90, "completion_tokens": 12}
    return Says(200, {"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": usage})


def test_tool_calls_are_offered_and_judged(reader: Reader, serve: Serve) -> None:
    endpoint = serve(calls)
    reader.follow(TASKS[6])
    assert [body["tools"][0]["function"]["name"] for body in endpoint.requests] == ["weather", "weather"]
    right, wrong = lines(reader.directory / "outputs/calls/results.jsonl")
    assert (right["evaluation_score"], wrong["evaluation_score"]) == (1.0, 0.0)
    assert "'days' of 'weather' is missing" in wrong["evaluation_reason"]


def test_what_a_judge_said_is_kept_and_counted(reader: Reader, serve: Serve) -> None:
    def judge(body: dict[str, Any], _: int) -> Says:
        text = "Kind.\nVERDICT: 5" if "That hurts." in prompt_of(body) else "It depends."
        return answer(text, prompt_tokens=100, completion_tokens=7)

    endpoint = serve(judge)
    reader.follow(TASKS[7])
    kind, unread = lines(reader.directory / "outputs/letters/results.jsonl")
    assert kind["evaluation_score"] == 1.0
    assert unread["evaluation_score"] is None and set(unread["failure"]["unread_replies"]) == {"It depends."}
    asked = len(endpoint.requests)
    counted = f"judge {asked} replies, {asked * 100} tokens in, {asked * 7} out"
    assert counted in reader.heard("reward-kit run").text and "judged 1 of 2" in reader.heard("reward-kit run").text


def test_shell_tasks_are_executed_without_dataset_or_model(reader: Reader, serve: Serve) -> None:
    def commands(body: dict[str, Any], _: int) -> Says:
        return answer('{"command": "touch notes.txt"}' if "notes.txt" in prompt_of(body) else "I would rather not.")

    endpoint = serve(commands)
    reader.follow(TASKS[8])
    assert len(endpoint.requests) == 2, "the second phase asks nobody"
    done, nothing = lines(reader.directory / "outputs/shell/results.jsonl")
    assert done["overall_success"] is True and nothing["overall_success"] is False
    _, written = lines(reader.directory / "outputs/shell/commands.jsonl")
    assert nothing["error"] == written["error"], "one reason, in the same words, in both files"
    assert "executed 2 of 2" in " ".join(reader.heard("reward-kit shell --phase execution").out.split())
    exported = reader.heard("reward-kit export")
    assert "not judged" not in exported.text, "what the shell judged, the export counts as judged"
    (good,) = lines(reader.directory / "good_commands.jsonl")
    asked = prompt_of(endpoint.requests[0])
    assert good["messages"][0]["content"] == asked and "touch notes.txt" in good["messages"][1]["content"]


def test_training_data_is_read_by_pandas_and_datasets(reader: Reader) -> None:
    pytest.importorskip("datasets", reason="the extra hf is not installed")
    reader.follow(TASKS[9])
    read = reader.heard("import pandas").out
    assert "a     1.0" in read and "['prompt', 'completion', 'label'" in read
    counts = {name: len(lines(reader.directory / f"{name}.jsonl")) for name in ("sft", "kto", "rm", "prompts")}
    assert counts == {"sft": 2, "kto": 6, "rm": 2, "prompts": 2}
    best = [row["messages"][-1]["content"] for row in lines(reader.directory / "sft.jsonl")]
    assert best == ["4", "6"]


def test_a_reward_for_a_trainer_never_takes_the_prompt_for_the_truth(reader: Reader) -> None:
    reader.follow(TASKS[10])
    assert reader.heard("from my_rewards").out.strip() == "[1.0, 0.0]"
    (reader.directory / "careless.py").write_text(
        "from reward_kit import RewardFunction\n"
        "def told(messages, ground_truth=None, **kwargs):\n"
        "    return float(ground_truth is None)\n"
        "print(RewardFunction(func=told).get_trl_adapter(workers=0)(['2 + 2?'], ['4'], hint=['4']))\n"
    )
    careless = reader.type("python careless.py")
    assert careless.out.strip() == "[1.0]" and "there are 'hint'" in careless.err, "None, and one warning says so"


def test_a_group_is_judged_together_and_may_return_numbers(reader: Reader) -> None:
    reader.follow(TASKS[11])
    assert reader.heard("from group").out.splitlines() == ["[0.0, 1.0, 0.0]", "[0.0, 1.0, 0.0]"]
