# SPDX-License-Identifier: Apache-2.0
"""By what answers are graded, and who grades them: what the scripts of this folder give to the reward `judge`."""

import os
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def params() -> dict[str, Any]:
    """The rubric, its scale, and the judge: the model that the variable JUDGE names, else `mock_model.py`."""
    model = os.environ.get("JUDGE", "mock")
    return {
        "rubric": "Is the explanation right? Length and politeness earn nothing.",
        "scale": [0, 10],
        "judge": {"model_name": model, "mock": {"function_path": f"{HERE / 'mock_model.py'}:answer"}}
        if model == "mock"
        else {"model_name": model},
    }
