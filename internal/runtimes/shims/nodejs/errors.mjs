// What can be said of whatever was thrown, which need not be an Error, nor well made.
const here = new URL('.', import.meta.url).href;

// textOf is a value as text, also if it cannot be converted.
export function textOf(value) {
  try {
    return String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

// typeOf is the name of an error's class, whether or not the class says it again.
export function typeOf(error) {
  if (!(error instanceof Error)) return typeof error;
  return textOf(error.name === 'Error' ? error.constructor?.name : error.name);
}

export function messageOf(error) {
  return textOf(error instanceof Error ? error.message : error);
}

export function stackOf(error) {
  if (!(error instanceof Error)) return textOf(error);
  // Frames of the shim say nothing about the handler.
  return textOf(error.stack ?? error).split('\n').filter((line) => !line.includes(here)).join('\n');
}
