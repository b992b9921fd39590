// The page shows the values of its charts, sorts its table of keys, and shows what a burst would
// refuse.
"use strict";

const $ = (id) => document.getElementById(id);

// The value under the pointer stands beside it at once. A browser would show a title later, and not
// under a finger.
for (const value of document.querySelectorAll(".value")) {
  value.dataset.text = value.textContent;
  value.replaceChildren();
}

function showTip(event) {
  const text = event.target.dataset?.text, tip = $("tip");
  tip.hidden = !text;
  tip.textContent = text ?? "";
  tip.style.left = `${Math.max(Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8), 8)}px`;
  tip.style.top = `${event.clientY + 16}px`;
}

addEventListener("pointermove", showTip);
addEventListener("pointerdown", showTip);

// A chart of time shows a part of it, from 0 to 1. Its marks stay, and get the times that they have
// then.
function zoomable(data) {
  const chart = data.ownerSVGElement, from = Number(data.dataset.from), to = Number(data.dataset.to);
  const [left, top, width, height] = data.getAttribute("viewBox").split(" ").map(Number);
  const marks = [...chart.querySelectorAll(".x")].map((mark) =>
    ({ mark, text: mark.textContent, at: (mark.getAttribute("x") - left) / width }));
  let low = 0, high = 1, start = null;

  function show(newLow, newHigh) {
    low = Math.max(newLow, 0);
    high = Math.min(newHigh, 1);
    data.setAttribute("viewBox", [left + low * width, top, (high - low) * width, height].join(" "));
    for (const { mark, text, at } of marks) {
      const time = new Date(1000 * (from + (to - from) * (low + (high - low) * at))).toISOString();
      mark.textContent = high - low === 1 ? text : time.slice(5, 19).replace("T", " ");
    }
  }

  const at = (event) => {
    const { left: edge, width: pixels } = chart.getBoundingClientRect();
    const x = ((event.clientX - edge) / pixels) * chart.viewBox.baseVal.width;
    return low + (high - low) * Math.min(Math.max((x - left) / width, 0), 1);
  };
  chart.addEventListener("pointerdown", (event) => { start = at(event); });
  chart.addEventListener("pointercancel", () => { start = null; });
  chart.addEventListener("pointerup", (event) => {
    const end = at(event);
    if (start !== null && Math.abs(end - start) > (high - low) / 50)
      show(Math.min(start, end), Math.max(start, end));
    start = null;
  });
  chart.addEventListener("dblclick", () => show(0, 1));
  chart.parentNode.addEventListener("keydown", (event) => {
    const middle = (low + high) / 2, half = (high - low) / 2;
    if (event.key === "+") show(middle - half / 2, middle + half / 2);
    if (event.key === "-") show(middle - 2 * half, middle + 2 * half);
  });
}

for (const data of document.querySelectorAll(".data")) zoomable(data);

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

const number = (x) => x.toLocaleString("en");

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
  $("keys-title").textContent = `${number(shown)} of ${number(refused)} ` +
    `${refused === 1 ? "client" : "clients"} that a limit of ${limit} refuses`;
}

// The picture of the curve of a rate, in the coordinates of its viewBox.
const left = 50, right = 590, ceiling = 10, floor = 150;

function showCurve(curve) {
  const { bursts, clients, requests, rates } = curve;
  const last = Math.max(bursts.length - 1, 1);
  const x = (i) => (left + ((right - left) * i) / last).toFixed(1);

  function show() {
    const index = $("rate").selectedIndex, i = $("burst").valueAsNumber;
    const rate = rates[index], burst = bursts[i];
    const shares = (counts, all) => counts ? counts.map((n) => (all ? n / all : 0)) : [];
    const ofClients = shares(rate.clients, clients), ofRequests = shares(rate.requests, requests);
    const most = Math.max(...ofClients, ...ofRequests, 0.001);
    const y = (share) => (floor - ((floor - ceiling) * share) / most).toFixed(1);
    const path = (list) => list.map((share, j) => `${j ? "L" : "M"}${x(j)} ${y(share)}`).join(" ");
    $("clients-curve").setAttribute("d", path(ofClients));
    $("requests-curve").setAttribute("d", path(ofRequests));
    $("marker").setAttribute("d", `M${x(i)} ${ceiling} V${floor}`);
    $("share").setAttribute("d", curve.share < most ? `M${left} ${y(curve.share)} H${right}` : "");
    $("share-text").setAttribute("y", y(curve.share) - 5);
    $("share-text").textContent = curve.share < most ? percent(curve.share, 1) : "";
    $("suggested").setAttribute("cx", x(curve.burst));
    $("suggested").setAttribute("cy", y(ofClients[curve.burst]));
    $("suggested").toggleAttribute("hidden", !curve.suggested || index !== curve.rate);
    $("top").textContent = percent(most, 1);
    $("burst").setAttribute("aria-valuetext", number(burst));
    const limit = `${rate.rate}, burst ${number(burst)}`;
    let text = `${limit}: refuses ${number(rate.clients[i])} of ` +
      `${number(clients)} clients (${percent(rate.clients[i], clients)})`;
    if (rate.requests)
      text += ` and ${number(rate.requests[i])} of ${number(requests)} requests ` +
        `(${percent(rate.requests[i], requests)})`;
    const sample = ` This is an estimate from one client in ${number(curve.one_in)}.`;
    $("refusals").textContent = `${text}.${curve.one_in > 1 ? sample : ""}`;
    showUse(rate, burst);
    showClients(index, burst, rate.clients[i], limit);
  }

  // showUse writes the command that replays a limit and, if there is one, its policy.
  function showUse(rate, burst) {
    let text = `tb replay --rate ${rate.rate} --burst ${burst}${curve.replay_flags} FILE`;
    const config = rate.policy?.rules[0].algorithm_config;
    if (config && burst >= config.tokens_per_second) {
      config.burst = burst;
      text += `\ntb proxy --policy policy.json${curve.proxy_flags}\n\npolicy.json:\n\n` +
        JSON.stringify(rate.policy, null, 2);
    }
    $("use").textContent = text;
  }

  $("rate").selectedIndex = curve.rate;
  $("burst").max = bursts.length - 1;
  $("burst").value = curve.burst;
  $("end").textContent = number(bursts.at(-1));
  $("rate").addEventListener("change", show);
  $("burst").addEventListener("input", show);
  $("try").hidden = false;
  show();
}

if ($("refusal-curve")) showCurve(JSON.parse($("refusal-curve").textContent));
