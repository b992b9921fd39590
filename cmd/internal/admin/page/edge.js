// The switch between a token bucket and a fixed window: the same burst at the edge of a window.

import { html, number, show } from "./dom.js";

const $ = (id) => document.getElementById(id);

function decision(seconds, granted) {
  const sign = seconds < 0 ? "−" : "+";
  const time = `${sign}${number(Math.abs(seconds) * 1000)} ms`;
  return html("li", { class: granted ? "is-granted" : "is-refused" },
    granted ? "✓ granted" : "✗ refused",
    html("small", {}, time));
}

// verdict returns in words what the chosen algorithm granted.
function verdict(view, algorithm) {
  const granted = view.granted[algorithm].filter(Boolean).length;
  const span = number((view.seconds.at(-1) - view.seconds[0]) * 1000);
  const reason = algorithm === "fixed-window"
    ? "The count starts anew at the edge, so the window grants its tokens twice."
    : "The bucket has no edge. After its burst it grants what the rate refills.";
  return `${granted} of ${view.seconds.length} granted within ${span} ms. ${reason}`;
}

// showEdge gets the decisions and shows those of the chosen algorithm.
export async function showEdge() {
  const response = await fetch("api/edge");
  if (!response.ok) return;
  const view = await response.json();
  const choice = $("algorithm");
  const update = () => {
    const algorithm = choice.querySelector(":checked").value;
    const items = view.seconds.map((s, i) => decision(s, view.granted[algorithm][i]));
    const edge = view.seconds.findIndex((s) => s >= 0);
    $("before-edge").replaceChildren(...items.slice(0, edge));
    $("after-edge").replaceChildren(...items.slice(edge));
    show($("edge-verdict"), verdict(view, algorithm));
  };
  show($("edge-intro"), `Both have the same limit: ${number(view.burst)} tokens, and as many again in ` +
    `${number(view.window)} s. The burst is computed and not sent.`);
  choice.addEventListener("change", update);
  update();
  $("edge").hidden = false;
}
