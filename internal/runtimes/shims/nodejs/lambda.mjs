// A client of the AWS Lambda Runtime API.
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

import { messageOf, stackOf, typeOf } from './errors.mjs';

const base = '/2018-06-01/runtime/';
// How long to wait for the Runtime API to listen: shim and agent start together.
const connectMs = 10_000;
// Headers that callers choose must not end the process, as more than 16 KiB would.
const maxHeaderSize = 128 << 10;
// By this the agent knows this process from other programs that the handler asks for URLs.
const self = { 'Windlass-Client': randomUUID() };

// The calls that run now. Each is told to fail when something fails that
// belongs to no call in particular.
const running = new Set();
let stopping = false;
let status = 0;
const idle = new Set(); // requests for the next event that have no answer yet

// serve runs the handler that load returns until SIGTERM, and ends the process.
export async function serve(load) {
  const api = process.env.AWS_LAMBDA_RUNTIME_API;
  if (!api) {
    console.error('windlass: AWS_LAMBDA_RUNTIME_API is not set; it must be host:port of the Runtime API');
    process.exit(1);
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => stop(0));
  const first = new Client(api);
  let handler;
  try {
    if (process.env.WINDLASS_SPARE) await assume(first);
    handler = await load();
  } catch (error) {
    logError(error);
    await first.send('init/error', report(error), 'application/json', error.name);
    process.exit(1);
  }
  process.on('uncaughtException', failRunning);
  process.on('unhandledRejection', failRunning);
  process.on('beforeExit', settleForgotten);

  const count = Number(process.env.AWS_LAMBDA_MAX_CONCURRENCY || 1);
  const clients = [first, ...Array.from({ length: count - 1 }, () => new Client(api))];
  await Promise.all(clients.map((client) => loop(client, handler, count === 1)));
  process.exit(status);
}

// assume waits until a spare instance is a function's, and makes this process its own.
async function assume(client) {
  const { become, taskRoot } = await import('./spare.mjs');
  const root = taskRoot();
  const answer = await client.wait('/windlass/v1/assignment').catch((error) => {
    lost(error);
    process.exit(1);
  });
  if (!answer) process.exit(0);
  become(answer, root);
}

function lost(error) {
  console.error(`windlass: the Runtime API is lost: ${error.message}`);
}

function stop(withStatus) {
  stopping = true;
  status = Math.max(status, withStatus);
  // An event that arrived together with the signal is read before this runs.
  setImmediate(() => idle.forEach((request) => request.destroy()));
}

// failRunning answers an error that no call can be blamed for. The state of
// the process is unknown then, so it ends.
function failRunning(error) {
  logError(error);
  stop(1);
  running.forEach((call) => call.fail(error));
}

// settleForgotten runs when nothing is left that could make the process go on,
// while handlers have not given a result.
function settleForgotten() {
  running.forEach((call) => call.forgotten());
}

async function loop(client, handler, alone) {
  try {
    while (!stopping) {
      const event = await client.next();
      if (!event) break;
      await call(client, handler, event, alone);
    }
  } catch (error) {
    lost(error);
    stop(1);
  }
}

async function call(client, handler, { headers, body }, alone) {
  const context = contextOf(headers);
  // A variable of the process can only be right for one call at a time.
  if (alone) process.env._X_AMZN_TRACE_ID = headers['lambda-runtime-trace-id'] ?? '';
  const path = `invocation/${context.awsRequestId}`;
  let result;
  try {
    result = encode(await run(handler, decode(body), context));
  } catch (error) {
    logError(error, context.awsRequestId);
    return client.send(`${path}/error`, report(error), 'application/json', typeOf(error));
  }
  return client.send(`${path}/response`, result.body, result.type);
}

// run calls the handler, which returns a promise or a value, or declares a
// third parameter and calls it back as (error, result).
function run(handler, event, context) {
  return new Promise((resolve, reject) => {
    const wantsCallback = handler.length >= 3;
    const one = {
      fail: (error) => done(reject, error),
      forgotten: () => {
        if (wantsCallback) done(resolve, null); // as AWS does
        else done(reject, named('Runtime.NodeJsExit', 'The promise of the handler never settled, and nothing is left to run'));
      },
    };
    const done = (settle, value) => {
      running.delete(one);
      settle(value);
    };
    running.add(one);
    const callback = (error, result) => (error ? one.fail(error) : done(resolve, result));
    try {
      const returned = handler(event, context, callback);
      if (typeof returned?.then === 'function') returned.then((value) => done(resolve, value), one.fail);
      else if (!wantsCallback) done(resolve, returned);
    } catch (error) {
      one.fail(error);
    }
  });
}

function contextOf(headers) {
  const env = process.env;
  const deadline = Number(headers['lambda-runtime-deadline-ms']);
  return {
    awsRequestId: headers['lambda-runtime-aws-request-id'],
    invokedFunctionArn: headers['lambda-runtime-invoked-function-arn'] ?? '',
    functionName: env.AWS_LAMBDA_FUNCTION_NAME ?? '',
    functionVersion: env.AWS_LAMBDA_FUNCTION_VERSION ?? '',
    memoryLimitInMB: env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE ?? '',
    logGroupName: env.AWS_LAMBDA_LOG_GROUP_NAME ?? '',
    logStreamName: env.AWS_LAMBDA_LOG_STREAM_NAME ?? '',
    clientContext: clientContextOf(headers['lambda-runtime-client-context']),
    identity: undefined,
    getRemainingTimeInMillis: () => Math.max(0, deadline - Date.now()),
  };
}

// clientContextOf is the JSON that the caller sends. Node.js reads headers as latin1.
function clientContextOf(text) {
  return text && JSON.parse(Buffer.from(text, 'latin1').toString());
}

function decode(body) {
  try {
    return body.length > 0 ? JSON.parse(body.toString()) : {};
  } catch (error) {
    throw named('Runtime.UnmarshalError', `The event is not valid JSON: ${error.message}`);
  }
}

function encode(result) {
  if (result instanceof Uint8Array) return { body: result, type: 'application/octet-stream' };
  try {
    return { body: JSON.stringify(result) ?? 'null', type: 'application/json' };
  } catch (error) {
    throw named('Runtime.MarshalError', `The result cannot be written as JSON: ${error.message}`);
  }
}

function named(name, message) {
  const error = new Error(message);
  error.name = name;
  error.stack = `${name}: ${message}`;
  return error;
}

// report is what the Runtime API wants to know of an error, or of whatever
// else was thrown.
function report(error) {
  return JSON.stringify({
    errorMessage: messageOf(error),
    errorType: typeOf(error),
    stackTrace: error instanceof Error ? stackOf(error).split('\n') : [],
  });
}

function logError(error, requestId = '') {
  console.error(`[ERROR] ${requestId ? requestId + ' ' : ''}${stackOf(error)}`);
}

// Client is one connection to the Runtime API, kept alive.
class Client {
  constructor(api) {
    [this.host, this.port] = splitAddress(api);
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 1 }); // no timeout
  }

  // next waits for an event; undefined if the instance ends first.
  async next() {
    const answer = await this.wait(`${base}invocation/next`);
    if (answer && answer.status !== 200) throw new Error(`next answered ${answer.status}: ${answer.body}`);
    return answer;
  }

  // wait asks for what takes a while; undefined if the instance ends first: by a signal, or
  // by 204 where its agent has ended before it.
  async wait(path) {
    const answer = await this.#request('GET', path, undefined, {}, true).catch((error) => {
      if (!stopping) throw error;
    });
    return answer?.status === 204 ? undefined : answer;
  }

  // send posts a body and complains on standard error if it is refused.
  async send(path, body, contentType, errorType) {
    const headers = { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) };
    if (errorType) headers['Lambda-Runtime-Function-Error-Type'] = errorType.replace(/[^A-Za-z0-9_.]/g, '_');
    const answer = await this.#request('POST', base + path, body, headers, false);
    if (answer.status >= 300) console.error(`windlass: ${path} was refused with ${answer.status}: ${answer.body}`);
  }

  async #request(method, path, body, headers, waits) {
    const giveUp = Date.now() + connectMs;
    for (;;) {
      try {
        return await this.#once(method, path, body, headers, waits);
      } catch (error) {
        // Nothing was sent when nobody listened, so it may be sent again.
        if (error.code !== 'ECONNREFUSED' || stopping || Date.now() > giveUp) throw error;
      }
      await sleep(10);
    }
  }

  #once(method, path, body, headers, waits) {
    return new Promise((resolve, reject) => {
      const options = { agent: this.agent, host: this.host, port: this.port, method, path, headers: { ...headers, ...self }, maxHeaderSize };
      const request = http.request(options, (answer) => {
        idle.delete(request);
        const parts = [];
        answer.on('data', (part) => parts.push(part));
        answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts) }));
        answer.on('error', reject);
      });
      if (waits) idle.add(request);
      request.on('error', (error) => {
        idle.delete(request);
        reject(error);
      });
      request.end(body);
    });
  }
}

function splitAddress(api) {
  const colon = api.lastIndexOf(':');
  return [api.slice(0, colon).replace(/^\[|\]$/g, ''), api.slice(colon + 1)];
}
