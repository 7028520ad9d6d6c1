"""Reads HTTP/1.1 requests from a connection."""

import io
import re
import socket

# The gateway admits 64 KiB of a caller's headers, and others are added on the way.
HEAD_LIMIT = 128 << 10
# A head that has begun must arrive within this time. Bodies may take theirs:
# the agent passes on what its own client sends.
HEAD_SECONDS = 10

REQUEST_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([^\x00-\x20\x7f]+) (HTTP/1\.[01])")
HEADER_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?]*")


class BadRequest(Exception):
    """A request that is answered without the application."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status

    def answer(self):
        """The whole answer as bytes."""
        text = f"{self}\n".encode()
        head = f"HTTP/1.1 {self.status}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        return head.encode() + text


class Request:
    """The head of a request, and its body yet to be read."""

    def __init__(self, method, target, version, headers, body):
        self.method = method
        self.target = target
        self.version = version
        self.headers = headers
        self.body = body
        tokens = [t.strip().lower() for n, v in headers if n.lower() == "connection" for t in v.split(",")]
        self.keep_alive = version == "HTTP/1.1" and "close" not in tokens


class Connection:
    """A client's connection, with what has been read ahead."""

    def __init__(self, sock):
        self.socket = sock
        self.buffer = b""

    def buffered(self):
        """Says whether the next request has begun to arrive."""
        return bool(self.buffer)

    def close(self):
        self.socket.close()

    def fill(self):
        """Reads something more; raises when the client has gone."""
        data = self.socket.recv(64 << 10)
        if not data:
            raise ConnectionError("the client closed the connection")
        self.buffer += data

    def take(self, most):
        """Returns 1 to most bytes."""
        if not self.buffer:
            self.fill()
        taken, self.buffer = self.buffer[:most], self.buffer[most:]
        return taken

    def take_line(self):
        """Returns a line without its end."""
        while b"\n" not in self.buffer:
            if len(self.buffer) > HEAD_LIMIT:
                raise ConnectionError("a line is too long")
            self.fill()
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.rstrip(b"\r")

    def read_request(self):
        """Returns the next request, or None if the client closed instead."""
        self.socket.settimeout(HEAD_SECONDS)
        self.buffer = self.buffer.lstrip(b"\r\n")
        try:
            while b"\r\n\r\n" not in self.buffer:
                if len(self.buffer) > HEAD_LIMIT:
                    raise BadRequest("431 Request Header Fields Too Large", f"the head exceeds {HEAD_LIMIT} bytes")
                self.fill()
        except ConnectionError:
            return None
        except socket.timeout:
            raise BadRequest("408 Request Timeout", f"the head did not arrive within {HEAD_SECONDS} s") from None
        self.socket.settimeout(None)
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        return self._parse(head.decode("latin-1").split("\r\n"))

    def _parse(self, lines):
        first = REQUEST_LINE.fullmatch(lines[0])
        if not first:
            raise BadRequest("400 Bad Request", "the request line is not valid")
        method, target, version = first.groups()
        target = ABSOLUTE.sub("", target, count=1) if not target.startswith("/") else target
        headers = []
        for line in lines[1:]:
            header = HEADER_LINE.fullmatch(line)
            if not header:
                raise BadRequest("400 Bad Request", "a header line is not valid")
            headers.append(header.groups())
        return Request(method, target, version, headers, self._body(headers))

    def _body(self, headers):
        def values(name):
            return [v.lower() for n, v in headers if n.lower() == name]

        codings, lengths = values("transfer-encoding"), values("content-length")
        expects = "100-continue" in values("expect")
        if codings:
            if codings != ["chunked"] or lengths:
                raise BadRequest("400 Bad Request", "a body is either chunked or has a Content-Length, and no other coding")
            return Body(self, None, expects)
        if lengths:
            if len(set(lengths)) != 1 or not re.fullmatch("[0-9]+", lengths[0]):
                raise BadRequest("400 Bad Request", "the Content-Length is not a number")
            return Body(self, int(lengths[0]), expects)
        return Body(self, 0, False)


class Body(io.RawIOBase):
    """The body of a request, which ends where the body ends."""

    def __init__(self, connection, length, expects):
        super().__init__()
        self.connection = connection
        self.chunked = length is None
        self.remaining = length or 0  # of the chunk, if chunked
        self.ended = length == 0
        self.expects = expects and not self.ended  # the client waits to be asked for it

    def file(self):
        """The body as applications want to read it."""
        return io.BufferedReader(self, 64 << 10)

    def readable(self):
        return True

    def readinto(self, into):
        data = self._read(len(into))
        into[: len(data)] = data
        return len(data)

    def close(self):
        """Applications may close their input; the rest must still be drained."""

    def drain(self):
        """Reads what the application left; raises if the client closes the connection instead of sending it."""
        while not self.ended:
            self._read(64 << 10)

    def _read(self, most):
        if self.ended:
            return b""
        if self.expects:
            self.expects = False
            self.connection.socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self.chunked and self.remaining == 0:
            self._next_chunk()
            if self.ended:
                return b""
        data = self.connection.take(min(most, self.remaining))
        self.remaining -= len(data)
        if self.remaining == 0:
            if self.chunked:
                self._expect_line_end()
            else:
                self.ended = True
        return data

    def _next_chunk(self):
        size = self.connection.take_line().partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,15}", size):
            raise ConnectionError("the size of a chunk is not valid")
        self.remaining = int(size, 16)
        if self.remaining == 0:
            while self.connection.take_line():
                pass  # trailers
            self.ended = True

    def _expect_line_end(self):
        if self.connection.take_line():
            raise ConnectionError("a chunk is longer than its size")
