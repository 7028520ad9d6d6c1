"""Writes the answer of a WSGI application."""

import re

HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Beyond this size a copy costs more than a second system call.
JOIN_LIMIT = 64 << 10


class Response:
    """One answer: start, then write as often as wanted, then finish."""

    def __init__(self, sock, request, keep_alive):
        self.socket = sock
        self.request = request
        self.keep_alive = keep_alive
        self.parts = None  # how many writes will come, if known
        self.status = None
        self.headers = []
        self.started = False  # a part of the head may have left
        self.finished = False
        self._forget()

    def start(self, status, headers, exc_info=None):
        """start_response of PEP 3333."""
        if exc_info:
            try:
                if self.started:
                    raise exc_info[1].with_traceback(exc_info[2])
                self._forget()
            finally:
                exc_info = None
        elif self.status:
            raise AssertionError("start_response was called twice without exc_info")
        if not re.fullmatch(r"[2-5][0-9][0-9]( [^\r\n]*)?", status):
            raise ValueError(f"the status {status!r} is not of the form '200 OK'")
        for name, value in headers:
            if not TOKEN.fullmatch(name) or "\r" in value or "\n" in value:
                raise ValueError(f"the header {name!r}: {value!r} is not valid")
        self.status, self.headers = status, list(headers)
        return self.write

    def write(self, data):
        """Sends data at once."""
        if not self.status:
            raise AssertionError("the application sent data before it called start_response")
        if not data:
            return
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"what the application sends must be bytes, not {type(data).__name__}")
        if not self._begun:
            self._begin(len(data) if self.parts == 1 else None)
        if self.bodyless:
            return
        if self.length is not None and self.sent + len(data) > self.length:
            raise ValueError(f"the application sent more than the {self.length} bytes of its Content-Length")
        if self.chunked:
            self._send(b"%x\r\n" % len(data), data, b"\r\n")
        else:
            self._send(data)
        self.sent += len(data)

    def finish(self):
        """Ends the answer."""
        if not self.status:
            raise AssertionError("the application did not call start_response")
        if not self._begun:
            self._begin(0)
        if not self.bodyless and self.length is not None and self.sent < self.length:
            raise ValueError(f"the application sent {self.sent} bytes, less than the {self.length} of its Content-Length")
        self._send(b"0\r\n\r\n" if self.chunked else b"")
        self.finished = True

    def complete(self):
        """Says whether the client has the whole answer."""
        return self.finished or (self.started and self.sent == self.length)

    def internal_error(self):
        """Answers 500 in place of an application that failed. The reason is in the log, not for the caller."""
        text = b"Internal Server Error\n"
        self._forget()
        self.parts = 1
        self.status, self.headers = "500 Internal Server Error", [("Content-Type", "text/plain")]
        self.write(text)
        self.finish()

    def _forget(self):
        """Drops a head that was formed, which is possible until it has been sent."""
        self._begun = False
        self.head = b""  # kept back so that it leaves with the first data
        self.length = None
        self.sent = 0
        self.chunked = False
        self.bodyless = self.request.method == "HEAD"

    def _begin(self, known_length):
        """Decides how the end of the body will be told, and forms the head."""
        self._begun = True
        lines = [f"HTTP/1.1 {self.status}"]
        empty = self.status[:3] in ("204", "304")
        self.bodyless = self.bodyless or empty
        for name, value in self.headers:
            lower = name.lower()
            if lower in HOP_BY_HOP or (lower == "content-length" and self.status[:3] == "204"):
                continue
            if lower == "content-length":
                self.length = int(value)
            lines.append(f"{name}: {value}")
        if self.length is None and not self.bodyless:
            if known_length is not None:
                self.length = known_length
                lines.append(f"Content-Length: {known_length}")
            elif self.request.version == "HTTP/1.1":
                self.chunked = True
                lines.append("Transfer-Encoding: chunked")
            else:
                self.keep_alive = False  # the end of the connection is the end of the body
        if self.request.body.expects:
            self.keep_alive = False  # the client may keep its body for itself
        if not self.keep_alive:
            lines.append("Connection: close")
        self.head = "\r\n".join(lines + ["", ""]).encode("latin-1")

    def _send(self, *pieces):
        head, self.head = self.head, b""
        pieces = [p for p in (head, *pieces) if p]
        if sum(map(len, pieces)) <= JOIN_LIMIT:
            pieces = [b"".join(pieces)]
        self.started = True
        self.request.body.expects = False  # nothing can be said before the answer any more
        for piece in pieces:
            if piece:
                self.socket.sendall(piece)
