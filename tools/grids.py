"""What a fine grid costs: nodes and seconds of the search, with and without steps of 0.01, on Credit and Adult.

python tools/grids.py [--step 0.01] [--people 100] [--rules]     # under the rules of the data, too
"""

from __future__ import annotations

import argparse
import time

from ifonly import Explainer, Limits, Real, Schema, datasets
from ifonly.model import network_model


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--step", default="0.01")
    options.add_argument("--people", type=int, default=100)
    options.add_argument("--rules", action="store_true")
    options.add_argument("--nodes", type=int, default=6000, help="of one answer")
    given = options.parse_args()
    print("data    distance    nodes: real   steps  ratio    CPU s: real   steps  ratio    not nearest")
    for name in ("credit", "adult"):
        data, model = datasets.load(name, rules=False), datasets.network(name, rules=False)
        rules = datasets.load(name).schema.rules if given.rules else ()
        points = data.points()[:2000]
        denied = points[model.scores(points)[:, 0] < 0][: given.people]
        features = [
            Real(f.name, f.lower, f.upper, given.step) if isinstance(f, Real) else f for f in data.schema.features
        ]
        model, stepped = (
            network_model(model.network, Schema(some, data.schema.columns, rules), classes=model.classes)
            for some in (data.schema.features, features)
        )
        rows = [data.schema.row(point) for point in denied]
        for norm in ("l0", "l1", "l2", "linf"):
            spent, nodes, open_ends = [], [], 0
            for one in (model, stepped):
                explainer = Explainer(one).using(limits=Limits(nodes=given.nodes))
                explainer.explain(rows[0], distance=norm)
                begun = time.process_time()
                answers = explainer.explain_many(rows, distance=norm)
                spent.append(time.process_time() - begun)
                nodes.append(sum(answer.nodes for answer in answers))
                open_ends += sum(answer.status != "nearest" for answer in answers)
            print(
                f"{name:8}{norm:8}{nodes[0]:15}{nodes[1]:8}{nodes[1] / nodes[0]:7.2f}"
                f"{spent[0]:15.3f}{spent[1]:8.3f}{spent[1] / spent[0]:7.2f}{open_ends:15}"
            )


if __name__ == "__main__":
    main()
