# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # A torch network, from training to a proven answer
#
# Open it as a notebook (`jupytext --to notebook torch_model.py`) or run it as it is. Needs: pip install 'ifonly[torch,plot]'

# %%
import torch
from torch import nn

from ifonly import Explainer, Query, certify, check, datasets, import_model
from ifonly.diagnostics import cost_by_changes, score_path

# %% [markdown]
# ## The network
#
# It reads the schema's encoded columns and is trained here, in a few seconds.

# %%
torch.manual_seed(0)
data = datasets.load("credit")
train, test = data.split()
columns = torch.tensor(data.encoded(), dtype=torch.float32)
labels = torch.tensor(data.labels, dtype=torch.float32)

module = nn.Sequential(
    nn.BatchNorm1d(columns.shape[1]),  # brings the columns to one scale; becomes part of the first layer
    nn.Linear(columns.shape[1], 16),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(16, 1),
)
optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
for _ in range(3):
    for batch in torch.from_numpy(train).split(256):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(module(columns[batch]).squeeze(1), labels[batch])
        loss.backward()
        optimizer.step()

# %% [markdown]
# ## One applicant whom it denies
#
# What would have had to differ, as little as possible in all? By the Euclidean distance, many small changes are less than a large one.

# %%
model = import_model(module, data.schema, classes=("deny", "approve"))
decided = model.decide(model.scores(data.points()[test]))
print(f"{model.source} in {model.precision}: {(decided == data.labels[test]).mean():.1%} of test rows are right")

person = data.row(test[1])
rules = ["isMale is fixed", "isMarried is fixed", "age group is fixed"]
query = Query(target="approve", distance="l2", constraints=rules)
explainer = Explainer(model)
answer = explainer.explain(person, query)
print(answer.sentence())
answer

# %% [markdown]
# How the network's score goes while one thing after the other changes: it reaches the boundary at the very end.

# %%
score_path(explainer, answer)

# %% [markdown]
# ## Would fewer changes do?
#
# Each of these is proven nearest too, among the rows with no more changes than that. Few changes cost little more than many.

# %%
fewer = cost_by_changes(explainer, person, query)
print(fewer)
fewer

# %%
print("; ".join(map(str, fewer.answers[1].changes)))
picture = fewer.answers[1].plot()

# %% [markdown]
# ## float32 and float64
#
# In float32 the network's own scores are uncertain in the sixth digit. An answer keeps clear of the boundary by as much,
# and `lower_any_rounding` says how near a row could be that is accepted only by the luck of rounding. In float64 the two are the same
# up to the tolerance of the search. Both are checked with the module itself.

# %%
for dtype in (torch.float32, torch.float64):
    same = import_model(module.to(dtype), data.schema, classes=("deny", "approve"))
    told = Explainer(same).explain(person, query)
    print(f"{same.precision}: {told.status} at {told.upper:.8f}, by luck not nearer than {told.lower_any_rounding:.8f}")

# %% [markdown]
# ## A proof to hand over
#
# The certificate is checked by a program that shares nothing with the search, in exact arithmetic. It cannot state rules
# between features yet, so it is about the same network and person without those of the data set.

# %%
free = import_model(module, datasets.load("credit", rules=False).schema, classes=("deny", "approve"))
certificate = certify(Explainer(free), person, query)
certificate.save("answer.cert")
checked = check("answer.cert")
print(f"answer.cert: {checked.verdict}, the nearest is between {checked.lower:.6f} and {checked.upper:.6f}")
checked
