// The page draws its charts from its tables, sorts its table of keys, copies its texts, and shows
// what a burst would refuse.

const $ = (id) => document.getElementById(id);

// A chart takes the place of its table, which stays for screen readers and for its values.
for (const details of document.querySelectorAll("details")) details.open = false;

// read returns the columns of a table as numbers, and the texts of its rows.
function read(table) {
  const rows = [...table.tBodies[0].rows], heads = [...table.tHead.rows[0].cells];
  return {
    heads: heads.map((head) => head.textContent),
    columns: heads.map((_, i) => rows.map((row) => Number(row.cells[i].dataset.value))),
    text: (i) => [...rows[i].cells].map((cell, j) =>
      j ? `${heads[j].textContent}: ${cell.textContent}` : cell.textContent).join(", "),
  };
}

function showTime(table) {
  const { heads, columns: [starts, ...counts], text } = read(table), width = Number(table.dataset.width);
  const x = [...starts, starts.at(-1) + width], closed = (list) => [...list, list.at(-1)];
  const looks = {
    Requests: { name: "requests", color: "--accent", fill: "55" },
    Refused: { name: "refused", color: "--refused", fill: "ff" },
    "In a second": { name: "in a second", color: "--accent", fill: "22" },
  };
  const draw = (place, label, names) => drawChart(place, {
    label, data: [x, ...names.map((name) => closed(counts[heads.indexOf(name) - 1]))],
    x: { label: "UTC", time: true }, y: {}, series: names.map((name) => looks[name]),
    steps: true, tip: text, floor: 8 * width, group: "time",
  });
  const title = $("time-title").textContent;
  const plots = [draw($("requests"), title, heads.slice(1).filter((name) => name !== "In a second"))];
  if ($("busiest")) plots.push(draw($("busiest"), "Requests in the busiest second", ["In a second"]));

  // A button zooms in on the greatest count in view, and out around the middle.
  $("zoom").hidden = false;
  $("zoom").addEventListener("click", ({ target: { dataset } }) => {
    if (!dataset.by) return;
    const [{ scales: { x: { min, max } } }] = plots, by = Number(dataset.by);
    const seen = (s) => s + width > min && s < max;
    const most = Math.max(...counts[0].filter((_, i) => seen(starts[i])));
    const top = starts.find((s, i) => seen(s) && counts[0][i] === most) + width / 2;
    const middle = by < 1 ? top : (min + max) / 2;
    const half = Math.min((max - min) * by, x.at(-1) - x[0]) / 2;
    for (const plot of plots) plot.setScale("x", { min: middle - half, max: middle + half });
  });
}

function showBursts(table) {
  const { heads, columns: [rates, ...shares], text } = read(table);
  const chosen = Number(table.dataset.chosen), bursts = shares.map((list) => list.map((b) => b || null));
  const suggested = [...table.tBodies[0].rows].find((row) => row.dataset.suggested);
  const burst = Number(suggested?.dataset.suggested);
  drawChart($("bursts-plot"), {
    label: $("bursts-title").textContent, data: [rates, ...bursts],
    x: { label: "tokens a second", log: true, format: String }, y: { label: "burst", log: true },
    series: bursts.map((_, i) => i === chosen ? { color: "--accent", width: 3 } :
      { color: "--faint", dash: [4, 4] }),
    marks: () => [
      ...bursts.flatMap((list, i) => {
        const first = list.findIndex((b) => b);
        return first < 0 ? [] : [{ x: rates[first], y: list[first], text: heads[i + 1] }];
      }),
      ...(suggested ? [{ x: Number(suggested.cells[0].dataset.value), y: burst, dot: true,
        text: `suggested: ${suggested.cells[0].textContent}, burst ${number(burst)}` }] : []),
    ],
    tip: text,
  });
}

function sortRows(header, order) {
  const column = header.cellIndex, body = $("keys").tBodies[0];
  const sign = order === "ascending" ? 1 : -1;
  const compare = column === 0 ?
    (a, b) => a.cells[0].textContent.localeCompare(b.cells[0].textContent, "en", { numeric: true }) :
    (a, b) => a.cells[column].dataset.value - b.cells[column].dataset.value;
  body.append(...[...body.rows].sort((a, b) => sign * compare(a, b)));
  for (const h of header.parentNode.cells) h.ariaSort = h === header ? order : null;
}

// A header sorts its column. The first click sorts names up and numbers down.
for (const header of $("keys")?.tHead.rows[0].cells ?? []) {
  const orders = header.cellIndex === 0 ? ["ascending", "descending"] : ["descending", "ascending"];
  header.firstElementChild.addEventListener("click", () =>
    sortRows(header, orders[header.ariaSort === orders[0] ? 1 : 0]));
}

for (const button of document.querySelectorAll("[data-of]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText($(button.dataset.of).textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

function percent(part, all) {
  const p = all ? (100 * part) / all : 0;
  if (p > 0 && p < 0.05) return "< 0.1 %";
  if (p > 99.95 && p < 100) return "> 99.9 %";
  return `${p.toFixed(1)} %`;
}

// showClients shows the clients that a burst refuses in the table, of all that it refuses.
function showClients(rate, burst, refused, limit) {
  if (!$("keys")) return;
  let shown = 0;
  for (const row of $("keys").tBodies[0].rows) {
    const need = Number(row.dataset.needs.split(" ")[rate]); // 0 if no burst is enough
    row.hidden = need > 0 && need <= burst;
    shown += !row.hidden;
    row.cells[1].dataset.value = need || 2 ** 31;
    row.cells[1].textContent = need ? number(need) : "-";
  }
  const header = $("keys").querySelector("[aria-sort]");
  sortRows(header, header.ariaSort);
  $("keys-title").textContent = refused === 0 ? `A limit of ${limit} refuses no client` :
    `${number(shown)} of ${number(refused)} ${refused === 1 ? "client" : "clients"} that a limit of ` +
    `${limit} refuses`;
}

function showCurve(curve) {
  const { bursts, clients, requests, rates } = curve;
  const shares = (counts, all) => counts.map((n) => (all ? (100 * n) / all : 0));
  const choice = () => [$("rate").selectedIndex, $("burst").valueAsNumber];
  const data = (rate) => [bursts, shares(rate.clients, clients), bursts.map(() => 100 * curve.share),
    ...(rate.requests ? [shares(rate.requests, requests)] : [])];
  const plot = drawChart($("curve"), {
    label: "Share of the clients and the requests that a burst refuses", data: data(rates[curve.rate]),
    x: { label: "burst", log: true }, y: { format: (p) => `${p} %` },
    series: [{ color: "--accent", width: 3 }, { color: "--faint", dash: [4, 4] },
      ...(rates[0].requests ? [{ color: "--refused" }] : [])],
    marks({ data: [, ofClients, , ofRequests] }) {
      const [rate, i] = choice(), end = bursts.length - 1;
      const at = rate === curve.rate && i === curve.burst ? "suggested: " : "";
      const list = [{ x: bursts[end], y: 100 * curve.share, text: percent(curve.share, 1) },
        { x: bursts[0], y: ofClients[0], text: "clients" },
        { x: bursts[i], y: ofClients[i], text: `${at}burst ${number(bursts[i])}`, dot: true }];
      if (ofRequests) list.push({ x: bursts[0], y: ofRequests[0], text: "requests" });
      if (!at && rate === curve.rate)
        list.push({ x: bursts[curve.burst], y: ofClients[curve.burst], text: "suggested", dot: true });
      return list;
    },
    tip: (i) => refusals(rates[choice()[0]], i),
  });

  // refusals returns in words what the burst with an index refuses.
  function refusals(rate, i) {
    const text = `${rate.rate}, burst ${number(bursts[i])}: refuses ${number(rate.clients[i])} of ` +
      `${number(clients)} clients (${percent(rate.clients[i], clients)})`;
    return rate.requests ? `${text} and ${number(rate.requests[i])} of ${number(requests)} requests ` +
      `(${percent(rate.requests[i], requests)})` : text;
  }

  function show() {
    const [index, i] = choice(), rate = rates[index], burst = bursts[i];
    $("burst").setAttribute("aria-valuetext", number(burst));
    $("refusals").textContent = `${refusals(rate, i)}.`;
    plot.setData(data(rate));
    showUse(rate, burst);
    showClients(index, burst, rate.clients[i], `${rate.rate}, burst ${number(burst)}`);
  }

  // showUse writes the command that replays a limit and, if there is one, its policy.
  function showUse(rate, burst) {
    $("replay").textContent = `tb replay --rate ${rate.rate} --burst ${burst}${curve.replay_flags} FILE`;
    const config = rate.policy?.rules[0].algorithm_config;
    const isPolicy = config && burst >= config.tokens_per_second;
    for (const id of ["proxy", "policy"])
      if ($(id)) $(id).parentNode.hidden = !isPolicy;
    if (!isPolicy || !$("policy")) return;
    config.burst = burst;
    $("policy").textContent = JSON.stringify(rate.policy, null, 2);
  }

  $("rate").selectedIndex = curve.rate;
  $("burst").max = bursts.length - 1;
  $("burst").value = curve.burst;
  $("rate").addEventListener("change", show);
  $("burst").addEventListener("input", show);
  show();
}

if ($("time")) showTime($("time"));
if ($("bursts")) showBursts($("bursts"));
if ($("refusal-curve")) {
  $("try").hidden = false;
  showCurve(JSON.parse($("refusal-curve").textContent));
}
