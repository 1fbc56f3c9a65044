"""Two versions of the package, the same random questions: the same statuses, distances and bounds?

    git worktree add ../old COMMIT
    python tools/same_answers.py ../old . --count 500        # of each kind: networks, rules, trees, smooth networks

The questions are those of tests/oracles, drawn by each version's own generators with the same seeds. Limits count
nodes, so that the machine does not matter. Statuses and distances must be the same to the last bit, lower bounds to
nine digits (kernels in plain Python and compiled ones round differently).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

CHILD = """
import json, sys
from comparison import answers
from random_problems import random_problem
from random_rules import random_ruled_problem
from random_smooth import ACTIVATIONS, random_smooth_problem
from random_trees import random_tree_problem
from ifonly import Limits
try:
    from ifonly.methods import Search
except ImportError:
    from ifonly import Search

KINDS = {
    "networks": lambda seed: random_problem(seed, finite=seed % 3 == 0, steps=seed % 4 == 1),
    "rules": lambda seed: random_ruled_problem(seed, finite=seed % 3 == 0),
    "trees": lambda seed: random_tree_problem(seed, finite=seed % 3 == 0, ruled=seed % 4 == 1),
    "smooth": lambda seed: random_smooth_problem(seed, ACTIVATIONS[seed % len(ACTIVATIONS)], finite=seed % 3 == 0),
}
for kind, draw in KINDS.items():
    done, seed = 0, 70_000
    while done < int(sys.argv[1]):
        seed += 1
        made = draw(seed)
        if made is None:
            continue
        for i, answer in enumerate(answers(*made, Search(), Limits(nodes=5_000))):
            print(json.dumps([kind, seed, i, answer.status, answer.upper, answer.lower]))
            done += 1
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--count", type=int, default=500, help="questions of each kind")
    options = parser.parse_args()
    with_both = [begun(tree.resolve(), options.count) for tree in (options.old, options.new)]
    old, new = (found(process) for process in with_both)
    different = [(a, b) for a, b in zip(old, new, strict=True) if a[:5] != b[:5] or not math.isclose(a[5], b[5])]
    kinds = Counter((kind, status) for kind, _, _, status, _, _ in new)
    print("; ".join(f"{kind} {status}: {count}" for (kind, status), count in sorted(kinds.items())))
    for a, b in different[:20]:
        print("old", *a, "\nnew", *b)
    print(f"{len(new):,} questions, {len(different)} answered differently.")
    return int(bool(different))


def begun(tree: Path, count: int) -> subprocess.Popen[str]:
    path = os.pathsep.join(str(tree / part) for part in ("src", "tests", "tests/oracles"))
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(count)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True)


def found(process: subprocess.Popen[str]) -> list[list[Any]]:
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit("A version failed; see above.")
    return [json.loads(line) for line in out.splitlines()]


if __name__ == "__main__":
    sys.exit(main())
