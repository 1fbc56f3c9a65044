# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # An audit: who has recourse, at what cost, and does it differ by age?
#
# Open it as a notebook (`jupytext --to notebook audit.py`) or run it as it is. Needs: pip install 'ifonly[plot]'

# %%
from pathlib import Path

from ifonly import Explainer, Query, datasets, report

# %% [markdown]
# ## Two hundred clients of a bank, and what may be asked of them
#
# Sex, marriage and age are no advice. What a rule does not fix may change.

# %%
data = datasets.load("credit")
explainer = Explainer(datasets.network("credit"), classes=["deny", "approve"])
people = [data.row(i) for i in data.split()[1][:200]]
query = Query(target="approve", constraints=["isMale is fixed", "isMarried is fixed", "AgeGroup is fixed"])
explainer.schema

# %% [markdown]
# ## The audit
#
# Shares have intervals; a group with few people is counted, but not compared.

# %%
result = explainer.audit(people, query, by="AgeGroup")
print(result)
result

# %% [markdown]
# What would help most of them at once, asked of the network for each of them:

# %%
cover = result.everybody.details.cover
for action in cover.actions:
    print(f"{action}: helps {action.helps} of {cover.people}")

# %% [markdown]
# ## What it costs, by group
#
# Each line rises with the share of a group that has an answer at no more than a cost.

# %%
answers = explainer.explain_many(people, query)
print(answers)
picture = answers.plot(by=[person["AgeGroup"] for person in people])

# %% [markdown]
# ## Somebody for whom it costs most
#
# Behind every figure there are people, each with a proven answer of their own.

# %%
needing = [answer for answer in answers if answer.changes]
farthest = max(needing, key=lambda answer: answer.upper)
print(farthest.sentence())
farthest

# %% [markdown]
# ## The page to hand over
#
# One file without scripts, with the fingerprints of model, schema and data, for somebody who has neither the model nor Python.

# %%
where = report.provenance(explainer, query, data="200 rows of the credit data set")
Path("audit.html").write_text(report.audit_html(result, where), encoding="utf-8")
print(f"Written: audit.html ({Path('audit.html').stat().st_size // 1000} kB)")
