// The plot as a page of a document: title, the plan, the plot itself, what every line is, in light
// colours and of one size, whatever the window looks like.

import { Drawing, node, SVG } from "./drawing.js";

const [WIDTH, HEIGHT, EDGE] = [960, 440, 28];
const [COLUMN, GAP, SAMPLE] = [(WIDTH - 2 * EDGE - 32) / 2, 32, 40];

// Words from a place on, in lines of at most so many pixels; pieces are [class, text]. Gives the
// height that was used.
function write(svg, x, y, width, pieces, leading = 18) {
  let line = node(svg, "text", { x, y });
  let used = leading;
  for (const [kind, text] of pieces) {
    let piece = null;
    for (const word of text.split(" ")) {
      const before = piece?.textContent ?? "";
      piece ??= node(line, "tspan", { class: kind });
      piece.textContent += line.textContent ? ` ${word}` : word;
      if (line.getComputedTextLength() <= width || line.textContent === word) continue;
      if (before) piece.textContent = before;
      else piece.remove();
      line = node(svg, "text", { x, y: y + used });
      piece = node(line, "tspan", { class: kind }, word);
      used += leading;
    }
  }
  return used;
}

function legend(svg, top, lines) {
  const heights = [top, top];
  for (const { look, hue, name, kind, source, value, note } of lines) {
    const column = heights[0] <= heights[1] ? 0 : 1; // the shorter one goes on
    const [x, y] = [EDGE + column * (COLUMN + GAP), heights[column]];
    node(svg, "path", { class: `line ${look} hue-${hue}`, d: `M${x} ${y - 4}h30` });
    node(svg, "text", { class: "strong", x: x + COLUMN, y, "text-anchor": "end" }, value);
    const about = [name.includes(kind) ? "" : kind, source, note].filter(Boolean).join(", ");
    const worth = look === "refuted" && kind !== "conjecture" ? "bad" : "";
    heights[column] += 3 + write(
      svg, x + SAMPLE, y, COLUMN - SAMPLE - 64, about ? [["strong", `${name}:`], [worth, about]] : [["strong", name]],
      16,
    );
  }
  return Math.max(...heights);
}

function compose(svg, { title, plan, said, picture, lines, foot }) {
  const room = WIDTH - 2 * EDGE;
  let y = EDGE + 14;
  node(svg, "text", { class: "heading", x: EDGE, y }, title);
  y += 24;
  y += write(svg, EDGE, y, room, [["", plan.join(" · ")]]);
  const marked = picture.here ? 18 : 0; // what is said is said of the place that is marked
  if (marked) node(svg, "circle", { class: "here", cx: EDGE + 6, cy: y - 4, r: 6 });
  y += write(svg, EDGE + marked, y, room - marked, [["strong", said]]);
  const plot = node(svg, "g", { transform: `translate(${EDGE / 2} ${y - 4})` });
  new Drawing(plot).paint(picture, WIDTH - EDGE - 6, HEIGHT);
  y = legend(svg, y + HEIGHT + 22, lines) + 12;
  y += write(svg, EDGE, y, room, foot.map((text) => ["", text]), 16);
  for (const [name, value] of Object.entries({ width: WIDTH, height: y + EDGE / 2 - 8 })) svg.setAttribute(name, value);
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${svg.getAttribute("height")}`);
}

// Compose it where nobody sees it, give it to `use`, and take it away again.
export async function onSheet(content, use) {
  const holder = document.createElement("div");
  holder.className = "sheet";
  holder.setAttribute("aria-hidden", "true");
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "plot");
  holder.append(svg);
  document.body.append(holder);
  try {
    compose(svg, content);
    return await use(svg);
  } finally {
    holder.remove();
  }
}
