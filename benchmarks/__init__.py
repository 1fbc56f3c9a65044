"""Benchmarks: `python -m benchmarks --help`. What they measure is compiled, unless a suite says otherwise."""

import os

os.environ.setdefault("IFONLY_COMPILE", "first")
