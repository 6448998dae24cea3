# SPDX-License-Identifier: Apache-2.0
"""The viewer of trajectories: both kinds of dump read alike, and a log without messages can be read, too."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reward_kit.agent.step_credit import CreditSettings
from reward_kit.agent.step_rows import episode_rows, log_rows
from reward_kit.storage.judged_episodes import read_episodes
from reward_kit.storage.row_json import json_line
from scripts.view_rl_trajectory import main
from tests.agent.recorded_episodes import walk, write_results

SETTINGS = CreditSettings(gamma=1.0)
SHOWN = """\
lake: 2 episodes, mean score 0.5
================================

episode 0   score 1, 2 steps, ended: done
  step    reward    return  same  episode A    step A         A   saw → said
     0     0.000     1.000     0      0.500     0.500     1.000   Begin at A. → r
     1     1.000     1.000     1      0.500     0.000     0.500   You are at B. → d

episode 1   score 0, 1 steps, ended: done
  step    reward    return  same  episode A    step A         A   saw → said
     0     0.000     0.000     0     -0.500    -0.500    -1.000   Begin at A. → d

"""


def dump(home: Path, shape: Any) -> Path:
    source = list(read_episodes(write_results(home, walk("rd", "AB", score=1.0), walk("d", "A", score=0.0, index=1))))
    rows = log_rows(source[0], SETTINGS) if shape == "log" else episode_rows(source, shape, SETTINGS, Counter())
    (home / "dump.jsonl").write_bytes(b"".join(map(json_line, rows)))
    return home / "dump.jsonl"


@pytest.mark.parametrize("shape", ["steps", "episodes"])
def test_both_kinds_of_dump_are_shown_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: str) -> None:
    main([str(dump(tmp_path, shape))])
    assert capsys.readouterr().out == SHOWN


def test_a_log_has_no_messages_and_is_shown_with_states(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(dump(tmp_path, "log")), "--worst", "1"])
    shown = capsys.readouterr().out
    assert "episode 1 " in shown and "episode 0 " not in shown
    assert shown.splitlines()[-2] == "     0     0.000     0.000     0     -0.500    -0.500    -1.000   A"


def test_long_texts_are_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(dump(tmp_path, "steps")), "--best", "1", "--width", "6"])
    assert "Begin… → r" in capsys.readouterr().out


def test_what_is_no_dump_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    for name in ("other.jsonl", "missing.jsonl"):
        with pytest.raises(SystemExit, match="is no dump of steps or episodes"):
            main([str(tmp_path / name)])
    with pytest.raises(SystemExit, match="There are no episodes of 'pond'"):
        main([str(dump(tmp_path / "run", "steps")), "--query", "pond"])
