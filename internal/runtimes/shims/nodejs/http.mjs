// Serves a (request, response) listener on 127.0.0.1:$PORT.
import http from 'node:http';

import { stackOf } from './errors.mjs';

// The gateway admits 64 KiB of a caller's headers, and others are added on the way.
const maxHeaderSize = 128 << 10;

// serve runs the listener that load returns until SIGTERM.
export async function serve(load) {
  const port = process.env.PORT ?? '';
  if (!/^[0-9]+$/.test(port)) {
    console.error(`windlass: PORT is '${port}'; it must be the number of the port to listen on`);
    process.exit(1);
  }
  let handler;
  try {
    handler = await load();
  } catch (error) {
    console.error(`[ERROR] ${stackOf(error)}`);
    process.exit(1);
  }
  const calls = new Calls();
  const server = http.createServer({ maxHeaderSize }, (request, response) => {
    calls.began(response);
    run(handler, request, response);
  });
  // A server that closes an idle connection in the moment in which the agent
  // uses it again loses that call. So none of the limits that end a
  // connection for its age applies; the agent has the call's deadline.
  Object.assign(server, { keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0, timeout: 0 });
  server.on('error', (error) => {
    console.error(`windlass: cannot listen on 127.0.0.1:${port}: ${error.message}`);
    process.exit(1);
  });
  server.listen(Number(port), '127.0.0.1');
  for (const signal of ['SIGTERM', 'SIGINT']) {
    process.on(signal, () => {
      server.close();
      // A request that arrived together with the signal begins before this runs.
      setImmediate(() => calls.stop());
    });
  }
}

// run keeps an error of one call from ending the others.
async function run(handler, request, response) {
  try {
    await handler(request, response);
  } catch (error) {
    // Who reads the answer must see that it broke off. A complete one stays so, and its
    // connection may have the next call already.
    if (response.headersSent && !response.writableEnded) response.destroy();
    console.error(error);
    if (response.headersSent) return;
    for (const name of response.getHeaderNames()) response.removeHeader(name);
    // The reason is in the log, not for the caller.
    response.writeHead(500, { 'Content-Type': 'text/plain' }).end('Internal Server Error\n');
  }
}

// Calls counts what runs, and ends the process when it shall stop and none does.
class Calls {
  #running = 0;
  #stopping = false;

  began(response) {
    this.#running++;
    response.on('close', () => {
      this.#running--;
      this.#endIfDone();
    });
  }

  stop() {
    this.#stopping = true;
    this.#endIfDone();
  }

  #endIfDone() {
    if (this.#stopping && this.#running === 0) process.exit(0);
  }
}
