"""The tests of the MIPs share modules with one another and with the oracles: both folders go on the path."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "oracles"), str(Path(__file__).resolve().parent)]
