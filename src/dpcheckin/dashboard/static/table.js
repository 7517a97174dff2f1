// The figures of the plot as a table: every line a row, every abscissa a column.

import { tick } from "./numbers.js";

export function tableOf(title, lines, points) {
  const of = (line) => points.get(line.key) ?? [];
  const xs = [...new Set(lines.flatMap((line) => of(line).map((p) => p.x)))].sort((a, b) => a - b);
  const table = document.createElement("table");
  const cell = (row, text, tag = "td") => {
    const made = document.createElement(tag);
    made.textContent = text;
    row.append(made);
  };
  const head = table.createTHead().insertRow();
  cell(head, title, "th");
  for (const x of xs) cell(head, tick(x), "th");
  const body = table.createTBody();
  for (const line of lines) {
    const row = body.insertRow();
    cell(row, `${line.name} (${line.kind})`, "th");
    for (const x of xs) cell(row, of(line).find((p) => p.x === x)?.text ?? "");
  }
  return table;
}
