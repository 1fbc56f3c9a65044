"""What must be measured in a process of its own: `python -m benchmarks.child NETWORK ...` prints one line of JSON.

The wall clock starts with this module; the parent adds what the interpreter needs to get here.
"""

import time

BEGUN = time.perf_counter()

import argparse  # noqa: E402
import json  # noqa: E402
import resource  # noqa: E402


def main() -> None:
    """Ask about one row, and say how long it took and how much memory grew."""
    parser = argparse.ArgumentParser(description="Answer one row in a new process.")
    parser.add_argument("network", help="an ifonly .npz network")
    parser.add_argument("schema", help="a schema file")
    parser.add_argument("row", help="the row as JSON")
    parser.add_argument("--distance", default="l1")
    parser.add_argument("--margin", type=float, default=1e-6)
    parser.add_argument("--nodes", type=int)
    options = parser.parse_args()

    from ifonly import ClassTarget, Explainer, Limits, Schema

    explainer = Explainer(options.network, schema=Schema.load(options.schema))
    row = json.loads(options.row)
    question = {"target": ClassTarget(1, options.margin), "distance": options.distance}
    imported = time.perf_counter() - BEGUN
    if options.nodes:  # load and compile everything first: only the search's own growth is of interest
        explainer.explain(row, **question, limits=Limits(nodes=1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    limits = Limits(nodes=options.nodes)
    answer = explainer.explain(row, **question, limits=limits)
    print(
        json.dumps(
            {
                "imported": imported,
                "answered": time.perf_counter() - begun,
                "grown_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before,
                "status": answer.status,
                "lower": answer.lower,
                "upper": answer.upper if answer.counterfactual is not None else None,
                "counterfactual": answer.to_dict()["counterfactual"],
                "nodes": answer.nodes,
                "note": answer.note,
                "stop": answer.to_dict()["stop"],
                "method": answer.method,
            }
        )
    )


if __name__ == "__main__":
    main()
