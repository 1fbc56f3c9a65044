"""Two versions of the package side by side: the same questions, in turns, in processor seconds.

    git worktree add ../old COMMIT
    python tools/beside.py ../old/src src            # add --compile for the time to compile the kernels, from nothing

Per version: processor seconds of `explain_many` (best of three), nodes and the sum of the distances, which must be the
same where the search is; of one `explain` call, its median time over that of its own search; of certificates and of
forests, the median over people of the least of five calls.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

CHILD = """
import json, statistics, sys, time
import ifonly
from ifonly import datasets
from sklearn.ensemble import RandomForestClassifier

def without_rules(load, name):
    try:
        return load(name, rules=False)
    except TypeError:  # a version whose shipped data has no rules
        return load(name)

def least_times(ask, rows):
    taken = []
    for row in rows:
        best = []
        for _ in range(5):
            begun = time.process_time()
            answer = ask(row)
            best.append(time.process_time() - begun)
        taken.append((min(best), answer))
    return statistics.median(one for one, _ in taken), [answer for _, answer in taken]

told = {}
for name in ("adult", "credit"):
    data, explainer = without_rules(datasets.load, name), ifonly.Explainer(without_rules(datasets.network, name))
    rows = list({tuple(row.values()): row for row in (data.row(i) for i in range(2000))}.values())[:ROWS]
    for norm in ("l0", "l1", "l2", "linf"):
        explainer.explain_many(rows, distance=norm)
        spent = []
        for _ in range(3):
            begun = time.process_time()
            answers = explainer.explain_many(rows, distance=norm)
            spent.append(time.process_time() - begun)
        nodes, far = sum(a.nodes for a in answers), sum(a.upper for a in answers if a.upper < 1e300)
        told[f"{name} {norm}"] = [min(spent), nodes, round(far, 9)]
    asked = [row for row in rows if explainer.explain(row).changes][:200]
    calls = []
    for row in asked:
        best = []
        for _ in range(5):
            begun = time.perf_counter()
            answer = explainer.explain(row)
            best.append((time.perf_counter() - begun, answer.seconds))
        calls.append((min(call for call, _ in best), min(own for _, own in best)))
    call, own = (statistics.median(part) for part in zip(*calls))
    told[f"{name} one call"] = [call / own, round(1e6 * call), round(1e6 * own)]
    middle, proofs = least_times(lambda row: ifonly.certify(explainer, row), asked[:40])
    told[f"{name} certify"] = [middle, len(proofs), round(sum(float(ifonly.check(one).upper) for one in proofs), 9)]
    encoded = data.schema.encode(data.points())
    forest = RandomForestClassifier(100, max_depth=6, random_state=0).fit(encoded, data.labels)
    trees = ifonly.Explainer(forest, schema=data.schema)
    denied = [row for row in asked if trees.explain(row).changes][:40]
    middle, answers = least_times(trees.explain, denied)
    told[f"{name} forest"] = [middle, sum(a.nodes for a in answers), round(sum(a.upper for a in answers), 9)]
print(json.dumps(told))
"""


def run(source: str, code: str, **environment: str) -> str:
    """The last line that a version prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "PYTHONPATH": source, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip().splitlines()[-1]


def compile_seconds(source: str) -> float:
    """Processor seconds to compile the kernels from nothing."""
    code = "import time; from ifonly.solvers.search import load_kernels; load_kernels(); print(time.process_time())"
    with tempfile.TemporaryDirectory() as cache:
        return float(run(source, code, NUMBA_CACHE_DIR=cache))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    asked = parser.parse_args()
    code = CHILD.replace("ROWS", str(asked.rows))
    for k in range(asked.rounds):
        print(f"round {k + 1} of {asked.rounds} ...", file=sys.stderr)
        old, new = (json.loads(run(source, code)) for source in (asked.old, asked.new))
        print(f"{'':18s} {'old':>28s} {'new':>28s}   new / old")
        for name, told in old.items():
            words = [f"{first:.4g} ({second:,}; {third:,})" for first, second, third in (told, new[name])]
            print(f"{name:18s} {words[0]:>28s} {words[1]:>28s}   {new[name][0] / told[0]:.3f}")
        if asked.compile:
            spent = [compile_seconds(source) for source in (asked.old, asked.new)]
            print(f"{'compiling, CPU s':18s} {spent[0]:28.1f} {spent[1]:28.1f}   {spent[1] / spent[0]:.3f}")


if __name__ == "__main__":
    main()
