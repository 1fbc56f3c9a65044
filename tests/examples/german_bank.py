"""A German bank's table as its systems export it: `;`, Windows-1252, amounts as text, dates, umlauts, codes with leading
zeros, decimal commas. `python german_bank.py people.csv` writes one.
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

HEADER = (
    "Kunden-Nr.", "Name", "Geburtsdatum", "PLZ", "Beschäftigung", "Einkommen (netto)", "Kreditbetrag", "Laufzeit",
    "Auslastung", "Wohneigentum", "Entscheidung",
)  # fmt: skip
JOBS = ("Angestellt", "Selbständig", "Öffentlicher Dienst")
NAMES = ("Müller", "Schröder", "Weiß", "Köhler", "Jäger", "Özdemir", "Groß")


def euros(amount: float) -> str:
    """1930.04 as 1.930,04 €."""
    return f"{amount:,.2f}".translate(str.maketrans(",.", ".,")) + " €"


def people(count: int, seed: int = 3) -> list[list[str]]:
    """Rows of texts; income, the amount, the job and the use of the credit line decide."""
    draw, rows = random.Random(seed), []
    for i in range(count):
        income, amount = round(draw.lognormvariate(7.6, 0.4), 2), draw.randrange(20, 400) * 100.0
        job, used, months = draw.choice(JOBS), round(draw.random(), 2), draw.choice((12, 24, 36, 48, 60))
        score = income / 900 - amount / months / 350 - 2.5 * used + 0.6 * (job == JOBS[2]) + draw.gauss(0.0, 0.3)
        born = f"{draw.randint(1, 28):02d}.{draw.randint(1, 12):02d}.{draw.randint(1955, 2004)}"
        code = draw.choice(("01067", "04109", "10115", "20095", "80331"))
        rows.append([
            f"{4711 + 7 * i:08d}", f"{draw.choice(NAMES)}, {draw.choice('ABCDE')}.", born, code, job, euros(income),
            euros(amount), str(months), f"{used:.2f}".replace(".", ","), draw.choice(("ja", "nein")),
            "bewilligt" if score > 0.0 else "abgelehnt",
        ])  # fmt: skip
    return rows


def write(path: Path, count: int = 400) -> None:
    with path.open("w", encoding="cp1252", newline="") as file:
        csv.writer(file, delimiter=";").writerows([HEADER, *people(count)])


if __name__ == "__main__":
    write(Path(sys.argv[1]))
