// The page draws its charts from its tables.

const $ = (id) => document.getElementById(id);

// A chart takes the place of its table, which stays for screen readers and for its values.
for (const details of document.querySelectorAll("details")) details.open = false;

// read returns the columns of a table as numbers: times in seconds, counts, or counts' shares.
function read(table) {
  const rows = [...table.tBodies[0].rows], heads = [...table.tHead.rows[0].cells];
  const value = (text) => text.includes(":") ? Date.parse(`${text.replace(" ", "T")}Z`) / 1000 :
    Number(text.match(/([\d.]+) %/)?.[1] ?? text.replaceAll(",", ""));
  return {
    heads: heads.map((head) => head.textContent),
    columns: heads.map((_, i) => rows.map(({ cells }) =>
      value((cells[i].querySelector("bdi") ?? cells[i]).textContent))),
    text: (i) => [...rows[i].cells].map((cell, j) =>
      j ? `${heads[j].textContent}: ${cell.textContent}` : cell.textContent).join(", "),
  };
}

function showTime(table) {
  const { heads, columns: [starts, ...counts], text } = read(table);
  const x = [...starts, starts.at(-1) + (starts.length > 1 ? starts[1] - starts[0] : 1)];
  const looks = [
    { name: "requests", color: "--accent", fill: "55" }, { name: "refused", color: "--refused", fill: "ff" },
  ];
  drawChart($("time-chart"), {
    label: $("time-title").textContent, data: [x, ...counts.map((list) => [...list, list.at(-1)])],
    x: { label: "UTC", time: true }, y: {}, series: looks.slice(0, heads.length - 1),
    steps: true, tip: text,
  });
}

function showCurve(table) {
  const { heads, columns: [bursts, ...shares], text } = read(table), share = Number(table.dataset.share);
  const chosen = table.querySelector("small").closest("tr").sectionRowIndex, colors = ["--accent", "--refused"];
  // The labels of the curves stand where these are farthest apart, and not beside the suggested burst.
  const near = Math.log(bursts.at(-1) / bursts[0]) / 4;
  const gaps = bursts.map((burst, i) => Math.abs(Math.log(burst / bursts[chosen])) < near ? -1 :
    Math.abs(Math.log((shares[0][i] + 1) / ((shares[1]?.[i] ?? 0) + 1))));
  const wide = gaps.indexOf(Math.max(...gaps));
  drawChart($("bursts-chart"), {
    label: $("bursts-title").textContent, data: [bursts, ...shares, bursts.map(() => share)],
    x: { label: "burst", log: true },
    y: { linear: share || 1, ticks: [0, share, 10, 100].sort((a, b) => a - b), format: (p) => `${p} %` },
    series: [{ color: colors[0], width: 3 }, ...(shares[1] ? [{ color: colors[1] }] : []),
      { color: "--faint", dash: [4, 4] }],
    marks: () => [
      ...shares.map((list, i) => ({
        x: bursts[wide], y: list[wide], text: heads[i + 1], color: colors[i] })),
      { x: bursts[chosen], y: shares[0][chosen], dot: true,
        text: `suggested: burst ${number(bursts[chosen])}` },
    ],
    tip: (i) => `burst ${text(i)}`,
  });
}

if ($("time")) showTime($("time"));
if ($("bursts")) showCurve($("bursts"));
