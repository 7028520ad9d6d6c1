"""Loads a Python handler and serves it: bootstrap.py PROTOCOL TASK_ROOT MODULE NAME.

Needs Python 3.9 or later and nothing but its standard library. What is served
how is in the modules beside this one, so that only those needed are loaded, and
from their compiled form: instances start often.
"""

import os
import signal
import sys

from windlass_load import load


class Stop:
    """Becomes requested on SIGTERM or SIGINT, and wakes whoever polls its file descriptor."""

    def __init__(self):
        self.requested = False
        self.fd, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._request)

    def _request(self, *_):
        self.requested = True
        try:
            os.write(self._wake, b"x")
        except BlockingIOError:
            pass  # the pipe is full, so whoever polls it is awake


def main():
    protocol, task_root, module, name = sys.argv[1:5]
    for stream in (sys.stdout, sys.stderr):
        # Whole lines, at once: logs must not wait in a buffer, nor lines of
        # two threads mix, nor a character outside the locale fail a call.
        stream.reconfigure(line_buffering=True, encoding="utf-8", errors="backslashreplace")
    if protocol == "HTTP":
        from windlass_wsgi import serve
    else:
        from windlass_lambda import serve
    stop = Stop()
    sys.path[0] = task_root  # was the folder of this file
    sys.exit(serve(lambda: load(module, name), stop))


if __name__ == "__main__":
    main()
