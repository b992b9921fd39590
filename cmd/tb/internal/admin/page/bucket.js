// The picture of a token bucket: a tap drips tokens into it at the rate of the limit, a
// request that is granted takes tokens out, and one that finds too few is turned away.

import { html, number, show, svg } from "./dom.js";

// The bucket in the coordinates of its picture.
const top = 58, bottom = 158, height = bottom - top;
const outline = `M14 ${top} L28 ${bottom} H92 L106 ${top}`;

// A tap that drips more often than this looks like one that pours.
const fastest = 0.25, slowest = 5; // seconds from drop to drop

const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Bucket {
  constructor(id) {
    const clip = `inside-${id}`;
    this.water = svg("rect", { class: "water", x: 0, width: 120, "clip-path": `url(#${clip})` });
    this.marks = svg("g", { "clip-path": `url(#${clip})` });
    this.drop = svg("circle", { class: "drop", cx: 60, cy: 26, r: 5 });
    this.out = svg("circle", { class: "drop", cx: 60, cy: bottom + 6, r: 5 });
    this.away = svg("text", { class: "turned-away", x: 108, y: 50 }, "✗");
    this.pace = svg("text", { x: 76, y: 16 });
    this.picture = svg("svg", { viewBox: "0 0 130 190", role: "img" },
      svg("clipPath", { id: clip }, svg("path", { d: outline })),
      svg("path", { class: "tap", d: "M30 4 H66 V20 H54 V14 H30 Z" }),
      svg("path", { class: "inside", d: outline }),
      this.water, this.marks, this.drop, this.out,
      svg("path", { class: "wall", d: outline }), this.pace, this.away);
    this.rule = html("p", { class: "rule" });
    this.key = html("p", { class: "key" });
    this.text = html("p", { class: "level" });
    this.refusals = html("p", { class: "refusals" });
    this.node = html("article", { class: "bucket" }, this.picture,
      html("div", {}, this.rule, this.key, this.text, this.refusals));
    this.level = null;
    this.refused = 0;
  }

  // update shows what the server says.
  update(state) {
    const before = this.state;
    this.state = state;
    show(this.rule, state.rule);
    show(this.key, state.key);
    show(this.refusals, `✗ ${number(state.refused)} refused`);
    if (before && state.refused > before.refused) this.flash(this.away, "now");
    if (state.level < 0) {
      this.picture.setAttribute("aria-label", "How full this bucket is, is not known.");
      show(this.text, "level not known");
      return;
    }
    if (!before || before.capacity !== state.capacity || before.rate !== state.rate) this.setUp();
    this.correct();
    this.draw();
  }

  setUp() {
    const { capacity, rate } = this.state;
    const drip = Math.min(Math.max(1 / rate, fastest), slowest);
    this.drop.style.setProperty("--every", `${drip}s`);
    show(this.pace, rate >= 0.1 ? `${number(rate, 1)}/s` : `1 in ${number(1 / rate)} s`);
    const lines = capacity <= 20 ? capacity : 4;
    this.marks.replaceChildren();
    for (let i = 1; i < lines; i++) {
      const y = bottom - (height * i) / lines;
      this.marks.append(svg("path", { class: "mark", d: `M0 ${y} H120` }));
    }
  }

  // correct brings what is drawn in line with the server, which may know whole tokens only:
  // the rest of one has been filled in since, at the rate.
  correct() {
    const { level, capacity } = this.state;
    if (this.level === null) this.level = level;
    if (this.level >= level + 1) {
      this.flash(this.out, "leaving");
      this.level = level;
    } else if (this.level < level) {
      this.level = level;
    }
    this.level = Math.min(this.level, capacity);
  }

  // pass lets some seconds pass.
  pass(seconds) {
    if (this.level === null || still.matches) return;
    const { rate, capacity, level } = this.state;
    // Not above what the server will say soon: the clocks may differ.
    this.level = Math.min(this.level + rate * seconds, capacity, Math.max(level, 0) + rate + 1);
    this.draw();
  }

  draw() {
    const { capacity } = this.state;
    const y = bottom - (height * this.level) / capacity;
    this.water.setAttribute("y", y);
    this.water.setAttribute("height", bottom - y);
    this.drop.style.setProperty("--depth", `${Math.max(y - 26, 30)}px`);
    this.drop.classList.toggle("falling", this.level < capacity);
    const text = `${number(Math.floor(this.level))} of ${number(capacity)} tokens`;
    show(this.text, text);
    if (this.picture.getAttribute("aria-label") !== text)
      this.picture.setAttribute("aria-label", text);
  }

  // flash starts an animation again.
  flash(node, name) {
    node.classList.remove(name);
    void node.getBoundingClientRect();
    node.classList.add(name);
    clearTimeout(node.over);
    node.over = setTimeout(() => node.classList.remove(name), 1000);
  }
}
