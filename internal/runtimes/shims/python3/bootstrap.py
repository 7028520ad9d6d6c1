"""Serves the Python handler $_HANDLER with the protocol $WINDLASS_PROTOCOL.

Needs Python 3.9 or later and nothing but its standard library. What is served
how is in the modules beside this one, so that only those needed are loaded, and
from their compiled form: instances start often.
"""

import atexit
import os
import signal
import sys

from windlass_load import load

ENDING = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """Becomes requested on SIGTERM or SIGINT, or by request, and wakes all that poll its file descriptor."""

    def __init__(self):
        self.requested = False
        self.fd, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        for number in ENDING:
            signal.signal(number, self.request)
        os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_end_on_signals)

    def request(self, *_):
        self.requested = True
        try:
            os.write(self._wake, b"x")
        except BlockingIOError:
            pass  # the pipe is full, so all that poll it are awake


def _end_on_signals():
    """Lets the signals end a forked process: a worker of multiprocessing would ignore them, and stop its parent by the pipe."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
    _release()


def _hold():
    """Keeps a signal from being lost that comes before a forked process can be ended by it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)


def _release():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def main():
    for stream in (sys.stdout, sys.stderr):
        # Whole lines, at once: logs must not wait in a buffer, nor lines of
        # two threads mix, nor a character outside the locale fail a call.
        stream.reconfigure(line_buffering=True, encoding="utf-8", errors="backslashreplace")
    protocol = os.environ.get("WINDLASS_PROTOCOL") or "LambdaRuntime"
    if protocol == "LambdaRuntime":
        from windlass_lambda import serve
    elif os.environ.get("WINDLASS_SPARE"):
        sys.exit(f"windlass: WINDLASS_PROTOCOL is {protocol!r}; a spare instance (WINDLASS_SPARE) must have LambdaRuntime")
    elif protocol == "HTTP":
        from windlass_wsgi import serve
    else:
        sys.exit(f"windlass: WINDLASS_PROTOCOL is {protocol!r}; it must be LambdaRuntime or HTTP")
    status = 1
    try:
        status = serve(load, Stop())
    except Exception:
        sys.excepthook(*sys.exc_info())
    end(status)


def end(status):
    """Ends the process. sys.exit would wait for the handler's threads."""
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
