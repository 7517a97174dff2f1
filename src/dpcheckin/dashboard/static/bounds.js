// The catalogue of published bounds: what each says, what it is worth, and what is wrong with it.

import { getJson } from "./api.js";
import { anchorOf } from "./legend.js";

const ARXIV = "https://arxiv.org/abs/";
const make = (tag, text, attributes = {}) => Object.assign(document.createElement(tag), { textContent: text, ...attributes });

function citation(text) {
  const line = document.createElement("p");
  line.className = "note";
  const found = /arXiv[: ](\d{4}\.\d{4,5})(v\d+)?/i.exec(text);
  if (!found) return Object.assign(line, { textContent: text });
  const link = make("a", found[0], { href: `${ARXIV}${found[1]}${found[2] ?? ""}`, rel: "noreferrer" });
  line.append(text.slice(0, found.index), link, text.slice(found.index + found[0].length));
  return line;
}

const tables = await getJson("/api/describe");
const seen = new Set();
for (const [protocol, bounds] of Object.entries(tables.bounds)) {
  const fresh = bounds.filter((bound) => !seen.has(bound.key));
  if (!fresh.length) continue;
  document.getElementById("list").append(make("h2", tables.protocols[protocol].label));
  for (const bound of fresh) {
    seen.add(bound.key);
    const card = make("article", "", { className: "card bound", id: anchorOf(bound.key) });
    card.dataset.kind = bound.kind;
    const head = make("h3", `${bound.name} `);
    head.append(make("span", bound.kind, { className: "chip" }));
    head.lastChild.dataset.state = bound.kind === "refuted claim" ? "problem" : "";
    card.append(head, make("p", bound.statement), citation(`${bound.source}: ${bound.citation}`));
    if (bound.erratum) card.append(make("p", `Erratum: ${bound.erratum}`, { className: "erratum" }));
    document.getElementById("list").append(card);
  }
}
document.documentElement.dataset.ready = "true";
document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
