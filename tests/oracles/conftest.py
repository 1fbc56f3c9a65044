"""The oracles share modules with one another and with the benchmarks: both folders go on the path."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]
