"use strict";

// The status page: asks for /status.json every second and shows what it says. Names and
// reasons come from others, so all text is set as text and nothing is read as HTML.

const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

const state = { status: null, order: "queue", reverse: false, open: new Set(), paused: false };

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function drawing(width, height, className, ...shapes) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.setAttribute("class", className);
  svg.setAttribute("aria-hidden", "true");
  svg.append(...shapes);
  return svg;
}

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// Numbers as people compare them.

const few = (v) => (v < 9.95 ? String(Math.round(v * 10) / 10) : String(Math.round(v)));

function time(seconds) {
  if (!(seconds > 0)) return "";
  if (seconds < 0.0009995) return few(seconds * 1e6) + " µs";
  if (seconds < 0.9995) return few(seconds * 1e3) + " ms";
  if (seconds < 120) return few(seconds) + " s";
  return few(seconds / 60) + " min";
}

function rate(perSecond) {
  if (perSecond === 0) return "0";
  return perSecond < 0.1 ? "<0.1" : few(perSecond);
}

const count = (n, one, many) => n + " " + (n === 1 ? one : many);

const sum = (i) => i.creating + i.busy + i.idle + i.leaving;

function ago(at, now) {
  const seconds = (Date.parse(now) - Date.parse(at)) / 1000;
  if (seconds < 1.5) return "now";
  if (seconds < 120) return Math.round(seconds) + " s ago";
  if (seconds < 7200) return Math.floor(seconds / 60) + " min ago";
  return Math.floor(seconds / 3600) + " h ago";
}

// Drawings.

const minute = 60;

function spark(values, width = 120, height = 22) {
  const most = Math.max(...values, 0);
  if (most === 0) return drawing(width, height, "spark");
  const step = width / (minute - 1);
  const first = minute - values.length;
  const points = values.map((v, i) => `${((first + i) * step).toFixed(1)},${(height - 1.5 - (v / most) * (height - 3)).toFixed(1)}`);
  const area = [`${(first * step).toFixed(1)},${height}`, ...points, `${width},${height}`];
  return drawing(width, height, "spark", shape("polygon", { points: area.join(" ") }), shape("polyline", { points: points.join(" ") }));
}

function bar(share, width, className = "fill") {
  return drawing(width, 10, "inline", shape("rect", { width, height: 10, rx: 3, class: "track" }),
    shape("rect", { width: Math.min(1, Math.max(0, share)) * width, height: 10, rx: 3, class: className }));
}

function instancesBar(instances) {
  const all = sum(instances);
  const parts = [["busy", instances.busy], ["idle", instances.idle], ["new", instances.creating], ["going", instances.leaving]];
  const width = 70, shapes = [];
  let x = 0;
  for (const [className, n] of parts) {
    if (n === 0) continue;
    shapes.push(shape("rect", { x, width: (n / all) * width, height: 10, class: className }));
    x += (n / all) * width;
  }
  return drawing(width, 10, "inline", ...shapes);
}

// inStates says how many instances are in which state.
function inStates(i) {
  return [[i.busy, "busy"], [i.idle, "idle"], [i.creating, "starting"], [i.leaving, "leaving"]]
    .filter(([n]) => n > 0).map(([n, word]) => n + " " + word).join(", ");
}

// The table of functions.

// known is a rate, or a dash before there are two samples to make one of.
const known = (text) => (state.status.overSeconds > 0 ? text : "–");

const zero = (text) => (text === "0" ? "zero" : "");

const columns = [
  { order: "name", title: "Function", className: "left", cell: nameCell },
  { order: "queue", title: "Queue", cell: (f) => element("td", { textContent: f.queued, className: f.queued ? "warn" : "zero" }) },
  { title: "Oldest", className: "low", cell: (f) => element("td", { textContent: time(f.oldestWaitSeconds), className: f.oldestWaitSeconds > 1 ? "low bad" : "low" }) },
  { order: "instances", title: "Instances", className: "left", cell: instancesCell },
  { order: "rate", title: "Calls/s", cell: (f) => element("td", { textContent: known(rate(f.rate)), className: zero(rate(f.rate)) }) },
  { order: "errors", title: "Errors/s", className: "mid", cell: (f) => element("td", { textContent: known(rate(f.errors)), className: f.errors ? "mid bad" : "mid zero" }) },
  { title: "p50", className: "low", cell: (f) => element("td", { textContent: time(f.p50Seconds), className: "low" }) },
  { order: "p99", title: "p99", cell: (f) => element("td", { textContent: time(f.p99Seconds) }) },
  { title: "Recent calls", className: "left few", cell: (f) => element("td", { className: "left few" }, spark(f.recent)) },
  { title: "Last decision", className: "left why", cell: whyCell },
];

const keyOf = (f) => f.namespace + "/" + f.name;

function nameCell(f) {
  const key = keyOf(f);
  const button = element("button", { type: "button", className: "name", textContent: f.namespace === "default" ? f.name : key });
  button.setAttribute("aria-expanded", state.open.has(key));
  button.addEventListener("click", () => {
    if (!state.open.delete(key)) state.open.add(key);
    show();
  });
  const cell = element("td", { className: f.broken ? "left bad" : "left" }, button);
  if (f.broken) cell.append(" " + f.broken);
  return cell;
}

function instancesCell(f) {
  const all = sum(f.instances);
  const cell = element("td", { className: all ? "left" : "left zero", title: inStates(f.instances) }, String(all));
  if (all) cell.append(instancesBar(f.instances));
  return cell;
}

function whyCell(f) {
  if (!f.last) return element("td", { className: "why" });
  const { cancelled, launched, reason } = f.last;
  const change = cancelled ? "-" + cancelled + " " : f.last.changed ? "+" + launched + " " : "";
  return element("td", { className: f.last.changed ? "why changed" : "why", textContent: change + reason, title: f.last.what + ": " + f.last.why });
}

const orders = {
  name: () => 0,
  queue: (a, b) => b.queued - a.queued || b.oldestWaitSeconds - a.oldestWaitSeconds || b.rate - a.rate,
  rate: (a, b) => b.rate - a.rate,
  errors: (a, b) => b.errors - a.errors,
  p99: (a, b) => (b.p99Seconds ?? 0) - (a.p99Seconds ?? 0),
  instances: (a, b) => sum(b.instances) - sum(a.instances),
};

function chosen(functions) {
  const text = byId("filter").value.toLowerCase();
  const sorted = functions.filter((f) => keyOf(f).toLowerCase().includes(text));
  sorted.sort((a, b) => orders[state.order](a, b) || (keyOf(a) < keyOf(b) ? -1 : 1));
  return state.reverse ? sorted.reverse() : sorted;
}

function head() {
  byId("head").replaceChildren(...columns.map((c) => {
    const cell = element("th", { scope: "col", className: c.className ?? "" });
    if (!c.order) {
      cell.append(c.title);
      return cell;
    }
    const button = element("button", { type: "button", textContent: c.title });
    if (c.order === state.order) {
      cell.setAttribute("aria-sort", (c.order === "name") === state.reverse ? "descending" : "ascending");
      button.textContent += state.reverse ? " ▴" : " ▾";
    }
    button.addEventListener("click", () => {
      state.reverse = state.order === c.order && !state.reverse;
      state.order = c.order;
      head();
      show();
    });
    cell.append(button);
    return cell;
  }));
}

function details(f, now) {
  const facts = [];
  const fact = (name, text) => facts.push(element("p", {}, element("span", { className: "soft", textContent: name + " " }), text));
  if (f.broken) facts.push(element("p", { className: "bad", textContent: "cannot run: " + f.broken }), element("p", { className: "soft", textContent: "windlass describe " + keyOf(f) + " says more" }));
  if (f.queued) fact("waiting", count(f.queued, "call", "calls") + ", the first for " + time(f.oldestWaitSeconds));
  fact("instances", inStates(f.instances) || "none");
  if (f.revisions) fact("revisions", f.revisions.map((r) => r.revision + ": " + (r.broken ? "cannot run, " + r.broken : inStates(r.instances) || "none")).join("; "));
  if (f.plan.required) fact("needed", String(f.plan.required));
  if (f.plan.meanExecutionSeconds) fact("an execution takes", time(f.plan.meanExecutionSeconds));
  fact("starts", `${f.plan.launched} launched, ${f.plan.started} started, ${f.plan.failed} failed` +
    (f.plan.meanStartSeconds ? `; one takes ${time(f.plan.meanStartSeconds)}` : ""));
  const decision = f.last
    ? [element("p", { textContent: f.last.what + ": " + f.last.why }),
      element("p", { className: "soft", textContent: ago(f.last.until, now) + (f.last.times > 1 ? `, ${f.last.times} times` : "") })]
    : [element("p", { className: "soft", textContent: "nothing was decided lately" })];
  const grid = element("div", { className: "grid" },
    element("div", {}, element("h3", { textContent: "Instances" }), ...facts),
    element("div", {}, element("h3", { textContent: "Last decision" }), ...decision));
  if (f.phases) grid.append(phases("Where a call's time goes", f.phases));
  if (f.coldPhases) grid.append(phases("Where a cold start's time goes", f.coldPhases));
  return element("tr", { className: "open" }, element("td", { className: "details", colSpan: columns.length }, grid));
}

function phases(title, list) {
  return element("div", {}, element("h3", { textContent: title }), ...list.map((s) =>
    element("div", { className: "phase" }, element("span", { textContent: s.name }), element("span", { textContent: time(s.meanSeconds) || "0" }),
      bar(s.share, 100))));
}

// The rest of the page.

function totals(t) {
  const card = (title, value, more, className = "") => element("div", {}, element("dt", { textContent: title }),
    element("dd", { className, textContent: value }, ...(more ? [more] : [])));
  const small = (text) => element("small", { textContent: text });
  return [
    card("Calls per second", known(rate(t.rate)), spark(t.recent, 140, 26)),
    card("Waiting", t.queued, small(t.queued ? "the first for " + time(t.oldestWaitSeconds) : "no call waits"), t.queued ? "warn" : ""),
    card("Instances", sum(t.instances), small(inStates(t.instances) || "none is there")),
    card("p50 · p99", t.p50Seconds ? time(t.p50Seconds) + " · " + time(t.p99Seconds) : "–", small("time a call took")),
    card("Errors per second", known(rate(t.errors)), small("answers from 500, or broken off"), t.errors ? "bad" : ""),
    card("Functions", t.functions, small(t.broken ? t.broken + " cannot run" : known(t.called) + " called in the last minute"), t.broken ? "bad" : ""),
  ];
}

function nodeRow(n) {
  const share = (value) => {
    const cell = element("td", { className: "left" });
    if (value === undefined) cell.append(element("span", { className: "zero", textContent: "unknown" }));
    else cell.append(Math.round(value * 100) + " %", bar(value, 120, value > 0.95 ? "fill full" : "fill"));
    return cell;
  };
  return element("tr", {}, element("td", { className: "left", textContent: n.name }), element("td", { textContent: n.instances }),
    share(n.requested?.cpu), share(n.requested?.memory));
}

function show() {
  const s = state.status;
  if (!s) return;
  byId("where").textContent = `${s.version}, gateway at ${s.gatewayURL}`;
  byId("clock").textContent = new Date(s.at).toLocaleTimeString([], { hourCycle: "h23" });
  byId("totals").replaceChildren(...totals(s.totals));
  const functions = chosen(s.functions);
  // A user who has just pressed a button keeps it.
  const focused = document.activeElement?.matches("button.name") ? document.activeElement.textContent : null;
  byId("functions").replaceChildren(...functions.flatMap((f) => {
    const open = state.open.has(keyOf(f));
    const row = element("tr", { className: open ? "open" : "" }, ...columns.map((c) => c.cell(f)));
    return open ? [row, details(f, s.at)] : [row];
  }));
  if (focused) [...document.querySelectorAll("button.name")].find((b) => b.textContent === focused)?.focus();
  const none = byId("none");
  none.hidden = functions.length > 0 && !s.more;
  none.textContent = s.more ? `${s.more} functions with fewer calls are not shown.`
    : s.functions.length ? "No function's name contains this." : "There is no function yet.";
  byId("nodes-section").hidden = s.nodes.length === 0;
  byId("nodes").replaceChildren(...s.nodes.map(nodeRow));
}

function trouble(text) {
  byId("trouble").hidden = !text;
  byId("trouble").textContent = text;
}

async function ask() {
  // A page that nobody sees asks nothing.
  if (document.hidden || state.paused) return;
  try {
    const response = await fetch("status.json", { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (!response.ok) throw new Error(await response.text());
    state.status = await response.json();
    trouble((state.status.troubles ?? []).join("; "));
    show();
  } catch (error) {
    trouble("Windlass does not answer, and is asked again: " + error.message);
  }
}

async function watch() {
  for (;;) {
    await ask();
    await new Promise((done) => setTimeout(done, 1000));
  }
}

byId("filter").addEventListener("input", show);
byId("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  byId("pause").setAttribute("aria-pressed", state.paused);
  byId("pause").textContent = state.paused ? "Go on" : "Pause";
});
document.addEventListener("visibilitychange", ask);
// A link may name a function to look at, such as #default/hello.
function linked(hash) {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return ""; // No name has a % that means nothing.
  }
}

const linkedTo = linked(location.hash);
if (linkedTo) state.open.add(linkedTo);
head();
watch();
