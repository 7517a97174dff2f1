// Inverse questions: a target ε from a click, the arrow keys or the field, and what meets it.
// A quick answer comes first; it is safe. The exact one follows.

import { aborted, getJson, refusal } from "./api.js";
import { grouped, parse } from "./numbers.js";
import { isReady } from "./ready.js";

const HINT = "Click the plot at an ε, or type one: what may be chosen to meet it?";
const STEPS = { ArrowUp: 1.05, ArrowDown: 1 / 1.05, PageUp: 1.5, PageDown: 1 / 1.5 };
const $ = (id) => document.getElementById(id);

export class Aim {
  // `question()` gives the plan and the axis to ask about, `start()` an ε to begin from,
  // `titles` the names of parameters; `failed(problem)` is told when the server is away.
  constructor(state, { question, start, titles, failed }) {
    Object.assign(this, { state, question, start, titles, failed });
    const svg = $("plot");
    svg.tabIndex = 0;
    svg.setAttribute("role", "slider");
    svg.setAttribute("aria-label", "Target ε: arrow keys move it, Enter asks what meets it");
    svg.setAttribute("aria-orientation", "vertical");
    svg.addEventListener("keydown", (event) => this.#key(event));
    $("target").value = state.get("target");
    $("target").addEventListener("input", () => state.set({ target: $("target").value.trim() }));
    $("target").addEventListener("keydown", (event) => event.key === "Enter" && this.ask());
    $("ask").addEventListener("click", () => this.ask());
    $("use").addEventListener("click", () => state.set({ [this.solution.parameter]: String(this.solution.value) }));
    state.onChange((changed) => changed === null && ($("target").value = state.get("target")));
  }

  #key(event) {
    const step = STEPS[event.key];
    if (event.key === "Enter" || event.key === " ") this.ask();
    else if (step) this.#target(Number(((parse(this.state.get("target")) || this.start() || 1) * step).toPrecision(3)));
    else return;
    event.preventDefault();
  }

  #target(value) {
    $("target").value = String(value);
    this.state.set({ target: String(value) });
    $("plot").setAttribute("aria-valuenow", value);
    $("plot").setAttribute("aria-valuetext", `ε = ${value}`);
  }

  at(value) {
    this.#target(value);
    this.ask();
  }

  // The plan has changed: an answer about the old one is of no use any more.
  forget() {
    this.abort?.abort();
    this.pending = this.asked = false;
    $("solved").textContent = HINT;
    $("use").hidden = $("target-problem").hidden = true;
  }

  // The plan is known to have an answer: what was asked before that can be asked now.
  resume() {
    if (this.pending) this.ask();
  }

  async ask() {
    this.forget();
    this.asked = true;
    this.pending = !isReady("plan");
    if (this.pending) return;
    this.abort = new AbortController();
    const { signal } = this.abort;
    $("solved").textContent = "asking…";
    const query = { ...this.question(), target: this.state.get("target") };
    try {
      for (const quick of ["1", "0"]) {
        const answer = await getJson("/api/solve", { ...query, quick }, signal);
        if (signal.aborted) return;
        this.#show(answer);
        if (answer.problem) return;
      }
    } catch (problem) {
      if (!aborted(problem)) this.failed(problem);
    }
  }

  #show(answer) {
    if (answer.field === "target") $("target").setAttribute("aria-invalid", "true");
    else $("target").removeAttribute("aria-invalid");
    $("target-problem").hidden = !answer.problem;
    $("target-problem").textContent = answer.problem ? refusal(answer, answer.field === "target" && "Target ε") : "";
    if (answer.problem) {
      $("solved").textContent = "";
      return;
    }
    this.solution = answer;
    const found = document.createElement("strong");
    const sign = answer.parameter === "population" ? "≥" : "≤";
    found.textContent = `${this.titles[answer.parameter]} ${sign} ${grouped(answer.value)}`;
    $("solved").replaceChildren(
      found,
      `: then ε ≤ ${answer.epsilon.text}.${answer.exact ? "" : " That is safe; still looking for the exact answer…"}`,
    );
    $("use").hidden = false;
  }
}
