// What an attacker can do: false positives against the true positives that the guarantee allows.

import { aborted, getJson } from "./api.js";
import { keyTo } from "./legend.js";
import { Plot } from "./plot.js";

const $ = (id) => document.getElementById(id);
const percent = (share) => `${Number((100 * share).toPrecision(3))}%`;

export class TradeOff {
  constructor() {
    const describe = (line, point) => [["b", line.key], ["span", `${percent(point.x / 100)} false alarms`], ["span", `${line.key === "best known attack" ? "" : "at most "}${point.text} found`]];
    this.plot = new Plot($("tradeoff"), $("tradeoff-tip"), { describe });
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
      if (answer.problem) this.clear(answer.problem);
      else this.#show(answer);
      $("tradeoff-panel").dataset.state = "done";
    } catch (problem) {
      if (!aborted(problem)) throw problem;
    }
  }

  #show(answer) {
    $("tradeoff-words").textContent = answer.words;
    const chance = [0, 100].map((x) => ({ x, y: x, text: `${x}%` }));
    const lines = [
      { key: "at most, certified", kind: "guarantee", hue: 0, points: answer.points },
      { key: "best known attack", kind: "beside", hue: 2, points: answer.known },
      { key: "guessing", kind: "lower", hue: 1, points: chance },
    ].filter((line) => line.points.length);
    $("tradeoff-key").replaceChildren(...keyTo(lines));
    this.plot.show({
      x: { from: 0, to: 100, log: false, title: "clients wrongly accused, %" },
      y: { from: 0, to: 100, log: false, title: "found, %" },
      lines,
    });
  }
}
