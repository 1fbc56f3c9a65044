"""A clean big-M MIP of the same question: the yardstick of the benchmarks and an oracle of the tests."""

from benchmarks.mip.method import BigM, available

__all__ = ["BigM", "available"]
