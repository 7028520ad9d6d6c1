package runtimes

import "github.com/windlass-dev/windlass/api/v1alpha1"

// lambdaSources hold the same handlers in each language. The event says what
// to do.
var lambdaSources = map[v1alpha1.RuntimeName]string{
	v1alpha1.RuntimePython313: `
import asyncio, multiprocessing, os, sys, threading, time
barrier = threading.Barrier(4)
print("loaded")

class Refused(Exception):
    pass

class Odd(Exception):
    def __str__(self):
        return self.not_there

def handler(event, context):
    do = event.get("do") if isinstance(event, dict) else None
    if do == "context":
        left = context.get_remaining_time_in_millis()
        return [context.aws_request_id, context.function_name, context.function_version, context.memory_limit_in_mb,
                context.invoked_function_arn, context.client_context, 0 < left <= 3600000]
    if do == "client context":
        said = context.client_context
        return said and [said.custom, said.client and said.client.app_title, said.env]
    if do == "throw":
        raise Refused("no ☂ today")
    if do == "throw odd":
        raise Odd()
    if do == "unserialisable":
        return object()
    if do == "nan":
        return float("nan")
    if do == "bytes":
        return b"\x00\xff"
    if do == "nothing":
        return None
    if do == "wait":
        print("started")
        while not os.path.exists(event["file"]):
            time.sleep(0.002)
        return "finished"
    if do == "exit":
        sys.exit("enough")
    if do == "meet":
        barrier.wait(30)
    return {"event": event}

async def asynchronous(event, context):
    await asyncio.sleep(0)
    return {"event": event}

streams = []

async def streaming(event, context):
    if not streams:
        streams.extend(await asyncio.open_connection(*os.environ["AWS_LAMBDA_RUNTIME_API"].rsplit(":", 1)))
        streams[1].write(b"GET /")
        return {"event": event}
    streams[1].write(b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    return {"event": event, "status": (await streams[0].read())[:12].decode()}

def forks(event, context):
    worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(90,))
    worker.start()
    worker.terminate()
    worker.join()
    return {"event": event, "exit": worker.exitcode}

not_a_function = 1
`,
	v1alpha1.RuntimeNodeJS22: `
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
console.log('loaded');
let met = 0, release;
const barrier = new Promise((resolve) => { release = resolve; });
class Refused extends Error {}

export const handler = async (event, context) => {
  switch (event.do) {
    case 'context': {
      const left = context.getRemainingTimeInMillis();
      return [context.awsRequestId, context.functionName, context.functionVersion, context.memoryLimitInMB,
        context.invokedFunctionArn, context.clientContext, 0 < left && left <= 3600000];
    }
    case 'client context': {
      const said = context.clientContext;
      return said && [said.custom, said.client?.app_title, said.env];
    }
    case 'throw': throw new Refused('no ☂ today');
    case 'throw string': throw 'a string';
    case 'throw odd': throw Object.assign(new Error('odd'), { name: 404 });
    case 'throw bare': throw Object.create(null);
    case 'throw caused': throw new Refused('fetch failed', { cause: new AggregateError([new Error('not at ::1'), new Error('nor at 127.0.0.1')]) });
    case 'throw several': throw new AggregateError([new Error('not at ::1'), new Error('nor at 127.0.0.1')]);
    case 'throw circle': { const one = new Refused('round'); one.cause = one; throw one; }
    case 'unserialisable': { const o = {}; o.o = o; return o; }
    case 'nan': return 1n;
    case 'bytes': return Buffer.from([0, 255]);
    case 'nothing': return undefined;
    case 'wait':
      console.log('started');
      while (!fs.existsSync(event.file)) await sleep(2);
      return 'finished';
    case 'never': return new Promise(() => {});
    case 'uncaught': setImmediate(() => { throw new Error('from nowhere'); }); return sleep(60_000);
    case 'meet': if (++met === 4) release(); await barrier;
  }
  return { event };
};
export const plain = (event) => ({ event });
export const callback = (event, context, done) => {
  if (event.do === 'forget') return;
  setImmediate(() => event.do === 'fail' ? done(new Refused('called back')) : done(null, { event }));
};
export const not_a_function = 1;
`,
}

// httpSources hold the same site in each language.
var httpSources = map[v1alpha1.RuntimeName]string{
	v1alpha1.RuntimePython313: `
import multiprocessing, os, sys, threading, time
from urllib.parse import parse_qs
barrier = threading.Barrier(2)

def application(environ, start_response):
    path, query = environ["PATH_INFO"], parse_qs(environ["QUERY_STRING"])
    text = [("Content-Type", "text/plain; charset=utf-8")]
    if path == "/echo":
        body = environ["wsgi.input"].read()
        head = "%s %s %s %s %s;" % (environ["REQUEST_METHOD"], environ["QUERY_STRING"], environ.get("CONTENT_TYPE"),
                                    environ.get("CONTENT_LENGTH"), environ.get("HTTP_X_TWICE"))
        start_response("200 OK", text)
        return [head.encode() + body]
    if path == "/ignore":
        start_response("200 OK", text)
        return [b"ignored"]
    if path == "/long":
        start_response("200 OK", text)
        return [b"x" * 300000]
    if path == "/head":
        start_response("200 OK", text + [("Content-Length", "5")])
        return [b"12345"]
    if path == "/stream":
        def stream():
            yield b"one"
            yield b""
            while not os.path.exists(query["file"][0]):
                time.sleep(0.002)
            yield b"two"
        start_response("200 OK", text)
        return stream()
    if path == "/throw":
        raise KeyError("before the head")
    if path == "/break":
        def stream():
            yield b"one"
            raise FileNotFoundError("in the middle")
        start_response("200 OK", text)
        return stream()
    if path == "/late":
        def stream():
            yield b"x" * (8 << 20)
            raise FileNotFoundError("too late")
        start_response("200 OK", text + [("Content-Length", str(8 << 20))])
        return stream()
    if path == "/late-close":
        start_response("200 OK", text)
        return FailingClose()
    if path == "/read-late":
        def stream():
            yield b"one"
            yield environ["wsgi.input"].read()
        start_response("200 OK", text)
        return stream()
    if path.startswith("/status/"):
        start_response(path[8:] + " Whatever", [("X-Kept", "1"), ("Connection", "close")])
        return []
    if path == "/meet":
        barrier.wait(30)
        start_response("200 OK", text)
        return [b"met"]
    if path == "/café":
        pass
    start_response("404 Not Found", text)
    return [path.encode("latin-1")]

class FailingClose:
    def __iter__(self):
        yield b"one"
        yield b"two"

    def close(self):
        raise FileNotFoundError("too late")

def short(environ, start_response):
    start_response("200 OK", [("Content-Length", "5")])
    return [b"123"]

def long(environ, start_response):
    start_response("200 OK", [("Content-Length", "5")])
    yield b"123"
    yield b"456"

def lazy(environ, start_response):
    write = start_response("200 OK", [])
    write(b"written ")
    yield b"yielded"

def silent(environ, start_response):
    return [b"no head"]

def split(environ, start_response):
    start_response("200 OK", [("X-Evil", "a\r\nb: c")])
    return [b"no"]

def forks(environ, start_response):
    worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(90,))
    worker.start()
    worker.terminate()
    worker.join()
    start_response("200 OK", [])
    return [b"%d" % worker.exitcode]

def text(environ, start_response):
    start_response("200 OK", [])
    return ["hello"]

def late_text(environ, start_response):
    start_response("200 OK", [])
    yield b"bytes"
    yield "text"

def foreign(environ, start_response):
    start_response("200 OK", [("Content-Disposition", "attachment; filename=☂.pdf")])
    return [b"no"]

def excess(environ, start_response):
    start_response("200 OK", [("Content-Length", "1")])
    return [b"xy"]

def nothing(environ, start_response):
    start_response("200 OK", [("Content-Length", "5")])
    return []

def lengthy(environ, start_response):
    start_response("200 OK", [("Content-Length", "five")])
    return [b"12345"]

def replaced(environ, start_response):
    write = start_response("200 OK", [("Content-Length", "1")])
    try:
        write(b"xy")
    except ValueError:
        start_response("503 Busy", [], sys.exc_info())
    return [b"busy"]
`,
	v1alpha1.RuntimeNodeJS22: `
const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
let met = 0, release;
const barrier = new Promise((resolve) => { release = resolve; });

exports.application = async (req, res) => {
  const url = new URL(req.url, 'http://x');
  res.setHeader('Content-Type', 'text/plain; charset=utf-8');
  const parts = [];
  switch (url.pathname) {
    case '/echo': {
      for await (const part of req) parts.push(part);
      const h = req.headers;
      res.end([req.method, url.search.slice(1), h['content-type'] ?? 'None', h['content-length'] ?? 'None', (h['x-twice'] ?? 'None').replace(', ', ',')].join(' ') + ';' + Buffer.concat(parts));
      return;
    }
    case '/ignore': return res.end('ignored');
    case '/long': return res.end('x'.repeat(300000));
    case '/head': return res.setHeader('Content-Length', 5).end('12345');
    case '/stream':
      res.write('one');
      while (!fs.existsSync(url.searchParams.get('file'))) await sleep(2);
      return res.end('two');
    case '/throw': throw new RangeError('before the head');
    case '/break': res.write('one'); await sleep(1); throw new RangeError('in the middle');
    case '/late': res.end('x'.repeat(8 << 20)); throw new RangeError('too late');
    case '/late-close': res.write('one'); res.end('two'); await sleep(1); throw new RangeError('too late');
    case '/meet': if (++met === 2) release(); await barrier; return res.end('met');
  }
  const status = url.pathname.match(/^\/status\/(\d+)/);
  if (status) return res.writeHead(Number(status[1]), { 'X-Kept': '1' }).end();
  res.writeHead(404).end(decodeURIComponent(url.pathname));
};
`,
}
