"""Audit two hundred people by age, and write the page to hand over.

Usage: python audit.py [FILE.html]
"""

import sys
from pathlib import Path

from ifonly import Explainer, Query, datasets, report

data = datasets.load("credit")
explainer = Explainer(datasets.network("credit"), classes=["deny", "approve"])
people = [data.row(i) for i in data.split()[1][:200]]
query = Query(target="approve", constraints=["isMale is fixed", "isMarried is fixed", "AgeGroup is fixed"])

result = explainer.audit(people, query, by="AgeGroup")
print(report.plain(report.audit_page(result)))

where = report.provenance(explainer, query, data="200 rows of the credit data set")
file = Path(sys.argv[1] if len(sys.argv) > 1 else "audit.html")
file.write_text(report.audit_html(result, where), encoding="utf-8")
print(f"\nWritten to {file}.")
