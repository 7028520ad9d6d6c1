"""Tells the time, in any time zone: GET /?zone=Asia/Tokyo."""

import os
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo


class Clock(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections open
    wbufsize = -1  # head and body leave together

    def do_GET(self):
        zone = parse_qs(urlsplit(self.path).query).get("zone", ["UTC"])[0]
        try:
            status, text = 200, datetime.now(ZoneInfo(zone)).isoformat(timespec="seconds")
        except (KeyError, ValueError, OSError):
            status, text = 400, f"there is no time zone {zone!r}: give one such as Europe/Lisbon"
        body = f"{text}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Clock).serve_forever()
