"""The branch and bound of `search.kernels.search`, for networks with smooth activations: best-first over boxes, which
are split by their features only."""

from __future__ import annotations

from numba import njit

from ifonly.compiling import with_cache
from ifonly.solvers.search.kernels.cutoff import cutoff
from ifonly.solvers.search.kernels.layout import (
    BOUND,
    DONE,
    INHERITED,
    NODES,
    ONCE,
    OUTER,
    SLICE,
)
from ifonly.solvers.search.kernels.search import (
    AGAIN,
    GO,
    begin_person,
    begin_phase,
    end_person,
    next_pair,
    open_node,
    person_of,
    settle,
)
from ifonly.solvers.search.smooth.kernels.evaluate import evaluate
from ifonly.solvers.search.smooth.kernels.layout import SOURCES

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
        else:
            code, first, second = next_pair(pack, person, s, tree, stop)
            if code == AGAIN:
                begin = True
                continue
            if code != GO:
                return code
            tries = NODE_TRIES
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
        for i in range(first, last):
            person = person_of(people, i)
            fresh = not (resume and i == first)
            if fresh:
                begin_person(tree, radius[i], best[i])
            code = _run(pack, person, s, tree, slice_nodes, fresh)
            if code != DONE:
                return i, code
            end_person(tree, i, lower, best, nodes)
        return last, DONE

    return search_people


search_people = _build_search_people(SOURCES)
