"""Random questions as people ask them, each with its certificates and what `explain` answers.

    IFONLY_CERTIFICATES=1000 python -m pytest --all -n 0 -q -s tests/certificate/test_answers.py

prints how many of each kind are VALID, how many are within 1e-6 of the answer, and why the others are not
(IFONLY_FIRST: from this number on).
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ifonly import (
    AcceptedBySome,
    Answer,
    Diversity,
    Explainer,
    IfonlyError,
    Limits,
    Network,
    NoneExists,
    ProbabilityTarget,
    Query,
    certify,
)
from ifonly.causes import ModelEquation
from ifonly.certificate.format import Certificate
from ifonly.certifying import certify_diverse, certify_none, certify_reason, certify_recourse
from ifonly.model import network_model
from ifonly.plausibility import reconstructed
from ifonly.problem import Question
from ifonly.problem.sufficiency import Sufficiency

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "oracles"), str(Path(__file__).resolve().parents[2])]

from random_causes import causal_case  # noqa: E402
from random_chains import random_chain  # noqa: E402
from random_problems import random_problem  # noqa: E402
from random_rules import random_ruled_problem  # noqa: E402
from random_trees import random_tree_problem  # noqa: E402
from test_softmax import random_network  # noqa: E402
from test_sufficient import random_case  # noqa: E402

from certificate.random_questions import other_smooth, smooth  # noqa: E402
from test_reasons import busy  # noqa: E402

LIMITS = Limits(seconds=60.0)


@dataclass(frozen=True)
class Asked:
    """Certificates, and how far away the nearest row of each is (infinity: none exists; None: nothing to compare)."""

    certificates: tuple[Certificate, ...]
    distances: tuple[float | None, ...]


def _question(seed: int) -> tuple[Question, Any]:
    match seed % 3:
        case 0:
            return random_problem(seed, finite=True)
        case 1:
            return random_ruled_problem(seed, finite=True)
    return random_tree_problem(seed, finite=True)


def several_models(seed: int, *, some: bool = False, curved: Callable[..., Any] | None = None) -> Asked:
    """`curved`: makes the first one a smooth network."""
    problem = random_chain(seed, ruled=seed % 3 == 2, reals=seed % 5 == 4)
    question, others = problem.question, problem.others
    if curved is not None:
        network = question.model.function.as_network()
        if network is None or len(network.layers) == 1:
            raise IfonlyError("not drawn")
        question, _ = curved((question, problem.points), seed)
    if some:
        others = (AcceptedBySome(1, others),)  # type: ignore[assignment]
    query = _query(question, others)
    explainer, row = Explainer(question.model).using(limits=LIMITS), question.schema.row(problem.points[0])
    certificate = certify(explainer, row, query)
    return Asked((certificate,), (_distance(explainer.explain(row, query)),))


def reconstructed_rows(seed: int) -> Asked:
    """Rows that an autoencoder at random, which returns most columns nearly as they are, returns nearly as they were."""
    question, points = random_problem(seed, finite=seed % 2 == 0) if seed % 3 else _question(seed)
    rng, schema = np.random.default_rng(seed), question.schema
    size, x = len(schema.columns), schema.encode(schema.sample(40, np.random.default_rng(seed)))
    sizes = [size, *rng.integers(1, size + 2, size=seed % 3).tolist(), size]
    layers = []
    for before, after in itertools.pairwise(sizes):
        weight = 0.9 * np.eye(after, before) + rng.normal(scale=0.1, size=(after, before))
        layers.append((weight, rng.normal(scale=0.1, size=after)))
    own = network_model(Network.of(layers), schema, regression=True)
    norm: Any = ("l1", "linf")[seed // 3 % 2]
    off = np.abs(own.function.scores(x) - x)
    errors = off.sum(axis=1) if norm == "l1" else off.max(axis=1)
    limit = reconstructed(own, schema, at_most=float(np.quantile(errors, rng.uniform(0.2, 0.9))), norm=norm)
    query = _query(question, (limit,))
    explainer, row = Explainer(question.model).using(limits=LIMITS), schema.row(points[0])
    certificate = certify(explainer, row, query)
    return Asked((certificate,), (_distance(explainer.explain(row, query)),))


def fewest_first(seed: int) -> Asked:
    question, points = _question(seed)
    explainer, row = Explainer(question.model).using(limits=LIMITS), question.schema.row(points[0])
    query = _query(question, fewest_first=True)
    certificate = certify(explainer, row, query)
    return Asked((certificate,), (_distance(explainer.explain(row, query)),))


def diverse(seed: int) -> Asked:
    question, points = _question(seed)
    explainer, row = Explainer(question.model).using(limits=LIMITS), question.schema.row(points[0])
    differ: Any = ("distance", "features", "values")[seed // 3 % 3]
    how = Diversity(3, apart=0.1, differ=differ, apart_distance="l1" if differ == "distance" else None)
    query = _query(question)
    made = certify_diverse(explainer, row, how, query)
    found = explainer.explain_diverse(row, how, query)
    ended = [found.ended] if isinstance(found.ended, NoneExists) else []
    return Asked(made, tuple(map(_distance, (*found, *ended))))


def probability(seed: int) -> Asked:
    """Of one of three or four classes."""
    question, points = random_problem(seed, finite=seed % 3 > 0)
    rng = np.random.default_rng([seed, 32])
    model, _ = random_network(rng, question.schema)
    label, share = model.classes[int(rng.integers(len(model.classes)))], float(rng.uniform(0.3, 0.8))
    query = _query(replace(question, model=model, target=ProbabilityTarget(label, at_least=share)))
    explainer, row = Explainer(model).using(limits=LIMITS), question.schema.row(points[0])
    certificate = certify(explainer, row, query)
    return Asked((certificate,), (_distance(explainer.explain(row, query)),))


def reason(seed: int) -> Asked:
    case = random_case(seed)
    if case is None:
        raise IfonlyError("not drawn")
    asked = Sufficiency(target=case.target, within=case.within, prefer=case.prefer)
    explainer = Explainer(case.model).using(limits=LIMITS)
    return Asked((certify_reason(explainer, case.model.schema.row(case.point), asked),), (None,))


def none_exists(seed: int) -> Asked:
    """Why there is none: what is blamed leaves no row, and the nearest row of each relaxation."""
    question, row, constraints = busy(seed, finite=True)
    explainer, query = Explainer(question.model).using(limits=LIMITS), _query(question, tuple(constraints))
    answer = explainer.explain(row, query)
    if not isinstance(answer, NoneExists) or answer.reasons is None:
        raise IfonlyError("not drawn")
    made = certify_none(explainer, row, query)
    distances = [one.distance if one.proven else None for one in answer.reasons.relaxations]
    return Asked(made, (math.inf, *distances, *[None] * (len(made) - 1 - len(distances))))


def recourse(seed: int, *, trees: bool = False, networks: bool = False) -> Asked:
    """Linear equations, tables and trees; `trees`: they decide, too; `networks`: some equation is a network."""
    case = causal_case(seed, 4, trees=trees, kinds=3 + seed % 2)
    if networks and not any(_is_network(one) for one in case.causes.equations.values()):
        raise IfonlyError("not drawn")
    names = case.model.classes
    decided = case.model.decide(case.model.scores(case.schema.read(case.person)[None, :]))[0]
    query = Query(target=names[1 - decided], distance=case.distance, constraints=case.constraints)
    if seed % 5 == 0:
        query = replace(query, constraints=(*query.constraints, "at most 2 changes"))
    explainer = Explainer(case.model).using(limits=LIMITS, reasons=False)
    certificate = certify_recourse(explainer, case.person, case.causes, query)
    return Asked((certificate,), (_distance(explainer.recourse(case.person, case.causes, query).answer),))


def _is_network(equation: Any) -> bool:
    return isinstance(equation, ModelEquation) and isinstance(equation.model, Network)


def _distance(answer: Answer) -> float | None:
    """Of the row that is named. Rows on the margin are decided by exact arithmetic: nothing to compare with."""
    return answer.upper if answer.stop is None or answer.stop.is_limit else None


def _query(question: Question, others: tuple[Any, ...] = (), **more: Any) -> Query:
    constraints = (*question.constraints, *others)
    return Query(target=question.target, distance=question.distance, constraints=constraints, **more)


KINDS: dict[str, Callable[[int], Asked]] = {
    "several models": several_models,
    "some of several models": lambda seed: several_models(seed, some=True),
    "a smooth one of several models": lambda seed: several_models(seed, curved=smooth),
    "another smooth one of several models": lambda seed: several_models(seed, curved=other_smooth),
    "an autoencoder's error": reconstructed_rows,
    "fewest changes first": fewest_first,
    "diverse sets": diverse,
    "probability of one of several": probability,
    "sufficient reasons": reason,
    "why there is none": none_exists,
    "recourse": recourse,
    "recourse where trees decide": lambda seed: recourse(seed, trees=True),
    "recourse through networks": lambda seed: recourse(seed, networks=True),
}


def asked(kind: str, seeds: range) -> Iterator[tuple[int, Asked | str]]:
    """What can be asked; of what cannot, why."""
    for seed in seeds:
        try:
            yield seed, KINDS[kind](seed)
        except IfonlyError as error:
            yield seed, str(error).split("\n")[0][:120]
