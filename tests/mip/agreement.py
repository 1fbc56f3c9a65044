"""Do several methods say the same of one question? What they say is compared pairwise; a contradiction is raised.

python tests/mip/agreement.py 0 500      # by hand: the seeds from 0 to 499, all methods
"""

import math
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "oracles")]

from comparison import answers
from random_problems import random_problem

from ifonly import NoneExists, Search
from ifonly.mip import MipInterval, MipObjective
from ifonly.mip.backends import available
from ifonly.mip.contradiction import contradiction

TOLERANCE = 1e-6


def methods():
    chosen = [Search(), MipObjective(), MipInterval()]
    return [*chosen, MipObjective(backend="scip")] if available("scip") else chosen


def disagreements(question, points, chosen):
    """Sentences about rows that are not equally near; a bound above another's row is a contradiction, and raised."""
    told = {method.name: answers(question, points, method) for method in chosen}
    sentences = []
    for i, point in enumerate(points):
        mine = {name: said[i] for name, said in told.items()}
        for one, a in mine.items():
            for other, b in mine.items():
                if a.lower > b.upper + TOLERANCE * (1.0 + b.upper if math.isfinite(b.upper) else 1.0):
                    raise contradiction(
                        question, point, f"'{one}': nothing nearer than {a.lower!r}; '{other}': a row at {b.upper!r}.",
                        lower_by=one, lower=a.lower, upper_by=other, upper=b.upper,
                    )  # fmt: skip
                if isinstance(a, NoneExists) != isinstance(b, NoneExists) and a.status != "unknown" != b.status:
                    sentences.append(f"person {i}: {one} {a.status}, {other} {b.status}")
                elif a.upper > b.upper + TOLERANCE * (1.0 + b.upper):
                    sentences.append(f"person {i}: {one} {a.status} {a.upper!r}, {other} {b.status} {b.upper!r}")
    return sentences, told


def main(first, end):
    begun, people, wrong, counts = time.perf_counter(), 0, 0, {}
    for seed in range(first, end):
        question, points = random_problem(seed)
        try:
            sentences, told = disagreements(question, points, methods())
        except Exception as error:
            sentences, told = [f"{type(error).__name__}: {error}"], {}
        people += len(points)
        wrong += bool(sentences)
        for sentence in sentences:
            print(f"random_problem({seed}) {question.distance.name}: {sentence}", flush=True)
        for name, said in told.items():
            for answer in said:
                counts.setdefault(name, {}).setdefault(answer.status, 0)
                counts[name][answer.status] += 1
    print(f"{end - first} questions, {people} people, {wrong} with a disagreement, {counts}, "
          f"{time.perf_counter() - begun:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
