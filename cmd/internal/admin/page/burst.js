// The form that sends the demo a burst, and the result in words.

import { html, number, show } from "./dom.js";

const $ = (id) => document.getElementById(id);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function send(n) {
  const response = await fetch("api/burst", { method: "POST", body: new URLSearchParams({ n }) });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

function reply(r) {
  const granted = r.status < 400;
  const note = granted ? `${r.remaining} left` : `retry in ${r.retryAfter} s`;
  return html("li", { class: granted ? "is-granted" : "is-refused" },
    `${granted ? "✓" : "✗"} ${r.status}`, html("small", {}, note));
}

// verdict returns the result of a burst, and the seconds to wait.
function verdict(replies) {
  const refused = replies.filter((r) => r.status === 429);
  const granted = replies.length - refused.length;
  if (refused.length === 0) return `All ${granted} granted: the bucket had enough tokens.`;
  return `${granted} granted, ${refused.length} refused: the bucket was empty. ` +
    `Retry-After: ${refused.at(-1).retryAfter} s.`;
}

let countdown;

function startCountdown(replies) {
  clearInterval(countdown);
  const refused = replies.filter((r) => r.status === 429);
  if (refused.length === 0) return;
  const text = verdict(replies);
  let left = Number(refused.at(-1).retryAfter);
  countdown = setInterval(() => {
    left--;
    if (left > 0) return;
    clearInterval(countdown);
    show($("verdict"), `${text} The wait is over: send another burst.`);
  }, 1000);
}

// showForm shows the form. It calls done after each burst.
export function showForm(state, done) {
  const form = $("burst"), list = $("replies"), button = form.querySelector("button");
  const rule = state.rules[0];
  if (rule) {
    show($("try-intro"), `The bucket of an address holds ${number(rule.capacity)} tokens and gets ` +
      `${number(rule.rate, 3)} a second. Each request takes one. A request that finds none is ` +
      "refused with 429; Retry-After has the seconds to wait.");
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const n = Number(form.n.value), pace = Number(form.pace.value), replies = [];
    button.disabled = true;
    clearInterval(countdown);
    list.replaceChildren();
    show($("verdict"), "Sending …");
    try {
      for (let sent = 0; sent < n; ) {
        const some = await send(pace ? 1 : n);
        sent += some.length;
        replies.push(...some);
        list.append(...some.map(reply));
        if (pace && sent < n) await sleep(1000 / pace);
      }
      show($("verdict"), verdict(replies));
      startCountdown(replies);
    } catch (error) {
      show($("verdict"), `The burst failed: ${error.message}`);
    }
    button.disabled = false;
    done();
  });
  $("try").hidden = false;
  document.querySelector("main").classList.add("demo");
}
