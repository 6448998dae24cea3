# SPDX-License-Identifier: Apache-2.0
"""What is told of money where a request asks for several answers and fewer come back, whatever was billed for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.execution.test_bills import check_told, rows, run
from tests.generation.loopback import Reaction, Says
from tests.loopback.bills import KINDS, Biller
from tests.loopback.endpoint import serving


class Sparing(Biller):
    """Bills every answer that it was asked for, and gives no more than so many."""

    def __init__(self, gives: int) -> None:
        super().__init__()
        self.gives = gives

    def __call__(self, body: dict[str, Any], number: int) -> Reaction:
        said = super().__call__(body, number)
        if isinstance(said, Says) and isinstance(said.body, dict) and said.body.get("choices"):
            said.body["choices"] = said.body["choices"][: self.gives]
        return said


SEVERAL = ["plain", "usage_left_out", "no_room_left", "call_unread", "empty", "cached_openai", "null_content_once"]


@pytest.mark.parametrize("mode", ["auto", "native"])
@pytest.mark.parametrize("gives", [1, 2, 3])
@pytest.mark.parametrize("kind", SEVERAL)
def test_fewer_answers_than_were_asked_for_pass_no_limit(tmp_path: Path, kind: str, gives: int, mode: str) -> None:
    for number, limit in enumerate((0.0016, 0.0024, 0.004, 0.006)):
        biller = Sparing(gives)
        with serving(biller) as endpoint:
            result = run(tmp_path / str(number), endpoint.api_base, [kind], 8, max_cost=limit, generation__n=4,
                         generation__n_mode=mode)  # fmt: skip
        told = result.summary["cost"] or 0.0
        check_told(told, biller.bill, at_most="cost_is_at_most" in result.summary, exactly=KINDS[kind].is_told)
        assert biller.bill <= limit
        assert told <= limit + 1e-12


def test_every_row_is_asked_for_all_its_answers_where_there_is_money(tmp_path: Path) -> None:
    biller = Sparing(1)
    with serving(biller) as endpoint:
        result = run(tmp_path, endpoint.api_base, ["plain", "no_room_left"], 3, max_cost=1.0, generation__n=4)
    assert result.status == "finished"
    assert result.summary["failed"] == 0
    assert result.summary["records"] == 4 * len(rows(["plain", "no_room_left"], 3))
