"""Explain fifty people, look at the whole, keep the answers.

Usage: python population.py [FILE.jsonl]
"""

import json
import sys
from pathlib import Path

from ifonly import Explainer, Fixed, datasets, report

data = datasets.load("credit")
explainer = Explainer(datasets.network("credit"), classes=["deny", "approve"])
people = [data.row(i) for i in data.split()[1][:50]]

with report.progress(len(people)) as listen:
    answers = explainer.using(listen=listen).explain_many(
        people, target="approve", constraints=[Fixed("isMale"), Fixed("isMarried")]
    )

print(report.text(answers[:5]))
print()
print(report.plain(report.summary_page(answers)))

frame = answers.to_frame()  # needs pandas
print()
print(frame.groupby("status")["distance"].describe()[["count", "mean", "max"]])

file = Path(sys.argv[1] if len(sys.argv) > 1 else "answers.jsonl")
file.write_text("".join(json.dumps(record) + "\n" for record in answers.to_dicts()), encoding="utf-8")
print(f"\nWritten to {file}.")
