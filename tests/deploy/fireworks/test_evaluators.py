# SPDX-License-Identifier: Apache-2.0
"""Evaluators at Fireworks: what is sent, what happens when a step fails, and that the files judge as they do here."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from reward_kit.deploy.fireworks.api import FireworksAPI, PlatformAPIError
from reward_kit.deploy.fireworks.evaluator_source import (
    source_of_code,
    source_of_folders,
    source_of_reward,
    source_of_url,
)
from reward_kit.deploy.fireworks.evaluators import EvaluatorSource, archive_of, create_evaluator
from reward_kit.errors import ConfigError, DeployError
from tests.deploy.fireworks.fake import FakeFireworks, unpacked

LENGTH = "def evaluate(messages, **kwargs):\n    return len(messages[-1]['content']) / 10\n"
STEPS = [
    ("POST", "/evaluatorsV2$"),
    ("POST", ":getUploadEndpoint$"),
    ("PUT", "/signed/put/"),
    ("POST", ":validateUpload$"),
    ("GET", "/evaluators/words$"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "words"
    place.mkdir()
    (place / "main.py").write_text(LENGTH)
    return place


def test_an_evaluator_is_created_sent_and_built(api: FireworksAPI, fireworks: FakeFireworks, folder: Path) -> None:
    said: list[str] = []
    built = create_evaluator(api, "words", source_of_folders({"words": folder}), tell=said.append)
    assert built["state"] == "ACTIVE" and said
    kinds = [(method, path.rpartition(":")[2] if ":" in path else path) for method, path in fireworks.requests]
    assert [kind[0] for kind in kinds][:4] == ["POST", "POST", "PUT", "POST"]
    sent = unpacked(next(iter(fireworks.things["evaluators/words"].uploads.values())))
    assert sent["main.py"].decode() == LENGTH and b"reward-kit==" in sent["requirements.txt"]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", range(len(STEPS)))
@pytest.mark.parametrize("how", ["fail", "lose"])
def test_a_step_that_fails_once_is_done_again(
    api: FireworksAPI, fireworks: FakeFireworks, folder: Path, step: int, how: str, after: bool
) -> None:
    getattr(fireworks, how)(*STEPS[step], after=after)
    assert create_evaluator(api, "words", source_of_folders({"words": folder}))["state"] == "ACTIVE"


@pytest.mark.parametrize("seed", range(8))
def test_a_call_that_failed_anywhere_goes_on_when_made_again(
    api: FireworksAPI, fireworks: FakeFireworks, folder: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(3):
        step = chance.choice(STEPS)
        fireworks.fail(*step, status=400 if step[0] == "PUT" else 403, after=chance.random() < 0.5)
    source = source_of_folders({"words": folder})
    for _ in range(4):
        try:
            assert create_evaluator(api, "words", source)["state"] == "ACTIVE"
        except DeployError as error:
            assert "exists" not in str(error) or fireworks.things["evaluators/words"].fields["state"] == "ACTIVE"
        except Exception as error:  # noqa: BLE001
            assert "told to" in str(error)
        else:
            break
    assert fireworks.things["evaluators/words"].fields["state"] in ("ACTIVE", "BUILDING")


def test_one_that_is_built_is_replaced_only_when_told(
    api: FireworksAPI, fireworks: FakeFireworks, folder: Path
) -> None:
    source = source_of_folders({"words": folder})
    create_evaluator(api, "words", source)
    with pytest.raises(DeployError, match="--force"):
        create_evaluator(api, "words", source)
    (folder / "main.py").write_text(LENGTH.replace("10", "20"))
    create_evaluator(api, "words", source_of_folders({"words": folder}), force=True)
    sent = unpacked(next(iter(fireworks.things["evaluators/words"].uploads.values())))
    assert b"20" in sent["main.py"]


def test_a_build_that_fails_shows_its_log(api: FireworksAPI, fireworks: FakeFireworks, folder: Path) -> None:
    fireworks.build_state = "BUILD_FAILED"
    with pytest.raises(DeployError, match=r"(?s)the build ended with 1.*no such package"):
        create_evaluator(api, "words", source_of_folders({"words": folder}))


def test_progress_is_told_while_bytes_are_sent(api: FireworksAPI, folder: Path) -> None:
    (folder / "big.bin").write_bytes(random.Random(0).randbytes(3 << 20))
    told: list[tuple[int, int]] = []
    create_evaluator(
        api, "words", source_of_folders({"words": folder}), progress=lambda sent, total: told.append((sent, total))
    )
    assert len(told) > 3 and told[-1][0] == told[-1][1] and told == sorted(told)


def test_the_same_files_are_the_same_archive(folder: Path) -> None:
    first = archive_of(source_of_folders({"words": folder}).files)
    os.utime(folder / "main.py", (1, 1))
    assert archive_of(source_of_folders({"words": folder}).files) == first


@pytest.mark.parametrize("name", [".env", "id_rsa", "__pycache__/main.pyc", ".git/config", "server.key"])
def test_credentials_and_litter_stay_here(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("x")
    assert set(source_of_folders({"words": folder}).files) == {"main.py", "requirements.txt"}


def test_a_file_that_holds_a_credential_stops_everything(folder: Path) -> None:
    (folder / "helper.py").write_text("API_KEY = 'sk-proj-0a1b2c3d4e5f6g7h8i9j0a1b2c3d4e5f'\n")
    with pytest.raises(DeployError, match=r"Line 1 of 'helper\.py'") as caught:
        source_of_folders({"words": folder})
    assert "0a1b2c3d" not in str(caught.value)


def test_a_link_that_leads_out_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("private")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    with pytest.raises(DeployError, match="leads out"):
        source_of_folders({"words": folder})


# ── the files judge elsewhere as they do here ────────────────────────────────────────────────────────────────────────


def judged_elsewhere(source: EvaluatorSource, place: Path, environment: dict[str, str] | None = None) -> str:
    """What the evaluator's entry says of one conversation, in a process that has nothing but its files."""
    for name, content in source.files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    program = (
        f"import {source.entry_file.removesuffix('.py')} as m\n"
        "turns = [{'role': 'user', 'content': 'q'}, {'role': 'assistant', 'content': '12345'}]\n"
        "r = m.evaluate(messages=turns, ground_truth='5', tools=None)\n"
        "print(r['score'] if isinstance(r, dict) else getattr(r, 'score', r))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=place, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": "", **(environment or {})},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_reward_with_its_imports_judges_elsewhere(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "length_parts").mkdir(parents=True)
    (project / "length_parts" / "__init__.py").write_text("")
    (project / "length_parts" / "lengths.py").write_text("def length(text):\n    return len(text)\n")
    (project / "mine.py").write_text(
        "from length_parts.lengths import length\n\ndef reward(messages, ground_truth=None, unit=1, **kwargs):\n"
        "    return length(messages[-1]['content']) / unit\n"
    )
    place = tmp_path / "elsewhere"
    place.mkdir()
    source = source_of_reward(f"{project / 'mine.py'}:reward", {"unit": 10}, project)
    assert judged_elsewhere(source, place) == "0.5"


def test_several_metrics_judge_together(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "form"
    other.mkdir()
    (other / "main.py").write_text("async def evaluate(messages, **kwargs):\n    return 1.0\n")
    place = tmp_path / "elsewhere"
    place.mkdir()
    assert judged_elsewhere(source_of_folders({"words": folder, "form": other}), place) == "0.75"


def test_a_text_of_python_judges(tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    assert judged_elsewhere(source_of_code(LENGTH, "scorer.py"), place) == "0.5"


@pytest.mark.parametrize(
    "url", ["ftp://x.example", "rewards.example.com", "http://rewards.example.com", "https://me:secret@x.example", "https://x.example/?key=1"]
)  # fmt: skip
def test_an_address_that_is_none_or_gives_away_a_key_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="--remote-url"):
        source_of_url(url)


def test_an_error_of_the_service_is_told_by_its_status(
    api: FireworksAPI, fireworks: FakeFireworks, folder: Path
) -> None:
    fireworks.fail("POST", "/evaluatorsV2$", 402)
    with pytest.raises(PlatformAPIError) as caught:
        create_evaluator(api, "words", source_of_folders({"words": folder}))
    assert caught.value.status_code == 402
