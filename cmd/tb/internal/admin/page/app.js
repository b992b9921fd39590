// The page: it asks the server for its state twice a second, and shows it.

import { Bucket } from "./bucket.js";
import { offer } from "./burst.js";
import { Chart } from "./chart.js";
import { html, number, rate, show } from "./dom.js";

const period = 500; // milliseconds from one question to the next

const $ = (id) => document.getElementById(id);
const buckets = new Map(), charts = new Map(), rows = new Map();
let made = 0; // numbers that make ids unique

// match keeps a node for each item: new ones are made, and those of no item removed.
function match(nodes, parent, items, key, make) {
  const seen = new Set();
  items.forEach((item, i) => {
    const id = key(item);
    seen.add(id);
    if (!nodes.has(id)) nodes.set(id, make(++made));
    const one = nodes.get(id);
    if (parent.children[i] !== one.node) parent.insertBefore(one.node, parent.children[i] ?? null);
    one.update(item);
  });
  for (const [id, one] of nodes) {
    if (seen.has(id)) continue;
    one.node.remove();
    nodes.delete(id);
  }
}

class Row {
  constructor() {
    this.cells = [html("th", { scope: "row" })];
    for (let i = 0; i < 7; i++) this.cells.push(html("td"));
    this.node = html("tr", {}, ...this.cells);
  }

  update(r) {
    [r.set ? `${r.set}/${r.name}` : r.name, r.shadow ? "shadow" : "enforce", number(r.capacity),
      rate(r.rate), number(r.granted), number(r.refused), number(r.keys), number(r.evicted),
    ].forEach((text, i) => show(this.cells[i], text));
  }
}

function render(state) {
  show($("where"), `in front of ${state.demo ? "the demo upstream" : "your upstream"}, at ${state.proxy}`);
  $("no-buckets").hidden = state.buckets.length > 0;
  match(buckets, $("buckets"), state.buckets, (b) => JSON.stringify([b.rule, b.key]), (id) => new Bucket(id));
  const name = (r) => JSON.stringify([r.set, r.name]);
  match(charts, $("charts"), state.rules, name, (id) => new Chart(id));
  match(rows, $("rules"), state.rules, name, () => new Row());
  if (state.demo && $("try").hidden) offer(state, poll);
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
    show(connection, "The proxy does not answer.");
    connection.classList.add("lost");
  }
}

async function keepPolling() {
  if (!document.hidden) await poll();
  setTimeout(keepPolling, period);
}

let last = performance.now();
function animate(now) {
  for (const b of buckets.values()) b.pass((now - last) / 1000);
  last = now;
  requestAnimationFrame(animate);
}

keepPolling();
requestAnimationFrame(animate);
