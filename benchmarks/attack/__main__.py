"""The command line: run for a while, say what came of it, make what fails small."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.attack.decisions import missing_library
from benchmarks.attack.kinds import KINDS, NEEDS
from benchmarks.attack.shrink import fault_kind, shrunk
from benchmarks.attack.work import Worker, drawn

CASE_SECONDS = 20.0
WARM_SECONDS = 900.0
"""To compile whatever is compiled at the first question."""
SHOWN = 12
"""Different failures that are made small and printed."""
PRINTED = 2000
"""Characters of a case; its file has all of it."""


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools/attack", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to attack")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=sorted(KINDS), default=sorted(KINDS), metavar="KIND")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--cases", type=int, help="stop after so many cases per kind")
    parser.add_argument("--case-seconds", type=float, default=CASE_SECONDS, help="longer than this is a hang")
    parser.add_argument("--shrink-seconds", type=float, default=20.0, help="to make one failing case small")
    parser.add_argument("--case", type=Path, help="replay the case in this file")
    parser.add_argument("--keep", type=Path, default=Path("results/attack"), help="folder for failing cases")
    parser.add_argument("--plant", default="", help="plant a known fault in the library first (see planted.py)")
    parser.add_argument("--no-warm", action="store_true", help="do not compile first")
    options = parser.parse_args(words)
    if options.case:
        return replay(options)
    options.only = present(options.only)
    found = Attack(options).run()
    return 1 if found else 0


def present(kinds: list[str]) -> list[str]:
    """The kinds whose libraries are installed; says which are not."""
    found = []
    for kind in kinds:
        with_missing = missing_library(NEEDS.get(kind, ()))
        if with_missing:
            print(f"{kind} is skipped: {with_missing} is not installed")
        else:
            found.append(kind)
    return found


def replay(options: Any) -> int:
    worker = Worker(options.plant)
    worker.ask({"case": {"kind": "warm"}}, WARM_SECONDS)
    told = worker.ask({"case": json.loads(options.case.read_text())}, options.case_seconds)
    worker.stop()
    print(told["status"], *told["faults"], sep="\n  ")
    return 1 if told["faults"] else 0


class Attack:
    """One run: cases by turns of their kind, on several workers."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.numbers = dict.fromkeys(options.only, 0)
        self.counts: dict[str, Counter[str]] = {kind: Counter() for kind in options.only}
        self.spent: Counter[str] = Counter()
        self.failed: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def run(self) -> int:
        if not self.options.no_warm:
            print("compiling", flush=True)
            warmed = Worker()
            told = warmed.ask({"case": {"kind": "warm"}}, WARM_SECONDS)
            warmed.stop()
            if told["faults"]:
                print("the plainest question fails:", *told["faults"], sep="\n  ")
                return 1
        begun = last = time.monotonic()
        workers = [Worker(self.options.plant) for _ in range(self.options.jobs)]
        end = begun + self.options.seconds
        try:
            while True:
                for worker in workers:
                    self.turn(worker, time.monotonic() < end)
                if all(worker.busy is None for worker in workers):
                    break
                if time.monotonic() - last > 10:
                    last = time.monotonic()
                    print(
                        f"{last - begun:6.0f} s  {sum(self.numbers.values()):,} cases, {len(self.failed)} failed",
                        flush=True,
                    )
                time.sleep(0.002)
        finally:
            for worker in workers:
                worker.stop()
        self.table()
        self.explain()
        return len(self.failed)

    def turn(self, worker: Worker, more: bool) -> None:
        """Take what a worker has done, and give it something else to do."""
        if worker.busy is not None:
            asked, since = worker.busy, worker.since
            told = worker.outcome(self.options.case_seconds)
            if told is None:
                return
            self.spent[asked["kind"]] += int(1000 * min(1.0, time.monotonic() - since))
            self.counts[asked["kind"]][told["status"]] += 1
            if told["faults"]:
                self.failed.append((asked, told))
                print(f"failed: {asked['kind']} {asked['number']}: {told['faults'][0]}", flush=True)
        left = [k for k in self.numbers if self.options.cases is None or self.numbers[k] < self.options.cases]
        if more and left:
            kind = min(left, key=lambda k: (self.spent[k], self.numbers[k]))  # about the same time for every kind
            self.spent[kind] += 1
            worker.give({"kind": kind, "seed": self.options.seed, "number": self.numbers[kind]})
            self.numbers[kind] += 1

    def table(self) -> None:
        bad = Counter(asked["kind"] for asked, _ in self.failed)
        print(f"\n{'kind':<14}{'cases':>9}{'failed':>8}   endings")
        for kind, counts in self.counts.items():
            endings = ", ".join(f"{name} {n:,}" for name, n in counts.most_common())
            print(f"{kind:<14}{sum(counts.values()):>9,}{bad[kind]:>8,}   {endings}")
        print(f"{'all':<14}{sum(self.numbers.values()):>9,}{len(self.failed):>8,}")

    def explain(self) -> None:
        """Each sort of failure once, as small as it gets, with how to run it again."""
        sorts: dict[tuple[str, str], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
        for asked, told in self.failed:
            sorts.setdefault((asked["kind"], fault_kind(told)), []).append((asked, told))
        worker = Worker(self.options.plant)
        for (kind, _), members in list(sorts.items())[:SHOWN]:
            asked, told = members[0]
            case = drawn(kind, asked["seed"], asked["number"])
            seconds = self.options.case_seconds

            def again(smaller: dict[str, Any], seconds: float = seconds) -> dict[str, Any]:
                return worker.ask({"case": smaller}, seconds)

            small = shrunk(case, told, again, self.options.shrink_seconds)
            self.options.keep.mkdir(parents=True, exist_ok=True)
            file = self.options.keep / f"{kind}-{asked['seed']}-{asked['number']}.json"
            file.write_text(json.dumps(small, indent=1) + "\n")
            print(f"\n{kind} {asked['number']} ({len(members)} like it): {told['faults'][0]}")
            text = json.dumps(small)
            print(text if len(text) < PRINTED else text[:PRINTED] + " ...")
            print(f"again: tools/attack --case {file}")
        worker.stop()
        if len(sorts) > SHOWN:
            print(f"\nand {len(sorts) - SHOWN} more sorts of failure")


if __name__ == "__main__":
    sys.exit(main())
