"""The worker's side of a process that computes units of a sweep.

It is forked by a process that is itself forked before the sweep starts any thread or event loop. So
each worker starts with all cells of the plan in its memory, regardless of libraries loaded later,
and a killed worker can be replaced at any time. (A `ProcessPoolExecutor` forks from the process
that uses it, and gives up all of its processes if one is killed.)
"""

import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from memeval.pipeline.open.cell import Cell
from memeval.process import started
from memeval.runs.compute.computing import END, ENDING_S, CommandServer, UnitComputer
from memeval.runs.interrupt import JOB_SIGNALS
from memeval.runs.loop import run_loop


def become_forker(control: socket.socket, cells: Mapping[int, Cell], callers: int) -> NoReturn:
    """Forks a worker for each connection that it receives, until the other side closes.

    It does not act on signals: the process that the user started does.
    """
    # This descriptor is inherited: a signal that comes here would wake the parent's event loop.
    signal.set_wakeup_fd(-1)
    _outlive_signals()
    # Only the processor time of children that were waited for counts as this command's.
    signal.signal(signal.SIGCHLD, _wait_for_ended)
    while True:
        descriptors: list[int] = []
        with suppress(OSError):
            _, descriptors, *_ = socket.recv_fds(control, 1, 1)

        if not descriptors:
            _wait_for_ended()
            os._exit(0)

        # If no process can be forked, the connection closes, as if a worker had died. An error here
        # would end this copy of the command as the command itself ends.
        with suppress(OSError):
            if os.fork() == 0:
                control.close()  # else a worker would keep it open after the forker's death
                _outlive_signals()
                # A system may start programs, and needs to see how they end.
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _become_worker(Connection(descriptors[0]), cells, callers)

        os.close(descriptors[0])


def _outlive_signals() -> None:
    # A terminal sends Ctrl-C and SIGHUP to every process of the group, a batch system the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A handler, and not SIG_IGN, which programs started by a system would inherit.
    for number in (signal.SIGTERM, signal.SIGHUP, *JOB_SIGNALS):
        signal.signal(number, lambda *_: None)


def _wait_for_ended(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become_worker(connection: Connection, cells: Mapping[int, Cell], callers: int) -> NoReturn:
    """Computes units until the other side sends `END` or closes."""

    def send(message: Any) -> None:
        connection.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))

    status = 1
    with suppress(BaseException):  # the other side sees that this process has ended
        server = CommandServer(UnitComputer(cells, callers), send)
        # In a thread, which sees `END` even while a system blocks the event loop.
        threading.Thread(target=_read, args=(connection, server), daemon=True).start()
        run_loop(server.serve())
        status = 0

    with suppress(BaseException):
        sys.stdout.flush()
        started.end_all()

    os._exit(status)


def _read(connection: Connection, server: CommandServer) -> None:
    """Passes commands on; ends the process `ENDING_S` after `END`, even if a system hangs."""
    command: Any
    while True:
        try:
            command = pickle.loads(connection.recv_bytes())
        except (OSError, EOFError):
            command = END

        server.enqueue(command)
        if command is END:
            break

    time.sleep(ENDING_S)
    os._exit(1)
