// Training runs of a folder, looked at again every second so that a run that goes on is seen live.

import { getJson } from "./api.js";
import { grouped, tick } from "./numbers.js";
import { Plot } from "./plot.js";

const EVERY = 1000;
const $ = (id) => document.getElementById(id);
const capital = (text) => text[0].toUpperCase() + text.slice(1);

export class Runs {
  constructor(state, offered) {
    Object.assign(this, { state, offered, version: null, runs: [], shown: null });
    const about = (line, point) => [
      ["b", `round ${grouped(point.round)}`], ["span", `ε ≤ ${point.epsilon_text}`],
      ["span", `${point.score} ${point.score_text}`], ["span", `${grouped(point.check_ins)} check-ins`],
    ];
    this.accuracy = new Plot($("run-accuracy"), $("run-accuracy-tip"), { describe: about });
    this.checkIns = new Plot($("run-check-ins"), $("run-check-ins-tip"), { describe: about });
    if (!offered) this.#none(
      "No folder of runs. Start the page with dpcheckin ui --runs DIR; train with dpcheckin train --out DIR/NAME."
    );
    state.onChange(() => this.#look());
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

  #list() {
    $("runs-none").hidden = true;
    $("run").hidden = false;
    $("runs").querySelector("aside").hidden = false;
    const focused = document.activeElement?.name === "run";
    $("runs-list").replaceChildren(
      ...this.runs.map((run) => {
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
    $("runs-table").replaceChildren(this.#table());
    if (focused) $("runs-list").querySelector(":checked")?.focus();
  }

  // Every run a row; on a narrow screen a row becomes a card with all its columns.
  #table() {
    // one column for what was chosen: a column each would not fit on any screen
    const chosen = (run) => Object.entries(run.parameters).map(
      ([name, text]) => `${name.replaceAll("_", " ")} ${text}`
    ).join("; ");
    const columns = [
      ["run", (run) => run.title], ["state", (run) => run.state], ["rounds played", (run) => grouped(run.round)],
      ["score", (run) => `${run.score} ${run.score_text}`],
      ["ε", (run) => `≤ ${run.epsilon}`], ["δ", (run) => tick(run.delta)],
      ["parameters", chosen],
    ];
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const [title] of columns) head.append(Object.assign(document.createElement("th"), { textContent: title, scope: "col" }));
    const body = table.createTBody();
    for (const run of this.runs) {
      const row = body.insertRow();
      columns.forEach(([title, text], i) => {
        const cell = document.createElement(i ? "td" : "th");
        cell.textContent = text(run);
        cell.dataset.column = title;
        row.append(cell);
      });
    }
    return table;
  }

  async #look() {
    if (!this.open || !this.runs.length || this.shown === this.chosen) return;
    const name = this.chosen;
    this.shown = name;
    const run = await getJson("/api/run", { name });
    if (name !== this.chosen || run.problem) return;
    for (const radio of $("runs-list").querySelectorAll("input")) radio.checked = radio.value === name;
    this.#show(run);
  }

  #show(run) {
    const { rows, report } = run;
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
    const line = (points) => [{ key: "run", kind: "guarantee", hue: 0, dots: points.length < 120, points }];
    const most = (values) => Math.max(...values) * 1.04;
    const spent = rows.filter((r) => r.epsilon !== null);
    this.accuracy.show({
      x: { from: 0, to: most(spent.map((r) => r.epsilon)), log: false, title: `certified ε at δ = ${tick(run.delta)}` },
      y: {
        from: 0, to: run.unit ? 100 : most(spent.map((r) => r.value)), log: false,
        title: run.unit ? `${run.score}, ${run.unit}` : run.score,
      },
      lines: line(spent.map((r) => ({ ...r, x: r.epsilon, y: r.value }))),
    });
    this.checkIns.show({
      x: { from: 0, to: most(rows.map((r) => r.round)), log: false, whole: true, title: "round" },
      y: { from: 0, to: most(rows.map((r) => r.check_ins)) || 1, log: false, title: "check-ins" },
      lines: line(rows.map((r) => ({ ...r, x: r.round, y: r.check_ins }))),
    });
  }
}
