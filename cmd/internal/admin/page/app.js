// The page polls the server's state twice a second and shows it.
"use strict";

const pollInterval = 500; // milliseconds

const $ = (id) => document.getElementById(id);
const warnings = new Map(), charts = new Map(), buckets = new Map(), rules = new Map();

// show sets a text only if it differs, so that screen readers do not repeat it.
function show(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function add(parent, name, attributes = {}) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  parent.append(node);
  return node;
}

// sync keeps one view for each item, in order: it makes, updates and removes views. A view has a
// node, and a function that updates it.
function sync(views, parent, items, key, make) {
  const seen = new Set();
  items.forEach((item, i) => {
    const id = JSON.stringify(key(item));
    seen.add(id);
    if (!views.has(id)) views.set(id, make(parent, item));
    const { node, update } = views.get(id);
    if (parent.children[i] !== node) parent.insertBefore(node, parent.children[i] ?? null);
    update(item);
  });
  for (const [id, { node }] of views) {
    if (seen.has(id)) continue;
    node.remove();
    views.delete(id);
  }
}

const title = (rule) => rule.set ? `${rule.set}/${rule.name}` : rule.name;
const sum = (list) => list.reduce((a, b) => a + b, 0);
const used = (rule) => sum(rule.grantedPerSecond) + sum(rule.refusedPerSecond) > 0;

const rate = (x) => x >= 0.1 ? `${number(x, 1)}/s` : `1 in ${number(1 / x)} s`;

const cell = (row, head) => add(row, "td", { "data-head": head });

// newChart returns the chart of a rule over the last two minutes. Its caption has the counts, which
// a screen reader reads instead.
function newChart(parent, rule) {
  const node = add(parent, "figure"), caption = add(node, "figcaption");
  const data = ({ grantedPerSecond: granted, refusedPerSecond: refused }) => {
    const n = granted.length; // the last interval ends now
    return [[...granted.map((_, i) => i - n), 0], [...granted.map((g, i) => g + refused[i]), 0],
      [...refused, 0]];
  };
  const plot = drawChart(add(node, "div", { class: "plot" }), {
    label: `Requests and refusals of ${title(rule)} in each of the last seconds`, data: data(rule),
    x: { format: (s) => s === 0 ? "now" : `${-s} s ago` }, y: {}, steps: true,
    series: [{ name: "requests", color: "--accent", fill: "55" },
      { name: "refused", color: "--refused", fill: "ff" }],
    tip: (i) => `${-plot.data[0][i]} s ago: ${number(plot.data[1][i])} requests, ` +
      `${number(plot.data[2][i])} refused`,
  });
  return { node, update(rule) {
    plot.setData(data(rule));
    show(caption, `${title(rule)}${rule.shadow ? " (shadow)" : ""}: in the last two minutes ` +
      `${number(sum(rule.grantedPerSecond))} granted, ${number(sum(rule.refusedPerSecond))} refused`);
  } };
}

const duration = (s) => s < 120 ? `${number(Math.ceil(s))} s` :
  s < 7200 ? `${number(s / 60)} min` : `${number(s / 3600, 1)} h`;

function newBucket(parent) {
  const node = add(parent, "tr"), key = add(node, "th", { scope: "row" });
  const [refused, level, rule] = ["Refused", "Tokens", "Rule"].map((head) => cell(node, head));
  const text = add(level, "span"), meter = add(level, "meter", { "aria-label": "Tokens" });
  return { node, update(bucket) {
    show(key, bucket.key);
    show(rule, bucket.rule);
    show(refused, number(bucket.refused));
    const known = bucket.level >= 0 && !bucket.held;
    meter.hidden = !known;
    meter.max = bucket.capacity;
    meter.value = bucket.level;
    const lent = bucket.lent ? `, ${number(Math.ceil(bucket.lent))} lent` : "";
    const of = ` of ${number(bucket.capacity)}${lent}`;
    show(text, bucket.held ? `held for ${duration(bucket.held)}` :
      known ? number(Math.floor(bucket.level)) + of : "not known");
  } };
}

function delay(rule) {
  const mean = rule.meanDelay < 1 ? `${number(rule.meanDelay * 1000)} ms` :
    `${number(rule.meanDelay, 1)} s`;
  return `${number(rule.delayed)}, by ${mean}`;
}

// The columns of the rules: the head, the text of a rule, and the number without which a rule has
// no text. A column without any text is not shown.
const columns = [
  ["Refused", (r) => number(r.refused), (r) => r.refused],
  ["Granted", (r) => number(r.granted), (r) => r.granted],
  ["Rate", (r) => rate(r.rate) + (r.maxRate ? `, ${number(r.minRate, 1)} to ${rate(r.maxRate)}` : ""),
    (r) => r.rate],
  ["Burst", (r) => number(r.capacity), (r) => r.capacity],
  ["Mode", () => "shadow", (r) => r.shadow],
  ["Keys", (r) => number(r.keys), (r) => r.keys],
  ["Delayed", delay, (r) => r.delayed],
  ["Waiting", (r) => number(r.waiting), (r) => r.waiting],
  ["Longest delay", (r) => `${number(r.maxDelay, 3)} s`, (r) => r.maxDelay],
];

function newRule(parent) {
  const node = add(parent, "tr"), name = add(node, "th", { scope: "row" });
  const cells = columns.map(([head]) => cell(node, head));
  return { node, update(rule) {
    show(name, title(rule));
    columns.forEach(([, text, value], i) => show(cells[i], value(rule) ? text(rule) : "–"));
  } };
}

function newWarning(parent) {
  const node = add(parent, "li");
  return { node, update: (text) => show(node, text) };
}

function render(state) {
  document.title = state.title;
  show($("title"), state.title);
  show($("where"), state.where);
  const all = state.rules.toSorted((a, b) => b.refused - a.refused), active = all.filter(used);
  $("warned").hidden = state.warnings.length === 0;
  $("no-requests").hidden = active.length > 0;
  $("no-buckets").hidden = state.buckets.length > 0;
  $("no-rules").hidden = all.length > 0;
  for (const id of ["buckets", "rules"])
    $(id).closest(".scroll").hidden = state[id].length === 0;
  const name = (rule) => [rule.set, rule.name];
  sync(warnings, $("warnings"), state.warnings, (text) => text, newWarning);
  sync(charts, $("charts"), active, name, newChart);
  sync(buckets, $("buckets"), state.buckets, (b) => [b.rule, b.key], newBucket);
  sync(rules, $("rules"), all, name, newRule);
  columns.forEach(([, , value], i) => {
    const none = !all.some(value);
    for (const row of $("columns").closest("table").rows) row.cells[i + 1].hidden = none;
  });
}

async function poll() {
  const response = await fetch("api/state").catch(() => null);
  $("connection").classList.toggle("lost", !response?.ok);
  show($("connection"), response?.ok ? "live" : "The server does not answer.");
  if (response?.ok) render(await response.json());
}

async function keepPolling() {
  setTimeout(keepPolling, pollInterval);
  if (!document.hidden) await poll();
}

for (const head of ["Rule", ...columns.map(([head]) => head)])
  add($("columns"), "th", { scope: "col" }).textContent = head;
keepPolling();
