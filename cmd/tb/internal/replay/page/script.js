// The page sorts its table of keys, and shows what a burst would refuse.
"use strict";

const $ = (id) => document.getElementById(id);

// A header sorts its column. The first click sorts names up and numbers down.
function sortBy(header) {
  const column = header.cellIndex, body = $("keys").tBodies[0];
  const first = column === 0 ? "ascending" : "descending";
  const other = column === 0 ? "descending" : "ascending";
  const order = header.ariaSort === first ? other : first;
  const sign = order === "ascending" ? 1 : -1;
  const compare = column === 0 ?
    (a, b) => a.cells[0].textContent.localeCompare(b.cells[0].textContent, "en", { numeric: true }) :
    (a, b) => a.cells[column].dataset.value - b.cells[column].dataset.value;
  body.append(...[...body.rows].sort((a, b) => sign * compare(a, b)));
  for (const h of header.parentNode.cells) h.ariaSort = h === header ? order : null;
}

for (const header of $("keys")?.tHead.rows[0].cells ?? [])
  header.firstElementChild.addEventListener("click", () => sortBy(header));

const number = (x) => x.toLocaleString("en");

function percent(part, all) {
  const p = all ? (100 * part) / all : 0;
  if (p > 0 && p < 0.05) return "< 0.1 %";
  if (p > 99.95 && p < 100) return "> 99.9 %";
  return `${p.toFixed(1)} %`;
}

// The picture of the curve of a rate, in the coordinates of its viewBox.
const left = 50, right = 590, ceiling = 10, floor = 150;

function showCurve(curve) {
  const { bursts, clients, requests, rates } = curve;
  const last = Math.max(bursts.length - 1, 1);
  const x = (i) => left + ((right - left) * i) / last;

  function show() {
    const rate = rates[$("rate").selectedIndex], i = $("burst").valueAsNumber;
    const shares = (counts, all) => counts ? counts.map((n) => (all ? n / all : 0)) : [];
    const ofClients = shares(rate.clients, clients), ofRequests = shares(rate.requests, requests);
    const most = Math.max(...ofClients, ...ofRequests, 0.001);
    const path = (list) => list.map((share, j) =>
      `${j ? "L" : "M"}${x(j).toFixed(1)} ${(floor - ((floor - ceiling) * share) / most).toFixed(1)}`);
    $("clients-curve").setAttribute("d", path(ofClients).join(" "));
    $("requests-curve").setAttribute("d", path(ofRequests).join(" "));
    $("marker").setAttribute("d", `M${x(i).toFixed(1)} ${ceiling} V${floor}`);
    $("top").textContent = percent(most, 1);
    $("burst").setAttribute("aria-valuetext", number(bursts[i]));
    let text = `${rate.rate}, burst ${number(bursts[i])}: refuses ${number(rate.clients[i])} of ` +
      `${number(clients)} clients (${percent(rate.clients[i], clients)})`;
    if (rate.requests)
      text += ` and ${number(rate.requests[i])} of ${number(requests)} requests ` +
        `(${percent(rate.requests[i], requests)})`;
    const sample = ` This is an estimate from one client in ${number(curve.one_in)}.`;
    $("refusals").textContent = `${text}.${curve.one_in > 1 ? sample : ""}`;
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
