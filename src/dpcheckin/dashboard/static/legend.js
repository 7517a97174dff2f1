// The legend: a switch for every line, what it is worth, its figure here, and why it is refuted.

import { node, SVG } from "./drawing.js";

const CLASS = { guarantee: "published", "lower bound": "lower", "refuted claim": "refuted", conjecture: "refuted" };
const OURS = [
  { key: "guarantee", name: "guarantee", source: "this package", kind: "guarantee", look: "guarantee", hue: 0,
    statement: "Certified: no client loses more than this (empty-seat theorem)." },
  { key: "lower bound", name: "proven lower bound", source: "this package", kind: "lower bound",
    look: "lower", hue: 1, fills: true, above: true,
    statement: "Some clients lose at least this much: nobody can promise less." },
];

// The lines of a protocol: ours, then what has been published about it.
export function linesOf(protocol, tables) {
  const published = tables.bounds[protocol] ?? [];
  let [proved, refuted] = [0, 0];
  const theirs = published.map((bound) => {
    const look = CLASS[bound.kind];
    const hue = look === "refuted" ? 6 + (refuted++ % 4) : bound.kind === "lower bound" ? 5 : 2 + (proved++ % 4);
    return { ...bound, look, hue };
  });
  const ours = tables.protocols[protocol]?.bounded ? OURS : OURS.slice(0, 1);
  return [...ours, ...theirs];
}

// Where the page of published bounds tells about one of them.
export const anchorOf = (key) => key.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "");

export function explain(line) {
  const rows = [["b", line.name], ["span", `${line.kind} · ${line.citation ?? line.source}`], ["span", line.statement]];
  if (line.kind === "refuted claim") rows.push(["refuted", `Refuted: ${line.erratum ?? "see the page of published bounds"}`]);
  else if (line.erratum) rows.push(["span", `Erratum: ${line.erratum}`]);
  return rows;
}

// A short piece of a line as the plot draws it.
function sampleOf(look, hue) {
  const swatch = document.createElementNS(SVG, "svg");
  swatch.setAttribute("class", "plot");
  swatch.setAttribute("viewBox", "0 0 30 12");
  swatch.setAttribute("aria-hidden", "true");
  node(swatch, "path", { class: `line ${look} hue-${hue}`, d: "M1 6H29" });
  return swatch;
}

// What the lines of a plot are, where none can be switched off.
export function keyTo(lines) {
  return lines.map(({ key, kind, hue }) => {
    const item = document.createElement("li");
    item.append(sampleOf(kind, hue), key);
    return item;
  });
}

export class Legend {
  // `toggled(key, on)`, `pointed(line or null, element)`
  constructor(fieldset, { toggled, pointed }) {
    Object.assign(this, { fieldset, toggled, pointed, entries: new Map(), shown: "" });
    this.elsewhere = document.getElementById("elsewhere");
  }

  show(lines, hidden) {
    const signature = lines.map((l) => l.key).join("|");
    if (signature !== this.shown) {
      this.shown = signature;
      this.entries.clear();
      document.querySelectorAll("#legend .entry, #elsewhere .entry").forEach((entry) => entry.remove());
      this.#count();
      for (const line of lines) this.fieldset.append(this.#entry(line));
    }
    for (const line of lines) this.entries.get(line.key).box.checked = !hidden.has(line.key);
  }

  #entry(line) {
    const entry = document.createElement("label");
    entry.className = "entry";
    entry.dataset.kind = line.kind;
    const box = document.createElement("input");
    box.type = "checkbox";
    box.dataset.line = line.key;
    const swatch = sampleOf(line.look, line.hue);
    const name = document.createElement("span");
    name.className = "name";
    const small = document.createElement("small");
    const about = document.createElement("small");
    if (line.citation) {
      const paper = document.createElement("a");
      Object.assign(paper, { href: `/bounds#${anchorOf(line.key)}`, textContent: line.source.split(" ")[0] });
      paper.setAttribute("aria-label", `${line.source}: what it says and its errata`);
      small.textContent = `· ${line.kind}`;
      about.append(paper, " ");
    } else small.textContent = line.source;
    name.append(`${line.name} `, about, small);
    const value = document.createElement("span");
    value.className = "value";
    // screen readers get the explanation with the switch, others on hover and focus
    box.setAttribute("aria-description", explain(line).slice(1).map(([, text]) => text).join(". "));
    entry.append(box, swatch, name, value);
    box.addEventListener("change", () => this.toggled(line.key, box.checked));
    entry.addEventListener("pointerenter", () => this.pointed(line, entry));
    entry.addEventListener("pointerleave", () => this.pointed(null, entry));
    box.addEventListener("focus", () => box.matches(":focus-visible") && this.pointed(line, entry));
    box.addEventListener("blur", () => this.pointed(null, entry));
    this.entries.set(line.key, { entry, box, value, small, about: small.textContent, note: "" });
    return entry;
  }

  // The figure at the chosen place, or why there is none.
  value(key, text, reason = "") {
    const found = this.entries.get(key);
    if (!found) return;
    found.value.textContent = text;
    found.reason = reason;
    this.#say(found);
    found.entry.dataset.empty = String(Boolean(reason));
    // what says nothing about this plan is out of the way, but can be looked up
    const home = reason ? this.elsewhere.querySelector(".legend") : this.fieldset;
    if ((text || reason) && found.entry.parentElement !== home) home.append(found.entry);
    this.#count();
  }

  // What else is to be said about a line; nothing for nothing.
  note(key, text) {
    const found = this.entries.get(key);
    if (!found || found.note === text) return;
    found.note = text;
    this.#say(found);
  }

  // A figure is on its way.
  wait(key) {
    const found = this.entries.get(key);
    if (found && !found.reason) found.value.textContent = "…";
  }

  waitNoLonger() {
    for (const { value } of this.entries.values()) if (value.textContent === "…") value.textContent = "";
  }

  noted(key) {
    return this.entries.get(key)?.note ?? "";
  }

  #say(found) {
    found.small.textContent = found.reason || (found.note ? `${found.about} · ${found.note}` : found.about);
  }

  #count() {
    const count = this.elsewhere.querySelectorAll(".entry").length;
    this.elsewhere.hidden = count === 0;
    this.elsewhere.querySelector("summary").textContent = count === 1
      ? "One published bound does not apply here" : `${count} published bounds do not apply here`;
  }
}
