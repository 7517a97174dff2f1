// All runs as a table: what differs between them is a column of its own, headings sort, boxes lay
// runs over one another.

import { grouped, tick } from "./numbers.js";

const made = (tag, properties = {}, ...inside) => {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...inside);
  return node;
};
const spaced = (name) => name.replaceAll("_", " ");
const number = (text) => {
  const found = text.replaceAll(",", "").match(/^[^\d.-]*(-?[\d.]+(?:e[+-]?\d+)?)/i);
  return found ? Number(found[1]) : NaN;
};

export const FIXED = [
  ["run", (run) => run.title], ["state", (run) => run.state], ["rounds played", (run) => grouped(run.round)],
  ["score", (run) => `${run.score} ${run.score_text}`], ["ε", (run) => `≤ ${run.epsilon}`],
  ["δ", (run) => tick(run.delta)],
];

// [what all runs have alike as [name, value], columns of what differs]; runs that have not written
// theirs down yet have no say.
export function parted(runs) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.parameters)))];
  const values = (name) => [...new Set(runs.filter((run) => name in run.parameters).map((run) => run.parameters[name]))];
  const alike = names.filter((name) => values(name).length === 1).map((name) => [name, values(name)[0]]);
  const differing = names.filter((name) => values(name).length > 1);
  return [alike, differing.map((name) => [spaced(name), (run) => run.parameters[name] ?? "–"])];
}

// Runs in which every word of the filter occurs, in the order of a column; "-" before it turns it round.
export function ordered(runs, filter, sort) {
  const columns = [...FIXED, ...parted(runs)[1]];
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (run) => [
    run.title, run.state, run.score, ...Object.entries(run.parameters).map(([name, value]) => `${spaced(name)} ${value}`),
  ].join(" ").toLowerCase();
  const found = runs.filter((run) => words.every((word) => text(run).includes(word)));
  const column = columns.find(([title]) => title === sort.replace(/^-/, ""));
  if (!column) return found;
  const sign = sort.startsWith("-") ? -1 : 1;
  const compared = (a, b) => {
    const [x, y] = [column[1](a), column[1](b)];
    const [m, n] = [number(x), number(y)];
    return sign * (column[0] !== "run" && !isNaN(m) && !isNaN(n) ? m - n : x.localeCompare(y));
  };
  return [...found].sort(compared);
}

// `drawn` are names of runs whose lines are shown; `onSort` and `onDraw` hear of clicks.
export function runTable(every, shown, { sort, drawn, onSort, onDraw }) {
  const [alike, differing] = parted(every);
  const columns = [...FIXED, ...differing];
  const heading = ([title]) => {
    const rising = sort === title, falling = sort === `-${title}`;
    const button = made("button", { type: "button", className: "sort", textContent: title });
    button.append(made("span", { textContent: rising ? " ▲" : falling ? " ▼" : "", ariaHidden: "true" }));
    button.addEventListener("click", () => onSort(rising ? `-${title}` : title));
    const head = made("th", { scope: "col" }, button);
    head.setAttribute("aria-sort", rising ? "ascending" : falling ? "descending" : "none");
    return head;
  };
  const table = made("table");
  table.createTHead().append(made("tr", {}, ...columns.map(heading)));
  const body = table.createTBody();
  for (const run of shown) {
    const box = made("input", { type: "checkbox", checked: drawn.includes(run.name) });
    box.setAttribute("aria-label", `draw ${run.title}`);
    box.addEventListener("change", () => onDraw(run.name, box.checked));
    const row = body.insertRow();
    columns.forEach(([title, text], i) => {
      const cell = made(i ? "td" : "th", {}, i ? text(run) : made("span", {}, box, text(run)));
      cell.dataset.column = title;
      if (text(run).length > 20) cell.className = "long";
      row.append(cell);
    });
  }
  const same = alike.map(([name, value]) => `${spaced(name)} ${value}`).join("; ");
  const note = made("p", { className: "note", textContent: every.length > 1 && same ? `All runs: ${same}` : "" });
  return [table, note];
}
