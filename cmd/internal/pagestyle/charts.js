// A chart has a label for screen readers, shows the values under the pointer, and follows the width
// of its place and the colours of the page.
"use strict";

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });
const clamp = (x, low, high) => Math.max(low, Math.min(x, high));

const number = (x, decimals = 0) => x.toLocaleString("en", { maximumFractionDigits: decimals });

// The ticks of time by their least distance in seconds: a format, and what the first one in a year
// and the first one in a day have besides.
const timeTicks = [
  [365 * 86400, "{YYYY}"],
  [28 * 86400, "{MMM}", "\n{YYYY}"],
  [86400, "{MMM} {D}", "\n{YYYY}"],
  [60, "{HH}:{mm}", "\n{MMM} {D}, {YYYY}", "\n{MMM} {D}"],
  [1, "{HH}:{mm}:{ss}", "\n{MMM} {D}, {YYYY}", "\n{MMM} {D}"],
].map(([distance, format, year = null, day = null]) =>
  [distance, format, year, null, day, null, null, null, 1]);

const wholeSteps = [...Array(16).keys()].flatMap((power) => [1, 2, 5].map((n) => n * 10 ** power));

// write writes a mark into a chart: a text above a point, and the points of its dots.
function write(plot, { x, y, text, color = "--ink", dots = [] }) {
  const { ctx, bbox } = plot, unit = devicePixelRatio;
  const left = plot.valToPos(x, "x", true), top = plot.valToPos(y, "y", true);
  if (left < bbox.left || left > bbox.left + bbox.width) return;
  ctx.save();
  ctx.font = `${12 * unit}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.lineJoin = "round";
  ctx.lineWidth = 4 * unit;
  ctx.strokeStyle = css("--card");
  ctx.fillStyle = css(color);
  for (const dot of dots) {
    ctx.beginPath();
    ctx.arc(plot.valToPos(dot.x, "x", true), plot.valToPos(dot.y, "y", true), 4 * unit, 0, 2 * Math.PI);
    ctx.fill();
  }
  const lines = ctx.measureText(text).width > bbox.width ? text.split(", ") : [text];
  const above = Math.max(top - (14 * lines.length - 7) * unit, bbox.top + 12 * unit);
  lines.forEach((line, i) => {
    const half = ctx.measureText(line).width / 2;
    const at = clamp(left, bbox.left + half, bbox.left + bbox.width - half);
    ctx.strokeText(line, at, above + 14 * i * unit);
    ctx.fillText(line, at, above + 14 * i * unit);
  });
  ctx.restore();
}

function maxima(plot, series) {
  const [from, to] = plot.series[0].idxs;
  return series.flatMap(({ name }, i) => {
    const values = plot.data[i + 1].slice(from, to + 1), y = Math.max(...values);
    const x = plot.data[0][from + values.indexOf(y)];
    return y > 0 ? [{ x, y, text: `${name}: at most ${number(y)}`, dot: true }] : [];
  });
}

// apart returns marks of which none covers another: their texts are one, at a dot if one has a dot.
function apart(plot, marks) {
  const list = [];
  for (const mark of marks) {
    const distance = (other, axis) =>
      Math.abs(plot.valToPos(other[axis], axis) - plot.valToPos(mark[axis], axis));
    const near = list.find((other) => distance(other, "x") < 120 && distance(other, "y") < 16);
    const dots = mark.dot ? [mark] : [];
    if (!near) list.push({ ...mark, dots });
    else Object.assign(near, {
      ...(near.dots.length ? {} : { x: mark.x, y: mark.y }), dots: [...near.dots, ...dots],
      text: `${near.text}, ${mark.text}`, color: undefined,
    });
  }
  return list;
}

// drawChart draws data, a list for x and one for each series, in a place and returns the chart.
//
// x and y are axes: label, log (the scale is logarithmic), linear (it is so from this value on, and
// linear below), time (x is in seconds since 1970), ticks (where they are) and format (of a tick;
// without one, ticks are whole numbers). A series has name, color (a property of
// the style), fill (of the area below it: the alpha in hexadecimal) and dash. A step chart has in x
// the begins of intervals and the end of the last one. marks returns what to write into the chart,
// with a color and a dot or not, by default the maxima. tip returns the text about a value.
function drawChart(place, { label, data, x, y, series, steps, marks, tip }) {
  const axis = ({ label, log, time, ticks, format }, size) => ({
    label: log ? `${label}, log scale` : label, labelSize: 20, size, labelFont: "12px system-ui",
    stroke: () => css("--faint"), grid: { width: 1, stroke: () => css("--line") },
    ticks: { width: 1, stroke: () => css("--line") },
    incrs: time || format ? undefined : wholeSteps, 
    ...(ticks && { splits: () => ticks, filter: (_, all) => all }),
    values: time ? timeTicks :
      (_, ticks) => ticks.map((v) => v === null ? "" : (format ?? compact.format)(v)),
  });
  const whole = ({ data: [x] }) => [x[0], Math.max(x.at(-1), x[0] + 1)];
  const value = document.createElement("p");
  value.className = "tip";
  value.hidden = true;
  const showValue = ({ cursor, over }) => {
    const i = cursor.idxs[1] ?? null;
    value.hidden = !tip || i === null || !over.matches(":hover");
    if (value.hidden) return;
    value.textContent = tip(i);
    value.style.left = `${clamp(cursor.left + 12, 0, over.clientWidth - value.offsetWidth)}px`;
    value.style.top = `${clamp(cursor.top + 16, 0, over.clientHeight - value.offsetHeight)}px`;
  };
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  const size = () => ({ width: place.clientWidth, height: 240 });
  const plot = new uPlot({
    ...size(), legend: { show: false }, tzDate: (s) => uPlot.tzDate(new Date(1000 * s), "UTC"),
    axes: [axis(x, x.time ? 46 : 32), axis(y, 58)],
    scales: {
      x: { time: Boolean(x.time), ...(x.log ? { distr: 3 } : { range: whole }) },
      y: y.log ? { distr: 3 } : { range: (_, low, high) => [0, (y.linear ? 3 : 1.15) * high || 1],
        ...(y.linear && { distr: 4, asinh: y.linear }) },
    },
    cursor: {
      y: false, drag: { x: false, y: false },
      dataIdx: (plot, _, i, at) => steps && (plot.data[0][i] > at || i === plot.data[0].length - 1) ?
        Math.max(i - 1, 0) : i,
    },
    series: [{}, ...series.map(({ color, fill, dash, width = 1.5 }) => ({
      dash, width, stroke: () => css(color), fill: fill && (() => css(color) + fill),
      points: { show: false }, ...(steps && { paths: uPlot.paths.stepped({ align: 1 }) }),
    }))],
    hooks: {
      init: [({ over }) => over.append(value)],
      setCursor: [showValue],
      draw: [(plot) => {
        for (const mark of apart(plot, (marks ?? maxima)(plot, series))) write(plot, mark);
      }],
    },
  }, data, place);
  new ResizeObserver(() => plot.setSize(size())).observe(place);
  for (const query of ["(prefers-color-scheme: dark)", "print"])
    matchMedia(query).addEventListener("change", () => plot.redraw(false));
  return plot;
}
