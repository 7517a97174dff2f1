// The planner: asks while the form changes, and puts the answers where they belong.
// A quick certified figure follows every movement; once the form rests, the tight figure and the
// lines of the plot are asked for. Whatever is no longer wanted is called off.

import { Aim } from "./aim.js";
import { aborted, getJson, getLines, pointsOf } from "./api.js";
import { csv, save, savePicture } from "./export.js";
import { ADVERSE } from "./fields.js";
import { Beside, Mixed } from "./kept.js";
import { explain, Legend, linesOf } from "./legend.js";
import { counted, grouped, parse, shown, tick } from "./numbers.js";
import { Plot } from "./plot.js";
import { allow } from "./ready.js";
import { outward } from "./scale.js";
import { tableOf } from "./table.js";
import { say, Texts } from "./texts.js";
import { TradeOff } from "./tradeoff.js";

const REST = 300; // milliseconds without a change after which the form is at rest
const TITLES = {
  rounds: "rounds", rate: "check-in rate", population: "population", cohort: "cohort", slots: "slots",
  local_epsilon: "local ε", noise_multiplier: "noise multiplier",
};
const SHORT = { rounds: "rounds", rate: "rate", population: "population", cohort: "cohort", slots: "slots" };
const IMPOSSIBLE = {
  alone: ["no guarantee can lie here", "impossible"],
  kept: ["no guarantee of this plan can lie here", "impossible for this plan"],
};
const $ = (id) => document.getElementById(id);

export class Planner {
  constructor(state, fields, tables) {
    Object.assign(this, { state, fields, tables, points: new Map(), reasons: new Map(), preview: [], timer: 0 });
    this.texts = new Texts();
    this.tradeoff = new TradeOff(() => ({ plan: fields.inWords(), version: tables.version }));
    this.beside = new Beside(state, fields, tables, () => this.#draw());
    new Mixed(state, fields, tables);
    for (const button of document.querySelectorAll("#exports button")) button.addEventListener(
      "click", () => this.#export(button.dataset.as),
    );
    this.plot = new Plot($("plot"), $("tip"), {
      describe: (line, point) => [
        ...explain(line.about).slice(0, 2), ["span", `ε = ${point.text} at ${TITLES[this.axis]} ${grouped(point.x)}`],
        ...explain(line.about).slice(3),
      ],
      pick: (y) => this.aim.at(Number(y.toPrecision(3))),
    });
    this.legend = new Legend($("legend"), {
      toggled: (key, on) => this.#toggle(key, on),
      pointed: (line, element) => this.#point(line, element),
    });
    this.aim = new Aim(state, {
      question: () => ({ ...this.fields.query(), over: this.over }),
      start: () => this.here?.y,
      titles: TITLES,
      failed: (problem) => this.#offline(problem),
    });
    state.onChange((changed) => this.#changed(changed));
    this.#changed(null);
    this.#settleNow(); // nobody is typing yet
    if (state.get("target")) this.aim.ask();
  }

  get over() {
    const known = this.tables.protocols[this.state.get("protocol")]?.over ?? [];
    return known.includes(this.state.get("over")) ? this.state.get("over") : known[0];
  }

  get axis() {
    if (this.over !== "local") return this.over;
    return this.fields.noise;
  }

  get hidden() {
    return new Set(this.state.get("hide").split("|").filter(Boolean));
  }

  #changed(changed) {
    const only = (names) => changed !== null && changed.every((name) => names.includes(name));
    if (only(["target"])) return this.#draw();
    if (only(["view", "run", "parts"])) return undefined;
    this.beside.show();
    if (only(["beside"])) {
      this.#draw();
      return this.#rest();
    }
    this.lines = linesOf(this.state.get("protocol"), this.tables);
    this.legend.show(this.lines, this.hidden);
    this.#choices();
    if (only(["hide"])) {
      this.#draw();
      return this.#rest();
    }
    // what is drawn stays until there is something to take its place, unless its axes are others
    this.outdated = true;
    if (changed === null || ["over", "protocol", "randomizer"].some((name) => changed.includes(name))) this.#forget();
    if (!only(["over"])) this.#busy();
    const again = only(["over"]) && this.aim.asked; // the same target, along another axis
    this.aim.forget();
    if (again) this.aim.ask();
    this.#ask();
    return this.#rest();
  }

  #choices() {
    const names = this.tables.protocols[this.state.get("protocol")]?.over ?? [];
    const label = (name) => SHORT[name] ?? TITLES[this.fields.noise];
    const signature = names.map(label).join();
    if (signature !== this.offered) {
      this.offered = signature;
      $("over").replaceChildren(
        ...names.map((name) => {
          const choice = document.createElement("label");
          const radio = document.createElement("input");
          Object.assign(radio, { type: "radio", name: "over", value: name });
          radio.addEventListener("change", () => this.state.set({ over: name }));
          choice.append(radio, label(name));
          return choice;
        }),
      );
    }
    for (const radio of $("over").querySelectorAll("input")) radio.checked = radio.value === this.over;
  }

  #forget() {
    this.outdated = false;
    this.points.clear();
    this.reasons.clear();
    this.preview = [];
    this.range = null;
    for (const line of this.lines) {
      this.legend.value(line.key, "");
      this.legend.note(line.key, "");
      if (!this.hidden.has(line.key)) this.legend.wait(line.key);
    }
  }

  #busy() {
    $("epsilon").dataset.stale = "true";
    // what they say is about the plan before, if there was one
    $("cards").dataset.stale = $("texts-panel").dataset.stale = this.known ? "true" : "first";
    this.tradeoff.stale();
    this.#status("busy", "computing");
    this.stated = null;
    allow({ plan: false });
  }

  #status(kind, text) {
    $("status").dataset.state = kind;
    $("status").textContent = text;
  }

  // While one preview is on its way the next waits: the server never has two of ours to do. A
  // figure that is on its way is waited for, or a steady hand on a slider would never see one.
  async #ask() {
    this.wanted = true;
    if (this.asking) return this.answered && this.preview_abort.abort();
    this.asking = true;
    while (this.wanted) {
      this.wanted = this.answered = false;
      this.preview_abort = new AbortController();
      try {
        await getLines(
          "/api/preview", { ...this.fields.query(), over: this.over }, this.preview_abort.signal,
          (answer) => this.#previewed(answer),
        );
      } catch (problem) {
        if (!aborted(problem)) this.#offline(problem);
      }
    }
    this.asking = false;
    return undefined;
  }

  #previewed(answer) {
    this.answered = true;
    if (this.wanted) {
      // the slider has moved on: show it as what it is, the figure of a moment ago
      if (answer.epsilon) $("epsilon").textContent = answer.epsilon.text;
      return this.preview_abort.abort();
    }
    if (answer.problem) return answer.line ? undefined : this.#refused(answer);
    if (answer.epsilon) {
      this.#accepted();
      if (this.outdated) this.#forget();
      if ($("status").dataset.state === "certified") return undefined;
      $("epsilon").textContent = answer.epsilon.text;
      $("epsilon").dataset.stale = "false";
      this.here = { x: parse(this.state.get(this.axis)), y: answer.epsilon.value };
      this.least = null;
      this.#caption();
      this.#say(answer.texts);
      this.#status("quick", "certified, tightening…");
    } else {
      this.preview.push(answer);
      this.preview.sort((a, b) => a.x - b.x);
    }
    return this.#draw();
  }

  #rest() {
    clearTimeout(this.timer);
    this.rest_abort?.abort();
    allow({ lines: false });
    $("progress").dataset.state = "busy";
    $("progress").textContent = "";
    this.timer = setTimeout(() => this.#settle(), REST);
  }

  #settleNow() {
    clearTimeout(this.timer);
    this.#settle();
  }

  async #settle() {
    this.rest_abort = new AbortController();
    const { signal } = this.rest_abort;
    const query = this.fields.query();
    try {
      const answer = await getJson("/api/statement", query, signal);
      if (signal.aborted) return;
      if (answer.problem) return void this.#refused(answer);
      if (this.outdated) this.#forget();
      this.#stated(answer);
      const asked = new URLSearchParams({ ...query, over: this.over });
      for (const line of this.lines)
        if (line.citation && !this.hidden.has(line.key)) asked.append("bound", line.key);
      let [done, questions] = [-1, 0];
      await getLines("/api/lines", asked, signal, (answer) => {
        if (signal.aborted) return;
        done += 1;
        questions = answer.questions ?? questions;
        $("progress").textContent = done < questions ? `${done} of ${questions} computed` : "";
        this.#received(answer);
      });
      this.preview = [];
      if (this.beside.plan) $("progress").textContent = "computing the kept plan";
      await this.beside.ask(this.over, signal);
      if (signal.aborted) return;
      $("progress").textContent = "";
      $("progress").dataset.state = "done";
      this.legend.waitNoLonger();
      allow({ lines: true });
      this.#draw();
      await this.tradeoff.ask(query, signal);
    } catch (problem) {
      if (!aborted(problem)) this.#offline(problem);
    }
  }

  #stated(answer) {
    this.#accepted();
    this.stated = answer;
    this.known = true;
    $("epsilon").dataset.stale = $("cards").dataset.stale = "false";
    $("epsilon").textContent = $("trusted-figure").textContent = answer.epsilon.text;
    $("untrusted-figure").textContent = answer.local?.text ?? "–";
    this.#status("certified", "certified");
    const about = this.tables.protocols[this.state.get("protocol")];
    $("trusted-title").textContent = about.trusted;
    $("untrusted-title").textContent = about.betrayed;
    $("trusted").textContent = answer.trusted;
    $("untrusted").textContent = answer.untrusted ?? "";
    const basis = answer.basis.join("; "); // a theorem with a name of its own, or a paper
    $("basis").textContent = `By ${/^[A-Z]/.test(basis) ? "" : "the "}${basis}.`;
    this.here = { x: parse(this.state.get(this.axis)), y: answer.epsilon.value };
    this.least = answer.lower;
    this.legend.note("lower bound", answer.below ?? "");
    this.#caption();
    this.#say(answer.texts);
    return this.#draw();
  }

  #say(texts) {
    $("texts-panel").dataset.stale = "false";
    this.texts.show(texts);
  }

  #caption() {
    const delta = tick(parse(this.state.get("delta")));
    const rounds = this.fields.relevant.has("rounds") ? ` over ${counted(parse(this.state.get("rounds")), "round")}` : "";
    const least = this.least ? `; nobody can promise less than ${this.least.text}` : "";
    $("caption").textContent = `at δ = ${delta}${rounds}${least}`;
  }

  #received(answer) {
    if (answer.axis) this.range = answer;
    if (!answer.line) return;
    const points = this.points.get(answer.line) ?? [];
    points.push(...pointsOf(answer));
    points.sort((a, b) => a.x - b.x);
    this.points.set(answer.line, points);
    const here = points.find((p) => p.x === parse(this.state.get(this.axis)));
    const published = answer.line !== "guarantee" && answer.line !== "lower bound";
    const missing = answer.reason ?? answer.problem;
    if (missing) this.reasons.set(answer.line, missing);
    const reason = published && !points.length ? missing : "";
    this.legend.value(answer.line, here?.text ?? (reason ? "–" : ""), reason);
    if (answer.partial) this.legend.note(answer.line, missing);
    this.#draw();
  }

  #refused(answer) {
    this.#status("problem", "no answer");
    $("epsilon").textContent = "–";
    $("caption").textContent = "";
    $("progress").dataset.state = "done";
    allow({ plan: false, lines: false });
    $("plot-panel").dataset.state = "problem"; // greyed: it is about the plan before
    if (!this.fields.complain(answer)) {
      $("problem").textContent = answer.problem;
      $("problem").hidden = false;
    } else $("problem").hidden = true;
  }

  #accepted() {
    this.fields.content();
    $("plot-panel").dataset.state = "";
    $("problem").hidden = true;
    allow({ plan: true });
    this.aim.resume();
  }

  #offline(problem) {
    this.#status("problem", "no connection");
    $("problem").textContent = `The server does not answer (${problem.message}). Is dpcheckin ui still running?`;
    $("problem").hidden = false;
  }

  #toggle(key, on) {
    const hidden = this.hidden;
    if (on) hidden.delete(key);
    else hidden.add(key);
    this.state.set({ hide: [...hidden].join("|") });
  }

  #point(line, element) {
    this.plot.light(line && this.points.has(line.key) ? line.key : null);
    if (!line) return void ($("tip").hidden = true);
    const frame = $("plot").parentElement.getBoundingClientRect();
    const box = element.getBoundingClientRect();
    return this.plot.tell(explain(line), box.left - frame.left + 40, frame.height - 30);
  }

  // As it is drawn; the kept plan comes last.
  get #shown() {
    const shown = this.lines.filter((line) => !this.hidden.has(line.key));
    return this.beside.plan ? [...shown, this.beside.line] : shown;
  }

  async #export(as) {
    const stem = `dpcheckin-epsilon-against-${this.axis.replaceAll("_", "-")}`;
    const name = `${stem}.${as}`;
    this.points.set("beside", this.beside.points);
    if (as === "svg" || as === "png") await savePicture(stem, as, this.#sheet());
    if (as === "csv") save(name, csv(this.axis, "epsilon", this.#shown, this.points), "text/csv");
    if (as === "certificate") {
      const proof = await getJson("/api/certificate", this.fields.query());
      if (proof.text) save("dpcheckin-certificate.json", proof.text, "application/json");
      else say(proof.problem);
    }
    if (as === "json") {
      const lines = this.#shown.map(({ key, name: title, kind, citation, erratum }) => ({
        name: title, kind, citation, erratum, missing: this.reasons.get(key),
        points: (this.points.get(key) ?? []).map(({ x, y, text }) => ({ x, epsilon: y, rounded: text })),
      }));
      const { texts: _, ...stated } = this.stated ?? {};
      save(
        name,
        JSON.stringify(
          { plan: this.fields.query(), axis: this.axis, statement: stated, lines, version: this.tables.version },
          null, 1,
        ),
        "application/json",
      );
    }
  }

  // What a saved picture says: it has to be understood without the page.
  #sheet() {
    const here = parse(this.state.get(this.axis));
    const lines = this.#shown.filter((line) => this.points.get(line.key)?.length);
    const least = this.least ? `; nobody can promise less than ${this.least.text}` : "";
    return {
      title: `ε against ${TITLES[this.axis]} at δ = ${tick(parse(this.state.get("delta")))}`,
      plan: this.fields.inWords(),
      said: `This plan: ε ≤ ${this.stated.epsilon.text}, certified${least}.`,
      picture: this.plot.picture,
      lines: lines.map((line) => ({
        ...line, value: this.points.get(line.key).find((p) => p.x === here)?.text ?? "",
        note: this.legend.noted(line.key),
      })),
      foot: [
        `Figures are those of this plan, at ${TITLES[this.axis]} ${shown(this.state.get(this.axis))}. `
          + "Guarantees are rounded up, lower bounds down.",
        $("legend-note").textContent, `dpcheckin ${this.tables.version}`,
      ].filter(Boolean),
    };
  }

  #draw() {
    if (this.outdated) return undefined; // what is shown stays as it is
    const shown = this.#shown;
    this.points.set("beside", this.beside.points);
    const lines = shown.map((line) => ({
      key: line.key, kind: line.look, hue: line.hue, above: line.above, about: line,
      fills: line.fills && (this.beside.plan ? IMPOSSIBLE.kept : IMPOSSIBLE.alone),
      points: this.points.get(line.key) ?? [],
    }));
    const certified = this.points.get("guarantee") ?? [];
    const preview = this.preview.length > 1 && !this.hidden.has("guarantee");
    this.legend.note("guarantee", preview ? "faded: certified, being tightened" : "");
    if (preview)
      lines.push({ key: "preview", kind: "preview", hue: 0, points: this.preview });
    const xs = [...certified, ...this.preview, ...(this.here ? [this.here] : [])].map((p) => p.x).filter((x) => x > 0);
    const from = this.range?.from ?? Math.min(...xs);
    const to = this.range?.to ?? Math.max(...xs);
    $("table").replaceChildren(tableOf(TITLES[this.axis], shown, this.points));
    this.#note();
    if (!(from < to)) return this.plot.clear();
    const ours = [...certified, ...this.preview, ...(this.here ? [this.here] : [])].map((p) => p.y).filter((y) => y > 0);
    const all = lines.flatMap((line) => line.points.map((p) => p.y)).filter((y) => y > 0).concat(ours);
    // a logarithmic axis has no place for a plot in which all is zero
    const some = all.length > 0;
    // bounds that promise next to nothing may leave the picture at the top
    const top = Math.min(Math.max(...all), Math.max(300 * Math.max(...ours, 1e-12), 1));
    const target = parse(this.state.get("target"));
    const [low, high] = some ? outward(Math.max(Math.min(...all), top / 1e9) * 0.9, top * 1.1) : [0, 1];
    this.plot.show({
      x: { from, to, log: true, title: TITLES[this.axis] },
      y: { from: low, to: high, log: some, title: `ε at δ = ${tick(parse(this.state.get("delta")))}` },
      lines,
      here: this.hidden.has("guarantee") ? null : this.here,
      aimed: target >= low && target <= high ? { y: target, text: `ε = ${this.state.get("target")}` } : null,
    });
    const svg = $("plot");
    svg.setAttribute("aria-valuemin", low);
    svg.setAttribute("aria-valuemax", high);
    return undefined;
  }

  #note() {
    const relevant = this.fields.relevant;
    const adverse = ADVERSE.some((name) => relevant.has(name) && parse(this.state.get(name)) > 0);
    $("legend-note").textContent = adverse ? "Published bounds know neither colluders nor dropouts: they are drawn without." : "";
  }
}
