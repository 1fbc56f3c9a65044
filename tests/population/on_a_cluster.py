"""A run on a Ray cluster of two nodes, of which a worker is killed and then a node is taken away; or on Dask.

python on_a_cluster.py ray|dask TABLE OUTPUT      in a process of its own: clusters warn of much and start processes
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from ifonly import Query
from ifonly.engines import Dask, Ray
from ifonly.results import Progress
from population import streaming


def ray_workers() -> list[int]:
    """Processes that Ray has given work of ours to."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "cmdline").read_bytes().startswith(b"ray::_work"):
                found.append(int(place.name))
        except OSError:
            continue
    return found


def on_ray(table: str, output: str) -> None:
    os.environ["RAY_AUTH_MODE"] = "disabled"
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    other = cluster.add_node(num_cpus=1)
    done: list[str] = []

    def disturb(event: Progress) -> None:
        if event.finished > 300 and not done:
            workers = ray_workers()
            if workers:
                os.kill(workers[0], signal.SIGKILL)
                done.append("worker killed")
        elif event.finished > 900 and len(done) == 1:
            cluster.remove_node(other, allow_graceful=False)
            done.append("node removed")

    try:
        answered(Ray(cluster.address), table, output, disturb)
        print("; ".join(done), flush=True)
    finally:
        import ray

        ray.shutdown()
        cluster.shutdown()


def answered(engine: Any, table: str, output: str, listen: Any) -> None:
    streaming.small_parts()
    explainer = streaming.explainer().using(listen=listen)
    written = explainer.explain_to(output, table, Query(distance="l1"), keep=["Customer ID"], engine=engine)
    print(written.rows, flush=True)


def main(kind: str, table: str, output: str) -> None:
    if kind == "ray":
        on_ray(table, output)
    else:
        answered(Dask(), table, output, lambda event: None)


if __name__ == "__main__":
    main(*sys.argv[1:])
