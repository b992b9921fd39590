// A chart of the requests that a rule granted and refused in each second.

import { html, number, show, svg } from "./dom.js";

// The picture is not scaled, so that its text has the size of the page's text.
const left = 44, top = 8, floor = 104, height = 124;

// ceiling returns the end of the axis: the next 1, 2 or 5 times a power of ten.
function ceiling(x) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(x, 1)));
  return [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= x);
}

function stripes(id) {
  return svg("pattern", { id, class: "stripes", width: 5, height: 5, patternUnits: "userSpaceOnUse" },
    svg("rect", { width: 5, height: 5 }), svg("path", { d: "M-1 1 L1 -1 M0 5 L5 0 M4 6 L6 4" }));
}

export class Chart {
  constructor(id) {
    this.pattern = `stripes-${id}`;
    this.granted = svg("path", { class: "granted" });
    this.refused = svg("path", { fill: `url(#${this.pattern})` });
    this.axis = svg("path", { class: "axis" });
    this.most = svg("text", { x: left - 6, y: top + 8, "text-anchor": "end" });
    this.middle = svg("text", { y: height - 4, "text-anchor": "middle" }, "1 minute");
    this.end = svg("text", { y: height - 4, "text-anchor": "end" }, "now");
    this.picture = svg("svg", { role: "img" }, stripes(this.pattern),
      this.axis, this.granted, this.refused, this.most, this.middle, this.end,
      svg("text", { x: left - 6, y: floor, "text-anchor": "end" }, "0"),
      svg("text", { x: left, y: height - 4 }, "2 minutes ago"));
    this.name = html("b");
    this.summary = html("span");
    this.node = html("figure", {}, html("figcaption", {}, this.name, this.summary), this.picture);
  }

  // fit makes the picture as wide as its place on the page and returns its right edge.
  fit() {
    const right = Math.max(this.picture.clientWidth, 240);
    if (right !== this.right) {
      this.right = right;
      this.picture.setAttribute("viewBox", `0 0 ${right} ${height}`);
      this.axis.setAttribute("d", `M${left} ${top} H${right} M${left} ${floor} H${right}`);
      this.middle.setAttribute("x", (left + right) / 2);
      this.end.setAttribute("x", right);
    }
    return right;
  }

  update(rule) {
    const granted = rule.grantedPerSecond, refused = rule.refusedPerSecond;
    const sum = (list) => list.reduce((a, b) => a + b, 0);
    const most = ceiling(Math.max(...granted.map((n, i) => n + refused[i])));
    const width = (this.fit() - left) / granted.length;
    const y = (n) => floor - ((floor - top) * n) / most;
    const bars = (from, to) => from.map((n, i) => {
      if (to[i] === n) return "";
      const x = left + i * width;
      return `M${x} ${y(n)} V${y(to[i])} H${x + width * 0.85} V${y(n)} Z`;
    }).join("");
    this.granted.setAttribute("d", bars(granted.map(() => 0), granted));
    this.refused.setAttribute("d", bars(granted, granted.map((n, i) => n + refused[i])));
    show(this.most, number(most));
    show(this.name, rule.set ? `${rule.set}/${rule.name}` : rule.name);
    const text = `${rule.shadow ? "shadow, " : ""}in the last two minutes ${number(sum(granted))} granted, ` +
      `${number(sum(refused))} refused`;
    show(this.summary, text);
    this.picture.setAttribute("aria-label", `Requests a second: ${text}.`);
  }
}
