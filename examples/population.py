"""Explain a file of people into a file of answers, look at the whole, and join the answers to the people.

Usage: python population.py [FILE.jsonl]

With engine=Processes() every core answers; a run that ended early goes on with existing="resume".
"""

import csv
import json
import sys
from pathlib import Path

from ifonly import Explainer, Query, datasets, report

data = datasets.load("credit")
people = Path("people.csv")
with people.open("w", encoding="utf-8", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["Customer ID", *data.schema.names])
    writer.writerows([f"C-{i}", *data.row(i).values()] for i in data.split()[1][:50])

explainer = Explainer(datasets.network("credit"), classes=["deny", "approve"])
query = Query(target="approve", constraints=["isMale is fixed", "isMarried is fixed"])
output = Path(sys.argv[1] if len(sys.argv) > 1 else "answers.jsonl")
written = explainer.explain_to(output, people, query, keep=["Customer ID"])

print(report.plain(report.figures_page(written.summary)))

with output.open(encoding="utf-8") as lines:
    for record in map(json.loads, list(lines)[:5]):
        print(f"\n{record['Customer ID']}: {record['status']} at {record['distance']:.6g}")
        for change in record["changes"]:
            print(f"  {change['feature']}: {change['from']} -> {change['to']}")

print(f"\nWritten to {written.path}.")
