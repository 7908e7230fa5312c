"""A Ray cluster of several nodes on this machine, in a separate process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from types import TracebackType
from typing import Self


class RayCluster:
    """Runs for the length of its `with` block; its nodes are processes on this machine."""

    def __init__(self, nodes: int = 2) -> None:
        self._nodes = nodes

    def __enter__(self) -> Self:
        self.folder = tempfile.mkdtemp(prefix="memeval-ray-")
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self._nodes), self.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        assert self.address, "the cluster did not start"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate("", timeout=120)
        shutil.rmtree(self.folder, ignore_errors=True)


def serve(nodes: int, folder: str) -> None:
    from ray.cluster_utils import Cluster

    # Each node has one CPU, and so one worker.
    head = {"num_cpus": 1, "include_dashboard": False, "temp_dir": folder}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(nodes - 1):
        cluster.add_node(num_cpus=1)

    sys.stdout.write(f"{cluster.address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    cluster.shutdown()


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
