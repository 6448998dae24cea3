# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write it elsewhere.

Five questions about the shop's database, and two changes to it. The answers are those that the database itself gives.
They stand for sets of questions over databases, such as Spider 2.0 (`xlang-ai/Spider2`) and BIRD.
"""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BOUGHT = "purchase JOIN product ON product.id = product_id"
BY_CUSTOMER = f"{BOUGHT} JOIN customer ON customer.id = customer_id"

QUESTIONS = [
    (
        "customers-in-lisbon",
        "How many customers live in Lisbon?",
        "SELECT count(*) FROM customer WHERE city = 'Lisbon'",
    ),
    (
        "dearest-product",
        "Which product costs the most?",
        "SELECT name FROM product ORDER BY price_cents DESC LIMIT 1",
    ),
    (
        "mugs-bought",
        "How many mugs were bought, without cancelled purchases?",
        f"SELECT sum(quantity) FROM {BOUGHT} WHERE name = 'mug' AND status <> 'cancelled'",
    ),
    (
        "spent-by-ines",
        "How many cents did Ines spend?",
        f"SELECT sum(quantity * price_cents) FROM {BY_CUSTOMER} WHERE customer.name = 'Ines' AND status <> 'cancelled'",
    ),
    (
        "best-customer",
        "Which customer spent the most, without cancelled purchases?",
        f"SELECT customer.name FROM {BY_CUSTOMER} WHERE status <> 'cancelled' "
        "GROUP BY customer.id ORDER BY sum(quantity * price_cents) DESC LIMIT 1",
    ),
]
CHANGES = [
    (
        "cancel-purchase",
        "Purchase 7 is to be cancelled. Put its items back into stock.",
        "SELECT (SELECT status FROM purchase WHERE id = 7) = 'cancelled' "
        "AND (SELECT stock FROM product WHERE id = 2) = 5 AND (SELECT count(*) FROM purchase) = 10",
    ),
    (
        "mei-moves",
        "Mei has moved to Porto. Change the customer's city.",
        "SELECT group_concat(city, ' ') = 'Lisbon Leeds Porto Gdansk Leeds' "
        "FROM (SELECT city FROM customer ORDER BY id)",
    ),
]


def rows() -> list[dict[str, Any]]:
    """The rows of the dataset: a question has an answer, a change has a query that says whether it was made."""
    with closing(sqlite3.connect(":memory:")) as shop:
        shop.executescript((HERE / "schema.sql").read_text() + (HERE / "data.sql").read_text())
        answers = [str(shop.execute(query).fetchone()[0]) for _, _, query in QUESTIONS]
    asked = [
        {"id": name, "user_query": text, "ground_truth_for_eval": answer, "answer_sql": query}
        for (name, text, query), answer in zip(QUESTIONS, answers, strict=True)
    ]
    return [
        *asked,
        *(
            {"id": name, "user_query": text, "ground_truth_for_eval": "done", "check_sql": query}
            for name, text, query in CHANGES
        ),
    ]


def main(folder: Path) -> None:
    """Write the file."""
    made = rows()
    (folder / "dataset.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    print(f"{len(made)} rows written to dataset.jsonl.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
