"""These tests share modules with one another and with the oracles: both folders, and the benchmarks, go on the path."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "oracles"), str(HERE.parents[1])]
