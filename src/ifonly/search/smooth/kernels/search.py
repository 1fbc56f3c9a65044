"""The branch and bound of `search.kernels.search`, for networks with smooth activations: best-first over boxes, which
are split by their features only."""

from __future__ import annotations

import math

from numba import njit

from ifonly.compiling import with_cache
from ifonly.search.kernels.cutoff import cutoff
from ifonly.search.kernels.layout import (
    BEST,
    BOUND,
    DONE,
    FREE,
    HALT,
    HEAP,
    HEAP_SIZE,
    INHERITED,
    LOGGED,
    LOWER,
    MEMORY,
    NODES,
    ONCE,
    OUTER,
    PHASES,
    RADIUS,
    RESIDUAL,
    SLICE,
    USED,
    PackedPerson,
)
from ifonly.search.kernels.search import begin_phase, begins_again, open_node, pop, settle, split_node
from ifonly.search.smooth.kernels.evaluate import evaluate
from ifonly.search.smooth.kernels.layout import SOURCES

ROOT_TRIES, NODE_TRIES = 12, 4


@njit(**ONCE)
def _run(pack, person, s, tree, nodes, fresh):
    """Search until done, or for about `nodes` more nodes. Returns DONE, SLICE or MEMORY."""
    number, count = tree.number, tree.count
    stop = count[NODES] + nodes
    begin = fresh
    first, second, tries = -1, -1, NODE_TRIES
    while True:
        if begin:
            begin = False
            begin_phase(pack, person, tree)
            first, second, tries = 0, -1, ROOT_TRIES
        elif count[HEAP_SIZE] > 0 and tree.num[BOUND, tree.idx[HEAP, 0]] < cutoff(pack, number):
            if count[NODES] >= stop or s.I[HALT, 0] != 0:
                return SLICE
            if count[USED] + 1 >= tree.num.shape[1]:
                return MEMORY
            first = pop(tree)
            second = tree.idx[FREE, count[USED]]
            count[USED] += 1
            split_node(pack, person, tree, first, second)
            tries = NODE_TRIES
        elif begins_again(pack, number):
            begin = True
            continue
        else:
            return DONE
        for turn in range(2):
            node = first if turn == 0 else second
            if node < 0:
                continue
            count[NODES] += 1
            number[INHERITED] = tree.num[BOUND, node]
            bound, split, value = evaluate(pack, person, s, open_node(tree, node), tree, tries)
            settle(tree, node, max(bound, tree.num[BOUND, node]), split, value, cutoff(pack, number))


def _build_search_people(sources):
    @with_cache(**OUTER)
    # size: called from Python with arrays only, so that the cache holds one signature
    def search_people(pack, people, radius, first, last, slice_nodes, resume, s, tree, lower, best, nodes):
        """Search for people first..last-1; see `search.kernels.search`."""
        if sources == 0:
            return first, SLICE
        number, count = tree.number, tree.count
        for i in range(first, last):
            person = PackedPerson(
                people.z[i],
                people.box[i],
                people.mask[i],
                people.cost[i],
                people.option[i],
                people.slack[i],
                people.need[i],
                people.start[i],
                people.most[i],
                people.lost[i],
            )
            fresh = not (resume and i == first)
            n = len(tree.best)
            if fresh:
                number[LOWER] = 0.0
                number[RADIUS] = radius[i]
                number[BEST] = best[i, n]
                for f in range(n):
                    tree.best[f] = best[i, f]
                number[RESIDUAL] = math.inf
                count[NODES] = 0
                count[PHASES] = 0
                count[LOGGED] = 0
            code = _run(pack, person, s, tree, slice_nodes, fresh)
            if code != DONE:
                return i, code
            lower[i] = number[LOWER]
            for f in range(n):
                best[i, f] = tree.best[f]
            best[i, n] = number[BEST]
            nodes[i] = count[NODES]
        return last, DONE

    return search_people


search_people = _build_search_people(SOURCES)
