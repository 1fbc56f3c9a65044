"""Small certificate files that would like to take much time or memory. Each builder returns the bytes of a file."""

from __future__ import annotations

import zlib
from random import Random
from typing import Any

from ifonly.certificate.format import canonical, most_text, stamp
from ifonly.schema import Categorical, Ordinal, Real, Schema
from ifonly.schema.io import schema_to_json

ZERO, ONE, BIG, TINY = (0.0).hex(), (1.0).hex(), (2.0**1000).hex(), (2.0**-1074).hex()
LEAF = {"rows": []}


def packed(data: dict[str, Any]) -> bytes:
    """As small as a file may be."""
    text = canonical({**data, "sha256": stamp(data)})
    packed = zlib.compress(text, 9)
    return packed if len(text) <= most_text(len(packed)) else zlib.compress(text, 0)


def layer(rows: int, inputs: int, weight: str = ONE, bias: str = ZERO) -> dict[str, Any]:
    return {"weight": [[weight] * inputs] * rows, "bias": [bias] * rows}


def about(features: list[Any], network: list[Any], tree: list[Any], **changes: Any) -> dict[str, Any]:
    """No row gives score >= 1, they say."""
    count = len(features)
    norm = changes.get("norm", "l1")
    lower = changes.get("lower")
    return {
        "format": "ifonly-certificate",
        "version": 2,
        "made_by": "nobody",
        "question": {
            "schema": schema_to_json(Schema(features)),
            "model": {"kind": "network", "layers": network},
            "factual": [ZERO] * count,
            "distance": {
                "norm": norm, "jump": ZERO, "rate": ONE, "weights": [changes.get("weight", ONE)] * count,
                "scales": [changes.get("scale", ONE)] * count, "up": [ONE] * count, "down": [ONE] * count,
                "transitions": [],
            },
            "constraints": changes.get("constraints", []),
            "target": {"output": 0, "at_least": changes.get("at_least", ONE), "at_most": None, "margin": ZERO},
        },
        "claim": {"lower": lower, "upper": None},
        "witness": None,
        "deployed": None,
        "proof": {"grid": changes.get("grid", 80), "cost_grid": changes.get("cost_grid", 96), "tree": tree},
    }  # fmt: skip


def reals(count: int, end: float = 1.0) -> list[Any]:
    return [Real(f"x{i}", -end, end) for i in range(count)]


def nested() -> bytes:
    return zlib.compress(b"[" * 10**6 + b"]" * 10**6, 9)


def empty_lists() -> bytes:
    """Text that becomes 24 times its size when read."""
    return zlib.compress(b"[" + b"[]," * 20_000_000 + b"[]]", 9)


def spaces() -> bytes:
    return zlib.compress(b" " * (60 << 20), 9)


def relu_chain() -> bytes:
    """A path of 19,999 splits, a leaf at its first end."""
    tree = [["relu", 0, i] for i in range(19_999)] + [LEAF] * 20_000
    return packed(about(reals(1), [layer(20_000, 1), layer(1, 20_000)], tree))


def relu_chain_again() -> bytes:
    """The same few ReLUs, again and again."""
    tree = [["relu", 0, i % 40] for i in range(19_999)] + [LEAF] * 20_000
    return packed(about(reals(1), [layer(40, 1), layer(1, 40)], tree))


def number_chain() -> bytes:
    """Boxes of 2,000 features, split 19,999 times."""
    tree = [["number", i % 2_000, ZERO] for i in range(19_999)] + [LEAF] * 20_000
    return packed(about(reals(2_000), [layer(1, 2_000)], tree))


def option_chain() -> bytes:
    features = [Categorical("c", list(range(4_000)), "code")]
    tree = [["option", 0, i] for i in range(3_999)] + [{"rows": [[0, 0, 1, "", ONE]]}] * 4_000
    return packed(about(features, [layer(50, 1), layer(1, 50)], tree, at_least=BIG))


def wide() -> bytes:
    """Neurons with long numbers."""
    first = {"weight": [[BIG if i % 2 else TINY] for i in range(60_000)], "bias": [TINY] * 60_000}
    return packed(about(reals(1), [first, layer(1, 60_000, BIG, TINY)], [LEAF]))


def deep() -> bytes:
    return packed(about(reals(1), [layer(1, 1, BIG, TINY)] * 20_000, [LEAF]))


def deep_and_wide() -> bytes:
    """As deep as long numbers allow."""
    middle = {"weight": [[BIG, TINY] * 40] * 80, "bias": [TINY, BIG] * 40}
    return packed(about(reals(80), [middle] * 25, [LEAF]))


def square() -> bytes:
    """Two layers of 500 neurons, all unstable."""
    return packed(about(reals(500), [layer(500, 500, BIG, TINY)] * 2 + [layer(1, 500, TINY, BIG)], [LEAF]))


def many_features() -> bytes:
    """l2 over 19,000 reals with the finest grids."""
    changes = {"norm": "l2", "grid": 2_400, "cost_grid": 2_400, "lower": ONE, "scale": (3.0).hex()}
    leaf = {"rows": [[1, 0, 1, "f", ONE]]}
    return packed(about(reals(19_000), [layer(4, 19_000, BIG, TINY), layer(1, 4)], [leaf], **changes))


def many_ratios() -> bytes:
    """l1 over 19,000 reals with long numbers: all gains have to be sorted."""
    weights = [[(2.0 ** (i % 1_000) * (1 + i / 2**30)).hex() for i in range(19_000)]] * 4
    network = [{"weight": weights, "bias": [TINY] * 4}, layer(1, 4)]
    changes = {"grid": 2_400, "cost_grid": 2_400, "lower": ONE, "scale": (3.0).hex()}
    return packed(about(reals(19_000, 7.0), network, [LEAF], **changes))


def many_options() -> bytes:
    """A one-hot category of 19,000 options, and a thermometer."""
    features = [Categorical("c", list(range(9_500))), Ordinal("o", list(range(9_500)))]
    return packed(about(features, [layer(3, 19_000, BIG, TINY), layer(1, 3)], [LEAF], norm="l2", lower=ONE))


def coded_options() -> bytes:
    """One column, 19,000 options, 2,000 neurons: 38 million numbers out of 100 kB."""
    features = [Categorical("c", list(range(19_000)), "code")]
    return packed(about(features, [layer(2_000, 1, BIG, TINY), layer(1, 2_000)], [LEAF]))


def many_rows() -> bytes:
    """A leaf with 1,000 rows of a network with long numbers."""
    leaf = {"rows": [[2, 0, 1, "f" * 50, ONE]] * 1_000}
    middle = {"weight": [[BIG, TINY] * 100] * 200, "bias": [TINY, BIG] * 100}
    return packed(about(reals(200), [middle, middle, layer(1, 200)], [leaf]))


def many_constraints() -> bytes:
    constraints = [{"kind": "only_up", "feature": f"x{i % 500}"} for i in range(100_000)]
    return packed(about(reals(500), [layer(1, 500)], [LEAF], constraints=constraints))


def many_transitions() -> bytes:
    """A cost for each of 10,000 pairs of options, beside 8,000 other features."""
    features = [Categorical("c", list(range(100)), "code"), *reals(8_000)]
    data = about(features, [layer(1, 8_001)], [LEAF])
    data["question"]["distance"]["transitions"] = [[0, a, b, ONE] for a in range(100) for b in range(100)]
    return packed(data)


def odd_scales() -> bytes:
    """The distance of a witness as a sum of fractions without a common denominator."""
    data = about(reals(15_000, 8.0), [layer(1, 15_000)], [LEAF], lower=ZERO, norm="l2")
    data["question"]["distance"]["scales"] = [(1.0 + (2 * i + 1) / 2**40).hex() for i in range(15_000)]
    data["witness"], data["claim"]["upper"] = [(1.0 / 3.0).hex()] * 15_000, (1e6).hex()
    return packed(data)


def many_leaves() -> bytes:
    """A million nodes."""
    tree = [["number", 0, ZERO], LEAF] * 300_000 + [LEAF]
    return packed(about(reals(1), [layer(1, 1)], tree))


def long_name() -> bytes:
    data = about(reals(1), [layer(1, 1)], [LEAF])
    data["question"]["schema"]["features"][0]["name"] = "VALID " * 300_000
    return packed(data)


def many_models_of_many_depths() -> bytes:
    """Each shallow model would be passed on through all layers of the deepest one."""
    wide = {"kind": "network", "layers": [layer(400, 1), layer(1, 400)]}
    deep = {"kind": "network", "layers": [*[layer(1, 1)] * 500, layer(1, 1)]}
    data = about(reals(1), [], [LEAF])
    data["question"]["model"] = {"kind": "several", "models": [*[wide] * 60, deep]}
    target = data["question"]["target"]
    data["question"]["target"] = {"all": [target] * 61}
    return packed(data)


def many_planes_of_many_classes() -> bytes:
    data = about(reals(1), [layer(300, 1), layer(1000, 300)], [LEAF])
    data["question"]["target"] = {"class": 0, "label": "x", "log_odds": ZERO, "margin": ZERO}
    plane = [[2**40, ZERO], *[[0, ZERO]] * 998]
    data["proof"]["planes"] = [plane] * 1000
    return packed(data)


def sides_of_many_numbers() -> bytes:
    count = 4000
    rule = {"kind": "apart", "point": [ZERO] * count, "at_least": ONE, "jump": ZERO, "rate": ONE,
            "weights": [ONE] * count, "scales": [ONE] * count}  # fmt: skip
    features = [*reals(10), *[Real(f"y{i}", 0.0, 1.0) for i in range(count - 10)]]
    return packed(about(features, [layer(1, count)], [LEAF], constraints=[rule] * 15))


def contrasts_that_are_hard_to_meet() -> bytes:
    """Whether 19 of 40 features meet all of these sets takes long to find out."""
    rng, count = Random(3), 40
    rows = [
        [ONE if i in some else ZERO for i in range(count)] for some in (rng.sample(range(count), 3) for _ in range(400))
    ]
    rows += [[ONE if i == k else ZERO for i in range(count)] for k in range(20)]
    data = about(reals(count), [layer(1, count, ZERO, ONE)], [LEAF])
    data["question"]["reason"] = {"held": [f"x{i}" for i in range(20)], "claim": "smallest"}
    return packed({**data, "contrasts": rows})


def _equation(feature: str, cases: list[Any]) -> dict[str, Any]:
    return {"feature": feature, "within": ONE, "holding": ZERO, "cases": cases}


def _case(numbers: list[Any], constant: str = ZERO, *when: Any) -> dict[str, Any]:
    return {"when": list(when), "numbers": numbers, "options": [], "constant": constant}


def many_sets_of_many_cases() -> bytes:
    """Six features that may be acted on, each with so many cases that all their clauses are just allowed."""
    cases = [
        _case([["x0", ONE]], ZERO, {"feature": "x0", "low": (k / 2000).hex(), "high": None}) for k in range(1, 1600)
    ]
    first = _case([["x0", ONE]], ZERO, {"feature": "x0", "low": None, "high": (1 / 4000).hex()})
    data = about(reals(7), [layer(1, 7, ZERO, ONE)], [LEAF] * 64)
    data["question"]["causes"] = [_equation(f"x{i}", [first, *cases]) for i in range(1, 7)]
    return packed(data)


def factors_without_end() -> bytes:
    """Decimals of a thousand digits for a thousand numbers, with a common denominator as long."""
    count = 1000
    numbers = [[f"x{i}", (TINY, (1e300).hex())[i % 2]] for i in range(count)]
    data = about(reals(count + 6), [layer(1, count + 6, ZERO, ONE)], [LEAF] * 64)
    data["question"]["causes"] = [_equation(f"x{count + k}", [_case(numbers, TINY)]) for k in range(6)]
    return packed(data)


def _of_first(rows: int, inputs: int) -> dict[str, Any]:
    """A layer that reads the first of its inputs alone."""
    return {"weight": [[ONE, *[ZERO] * (inputs - 1)]] * rows, "bias": [TINY] * rows}


def equations_that_are_wide_networks() -> bytes:
    """Six features that may be acted on, each as a network of many neurons: they stand beside each other 64 times."""
    data = about(reals(7), [layer(1, 7, ZERO, ONE)], [LEAF] * 64)
    network = [_of_first(300, 7), layer(300, 300, TINY, BIG), layer(1, 300)]
    common = {"within": ONE, "holding": ZERO, "layers": network}
    data["question"]["causes"] = [{"feature": f"x{i}", **common} for i in range(1, 7)]
    return packed(data)


def equations_that_are_deep_networks() -> bytes:
    data = about(reals(7), [layer(1, 7, ZERO, ONE)], [LEAF] * 64)
    network = [_of_first(1, 7), *[layer(1, 1, (2.0**-20).hex(), TINY)] * 900]
    data["question"]["causes"] = [{"feature": "x1", "within": ONE, "holding": ZERO, "layers": network}]
    return packed(data)


def smooth(layers: list[Any], name: str, tree: list[Any], **changes: Any) -> dict[str, Any]:
    data = about(reals(len(layers[0]["weight"][0])), layers, tree, **changes)
    data["question"]["model"] |= {"kind": "smooth", "activations": [name] * (len(layers) - 1)}
    return data


def smooth_and_wide() -> bytes:
    """exp at the ends of 800 neurons, in each of 1,000 leaves."""
    tree = [*[["number", 0, (k / 1000.0).hex()] for k in range(999, 0, -1)], *[LEAF] * 1_000]
    return packed(smooth([layer(400, 4), layer(400, 400), layer(1, 400)], "tanh", tree, at_least=BIG))


def smooth_and_deep() -> bytes:
    return packed(smooth([layer(1, 1)] * 1_200, "sigmoid", [LEAF], at_least=BIG))


def probability_of_a_witness() -> bytes:
    """exp of the scores of 10,000 classes, which are numbers of 10,000 bits."""
    data = about(reals(1), [layer(1, 1, BIG, TINY), layer(1, 1, BIG, TINY), layer(10_000, 1, TINY, TINY)], [LEAF])
    data["question"]["target"] = {"class": 0, "label": "x", "log_odds": (1e4).hex(), "margin": ZERO}
    data["proof"]["planes"] = []
    data["witness"], data["claim"] = [TINY], {"lower": ZERO, "upper": ONE}
    data["proof"]["grid"] = 1_074
    return packed(data)


def rules_that_follow_from_each_other() -> bytes:
    """Each of 5,000 clauses narrows what the next one is about, in each of 1,000 leaves, whose splits narrow nothing."""
    count = 2_000
    literal = [
        {"numbers": [[f"x{k}", 1], [f"x{k + 1}", -1]], "options": [], "constant": [0, 1]} for k in range(count - 1)
    ]
    rules = [{"kind": "clause", "any": [one]} for one in literal[::-1]]
    rules.append({"kind": "clause", "any": [{"numbers": [["x0", -2]], "options": [], "constant": [1, 1]}]})
    tree = [*[["number", k, ZERO] for k in range(999)], *[LEAF] * 1_000]
    return packed(about(reals(count), [layer(1, count)], tree, constraints=rules))


def fewest_changes_of_many_features() -> bytes:
    count = 15_000
    rule = {"kind": "fewest_changes", "most": 7_000, "uncounted": []}
    tree = [["change", k] for k in range(5_000)] + [LEAF] * 5_001
    data = about(reals(count), [layer(1, count)], tree * 2, constraints=[rule], lower=ZERO, at_least=ZERO)
    data["witness"], data["claim"]["upper"] = [ZERO] * count, ONE
    return packed(data)


def _bent(activation: Any, end: float) -> bytes:
    """Thousands of neurons over wide intervals, with an activation whose bounds take series."""
    data = about(reals(9, end), [layer(3000, 9, ONE, TINY), layer(1, 3000)], [LEAF] * 8)
    data["question"]["model"] |= {"kind": "smooth", "activations": [activation]}
    return packed(data)


def normal_densities() -> bytes:
    return _bent("gelu", 1e300)


def roots_of_nothing() -> bytes:
    return _bent({"name": "power", "exponent": TINY}, 100.0)


def widest_error() -> bytes:
    """The columns of an autoencoder are passed on beside its neurons, layer after layer."""
    size = 300
    layers = [layer(1, size), *(layer(1, 1) for _ in range(12)), layer(size, 1)]
    data = about(reals(size), layers, [LEAF] * 8)
    data["question"]["model"] |= {"kind": "reconstruction", "norm": "l1", "at_most": ONE}
    return packed(data)


def deep_error() -> bytes:
    """The same behind one neuron, twenty times: far more numbers than there is text."""
    size = 400
    layers = [layer(1, size), *(layer(1, 1) for _ in range(20)), layer(size, 1)]
    data = about(reals(size), layers, [LEAF])
    data["question"]["model"] |= {"kind": "reconstruction", "norm": "linf", "at_most": ONE}
    return packed(data)


def witness_of_many_neurons() -> bytes:
    """A row at which each of many neurons has a value of its own; below the bound there is nothing to look at."""
    count = 60_000
    first = {"weight": [[ONE]] * count, "bias": [((k + 1) / count).hex() for k in range(count)]}
    data = about(reals(1), [first, layer(1, count)], [LEAF], lower=ZERO, at_least=ZERO)
    data["question"]["model"] |= {"kind": "smooth", "activations": ["gelu"]}
    data["witness"], data["claim"]["upper"] = [ZERO], ONE
    return packed(data)


def activations_neuron_by_neuron() -> bytes:
    count = 100_000
    data = about(reals(1), [layer(count, 1), layer(1, count)], [LEAF])
    elu = {"name": "elu", "alpha": ONE}
    data["question"]["model"] |= {"kind": "smooth", "activations": [[[elu, 1]] * count]}
    return packed(data)


BOMBS = [
    nested, empty_lists, spaces, relu_chain, relu_chain_again, number_chain, option_chain, wide, deep, deep_and_wide,
    square, many_features, many_ratios, many_options, coded_options, many_rows, many_constraints, many_transitions, odd_scales,
    many_leaves, long_name, many_models_of_many_depths, many_planes_of_many_classes, sides_of_many_numbers,
    contrasts_that_are_hard_to_meet, many_sets_of_many_cases, factors_without_end,
    equations_that_are_wide_networks, equations_that_are_deep_networks, smooth_and_wide, smooth_and_deep,
    probability_of_a_witness, rules_that_follow_from_each_other, fewest_changes_of_many_features,
    normal_densities, roots_of_nothing, widest_error, deep_error, witness_of_many_neurons, activations_neuron_by_neuron,
]  # fmt: skip

CHILD = """
import json, resource, sys, time
import ifonly
from fractions import Fraction
path, seconds = sys.argv[1], float(sys.argv[2])

def unit():
    begun = time.process_time()
    sum(Fraction(i * 3**40, 2**60 + i) > 1 for i in range(40_000))
    [list(range(i % 20)) for i in range(80_000)]
    return time.process_time() - begun

first = unit()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
time.monotonic = time.process_time
begun = time.process_time()
checked = ifonly.check(path, seconds=seconds)
took = time.process_time() - begun
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([checked.verdict, checked.failure, took, (after - before) / 1024, max(first, unit())]))
"""
"""Prints verdict, failure, seconds, MiB beyond what the program itself takes, and the seconds of a fixed piece of work
of the same kind. Its clock is that of the processor, and a slow processor is slow at that work as well, so that neither
other programs nor the machine matter."""
