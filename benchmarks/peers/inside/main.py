"""Runs inside a peer's environment: `python main.py PEER FOLDER`. A line of JSON in, a line of JSON out.

In: {"point": [...], "k": 1}. Out: {"points": [[...]], "seconds": s, "cpu_seconds": s, "error": "", "facts": {}}; the
first line out says that the peer is ready and which versions it has, or why it is not. What a peer prints goes to
standard error. A peer returns rows, or rows and a dict of facts about them.
"""

import json
import os
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"
warnings.simplefilter("ignore")
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
sys.path.insert(0, str(Path(__file__).resolve().parent))


def say(**what):
    print(json.dumps(what), file=answers, flush=True)


def describe(problem):
    return f"{type(problem).__name__}: {problem}".split("\n")[0][:300]


def main():
    import numpy as np
    from handed import Handed

    peer, folder = sys.argv[1:]
    library, _, way = peer.partition("-")
    begun = time.perf_counter()
    try:
        handed = Handed(folder)
        np.random.seed(handed.seed % 2**32)
        module = import_module(f"with_{library}")
        explain = module.make(handed, way)
    except Exception as problem:
        say(versions="", seconds=0.0, error=describe(problem))
        return
    say(versions=module.versions(), seconds=time.perf_counter() - begun, error="")
    for line in sys.stdin:
        asked = json.loads(line)
        point = np.array(asked["point"], dtype=np.float64)
        begun, spent = time.perf_counter(), time.process_time()
        found, error, facts = [], "", {}
        try:
            told = explain(point, asked["k"])
            rows, facts = told if isinstance(told, tuple) else (told, {})
            found = np.asarray(rows, dtype=np.float64).tolist()
        except Exception as problem:  # whatever a peer does, its row is a record
            error = describe(problem)
        taken, cpu = time.perf_counter() - begun, time.process_time() - spent
        say(points=found, seconds=taken, cpu_seconds=cpu, error=error, facts=facts)


if __name__ == "__main__":
    main()
