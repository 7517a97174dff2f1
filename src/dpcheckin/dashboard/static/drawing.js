// A line plot in SVG: axes, lines, a region below one of them, a place and a target.
// It draws what it is given; it computes no figures and listens to nobody.

import { Scale } from "./scale.js";

export const SVG = "http://www.w3.org/2000/svg";
export const MARGIN = { left: 64, right: 16, top: 14, bottom: 44 };

export function node(parent, name, attributes = {}, text = undefined) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

export class Drawing {
  constructor(svg) {
    this.svg = svg;
  }

  // picture: {x: {from, to, log, title}, y: {…}, lines: [{key, kind, hue, points, fills, above}],
  //           (`fills`: what is said of the region below it, at length and in short)
  //           here: {x, y} or null, aimed: {y, text} or null}
  // `lit`: the key of a line that stands out, or null
  paint({ x, y, lines, here, aimed }, width, height, lit = null) {
    this.lit = lit;
    this.svg.replaceChildren();
    const [right, bottom] = [width - MARGIN.right, height - MARGIN.bottom];
    this.x = new Scale(x.from, x.to, MARGIN.left, right, x);
    this.y = new Scale(y.from, y.to, bottom, MARGIN.top, y);
    this.#axes(right, bottom, x, y);
    const clip = `${this.svg.id || "drawing"}-clip`;
    node(node(this.svg, "clipPath", { id: clip }), "rect", {
      x: MARGIN.left, y: MARGIN.top - 4, width: right - MARGIN.left + 6, height: bottom - MARGIN.top + 8,
    });
    const inside = node(this.svg, "g", { "clip-path": `url(#${clip})` });
    for (const line of lines.filter((l) => l.fills)) this.#region(inside, line, bottom);
    const order = [...lines].reverse(); // ours over others', and what would be hidden over ours
    for (const line of [...order.filter((l) => !l.above), ...order.filter((l) => l.above)]) this.#line(inside, line);
    if (aimed) this.#aimed(inside, aimed, right);
    if (here) {
      const [px, py] = [this.x.at(here.x), this.y.at(here.y)];
      node(inside, "line", { class: "cursor", x1: px, x2: px, y1: py, y2: bottom });
      node(inside, "circle", { class: "here", cx: px, cy: py, r: 6 });
    }
    this.cursor = node(inside, "g", {});
  }

  #axes(right, bottom, x, y) {
    for (const { value, label, minor } of this.x.ticks(64)) {
      const at = this.x.at(value);
      node(this.svg, "line", { class: `grid${minor ? " minor" : ""}`, x1: at, x2: at, y1: MARGIN.top, y2: bottom });
      if (label) node(this.svg, "text", { x: Math.min(at, right - 4), y: bottom + 17, "text-anchor": "middle" }, label);
    }
    for (const { value, label, minor } of this.y.ticks(30)) {
      const at = this.y.at(value);
      node(this.svg, "line", { class: `grid${minor ? " minor" : ""}`, x1: MARGIN.left, x2: right, y1: at, y2: at });
      if (label) node(this.svg, "text", { x: MARGIN.left - 8, y: at + 4, "text-anchor": "end" }, label);
    }
    node(this.svg, "line", { class: "frame", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom });
    node(this.svg, "text", { class: "title", x: (MARGIN.left + right) / 2, y: bottom + 37, "text-anchor": "middle" }, x.title);
    const middle = (MARGIN.top + bottom) / 2;
    node(
      this.svg, "text", { class: "title", transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" },
      y.title,
    );
  }

  #path(points) {
    return points.map((p, i) => `${i ? "L" : "M"}${this.x.at(p.x).toFixed(1)} ${this.y.at(p.y).toFixed(1)}`).join("");
  }

  drawable(line) {
    return line.points.filter((p) => (p.x > 0 || !this.x.log) && (p.y > 0 || !this.y.log));
  }

  #region(parent, line, bottom) {
    const points = this.drawable(line);
    if (points.length < 2) return;
    const [first, last] = [this.x.at(points[0].x), this.x.at(points.at(-1).x)];
    node(parent, "path", { class: "below", d: `${this.#path(points)}L${last} ${bottom}L${first} ${bottom}Z` });
    if (bottom - this.y.at(points.at(-1).y) > 40)
      node(
        parent, "text", { class: "region", x: last - 10, y: bottom - 10, "text-anchor": "end" },
        line.fills[last - first < 420 ? 1 : 0],
      );
  }

  #line(parent, line) {
    const points = this.drawable(line);
    const faint = this.lit && this.lit !== line.key ? " faint" : "";
    if (points.length > 1)
      node(parent, "path", { class: `line ${line.kind} hue-${line.hue}${faint}`, "data-line": line.key, d: this.#path(points) });
    if (line.dots || points.length === 1)
      for (const p of points)
        node(
          parent, "circle",
          { class: `dot hue-${line.hue}`, cx: this.x.at(p.x), cy: this.y.at(p.y), r: points.length > 60 ? 1.5 : 2.6 },
        );
  }

  #aimed(parent, aimed, right) {
    const at = this.y.at(aimed.y);
    node(parent, "line", { class: "aimed", x1: MARGIN.left, x2: right, y1: at, y2: at });
    const width = 16 + 7.2 * aimed.text.length;
    node(parent, "rect", { class: "badge", x: right - width, y: at - 10, width, height: 20, rx: 5 });
    node(parent, "text", { class: "badge-text", x: right - width / 2, y: at + 4, "text-anchor": "middle" }, aimed.text);
  }
}
