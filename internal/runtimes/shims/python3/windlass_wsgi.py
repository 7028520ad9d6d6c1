"""An HTTP/1.1 server for one WSGI application (PEP 3333), on 127.0.0.1:$PORT.

One thread waits for all connections and hands those that have something to say
to at most $WINDLASS_CONCURRENCY threads; when that is 1, it serves them itself.
So the number of calls is bounded, not the number of connections: a connection
that idles keeps nobody waiting, and none is ever closed for idling.
"""

import os
import selectors
import socket
import sys
import threading
import traceback

from windlass_http import BadRequest, Connection
from windlass_load import Failure
from windlass_response import Response


def serve(load, stop):
    """Serves the application that load returns until stop; returns the exit status."""
    port = os.environ.get("PORT", "")
    if not port.isdigit():
        print(f"windlass: PORT is {port!r}; it must be the number of the port to listen on", file=sys.stderr)
        return 1
    try:
        application = load()
    except Failure as e:
        if e.frames_of:
            traceback.print_exception(type(e.frames_of), e.frames_of, e.frames_of.__traceback__)
        print(f"[ERROR] {e.kind}: {e}", file=sys.stderr)
        return 1
    try:
        listener = socket.create_server(("127.0.0.1", int(port)), backlog=128)
    except OSError as e:
        print(f"windlass: cannot listen on 127.0.0.1:{port}: {e}", file=sys.stderr)
        return 1
    concurrency = int(os.environ.get("WINDLASS_CONCURRENCY") or 1)
    Server(application, listener, stop, concurrency).run()
    return 0


class Server:
    """Waits for connections and requests."""

    def __init__(self, application, listener, stop, concurrency):
        self.application = application
        self.listener = listener
        self.stop = stop
        self.port = listener.getsockname()[1]
        self.multithread = concurrency > 1
        self.selector = selectors.DefaultSelector()
        self.pool = None
        if self.multithread:
            from concurrent.futures import ThreadPoolExecutor

            self.pool = ThreadPoolExecutor(concurrency)
            # Connections that a thread has done with, for the selector's thread.
            self.lock = threading.Lock()
            self.returned = []
            self.returned_fd, self.wake_fd = os.pipe()
            self.selector.register(self.returned_fd, selectors.EVENT_READ, self._take_back)

    def run(self):
        """Returns on stop, after all requests that had arrived."""
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ, self._accept)
        self.selector.register(self.stop.fd, selectors.EVENT_READ, lambda: None)
        while not self.stop.requested:
            for key, _ in self.selector.select():
                if isinstance(key.data, Connection):
                    self.selector.unregister(key.data.socket)
                    self._dispatch(key.data)
                else:
                    key.data()
        self.listener.close()
        if self.pool:
            self.pool.shutdown()

    def _accept(self):
        try:
            accepted, _ = self.listener.accept()
        except OSError:
            return  # the client has gone
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait_for(Connection(accepted))

    def _wait_for(self, connection):
        self.selector.register(connection.socket, selectors.EVENT_READ, connection)

    def _dispatch(self, connection):
        if self.pool is None:
            if self._serve(connection):
                self._wait_for(connection)
        else:
            self.pool.submit(self._serve_and_return, connection)

    def _serve_and_return(self, connection):
        if self._serve(connection):
            with self.lock:
                self.returned.append(connection)
            os.write(self.wake_fd, b"x")

    def _take_back(self):
        os.read(self.returned_fd, 4096)
        with self.lock:
            returned, self.returned = self.returned, []
        for connection in returned:
            self._wait_for(connection)

    def _serve(self, connection):
        """Serves what has arrived; says whether the connection stays open."""
        try:
            while self._serve_one(connection):
                if not connection.buffered():
                    return True
        except OSError:
            pass  # the client has gone, and nobody is left to tell
        connection.close()
        return False

    def _serve_one(self, connection):
        try:
            request = connection.read_request()
        except BadRequest as e:
            connection.socket.sendall(e.answer())
            return False
        if request is None:
            return False
        keep = request.keep_alive and not self.stop.requested
        response = Response(connection.socket, request, keep)
        try:
            call(self.application, self._environ(request), response)
        except BaseException:  # sys.exit in an application ends its request only
            traceback.print_exc()
            if not response.started:
                response.internal_error()
            elif not response.complete():
                return False  # who reads the answer must see that it broke off
            # A complete answer stays one, and its connection may have the next call already.
        sys.stdout.flush()
        if not response.keep_alive:
            connection.socket.shutdown(socket.SHUT_WR)
        # A close before that would reset the connection, with what is left of the answer on it.
        request.body.drain()
        return response.keep_alive

    def _environ(self, request):
        path, _, query = request.target.partition("?")
        environ = {
            "REQUEST_METHOD": request.method,
            "REQUEST_URI": request.target,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote(path),
            "QUERY_STRING": query,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": str(self.port),
            "SERVER_PROTOCOL": request.version,
            "REMOTE_ADDR": "127.0.0.1",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": request.body.file(),
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": self.multithread,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
        }
        for name, value in request.headers:
            if "_" in name:
                continue  # would be taken for the name with a hyphen
            key = name.upper().replace("-", "_")
            if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
                key = "HTTP_" + key
            if key in environ:
                value = environ[key] + ("; " if key == "HTTP_COOKIE" else ",") + value
            environ[key] = value
        return environ


def unquote(path):
    """Decodes %41 to A. PEP 3333 wants bytes as a string of latin-1."""
    if "%" not in path:
        return path
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(path.encode("latin-1")).decode("latin-1")


def call(application, environ, response):
    """Runs one request through the application."""
    result = application(environ, response.start)
    try:
        try:
            response.parts = len(result)
        except TypeError:
            pass  # a generator
        for data in result:
            response.write(data)
        response.finish()
    finally:
        close = getattr(result, "close", None)
        if close:
            close()
