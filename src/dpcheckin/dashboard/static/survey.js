// The survey panels: a question, what answering it costs, and the error against epsilon or the
// population. Everything is computed by the server; what is chosen is kept in the address.

import { aborted, getJson, getLines, refusal } from "./api.js";
import { grouped, parse, shown, tick } from "./numbers.js";
import { Plot } from "./plot.js";
import { outward } from "./scale.js";
import { copy, say } from "./texts.js";

const REST = 350; // milliseconds without a change after which the question is asked
const LABELS = {
  categories: ["Categories", "How many, or their names with commas. They must be public."],
  low: ["Smallest number", "Public; smaller ones count as this."],
  high: ["Largest number", "Public; larger ones count as this."],
  bins: ["Bins", "Equal parts between the two."],
  quantiles: ["Quantiles", "Probabilities with commas; 0.5 is the median."],
  dimension: ["Entries", "Of a client's vector."],
  clip: ["Largest length", "Longer vectors are shortened."],
  bits: ["Bits of a value", "8 to 64; the domain need not be listed."],
  top: ["Values to list", ""],
  population: ["Clients", "Who may be asked; it is part of the guarantee."],
  epsilon: ["Certified ε", "Most that the survey may spend in all."],
  delta: ["δ", ""],
  rounds: ["Rounds", "Empty: the planner chooses among a few."],
  rate: ["Rate", "Probability that a client reports in a round; 1 asks everybody."],
  largest_local_epsilon: ["Cap without shuffler", "Most ε that may be left if the shuffler colludes; empty for none."],
};
const AXES = { epsilon: "ε", population: "clients" };
const LINES = { ours: ["the planned survey", 0, "guarantee"], centre: ["central Gaussian noise, same ε and δ", 1, "plain"] };

function make(tag, attributes = {}, ...content) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

export class Survey {
  constructor(root, state) {
    Object.assign(this, { root, state, rows: new Map(), points: new Map(), timer: 0, built: false });
    state.onChange(() => this.#opened());
    this.#opened();
  }

  // Nothing is built or asked before somebody looks.
  async #opened() {
    if (this.root.hidden && this.state.get("view") !== "survey") return;
    if (this.building) return;
    this.building = true;
    this.tables = await getJson("/api/survey/describe");
    this.values = { ...this.tables.defaults };
    for (const [name, value] of new URLSearchParams(this.state.get("survey")))
      if (name in this.values) this.values[name] = value;
    this.#build();
    this.#changed();
  }

  #build() {
    const form = make("form", { id: "survey-form", autocomplete: "off", novalidate: "", "aria-label": "The question" });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.append(make("p", { class: "group" }, "The question"), this.#choice());
    const own = [...new Set(Object.values(this.tables.kinds).flat())];
    form.append(...own.map((name) => this.#field(name)));
    form.append(
      make("p", { class: "group" }, "Who answers, at what price"),
      ...this.tables.common.map((name) => this.#field(name)),
    );
    const content = make("div", { id: "survey-content", "data-stale": "true" });
    content.innerHTML = `
      <section class="headline" aria-labelledby="survey-title">
        <h1 id="survey-title">Error to be expected</h1>
        <p class="figure" aria-live="polite"><span class="symbol">± </span><output id="survey-figure">…</output></p>
        <p class="caption"><span id="survey-status" class="chip" data-state="busy">starting</span>
          <span id="survey-caption"></span></p>
        <p id="survey-problem" class="problem" role="alert" hidden></p>
      </section>
      <section class="panel" id="survey-question" aria-labelledby="survey-question-title">
        <div class="panel-head"><h2 id="survey-question-title">How it is asked</h2></div>
        <dl class="facts" id="survey-facts"></dl>
        <p class="note" id="survey-influence"></p>
        <p class="note" id="survey-rivals"></p>
      </section>
      <section class="cards" aria-label="The guarantee under both trust assumptions">
        <article class="card"><h2>If the shuffler is honest</h2>
          <p class="big"><span class="symbol">ε ≤ </span><output id="survey-epsilon">…</output></p>
          <p class="sentence" id="survey-trusted"></p></article>
        <article class="card"><h2>If it works with the analyzer</h2>
          <p class="big"><span class="symbol">ε ≤ </span><output id="survey-local">…</output></p>
          <p class="sentence" id="survey-untrusted"></p></article>
      </section>
      <section class="panel" id="survey-error" aria-labelledby="survey-error-title">
        <div class="panel-head">
          <h2 id="survey-error-title">Error against</h2>
          <div class="choices" id="survey-over" role="radiogroup" aria-labelledby="survey-error-title"></div>
          <span id="survey-progress" class="progress" role="status"></span>
        </div>
        <div class="plot-frame"><svg id="survey-plot" class="plot" role="img"
          aria-label="Error against the chosen axis"></svg><div class="tip" id="survey-tip" role="tooltip" hidden></div></div>
        <p id="survey-keys"></p>
      </section>
      <section class="panel" id="survey-shell-panel" aria-labelledby="survey-shell-title">
        <div class="panel-head"><h2 id="survey-shell-title">The same plan</h2>
          <button type="button" class="quiet push" id="survey-copy">Copy</button></div>
        <pre id="survey-shell" tabindex="0"><code></code></pre>
      </section>`;
    this.root.replaceChildren(form, content);
    this.$ = (id) => content.querySelector(`#survey-${id}`);
    this.content = content;
    this.plot = new Plot(this.$("plot"), this.$("tip"), {
      describe: (line, point) => [
        ["b", LINES[line.key][0]],
        ["span", `± ${point.text} ${this.unit ?? ""} at ${AXES[this.values.over]} ${tick(Number(point.x.toPrecision(4)))}`],
        ...(point.by ? [["span", `by ${point.by}`]] : []),
      ],
    });
    this.$("over").append(...this.tables.axes.map((name) => {
      const radio = make("input", { type: "radio", name: "survey-over", value: name });
      radio.checked = name === this.values.over;
      radio.addEventListener("change", () => this.#set("over", name));
      return make("label", {}, radio, AXES[name]);
    }));
    this.$("copy").addEventListener("click", async () => {
      await copy(this.$("shell").textContent);
      say("Copied");
    });
  }

  #choice() {
    const select = make("select", { id: "survey-kind", name: "kind" });
    select.append(...Object.entries(this.tables.labels).map(([kind, label]) => make("option", { value: kind }, label)));
    select.value = this.values.kind;
    // prefixes of heavy hitters take several rounds: the planner knows how many
    select.addEventListener("change", () => {
      this.values.rounds = select.value === "heavy-hitters" ? "" : this.values.rounds || "1";
      this.rows.get("rounds").input.value = this.values.rounds;
      this.#set("kind", select.value);
    });
    return make("div", { class: "field wide" }, make("label", { for: "survey-kind" }, "What is asked"), select);
  }

  #field(name) {
    const [label, meaning] = LABELS[name];
    const id = `survey-field-${name}`;
    const input = make(
      "input",
      {
        id, name, inputmode: name === "categories" || name === "quantiles" ? "text" : "decimal", spellcheck: "false",
        "aria-describedby": `${id}-about ${id}-problem`,
      },
    );
    input.value = shown(this.values[name]);
    input.addEventListener(
      "input",
      () => this.#set(
        name,
        name === "categories" || name === "quantiles"
          ? input.value.trim() : input.value.trim().replace(/(\d),(?=\d)/g, "$1"),
      ),
    );
    input.addEventListener("blur", () => (input.value = shown(this.values[name])));
    const problem = make("p", { class: "problem", id: `${id}-problem`, role: "alert", hidden: "" });
    const row = make(
      "div", { class: "field" }, make("label", { for: id }, label), input,
      make("p", { class: "about", id: `${id}-about` }, meaning), problem,
    );
    this.rows.set(name, { row, input, problem });
    return row;
  }

  #set(name, value) {
    if (this.values[name] === value) return;
    this.values[name] = value;
    this.#changed(name === "over");
  }

  get query() {
    const names = ["kind", ...this.tables.kinds[this.values.kind], ...this.tables.common, "over"];
    return Object.fromEntries(names.map((name) => [name, this.values[name]]));
  }

  #changed(only_axis = false) {
    const kept = Object.entries(this.query).filter(([name, value]) => value !== this.tables.defaults[name]);
    // straight into the address: nothing else on the page depends on it
    this.state.values.survey = new URLSearchParams(kept).toString();
    history.replaceState(null, "", this.state.link());
    for (const [name, { row }] of this.rows) row.hidden = !(name in this.query);
    for (const radio of this.$("over").querySelectorAll("input")) radio.checked = radio.value === this.values.over;
    this.abort?.abort();
    this.points.clear();
    this.range = null;
    this.plot.clear();
    if (!only_axis) {
      this.content.dataset.stale = "true";
      this.#status("busy", "planning");
    }
    this.$("progress").dataset.state = "busy";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#ask(), REST);
  }

  #status(kind, text) {
    this.$("status").dataset.state = kind;
    this.$("status").textContent = text;
  }

  async #ask() {
    this.abort = new AbortController();
    const { signal } = this.abort;
    try {
      const answer = await getJson("/api/survey/plan", this.query, signal);
      if (signal.aborted) return;
      if (answer.problem) return void this.#refused(answer);
      this.#planned(answer);
      await getLines("/api/survey/error", this.query, signal, (point) => signal.aborted || this.#received(point));
      if (signal.aborted) return;
      this.$("progress").dataset.state = "done";
      this.$("progress").textContent = "";
    } catch (problem) {
      if (!aborted(problem)) this.#refused(
        { problem: `The server does not answer (${problem.message}). Is dpcheckin ui still running?` }
      );
    }
  }

  #planned(answer) {
    this.#content();
    this.unit = answer.unit;
    this.here = answer.error.value;
    this.content.dataset.stale = "false";
    this.$("figure").textContent = answer.error.text;
    this.#status("certified", "expected"); // of an error; what is certified is ε, below
    const interval = `an interval of ${answer.confidence} reaches ± ${answer.half_width}`;
    this.$("caption").textContent = `${answer.unit}, root mean squared; ${interval}`;
    const facts = [
      ["Randomizer", answer.randomizer], ["Local ε of a report", answer.local_epsilon],
      ["Rounds × rate", `${grouped(answer.rounds)} × ${answer.rate}`], ["Bytes", answer.bytes],
    ];
    this.$("facts").replaceChildren(
      ...facts.map(([term, value]) => make("div", {}, make("dt", {}, term), make("dd", {}, value)))
    );
    const moved = answer.influence.map(([clients, bound]) => `${grouped(Number(clients))}: ${bound}`).join("; ");
    this.$("influence").textContent = moved
      ? `The most that lying clients can move any figure by, proved (${answer.moved_unit}): ${moved}.` : "";
    this.$("rivals").textContent = answer.rivals.length ? `Certified too, with their errors: ${answer.rivals.join("; ")}.` : "";
    this.$("epsilon").textContent = answer.epsilon;
    this.$("local").textContent = answer.local ?? "–";
    this.$("trusted").textContent = answer.trusted;
    this.$("untrusted").textContent = answer.untrusted ?? "";
    this.$("shell").firstChild.textContent = answer.shell;
  }

  #received(answer) {
    if (answer.problem && !answer.line) return void this.#refused(answer);
    if (answer.axis) this.range = answer;
    if (answer.line && answer.y !== undefined) {
      const points = this.points.get(answer.line) ?? [];
      points.push(answer);
      points.sort((a, b) => a.x - b.x);
      this.points.set(answer.line, points);
    }
    this.$("progress").textContent = `points computed: ${(this.points.get("ours") ?? []).length}`;
    this.#draw();
  }

  #draw() {
    const lines = Object.entries(LINES).filter(([key]) => this.points.has(key)).map(
      ([key, [, hue, kind]]) => ({ key, kind, hue, dots: key === "ours", points: this.points.get(key) })
    );
    const heights = lines.flatMap((line) => line.points.map((p) => p.y)).filter((y) => y > 0);
    this.$("keys").replaceChildren(
      ...lines.map(({ key, hue }) => make("span", {}, make("i", { class: `hue-${hue}` }), LINES[key][0]))
    );
    if (!this.range || !heights.length) return;
    const [low, high] = outward(Math.min(...heights, this.here) * 0.9, Math.max(...heights, this.here) * 1.1);
    this.plot.show({
      x: {
        from: this.range.from, to: this.range.to, log: true,
        title: this.values.over === "epsilon" ? `certified ε at δ = ${tick(parse(this.values.delta))}` : "clients",
      },
      y: { from: low, to: high, log: true, title: `error, ${this.unit}` },
      lines,
      here: { x: parse(this.values[this.values.over]), y: this.here },
    });
  }

  #refused(answer) {
    this.#content();
    this.#status("problem", "no answer");
    this.$("figure").textContent = "–";
    this.$("caption").textContent = "";
    this.$("progress").dataset.state = "done";
    this.$("progress").textContent = "";
    const field = answer.field === "target" ? "epsilon" : answer.field; // the planner calls it so
    const row = this.rows.get(field);
    const place = row && !row.row.hidden ? row.problem : this.$("problem");
    place.textContent = refusal(answer, LABELS[field]?.[0]);
    place.hidden = false;
    if (row && !row.row.hidden) row.input.setAttribute("aria-invalid", "true");
  }

  #content() {
    this.$("problem").hidden = true;
    for (const { problem, input } of this.rows.values()) {
      problem.hidden = true;
      input.removeAttribute("aria-invalid");
    }
  }
}
