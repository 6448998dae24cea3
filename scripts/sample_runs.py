# SPDX-License-Identifier: Apache-2.0
"""Make runs to look at, without a model and without a network: every kind that `reward-kit view` shows.

python scripts/sample_runs.py FOLDER        then: reward-kit view FOLDER

FOLDER/arithmetic, FOLDER/arithmetic_better   the same questions asked of two models; splits, metrics, failures
FOLDER/candidates.parquet                     a best-of-n experiment
FOLDER/shell                                  shell tasks with their trajectories
FOLDER/lake                                   an agent's episodes, step by step
FOLDER/hostile                                answers that try to be more than text
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_ANSWERS = r"""
import hashlib
import re

HOSTILE = [
    "<script>window.hacked = 1</script> The answer is \\boxed{7}.",
    '<img src="http://example.com/x.png" onerror="window.hacked = 2"> **bold** ![image](http://example.com/y.png)',
    "[click](javascript:window.hacked=3) <a href='javascript:window.hacked=4'>here</a> <svg onload=window.hacked=5>",
    "\x1b[31mred\x1b[0m \u202egnp.exe \u0000 NUL, \ufffd, zero\u200bwidth, and a very long word: " + "x" * 5000,
]


def chance(*parts):
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def _solved(question, draw, skill):
    a, sign, b = re.search(r"(\d+) ([+*-]) (\d+)", question).groups()
    right = {"+": int(a) + int(b), "-": int(a) - int(b), "*": int(a) * int(b)}[sign]
    luck = chance(question, draw, skill)
    hard = {"+": 0.95, "-": 0.8, "*": 0.45}[sign] * skill
    value = right if luck < hard else right + (draw + 1) * (1 if luck < 0.9 else -10)
    thought = f"I have {a} {sign} {b}. Let me work it out step by step: ${a} {sign} {b} = {value}$."
    style = draw % 4
    if style == 0:
        return f"<think>\n{thought}\n</think>\n\nThe result is\n\n$$\n{a} {sign} {b} = \\boxed{{{value}}}\n$$"
    if style == 1:
        return f"{thought}\n\n| step | value |\n|---|---|\n| first | {a} |\n| second | {b} |\n\n**Answer:** {value}"
    if style == 2:
        return f"```python\nprint({a} {sign} {b})\n```\n\nIt prints `{value}`. The answer is {value}."
    return f"The answer is \\boxed{{{value}}}." if luck < 0.97 else "I cannot say."


def weak(messages, draw):
    return _solved(messages[-1].content, draw, 0.7)


def strong(messages, draw):
    return _solved(messages[-1].content, draw, 1.0)


def hostile(messages, draw):
    return HOSTILE[(len(messages[-1].content) + draw) % len(HOSTILE)]
"""
_REWARD = """
import re

from reward_kit.models import EvaluateResult, MetricResult
from reward_kit.rewards.math import math_reward
from reward_kit.typed_interface import reward_function


@reward_function
def graded(messages, ground_truth=None, **kwargs):
    text = messages[-1].text
    if "cannot" in text:
        raise ValueError("the answer gives up, and this reward does not judge such answers")
    found = math_reward(messages=messages, ground_truth=ground_truth)
    brevity = max(0.0, 1 - len(text) / 400)
    steps = min(1.0, len(re.findall("step", text)) / 2)
    score = 1.0 if found.score == 1.0 else 0.2 * brevity
    metrics = {
        "correct": MetricResult(score=found.score, reason=found.reason or "", is_score_valid=True),
        "brevity": MetricResult(score=brevity, reason=f"{len(text)} characters", is_score_valid=True),
        "steps": MetricResult(score=steps, reason="whether it shows its steps", is_score_valid=True),
    }
    return EvaluateResult(score=score, reason=found.reason, metrics=metrics)
"""


def main() -> None:
    """Make everything below the folder that was named."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    made_of = folder / ".made_of"
    made_of.mkdir(exist_ok=True)
    (made_of / "answers.py").write_text(_ANSWERS)
    (made_of / "graded.py").write_text(_REWARD)
    _write_questions(made_of / "questions.jsonl", 120)
    _write_questions(made_of / "few.jsonl", 12)
    runs = [("arithmetic", "weak", "questions"), ("arithmetic_better", "strong", "questions")]
    for name, function, dataset in [*runs, ("hostile", "hostile", "few")]:
        _write_config(made_of / f"{name}.yaml", folder / name, function, dataset)
        _reward_kit(made_of, "run", "--config-path", str(made_of), "--config-name", name)
    _best_of_n(made_of, folder)
    tasks = str(ROOT / "examples/shell_tasks/dataset.jsonl")
    _reward_kit(made_of, "shell", "--model", "mock", "--dataset", tasks, "-n", "2", "--output-dir", folder / "shell")
    lake = ROOT / "examples/agent_frozen_lake/conf"
    _reward_kit(made_of, "run", "--config-path", lake, "--config-name", "run", f"output.output_dir={folder / 'lake'}")
    print(f"Look at them: reward-kit view {folder}")


def _write_questions(path: Path, count: int) -> None:
    draw = random.Random(7)
    with path.open("w") as file:
        for number in range(count):
            a, b, sign = draw.randint(2, 99), draw.randint(2, 99), "+-*"[number % 3]
            value = {"+": a + b, "-": a - b, "*": a * b}[sign]
            row = {
                "id": f"q{number:03d}",
                "user_query": f"What is {a} {sign} {b}? Show your steps, and put the result into \\boxed{{}}.",
                "ground_truth_for_eval": str(value),
                "operation": {"+": "addition", "-": "subtraction", "*": "multiplication"}[sign],
                "difficulty": len(str(abs(value))),
                "reviewed": number % 5 == 0,
                "split": "easy" if sign != "*" else "hard",
            }
            file.write(json.dumps(row) + "\n")


def _write_config(path: Path, output: Path, function: str, dataset: str) -> None:
    settings = {
        "dataset": {"path_or_name": f"{dataset}.jsonl"},
        "system_prompt": "You are careful with numbers.",
        "generation": {"model_name": "mock", "n": 4, "mock": {"function_path": f"answers.py:{function}"}},
        "reward": {"function_path": "graded.py:graded", "pass_threshold": 0.9},
        "output": {"output_dir": str(output)},
    }
    path.write_text(json.dumps(settings, indent=1))


def _best_of_n(made_of: Path, folder: Path) -> None:
    data = made_of / "experiment"
    data.mkdir(exist_ok=True)
    rows = [json.loads(line) for line in (made_of / "questions.jsonl").read_text().splitlines()]
    for split in ("easy", "hard"):
        chosen = [row for row in rows if row["split"] == split]
        told = (
            {
                "uuid": row["id"],
                "operation": row["operation"],
                "messages": [
                    {"role": "user", "content": row["user_query"]},
                    {"role": "assistant", "content": f"The answer is \\boxed{{{row['ground_truth_for_eval']}}}."},
                ],
            }
            for row in chosen
        )
        (data / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in told))
    settings = {
        "dataset": str(data), "splits": "easy,hard", "model": "mock", "num_candidates": 6,
        "mock": "answers.py:strong", "verifiers": {"easy": "math", "hard": "math"},
        "output": str(folder / "candidates.parquet"),
    }  # fmt: skip
    (made_of / "experiment.yaml").write_text(json.dumps(settings))
    _reward_kit(made_of, "best-of-n", "--config", made_of / "experiment.yaml")


def _reward_kit(where: Path, *arguments: str | Path) -> None:
    done = subprocess.run([sys.executable, "-m", "reward_kit", *map(str, arguments)], cwd=where, check=False)
    if done.returncode:
        sys.exit(f"reward-kit {arguments[0]} ended with {done.returncode}; the lines above say why.")


if __name__ == "__main__":
    main()
