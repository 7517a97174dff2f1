// The form: a field and, where it helps, a slider for everything that can be chosen.
// Which fields a protocol has is the server's to say; how they look is decided here.

import { refusal } from "./api.js";
import { parse, shown, typed } from "./numbers.js";

// label, what it means, slider [from, to, "log" or "even"] or null
const LOOKS = {
  population: ["Population", "clients that could take part", [10, 1e9, "log"]],
  rate: ["Check-in rate", "chance that a client reports in a round", [1e-6, 0.999, "log"]],
  cohort: ["Cohort", "clients drawn in each round", [1, 1e8, "log"]],
  slots: ["Slots", "of one window", [2, 1e7, "log"]],
  check_in_probability: ["Check-in probability", "chance to take part in a window at all", [0.001, 1, "log"]],
  rounds: ["Rounds", "however the later ones are chosen", [1, 1e6, "log"]],
  local_epsilon: ["Local ε", "of a single report, on the device", [0.05, 12, "log"]],
  noise_multiplier: ["Noise multiplier", "Gaussian noise per clipping norm", [0.2, 50, "log"]],
  delta: ["δ", "how improbable an exception must be", [1e-12, 1e-2, "log"]],
  colluding: ["Colluding", "fraction of clients that work with the analyzer", [0, 0.9, "even"]],
  dropout: ["Dropout, uneven rates", "largest chance that a check-in is lost; rates may differ so much", [0, 0.9, "even"]],
};
export const ADVERSE = ["colluding", "dropout"];
const GROUPS = [
  ["Protocol", ["protocol"]],
  ["The crowd", ["population", "rate", "cohort", "slots", "check_in_probability"]],
  ["A report", ["randomizer", "arguments", "local_epsilon", "noise_multiplier"]],
  ["The promise", ["rounds", "delta"]],
  ["What may go wrong", ADVERSE],
];
const STEPS = 600;

function make(tag, attributes = {}, ...content) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

const titled = (name) => name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");

export class Fields {
  constructor(form, state, tables) {
    Object.assign(this, { form, state, tables, rows: new Map() });
    for (const [title, names] of GROUPS) {
      const group = make("fieldset", {}, make("legend", {}, title));
      for (const name of names.flatMap((one) => (one === "arguments" ? Object.keys(tables.arguments) : one)))
        group.append(name === "protocol" || name === "randomizer" ? this.#choice(name) : this.#number(name));
      form.append(group);
    }
    form.addEventListener("submit", (event) => event.preventDefault());
    state.onChange((changed) => this.refresh(changed));
    this.refresh(null);
  }

  #choice(name) {
    const id = `field-${name}`;
    const select = make("select", { id, name, "aria-describedby": `${id}-about ${id}-problem` });
    const label = name === "protocol" ? "How clients take part" : "Randomizer";
    const about = make("p", { class: "about", id: `${id}-about` });
    const problem = make("p", { class: "problem", id: `${id}-problem`, role: "alert", hidden: "" });
    select.addEventListener("change", () => this.#chosen(name, select.value));
    const row = make("div", { class: "field wide" }, make("label", { for: id }, label), select, about, problem);
    this.rows.set(name, { row, input: select, about, problem, label, slider: null });
    return row;
  }

  #number(name) {
    const [label, meaning, range] = LOOKS[name] ?? [titled(name), this.tables.arguments[name], null];
    const id = `field-${name}`;
    const input = make("input", {
      id, name, inputmode: "decimal", spellcheck: "false", "aria-describedby": `${id}-about ${id}-problem`,
    });
    const problem = make("p", { class: "problem", id: `${id}-problem`, role: "alert", hidden: "" });
    const about = make("p", { class: "about", id: `${id}-about` }, meaning);
    const row = make("div", { class: "field" }, make("label", { for: id }, label), input);
    input.addEventListener("input", () => this.state.set({ [name]: input.value.trim().replace(/(\d),(?=\d)/g, "$1") }));
    input.addEventListener("blur", () => (input.value = shown(this.state.get(name))));
    let slider = null;
    if (range) {
      slider = make(
        "input", { type: "range", id: `slide-${name}`, min: 0, max: STEPS, step: 1, "aria-label": `${label}, slider` },
      );
      slider.addEventListener("input", () => {
        const text = typed(this.#value(range, slider.value / STEPS), this.tables.whole.includes(name));
        slider.setAttribute("aria-valuetext", text);
        this.state.set({ [name]: text });
      });
      row.append(slider);
    }
    row.append(about, problem);
    this.rows.set(name, { row, input, about, problem, label, slider, range });
    return row;
  }

  #value([from, to, kind], share) {
    return kind === "log" ? from * (to / from) ** share : Math.round((from + share * (to - from)) * 100) / 100;
  }

  #share([from, to, kind], value) {
    const share = kind === "log" ? Math.log(value / from) / Math.log(to / from) : (value - from) / (to - from);
    return Math.max(0, Math.min(1, share));
  }

  // A protocol may not know the randomizer or the axis that were chosen: take its first.
  #chosen(name, value) {
    const changes = { [name]: value };
    const protocol = this.tables.protocols[name === "protocol" ? value : this.state.get("protocol")];
    if (!protocol.randomizers.includes(this.state.get("randomizer")) && name === "protocol")
      changes.randomizer = protocol.randomizers[0];
    if (!protocol.over.includes(this.state.get("over"))) changes.over = "";
    this.state.set(changes);
  }

  // The field that says how noisy a report is.
  get noise() {
    return this.tables.randomizers[this.state.get("randomizer")]?.noise ?? "local_epsilon";
  }

  get relevant() {
    const protocol = this.tables.protocols[this.state.get("protocol")];
    const randomizer = this.tables.randomizers[this.state.get("randomizer")];
    return new Set(
      ["protocol", "randomizer", "delta", ...(protocol?.fields ?? []), this.noise, ...(randomizer?.arguments ?? [])]
    );
  }

  // What the server is asked: the choices that matter.
  query() {
    const query = {};
    for (const name of this.relevant) query[name] = this.state.get(name);
    // commands name the population even where it does not matter
    query.population ??= this.tables.defaults.population;
    return query;
  }

  refresh(changed) {
    const { protocols, randomizers } = this.tables;
    const protocol = protocols[this.state.get("protocol")];
    this.#options("protocol", Object.entries(protocols).map(([name, p]) => [name, p.label]));
    this.#options("randomizer", (protocol?.randomizers ?? []).map((name) => [name, randomizers[name].label]));
    this.rows.get("protocol").about.textContent = protocol?.about ?? "";
    const relevant = this.relevant;
    for (const [name, { row, input, slider, range }] of this.rows) {
      row.hidden = !relevant.has(name);
      const text = this.state.get(name);
      if (document.activeElement !== input || changed === null) input.value = shown(text);
      if (slider && document.activeElement !== slider) {
        const value = parse(text);
        if (Number.isFinite(value)) slider.value = STEPS * this.#share(
          range, Math.max(value, range[2] === "log" ? range[0] : -1),
        );
        slider.setAttribute("aria-valuetext", text);
      }
    }
    for (const group of this.form.querySelectorAll("fieldset"))
      group.hidden = ![...group.querySelectorAll(".field")].some((row) => !row.hidden);
  }

  #options(name, wanted) {
    const select = this.rows.get(name).input;
    const now = [...select.options].map((o) => o.value).join();
    if (now !== wanted.map(([value]) => value).join())
      select.replaceChildren(...wanted.map(([value, label]) => make("option", { value }, label)));
    select.value = this.state.get(name);
  }

  // The plan as one reads it, part by part; what cannot go wrong is left out.
  inWords() {
    const { protocols, randomizers } = this.tables;
    const names = { protocol: protocols, randomizer: randomizers };
    return [...this.rows].filter(
      ([name, { row }]) => !row.hidden && !(ADVERSE.includes(name) && parse(this.state.get(name)) === 0)
    )
      .map(([name, { label }]) => {
        const text = this.state.get(name);
        const known = names[name]?.[text];
        return known ? known.label : `${label[0].toLowerCase()}${label.slice(1)} ${shown(text)}`;
      });
  }

  // Show a refusal at its field; true if there is such a field.
  complain(answer) {
    this.content();
    const row = this.rows.get(answer.field);
    if (!row || row.row.hidden) return false;
    row.problem.textContent = refusal(answer, row.label);
    row.problem.hidden = false;
    row.input.setAttribute("aria-invalid", "true");
    return true;
  }

  content() {
    for (const { problem, input } of this.rows.values()) {
      problem.hidden = true;
      problem.textContent = "";
      input.removeAttribute("aria-invalid");
    }
  }
}
