"""Collections of certificates: time and size per person, for the shipped networks, and both checkers.

CPU time (process time), so that other programs do not count; node's from its own clock.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from rich.console import Console

import ifonly
from ifonly import Explainer, Query, datasets
from ifonly.certificate.collection import check_collection, entries_of
from ifonly.cli.certify_many import certify_many

MODULE = Path(ifonly.__file__).parent / "service" / "page" / "ifonly-check.mjs"
SCRIPT = """
import { readFileSync } from "node:fs";
import { check } from %s;
const seen = {}, begun = process.cpuUsage();
for (const path of process.argv.slice(1)) {
  const { verdict } = await check(new Uint8Array(readFileSync(path)));
  seen[verdict] = (seen[verdict] ?? 0) + 1;
}
const took = process.cpuUsage(begun);
console.log(JSON.stringify([(took.user + took.system) / 1e6, seen]));
"""


def run(rows: int, norm: str, console: Console) -> None:
    """Certify and check so many people of each data set in one file."""
    console.print("data set   rows  written ms  bytes/person  alone bytes  check ms  javascript ms  verdicts")
    for name in ("compas", "credit", "adult"):
        explainer, data = Explainer(datasets.network(name)), datasets.load(name)
        people = {i: data.row(i) for i in range(rows)}
        with tempfile.TemporaryDirectory() as folder:
            path, query = Path(folder) / "people.certs", Query(distance=norm)
            certify_many(explainer, {0: people[0]}, query, str(path), resume=False)  # prepares, and compiles
            path.unlink()
            begun = time.process_time()
            certify_many(explainer, people, query, str(path), resume=False)
            written = time.process_time() - begun
            begun = time.process_time()
            summary = check_collection(path)
            checked = time.process_time() - begun
            alone = [one.certificate.content for one in entries_of(path) if one.certificate is not None]
            script, theirs = _javascript(Path(folder), alone)
            size, single = path.stat().st_size / rows, sum(map(len, alone)) / len(alone)
        verdicts = {**summary.verdicts, **({"none": summary.refused} if summary.refused else {})}
        console.print(
            f"{name:<9} {rows:>5} {1e3 * written / rows:>11.1f} {size:>13,.0f} {single:>12,.0f} "
            f"{1e3 * checked / rows:>9.1f} {1e3 * script / rows:>14.1f}  {verdicts}, javascript {theirs}"
        )


def _javascript(folder: Path, contents: list[bytes]) -> tuple[float, dict[str, int]]:
    """CPU seconds of the second checker for these certificates, and its verdicts; nothing without node."""
    node = shutil.which("node")
    if node is None:
        return float("nan"), {}
    paths = [folder / f"{i}.cert" for i in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    words = [node, "--input-type=module", "-e", SCRIPT % json.dumps(MODULE.as_uri()), *map(str, paths)]
    seconds, seen = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return float(seconds), dict(seen)
