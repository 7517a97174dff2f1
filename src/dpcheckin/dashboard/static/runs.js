// Training runs of a folder, looked at again every second so that a run that goes on is seen live.

import { getJson } from "./api.js";
import { grouped, tick } from "./numbers.js";
import { Plot } from "./plot.js";
import { ordered, runTable } from "./runtable.js";

const EVERY = 1000;
const HUES = 10;
const $ = (id) => document.getElementById(id);
const capital = (text) => text[0].toUpperCase() + text.slice(1);

export class Runs {
  constructor(state, offered) {
    Object.assign(this, { state, offered, version: null, runs: [], shown: null });
    const about = (line, point) => [
      ["b", line.title], ["span", `round ${grouped(point.round)}`], ["span", `ε ≤ ${point.epsilon_text}`],
      ["span", `${point.score} ${point.score_text}`], ["span", `${grouped(point.check_ins)} check-ins`],
    ];
    this.accuracy = new Plot($("run-accuracy"), $("run-accuracy-tip"), { describe: about });
    this.checkIns = new Plot($("run-check-ins"), $("run-check-ins-tip"), { describe: about });
    if (!offered) this.#none(
      "No folder of runs. Start the page with dpcheckin ui --runs DIR; train with dpcheckin train --out DIR/NAME."
    );
    $("runs-filter").value = state.get("find");
    $("runs-filter").addEventListener("input", () => state.set({ find: $("runs-filter").value }));
    state.onChange((changed) => {
      if (this.runs.length && (changed === null || changed.some((name) => ["find", "sort", "with"].includes(name)))) {
        this.shown = null;
        this.#list();
      }
      this.#look();
    });
    this.#watch();
  }

  get open() {
    return this.state.get("view") === "runs";
  }

  async #watch() {
    for (;;) {
      if (this.offered && this.open) await this.#refresh();
      await new Promise((resolve) => setTimeout(resolve, EVERY));
    }
  }

  async #refresh() {
    try {
      const answer = await getJson("/api/runs", { version: this.version ?? "-" });
      if (answer === null) return;
      this.version = answer.version;
      this.runs = answer.runs;
      $("runs-folder").textContent = answer.folder;
      if (!this.runs.length) return void this.#none(
        `No runs in ${answer.folder} yet: dpcheckin train --out ${answer.folder}/first`
      );
      this.shown = null; // what is open may have grown
      this.#list();
      await this.#look();
    } catch {
      this.version = null; // the server is away; the next look tries again
    }
  }

  #none(text) {
    $("runs-none").textContent = text;
    $("runs-none").hidden = false;
    $("run").hidden = true;
    $("runs").querySelector("aside").hidden = true;
  }

  get chosen() {
    const names = this.runs.map((run) => run.name);
    return names.includes(this.state.get("run")) ? this.state.get("run") : names[0];
  }

  // Runs that are drawn beside the chosen one, as the address has them.
  get #others() {
    const names = this.runs.map((run) => run.name);
    return this.state.get("with").split("|").filter((name) => names.includes(name) && name !== this.chosen);
  }

  #overlay(name, on) {
    const others = this.#others.filter((other) => other !== name);
    if (name === this.chosen && !on && others.length) this.state.set({ run: others[0], with: others.slice(1).join("|") });
    else this.state.set({ with: [...others, ...(on && name !== this.chosen ? [name] : [])].join("|") });
    this.#list();
  }

  #list() {
    $("runs-none").hidden = true;
    $("run").hidden = false;
    $("runs").querySelector("aside").hidden = false;
    const focused = document.activeElement?.name === "run";
    $("runs-list").replaceChildren(
      ...ordered(this.runs, this.state.get("find"), this.state.get("sort")).map((run) => {
        const [label, radio, name, facts] = ["label", "input", "b", "small"].map((tag) => document.createElement(tag));
        Object.assign(radio, { type: "radio", name: "run", value: run.name, checked: run.name === this.chosen });
        radio.addEventListener("change", () => this.state.set({ run: run.name }));
        name.textContent = run.title;
        const reached = `${run.score} ${run.score_text} at ε\u00a0≤\u00a0${run.epsilon}`;
        facts.textContent = `${run.state} · round ${grouped(run.round)} · ${reached}`;
        label.append(radio, name, facts);
        return label;
      }),
    );
    const shown = ordered(this.runs, this.state.get("find"), this.state.get("sort"));
    $("runs-table").replaceChildren(...runTable(this.runs, shown, {
      sort: this.state.get("sort"),
      drawn: [this.chosen, ...this.#others],
      onSort: (sort) => this.state.set({ sort }),
      onDraw: (name, on) => this.#overlay(name, on),
    }));
    if (focused) $("runs-list").querySelector(":checked")?.focus();
  }

  async #look() {
    if (!this.open || !this.runs.length || this.shown === this.chosen) return;
    const name = this.chosen;
    this.shown = name;
    const others = this.#others;
    const [run, ...beside] = await Promise.all([name, ...others].map((one) => getJson("/api/run", { name: one })));
    if (name !== this.chosen || run.problem) return;
    for (const radio of $("runs-list").querySelectorAll("input")) radio.checked = radio.value === name;
    this.#show(run, beside.filter((other) => !other.problem));
  }

  #show(run, beside) {
    const { report } = run;
    $("run-score").textContent = `${capital(run.score)} against ε`;
    $("run-name").textContent = run.title;
    $("run-parameters").replaceChildren(...Object.entries(run.parameters).flatMap(([name, text]) => {
      const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
      dt.textContent = name.replaceAll("_", " ");
      dd.textContent = text;
      return [dt, dd];
    }));
    $("run-state").textContent = run.state;
    $("run-state").dataset.state = run.state;
    $("run-caption").textContent = report ? `${report.protocol}; ${report.randomizer}` : `looked at every second`;
    $("run-statement").textContent = report?.statement ?? "";
    const facts = [
      [capital(run.score), run.score_text],
      ["Certified ε", `≤ ${run.epsilon}`],
      ["δ", tick(run.delta)],
      ["Rounds", grouped(run.round)],
      [`Best ${run.score}`, run.best],
    ];
    $("run-facts").replaceChildren(
      ...facts.map(([term, value]) => {
        const [box, dt, dd] = ["div", "dt", "dd"].map((tag) => document.createElement(tag));
        dt.textContent = term;
        dd.textContent = value;
        box.append(dt, dd);
        return box;
      }),
    );
    const every = [run, ...beside.filter((other) => other.score === run.score)];
    const drawn = every.map((one, i) => ({ one, hue: i % HUES, spent: one.rows.filter((r) => r.epsilon !== null) }));
    const lines = (points) => drawn.map((each) => {
      const made = points(each);
      const { name: key, title } = each.one;
      return { key, title, kind: "guarantee", hue: each.hue, dots: made.length < 120, points: made };
    });
    $("run-legend").replaceChildren(...(every.length > 1 ? drawn : []).map(({ one, hue }) => {
      const entry = document.createElement("li");
      entry.className = `hue-${hue}`;
      entry.textContent = one.title;
      return entry;
    }));
    const most = (values) => Math.max(...values) * 1.04;
    const spent = drawn.flatMap((each) => each.spent);
    const rows = every.flatMap((one) => one.rows);
    this.accuracy.show({
      x: { from: 0, to: most(spent.map((r) => r.epsilon)), log: false, title: `certified ε at δ = ${tick(run.delta)}` },
      y: {
        from: 0, to: run.unit ? 100 : most(spent.map((r) => r.value)), log: false,
        title: run.unit ? `${run.score}, ${run.unit}` : run.score,
      },
      lines: lines((each) => each.spent.map((r) => ({ ...r, x: r.epsilon, y: r.value }))),
    });
    this.checkIns.show({
      x: { from: 0, to: most(rows.map((r) => r.round)), log: false, whole: true, title: "round" },
      y: { from: 0, to: most(rows.map((r) => r.check_ins)) || 1, log: false, title: "check-ins" },
      lines: lines((each) => each.one.rows.map((r) => ({ ...r, x: r.round, y: r.check_ins }))),
    });
  }
}
