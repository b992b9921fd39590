// The picture of a token bucket. A tap drips tokens into it at the rate of the limit. A
// granted request takes tokens out. A refused request is turned away.

import { html, number, rate, show, svg } from "./dom.js";

// The bucket in the coordinates of its picture.
const top = 56, bottom = 160, height = bottom - top;
const outline = `M8 ${top} L24 ${bottom - 6} Q25 ${bottom} 31 ${bottom} H89 Q95 ${bottom} 96 ${bottom - 6} L112 ${top}`;
const tap = "M4 10 H50 Q66 10 66 26 V34 H54 V26 Q54 22 50 22 H4 Z M26 10 V4 H18 V1 H42 V4 H34 V10 Z";
const mouth = 38; // of the tap, where drops begin

// Seconds from drop to drop. A tap that drips faster looks as if it pours.
const fastest = 0.25, slowest = 5;
const sinkRate = 6; // per second, as a share of the distance that is left

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

export class Bucket {
  constructor(id) {
    const clip = `inside-${id}`;
    this.water = svg("rect", { class: "water", x: 0, width: 120, "clip-path": `url(#${clip})` });
    this.marks = svg("g", { "clip-path": `url(#${clip})` });
    this.drop = svg("circle", { class: "drop", cx: 60, cy: mouth, r: 5 });
    this.out = svg("circle", { class: "drop", cx: 60, cy: bottom + 6, r: 5 });
    this.refusedMark = svg("text", { class: "turned-away", x: 112, y: 46 }, "✗");
    this.pace = svg("text", { x: 74, y: 24 });
    this.picture = svg("svg", { viewBox: "0 0 130 184", role: "img" },
      svg("clipPath", { id: clip }, svg("path", { d: outline })),
      svg("path", { class: "tap", d: tap }),
      svg("path", { class: "inside", d: outline }),
      this.water, this.marks, this.drop, this.out,
      svg("path", { class: "wall", d: outline }), this.pace, this.refusedMark);
    this.rule = html("p", { class: "rule" });
    this.key = html("p", { class: "key" });
    this.text = html("p", { class: "level" });
    this.refusals = html("p", { class: "refusals" });
    this.node = html("article", { class: "bucket" }, this.picture,
      html("div", {}, this.rule, this.key, this.text, this.refusals));
    this.level = null; // in tokens; null if it is not known
  }

  // update shows the state that the server sent.
  update(state) {
    const before = this.state;
    this.state = state;
    show(this.rule, state.rule);
    show(this.key, state.key);
    show(this.refusals, state.refused ? `✗ ${number(state.refused)} refused` : "none refused yet");
    this.refusals.classList.toggle("some", state.refused > 0);
    if (before && state.refused > before.refused) this.flash(this.refusedMark, "now");
    if (state.level < 0) {
      this.level = null;
      this.picture.setAttribute("aria-label", "The level of this bucket is not known.");
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

  // correct brings the level in line with the server's. A drop of less than half a token is
  // not shown, because the clocks may differ.
  correct() {
    const { level, capacity } = this.state;
    if (this.level === null) this.level = this.surface = level;
    if (this.level >= level + 0.5) {
      this.flash(this.out, "leaving");
      this.level = level;
    } else if (this.level < level) {
      this.level = level;
    }
    this.level = Math.min(this.level, capacity);
    if (reducedMotion.matches) this.surface = this.level;
  }

  // advance refills the bucket for the seconds since the last call.
  advance(seconds) {
    if (this.level === null || reducedMotion.matches) return;
    const { rate: perSecond, capacity, level, lent } = this.state;
    // An update is due every half second. Without one the level stops after a second's refill.
    // A bucket that has lent tokens stays empty.
    if (lent === 0) this.level = Math.min(this.level + perSecond * seconds, capacity, level + perSecond);
    // The surface sinks slowly enough to be seen, and rises with the level.
    const over = Math.max(this.surface - this.level, 0);
    this.surface = this.level + over * Math.exp(-sinkRate * seconds);
    this.draw();
  }

  draw() {
    const { capacity, lent } = this.state;
    const y = bottom - (height * this.surface) / capacity;
    this.water.setAttribute("y", y);
    this.water.setAttribute("height", bottom - y);
    this.drop.style.setProperty("--depth", `${Math.max(y - mouth, 20)}px`);
    this.drop.classList.toggle("falling", this.level < capacity);
    const debt = lent > 0 ? `, ${number(Math.ceil(lent))} lent` : "";
    const text = `${number(Math.floor(this.level))} of ${number(capacity)} tokens${debt}`;
    show(this.text, text);
    if (this.picture.getAttribute("aria-label") !== text)
      this.picture.setAttribute("aria-label", text);
  }

  // flash restarts an animation.
  flash(node, name) {
    node.classList.remove(name);
    void node.getBoundingClientRect();
    node.classList.add(name);
    clearTimeout(node.over);
    node.over = setTimeout(() => node.classList.remove(name), 1000);
  }
}
