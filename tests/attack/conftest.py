"""The attacker is part of the benchmarks, a package at the root of the repository."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
