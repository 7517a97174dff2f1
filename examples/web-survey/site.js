// The site's own page: a form, the owner's panel, and what everybody said. Who takes part and when does not depend on
// what is answered: the client runs from the moment that there is an answer, and changing it changes nothing else.

import { Client } from "/clients/web/dpcheckin.js";
import "/clients/web/owner.js";

const panel = document.querySelector("dpcheckin-owner");

async function membership() {
  // one enrolment for each visitor, kept where the ledger is: who has a new one every day has a new budget every day
  const known = JSON.parse(localStorage.getItem("membership"));
  const { analyzer } = await (await fetch("/run")).json();
  if (known?.analyzer.identity === analyzer) return known; // another one only when serve.py was started anew
  const answer = await fetch("/enroll", { method: "POST" });
  if (!answer.ok) throw new Error("No more visitors can be enrolled.");
  const given = await answer.text();
  localStorage.setItem("membership", given);
  return JSON.parse(given);
}

async function run(answer) {
  const { shuffler, issuer, analyzer } = await membership();
  const limits = { // this visitor's, whatever a plan says
    rate: 0.5, clip: 1, local_epsilon: 2, total_epsilon: 8, total_local_epsilon: 24, total_delta: 1e-4, minimum_population: 20, require_cover: true,
  };
  const client = await Client.open({ shuffler, issuer, analyzer, limits, answers: { "way to work": answer }, name: `work ${analyzer.identity.slice(0, 16)}` });
  panel.client = client;
  panel.hidden = false;
  const begin = () => client.run().catch(() => {}); // why it will not go on stands in the panel
  panel.addEventListener("resume", begin);
  begin();
  return client;
}

let running = null;
document.querySelector("#answer").addEventListener("change", async ({ target }) => {
  localStorage.setItem("way", target.value);
  try {
    if (running) (await running).answer("way to work", target.value);
    else await (running = run(target.value));
  } catch (problem) {
    document.querySelector("#problem").textContent = problem.message;
  }
});

async function show() {
  const answer = await fetch("/result").catch(() => null);
  const found = answer?.ok ? await answer.json() : null;
  if (found?.rows) {
    const table = document.querySelector("#result");
    table.caption.textContent = `Of ${found.population} people, after ${found.rounds} rounds; each with its 95% interval.`;
    table.tBodies[0].replaceChildren(...found.rows.map(({ name, value, lower, upper }) => {
      const row = document.createElement("tr");
      const figures = [value, lower, upper].map((one) => Math.round(Math.max(0, one)));
      row.insertCell().textContent = name;
      row.insertCell().textContent = `${figures[0]} (${figures[1]} to ${figures[2]})`;
      return row;
    }));
  }
  setTimeout(show, 4000);
}
show();

const before = localStorage.getItem("way");
const chosen = before && document.querySelector(`input[value="${CSS.escape(before)}"]`);
if (chosen) {
  chosen.checked = true;
  chosen.dispatchEvent(new Event("change", { bubbles: true }));
}
