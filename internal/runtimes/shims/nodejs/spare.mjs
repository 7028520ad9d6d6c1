// Makes a spare instance, which has loaded all but the code, one of a function's.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

// taskRoot is where code may be written, which is known to who made the instance.
export function taskRoot() {
  const root = process.env.LAMBDA_TASK_ROOT;
  if (!root) throw failure('LAMBDA_TASK_ROOT is not set; it must be a folder that can be written');
  return root;
}

// become does what an assignment says, which is an answer of the Runtime API.
export function become(answer, root) {
  if (answer.status !== 200) throw failure(`The assignment was refused with ${answer.status}: ${answer.body}`);
  const { variables, files } = JSON.parse(answer.body);
  delete process.env.WINDLASS_SPARE;
  for (const { name, value } of variables) process.env[name] = value;
  process.env.LAMBDA_TASK_ROOT = root;
  const decoded = files.map(({ path: name, content }) => [below(root, name), Buffer.from(content, 'base64')]);
  try {
    mkdirSync(root, { recursive: true });
    for (const [file, content] of decoded) {
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, content);
    }
    process.chdir(root);
  } catch (cause) {
    throw failure(`The code cannot be written below ${root}: ${cause.message}`);
  }
}

// below is where the file of a name is to be.
function below(root, name) {
  const parts = name.split('/');
  if (parts.some((part) => ['', '.', '..'].includes(part) || /[\\\0]/.test(part))) {
    throw failure(`The file '${name}' is not below the folder of the code`);
  }
  return path.join(root, ...parts);
}

function failure(message) {
  const error = new Error(message);
  error.name = 'Runtime.BadAssignment';
  error.stack = `${error.name}: ${message}`;
  return error;
}
