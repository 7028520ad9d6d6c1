// Loads the handler that the environment names.
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { messageOf, textOf } from './errors.mjs';

const extensions = ['.js', '.mjs', '.cjs'];

// load returns the handler; what it throws has the name of the error's type.
export async function load() {
  const root = process.env.LAMBDA_TASK_ROOT;
  if (!root) throw failure('Runtime.ImportModuleError', 'LAMBDA_TASK_ROOT is not set; it must be the folder of the code');
  const [module, name] = split(process.env._HANDLER ?? '');
  const files = extensions.map((extension) => path.join(root, module + extension));
  const file = files.find((candidate) => existsSync(candidate));
  if (!file) throw failure('Runtime.ImportModuleError', `Unable to import module '${module}': there is none of ${files.join(', ')}`);
  let loaded;
  try {
    loaded = await importFile(file);
  } catch (cause) {
    const reason = cause instanceof Error ? `${textOf(cause.name)}: ${messageOf(cause)}` : textOf(cause);
    throw failure('Runtime.ImportModuleError', `Unable to import module '${file}': ${reason}`, cause);
  }
  const handler = find(loaded, name) ?? find(loaded.default, name);
  if (typeof handler !== 'function') {
    const what = handler === undefined ? 'missing from' : 'not a function in';
    throw failure('Runtime.HandlerNotFound', `Handler '${name}' is ${what} module '${file}'`);
  }
  return handler;
}

// split parts module and name at the first dot behind the last slash.
function split(handler) {
  const [, module, name] = /^((?:[^/]+\/)*[^/.]+)\.([^/]+)$/.exec(handler) ?? [];
  if (!module || module.split('/').includes('..')) {
    throw failure('Runtime.MalformedHandlerName', `_HANDLER is '${handler}'; it must be module.function, such as app.handler`);
  }
  return [module, name];
}

// find follows a name such as "handlers.create"; a CommonJS module has its
// exports as properties of its default export.
function find(module, name) {
  return name.split('.').reduce((object, key) => object?.[key], module);
}

// importFile imports a CommonJS or an ES module. A .js file may be either if no
// package.json says which: single files have none.
async function importFile(file) {
  const emitWarning = process.emitWarning;
  process.emitWarning = (warning, ...rest) => {
    // Node.js asks for a package.json, which who wrote a single file cannot give.
    if (rest[0]?.code !== 'MODULE_TYPELESS_PACKAGE_JSON') emitWarning.call(process, warning, ...rest);
  };
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    if (!isModuleTakenForScript(error, file)) throw error;
    return await importCopy(file);
  } finally {
    process.emitWarning = emitWarning;
  }
}

// isModuleTakenForScript tells whether Node.js tried an ES module as CommonJS,
// as it does with .js files before 20.19.
function isModuleTakenForScript(error, file) {
  return error instanceof SyntaxError && file.endsWith('.js')
    && /Cannot use import statement|Unexpected token 'export'|Cannot use 'import\.meta'|await is only valid/.test(error.message)
    && String(error.stack).startsWith(realpathSync(file));
}

// importCopy imports a copy whose name says that it is an ES module. It finds
// built-in modules only, which is all that a single file can ask for.
async function importCopy(file) {
  const dir = mkdtempSync(path.join(tmpdir(), 'windlass-'));
  try {
    const copy = path.join(dir, `${path.basename(file, '.js')}.mjs`);
    writeFileSync(copy, readFileSync(file));
    return await import(pathToFileURL(copy).href);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function failure(type, message, cause) {
  const error = new Error(message, { cause });
  error.name = type;
  error.stack = `${type}: ${message}`;
  return error;
}
