"""Messy synthetic applications: skewed money, rare options, missing values in training, interactions, noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ifonly import Binary, Categorical, Integer, Schema

JOBS = ["clerk", "cook", "driver", "gardener (f/m)", "nurse", "none"]
REGIONS = ["north", "south", "east", "far west"]
NUMBERS = ["age", "income", "debt", "tenure"]
CHOICES = ["job", "region", "owner"]


def schema(encoding: Any = "onehot") -> Schema:
    """What people may say of themselves; money in steps of 50."""
    return Schema(
        [
            Integer("age", 18, 80),
            Integer("income", 0, 15000, step=50),
            Integer("debt", 0, 8000, step=50),
            Integer("tenure", 0, 120),
            Categorical("job", JOBS, encoding=encoding),
            Categorical("region", REGIONS, encoding=encoding),
            Binary("owner"),
        ]
    )


@dataclass(frozen=True, eq=False)
class Applications:
    """Training rows, with and without holes, their outcomes, and people to ask about."""

    table: pd.DataFrame
    holes: pd.DataFrame
    labels: Any
    grades: Any

    @property
    def codes(self) -> pd.DataFrame:
        """The table with numbers for options."""
        return self.table.assign(
            job=self.table.job.map(JOBS.index), region=self.table.region.map(REGIONS.index), owner=self.table.owner * 1
        )


def applications(rows: int = 1500, seed: int = 0) -> Applications:
    rng = np.random.default_rng(seed)
    income = np.clip(50 * np.round(np.exp(rng.normal(7.7, 0.6, rows)) / 50), 0, 15000).astype(int)
    table = pd.DataFrame(
        {
            "age": np.clip(rng.normal(42, 14, rows), 18, 80).astype(int),
            "income": income,
            "debt": np.clip(50 * np.round(rng.exponential(900, rows) / 50), 0, 8000).astype(int),
            "tenure": np.clip(rng.exponential(35, rows), 0, 120).astype(int),
            "job": rng.choice(JOBS, rows, p=[0.3, 0.2, 0.2, 0.05, 0.15, 0.1]),
            "region": rng.choice(REGIONS, rows),
            "owner": rng.random(rows) < 0.4,
        }
    )
    merit = np.log1p(table.income) - 0.03 * np.sqrt(table.debt) + 0.008 * table.tenure + 0.5 * table.owner
    merit += 0.4 * (table.job == "nurse") - 0.8 * (table.job == "none") + rng.normal(0, 0.4, rows)
    holes = table.assign(income=table.income.astype(float), debt=table.debt.astype(float))
    for name in ("income", "debt"):
        holes.loc[rng.random(rows) < 0.08, name] = np.nan
    labels = (merit > np.quantile(merit, 0.45)).to_numpy().astype(int)
    return Applications(table, holes, labels, np.digitize(merit, np.quantile(merit, [0.35, 0.7])))
