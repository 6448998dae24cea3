# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write it elsewhere.

Eight small jobs. They stand for larger ones that are judged by what is left behind, such as those of Terminal-Bench
(`laude-institute/terminal-bench`).
"""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def job(
    name: str,
    asked: str,
    files: dict[str, str],
    want: dict[str, str],
    *,
    setup: tuple[str, ...] = (),
    again: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A job as a row of the dataset: what prepares the sandbox, and what its files must hold in the end.

    `again` is for scripts: another file to run them on, and what they must print then.
    """
    row = {"id": name, "user_query": asked, "files": files, "setup": list(setup), "want": want}
    return row if again is None else {**row, "again": again}


def script_again(script: str, text: str, prints: str) -> dict[str, Any]:
    """The script, run on a file that the model never saw."""
    return {"script": script, "files": {"other.txt": text}, "command": f"bash {script} other.txt", "prints": prints}


JOBS = [
    job(
        "count-errors",
        "How many lines of app.log hold the word ERROR? Write the number into answer.txt.",
        {"app.log": "INFO start\nERROR disk\nINFO retry\nERROR disk\nWARN slow\nERROR net\n"},
        {"answer.txt": "3"},
    ),
    job(
        "unique-names",
        "Write the names in names.txt into answer.txt, sorted, each once.",
        {"names.txt": "Noor\nIvo\nNoor\nAna\nIvo\nLea\n"},
        {"answer.txt": "Ana\nIvo\nLea\nNoor"},
    ),
    job(
        "sum-of-sales",
        "What do the sales in the region north add up to in sales.csv? Write the number into answer.txt.",
        {"sales.csv": "region,amount\nnorth,12\nsouth,7\nnorth,30\neast,4\nsouth,1\n"},
        {"answer.txt": "42"},
    ),
    job(
        "largest-file",
        "Which file in the directory parts is the largest? Write its name into answer.txt.",
        {"notes.txt": "Leave me alone.\n"},
        {"answer.txt": "b.bin"},
        setup=(
            "mkdir parts",
            *(f"head -c {size} /dev/zero > parts/{name}.bin" for name, size in (("a", 300), ("b", 900), ("c", 500))),
        ),
    ),
    job(
        "open-todos",
        "Which files under src hold TODO? Write their paths into answer.txt, sorted, one per line.",
        {
            "src/main.c": "int main(void) { return 0; } /* TODO: arguments */\n",
            "src/io/read.c": "/* done */\n",
            "src/io/write.c": "/* TODO: errors */\n",
        },
        {"answer.txt": "src/io/write.c\nsrc/main.c"},
    ),
    job(
        "change-port",
        "In server.ini, set the port to 8080, and change nothing else.",
        {
            "server.ini": "[server]\nhost = localhost\nport = 80\n\n[backup]\nkeep = 7\n",
            "clients.txt": "Ana 80\nIvo 80\n",
        },
        {"server.ini": "[server]\nhost = localhost\nport = 8080\n\n[backup]\nkeep = 7"},
    ),
    job(
        "longest-line",
        "Write a script longest.sh that prints the longest line of the file it is given as its first argument. "
        "Run it on poem.txt, and have what it prints in answer.txt.",
        {"poem.txt": "rain\non a tin roof\nall night\n"},
        {"answer.txt": "on a tin roof"},
        again=script_again("longest.sh", "one\nthree four\ntwo\n", "three four"),
    ),
    job(
        "word-count",
        "Write a script words.sh that prints how many words the file has that it is given as its first argument. "
        "Run it on letter.txt, and have what it prints in answer.txt.",
        {"letter.txt": "Dear Lea,\nthe boat is ready.\n"},
        {"answer.txt": "6"},
        again=script_again("words.sh", "one two\n\nthree\n", "3"),
    ),
]


def main(folder: Path) -> None:
    """Write the file."""
    (folder / "dataset.jsonl").write_text("".join(json.dumps(row) + "\n" for row in JOBS))
    print(f"{len(JOBS)} rows written to dataset.jsonl.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
