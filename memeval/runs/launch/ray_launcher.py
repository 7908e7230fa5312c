"""`hydra/launcher=ray`: the cases of a sweep are spread over the workers of a Ray cluster."""

import os
import secrets
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from memeval.config.paths import data_dir
from memeval.errors import UserError, require_library
from memeval.pipeline.open.called import limits_of
from memeval.pipeline.open.cell import Cell
from memeval.process.environment import ENVIRONMENT, count_cores, set_environment
from memeval.process.root import project_root
from memeval.runs.plan import Plan

if TYPE_CHECKING:
    from memeval.runs.compute.ray_workers import RayWorkers

PREFIXES = ("MEMEVAL_", "OPENAI_", "PG", "AWS_", "FSSPEC_", "MEM0_", "LETTA_")
"""Prefixes of the environment variables that each worker gets."""
ADDRESS_HINT = "for example:  hydra.launcher.address=10.0.0.1:6379  (or auto)"
CONNECT_S = 5.0
"""Timeout of a first connection to the address: Ray itself would take minutes to fail."""


def start_ray(
    plan: Plan,
    *,
    address: str | None,
    workers: int | None,
    cases: int | None,
    variables: Sequence[str],
) -> "RayWorkers | None":
    """The workers of a plan; None if nothing is left for them.

    Raises `UserError` if the cluster can't be used, `WorldError` if none can be started.
    """
    cells, calls_here = {}, False
    for planned in plan.open_cells:
        if planned.may_compute_elsewhere:
            cells[planned.number] = planned.cell
        elif planned.reach:
            calls_here = True

    if not cells:
        return None

    _check_usable(address, cells.values())
    if address is None:
        _keep_to_this_machine()

    from memeval.runs.compute.ray_workers import Cluster, RaySettings, RayWorkers, several_nodes

    configs = [asdict(cell.config) for cell in cells.values()]
    settings = RaySettings(
        address=address,
        workers=workers,
        cases=cases,
        variables=_worker_variables(configs, variables),
    )
    cluster = Cluster(settings, count_cores())
    if cluster.nodes > 1 and any(cell.config.store.url is None for cell in cells.values()):
        cluster.close()
        raise several_nodes()

    return RayWorkers(cluster, cells, settings, calls_here=calls_here)


def _keep_to_this_machine() -> None:
    """Makes a cluster that memeval starts listen only at 127.0.0.1, and require a token.

    Ray reads both from the environment, the first when it is imported: set them before that.
    """
    # Without this, Ray listens at every address of the machine, where anyone can run code.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ["RAY_AUTH_MODE"] = "token"
    if not os.environ.get("RAY_AUTH_TOKEN_PATH"):
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _check_usable(address: str | None, cells: Iterable[Cell]) -> None:
    """Sets Ray's environment. Raises `UserError` if Ray can't be used for the cells."""
    for cell in cells:
        if limits_of(cell.config).any:
            raise UserError(
                "a budget can't be enforced with hydra/launcher=ray: its workers make calls "
                "independently",
                "leave budget.* out, or use:  hydra/launcher=memeval",
            )

    _check_address(address)
    set_environment()
    require_library("ray", "hydra/launcher=ray needs Ray", "ray")


def _check_address(address: str | None) -> None:
    """Raises `UserError` for an invalid address, or if nothing answers there."""
    if address in (None, "auto"):
        return

    host, _, port = str(address).rpartition(":")
    if not host or "/" in host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UserError(
            f"hydra.launcher.address={address} must be HOST:PORT of a Ray cluster's head, or auto",
            ADDRESS_HINT,
        )

    try:
        # IPv6 addresses are in brackets, which a socket does not accept.
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S).close()
    except OSError as error:
        raise UserError(
            f"the Ray cluster at {address} can't be reached: {error.strerror or error}",
            "start it:  ray start --head --port 6379",
            "or leave hydra.launcher.address out, for a cluster on this machine",
        ) from error


def _worker_variables(configs: Sequence[Mapping[str, Any]], more: Sequence[str]) -> dict[str, str]:
    """Variables of this process's environment that each worker needs."""
    for name in more:
        if name not in os.environ:
            raise UserError(f"hydra.launcher.variables: the environment variable {name} is not set")

    names = {name for name in os.environ if name.startswith(PREFIXES)}
    names |= {*more, *ENVIRONMENT}
    for config in configs:
        names |= set(_named_variables(config))

    variables = {name: os.environ[name] for name in names if name in os.environ}
    # Absolute: a worker's process has another working directory.
    variables["MEMEVAL_HOME"] = str(project_root())
    variables["MEMEVAL_DATA_DIR"] = str(data_dir())

    return variables


def _named_variables(settings: Mapping[str, Any]) -> Iterator[str]:
    """The variables that settings name for keys, tokens and headers."""
    for name, value in settings.items():
        if name == "headers" and isinstance(value, Mapping):
            yield from map(str, value.values())
        elif isinstance(value, Mapping):
            yield from _named_variables(value)
        elif name.endswith("_env") and isinstance(value, str):
            yield value
