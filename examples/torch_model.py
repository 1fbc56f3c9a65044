"""A torch network, trained here in a few seconds, and the nearest row that it decides the other way.

The network reads the schema's encoded columns. In float32 its scores are uncertain in the sixth digit, so an answer
keeps clear of the boundary by as much, and says what that leaves open; in float64 nothing is. Both are checked with the
module itself. Needs: pip install 'ifonly[torch]'
"""

import torch
from torch import nn

from ifonly import Explainer, Fixed, datasets, import_model

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

person = data.row(test[1])  # whom the network denies
for dtype in (torch.float32, torch.float64):
    model = import_model(module.to(dtype), data.schema, classes=("deny", "approve"))
    decided = model.decide(model.scores(data.points()[test]))
    print(f"{model.source} in {model.precision}: {(decided == data.labels[test]).mean():.1%} of test rows are right")
    print(f"The network that stands for it is within {model.deviation:.1e} of its scores.")
    print(Explainer(model).explain(person, target="approve", constraints=[Fixed("isMale"), Fixed("isMarried")]))
