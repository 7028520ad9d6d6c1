// Loads a Node.js handler and serves it: bootstrap.mjs PROTOCOL TASK_ROOT FILE NAME.
//
// Needs Node.js 18 or later and nothing but its built-in modules. FILE may be a
// CommonJS or an ES module: import() takes both.
import { pathToFileURL } from 'node:url';

const [protocol, , file, name] = process.argv.slice(2);
const { serve } = await import(protocol === 'HTTP' ? './http.mjs' : './lambda.mjs');

await serve(async () => {
  let module;
  try {
    module = await import(pathToFileURL(file).href);
  } catch (cause) {
    const reason = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
    throw failure('Runtime.ImportModuleError', `Unable to import module '${file}': ${reason}`, cause);
  }
  const handler = find(module, name) ?? find(module.default, name);
  if (typeof handler !== 'function') {
    const what = handler === undefined ? 'missing from' : 'not a function in';
    throw failure('Runtime.HandlerNotFound', `Handler '${name}' is ${what} module '${file}'`);
  }
  return handler;
});

// find follows a name such as "handlers.create"; a CommonJS module has its
// exports as properties of its default export.
function find(module, name) {
  return name.split('.').reduce((object, key) => object?.[key], module);
}

function failure(type, message, cause) {
  const error = new Error(message, { cause });
  error.name = type;
  error.stack = [`${type}: ${message}`, cause?.stack].filter(Boolean).join('\n');
  return error;
}
