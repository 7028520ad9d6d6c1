// Turns Markdown into HTML: POST Markdown, get a page.
//
// HTML inside the Markdown passes through, so show the result of other people's
// text only where it can do no harm.
import { marked } from 'marked';

const limit = 1 << 20;

export async function handler(request, response) {
  if (request.method !== 'POST') {
    return answer(response, 405, 'POST Markdown.\n', { Allow: 'POST' });
  }
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size <= limit) parts.push(part);
  }
  if (size > limit) return answer(response, 413, `The text has ${size} bytes: send at most ${limit}.\n`);

  const markdown = Buffer.concat(parts).toString();
  const title = /^#\s+(.+)$/m.exec(markdown)?.[1] ?? 'Untitled';
  answer(response, 200, page(title, marked.parse(markdown)), { 'Content-Type': 'text/html; charset=utf-8' });
}

function answer(response, status, text, headers = {}) {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', ...headers }).end(text);
}

function page(title, body) {
  return `<!doctype html>
<html>
<head><meta charset="utf-8"><title>${escape(title)}</title></head>
<body>
${body}</body>
</html>
`;
}

function escape(text) {
  return text.replace(/[&<>]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c]);
}
