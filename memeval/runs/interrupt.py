"""Ctrl-C, SIGTERM, which batch systems and containers send, and SIGHUP of a closed terminal: the
first one waits for model calls in progress, reports the wait, and then ends the run cleanly; the
second one ends the process immediately.

Nothing of asyncio is imported here: it takes longer to load than `--help` may take.
"""

import atexit
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

KEYS_THREAD = "memeval-keys"
"""Name of the thread that waits for Ctrl-C; it holds no lock."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
JOB_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2)
"""submitit receives one of them when its job runs out of time or is preempted."""
TOGETHER_S = 1.0
"""SIGTERM and SIGHUP count once within this time: `timeout`, batch systems and shells send them to
the process and to its group.
"""
BLOCKED_S = 0.3
"""Time limit for the main thread to act on a Ctrl-C before another thread does it."""
LEAVING_S = 3.0
"""Maximum time for which leftover threads of other code keep a finished process alive."""
KEEP_NOTHING = frozenset(
    "check claims compare explain export history init label lint list pack register show table ui "
    "unpack verify".split()
)
"""Commands without work that they could continue."""
DISCARD = "memeval-discard"
"""Name of the threads that delete a system's data on a server: `leave` waits for them."""


class _Keys:
    """Counts presses of Ctrl-C and signals, and holds the work to be cancelled."""

    def __init__(self) -> None:
        self.pressed = 0
        self.handled = 0
        self.first = signal.SIGINT
        """The signal that came first."""
        self._handled_at = self._pressed_at = float("-inf")
        self.cancel: Callable[[], object] | None = None

    def handle(self, number: int, frame: object) -> None:
        """The signal handler, which runs in the main thread."""
        now, before = time.monotonic(), self._handled_at
        self._handled_at = now
        if number != signal.SIGINT and now - before < TOGETHER_S:
            return

        self.handled += 1
        if self.handled == 1:
            self.first = signal.Signals(number)
        if self.handled > 1:
            end_now()
        if self.cancel is None:
            raise KeyboardInterrupt  # no event loop runs: Python's default

        report_waiting()
        self.cancel()

    def watch(self, reader: int) -> None:
        """Runs in its own thread: acts if the main thread can run no handler at the moment."""
        # Python runs handlers between two bytecode instructions. A call into C may delay them for
        # minutes, but the number of the signal is written to the pipe immediately.
        while numbers := os.read(reader, 64):
            for number in numbers:
                now, before = time.monotonic(), self._pressed_at
                if number not in SIGNALS:
                    continue

                self._pressed_at = now
                if number != signal.SIGINT and now - before < TOGETHER_S:
                    continue

                self.pressed += 1
                pressed = self.pressed
                time.sleep(BLOCKED_S)
                if self.handled >= pressed:
                    continue

                if pressed > 1:
                    end_now()

                report_waiting()

        os.close(reader)


_keys: _Keys | None = None
_thread_state = threading.local()


class StopSwitch:
    """Ends the work of one thread from another one, as a first Ctrl-C does."""

    def __init__(self) -> None:
        self.is_stopped = False
        self._cancel: Callable[[], object] | None = None
        self._lock = threading.Lock()

    @contextmanager
    def for_this_thread(self) -> Iterator[None]:
        """Inside the block, loops that this thread runs end at `stop`."""
        _thread_state.switch = self
        try:
            yield
        finally:
            del _thread_state.switch

    def watch(self, cancel: Callable[[], object] | None) -> None:
        """Sets the callback that ends the current loop, and calls it now after `stop`."""
        with self._lock:
            self._cancel = cancel
            if self.is_stopped and cancel is not None:
                cancel()

    def stop(self) -> None:
        """Ends the loop once its model calls in progress have ended."""
        with self._lock:
            self.is_stopped = True
            if self._cancel is not None:
                self._cancel()


@contextmanager
def stopping(by_keys: Callable[[], object], by_switch: Callable[[], object]) -> Iterator[None]:
    """Inside the block, a first Ctrl-C calls `by_keys`, this thread's switch `by_switch`."""
    switch: StopSwitch | None = getattr(_thread_state, "switch", None)
    if _keys is not None:
        _keys.cancel = by_keys
    if switch is not None:
        switch.watch(by_switch)

    try:
        yield
    finally:
        if _keys is not None:
            _keys.cancel = None
        if switch is not None:
            switch.watch(None)


def is_listening() -> bool:
    """Whether memeval handles Ctrl-C."""
    return _keys is not None


@contextmanager
def listening() -> Iterator[None]:
    """Handles `SIGNALS` during a command, or during a job in a launcher's worker.

    Only the main thread can set handlers; elsewhere nothing changes. An ignored signal stays
    ignored: a shell without job control protects its background jobs from Ctrl-C.
    """
    global _keys  # noqa: PLW0603 - there is one keyboard
    if threading.current_thread() is not threading.main_thread() or _keys is not None:
        yield
        return

    keys = _keys = _Keys()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)  # `set_wakeup_fd` requires it
    handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    # submitit's handler would raise wherever the job is, even in the middle of an answer.
    handled += [number for number in JOB_SIGNALS if _handler_is_from("submitit.", number)]
    before = {number: signal.signal(number, keys.handle) for number in handled}
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    # Without the thread, Ctrl-C waits for the end of a call into C.
    _start(keys.watch, reader, name=KEYS_THREAD)

    try:
        yield
    except KeyboardInterrupt:
        handler = before[keys.first] if keys.handled else None
        if keys.first not in SIGNALS and callable(handler):
            handler(keys.first, None)  # queues the job again, or raises an error that says why not

        raise
    finally:
        # After a first Ctrl-C memeval's handler stays: a second one during shutdown must still end
        # the process.
        if keys.handled == 0:
            for number, handler in before.items():
                signal.signal(number, handler)

            signal.set_wakeup_fd(wakeup)
            os.close(writer)  # which ends the thread
            _keys = None


def _handler_is_from(package: str, number: signal.Signals) -> bool:
    return str(getattr(signal.getsignal(number), "__module__", "")).startswith(package)


def _reset_in_child() -> None:
    """In a process that a system forked: SIGTERM ends it, as a pool of processes expects, and its
    signals don't count as its parent's.
    """
    if _handler_is_from("memeval.", signal.SIGTERM):
        signal.set_wakeup_fd(-1)
        for number in (*SIGNALS, *JOB_SIGNALS):
            # The job's signals are the system's own, unless memeval took them from submitit.
            if number in SIGNALS or _handler_is_from("memeval.", number):
                signal.signal(number, signal.SIG_DFL)

    _unblock_signals()


def _block_signals() -> None:
    _thread_state.mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _unblock_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _thread_state.mask)


# Blocked meanwhile: Python drops signals that a new process gets before it runs `_reset_in_child`.
os.register_at_fork(
    before=_block_signals, after_in_parent=_unblock_signals, after_in_child=_reset_in_child
)


def exit_status() -> int:
    """The exit status of a command that was interrupted, as shells report it."""
    number = signal.SIGINT if _keys is None else _keys.first
    return 128 + number


def report_waiting() -> None:
    """Reports the system's code that memeval is waiting for, if any."""
    # Looked up instead of imported: if it is not loaded, no system is being called.
    watch = sys.modules.get("memeval.pipeline.isolate.watch")
    if watch is not None and (waited := watch.calls_under_way()):
        more = f" and {len(waited) - 1} more" if len(waited) > 1 else ""
        say(f"\nmemeval: waiting for {waited[0]}{more}; Ctrl-C again to stop now")


def end_now() -> None:
    """Ends the process immediately. Rows are already on disk; the publisher ends on its own."""
    left = describe_left("".join(sys.argv[1:2]), all_under_way=True)
    say(f"\nmemeval: stopped immediately{left}")
    os._exit(exit_status())


def describe_left(command: str, *, all_under_way: bool = False) -> str:
    """Lines about what a stopped command leaves: finished work, and replies that are lost."""
    lost = describe_lost(all_under_way=all_under_way)
    if command in KEEP_NOTHING:
        return lost

    return f"\n  finished work is kept; the same command continues it{lost}"


def describe_lost(*, all_under_way: bool = False) -> str:
    """The line about replies that a stop lost, with `all_under_way` including those under way;
    empty if no model was called.
    """
    # Looked up instead of imported: if it is not loaded, no model was called.
    calls = sys.modules.get("memeval.llm.in_flight")
    if calls is None:
        return ""

    lost = calls.in_flight.describe_lost(all_under_way=all_under_way)
    return f"\n  {lost}" if lost else ""


def say(message: str) -> None:
    """Writes to standard error without Python's own streams, which hanging code may have locked.

    Shows the cursor again, which progress bars hide.
    """
    shown = "\x1b[?25h" if os.isatty(2) else ""
    with suppress(OSError):
        os.write(2, f"{shown}{message}\n".encode())


def leave(status: int) -> int:
    """Prevents leftovers of other code from keeping the process alive; returns the status."""
    for thread in threading.enumerate():
        if thread.name.startswith(DISCARD):
            thread.join()

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()

    # Each dataclass is made by `exec` of a string. If an interrupt has passed through one, Python
    # ends by SIGINT instead of with the status. It forgets the interrupt at the next `exec`.
    exec("")

    # At exit the interpreter would search all objects of a run for cycles.
    gc.freeze()

    watch = sys.modules.get("memeval.pipeline.isolate.watch")
    if watch is not None and watch.abandoned_calls:
        # The interpreter would wait for the threads of these calls, which may never end, and only
        # then run the exit functions. Those of libraries are needed too (logging, temporary
        # folders, child processes), and `atexit` has no public function that runs them.
        atexit._run_exitfuncs()
        os._exit(status)

    patience = 0.0 if status == exit_status() else LEAVING_S
    _start(_force_exit, status, patience, name="memeval-leaving")
    return status


def _start(work: Callable[..., object], *arguments: object, name: str) -> None:
    """Calls `work` in a daemon thread, unless the system refuses to start one."""
    with suppress(RuntimeError):
        threading.Thread(target=work, args=arguments, name=name, daemon=True).start()


def _force_exit(status: int, patience_s: float) -> None:
    """Ends the process if the interpreter would wait for threads that do not end."""
    time.sleep(max(patience_s, BLOCKED_S))
    # Without exit functions, nothing else removes a folder that has no guardian.
    if (started := sys.modules.get("memeval.process.started")) is not None:
        started.end_all()

    os._exit(status)
