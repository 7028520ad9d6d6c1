"""A client of the AWS Lambda Runtime API."""

import errno
import http.client
import json
import os
import re
import select
import sys
import threading
import time
import traceback

from windlass_load import Failure, text_of

BASE = "/2018-06-01/runtime/"
# How long to wait for the Runtime API to listen: shim and agent start together.
CONNECT_SECONDS = 10
# By this the agent knows this process from other programs that the handler asks for URLs.
SELF = {"Windlass-Client": os.urandom(16).hex()}
# What a connection fails with.
LOST = (OSError, http.client.HTTPException)


def serve(load, stop):
    """Runs the handler that load returns until stop; returns the exit status."""
    api = os.environ.get("AWS_LAMBDA_RUNTIME_API")
    if not api:
        print("windlass: AWS_LAMBDA_RUNTIME_API is not set; it must be host:port of the Runtime API", file=sys.stderr)
        return 1
    client = Client(api)
    try:
        if os.environ.get("WINDLASS_SPARE"):
            from windlass_spare import become

            if not become(client, stop):
                return 0
        handler = load()
    except Failure as e:
        report = error_report(e)
        log_error(report)
        client.post("init/error", report)
        return 1
    except LOST as e:
        return lost(e)
    count = int(os.environ.get("AWS_LAMBDA_MAX_CONCURRENCY") or 1)
    if count <= 1:
        return Loop(client, handler, stop, alone=True).run()

    loops = [Loop(Client(api), handler, stop, alone=False) for _ in range(count)]
    threads = [threading.Thread(target=loop.run) for loop in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(loop.status for loop in loops)


def lost(e):
    """Says that the Runtime API is lost; returns the exit status."""
    print(f"windlass: the Runtime API is lost: {type(e).__name__}: {e}", file=sys.stderr)
    return 1


class Client:
    """One connection to the Runtime API, kept alive."""

    def __init__(self, api):
        self.connection = http.client.HTTPConnection(api)  # no timeout

    def request(self, method, path, body=None, headers={}):
        """Sends one request; the answer is still to be read."""
        if self.connection.sock is None:
            self._connect()
        self.connection.request(method, path, body, {**headers, **SELF})

    def wait(self, path, stop):
        """Asks for what takes a while, and returns the answer; None if the instance ends first.

        It is told to stop by a signal, or reads 204 where its agent has ended before it.

        Waiting apart from reading makes sure that a signal never breaks off an
        answer that has begun to arrive.
        """
        self.request("GET", path)
        poll = select.poll()
        poll.register(self.connection.sock, select.POLLIN)
        poll.register(stop.fd, select.POLLIN)
        ready = [fd for fd, _ in poll.poll()]
        if self.connection.sock.fileno() not in ready:
            self.connection.close()
            return None
        answer = self.connection.getresponse()
        return None if answer.status == 204 else answer

    def _connect(self):
        give_up = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                return self.connection.connect()
            except OSError as e:
                if e.errno != errno.ECONNREFUSED or time.monotonic() > give_up:
                    raise
            time.sleep(0.01)

    def post(self, path, report):
        """Posts an error report."""
        return self.send(path, json.dumps(report).encode(), "application/json", report["errorType"])

    def send(self, path, body, content_type, error_type=None):
        """Posts a body and complains on standard error if it is refused."""
        headers = {"Content-Type": content_type}
        if error_type:
            headers["Lambda-Runtime-Function-Error-Type"] = re.sub(r"[^A-Za-z0-9_.]", "_", error_type)
        self.request("POST", BASE + path, body, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            print(f"windlass: {path} was refused with {answer.status}: {text.decode(errors='replace')}", file=sys.stderr)


class Loop:
    """Takes one event after the other."""

    def __init__(self, client, handler, stop, alone):
        self.client = client
        self.handler = handler
        self.stop = stop
        self.alone = alone
        self.status = 0
        self.events = None  # the event loop of asyncio, if a handler needed one

    def run(self):
        """Returns the exit status: 0 when the instance ends, 1 when the Runtime API is lost.

        Then the other loops end, too, since the agent counts on all of them.
        """
        self.status = 1
        try:
            while not self.stop.requested:
                answer = self._next()
                if answer is None:
                    break
                self._call(answer)
            self.status = 0
        except LOST as e:
            lost(e)
        finally:
            if self.status:
                self.stop.request()
        return self.status

    def _next(self):
        """Waits for an event; None if the instance ends first."""
        answer = self.client.wait(BASE + "invocation/next", self.stop)
        if answer and answer.status != 200:
            raise http.client.HTTPException(f"next answered {answer.status}: {answer.read()!r}")
        return answer

    def _call(self, answer):
        context = Context(answer.headers)
        body = answer.read()
        if self.alone:
            # A variable of the process can only be right for one call at a time.
            os.environ["_X_AMZN_TRACE_ID"] = answer.headers.get("Lambda-Runtime-Trace-Id", "")
        path = "invocation/" + context.aws_request_id
        try:
            result, content_type = self._result(body, context)
        except BaseException as e:
            report = error_report(e)
            log_error(report, context.aws_request_id)
            self.client.post(path + "/error", report)
            if not isinstance(e, Exception):
                flush()
                os._exit(1)  # sys.exit in a handler ends the process, whichever thread it ran in
            return
        flush()
        self.client.send(path + "/response", result, content_type)

    def _result(self, body, context):
        try:
            event = json.loads(body) if body else {}
        except ValueError as e:
            raise Failure("Runtime.UnmarshalError", f"The event is not valid JSON: {e}") from e
        result = self.handler(event, context)
        if hasattr(result, "__await__"):
            result = self._await(result)
        try:
            return encode(result)
        except (TypeError, ValueError, RecursionError) as e:
            raise Failure("Runtime.MarshalError", f"The result cannot be written as JSON: {e}") from e

    def _await(self, result):
        import asyncio

        if self.events is None:
            # One for all calls: clients that a handler keeps belong to the loop that they began in.
            self.events = asyncio.new_event_loop()
            asyncio.set_event_loop(self.events)
        return self.events.run_until_complete(_awaited(result))


async def _awaited(result):
    return await result


class Context:
    """What a handler may ask about its call."""

    identity = None

    def __init__(self, headers):
        env = os.environ.get
        self.aws_request_id = headers["Lambda-Runtime-Aws-Request-Id"]
        self.invoked_function_arn = headers.get("Lambda-Runtime-Invoked-Function-Arn", "")
        self.client_context = client_context_of(headers.get("Lambda-Runtime-Client-Context", ""))
        self.function_name = env("AWS_LAMBDA_FUNCTION_NAME", "")
        self.function_version = env("AWS_LAMBDA_FUNCTION_VERSION", "")
        self.memory_limit_in_mb = env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
        self.log_group_name = env("AWS_LAMBDA_LOG_GROUP_NAME", "")
        self.log_stream_name = env("AWS_LAMBDA_LOG_STREAM_NAME", "")
        self._deadline_ms = int(headers["Lambda-Runtime-Deadline-Ms"])

    def get_remaining_time_in_millis(self):
        """Milliseconds until the call times out, at least 0."""
        return max(0, self._deadline_ms - int(time.time() * 1000))

    def log(self, message):
        """Writes to standard output as it is."""
        sys.stdout.write(str(message))


class Fields:
    """Some fields of a JSON object as attributes; None where there is none."""

    def __init__(self, fields, *names):
        for name in names:
            setattr(self, name, fields.get(name))


def client_context_of(text):
    """The context that the caller sends, with the names of AWS; None if it is no object."""
    try:
        # http.client reads headers as latin-1.
        said = json.loads(text.encode("latin-1").decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    context = Fields(said, "custom", "env", "client")
    if isinstance(context.client, dict):
        context.client = Fields(
            context.client, "installation_id", "app_title", "app_version_name", "app_version_code", "app_package_name"
        )
    return context


def encode(result):
    """The bytes of a result, and their content type."""
    if isinstance(result, (bytes, bytearray, memoryview)):
        return bytes(result), "application/octet-stream"
    return json.dumps(result, ensure_ascii=False, allow_nan=False).encode(), "application/json"


def error_report(e):
    """What the Runtime API wants to know of an exception."""
    failure = isinstance(e, Failure)
    frames = traceback.extract_tb((failure and e.frames_of or e).__traceback__)
    # Frames of the shim and of importlib say nothing about the handler.
    here = os.path.dirname(__file__)
    frames = [f for f in frames if os.path.dirname(f.filename) != here and "importlib" not in f.filename]
    return {
        "errorMessage": text_of(e),
        "errorType": e.kind if failure else type(e).__name__,
        "stackTrace": traceback.format_list(frames),
    }


def log_error(report, request_id=""):
    """Prints a report as Python prints exceptions, in one write."""
    head = f"[ERROR] {request_id + ' ' if request_id else ''}{report['errorType']}: {report['errorMessage']}\n"
    flush()
    print(head + "".join(report["stackTrace"]), end="", file=sys.stderr)


def flush():
    """Lets no half line wait for the next call."""
    sys.stdout.flush()
    sys.stderr.flush()
