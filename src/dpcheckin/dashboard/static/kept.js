// Plans that are kept in the link: one to lay beside the plan of the form, and the kinds of rounds
// of a mixed run. A kept plan is the query that the server is asked.

import { aborted, getJson, getLines, pointsOf } from "./api.js";
import { ADVERSE } from "./fields.js";
import { parse, shown } from "./numbers.js";
import { allow } from "./ready.js";

const $ = (id) => document.getElementById(id);
const NAMES = {
  local_epsilon: "ε₀", delta: "δ", noise_multiplier: "σ", population: "n", check_in_probability: "check-in probability",
};
const read = (text) => Object.fromEntries(new URLSearchParams(text));
const written = (query) => new URLSearchParams(query).toString();

function told(name, value, tables) {
  if (name === "protocol") return tables.protocols[value]?.label ?? value;
  if (name === "randomizer") return tables.randomizers[value]?.label ?? value;
  return `${NAMES[name] ?? name} ${shown(value)}`;
}

// A plan in words: what differs from another one, or all of it.
export function inWords(plan, tables, other = {}) {
  const names = Object.keys(plan).filter((name) => plan[name] !== other[name]);
  return names.map((name) => told(name, plan[name], tables)).join(", ") || "the same plan";
}

export class Beside {
  // `changed()` is called when there is something else to draw.
  constructor(state, fields, tables, changed) {
    Object.assign(this, { state, fields, tables, changed, points: [], failed: "" });
    $("keep").addEventListener("click", () => state.set({ beside: state.get("beside") ? "" : written(fields.query()) }));
  }

  get plan() {
    const text = this.state.get("beside");
    return text ? read(text) : null;
  }

  get line() {
    return {
      key: "beside", name: `kept: ${inWords(this.plan, this.tables, this.fields.query())}`, kind: "guarantee",
      look: "beside", hue: 7, source: "this package", statement: "The guarantee of the plan that was kept.",
    };
  }

  // Says at once what is kept; the line itself follows.
  show() {
    if (!this.plan) this.points = [];
    $("keep").textContent = this.plan ? "Drop the kept plan" : "Keep this plan beside";
    $("keep").setAttribute("aria-pressed", String(Boolean(this.plan)));
    $("keep").dataset.needs = this.plan ? "nothing" : "plan";
    allow();
    $("beside").hidden = !this.plan;
    if (this.plan) $("beside-name").textContent = this.failed
      || `Dotted: the guarantee of the kept plan (${this.line.name.slice(6)}).`;
  }

  async ask(over, signal) {
    this.points = [];
    this.failed = "";
    this.show();
    if (!this.plan) return;
    try {
      await getLines("/api/lines", { ...this.plan, over }, signal, (answer) => {
        if (answer.problem && !answer.line) this.failed = `The kept plan cannot be drawn here: ${answer.problem}`;
        if (answer.line !== "guarantee") return;
        this.points.push(...pointsOf(answer));
        this.points.sort((a, b) => a.x - b.x);
        this.changed();
      });
    } catch (problem) {
      if (!aborted(problem)) throw problem;
    }
    this.show();
  }
}

export class Mixed {
  constructor(state, fields, tables) {
    Object.assign(this, { state, fields, tables, shown: null });
    $("mix-add").addEventListener("click", () => this.#set([...this.parts, written(fields.query())]));
    state.onChange(() => this.show());
    this.show();
  }

  get parts() {
    return this.state.get("parts").split("|").filter(Boolean);
  }

  #set(parts) {
    this.state.set({ parts: parts.join("|") });
  }

  async show() {
    const delta = this.state.get("delta");
    const now = `${delta}|${this.state.get("parts")}`;
    if (now === this.shown) return;
    this.shown = now;
    this.abort?.abort();
    const { parts } = this;
    $("mix-list").replaceChildren(...parts.map((part, i) => this.#row(part, i)));
    $("mix-figure").hidden = !parts.length;
    $("mix-epsilon").textContent = "…"; // the figure of fewer rounds would promise too much
    $("mix-said").textContent = parts.length ? "computing…" : "";
    if (!parts.length) return;
    this.abort = new AbortController();
    const asked = new URLSearchParams(parts.map((part) => ["part", part]));
    asked.set("delta", delta);
    try {
      const answer = await getJson("/api/mixed", asked, this.abort.signal);
      $("mix-epsilon").textContent = answer.epsilon?.text ?? "–";
      $("mix-said").textContent = answer.problem ?? answer.sentence;
      $("mix-said").classList.toggle("problem", Boolean(answer.problem));
    } catch (problem) {
      if (!aborted(problem)) $("mix-said").textContent = `The server does not answer (${problem.message}).`;
    }
  }

  #row(part, i) {
    const [row, text, drop] = ["li", "span", "button"].map((tag) => document.createElement(tag));
    const { delta: _, rounds = "1", ...plan } = read(part);
    const others = ADVERSE.filter((name) => parse(plan[name] ?? "0") === 0);
    for (const name of others) delete plan[name];
    text.textContent = `${shown(rounds)} × ${inWords(plan, this.tables)}`;
    Object.assign(drop, { type: "button", className: "quiet", textContent: "Remove" });
    drop.setAttribute("aria-label", `Remove ${text.textContent}`);
    drop.addEventListener("click", () => this.#set(this.parts.filter((_, j) => j !== i)));
    row.append(text, drop);
    return row;
  }
}
