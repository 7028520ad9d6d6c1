// What can be said of whatever was thrown, which need not be an Error, nor well made.
const here = new URL('.', import.meta.url).href;
// How many causes of an error are shown: they can go round in circles.
const mostCauses = 5;

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

// messageOf is the message of an error, or those of the errors that it stands for.
export function messageOf(error) {
  if (!(error instanceof Error)) return textOf(error);
  return textOf(error.message) || several(error);
}

// several joins the messages of the errors that one without a message stands for, as that
// of a connection tried at each address of a host.
function several(error) {
  return Array.isArray(error.errors) ? error.errors.map((one) => textOf(one?.message ?? one)).join('; ') : '';
}

// stackOf is the stack of an error and of its causes: that fetch failed says nothing.
export function stackOf(error) {
  const stacks = [ownStack(error)];
  for (let one = error?.cause; one != null && stacks.length <= mostCauses; one = one.cause) stacks.push(`[cause]: ${ownStack(one)}`);
  return stacks.join('\n');
}

function ownStack(error) {
  if (!(error instanceof Error)) return textOf(error);
  // Frames of the shim say nothing about the handler.
  const lines = textOf(error.stack ?? error).split('\n').filter((line) => !line.includes(here));
  const rest = textOf(error.message) ? '' : several(error);
  return (rest ? [...lines, `[errors]: ${rest}`] : lines).join('\n');
}
