// Takes a picture of every recorded dashboard with headless Chromium:
//   node shoot.mjs PAGES RECORDED FOLDER NAME...
import { createReadStream, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { spawnSync, execFile } from 'node:child_process';
import { extname, join, normalize } from 'node:path';
import { tmpdir } from 'node:os';

const [pages, recorded, out, ...boards] = process.argv.slice(2);
if (boards.length === 0) throw new Error('usage: node shoot.mjs PAGES RECORDED FOLDER NAME...');
const width = 1500;
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.woff2': 'font/woff2', '.svg': 'image/svg+xml' };

const server = createServer((request, response) => {
  const path = normalize(new URL(request.url, 'http://x').pathname);
  const file = path === '/recorded.json' ? recorded : join(pages, path === '/' ? 'index.html' : path);
  if (!existsSync(file)) return void response.writeHead(404).end();
  response.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' });
  createReadStream(file).pipe(response);
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));

const chromium = ['chromium', 'chromium-browser', 'google-chrome', 'chromium-headless-shell'].find((name) => spawnSync(name, ['--version']).status === 0);
if (!chromium) throw new Error('Chromium is missing: install the Debian package chromium');

function height(name) {
  const { board } = JSON.parse(readFileSync(recorded, 'utf8')).boards.find((one) => one.name === name);
  return Math.max(...board.panels.map(({ gridPos }) => gridPos.y + gridPos.h)) * 38 + 56;
}

const profile = mkdtempSync(join(tmpdir(), 'windlass-pictures-'));
try {
  for (const name of boards) {
    const file = join(out, `${name}.png`);
    await new Promise((done, failed) => execFile(chromium, [
      '--headless=new', '--no-sandbox', '--enable-logging=stderr', '--disable-gpu', '--hide-scrollbars', '--force-color-profile=srgb', `--user-data-dir=${profile}`,
      `--window-size=${width},${height(name)}`, '--virtual-time-budget=15000', `--screenshot=${file}`,
      `http://127.0.0.1:${server.address().port}/?board=${name}`,
    ], { timeout: 120_000 }, (error, _, stderr) => {
      if (error) return failed(error);
      const complaints = stderr.split('\n').filter((line) => line.includes("CONSOLE"));
      if (complaints.length > 0) return failed(new Error(`${name}: ${complaints.join('\n')}`));
      done();
    }));
    console.log(file);
  }
} finally {
  rmSync(profile, { recursive: true, force: true });
  server.close();
}
