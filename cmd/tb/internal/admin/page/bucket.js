// The picture of a token bucket: a tap drips tokens into it at the rate of the limit, a
// request that is granted takes tokens out, and one that finds too few is turned away.

import { html, number, rate, show, svg } from "./dom.js";

// The bucket in the coordinates of its picture.
const top = 56, bottom = 160, height = bottom - top;
const outline = `M8 ${top} L24 ${bottom - 6} Q25 ${bottom} 31 ${bottom} H89 Q95 ${bottom} 96 ${bottom - 6} L112 ${top}`;
const tap = "M4 10 H50 Q66 10 66 26 V34 H54 V26 Q54 22 50 22 H4 Z M26 10 V4 H18 V1 H42 V4 H34 V10 Z";
const mouth = 38; // where drops begin

// A tap that drips more often than this looks like one that pours.
const fastest = 0.25, slowest = 5; // seconds from drop to drop
const sinking = 6; // of the surface, as a part of what is left to sink, in a second

const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Bucket {
  constructor(id) {
    const clip = `inside-${id}`;
    this.water = svg("rect", { class: "water", x: 0, width: 120, "clip-path": `url(#${clip})` });
    this.marks = svg("g", { "clip-path": `url(#${clip})` });
    this.drop = svg("circle", { class: "drop", cx: 60, cy: mouth, r: 5 });
    this.out = svg("circle", { class: "drop", cx: 60, cy: bottom + 6, r: 5 });
    this.away = svg("text", { class: "turned-away", x: 112, y: 46 }, "✗");
    this.pace = svg("text", { x: 74, y: 24 });
    this.picture = svg("svg", { viewBox: "0 0 130 184", role: "img" },
      svg("clipPath", { id: clip }, svg("path", { d: outline })),
      svg("path", { class: "tap", d: tap }),
      svg("path", { class: "inside", d: outline }),
      this.water, this.marks, this.drop, this.out,
      svg("path", { class: "wall", d: outline }), this.pace, this.away);
    this.rule = html("p", { class: "rule" });
    this.key = html("p", { class: "key" });
    this.text = html("p", { class: "level" });
    this.refusals = html("p", { class: "refusals" });
    this.node = html("article", { class: "bucket" }, this.picture,
      html("div", {}, this.rule, this.key, this.text, this.refusals));
    this.level = null; // in tokens; null if it is not known
  }

  // update shows what the server says.
  update(state) {
    const before = this.state;
    this.state = state;
    show(this.rule, state.rule);
    show(this.key, state.key);
    show(this.refusals, state.refused ? `✗ ${number(state.refused)} refused` : "none refused yet");
    this.refusals.classList.toggle("some", state.refused > 0);
    if (before && state.refused > before.refused) this.flash(this.away, "now");
    if (state.level < 0) {
      this.level = null;
      this.picture.setAttribute("aria-label", "How full this bucket is, is not known.");
      show(this.text, "level not known");
      return;
    }
    if (!before || before.capacity !== state.capacity || before.rate !== state.rate) this.setUp();
    this.correct();
    this.draw();
  }

  setUp() {
    const { capacity, rate: perSecond } = this.state;
    const drip = Math.min(Math.max(1 / perSecond, fastest), slowest);
    this.drop.style.setProperty("--every", `${drip}s`);
    show(this.pace, rate(perSecond));
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
    if (this.level === null) this.level = this.surface = level;
    if (this.level >= level + 1) {
      this.flash(this.out, "leaving");
      this.level = level;
    } else if (this.level < level) {
      this.level = level;
    }
    this.level = Math.min(this.level, capacity);
    if (still.matches) this.surface = this.level;
  }

  // pass lets some seconds pass.
  pass(seconds) {
    if (this.level === null || still.matches) return;
    const { rate: perSecond, capacity, level } = this.state;
    // Not above what the server will say soon: the clocks may differ.
    this.level = Math.min(this.level + perSecond * seconds, capacity, level + perSecond + 1);
    // The surface sinks slowly enough to be seen, and rises with the level.
    const over = Math.max(this.surface - this.level, 0);
    this.surface = this.level + over * Math.exp(-sinking * seconds);
    this.draw();
  }

  draw() {
    const { capacity } = this.state;
    const y = bottom - (height * this.surface) / capacity;
    this.water.setAttribute("y", y);
    this.water.setAttribute("height", bottom - y);
    this.drop.style.setProperty("--depth", `${Math.max(y - mouth, 20)}px`);
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
