"""Do several methods say the same of one question? What they say is compared pairwise; a contradiction is raised.

`python -m benchmarks agreement random` asks it of many more questions than the tests do.
"""

import math

from comparison import LIMITS, answers

from ifonly import NoneExists
from ifonly.methods import Search
from ifonly.solvers.common.backends import available
from ifonly.solvers.common.contradiction import contradiction
from ifonly.solvers.mip import MipExp, MipObj

TOLERANCE = 1e-6


def methods():
    chosen = [Search(), MipObj(), MipExp()]
    return [*chosen, MipObj(backend="scip")] if available("scip") else chosen


def disagreements(question, points, chosen, limits=LIMITS):
    """Sentences about rows that are not equally near; a bound above another's row is a contradiction, and raised."""
    told = {method.name: answers(question, points, method, limits) for method in chosen}
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
