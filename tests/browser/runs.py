# SPDX-License-Identifier: Apache-2.0
"""Runs to look at: those of scripts/sample_runs.py, and two whose every text tries to be more than text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FLAG = "window.hacked=1"
HOSTILE = {
    "script": f"<script>{FLAG}</script>",
    "handler": f'<img src=x onerror="{FLAG}"><svg onload="{FLAG}"><details open ontoggle="{FLAG}">',
    "link": f"[press](javascript:{FLAG}) <a href='javascript:{FLAG}'>here</a> <javascript:{FLAG}>",
    "image": "![seen](http://example.com/pixel.png) <img src=http://example.com/pixel.png> <http://example.com/>",
    "style": "<style>*{display:none}</style><link rel=stylesheet href=http://example.com/x.css>",
    "frame": f"<iframe srcdoc='<script>parent.{FLAG}</script>'></iframe><object data=http://example.com></object>",
    "tex": rf"$\href{{javascript:{FLAG}}}{{x}}$ $\class{{a}}{{b}}$ "
    r"$\includegraphics{http://example.com/p.png}$ $\style{color:red}{x}$",
    "fence": f"```html\n<script>{FLAG}</script>\n```\n~~~\n</pre><script>{FLAG}</script>",
    "template": "{{constructor.constructor('window.hacked=1')()}} ${window.hacked=1} __proto__ constructor",
    "ansi": "\x1b[31mred\x1b[0m \x1b]8;;http://example.com\x07here\x1b]8;;\x07 \x1b[2J",
    "direction": "user\u202etxt.exe\u202c \u2066abc\u2069 \u200f\u05e9\u05dc\u05d5\u05dd\u200e \u0627\u0644\u0639",
    "controls": "NUL \x00 BEL \x07 back \x08 DEL \x7f C1 \x85 line\u2028separator zero\u200bwidth \ufeff",
    "deep": "> " * 400 + "deep " + "- " * 400 + "**" * 2000 + "[" * 2000 + "`" * 999 + "$" * 999,
    "table": "|a|b|\n|-|-|\n" + "|<b>x</b>|" * 300,
    "long": "w" * 10_000_000,
}

_REWARD = """
from reward_kit.models import EvaluateResult, MetricResult
from reward_kit.typed_interface import reward_function


@reward_function
def judge(messages, ground_truth=None, **kwargs):
    text = messages[-1].text[:20_000]
    if "onerror" in text and kwargs.get("number") == 1:
        raise ValueError(text)
    metrics = {text[:80]: MetricResult(score=0.5, reason=text, is_score_valid=True)}
    return EvaluateResult(score=float(len(text) % 2), reason=text, metrics=metrics)


def echo(messages, draw):
    text = messages[-1].text
    return f"<think>{text[:1000]}</think>{text}" if draw == 0 else text + str(draw)


def shout(messages, draw):
    return messages[-1].text + " " * draw + "!"
"""


def make_samples(folder: Path) -> Path:
    """Runs of every kind."""
    _run([sys.executable, str(ROOT / "scripts" / "sample_runs.py"), str(folder)], folder)
    return folder


def make_hostile(folder: Path) -> Path:
    """Two runs over one hostile dataset: ids, questions, truths, answers, reasons, metrics and columns."""
    made_of = folder / ".made_of"
    made_of.mkdir()
    (made_of / "judge.py").write_text(_REWARD)
    with (made_of / "rows.jsonl").open("w") as file:
        for number, (name, text) in enumerate(HOSTILE.items()):
            short = text[:200]
            row = {
                "id": f"{name} {short[:60]}", "user_query": text, "ground_truth": short, "number": number,
                "extra": short,
                "split": short[:40] if name in ("script", "handler", "direction") else "plain",
            }  # fmt: skip
            file.write(json.dumps(row) + "\n")
    for title, function in (("<script>a</script>", "echo"), ("b", "shout")):
        config = {
            "dataset": {"path_or_name": "rows.jsonl"},
            "system_prompt": HOSTILE["script"],
            "generation": {"model_name": "mock", "n": 2, "mock": {"function_path": f"judge.py:{function}"}},
            "reward": {"function_path": "judge.py:judge", "pass_threshold": 0.5},
            "output": {"output_dir": str(folder / title.replace("/", "_"))},
        }
        (made_of / f"{function}.yaml").write_text(json.dumps(config))
        _run([sys.executable, "-m", "reward_kit", "run", f"{function}.yaml"], made_of)
    return folder


def _run(command: list[str], where: Path) -> None:
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "judged" in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]
