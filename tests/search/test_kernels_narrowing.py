"""Propagating linear rules over a box: no row that keeps the rules is left out, and boxes do shrink."""

import numpy as np
from harness import CHOICE, START, Node, compiled, random_node

from ifonly.solvers.search.kernels import narrowing


def keeping(node: Node, x: np.ndarray) -> np.ndarray:
    """Those of the points that keep every rule, by the rules' own exact arithmetic."""
    question, points = node.lowered.question, node.point(x)
    before = np.tile(node.allowed.factual[0], (len(x), 1))
    kept = [rule.allows_rows(question.schema, before, points) for rule in question.constraints]
    return x[np.all(kept, axis=0)]


def test_rows_that_keep_the_rules_stay() -> None:
    smaller = left_out = 0
    for seed in range(200):
        node = random_node(seed, "l1", ball=False, rules=1 + seed % 3)
        sample = node.sample(300, np.random.default_rng(seed), inside=False)
        x = keeping(node, sample)
        lo, hi, mask = node.lo.copy(), node.hi.copy(), node.mask.copy()
        possible = compiled(narrowing.narrow_by_rules)(node.pack, node.person, lo, hi, mask)
        assert possible or len(x) == 0
        for g, kind in enumerate(node.kinds()):
            if kind == CHOICE:
                assert mask[node.pack.index[START, g] + x[:, g].astype(int)].all()
            else:
                assert (lo[g] <= x[:, g]).all() and (x[:, g] <= hi[g]).all()
        smaller += bool((lo > node.lo).any() or (hi < node.hi).any() or (mask < node.mask).any())
        left_out += not possible
    assert smaller >= 20 and left_out >= 5
