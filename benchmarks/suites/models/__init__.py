"""`models`: the models that people bring, one by one: supported and verified, or refused and what to do instead."""

from benchmarks.suites.models.judge import command

__all__ = ["command"]
