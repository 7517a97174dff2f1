// What an attacker can do: true positives against false positives, at most and by the best attack
// that is known.

import { aborted, getJson } from "./api.js";
import { csv, save, savePicture } from "./export.js";
import { keyTo } from "./legend.js";
import { Plot } from "./plot.js";
import { allow } from "./ready.js";

const $ = (id) => document.getElementById(id);
const percent = (share) => `${Number((100 * share).toPrecision(3))}%`;

const FILE = "dpcheckin-true-against-false-positives";
const QUOTED = 0.1; // per cent of false positives at which the curves are compared

export class TradeOff {
  // `about()` gives the plan in words and the version, for files
  constructor(about) {
    this.about = about;
    for (const button of document.querySelectorAll("#tradeoff-exports button")) button.addEventListener(
      "click", () => this.#export(button.dataset.as),
    );
    const describe = (line, point) => [
      ["b", line.key], ["span", `${percent(point.x / 100)} false positives`],
      ["span", `${line.most ? "at most " : ""}${point.text} true positives`],
    ];
    this.plot = new Plot($("tradeoff"), $("tradeoff-tip"), { describe });
  }

  // What is shown is about another plan.
  stale() {
    $("tradeoff-panel").dataset.stale = $("tradeoff-words").textContent ? "true" : "first";
    allow({ tradeoff: false });
  }

  clear(text = "") {
    this.plot.clear();
    $("tradeoff-key").replaceChildren();
    $("tradeoff-words").textContent = text;
  }

  async ask(query, signal) {
    $("tradeoff-panel").dataset.state = "busy";
    try {
      const answer = await getJson("/api/tradeoff", query, signal);
      if (signal.aborted) return;
      $("tradeoff-panel").dataset.stale = "false";
      if (answer.problem) this.clear(answer.problem);
      else this.#show(answer);
      $("tradeoff-panel").dataset.state = "done";
    } catch (problem) {
      if (!aborted(problem)) throw problem;
    }
  }

  async #export(as) {
    const { plan, version } = this.about();
    const lines = this.lines.map((line) => ({
      ...line, name: line.key, look: line.kind, kind: line.worth ?? "", source: "",
      value: line.points.find((p) => Math.abs(p.x - QUOTED) < 1e-9)?.text,
    }));
    if (as === "csv") {
      const points = new Map(this.lines.map((line) => [line.key, line.points]));
      return save(`${FILE}.csv`, csv("false_positives_percent", "true_positives_percent", lines, points), "text/csv");
    }
    const foot = [
      `Figures are true positives at ${QUOTED}% false positives; at most for the guarantee, rounded up.`,
      `dpcheckin ${version}`,
    ];
    return savePicture(
      FILE, as,
      {
        title: "What an attacker can find out", plan, said: $("tradeoff-words").textContent, picture: this.plot.picture,
        lines, foot,
      },
    );
  }

  #show(answer) {
    $("tradeoff-words").textContent = answer.words;
    const chance = answer.points.map(({ x }) => ({ x, y: x, text: percent(x / 100) }));
    this.lines = [
      { key: "guarantee", kind: "guarantee", worth: "guarantee", hue: 0, points: answer.points, most: true },
      {
        key: "best known attack (proven lower bound)", kind: "lower", worth: "lower bound", hue: 1,
        points: answer.known, above: true,
      },
      { key: "a guess", kind: "plain", hue: 9, points: chance },
    ].filter((line) => line.points.length);
    $("tradeoff-key").replaceChildren(...keyTo(this.lines));
    this.plot.show({
      x: { from: 0.01, to: 100, log: true, title: "false positives, %" },
      y: { from: 0.01, to: 100, log: true, title: "true positives, %" },
      lines: this.lines,
    });
    allow({ tradeoff: true });
  }
}
