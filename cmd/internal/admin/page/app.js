// The page polls the server's state twice a second and shows it.

import { Bucket } from "./bucket.js";
import { showForm } from "./burst.js";
import { Chart } from "./chart.js";
import { html, number, rate, show } from "./dom.js";
import { showEdge } from "./edge.js";

const pollInterval = 500; // milliseconds

const $ = (id) => document.getElementById(id);
const buckets = new Map(), charts = new Map(), rows = new Map();
let lastID = 0; // of an element that needs a unique id

// sync keeps one view for each item, in order: it makes, updates and removes views.
function sync(views, parent, items, key, make) {
  const seen = new Set();
  items.forEach((item, i) => {
    const id = key(item);
    seen.add(id);
    if (!views.has(id)) views.set(id, make(++lastID));
    const view = views.get(id);
    if (parent.children[i] !== view.node) parent.insertBefore(view.node, parent.children[i] ?? null);
    view.update(item);
  });
  for (const [id, view] of views) {
    if (seen.has(id)) continue;
    view.node.remove();
    views.delete(id);
  }
}

// delayed returns the number of delayed requests and their mean delay.
function delayed(r) {
  const mean = r.meanDelay < 1 ? `${number(r.meanDelay * 1000)} ms` : `${number(r.meanDelay, 1)} s`;
  return r.delayed ? `${number(r.delayed)}, by ${mean}` : "0";
}

// settled returns the tokens that responses reported, and how many responses reported none.
function settled(r) {
  const without = r.estimated ? `, ${number(r.estimated)} without cost` : "";
  return r.settled || r.estimated ? number(r.settled) + without : "–";
}

class Row {
  constructor() {
    this.cells = [html("th", { scope: "row" })];
    for (let i = 0; i < 12; i++) this.cells.push(html("td"));
    this.node = html("tr", {}, ...this.cells);
  }

  update(r) {
    [r.set ? `${r.set}/${r.name}` : r.name, r.shadow ? "shadow" : "enforce", number(r.capacity),
      rate(r.rate), number(r.granted), number(r.refused), delayed(r), number(r.waiting), number(r.hungUp),
      number(r.keys), number(r.evicted), settled(r), r.settled ? number(r.unpaid) : "–",
    ].forEach((text, i) => show(this.cells[i], text));
  }
}

function render(state) {
  document.title = state.title;
  show($("title"), state.title);
  show($("where"), state.where);
  $("no-buckets").hidden = state.buckets.length > 0;
  sync(buckets, $("buckets"), state.buckets, (b) => JSON.stringify([b.rule, b.key]), (id) => new Bucket(id));
  const name = (r) => JSON.stringify([r.set, r.name]);
  sync(charts, $("charts"), state.rules, name, (id) => new Chart(id));
  sync(rows, $("rules"), state.rules, name, () => new Row());
  if (state.demo && $("try").hidden) {
    showForm(state, poll);
    showEdge().catch(() => {}); // poll shows that the server does not answer
  }
}

async function poll() {
  const connection = $("connection");
  try {
    const response = await fetch("api/state");
    if (!response.ok) throw new Error(response.statusText);
    render(await response.json());
    show(connection, "live");
    connection.classList.remove("lost");
  } catch {
    show(connection, "The server does not answer.");
    connection.classList.add("lost");
  }
}

async function keepPolling() {
  if (!document.hidden) await poll();
  setTimeout(keepPolling, pollInterval);
}

let last = performance.now();
function animate(now) {
  for (const b of buckets.values()) b.advance((now - last) / 1000);
  last = now;
  requestAnimationFrame(animate);
}

keepPolling();
requestAnimationFrame(animate);
