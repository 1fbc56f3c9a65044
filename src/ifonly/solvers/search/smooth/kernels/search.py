"""Best-first branch and bound for networks with smooth activations.

Heap, phases and records are those of `search.kernels.search`; the bound of a node is another one.
"""

from __future__ import annotations

from numba import njit

from ifonly.compiling import with_cache
from ifonly.solvers.search.kernels.layout import DONE, NODES, ONCE, OUTER, SLICE
from ifonly.solvers.search.kernels.search import GO, begin_person, end_person, next_nodes, person_of, walks_now
from ifonly.solvers.search.kernels.tree import begin_node, open_node, settle
from ifonly.solvers.search.smooth.kernels.evaluate import evaluate, look_for_points
from ifonly.solvers.search.smooth.kernels.layout import SOURCES

ROOT_TRIES, NODE_TRIES = 12, 4


@njit(**ONCE)
def _run(pack, person, s, r, tree, nodes, fresh):
    """Search until done, or for about `nodes` more nodes. Returns DONE, SLICE or MEMORY."""
    stop = tree.count[NODES] + nodes
    while True:
        code, first, second = next_nodes(pack, person, s, tree, stop, fresh)
        if code != GO:
            return code
        fresh = False
        whole, start, last = walks_now(pack, person, r, tree, second < 0)
        if whole >= 0:
            look_for_points(pack, person, s, r, open_node(tree, whole), tree, start, last)
        tries = ROOT_TRIES if second < 0 else NODE_TRIES
        for turn in range(2):
            node = first if turn == 0 else second
            if node >= 0:
                begin_node(tree, node)
                bound, split, value = evaluate(pack, person, s, r, open_node(tree, node), tree, tries)
                settle(pack, s, tree, node, bound, split, value)


def _build_search_people(sources):
    @with_cache(**OUTER)
    # size: called from Python with arrays only, so that the cache holds one signature
    def search_people(pack, people, radius, first, last, slice_nodes, resume, s, r, tree, lower, best, nodes):
        """Search for people first..last-1; see `search.kernels.search`."""
        if sources == 0:
            return first, SLICE
        for i in range(first, last):
            person = person_of(people, i)
            fresh = not (resume and i == first)
            if fresh:
                begin_person(tree, radius[i], best[i])
            code = _run(pack, person, s, r, tree, slice_nodes, fresh)
            if code != DONE:
                return i, code
            end_person(tree, i, lower, best, nodes)
        return last, DONE

    return search_people


search_people = _build_search_people(SOURCES)
