// The owner's side of a client, to be put into any page: what am I asked, what was spent, stop.
//
//   <dpcheckin-owner></dpcheckin-owner>
//   document.querySelector("dpcheckin-owner").client = client;   // of dpcheckin.js
//
// It shows what `client.state()` says and nothing else; how a coin fell is nowhere. Colours and font are the page's,
// light or dark, and can be set: --owner-ink, --owner-ground, --owner-quiet, --owner-line, --owner-mark, --owner-stop.

const STYLE = `
:host { display: block; color-scheme: light dark; font: inherit;
  --ink: var(--owner-ink, light-dark(#1b1f24, #e8eaed)); --ground: var(--owner-ground, light-dark(#ffffff, #16191d));
  --quiet: var(--owner-quiet, light-dark(#57606a, #a2abb5)); --line: var(--owner-line, light-dark(#d0d7de, #3a4149));
  --mark: var(--owner-mark, light-dark(#0b62a8, #6cb6ff)); --stop: var(--owner-stop, light-dark(#a3212a, #ff938a)); }
section { color: var(--ink); background: var(--ground); border: 1px solid var(--line); border-radius: 8px; padding: 16px 20px;
  max-width: 640px; box-sizing: border-box; overflow-wrap: anywhere; line-height: 1.45; }
h2 { font-size: 1.05em; margin: 18px 0 4px; } h2:first-of-type { margin-top: 0; }
p { margin: 4px 0; } .quiet { color: var(--quiet); font-size: 0.9em; }
ul { margin: 6px 0; padding: 0; display: flex; flex-wrap: wrap; gap: 6px; list-style: none; }
li { border: 1px solid var(--line); border-radius: 999px; padding: 1px 10px; font-size: 0.9em; }
dl { display: grid; grid-template-columns: 1fr auto; gap: 2px 12px; margin: 8px 0; }
dt { color: var(--ink); } dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { grid-column: 1 / -1; height: 8px; border-radius: 4px; background: var(--line); margin: 0 0 8px; overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--mark); }
.status { border-left: 3px solid var(--mark); padding-left: 10px; margin: 10px 0 14px; } .status.off { border-color: var(--stop); }
button { font: inherit; color: var(--stop); background: transparent; border: 1px solid currentColor; border-radius: 6px;
  padding: 7px 16px; cursor: pointer; min-height: 40px; }
button.on { color: var(--mark); } button:focus-visible { outline: 3px solid var(--mark); outline-offset: 2px; }
`;

const SHEET = new CSSStyleSheet();
SHEET.replaceSync(STYLE);

const SENTENCES = {
  count: () => "Does something hold for you: yes or no?",
  histogram: () => "Which of these is yours?",
  mean: ({ low, high }) => `A number from ${low} to ${high}, of which the mean is wanted.`,
  sum: ({ low, high }) => `A number from ${low} to ${high}, of which the sum is wanted.`,
  quantiles: ({ low, high }) => `A number from ${low} to ${high}, to find the typical ones.`,
  distribution: ({ low, high }) => `A number from ${low} to ${high}, to find how such numbers are spread.`,
  "heavy-hitters": () => "A value of your own; only values that many people share are found.",
};
const MOST_SHOWN = 24;

// Three digits, rounded up: no figure is shown smaller than it is.
function figure(value) {
  if (value === 0) return "0";
  const unit = 10 ** (Math.floor(Math.log10(value)) - 2);
  const up = Number((Math.ceil(value / unit - 1e-9) * unit).toPrecision(3));
  return up < 0.01 || up >= 1e4 ? up.toExponential() : String(up);
}
const percent = (rate) => `${Number((100 * rate).toPrecision(3))}%`;

function made(name, text = "", more = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, more);
}

function asked({ plan, question }) {
  if (!plan) return [made("h2", "What am I asked?"), made("p", "Nothing at the moment.", { className: "quiet" })];
  const { categories } = question.details;
  const names = Array.isArray(categories) ? categories : [];
  const list = made("ul");
  list.append(...names.slice(0, MOST_SHOWN).map((name) => made("li", name)));
  if (names.length > MOST_SHOWN) list.append(made("li", `and ${names.length - MOST_SHOWN} more`));
  return [
    made("h2", "What am I asked?"),
    made("p", `${question.about ? `About ${question.about}. ` : ""}${SENTENCES[question.kind](question.details)}`),
    ...(names.length ? [list] : []),
    made("p", `In each round a coin of your own decides, ${percent(plan.rate)} of the time, whether you answer. What leaves is noisy: one answer alone tells at most epsilon ${figure(Number(plan.randomizer.local_epsilon))}, to whoever could read it with your name. In every round something of the same size is sent.`),
    made("p", `Asked by an analyzer whose key this page names${plan.issuer ? "; your right to one report a round comes from an issuer" : ""}. At least ${plan.population.toLocaleString("en")} people are asked together; you are in at most ${question.answers} rounds.`, { className: "quiet" }),
  ];
}

function spent({ spent: totals, limits, taken, question, plans }) {
  const rows = made("dl");
  for (const [words, value, limit] of [
    ["towards the analyzer, if the shuffler is honest", totals.epsilon, limits.total_epsilon],
    ["if shuffler and analyzer work together", totals.local_epsilon, limits.total_local_epsilon],
  ]) {
    const bar = made("div", "", { className: "bar", role: "meter", ariaLabel: words, ariaValueNow: String(value), ariaValueMax: String(limit) });
    bar.append(made("i"));
    bar.firstChild.style.width = `${Math.min(100, (100 * value) / limit)}%`;
    rows.append(made("dt", words), made("dd", `${figure(value)} of ${figure(limit)}`), bar);
  }
  const rounds = question ? `${taken} of at most ${question.answers} rounds of this survey` : "no survey yet";
  const all = plans > 1 ? `; sums over ${plans} surveys` : "";
  return [
    made("h2", "What was spent?"),
    rows,
    made("p", `Epsilon, with delta ${figure(totals.delta)} of ${figure(limits.total_delta)}: ${rounds}${all}. It was written down before anything was sent, and whatever coins said.`, { className: "quiet" }),
  ];
}

export class OwnerPanel extends HTMLElement {
  #client = null;
  #drawn = () => this.#draw();

  set client(client) {
    this.#client?.removeEventListener("change", this.#drawn);
    this.#client = client;
    client.addEventListener("change", this.#drawn);
    this.#draw();
  }

  // What the panel does when its owner says so; a page may set its own `onresume`, which starts the client again.
  async #press(stopped) {
    if (!stopped) return this.#client.stop();
    await this.#client.resume();
    this.dispatchEvent(new Event("resume"));
    this.#draw();
  }

  #draw() {
    const root = this.shadowRoot ?? this.attachShadow({ mode: "open" });
    const state = this.#client.state();
    const section = made("section", "", { ariaLabel: "Your part in surveys" });
    const off = state.stopped || state.status.startsWith("not taking part");
    const status = made("p", `${state.status[0].toUpperCase()}${state.status.slice(1)}.`, { className: `status${off ? " off" : ""}`, role: "status" });
    const button = made("button", state.stopped ? "Take part again" : "Stop", { type: "button", className: state.stopped ? "on" : "" });
    button.addEventListener("click", () => this.#press(state.stopped));
    const hint = made("p", state.stopped ? "Nothing is fetched or sent, now and in later visits." : "After that nothing more is fetched or sent, now and in later visits. What was sent cannot be taken back.", { className: "quiet" });
    const focused = root.activeElement !== null;
    section.append(...asked(state), ...spent(state), status, button, hint);
    root.adoptedStyleSheets = [SHEET]; // which a strict content security policy allows
    root.replaceChildren(section);
    if (focused) button.focus();
  }
}

customElements.define("dpcheckin-owner", OwnerPanel);
