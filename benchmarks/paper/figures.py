"""What each figure of the paper asks of whom.

The paper asks 500 (full setting, DiCE), 100 (diversity) or 50 (scalability) rows. Here the rows are fewer for who is
slow, so that the whole finishes in about 25 minutes on two idle cores; `--rows` asks everybody about as many as you
like. COMPAS has about 45 distinct rows that a network decides against; copies are not asked twice.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.asking.contestants import OURS
from benchmarks.asking.plan import DEPTHS, WIDTHS, Plan, specs
from benchmarks.subjects.data import PAPER

FIGURES = {
    "full": "Full setting: time and distance",
    "dice": "Against DiCE",
    "depth": "Growing depth",
    "width": "Growing width",
    "diversity": "Diverse sets",
    "sparsity": "Sparsity",
}
BUDGET = 5.0
QUICK_BUDGET = 2.0
DICE_BUDGET = 60.0
"""Seconds: DiCE's gradient descent takes longer than anybody else, and is let."""
GIVE_UP = 2
MIPS = ("mip-obj", "mip-exp")
SMTS = ("mip-sat", "mace")
DICE = ("dice-gradient",)
NORMS = ("l0", "l1", "l2", "linf")
SHALLOW = tuple(f"1x{width}" for width in range(20, 341, 40))
MIXTURES = ("l0", "0.8*l0 + 0.2*l1", "0.5*l0 + 0.5*l1", "0.2*l0 + 0.8*l1", "0.05*l0 + 0.95*l1", "l1")
SIZES = tuple(range(2, 11))


def suite(figure: str) -> str:
    """The name of a figure's CSV file."""
    return f"paper_{figure}"


def plans(figure: str, *, quick: bool = False, rows: int | None = None) -> list[Plan]:
    """Everything that a figure asks; `rows` overrides how many rows everybody is asked about."""
    base = Plan(suite=suite(figure), specs=(), way="one", give_up=GIVE_UP)
    asked = _quick(figure, base) if quick else _whole(figure, base)
    return [replace(plan, rows=rows) for plan in asked] if rows else asked


def _whole(figure: str, base: Plan) -> list[Plan]:
    match figure:
        case "full":
            base = replace(base, specs=specs(PAPER, ["2x10"], ["raw"]), norms=NORMS)
            return [
                replace(base, methods=(OURS, *MIPS), rows=50),
                replace(base, methods=SMTS, rows=10),
            ]
        case "dice":
            base = replace(base, specs=specs(PAPER, ["2x10"]))
            return [replace(base, methods=(OURS, "mip-obj"), rows=50), _dice(base, 10)]
        case "depth":
            return _ladder(base, DEPTHS, DEPTHS[::4])
        case "width":
            return _ladder(base, SHALLOW, SHALLOW[::4]) + _ladder(base, WIDTHS, WIDTHS[::4])
        case "diversity":
            base = replace(base, specs=specs(["compas"], ["2x10"]), sizes=SIZES)
            return [replace(base, methods=(OURS,), rows=45), _dice(base, 2)]
        case "sparsity":
            base = replace(base, specs=specs(PAPER, ["2x10"], ["raw"]), norms=MIXTURES)
            return [replace(base, methods=(OURS,), rows=50), replace(base, methods=("mip-obj",), rows=10)]
        case _:
            raise ValueError(f"There is no figure '{figure}'.")


def _ladder(base: Plan, archs: tuple[str, ...], few: tuple[str, ...]) -> list[Plan]:
    """Growing networks: ours on all of them, the others on fewer rows, DiCE on fewer networks too."""
    base = replace(base, specs=specs(PAPER, archs), ladder=True)
    return [
        replace(base, methods=(OURS,), rows=20, ladder=False),
        replace(base, methods=MIPS, rows=3),
        replace(base, methods=SMTS, rows=2),
        replace(_dice(base, 2), specs=specs(PAPER, few), ladder=False),
    ]


def _dice(base: Plan, rows: int) -> Plan:
    return replace(base, methods=DICE, rows=rows, budget=DICE_BUDGET)


def _quick(figure: str, base: Plan) -> list[Plan]:
    match figure:
        case "full":
            base = replace(base, specs=specs(PAPER, ["2x10"], ["raw"]), norms=NORMS)
            return [replace(base, methods=(OURS, *MIPS), rows=5), replace(base, methods=SMTS, rows=2)]
        case "dice":
            base = replace(base, specs=specs(PAPER, ["2x10"]))
            return [replace(base, methods=(OURS, "mip-obj"), rows=5), _dice(base, 1)]
        case "depth" | "width":
            archs = ("1x10", "3x10", "5x10") if figure == "depth" else ("1x20", "1x60", "1x100")
            base = replace(base, specs=specs(["compas"], archs), ladder=True)
            return [
                replace(base, methods=(OURS, *MIPS), rows=3),
                replace(base, methods=SMTS, rows=2),
                replace(_dice(base, 1), specs=base.specs[:1]),
            ]
        case "diversity":
            base = replace(base, specs=specs(["compas"], ["2x10"]), sizes=(2, 4, 6))
            return [replace(base, methods=(OURS,), rows=5), _dice(base, 1)]
        case "sparsity":
            base = replace(base, specs=specs(PAPER, ["2x10"], ["raw"]), norms=MIXTURES)
            return [replace(base, methods=(OURS,), rows=5)]
        case _:
            raise ValueError(f"There is no figure '{figure}'.")
